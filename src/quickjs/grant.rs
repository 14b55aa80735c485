//! Granted calls: what a run may ask the host for, and the host's side of the module's one import that is not WASI.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The longest request envelope, in bytes: a body of 1 MiB and 64 KiB for the rest.
pub const MAX_ENVELOPE: usize = (1 << 20) + (64 << 10);

/// What one run is granted.
#[derive(Clone)]
pub struct Grant {
    /// The global the client is found at.
    pub global: String,
    /// `METHOD /path` lines the client checks before it calls. A convenience: [`HostCalls`] decides.
    pub allow: Vec<String>,
    /// A script run after the client is there and before the snippet; may be empty.
    pub preamble: String,
    /// Serves the calls.
    pub calls: Arc<dyn HostCalls>,
}

/// Serves the calls of one run.
pub trait HostCalls: Send + Sync {
    /// Answers one call. Blocks the guest, so it has to return by `deadline`; the run is over then in any case.
    /// A status outside 100 to 599 reaches the guest as 500 without a body, and so does a body over 4 MiB.
    fn call(&self, request: HostRequest<'_>, deadline: Instant) -> HostResponse;
}

/// One call as the guest made it. Nothing in it has been checked against any grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest<'a> {
    /// As sent, in any case.
    pub method: &'a str,
    /// As sent: not decoded, not cleaned.
    pub path: &'a str,
    /// The JSON text of the body, byte for byte; `None` when there is none.
    pub body: Option<&'a [u8]>,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// The client's description, in the form the module's `guest_grant` reads.
#[derive(Serialize)]
struct Description<'a> {
    global: &'a str,
    allow: &'a [String],
}

