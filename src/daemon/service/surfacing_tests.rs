//! What a caller is shown of a provider's errors: never a provider's words.

use std::path::Path;

use plimsoll_wire::{
    Reason,
    proto::{EnumValue, SessionEnd},
};
use proptest::prelude::*;

use super::fake::{Fake, Rig, answering, call, snippet};
use crate::{
    call::{CallError, Service},
    provider::{End, Kind, ProviderError, Segment},
    surface,
};

/// In every private word; no answer may hold it.
const CANARY: &str = "CANARY-10.0.0.7";

const KINDS: [Kind; 12] = [
    Kind::Canceled,
    Kind::Deadline,
    Kind::Disabled,
    Kind::Isolation,
    Kind::Software,
    Kind::SessionEnded,
    Kind::GrantNotForSessions,
    Kind::Permission,
    Kind::Unsupported,
    Kind::AtCapacity,
    Kind::InvalidRequest,
    Kind::Internal,
];

const MARKS: [Option<Reason>; 8] = [
    None,
    Some(Reason::Request),
    Some(Reason::Permission),
    Some(Reason::Protocol),
    Some(Reason::Unsupported),
    Some(Reason::Isolation),
    Some(Reason::Capacity),
    Some(Reason::Environment),
];

/// An error as a provider may make it.
fn errors() -> impl Strategy<Value = ProviderError> {
    let words = prop_oneof![Just(String::new()), "[a-z é\n\"]{0,40}"];
    let private = (words, 0_usize..3).prop_map(|(words, long)| match long {
        0 => String::new(),
        1 => format!("{words}{CANARY}{words}"),
        _ => format!("{CANARY}{}", words.repeat(400)),
    });
    let segments = prop::collection::vec((any::<bool>(), private.clone()), 0..4);
    let end = prop::option::of((any::<bool>(), private));
    (
        prop::sample::select(&KINDS[..]),
        prop::sample::select(&MARKS[..]),
        segments,
        end,
    )
        .prop_map(|(kind, mark, segments, end)| {
            let error = match (kind, &end) {
                (Kind::SessionEnded, Some((public, detail))) => {
                    let detail = if *public {
                        Segment::Public("over".into())
                    } else {
                        Segment::Private(detail.clone())
                    };
                    let reason = SessionEnd::SESSION_END_EXPIRED;
                    ProviderError::session_ended("public words", End { reason, detail })
                }
                (Kind::Deadline, None) => ProviderError::deadline(),
                (Kind::Canceled, None) => ProviderError::canceled(),
                _ => ProviderError::new(kind, "public words"),
            };
            let error = segments.into_iter().fold(error, |error, (public, text)| {
                if public {
                    error.and_public("; more public words")
                } else {
                    error.and_private(text)
                }
            });
            match mark {
                Some(mark) => error.not_dispatched(mark),
                None => error,
            }
        })
}

/// Everything of an error that can be put on the wire.
fn shown(error: &CallError) -> String {
    // Debug shows the record too; none is made here.
    format!("{} {error:?}", error.message())
}

/// The IDs of errors in a text.
fn ids(text: &str) -> Vec<&str> {
    let is_id = |word: &&str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(is_id)
        .collect()
}

proptest! {
    /// Code, mark and end are the provider's; the words are ours; what was
    /// withheld is in the log, cut, under the ID the caller got.
    #[test]
    fn no_word_of_a_provider_reaches_a_caller(error in errors()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let given = error.clone();
        let rig = Rig::new(Fake {
            behaviour: answering(move || Err(given.clone())),
            ..Fake::default()
        });
        let seen = runtime.block_on(rig.service.run(call(None), snippet("1"))).unwrap_err();
        let text = shown(&seen);
        prop_assert!(!text.contains("CANARY") && !text.contains("10.0.0.7"), "{}", text);
        prop_assert_eq!(seen.code(), error.kind().code());
        prop_assert_eq!(seen.not_dispatched(), error.mark());
        let ended = seen.session_ended().map(|ended| ended.reason);
        prop_assert_eq!(ended, error.end().map(|end| EnumValue::from(end.reason)));

        let log = rig.log.text();
        for line in log.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(text) = line["error"].as_str() {
                prop_assert!(text.len() <= surface::MAX_LOGGED + "...(cut)".len());
            }
        }
        for id in ids(&text) {
            prop_assert!(log.contains(id), "{} is not in {}", id, log);
        }
        let hidden = error.has_private() || error.kind() == Kind::Internal;
        prop_assert_eq!(hidden && ids(seen.message()).is_empty(), false, "{}", text);
        if error.kind() == Kind::Internal {
            prop_assert!(seen.message().starts_with("internal error "));
        }
    }
}

/// Public words are this program's own. In a provider's source no public text
/// is made from an error's: words of an engine belong into a private segment.
#[test]
fn providers_do_not_publish_the_text_of_errors() {
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("provider");
    sources(&root, &mut |path, text| {
        // Tests may say what they like.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for start in [
            "ProviderError::new(",
            ".and_public(",
            "session_ended(",
            "Segment::Public(",
        ] {
            for (at, _) in code.match_indices(start) {
                let argument = arguments(&code[at + start.len()..]);
                let foreign = ["{error", "{err", "{e}", "{e:", "error.", "err.", " e."];
                if foreign.iter().any(|word| argument.contains(word)) {
                    found.push(format!("{}: {start}{argument})", path.display()));
                }
            }
        }
    });
    assert_eq!(found, Vec::<String>::new());
}

/// What stands between these parentheses, the first being open already.
fn arguments(code: &str) -> &str {
    let mut depth = 1;
    let end = code.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    &code[..end.unwrap_or(code.len())]
}

fn sources(folder: &Path, see: &mut impl FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, see);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") && name != "error.rs" {
            see(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}
