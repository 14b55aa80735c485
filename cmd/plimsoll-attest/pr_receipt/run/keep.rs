//! The receipt's directory, the summary and the step's outputs.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use plimsoll_attestation::{
    SigningKey,
    bundle::{disk::Disk as _, folder::FolderDisk},
};
use plimsoll_console::{Class, ExitCode, Failure, Ran, files::plain_words};
use plimsoll_receipt::{
    assemble::{Rendered, assemble, render},
    folder::{BUNDLE, MAX_BUNDLE_BYTES, PAGE, SUMMARY},
    make::{self, About},
    outcome::evaluate,
    run::Run,
    statement::receipt::KeyKind,
};

use super::{super::folder, flags::Form, subject::Subject};

/// The directory, made and opened before anything is sent. Everything is put
/// into the one that was opened, whatever its path names by then.
pub struct Out {
    disk: FolderDisk,
    made: bool,
}

impl Out {
    /// Makes the directory, or takes one that is empty.
    ///
    /// # Errors
    /// Class `exists` or `io`.
    pub fn prepare(path: &Path) -> Result<Out, Failure> {
        let taken = || {
            Failure::new(
                Class::Exists,
                "is no empty directory; nothing was run",
                "Name another with --out, or move this one away.",
            )
            .file(path)
        };
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => {
                return Err(Failure::new(
                    Class::Io,
                    format!("cannot be made: {}; nothing was run", plain_words(&error)),
                    "Name a place that can be written to with --out.",
                )
                .file(path));
            }
        };
        match FolderDisk::open(path) {
            Ok(disk) if disk.is_empty().unwrap_or(false) => Ok(Out { disk, made }),
            _ => Err(taken()),
        }
    }

    /// Refuses a file that is appended to after the receipt is made when it
    /// would lie in the receipt's directory: a part of it with more behind its
    /// end is none any more.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn apart(&self, appended: Option<&Path>, what: &str) -> Result<(), Failure> {
        let Some(file) = appended else {
            return Ok(());
        };
        let place = |path: &Path| path.canonicalize().ok();
        let parent = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // The directory is empty, so only a link could lead into it from elsewhere.
        let target = file.read_link().ok().map(|target| parent.join(target));
        let out = place(self.disk.path());
        let within = |path: &Path| path.parent().is_some_and(|above| place(above) == out);
        if place(parent) == out || target.as_deref().is_some_and(within) {
            return Err(super::usage(
                &format!("{what} is a file in the receipt's directory"),
                "It is appended to when the receipt is whole: name a file elsewhere. The receipt has a \
                 summary.md of its own.",
            ));
        }
        Ok(())
    }

    /// Where the run is recorded.
    pub fn bundle(&self) -> PathBuf {
        self.disk.path().join(BUNDLE)
    }

    /// The directory's files.
    pub fn disk(&self) -> FolderDisk {
        self.disk.clone()
    }

    /// Leaves nothing behind: nothing ran.
    pub fn abandon(&self) {
        let bundle = self.bundle();
        if let Ok(Some(facts)) = self.disk.facts(&bundle)
            && facts.length == 0
        {
            let _ = self.disk.remove(&bundle);
        }
        if self.made && self.disk.stands().unwrap_or(false) {
            // Only when it is empty.
            let _ = fs::remove_dir(self.disk.path());
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.disk.create(name, bytes, folder::is_public(name));
        written.map_err(|error| {
            Failure::new(
                Class::Io,
                format!("{name} cannot be written: {}", plain_words(&error)),
                "Check the directory, its permissions and the space on its disk.",
            )
            .file(self.disk.path().join(name))
        })
    }
}

