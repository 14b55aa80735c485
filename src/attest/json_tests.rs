//! Tests of the strict reader.

use super::*;

fn kind(text: &str) -> Option<Kind> {
    let mut json = Json::new(text);
    json.skip().and_then(|_| json.end()).err().map(|f| f.kind)
}

#[test]
fn what_is_refused() {
    for (text, expected) in [
        ("", Kind::Syntax),
        ("{", Kind::Syntax),
        ("{}{}", Kind::Trailing),
        ("[1,]", Kind::Syntax),
        ("{\"a\":1,}", Kind::Syntax),
        ("[,1]", Kind::Syntax),
        ("{a:1}", Kind::Syntax),
        ("[01]", Kind::Syntax),
        ("[1.]", Kind::Syntax),
        ("[.5]", Kind::Syntax),
        ("[+1]", Kind::Syntax),
        ("[1e]", Kind::Syntax),
        ("[NaN]", Kind::Syntax),
        ("[nul]", Kind::Syntax),
        ("\"a", Kind::Syntax),
        ("\"\t\"", Kind::ControlCharacter),
        (r#""\x""#, Kind::Syntax),
        (r#""\u12g4""#, Kind::Syntax),
        (r#""\ud800""#, Kind::Syntax),
        (r#""\ud800\u0041""#, Kind::Syntax),
        (r#""\udc00""#, Kind::Syntax),
        (r#"{"a":1,"\u0061":1}"#, Kind::Repeated),
        (r#"[{"b":{"a":1,"a":1}}]"#, Kind::Repeated),
    ] {
        assert_eq!(kind(text), Some(expected), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(kind(&nested(MAX_DEPTH)), None);
    assert_eq!(kind(&nested(MAX_DEPTH + 1)), Some(Kind::TooDeep));
    let siblings = format!("[{}[]]", "[],".repeat(1000));
    assert_eq!(kind(&siblings), None);
}

#[test]
fn many_members_cost_no_quadratic_time() {
    let members: Vec<String> = (0..50_000).map(|n| format!("\"{n}\":{n}")).collect();
    assert_eq!(kind(&format!("{{{}}}", members.join(","))), None);
    let repeated = format!("{{{},\"49\":1}}", members.join(","));
    assert_eq!(kind(&repeated), Some(Kind::Repeated));
}

#[test]
fn integers_are_plain_and_in_range() {
    let read = |text: &str| Json::new(text).integer::<u64>().map_err(|f| f.kind);
    assert_eq!(read("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(read("0"), Ok(0));
    for text in ["18446744073709551616", "-1", "-0", "1.0", "1e3", "1E3"] {
        assert_eq!(read(text), Err(Kind::NotInteger), "{text}");
    }
    for text in ["\"1\"", "null", "true", "[]"] {
        assert_eq!(read(text), Err(Kind::WrongType), "{text}");
    }
    assert_eq!(Json::new("-5").integer::<i64>(), Ok(-5));
    assert_eq!(
        Json::new("4294967296").integer::<u32>().map_err(|f| f.kind),
        Err(Kind::NotInteger)
    );
}

proptest::proptest! {
    #[test]
    fn never_accepts_what_a_second_reader_refuses(
        text in r#"[\[\]{}:,"a1\\u0 e.+-]{0,24}|(\{"a":)?(\[?"?(1|-0|tru?e|null|\\u00e9|b)"?\]?){1,3}\}?"#
    ) {
        if kind(&text).is_none() {
            let second = serde_json::from_str::<serde_json::Value>(&text);
            // The second reader also bounds numbers, which nothing here reads.
            let number = second.as_ref().is_err_and(|e| e.to_string().contains("out of range"));
            proptest::prop_assert!(second.is_ok() || number, "{text}");
        }
    }
}
