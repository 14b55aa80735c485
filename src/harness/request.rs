//! Making the request a run sends, and checking it before anything else.

use std::{path::PathBuf, time::Duration};

use plimsoll_client::options::DEFAULT_TIMEOUT;
use plimsoll_wire::{
    PROTOCOL, Refusal, Rule, Tier,
    json::{self, JsonError},
    limits::MAX_CODE_BYTES,
    proto::{JavaScriptRun, ProjectRun, RunRequest, run_request::Payload},
    validate,
};

use crate::project::{self, LeftOut, ProjectError, Selection};

/// Most bytes of a request in JSON.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;

/// Added to a run's own budget for the wait of its caller.
pub const WAIT_MARGIN: Duration = Duration::from_secs(60);

/// A request that passed every check made on this side.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// What will be sent.
    pub request: RunRequest,
    /// What a project leaves out, to be told.
    pub left_out: Vec<LeftOut>,
}

/// Why a request is not sent. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The code is over the limit of the wire.
    #[error("code has at most {MAX_CODE_BYTES} bytes")]
    CodeTooLarge,
    /// The code's file is not UTF-8.
    #[error("the code is not UTF-8")]
    CodeNotUtf8,
    /// The text is not the JSON of a request.
    #[error("{0}")]
    Json(#[from] JsonError),
    /// The project's folder cannot be sent.
    #[error("{0}")]
    Project(#[from] ProjectError),
    /// A rule of the wire is broken; the member at fault is named.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The JSON text is over [`MAX_REQUEST_BYTES`].
    #[error("a request has at most {MAX_REQUEST_BYTES} bytes of JSON")]
    TooLarge,
}

impl RequestError {
    /// Whether an input could not be read at all, rather than be refused.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(self, RequestError::Project(ProjectError::Io { .. }))
    }

    /// The request's member at fault; empty when no single one is.
    #[must_use]
    pub fn member(&self) -> &str {
        match self {
            RequestError::Refused(refusal) => &refusal.member,
            RequestError::Json(JsonError::Unknown { path } | JsonError::Message { path, .. }) => {
                path
            }
            _ => "",
        }
    }
}

/// Reads a request a person wrote: sent exactly as given, unknown and repeated
/// members refused, although a daemon ignores unknown ones.
///
/// # Errors
/// [`RequestError`].
pub fn from_json(text: &[u8]) -> Result<Prepared, RequestError> {
    if text.len() > MAX_REQUEST_BYTES {
        return Err(RequestError::TooLarge);
    }
    checked(json::read_known(text)?, Vec::new())
}

/// A request in the words of a command line.
#[derive(Clone, Debug)]
pub struct Shorthand {
    /// What is run.
    pub source: Source,
    /// The weakest tier it may run behind.
    pub floor: Option<Tier>,
    /// Which software it may use.
    pub software: Rule,
    /// The grant profile; empty for none.
    pub grant_profile: String,
    /// For the daemon's audit line; empty for none.
    pub trace_id: String,
    /// The run's own budget; `None` for the provider's default.
    pub budget: Option<Duration>,
}

impl Shorthand {
    /// A shorthand with nothing asked but its source.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Shorthand {
            source,
            floor: None,
            software: Rule::default(),
            grant_profile: String::new(),
            trace_id: String::new(),
            budget: None,
        }
    }

    /// The request: protocol, and nothing that was not asked for.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn prepare(self) -> Result<Prepared, RequestError> {
        let (payload, left_out) = self.source.payload(self.grant_profile)?;
        let request = RunRequest {
            protocol: PROTOCOL,
            minimum_isolation: self.floor.map_or("", Tier::name).to_owned(),
            trace_id: self.trace_id,
            timeout_ms: budget_ms(self.budget),
            software_rule: self.software.to_message().into(),
            payload: Some(payload),
        };
        checked(request, left_out)
    }
}

/// What a shorthand runs.
#[derive(Clone, Debug)]
pub enum Source {
    /// A snippet given as text.
    Code(String),
    /// A snippet read from a file, as bytes.
    File(Vec<u8>),
    /// A folder's files and the steps to run over them.
    Project {
        /// The folder.
        folder: PathBuf,
        /// Which of its files.
        selection: Selection,
        /// Commands for the sandbox's shell.
        steps: Vec<String>,
        /// Paths to return.
        artifacts: Vec<String>,
    },
}

impl Source {
    fn payload(self, grant_profile: String) -> Result<(Payload, Vec<LeftOut>), RequestError> {
        let code = match self {
            Source::Code(code) => code,
            Source::File(bytes) if bytes.len() > MAX_CODE_BYTES => {
                return Err(RequestError::CodeTooLarge);
            }
            Source::File(bytes) => {
                String::from_utf8(bytes).map_err(|_| RequestError::CodeNotUtf8)?
            }
            Source::Project {
                folder,
                selection,
                steps,
                artifacts,
            } => {
                let collected = project::collect(&folder, &selection)?;
                let run = ProjectRun {
                    files: collected.files,
                    steps,
                    artifacts,
                    grant_profile,
                };
                return Ok((Payload::Project(Box::new(run)), collected.left_out));
            }
        };
        let run = JavaScriptRun {
            code,
            grant_profile,
        };
        Ok((Payload::Javascript(Box::new(run)), Vec::new()))
    }
}

