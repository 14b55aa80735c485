//! `open-statement`: opens a signed statement of the caller's own type.

use std::path::PathBuf;

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_attestation::{
    base64::Alphabet,
    own::{self, MAX_ENVELOPE_BYTES, Opened, Wanted, is_digest},
};
use plimsoll_console::{
    Console, ExitCode, JsonObject, Stream, args, escape, fault,
    files::{Dash, Inputs},
    help::Sections,
    output::{self, Stop},
};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    cli::{self, Entry},
    keys, refusal,
};

pub const ENTRY: Entry = Entry {
    name: "open-statement",
    stream: Stream::Product,
    define,
    sections: Sections {
        exit_codes: &[
            (
                ExitCode::Ok,
                "the statement is signed by the key and of the type asked for",
            ),
            (ExitCode::Refused, "it is not, or its type is reserved"),
            (
                ExitCode::Usage,
                "a file or a key cannot be read, or flags are wrong",
            ),
        ],
        environment: &[],
        examples: &[
            (
                "open-statement --pub ci.pub --type https://example.com/review/v1 review.dsse.json",
                "prints the statement when ci.pub signed it and it is of that type",
            ),
            (
                "open-statement --pub ci.pub --any-type --predicate-only review.dsse.json",
                "prints the predicate alone, of whatever type, and says which it is",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Opens a signed in-toto statement of your own type")
        .long_about(
            "Opens a signed in-toto statement of your own type and prints its payload as it was \
             signed, unescaped. It shows who signed the statement. It does not check that a run \
             it names exists or verifies: use verify or verify-entry for that.",
        )
        .arg(
            Arg::new("pub")
                .long("pub")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The public key that must have signed"),
        )
        .arg(
            Arg::new("type")
                .long("type")
                .value_name("URI")
                .help("The predicate type it must have, byte for byte"),
        )
        .arg(
            Arg::new("any-type")
                .long("any-type")
                .action(ArgAction::SetTrue)
                .help("Take any type that is not reserved, and say which was found"),
        )
        .arg(
            Arg::new("subject")
                .long("subject")
                .value_name("ALG:HEX")
                .action(ArgAction::Append)
                .help("A digest that some subject must have; repeatable"),
        )
        .arg(
            Arg::new("predicate-only")
                .long("predicate-only")
                .action(ArgAction::SetTrue)
                .help("Print the predicate's bytes alone"),
        )
        .arg(
            Arg::new("envelope")
                .value_name("ENVELOPE.json")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The DSSE envelope; - is standard input"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    console.conclude(opened(console, matches))
}

fn opened(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let usage = |fact: &str, advice: &str| {
        args::rule(&cli::definition(), &["open-statement"], fact, advice)
    };
    let wanted = match (
        matches.get_one::<String>("type"),
        matches.get_flag("any-type"),
    ) {
        (Some(text), false) => Wanted::Type(text),
        (None, true) => Wanted::Any,
        (None, false) => {
            return Err(usage(
                "no type was asked for",
                "Give --type URI: an unchecked type is how a statement of one kind passes for \
                 another. --any-type takes whatever is found.",
            )
            .into());
        }
        (Some(_), true) => {
            return Err(usage("--type and --any-type exclude each other", "Give one.").into());
        }
    };
    let mut subjects = Vec::new();
    for text in matches.get_many::<String>("subject").unwrap_or_default() {
        match text.split_once(':') {
            Some((algorithm, digest)) if is_digest(algorithm, digest) => {
                subjects.push((algorithm, digest));
            }
            _ => {
                return Err(usage(
                    "--subject is no digest",
                    "Give ALG:HEX, such as sha256: and 64 lowercase hex digits.",
                )
                .into());
            }
        }
    }
    let file = matches
        .get_one::<PathBuf>("envelope")
        .cloned()
        .unwrap_or_default();
    let key_file = matches
        .get_one::<PathBuf>("pub")
        .cloned()
        .unwrap_or_default();
    let key = keys::public(console, &key_file)?;
    let text = Inputs::new(console).read(&file, Dash::Allowed, MAX_ENVELOPE_BYTES as u64)?;
    let refused = |fault| refusal::failure(&file, &fault, std::slice::from_ref(&key));
    let statement = own::open(&text, &key, wanted).map_err(refused)?;
    let mut named = Vec::new();
    for (algorithm, digest) in subjects {
        let names = statement
            .subjects_with(algorithm, digest)
            .map_err(refused)?;
        named.extend(names.iter().map(ToString::to_string));
    }
    let only = matches.get_flag("predicate-only");
    if !console.options().json {
        let bytes = if only {
            statement.predicate().unwrap_or_default()
        } else {
            &statement.payload
        };
        console.product(bytes)?;
    }
    console.note(&told(&statement, &named));
    members(&statement)
}

fn told(statement: &Opened, named: &[String]) -> String {
    let alphabet = match statement.alphabet {
        Alphabet::UrlSafe => ", in the URL-safe alphabet",
        Alphabet::Standard => "",
    };
    let subjects = if named.is_empty() {
        String::new()
    } else {
        format!("; subjects {}", named.join(", "))
    };
    format!(
        "signed by key {}, type {}{alphabet}{subjects}; no run was checked",
        statement.key_id, statement.predicate_type
    )
}

fn members(statement: &Opened) -> Result<JsonObject, Stop> {
    let subjects: Vec<Value> = statement
        .subjects
        .iter()
        .map(|subject| {
            let digests: Map<String, Value> = subject
                .digests
                .iter()
                .map(|(algorithm, digest)| (algorithm.to_string(), digest.as_ref().into()))
                .collect();
            serde_json::json!({ "name": subject.name, "digest": digests })
        })
        .collect();
    let mut object = JsonObject::new()
        .with("key_id", &statement.key_id)
        .with("type", &statement.predicate_type)
        .with("subjects", &subjects)
        .with("payload_base64", &STANDARD.encode(&statement.payload));
    if let Some(predicate) = statement.predicate() {
        object.push("predicate", &shown(predicate)?);
    }
    object.push(
        "base64",
        match statement.alphabet {
            Alphabet::UrlSafe => "url",
            Alphabet::Standard => "standard",
        },
    );
    object.push("run_checked", &false);
    Ok(object)
}

/// The predicate with its number text and member order kept. Hidden characters,
/// which only strings can hold, become escapes: the value is the same.
fn shown(predicate: &[u8]) -> Result<Box<RawValue>, Stop> {
    let fault = || Stop::Failed(fault::internal("predicate of an opened statement"));
    let text = std::str::from_utf8(predicate).map_err(|_| fault())?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if escape::is_hidden(c) && !matches!(c, '\t' | '\n' | '\r') {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    RawValue::from_string(safe).map_err(|_| fault())
}
