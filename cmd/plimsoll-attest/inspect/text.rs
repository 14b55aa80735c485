//! A line for people: rows of one fact each.

use plimsoll_attestation::Fault;
use plimsoll_console::escape;
use plimsoll_record::outcome::summary;
use plimsoll_wire::{
    Kind as Payload, Rule,
    proto::{
        ProjectFile, RunRequest, RunResponse, run_request::Payload as Asked,
        run_response::Result as RunResult,
    },
};

use super::{
    seen::{Call, Kind, Seen},
    time::utc,
};

/// What must be said wherever a tier is.
const QUALIFIED: &str = "stated by the daemon; not hardware attestation";
/// Most characters of one foreign text in a row.
const MOST_TEXT: usize = 84;
/// Most characters of an identity, which holds a digest that people copy.
const MOST_IDENTITY: usize = 300;
/// Most files, steps or artifacts listed.
const MOST_LISTED: usize = 8;

/// The rows of lines, one line after another.
pub struct Text {
    /// Whether a tier was shown already, with its qualification.
    qualified: bool,
    /// Whether lists are shown in full.
    whole_lists: bool,
}

struct Rows {
    text: String,
    most: usize,
}

impl Rows {
    /// Adds a row; `value` is escaped already.
    fn row(&mut self, name: &str, value: &str) {
        self.text.push_str(&format!("  {name:<10}{value}\n"));
    }

    /// Adds a row of foreign text, when there is some.
    fn foreign(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.row(name, &escape::line_cut(value, MOST_TEXT));
        }
    }

    /// Adds a row of a foreign identity, when there is one.
    fn identity(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.row(name, &escape::line_cut(value, MOST_IDENTITY));
        }
    }

    /// Adds a row for each element, the first ones only when there are many.
    fn list(&mut self, name: &str, elements: impl ExactSizeIterator<Item = String>) {
        let count = elements.len();
        for (n, element) in elements.take(self.most).enumerate() {
            self.row(if n == 0 { name } else { "" }, &element);
        }
        if count > self.most {
            self.row("", &format!("and {} more", count - self.most));
        }
    }
}

impl Text {
    pub fn new(whole_lists: bool) -> Self {
        Text {
            qualified: false,
            whole_lists,
        }
    }

    /// The text of a line, ending in a newline.
    pub fn of(&mut self, number: u64, seen: &Seen) -> String {
        let mut rows = Rows {
            text: format!("line {number}: {}\n", seen.kind.word()),
            most: if self.whole_lists {
                usize::MAX
            } else {
                MOST_LISTED
            },
        };
        if let Kind::Broken(fault) = &seen.kind {
            broken(&mut rows, fault);
            return rows.text;
        }
        rows.list(
            "key",
            seen.keys.iter().map(|key| {
                if key.is_empty() {
                    "(not named)".to_owned()
                } else {
                    escape::line_cut(key, MOST_TEXT)
                }
            }),
        );
        match &seen.link {
            None => rows.row("link", "no link"),
            Some(link) if link.checkpoint => {
                rows.row(
                    "link",
                    &format!("position {}, after {} lines", link.index, link.lines),
                );
            }
            Some(link) => rows.row("link", &format!("position {}", link.index)),
        }
        match &seen.kind {
            Kind::Call(call) => self.call(&mut rows, call),
            Kind::Close(close) => {
                rows.row(
                    "session",
                    &format!("{}, {} calls", short(&close.session), close.calls),
                );
                rows.foreign("last", &close.last_record_sha256);
            }
            Kind::Checkpoint | Kind::Broken(_) => {}
        }
        rows.text
    }

    fn call(&mut self, rows: &mut Rows, call: &Call) {
        let record = &call.record;
        rows.row(
            "time",
            &format!(
                "{} to {}",
                utc(record.started_unix_ms),
                utc(record.ended_unix_ms)
            ),
        );
        let on = format!(
            "{} ({})",
            escape::line_cut(&record.provider, 40),
            escape::line_cut(&record.isolation, 40)
        );
        if self.qualified {
            rows.row("on", &on);
        } else {
            rows.row("on", &format!("{on}, {QUALIFIED}"));
            self.qualified = true;
        }
        rows.identity("env", &record.environment);
        rows.identity("software", &record.software_identity);
        rows.identity("policy", &record.policy);
        if !record.session.is_empty() {
            rows.row(
                "session",
                &format!("{}, call {}", short(&record.session), record.sequence),
            );
        }
        match &call.request {
            Some(message) => request(rows, message),
            None => rows.row("request", "none is stored"),
        }
        match &call.response {
            Some(message) => result(rows, message),
            None if record.unanswered.is_empty() => rows.row("result", "none is stored"),
            None => rows.row(
                "result",
                &format!("no answer ({})", escape::line_cut(&record.unanswered, 40)),
            ),
        }
        digests(rows, call);
        rows.list("unknown", call.unknown.iter().map(|path| field(path)));
    }
}

fn field(path: &str) -> String {
    format!("field {}, which no digest covers", escape::line(path))
}

fn broken(rows: &mut Rows, fault: &Fault) {
    rows.row(
        "reason",
        &format!("{}: {}", fault.class(), fault.reason().text()),
    );
    if let Some(member) = fault.member() {
        rows.foreign("member", member);
    }
    if let Some(found) = fault.found_value() {
        rows.foreign("found", found);
    }
}

