//! The page reads reports with readers of its own, in the browser. Both must
//! read every report alike, broken ones included: a page that differs from the
//! command would refuse good receipts or take bad ones.

#![allow(clippy::unwrap_used, clippy::panic)]

mod node;

use std::{
    fs,
    path::{Path, PathBuf},
};

use plimsoll_attestation::base64;
use plimsoll_receipt::report::{self, Format};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads with the page's script.
const RUNNER: &str = r"
return input.map(({ format, bytes }) => {
  try {
    const { cases, broken } = readReport(format, Uint8Array.from(Buffer.from(bytes, 'base64')));
    return { cases: cases.map((c) => [c.name, c.class, c.duration === null ? null : String(c.duration)]), broken };
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    return null;
  }
});
";

fn by_page(reports: &[(Format, Vec<u8>)]) -> Vec<Value> {
    let input: Vec<Value> = reports
        .iter()
        .map(|(format, bytes)| json!({"format": format.name(), "bytes": base64::encode(bytes)}))
        .collect();
    let parts = ["01_bytes", "02_json", "07_junit", "08_tap", "09_outcome"];
    let read = node::run(&parts, RUNNER, &Value::from(input));
    serde_json::from_value(read).unwrap()
}

fn by_command(format: Format, bytes: &[u8]) -> Value {
    let Ok(parsed) = report::read(format, bytes) else {
        return Value::Null;
    };
    let cases: Vec<Value> = parsed
        .cases
        .iter()
        .map(|case| {
            let duration = case.duration_us.map(|us| us.to_string());
            json!([case.name, case.class.name(), duration])
        })
        .collect();
    json!({"cases": cases, "broken": parsed.broken.is_some()})
}

fn compare(reports: &[(Format, Vec<u8>)]) -> usize {
    let page = by_page(reports);
    assert_eq!(page.len(), reports.len());
    let mut read = 0;
    for ((format, bytes), page) in reports.iter().zip(&page) {
        let command = by_command(*format, bytes);
        assert_eq!(
            &command,
            page,
            "{format:?}: {}",
            String::from_utf8_lossy(bytes)
        );
        read += usize::from(!command.is_null());
    }
    read
}

/// The reports of real runners.
fn samples() -> Vec<(Format, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in ["testdata/reports", "testdata/sbom/reports"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let format = match path.extension().and_then(|e| e.to_str()) {
                Some("xml") => Format::Junit,
                Some("tap") => Format::Tap,
                _ => continue,
            };
            found.push((format, fs::read(path).unwrap()));
        }
    }
    found.sort_by(|a, b| a.1.cmp(&b.1));
    assert!(found.len() >= 10);
    found
}

#[test]
fn reports_of_real_runners() {
    let reports = samples();
    assert_eq!(compare(&reports), reports.len());
}

