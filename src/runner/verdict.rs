//! From a finished runner to a project's result.

use plimsoll_wire::proto::ProjectOutcome;

use crate::{Artifact, Asked, FrameFault, Report, ReportKey, Step, find};

/// How the runner's container ended, once its start was seen. A container
/// whose start was never seen has no verdict: the provider reports an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited.
    Exited {
        /// With this status, when one is known.
        status: Option<i64>,
        /// The memory limit in bytes, when the engine says that it was hit.
        out_of_memory: Option<u64>,
    },
    /// The outer deadline ended it.
    Deadline,
}

/// A project's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How the plan ended.
    pub outcome: ProjectOutcome,
    /// Context of an outcome other than completed. Words of this program or
    /// of the authenticated runner; never a guest's.
    pub detail: String,
    /// The steps that ran.
    pub steps: Vec<Step>,
    /// The files asked for that exist.
    pub artifacts: Vec<Artifact>,
    /// Whether one of them did not fit.
    pub artifacts_truncated: bool,
}

impl Verdict {
    /// Reads the runner's standard output. A report that verifies counts even
    /// when the deadline passed while the container went away: it is a fact.
    /// One that is not of a plan like `asked` does not count.
    #[must_use]
    pub fn of(stdout: &[u8], key: &ReportKey, ending: Ending, asked: &Asked) -> Verdict {
        match find(stdout, key) {
            Ok(frame) => match Report::decode(frame.body) {
                Some(report) if report.answers(asked) => Verdict::reported(report),
                Some(_) => Verdict::bare(
                    ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR,
                    "the runner's report is not of this plan",
                ),
                None => Verdict::bare(
                    ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR,
                    "could not parse sandbox result",
                ),
            },
            Err(fault) => Verdict::unreported(fault, ending),
        }
    }

    fn reported(report: Report) -> Verdict {
        match report {
            Report::Setup(error) => {
                Verdict::bare(ProjectOutcome::PROJECT_OUTCOME_SETUP_FAILED, error)
            }
            Report::Ran {
                steps,
                artifacts,
                artifacts_truncated,
            } => {
                let late = steps.iter().position(|step| step.timed_out);
                let (outcome, detail) = match late {
                    Some(index) => (
                        ProjectOutcome::PROJECT_OUTCOME_TIMED_OUT,
                        format!("step {} exceeded its time budget", index + 1),
                    ),
                    None => (ProjectOutcome::PROJECT_OUTCOME_COMPLETED, String::new()),
                };
                Verdict {
                    outcome,
                    detail,
                    steps,
                    artifacts,
                    artifacts_truncated,
                }
            }
        }
    }

    fn unreported(fault: FrameFault, ending: Ending) -> Verdict {
        let protocol = ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR;
        match (ending, fault) {
            (Ending::Deadline, _) => Verdict::bare(
                ProjectOutcome::PROJECT_OUTCOME_TIMED_OUT,
                "run exceeded the time budget",
            ),
            (Ending::Exited { .. }, FrameFault::Unauthenticated) => {
                Verdict::bare(protocol, "no authenticated runner report")
            }
            (
                Ending::Exited {
                    status,
                    out_of_memory,
                },
                FrameFault::None,
            ) => {
                let mut detail = String::from("the runner did not report");
                if let Some(status) = status {
                    detail.push_str(&format!(" (container exit {status})"));
                }
                if let Some(limit) = out_of_memory {
                    detail.push_str(&format!(
                        " (out of memory): the limit is {} MiB",
                        limit >> 20
                    ));
                }
                Verdict::bare(protocol, detail)
            }
        }
    }

    fn bare(outcome: ProjectOutcome, detail: impl Into<String>) -> Verdict {
        Verdict {
            outcome,
            detail: detail.into(),
            steps: Vec::new(),
            artifacts: Vec::new(),
            artifacts_truncated: false,
        }
    }
}