fn digests(rows: &mut Rows, call: &Call) {
    let record = &call.record;
    let full = |rows: &mut Rows, name: &str, what: &str, digest: &str| {
        if !digest.is_empty() {
            rows.row(name, &format!("{what:<8} {}", escape::line_cut(digest, 64)));
        }
    };
    full(rows, "digests", "record", &record.record_sha256);
    full(rows, "", "request", &record.request_sha256);
    full(rows, "", "result", &record.result_sha256);
    for (what, stored, signed) in [
        ("request", call.request_digest, &record.request_sha256),
        ("result", call.result_digest, &record.result_sha256),
    ] {
        if let Some(stored) = stored.filter(|stored| !stored.is(signed)) {
            rows.row("differs", &format!("the stored {what} has {stored}"));
        }
    }
}

fn request(rows: &mut Rows, message: &RunRequest) {
    let kind = Payload::of_request(message).map_or("no payload", Payload::name);
    let floor = match message.minimum_isolation.as_str() {
        "" => "no floor".to_owned(),
        floor => format!("floor {}", escape::line_cut(floor, 20)),
    };
    let timeout = match message.timeout_ms {
        0 => "the provider's timeout".to_owned(),
        ms => format!("timeout {ms} ms"),
    };
    let (rule, id) = match Rule::parse(message.software_rule.as_option()) {
        Ok(rule) if rule.is_none() => (", no rule", String::new()),
        Ok(rule) => ("", rule.id()),
        Err(_) => (", an invalid rule", String::new()),
    };
    rows.row(
        "request",
        &format!(
            "{kind}, protocol {}, {floor}, {timeout}{rule}",
            message.protocol
        ),
    );
    rows.identity("rule", &id);
    rows.foreign("trace", &message.trace_id);
    match &message.payload {
        Some(Asked::Javascript(run)) => {
            rows.row("code", &bytes(run.code.len()));
            rows.foreign("grant", &run.grant_profile);
        }
        Some(Asked::Cell(run)) => {
            rows.row(
                "code",
                &format!(
                    "{}, {}",
                    bytes(run.code.len()),
                    escape::line_cut(&run.language, 20)
                ),
            );
            files(rows, &run.files);
        }
        Some(Asked::Project(run)) => {
            files(rows, &run.files);
            rows.list(
                "steps",
                run.steps
                    .iter()
                    .map(|step| escape::line_cut(step, MOST_TEXT)),
            );
            rows.list(
                "artifacts",
                run.artifacts
                    .iter()
                    .map(|path| escape::line_cut(path, MOST_TEXT)),
            );
            rows.foreign("grant", &run.grant_profile);
        }
        Some(Asked::Module(run)) => {
            rows.foreign("model", &run.model);
            rows.row(
                "table",
                &format!(
                    "{} rows, to {} in steps of {}",
                    run.rows.len(),
                    run.end_time,
                    run.step
                ),
            );
        }
        None => {}
    }
}

fn files(rows: &mut Rows, files: &[ProjectFile]) {
    rows.list(
        "files",
        files
            .iter()
            .map(|file| sized(&file.path, file.content.len())),
    );
}

fn sized(path: &str, length: usize) -> String {
    format!(
        "{} ({})",
        escape::line_cut(path, MOST_TEXT - 20),
        bytes(length)
    )
}

fn bytes(count: usize) -> String {
    format!("{count} bytes")
}

fn result(rows: &mut Rows, message: &RunResponse) {
    rows.row("result", &summary(message));
    let streams = |stdout: &[u8], stderr: &[u8], cut: [bool; 2]| {
        let of = |name: &str, bytes: &[u8], cut: bool| {
            let cut = if cut { ", truncated by the daemon" } else { "" };
            format!("{name} {} bytes{cut}", bytes.len())
        };
        format!(
            "{}; {}",
            of("stdout", stdout, cut[0]),
            of("stderr", stderr, cut[1])
        )
    };
    match &message.result {
        Some(RunResult::Javascript(r)) => {
            let cut = [r.stdout_truncated, r.stderr_truncated];
            rows.row("output", &streams(&r.stdout, &r.stderr, cut));
        }
        Some(RunResult::Cell(r)) => {
            let cut = [r.stdout_truncated, r.stderr_truncated];
            rows.row("output", &streams(&r.stdout, &r.stderr, cut));
        }
        Some(RunResult::Project(r)) => {
            rows.foreign("detail", &r.outcome_detail);
            rows.list(
                "output",
                r.steps.iter().enumerate().map(|(n, step)| {
                    let late = if step.timed_out { ", timed out" } else { "" };
                    let cut = [step.stdout_truncated, step.stderr_truncated];
                    format!(
                        "step {}: exit {}{late}; {}",
                        n + 1,
                        step.exit_code,
                        streams(&step.stdout, &step.stderr, cut)
                    )
                }),
            );
            rows.list(
                "returned",
                r.artifacts.iter().map(|a| sized(&a.path, a.content.len())),
            );
            if r.artifacts_truncated {
                rows.row("", "artifacts were left out by the daemon");
            }
        }
        Some(RunResult::Module(r)) => {
            rows.foreign("detail", &r.outcome_detail);
            rows.row("output", &streams(&r.stdout, &r.stderr, [false; 2]));
        }
        None => {}
    }
}

fn short(session: &str) -> String {
    let begin: String = session.chars().take(12).collect();
    format!("{}…", escape::line(begin))
}
