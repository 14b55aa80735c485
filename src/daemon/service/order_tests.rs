//! Refusals before dispatch: what is refused, as what, and before what else.

use plimsoll_wire::{
    Code, Reason,
    proto::{
        CellRun, CloseSessionRequest, JavaScriptRun, MessageField, ModuleRun, OpenSessionRequest,
        ProjectRun, RunRequest, SessionEnd, SessionRunRequest,
    },
};

use super::fake::{Fake, Rig, call, request, rule, snippet};
use crate::{
    admission::{Limits, Shed},
    call::{CallError, Service},
};

const ONE_A_MINUTE: Limits = Limits {
    max_concurrent: 8,
    per_key: 0,
    rate_per_min: 1,
    burst: 1,
};

fn verdict(error: &CallError) -> (Code, Option<Reason>) {
    (error.code(), error.not_dispatched())
}

fn with_rule(mut request: RunRequest, mode: &str, identities: &[&str]) -> RunRequest {
    request.software_rule = MessageField::some(rule(mode, identities));
    request
}

fn with_floor(mut request: RunRequest, floor: &str) -> RunRequest {
    request.minimum_isolation = floor.to_owned();
    request
}

fn with_protocol(mut request: RunRequest, protocol: u32) -> RunRequest {
    request.protocol = protocol;
    request
}

fn granted(code: &str, profile: &str) -> RunRequest {
    request(JavaScriptRun {
        code: code.to_owned(),
        grant_profile: profile.to_owned(),
    })
}

fn many_identities() -> Vec<String> {
    (0..33).map(|i| format!("i:{i}")).collect()
}

/// Every refusal of the table, in its order.
fn refusals() -> Vec<(&'static str, RunRequest, Code, Reason)> {
    use {Code as C, Reason as R};
    let many = many_identities();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let empty = RunRequest {
        protocol: 3,
        ..Default::default()
    };
    let cell = request(CellRun {
        language: "python".into(),
        code: "1".into(),
        ..Default::default()
    });
    let project = request(ProjectRun::default());
    let module = request(ModuleRun::default());
    vec![
        (
            "no protocol",
            with_protocol(snippet("1"), 0),
            C::InvalidArgument,
            R::Protocol,
        ),
        (
            "protocol 2",
            with_protocol(snippet("1"), 2),
            C::Unimplemented,
            R::Protocol,
        ),
        (
            "protocol 4",
            with_protocol(snippet("1"), 4),
            C::Unimplemented,
            R::Protocol,
        ),
        (
            "floor VM",
            with_floor(snippet("1"), "VM"),
            C::InvalidArgument,
            R::Request,
        ),
        (
            "floor none",
            with_floor(snippet("1"), "none"),
            C::InvalidArgument,
            R::Request,
        ),
        (
            "floor spaced",
            with_floor(snippet("1"), "kernel "),
            C::InvalidArgument,
            R::Request,
        ),
        (
            "33 identities",
            with_rule(snippet("1"), "approved", &many),
            C::InvalidArgument,
            R::Request,
        ),
        (
            "mode",
            with_rule(snippet("1"), "best", &["a"]),
            C::InvalidArgument,
            R::Request,
        ),
        ("no payload", empty, C::InvalidArgument, R::Request),
        ("cell", cell, C::InvalidArgument, R::Request),
        ("empty code", snippet(""), C::InvalidArgument, R::Request),
        (
            "long code",
            snippet(&"x".repeat(262_145)),
            C::InvalidArgument,
            R::Request,
        ),
        ("no steps", project, C::InvalidArgument, R::Request),
        ("no rows", module, C::InvalidArgument, R::Request),
        (
            "long profile",
            granted("1", &"p".repeat(129)),
            C::InvalidArgument,
            R::Request,
        ),
        (
            "profile",
            granted("1", "billing"),
            C::PermissionDenied,
            R::Permission,
        ),
        (
            "floor",
            with_floor(snippet("1"), "kernel"),
            C::FailedPrecondition,
            R::Isolation,
        ),
        (
            "rule",
            with_rule(snippet("1"), "exact", &["a:1"]),
            C::FailedPrecondition,
            R::Environment,
        ),
    ]
}

