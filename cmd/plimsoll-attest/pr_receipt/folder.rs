//! Reading and writing a receipt's directory.

use std::path::Path;

use plimsoll_attestation::PublicKey;
use plimsoll_console::{
    Class, Console, ExitCode, Failure,
    files::{self, Dash, Inputs, Mode, Replace},
};
use plimsoll_receipt::{
    assemble::{AssembleError, Rendered},
    folder::{BUNDLE, Folder, PAGE, SUMMARY},
    run::RunError,
};

use crate::refusal;

/// Reads the evidence of a receipt, each file once.
///
/// # Errors
/// Class `io`.
pub fn read(console: &Console, path: &Path) -> Result<Folder, Failure> {
    if !path.is_dir() {
        return Err(Failure::new(
            Class::Io,
            "is no directory",
            "Name the directory that pr-receipt run wrote; in CI it is the artifact \
             plimsoll-receipt of the job, downloaded and unpacked.",
        )
        .file(path));
    }
    let mut folder = Folder::default();
    let inputs = Inputs::new(console);
    for (name, limit, bytes) in folder.parts() {
        *bytes = inputs.read(&path.join(name), Dash::Refused, limit)?;
    }
    Ok(folder)
}

/// Whether everyone may read a file of a receipt: it holds neither code nor
/// output.
pub fn is_public(name: &str) -> bool {
    name.ends_with(".pub") || name.ends_with(".dsse.json")
}

/// Writes the evidence into a directory that holds none of it.
///
/// # Errors
/// Class `io` or `exists`.
pub fn write(path: &Path, folder: &mut Folder) -> Result<(), Failure> {
    for (name, _, bytes) in folder.parts() {
        let mode = if is_public(name) {
            Mode::Public
        } else {
            Mode::Private
        };
        files::write(&path.join(name), bytes, mode, Replace::Never)?;
    }
    Ok(())
}

/// Writes what is rendered, over what was rendered before.
///
/// # Errors
/// Class `io`.
pub fn write_rendered(path: &Path, rendered: &Rendered) -> Result<(), Failure> {
    for (name, text) in [(SUMMARY, &rendered.summary), (PAGE, &rendered.page)] {
        files::write(
            &path.join(name),
            text.as_bytes(),
            Mode::Private,
            Replace::Forced,
        )?;
    }
    Ok(())
}

/// A receipt in the directory `path` that cannot be read back or put together.
/// `key` is the receipt's own.
pub fn failure(error: &AssembleError, path: &Path, key: Option<&PublicKey>) -> Failure {
    if let AssembleError::Run(RunError::Evidence(fault)) = error {
        let keys = key.map(std::slice::from_ref).unwrap_or_default();
        return refusal::failure(&path.join(BUNDLE), fault, keys);
    }
    let (class, reason) = match error {
        AssembleError::Sign(fault) => (fault.class().word(), fault.reason().word()),
        AssembleError::Bom(error) => (error.code(), ""),
        AssembleError::Run(run) => match run {
            plimsoll_receipt::run::RunError::Evidence(fault) => {
                (fault.class().word(), fault.reason().word())
            }
            plimsoll_receipt::run::RunError::Many(_) => ("many_runs", ""),
            plimsoll_receipt::run::RunError::None => ("no_runs", ""),
            plimsoll_receipt::run::RunError::Other(_) => ("binding_mismatch", ""),
        },
        AssembleError::Open(plimsoll_receipt::statement::OpenError::Fault(fault)) => {
            (fault.class().word(), fault.reason().word())
        }
        AssembleError::Open(_) | AssembleError::Reports(_) => ("statement", ""),
        AssembleError::Key(fault) => ("key", fault.word()),
    };
    let class = super::class(class);
    let failure = Failure::new(
        class,
        error.to_string(),
        "The parts of the receipt do not belong together. Get the whole directory again as it was \
         made.",
    );
    let failure = if class == Class::Internal {
        failure.exit(ExitCode::Internal)
    } else {
        failure
    };
    if reason.is_empty() {
        failure
    } else {
        failure.reason(reason)
    }
}
