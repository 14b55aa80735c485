//! Rules a request must keep before anything of it runs.
//!
//! The checks of one message run in the order given here, so client and daemon
//! report the same first fault. All lengths are bytes.

use std::{collections::HashSet, time::Duration};

use crate::{
    Code, PROTOCOL, Reason, Refusal, Rule, Tier,
    limits::{
        MAX_ARTIFACTS, MAX_CODE_BYTES, MAX_FILES, MAX_FILES_BYTES, MAX_GRANT_PROFILE_BYTES,
        MAX_MODULE_RESULT_BYTES, MAX_MODULE_ROWS, MAX_MODULE_STEPS, MAX_OWNER_BYTES,
        MAX_PATH_BYTES, MAX_ROW_VALUES, MAX_RUN, MAX_STEP_BYTES, MAX_STEPS, MAX_TRACE_ID_BYTES,
    },
    proto::{
        CellRun, JavaScriptRun, ModuleRun, ProjectFile, ProjectRun, RunRequest,
        run_request::Payload,
    },
};

/// Checks the protocol number; comes before anything else is interpreted.
///
/// # Errors
/// Reason protocol: missing (`invalid_argument`) or another (`unimplemented`).
pub fn protocol(number: u32) -> Result<(), Refusal> {
    match number {
        PROTOCOL => Ok(()),
        0 => Err(Refusal {
            member: "protocol".to_owned(),
            ..Refusal::new(
                Code::InvalidArgument,
                Reason::Protocol,
                format!("state a protocol number; this daemon serves protocol {PROTOCOL}"),
            )
        }),
        other => Err(Refusal {
            member: "protocol".to_owned(),
            ..Refusal::new(
                Code::Unimplemented,
                Reason::Protocol,
                format!(
                    "this daemon serves protocol {PROTOCOL}; the request states {other}; nothing ran"
                ),
            )
        }),
    }
}

/// Checks a request's floor; `None` is no floor. `none` is no floor name here.
///
/// # Errors
/// `invalid_argument`, reason request.
pub fn floor(name: &str) -> Result<Option<Tier>, Refusal> {
    match Tier::parse(name) {
        _ if name.is_empty() => Ok(None),
        Some(tier) if tier > Tier::None => Ok(Some(tier)),
        _ => Err(Refusal::invalid(
            "minimumIsolation",
            "minimum isolation must be empty, process, container, kernel or vm",
        )),
    }
}

/// The budget a request states, cut to the RPC layer's ceiling; `None` asks for
/// the provider's default. Never refused.
#[must_use]
pub fn timeout(timeout_ms: i32) -> Option<Duration> {
    match u64::try_from(timeout_ms) {
        Ok(ms) if ms > 0 => Some(Duration::from_millis(ms).min(MAX_RUN)),
        _ => None,
    }
}

/// Whether a trace ID may be recorded: 1 to 64 bytes of `[A-Za-z0-9._:-]`.
#[must_use]
pub fn is_trace_id(id: &str) -> bool {
    is_name(id, MAX_TRACE_ID_BYTES)
}

/// Whether a session owner's name is well formed: as a trace ID.
#[must_use]
pub fn is_owner(owner: &str) -> bool {
    is_name(owner, MAX_OWNER_BYTES)
}

fn is_name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

/// Checks the length of a grant profile's name.
///
/// # Errors
/// `invalid_argument`, reason request.
pub fn grant_profile(name: &str) -> Result<(), Refusal> {
    if name.len() > MAX_GRANT_PROFILE_BYTES {
        return Err(Refusal::invalid(
            "grantProfile",
            format!("a grant profile's name has at most {MAX_GRANT_PROFILE_BYTES} bytes"),
        ));
    }
    Ok(())
}

/// Checks a single run's payload. A cell is refused: it needs a session.
///
/// # Errors
/// `invalid_argument`, reason request, for the first fault.
pub fn payload(payload: Option<&Payload>) -> Result<(), Refusal> {
    match payload {
        None => Err(Refusal::invalid(
            "",
            "exactly one of javascript, project or module is required",
        )),
        Some(Payload::Cell(_)) => Err(Refusal::invalid("cell", "a cell needs a session")),
        Some(Payload::Javascript(run)) => javascript(run),
        Some(Payload::Project(run)) => project(run),
        Some(Payload::Module(run)) => module(run),
    }
}