#[tokio::test]
async fn refused_before_dispatch_and_without_a_token() {
    for (name, request, code, reason) in refusals() {
        let rig = Rig::limited(Fake::default(), ONE_A_MINUTE);
        let error = rig.service.run(call(Some("a")), request).await.unwrap_err();
        assert_eq!(verdict(&error), (code, Some(reason)), "{name}");
        assert_eq!(rig.fake.calls(), 0, "{name}");
        assert_eq!(rig.log.text(), "", "{name}: a refusal writes no line");
        // The only token of the minute is still there.
        let good = rig.service.run(call(Some("a")), snippet("1")).await;
        assert!(good.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn the_earlier_check_is_the_one_reported() {
    use {Code as C, Reason as R};
    let rig = Rig::limited(
        Fake::default(),
        Limits {
            max_concurrent: 1,
            per_key: 0,
            rate_per_min: 1,
            burst: 1,
        },
    );
    // The bucket is empty, so admission would refuse everything below.
    assert!(rig.service.run(call(Some("a")), snippet("1")).await.is_ok());
    let everything = with_floor(with_rule(granted("", "x"), "best", &[]), "VM");
    let cases = [
        (
            "protocol first",
            with_protocol(everything.clone(), 4),
            C::Unimplemented,
            R::Protocol,
        ),
        (
            "floor before rule",
            everything,
            C::InvalidArgument,
            R::Request,
        ),
        (
            "code before grant",
            granted("", "unknown"),
            C::InvalidArgument,
            R::Request,
        ),
        (
            "grant before tier",
            with_floor(granted("1", "unknown"), "vm"),
            C::PermissionDenied,
            R::Permission,
        ),
        (
            "tier before rule",
            with_floor(with_rule(snippet("1"), "exact", &["a"]), "vm"),
            C::FailedPrecondition,
            R::Isolation,
        ),
        (
            "rule before capacity",
            with_rule(snippet("1"), "exact", &["a"]),
            C::FailedPrecondition,
            R::Environment,
        ),
        (
            "capacity last",
            snippet("1"),
            C::ResourceExhausted,
            R::Capacity,
        ),
    ];
    for (name, request, code, reason) in cases {
        let error = rig.service.run(call(Some("a")), request).await.unwrap_err();
        assert_eq!(verdict(&error), (code, Some(reason)), "{name}");
        if name == "floor before rule" {
            assert!(error.message().contains("isolation"), "{}", error.message());
        }
        if name == "code before grant" {
            assert!(error.message().contains("code"), "{}", error.message());
        }
    }
    assert_eq!(rig.fake.calls(), 1);
}

#[tokio::test]
async fn profiles_cannot_be_told_apart() {
    let rig = Rig::new(Fake::default());
    let mut seen = Vec::new();
    for id in [None, Some("a")] {
        let error = rig
            .service
            .run(call(id), granted("1", "billing"))
            .await
            .unwrap_err();
        seen.push((verdict(&error), error.message().to_owned()));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(
        seen[0].1,
        "grant_profile \"billing\" is not available to this caller"
    );
}

#[tokio::test]
async fn an_unknown_tier_meets_no_floor() {
    let rig = Rig::new(Fake::default());
    *rig.fake.tier.lock().unwrap() = None;
    let floored = with_floor(snippet("1"), "process");
    let error = rig.service.run(call(None), floored).await.unwrap_err();
    assert_eq!(error.not_dispatched(), Some(Reason::Isolation));
    assert!(error.message().contains("unknown"));
    assert!(rig.service.run(call(None), snippet("1")).await.is_ok());
}

#[tokio::test]
async fn shed_runs_are_counted_by_cause() {
    let rig = Rig::limited(Fake::default(), ONE_A_MINUTE);
    assert!(rig.service.run(call(Some("a")), snippet("1")).await.is_ok());
    let error = rig
        .service
        .run(call(Some("a")), snippet("1"))
        .await
        .unwrap_err();
    assert_eq!(
        verdict(&error),
        (Code::ResourceExhausted, Some(Reason::Capacity))
    );
    assert!(rig.service.run(call(Some("b")), snippet("1")).await.is_ok());
    let shed = Shed::ALL.map(|cause| rig.service.limiter().shed(cause));
    assert_eq!(shed, [0, 0, 1, 0, 0]);
}

#[tokio::test]
async fn sessions_are_off() {
    let rig = Rig::new(Fake::default());
    let open = |protocol: u32, floor: &str| OpenSessionRequest {
        protocol,
        minimum_isolation: floor.into(),
        owner: "not an owner".into(),
        ..Default::default()
    };
    for (request, code, reason) in [
        (open(0, "VM"), Code::InvalidArgument, Reason::Protocol),
        (open(4, "VM"), Code::Unimplemented, Reason::Protocol),
        (open(3, "VM"), Code::InvalidArgument, Reason::Request),
        (open(3, "vm"), Code::Unimplemented, Reason::Unsupported),
    ] {
        let error = rig
            .service
            .open_session(call(None), request)
            .await
            .unwrap_err();
        assert_eq!(verdict(&error), (code, Some(reason)));
        assert!(error.session_ended().is_none());
    }

    let mut messages = Vec::new();
    for id in ["", "00000000000000000000000000000000", "A", "x y"] {
        let run = SessionRunRequest {
            protocol: 3,
            session_id: id.into(),
            ..Default::default()
        };
        let close = CloseSessionRequest {
            protocol: 3,
            session_id: id.into(),
        };
        let run = rig.service.session_run(call(None), run).await.unwrap_err();
        let close = rig
            .service
            .close_session(call(None), close)
            .await
            .unwrap_err();
        for error in [run, close] {
            assert_eq!(verdict(&error), (Code::NotFound, Some(Reason::Request)));
            let ended = error.session_ended().unwrap();
            assert_eq!(
                ended.reason.to_i32(),
                SessionEnd::SESSION_END_NOT_FOUND as i32
            );
            assert_eq!(ended.detail, "no such session for this caller");
            messages.push(error.message().to_owned());
        }
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");

    let bad = SessionRunRequest {
        protocol: 3,
        software_rule: MessageField::some(rule("best", &["a"])),
        ..Default::default()
    };
    let error = rig.service.session_run(call(None), bad).await.unwrap_err();
    assert_eq!(
        verdict(&error),
        (Code::InvalidArgument, Some(Reason::Request))
    );
    assert_eq!(rig.log.text(), "");
}
