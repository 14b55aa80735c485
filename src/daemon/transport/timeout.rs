//! The caller's deadline, from the timeout header of its protocol.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::content::Protocol;

/// Timeout header of Connect, in milliseconds.
pub(crate) const CONNECT_TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
/// Timeout header of gRPC and gRPC-Web, digits and a unit.
pub(crate) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The timeout header is there and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the timeout header is malformed")]
pub(crate) struct MalformedTimeout;

/// The time the caller allows; `None` when it states none. Two headers are
/// malformed, since two readers could take another one each.
pub(crate) fn of(
    headers: &HeaderMap,
    protocol: Protocol,
) -> Result<Option<Duration>, MalformedTimeout> {
    let (name, parse): (_, fn(&str) -> Option<Duration>) = match protocol {
        Protocol::Connect => (CONNECT_TIMEOUT, connect),
        Protocol::Grpc | Protocol::GrpcWeb => (GRPC_TIMEOUT, grpc),
    };
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .ok()
            .and_then(parse)
            .map(Some)
            .ok_or(MalformedTimeout),
        (Some(_), Some(_)) => Err(MalformedTimeout),
    }
}

/// One to ten decimal digits.
fn connect(text: &str) -> Option<Duration> {
    digits(text, 10).map(Duration::from_millis)
}

/// One to eight decimal digits and a unit.
fn grpc(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let count = digits(text.strip_suffix(unit)?, 8)?;
    match unit {
        'H' => Some(Duration::from_secs(count * 3600)),
        'M' => Some(Duration::from_secs(count * 60)),
        'S' => Some(Duration::from_secs(count)),
        'm' => Some(Duration::from_millis(count)),
        'u' => Some(Duration::from_micros(count)),
        'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

fn digits(text: &str, most: usize) -> Option<u64> {
    let well_formed = (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    well_formed.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn read(protocol: Protocol, values: &[&str]) -> Result<Option<Duration>, MalformedTimeout> {
        let mut headers = HeaderMap::new();
        let name = match protocol {
            Protocol::Connect => CONNECT_TIMEOUT,
            _ => GRPC_TIMEOUT,
        };
        for value in values {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        of(&headers, protocol)
    }

    #[test]
    fn connect_spellings() {
        for (text, ms) in [
            ("0", 0),
            ("1", 1),
            ("0000000005", 5),
            ("9999999999", 9_999_999_999),
        ] {
            let want = Ok(Some(Duration::from_millis(ms)));
            assert_eq!(read(Protocol::Connect, &[text]), want, "{text}");
        }
        for text in [
            "",
            "abc",
            "12345678901",
            "+5",
            "-1",
            "5 5",
            "1.5",
            "1e3",
            "0x1",
        ] {
            assert!(read(Protocol::Connect, &[text]).is_err(), "{text}");
        }
        assert!(read(Protocol::Connect, &["5", "5"]).is_err());
        assert_eq!(read(Protocol::Connect, &[]), Ok(None));
    }

    #[test]
    fn grpc_spellings() {
        for (text, time) in [
            ("0n", Duration::ZERO),
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(read(Protocol::Grpc, &[text]), Ok(Some(time)), "{text}");
            assert_eq!(read(Protocol::GrpcWeb, &[text]), Ok(Some(time)), "{text}");
        }
        for text in ["", "S", "1", "1s", "123456789S", "1 S", "-1S", "+1S", "1SS"] {
            assert!(read(Protocol::Grpc, &[text]).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_read_or_refused(text in "[ -~]{0,16}") {
            for protocol in [Protocol::Connect, Protocol::Grpc] {
                if let Ok(Some(_)) = read(protocol, &[&text]) {
                    let body = text.trim_end_matches(['H', 'M', 'S', 'm', 'u', 'n']);
                    prop_assert!(body.bytes().all(|b| b.is_ascii_digit()) && !body.is_empty());
                }
            }
        }
    }
}
