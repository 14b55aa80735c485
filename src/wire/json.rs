//! proto3 JSON, strict when reading.

use serde::{Serialize, de::DeserializeOwned};
use serde_ignored::Path;

use crate::{
    objects::Objects,
    strict_json::{self, StrictJsonError},
};

/// Why a JSON text is not the message asked for.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text breaks a rule of the strict scan.
    #[error("{0}")]
    Text(#[from] StrictJsonError),
    /// The text is strict JSON and does not decode to the message.
    #[error("{message}")]
    Message {
        /// What is wrong, in words of JSON.
        message: String,
        /// The member at fault, as a path from the top of the text; empty from
        /// [`read`], which does not track it.
        path: String,
        /// 1-based line of the text.
        line: usize,
        /// 1-based column of the line, in bytes.
        column: usize,
    },
    /// The message has no such member; only [`read_known`] says so.
    #[error("unknown member {path}")]
    Unknown {
        /// The member's path from the top of the text.
        path: String,
    },
}

/// Reads a message from proto3 JSON: either spelling of a name, `null` as
/// absent, unknown members ignored as long as they are strict JSON.
///
/// # Errors
/// [`JsonError`] with the place of the first fault.
pub fn read<M: DeserializeOwned>(text: &[u8]) -> Result<M, JsonError> {
    strict_json::check(text)?;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    M::deserialize(Objects(&mut deserializer)).map_err(|error| decode_error(&error, String::new()))
}

/// Like [`read`], for text a person wrote: an unknown member is refused too,
/// since a misspelt one would silently change what is asked.
///
/// # Errors
/// As [`read`], and [`JsonError::Unknown`].
pub fn read_known<M: DeserializeOwned>(text: &[u8]) -> Result<M, JsonError> {
    strict_json::check(text)?;
    let mut unknown = None;
    let mut track = serde_path_to_error::Track::new();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let objects = Objects(&mut deserializer);
    let tracked = serde_path_to_error::Deserializer::new(objects, &mut track);
    let message = serde_ignored::deserialize(tracked, |path| {
        unknown.get_or_insert_with(|| place(&path));
    })
    .map_err(|error| {
        let path = track.path().to_string();
        decode_error(&error, if path == "." { String::new() } else { path })
    })?;
    match unknown {
        Some(path) => Err(JsonError::Unknown { path }),
        None => Ok(message),
    }
}

/// A member's path in the form that refusals name members in: `project.files[0].mode`.
fn place(path: &Path<'_>) -> String {
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", place(parent)),
        Path::Map { parent, key } => match place(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => place(parent),
    }
}

/// Writes a message as proto3 JSON: lowerCamelCase names, zero values left
/// out, 64-bit integers and special doubles as strings, bytes as base64.
///
/// # Errors
/// None for the messages of this schema; the decoder's error type is kept so
/// that no caller has to assume so.
pub fn write<M: Serialize>(message: &M) -> Result<String, serde_json::Error> {
    serde_json::to_string(message)
}

/// Whether a double is what proto3 leaves out: zero without a sign.
// By reference, since that is how serde calls it.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_default_double(value: &f64) -> bool {
    value.to_bits() == 0
}

fn decode_error(error: &serde_json::Error, path: String) -> JsonError {
    let text = error.to_string();
    let message = match text.rfind(" at line ") {
        Some(end) => plain(&text[..end]),
        None => plain(&text),
    };
    JsonError::Message {
        message,
        path,
        line: error.line(),
        column: error.column(),
    }
}

