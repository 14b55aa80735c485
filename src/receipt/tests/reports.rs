//! Reports as runners write them, and as attackers do.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeMap, path::PathBuf};

use plimsoll_receipt::{
    facts::TestClass,
    report::{
        self, Format, ParseError, Parsed,
        name::{Unique, clean},
    },
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reports")
}

fn format(name: &str) -> Format {
    if name.ends_with(".tap") {
        Format::Tap
    } else {
        Format::Junit
    }
}

fn classes(parsed: &Parsed) -> BTreeMap<String, Vec<String>> {
    let mut unique = Unique::default();
    let mut classes: BTreeMap<String, Vec<String>> = ["failed", "passed", "skipped", "warned"]
        .map(|class| (class.to_owned(), Vec::new()))
        .into();
    for case in &parsed.cases {
        let name = unique.name(clean(&case.name));
        classes.get_mut(case.class.name()).unwrap().push(name);
    }
    classes
}

fn junit(text: &str) -> Result<Parsed, ParseError> {
    report::read(Format::Junit, text.as_bytes())
}

fn tap(text: &str) -> Result<Parsed, ParseError> {
    report::read(Format::Tap, text.as_bytes())
}

#[test]
fn every_sample_reads_as_expected() {
    let expected: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_slice(&std::fs::read(folder().join("expected.json")).unwrap()).unwrap();
    let mut seen = 0;
    for file in std::fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if !(name.ends_with(".xml") || name.ends_with(".tap")) {
            continue;
        }
        seen += 1;
        let bytes = std::fs::read(folder().join(&name)).unwrap();
        let parsed = report::read(format(&name), &bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(classes(&parsed), expected[&name], "{name}");
        assert_eq!(parsed.broken, None, "{name}");
        assert!(!parsed.counts_differ, "{name}");
    }
    assert_eq!(seen, expected.len());
}

#[test]
fn a_report_cut_anywhere_is_never_a_clean_pass() {
    for file in std::fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if !(name.ends_with(".xml") || name.ends_with(".tap")) {
            continue;
        }
        let text = std::fs::read_to_string(folder().join(&name)).unwrap();
        let whole = report::read(format(&name), text.as_bytes()).unwrap();
        for (at, _) in text.char_indices() {
            let Ok(parsed) = report::read(format(&name), &text.as_bytes()[..at]) else {
                continue;
            };
            // What is left must be all of the tests, or be called broken.
            assert!(
                parsed.broken.is_some() || parsed.cases.len() == whole.cases.len(),
                "{name} cut at {at}"
            );
        }
    }
}

#[test]
fn durations() {
    let parsed = junit(
        r#"<testsuite><testcase name="a" time="1,204.0835"/><testcase name="b"/><testcase name="c" time="x"/><testcase name="d" time=".5"/></testsuite>"#,
    )
    .unwrap();
    let times: Vec<_> = parsed.cases.iter().map(|case| case.duration_us).collect();
    assert_eq!(times, [Some(1_204_083_500), None, None, Some(500_000)]);
}

#[test]
fn classes_come_from_children_alone() {
    for (children, class) in [
        ("", TestClass::Passed),
        ("<failure/>", TestClass::Failed),
        ("<error/>", TestClass::Failed),
        ("<skipped/>", TestClass::Skipped),
        ("<skipped/><failure/>", TestClass::Failed),
        ("<failure/><skipped type='todo'/>", TestClass::Warned),
        ("<skipped type='todo'/>", TestClass::Warned),
        ("<flakyFailure/>", TestClass::Warned),
        ("<flakyError/><flakyFailure/>", TestClass::Warned),
        ("<rerunFailure/><failure/>", TestClass::Failed),
        ("<rerunFailure/>", TestClass::Failed),
        ("<flakyFailure/><rerunError/>", TestClass::Failed),
        ("<system-out><failure/></system-out>", TestClass::Passed),
        (
            "<properties><property name='failure'/></properties>",
            TestClass::Passed,
        ),
    ] {
        let text = format!(
            "<testsuites><testcase name='a' failure='x' status='failed'>{children}</testcase></testsuites>"
        );
        assert_eq!(junit(&text).unwrap().cases[0].class, class, "{children}");
    }
}

