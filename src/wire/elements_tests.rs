use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{
    json,
    limits::{MAX_LIST_ELEMENTS, MAX_MODULE_ROWS},
    proto::{
        self, CellRun, Message, MessageField, ModuleRow, ModuleRun, OpenSessionRequest,
        ProjectFile, ProjectRun, RunRequest, SoftwareRule, run_request::Payload,
    },
};

const MOST: usize = 3;
const OVER: Result<(), TooManyElements> = Err(TooManyElements { most: MOST });

fn run(payload: Payload) -> RunRequest {
    RunRequest {
        payload: Some(payload),
        ..RunRequest::default()
    }
}

fn table(rows: Vec<ModuleRow>) -> RunRequest {
    run(Payload::Module(Box::new(ModuleRun {
        rows,
        ..ModuleRun::default()
    })))
}

/// The longest list of a request.
fn longest(request: &RunRequest) -> usize {
    let rule = request.software_rule.as_option();
    let identities = rule.map_or(0, |rule| rule.identities.len());
    let lists = match &request.payload {
        Some(Payload::Project(run)) => {
            vec![run.files.len(), run.steps.len(), run.artifacts.len()]
        }
        Some(Payload::Module(run)) => {
            let widths = run.rows.iter().map(|row| row.values.len());
            widths.chain([run.rows.len()]).collect()
        }
        Some(Payload::Cell(run)) => vec![run.files.len()],
        Some(Payload::Javascript(_)) | None => Vec::new(),
    };
    lists.into_iter().fold(identities, usize::max)
}

#[test]
fn the_longest_list_of_all_fits() {
    assert_eq!(MAX_LIST_ELEMENTS, MAX_MODULE_ROWS);
    let rows = |count: usize| table(vec![ModuleRow::default(); count]);
    for (count, outcome) in [
        (MAX_LIST_ELEMENTS, Ok(())),
        (
            MAX_LIST_ELEMENTS + 1,
            Err(TooManyElements {
                most: MAX_LIST_ELEMENTS,
            }),
        ),
    ] {
        let text = json::write(&rows(count)).unwrap().into_bytes();
        assert_eq!(check_json("Run", &text, MAX_LIST_ELEMENTS), outcome);
        let bytes = rows(count).encode_to_vec();
        assert_eq!(check_binary("Run", &bytes, MAX_LIST_ELEMENTS), outcome);
    }
}

