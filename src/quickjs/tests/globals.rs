//! What a snippet finds, and what it must not find.
#![allow(clippy::unwrap_used)]

mod common;

use common::{fault, output, run};

#[test]
fn nothing_of_a_host_is_there() {
    for name in [
        "fetch",
        "process",
        "require",
        "module",
        "exports",
        "Buffer",
        "setTimeout",
        "setInterval",
        "setImmediate",
        "WebAssembly",
        "Worker",
        "TextEncoder",
        "std",
        "os",
        "bjson",
        "navigator",
        "scriptArgs",
        "print",
        "gc",
        "host",
        "__plimsoll_host_call",
        "Atomics",
    ] {
        assert_eq!(
            output(&format!("console.log(typeof {name})")),
            "undefined\n",
            "{name}"
        );
    }
    assert_eq!(
        output("console.log(Object.getOwnPropertyNames(Intl).join())"),
        "NumberFormat\n"
    );
}

#[test]
fn no_module_can_be_loaded() {
    for name in [
        "std",
        "qjs:std",
        "qjs:os",
        "./a.js",
        "/etc/passwd",
        "https://example.org/a.js",
    ] {
        assert!(
            fault(&format!("await import('{name}')")).contains("could not load module"),
            "{name}"
        );
    }
    assert!(fault("import x from 'y'").contains("SyntaxError"));
}

