//! BOMs whose text, schema, profile or serial number is not as it must be.
#![allow(
    clippy::panic,
    clippy::semicolon_if_nothing_returned, // a change in a table is one expression
    clippy::type_complexity,
    clippy::unwrap_used
)]

mod common;

use common::{
    example,
    tamper::{
        RECEIPT, SESSION, SINGLE, bom, both_ways, codes, component, file_form, pointer, resealed,
        set,
    },
};
use serde_json::{Value, json};

#[test]
fn the_examples_pass_both_ways() {
    for name in [SINGLE, SESSION, RECEIPT] {
        let text = example(&format!("{name}.cdx.json"));
        assert_eq!(codes(name, &text), ("accepted", "accepted"), "{name}");
        assert_eq!(file_form(&bom(name)), text, "{name}");
    }
}

#[test]
fn texts_that_are_not_the_file_form() {
    let text = String::from_utf8(example("1-single-run.cdx.json")).unwrap();
    let compact = bom(SINGLE).to_string();
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    let escaped = text.replacen("CycloneDX", "\\u0043ycloneDX", 1);
    let repeated = text.replacen("\"version\": 1", "\"version\": 1,\n  \"version\": 1", 1);
    let inner = text.replacen(
        "\"name\": \"docker\"",
        "\"name\": \"docker\",\n      \"name\": \"docker\"",
        1,
    );
    for (what, changed, code) in [
        ("nothing", String::new(), "bom_parse"),
        ("no object", "7\n".to_owned(), "bom_schema"),
        ("cut", text[..text.len() / 2].to_owned(), "bom_parse"),
        ("two values", format!("{text}{{}}"), "bom_parse"),
        ("a repeated member", repeated, "bom_parse"),
        ("a repeated member inside", inner, "bom_parse"),
        ("nesting", deep, "bom_parse"),
        ("a byte-order mark", format!("\u{feff}{text}"), "bom_parse"),
        (
            "half a surrogate pair",
            text.replacen("CycloneDX", "\\ud800", 1),
            "bom_parse",
        ),
        (
            "a raw control character",
            text.replacen("CycloneDX", "\u{1}", 1),
            "bom_parse",
        ),
        ("compact", compact, "bom_not_canonical"),
        (
            "four spaces",
            text.replace("  ", "    "),
            "bom_not_canonical",
        ),
        ("tabs", text.replace("  ", "\t"), "bom_not_canonical"),
        ("CRLF", text.replace('\n', "\r\n"), "bom_not_canonical"),
        ("a trailing space", format!("{text} "), "bom_not_canonical"),
        ("a second newline", format!("{text}\n"), "bom_not_canonical"),
        (
            "no final newline",
            text.trim_end().to_owned(),
            "bom_not_canonical",
        ),
        ("an escape that is not needed", escaped, "bom_not_canonical"),
        (
            "uppercase escapes",
            text.replace("\\n", "\\u000A"),
            "bom_not_canonical",
        ),
        (
            "a float",
            text.replacen("\"version\": 1\n", "\"version\": 1.0\n", 1),
            "bom_not_canonical",
        ),
        (
            "an exponent",
            text.replacen("\"version\": 1\n", "\"version\": 1e0\n", 1),
            "bom_not_canonical",
        ),
        (
            "a negative zero",
            text.replacen("\"version\": 1\n", "\"version\": -0\n", 1),
            "bom_not_canonical",
        ),
        (
            "2^53",
            text.replacen("\"version\": 1\n", "\"version\": 9007199254740992\n", 1),
            "bom_not_canonical",
        ),
        (
            "null",
            text.replacen("\"version\": 1\n", "\"version\": null\n", 1),
            "bom_not_canonical",
        ),
        (
            "an empty array",
            text.replacen(
                "\"version\": 1\n",
                "\"version\": 1,\n  \"vulnerabilities\": []\n",
                1,
            ),
            "bom_not_canonical",
        ),
        (
            "an empty object",
            text.replacen(
                "\"version\": 1\n",
                "\"version\": 1,\n  \"vulnerabilities\": {}\n",
                1,
            ),
            "bom_not_canonical",
        ),
        (
            "another order",
            text.replacen(
                "  \"specVersion\": \"1.6\",\n  \"version\": 1\n",
                "  \"version\": 1,\n  \"specVersion\": \"1.6\"\n",
                1,
            ),
            "bom_not_canonical",
        ),
    ] {
        assert_ne!(changed, text, "{what} changes nothing");
        assert_eq!(codes(SINGLE, changed.as_bytes()), (code, code), "{what}");
    }
    let mut bytes = text.into_bytes();
    bytes[30] = 0xff;
    assert_eq!(
        codes(SINGLE, &bytes),
        ("bom_parse", "bom_parse"),
        "not UTF-8"
    );
}

