//! What a provider returns for one run.
//!
//! Guest output is bytes and stays verbatim. Text a guest may have influenced
//! is bytes here too: the service repairs it before it becomes text.

use plimsoll_wire::proto::ProjectOutcome;

use super::TierNow;

/// The result of a run and the evidence of what it ran in.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutput {
    /// The result.
    pub output: Output,
    /// The tier it ran behind.
    pub tier: TierNow,
    /// Identity of the outer image or interpreter; empty when the run reports
    /// none, and then the provider's stated one stands in.
    pub environment: String,
    /// Identity of the selected image as the run reported it; may be empty.
    pub software_identity: String,
}

/// The result by payload kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Of a snippet.
    Javascript(ScriptOutput),
    /// Of a project.
    Project(ProjectOutput),
    /// Of a module table.
    Module(ModuleOutput),
    /// Of a cell.
    Cell(CellOutput),
}

/// One captured stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// The bytes kept: a prefix of what was written, nothing added.
    pub bytes: Vec<u8>,
    /// Whether more was written.
    pub truncated: bool,
}

impl Stream {
    /// The most a provider keeps of one stream, unless its own rules differ.
    pub const CAP: usize = 64 << 10;

    /// Keeps at most `cap` bytes of what was written.
    #[must_use]
    pub fn capped(mut bytes: Vec<u8>, cap: usize) -> Stream {
        let truncated = bytes.len() > cap;
        bytes.truncate(cap);
        Stream { bytes, truncated }
    }
}

/// A snippet's result. Any exit code is a result, 124 with `timed_out` too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptOutput {
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// Exit code.
    pub exit_code: i32,
    /// Whether the budget ended it.
    pub timed_out: bool,
}

/// One step of a project that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOutput {
    /// The command as the sandbox echoed it.
    pub command: Vec<u8>,
    /// The result.
    pub script: ScriptOutput,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
}

/// One file returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifact {
    /// Relative path.
    pub path: Vec<u8>,
    /// Content.
    pub content: Vec<u8>,
}

/// A project's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectOutput {
    /// How the plan ended.
    pub outcome: ProjectOutcome,
    /// Context of an outcome other than completed, in the provider's own words.
    pub outcome_detail: Vec<u8>,
    /// The steps that ran.
    pub steps: Vec<StepOutput>,
    /// The files asked for that exist.
    pub artifacts: Vec<Artifact>,
    /// Whether one of them did not fit.
    pub artifacts_truncated: bool,
}

/// One row of a module result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowOutput {
    /// Steps completed when at least 0, else a failure code.
    pub status: i32,
    /// Values, step-major; empty unless `status` is above 0.
    pub outputs: Vec<f64>,
}

/// A module table's result.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleOutput {
    /// How the table ended.
    pub outcome: ProjectOutcome,
    /// Context of an outcome other than completed, in the provider's own words.
    pub outcome_detail: Vec<u8>,
    /// One for each request row when completed, else none.
    pub runs: Vec<RowOutput>,
    /// Values per step.
    pub width: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// A cell's result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellOutput {
    /// Streams, exit code, timeout.
    pub script: ScriptOutput,
    /// This call began a fresh interpreter.
    pub interpreter_started: bool,
    /// The interpreter ended during this call.
    pub interpreter_ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_stream_is_a_prefix() {
        let cut = Stream::capped(vec![7; 70_000], Stream::CAP);
        assert_eq!(cut.bytes, vec![7; 65_536]);
        assert!(cut.truncated);
        let whole = Stream::capped(vec![0xff, 0xfe], 2);
        assert_eq!(whole.bytes, [0xff, 0xfe]);
        assert!(!whole.truncated);
    }
}