#[test]
fn the_language_is_all_there() {
    for (code, printed) in [
        ("2n ** 64n", "18446744073709551616"),
        ("new Float16Array([1.5])[0]", "1.5"),
        ("/(?<=a)b/.test('ab')", "true"),
        (
            "[...function* () { yield* [1, 2] }()].map(x => x * 2).join()",
            "2,4",
        ),
        ("Iterator.from([1, 2, 3]).drop(1).toArray().join()", "2,3"),
        ("typeof Symbol.dispose", "symbol"),
        ("new WeakRef({}) instanceof WeakRef", "true"),
        ("new Proxy({}, { get: () => 7 }).x", "7"),
        ("atob(btoa('hi'))", "hi"),
        ("new DOMException('m', 'AbortError').name", "AbortError"),
        ("typeof queueMicrotask", "function"),
        ("JSON.stringify({ a: [1, null] })", r#"{"a":[1,null]}"#),
        ("new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"),
    ] {
        assert_eq!(
            output(&format!("console.log({code})")),
            format!("{printed}\n"),
            "{code}"
        );
    }
}

#[test]
fn clocks_move_and_are_coarse() {
    let code = "const t = Date.now(), p = performance.now(); let now; do { now = performance.now() } while (now === p);
        console.log(Number.isInteger(now), now > p, p >= 0 && p < 1000, t > 1.7e12, Date.now() >= t,
            Math.abs(performance.timeOrigin - t) < 1000)";
    assert_eq!(output(code), "true true true true true true\n");
}

#[test]
fn every_console_method_prints_to_its_stream() {
    let outcome =
        run("for (const m of ['log', 'info', 'debug', 'error', 'warn', 'trace']) console[m](m, 1)");
    assert_eq!(outcome.stdout, b"log 1\ninfo 1\ndebug 1\n");
    assert_eq!(outcome.stderr, b"error 1\nwarn 1\ntrace 1\n");
    assert_eq!(output("console.log()"), "\n");
}

#[test]
fn values_are_readable() {
    for (code, printed) in [
        (
            "'a\\0b', 1, -0, 1n, true, null, undefined, Symbol('s')",
            "a\0b 1 0 1 true null undefined Symbol(s)",
        ),
        (
            "{ a: 1, 'b-c': 'x\\n\"', d: [1, , 3], [Symbol('k')]: 2n }",
            r#"{ a: 1, "b-c": "x\n\"", d: [ 1, <1 empty>, 3 ], [Symbol(k)]: 2n }"#,
        ),
        (
            "[], {}, Object.create(null), [[]], new Array(3)",
            "[] {} [Object: null prototype] {} [ [] ] [ <3 empty> ]",
        ),
        (
            "new Map([[1, 'a']]), new Set([[1]])",
            "Map(1) { 1 => \"a\" } Set(1) { [ 1 ] }",
        ),
        (
            "new Uint8Array([1, 2]), new Date(0), new Date(NaN), /a\\/b/gi",
            "Uint8Array(2) [ 1, 2 ] 1970-01-01T00:00:00.000Z Invalid Date /a\\/b/gi",
        ),
        (
            "function f() {}, () => {}, class A {}",
            "[Function: f] [Function (anonymous)] [Function: A]",
        ),
        ("new (class Point { x = 1 })()", "Point { x: 1 }"),
        (
            "Promise.resolve(1), new Promise(() => {})",
            "Promise { 1 } Promise { <pending> }",
        ),
        (
            "{ a: { b: { c: {} } } }, [[[[1]]]]",
            "{ a: { b: { c: [Object] } } } [ [ [ [Array] ] ] ]",
        ),
        (
            "(() => { const a = {}; a.a = a; return a })()",
            "{ a: [Circular] }",
        ),
        ("[new RangeError('r')]", "[ [RangeError: r] ]"),
        (
            "'\\ud800|\\udc00|\\u{1f600}'",
            "\u{fffd}|\u{fffd}|\u{1f600}",
        ),
    ] {
        assert_eq!(
            output(&format!("console.log({code})")),
            format!("{printed}\n"),
            "{code}"
        );
    }
    let long = output("console.log(Array.from({ length: 300 }, (_, i) => i))");
    assert!(long.ends_with("98, 99, ... 200 more ]\n"), "{long}");
}

#[test]
fn printing_runs_no_code_of_the_guest() {
    let code = "const bad = () => { throw new Error('called') };
        const trap = new Proxy({}, { get: bad, has: bad, ownKeys: bad, getOwnPropertyDescriptor: bad, getPrototypeOf: bad });
        class Odd extends Error { get name() { bad() } get message() { bad() } get stack() { bad() } }
        Object.defineProperty(Odd.prototype, 'constructor', { get: bad });
        Object.defineProperty(Array.prototype, '0', { set: bad, configurable: true });
        Error.prepareStackTrace = bad;
        Map.prototype.entries = Date.prototype.toISOString = Set.prototype.values = bad;
        Object.defineProperty(RegExp.prototype, 'flags', { get: bad });
        console.log(trap, Object.create(trap), { get a() { bad() }, set b(v) {}, toString: bad, toJSON: bad }, [new Odd],
            new Map([[1, trap]]), new Set([2]), new Date(0), new Date(NaN), /x/g, { [Symbol.toPrimitive]: bad });
        console.log(new Odd)";
    let printed = output(code);
    assert!(
        printed.starts_with("[Proxy] Object {} { a: [Getter], b: [Setter], "),
        "{printed}"
    );
    assert!(!printed.contains("called"), "{printed}");
}

#[test]
fn numbers_are_grouped_as_in_english() {
    for (code, printed) in [
        ("(95000).toLocaleString()", "95,000"),
        (
            "(95000).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            "$95,000.00",
        ),
        (
            "(-1234567.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            "-$1,234,567.50",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'currency', currency: 'EUR' }).format(1000)",
            "€1,000.00",
        ),
        (
            "Intl.NumberFormat('en-US', { style: 'currency', currency: 'chf' }).format(5)",
            "CHF 5.00",
        ),
        ("(1234.5678).toLocaleString()", "1,234.568"),
        (
            "(1.5).toLocaleString(undefined, { minimumFractionDigits: 2 })",
            "1.50",
        ),
        (
            "(1.55).toLocaleString(undefined, { maximumFractionDigits: 0 })",
            "2",
        ),
        ("(1e21).toLocaleString()", "1,000,000,000,000,000,000,000"),
        (
            "[NaN, Infinity, -Infinity, 0, 999, -1000].map(n => n.toLocaleString()).join(' ')",
            "NaN Infinity -Infinity 0 999 -1,000",
        ),
        (
            "[1000, 2].map(new Intl.NumberFormat().format).join(' ')",
            "1,000 2",
        ),
        (
            "JSON.stringify(new Intl.NumberFormat('de', { style: 'decimal' }).resolvedOptions())",
            r#"{"locale":"en-US","style":"decimal"}"#,
        ),
    ] {
        assert_eq!(
            output(&format!("console.log({code})")),
            format!("{printed}\n"),
            "{code}"
        );
    }
    for code in [
        "(1).toLocaleString('en', { minimumFractionDigits: 101 })",
        "(1).toLocaleString('en', { style: 'currency' })",
    ] {
        assert!(fault(code).contains("Error: "), "{code}");
    }
}
