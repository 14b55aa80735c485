//! What a run's outcome means.

use plimsoll_wire::proto::{
    EnumValue, ProjectOutcome, RunRequest, RunResponse, run_request::Payload,
    run_response::Result as RunResult,
};

/// Whether a call is a success: a snippet or cell with exit 0 that was not cut
/// by its budget; a project that completed with exactly the steps asked for, in
/// their order, each with exit 0 and in time; a module table that completed with no row failed.
#[must_use]
pub fn is_success(request: &RunRequest, response: &RunResponse) -> bool {
    let completed =
        |outcome: EnumValue<ProjectOutcome>| outcome == ProjectOutcome::PROJECT_OUTCOME_COMPLETED;
    match &response.result {
        Some(RunResult::Javascript(result)) => result.exit_code == 0 && !result.timed_out,
        Some(RunResult::Cell(result)) => result.exit_code == 0 && !result.timed_out,
        Some(RunResult::Project(result)) => {
            let asked = match &request.payload {
                Some(Payload::Project(run)) => &run.steps,
                _ => return false,
            };
            let ran = result.steps.iter().map(|step| &step.command);
            completed(result.outcome)
                && ran.eq(asked)
                && result
                    .steps
                    .iter()
                    .all(|step| step.exit_code == 0 && !step.timed_out)
        }
        Some(RunResult::Module(result)) => {
            completed(result.outcome) && result.runs.iter().all(|run| run.status >= 0)
        }
        None => false,
    }
}

/// An outcome's short name.
#[must_use]
pub fn outcome_name(outcome: EnumValue<ProjectOutcome>) -> &'static str {
    match outcome.to_i32() {
        1 => "completed",
        2 => "setup_failed",
        3 => "timed_out",
        4 => "protocol_error",
        _ => "unspecified",
    }
}

/// One line about an outcome, made of this program's own words and numbers.
#[must_use]
pub fn summary(response: &RunResponse) -> String {
    let exit = |code: i32, timed_out: bool| {
        let late = if timed_out { ", timed out" } else { "" };
        format!("exit {code}{late}")
    };
    match &response.result {
        Some(RunResult::Javascript(result)) => exit(result.exit_code, result.timed_out),
        Some(RunResult::Cell(result)) => exit(result.exit_code, result.timed_out),
        Some(RunResult::Project(result)) => {
            let mut text = format!(
                "{}, {} steps",
                outcome_name(result.outcome),
                result.steps.len()
            );
            let failed = result
                .steps
                .iter()
                .enumerate()
                .find(|(_, s)| s.exit_code != 0);
            if let Some((i, step)) = failed {
                text += &format!(", step {} exit {}", i + 1, step.exit_code);
            }
            text
        }
        Some(RunResult::Module(result)) => {
            format!(
                "{}, {} rows",
                outcome_name(result.outcome),
                result.runs.len()
            )
        }
        None => "no result".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::json;

    use super::*;

    #[test]
    fn successes_and_others() {
        let judge = |request: &str, response: &str| {
            let request: RunRequest = json::read(request.as_bytes()).unwrap();
            let response: RunResponse = json::read(response.as_bytes()).unwrap();
            (is_success(&request, &response), summary(&response))
        };
        let snippet = r#"{"javascript":{"code":"1"}}"#;
        let two = r#"{"project":{"steps":["a","b"]}}"#;
        let module = r#"{"module":{}}"#;
        let done = "PROJECT_OUTCOME_COMPLETED";
        for (request, response, success, text) in [
            (snippet, r#"{"javascript":{}}"#.into(), true, "exit 0"),
            (
                snippet,
                r#"{"javascript":{"exitCode":3}}"#.into(),
                false,
                "exit 3",
            ),
            (
                snippet,
                r#"{"javascript":{"exitCode":124,"timedOut":true}}"#.into(),
                false,
                "exit 124, timed out",
            ),
            (
                snippet,
                r#"{"javascript":{"timedOut":true}}"#.into(),
                false,
                "exit 0, timed out",
            ),
            (
                two,
                format!(
                    r#"{{"project":{{"outcome":"{done}","steps":[{{"command":"a"}},{{"command":"b"}}]}}}}"#
                ),
                true,
                "completed, 2 steps",
            ),
            // As many steps, and not those asked for.
            (
                two,
                format!(
                    r#"{{"project":{{"outcome":"{done}","steps":[{{"command":"b"}},{{"command":"a"}}]}}}}"#
                ),
                false,
                "completed, 2 steps",
            ),
            (
                two,
                format!(
                    r#"{{"project":{{"outcome":"{done}","steps":[{{"command":"a"}},{{"command":"true"}}]}}}}"#
                ),
                false,
                "completed, 2 steps",
            ),
            (
                two,
                format!(
                    r#"{{"project":{{"outcome":"{done}","steps":[{{"command":"a"}},{{"command":"b"}},{{"command":"c"}}]}}}}"#
                ),
                false,
                "completed, 3 steps",
            ),
            (
                two,
                format!(r#"{{"project":{{"outcome":"{done}","steps":[{{"command":"a"}}]}}}}"#),
                false,
                "completed, 1 steps",
            ),
            (
                two,
                format!(
                    r#"{{"project":{{"outcome":"{done}","steps":[{{"command":"a"}},{{"command":"b","exitCode":2}}]}}}}"#
                ),
                false,
                "completed, 2 steps, step 2 exit 2",
            ),
            (
                two,
                r#"{"project":{"outcome":"PROJECT_OUTCOME_TIMED_OUT"}}"#.into(),
                false,
                "timed_out, 0 steps",
            ),
            (
                two,
                r#"{"project":{"outcome":77}}"#.into(),
                false,
                "unspecified, 0 steps",
            ),
            (
                module,
                format!(r#"{{"module":{{"outcome":"{done}","runs":[{{}},{{"status":2}}]}}}}"#),
                true,
                "completed, 2 rows",
            ),
            (
                module,
                format!(r#"{{"module":{{"outcome":"{done}","runs":[{{"status":-1}}]}}}}"#),
                false,
                "completed, 1 rows",
            ),
            (snippet, "{}".into(), false, "no result"),
        ] {
            assert_eq!(
                judge(request, &response),
                (success, text.to_owned()),
                "{response}"
            );
        }
    }
}
