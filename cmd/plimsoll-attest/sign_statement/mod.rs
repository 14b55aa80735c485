//! `sign-statement`: signs an in-toto statement of the caller's own type.

mod canonical;
mod flags;
mod parts;

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::ArgMatches;
use plimsoll_attestation::{
    Fault, Reason,
    fault::StatementReason,
    own::{MAX_PAYLOAD_BYTES, OwnStatement},
};
use plimsoll_console::{
    Class, Console, ExitCode, Failure, JsonObject, Stream,
    files::{self, Dash, Inputs, Mode, Replace},
    help::Sections,
    output::Stop,
};
use plimsoll_keyfile::Locations;
use plimsoll_record::Digest;
use serde_json::{Map, Value};

use crate::{cli::Entry, keys, refusal, signing};
use canonical::{CanonicalError, canonical};
use flags::{Form, What};

pub const ENTRY: Entry = Entry {
    name: "sign-statement",
    stream: Stream::Product,
    define: flags::define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "signed"),
            (
                ExitCode::Refused,
                "the statement, its type or the runs it is about are refused, or the output could \
                 not be finished; nothing was signed",
            ),
            (
                ExitCode::Usage,
                "a flag, a key or a file cannot be used; nothing was signed",
            ),
        ],
        environment: &[
            (
                "PLIMSOLL_ATTEST_KEY",
                "the signing key's PEM text, used when --key is absent",
            ),
            (
                "XDG_CONFIG_HOME, HOME",
                "where the default key lies; it is used, never made",
            ),
        ],
        examples: &[
            (
                "sign-statement --key ci.key --out review.dsse.json review.json",
                "signs a whole statement; the payload is the file's bytes as you reviewed them",
            ),
            (
                "sign-statement --type https://example.com/ok/v1 --about runs.jsonl --own --line 3",
                "about the run on line 3 of a bundle, which must verify under your own key",
            ),
            (
                "sign-statement --type https://example.com/ok/v1 --subject app.tar=HEX",
                "about a file, by its SHA-256, without a predicate",
            ),
        ],
    },
    run,
};

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    console.conclude(signed(console, matches))
}

fn signed(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let form = Form::read(matches, console.options().json)?;
    // Everything is checked before any key is read.
    let statement = statement(console, matches, &form)?;
    let loaded = signing::key(console, form.key.as_deref(), false, "nothing was signed")?;
    let envelope = statement.sign(&loaded.key).to_json() + "\n";
    match &form.out {
        Some(out) => files::write(out, envelope.as_bytes(), Mode::Public, Replace::Never)?,
        None => console.product(envelope.as_bytes())?,
    }
    let key_id = loaded.key.public().id();
    let digest = Digest::of(statement.payload()).to_hex();
    console.note(&format!(
        "signed by key {key_id}, type {}, payload SHA-256 {digest}",
        statement.predicate_type()
    ));
    console.note(&format!(
        "open it with: {}",
        open_command(&form, &statement)
    ));
    Ok(JsonObject::new()
        .with("key_id", key_id)
        .with("type", statement.predicate_type())
        .with("subjects", &subjects(&statement))
        .with("payload_sha256", &digest)
        .with_some(
            "out",
            form.out.as_deref().map(Path::to_string_lossy).as_deref(),
        ))
}

fn statement(
    console: &Console,
    matches: &ArgMatches,
    form: &Form,
) -> Result<OwnStatement, Failure> {
    let inputs = Inputs::new(console);
    match &form.what {
        What::Whole {
            file,
            canonical: wanted,
        } => {
            let bytes = read(&inputs, file)?;
            let whole = |bytes| {
                OwnStatement::from_payload(bytes).map_err(|fault| input_failure(&fault).file(file))
            };
            let statement = whole(bytes)?;
            if !wanted {
                return Ok(statement);
            }
            // The first check was of what was given, this one of what is signed.
            whole(canonical_form(file, statement.payload())?)
        }
        What::Named {
            predicate_type,
            subjects,
            predicate,
        } => {
            let predicate = predicate_of(&inputs, predicate.as_ref())?;
            parts::built(predicate_type, subjects, predicate.as_ref())
        }
        What::About {
            predicate_type,
            bundle,
            runs,
            predicate,
        } => {
            let predicate = predicate_of(&inputs, predicate.as_ref())?;
            // A type or predicate that is refused costs no verification.
            let stand_in = parts::Subject::read(&format!("-={}", "0".repeat(64)));
            parts::built(predicate_type, stand_in.as_slice(), predicate.as_ref())?;
            let keys = keys::verifying(console, matches)?;
            let subjects = parts::records(console, bundle, &keys, runs)?;
            parts::built(predicate_type, &subjects, predicate.as_ref())
        }
    }
}

