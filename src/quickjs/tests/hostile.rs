//! Snippets that try to take more than they are given. Each must end as a run, never as an error of the host.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{SECOND, fault, output, run, run_for, stderr};

/// Ends by the deadline, and soon after it.
fn runs_into_the_deadline(code: &str) {
    let outcome = run_for(code, Duration::from_millis(300));
    assert_eq!(
        (outcome.exit_code, outcome.timed_out),
        (124, true),
        "{code}: {}",
        stderr(&outcome)
    );
    assert!(outcome.duration < SECOND, "{code}: {:?}", outcome.duration);
}

#[test]
fn endless_code_is_stopped() {
    runs_into_the_deadline("for(;;);");
    runs_into_the_deadline("/(a*)*b/.test('a'.repeat(40))");
    runs_into_the_deadline("(function f() { Promise.resolve().then(f) })()");
    runs_into_the_deadline("for (;;) try { throw 1 } catch {} finally { continue }");
    runs_into_the_deadline("for (;;) [3, 2, 1].sort(() => 0)");
    runs_into_the_deadline("console.log(new Proxy([], { get() { for (;;); } }).length)");
    runs_into_the_deadline("const b = 2n ** 500000n; for (;;) b * b");
}

#[test]
fn memory_ends_in_an_exception_the_guest_can_catch() {
    for code in [
        "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20))",
    ] {
        assert!(fault(code).contains("out of memory"), "{code}");
        assert_eq!(
            output(&format!(
                "try {{ (() => {{ {code} }})() }} catch (e) {{ console.log(e.message) }}"
            )),
            "out of memory\n"
        );
    }
    assert!(fault("let s = 'x'; for (;;) s += s").contains("string too long"));
    assert!(fault("new ArrayBuffer(2 ** 32)").contains("RangeError"));
    assert!(fault("new ArrayBuffer(2 ** 31 - 1)").contains("Error"));
}

#[test]
fn recursion_ends_in_a_range_error_or_a_trap() {
    let text = fault("function f(n) { return n <= 0 ? 0 : 1 + f(n - 1) } f(200000)");
    assert!(
        text.starts_with("Uncaught RangeError: Maximum call stack size exceeded\n"),
        "{text}"
    );
    assert_eq!(
        output("function f() { f() } try { f() } catch (e) { console.log(e.name) }"),
        "RangeError\n"
    );
    for code in [
        "JSON.parse('['.repeat(200000))",
        "eval('('.repeat(20000))",
        "eval('('.repeat(5000) + ')'.repeat(5000))",
        "new RegExp('('.repeat(100000))",
        "let a = []; for (let i = 0; i < 200000; i++) a = [a]; JSON.stringify(a)",
        "let a = []; for (let i = 0; i < 200000; i++) a = [a]; a.flat(Infinity)",
        "const p = new Proxy({}, {}); Object.setPrototypeOf(p, Object.create(p)); p.x",
        "let f = () => {}; for (let i = 0; i < 200000; i++) f = f.bind(null); f()",
    ] {
        let outcome = run(code);
        assert!(
            [0, 1, 134].contains(&outcome.exit_code),
            "{code}: {}",
            outcome.exit_code
        );
        assert_eq!(
            outcome.exit_code == 134,
            outcome.stderr.starts_with(b"guest aborted: "),
            "{code}"
        );
    }
}

#[test]
fn a_trap_keeps_what_was_printed() {
    let outcome = run("console.error('before'); eval('('.repeat(200000))");
    assert_eq!(
        (outcome.exit_code, stderr(&outcome).as_str()),
        (134, "before\n")
    );
    let outcome = run("eval('('.repeat(200000))");
    assert_eq!(
        (outcome.exit_code, stderr(&outcome).as_str()),
        (134, "guest aborted: wasm trap: call stack exhausted")
    );
}

#[test]
fn output_without_end_is_cut_and_costs_no_memory_here() {
    let outcome = run("for (let i = 0; i < 1600; i++) console.log('x'.repeat(65536))");
    assert_eq!(
        (
            outcome.exit_code,
            outcome.stdout.len(),
            outcome.stdout_truncated
        ),
        (0, 65_536, true)
    );
    runs_into_the_deadline("for (;;) console.log('x')");
    let outcome = run(
        "const y = 'y'.repeat(900), wide = (d) => d ? Array.from({ length: 100 }, () => wide(d - 1)) : y;
        console.log(wide(3))",
    );
    assert_eq!((outcome.exit_code, outcome.stdout_truncated), (0, true));
}

#[test]
fn odd_sources_are_scripts_like_any_other() {
    assert_eq!(output(""), "");
    assert_eq!(output("#!/usr/bin/env node\nconsole.log(1)"), "1\n");
    assert_eq!(output("console.log('\u{1f600}'.length)"), "2\n");
    assert!(fault("console.log(1)\0").contains("SyntaxError"));
    let long = format!("console.log({})", vec!["1"; 120_000].join("+"));
    assert!([0, 1, 134].contains(&run(&long).exit_code));
    assert_eq!(
        output(&format!("console.log('{}'.length)", "z".repeat(256 * 1024))),
        "262144\n"
    );
}

#[test]
fn replaced_intrinsics_change_no_ending() {
    let code = "Promise.prototype.then = () => { throw 1 }; Object.prototype.then = 1; console.log = undefined;
        Object.defineProperty(Object.prototype, 'get', { get() { throw 2 } }); Error.prepareStackTrace = () => { throw 3 };
        throw new Error('still here')";
    assert!(fault(code).starts_with("Uncaught Error: still here"));
    assert_eq!(
        output("delete globalThis.console; Math.random = null; performance = null"),
        ""
    );
}
