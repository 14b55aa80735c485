//! Key files named on the command line, and the default key's public half.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use plimsoll_attestation::{KeyFault, PublicKey, key::MAX_KEY_BYTES};
use plimsoll_console::{
    Class, Console, Failure,
    files::{Dash, Inputs},
};
use plimsoll_keyfile::Locations;

/// `--pub FILE…` and `--own`, of every command that verifies.
pub fn verifying_flags() -> [Arg; 2] {
    [
        Arg::new("pub")
            .long("pub")
            .value_name("FILE")
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf))
            .help("A public key that may have signed; repeatable"),
        Arg::new("own")
            .long("own")
            .action(ArgAction::SetTrue)
            .help("The public half of the default key, which run makes on first use"),
    ]
}

/// [`verifying_flags`] of a command that takes one key.
pub fn verifying_flag() -> [Arg; 2] {
    let [public, own] = verifying_flags();
    let public = public
        .action(ArgAction::Set)
        .help("The public key that must have signed");
    [public, own]
}

/// The keys of [`verifying_flags`]; a key given twice counts once.
///
/// # Errors
/// Class `usage` when none is given, `io` or `key` when one cannot be used.
pub fn verifying(console: &Console, matches: &ArgMatches) -> Result<Vec<PublicKey>, Failure> {
    let mut files: Vec<PathBuf> = matches
        .get_many::<PathBuf>("pub")
        .unwrap_or_default()
        .cloned()
        .collect();
    let default = Locations::from_environment().public();
    if matches.get_flag("own") {
        match &default {
            Some(path) if path.exists() => files.push(path.clone()),
            _ => {
                return Err(Failure::new(
                    Class::Usage,
                    "there is no default key, so --own names none",
                    "Run plimsoll-attest run once to make it, or name the key with --pub.",
                ));
            }
        }
    }
    if files.is_empty() {
        let advice = match default.filter(|path| path.exists()) {
            Some(path) => format!(
                "Name the key with --pub FILE. The default key's public half is {}; --own uses it.",
                path.display()
            ),
            None => "Name the public key of whoever signed with --pub FILE.".to_owned(),
        };
        return Err(Failure::new(
            Class::Usage,
            "no key was given to verify with",
            advice,
        ));
    }
    let mut keys: Vec<PublicKey> = Vec::new();
    for file in files {
        let key = public(console, &file)?;
        if keys.iter().all(|known| known.id() != key.id()) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Reads a public key.
///
/// # Errors
/// Class `io` or `key`; no byte of the file is in it.
pub fn public(console: &Console, file: &Path) -> Result<PublicKey, Failure> {
    let input = Inputs::new(console).open(file, Dash::Refused)?;
    let mut bytes = Vec::new();
    // One byte more, so that too long a file has the reason of one.
    let mut limited = input.take(MAX_KEY_BYTES as u64 + 1);
    if let Err(error) = limited.read_to_end(&mut bytes) {
        return Err(limited.into_inner().fault(&error));
    }
    PublicKey::from_pem(&bytes).map_err(|fault| failure(file, fault))
}

/// A key that cannot be used.
pub fn failure(file: &Path, fault: KeyFault) -> Failure {
    Failure::new(Class::Key, fault.to_string(), fault.cure())
        .reason(fault.word())
        .file(file)
}
