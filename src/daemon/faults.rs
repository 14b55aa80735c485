//! Panics: where one was goes to the log, and one while the runtime is made
//! ends the process.

use std::{
    panic, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{exit::Exit, log::Log};

/// What stands for a place outside our own sources: its path would tell how
/// and where this program was built.
const ELSEWHERE: &str = "a dependency";

/// Reports panics to the log from when it is made.
pub(crate) struct Faults {
    making_runtime: Arc<AtomicBool>,
}

impl Faults {
    /// Installs the process's panic hook. A panic's place goes to the log; its
    /// text does not, since it may quote what the program choked on, such as a
    /// caller's code.
    pub(crate) fn report_to(log: Log) -> Faults {
        let making_runtime = Arc::new(AtomicBool::new(false));
        let making = Arc::clone(&making_runtime);
        panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or_else(
                || ELSEWHERE.to_owned(),
                |at| place(at.file(), at.line(), at.column()),
            );
            if let Some(exit) = told(&log, &place, making.load(Ordering::SeqCst)) {
                process::exit(exit.code().into());
            }
        }));
        Faults { making_runtime }
    }

    /// Makes the runtime. A panic in here does not come back: where the system
    /// refuses a thread the runtime panics and then waits for the threads it
    /// has, which wait for it. Nothing is bound or open yet, so the process
    /// ends on the spot.
    pub(crate) fn while_making_runtime<T>(&self, make: impl FnOnce() -> T) -> T {
        self.making_runtime.store(true, Ordering::SeqCst);
        let made = make();
        self.making_runtime.store(false, Ordering::SeqCst);
        made
    }
}

/// Writes a panic's line; `Some` is the status the process must end with now.
fn told(log: &Log, place: &str, making_runtime: bool) -> Option<Exit> {
    if making_runtime {
        log.error("plimsolld could not start")
            .text("error", "the runtime cannot be made")
            .text("location", place)
            .end();
        return Some(Exit::Environment);
    }
    log.error("internal fault; please report it")
        .text("location", place)
        .end();
    None
}

/// The file, line and column of a panic in our own sources.
fn place(file: &str, line: u32, column: u32) -> String {
    // This file's own path tells where the sources lie, as the compiler saw it.
    let root = file!()
        .strip_suffix("src/daemon/faults.rs")
        .unwrap_or_default();
    match file.strip_prefix(root) {
        Some(own) if own.starts_with("src/") || own.starts_with("cmd/") => {
            format!("{own}:{line}:{column}")
        }
        _ => ELSEWHERE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Format, test_support};

    #[test]
    fn only_our_own_files_are_named() {
        assert_eq!(place(file!(), 3, 4), "src/daemon/faults.rs:3:4");
        for file in [
            "/home/someone/.cargo/registry/src/index.example.com-1949cf8c6b5b557f/tokio-1.0.0/src/signal/unix.rs",
            "/rustc/0123456789abcdef/library/core/src/option.rs",
            "/home/someone/project/target/debug/build/x/out/y.rs",
            "tokio-1.0.0/src/signal/unix.rs",
            "",
        ] {
            assert_eq!(place(file, 1, 2), "a dependency", "{file}");
        }
    }

    #[test]
    fn a_panic_ends_the_process_only_while_the_runtime_is_made() {
        let (log, kept) = test_support::log(Format::Json);
        assert_eq!(told(&log, "a dependency", true), Some(Exit::Environment));
        assert_eq!(told(&log, "src/x.rs:1:2", false), None);
        let lines = kept.lines();
        assert!(lines[0].contains(r#""plimsolld could not start""#));
        assert!(lines[0].ends_with(r#""location":"a dependency"}"#));
        assert!(
            lines[1].contains(r#""internal fault; please report it","location":"src/x.rs:1:2"}"#)
        );
    }
}
