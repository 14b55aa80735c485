//! The published example, made again from its repository and its run.

#![allow(clippy::unwrap_used)]

mod common;

use common::{BASE, HEAD, example, example_key, repository};
use plimsoll_receipt::{
    assemble::{assemble, render},
    collect, config, event,
    event::Binding,
    git::{Oid, Place, Store, object::Algorithm, tree},
    make::{About, Files, config_from, key},
    outcome::evaluate,
    report::Spec,
    run::Run,
    statement::receipt::{ConfigSource, KeyKind, PullRequest, Repository, TestedKind},
};

#[test]
fn byte_for_byte() {
    let repo = repository();
    let place = Place::find(repo.path()).unwrap();
    let mut store = Store::open(&place, Algorithm::Sha1).unwrap();
    let (head, base) = (Oid::parse(HEAD).unwrap(), Oid::parse(BASE).unwrap());
    let commit = store.commit(&head).unwrap();
    let base_tree = store.commit(&base).unwrap().tree;
    let none = config::patterns::<&str>(&[]).unwrap();
    let collected = collect::collect(&mut store, &commit.tree, &none).unwrap();
    let tests = config::patterns(&config::TEST_PATHS).unwrap();
    let tests_changed =
        collect::tests_changed(&mut store, &base_tree, &commit.tree, &tests).unwrap();
    let url = "https://github.com/example-org/adder";
    let mut workflow = event::workflow(url, |name| {
        Some(
            match name {
                "GITHUB_EVENT_NAME" => "pull_request",
                "GITHUB_WORKFLOW_REF" => {
                    "example-org/adder/.github/workflows/plimsoll-receipt.yml@refs/pull/7/merge"
                }
                "GITHUB_RUN_ID" => "1234567890",
                "GITHUB_RUN_ATTEMPT" => "1",
                _ => return None,
            }
            .to_owned(),
        )
    })
    .unwrap();
    let blob = tree::find(&mut store, &commit.tree, &workflow.path)
        .unwrap()
        .unwrap();
    workflow.git_blob = blob.as_str().to_owned();

    let expected = example();
    let signing = example_key();
    let run = Run::read(&expected.bundle, signing.public()).unwrap();
    let (asked, result) = run.project().unwrap();
    let sent: Vec<(String, String)> = asked
        .files
        .iter()
        .map(|file| (file.path.clone(), file.content.clone()))
        .collect();
    let from_git: Vec<(String, String)> = collected
        .files
        .iter()
        .map(|file| (file.path.clone(), file.content.clone()))
        .collect();
    assert_eq!(from_git, sent);
    let spec = Spec::parse("junit:artifact:plimsoll-report.xml")
        .unwrap()
        .unwrap();
    let outcome = evaluate(asked, result, &[spec]);
    let about = About {
        binding: Binding {
            repository: Repository {
                url: url.to_owned(),
            },
            pull_request: PullRequest {
                number: 7,
                head_repository: "https://github.com/example-fork/adder".to_owned(),
                head_sha: HEAD.to_owned(),
                base_ref: "main".to_owned(),
                base_sha: BASE.to_owned(),
            },
        },
        kind: TestedKind::Head,
        commit: head,
        tree: commit.tree,
        files: Files::of(&collected),
        added: Vec::new(),
        config: config_from(ConfigSource::Workflow, None),
        tests_changed,
        workflow,
        key: key(signing.public().id(), KeyKind::Ephemeral),
        created_unix_ms: 1_792_314_010_900,
    };
    let made = assemble(&expected.bundle, &run, &outcome, about, &signing).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(text(&made.test_result), text(&expected.test_result));
    assert_eq!(text(&made.receipt), text(&expected.receipt));
    assert_eq!(text(&made.public_key), text(&expected.public_key));
    assert!(made.bom == expected.bom, "the BOM differs");
}

#[test]
fn rendered_twice_is_the_same_and_holds_what_a_reviewer_needs() {
    let rendered = render(&example()).unwrap();
    let again = render(&example()).unwrap();
    assert_eq!(rendered.summary, again.summary);
    assert_eq!(rendered.page, again.page);
    for needed in [
        HEAD,
        "## plimsoll receipt: PASSED",
        "stated by the daemon; not hardware attestation",
        "8b101f25ca1dd8273794606a8172594ce47f8e53ae5bd2450cbf6026b862ab13",
        "git fetch origin pull/7/head",
        "d5a533b4281f6a3199195070d2abc8f7024d4eceee015b11276739763c4743ec",
        "`logo.png` not-utf8",
    ] {
        assert!(rendered.summary.contains(needed), "{needed}");
    }
}
