//! The frame reader against streams of every shape, and what a frame becomes.
#![allow(clippy::unwrap_used, clippy::panic)]

use hmac::{Hmac, Mac as _};
use plimsoll_runner::{
    Asked, Ending, FrameFault, MARKER, MAX_BODY_BYTES, Report, ReportKey, Verdict, find,
};
use plimsoll_wire::proto::ProjectOutcome;
use proptest::prelude::*;
use sha2::Sha256;

const KEY: [u8; 32] = [7; 32];

fn key() -> ReportKey {
    ReportKey::from_bytes(KEY)
}

fn mac(body: &[u8], key: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

fn frame_with(length: &str, mac: &str, body: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\n'];
    out.extend_from_slice(MARKER);
    out.extend_from_slice(format!(" {length} {mac}\n").as_bytes());
    out.extend_from_slice(body);
    out
}

fn frame(body: &[u8]) -> Vec<u8> {
    frame_with(&body.len().to_string(), &mac(body, &KEY), body)
}

/// Output of a hostile step: plain bytes, markers, headers cut anywhere and
/// whole frames under another key.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64),
        Just(MARKER.to_vec()),
        (0..MARKER.len()).prop_map(|n| MARKER[..n].to_vec()),
        Just(b" 12 ".to_vec()),
        "[0-9a-f]{64}".prop_map(String::into_bytes),
        Just(b"\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..32)
            .prop_map(|body| { frame_with(&body.len().to_string(), &mac(&body, &[8; 32]), &body) }),
        (any::<u64>(), "[0-9a-fA-F]{60,66}").prop_map(|(n, mac)| frame_with(
            &n.to_string(),
            &mac,
            b"{}"
        )),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_stream_without_the_key_is_a_report(stream in noise()) {
        let fault = find(&stream, &key()).unwrap_err();
        let marked = stream.windows(MARKER.len()).any(|w| w == MARKER);
        prop_assert_eq!(fault == FrameFault::Unauthenticated, marked);
    }

    #[test]
    fn the_genuine_frame_is_found_in_any_noise(before in noise(), body in proptest::collection::vec(any::<u8>(), 0..200), after in noise()) {
        let stream = [before, frame(&body), after].concat();
        prop_assert_eq!(find(&stream, &key()).unwrap().body, &body[..]);
    }

    #[test]
    fn one_byte_less_or_one_bit_other_is_none(body in proptest::collection::vec(any::<u8>(), 1..100), at in any::<proptest::sample::Index>(), bit in 0..8_u8) {
        let whole = frame(&body);
        prop_assert!(find(&whole[..whole.len() - 1], &key()).is_err());
        let mut flipped = whole.clone();
        // The leading LF is no part of the frame; the case of a hex digit is none of its value.
        let place = 1 + at.index(whole.len() - 1);
        flipped[place] ^= 1 << bit;
        let same_hex = whole[place].is_ascii_hexdigit() && flipped[place].eq_ignore_ascii_case(&whole[place]);
        prop_assert!(same_hex || find(&flipped, &key()).is_err());
    }

    #[test]
    fn any_authenticated_body_has_a_verdict(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let verdict = Verdict::of(&frame(&body), &key(), Ending::Deadline, &Asked::default());
        prop_assert_eq!(Report::decode(&body).is_none(), verdict.detail == "could not parse sandbox result");
    }
}

#[test]
fn a_header_has_one_spelling() {
    let body = b"{}";
    let good = mac(body, &KEY);
    assert!(find(&frame_with("2", &good, body), &key()).is_ok());
    for length in [
        "02",
        "+2",
        " 2",
        "2 ",
        "2.0",
        "",
        "-2",
        "0x2",
        "99999999999999999999999",
    ] {
        assert_eq!(
            find(&frame_with(length, &good, body), &key()),
            Err(FrameFault::Unauthenticated),
            "{length:?}"
        );
    }
    for wrong in [
        &good[..63],
        &format!("{good}0"),
        &format!("{good} x"),
        &"0".repeat(64),
    ] {
        assert!(
            find(&frame_with("2", wrong, body), &key()).is_err(),
            "{wrong}"
        );
    }
    let over = (MAX_BODY_BYTES + 1).to_string();
    let body = vec![b' '; MAX_BODY_BYTES + 1];
    assert!(find(&frame_with(&over, &mac(&body, &KEY), &body), &key()).is_err());
    let most = &body[..MAX_BODY_BYTES];
    let length = MAX_BODY_BYTES.to_string();
    assert!(find(&frame_with(&length, &mac(most, &KEY), most), &key()).is_ok());
}

#[test]
fn a_stream_of_headers_is_not_hashed_over_and_over() {
    // 16 MiB of headers, each claiming the 8 MiB behind it. Hashing all of them would be a million MiB.
    let header = frame_with(&(8 << 20).to_string(), &"ab".repeat(32), b"");
    let stream = header.repeat((16 << 20) / header.len());
    assert_eq!(find(&stream, &key()), Err(FrameFault::Unauthenticated));
}

#[test]
fn a_replayed_frame_of_another_run_is_none() {
    let old = frame(br#"{"steps":[]}"#);
    assert!(find(&old, &ReportKey::from_bytes([9; 32])).is_err());
}

fn verdict(body: &str, steps: &[&str], artifacts: &[&str]) -> Verdict {
    let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
    Verdict::of(
        &frame(body.as_bytes()),
        &key(),
        Ending::Exited {
            status: Some(0),
            out_of_memory: None,
        },
        &Asked {
            steps: owned(steps),
            artifacts: owned(artifacts),
        },
    )
}

#[test]
fn reports_and_their_outcomes() {
    use ProjectOutcome as O;
    let table = [
        (
            r#"{"steps":[],"artifacts":[]}"#,
            &[][..],
            O::PROJECT_OUTCOME_COMPLETED,
            "",
        ),
        (
            r#"{"steps":[{"command":"x","exitCode":3,"future":1}]}"#,
            &["x", "y"],
            O::PROJECT_OUTCOME_COMPLETED,
            "",
        ),
        (
            r#"{"steps":[{"command":"a","exitCode":0},{"command":"b","exitCode":124,"timedOut":true}]}"#,
            &["a", "b", "c"],
            O::PROJECT_OUTCOME_TIMED_OUT,
            "step 2 exceeded its time budget",
        ),
        (
            r#"{"error":"illegal file path: ../x"}"#,
            &["x"],
            O::PROJECT_OUTCOME_SETUP_FAILED,
            "illegal file path: ../x",
        ),
    ];
    for (body, asked, outcome, detail) in table {
        let verdict = verdict(body, asked, &[]);
        assert_eq!(
            (verdict.outcome, verdict.detail.as_str()),
            (outcome, detail),
            "{body}"
        );
    }
}

/// Signed, well formed, and not what the plan `a; b` for files `x` and `y` can
/// have come to.
#[test]
fn a_signed_report_of_another_plan() {
    let wrong = [
        r#"{"steps":[]}"#,
        r#"{"steps":[{"command":"a"}]}"#,
        r#"{"steps":[{"command":"a"},{"command":"b"},{"command":"c"}]}"#,
        r#"{"steps":[{"command":"b"},{"command":"a"}]}"#,
        r#"{"steps":[{"command":"a"},{"command":""}]}"#,
        r#"{"steps":[{"command":"a"},{"command":"npm test"}]}"#,
        r#"{"steps":[{"command":"a","exitCode":1},{"command":"b"}]}"#,
        r#"{"steps":[{"command":"a","timedOut":true},{"command":"b"}]}"#,
    ];
    let files = [
        &["z"][..],
        &["../../etc/passwd"][..],
        &["/x"][..],
        &["x", "x"][..],
        &["y", "x"][..],
        &["x", "y", "z"][..],
    ];
    let files = files.map(|paths| {
        let list: Vec<String> = paths
            .iter()
            .map(|path| format!(r#"{{"path":"{path}","content":""}}"#))
            .collect();
        let list = list.join(",");
        format!(r#"{{"steps":[{{"command":"a"}},{{"command":"b"}}],"artifacts":[{list}]}}"#)
    });
    let all = wrong.into_iter().chain(files.iter().map(String::as_str));
    for body in all {
        let verdict = verdict(body, &["a", "b"], &["x", "y"]);
        assert_eq!(
            (verdict.outcome, verdict.detail.as_str()),
            (
                ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR,
                "the runner's report is not of this plan"
            ),
            "{body}"
        );
        assert!(verdict.steps.is_empty() && verdict.artifacts.is_empty());
    }
}

#[test]
fn every_way_a_plan_can_end_is_its_report() {
    let long = "x".repeat((16 << 10) + 1);
    let steps = format!(
        r#"[{{"command":"{}"}},{{"command":"b"}}]"#,
        &long[..16 << 10]
    );
    let right = [
        steps.as_str(),
        r#"[{"command":"a","exitCode":-1}]"#,
        r#"[{"command":"a","stdoutTruncated":true}]"#,
        r#"[{"command":"a"},{"command":"b","exitCode":1}]"#,
    ];
    for (index, steps) in right.into_iter().enumerate() {
        let first = if index == 0 { long.as_str() } else { "a" };
        for path in ["x", "y"] {
            let body =
                format!(r#"{{"steps":{steps},"artifacts":[{{"path":"{path}","content":""}}]}}"#);
            let verdict = verdict(&body, &[first, "b"], &["x", "y"]);
            assert_eq!(
                verdict.outcome,
                ProjectOutcome::PROJECT_OUTCOME_COMPLETED,
                "{body:.80}"
            );
        }
    }
}

#[test]
fn what_is_signed_and_no_report() {
    let artifact = |content: &str| {
        format!(r#"{{"steps":[],"artifacts":[{{"path":"a","content":"{content}"}}]}}"#)
    };
    let steps = format!(r#"{{"steps":[{}{{}}]}}"#, "{},".repeat(20));
    let bodies = [
        String::new(),
        "{}".to_owned(),
        "[]".to_owned(),
        r#"{"steps":[]}x"#.to_owned(),
        r#"{"steps":[{"exitCode":4294967296}]}"#.to_owned(),
        r#"{"steps":[{"durationMs":-1}]}"#.to_owned(),
        artifact("AA"),
        artifact("AB=="),
        artifact("A-=="),
        artifact(&"AAAA".repeat((8 << 20) / 3 + 1)),
        steps,
    ];
    for body in bodies {
        let verdict = verdict(&body, &[], &["a"]);
        assert_eq!(
            verdict.outcome,
            ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR
        );
        assert_eq!(
            verdict.detail, "could not parse sandbox result",
            "{body:.60}"
        );
    }
}

#[test]
fn without_a_report_the_ending_speaks() {
    let exited = |status, out_of_memory| Ending::Exited {
        status,
        out_of_memory,
    };
    let table = [
        (&b""[..], Ending::Deadline, "run exceeded the time budget"),
        (MARKER, Ending::Deadline, "run exceeded the time budget"),
        (b"", exited(None, None), "the runner did not report"),
        (
            b"",
            exited(Some(1), None),
            "the runner did not report (container exit 1)",
        ),
        (
            b"",
            exited(Some(137), Some(256 << 20)),
            "the runner did not report (container exit 137) (out of memory): the limit is 256 MiB",
        ),
        (
            MARKER,
            exited(Some(0), None),
            "no authenticated runner report",
        ),
    ];
    for (stdout, ending, detail) in table {
        assert_eq!(
            Verdict::of(stdout, &key(), ending, &Asked::default()).detail,
            detail
        );
    }
    let late = Verdict::of(
        &frame(br#"{"steps":[]}"#),
        &key(),
        Ending::Deadline,
        &Asked::default(),
    );
    assert_eq!(late.outcome, ProjectOutcome::PROJECT_OUTCOME_COMPLETED);
}
