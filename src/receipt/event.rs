//! What CI says of a pull request: the event file and the environment.
//!
//! Everything here is CI's statement and goes into the receipt as one. Texts
//! are bounded and of plain forms: they end up in URLs and reports.

use plimsoll_wire::strict_json;
use serde_json::Value;

use crate::{
    git::Oid,
    statement::receipt::{PullRequest, Repository, Workflow},
};

/// Largest event file that is read.
pub const MAX_BYTES: u64 = 8 << 20;
/// Events that a receipt is made for.
pub const EVENTS: [&str; 2] = ["pull_request", "merge_group"];
/// Events that hold secrets while they run a stranger's code.
pub const REFUSED_EVENTS: [&str; 2] = ["pull_request_target", "workflow_run"];

/// What is tested, as CI or flags name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    /// The repository.
    pub repository: Repository,
    /// The pull request.
    pub pull_request: PullRequest,
}

/// Why an event is not taken.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EventError {
    /// Not strict JSON.
    #[error("the event is not valid JSON: {0}")]
    Json(String),
    /// A member that is missing or of another form.
    #[error("the event's {0} is missing or not of its form")]
    Member(&'static str),
    /// A value of the environment or a flag.
    #[error("{0} is not of its form")]
    Value(&'static str),
}

/// Reads an event of a pull request. `server` is the URL of the service, such
/// as `https://github.com`.
///
/// # Errors
/// [`EventError`].
pub fn read(bytes: &[u8], server: &str) -> Result<Binding, EventError> {
    let event = parse(bytes)?;
    let text = |pointer: &str, member| {
        event
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or(EventError::Member(member))
    };
    let full_name = text("/repository/full_name", "repository.full_name")?;
    if !is_full_name(&full_name) {
        return Err(EventError::Member("repository.full_name"));
    }
    let server = server.strip_suffix('/').unwrap_or(server);
    let number = event
        .pointer("/pull_request/number")
        .and_then(Value::as_u64)
        .ok_or(EventError::Member("pull_request.number"))?;
    // A fork that was deleted is null.
    let head_repository = match event.pointer("/pull_request/head/repo") {
        None | Some(Value::Null) => String::new(),
        Some(_) => text(
            "/pull_request/head/repo/html_url",
            "pull_request.head.repo.html_url",
        )?,
    };
    let binding = Binding {
        repository: Repository {
            url: format!("{server}/{full_name}"),
        },
        pull_request: PullRequest {
            number,
            head_repository,
            head_sha: text("/pull_request/head/sha", "pull_request.head.sha")?,
            base_ref: text("/pull_request/base/ref", "pull_request.base.ref")?,
            base_sha: text("/pull_request/base/sha", "pull_request.base.sha")?,
        },
    };
    binding.check()?;
    Ok(binding)
}

fn parse(bytes: &[u8]) -> Result<Value, EventError> {
    // A member twice would let two readers see two pull requests.
    strict_json::check(bytes).map_err(|error| EventError::Json(error.to_string()))?;
    serde_json::from_slice(bytes).map_err(|error| EventError::Json(error.to_string()))
}

impl Binding {
    /// Checks the form of every value, from wherever it came.
    ///
    /// # Errors
    /// [`EventError::Value`].
    pub fn check(&self) -> Result<(), EventError> {
        let request = &self.pull_request;
        let ok = |holds: bool, what| holds.then_some(()).ok_or(EventError::Value(what));
        ok(is_url(&self.repository.url), "the repository's URL")?;
        ok(
            (1..=1 << 52).contains(&request.number),
            "the pull request's number",
        )?;
        ok(
            request.head_repository.is_empty() || is_url(&request.head_repository),
            "the head repository's URL",
        )?;
        let head = Oid::parse(&request.head_sha);
        let base = Oid::parse(&request.base_sha);
        ok(head.is_some(), "the head commit")?;
        ok(base.is_some(), "the base commit")?;
        let same = head.map(|oid| oid.algorithm()) == base.map(|oid| oid.algorithm());
        ok(same, "the base commit")?;
        ok(is_branch(&request.base_ref), "the base branch")
    }
}

/// The workflow as GitHub's environment states it; `lookup` reads a variable.
///
/// # Errors
/// [`EventError::Value`].
pub fn workflow(
    repository: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Workflow, EventError> {
    let number = |name: &'static str| match lookup(name) {
        None => Ok(0),
        Some(text) if text.is_empty() => Ok(0),
        Some(text) => text
            .parse::<u64>()
            .ok()
            .filter(|n| *n <= 1 << 52)
            .ok_or(EventError::Value(name)),
    };
    let run_id = number("GITHUB_RUN_ID")?;
    let path = match lookup("GITHUB_WORKFLOW_REF").filter(|text| !text.is_empty()) {
        None => String::new(),
        Some(text) => workflow_path(&text).ok_or(EventError::Value("GITHUB_WORKFLOW_REF"))?,
    };
    Ok(Workflow {
        event: lookup("GITHUB_EVENT_NAME").unwrap_or_default(),
        path,
        git_blob: String::new(),
        run_id,
        run_attempt: number("GITHUB_RUN_ATTEMPT")?,
        run_url: run_url(repository, run_id),
    })
}

/// The page of a run; empty where there is none.
fn run_url(repository: &str, run_id: u64) -> String {
    match run_id {
        0 => String::new(),
        id => format!("{repository}/actions/runs/{id}"),
    }
}

/// Checks what a receipt states of its workflow: an event that is never taken,
/// or a page that is not the run's.
///
/// # Errors
/// [`EventError::Value`].
pub fn check_workflow(workflow: &Workflow, repository: &str) -> Result<(), EventError> {
    let ok = |holds: bool, what| holds.then_some(()).ok_or(EventError::Value(what));
    ok(
        !REFUSED_EVENTS.contains(&workflow.event.as_str()),
        "the workflow's event",
    )?;
    ok(
        workflow.run_id <= 1 << 52 && workflow.run_attempt <= 1 << 52,
        "the workflow's run",
    )?;
    let page = workflow.run_url.as_str();
    ok(
        page.is_empty() || page == run_url(repository, workflow.run_id),
        "the URL of the workflow's run",
    )
}

/// The path part of `owner/name/PATH@REF`.
fn workflow_path(text: &str) -> Option<String> {
    let (path, _) = text.split_once('@')?;
    let mut parts = path.splitn(3, '/');
    let (_, _, path) = (parts.next()?, parts.next()?, parts.next()?);
    plimsoll_wire::validate::path(path).ok()?;
    Some(path.to_owned())
}

fn is_full_name(text: &str) -> bool {
    let part = |part: &str| {
        (1..=100).contains(&part.len())
            && !matches!(part, "." | "..")
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    text.split_once('/')
        .is_some_and(|(owner, name)| part(owner) && part(name))
}

/// An `https` (or `http`) URL without user, query, fragment or odd characters.
#[must_use]
pub fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or(text.strip_prefix("http://"));
    text.len() <= 2048
        && rest.is_some_and(|rest| {
            let parts = rest.split('/');
            rest.bytes().all(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b':' | b'/')
            }) && parts.clone().count() >= 2
                && parts.into_iter().all(|p| !matches!(p, "" | "." | ".."))
        })
}

