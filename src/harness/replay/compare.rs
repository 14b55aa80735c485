//! Where two results begin to differ.

use plimsoll_record::{encoding::Field, result_fields};
use plimsoll_wire::proto::RunResponse;

/// Repeated groups of a result: the prefix of their fields, the list's name, and
/// the field each element begins with.
const GROUPS: [(&str, &str, &str); 3] = [
    ("step_", "steps", "step_command"),
    ("artifact_", "artifacts", "artifact_path"),
    ("run_", "runs", "run_status"),
];

/// The first member of the result that differs, in the order of the digest:
/// `stdout`, `steps[1].exit_code`. Durations and advice are in no digest, so they
/// never differ here.
pub(super) fn first_difference(recorded: &RunResponse, replayed: &RunResponse) -> String {
    let (recorded, replayed) = (result_fields(recorded), result_fields(replayed));
    let both = recorded.len().min(replayed.len());
    let at = (0..both)
        .find(|&at| recorded[at] != replayed[at])
        .unwrap_or(both);
    let longer = if recorded.len() > at {
        &recorded
    } else {
        &replayed
    };
    named(longer, at)
}

fn named(fields: &[Field], at: usize) -> String {
    let Some(field) = fields.get(at) else {
        return "result".to_owned();
    };
    let group = GROUPS
        .iter()
        .find_map(|(prefix, list, first)| Some((field.name.strip_prefix(prefix)?, list, first)));
    match group {
        Some((member, list, first)) => {
            let begun = fields[..=at].iter().filter(|f| f.name == *first).count();
            format!("{list}[{}].{member}", begun.saturating_sub(1))
        }
        None => field.name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::json;

    use super::*;

    #[test]
    fn members_by_name() {
        let difference = |a: &str, b: &str| {
            let read = |text: &str| json::read::<RunResponse>(text.as_bytes()).unwrap();
            first_difference(&read(a), &read(b))
        };
        for (a, b, member) in [
            (
                r#"{"javascript":{"stdout":"MQ=="}}"#,
                r#"{"javascript":{"stdout":"Mg=="}}"#,
                "stdout",
            ),
            (
                r#"{"javascript":{}}"#,
                r#"{"javascript":{"exitCode":1,"stdout":"Mg=="}}"#,
                "exit_code",
            ),
            (
                r#"{"project":{"steps":[{"command":"a"},{"command":"b"}]}}"#,
                r#"{"project":{"steps":[{"command":"a"},{"command":"b","exitCode":2}]}}"#,
                "steps[1].exit_code",
            ),
            (
                r#"{"project":{"steps":[{"command":"a"}]}}"#,
                r#"{"project":{"steps":[{"command":"a"},{"command":"b"}]}}"#,
                "steps",
            ),
            (
                r#"{"project":{"artifacts":[{"path":"a","content":"MQ=="}]}}"#,
                r#"{"project":{"artifacts":[{"path":"a","content":"Mg=="}]}}"#,
                "artifacts[0].content",
            ),
            (
                r#"{"module":{"runs":[{},{"outputs":[0]}]}}"#,
                r#"{"module":{"runs":[{},{"outputs":[-0.0]}]}}"#,
                "runs[1].outputs",
            ),
            (r#"{"javascript":{}}"#, r#"{"cell":{}}"#, "kind"),
        ] {
            assert_eq!(difference(a, b), member, "{a} {b}");
        }
    }
}
