//! Vectors and helpers shared by the tests.
#![allow(dead_code, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod anchors;
pub mod mutate;

use std::{fs, path::PathBuf};

use plimsoll_attestation::{
    Envelope, Fault, PublicKey, SigningKey, base64,
    bundle::{BundleWriter, Call, Entry, Report, SeenLine, Verification, Visitor, verify},
    statement::{Link, SessionClose, link},
};

use plimsoll_record::{
    Chain, Digest,
    make::{self, Facts},
    request_digest,
};
use plimsoll_wire::{
    Rule,
    proto::{
        CellResult, JavaScriptResult, JavaScriptRun, MessageField, RunRequest, RunResponse,
        run_request, run_response,
    },
};

pub fn vector_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/vectors")
        .join(name)
}

pub fn vector(name: &str) -> Vec<u8> {
    fs::read(vector_path(name)).unwrap()
}

pub fn json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&vector(name)).unwrap()
}

pub fn public(name: &str) -> PublicKey {
    PublicKey::from_pem(&vector(name)).unwrap()
}

pub fn signing() -> SigningKey {
    SigningKey::from_pem(&vector("own-mixed.key")).unwrap()
}

/// Another key than the vectors', the same on every run.
pub fn stranger() -> SigningKey {
    let der = [
        b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".as_slice(),
        &[7; 32],
    ]
    .concat();
    let text = plimsoll_attestation::base64::encode(&der);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    SigningKey::from_pem(pem.as_bytes()).unwrap()
}

pub fn check(bundle: &[u8], key: &PublicKey) -> Result<Report, Fault> {
    check_with(bundle, key, &mut ())
}

pub fn check_with(
    bundle: &[u8],
    key: &PublicKey,
    visitor: &mut impl Visitor,
) -> Result<Report, Fault> {
    verify(bundle, std::slice::from_ref(key), visitor)
}

/// The lines of a bundle without their newlines.
pub fn lines(bundle: &[u8]) -> Vec<&[u8]> {
    bundle
        .strip_suffix(b"\n")
        .unwrap()
        .split(|b| *b == b'\n')
        .collect()
}

/// Numbers that look random and are the same on every run (xorshift64*).
pub struct Seeded(pub u64);

impl Seeded {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// What a verification found before each line of a good bundle, and the line's
/// first byte. A changed copy needs checking only from its first changed line:
/// the lines before it are the same.
pub struct Known {
    pub bundle: Vec<u8>,
    before: Vec<Report>,
}

impl Known {
    pub fn new(bundle: Vec<u8>, key: &PublicKey) -> Self {
        let keys = std::slice::from_ref(key);
        let mut verification = Verification::new(keys);
        let mut before = vec![Report::default()];
        for line in lines(&bundle) {
            verification.push(line, &mut ()).unwrap();
            before.push(verification.report().clone());
        }
        verification.finish().unwrap();
        Known { bundle, before }
    }

