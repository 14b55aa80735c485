//! `keygen`: makes a signing key.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::PathBuf,
};

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_attestation::SigningKey;
use plimsoll_console::{
    Class, Console, ExitCode, Failure, JsonObject, Stream, escape,
    files::{self, Mode, Replace},
    help::Sections,
    output::{self, Stop},
};

use crate::{cli::Entry, keys};

pub const ENTRY: Entry = Entry {
    name: "keygen",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "both files were written"),
            (
                ExitCode::Usage,
                "a file exists already or cannot be created; neither was written",
            ),
        ],
        environment: &[],
        examples: &[
            (
                "keygen --out ci",
                "writes ci.key, readable by its owner alone, and ci.pub for those who verify",
            ),
            (
                "keygen --out /secure/team --json",
                "the same, with the key's ID for a script",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Makes an Ed25519 signing key")
        .long_about(
            "Makes an Ed25519 signing key. There is no pass phrase: whoever can read PREFIX.key \
             can sign as you, so keep it where only its user can read it.",
        )
        .arg(
            Arg::new("out")
                .short('o')
                .long("out")
                .value_name("PREFIX")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Writes PREFIX.key (0600) and PREFIX.pub (0644); neither may exist"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    console.conclude(make(console, matches))
}

fn make(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let prefix = matches
        .get_one::<PathBuf>("out")
        .cloned()
        .unwrap_or_default();
    if prefix == OsStr::new("-") {
        return Err(Failure::new(
            Class::Usage,
            "a key is never written to standard output",
            "Give a file prefix with --out.",
        )
        .into());
    }
    let (key_file, pub_file) = (with_ending(&prefix, ".key"), with_ending(&prefix, ".pub"));
    for file in [&key_file, &pub_file] {
        if fs::symlink_metadata(file).is_ok() {
            return Err(Failure::new(
                Class::Exists,
                "the file exists; neither file was written",
                "Choose another prefix. A key that is in use must not be replaced.",
            )
            .file(file)
            .into());
        }
    }
    let key = SigningKey::generate().map_err(|fault| keys::failure(&key_file, fault))?;
    files::write(
        &key_file,
        key.to_pem().as_bytes(),
        Mode::Private,
        Replace::Never,
    )?;
    let public = key.public();
    if let Err(failure) = files::write(
        &pub_file,
        public.to_pem().as_bytes(),
        Mode::Public,
        Replace::Never,
    ) {
        // Lost to a race: a key without its public half must not stay.
        let _ = fs::remove_file(&key_file);
        return Err(failure.into());
    }
    console.success(&format!(
        "key {}\n{}\n{}\n",
        public.id(),
        escape::path(&key_file),
        escape::path(&pub_file)
    ))?;
    Ok(JsonObject::new()
        .with("key_id", public.id())
        .with("key", &key_file.to_string_lossy())
        .with("pub", &pub_file.to_string_lossy()))
}

fn with_ending(prefix: &std::path::Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(ending);
    PathBuf::from(name)
}
