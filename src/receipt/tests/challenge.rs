//! Every way to be wrong is refused with its code.

#![allow(clippy::unwrap_used)]

mod common;

use common::{HEAD, example, repository};
use plimsoll_receipt::{
    challenge::{Original, mutations},
    git::{Oid, Place},
    verify::Options,
};

#[test]
fn every_mutation_of_the_example_is_refused_with_its_code() {
    let repo = repository();
    let options = Options {
        place: Some(Place::find(repo.path()).unwrap()),
        head: Oid::parse(HEAD),
        floor: Some("kernel".to_owned()),
        ..Options::default()
    };
    let original = Original::open(&example()).unwrap();
    let mut wrong = Vec::new();
    let mut made = 0;
    for mutation in mutations() {
        match original.challenge(mutation, &options) {
            None => wrong.push(format!("{}: not made", mutation.name)),
            Some(challenge) => {
                made += 1;
                if !challenge.met() {
                    wrong.push(format!(
                        "{}: expected {}, got {:?}",
                        mutation.name, mutation.code, challenge.refused
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(made >= 40, "{made}");
}
