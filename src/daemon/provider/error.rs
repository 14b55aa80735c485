//! Errors of providers: what went wrong, whether anything ran, and which words
//! of it a caller may see.

use std::fmt;

use plimsoll_wire::{Code, Reason, proto::SessionEnd};

/// What went wrong, in the order in which causes take precedence: an error with
/// several causes is the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The caller gave up.
    Canceled,
    /// A deadline passed.
    Deadline,
    /// No provider is configured.
    Disabled,
    /// The tier is below the floor.
    Isolation,
    /// The software is not what the rule allows, or not known.
    Software,
    /// The session has ended.
    SessionEnded,
    /// The run's grant is not for sessions.
    GrantNotForSessions,
    /// The run's grant could not be issued.
    Permission,
    /// The provider cannot do this operation.
    Unsupported,
    /// A limit of the provider or its platform.
    AtCapacity,
    /// The request is malformed or out of bounds.
    InvalidRequest,
    /// Anything else. Its whole text is withheld from callers.
    Internal,
}

impl Kind {
    /// The status code of an error of this kind.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Kind::Canceled => Code::Canceled,
            Kind::Deadline => Code::DeadlineExceeded,
            Kind::Disabled | Kind::Isolation | Kind::Software | Kind::SessionEnded => {
                Code::FailedPrecondition
            }
            Kind::GrantNotForSessions | Kind::Permission => Code::PermissionDenied,
            Kind::Unsupported => Code::Unimplemented,
            Kind::AtCapacity => Code::ResourceExhausted,
            Kind::InvalidRequest => Code::InvalidArgument,
            Kind::Internal => Code::Internal,
        }
    }

    /// Whether an error of this kind says that infrastructure failed, as
    /// opposed to a refusal or a caller that gave up.
    #[must_use]
    pub const fn is_infrastructure(self) -> bool {
        matches!(self, Kind::Internal)
    }
}

/// One piece of an error's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Words this program composed.
    Public(String),
    /// Words of an engine, a service or a guest. They may name hosts, paths or
    /// credentials, so they reach the log only.
    Private(String),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub reason: SessionEnd,
    /// More words; shown to callers only as [`Segment::Public`].
    pub detail: Segment,
}

/// An error of a provider.
///
/// Without [`ProviderError::not_dispatched`] it reads "code may have run", so
/// forgetting the mark errs on the safe side.
#[derive(Clone, Debug)]
pub struct ProviderError {
    kind: Kind,
    not_dispatched: Option<Reason>,
    text: Vec<Segment>,
    end: Option<End>,
    setting: Option<&'static str>,
}

