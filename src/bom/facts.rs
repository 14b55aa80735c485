//! What a BOM says of one call, taken from its verified record and messages.
//!
//! File contents and output are reduced to digests and lengths here, so that a
//! session of many calls is held in memory without them.

use plimsoll_record::{Digest, outcome::outcome_name};
use plimsoll_wire::{
    Kind,
    proto::{
        ModuleResult, ModuleRun, ProjectFile, RunRecord, RunRequest, RunResponse,
        run_request::Payload, run_response::Result as RunResult,
    },
};
use sha2::{Digest as _, Sha256};

use crate::lines::LineRef;

/// One call.
#[derive(Clone, Debug)]
pub struct CallFacts {
    /// Where its line stands.
    pub line: LineRef,
    /// The signed record.
    pub record: RunRecord,
    /// What the request asked to run; `None` when it asked for nothing.
    pub payload: Option<Kind>,
    /// The request's time limit in milliseconds; 0 when it set none.
    pub timeout_ms: i32,
    /// The request's floor; empty when it set none.
    pub minimum_isolation: String,
    /// The grant profile asked for; empty for none.
    pub grant_profile: String,
    /// The interpreter's language, for a snippet or cell.
    pub language: Option<String>,
    /// The outcome of a project or module.
    pub outcome: Option<&'static str>,
    /// What was sent, in the order of the request.
    pub inputs: Vec<Input>,
    /// What came back as files, in the order of the response.
    pub artifacts: Vec<Content>,
    /// The steps that ran.
    pub steps: Vec<Step>,
}

/// Something that was sent.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file: a snippet, a cell's code, or a file beside them.
    File {
        /// What it is for: `snippet`, `cell` or `input`.
        role: &'static str,
        /// Path and content.
        content: Content,
        /// Its git blob ID, where the caller asked for it.
        git_blob: Option<String>,
    },
    /// A model and its parameters.
    Model {
        /// The model's ID.
        name: String,
        /// Rows of parameters.
        rows: usize,
        /// SHA-256 over end time, step and every row value.
        params: Digest,
    },
}

/// A file's path and digest.
#[derive(Clone, Debug)]
pub struct Content {
    /// The path as the message has it.
    pub path: String,
    /// Length in bytes.
    pub bytes: usize,
    /// SHA-256 of the bytes.
    pub sha256: Digest,
}

/// One output stream of a step.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Length in bytes, as it came back.
    pub bytes: usize,
    /// SHA-256 of the bytes.
    pub sha256: Digest,
    /// Whether it was cut; `None` where the message does not say.
    pub truncated: Option<bool>,
}

/// One step that ran.
#[derive(Clone, Debug)]
pub struct Step {
    /// The text that was executed, for a project's steps.
    pub command: Option<String>,
    /// Exit code and whether the time limit ended it; `None` for a module.
    pub exit: Option<(i32, bool)>,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// Whether the interpreter was started for a cell, and whether it ended.
    pub interpreter: Option<(bool, bool)>,
    /// Width, rows and digest of a module's results.
    pub module: Option<(i32, usize, Digest)>,
}

impl CallFacts {
    /// Takes the facts of a verified exchange. `git_blobs` asks for the git
    /// blob ID of every file sent.
    #[must_use]
    pub fn of(
        line: LineRef,
        record: RunRecord,
        request: &RunRequest,
        response: Option<&RunResponse>,
        git_blobs: bool,
    ) -> Self {
        let mut facts = CallFacts {
            line,
            record,
            payload: Kind::of_request(request),
            timeout_ms: request.timeout_ms,
            minimum_isolation: request.minimum_isolation.clone(),
            grant_profile: String::new(),
            language: None,
            outcome: None,
            inputs: Vec::new(),
            artifacts: Vec::new(),
            steps: Vec::new(),
        };
        facts.asked(request, git_blobs);
        if let Some(response) = response {
            facts.answered(response);
        }
        facts
    }