#[test]
fn counters_are_compared_and_never_believed() {
    let differ = |text: &str| junit(text).unwrap().counts_differ;
    assert!(!differ(
        "<testsuite tests='1'><testcase name='a'/></testsuite>"
    ));
    assert!(differ(
        "<testsuite tests='2'><testcase name='a'/></testsuite>"
    ));
    assert!(differ(
        "<testsuites tests='9'><testsuite tests='1'><testcase name='a'/></testsuite></testsuites>"
    ));
    assert!(differ(
        "<testsuite failures='0'><testcase name='a'><failure/></testcase></testsuite>"
    ));
    // Counters without cases invent nothing.
    let only = junit("<testsuite tests='5' failures='0' name='x'/>").unwrap();
    assert!(only.cases.is_empty() && only.counts_differ);
}

#[test]
fn hostile_xml_is_refused_with_a_place() {
    let nested = format!(
        "{}<testcase name='a'/>{}",
        "<testsuite>".repeat(33),
        "</testsuite>".repeat(33)
    );
    let million = "<testsuite>".repeat(700_000);
    let deep = format!(
        "<testsuite><testcase name='a'>{}{}</testcase></testsuite>",
        "<x>".repeat(200),
        "</x>".repeat(200)
    );
    let many = format!("<testsuite>{}</testsuite>", "<testcase/>".repeat(50_001));
    for text in [
        "",
        "x",
        "<testsuite>",
        "<testsuite></testsuites>",
        "<testsuite/><testsuite/>",
        "<testsuite/>x",
        "<html/>",
        "<testsuite><testcase name='a' name='b'/></testsuite>",
        "<testsuite><testcase name='&lol;'/></testsuite>",
        "<testsuite><testcase name='a'>&lol;</testcase></testsuite>",
        "<testsuite><testcase name='&#0;'/></testsuite>",
        "<testsuite><testcase name='&#xD800;'/></testsuite>",
        "<testsuite><testcase name='a<b'/></testsuite>",
        "<!DOCTYPE x [<!ENTITY lol 'lol'>]><testsuite/>",
        "<!DOCTYPE x SYSTEM 'file:///etc/passwd'><testsuite/>",
        "<?xml version='1.0' encoding='ISO-8859-1'?><testsuite/>",
        "<testsuite><properties><testcase name='hidden'/></properties></testsuite>",
        "<testsuite><testcase name='a'><testsuite/></testcase></testsuite>",
        "<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>",
        "<testsuite>\0</testsuite>",
        &nested,
        &million,
        &deep,
        &many,
    ] {
        let shown: String = text.chars().take(60).collect();
        assert!(junit(text).is_err(), "{shown}");
    }
    let error = junit("<testsuite>\n<testcase name='&x;'/></testsuite>").unwrap_err();
    assert_eq!(error.line, 2);
    let long = format!("<testsuite name='{}'/>", "x".repeat(report::MAX_BYTES));
    assert!(junit(&long).is_err());
    assert!(report::read(Format::Junit, b"<testsuite name='\xff'/>").is_err());
}

#[test]
fn a_failure_of_no_test_is_no_pass() {
    for text in [
        "<testsuites><failure/><testcase name='a'/></testsuites>",
        "<testsuite><testcase name='a'/><error/></testsuite>",
        "<testsuites><testsuite><rerunFailure/><testcase name='a'/></testsuite></testsuites>",
    ] {
        assert!(junit(text).unwrap().broken.is_some(), "{text}");
    }
    let within = "<testsuite><system-out><error/></system-out><testcase name='a'/></testsuite>";
    assert_eq!(junit(within).unwrap().broken, None);
}

#[test]
fn attributes_of_one_element_are_bounded() {
    let with = |count: usize| {
        let many: String = (0..count).map(|n| format!(" a{n}=''")).collect();
        junit(&format!("<testsuite><testcase{many}/></testsuite>"))
    };
    assert!(with(64).is_ok());
    assert!(with(65).is_err());
    assert!(with(500_000).is_err());
    let declaration: String = (0..500_000).map(|n| format!(" a{n}=''")).collect();
    assert!(junit(&format!("<?xml version='1.0'{declaration}?><testsuite/>")).is_err());
}

#[test]
fn a_long_suite_name_costs_no_memory_for_each_test() {
    let text = format!(
        "<testsuite name='{}'>{}</testsuite>",
        "n".repeat(6 << 20),
        "<testcase name='a'/>".repeat(50_000)
    );
    let parsed = junit(&text).unwrap();
    assert!(parsed.cases.iter().all(|case| case.name.len() <= 2048));
}

#[test]
fn streams_that_are_no_tap() {
    for text in [
        "",
        "\n\n",
        "hello\nok",
        "ok 1 - a\n",
        "TAP version 12\n1..0\n",
    ] {
        assert!(tap(text).is_err(), "{text:?}");
    }
}

