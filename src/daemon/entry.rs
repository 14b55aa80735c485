//! The daemon as a subcommand: arguments, runtime, exit status.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    panic::{self, AssertUnwindSafe},
    time::{Duration, Instant},
};

use crate::{
    config::{Environment, Settings, help},
    faults::Faults,
    log::Log,
    process, shortage,
    start::{self, Exit},
    stop,
};

/// Threads that answer requests; runs have their own.
const MAX_WORKERS: usize = 8;
/// One for each run at the highest concurrency, and some for everything else.
const MAX_BLOCKING_THREADS: usize = 1024 + 64;

/// The longest the rest of the log is waited for, behind every other drain.
const LOG_DRAIN: Duration = Duration::from_secs(5);

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Serve,
    Help,
    Unexpected(OsString),
}

/// Runs the daemon with the arguments that follow its subcommand and returns
/// the exit status. Blocks until the daemon has stopped.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let exit = match asked(arguments) {
        Asked::Help => {
            // A reader that went away is no failure of help.
            let _ = io::stdout().write_all(help().as_bytes());
            Exit::Ok
        }
        Asked::Unexpected(argument) => {
            let text = format!(
                "unexpected argument {:?}: the daemon takes none\n\n{}",
                argument.to_string_lossy(),
                help()
            );
            let _ = io::stderr().write_all(text.as_bytes());
            Exit::Configuration
        }
        Asked::Serve => serve(),
    };
    exit.code()
}

/// `-h`, `--help` or `help` alone is help; a daemon that ignored any other
/// argument would leave its operator believing that a setting is in force.
fn asked(arguments: impl IntoIterator<Item = OsString>) -> Asked {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_help = |argument: &OsStr| argument == "-h" || argument == "--help" || argument == "help";
    match arguments.as_slice() {
        [] => Asked::Serve,
        [only] if is_help(only) => Asked::Help,
        [first, second, ..] if is_help(first) => Asked::Unexpected(second.clone()),
        [first, ..] => Asked::Unexpected(first.clone()),
    }
}

fn serve() -> Exit {
    process::guard();
    let environment = Environment::of_process();
    let log = Log::new(Settings::log_format(&environment), io::stderr());
    let exit = serve_with(environment, &log);
    log.close(Instant::now() + LOG_DRAIN);
    exit
}

fn serve_with(environment: Environment, log: &Log) -> Exit {
    let faults = Faults::report_to(log.clone());
    let not_started = |error: &str| {
        log.error("plimsolld could not start")
            .text("error", error)
            .end();
        Exit::Environment
    };
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get().min(MAX_WORKERS));
    if let Err(shortage) = shortage::check(workers) {
        return not_started(&shortage.to_string());
    }
    let runtime = faults.while_making_runtime(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .enable_all()
            .build()
    });
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return not_started(&format!("the runtime cannot be made: {error}")),
    };
    if let Err(error) = log.detach() {
        return not_started(&format!("the log's thread cannot be started: {error}"));
    }
    let ran = panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(start::run(environment, log.clone(), stop::requested))
    }));
    // A guest that still runs must not keep the process, after a fault neither.
    runtime.shutdown_background();
    ran.unwrap_or(Exit::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Asked {
        asked(arguments.iter().map(OsString::from))
    }

    #[test]
    fn arguments() {
        assert_eq!(of(&[]), Asked::Serve);
        for help in ["-h", "--help", "help"] {
            assert_eq!(of(&[help]), Asked::Help);
        }
        let unexpected = |argument: &str| Asked::Unexpected(argument.into());
        assert_eq!(of(&["--port", "1"]), unexpected("--port"));
        assert_eq!(of(&["--help", "--port"]), unexpected("--port"));
        assert_eq!(of(&["--color=never"]), unexpected("--color=never"));
        assert_eq!(of(&[""]), unexpected(""));
    }
}