#[test]
fn reports_made_to_differ() {
    let junit = [
        "",
        " ",
        "<testsuites/>",
        "\u{feff}<testsuite><testcase name='a'/></testsuite>",
        "<testsuite><testcase name='a'/>",
        "<testsuite></testsuites>",
        "<testsuite></testsuite >\n",
        "<testsuite></testsuite><testsuite></testsuite>",
        "<a><testcase/></a>",
        "<testsuite>&amp;<testcase name='&#27;[31m&#x41;&lt;'/></testsuite>",
        "<testsuite>&nbsp;</testsuite>",
        "<testsuite>& </testsuite>",
        "<testsuite><testcase name='&'/></testsuite>",
        "<testsuite><testcase name='&#0;'/></testsuite>",
        "<testsuite><testcase name='&#xD800;'/></testsuite>",
        "<testsuite><testcase name='&#+5;'/></testsuite>",
        "<testsuite><testcase name='&#xFFFE;'/></testsuite>",
        "<testsuite><testcase name='a' name='b'/></testsuite>",
        "<testsuite><testcase name=a/></testsuite>",
        "<testsuite><testcase name/></testsuite>",
        "<testsuite><testcase name = \"a\tb\nc\"  time='1,234.5678901'/></testsuite>",
        "<testsuite><testcase name='a<b'/></testsuite>",
        "<testsuite><testcase name='a>b'/></testsuite>",
        "<testsuite><testcase name='a' time='.5'/><testcase name='b' time='1.2.3'/><testcase name='c' time='-1'/></testsuite>",
        "<testsuite><testcase name='a' time='99999999999999999999'/></testsuite>",
        "<testsuite><testcase name='a' time=''/><testcase name='b' time='1e3'/><testcase name='c' time='7.'/></testsuite>",
        "<testsuite name='s'><testsuite name=''><testcase classname='c' name='a'/></testsuite></testsuite>",
        "<testsuite><testcase classname='c' name='a'/><testcase classname='test' name='a'/><testcase/></testsuite>",
        "<testsuite><testcase><failure/><skipped type='todo'/></testcase><testcase><skipped/><error/></testcase></testsuite>",
        "<testsuite><testcase><rerunFailure/></testcase><testcase><flakyError/></testcase></testsuite>",
        "<testsuite><testcase><x><failure/></x></testcase></testsuite>",
        "<testsuite><testcase><x><testcase/></x></testcase></testsuite>",
        "<testsuite><properties><property name='x'/></properties><testcase name='a'/></testsuite>",
        "<!-- c --><testsuite><!-- <testcase/> --><![CDATA[<testcase/>]]></testsuite><!-- d -->",
        "<![CDATA[x]]><testsuite/>",
        "x<testsuite/>",
        "<testsuite/>x",
        "<testsuite/>\u{a0}",
        "<!DOCTYPE testsuite><testsuite/>",
        "<?xml version='1.0' encoding='UTF-8'?><testsuite/>",
        "<?xml version='1.0' encoding='latin1'?><testsuite/>",
        "<?xml version='1.0' encoding=\"US-ascii\"?><testsuite/>",
        "<?pi x?><testsuite/>",
        "<?><testsuite/>",
        "<testsuite =\"1\"name='x'/>",
        "<testsuite =''/>",
        "<testsuite ==''/>",
        "<testsuite></ >",
        "<testsuite>< ></ ></testsuite>",
        "<testsuite>< ></></testsuite>",
        "<?><testsuite/>?>",
        "<?><?x?><testsuite/>",
        "<??><testsuite/>",
        "<?xml?><testsuite/>",
        "<?xml ?><testsuite/>",
        "<!--><testsuite/>",
        "<!---><testsuite/>",
        "<!----><testsuite/>",
        "<!--->--><testsuite/>",
        "<testsuite><![CDATA[>]]></testsuite>",
        "<testsuite><![CDATA[]]></testsuite>",
        "<testsuite><![cdata[]]></testsuite>",
        "<><testsuite/>",
        "<testsuite></></testsuite>",
        "<testsuite></testsuite\t>",
        "<testsuite/\">",
        "<testsuite><testcase name='unclosed</testsuite>",
        "<testsuite><!-- unclosed </testsuite>",
        "<testsuite",
        "<testsuite>\0</testsuite>",
        "<testsuite a='1'b='2'/>",
        "<testsuite a=' &unknown; '/>",
        "< testsuite/>",
        "<testsuite/ >",
        "</testsuite>",
        "<TestSuite/>",
        "<testsuites><failure/><testcase name='a'/></testsuites>",
        "<testsuite><testcase name='a'/><error>x</error></testsuite>",
        "<testsuite><rerunError/><x><failure/></x></testsuite>",
        "<testsuite><flakyFailure/><testcase><flakyFailure/><rerunError/></testcase></testsuite>",
    ];
    let tap = [
        "",
        "ok",
        "1..0 # SKIP nothing",
        "TAP version 12\n1..1\nok 1",
        "TAP version 14\nok 1 - a\n1..1\n",
        "1..2\nok 1\n",
        "1..1\n1..1\nok\n",
        "1..1\nok 1 - a # skip why\n",
        "1..1\nok 1 - a # SkIp\n",
        "1..1\nok 1 - a # \u{212a}ip # todo\n",
        "1..1\nnot ok 1 - a \\# b # TODO\n",
        "1..1\nnot ok 1 - a \\\\# TODO\n",
        "1..1\nnot ok\n",
        "1..1\nokay\nok\n",
        "1..1\nok\u{85}1\u{3000}-\u{a0}x\u{feff}\n",
        "1..1 # x\r\nok 1 a\r\n",
        "1..1x\nok 1 a\n",
        "1..99999999999999999999\nok\n",
        "1..18446744073709551616\nok\n",
        "1..1\nBail out! x\n",
        "1..1\nok 1\n  ---\n  ok 2\n  ...\n",
        "1..1\nok 1\n  ---\n  ok 2\n",
        "1..1\n    ok 1 - in\n    1..1\nok 1 - out\n",
        "1..1\n    ok 1 - in\n    1..2\nok 1 - out\n",
        "1..1\n    ok 1 - in\nnot ok 1 - out\n",
        "1..1\n        ok 1 - deep\nok 1 - out\n    ok 2 - late\n",
        "1..1\n   ok 1 - odd\nok 1\n",
        "1..1\nTAP version 13\nok 1\n",
        "    TAP version 99\n1..1\nok 1\n",
        "1..1\nok 1 - \n",
        "1..1\nok 12345 -x\n",
        "1..1\n\tok\nok",
        "1..1\nok 1 - a\n\n\n",
        "1..2\nok 1\nok 1\n",
        "1..2\nok 2\nok 01\n",
        "1..2\nok 1\nok 3\n",
        "1..1\nok 0\n",
        "1..1\nok 0000000000000000000000000001\n",
        "1..1\nok 18446744073709551616\n",
        "1..1\nok 2nd\n",
        "1..1\nok 1\u{a0}a\n",
        "1..1\n    ok 2 - in\n    1..1\nok 1 - out\n",
        "1..1\n    ok 2 - in\nok 1 - out\n",
        "1..1\nnot ok 1 - a # TODOlist\n",
        "1..1\nnot ok 1 - a # TODO: x\n",
        "1..1\nnot ok 1 - a # TODO\u{a0}x\n",
        "1..1\nnot ok 1 - a # x # todo\n",
        "1..1\nok 1 - a # skipped\n",
    ];
    let mut reports: Vec<(Format, Vec<u8>)> = Vec::new();
    reports.extend(
        junit
            .iter()
            .map(|text| (Format::Junit, text.as_bytes().to_vec())),
    );
    reports.extend(
        tap.iter()
            .map(|text| (Format::Tap, text.as_bytes().to_vec())),
    );
    reports.push((Format::Junit, b"<testsuite name='\xff'/>".to_vec()));
    reports.push((Format::Junit, "<testsuite>".repeat(32).into_bytes()));
    for depth in [32, 33] {
        let nested = "<testsuite name='s'>".repeat(depth)
            + "<testcase name='x'/>"
            + &"</testsuite>".repeat(depth);
        reports.push((Format::Junit, nested.into_bytes()));
        let deep = (0..depth)
            .map(|d| format!("{}ok 1 - d{d}\n", " ".repeat(4 * (depth - 1 - d))))
            .collect::<String>()
            + "1..1\n";
        reports.push((Format::Tap, deep.into_bytes()));
    }
    for count in [64, 65] {
        let many: String = (0..count).map(|n| format!(" a{n}=''")).collect();
        reports.push((Format::Junit, format!("<testsuite{many}/>").into_bytes()));
    }
    for blanks in [1006, 1007, 1008] {
        let text = format!("<?xml version='1.0'{}?><testsuite/>", " ".repeat(blanks));
        reports.push((Format::Junit, text.into_bytes()));
    }
    let long = format!(
        "<testsuite name='{0}'><testsuite name='{0}'><testcase name='é{0}'/></testsuite></testsuite>",
        "é".repeat(1500)
    );
    reports.push((Format::Junit, long.into_bytes()));
    assert!(compare(&reports) > 40);
}