fn predicate_of(
    inputs: &Inputs<'_>,
    file: Option<&PathBuf>,
) -> Result<Option<(PathBuf, Vec<u8>)>, Failure> {
    match file {
        Some(file) => Ok(Some((file.clone(), read(inputs, file)?))),
        None => Ok(None),
    }
}

/// Reads one byte more than a statement may have: its size is its own rule, not
/// that of a file.
fn read(inputs: &Inputs<'_>, file: &Path) -> Result<Vec<u8>, Failure> {
    let mut input = inputs.open(file, Dash::Allowed)?;
    let mut bytes = Vec::new();
    let most = MAX_PAYLOAD_BYTES as u64 + 1;
    let read = (&mut input).take(most).read_to_end(&mut bytes);
    read.map_err(|error| input.fault(&error))?;
    Ok(bytes)
}

fn canonical_form(file: &Path, payload: &[u8]) -> Result<Vec<u8>, Failure> {
    let text = String::from_utf8_lossy(payload);
    canonical(&text).map(String::into_bytes).map_err(|error| {
        let failure = Failure::new(
            Class::Statement,
            error.to_string(),
            "The canonical form has doubles only. Write the number as a string, shorten it, or \
             sign the file's own bytes without --canonical.",
        )
        .reason(StatementReason::Parse.word())
        .file(file);
        match error {
            CanonicalError::Number { found, canonical } => {
                let failure = failure.found(found);
                match canonical {
                    Some(canonical) => failure.expected(canonical),
                    None => failure,
                }
            }
            CanonicalError::Json(_) => failure,
        }
    })
}

/// The failure for a statement that must not be signed.
fn input_failure(fault: &Fault) -> Failure {
    let advice = match fault.reason() {
        Reason::Reserved(_) => {
            "Types of this system are signed only by the code that checks what they say. Use a \
             type of your own, such as https://example.com/review/v1."
        }
        Reason::Statement(StatementReason::Parse) => {
            "Give one JSON object in UTF-8 and nothing after it: no member twice, at most 64 \
             levels, at most 16 MiB."
        }
        Reason::Statement(StatementReason::Shape) => {
            "A statement has the members _type, subject, predicateType and, when there is one, \
             predicate, which is an object; a subject has name and digest."
        }
        Reason::Statement(StatementReason::Type) => {
            "The statement type is https://in-toto.io/Statement/v1; a predicate type is an \
             absolute URI of 1 to 2048 printable ASCII characters."
        }
        Reason::Statement(StatementReason::Subject) => {
            "Give 1 to 1024 subjects, no two the same, each with a digest in lowercase hex of its \
             algorithm's length."
        }
        _ => "Correct the statement; nothing was signed.",
    };
    refusal::with_cure(fault, advice)
}

/// The subjects of a checked statement.
fn subjects(statement: &OwnStatement) -> Vec<Value> {
    let parsed: Map<String, Value> =
        serde_json::from_slice(statement.payload()).unwrap_or_default();
    let Some(Value::Array(mut subjects)) = parsed.get("subject").cloned() else {
        return Vec::new();
    };
    for subject in &mut subjects {
        if let Value::Object(subject) = subject {
            // A subject may have no name; a script sees an empty one.
            subject.entry("name").or_insert_with(|| "".into());
        }
    }
    subjects
}

/// The command that opens what was signed.
fn open_command(form: &Form, statement: &OwnStatement) -> String {
    let default = || {
        let variable = std::env::var_os(plimsoll_keyfile::default_key::KEY_VARIABLE);
        let absent = variable.is_none_or(|text| text.is_empty());
        Locations::from_environment().public().filter(|_| absent)
    };
    let public = match &form.key {
        Some(key) => Some(key.with_extension("pub")),
        None => default(),
    };
    let shown = |path: Option<&Path>, other: &str| {
        path.map_or_else(|| other.to_owned(), |path| quoted(&path.to_string_lossy()))
    };
    format!(
        "{} open-statement --pub {} --type {} {}",
        plimsoll_console::PROGRAM,
        shown(public.as_deref().filter(|path| path.exists()), "KEY.pub"),
        quoted(statement.predicate_type()),
        shown(form.out.as_deref(), "ENVELOPE.json"),
    )
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.:_-+@%,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
