//! What the count of a request's list elements is held against.
use plimsoll_wire::proto::{RunRequest, run_request::Payload};

/// The bound that targets count with: small, so that short inputs pass it.
pub const MOST: usize = 3;

/// The elements of the longest list of a request.
pub fn longest(request: &RunRequest) -> usize {
    let rule = request.software_rule.as_option();
    let mut longest = rule.map_or(0, |rule| rule.identities.len());
    match &request.payload {
        Some(Payload::Project(run)) => {
            longest = longest
                .max(run.files.len())
                .max(run.steps.len())
                .max(run.artifacts.len());
        }
        Some(Payload::Module(run)) => {
            let widths = run.rows.iter().map(|row| row.values.len());
            longest = widths.fold(longest.max(run.rows.len()), usize::max);
        }
        Some(Payload::Cell(run)) => longest = longest.max(run.files.len()),
        Some(Payload::Javascript(_)) | None => {}
    }
    longest
}