/// A fixed stream of numbers, so that a failure comes again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

#[test]
fn reports_that_were_damaged() {
    const PIECES: [&str; 18] = [
        "<",
        ">",
        "&",
        "\"",
        "'",
        "/",
        "\n",
        " ",
        "    ",
        "]]>",
        "<testcase name='n'/>",
        "ok 1 - n\n",
        "not ok\n",
        "1..2\n",
        "&amp;",
        "#",
        "---\n",
        "<!-- -->",
    ];
    let samples = samples();
    let mut numbers = Numbers(20_261_130);
    let mut reports = Vec::new();
    for _ in 0..3000 {
        let (format, bytes) = &samples[numbers.below(samples.len())];
        let mut bytes = bytes.clone();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len());
            let end = (at + numbers.below(12)).min(bytes.len());
            match numbers.below(4) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..at, PIECES[numbers.below(PIECES.len())].bytes())),
                2 => bytes[at] = PIECES[numbers.below(PIECES.len())].as_bytes()[0],
                _ => {
                    let copy = bytes[at..end].to_vec();
                    let to = numbers.below(bytes.len());
                    drop(bytes.splice(to..to, copy));
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        reports.push((*format, bytes));
    }
    let read = compare(&reports);
    assert!(read > 500 && read < 2900, "{read}");
}