impl Grant {
    pub(crate) fn description(&self) -> serde_json::Result<String> {
        serde_json::to_string(&Description {
            global: &self.global,
            allow: &self.allow,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    body: Option<&'a RawValue>,
}

/// A `null` body is a body: only an absent member is none.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The body of a refusal made here.
enum Refusal {
    Unavailable,
    TooLarge,
    Invalid,
}

impl Refusal {
    fn response(self) -> HostResponse {
        let (status, body) = match self {
            Self::Unavailable => (503, "host api broker unavailable"),
            Self::TooLarge => (413, "host api request envelope too large"),
            Self::Invalid => (400, "invalid host api request envelope"),
        };
        HostResponse {
            status,
            body: body.into(),
        }
    }
}

/// Reads the request at `at` in the guest's memory and has it answered. Addresses and lengths are the guest's own and
/// unsigned; everything is checked before anything is read.
pub(crate) fn answer(
    calls: Option<&dyn HostCalls>,
    memory: &[u8],
    at: u32,
    len: u32,
    deadline: Instant,
) -> HostResponse {
    let Some(calls) = calls else {
        return Refusal::Unavailable.response();
    };
    let (at, len) = (at as usize, len as usize);
    if len == 0 || len > MAX_ENVELOPE {
        return Refusal::TooLarge.response();
    }
    let Some(envelope) = at.checked_add(len).and_then(|end| memory.get(at..end)) else {
        return Refusal::Invalid.response();
    };
    let Ok(Envelope { method, path, body }) = serde_json::from_slice(envelope) else {
        return Refusal::Invalid.response();
    };
    let body = body.map(|json| json.get().as_bytes());
    calls.call(
        HostRequest {
            method: &method,
            path: &path,
            body,
        },
        deadline,
    )
}

/// Writes the answer's body to the guest's buffer. Status in the high half of the result, length in the low half.
pub(crate) fn deliver(response: &HostResponse, memory: &mut [u8], at: u32, cap: u32) -> u64 {
    const FAULT: u64 = 500 << 32;
    let HostResponse { status, body } = response;
    if !(100..=599).contains(status) {
        return FAULT;
    }
    let Some(len) = u32::try_from(body.len()).ok().filter(|len| *len <= cap) else {
        return FAULT;
    };
    let at = at as usize;
    match at
        .checked_add(body.len())
        .and_then(|end| memory.get_mut(at..end))
    {
        Some(room) => {
            room.copy_from_slice(body);
            u64::from(*status) << 32 | u64::from(len)
        }
        None => FAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes what it was asked.
    struct Echo;

    impl HostCalls for Echo {
        fn call(&self, request: HostRequest<'_>, _: Instant) -> HostResponse {
            let body = request.body.map_or("-".into(), String::from_utf8_lossy);
            HostResponse {
                status: 200,
                body: format!("{} {} {body}", request.method, request.path).into(),
            }
        }
    }

    fn ask(envelope: &[u8]) -> (u16, String) {
        let response = answer(
            Some(&Echo),
            envelope,
            0,
            envelope.len() as u32,
            Instant::now(),
        );
        (response.status, String::from_utf8(response.body).unwrap())
    }

    #[test]
    fn bodies_are_forwarded_byte_for_byte() {
        for (envelope, asked) in [
            (r#"{"method":"get","path":"/a"}"#, "get /a -"),
            (
                r#"{"method":"PUT","path":"/\u0061?b","body":{"n": 1.00,"n":2}}"#,
                r#"PUT /a?b {"n": 1.00,"n":2}"#,
            ),
            (r#" {"body":null,"path":"","method":"X"} "#, "X  null"),
        ] {
            assert_eq!(ask(envelope.as_bytes()), (200, asked.into()), "{envelope}");
        }
        let deep = format!(
            r#"{{"method":"PUT","path":"/","body":{}{}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        assert_eq!(ask(deep.as_bytes()).0, 200);
    }

    #[test]
    fn malformed_envelopes_are_refused() {
        let refused: [&[u8]; 11] = [
            b"x",
            b"null",
            b"[]",
            br#"{"method":"GET"}"#,
            br#"{"method":"GET","path":1}"#,
            br#"{"method":"GET","path":"/","headers":{}}"#,
            br#"{"method":"GET","method":"PUT","path":"/"}"#,
            br#"{"method":"GET","path":"/","body":1,"body":2}"#,
            br#"{"method":"GET","path":"/"} {}"#,
            br#"{"method":"GET","path":"\ud800"}"#,
            b"{\"method\":\"GET\",\"path\":\"/\xff\"}",
        ];
        for envelope in refused {
            assert_eq!(
                ask(envelope),
                (400, "invalid host api request envelope".into()),
                "{envelope:?}"
            );
        }
    }

    #[test]
    fn sizes_and_ranges_are_checked_before_anything_is_read() {
        let ask = |at, len| answer(Some(&Echo), &[b' '; 100], at, len, Instant::now()).status;
        assert_eq!(ask(0, 0), 413);
        assert_eq!(ask(0, MAX_ENVELOPE as u32 + 1), 413);
        assert_eq!(ask(0, u32::MAX), 413);
        assert_eq!(ask(0, 101), 400);
        assert_eq!(ask(100, 1), 400);
        assert_eq!(ask(u32::MAX, 1), 400);
        assert_eq!(answer(None, b"{}", 0, 2, Instant::now()).status, 503);
    }

    #[test]
    fn answers_stay_inside_the_guest_buffer() {
        let mut memory = [0; 8];
        let mut give = |status, body: &str, at, cap| {
            deliver(
                &HostResponse {
                    status,
                    body: body.into(),
                },
                &mut memory,
                at,
                cap,
            )
        };
        assert_eq!(give(204, "", 0, 0), 204 << 32);
        assert_eq!(give(200, "abc", 5, 3), 200 << 32 | 3);
        for (status, body, at, cap) in [
            (200, "abc", 5, 2),
            (200, "abc", 6, 3),
            (200, "abc", u32::MAX, 3),
            (99, "a", 0, 8),
            (600, "a", 0, 8),
        ] {
            assert_eq!(
                give(status, body, at, cap),
                500 << 32,
                "{status} {body} {at} {cap}"
            );
        }
        assert_eq!(&memory, b"\0\0\0\0\0abc");
    }
}