/// How long a caller waits when it does not say: the client's default, and
/// more when the run's own budget is longer.
#[must_use]
pub fn default_wait(budget: Option<Duration>) -> Duration {
    budget.map_or(DEFAULT_TIMEOUT, |budget| {
        DEFAULT_TIMEOUT.max(budget.saturating_add(WAIT_MARGIN))
    })
}

/// A budget in milliseconds of the wire: absent for zero, at least 1, never
/// wrapped.
#[must_use]
pub fn budget_ms(budget: Option<Duration>) -> i32 {
    match budget {
        Some(budget) if !budget.is_zero() => {
            i32::try_from(budget.as_millis().max(1)).unwrap_or(i32::MAX)
        }
        _ => 0,
    }
}

fn checked(request: RunRequest, left_out: Vec<LeftOut>) -> Result<Prepared, RequestError> {
    validate::single_run(&request)?;
    Ok(Prepared { request, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_sent_as_given() {
        let prepared = from_json(br#"{"timeoutMs":-5,"javascript":{"code":"1"}}"#).unwrap();
        assert_eq!(
            (prepared.request.protocol, prepared.request.timeout_ms),
            (0, -5)
        );
        assert!(prepared.request.minimum_isolation.is_empty());
        for (text, member) in [
            (
                r#"{"protocol":3,"javascript":{"code":"1"},"futureField":1}"#,
                "futureField",
            ),
            (
                r#"{"protocol":3,"javascript":{"code":""}}"#,
                "javascript.code",
            ),
            (
                r#"{"protocol":3,"minimumIsolation":"VM","javascript":{"code":"1"}}"#,
                "minimumIsolation",
            ),
            (
                r#"{"protocol":3,"traceId":"a/b","javascript":{"code":"1"}}"#,
                "traceId",
            ),
            (
                r#"{"protocol":3,"protocol":3,"javascript":{"code":"1"}}"#,
                "",
            ),
            (
                r#"{"protocol":3,"cell":{"language":"python","code":"1"}}"#,
                "cell",
            ),
        ] {
            let error = from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.member(), member, "{text}");
            assert!(!error.is_io());
        }
        let large = vec![b' '; MAX_REQUEST_BYTES + 1];
        assert!(matches!(from_json(&large), Err(RequestError::TooLarge)));
    }

    #[test]
    fn shorthands() {
        let plain = Shorthand::new(Source::Code("--json".into()))
            .prepare()
            .unwrap();
        let expected = json::read(br#"{"protocol":3,"javascript":{"code":"--json"}}"#).unwrap();
        assert_eq!(plain.request, expected);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.js"), "1").unwrap();
        let project = Shorthand {
            floor: Some(Tier::Kernel),
            software: crate::software::parse("exact:image:1").unwrap(),
            grant_profile: "lights".into(),
            trace_id: "job-7".into(),
            budget: Some(Duration::from_millis(1500)),
            ..Shorthand::new(Source::Project {
                folder: folder.path().to_owned(),
                selection: Selection::default(),
                steps: vec!["node a.js".into()],
                artifacts: vec!["out".into()],
            })
        };
        let expected = json::read(
            br#"{"protocol":3,"minimumIsolation":"kernel","traceId":"job-7","timeoutMs":1500,
                "softwareRule":{"mode":"exact","identities":["image:1"]},
                "project":{"files":[{"path":"a.js","content":"1"}],"steps":["node a.js"],
                "artifacts":["out"],"grantProfile":"lights"}}"#,
        )
        .unwrap();
        assert_eq!(project.prepare().unwrap().request, expected);
        let bad = [
            Source::Code(String::new()),
            Source::File(b"\xff".to_vec()),
            Source::File(vec![b'1'; MAX_CODE_BYTES + 1]),
        ];
        for source in bad {
            assert!(Shorthand::new(source).prepare().is_err());
        }
        let missing = Source::Project {
            folder: "/nowhere".into(),
            selection: Selection::default(),
            steps: vec!["true".into()],
            artifacts: Vec::new(),
        };
        assert!(Shorthand::new(missing).prepare().unwrap_err().is_io());
    }

    #[test]
    fn times() {
        let ms = Duration::from_millis;
        assert_eq!(budget_ms(None), 0);
        assert_eq!(budget_ms(Some(Duration::ZERO)), 0);
        assert_eq!(budget_ms(Some(Duration::from_nanos(1))), 1);
        assert_eq!(budget_ms(Some(ms(1 << 40))), i32::MAX);
        assert_eq!(default_wait(None), Duration::from_secs(360));
        assert_eq!(default_wait(Some(ms(5))), Duration::from_secs(360));
        assert_eq!(
            default_wait(Some(Duration::from_secs(600))),
            Duration::from_secs(660)
        );
    }
}
