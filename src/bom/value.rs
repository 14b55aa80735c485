//! Small helpers for building values.

use plimsoll_record::time::utc;
use serde_json::{Map, Value, json};

use crate::fault::{BomError, Code, Refusal};

/// The end of the year 9999, in Unix milliseconds.
const LAST_MS: i64 = 253_402_300_799_999;

/// Named values in order, each name under `plimsoll:`.
#[derive(Default)]
pub(crate) struct Properties(Vec<Value>);

impl Properties {
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.push(name, value);
        self
    }

    pub(crate) fn push(&mut self, name: &str, value: impl ToString) {
        self.0.push(json!({
            "name": format!("plimsoll:{name}"),
            "value": value.to_string(),
        }));
    }

    /// Adds a value that says something.
    pub(crate) fn push_some(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.push(name, value);
        }
    }

    pub(crate) fn value(self) -> Value {
        Value::Array(self.0)
    }
}

/// Adds a member, unless its value is an empty array.
pub(crate) fn put(object: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let value = value.into();
    if !value.as_array().is_some_and(Vec::is_empty) {
        object.insert(name.to_owned(), value);
    }
}

/// A SHA-256 hash of a component.
pub(crate) fn hashes(hex: &str) -> Value {
    json!([{ "alg": "SHA-256", "content": hex }])
}

/// A time of a record in UTC with milliseconds.
///
/// # Errors
/// `time_range` outside of the years 1970 to 9999.
pub(crate) fn time(unix_ms: i64) -> Result<String, BomError> {
    if (0..=LAST_MS).contains(&unix_ms) {
        return Ok(utc(unix_ms));
    }
    Err(Refusal::new(
        Code::TimeRange,
        "a time is outside of the years 1970 to 9999",
    )
    .found(unix_ms)
    .into())
}
