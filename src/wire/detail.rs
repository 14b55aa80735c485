//! Error details, as they travel and as they are read.
//!
//! A detail decides whether a caller may send a call again, so reading is
//! strict: one that does not decode whole states nothing.

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::{
    Reason,
    proto::{self, Message, NotDispatched, RunRecord, SessionEnd, SessionEnded, UnansweredCall},
};

/// Full name of the detail that says nothing ran.
pub const NOT_DISPATCHED: &str = "plimsoll.v1.NotDispatched";
/// Full name of the detail that says a session has ended.
pub const SESSION_ENDED: &str = "plimsoll.v1.SessionEnded";
/// Full name of the detail that carries an unanswered call's record.
pub const UNANSWERED_CALL: &str = "plimsoll.v1.UnansweredCall";

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(false)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Why a session is over, as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The end's short name; `unknown` for a number this program does not
    /// know, and for zero, since the detail itself says the session ended.
    pub reason: &'static str,
    /// What the daemon says of it; data, to be escaped.
    pub detail: String,
}

/// What the details of one error state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Nothing of the call ran, and why.
    pub not_dispatched: Option<Reason>,
    /// The session has ended.
    pub session_ended: Option<End>,
    /// The record of a call that may have run. Only meaningful without a mark.
    pub unanswered: Option<Box<RunRecord>>,
}

impl Details {
    /// Takes in one detail; the first that decodes counts for each type, and
    /// unknown types are skipped. `type_name` may carry a URL prefix.
    pub fn take(&mut self, type_name: &str, value: &[u8]) {
        let name = type_name.rsplit('/').next().unwrap_or(type_name);
        match name {
            NOT_DISPATCHED if self.not_dispatched.is_none() => {
                if let Ok(detail) = proto::decode::<NotDispatched>(value) {
                    self.not_dispatched = Some(Reason::of_number(detail.reason.to_i32()));
                }
            }
            SESSION_ENDED if self.session_ended.is_none() => {
                if let Ok(detail) = proto::decode::<SessionEnded>(value) {
                    self.session_ended = Some(End {
                        reason: session_end_name(detail.reason.to_i32()),
                        detail: detail.detail,
                    });
                }
            }
            UNANSWERED_CALL if self.unanswered.is_none() => {
                if let Ok(detail) = proto::decode::<UnansweredCall>(value) {
                    self.unanswered = detail.record.into_option().map(Box::new);
                }
            }
            _ => {}
        }
    }

    /// As [`Details::take`], for the text of a Connect error: base64 of either
    /// alphabet, padded or not. Text that is not base64 states nothing.
    pub fn take_base64(&mut self, type_name: &str, value: &str) {
        let alphabet = if value.contains(['-', '_']) {
            &URL_SAFE
        } else {
            &STANDARD
        };
        if let Ok(bytes) = GeneralPurpose::new(alphabet, LENIENT).decode(value) {
            self.take(type_name, &bytes);
        }
    }
}

/// The short name of an end inside a detail.
#[must_use]
pub fn session_end_name(number: i32) -> &'static str {
    use buffa::Enumeration;
    match SessionEnd::from_i32(number) {
        Some(SessionEnd::SESSION_END_CLOSED) => "closed",
        Some(SessionEnd::SESSION_END_EXPIRED) => "expired",
        Some(SessionEnd::SESSION_END_DISK_EXCEEDED) => "disk_exceeded",
        Some(SessionEnd::SESSION_END_MAIN_PROCESS_ENDED) => "main_process_ended",
        Some(SessionEnd::SESSION_END_BOUNDARY_FAILED) => "boundary_failed",
        Some(SessionEnd::SESSION_END_SANDBOX_CHANGED) => "sandbox_changed",
        Some(SessionEnd::SESSION_END_SHUTDOWN) => "shutdown",
        Some(SessionEnd::SESSION_END_REPLACED) => "replaced",
        Some(SessionEnd::SESSION_END_NOT_FOUND) => "not_found",
        Some(SessionEnd::SESSION_END_UNCLAIMED) => "unclaimed",
        Some(SessionEnd::SESSION_END_UNSPECIFIED) | None => "unknown",
    }
}

/// A message as the `value` of a Connect error detail: standard base64 without
/// padding.
#[must_use]
pub fn to_base64(message: &impl Message) -> String {
    GeneralPurpose::new(&STANDARD, LENIENT).encode(message.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::EnumValue;

    fn read(values: &[(&str, &str)]) -> Details {
        let mut details = Details::default();
        for (name, value) in values {
            details.take_base64(name, value);
        }
        details
    }

    #[test]
    fn published_values() {
        for (reason, value) in Reason::SENT
            .into_iter()
            .zip(["CAE", "CAI", "CAM", "CAQ", "CAU", "CAY", "CAc"])
        {
            assert_eq!(to_base64(&reason.detail()), value);
            for spelling in [value.to_owned(), format!("{value}=")] {
                let got = read(&[("type.googleapis.com/plimsoll.v1.NotDispatched", &spelling)]);
                assert_eq!(got.not_dispatched, Some(reason));
            }
        }
        let ended = SessionEnded {
            reason: EnumValue::from(SessionEnd::SESSION_END_NOT_FOUND),
            detail: "gone".into(),
        };
        assert_eq!(to_base64(&ended), "CAkSBGdvbmU");
        assert_eq!(
            read(&[(SESSION_ENDED, "CAkSBGdvbmU")]).session_ended,
            Some(End {
                reason: "not_found",
                detail: "gone".into()
            })
        );
        assert_eq!(
            read(&[(SESSION_ENDED, "")]).session_ended.unwrap().reason,
            "unknown"
        );
    }

    #[test]
    fn broken_details_state_nothing() {
        for hex in ["08", "0a0101", "0001", "08ffffffffffffffffffff01", "0880"] {
            let mut details = Details::default();
            details.take(NOT_DISPATCHED, &hex::decode(hex).unwrap());
            assert_eq!(details.not_dispatched, None, "{hex}");
            details.take(NOT_DISPATCHED, &[8, 6]);
            assert_eq!(details.not_dispatched, Some(Reason::Capacity), "{hex}");
        }
        let mut details = Details::default();
        details.take(SESSION_ENDED, b"\x08\x02\x12\x01\xff");
        assert_eq!(details.session_ended, None);
        assert_eq!(read(&[(NOT_DISPATCHED, "C A E")]).not_dispatched, None);
        // An unknown field is skipped, an unknown number is a mark all the same.
        details.take(NOT_DISPATCHED, &[0x08, 0x63, 0x78, 0x01]);
        assert_eq!(details.not_dispatched, Some(Reason::Unknown));
    }
}
