//! The key that signs, and what is told when there is none.

use std::path::Path;

use plimsoll_attestation::KeyFault;
use plimsoll_console::{Class, Console, ExitCode, Failure, files::plain_words};
use plimsoll_keyfile::{KeyError, LoadedKey, Locations, default_key, files::ReadError};

/// Loads the key to sign with: `file`, else the environment variable, else the
/// default key, which is made when it is absent and `make` says so.
///
/// # Errors
/// Class `key`, `io` or `exists`, exit 2; `nothing` ends the fact, such as
/// `nothing was signed`.
pub fn key(
    console: &Console,
    file: Option<&Path>,
    make: bool,
    nothing: &str,
) -> Result<LoadedKey, Failure> {
    no_core_dumps();
    let variable = std::env::var_os(default_key::KEY_VARIABLE);
    let loaded = default_key::load(file, variable, &Locations::from_environment(), make)
        .map_err(|error| failure(&error, nothing))?;
    if let Some(created) = &loaded.created {
        console.note(&format!(
            "made the signing key {} in {}; whoever holds that file can sign as you. Give a copy \
             of {} to those who verify.",
            loaded.key.public().id(),
            created.key.display(),
            created.public.display()
        ));
    }
    Ok(loaded)
}

/// A key that cannot sign.
fn failure(error: &KeyError, nothing: &str) -> Failure {
    if let KeyError::Read {
        path,
        error: ReadError::TooLarge { .. },
    } = error
    {
        let fault = KeyFault::TooLarge;
        return Failure::new(Class::Key, format!("{fault}; {nothing}"), fault.cure())
            .reason(fault.word())
            .file(path);
    }
    let (class, path, advice) = match error {
        KeyError::Absent { path } => (
            Class::Key,
            Some(path),
            "Run plimsoll-attest run once to make it, or name a key with --key.",
        ),
        KeyError::Fault { path, fault } => (Class::Key, path.as_ref(), fault.cure()),
        KeyError::Make { path, .. } => (
            Class::Io,
            Some(path),
            "Name a key with --key, or make the directory writable.",
        ),
        KeyError::NoPlace => (
            Class::Key,
            None,
            "Name a key with --key; plimsoll-attest keygen makes one.",
        ),
        KeyError::Permissions { path, .. } => (
            Class::Key,
            Some(path),
            "Take them away with chmod 600, and make a new key if someone may have read it.",
        ),
        KeyError::PublicExists { path } => (
            Class::Exists,
            Some(path),
            "Move it away: it may be the only copy of a key that signed earlier bundles.",
        ),
        KeyError::Read { path, .. } => (
            Class::Io,
            Some(path),
            "Name a key file that can be read with --key.",
        ),
        KeyError::VariableNotText => (
            Class::Key,
            None,
            "Set it to the key's PEM text, or leave it out and use --key.",
        ),
    };
    let fact = match error {
        KeyError::Make { error, .. } => {
            format!("the default key could not be made: {}", plain_words(error))
        }
        KeyError::Read {
            error: ReadError::Io(error),
            ..
        } => format!("the key file cannot be read: {}", plain_words(error)),
        KeyError::Fault { path: None, fault } => format!(
            "PLIMSOLL_ATTEST_KEY holds no usable key: {}",
            fault.to_string().replace("the file", "it")
        ),
        other => other.to_string(),
    };
    let failure = Failure::new(class, format!("{fact}; {nothing}"), advice).exit(ExitCode::Usage);
    let failure = match error {
        KeyError::Fault { fault, .. } => failure.reason(fault.word()),
        _ => failure,
    };
    match path {
        Some(path) => failure.file(path),
        None => failure,
    }
}

/// A core dump would hold the private key, or the token, at hand.
pub fn no_core_dumps() {
    #[cfg(unix)]
    lower_limit();
}

/// For a key that lives in this process alone: no core dump, and no look into
/// its memory by another process of the same user.
#[cfg(all(unix, feature = "receipt", feature = "run"))]
pub fn hide_memory() {
    no_core_dumps();
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Where the system refuses, the key is as safe as any other process's.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(unix)]
fn lower_limit() {
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Where it cannot be lowered it is not ours to raise; nothing is lost.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}
