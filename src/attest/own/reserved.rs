//! Which predicate types are reserved for this system.
//!
//! A verifier that trusts a key for run records must never be handed a record
//! that was signed without the record's check. Types that another program could
//! take for a reserved one are refused too, so the net is wide: the comparison
//! is on a normalised copy, and what is normalised away can only reserve more.

/// Every type below this URI is reserved.
pub const RESERVED_HOST: &str = "plimsollmark.github.io";
/// Every type that begins so is reserved; only receipts are signed under it.
pub const RESERVED_URN: &str = "urn:plimsoll-attest:";

const RESERVED_FIRST_SEGMENT: &str = "plimsoll";

/// Whether a predicate type is a URI at all: 1 to 2048 printable ASCII
/// characters without spaces, with a scheme and something after it.
#[must_use]
pub fn is_type(text: &str) -> bool {
    if !(1..=2048).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return false;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.bytes();
    letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b))
        && !rest.is_empty()
}

/// Whether a predicate type is reserved, in any spelling.
#[must_use]
pub fn is_reserved(text: &str) -> bool {
    let text = decoded(text.trim()).to_ascii_lowercase().replace('\\', "/");
    if text.starts_with(RESERVED_URN) {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    if !matches!(scheme, "http" | "https") {
        return false;
    }
    // Some readers take any number of slashes here, none included.
    let rest = rest.trim_start_matches('/');
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = match host.rsplit_once(':') {
        // A port may be written with zeros before it.
        Some((host, port)) if matches!(port.trim_start_matches('0'), "" | "80" | "443") => host,
        _ => host,
    };
    if host.trim_end_matches('.') != RESERVED_HOST {
        return false;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    segments.first() == Some(&RESERVED_FIRST_SEGMENT)
}

/// Decodes percent-encoding until nothing changes; each round is shorter.
fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let bytes = text.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let digit = |n: usize| bytes.get(at + n).and_then(|b| char::from(*b).to_digit(16));
            match (bytes[at], digit(1), digit(2)) {
                // Only ASCII is decoded: nothing reserved holds anything else.
                (b'%', Some(high @ 0..=7), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 3;
                }
                (byte, ..) => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
        if out.len() == text.len() {
            return text;
        }
        text = String::from_utf8_lossy(&out).into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_reserved() {
        for text in [
            "https://plimsollmark.github.io/plimsoll/run-record/v1",
            "https://plimsollmark.github.io/plimsoll/anything",
            "https://plimsollmark.github.io/plimsoll",
            "http://plimsollmark.github.io/plimsoll/run-record/v1/",
            "HTTPS://PlimsollMark.GitHub.IO/Plimsoll/Run-Record/v1",
            "https://plimsollmark.github.io:443/plimsoll/run-record/v1",
            "http://plimsollmark.github.io:80/plimsoll/run-record/v1",
            "https://plimsollmark.github.io:0443/plimsoll/run-record/v1",
            "https://plimsollmark.github.io:00000443/plimsoll/run-record/v1",
            "http://plimsollmark.github.io:080/plimsoll/run-record/v1",
            "http://plimsollmark.github.io:%3080/plimsoll/run-record/v1",
            "https://plimsollmark.github.io./plimsoll/run-record/v1",
            "https://plimsollmark.github.io//plimsoll//run-record/v1",
            "https://plimsollmark.github.io/x/../plimsoll/run-record/v1",
            "https://plimsollmark.github.io/./plimsoll/run-record/v1",
            "https://plimsollmark.github.io/%70limsoll/run-record/v1",
            "https://plimsollmark.github.io/%2570limsoll/run-record/v1",
            "https://plimsollmark.github.io/%2e/plimsoll/x",
            "https://plimsollmark.github.io/x%2f..%2fplimsoll/x",
            "https:\\\\plimsollmark.github.io\\plimsoll\\x",
            "https:plimsollmark.github.io/plimsoll/x",
            "https://user:pw@plimsollmark.github.io/plimsoll/x",
            "https://plimsollmark%2Egithub.io/plimsoll/x?a#b",
            "urn:plimsoll-attest:pr-receipt:v1",
            "URN:Plimsoll-Attest:x",
            "urn:plimsoll%2Dattest:x",
        ] {
            assert!(is_reserved(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_spelling_of_the_authority_and_path_is_reserved(
            scheme in "[hH][tT][tT][pP][sS]?",
            slashes in "[/\\\\]{0,4}",
            user in "([a-z]{1,3}(:[a-z0-9]{0,3})?@)?",
            dot in "\\.{0,2}",
            port in "(:|:0{0,40}(80|443)|:0{1,9})?",
            before in "(/|/\\.|/x/\\.\\.|/%2e){0,3}",
            upper in proptest::collection::vec(proptest::bool::ANY, 40),
            encoded in proptest::collection::vec(proptest::bool::weighted(0.2), 40),
            after in "(/[a-z0-9/-]{0,20})?([?#][a-z]{0,4})?",
        ) {
            let spelt = |text: &str| -> String {
                text.chars()
                    .zip(upper.iter().zip(&encoded))
                    .map(|(letter, (upper, encoded))| match (upper, encoded) {
                        (_, true) => format!("%{:02x}", u32::from(letter)),
                        (true, _) => letter.to_ascii_uppercase().to_string(),
                        _ => letter.to_string(),
                    })
                    .collect()
            };
            let host = spelt(RESERVED_HOST);
            let first = spelt(RESERVED_FIRST_SEGMENT);
            let text = format!("{scheme}:{slashes}{user}{host}{dot}{port}{before}/{first}{after}");
            proptest::prop_assert!(is_type(&text) && is_reserved(&text), "{}", text);
        }
    }

    #[test]
    fn other_types_are_free() {
        for text in [
            "https://example.com/review/v1",
            "https://in-toto.io/attestation/test-result/v0.1",
            "https://plimsollmark.github.io/other/v1",
            "https://plimsollmark.github.io:4430/plimsoll/x",
            "https://plimsollmark.github.io:8080/plimsoll/x",
            "https://plimsollmark.github.io/plimsoll-extra/v1",
            "https://plimsollmark.github.io/plimsoll/../other",
            "https://plimsollmark.github.io.example.com/plimsoll/x",
            "https://example.com/https://plimsollmark.github.io/plimsoll/",
            "urn:plimsoll-attestation:x",
            "urn:example:plimsoll-attest:",
        ] {
            assert!(is_type(text) && !is_reserved(text), "{text}");
        }
    }

    #[test]
    fn types_are_uris() {
        let long = format!("x:{}", "a".repeat(2046));
        assert!(is_type(&long) && is_type("a:b"));
        let longer = format!("{long}a");
        for text in [
            "",
            "not a uri",
            "a:",
            ":b",
            "1a:b",
            "a",
            "a:é",
            "a:\n",
            "a: b",
            &longer,
        ] {
            assert!(!is_type(text), "{text:?}");
        }
    }
}