/// The grant profile a payload names; only snippets and projects carry one.
#[must_use]
pub fn grant_of(payload: Option<&Payload>) -> &str {
    match payload {
        Some(Payload::Javascript(run)) => &run.grant_profile,
        Some(Payload::Project(run)) => &run.grant_profile,
        _ => "",
    }
}

/// Everything a client checks of a single run before it sends it. The protocol
/// number is left to the daemon: a request file is sent exactly as given.
///
/// # Errors
/// `invalid_argument`, reason request, for the first fault.
pub fn single_run(request: &RunRequest) -> Result<Rule, Refusal> {
    floor(&request.minimum_isolation)?;
    let rule = Rule::parse(request.software_rule.as_option())?;
    if !request.trace_id.is_empty() && !is_trace_id(&request.trace_id) {
        return Err(Refusal::invalid(
            "traceId",
            "a trace ID is 1 to 64 of A-Z a-z 0-9 . _ : -",
        ));
    }
    payload(request.payload.as_ref())?;
    grant_profile(grant_of(request.payload.as_ref()))?;
    Ok(rule)
}

/// Checks a snippet.
///
/// # Errors
/// `invalid_argument`, reason request.
pub fn javascript(run: &JavaScriptRun) -> Result<(), Refusal> {
    code("javascript.code", &run.code)
}

/// Checks a cell: language, code, files.
///
/// # Errors
/// `invalid_argument`, reason request.
pub fn cell(run: &CellRun) -> Result<(), Refusal> {
    if !matches!(run.language.as_str(), "javascript" | "python") {
        return Err(Refusal::invalid(
            "cell.language",
            "a cell's language is javascript or python",
        ));
    }
    code("cell.code", &run.code)?;
    files("cell", &run.files)
}

/// Checks a project: steps, files, artifacts.
///
/// # Errors
/// `invalid_argument`, reason request.
pub fn project(run: &ProjectRun) -> Result<(), Refusal> {
    if run.steps.is_empty() {
        return Err(Refusal::invalid(
            "project.steps",
            "at least one step is required",
        ));
    }
    if run.steps.len() > MAX_STEPS {
        return Err(Refusal::invalid(
            "project.steps",
            format!(
                "a project has at most {MAX_STEPS} steps, this one {}",
                run.steps.len()
            ),
        ));
    }
    for (i, step) in run.steps.iter().enumerate() {
        let member = || format!("project.steps[{i}]");
        if step.contains('\0') {
            return Err(Refusal::invalid(member(), "a step holds a NUL character"));
        }
        if step.len() > MAX_STEP_BYTES {
            return Err(Refusal::invalid(
                member(),
                format!(
                    "a step has at most {MAX_STEP_BYTES} bytes, this one {}",
                    step.len()
                ),
            ));
        }
    }
    files("project", &run.files)?;
    if run.artifacts.len() > MAX_ARTIFACTS {
        return Err(Refusal::invalid(
            "project.artifacts",
            format!(
                "a project names at most {MAX_ARTIFACTS} artifacts, this one {}",
                run.artifacts.len()
            ),
        ));
    }
    let mut seen = HashSet::new();
    for (i, artifact) in run.artifacts.iter().enumerate() {
        let member = || format!("project.artifacts[{i}]");
        path(artifact)
            .map_err(|fault| Refusal::invalid(member(), fault.about("artifact", artifact)))?;
        if !seen.insert(artifact.as_str()) {
            return Err(Refusal::invalid(
                member(),
                format!("artifact path {} is repeated", quoted(artifact)),
            ));
        }
    }
    Ok(())
}

