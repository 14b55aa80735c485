//! The components: platform, files, signed lines, statements and the key.

use std::collections::HashSet;

use plimsoll_attestation::{Line, PublicKey, base64};
use plimsoll_record::Digest;
use serde_json::{Map, Value, json};

use crate::{
    facts::{CallFacts, Input},
    fault::{BomError, Code, Refusal},
    identity::{DOCKER_IMAGE, Identity, Manifest},
    lines::{LineRef, Store, verified},
    profile::{Attach, ImageName, Options},
    subject::Subject,
    value::{Properties, hashes, put},
};

/// The groups before the files, each in call order and without repetitions.
#[derive(Default)]
pub(crate) struct Platform {
    pub(crate) providers: Vec<Value>,
    pub(crate) environments: Vec<Value>,
    pub(crate) software: Vec<Value>,
    policies: Vec<Value>,
    interpreters: Vec<Value>,
}

impl Platform {
    pub(crate) fn of(subject: &Subject, options: &Options) -> Self {
        let image = options.image_name.as_ref();
        let mut platform = Platform::default();
        let mut seen = HashSet::new();
        let mut take = |group: &mut Vec<Value>, reference: String, made: &dyn Fn(&str) -> Value| {
            if seen.insert(reference.clone()) {
                group.push(made(&reference));
            }
        };
        for call in subject.calls() {
            let record = &call.record;
            take(
                &mut platform.providers,
                format!("provider:{}", record.provider),
                &|reference| provider(reference, &record.provider, &record.isolation),
            );
            if !record.environment.is_empty() {
                take(
                    &mut platform.environments,
                    format!("environment:{}", record.environment),
                    &|reference| environment(reference, &record.environment, image),
                );
            }
            if !record.software_identity.is_empty() {
                take(
                    &mut platform.software,
                    format!("software:{}", record.software_identity),
                    &|reference| software(reference, &record.software_identity, image),
                );
            }
            if !record.policy.is_empty() {
                take(
                    &mut platform.policies,
                    format!("policy:{}", record.policy),
                    &|reference| policy(reference, &record.policy),
                );
            }
            if let Some(language) = &call.language {
                take(
                    &mut platform.interpreters,
                    format!("interpreter:{language}"),
                    &|reference| interpreter(reference, language),
                );
            }
        }
        platform
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Value> {
        [
            &self.providers,
            &self.environments,
            &self.software,
            &self.policies,
            &self.interpreters,
        ]
        .into_iter()
        .flatten()
    }
}

/// The reference of a component.
pub(crate) fn reference(component: &Value) -> &str {
    component["bom-ref"].as_str().unwrap_or_default()
}

fn provider(reference: &str, name: &str, isolation: &str) -> Value {
    json!({
        "bom-ref": reference,
        "description": "The sandbox provider the daemon states ran the code.",
        "name": name,
        "properties": Properties::default()
            .with("role", "provider")
            .with("isolation", isolation)
            .value(),
        "type": "platform",
    })
}

fn environment(reference: &str, value: &str, image: Option<&ImageName>) -> Value {
    let mut properties = Properties::default()
        .with("role", "environment")
        .with("identity", value);
    match Identity::of(value) {
        Identity::Hashed {
            scheme: DOCKER_IMAGE,
            hex,
        } => {
            properties.push("imageName", stated(image));
            json!({
                "bom-ref": reference,
                "description": "The outer image the daemon selected, by image ID.",
                "hashes": hashes(hex),
                "name": image.map_or("image", ImageName::short),
                "properties": properties.value(),
                "purl": purl(hex, None, image),
                "type": "container",
                "version": format!("sha256:{hex}"),
            })
        }
        Identity::Hashed { scheme, hex } => json!({
            "bom-ref": reference,
            "description": "The environment the daemon stated.",
            "hashes": hashes(hex),
            "name": scheme,
            "properties": properties.value(),
            "type": "platform",
            "version": format!("sha256:{hex}"),
        }),
        Identity::Opaque => json!({
            "bom-ref": reference,
            "description": "The environment the daemon stated.",
            "name": "environment",
            "properties": properties.value(),
            "type": "platform",
        }),
    }
}

fn software(reference: &str, value: &str, image: Option<&ImageName>) -> Value {
    let mut properties = Properties::default()
        .with("role", "software")
        .with("identity", value);
    let Some(manifest) = Manifest::of(value) else {
        return json!({
            "bom-ref": reference,
            "description": "The software the daemon stated.",
            "name": "software",
            "properties": properties.value(),
            "type": "platform",
        });
    };
    properties.push("imageName", stated(image));
    properties.push("platform:os", manifest.os);
    properties.push("platform:arch", manifest.arch);
    if let Some(variant) = manifest.variant {
        properties.push("platform:variant", variant);
    }
    json!({
        "bom-ref": reference,
        "description": "The executable image manifest the daemon selected.",
        "hashes": hashes(manifest.hex),
        "name": image.map_or("image", ImageName::short),
        "properties": properties.value(),
        "purl": purl(manifest.hex, Some(manifest.arch), image),
        "type": "container",
        "version": format!("sha256:{}", manifest.hex),
    })
}

fn stated(image: Option<&ImageName>) -> &'static str {
    match image {
        Some(_) => "stated-by-bom-author",
        None => "not-stated",
    }
}

