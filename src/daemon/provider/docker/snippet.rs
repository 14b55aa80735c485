//! Snippets: one Node.js process that reads the code from standard input.

use zeroize::Zeroizing;

use super::{
    call::{Call, Command, Exit, Outcome},
    execution::{Execution, Role},
    limits::STREAM_CAP,
    pool::Pool,
};
use crate::provider::{Answer, ScriptOutput};

/// A timed-out command's exit code.
const TIMED_OUT: i32 = 124;
/// Node.js, reading its program from standard input.
pub(super) const NODE: [&str; 2] = ["node", "-"];

/// Runs a snippet. Every exit code is a result.
pub(super) async fn run(
    execution: &Execution,
    pool: Option<&Pool>,
    code: String,
    call: &Call,
) -> Answer<ScriptOutput> {
    let image = execution.image(Role::Snippet);
    let command = Command {
        role: Role::Snippet,
        environment: &image.environment,
        arguments: &NODE,
        input: Zeroizing::new(code.into_bytes()),
        stdout_cap: STREAM_CAP,
        stderr_cap: STREAM_CAP,
    };
    let Outcome {
        exit,
        stdout,
        stderr,
        ..
    } = call.run(execution, pool, command).await?;
    Ok(ScriptOutput {
        stdout,
        stderr,
        exit_code: match exit {
            Exit::Code(code) => code,
            Exit::Budget => TIMED_OUT,
        },
        timed_out: exit == Exit::Budget,
    })
}