#[test]
fn plans_and_crashes() {
    for (text, broken, count) in [
        ("1..1\nok 1\n", false, 1),
        ("ok 1 - a\nok 2 - b\n1..2\n", false, 2),
        ("1..0 # SKIP nothing here\n", false, 0),
        ("1..2\nok 1\n", true, 1),
        ("TAP version 13\nok 1 - a\n", true, 1),
        ("1..1\n1..1\nok 1\n", true, 1),
        ("1..1\nok 1 - a\nBail out! no disk\n", true, 2),
        ("TAP version 13\n    ok 1 - child\n1..0\n", true, 1),
        ("1..2\nok 1\nok 1\n", true, 2),
        ("1..2\nok 2\nok 1\n", false, 2),
        ("1..2\nok 1\nok 3\n", true, 2),
        ("1..1\nok 0\n", true, 1),
        ("1..1\nok 99999999999999999999\n", true, 1),
        ("1..1\nok 2nd\n", false, 1),
        ("1..1\n    ok 2 - in\n    1..1\nok 1 - out\n", true, 1),
        (
            "1..2\n    ok 1 - in\n    1..1\nok 1 - out\n    ok 1 - in\n    1..1\nok 2 - two\n",
            false,
            2,
        ),
        (
            "TAP version 13\n    1..2\n    ok 1 - child\nok 1 - parent\n1..1\n",
            true,
            1,
        ),
        ("1..1\nok 1 - a\n  ---\n  x: y\n", true, 1),
        // A suite's own failure that no test explains, such as a hook's.
        (
            "    ok 1 - child\n    1..1\nnot ok 1 - parent\n1..1\n",
            true,
            1,
        ),
        // A child plan that is missing, and numbers that repeat, are Node's way.
        (
            "    ok 1 - child\nok 1 - parent\n    ok 1 - other\nok 2 - next\n1..2\n",
            false,
            2,
        ),
        (
            "1..1\nok 1 - a\nnoise ok 2\n  ok 3 - indented by two\n",
            false,
            1,
        ),
        ("1..1\nokay\nnot okay\nok 1 - a\n", false, 1),
    ] {
        let parsed = tap(text).unwrap();
        assert_eq!(
            parsed.broken.is_some(),
            broken,
            "{text:?} {:?}",
            parsed.broken
        );
        assert_eq!(parsed.cases.len(), count, "{text:?}");
    }
}

#[test]
fn tap_lines() {
    let parsed = tap(
        "TAP version 13\r\nok\nnot ok\nok 3\nok 4 - a # TODO\nnot ok 5 - b # todo x\nok 6 c\nok 7 - d # SKIP\nnot ok 8 - e # SKIP\nok 9 - f \\\\ \\# g\n1..9\n",
    )
    .unwrap();
    let seen: Vec<_> = parsed
        .cases
        .iter()
        .map(|case| (case.name.as_str(), case.class.name()))
        .collect();
    assert_eq!(
        seen,
        [
            ("", "passed"),
            ("", "failed"),
            ("", "passed"),
            ("a", "warned"),
            ("b", "warned"),
            ("c", "passed"),
            ("d", "skipped"),
            ("e", "failed"),
            ("f \\ # g", "passed"),
        ]
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in proptest::string::string_regex("(?s)[<>/=\"'&;a-f#x0-9 \\n]{0,200}").unwrap()) {
        let _ = junit(&format!("<testsuite>{text}</testsuite>"));
        let _ = tap(&text);
    }

    #[test]
    fn lines_in_any_order_never_panic(picks in proptest::collection::vec(0usize..12, 0..40)) {
        let lines = ["TAP version 13", "1..2", "ok 1 - a", "not ok 2 - b", "    ok 1", "    1..1", "        not ok 1",
            "  ---", "  ...", "# x", "Bail out!", "ok 1 # SKIP"];
        let text: String = picks.iter().map(|n| format!("{}\n", lines[*n])).collect();
        if let Ok(parsed) = tap(&text) {
            proptest::prop_assert!(parsed.cases.len() <= picks.len() + 1);
        }
    }
}

#[test]
fn only_the_word_todo_excuses_a_failure() {
    for (comment, class) in [
        ("TODO", TestClass::Warned),
        ("todo later", TestClass::Warned),
        ("TODO: later", TestClass::Warned),
        ("TODOlist", TestClass::Failed),
        ("TODO_x", TestClass::Failed),
        ("TODO\u{e9}", TestClass::Failed),
    ] {
        let parsed = tap(&format!("1..1\nnot ok 1 - a # {comment}\n")).unwrap();
        assert_eq!(parsed.cases[0].class, class, "{comment}");
    }
}
