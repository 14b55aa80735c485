//! What a caller is shown of an error.
//!
//! A caller sees only text this program composed. Words of an engine, a
//! service, a guest or a panic can name hosts and hold credentials; they go to
//! the log under an ID, and the caller gets the ID.

use std::any::Any;

use plimsoll_wire::{
    Code, Reason,
    proto::{EnumValue, SessionEnded},
};
use tokio::task::JoinError;

use crate::{
    call::CallError,
    log::Log,
    provider::{End, Kind, ProviderError, Segment},
};

/// Most bytes of withheld text in a log line.
pub const MAX_LOGGED: usize = 4096;
/// What is appended to text that was cut.
const CUT: &str = "...(cut)";

/// The sentence for a deadline.
pub const DEADLINE: &str = "the deadline passed before the call finished";
/// The sentence for a deadline of a call of which nothing ran.
pub const DEADLINE_FIRST: &str = "the deadline passed before anything of the call ran";
/// The sentence for a caller that gave up.
pub const CANCELED: &str = "the call was canceled before it finished";
/// The sentence for a caller that gave up before anything ran.
pub const CANCELED_FIRST: &str = "the call was canceled before anything of it ran";

/// The sentence a deadline or a cancellation is shown as; `None` for any other
/// error. Words and mark must agree: a caller that reads "before it finished"
/// takes the call for one that may have run.
#[must_use]
pub fn sentence(error: &ProviderError) -> Option<&'static str> {
    match (error.kind(), error.mark()) {
        (Kind::Deadline, mark) => Some(deadline(mark)),
        (Kind::Canceled, None) => Some(CANCELED),
        (Kind::Canceled, Some(_)) => Some(CANCELED_FIRST),
        _ => None,
    }
}

/// The sentence of a deadline that passed in a call with this mark.
#[must_use]
pub fn deadline(mark: Option<Reason>) -> &'static str {
    match mark {
        None => DEADLINE,
        Some(_) => DEADLINE_FIRST,
    }
}

/// The error a provider returned, as its caller sees it; what is withheld is
/// written to the log. Code, mark and the session's end never change.
#[must_use]
pub fn shown(error: &ProviderError, log: &Log) -> CallError {
    let id = ErrorId::new();
    let full = error.full_text();
    let message = match (error.kind(), sentence(error)) {
        (Kind::Internal, _) => {
            id.withheld(log, INTERNAL, &full);
            id.internal()
        }
        (_, Some(sentence)) => id.sentence(log, sentence, &full),
        (_, None) => {
            if error.has_private() {
                id.withheld(log, PARTLY, &full);
            }
            error.text_with(&format!("error {id}"))
        }
    };
    let shown = CallError::failed(error.kind().code(), message, error.mark());
    match error.end() {
        Some(end) => shown.with_session_ended(session_ended(end, log)),
        None => shown,
    }
}

/// The end of a session as its caller sees it; a detail that is not this
/// program's own goes to the log.
#[must_use]
pub fn session_ended(end: &End, log: &Log) -> SessionEnded {
    let detail = match &end.detail {
        Segment::Public(text) => text.clone(),
        Segment::Private(text) if text.is_empty() => String::new(),
        Segment::Private(text) => {
            let id = ErrorId::new();
            id.withheld(log, PARTLY, text);
            format!("error {id}")
        }
    };
    SessionEnded {
        reason: EnumValue::from(end.reason),
        detail,
    }
}

/// A fault of this program, as a caller sees it; `detail` goes to the log.
#[must_use]
pub fn internal(detail: &str, log: &Log) -> CallError {
    let id = ErrorId::new();
    id.withheld(log, INTERNAL, detail);
    CallError::failed(Code::Internal, id.internal(), None)
}

const INTERNAL: &str = "internal error answered to a caller";
const PARTLY: &str = "detail withheld from a caller";

/// Names one error in an answer and in the log.
struct ErrorId(String);

impl ErrorId {
    /// Eight random bytes. Should the system's source fail, the ID is zeros:
    /// an error without its own name is better than no answer.
    fn new() -> Self {
        let mut bytes = [0u8; 8];
        let _ = getrandom::fill(&mut bytes);
        ErrorId(hex::encode(bytes))
    }

    fn internal(&self) -> String {
        format!("internal error {self}: see the daemon's log")
    }

    fn sentence(&self, log: &Log, sentence: &str, more: &str) -> String {
        if more.is_empty() {
            return sentence.to_owned();
        }
        self.withheld(log, PARTLY, more);
        format!("{sentence} (error {self})")
    }

    fn withheld(&self, log: &Log, message: &str, text: &str) {
        log.warn(message)
            .text("error_id", &self.0)
            .text("error", &cut(text))
            .end();
    }
}

impl std::fmt::Display for ErrorId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the log may hold of a panic: a fixed text is this program's own, but a
/// formatted one may quote what the program choked on, such as a caller's code.
#[must_use]
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    match payload.downcast_ref::<&'static str>() {
        Some(fixed) => format!("panic: {fixed}"),
        None => "panic; its text is left out, since it may quote the request".to_owned(),
    }
}

/// A task that gave no answer, in words for the log.
#[must_use]
pub fn lost_text(lost: JoinError) -> String {
    match lost.try_into_panic() {
        Ok(payload) => panic_text(&*payload),
        Err(_) => "the task was canceled".to_owned(),
    }
}