#[test]
fn json_lists_are_counted_where_the_decoder_builds_them() {
    for (procedure, text) in [
        ("Run", r#"{"module":{"rows":[{},{},{},{}]}}"#),
        ("Run", r#"{"module":{"model":"m","rows":[{},{},{},"#),
        ("Run", r#"{"module":{"r\u006fws" : [ {} , {} , {} , {} ]}}"#),
        (
            "Run",
            r#"{"module":{"rows":[{"values":[1,2]},{"values":[1,2,3,4]}]}}"#,
        ),
        ("Run", r#"{"project":{"files":[{},{},{},{}]}}"#),
        ("Run", r#"{"project":{"steps":["a","b","c","d"]}}"#),
        ("Run", r#"{"project":{"artifacts":["a","b","c","d"]}}"#),
        ("Run", r#"{"cell":{"files":[{},{},{},{}]}}"#),
        ("Run", r#"{"softwareRule":{"identities":["","","",""]}}"#),
        ("Run", r#"{"software_rule":{"identities":["","","",""]}}"#),
        ("SessionRun", r#"{"project":{"steps":["a","b","c","d"]}}"#),
        ("SessionRun", r#"{"cell":{"files":[{},{},{},{}]}}"#),
        ("OpenSession", r#"{"languages":["a","b","c","d"]}"#),
    ] {
        assert_eq!(check_json(procedure, text.as_bytes(), MOST), OVER, "{text}");
        // One element fewer, here and everywhere else.
        assert_eq!(
            check_json(procedure, text.as_bytes(), MOST + 1),
            Ok(()),
            "{text}"
        );
    }
    for (procedure, text) in [
        (
            "Run",
            r#"{"rows":[1,2,3,4],"values":[1,2,3,4],"languages":[1,2,3,4]}"#,
        ),
        ("Run", r#"{"future":{"module":{"rows":[1,2,3,4]}}}"#),
        (
            "Run",
            r#"{"future":[{"module":{"rows":[1,2,3,4]}},2,3,4,5]}"#,
        ),
        (
            "Run",
            r#"{"module":{"Rows":[1,2,3,4],"future":{"rows":[1,2,3,4]}}}"#,
        ),
        (
            "Run",
            r#"{"module":{"rows":[{"rows":[1,2,3,4],"x":{"values":[1,2,3,4]}}]}}"#,
        ),
        ("Run", r#"{"module":{"rows":[[1,2,3,4],[1,2,3,4]]}}"#),
        ("Run", r#"{"module":[{"rows":[1,2,3,4]}]}"#),
        ("Run", r#"{"module":{"model":"rows","x":[1,2,3,4]}}"#),
        (
            "Run",
            r#"{"module":{"rows":[]},"project":{"steps":["\",\",,,[[[","b","c"]}}"#,
        ),
        ("SessionRun", r#"{"module":{"rows":[1,2,3,4]}}"#),
        ("CloseSession", r#"{"module":{"rows":[1,2,3,4]}}"#),
        ("Describe", r#"{"languages":["a","b","c","d"]}"#),
    ] {
        assert_eq!(
            check_json(procedure, text.as_bytes(), MOST),
            Ok(()),
            "{text}"
        );
    }
}

#[test]
fn binary_lists_are_counted_over_every_part_of_a_message() {
    let rows = |count: usize| table(vec![ModuleRow::default(); count]).encode_to_vec();
    let code = run(Payload::Javascript(Box::default())).encode_to_vec();
    let check = |parts: &[&[u8]]| check_binary("Run", &parts.concat(), MOST);
    assert_eq!(check(&[&rows(2), &rows(1)]), Ok(()));
    assert_eq!(check(&[&rows(2), &rows(2)]), OVER);
    // Another payload between them leaves the second alone.
    assert_eq!(check(&[&rows(2), &code, &rows(2)]), Ok(()));
    // What stands in a group is no field of the message.
    assert_eq!(
        check(&[b"\xa3\x06", &rows(4), b"\xa4\x06", &rows(3)]),
        Ok(())
    );
    assert_eq!(check(&[b"\xa3\x06\xa4\x06", &rows(4)]), OVER);
    let packed = |count| {
        table(vec![ModuleRow {
            values: vec![0.5; count],
        }])
        .encode_to_vec()
    };
    assert_eq!(check(&[&packed(3)]), Ok(()));
    assert_eq!(check(&[&packed(4)]), OVER);
    // One by one: field 1 of field 2 of field 12, eight bytes each.
    let one = [b"\x09".as_slice(), &[0; 8]].concat().repeat(4);
    let unpacked = [b"\x62\x26\x12\x24".as_slice(), &one].concat();
    let decoded = proto::decode::<RunRequest>(&unpacked).unwrap();
    assert_eq!(longest(&decoded), 4);
    assert_eq!(check(&[&unpacked]), OVER);
    let open = |count: usize| {
        let languages = vec![String::new(); count];
        OpenSessionRequest {
            languages,
            ..OpenSessionRequest::default()
        }
        .encode_to_vec()
    };
    assert_eq!(check_binary("OpenSession", &open(3), MOST), Ok(()));
    assert_eq!(check_binary("OpenSession", &open(4), MOST), OVER);
}

/// The lists of a request's message as the schema's text has them, as paths of
/// numbers and names.
fn lists_of_the_schema(message: &str) -> BTreeSet<String> {
    let schema = include_str!("../../proto/plimsoll/v1/sandbox.proto");
    let start = format!("message {message} {{");
    let Some((_, rest)) = schema.split_once(&start) else {
        return BTreeSet::new(); // A scalar.
    };
    // An empty message ends on its first line.
    let (body, _) = rest.split_once("}\n").unwrap();
    let mut found = BTreeSet::new();
    for line in body.lines() {
        let words: Vec<&str> = line.trim().trim_end_matches(';').split(' ').collect();
        let (repeated, of, name, number) = match words[..] {
            ["repeated", of, name, "=", number] => (true, of, name, number),
            [of, name, "=", number] => (false, of, name, number),
            _ => continue,
        };
        let place = format!("/{number} {name}");
        if repeated {
            found.insert(place.clone());
        }
        found.extend(
            lists_of_the_schema(of)
                .iter()
                .map(|below| format!("{place}{below}")),
        );
    }
    found
}

fn lists_of(members: &'static [Member]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for member in members {
        let name = member.names.last().unwrap();
        let place = format!("/{} {name}", member.number);
        let below = match member.of {
            Of::Message(below) => below,
            Of::List(below) => {
                found.insert(place.clone());
                below
            }
        };
        found.extend(
            lists_of(below)
                .iter()
                .map(|below| format!("{place}{below}")),
        );
    }
    found
}

#[test]
fn every_list_of_the_schema_is_known() {
    for procedure in [
        "Run",
        "SessionRun",
        "OpenSession",
        "CloseSession",
        "Describe",
    ] {
        let schema = lists_of_the_schema(&format!("{procedure}Request"));
        assert_eq!(lists_of(members(procedure)), schema, "{procedure}");
        assert_eq!(
            schema.is_empty(),
            matches!(procedure, "CloseSession" | "Describe")
        );
    }
}

fn count() -> std::ops::Range<usize> {
    0..MOST + 2
}

fn part() -> impl Strategy<Value = RunRequest> {
    let file = ProjectFile::default;
    let payload = prop_oneof![
        Just(None),
        Just(Some(Payload::Javascript(Box::default()))),
        (count(), count(), count()).prop_map(move |(files, steps, artifacts)| {
            Some(Payload::Project(Box::new(ProjectRun {
                files: vec![file(); files],
                steps: vec!["[,{".into(); steps],
                artifacts: vec!["\"\\,".into(); artifacts],
                ..ProjectRun::default()
            })))
        }),
        prop::collection::vec(count(), count()).prop_map(|widths| {
            let row = |width| ModuleRow {
                values: vec![f64::NAN; width],
            };
            Some(Payload::Module(Box::new(ModuleRun {
                rows: widths.into_iter().map(row).collect(),
                ..ModuleRun::default()
            })))
        }),
        count().prop_map(move |files| {
            Some(Payload::Cell(Box::new(CellRun {
                files: vec![file(); files],
                ..CellRun::default()
            })))
        }),
    ];
    (payload, prop::option::of(count())).prop_map(|(payload, identities)| RunRequest {
        software_rule: identities.map_or_else(MessageField::none, |identities| {
            MessageField::some(SoftwareRule {
                identities: vec!["a".into(); identities],
                ..SoftwareRule::default()
            })
        }),
        payload,
        ..RunRequest::default()
    })
}

proptest! {
    #[test]
    fn json_is_refused_exactly_over_the_bound(request in part()) {
        let text = json::write(&request).unwrap();
        let within = check_json("Run", text.as_bytes(), MOST).is_ok();
        prop_assert_eq!(within, longest(&request) <= MOST, "{}", text);
    }

    #[test]
    fn binary_is_refused_exactly_over_the_bound(parts in prop::collection::vec(part(), 1..4)) {
        // Merged part by part, as the decoder goes through them.
        let mut bytes = Vec::new();
        let mut longest_so_far = 0;
        for part in &parts {
            bytes.extend(part.encode_to_vec());
            let merged = proto::decode::<RunRequest>(&bytes).unwrap();
            longest_so_far = longest_so_far.max(longest(&merged));
        }
        prop_assert_eq!(check_binary("Run", &bytes, MOST).is_ok(), longest_so_far <= MOST);
    }

    #[test]
    fn any_bytes_are_counted_or_left_to_the_decoder(
        request in part(), at in any::<prop::sample::Index>(), byte: u8, cut: bool
    ) {
        let text = json::write(&request).unwrap().into_bytes();
        for (mut bytes, is_json) in [(text, true), (request.encode_to_vec(), false)] {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                if cut { bytes.truncate(at) } else { bytes[at] = byte }
            }
            let (decoded, checked) = match is_json {
                true => (json::read::<RunRequest>(&bytes).ok(), check_json("Run", &bytes, MOST)),
                false => (proto::decode::<RunRequest>(&bytes).ok(), check_binary("Run", &bytes, MOST)),
            };
            if let Some(decoded) = decoded {
                prop_assert!(checked.is_err() || longest(&decoded) <= MOST);
                prop_assert!(!is_json || checked.is_ok() || longest(&decoded) > MOST);
            }
        }
    }
}
