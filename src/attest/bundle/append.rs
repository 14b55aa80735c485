//! Appending to a bundle file so that it is afterwards whole, or refused, and
//! never silently short.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    ops::ControlFlow,
    path::Path,
    time::Duration,
};

use plimsoll_record::Digest;

use super::{
    append_fault::{AppendError, AppendFault, Cut},
    disk::{BundleFile, Disk, Facts},
    report::Report,
    rescue,
    seal::SignedEntry,
    verify::Verification,
    visitor::{SeenLine, Visitor},
    writer::{BundleWriter, Position},
};
use crate::key::SigningKey;

/// How often the lock is tried.
pub const LOCK_POLL: Duration = Duration::from_millis(20);
/// How long the lock is waited for.
pub const LOCK_WAIT: Duration = Duration::from_secs(120);

/// Reopening after the path was found to name another file.
const MAX_REOPENS: usize = 16;

/// How a bundle file may be used.
#[derive(Clone, Copy, Default)]
pub struct Options<'s> {
    /// Append although group or others have permissions on the file.
    pub shared: bool,
    /// Fingerprint of a session this run opened and is still writing: its close
    /// may be missing. Any other open session refuses the bundle.
    pub open_session: Option<&'s str>,
    /// How far the bundle reached when it was checked before the run: an append
    /// to a bundle that has no longer those lines is refused. `None` takes the
    /// bundle as it is found.
    pub continues: Option<Position>,
    /// Asked each time before the lock is waited for again, with the time
    /// waited so far; a break gives the append up. It must not block.
    pub while_locked: Option<&'s dyn Fn(Duration) -> ControlFlow<()>>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("shared", &self.shared)
            .field("open_session", &self.open_session)
            .field("continues", &self.continues)
            .finish_non_exhaustive()
    }
}

/// Sees the bundle as it is verified, and may refuse it as a whole: an anchor
/// kept outside the file does.
pub trait Guard: Visitor {
    /// Whether the bundle may be appended to; `None` for a new or empty file.
    ///
    /// # Errors
    /// Any error refuses the append.
    fn allow(&mut self, whole: Option<&Report>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = whole;
        Ok(())
    }
}

impl Guard for () {}

/// An append that is done and synced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Appended {
    /// Line numbers of the entries, in their order.
    pub lines: Vec<u64>,
    /// Line number of the checkpoint after them.
    pub checkpoint: u64,
    /// LineDigest of the checkpoint.
    pub checkpoint_digest: Digest,
    /// LineDigest of the bundle's first line.
    pub first_line: Digest,
    /// Whether the file was made.
    pub created: bool,
}

/// Whether a run may append to this file later: regular, private unless
/// shared, writable, whole under the key. Takes no lock and changes nothing.
/// `None` for an absent or empty file.
///
/// A symbolic link to a bundle is a bundle; one that leads nowhere is refused,
/// since no new file is made where a link points.
///
/// # Errors
/// [`AppendFault`]; nothing was run.
pub fn check<D: Disk>(
    disk: &D,
    path: &Path,
    key: &SigningKey,
    options: Options<'_>,
    guard: &mut impl Guard,
) -> Result<Option<Report>, AppendFault> {
    let report = match disk.open_to_read(path).map_err(AppendFault::Open)? {
        None if disk.is_link(path).map_err(AppendFault::Open)? => return Err(AppendFault::Link),
        None => None,
        Some(mut file) => {
            usable(&file.facts().map_err(AppendFault::Open)?, options)?;
            // Code must not run when its record is known to find no place.
            disk.can_write(path).map_err(AppendFault::Open)?;
            continued(&mut file, key, options, guard)?
        }
    };
    guard.allow(report.as_ref()).map_err(AppendFault::Guard)?;
    Ok(report)
}

