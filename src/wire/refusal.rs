//! Refusals: errors that say nothing of the call ran.

use std::fmt;

use crate::{
    Code,
    proto::{EnumValue, Message, NotDispatched, NotDispatchedReason},
};

/// Why nothing of a call ran. Attaching one wrongly is the worst defect this
/// protocol knows: a caller may send the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A reason number this program does not know; read, never sent.
    Unknown,
    /// Malformed, out of bounds, or a session that has ended.
    Request,
    /// Credential, scope or grant.
    Permission,
    /// Another protocol number.
    Protocol,
    /// The provider cannot do this operation.
    Unsupported,
    /// The provider's tier is below the floor.
    Isolation,
    /// A limit; later or elsewhere it may run.
    Capacity,
    /// The software or the environment does not meet the request.
    Environment,
}

impl Reason {
    /// The seven reasons that are sent, in number order.
    pub const SENT: [Reason; 7] = [
        Reason::Request,
        Reason::Permission,
        Reason::Protocol,
        Reason::Unsupported,
        Reason::Isolation,
        Reason::Capacity,
        Reason::Environment,
    ];

    /// The short name, also the value of the header mark.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Request => "request",
            Reason::Permission => "permission",
            Reason::Protocol => "protocol",
            Reason::Unsupported => "unsupported",
            Reason::Isolation => "isolation",
            Reason::Capacity => "capacity",
            Reason::Environment => "environment",
        }
    }

    /// The reason a header mark states; any other value marks nothing.
    #[must_use]
    pub fn of_header(value: &str) -> Option<Reason> {
        Self::SENT.into_iter().find(|r| r.name() == value)
    }

    /// The reason of an enum number; a number without a name is
    /// [`Reason::Unknown`], and still a mark.
    #[must_use]
    pub fn of_number(number: i32) -> Reason {
        usize::try_from(number)
            .ok()
            .and_then(|n| n.checked_sub(1))
            .and_then(|i| Self::SENT.get(i).copied())
            .unwrap_or(Reason::Unknown)
    }

    /// The error detail that carries this reason.
    #[must_use]
    pub fn detail(self) -> NotDispatched {
        let reason = match self {
            Reason::Unknown => NotDispatchedReason::NOT_DISPATCHED_REASON_UNSPECIFIED,
            Reason::Request => NotDispatchedReason::NOT_DISPATCHED_REASON_REQUEST,
            Reason::Permission => NotDispatchedReason::NOT_DISPATCHED_REASON_PERMISSION,
            Reason::Protocol => NotDispatchedReason::NOT_DISPATCHED_REASON_PROTOCOL,
            Reason::Unsupported => NotDispatchedReason::NOT_DISPATCHED_REASON_UNSUPPORTED,
            Reason::Isolation => NotDispatchedReason::NOT_DISPATCHED_REASON_ISOLATION,
            Reason::Capacity => NotDispatchedReason::NOT_DISPATCHED_REASON_CAPACITY,
            Reason::Environment => NotDispatchedReason::NOT_DISPATCHED_REASON_ENVIRONMENT,
        };
        NotDispatched {
            reason: EnumValue::from(reason),
        }
    }

    /// The detail's binary form.
    #[must_use]
    pub fn detail_bytes(self) -> Vec<u8> {
        self.detail().encode_to_vec()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal made before anything of a call ran, by a client or a daemon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The status code.
    pub code: Code,
    /// Why nothing ran.
    pub reason: Reason,
    /// What is wrong, composed by this program; may quote the request, so it
    /// must be escaped before it reaches a terminal.
    pub message: String,
    /// The request's member at fault, as a proto3 JSON path
    /// (`project.files[3].path`); empty when no single one is.
    pub member: String,
}

impl Refusal {
    /// A refusal of any code and reason.
    #[must_use]
    pub fn new(code: Code, reason: Reason, message: impl Into<String>) -> Self {
        Refusal {
            code,
            reason,
            message: message.into(),
            member: String::new(),
        }
    }

    /// `invalid_argument`, reason request: a rule of the wire is broken.
    #[must_use]
    pub fn invalid(member: impl Into<String>, message: impl Into<String>) -> Self {
        Refusal {
            code: Code::InvalidArgument,
            reason: Reason::Request,
            message: message.into(),
            member: member.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_have_the_published_bytes() {
        for (i, reason) in Reason::SENT.into_iter().enumerate() {
            assert_eq!(reason.detail_bytes(), [0x08, i as u8 + 1]);
            assert_eq!(Reason::of_number(i as i32 + 1), reason);
            assert_eq!(Reason::of_header(reason.name()), Some(reason));
        }
        assert_eq!(Reason::of_number(0), Reason::Unknown);
        assert_eq!(Reason::of_number(99), Reason::Unknown);
        assert_eq!(Reason::of_number(-1), Reason::Unknown);
        assert_eq!(Reason::of_header("unknown"), None);
        assert_eq!(Reason::of_header("REQUEST"), None);
    }
}