/// At most [`MAX_LOGGED`] bytes of text, on a character's boundary, and a sign
/// that there was more.
#[must_use]
pub fn cut(text: &str) -> String {
    if text.len() <= MAX_LOGGED {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_LOGGED);
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Format, test_support};
    use plimsoll_wire::proto::SessionEnd;

    fn id_in(text: &str) -> String {
        let hex = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        let at = (0..text.len())
            .find(|&i| text.as_bytes()[i..].iter().take_while(|c| hex(c)).count() == 16)
            .expect("an error ID");
        text[at..at + 16].to_owned()
    }

    #[test]
    fn internal_text_is_withheld() {
        let (log, kept) = test_support::log(Format::Json);
        let error = shown(&ProviderError::internal("dial 10.0.0.7: SECRET"), &log);
        assert!(error.message().starts_with("internal error "));
        let id = id_in(error.message());
        assert!(!error.message().contains("SECRET"));
        assert_eq!(
            (error.code(), error.not_dispatched()),
            (Code::Internal, None)
        );
        let line = kept.text();
        assert!(line.contains(&id) && line.contains("SECRET"), "{line}");
        assert!(line.contains("internal error answered to a caller"));
    }

    #[test]
    fn long_text_is_cut() {
        let (log, kept) = test_support::log(Format::Json);
        let _ = shown(&ProviderError::internal("y".repeat(10_000)), &log);
        let logged = format!("{}...(cut)\"", "y".repeat(4096));
        assert!(kept.text().contains(&logged));
        assert!(!kept.text().contains(&"y".repeat(4097)));
        // A character that straddles the bound is left out whole.
        let text = format!("{}é", "y".repeat(4095));
        assert_eq!(
            cut(&format!("{text}z")),
            format!("{}{CUT}", "y".repeat(4095))
        );
    }

    #[test]
    fn deadline_and_cancel_are_fixed_sentences() {
        for (bare, kind, sentence, code) in [
            (
                ProviderError::deadline(),
                Kind::Deadline,
                DEADLINE,
                Code::DeadlineExceeded,
            ),
            (
                ProviderError::canceled(),
                Kind::Canceled,
                CANCELED,
                Code::Canceled,
            ),
        ] {
            let (log, kept) = test_support::log(Format::Json);
            assert_eq!(shown(&bare, &log).message(), sentence);
            let marked = shown(&bare.not_dispatched(Reason::Capacity), &log);
            assert!(
                marked.message().contains("before anything"),
                "{}",
                marked.message()
            );
            assert_eq!(
                (marked.code(), marked.not_dispatched()),
                (code, Some(Reason::Capacity))
            );
            assert!(kept.text().is_empty());
            let error = shown(&ProviderError::new(kind, "POST https://internal/"), &log);
            assert_eq!(error.code(), code);
            assert!(error.message().starts_with(&format!("{sentence} (error ")));
            assert!(!error.message().contains("internal/"));
            assert!(kept.text().contains(&id_in(error.message())));
        }
    }

    #[test]
    fn typed_refusals_keep_their_public_words() {
        let (log, kept) = test_support::log(Format::Json);
        let error = ProviderError::new(Kind::Unsupported, "the interpreter did not start: ")
            .and_private("node: SECRET")
            .and_public(" and ")
            .and_private("SECRET 2")
            .not_dispatched(Reason::Environment);
        let seen = shown(&error, &log);
        let id = id_in(seen.message());
        assert_eq!(
            seen.message(),
            format!("the interpreter did not start: error {id} and error {id}")
        );
        assert_eq!(seen.not_dispatched(), Some(Reason::Environment));
        assert_eq!(seen.code(), Code::Unimplemented);
        assert_eq!(kept.lines().len(), 1);
        let plain = ProviderError::new(Kind::AtCapacity, "no claim is free");
        assert_eq!(shown(&plain, &log).message(), "no claim is free");
        assert_eq!(kept.lines().len(), 1, "nothing withheld, nothing logged");
    }

    #[test]
    fn ends_show_public_details_only() {
        let (log, kept) = test_support::log(Format::Json);
        let end = |detail| End {
            reason: SessionEnd::SESSION_END_EXPIRED,
            detail,
        };
        let public = session_ended(&end(Segment::Public("over".into())), &log);
        assert_eq!(public.detail, "over");
        let empty = session_ended(&end(Segment::Private(String::new())), &log);
        assert_eq!(empty.detail, "");
        assert!(kept.text().is_empty());
        let error = ProviderError::session_ended(
            "the session has ended",
            end(Segment::Private("docker said SECRET".into())),
        );
        let seen = shown(&error, &log);
        let ended = seen.session_ended().unwrap();
        assert!(ended.detail.starts_with("error ") && !ended.detail.contains("SECRET"));
        assert_eq!(
            ended.reason,
            EnumValue::from(SessionEnd::SESSION_END_EXPIRED)
        );
        assert!(kept.text().contains(&id_in(&ended.detail)));
    }

    #[test]
    fn formatted_panic_texts_are_left_out() {
        let caught = |run: fn()| std::panic::catch_unwind(run).unwrap_err();
        let fixed = caught(|| panic!("the table has no rows"));
        assert_eq!(panic_text(&*fixed), "panic: the table has no rows");
        let quoting = caught(|| panic!("bad {}", std::hint::black_box("SECRET".to_owned())));
        assert!(!panic_text(&*quoting).contains("SECRET"));
    }

    /// An error that carries a mark by accident is the worst defect there is,
    /// so unmarked and marked errors are made in these places only.
    #[test]
    fn errors_are_made_in_few_places() {
        fn visit(folder: &std::path::Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    visit(&path, found);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                    if code.contains("CallError::failed(") {
                        found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                    }
                }
            }
        }
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for folder in ["config", "provider", "service"] {
            visit(&root.join(folder), &mut found);
        }
        assert_eq!(
            found,
            Vec::<String>::new(),
            "make provider errors through surface"
        );
    }
}
