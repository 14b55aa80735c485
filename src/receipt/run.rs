//! The one run of a receipt's bundle, after the whole bundle was verified.

use plimsoll_attestation::{
    Fault, PublicKey,
    bundle::{Call, Visitor, verify},
    statement::SessionClose,
};
use plimsoll_record::Digest;
use plimsoll_wire::proto::{ProjectResult, ProjectRun, RunRecord, RunRequest, RunResponse};

use crate::outcome::project;

/// A project's run that was verified with its whole bundle.
#[derive(Debug)]
pub struct Run {
    /// Its line, from 1.
    pub line: u64,
    /// Digest of the line without its link.
    pub entry_sha256: String,
    /// SHA-256 of the whole bundle.
    pub bundle_sha256: String,
    /// The line's bytes, without the newline.
    pub bytes: Vec<u8>,
    /// The signed record.
    pub record: RunRecord,
    /// The stored request; it holds a project.
    pub request: RunRequest,
    /// The stored answer; it holds a project's result.
    pub response: RunResponse,
}

/// Why a bundle is not a receipt's.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It does not verify.
    #[error("the bundle does not verify: {}", .0.reason().text())]
    Evidence(Box<Fault>),
    /// More than one call.
    #[error("the bundle holds {0} calls; a receipt's holds one")]
    Many(u64),
    /// No call.
    #[error("the bundle holds no call")]
    None,
    /// A call that is no receipt's, or lines a receipt's bundle does not have.
    #[error("{0}")]
    Other(&'static str),
}

impl Run {
    /// Verifies a bundle and takes its run: exactly one answered project call
    /// outside a session, and the checkpoint after it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn read(bundle: &[u8], key: &PublicKey) -> Result<Run, RunError> {
        let mut taken = Taken::default();
        let keys = std::slice::from_ref(key);
        let report = verify(bundle, keys, &mut taken)
            .map_err(|fault| RunError::Evidence(Box::new(fault)))?;
        match (report.records, taken.first) {
            (0, _) | (_, None) => Err(RunError::None),
            (1, Some(mut run)) => {
                if !run.record.session.is_empty() {
                    return Err(RunError::Other("the call belongs to a session"));
                }
                if report.lines != 2 || report.checkpoints.len() != 1 || taken.closes > 0 {
                    return Err(RunError::Other(
                        "a receipt's bundle is one call and one checkpoint",
                    ));
                }
                let Some(response) = run.response.take() else {
                    return Err(RunError::Other("the call has no answer"));
                };
                if project(&run.request, &response).is_none() {
                    return Err(RunError::Other("the call runs no project"));
                }
                Ok(Run {
                    line: run.line,
                    entry_sha256: run.entry_sha256,
                    bundle_sha256: Digest::of(bundle).to_hex(),
                    bytes: run.bytes,
                    record: run.record,
                    request: run.request,
                    response,
                })
            }
            (many, _) => Err(RunError::Many(many)),
        }
    }

    /// The project and its result.
    #[must_use]
    pub fn project(&self) -> Option<(&ProjectRun, &ProjectResult)> {
        project(&self.request, &self.response)
    }
}

/// Keeps the first call; a hostile bundle of many costs no memory.
#[derive(Default)]
struct Taken {
    first: Option<First>,
    closes: u64,
}

struct First {
    line: u64,
    entry_sha256: String,
    bytes: Vec<u8>,
    record: RunRecord,
    request: RunRequest,
    response: Option<RunResponse>,
}

impl Visitor for Taken {
    fn call(&mut self, call: &Call<'_>) {
        if self.first.is_none() {
            let content = call.digests.content;
            self.first = Some(First {
                line: call.line,
                entry_sha256: content.map_or_else(String::new, |digest| digest.to_hex()),
                bytes: call.bytes.to_vec(),
                record: call.record.clone(),
                request: call.request.clone(),
                response: call.response.clone(),
            });
        }
    }

    fn close(&mut self, _: u64, _: &SessionClose) {
        self.closes += 1;
    }
}