/// Appends entries and a checkpoint under the file's lock, and syncs them. On
/// failure the file is cut back and the entries are kept in a side file.
///
/// # Errors
/// [`AppendError`]; the bundle is as before unless [`AppendError::cut`] says
/// otherwise.
pub fn append<D: Disk>(
    disk: &D,
    path: &Path,
    key: &SigningKey,
    entries: &[SignedEntry],
    options: Options<'_>,
    guard: &mut impl Guard,
) -> Result<Appended, AppendError> {
    let attempt = match OpenBundle::open(disk, path, key, options, guard) {
        Ok(bundle) => match bundle.repeated(entries, options.open_session) {
            None => bundle.append(disk, path, entries),
            Some(fault) => Err((fault, Cut::NotNeeded)),
        },
        Err(fault) => Err((fault, Cut::NotNeeded)),
    };
    attempt.map_err(|(fault, cut)| AppendError {
        fault,
        cut,
        kept: rescue::keep_aside(disk, path, entries),
    })
}

fn usable(facts: &Facts, options: Options<'_>) -> Result<(), AppendFault> {
    if !facts.regular {
        return Err(AppendFault::NotRegular);
    }
    match facts.mode {
        Some(mode) if mode & 0o077 != 0 && !options.shared => {
            Err(AppendFault::Permissions { mode })
        }
        _ => Ok(()),
    }
}

/// Verifies an existing bundle under the key that would continue it.
fn continued(
    file: &mut impl BundleFile,
    key: &SigningKey,
    options: Options<'_>,
    guard: &mut impl Visitor,
) -> Result<Option<Report>, AppendFault> {
    if file.facts().map_err(AppendFault::Open)?.length == 0 {
        return Ok(None);
    }
    let source = file.read().map_err(AppendFault::Open)?;
    let mut verification = Verification::new(std::slice::from_ref(key.public()));
    verification
        .read(source, guard)
        .and_then(|()| verification.finish_but(options.open_session))
        .map(Some)
        .map_err(AppendFault::Evidence)
}

/// Sees whether the last line of a bundle as it was is still there. Each line
/// names the one before by digest, so with it all before it are the same.
struct Held {
    was: Position,
    digest: Option<Digest>,
}

impl Held {
    fn new(was: Option<Position>) -> Self {
        Held {
            was: was.unwrap_or_default(),
            digest: None,
        }
    }

    fn check(&self, now: Option<&Report>) -> Result<(), AppendFault> {
        let (had, has) = (self.was.lines(), now.map_or(0, |report| report.lines));
        if has < had {
            return Err(AppendFault::Shrunk { had, has });
        }
        if self.digest != self.was.last_line() {
            return Err(AppendFault::Rewritten { line: had });
        }
        Ok(())
    }
}

impl Visitor for Held {
    fn line(&mut self, line: &SeenLine) {
        if line.number == self.was.lines() {
            self.digest = Some(line.digest);
        }
    }
}

/// A bundle file whose lock is held and whose lines verified.
struct OpenBundle<'k, F> {
    file: F,
    key: &'k SigningKey,
    report: Option<Report>,
    length: u64,
    created: bool,
}

impl<'k, F: BundleFile> OpenBundle<'k, F> {
    fn open<D: Disk<File = F>>(
        disk: &D,
        path: &Path,
        key: &'k SigningKey,
        options: Options<'_>,
        guard: &mut impl Guard,
    ) -> Result<Self, AppendFault> {
        let mut held = Held::new(options.continues);
        let (mut file, created) = Self::locked(disk, path, options, &held)?;
        let report = continued(&mut file, key, options, &mut (&mut *guard, &mut held))?;
        held.check(report.as_ref())?;
        guard.allow(report.as_ref()).map_err(AppendFault::Guard)?;
        // A writer that ignores the lock would show as another length.
        let length = file.facts().map_err(AppendFault::Open)?.length;
        if length != report.as_ref().map_or(0, |report| report.bytes) {
            return Err(AppendFault::Replaced);
        }
        Ok(OpenBundle {
            file,
            key,
            report,
            length,
            created,
        })
    }

