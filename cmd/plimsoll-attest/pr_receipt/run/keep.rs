//! The receipt's directory, the summary and the step's outputs.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use plimsoll_attestation::SigningKey;
use plimsoll_console::{
    Class, Console, ExitCode, Failure, Ran,
    files::{Dash, Inputs, plain_words},
};
use plimsoll_receipt::{
    assemble::{Rendered, assemble, render},
    folder::{BUNDLE, MAX_BUNDLE_BYTES},
    make::{self, About},
    outcome::evaluate,
    run::Run,
    statement::receipt::KeyKind,
};

use super::{super::folder, flags::Form, subject::Subject};

/// The directory, made before anything is sent.
pub struct Out {
    path: PathBuf,
    made: bool,
}

impl Out {
    /// Makes the directory, or takes one that is empty.
    ///
    /// # Errors
    /// Class `exists` or `io`.
    pub fn prepare(path: &Path) -> Result<Out, Failure> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let plain = path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
                let empty =
                    plain && fs::read_dir(path).is_ok_and(|mut names| names.next().is_none());
                if !empty {
                    return Err(Failure::new(
                        Class::Exists,
                        "is no empty directory; nothing was run",
                        "Name another with --out, or move this one away.",
                    )
                    .file(path));
                }
                false
            }
            Err(error) => {
                return Err(Failure::new(
                    Class::Io,
                    format!("cannot be made: {}; nothing was run", plain_words(&error)),
                    "Name a place that can be written to with --out.",
                )
                .file(path));
            }
        };
        Ok(Out {
            path: path.to_owned(),
            made,
        })
    }

    /// Where the run is recorded.
    pub fn bundle(&self) -> PathBuf {
        self.path.join(BUNDLE)
    }

    /// Leaves nothing behind: nothing ran.
    pub fn abandon(&self) {
        let bundle = self.bundle();
        if fs::metadata(&bundle).is_ok_and(|facts| facts.len() == 0) {
            let _ = fs::remove_file(&bundle);
        }
        if self.made {
            // Only when it is empty.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Makes the receipt of the run that the bundle holds.
///
/// # Errors
/// Class `not_kept`, exit 3: it ran, and the receipt is not whole.
pub fn keep(
    console: &Console,
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
    let bundle = Inputs::new(console)
        .read(&out.bundle(), Dash::Refused, MAX_BUNDLE_BYTES)
        .map_err(not_kept)?;
    let of = |error: plimsoll_receipt::assemble::AssembleError| not_kept(folder::failure(&error));
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
    folder::write(&out.path, &mut made, true).map_err(not_kept)?;
    folder::write_rendered(&out.path, &rendered).map_err(not_kept)?;
    Ok(rendered)
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
            io::ErrorKind::InvalidInput,
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