    pub fn verify_changed(&self, changed: &[u8], key: &PublicKey) -> Result<Report, Fault> {
        let same = self
            .bundle
            .iter()
            .zip(changed)
            .take_while(|(a, b)| a == b)
            .count() as u64;
        let start = self
            .before
            .iter()
            .rev()
            .find(|report| report.bytes <= same)
            .unwrap();
        let rest = &changed[start.bytes as usize..];
        Verification::resume(std::slice::from_ref(key), start.clone()).run(rest, &mut ())
    }
}

/// A checked single run, as a daemon would answer it.
pub fn single_run(n: u32) -> Entry {
    sized_run(n, 0)
}

/// A single run with at least so many bytes of output.
pub fn sized_run(n: u32, output: usize) -> Entry {
    let request = RunRequest {
        protocol: 3,
        minimum_isolation: "kernel".to_owned(),
        trace_id: format!("t-{n}"),
        payload: Some(run_request::Payload::from(JavaScriptRun {
            code: format!("console.log({n})"),
            ..Default::default()
        })),
        ..Default::default()
    };
    let response = answered(&request, None, &format!("{n}\n{}", "x".repeat(output)));
    Entry::answered(&request, &response).unwrap()
}

/// The answer to a cell or a snippet, with its record.
pub fn answered(request: &RunRequest, chain: Option<&Chain>, stdout: &str) -> RunResponse {
    let stdout = stdout.as_bytes().to_vec();
    let result = match request.payload {
        Some(run_request::Payload::Cell(_)) => run_response::Result::from(CellResult {
            stdout,
            ..Default::default()
        }),
        _ => run_response::Result::from(JavaScriptResult {
            stdout,
            ..Default::default()
        }),
    };
    let mut response = RunResponse {
        sandbox: "test".to_owned(),
        isolation: "kernel".to_owned(),
        result: Some(result),
        ..Default::default()
    };
    let facts = Facts {
        request: request_digest(request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 1_793_000_000_000,
        ended_unix_ms: 1_793_000_000_100,
        chain,
    };
    let record = make::answered(&facts, &response);
    response.record = MessageField::some(record);
    response
}

/// Everything a visitor sees, in order.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Trace(pub Vec<String>);

impl Visitor for Trace {
    fn call(&mut self, call: &Call<'_>) {
        let bytes = Digest::of(call.bytes);
        self.0.push(format!(
            "call {} at {} {bytes} {:?} {} {}",
            call.line,
            call.offset,
            call.digests,
            call.record.record_sha256,
            call.response.is_some()
        ));
    }

    fn close(&mut self, line: u64, close: &SessionClose) {
        self.0.push(format!("close {line} {close:?}"));
    }

    fn line(&mut self, line: &SeenLine) {
        self.0.push(format!("{line:?}"));
    }
}

/// A bundle of so many calls with a checkpoint after each ten, each with so
/// much output.
pub fn long_bundle(key: &SigningKey, calls: u32, output: usize) -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new(), key);
    for n in 0..calls {
        writer.entry(&sized_run(n, output).sign(key)).unwrap();
        if n % 10 == 9 || n + 1 == calls {
            writer.checkpoint().unwrap();
        }
    }
    writer.into_inner()
}

/// What a holder of the test key can write without this crate's checks: any
/// statement under any envelope, in a bundle of one entry and a checkpoint.
pub struct Forger {
    key: ed25519_dalek::SigningKey,
    id: String,
}

impl Forger {
    pub fn new() -> Self {
        let seed = hex::decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let key = ed25519_dalek::SigningKey::from_bytes(&seed.unwrap().try_into().unwrap());
        let id = signing().public().id().to_owned();
        Forger { key, id }
    }

    pub fn sig(&self, payload_type: &str, payload: &[u8]) -> String {
        use ed25519_dalek::Signer as _;
        let pae = Envelope::pae(payload_type, payload);
        base64::encode(&self.key.sign(&pae).to_bytes())
    }

    pub fn envelope(&self, payload: &[u8]) -> String {
        let sig = self.sig("application/vnd.in-toto+json", payload);
        format!(
            r#"{{"payloadType":"application/vnd.in-toto+json","payload":"{}","signatures":[{{"keyid":"{}","sig":"{sig}"}}]}}"#,
            base64::encode(payload),
            self.id
        )
    }

    /// A bundle of one entry and a checkpoint. `content` is line 1 without its
    /// link and braces.
    pub fn bundle(&self, content: &str) -> Vec<u8> {
        let digest = Digest::of(format!("{{{content}}}").as_bytes()).to_hex();
        let link = Link {
            index: 1,
            entry_sha256: digest,
            ..Link::default()
        };
        let first = format!(
            "{{{content},\"link\":{}}}",
            self.envelope(&link::encode(&link))
        );
        let link = Link {
            index: 2,
            previous_sha256: Digest::of(first.as_bytes()).to_hex(),
            checkpoint: true,
            lines: 1,
            ..Link::default()
        };
        let second = format!("{{\"link\":{}}}", self.envelope(&link::encode(&link)));
        format!("{first}\n{second}\n").into_bytes()
    }

    /// A bundle of one call.
    pub fn call(&self, request: &[u8], response: &[u8], payload: &[u8]) -> Vec<u8> {
        let member = |name: &str, bytes: &[u8]| match bytes {
            [] => String::new(),
            bytes => format!("\"{name}\":\"{}\",", base64::encode(bytes)),
        };
        self.bundle(&format!(
            "{}{}\"envelope\":{}",
            member("request", request),
            member("response", response),
            self.envelope(payload)
        ))
    }
}
