//! `verify --explain`: what is established, by which key and which bytes, and
//! what is not.

use plimsoll_attestation::{
    Line,
    bundle::{Call, SeenLine, Visitor},
    statement::SessionClose,
};
use plimsoll_wire::proto::Message;
use serde::Serialize;

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

impl Explain {
    /// The two lists, for a bundle verified under `key_id`; `whole` when it
    /// was not refused, `requests` when the caller's own list was met.
    pub fn explained(&self, key_id: &str, whole: bool, requests: bool) -> Explained {
        let mut established = Vec::new();
        if self.lines > 0 {
            let end = if whole {
                "none missing"
            } else {
                "as far as it was checked"
            };
            established.push(Fact {
                fact: "file_order",
                lines: vec![1, self.lines],
                key_id: key_id.to_owned(),
                by: format!(
                    "key {}…, {} link signatures, lines 1 to {}, chained by SHA-256 of each line's \
                     bytes",
                    short(key_id),
                    self.lines,
                    self.lines
                ),
                text: format!(
                    "the file is the lines the key holder wrote, in order, {end} before line {}",
                    self.lines
                ),
            });
        }
        established.extend(self.calls.iter().cloned());
        established.extend(self.sessions.iter().cloned());
        if requests {
            established.push(Fact {
                fact: "expected_requests",
                lines: Vec::new(),
                key_id: String::new(),
                by: "your own list of request digests".to_owned(),
                text: "the calls are exactly those you expected to be sent".to_owned(),
            });
        }
        let mut not_established = vec![Gap {
            fact: "not_cut_back",
            flag: Some("--expect-count"),
            text: format!(
                "that the file was not cut back to an earlier checkpoint (lines {}{})",
                listed(&self.checkpoints),
                if self.further_checkpoints {
                    " and more"
                } else {
                    ""
                }
            ),
            advice: "use --expect-count, or keep an anchor outside the file",
        }];
        if !requests {
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
