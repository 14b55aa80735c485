//! Validation against the official CycloneDX schemas, which are in the binary.
//!
//! A BOM is validated in parts: the tree without the items of its long lists,
//! then those items in windows, each inside the smallest document that has the
//! list. Nothing in the schemas looks across items of these lists but
//! `uniqueItems`, which is checked here over all of a list. So memory is that of
//! one window, whatever the length of the BOM.

use std::{collections::HashSet, sync::OnceLock};

use jsonschema::{Draft, Registry, Validator};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    document::{Place, plain},
    print::{Form, Printer},
    profile::SpecVersion,
};

const V1_6: &str = include_str!("schema/bom-1.6.schema.json");
const V1_7: &str = include_str!("schema/bom-1.7.schema.json");

/// What the schemas refer to, under the names they use.
const REFERENCED: [(&str, &str); 3] = [
    (
        "http://cyclonedx.org/schema/spdx.schema.json",
        include_str!("schema/spdx.schema.json"),
    ),
    (
        "http://cyclonedx.org/schema/jsf-0.82.schema.json",
        include_str!("schema/jsf-0.82.schema.json"),
    ),
    (
        "http://cyclonedx.org/schema/cryptography-defs.schema.json",
        include_str!("schema/cryptography-defs.schema.json"),
    ),
];

/// Most items of a window.
const WINDOW: usize = 64;

/// A window of this many bytes takes no further item: items with attachments are
/// as large as the lines that are attached.
const WINDOW_BYTES: u64 = 1 << 20;

/// Where a document does not meet its schema.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Invalid {
    /// JSON pointer of the value.
    pub(crate) pointer: String,
    /// The keyword that is not met.
    pub(crate) keyword: String,
    /// The value, in compact form.
    pub(crate) value: String,
}

/// Why no verdict was reached.
#[derive(Debug)]
pub(crate) enum Broken {
    Invalid(Invalid),
    /// The embedded schemas do not compile: a bug.
    Schema(String),
}

/// The validator of a version, compiled once in a process.
fn validator(version: SpecVersion) -> Result<&'static Validator, Broken> {
    static COMPILED: [OnceLock<Result<Validator, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [older, newer] = &COMPILED;
    let (place, text) = match version {
        SpecVersion::V1_6 => (older, V1_6),
        SpecVersion::V1_7 => (newer, V1_7),
    };
    place
        .get_or_init(|| compiled(text))
        .as_ref()
        .map_err(|error| Broken::Schema(error.clone()))
}

fn compiled(text: &str) -> Result<Validator, String> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).map_err(|e| e.to_string());
    let mut registry = Registry::new();
    for (name, text) in REFERENCED {
        let resource = Draft::Draft7.create_resource(parse(text)?);
        registry = registry.add(name, resource).map_err(|e| e.to_string())?;
    }
    let registry = registry.prepare().map_err(|e| e.to_string())?;
    jsonschema::options()
        .with_draft(Draft::Draft7)
        .with_registry(&registry)
        .should_validate_formats(true)
        .offline()
        .build(&parse(text)?)
        .map_err(|e| e.to_string())
}

/// Validates one document part by part.
pub(crate) struct Parts {
    version: SpecVersion,
    validator: &'static Validator,
}

impl Parts {
    pub(crate) fn new(version: SpecVersion) -> Result<Self, Broken> {
        validator(version).map(|validator| Parts { version, validator })
    }

    /// The tree, whose long lists are empty or absent.
    pub(crate) fn tree(&self, tree: &Value) -> Result<(), Broken> {
        self.valid(tree, None)
    }

    /// Takes the items of a long list one by one.
    pub(crate) fn list(&self, place: Place) -> List<'_> {
        List {
            parts: self,
            place,
            window: Vec::new(),
            bytes: 0,
            taken: 0,
            seen: HashSet::new(),
        }
    }

    fn valid(&self, document: &Value, window: Option<(Place, usize)>) -> Result<(), Broken> {
        let Err(error) = self.validator.validate(document) else {
            return Ok(());
        };
        let mut pointer = error.instance_path().to_string();
        if let Some((place, first)) = window {
            pointer = moved(&pointer, place, first);
        }
        Err(Broken::Invalid(Invalid {
            pointer,
            keyword: error.kind().keyword().to_owned(),
            value: error.instance().to_string(),
        }))
    }

    /// The smallest document that has this list.
    fn around(&self, place: Place, items: Vec<Value>) -> Value {
        let mut document = Map::new();
        document.insert("bomFormat".to_owned(), json!("CycloneDX"));
        document.insert("specVersion".to_owned(), json!(self.version.word()));
        let (name, value) = match place {
            Place::Components => ("components", Value::Array(items)),
            Place::Evidence => ("declarations", json!({ "evidence": items })),
            Place::Tasks => (
                "formulation",
                json!([{ "workflows": [{
                    "bom-ref": "workflow", "uid": "uid", "taskTypes": ["other"], "tasks": items,
                }] }]),
            ),
        };
        document.insert(name.to_owned(), value);
        Value::Object(document)
    }
}

/// A pointer of a window's document as one of the whole document.
fn moved(pointer: &str, place: Place, first: usize) -> String {
    let parts = pointer
        .strip_prefix(place.pointer())
        .and_then(|rest| rest.strip_prefix('/'))
        .map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    match parts.and_then(|(index, rest)| Some((index.parse::<usize>().ok()?, rest))) {
        Some((index, rest)) => {
            let slash = if rest.is_empty() { "" } else { "/" };
            format!(
                "{}/{}{slash}{rest}",
                place.pointer(),
                index.saturating_add(first)
            )
        }
        None => pointer.to_owned(),
    }
}

/// The items of one long list.
pub(crate) struct List<'p> {
    parts: &'p Parts,
    place: Place,
    window: Vec<Value>,
    /// Length of the items of the window.
    bytes: u64,
    taken: usize,
    seen: HashSet<[u8; 32]>,
}

impl List<'_> {
    pub(crate) fn take(&mut self, item: Value) -> Result<(), Broken> {
        let mut hasher = Sha256::new();
        let mut printer = Printer::new(Hash(&mut hasher), Form::Compact);
        // Hashing does not fail.
        let _ = plain(&mut printer, &item);
        self.bytes = self
            .bytes
            .saturating_add(printer.finish().unwrap_or_default());
        let unique = self.seen.insert(hasher.finalize().into());
        let index = self.taken.saturating_add(self.window.len());
        // The tasks and components lists are sets; declared evidence is not.
        if !unique && self.place != Place::Evidence {
            return Err(Broken::Invalid(Invalid {
                pointer: format!("{}/{index}", self.place.pointer()),
                keyword: "uniqueItems".to_owned(),
                value: item.to_string(),
            }));
        }
        self.window.push(item);
        if self.window.len() == WINDOW || self.bytes >= WINDOW_BYTES {
            return self.finish();
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), Broken> {
        let items = std::mem::take(&mut self.window);
        self.bytes = 0;
        let (first, count) = (self.taken, items.len());
        self.taken = first.saturating_add(count);
        if count == 0 {
            return Ok(());
        }
        let document = self.parts.around(self.place, items);
        self.parts.valid(&document, Some((self.place, first)))
    }
}

struct Hash<'h>(&'h mut Sha256);

impl std::io::Write for Hash<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
