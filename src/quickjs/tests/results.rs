//! How runs end.
#![allow(clippy::unwrap_used)]

mod common;

use common::{SECOND, fault, output, run, run_for, stderr};

#[test]
fn prints_and_exits_with_zero() {
    let outcome = run("console.log(\"wasm\", 6*7)");
    assert_eq!((outcome.exit_code, outcome.timed_out), (0, false));
    assert_eq!(outcome.stdout, b"wasm 42\n");
    assert_eq!(outcome.stderr, b"");
    assert!(outcome.duration < SECOND);
}

#[test]
fn an_uncaught_exception_is_reported_with_its_place() {
    let text = fault("\n  throw new Error(\"boom\")");
    assert!(text.starts_with("Uncaught Error: boom\n"), "{text}");
    assert!(text.contains("snippet.js:2:"), "{text}");
    assert!(fault("let a = 1;\n let = ;").contains("SyntaxError"));
    assert_eq!(fault("throw { a: 1 }"), "Uncaught { a: 1 }\n");
    assert_eq!(fault("throw undefined"), "Uncaught undefined\n");
    assert!(
        fault("queueMicrotask(() => { throw new TypeError('j') })")
            .starts_with("Uncaught TypeError: j\n")
    );
}

#[test]
fn an_error_is_printed_with_its_cause_and_properties() {
    let text = fault(
        "throw Object.assign(new Error('a', { cause: new TypeError('b') }), { status: 404 })",
    );
    for part in [
        "Uncaught Error: a\n",
        "{ status: 404 }",
        "[cause]: TypeError: b\n",
    ] {
        assert!(text.contains(part), "{part} not in {text}");
    }
}

#[test]
fn top_level_await_works_in_a_sloppy_script() {
    assert_eq!(output("await 1; console.log('x')"), "x\n");
    assert_eq!(
        output("undeclared = 1; console.log(this === globalThis, undeclared)"),
        "true 1\n"
    );
    assert_eq!(
        output("'use strict'; try { undeclared = 1 } catch (e) { console.log(e.name) }"),
        "ReferenceError\n"
    );
    assert_eq!(
        output("var v = 1; function f() {} console.log(globalThis.v, typeof globalThis.f)"),
        "1 function\n"
    );
    assert!(fault("await Promise.reject(new Error('late'))").starts_with("Uncaught Error: late\n"));
}

#[test]
fn rejections_count_until_they_are_handled() {
    assert!(
        fault("Promise.reject(new Error('r'))").starts_with("Uncaught (in promise) Error: r\n")
    );
    assert_eq!(
        output(
            "const p = Promise.reject(1); queueMicrotask(() => p.catch(() => console.log('h')))"
        ),
        "h\n"
    );
    let text = fault("for (let i = 0; i < 20; i++) Promise.reject(i)");
    assert!(text.starts_with("Uncaught (in promise) 0\n"), "{text}");
    assert!(
        text.ends_with("Further unhandled rejections: 12\n"),
        "{text}"
    );
}

#[test]
fn a_promise_nobody_settles_fails_only_the_script_that_waits() {
    assert_eq!(output("new Promise(() => {})"), "");
    assert_eq!(
        fault("await new Promise(() => {})"),
        "top-level await never settled\n"
    );
}

#[test]
fn jobs_run_until_none_remains() {
    assert_eq!(
        output(
            "let p = Promise.resolve(0); for (let i = 0; i < 5000; i++) p = p.then(n => n + 1);
        p.then(n => console.log(n))"
        ),
        "5000\n"
    );
}

#[test]
fn the_deadline_keeps_what_was_printed() {
    let outcome = run_for(
        "console.log('before'); console.error('also'); while (true) {}",
        SECOND,
    );
    assert_eq!((outcome.exit_code, outcome.timed_out), (124, true));
    assert_eq!(
        (outcome.stdout.as_slice(), stderr(&outcome).as_str()),
        (&b"before\n"[..], "also\n")
    );
    assert!(
        outcome.duration >= SECOND && outcome.duration < SECOND * 12 / 10,
        "{:?}",
        outcome.duration
    );
}

#[test]
fn seventy_kibibytes_are_cut_to_the_cap_without_a_mark() {
    let outcome = run("console.log('x'.repeat(70 * 1024)); console.error('y')");
    assert_eq!((outcome.exit_code, outcome.stdout.len()), (0, 65_536));
    assert!(outcome.stdout.iter().all(|byte| *byte == b'x'));
    assert!(outcome.stdout_truncated && !outcome.stderr_truncated);
    assert_eq!(outcome.stderr, b"y\n");
}

#[test]
fn runs_share_nothing() {
    output(
        "globalThis.x = 1; Array.prototype.push = null; console.log = null; Object.freeze(Math)",
    );
    assert_eq!(
        output("console.log(typeof x, typeof [].push, Object.isFrozen(Math))"),
        "undefined function false\n"
    );
    let draw = || output("console.log(Math.random(), Math.random())");
    assert_ne!(draw(), draw());
}