#[test]
fn values_the_schema_refuses() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 20] = [
        ("an unknown member", |b| b["extra"] = json!("x")),
        ("an unknown member of a component", |b| {
            b["components"][0]["extra"] = json!("x")
        }),
        ("no format", |b| {
            drop(b.as_object_mut().unwrap().remove("bomFormat"))
        }),
        ("another format", |b| b["bomFormat"] = json!("SPDX")),
        ("no version of the specification", |b| {
            drop(b.as_object_mut().unwrap().remove("specVersion"))
        }),
        ("an older version of the specification", |b| {
            b["specVersion"] = json!("1.5")
        }),
        ("a type that is none", |b| {
            b["components"][0]["type"] = json!("sandbox")
        }),
        ("a component without a name", |b| {
            drop(b["components"][0].as_object_mut().unwrap().remove("name"))
        }),
        ("a hash of no length", |b| {
            b["components"][1]["hashes"][0]["content"] = json!("00")
        }),
        ("an algorithm that is none", |b| {
            b["components"][1]["hashes"][0]["alg"] = json!("sha256")
        }),
        ("two equal components", |b| {
            let first = b["components"][0].clone();
            b["components"].as_array_mut().unwrap().push(first);
        }),
        ("an encoding that is none", |b| {
            component(b, "line:1")["data"][0]["contents"]["attachment"]["encoding"] =
                json!("base64url");
        }),
        ("content that is no text", |b| {
            component(b, "line:1")["data"][0]["contents"]["attachment"]["content"] = json!(7);
        }),
        ("a serial number that is none", |b| {
            b["serialNumber"] = json!("urn:uuid:1")
        }),
        ("a time that is none", |b| {
            b["metadata"]["timestamp"] = json!("yesterday")
        }),
        ("a version of 0", |b| b["version"] = json!(0)),
        ("a repeated dependency", |b| {
            let list = b["dependencies"][0]["dependsOn"].as_array_mut().unwrap();
            list.push(list[0].clone());
        }),
        ("an aggregate that is none", |b| {
            b["compositions"][0]["aggregate"] = json!("all")
        }),
        ("a task type that is none", |b| {
            b["formulation"][0]["workflows"][0]["taskTypes"][0] = json!("run")
        }),
        ("an asset type that is none", |b| {
            let key = b["components"].as_array().unwrap().len() - 1;
            b["components"][key]["cryptoProperties"]["assetType"] = json!("key");
        }),
    ];
    for (what, change) in cases {
        both_ways_unless(what, change);
    }
}

/// The schema comes before everything that is derived.
fn both_ways_unless(what: &str, change: fn(&mut Value)) {
    let mut changed = bom(SINGLE);
    change(&mut changed);
    let expected = ("bom_schema", "bom_schema");
    assert_eq!(codes(SINGLE, &file_form(&changed)), expected, "{what}");
    if what != "a serial number that is none" {
        assert_eq!(
            codes(SINGLE, &file_form(&resealed(changed))),
            expected,
            "{what}, resealed"
        );
    }
}