/// The decoder's words without the names of its types.
fn plain(text: &str) -> String {
    let Some((found, expected)) = text.split_once(", expected ") else {
        return text.to_owned();
    };
    let holds = |words: &[&str]| words.iter().any(|word| expected.contains(word));
    let expected = if holds(&["u32", "i32", "u64", "i64", "f64", "number", "integer"]) {
        "a number in range"
    } else if holds(&["struct ", "map", "message"]) {
        "an object"
    } else if holds(&["sequence", "array"]) {
        "a list"
    } else if holds(&["string"]) {
        "a string"
    } else {
        expected
    };
    let found = found
        .trim_start_matches("invalid type: ")
        .trim_start_matches("invalid value: ");
    format!("{expected} belongs here, found {found}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Message, ModuleRow, RunRequest, RunResponse, run_request::Payload};

    #[test]
    fn four_spellings_are_one_message() {
        let texts = [
            r#"{"protocol":3,"minimumIsolation":"kernel","timeoutMs":1500,"javascript":{"code":"1"}}"#,
            r#"{"protocol":"3","minimum_isolation":"kernel","timeout_ms":"1500","javascript":{"code":"\u0031","grantProfile":null}}"#,
            r#"{"timeoutMs":1.5e3,"javascript":{"grant_profile":"","code":"1"},"protocol":3.0,"minimumIsolation":"kernel"}"#,
            r#"{"protocol":3,"minimumIsolation":"kernel","timeoutMs":1500,"javascript":{"code":"1"},"someFutureField":[{"x":1}]}"#,
        ];
        let first: RunRequest = read(texts[0].as_bytes()).unwrap();
        for text in texts {
            let message: RunRequest = read(text.as_bytes()).unwrap();
            assert_eq!(message.encode_to_vec(), first.encode_to_vec(), "{text}");
        }
        assert!(matches!(
            read_known::<RunRequest>(texts[3].as_bytes()),
            Err(JsonError::Unknown { path }) if path == "someFutureField"
        ));
        let nested = br#"{"protocol":3,"javascript":{"cod":"1"}}"#;
        assert!(matches!(
            read_known::<RunRequest>(nested),
            Err(JsonError::Unknown { path }) if path == "javascript.cod"
        ));
        let listed = br#"{"project":{"files":[{"path":"a"},{"mode":1}]}}"#;
        assert!(matches!(
            read_known::<RunRequest>(listed),
            Err(JsonError::Unknown { path }) if path == "project.files[1].mode"
        ));
        assert!(read_known::<RunRequest>(texts[0].as_bytes()).is_ok());
    }

    #[test]
    fn a_wrong_type_is_named_by_its_member() {
        for (text, member, wanted) in [
            (
                r#"{"protocol":"x"}"#,
                "protocol",
                "a number in range belongs here",
            ),
            (
                r#"{"javascript":{"code":5}}"#,
                "javascript.code",
                "a string belongs here",
            ),
            (
                r#"{"javascript":"x"}"#,
                "javascript",
                "an object belongs here",
            ),
            (
                r#"{"project":{"steps":{}}}"#,
                "project.steps",
                "a list belongs here",
            ),
        ] {
            match read_known::<RunRequest>(text.as_bytes()) {
                Err(JsonError::Message { message, path, .. }) => {
                    assert_eq!(path, member, "{text}");
                    assert!(message.starts_with(wanted), "{text}: {message}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn refused_texts() {
        for text in [
            r#"{"protocol":3,"javascript":{"code":"1"},"module":{"model":"m"}}"#,
            r#"{"protocol":3,"protocol":3}"#,
            r#"{"protocol":4294967296}"#,
            r#"{"protocol":true}"#,
            r#"{"protocol":1.5}"#,
            r#"{"protocol":""}"#,
            r#"{"protocol":" 3"}"#,
            r#"{"javascript":{"code":1}}"#,
            r#"{"module":{"rows":[null]}}"#,
            r#"{"module":{"rows":[[[1]]]}}"#,
            r#"{"javascript":[]}"#,
            r#"{"javascript":["1"]}"#,
            r#"{"project":{"steps":["a"],"files":[["a","b"]]}}"#,
            r#"{"softwareRule":["exact",["a"]],"javascript":{"code":"1"}}"#,
            r#"{"module":{"endTime":1e400}}"#,
            r#"{"module":{"endTime":"1e400"}}"#,
            r#"{"module":{"endTime":"inf"}}"#,
        ] {
            assert!(read::<RunRequest>(text.as_bytes()).is_err(), "{text}");
            assert!(read_known::<RunRequest>(text.as_bytes()).is_err(), "{text}");
        }
        let two = br#"{"javascript":null,"module":{"model":"m"}}"#;
        assert!(read::<RunRequest>(two).is_ok());
    }

    #[test]
    fn doubles_keep_their_bits() {
        let text = br#"{"module":{"rows":[{"values":[-0,-0.0,"-0","NaN","Infinity",1.0715660391465826e-75]}]}}"#;
        let request: RunRequest = read(text).unwrap();
        let Some(Payload::Module(module)) = &request.payload else {
            panic!("not a module")
        };
        let bits: Vec<u64> = module.rows[0].values.iter().map(|v| v.to_bits()).collect();
        let negative_zero = 1 << 63;
        assert_eq!(
            bits,
            [
                negative_zero,
                negative_zero,
                negative_zero,
                0x7ff8_0000_0000_0000,
                f64::INFINITY.to_bits(),
                1.071_566_039_146_582_6e-75_f64.to_bits(),
            ]
        );
    }

    #[test]
    fn empty_oneof_member_is_written() {
        let response: RunResponse = read(br#"{"javascript":{}}"#).unwrap();
        assert_eq!(write(&response).unwrap(), r#"{"javascript":{}}"#);
        let row = ModuleRow {
            values: vec![-0.0, f64::NAN],
        };
        assert_eq!(write(&row).unwrap(), r#"{"values":[-0.0,"NaN"]}"#);
    }

    #[test]
    fn a_single_negative_zero_is_written() {
        let text = br#"{"module":{"endTime":-0,"step":0}}"#;
        let request: RunRequest = read(text).unwrap();
        let written = write(&request).unwrap();
        assert_eq!(written, r#"{"module":{"endTime":-0.0}}"#);
        let again: RunRequest = read(written.as_bytes()).unwrap();
        assert_eq!(again.encode_to_vec(), request.encode_to_vec());
    }

    proptest::proptest! {
        #[test]
        fn random_doubles_survive_json(values in proptest::collection::vec(proptest::num::f64::ANY, 1..64)) {
            let row = ModuleRow { values, };
            let back: ModuleRow = read(write(&row).unwrap().as_bytes()).unwrap();
            let seventeen = format!("{{\"values\":[{}]}}", row.values.iter()
                .map(|v| if v.is_finite() { format!("{v:.17e}") } else { "0".into() })
                .collect::<Vec<_>>().join(","));
            let again: ModuleRow = read(seventeen.as_bytes()).unwrap();
            for ((a, b), c) in row.values.iter().zip(&back.values).zip(&again.values) {
                proptest::prop_assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
                proptest::prop_assert!(a.to_bits() == c.to_bits() || !a.is_finite());
            }
        }
    }
}