/// A package URL of an image; its qualifiers are sorted by name.
fn purl(hex: &str, arch: Option<&str>, image: Option<&ImageName>) -> String {
    let qualifiers: Vec<String> = [
        arch.map(|arch| format!("arch={arch}")),
        image.map(|image| format!("repository_url={}", image.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect();
    let name = image.map_or("image", ImageName::short);
    let mark = if qualifiers.is_empty() { "" } else { "?" };
    format!("pkg:oci/{name}@sha256:{hex}{mark}{}", qualifiers.join("&"))
}

fn policy(reference: &str, value: &str) -> Value {
    let properties = Properties::default()
        .with("role", "policy")
        .with("identity", value)
        .value();
    let description = "The policy the daemon stated.";
    match Identity::of(value) {
        Identity::Hashed { scheme, hex } => json!({
            "bom-ref": reference,
            "description": description,
            "hashes": hashes(hex),
            "name": scheme,
            "properties": properties,
            "type": "data",
            "version": format!("sha256:{hex}"),
        }),
        Identity::Opaque => json!({
            "bom-ref": reference,
            "description": description,
            "name": "policy",
            "properties": properties,
            "type": "data",
        }),
    }
}

fn interpreter(reference: &str, language: &str) -> Value {
    json!({
        "bom-ref": reference,
        "description": "The language the request named; the record states no interpreter version.",
        "name": format!("{language} interpreter"),
        "properties": Properties::default()
            .with("role", "interpreter")
            .with("interpreterVersion", "not-stated")
            .value(),
        "type": "platform",
    })
}

/// The reference of a call's `i`th input, counted from 1.
pub(crate) fn input_ref(call: u64, i: usize) -> String {
    format!("input:{call}:{i}")
}

/// The reference of a call's `i`th artifact, counted from 1.
pub(crate) fn artifact_ref(call: u64, i: usize) -> String {
    format!("artifact:{call}:{i}")
}

pub(crate) fn inputs(call: u64, facts: &CallFacts) -> impl Iterator<Item = Value> {
    facts.inputs.iter().enumerate().map(move |(i, input)| {
        let reference = input_ref(call, i.saturating_add(1));
        match input {
            Input::File {
                role,
                content,
                git_blob,
            } => {
                let mut file = file(
                    &reference,
                    role,
                    &content.path,
                    content.sha256,
                    content.bytes,
                );
                if let Some(blob) = git_blob {
                    file.insert("swhid".to_owned(), json!([format!("swh:1:cnt:{blob}")]));
                }
                Value::Object(file)
            }
            Input::Model { name, rows, params } => json!({
                "bom-ref": reference,
                "name": name,
                "properties": Properties::default()
                    .with("role", "model")
                    .with("model:rows", rows)
                    .with("model:paramsSha256", params)
                    .value(),
                "type": "data",
            }),
        }
    })
}

pub(crate) fn artifacts(call: u64, facts: &CallFacts) -> impl Iterator<Item = Value> {
    facts.artifacts.iter().enumerate().map(move |(i, content)| {
        let reference = artifact_ref(call, i.saturating_add(1));
        let path = &content.path;
        Value::Object(file(
            &reference,
            "artifact",
            path,
            content.sha256,
            content.bytes,
        ))
    })
}

fn file(
    reference: &str,
    role: &str,
    path: &str,
    sha256: Digest,
    bytes: usize,
) -> Map<String, Value> {
    let mut object = Map::new();
    put(&mut object, "bom-ref", reference);
    put(&mut object, "hashes", hashes(&sha256.to_hex()));
    put(&mut object, "name", path);
    let properties = Properties::default().with("role", role).with("size", bytes);
    put(&mut object, "properties", properties.value());
    put(&mut object, "type", "file");
    object
}

/// The name of a line's component.
pub(crate) fn line_name(number: u64, attach: Attach) -> String {
    match attach {
        Attach::Line => format!("bundle line {number}"),
        Attach::Envelope => format!("record envelope {number}"),
    }
}

/// A signed line with its attachment.
pub(crate) fn line(store: &dyn Store, at: &LineRef, options: &Options) -> Result<Value, BomError> {
    let bytes = verified(store, at)?;
    let (attached, role) = match options.attach {
        Attach::Line => (bytes, "signed-line"),
        Attach::Envelope => {
            let line = Line::decode(&bytes)?;
            let envelope = line
                .envelope
                .as_ref()
                .map(plimsoll_attestation::Envelope::to_json);
            (
                envelope.unwrap_or_default().into_bytes().into(),
                "signed-envelope",
            )
        }
    };
    let name = line_name(at.number, options.attach);
    let mut component = attachment(&name, &attached);
    put(&mut component, "bom-ref", format!("line:{}", at.number));
    put(
        &mut component,
        "description",
        "One line of the signed record file, without its newline.",
    );
    put(&mut component, "mime-type", "application/json");
    let properties = Properties::default()
        .with("role", role)
        .with("line", at.number)
        .with("size", attached.len());
    put(&mut component, "properties", properties.value());
    Ok(Value::Object(component))
}

/// A receipt's statement with its envelope.
pub(crate) fn statement(role: &str, name: &str, envelope: &[u8]) -> Value {
    let mut component = attachment(name, envelope);
    put(&mut component, "bom-ref", format!("statement:{role}"));
    put(
        &mut component,
        "description",
        "A signed in-toto statement, as its DSSE envelope.",
    );
    put(&mut component, "mime-type", "application/vnd.in-toto+dsse");
    let properties = Properties::default()
        .with("role", role)
        .with("size", envelope.len());
    put(&mut component, "properties", properties.value());
    Value::Object(component)
}

fn attachment(name: &str, bytes: &[u8]) -> Map<String, Value> {
    let mut object = Map::new();
    let mut attached = Map::new();
    put(&mut attached, "content", base64::encode(bytes));
    put(&mut attached, "contentType", "application/json");
    put(&mut attached, "encoding", "base64");
    let mut contents = Map::new();
    put(&mut contents, "attachment", attached);
    let mut data = Map::new();
    put(&mut data, "contents", contents);
    put(&mut data, "name", name);
    put(&mut data, "type", "other");
    put(&mut object, "data", vec![Value::Object(data)]);
    put(&mut object, "hashes", hashes(&Digest::of(bytes).to_hex()));
    put(&mut object, "name", name);
    put(&mut object, "type", "data");
    object
}

/// The key the evidence was verified under.
pub(crate) fn key(key: &PublicKey) -> Value {
    json!({
        "bom-ref": format!("key:{}", key.id()),
        "cryptoProperties": {
            "assetType": "related-crypto-material",
            "relatedCryptoMaterialProperties": {
                "format": "PEM",
                "id": key.id(),
                "size": 256,
                "type": "public-key",
                "value": key.to_pem(),
            },
        },
        "description": "The public key the records are signed with. Compare it with a copy from \
            elsewhere; a key inside the document it checks proves nothing.",
        "name": "signing key",
        "properties": Properties::default().with("role", "signing-key").value(),
        "type": "cryptographic-asset",
    })
}

/// Refuses a line that is too large to attach whole.
pub(crate) fn fits(subject: &Subject, options: &Options) -> Result<(), BomError> {
    let large = |line: &&LineRef| line.length > options.max_attach;
    match subject.lines().find(large) {
        Some(line) if options.attach == Attach::Line => Err(Refusal::new(
            Code::TooLarge,
            "the line is larger than may be attached",
        )
        .line(line.number)
        .expected(format!("at most {} bytes", options.max_attach))
        .found(format!("{} bytes", line.length))
        .into()),
        _ => Ok(()),
    }
}
