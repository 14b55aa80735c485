//! What the runner reports, decoded from an authenticated body.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use plimsoll_wire::limits::{MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, MAX_STEPS};
use serde::Deserialize;

/// A command up to this length is echoed whole.
const MAX_ECHO_BYTES: usize = 16 << 10;

/// One step that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The command as the runner echoed it, cut to 16 KiB.
    pub command: Vec<u8>,
    /// Standard output, at most 1 MiB of what was written.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// Whether more was written.
    pub stdout_truncated: bool,
    /// Whether more was written.
    pub stderr_truncated: bool,
    /// 124 past its budget, -1 when a signal ended it, else the shell's own.
    pub exit_code: i32,
    /// Whether the budget ended it.
    pub timed_out: bool,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
}

/// One file returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifact {
    /// The path as it was asked for.
    pub path: Vec<u8>,
    /// Content.
    pub content: Vec<u8>,
}

/// A decoded report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The plan could not be carried out; in the runner's words, which may
    /// quote a path of the request.
    Setup(String),
    /// The plan ran to its end, or to its first failing step.
    Ran {
        /// In order.
        steps: Vec<Step>,
        /// In the order they were asked for.
        artifacts: Vec<Artifact>,
        /// Whether one did not fit.
        artifacts_truncated: bool,
    },
}

/// What a plan asked for, as far as a report can be held against it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Commands in order.
    pub steps: Vec<String>,
    /// Paths to return, in order.
    pub artifacts: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    error: Option<String>,
    steps: Option<Vec<BodyStep>>,
    artifacts: Option<Vec<BodyArtifact>>,
    #[serde(default)]
    artifacts_truncated: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct BodyStep {
    command: String,
    stdout: String,
    stderr: String,
    stdout_truncated: bool,
    stderr_truncated: bool,
    exit_code: i32,
    timed_out: bool,
    duration_ms: i64,
}

#[derive(Deserialize)]
struct BodyArtifact {
    path: String,
    content: String,
}

impl Report {
    /// Decodes an authenticated body; `None` when it is not a report. An image
    /// may carry another implementation's runner, so what the runner promises
    /// is checked: counts, sizes, canonical base64. Members it does not know
    /// are passed over.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Report> {
        let body: Body = serde_json::from_slice(body).ok()?;
        if let Some(error) = body.error.filter(|e| !e.is_empty()) {
            return Some(Report::Setup(error));
        }
        let steps = body.steps?;
        let artifacts = body.artifacts.unwrap_or_default();
        if steps.len() > MAX_STEPS || artifacts.len() > MAX_ARTIFACTS {
            return None;
        }
        let steps = steps
            .into_iter()
            .map(BodyStep::decode)
            .collect::<Option<_>>()?;
        let mut room = MAX_ARTIFACT_BYTES;
        let artifacts = artifacts
            .into_iter()
            .map(|a| a.decode(&mut room))
            .collect::<Option<_>>()?;
        Some(Report::Ran {
            steps,
            artifacts,
            artifacts_truncated: body.artifacts_truncated,
        })
    }

    /// Whether this can be the report of a plan that asked for that: its
    /// commands from the first on, none after one that failed, none left out
    /// after one that did not; and files that were asked for, each once and in
    /// that order. The MAC says who wrote a report and not that it is right.
    #[must_use]
    pub fn answers(&self, asked: &Asked) -> bool {
        let Report::Ran {
            steps, artifacts, ..
        } = self
        else {
            return true;
        };
        let mut wanted = asked.artifacts.iter();
        follows(steps, &asked.steps)
            && artifacts
                .iter()
                .all(|artifact| wanted.any(|path| path.as_bytes() == artifact.path))
    }
}

fn follows(steps: &[Step], commands: &[String]) -> bool {
    let echoed = steps
        .iter()
        .zip(commands)
        .all(|(step, command)| echoes(&step.command, command.as_bytes()));
    let (last, before) = match steps.split_last() {
        None => return commands.is_empty(),
        Some(parts) => parts,
    };
    let whole = steps.len() == commands.len();
    // A flood ends a step, and not every runner gives that a status of its own.
    let flooded = last.stdout_truncated || last.stderr_truncated;
    echoed
        && before.iter().all(Step::succeeded)
        && steps.len() <= commands.len()
        && (whole || flooded || !last.succeeded())
}

/// Whether `said` is the echo of a command, which a runner may cut.
fn echoes(said: &[u8], command: &[u8]) -> bool {
    said == command || (command.len() > MAX_ECHO_BYTES && command.starts_with(said))
}

impl Step {
    fn succeeded(&self) -> bool {
        self.exit_code == 0 && !self.timed_out
    }
}

impl BodyStep {
    fn decode(self) -> Option<Step> {
        (self.duration_ms >= 0).then(|| Step {
            command: self.command.into_bytes(),
            stdout: self.stdout.into_bytes(),
            stderr: self.stderr.into_bytes(),
            stdout_truncated: self.stdout_truncated,
            stderr_truncated: self.stderr_truncated,
            exit_code: self.exit_code,
            timed_out: self.timed_out,
            duration_ms: self.duration_ms,
        })
    }
}

impl BodyArtifact {
    fn decode(self, room: &mut usize) -> Option<Artifact> {
        let content = STANDARD.decode(self.content).ok()?;
        *room = room.checked_sub(content.len())?;
        Some(Artifact {
            path: self.path.into_bytes(),
            content,
        })
    }
}
