//! `--anchor` and `--write-anchor`: how far a bundle was seen to reach.

use std::path::{Path, PathBuf};

use plimsoll_attestation::{
    PublicKey, SigningKey,
    anchor::{AnchorCheck, AnchorFault, AnchorFile, Kept, Reach},
    bundle::{Report, SeenLine, Visitor},
};
use plimsoll_console::{Console, Failure};

use super::flags::Form;
use crate::{
    anchors::{self, DISK, Patience},
    keys, signing,
};

/// The anchors of one command line.
pub struct Anchors {
    accepted: Vec<PublicKey>,
    /// Must be met.
    asked: Option<Watched>,
    /// Must be met if it is there, and is moved forward.
    written: Option<(Watched, SigningKey)>,
    outcome: Outcome,
}

/// An anchor and what the pass saw of its bundle.
struct Watched {
    path: PathBuf,
    check: AnchorCheck,
    /// Why it could not be read.
    unread: Option<AnchorFault>,
}

/// What came of the anchors.
#[derive(Default)]
pub struct Outcome {
    failed: bool,
    /// The anchor that was asked for, and the line it saw.
    met: Option<Met>,
    kept: Option<(PathBuf, Kept, u64)>,
}

/// An anchor that the bundle meets.
#[derive(Clone, Debug)]
pub struct Met {
    pub path: PathBuf,
    /// The line it saw.
    pub line: u64,
}

impl Anchors {
    /// Loads the keys; the anchors themselves are read when a bundle is.
    ///
    /// # Errors
    /// Class `key` or `io`, exit 2.
    pub fn read(console: &Console, form: &Form, verifying: &[PublicKey]) -> Result<Self, Failure> {
        let mut accepted = verifying.to_vec();
        for file in &form.anchor_pub {
            let key = keys::public(console, file)?;
            if accepted.iter().all(|known| known.id() != key.id()) {
                accepted.push(key);
            }
        }
        let written = match &form.write_anchor {
            Some(path) => {
                let key =
                    signing::key(console, form.key.as_deref(), false, "no anchor was written")?.key;
                if accepted.iter().all(|known| known.id() != key.public().id()) {
                    console.note(&format!(
                        "the anchor will be signed by {}, which is none of --pub and \
                         --anchor-pub: who reads it must name that key with --anchor-pub",
                        key.public().id()
                    ));
                }
                Some((Watched::new(path), key))
            }
            None => None,
        };
        Ok(Anchors {
            accepted,
            asked: form.anchor.as_deref().map(Watched::new),
            written,
            outcome: Outcome::default(),
        })
    }

    /// Reads the anchors there are, before the bundle is.
    pub fn begin(&mut self) {
        for watched in self
            .asked
            .iter_mut()
            .chain(self.written.iter_mut().map(|(w, _)| w))
        {
            let file = AnchorFile::new(&DISK, &watched.path, self.accepted.clone());
            match file.read() {
                Ok(anchor) => watched.check = AnchorCheck::new(anchor),
                Err(fault) => watched.unread = Some(fault),
            }
        }
    }

    /// The one line of a bundle that must be seen; `Err` when there are two.
    pub fn line_wanted(&self) -> Result<Option<u64>, ()> {
        let written = self.written.as_ref().map(|(watched, _)| watched);
        let mut lines = self
            .asked
            .iter()
            .chain(written)
            .filter_map(|watched| watched.check.line_wanted());
        match (lines.next(), lines.next()) {
            (Some(first), Some(second)) if first != second => Err(()),
            (line, _) => Ok(line),
        }
    }