/// A branch's name as git allows it.
fn is_branch(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && !text.starts_with(['-', '/'])
        && !text.ends_with(['/', '.'])
        && !text.contains("..")
        && !text.contains("@{")
        && !text
            .chars()
            .any(|c| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"repository":{"full_name":"example-org/adder"},"pull_request":{"number":7,
        "head":{"sha":"242085db39798080553c88a7f6e0b887ba5e33dc","repo":{"html_url":"https://github.com/example-fork/adder"}},
        "base":{"sha":"19683cb0da16ed7d25edb0cca77be90b2bbfa720","ref":"main"}}}"#;

    #[test]
    fn a_pull_request_of_a_fork() {
        let binding = read(EVENT.as_bytes(), "https://github.com").unwrap();
        assert_eq!(
            binding.repository.url,
            "https://github.com/example-org/adder"
        );
        assert_eq!(binding.pull_request.number, 7);
        assert_eq!(binding.pull_request.base_ref, "main");
        let gone = EVENT.replace(
            r#"{"html_url":"https://github.com/example-fork/adder"}"#,
            "null",
        );
        let binding = read(gone.as_bytes(), "https://github.com").unwrap();
        assert_eq!(binding.pull_request.head_repository, "");
    }

    #[test]
    fn hostile_events() {
        for (from, to) in [
            (
                "242085db39798080553c88a7f6e0b887ba5e33dc",
                "242085db39798080553c88a7f6e0b887ba5e33d",
            ),
            (
                "242085db39798080553c88a7f6e0b887ba5e33dc",
                "242085DB39798080553C88A7F6E0B887BA5E33DC",
            ),
            ("\"number\":7", "\"number\":\"7\""),
            ("\"number\":7", "\"number\":-7"),
            ("\"number\":7", "\"number\":0"),
            ("\"number\":7", "\"number\":7,\"number\":8"),
            ("\"main\"", "\"$(touch x) `x`\""),
            ("\"main\"", "\"a..b\""),
            ("\"main\"", "\"--upload-pack=x\""),
            ("example-org/adder", "example-org/../adder"),
            ("example-org/adder", "example-org"),
            (
                "https://github.com/example-fork/adder",
                "javascript:alert(1)",
            ),
            (
                "https://github.com/example-fork/adder",
                "https://github.com/x?y",
            ),
        ] {
            let changed = EVENT.replacen(from, to, 1);
            assert_ne!(changed, EVENT);
            assert!(
                read(changed.as_bytes(), "https://github.com").is_err(),
                "{to}"
            );
        }
    }

    #[test]
    fn the_workflow() {
        let lookup = |name: &str| {
            Some(match name {
                "GITHUB_EVENT_NAME" => "pull_request".to_owned(),
                "GITHUB_WORKFLOW_REF" => {
                    "example-org/adder/.github/workflows/plimsoll-receipt.yml@refs/pull/7/merge"
                        .to_owned()
                }
                "GITHUB_RUN_ID" => "1234567890".to_owned(),
                "GITHUB_RUN_ATTEMPT" => "1".to_owned(),
                _ => return None,
            })
        };
        let workflow = workflow("https://github.com/example-org/adder", lookup).unwrap();
        assert_eq!(workflow.path, ".github/workflows/plimsoll-receipt.yml");
        assert_eq!(
            workflow.run_url,
            "https://github.com/example-org/adder/actions/runs/1234567890"
        );
        assert_eq!(workflow_path("a/b/../x@y"), None);
    }

    #[test]
    fn a_workflow_states_its_own_page_and_no_event_that_is_refused() {
        let repository = "https://github.com/example-org/adder";
        let stated = |event: &str, run_url: &str, run_id: u64| Workflow {
            event: event.to_owned(),
            run_url: run_url.to_owned(),
            run_id,
            ..Workflow::default()
        };
        let page = format!("{repository}/actions/runs/5");
        let zero = format!("{repository}/actions/runs/0");
        for (event, url, id) in [
            ("pull_request", page.as_str(), 5),
            ("nightly", "", 5),
            ("", "", 0),
        ] {
            assert_eq!(check_workflow(&stated(event, url, id), repository), Ok(()));
        }
        for (event, url, id) in [
            ("pull_request", page.as_str(), 6),
            (
                "pull_request",
                "https://github.com/other/adder/actions/runs/5",
                5,
            ),
            ("pull_request", "javascript:alert(1)", 5),
            ("pull_request", zero.as_str(), 0),
            ("pull_request", "", u64::MAX),
            ("pull_request_target", page.as_str(), 5),
            ("workflow_run", page.as_str(), 5),
        ] {
            assert!(
                check_workflow(&stated(event, url, id), repository).is_err(),
                "{event} {url} {id}"
            );
        }
    }
}
