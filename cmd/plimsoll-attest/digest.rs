//! `digest`: recompute a digest by hand. No key, no network, no claim of truth.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_console::{
    Class, Console, ExitCode, Failure, JsonObject, Stream,
    files::{Dash, Inputs},
    help::Sections,
    output::{self, Stop},
    values,
};
use plimsoll_record::{
    Digest, encoding::Field, record_digest, record_fields, request_digest, request_fields,
    result_digest, result_fields,
};
use plimsoll_wire::{
    proto::{Message, RunRecord, RunRequest, RunResponse},
    validate,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{cli::Entry, digest_line, message};

/// Largest result or record read.
const MOST_BYTES: u64 = 64 << 20;
/// Field content shown, in bytes.
const SHOWN_BYTES: usize = 64;

pub const ENTRY: Entry = Entry {
    name: "digest",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "shown"),
            (
                ExitCode::Refused,
                "the input is not of its form, or the digest it states is another",
            ),
            (ExitCode::Usage, ""),
        ],
        environment: &[],
        examples: &[
            (
                "digest request request.json",
                "the line for verify --expect",
            ),
            (
                "digest record --fields record.json",
                "a record's digest with every field it covers, to check by hand",
            ),
            (
                "digest line --line 3 plimsoll-runs.jsonl",
                "the digests of a bundle's third line",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Recomputes a digest by hand; no key, no network, no claim of truth")
        .arg(
            Arg::new("kind")
                .value_name("KIND")
                .required(true)
                .value_parser(values::words(&["request", "result", "record", "line"]))
                .help("What the file holds"),
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The file; - is standard input"),
        )
        .arg(
            Arg::new("binary")
                .long("binary")
                .action(ArgAction::SetTrue)
                .help("request, result, record: the file is binary protobuf, not proto3 JSON"),
        )
        .arg(
            Arg::new("fields")
                .long("fields")
                .action(ArgAction::SetTrue)
                .help("request, result, record: show the fields the digest covers, in order"),
        )
        .arg(
            Arg::new("line")
                .long("line")
                .value_name("N")
                .value_parser(values::number(1..=i64::MAX))
                .help("line: the line of a bundle [default: the file is one line]"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    console.conclude(shown(console, matches))
}

fn shown(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let kind = matches.get_one::<String>("kind").map_or("", String::as_str);
    let file = matches
        .get_one::<PathBuf>("file")
        .cloned()
        .unwrap_or_default();
    let binary = matches.get_flag("binary");
    let fields = matches.get_flag("fields");
    let line = matches.get_one::<i64>("line").map(|n| n.unsigned_abs());
    if kind == "line" {
        if binary || fields {
            return Err(usage("--binary and --fields do not go with a bundle line").into());
        }
        return digest_line::shown(console, &file, line);
    }
    if line.is_some() {
        return Err(usage("--line goes with the kind line").into());
    }
    let most = if kind == "request" {
        message::MOST_REQUEST_BYTES
    } else {
        MOST_BYTES
    };
    let bytes = Inputs::new(console).read(&file, Dash::Allowed, most)?;
    let (digest, list, stated) = match kind {
        "request" => {
            let request: RunRequest = message(&file, &bytes, binary)?;
            if let Err(refusal) = validate::single_run(&request) {
                console.warning(&format!("a daemon would refuse this request: {refusal}"));
            }
            (request_digest(&request), request_fields(&request), None)
        }
        "result" => {
            let response: RunResponse = message(&file, &bytes, binary)?;
            (result_digest(&response), result_fields(&response), None)
        }
        _ => {
            let record: RunRecord = message(&file, &bytes, binary)?;
            let version = || {
                Failure::new(
                    Class::Stored,
                    format!("record version {} has no digest here", record.version),
                    "Versions 1, 2 and 3 are read. A later release may know this one.",
                )
                .file(&file)
                .member("version")
                .exit(ExitCode::Refused)
            };
            let digest = record_digest(&record).ok_or_else(version)?;
            let list = record_fields(&record).ok_or_else(version)?;
            let stated = Some(record.record_sha256).filter(|stated| !stated.is_empty());
            (digest, list, stated)
        }
    };
    print(console, kind, &digest, fields.then_some(list.as_slice()))?;
    if let Some(stated) = stated.as_ref().filter(|stated| !digest.is(stated)) {
        return Err(Failure::new(
            Class::Stored,
            "the record states another digest than its fields have",
            "Get the record again from whoever wrote it; one of its fields was changed.",
        )
        .file(&file)
        .member("record_sha256")
        .expected(digest)
        .found(stated)
        .into());
    }
    let mut members = JsonObject::new()
        .with("kind", kind)
        .with("sha256", &digest.to_hex())
        .with_some("stated", stated.as_ref())
        .with_some("equal", stated.as_ref().map(|_| &true));
    if fields {
        members.push("fields", &list.iter().map(Shown::from).collect::<Vec<_>>());
    }
    Ok(members)
}

fn print(
    console: &Console,
    kind: &str,
    digest: &Digest,
    fields: Option<&[Field]>,
) -> Result<(), Stop> {
    for field in fields.unwrap_or_default() {
        let name = name(field);
        console.print(&format!(
            "{:>10}  {name:<24} {}\n",
            field.content.len(),
            content(&field.content)
        ))?;
    }
    console.print(&format!("{digest}  {kind}\n"))?;
    Ok(())
}

/// A field's name; the domain stands before all fields and has none.
fn name(field: &Field) -> &'static str {
    if field.name.is_empty() {
        "(domain)"
    } else {
        field.name
    }
}

/// A field's content as text when it is short printable ASCII, else as hex.
fn content(bytes: &[u8]) -> String {
    let printable = |b: &u8| (0x20..0x7f).contains(b);
    if bytes.len() <= SHOWN_BYTES && bytes.iter().all(printable) {
        return plimsoll_console::escape::line(bytes);
    }
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let rest = bytes.len() - cut.len();
    let mut text = format!("hex {}", hex::encode(cut));
    if rest > 0 {
        text += &format!("… ({rest} more bytes)");
    }
    text
}

/// A field as a script sees it: whole. The first one, the domain, has no name.
#[derive(Serialize)]
struct Shown {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'static str,
    length: usize,
    hex: String,
}

impl From<&Field> for Shown {
    fn from(field: &Field) -> Self {
        Shown {
            name: name(field),
            length: field.content.len(),
            hex: hex::encode(&field.content),
        }
    }
}

fn usage(fact: &str) -> Failure {
    Failure::new(
        Class::Usage,
        fact,
        "Run plimsoll-attest digest --help for the forms there are.",
    )
}

fn message<M: Message + DeserializeOwned>(
    file: &Path,
    bytes: &[u8],
    binary: bool,
) -> Result<M, Failure> {
    if binary {
        message::from_binary(file, bytes)
    } else {
        message::from_json(file, bytes)
    }
}
