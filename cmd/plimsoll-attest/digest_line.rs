//! `digest line`: the digests of one bundle line and of its stored messages.

use std::{io::BufReader, path::Path};

use plimsoll_attestation::{Line, bundle::LineReader, line::MAX_LINE_BYTES};
use plimsoll_console::{
    Class, Console, Failure, JsonObject,
    files::{Dash, Inputs},
    output::Stop,
};
use plimsoll_record::{record_digest, request_digest, result_digest};
use plimsoll_wire::proto::{self, RunRequest, RunResponse};

use crate::refusal;

/// Prints the digests of line `number`, or of a file that is one line.
pub fn shown(console: &Console, file: &Path, number: Option<u64>) -> Result<JsonObject, Stop> {
    let inputs = Inputs::new(console);
    let Some(wanted) = number else {
        let bytes = inputs.read(file, Dash::Allowed, MAX_LINE_BYTES as u64)?;
        // A line cut out of a bundle by hand may have lost its newline.
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if line.contains(&b'\n') {
            return Err(Failure::new(
                Class::Usage,
                "the file holds more than one line",
                "Name one of them with --line N.",
            )
            .file(file)
            .into());
        }
        return digests(console, file, 1, line);
    };
    let mut reader = LineReader::new(BufReader::new(inputs.open(file, Dash::Allowed)?));
    loop {
        match reader.next_line() {
            Ok(Some(line)) if line.number < wanted => {}
            Ok(Some(line)) => return digests(console, file, wanted, line.bytes),
            Err(fault) => return Err(Stop::Failed(refusal::failure(file, &fault, &[]))),
            Ok(None) => {
                return Err(Failure::new(
                    Class::NoLine,
                    "the file has fewer lines",
                    "Name a line the file has.",
                )
                .file(file)
                .line(wanted)
                .into());
            }
        }
    }
}

fn digests(console: &Console, file: &Path, number: u64, bytes: &[u8]) -> Result<JsonObject, Stop> {
    let line = Line::decode(bytes)
        .map_err(|fault| Stop::Failed(refusal::failure(file, &fault, &[]).line(number)))?;
    let digests = line.digests();
    let mut members = JsonObject::new()
        .with("kind", "line")
        .with("sha256", &digests.line.to_hex());
    console.print(&format!("{}  line\n", digests.line))?;
    if let Some(content) = digests.content {
        console.print(&format!("{content}  content\n"))?;
        members.push("content_sha256", &content.to_hex());
    }
    let broken = |member: &str, error: &dyn std::fmt::Display| {
        Failure::new(
            Class::Stored,
            format!("the stored message does not decode: {error}"),
            "Get the file again from whoever wrote it.",
        )
        .file(file)
        .line(number)
        .member(member)
    };
    if let Some(bytes) = &line.request {
        let request: RunRequest =
            proto::decode(bytes).map_err(|error| broken("request", &error))?;
        let digest = request_digest(&request);
        console.print(&format!("{digest}  request\n"))?;
        members.push("request_sha256", &digest.to_hex());
    }
    if let Some(bytes) = &line.response {
        let response: RunResponse =
            proto::decode(bytes).map_err(|error| broken("response", &error))?;
        let digest = result_digest(&response);
        console.print(&format!("{digest}  result\n"))?;
        members.push("result_sha256", &digest.to_hex());
        if let Some(record) = response.record.as_option()
            && let Some(digest) = record_digest(record)
        {
            let equal = digest.is(&record.record_sha256);
            console.print(&format!("{digest}  record\n"))?;
            members.push("record_sha256", &digest.to_hex());
            members.push("stated", &record.record_sha256);
            if !equal {
                return Err(Failure::new(
                    Class::Stored,
                    "the stored record states another digest than its fields have",
                    "Get the file again from whoever wrote it; one of its fields was changed.",
                )
                .file(file)
                .line(number)
                .member("response.record.record_sha256")
                .expected(digest)
                .found(&record.record_sha256)
                .into());
            }
            members.push("equal", &equal);
        }
    }
    Ok(members)
}
