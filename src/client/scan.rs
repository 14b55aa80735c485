//! A look at the bytes of an answer that the decoder forgets.

/// Counts how often a result member stands in an encoded `RunResponse`. The
/// decoder keeps the last of several, so two readers could see two results;
/// a well-formed answer has exactly one. `None` for bytes that are no message.
pub(crate) fn results(mut message: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !message.is_empty() {
        let (number, _) = field(&mut message)?;
        count += usize::from((10..=13).contains(&number));
    }
    Some(count)
}

/// As [`results`], for the run inside an encoded `SessionRunResponse`.
pub(crate) fn session_results(mut message: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !message.is_empty() {
        if let (1, Some(run)) = field(&mut message)? {
            count += results(run)?;
        }
    }
    Some(count)
}

/// Reads one field: its number, and its bytes when it has a length.
fn field<'a>(message: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let tag = varint(message)?;
    let content = match tag & 7 {
        0 => {
            varint(message)?;
            None
        }
        1 => {
            take(message, 8)?;
            None
        }
        2 => {
            let length = usize::try_from(varint(message)?).ok()?;
            Some(take(message, length)?)
        }
        5 => {
            take(message, 4)?;
            None
        }
        // Groups are not of this schema; the decoder refuses or skips them.
        _ => return None,
    };
    Some((tag >> 3, content))
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(message, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::proto::{
        JavaScriptResult, Message, MessageField, ModuleResult, RunResponse, SessionRunResponse,
        run_response::Result as RunResult,
    };

    use super::*;

    #[test]
    fn counts_results() {
        let one = RunResponse {
            sandbox: "wasm".into(),
            duration_ms: -1,
            result: Some(RunResult::Javascript(Box::new(JavaScriptResult {
                stdout: vec![b'x'; 300],
                ..Default::default()
            }))),
            ..Default::default()
        };
        let other = RunResponse {
            result: Some(RunResult::Module(Box::<ModuleResult>::default())),
            ..Default::default()
        };
        let bytes = one.encode_to_vec();
        assert_eq!(results(&bytes), Some(1));
        assert_eq!(
            results(&[bytes.clone(), other.encode_to_vec()].concat()),
            Some(2)
        );
        assert_eq!(results(&[]), Some(0));
        assert_eq!(results(&bytes[..bytes.len() - 1]), None);
        let session = |run: &RunResponse| {
            SessionRunResponse {
                run: MessageField::some(run.clone()),
                ..Default::default()
            }
            .encode_to_vec()
        };
        assert_eq!(session_results(&session(&one)), Some(1));
        assert_eq!(
            session_results(&[session(&one), session(&other)].concat()),
            Some(2)
        );
    }
}
