//! The state's text: one JSON object, its code last.
//!
//! The code is checked over the text before any of the text is read, so only
//! what this user's own verification wrote is parsed. Reading is strict all
//! the same.

use std::{collections::BTreeMap, fmt::Write as _};

use plimsoll_record::Digest;

use super::{State, StateKey, StateNote};
use crate::{
    bundle::report::{Report, SessionReport},
    escape,
    json::{Json, JsonFault, Kind},
};

const FORMAT: &str = "plimsoll-attest/verify-state/";
/// What every state begins with, of any version.
pub(super) const HEAD: &str = "{\"format\":\"plimsoll-attest/verify-state/";
const VERSION: &str = "v1";
const CODE: &str = ",\"hmac_sha256\":\"";

/// Writes a state with its code.
pub(super) fn encode(state: &State, key: &StateKey) -> String {
    let report = &state.report;
    let mut out = format!(
        "{{\"format\":\"{FORMAT}{VERSION}\",\"state_key\":\"{}\",\"key_id\":\"{}\"",
        key.id(),
        report.key_id
    );
    let hex = |digest: Option<Digest>| digest.map_or_else(String::new, |d| d.to_hex());
    text(&mut out, "first_line_sha256", &hex(report.first_line));
    text(&mut out, "line_sha256", &hex(report.last_line));
    text(&mut out, "prefix_sha256", &state.prefix.to_hex());
    for (name, value) in [
        ("lines", report.lines),
        ("offset", report.bytes),
        ("records", report.records),
        ("unanswered", report.unanswered),
        ("single_runs", report.single_runs),
        ("further_tiers", report.further_tiers),
    ] {
        let _ = write!(out, ",\"{name}\":{value}");
    }
    for (name, value) in [
        ("first_unix_ms", report.first_unix_ms),
        ("last_unix_ms", report.last_unix_ms),
    ] {
        if let Some(value) = value {
            let _ = write!(out, ",\"{name}\":{value}");
        }
    }
    out.push_str(",\"checkpoints\":[");
    for (n, line) in report.checkpoints.iter().enumerate() {
        let _ = write!(out, "{}{line}", if n == 0 { "" } else { "," });
    }
    out.push_str("],\"tiers\":{");
    for (n, (tier, count)) in report.tiers.iter().enumerate() {
        out.push_str(if n == 0 { "" } else { "," });
        escape::string(&mut out, tier);
        let _ = write!(out, ":{count}");
    }
    out.push_str("},\"sessions\":[");
    for (n, session) in report.sessions.iter().enumerate() {
        let _ = write!(
            out,
            "{}{{\"session\":\"{}\",\"calls\":{},\"unanswered\":{},\"last_record_sha256\":\"{}\",\
             \"closed\":{}}}",
            if n == 0 { "" } else { "," },
            session.session,
            session.calls,
            session.unanswered,
            session.last_record_sha256,
            session.closed
        );
    }
    out.push(']');
    let code = key.code(out.as_bytes());
    out.push_str(CODE);
    out.push_str(&code);
    out.push_str("\"}\n");
    out
}

fn text(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, ",\"{name}\":\"{value}\"");
}

/// Reads a state this key wrote.
pub(super) fn decode(bytes: &[u8], key: &StateKey) -> Result<State, StateNote> {
    let text = std::str::from_utf8(bytes).map_err(|_| StateNote::Malformed)?;
    let version = text
        .strip_prefix("{\"format\":\"")
        .and_then(|rest| rest.strip_prefix(FORMAT))
        .and_then(|rest| rest.split_once('"'))
        .ok_or(StateNote::Malformed)?
        .0;
    if version != VERSION {
        return Err(StateNote::Version);
    }
    let (signed, code) = text
        .strip_suffix("\"}\n")
        .and_then(|rest| rest.rsplit_once(CODE))
        .ok_or(StateNote::Malformed)?;
    if !key.is_code(signed.as_bytes(), code) {
        let head = format!(
            "{{\"format\":\"{FORMAT}{VERSION}\",\"state_key\":\"{}\"",
            key.id()
        );
        return Err(if signed.starts_with(&head) {
            StateNote::Altered
        } else {
            StateNote::Foreign
        });
    }
    let closed = format!("{signed}}}");
    read(&closed).map_err(|_| StateNote::Malformed)
}

fn read(text: &str) -> Result<State, JsonFault> {
    let mut json = Json::new(text);
    let mut report = Report::default();
    let mut prefix = None;
    json.object::<JsonFault>(|json, name, at| {
        match name {
            "format" | "state_key" => drop(json.string()?),
            "key_id" => report.key_id = json.string()?.into_owned(),
            "first_line_sha256" => report.first_line = Some(digest(json)?),
            "line_sha256" => report.last_line = Some(digest(json)?),
            "prefix_sha256" => prefix = Some(digest(json)?),
            "lines" => report.lines = json.integer()?,
            "offset" => report.bytes = json.integer()?,
            "records" => report.records = json.integer()?,
            "unanswered" => report.unanswered = json.integer()?,
            "single_runs" => report.single_runs = json.integer()?,
            "further_tiers" => report.further_tiers = json.integer()?,
            "first_unix_ms" => report.first_unix_ms = Some(json.integer()?),
            "last_unix_ms" => report.last_unix_ms = Some(json.integer()?),
            "checkpoints" => json.array::<JsonFault>(|json| {
                report.checkpoints.push(json.integer()?);
                Ok(())
            })?,
            "tiers" => report.tiers = tiers(json)?,
            "sessions" => json.array::<JsonFault>(|json| {
                report.sessions.push(session(json)?);
                Ok(())
            })?,
            _ => return Err(json.unknown(name, at)),
        }
        Ok(())
    })?;
    json.end()?;
    match prefix {
        Some(prefix) if report.ends_in_checkpoint() && report.last_line.is_some() => {
            Ok(State { report, prefix })
        }
        _ => Err(json.fault(Kind::Syntax, text.len())),
    }
}

fn digest(json: &mut Json<'_>) -> Result<Digest, JsonFault> {
    let at = json.at();
    let mut bytes = [0; 32];
    match hex::decode_to_slice(json.string()?.as_bytes(), &mut bytes) {
        Ok(()) => Ok(Digest::from(bytes)),
        Err(_) => Err(json.fault(Kind::WrongType, at)),
    }
}

fn tiers(json: &mut Json<'_>) -> Result<BTreeMap<String, u64>, JsonFault> {
    let mut tiers = BTreeMap::new();
    json.object::<JsonFault>(|json, name, _| {
        tiers.insert(name.to_owned(), json.integer()?);
        Ok(())
    })?;
    Ok(tiers)
}

fn session(json: &mut Json<'_>) -> Result<SessionReport, JsonFault> {
    let mut session = SessionReport {
        session: String::new(),
        calls: 0,
        unanswered: 0,
        last_record_sha256: String::new(),
        closed: false,
    };
    json.object::<JsonFault>(|json, name, at| {
        match name {
            "session" => session.session = json.string()?.into_owned(),
            "calls" => session.calls = json.integer()?,
            "unanswered" => session.unanswered = json.integer()?,
            "last_record_sha256" => session.last_record_sha256 = json.string()?.into_owned(),
            "closed" => session.closed = json.boolean()?,
            _ => return Err(json.unknown(name, at)),
        }
        Ok(())
    })?;
    Ok(session)
}
