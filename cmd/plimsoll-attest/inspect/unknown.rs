//! Fields of stored messages that this version does not know.
//!
//! No digest covers them and decoding drops them, so nothing else in this
//! program would ever mention what stands there.

use std::collections::BTreeSet;

/// Most fields named; a hostile message can hold millions.
const MOST_NAMED: usize = 16;

/// A message's fields: number, name, and the message inside.
pub struct Fields(&'static [(u32, &'static str, Option<&'static Fields>)]);

pub static REQUEST: Fields = Fields(&[
    (1, "protocol", None),
    (2, "minimum_isolation", None),
    (3, "trace_id", None),
    (4, "timeout_ms", None),
    (5, "software_rule", Some(&SOFTWARE_RULE)),
    (10, "javascript", Some(&JAVASCRIPT_RUN)),
    (11, "project", Some(&PROJECT_RUN)),
    (12, "module", Some(&MODULE_RUN)),
    (13, "cell", Some(&CELL_RUN)),
]);

pub static RESPONSE: Fields = Fields(&[
    (1, "sandbox", None),
    (2, "isolation", None),
    (3, "duration_ms", None),
    (4, "record", Some(&RECORD)),
    (5, "software_identity", None),
    (6, "environment", None),
    (10, "javascript", Some(&JAVASCRIPT_RESULT)),
    (11, "project", Some(&PROJECT_RESULT)),
    (12, "module", Some(&MODULE_RESULT)),
    (13, "cell", Some(&CELL_RESULT)),
]);

static SOFTWARE_RULE: Fields = Fields(&[(1, "mode", None), (2, "identities", None)]);

static JAVASCRIPT_RUN: Fields = Fields(&[(1, "code", None), (2, "grant_profile", None)]);

static PROJECT_FILE: Fields = Fields(&[(1, "path", None), (2, "content", None)]);

static PROJECT_RUN: Fields = Fields(&[
    (1, "files", Some(&PROJECT_FILE)),
    (2, "steps", None),
    (4, "artifacts", None),
    (5, "grant_profile", None),
]);

static MODULE_ROW: Fields = Fields(&[(1, "values", None)]);

static MODULE_RUN: Fields = Fields(&[
    (1, "model", None),
    (2, "rows", Some(&MODULE_ROW)),
    (3, "end_time", None),
    (4, "step", None),
]);

static CELL_RUN: Fields = Fields(&[
    (1, "language", None),
    (2, "code", None),
    (3, "files", Some(&PROJECT_FILE)),
]);

static RECORD: Fields = Fields(&[
    (1, "version", None),
    (2, "request_sha256", None),
    (3, "result_sha256", None),
    (4, "provider", None),
    (5, "isolation", None),
    (6, "environment", None),
    (7, "policy", None),
    (8, "started_unix_ms", None),
    (9, "ended_unix_ms", None),
    (10, "session", None),
    (11, "sequence", None),
    (12, "previous_sha256", None),
    (13, "record_sha256", None),
    (14, "software_identity", None),
    (15, "software_rule_id", None),
    (16, "unanswered", None),
]);

static JAVASCRIPT_RESULT: Fields = Fields(&[
    (1, "stdout", None),
    (2, "stderr", None),
    (3, "exit_code", None),
    (4, "timed_out", None),
    (8, "stdout_truncated", None),
    (9, "stderr_truncated", None),
    (10, "advice", Some(&ADVICE_FINDING)),
]);

static STEP_RESULT: Fields = Fields(&[
    (1, "command", None),
    (2, "stdout", None),
    (3, "stderr", None),
    (4, "exit_code", None),
    (5, "timed_out", None),
    (6, "duration_ms", None),
    (7, "stdout_truncated", None),
    (8, "stderr_truncated", None),
]);

static ARTIFACT: Fields = Fields(&[(1, "path", None), (2, "content", None)]);

static PROJECT_RESULT: Fields = Fields(&[
    (1, "steps", Some(&STEP_RESULT)),
    (3, "outcome", None),
    (4, "artifacts", Some(&ARTIFACT)),
    (6, "outcome_detail", None),
    (7, "artifacts_truncated", None),
    (8, "advice", Some(&ADVICE_FINDING)),
]);

static MODULE_ROW_RESULT: Fields = Fields(&[(1, "status", None), (2, "outputs", None)]);

static MODULE_RESULT: Fields = Fields(&[
    (1, "runs", Some(&MODULE_ROW_RESULT)),
    (2, "width", None),
    (5, "outcome", None),
    (6, "outcome_detail", None),
    (7, "stdout", None),
    (8, "stderr", None),
]);

static CELL_RESULT: Fields = Fields(&[
    (1, "stdout", None),
    (2, "stderr", None),
    (3, "exit_code", None),
    (4, "timed_out", None),
    (5, "stdout_truncated", None),
    (6, "stderr_truncated", None),
    (7, "interpreter_started", None),
    (8, "interpreter_ended", None),
]);

static ADVICE_FINDING: Fields = Fields(&[
    (1, "pattern", None),
    (2, "severity", None),
    (3, "remedy", None),
    (4, "method", None),
    (5, "route", None),
    (6, "detail", None),
    (7, "suggested_method", None),
    (8, "suggested_route", None),
    (9, "extra_calls", None),
    (10, "added_latency_ms", None),
    (11, "bytes_moved", None),
]);

/// Paths of the unknown fields of a message that decodes, each named once:
/// `javascript.17` is field 17 of the message in `javascript`.
pub fn unknown(fields: &'static Fields, bytes: &[u8]) -> Vec<String> {
    let mut found = BTreeSet::new();
    walk(fields, bytes, "", &mut found);
    found.into_iter().collect()
}

fn walk(fields: &'static Fields, bytes: &[u8], path: &str, found: &mut BTreeSet<String>) {
    let mut rest = bytes;
    while let Some((number, content, after)) = next(rest) {
        rest = after;
        match fields.0.iter().find(|(known, ..)| *known == number) {
            None if found.len() < MOST_NAMED => {
                found.insert(format!("{path}{number}"));
            }
            None => return,
            Some((_, name, Some(inner))) => {
                walk(inner, content, &format!("{path}{name}."), found);
            }
            Some((_, _, None)) => {}
        }
    }
}

/// The next field of a message: its number, its content when it has a length,
/// and what follows. `None` at the end, and where the bytes make no sense.
fn next(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (key, rest) = varint(bytes)?;
    let number = u32::try_from(key >> 3).ok()?;
    let (content, rest) = match key & 7 {
        0 => (&[][..], varint(rest)?.1),
        1 => (&[][..], rest.get(8..)?),
        2 => {
            let (length, rest) = varint(rest)?;
            rest.split_at_checked(usize::try_from(length).ok()?)?
        }
        3 => (&[][..], past_group(rest)?),
        5 => (&[][..], rest.get(4..)?),
        _ => return None,
    };
    Some((number, content, rest))
}

/// Steps past a group of the old wire format, and the groups in it.
fn past_group(mut rest: &[u8]) -> Option<&[u8]> {
    let mut depth = 1_u32;
    while depth > 0 {
        let (key, after) = varint(rest)?;
        match key & 7 {
            3 => (depth, rest) = (depth.checked_add(1)?, after),
            4 => (depth, rest) = (depth - 1, after),
            _ => rest = next(rest)?.2,
        }
    }
    Some(rest)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (n, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[n + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The messages of the schema: by name, each field's number, name and type.
    fn schema() -> BTreeMap<String, Vec<(u32, String, String)>> {
        let text = include_str!("../../../proto/plimsoll/v1/sandbox.proto");
        let mut messages = BTreeMap::new();
        let mut current: Option<String> = None;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("message ") {
                let name = name.split(' ').next().unwrap();
                current = Some(name.to_owned());
                messages.insert(name.to_owned(), Vec::new());
                continue;
            }
            let words: Vec<&str> = line.trim_end_matches(';').split(' ').collect();
            let words = match words.as_slice() {
                ["repeated", rest @ ..] => rest,
                words => words,
            };
            if let [kind, name, "=", number] = words
                && let (Some(current), Ok(number)) = (&current, number.parse())
                && let Some(fields) = messages.get_mut(current)
            {
                fields.push((number, (*name).to_owned(), (*kind).to_owned()));
            }
        }
        messages
    }

    fn compare(fields: &'static Fields, message: &str, seen: &mut BTreeSet<String>) {
        seen.insert(message.to_owned());
        let schema = schema();
        let stated = &schema[message];
        let numbers = |fields: &[(u32, String)]| fields.iter().cloned().collect::<BTreeSet<_>>();
        let ours: Vec<(u32, String)> = fields.0.iter().map(|f| (f.0, f.1.to_owned())).collect();
        let theirs: Vec<(u32, String)> = stated.iter().map(|f| (f.0, f.1.clone())).collect();
        assert_eq!(numbers(&ours), numbers(&theirs), "{message}");
        for (number, _, inner) in fields.0 {
            let kind = &stated.iter().find(|f| f.0 == *number).unwrap().2;
            assert_eq!(
                inner.is_some(),
                schema.contains_key(kind),
                "{message} {number}"
            );
            if let Some(inner) = inner {
                compare(inner, kind, seen);
            }
        }
    }

    #[test]
    fn the_tables_are_the_schema() {
        let mut seen = BTreeSet::new();
        compare(&REQUEST, "RunRequest", &mut seen);
        compare(&RESPONSE, "RunResponse", &mut seen);
        assert_eq!(seen.len(), 18, "{seen:?}");
    }

    #[test]
    fn unknown_fields_are_named() {
        // protocol 3; field 17: varint, fixed, text; a javascript with field 7.
        let bytes = [
            &[0x08, 3][..],
            &[0x88, 0x01, 1],
            &[0x89, 0x01, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x8a, 0x01, 1, b'x'],
            &[0x52, 5, 0x0a, 1, b'1', 0x38, 1],
            // A group with a group inside, and a field after it.
            &[
                0xa3, 0x01, 0x0b, 0x10, 1, 0x0c, 0x15, 1, 2, 3, 4, 0xa4, 0x01,
            ],
            &[0xa8, 0x01, 1],
        ]
        .concat();
        assert_eq!(
            unknown(&REQUEST, &bytes),
            ["17", "20", "21", "javascript.7"]
        );
        assert_eq!(unknown(&REQUEST, &bytes[..5]), ["17"]);
        let none: [&str; 0] = [];
        assert_eq!(unknown(&REQUEST, b""), none);
        assert_eq!(
            unknown(&REQUEST, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            none
        );
        assert_eq!(unknown(&REQUEST, b"\x8a\x01\x7f"), none, "past the end");
        let many: Vec<u8> = (20..120_u64)
            .flat_map(|n| [(n << 3) as u8 | 0x80, (n >> 4) as u8, 0])
            .collect();
        assert_eq!(unknown(&REQUEST, &many).len(), MOST_NAMED);
    }
}
