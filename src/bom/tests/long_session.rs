//! A session longer than a window of the schema's validation.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use common::{
    both::{check, check_attached},
    build,
    make::{Shape, session},
    signing,
    tamper::{file_form, parsed, resealed},
};
use plimsoll_bom::{BomError, Bundle, Memory, Options, Refusal, Selection};
use serde_json::{Value, json};

const CALLS: usize = 150;

fn made() -> (Vec<u8>, Vec<u8>) {
    let shapes = (0..CALLS).map(|n| Shape {
        kind: 1,
        text: format!("{n}"),
        files: 1,
        steps: 1,
        provider: "docker".to_owned(),
        isolation: "kernel".to_owned(),
        ..Shape::default()
    });
    let (bundle, fingerprint) = session(&signing(), shapes);
    let selection = Selection::Session(fingerprint);
    let bom = build(&bundle, signing().public(), &selection, &Options::default()).unwrap();
    (bundle, bom)
}

fn refusal(bundle: &[u8], bom: &Value) -> Refusal {
    let key = signing().public().clone();
    let store = Memory(bundle);
    let verified = Bundle::verify(&store, bundle, &key, &mut |_| {}).unwrap();
    match check(&file_form(bom), &key, &verified) {
        Err(BomError::Refused(refusal)) => *refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_rebuilt_and_every_item_of_it_is_validated() {
    let (bundle, bom) = made();
    let key = signing().public().clone();
    let store = Memory(&bundle);
    let verified = Bundle::verify(&store, bundle.as_slice(), &key, &mut |_| {}).unwrap();
    let checked = check(&bom, &key, &verified).unwrap();
    assert_eq!(checked.lines.len(), CALLS + 1);
    let attached = check_attached(&bom, &key).unwrap();
    assert!(attached.attached && !checked.attached);
    assert_eq!(attached.sha256, checked.sha256);
    assert_eq!(attached.lines, checked.lines);
    assert_eq!(attached.records, checked.records);

    // Whichever window an item is in, its place is that in the whole BOM.
    let good = parsed(&bom);
    let components = good["components"].as_array().unwrap().len();
    for place in [1, 63, 64, 65, 128, components - 1] {
        let mut changed = good.clone();
        changed["components"][place]["type"] = json!("none");
        let refusal = refusal(&bundle, &changed);
        assert_eq!(refusal.code.word(), "bom_schema");
        assert_eq!(
            refusal.pointer.unwrap(),
            format!("/components/{place}/type")
        );
    }
    for place in [0, 63, 64, CALLS - 1] {
        let mut changed = good.clone();
        changed["formulation"][0]["workflows"][0]["tasks"][place]["timeEnd"] = json!("never");
        let task = refusal(&bundle, &changed);
        let pointer = format!("/formulation/0/workflows/0/tasks/{place}/timeEnd");
        assert_eq!(
            (task.code.word(), task.pointer.unwrap()),
            ("bom_schema", pointer)
        );
        let mut changed = good.clone();
        changed["declarations"]["evidence"][place]["created"] = json!("never");
        let evidence = refusal(&bundle, &changed);
        let pointer = format!("/declarations/evidence/{place}/created");
        assert_eq!(
            (evidence.code.word(), evidence.pointer.unwrap()),
            ("bom_schema", pointer)
        );
    }

    // An item that stands twice, far apart.
    let mut changed = good.clone();
    let again = changed["components"][2].clone();
    changed["components"].as_array_mut().unwrap().push(again);
    let twice = refusal(&bundle, &changed);
    assert_eq!(twice.pointer.unwrap(), format!("/components/{components}"));
    assert_eq!(twice.expected.unwrap(), "uniqueItems");

    // A value in the middle that only the rebuilding can tell.
    let mut changed = good;
    changed["formulation"][0]["workflows"][0]["tasks"][77]["steps"][0]["properties"][0]["value"] =
        json!("1");
    let differs = refusal(&bundle, &resealed(changed));
    assert_eq!(differs.code.word(), "bom_mismatch");
    assert_eq!(
        differs.pointer.unwrap(),
        "/formulation/0/workflows/0/tasks/77/steps/0/properties/0/value"
    );
}
