//! Reading the calls of a session.

use plimsoll_client::OpenSession;
use plimsoll_wire::{
    Refusal,
    json::{self, JsonError},
    proto::RunRequest,
    validate,
};

/// Calls of one session.
pub const MAX_CALLS: usize = 1000;
/// Bytes of one call's JSON.
pub const MAX_CALL_BYTES: usize = 16 << 20;

/// Why a line is no call of a session. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    /// No line at all.
    #[error("there is no call")]
    Empty,
    /// A line is not the JSON of a request.
    #[error("{error}")]
    Json {
        /// 1-based.
        line: usize,
        /// Why.
        error: JsonError,
    },
    /// A line is over [`MAX_CALL_BYTES`].
    #[error("a call is over {MAX_CALL_BYTES} bytes")]
    Long {
        /// 1-based.
        line: usize,
    },
    /// More than [`MAX_CALLS`].
    #[error("there are more than {MAX_CALLS} calls")]
    Many,
    /// A line breaks a rule of the wire.
    #[error("{refusal}")]
    Refused {
        /// 1-based.
        line: usize,
        /// Why, and the member.
        refusal: Refusal,
    },
}

/// Reads calls, one `RunRequest` in proto3 JSON a line; blank lines are
/// refused. All are checked, also against what the session is opened with,
/// before anything is sent.
///
/// # Errors
/// [`CallsError`], for the first line at fault.
pub fn parse(text: &[u8], open: &OpenSession) -> Result<Vec<RunRequest>, CallsError> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Err(CallsError::Empty);
    }
    let mut calls = Vec::new();
    for (i, bytes) in text.split(|b| *b == b'\n').enumerate() {
        let line = i + 1;
        if line > MAX_CALLS {
            return Err(CallsError::Many);
        }
        if bytes.len() > MAX_CALL_BYTES {
            return Err(CallsError::Long { line });
        }
        let call: RunRequest =
            json::read_known(bytes).map_err(|error| CallsError::Json { line, error })?;
        validate::protocol(call.protocol)
            .and_then(|()| open.merge(&call))
            .map_err(|refusal| CallsError::Refused { line, refusal })?;
        calls.push(call);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Vec<RunRequest>, CallsError> {
        super::parse(text, &OpenSession::default())
    }

    const GOOD: &str = r#"{"protocol":3,"javascript":{"code":"1"}}"#;
    const CELL: &str = r#"{"protocol":3,"cell":{"language":"python","code":"1"}}"#;

    #[test]
    fn one_call_a_line() {
        let calls = parse(format!("{GOOD}\n{CELL}\n").as_bytes()).unwrap();
        assert_eq!(calls.len(), 2);
        assert_eq!(parse(GOOD.as_bytes()).unwrap().len(), 1);
        let many = format!("{GOOD}\n").repeat(MAX_CALLS);
        assert_eq!(parse(many.as_bytes()).unwrap().len(), MAX_CALLS);
        assert!(matches!(
            parse(format!("{many}{GOOD}").as_bytes()),
            Err(CallsError::Many)
        ));
        assert!(matches!(parse(b""), Err(CallsError::Empty)));
        assert!(matches!(parse(b"\n"), Err(CallsError::Empty)));
    }

    #[test]
    fn the_line_at_fault_is_named() {
        for (bad, json) in [
            ("", true),
            ("{}", false),
            (r#"{"protocol":3}"#, false),
            (r#"{"javascript":{"code":"1"}}"#, false),
            (r#"{"protocol":3,"javascript":{"code":"1"},"x":1}"#, true),
            (r#"{"protocol":3,"module":{"model":"m"}}"#, false),
            (
                r#"{"protocol":3,"cell":{"language":"ruby","code":"1"}}"#,
                false,
            ),
            (
                r#"{"protocol":3,"traceId":"a/b","cell":{"language":"python","code":"1"}}"#,
                false,
            ),
        ] {
            let error = parse(format!("{GOOD}\n{bad}\n{GOOD}").as_bytes()).unwrap_err();
            match error {
                CallsError::Json { line, .. } => assert!(json && line == 2, "{bad}"),
                CallsError::Refused { line, .. } => assert!(!json && line == 2, "{bad}"),
                other => panic!("{bad}: {other}"),
            }
        }
    }

    #[test]
    fn the_rule_given_at_open_counts() {
        let open = OpenSession {
            rule: crate::software::parse("exact:image:1").unwrap(),
            ..Default::default()
        };
        let call = |image: &str| {
            format!(
                r#"{{"protocol":3,"softwareRule":{{"mode":"exact","identities":["{image}"]}},"javascript":{{"code":"1"}}}}"#
            )
        };
        assert!(super::parse(call("image:1").as_bytes(), &open).is_ok());
        let other = super::parse(call("image:2").as_bytes(), &open);
        assert!(matches!(other, Err(CallsError::Refused { line: 1, .. })));
    }
}
