//! `verify --explain`: what is established, by which key and which bytes, and
//! what is not.

use plimsoll_attestation::{
    Line,
    bundle::{Call, SeenLine, Visitor},
    statement::SessionClose,
};
use plimsoll_wire::proto::Message;
use serde::Serialize;

use crate::verify::Met;

/// Calls and sessions named one by one; the rest is counted.
const MOST_NAMED: usize = 20;

/// What a pass over a bundle established so far.
#[derive(Clone, Debug, Default)]
pub struct Explain {
    lines: u64,
    checkpoints: Vec<u64>,
    further_checkpoints: bool,
    calls: Vec<Fact>,
    further_calls: u64,
    sessions: Vec<Fact>,
    further_sessions: u64,
    strange: Vec<u64>,
}

/// Something established, and by what.
#[derive(Clone, Debug, Serialize)]
pub struct Fact {
    fact: &'static str,
    lines: Vec<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    key_id: String,
    by: String,
    #[serde(skip)]
    text: String,
}

/// Something not established, and the flag that would.
#[derive(Clone, Debug, Serialize)]
pub struct Gap {
    fact: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag: Option<&'static str>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    advice: &'static str,
}

/// Both lists.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    established: Vec<Fact>,
    not_established: Vec<Gap>,
}

impl Visitor for Explain {
    fn call(&mut self, call: &Call<'_>) {
        if stores_more(call) && self.strange.len() < MOST_NAMED {
            self.strange.push(call.line);
        }
        if self.calls.len() >= MOST_NAMED {
            self.further_calls += 1;
            return;
        }
        let record = &call.record;
        let kind = if call.is_single_run() {
            "single run".to_owned()
        } else {
            format!(
                "session {}… call {}",
                short(&record.session),
                record.sequence
            )
        };
        let (what, digests) = if record.unanswered.is_empty() {
            (
                "this request and this answer are what the harness checked",
                format!(
                    "request {}…, result {}…",
                    short(&record.request_sha256),
                    short(&record.result_sha256)
                ),
            )
        } else {
            (
                "this request may have run and was not answered",
                format!("request {}…", short(&record.request_sha256)),
            )
        };
        self.calls.push(Fact {
            fact: "call",
            lines: vec![call.line],
            key_id: String::new(),
            by: format!(
                "the record's digests over the stored bytes ({digests}), record signature by the \
                 same key"
            ),
            text: format!("line {} ({kind}): {what}", call.line),
        });
    }

    fn close(&mut self, line: u64, close: &SessionClose) {
        if self.sessions.len() >= MOST_NAMED {
            self.further_sessions += 1;
            return;
        }
        self.sessions.push(Fact {
            fact: "session_complete",
            lines: vec![line],
            key_id: String::new(),
            by: match close.calls {
                0 => format!("the signed close on line {line}, and no call of it in the file"),
                calls => format!(
                    "sequence numbers 1 to {calls}, previous digests, the signed close on line {line}"
                ),
            },
            text: format!(
                "session {}…: {} calls, none missing, closed",
                short(&close.session),
                close.calls
            ),
        });
    }

    fn line(&mut self, line: &SeenLine) {
        self.lines = line.number;
        if line.checkpoint {
            if self.checkpoints.len() < MOST_NAMED {
                self.checkpoints.push(line.number);
            } else {
                self.further_checkpoints = true;
            }
        }
    }
}

/// What the verdict and the flags add to a pass.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    /// ID of the key under which lines verified; empty when none did.
    pub key_id: String,
    /// The bundle was not refused.
    pub whole: bool,
    /// `--expect` is met.
    pub list: bool,
    /// `--expect-count` is met.
    pub count: bool,
    /// `--expect-request` is met.
    pub requests: bool,
    /// The anchor that is met.
    pub anchor: Option<Met>,
}

impl Explain {
    /// The two lists.
    pub fn explained(&self, grounds: &Grounds) -> Explained {
        let mut established = Vec::new();
        if self.lines > 0 {
            established.push(self.file_order(grounds));
        }
        established.extend(self.calls.iter().cloned());
        established.extend(self.sessions.iter().cloned());
        let mut not_established = Vec::new();
        self.expected(grounds, &mut established);
        self.cut_back(grounds, &mut established, &mut not_established);
        if grounds.list {
            established.push(ground(
                "all_calls_present",
                "every call of your own list is in this file, and no other",
                "--expect: the request digests of your list, each as often as it stands there",
            ));
        } else {
            not_established.push(Gap {
                fact: "all_calls_present",
                flag: Some("--expect"),
                text: "that every call the harness made is in this file".to_owned(),
                advice: "use --expect with your own list",
            });
        }
        not_established.push(Gap {
            fact: "daemon_truthful",
            flag: None,
            text: "that the daemon told the truth about provider, tier, software and time"
                .to_owned(),
            advice: "configuration evidence, not hardware attestation",
        });
        not_established.push(Gap {
            fact: "key_holder",
            flag: None,
            text: "who holds the key".to_owned(),
            advice: "the key ID is all that is known here",
        });
        Explained {
            established,
            not_established,
        }
    }