impl ProviderError {
    /// An error of `kind` with words this program composed; unmarked.
    #[must_use]
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        ProviderError {
            kind,
            not_dispatched: None,
            text: vec![Segment::Public(text.into())],
            end: None,
            setting: None,
        }
    }

    /// A fault of the infrastructure; `text` is withheld from callers.
    #[must_use]
    pub fn internal(text: impl Into<String>) -> Self {
        ProviderError {
            text: vec![Segment::Private(text.into())],
            ..Self::new(Kind::Internal, "")
        }
    }

    /// The caller gave up and there is no more to say.
    #[must_use]
    pub fn canceled() -> Self {
        ProviderError {
            text: Vec::new(),
            ..Self::new(Kind::Canceled, "")
        }
    }

    /// A deadline passed and there is no more to say.
    #[must_use]
    pub fn deadline() -> Self {
        ProviderError {
            text: Vec::new(),
            ..Self::new(Kind::Deadline, "")
        }
    }

    /// The session has ended.
    #[must_use]
    pub fn session_ended(text: impl Into<String>, end: End) -> Self {
        ProviderError {
            end: Some(end),
            ..Self::new(Kind::SessionEnded, text)
        }
    }

    /// The same error, saying that nothing of the call ran. A mark already
    /// present is kept: whoever was closest to the cause knows the reason.
    #[must_use]
    pub fn not_dispatched(mut self, reason: Reason) -> Self {
        self.not_dispatched.get_or_insert(reason);
        self
    }

    /// The same error, saying that it lasts for as long as the variable named
    /// here has its value: a daemon that starts with it need not be restarted.
    #[must_use]
    pub fn of_setting(mut self, variable: &'static str) -> Self {
        self.setting = Some(variable);
        self
    }

    /// The same error with words this program composed behind it.
    #[must_use]
    pub fn and_public(mut self, text: impl Into<String>) -> Self {
        self.text.push(Segment::Public(text.into()));
        self
    }

    /// The same error with words a provider did not write behind it.
    #[must_use]
    pub fn and_private(mut self, text: impl Into<String>) -> Self {
        self.text.push(Segment::Private(text.into()));
        self
    }

    /// The same error with a further cause; the kind first in order wins.
    #[must_use]
    pub fn and_cause(mut self, kind: Kind) -> Self {
        self.kind = self.kind.min(kind);
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Why nothing ran; `None` means the call may have run.
    #[must_use]
    pub fn mark(&self) -> Option<Reason> {
        self.not_dispatched
    }

    /// The session's end, when that is what the error says.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The variable whose value causes the error, when it is one's value.
    #[must_use]
    pub fn setting(&self) -> Option<&'static str> {
        self.setting
    }

    /// Whether any part of the text is private.
    #[must_use]
    pub fn has_private(&self) -> bool {
        self.text
            .iter()
            .any(|s| matches!(s, Segment::Private(t) if !t.is_empty()))
    }

    /// The text with `instead` in place of every private part.
    #[must_use]
    pub fn text_with(&self, instead: &str) -> String {
        self.text
            .iter()
            .map(|segment| match segment {
                Segment::Public(text) => text.as_str(),
                Segment::Private(text) if text.is_empty() => "",
                Segment::Private(_) => instead,
            })
            .collect()
    }

    /// The whole text. It is for the log and for nobody else.
    #[must_use]
    pub fn full_text(&self) -> String {
        self.text
            .iter()
            .map(|(Segment::Public(text) | Segment::Private(text))| text.as_str())
            .collect()
    }
}

/// Only what a caller may see: an error printed by accident must not leak.
impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with("(withheld)"))
    }
}

impl std::error::Error for ProviderError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_in_order_of_precedence() {
        let table = [
            (Kind::Canceled, Code::Canceled),
            (Kind::Deadline, Code::DeadlineExceeded),
            (Kind::Disabled, Code::FailedPrecondition),
            (Kind::Isolation, Code::FailedPrecondition),
            (Kind::Software, Code::FailedPrecondition),
            (Kind::SessionEnded, Code::FailedPrecondition),
            (Kind::GrantNotForSessions, Code::PermissionDenied),
            (Kind::Permission, Code::PermissionDenied),
            (Kind::Unsupported, Code::Unimplemented),
            (Kind::AtCapacity, Code::ResourceExhausted),
            (Kind::InvalidRequest, Code::InvalidArgument),
            (Kind::Internal, Code::Internal),
        ];
        assert!(table.is_sorted_by_key(|(kind, _)| *kind));
        for (kind, code) in table {
            assert_eq!(kind.code(), code);
        }
        let error = ProviderError::internal("x").and_cause(Kind::Unsupported);
        assert_eq!(error.kind(), Kind::Unsupported);
        assert_eq!(error.and_cause(Kind::Internal).kind(), Kind::Unsupported);
    }

    #[test]
    fn private_words_stay_private() {
        let error = ProviderError::new(Kind::Unsupported, "python did not start: ")
            .and_private("/opt/SECRET: exec format error")
            .and_public("; use another image");
        assert!(error.has_private());
        assert_eq!(
            error.to_string(),
            "python did not start: (withheld); use another image"
        );
        assert!(error.full_text().contains("SECRET"));
        assert!(
            !ProviderError::internal("SECRET")
                .to_string()
                .contains("SECRET")
        );
    }

    #[test]
    fn the_first_mark_is_kept() {
        let error = ProviderError::new(Kind::Unsupported, "no")
            .not_dispatched(Reason::Environment)
            .not_dispatched(Reason::Unsupported);
        assert_eq!(error.mark(), Some(Reason::Environment));
        assert_eq!(ProviderError::internal("").mark(), None);
    }
}
