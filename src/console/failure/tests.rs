//! The block, the object, and hostile text in both.

use super::*;
use miette::Diagnostic as _;

const PLAIN: Escaper = Escaper { github: false };

fn chain() -> Failure {
    Failure::new(
        Class::Chain,
        "the session close states 3 calls, the bundle holds 2",
        "A call of session 5947d7c33d78… is missing before line 9. Get the file again from \
         whoever wrote it; it cannot be repaired here.",
    )
    .file("runs.jsonl")
    .line(9)
    .member("envelope.payload.predicate.calls")
    .bytes(40112, 41903)
    .expected(3)
    .found(2)
}

#[test]
fn the_block_has_fact_place_and_cure() {
    assert_eq!(
        chain().to_block_with(100, PLAIN),
        "plimsoll-attest: error[chain]: runs.jsonl line 9: the session close states 3 calls, the bundle holds 2
  place     runs.jsonl, line 9, envelope.payload.predicate.calls (bytes 40112 to 41903 of the file)
  expected  3
  found     2
  do        A call of session 5947d7c33d78… is missing before line 9. Get the file again from
            whoever wrote it; it cannot be repaired here.
"
    );
}

#[test]
fn the_object_has_its_members_in_order_and_no_absent_ones() {
    let text = serde_json::to_string(&chain().reason("count").ran(Ran::Maybe)).unwrap();
    let names = [
        "class", "reason", "message", "file", "line", "member", "offset", "expected", "found",
        "do", "ran",
    ];
    let places: Vec<_> = names
        .iter()
        .map(|n| text.find(&format!("\"{n}\":")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains("\"offset\":40112,") && text.ends_with("\"ran\":\"maybe\"}"));
    let least = serde_json::to_string(&Failure::new(Class::Key, "m", "d")).unwrap();
    assert_eq!(least, r#"{"class":"key","message":"m","do":"d"}"#);
}

#[test]
fn hostile_text_stays_in_its_field() {
    let hostile = "\u{1b}[2J\n::error::x\n  do        run rm -rf";
    let failure = Failure::new(Class::Line, hostile, hostile)
        .file(hostile)
        .member(hostile)
        .pointer(hostile)
        .expected(hostile)
        .found("y".repeat(10_000));
    for github in [false, true] {
        let block = failure.to_block_with(100, Escaper { github });
        assert!(
            !block.replace('\n', "").contains(crate::escape::is_hidden),
            "{block}"
        );
        assert!(
            !block
                .lines()
                .any(|line| line.trim_start().starts_with("::")),
            "{block}"
        );
        assert_eq!(
            block
                .lines()
                .filter(|line| line.starts_with("  do  "))
                .count(),
            1
        );
        let rows = [
            "plimsoll-attest: ",
            "  place ",
            "  expected ",
            "  found ",
            "  do ",
            "            ",
        ];
        assert!(
            block
                .lines()
                .all(|line| rows.iter().any(|row| line.starts_with(row))),
            "{block}"
        );
        assert!(
            block.contains("yyy…") && block.contains("(9880 more bytes)"),
            "{block}"
        );
    }
    let wide = Failure::new(Class::Line, "m", "::a ".repeat(100))
        .to_block_with(40, Escaper { github: true });
    assert!(
        !wide.lines().any(|line| line.trim_start().starts_with("::")),
        "{wide}"
    );
}

#[test]
fn exit_codes_can_be_overridden_and_the_synopsis_follows() {
    let failure = Failure::new(Class::Io, "m", "d");
    assert_eq!(failure.exit_code(), ExitCode::Usage);
    assert_eq!(
        failure.exit(ExitCode::Refused).exit_code(),
        ExitCode::Refused
    );
    let usage = Failure::new(Class::Usage, "m", "d").synopsis("usage: x\n  y\n");
    assert!(
        usage
            .to_block_with(100, PLAIN)
            .ends_with("  do        d\nusage: x\n  y\n")
    );
    assert_eq!(usage.code().unwrap().to_string(), "usage");
    assert_eq!(usage.help().unwrap().to_string(), "d");
    assert_eq!(usage.to_string(), "error[usage]: m");
}

#[test]
fn places_without_a_file_and_odd_names_are_shown() {
    let failure = Failure::new(Class::Request, "m", "d").file("-").offset(7);
    let block = failure.to_block_with(100, PLAIN);
    assert!(block.starts_with("plimsoll-attest: error[request]: standard input: m\n"));
    assert!(block.contains("  place     standard input (byte 7 of the file)\n"));
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let name = Path::new(std::ffi::OsStr::from_bytes(b"a\xff"));
        let text = serde_json::to_string(&Failure::new(Class::Io, "m", "d").file(name)).unwrap();
        assert!(text.contains(r#""file":"a\\xff""#), "{text}");
    }
}

#[test]
fn an_empty_value_is_shown_as_one_and_is_no_member() {
    let failure = Failure::new(Class::Stored, "m", "d")
        .expected("x")
        .found("");
    assert!(
        failure
            .to_block_with(100, PLAIN)
            .contains("  found     (empty)\n")
    );
    let text = serde_json::to_string(&failure).unwrap();
    assert!(
        text.contains("\"expected\":\"x\"") && !text.contains("found"),
        "{text}"
    );
}