    /// The checkpoints that were seen, in parentheses.
    fn earlier(&self) -> String {
        let more = match (self.checkpoints.len(), self.further_checkpoints) {
            (0, _) => return String::new(),
            (_, true) => " and more",
            (_, false) => "",
        };
        format!(" (lines {}{more})", listed(&self.checkpoints))
    }

    fn file_order(&self, grounds: &Grounds) -> Fact {
        let (key_id, lines) = (&grounds.key_id, self.lines);
        let end = if grounds.whole {
            "none missing before"
        } else {
            "as far as it was checked, to"
        };
        Fact {
            fact: "file_order",
            lines: vec![1, lines],
            key_id: key_id.clone(),
            by: format!(
                "key {}…, {lines} link signatures, lines 1 to {lines}, chained by SHA-256 of each \
                 line's bytes",
                short(key_id)
            ),
            text: format!(
                "the file is the lines the key holder wrote, in order, {end} line {lines}"
            ),
        }
    }

    fn expected(&self, grounds: &Grounds, established: &mut Vec<Fact>) {
        if grounds.list {
            established.push(ground(
                "expected_requests",
                "the calls are exactly those you expected to be sent",
                "--expect: the multiset of request digests, recomputed from the stored requests",
            ));
        }
        if grounds.requests {
            established.push(ground(
                "expected_requests",
                "each request you named was sent in some call",
                "--expect-request: its digest, recomputed from the stored requests",
            ));
        }
    }

    fn cut_back(
        &self,
        grounds: &Grounds,
        established: &mut Vec<Fact>,
        not_established: &mut Vec<Gap>,
    ) {
        if let Some(met) = &grounds.anchor {
            let mut fact = ground(
                "not_cut_back",
                &format!(
                    "no line was cut off that stood at or before line {}",
                    met.line
                ),
                &format!(
                    "anchor {}, a signed note kept outside the file that saw line {}",
                    plimsoll_console::escape::path(&met.path),
                    met.line
                ),
            );
            fact.lines = vec![met.line];
            established.push(fact);
        }
        if grounds.count || grounds.list {
            let flag = if grounds.count {
                "--expect-count: the number of calls you stated"
            } else {
                "--expect: your own list of request digests"
            };
            established.push(ground(
                "not_cut_back",
                "no call was cut off with the end of the file",
                flag,
            ));
        }
        if grounds.anchor.is_none() && !grounds.count && !grounds.list {
            not_established.push(Gap {
                fact: "not_cut_back",
                flag: Some("--anchor"),
                text: format!(
                    "that the file was not cut back to an earlier checkpoint{}",
                    self.earlier()
                ),
                advice: "use --anchor, or --expect-count",
            });
        }
    }

    /// Lines whose stored messages hold more than this version reads.
    pub fn strange(&self) -> &[u64] {
        &self.strange
    }

    /// Calls and sessions that were counted and not named.
    pub fn further(&self) -> (u64, u64) {
        (self.further_calls, self.further_sessions)
    }
}

impl Explained {
    /// The lists as text.
    pub fn to_text(&self, explain: &Explain) -> String {
        let mut out = "established\n".to_owned();
        for fact in &self.established {
            out += &format!("  {}\n      by  {}\n", fact.text, fact.by);
        }
        let (calls, sessions) = explain.further();
        if calls > 0 {
            out += &format!("  and {calls} more calls in the same way\n");
        }
        if sessions > 0 {
            out += &format!("  and {sessions} more sessions in the same way\n");
        }
        if !explain.strange().is_empty() {
            out += &format!(
                "  stored messages on lines {} hold fields this version does not know; no digest \
                 covers those\n",
                listed(explain.strange())
            );
        }
        out += "not established\n";
        for gap in &self.not_established {
            out += &format!("  {}\n      {}\n", gap.text, gap.advice);
        }
        out
    }
}

/// Whether a stored message is not the encoding of what was read of it.
fn stores_more(call: &Call<'_>) -> bool {
    let Ok(line) = Line::decode(call.bytes) else {
        return false;
    };
    let differs = |stored: Option<&Vec<u8>>, read: Option<Vec<u8>>| match (stored, read) {
        (Some(stored), Some(read)) => *stored != read,
        _ => false,
    };
    differs(line.request.as_ref(), Some(call.request.encode_to_vec()))
        || differs(
            line.response.as_ref(),
            call.response.as_ref().map(Message::encode_to_vec),
        )
}

/// A fact that a flag gives the ground for.
fn ground(fact: &'static str, text: &str, by: &str) -> Fact {
    Fact {
        fact,
        lines: Vec::new(),
        key_id: String::new(),
        by: by.to_owned(),
        text: text.to_owned(),
    }
}

fn short(text: &str) -> String {
    plimsoll_console::escape::line(text.chars().take(12).collect::<String>())
}

fn listed(lines: &[u64]) -> String {
    lines
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
