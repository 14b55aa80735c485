use http::HeaderValue;

use super::*;

fn read_with(status: u16, mark: &[&str], body: &str, bound: bool) -> Fault {
    let mut headers = HeaderMap::new();
    for value in mark {
        headers.append(NOT_DISPATCHED_HEADER, HeaderValue::from_str(value).unwrap());
    }
    read(
        StatusCode::from_u16(status).unwrap(),
        &headers,
        body.as_bytes(),
        bound,
    )
}

fn detail(value: &str) -> String {
    format!(
        r#"{{"code":"internal","message":"m","details":[{{"type":"plimsoll.v1.NotDispatched","value":"{value}"}}]}}"#
    )
}

#[test]
fn codes_come_from_the_body_or_the_status() {
    for (status, body, code) in [
        (500, r#"{"code":"not_found"}"#, Code::NotFound),
        (500, r#"{"code":"NOT_FOUND"}"#, Code::Unknown),
        (500, r#"{"code":5}"#, Code::Unknown),
        (400, "<html>", Code::Internal),
        (401, "", Code::Unauthenticated),
        (403, "", Code::PermissionDenied),
        (404, "404 page not found\n", Code::Unimplemented),
        (429, "", Code::Unavailable),
        (502, "", Code::Unavailable),
        (503, "", Code::Unavailable),
        (504, "", Code::Unavailable),
        (302, "", Code::Unknown),
        (
            500,
            r#"{"code":"not_found","code":"not_found"}"#,
            Code::Unknown,
        ),
        (500, r#"{"code":"not_found"} x"#, Code::Unknown),
    ] {
        assert_eq!(
            read_with(status, &[], body, true).failure.code,
            code,
            "{status} {body}"
        );
    }
    assert_eq!(
        read_with(302, &[], "", true).failure.message,
        "HTTP status 302"
    );
}

#[test]
fn a_mark_counts_only_when_it_is_certain() {
    let ran = |mark: &[&str], body: &str, bound| read_with(500, mark, body, bound).failure.ran;
    let no = |reason| Ran::No { reason };
    let plain = r#"{"code":"internal"}"#;
    assert_eq!(ran(&["request"], plain, true), no(Reason::Request));
    assert_eq!(
        ran(&["unsupported"], "404 page", true),
        no(Reason::Unsupported)
    );
    for odd in ["unknown", "REQUEST", "", "nonsense", "request,request"] {
        assert_eq!(ran(&[odd], plain, true), Ran::Maybe, "{odd:?}");
    }
    assert_eq!(ran(&["request", "request"], plain, true), Ran::Maybe);
    // The detail wins over the header; a broken detail does not count.
    assert_eq!(
        ran(&["request"], &detail("CAI"), true),
        no(Reason::Permission)
    );
    assert_eq!(ran(&["request"], &detail("CID"), true), no(Reason::Request));
    for broken in ["CA", "CgEB", "AAE", "CP////////////8B", "C!", "CAEI"] {
        assert_eq!(ran(&[], &detail(broken), true), Ran::Maybe, "{broken}");
    }
    for good in ["CAE", "CAE=", "type"] {
        let marked = matches!(ran(&[], &detail(good), true), Ran::No { .. });
        assert_eq!(marked, good != "type", "{good}");
    }
    let two = r#"{"details":[{"type":"x/plimsoll.v1.NotDispatched","value":"CAY"},{"type":"plimsoll.v1.NotDispatched","value":"CAE"}]}"#;
    assert_eq!(ran(&[], two, true), no(Reason::Capacity));
    let odd_first = r#"{"details":[7,{"type":1},{"type":"plimsoll.v1.NotDispatched","value":"CA"},{"type":"plimsoll.v1.NotDispatched","value":"CAE"}]}"#;
    assert_eq!(ran(&[], odd_first, true), no(Reason::Request));
    // An answer made for another request says nothing of this one.
    assert_eq!(ran(&["request"], &detail("CAE"), false), Ran::Maybe);
}

#[test]
fn an_answer_not_bound_keeps_code_and_message_only() {
    let body = r#"{"code":"failed_precondition","message":"gone","details":[{"type":"plimsoll.v1.SessionEnded","value":"CAI"},{"type":"plimsoll.v1.UnansweredCall","value":"CgIIAw"}]}"#;
    let fault = read_with(400, &[], body, false);
    assert_eq!(fault.failure.code, Code::FailedPrecondition);
    assert_eq!(fault.failure.message, "gone");
    assert_eq!(fault.failure.stage, Stage::Unchecked);
    assert!(fault.failure.ended.is_none() && fault.claim.is_none());
    let fault = read_with(400, &[], body, true);
    assert_eq!(fault.failure.stage, Stage::Daemon);
    assert_eq!(fault.failure.class, Class::SessionEnded);
    assert_eq!(fault.failure.ended.unwrap().reason, "expired");
    assert!(fault.claim.is_some());
    // A call that did not run gave no record.
    assert!(read_with(400, &["request"], body, true).claim.is_none());
}

#[test]
fn classes() {
    let class = |code: &str, reason: &str, ended: bool| {
        let mut details = Vec::new();
        if !reason.is_empty() {
            details.push(format!(
                r#"{{"type":"plimsoll.v1.NotDispatched","value":"{reason}"}}"#
            ));
        }
        if ended {
            details.push(r#"{"type":"plimsoll.v1.SessionEnded","value":"CAI"}"#.into());
        }
        let body = format!(r#"{{"code":"{code}","details":[{}]}}"#, details.join(","));
        read_with(500, &[], &body, true).failure.class
    };
    for (code, reason, ended, expected) in [
        ("failed_precondition", "", false, Class::Disabled),
        ("failed_precondition", "CAQ", false, Class::Disabled),
        (
            "failed_precondition",
            "CAU",
            false,
            Class::InsufficientIsolation,
        ),
        ("failed_precondition", "CAc", false, Class::SoftwareMismatch),
        ("failed_precondition", "CAE", true, Class::SessionEnded),
        ("unimplemented", "CAM", false, Class::ProtocolMismatch),
        ("unimplemented", "CAQ", false, Class::Unsupported),
        ("unimplemented", "", true, Class::Unsupported),
        ("resource_exhausted", "CAY", false, Class::AtCapacity),
        ("resource_exhausted", "CAE", false, Class::InvalidRequest),
        ("resource_exhausted", "", false, Class::Generic),
        ("invalid_argument", "CAE", false, Class::InvalidRequest),
        ("invalid_argument", "CAM", false, Class::InvalidRequest),
        ("not_found", "CAE", true, Class::SessionEnded),
        ("internal", "", true, Class::SessionEnded),
        ("canceled", "", true, Class::Generic),
        ("deadline_exceeded", "", true, Class::Generic),
        ("internal", "", false, Class::Generic),
    ] {
        assert_eq!(
            class(code, reason, ended),
            expected,
            "{code} {reason} {ended}"
        );
    }
}