/// Makes the receipt of the run that the bundle holds.
///
/// # Errors
/// Class `not_kept`, exit 3: it ran, and the receipt is not whole.
pub fn keep(
    form: &Form,
    subject: Subject,
    key: &SigningKey,
    kind: KeyKind,
    out: &Out,
) -> Result<Rendered, Failure> {
    let not_kept = |failure: Failure| {
        Failure::new(
            Class::NotKept,
            format!(
                "it ran, and the receipt is not whole: {}",
                failure.message()
            ),
            format!(
                "The signed record is in {}; keep it. Then run the job again.",
                out.bundle().display()
            ),
        )
        .ran(Ran::Yes)
    };
    let bundle = out.disk.read(BUNDLE, MAX_BUNDLE_BYTES).map_err(|error| {
        let why = format!("the bundle cannot be read: {}", plain_words(&error));
        not_kept(Failure::new(Class::Io, why, ""))
    })?;
    let of = |error: plimsoll_receipt::assemble::AssembleError| {
        not_kept(folder::failure(&error, out.disk.path(), Some(key.public())))
    };
    let run = Run::read(&bundle, key.public()).map_err(|error| of(error.into()))?;
    let Some((asked, result)) = run.project() else {
        return Err(of(plimsoll_receipt::run::RunError::None.into()));
    };
    let outcome = evaluate(asked, result, &subject.config.reports);
    let about = About {
        binding: subject.binding,
        kind: form.tested,
        commit: subject.commit,
        tree: subject.tree,
        files: subject.files,
        added: subject.added,
        config: subject.config_from,
        tests_changed: subject.tests_changed,
        workflow: subject.workflow,
        key: make::key(key.public().id(), kind),
        created_unix_ms: now(run.record.ended_unix_ms),
    };
    let mut made = assemble(&bundle, &run, &outcome, about, key).map_err(of)?;
    let rendered = render(&made).map_err(of)?;
    for (name, _, bytes) in made.parts() {
        if name != BUNDLE {
            out.write(name, bytes).map_err(not_kept)?;
        }
    }
    for (name, text) in [(SUMMARY, &rendered.summary), (PAGE, &rendered.page)] {
        out.write(name, text.as_bytes()).map_err(not_kept)?;
    }
    if out.disk.stands().unwrap_or(false) {
        return Ok(rendered);
    }
    Err(Failure::new(
        Class::NotKept,
        "it ran, and its receipt lies in the directory that was made, which was exchanged for \
         another one meanwhile",
        "What this path names now is no receipt of this run. Find out what exchanges it, and run \
         the job again.",
    )
    .file(out.disk.path())
    .ran(Ran::Yes))
}

/// The clock, read once; never before the record's end, which another clock
/// may have stated.
fn now(ended_unix_ms: i64) -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    now.max(u64::try_from(ended_unix_ms).unwrap_or(0))
}

/// Appends summary and outputs; what fails is told and changes nothing: the
/// receipt is there.
pub fn publish(form: &Form, rendered: &Rendered, code: ExitCode) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(path) = &form.summary
        && let Err(error) = append(path, &rendered.summary)
    {
        warnings.push(format!(
            "the summary could not be appended to {}: {}",
            path.display(),
            plain_words(&error)
        ));
    }
    // Values of fixed alphabets only: a line break here would be a command.
    let facts = &rendered.facts;
    let outputs = format!(
        "result={}\nbom_sha256={}\nkey_id={}\nexit={}\n",
        facts.result,
        facts.bom_sha256,
        facts.key_id,
        code.code()
    );
    if let Some(path) = &form.outputs
        && let Err(error) = append(path, &outputs)
    {
        warnings.push(format!(
            "the step's outputs could not be appended to {}: {}",
            path.display(),
            plain_words(&error)
        ));
    }
    warnings
}

/// Appends to a regular file. A last line without its newline is ended first,
/// so that what is appended begins a line.
fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // A FIFO must not hold the job up.
        options.custom_flags(nonblocking());
    }
    let mut file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it is no regular file",
        ));
    }
    let mut whole = String::new();
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            whole.push('\n');
        }
    }
    whole.push_str(text);
    file.write_all(whole.as_bytes())
}

#[cfg(unix)]
fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn what_is_appended_begins_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summary.md");
        for (before, after) in [
            (None, "## x\n"),
            (Some(""), "## x\n"),
            (Some("a\n"), "a\n## x\n"),
            (Some("a"), "a\n## x\n"),
        ] {
            let _ = std::fs::remove_file(&file);
            if let Some(before) = before {
                std::fs::write(&file, before).unwrap();
            }
            append(&file, "## x\n").unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
        }
        assert!(append(folder.path(), "x").is_err());
    }
}