    /// Whether entries belong to a session that the bundle holds. Asked under
    /// the lock: of two processes whose daemon gave both one session, the one
    /// that comes second is refused.
    fn repeated(&self, entries: &[SignedEntry], open: Option<&str>) -> Option<AppendFault> {
        let sessions = &self.report.as_ref()?.sessions;
        let held = |session: &&str| {
            let mut known = sessions.iter().filter(|known| known.session == *session);
            known.any(|known| known.closed || open != Some(*session))
        };
        let session = entries.iter().filter_map(SignedEntry::session).find(held)?;
        Some(AppendFault::SessionHeld {
            session: session.to_owned(),
        })
    }

    /// Opens the file and takes its lock. The path may come to name another
    /// file while the lock is waited for; an append to the old one would be
    /// lost with it.
    fn locked<D: Disk<File = F>>(
        disk: &D,
        path: &Path,
        options: Options<'_>,
        held: &Held,
    ) -> Result<(F, bool), AppendFault> {
        let start = disk.instant();
        let mut made = false;
        for _ in 0..MAX_REOPENS {
            if disk.facts(path).map_err(AppendFault::Open)?.is_none() {
                // Nothing is made in place of what was there.
                held.check(None)?;
                if disk.is_link(path).map_err(AppendFault::Open)? {
                    return Err(AppendFault::Link);
                }
            }
            let (file, created) = disk.open_to_append(path).map_err(AppendFault::Open)?;
            made |= created;
            usable(&file.facts().map_err(AppendFault::Open)?, options)?;
            while !file.try_lock().map_err(AppendFault::Open)? {
                let waited = disk.instant().saturating_duration_since(start);
                if waited >= LOCK_WAIT {
                    return Err(AppendFault::Locked);
                }
                if options
                    .while_locked
                    .is_some_and(|go_on| go_on(waited).is_break())
                {
                    return Err(AppendFault::GivenUp);
                }
                disk.wait(LOCK_POLL);
            }
            let held = file.facts().map_err(AppendFault::Open)?;
            let named = disk.facts(path).map_err(AppendFault::Open)?;
            if named.is_some_and(|named| named.identity == held.identity) {
                usable(&held, options)?;
                return Ok((file, made));
            }
        }
        Err(AppendFault::Replaced)
    }

    fn append<D: Disk<File = F>>(
        mut self,
        disk: &D,
        path: &Path,
        entries: &[SignedEntry],
    ) -> Result<Appended, (AppendFault, Cut)> {
        let length = self.length;
        match self.write(disk, path, entries) {
            Ok(appended) => Ok(appended),
            Err(fault) => {
                let cut = self.file.truncate(length).and_then(|()| self.file.sync());
                Err((fault, cut.map_or_else(Cut::Failed, |()| Cut::Done)))
            }
        }
    }

    fn write<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        path: &Path,
        entries: &[SignedEntry],
    ) -> Result<Appended, AppendFault> {
        let start = self
            .report
            .as_ref()
            .map_or_else(Position::default, Position::after);
        let sink = End {
            file: &mut self.file,
            length: self.length,
        };
        let mut writer = BundleWriter::resume(sink, self.key, start);
        let mut lines = Vec::with_capacity(entries.len());
        for entry in entries {
            lines.push(writer.entry(entry).map_err(AppendFault::Seal)?);
        }
        let checkpoint = writer.checkpoint().map_err(AppendFault::Seal)?;
        let (position, first) = (writer.position(), writer.first_written());
        self.file.sync().map_err(AppendFault::Sync)?;
        // Also when an earlier process made the file and died before this.
        if self.report.is_none() {
            disk.sync_directory_of(path).map_err(AppendFault::Sync)?;
        }
        let first = self
            .report
            .as_ref()
            .and_then(|report| report.first_line)
            .or(first);
        let (Some(first_line), Some(checkpoint_digest)) = (first, position.last_line()) else {
            return Err(AppendFault::Replaced);
        };
        Ok(Appended {
            lines,
            checkpoint,
            checkpoint_digest,
            first_line,
            created: self.created,
        })
    }
}

/// Writes at the end of a file, one append for each write.
struct End<'f, F> {
    file: &'f mut F,
    length: u64,
}

impl<F: BundleFile> Write for End<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(self.length, bytes)?;
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