#[test]
fn profiles_that_are_not_this_one() {
    type Change = fn(&mut Value);
    let cases: [(&str, &str, Change); 19] = [
        ("another profile", SINGLE, |b| set(b, "bom:profile", "2")),
        ("another kind of thing", SINGLE, |b| {
            set(b, "bom:kind", "scan")
        }),
        ("another attachment", SINGLE, |b| {
            set(b, "bom:attach", "none")
        }),
        ("another scope", SINGLE, |b| {
            set(b, "evidence:scope", "file")
        }),
        ("a session of one line's scope", SESSION, |b| {
            set(b, "evidence:scope", "line")
        }),
        ("a receipt of one line's scope", RECEIPT, |b| {
            set(b, "evidence:scope", "line")
        }),
        ("no line", SINGLE, |b| set(b, "evidence:lines", "")),
        ("line 0", SINGLE, |b| set(b, "evidence:lines", "0")),
        ("line 01", SINGLE, |b| set(b, "evidence:lines", "01")),
        ("a line that is no number", SINGLE, |b| {
            set(b, "evidence:lines", "+1")
        }),
        ("a run of two lines", SINGLE, |b| {
            set(b, "evidence:lines", "1,2")
        }),
        ("a session of one line", SESSION, |b| {
            set(b, "evidence:lines", "4")
        }),
        ("lines that fall", SESSION, |b| {
            set(b, "evidence:lines", "2,1,3,4")
        }),
        ("a line twice", SESSION, |b| {
            set(b, "evidence:lines", "1,1,3,4")
        }),
        ("no properties", SINGLE, |b| {
            drop(b.as_object_mut().unwrap().remove("properties"))
        }),
        ("a property left out", SINGLE, |b| {
            drop(b["properties"].as_array_mut().unwrap().remove(1))
        }),
        ("a property too many", SINGLE, |b| {
            let list = b["properties"].as_array_mut().unwrap();
            list.push(json!({ "name": "plimsoll:bom:extra", "value": "1" }));
        }),
        ("properties in another order", SINGLE, |b| {
            b["properties"].as_array_mut().unwrap().swap(1, 2)
        }),
        ("an image name that is none", SINGLE, |b| {
            let name = json!({ "name": "plimsoll:bom:imageName", "value": "node:20" });
            b["properties"].as_array_mut().unwrap().insert(3, name);
        }),
    ];
    for (what, name, change) in cases {
        both_ways(name, what, change, "bom_profile", "bom_profile");
    }
}

#[test]
fn serial_numbers() {
    let other =
        |b: &mut Value| b["serialNumber"] = json!("urn:uuid:8400569c-d3ca-567d-82e0-ab1aced234f7");
    let mut changed = bom(SINGLE);
    other(&mut changed);
    assert_eq!(
        codes(SINGLE, &file_form(&changed)),
        ("bom_serial", "bom_serial")
    );
    let mut changed = bom(SINGLE);
    changed.as_object_mut().unwrap().remove("serialNumber");
    assert_eq!(
        codes(SINGLE, &file_form(&changed)),
        ("bom_serial", "bom_serial")
    );
    // Another BOM's number.
    let mut changed = bom(SINGLE);
    changed["serialNumber"] = bom(SESSION)["serialNumber"].clone();
    assert_eq!(
        codes(SINGLE, &file_form(&changed)),
        ("bom_serial", "bom_serial")
    );
}

#[test]
fn a_version_that_is_changed_alone() {
    // The same document is valid as 1.7; it is not the one that was written.
    let mut changed = bom(SINGLE);
    changed["specVersion"] = json!("1.7");
    assert_eq!(
        pointer(SINGLE, &file_form(&resealed(changed.clone()))),
        "/$schema"
    );
    changed["$schema"] = json!("http://cyclonedx.org/schema/bom-1.7.schema.json");
    let text = file_form(&resealed(changed));
    assert_eq!(
        codes(SINGLE, &text),
        ("accepted", "accepted"),
        "what --spec-version 1.7 writes"
    );
}