    /// Judges the anchors against a bundle that verified, whatever else was
    /// asked of it.
    pub fn judge(&mut self, bundle: &Path, report: &Report) -> Vec<Failure> {
        let mut failures = Vec::new();
        if let Some(watched) = &mut self.asked {
            match watched.met(bundle, report) {
                Ok(Some(line)) => {
                    self.outcome.met = Some(Met {
                        path: watched.path.clone(),
                        line,
                    });
                }
                Ok(None) => failures.push(anchors::missing(&watched.path)),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some((watched, _)) = &mut self.written {
            match watched.met(bundle, report) {
                Ok(Some(line)) if self.outcome.met.is_none() => {
                    self.outcome.met = Some(Met {
                        path: watched.path.clone(),
                        line,
                    });
                }
                Ok(_) => {}
                // One anchor named twice is one refusal.
                Err(_)
                    if self
                        .asked
                        .as_ref()
                        .is_some_and(|asked| asked.path == watched.path) => {}
                Err(failure) => failures.push(failure),
            }
        }
        self.outcome.failed = !failures.is_empty();
        failures
    }

    /// Makes the anchor of a bundle that meets everything, or moves it forward.
    pub fn keep(
        &mut self,
        console: &Console,
        bundle: &Path,
        report: &Report,
    ) -> Result<(), Failure> {
        let Some((watched, key)) = &self.written else {
            return Ok(());
        };
        let Some(reach) = Reach::of(report) else {
            return Ok(());
        };
        // The first signal ends the process; nothing needs to be asked.
        let patience = Patience::new(console, &watched.path, || false);
        let ask = |waited| patience.ask(waited);
        let file = AnchorFile::new(&DISK, &watched.path, self.accepted.clone()).while_locked(&ask);
        match file.keep(&watched.check, &reach, key) {
            Ok(kept) => {
                if kept == Kept::Created {
                    console.note(&format!(
                        "no anchor was kept yet; {} was made",
                        watched.path.display()
                    ));
                }
                self.outcome.kept = Some((watched.path.clone(), kept, reach.lines()));
                Ok(())
            }
            Err(fault) => {
                self.outcome.failed = true;
                Err(anchors::failure(&watched.path, bundle, &fault))
            }
        }
    }

    /// What came of them.
    pub fn outcome(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }
}

impl Visitor for Anchors {
    fn line(&mut self, line: &SeenLine) {
        if let Some(watched) = &mut self.asked {
            watched.check.line(line);
        }
        if let Some((watched, _)) = &mut self.written {
            watched.check.line(line);
        }
    }
}

impl Watched {
    fn new(path: &Path) -> Self {
        Watched {
            path: path.to_owned(),
            check: AnchorCheck::default(),
            unread: None,
        }
    }

    /// The line that a met anchor saw; `None` when there is no anchor.
    fn met(&mut self, bundle: &Path, report: &Report) -> Result<Option<u64>, Failure> {
        if let Some(fault) = self.unread.take() {
            return Err(anchors::failure(&self.path, bundle, &fault));
        }
        match self.check.met(Some(report)) {
            Ok(()) => Ok(self.check.line_wanted()),
            Err(fault) => Err(anchors::refused(&self.path, bundle, &fault)),
        }
    }
}

impl Outcome {
    /// The word for scripts.
    pub fn word(&self) -> &'static str {
        match (self.failed, &self.kept, &self.met) {
            (true, ..) => "failed",
            (_, Some((_, Kept::Created | Kept::Moved, _)), _) => "written",
            (_, Some(_), _) | (_, _, Some(_)) => "met",
            _ => "not_asked",
        }
    }

    /// Whether one is not met or could not be kept.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// The anchor that the bundle meets.
    pub fn met(&self) -> Option<&Met> {
        self.met.as_ref()
    }

    /// Lines for a person.
    pub fn lines(&self) -> Vec<String> {
        if self.failed {
            return Vec::new();
        }
        let met = self.met.iter().map(|met| {
            format!(
                "anchor {}: met, it saw line {}",
                anchors::name(&met.path),
                met.line
            )
        });
        let kept = self.kept.iter().map(|(path, kept, line)| {
            format!(
                "anchor {}: {}",
                anchors::name(path),
                anchors::kept_words(*kept, *line)
            )
        });
        met.chain(kept).collect()
    }
}
