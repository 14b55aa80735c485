//! The granted client against a fake host.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{Fake, INTERPRETER, SECOND, grant, output, run_granted, stderr};
use plimsoll_quickjs::{CancelToken, Grant, HostCalls, HostRequest};

fn api(request: HostRequest<'_>) -> (u16, String) {
    match (request.method, request.path) {
        (_, "/v1/items/1") => (200, r#"{"id":1}"#.into()),
        (_, "/v1/text") => (200, "plain".into()),
        (_, "/v1/empty") => (204, String::new()),
        (_, "/v1/big") => (200, "b".repeat(4 << 20)),
        (_, "/v1/bigger") => (200, "b".repeat((4 << 20) + 1)),
        (_, "/v1/odd") => (99, "x".into()),
        (_, "/v1/moved") => (302, "elsewhere".into()),
        _ => (404, r#"{"code":"x"}"#.into()),
    }
}

fn items() -> Grant {
    let allow = [
        "GET /v1/items/*",
        "GET /v1/*",
        "put /v1/items/*",
        "POST /v1/items/*",
        "PATCH /v1/items/*",
        "DELETE /v1/items/*",
    ];
    grant(&allow, Fake::new(|request, _| api(request)))
}

/// Standard output of a granted snippet that must end well.
fn granted(code: &str) -> String {
    let outcome = run_granted(code, &items());
    assert_eq!(
        (outcome.exit_code, stderr(&outcome).as_str()),
        (0, ""),
        "{code}"
    );
    String::from_utf8(outcome.stdout).unwrap()
}

#[test]
fn answers_resolve_to_json_or_text() {
    assert_eq!(
        granted(
            "const p = host.get('/v1/items/1'); console.log(p instanceof Promise, (await p).id)"
        ),
        "true 1\n"
    );
    assert_eq!(
        granted(
            "console.log(await host.call('get', '/v1/text'), JSON.stringify(await host.get('/v1/empty')))"
        ),
        "plain \"\"\n"
    );
    assert_eq!(
        granted("console.log((await host.get('/v1/big')).length)"),
        "4194304\n"
    );
}

#[test]
fn every_method_sends_its_verb_and_body() {
    let host = Fake::new(|_, _| (200, "null".into()));
    let calls: Arc<dyn HostCalls> = host.clone();
    let allow = [
        "GET /a/*",
        "PUT /a/*",
        "POST /a/*",
        "PATCH /a/*",
        "DELETE /a/*",
    ];
    let code = "await host.get('/a/1'); await host.put('/a/1', { x: [1, 'é\\ud800'] }); await host.post('/a/1', null);
        await host.patch('/a/1', undefined); await host.del('/a/1'); await host.call('pAtCh', '/a/b-._~', 'text')";
    let outcome = run_granted(code, &grant(&allow, calls));
    assert_eq!((outcome.exit_code, stderr(&outcome).as_str()), (0, ""));
    let seen = |method: &str, path: &str, body: Option<&str>| {
        (method.into(), path.into(), body.map(Into::into))
    };
    assert_eq!(
        *host.seen.lock().unwrap(),
        [
            seen("GET", "/a/1", None),
            seen("PUT", "/a/1", Some(r#"{"x":[1,"é\ud800"]}"#)),
            seen("POST", "/a/1", Some("null")),
            seen("PATCH", "/a/1", None),
            seen("DELETE", "/a/1", None),
            seen("PATCH", "/a/b-._~", Some(r#""text""#)),
        ]
    );
}

#[test]
fn other_answers_reject_with_status_and_body() {
    let code = "try { await host.get('/v1/none') } catch (e) {
        console.log(e instanceof Error, e.message, e.status === 404, e.body.code, JSON.stringify(e)) }";
    let printed =
        "true host api 404: {\"code\":\"x\"} true x {\"status\":404,\"body\":{\"code\":\"x\"}}\n";
    assert_eq!(granted(code), printed);
    let failing = |path: &str| {
        granted(&format!(
            "await host.get('{path}').catch(e => console.log(e.message, e.body))"
        ))
    };
    assert_eq!(failing("/v1/moved"), "host api 302: elsewhere elsewhere\n");
    assert_eq!(failing("/v1/bigger"), "host api 500:  \n");
    assert_eq!(failing("/v1/odd"), "host api 500:  \n");
}

#[test]
fn calls_outside_the_grant_do_not_reach_the_host() {
    let host = Fake::new(|_, _| (200, String::new()));
    let calls: Arc<dyn HostCalls> = host.clone();
    let code = "for (const path of ['/v1/items', '/v1/items/', '/v1/items/..', '/v1/items/a/b', '/v1/items/a?b', '/v1/items/%2e',
        '/v1/items/a:b', '/V1/items/a', '', 'v1/items/a', '/v1/items/é']) {
        try { await host.get(path); console.log('reached', path) } catch (e) {
          if (e.message !== `host api call not permitted by sandbox capability: GET ${path}` || 'status' in e) console.log(e) } }
        await host.put('/v1/items/a').catch(e => console.log(e.message))";
    let outcome = run_granted(code, &grant(&["GET /v1/items/*"], calls));
    let printed = "host api call not permitted by sandbox capability: PUT /v1/items/a\n";
    assert_eq!(
        (
            outcome.exit_code,
            String::from_utf8(outcome.stdout).unwrap().as_str()
        ),
        (0, printed)
    );
    assert!(host.seen.lock().unwrap().is_empty());
}

#[test]
fn the_primitive_is_no_global_and_without_a_grant_there_is_no_client() {
    assert_eq!(
        granted("console.log(typeof host, typeof __plimsoll_host_call)"),
        "object undefined\n"
    );
    assert_eq!(
        output("console.log(typeof host, typeof __plimsoll_host_call)"),
        "undefined undefined\n"
    );
    let names = "Object.getOwnPropertyNames(globalThis)";
    let mut more = granted(&format!("console.log({names}.join('\\n'))"));
    more = more
        .lines()
        .filter(|name| *name != "host")
        .map(|name| format!("{name}\n"))
        .collect();
    assert_eq!(more, output(&format!("console.log({names}.join('\\n'))")));
}

#[test]
fn replaced_intrinsics_do_not_break_a_call() {
    let code = "const then = Promise.prototype.then, log = console.log;
        Promise.prototype.then = () => { throw 1 }; globalThis.Promise = null; globalThis.Error = null;
        JSON.parse = JSON.stringify = () => { throw 2 }; globalThis.JSON = null; Reflect.apply = null;
        String.prototype.split = String.prototype.toUpperCase = () => { throw 3 }; globalThis.String = null;
        Object.defineProperty = null;
        log((await host.post('/v1/items/1', { a: 1 })).id);
        // From here on the engine's own JSON.stringify fails on objects, so a call with such a body rejects.
        for (let i = 0; i < 8; i++) Object.prototype.__defineSetter__.call(Array.prototype, i, () => { throw 4 });
        log((await host.post('/v1/items/1', 'text')).id);
        try { await host.get('/v1/none') } catch (e) { log(e.message) }";
    assert_eq!(granted(code), "1\n1\nhost api 404: {\"code\":\"x\"}\n");
}

#[test]
fn arguments_of_any_type_end_as_a_rejection_or_an_exception() {
    let code = "const odd = [undefined, null, 1, Symbol('s'), {}, { toString() { throw new Error('t') } }, 'x'.repeat(100000)];
        let refused = 0, tries = 0;
        for (const m of odd) for (const p of odd) { tries++; try { await host.call(m, p, 1n) } catch { refused++ } }
        console.log(refused === tries)";
    assert_eq!(granted(code), "true\n");
    let code =
        "const a = {}; a.a = a; await host.put('/v1/items/1', a).catch(e => console.log(e.name));
        await host.put('/v1/items/1', 1n).catch(e => console.log(e.name))";
    assert_eq!(granted(code), "TypeError\nTypeError\n");
}

#[test]
fn an_envelope_over_the_limit_is_refused() {
    let code = "await host.put('/v1/items/1', 'x'.repeat(2 << 20)).catch(e => console.log(e.message, e.status))";
    assert_eq!(
        granted(code),
        "host api 413: host api request envelope too large 413\n"
    );
}

#[test]
fn the_preamble_runs_before_the_snippet_and_keeps_its_line_numbers() {
    let mut granted = items();
    granted.preamble = ";(() => { const h = globalThis['host']; h.item = (id) => h.get('/v1/items/' + id) })();\n\nconst seen = 1;".into();
    let outcome = run_granted("console.log((await host.item(1)).id, seen)", &granted);
    assert_eq!(
        (outcome.exit_code, outcome.stdout.as_slice()),
        (0, &b"1 1\n"[..]),
        "{}",
        stderr(&outcome)
    );
    let outcome = run_granted("throw new Error('line one')", &granted);
    assert!(
        stderr(&outcome).contains("snippet.js:1:"),
        "{}",
        stderr(&outcome)
    );

    granted.preamble = "throw new Error('early')".into();
    let outcome = run_granted("console.log('not reached')", &granted);
    assert_eq!(
        (outcome.exit_code, outcome.stdout.as_slice()),
        (1, &b""[..])
    );
    assert!(
        stderr(&outcome).contains("preamble.js:1:"),
        "{}",
        stderr(&outcome)
    );
}

#[test]
fn the_client_is_found_at_the_name_the_grant_gives() {
    let mut granted = items();
    granted.global = "my \"api\"\u{2028}".into();
    let outcome = run_granted(
        "console.log(typeof globalThis['my \"api\"\\u2028'].get)",
        &granted,
    );
    assert_eq!(outcome.stdout, b"function\n");
    granted.global = "host".into();
    let outcome = run_granted("const host = 1; console.log(host)", &granted);
    assert_eq!(outcome.stdout, b"1\n", "{}", stderr(&outcome));
}

#[test]
fn a_call_that_lasts_past_the_deadline_ends_the_run() {
    let (_never, sent) = mpsc::channel::<()>();
    let sent = std::sync::Mutex::new(sent);
    let host = Fake::new(move |_, deadline| {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let nothing = sent
            .lock()
            .unwrap()
            .recv_timeout(left + Duration::from_millis(20));
        assert!(nothing.is_err());
        (200, "1".into())
    });
    let granted = grant(&["GET /"], host);
    let outcome = INTERPRETER
        .run(
            "console.log('a'); await host.get('/'); console.log('b')",
            SECOND / 5,
            &CancelToken::new(),
            Some(&granted),
        )
        .unwrap();
    assert_eq!((outcome.exit_code, outcome.timed_out), (124, true));
    assert!(outcome.stdout.starts_with(b"a\n"));
}

#[test]
fn a_panicking_host_is_an_error_and_the_interpreter_goes_on() {
    let granted = grant(&["GET /"], Fake::new(|_, _| panic!("the fake broke")));
    let ended = INTERPRETER.run(
        "await host.get('/')",
        SECOND,
        &CancelToken::new(),
        Some(&granted),
    );
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(output("console.log(1)"), "1\n");
}