/// Checks a module table, its size and the size of what it can answer.
///
/// # Errors
/// `invalid_argument`, reason request.
pub fn module(run: &ModuleRun) -> Result<(), Refusal> {
    let invalid = |member: &str, message: String| Err(Refusal::invalid(member, message));
    let first = run
        .model
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric());
    if !first || !is_stem(&run.model) {
        return invalid(
            "module.model",
            "a model's name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter or digit"
                .into(),
        );
    }
    let Some(width) = run.rows.first().map(|row| row.values.len()) else {
        return invalid("module.rows", "at least one row is required".into());
    };
    if run.rows.len() > MAX_MODULE_ROWS {
        return invalid(
            "module.rows",
            format!(
                "a table has at most {MAX_MODULE_ROWS} rows, this one {}",
                run.rows.len()
            ),
        );
    }
    if !(1..=MAX_ROW_VALUES).contains(&width) {
        return invalid(
            "module.rows[0]",
            format!("a row has 1 to {MAX_ROW_VALUES} values, this one {width}"),
        );
    }
    for (i, row) in run.rows.iter().enumerate() {
        let member = format!("module.rows[{i}]");
        if row.values.len() != width {
            return invalid(
                &member,
                format!(
                    "a row has {} values, the first row {width}",
                    row.values.len()
                ),
            );
        }
        if !row.values.iter().all(|v| v.is_finite()) {
            return invalid(&member, "a value is not finite".into());
        }
    }
    for (member, value) in [("module.endTime", run.end_time), ("module.step", run.step)] {
        // Written so that NaN fails too.
        if !(value > 0.0 && value.is_finite()) {
            return invalid(member, "end_time and step are finite and above zero".into());
        }
    }
    let steps = run.end_time / run.step;
    if steps > MAX_MODULE_STEPS {
        return invalid(
            "module.endTime",
            "end_time/step is over 1000000 steps".into(),
        );
    }
    // At most 1 000 002, so neither the cast nor the products overflow.
    let steps = steps.trunc() as u64 + 2;
    if 20 + run.rows.len() as u64 * (4 + 8 * steps) > MAX_MODULE_RESULT_BYTES {
        return invalid(
            "module",
            format!("the table's results could pass {MAX_MODULE_RESULT_BYTES} bytes"),
        );
    }
    Ok(())
}

fn is_stem(model: &str) -> bool {
    (1..=64).contains(&model.len())
        && model
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn code(member: &str, code: &str) -> Result<(), Refusal> {
    if code.is_empty() {
        return Err(Refusal::invalid(member, "code is required"));
    }
    if code.contains('\0') {
        return Err(Refusal::invalid(member, "code holds a NUL character"));
    }
    if code.len() > MAX_CODE_BYTES {
        return Err(Refusal::invalid(
            member,
            format!(
                "code has at most {MAX_CODE_BYTES} bytes, this one {}",
                code.len()
            ),
        ));
    }
    Ok(())
}

fn files(parent: &str, files: &[ProjectFile]) -> Result<(), Refusal> {
    if files.len() > MAX_FILES {
        return Err(Refusal::invalid(
            format!("{parent}.files"),
            format!(
                "a request has at most {MAX_FILES} files, this one {}",
                files.len()
            ),
        ));
    }
    let mut seen = HashSet::new();
    let mut total = 0usize;
    for (i, file) in files.iter().enumerate() {
        let member = || format!("{parent}.files[{i}]");
        path(&file.path).map_err(|fault| {
            Refusal::invalid(member() + ".path", fault.about("file", &file.path))
        })?;
        if !seen.insert(file.path.as_str()) {
            return Err(Refusal::invalid(
                member() + ".path",
                format!("file path {} is repeated", quoted(&file.path)),
            ));
        }
        total = total.saturating_add(file.content.len());
        if total > MAX_FILES_BYTES {
            return Err(Refusal::invalid(
                member() + ".content",
                format!("file contents have at most {MAX_FILES_BYTES} bytes together"),
            ));
        }
    }
    Ok(())
}

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFault {
    /// Longer than [`MAX_PATH_BYTES`].
    TooLong,
    /// Empty, absolute, not in its shortest form, or with a backslash or a
    /// control character.
    Unsafe,
}

impl PathFault {
    fn about(self, what: &str, path: &str) -> String {
        match self {
            PathFault::TooLong => format!("a path has at most {MAX_PATH_BYTES} bytes"),
            PathFault::Unsafe => format!("unsafe {what} path {}", quoted(path)),
        }
    }
}

/// Checks a path of a file or artifact: relative, in its shortest form, no
/// `..`, no backslash, no control character. Names compare as exact bytes.
///
/// # Errors
/// [`PathFault`].
pub fn path(path: &str) -> Result<(), PathFault> {
    if path.len() > MAX_PATH_BYTES {
        return Err(PathFault::TooLong);
    }
    let clean = path.split('/').all(|s| !matches!(s, "" | "." | ".."));
    if clean && !path.contains('\\') && !path.contains(char::is_control) {
        Ok(())
    } else {
        Err(PathFault::Unsafe)
    }
}

/// A name as it appears in a message: quoted, escaped, cut.
fn quoted(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((at, _)) => format!("{:?} (cut)", &text[..at]),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
