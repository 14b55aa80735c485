//! `--follow`: a bundle that is still being written.

use std::{
    path::Path,
    sync::mpsc::{RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use plimsoll_attestation::{
    bundle::{
        Call, FollowFault, Followed, Follower, VerifyOptions,
        disk::{Disk, OsDisk},
    },
    statement::SessionClose,
};
use plimsoll_console::{Class, Console, Failure, escape, files::plain_words, signals::Interrupts};

use super::{
    anchor::Anchors,
    check::{Asked, Checked, Pass, Verdict, Watcher},
    shown,
};
use crate::policy::Policies;

/// How often a file that does not grow is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What must be said once where a tier is shown.
const QUALIFIED: &str = "the tier is stated by the daemon; not hardware attestation";

/// Follows a bundle until a signal or the end of its time, then judges what was
/// asked.
pub fn one(
    console: &Console,
    file: &Path,
    asked: Asked,
    anchors: &mut Anchors,
    lasts: Option<Duration>,
    interrupts: &Interrupts,
) -> Verdict {
    let (signalled, signals) = channel();
    interrupts.on_first(move |_| {
        // Nobody listens once the following has ended by itself.
        let _ = signalled.send(());
    });
    let mut verdict = Verdict::new(file, &asked);
    let keys = asked.keys.clone();
    let mut follower = match Follower::open(&OsDisk, file, &keys) {
        Ok(follower) => follower,
        Err(fault) => {
            verdict.failures.push(unfollowed(file, &fault));
            return verdict;
        }
    };
    anchors.begin();
    // Too long to count is without end.
    let end = lasts.and_then(|lasts| Instant::now().checked_add(lasts));
    let mut pass = Pass::new(asked, anchors, Watcher::Feed(Feed::new(console)));
    let mut announced = 0;
    let mut taken = follower.catch_up(VerifyOptions::default(), &mut pass);
    let fault = loop {
        match taken {
            Err(fault) => break Some(fault),
            Ok(followed) => {
                announce(console, &follower, &mut announced);
                if let Followed::UpToDate { .. } = followed {
                    // Whoever reads along sees each call when it is checked.
                    let _ = console.flush();
                    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
                    let wait = left.map_or(POLL, |left| left.min(POLL));
                    let ended = match signals.recv_timeout(wait) {
                        Err(RecvTimeoutError::Timeout) => left == Some(Duration::ZERO),
                        _ => true,
                    };
                    if ended {
                        break None;
                    }
                }
            }
        }
        taken = follower.step(&mut pass);
    };
    let key_id = follower.report().key_id.clone();
    let checked = match fault {
        Some(fault) => Checked {
            result: Err(fault),
            key_id,
        },
        None => finished(follower, &mut pass, key_id),
    };
    verdict.announced = checked
        .result
        .as_ref()
        .is_ok_and(|report| report.lines == announced);
    pass.conclude(console, &mut verdict, checked, &keys);
    verdict
}

fn finished<D: Disk>(
    follower: Follower<'_, '_, D>,
    pass: &mut Pass<'_>,
    key_id: String,
) -> Checked {
    let result = follower.finish(pass);
    let key_id = match &result {
        Ok(report) => report.key_id.clone(),
        Err(_) => key_id,
    };
    Checked { result, key_id }
}

/// Says so when everything up to a new checkpoint is whole, or why not.
fn announce<D: Disk>(console: &Console, follower: &Follower<'_, '_, D>, announced: &mut u64) {
    let report = follower.report();
    if !report.ends_in_checkpoint() || report.lines == *announced {
        return;
    }
    let line = match follower.whole() {
        Ok(()) => {
            *announced = report.lines;
            shown::success_line(report)
        }
        Err(fault) => format!(
            "line {} is a checkpoint, and the file is not whole there: {}",
            report.lines,
            fault.reason().text()
        ),
    };
    let _ = console.print(&format!("{line}\n"));
}

fn unfollowed(file: &Path, fault: &FollowFault) -> Failure {
    let (fact, advice) = match fault {
        FollowFault::Missing => (
            "cannot be followed: it does not exist".to_owned(),
            "Name a bundle that is there, be it empty.",
        ),
        FollowFault::Open(error) => (
            format!("cannot be followed: {}", plain_words(error)),
            "Make it readable for this user, or name another file.",
        ),
        _ => (
            "cannot be followed: it is not a regular file".to_owned(),
            "Name a regular file; verify reads a pipe to its end.",
        ),
    };
    Failure::new(Class::Io, fact, advice).file(file)
}

/// Prints each call as it is checked.
pub struct Feed<'c> {
    console: &'c Console,
    qualified: bool,
}

impl<'c> Feed<'c> {
    fn new(console: &'c Console) -> Self {
        Feed {
            console,
            qualified: false,
        }
    }

    /// A call's line, and the policies it is the first not to meet.
    pub fn call(&mut self, call: &Call<'_>, policies: &Policies) {
        let record = &call.record;
        let kind = if call.is_single_run() {
            "single run".to_owned()
        } else {
            format!(
                "session {} call {}",
                short(&record.session),
                record.sequence
            )
        };
        let outcome = if record.unanswered.is_empty() {
            String::new()
        } else {
            format!(", unanswered {}", escape::line(&record.unanswered))
        };
        self.print(&format!(
            "line {}: {kind} on {} ({}){outcome}, record {}, request {}",
            call.line,
            escape::line_cut(&record.provider, 100),
            escape::line_cut(&record.isolation, 100),
            record.record_sha256,
            record.request_sha256
        ));
        if !self.qualified {
            self.qualified = true;
            self.print(QUALIFIED);
        }
        for flag in policies.broken_at(call.line) {
            self.console.warning(&format!(
                "the call on line {} does not meet {flag}",
                call.line
            ));
        }
    }

    /// A session's end.
    pub fn close(&mut self, line: u64, close: &SessionClose) {
        self.print(&format!(
            "line {line}: session {} closed after {} calls",
            short(&close.session),
            close.calls
        ));
    }

    fn print(&self, line: &str) {
        let _ = self.console.print(&format!("{line}\n"));
    }
}

fn short(digest: &str) -> String {
    format!(
        "{}…",
        escape::line(digest.chars().take(12).collect::<String>())
    )
}
