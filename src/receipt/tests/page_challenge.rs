//! The wrong receipts of the challenge, before the page's check: what can be
//! seen without a clone is refused there too, and with the same code.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod node;

use common::{HEAD, example, repository};
use plimsoll_receipt::{
    challenge::{Original, mutations},
    git::{Oid, Place},
    show,
    verify::Options,
};
use serde_json::{Value, json};

const PARTS: [&str; 10] = [
    "01_bytes",
    "02_json",
    "03_signature",
    "04_messages",
    "05_bundle",
    "06_receipt",
    "07_junit",
    "08_tap",
    "09_outcome",
    "10_bom",
];

/// The page's checks but the last, which compares the page itself.
const MAIN: &str = r"
const check = async (evidence) => {
  try {
    const key = await readKey(evidence.public_key);
    const run = await checkBundle(key, evidence.bundle);
    const receipt = await checkReceipt(key, run, evidence.receipt, evidence.test_result);
    checkResults(receipt, run);
    await checkBom(evidence);
    return null;
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault;
    return fault.code;
  }
};
return Promise.all(input.map(check));
";

/// Codes of steps that need a clone, the reviewer's own knowledge, or the BOM
/// rebuilt: the page says that it does not check them.
const ELSEWHERE: [&str; 14] = [
    "git_commit",
    "git_tree",
    "file_mismatch",
    "file_unexplained",
    "file_missing",
    "config_mismatch",
    "floor_not_met",
    "workflow_changed",
    "tests_failed",
    "no_tests",
    "bom_mismatch",
    "bom_not_canonical",
    "bom_profile",
    "key_mismatch",
];

/// Wrong receipts whose code is not one of those, and which only a clone shows.
const CLONE: [&str; 1] = ["workflow-swapped"];

#[test]
fn what_the_command_refuses_without_a_clone_the_page_refuses() {
    let repo = repository();
    let options = Options {
        place: Some(Place::find(repo.path()).unwrap()),
        head: Oid::parse(HEAD),
        floor: Some("kernel".to_owned()),
        ..Options::default()
    };
    let original = Original::open(&example()).unwrap();
    let wrong: Vec<_> = mutations()
        .filter_map(|mutation| original.challenge(mutation, &options))
        .collect();
    let input: Vec<Value> = std::iter::once(&example())
        .chain(wrong.iter().map(|one| &one.folder))
        .map(|folder| {
            let evidence = show::evidence(folder);
            json!({
                "bundle": evidence.bundle,
                "test_result": evidence.test_result,
                "receipt": evidence.receipt,
                "public_key": evidence.public_key,
                "bom": evidence.bom,
            })
        })
        .collect();
    let found: Vec<Option<String>> =
        serde_json::from_value(node::run(&PARTS, MAIN, &Value::from(input))).unwrap();
    assert_eq!(found[0], None, "the example itself");
    let visible: Vec<_> = wrong
        .iter()
        .zip(&found[1..])
        .filter(|(one, _)| {
            !ELSEWHERE.contains(&one.mutation.code) && !CLONE.contains(&one.mutation.name)
        })
        .collect();
    let taken: Vec<&str> = visible
        .iter()
        .filter(|(_, page)| page.is_none())
        .map(|(one, _)| one.mutation.name)
        .collect();
    assert_eq!(taken, Vec::<&str>::new(), "taken by the page");
    assert!(visible.len() >= 20, "{}", visible.len());
    let same = visible
        .iter()
        .filter(|(one, page)| page.as_deref() == Some(one.mutation.code))
        .count();
    assert!(same >= 15, "{same} with the command's own code");
}
