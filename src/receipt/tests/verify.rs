//! The reviewer's check on the example.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{HEAD, example, repository};
use plimsoll_receipt::{
    git::{Oid, Place},
    verify::{self, Options, State},
};

fn options(repo: &std::path::Path) -> Options {
    Options {
        place: Some(Place::find(repo).unwrap()),
        head: Oid::parse(HEAD),
        floor: Some("kernel".to_owned()),
        ..Options::default()
    }
}

#[test]
fn the_example_holds_step_by_step() {
    let repo = repository();
    let report = verify::verify(&example(), &options(repo.path()));
    for step in &report.steps {
        assert_eq!(step.state, State::Ok, "{step:?}");
    }
    assert_eq!(report.steps.len(), 13);
    assert_eq!(report.warnings, Vec::<String>::new());
    let facts = report.facts.unwrap();
    assert_eq!(facts.result, "PASSED");
    assert_eq!(facts.files.len(), 4);
    assert_eq!(facts.left_out[0].path, "logo.png");
}