    fn asked(&mut self, request: &RunRequest, git_blobs: bool) {
        let file = |role, path: &str, content: &str| Input::File {
            role,
            content: Content::of(path, content.as_bytes()),
            git_blob: git_blobs.then(|| git_blob(content.as_bytes())),
        };
        let files = |files: &[ProjectFile]| {
            let inputs = files.iter().map(|f| file("input", &f.path, &f.content));
            inputs.collect::<Vec<_>>()
        };
        match &request.payload {
            Some(Payload::Javascript(run)) => {
                self.grant_profile.clone_from(&run.grant_profile);
                self.language = Some("javascript".to_owned());
                self.inputs = vec![file("snippet", "snippet.js", &run.code)];
            }
            Some(Payload::Project(run)) => {
                self.grant_profile.clone_from(&run.grant_profile);
                self.inputs = files(&run.files);
            }
            Some(Payload::Cell(run)) => {
                let name = match run.language.as_str() {
                    "javascript" => "cell.js",
                    "python" => "cell.py",
                    _ => "cell",
                };
                self.language = Some(run.language.clone());
                self.inputs = vec![file("cell", name, &run.code)];
                self.inputs.extend(files(&run.files));
            }
            Some(Payload::Module(run)) => {
                self.inputs = vec![Input::Model {
                    name: run.model.clone(),
                    rows: run.rows.len(),
                    params: params(run),
                }];
            }
            None => {}
        }
    }

    fn answered(&mut self, response: &RunResponse) {
        match &response.result {
            Some(RunResult::Javascript(result)) => self.steps.push(Step {
                exit: Some((result.exit_code, result.timed_out)),
                ..Step::streams(
                    (&result.stdout, Some(result.stdout_truncated)),
                    (&result.stderr, Some(result.stderr_truncated)),
                )
            }),
            Some(RunResult::Project(result)) => {
                self.outcome = Some(outcome_name(result.outcome));
                self.steps.extend(result.steps.iter().map(|step| Step {
                    command: Some(step.command.clone()),
                    exit: Some((step.exit_code, step.timed_out)),
                    ..Step::streams(
                        (&step.stdout, Some(step.stdout_truncated)),
                        (&step.stderr, Some(step.stderr_truncated)),
                    )
                }));
                self.artifacts.extend(
                    result
                        .artifacts
                        .iter()
                        .map(|artifact| Content::of(&artifact.path, &artifact.content)),
                );
            }
            Some(RunResult::Cell(result)) => self.steps.push(Step {
                exit: Some((result.exit_code, result.timed_out)),
                interpreter: Some((result.interpreter_started, result.interpreter_ended)),
                ..Step::streams(
                    (&result.stdout, Some(result.stdout_truncated)),
                    (&result.stderr, Some(result.stderr_truncated)),
                )
            }),
            Some(RunResult::Module(result)) => {
                self.outcome = Some(outcome_name(result.outcome));
                self.steps.push(Step {
                    module: Some((result.width, result.runs.len(), outputs(result))),
                    ..Step::streams((&result.stdout, None), (&result.stderr, None))
                });
            }
            None => {}
        }
    }
}

impl Content {
    fn of(path: &str, bytes: &[u8]) -> Self {
        Content {
            path: path.to_owned(),
            bytes: bytes.len(),
            sha256: Digest::of(bytes),
        }
    }
}

impl Step {
    fn streams(stdout: (&[u8], Option<bool>), stderr: (&[u8], Option<bool>)) -> Self {
        let stream = |(bytes, truncated): (&[u8], Option<bool>)| Stream {
            bytes: bytes.len(),
            sha256: Digest::of(bytes),
            truncated,
        };
        Step {
            command: None,
            exit: None,
            stdout: stream(stdout),
            stderr: stream(stderr),
            interpreter: None,
            module: None,
        }
    }
}

/// End time, step and every row value, as big-endian binary64.
fn params(run: &ModuleRun) -> Digest {
    let mut hasher = Sha256::new();
    let mut take = |value: f64| hasher.update(value.to_bits().to_be_bytes());
    take(run.end_time);
    take(run.step);
    run.rows
        .iter()
        .for_each(|row| row.values.iter().copied().for_each(&mut take));
    digest(hasher)
}

/// Each row's status as 8 bytes in two's complement, then its outputs as
/// big-endian binary64.
fn outputs(result: &ModuleResult) -> Digest {
    let mut hasher = Sha256::new();
    for row in &result.runs {
        hasher.update(i64::from(row.status).to_be_bytes());
        for value in &row.outputs {
            hasher.update(value.to_bits().to_be_bytes());
        }
    }
    digest(hasher)
}

fn digest(hasher: Sha256) -> Digest {
    Digest::from(<[u8; 32]>::from(hasher.finalize()))
}

/// The ID git gives these bytes as a blob of a SHA-1 repository.
#[must_use]
pub fn git_blob(content: &[u8]) -> String {
    use sha1_checked::Digest as _;
    let mut hasher = sha1_checked::Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    hex::encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    #[test]
    fn blobs_have_the_ids_git_gives_them() {
        assert_eq!(
            super::git_blob(b""),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
        assert_eq!(
            super::git_blob(b"hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }
}
