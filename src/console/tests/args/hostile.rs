//! Arguments nobody writes by hand.

use std::ffi::OsString;

use clap::{Arg, ArgAction};
use plimsoll_console::args::{self, ParseOutcome, UsageKind};
use plimsoll_console::escape::Escaper;
use proptest::prelude::*;

use crate::definition::{parse, paths, root, usage};

/// The flags of `verify` that take a value.
fn value_flags() -> Vec<Arg> {
    let root = root();
    let verify = root.find_subcommand("verify").unwrap();
    let takes = |arg: &&Arg| {
        !arg.is_positional() && matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
    };
    verify.get_arguments().filter(takes).cloned().collect()
}

/// `verify` with words of a flag, then what else it needs.
fn verify_with(words: &[&str]) -> Result<clap::ArgMatches, ParseOutcome> {
    let pub_given = words
        .iter()
        .any(|word| word.trim_start_matches('-').starts_with("pub"));
    let rest: &[&str] = if pub_given { &["b"] } else { &["--pub=k", "b"] };
    parse([&["verify"], rest, words].concat())
}

#[test]
fn every_flag_with_every_bad_form_of_value() {
    for arg in value_flags() {
        let flag = arg.get_long().unwrap().to_owned();
        let (double, single) = (format!("--{flag}"), format!("-{flag}"));
        for form in [&double, &single] {
            let missing = UsageKind::MissingValue {
                flag: flag.clone(),
                next: None,
            };
            assert_eq!(usage(verify_with(&[form])).kind, missing);
            let next = usage(verify_with(&[form, "--json", "x"])).kind;
            let expected = UsageKind::MissingValue {
                flag: flag.clone(),
                next: Some("--json".into()),
            };
            assert_eq!(next, expected);
            let empty = verify_with(&[&format!("{form}=")]);
            if arg
                .get_num_args()
                .is_some_and(|range| range.min_values() == 0)
            {
                assert!(empty.is_ok(), "{form}");
            } else {
                assert_eq!(
                    usage(empty).kind,
                    UsageKind::EmptyValue { flag: flag.clone() }
                );
            }
            // A value good for some types: one or the other way it is no fault to be given once.
            let twice = verify_with(&[form, "1", &format!("{form}=1")]);
            if matches!(arg.get_action(), ArgAction::Append) {
                assert!(twice.is_ok(), "{form}");
            } else {
                assert_eq!(
                    usage(twice).kind,
                    UsageKind::Repeated { flag: flag.clone() }
                );
            }
            for value in ["a\nb", &"x".repeat(1 << 20)] {
                match verify_with(&[form, value]) {
                    Ok(_) => {}
                    Err(ParseOutcome::Usage(error)) => {
                        let block = error.failure().to_block(100);
                        assert!(
                            block.len() < 4096 && block.contains(&flag),
                            "{form}: {block}"
                        );
                    }
                    Err(other) => unreachable!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn hostile_values_are_bounded_in_messages() {
    let big = "x".repeat(1 << 20);
    for words in [
        vec!["verify".to_owned(), format!("--{big}")],
        vec![
            "verify".to_owned(),
            "--max-age".into(),
            big.clone(),
            "--pub".into(),
            "k".into(),
            "b".into(),
        ],
        vec![big.clone()],
        vec![
            "verify".to_owned(),
            "--require-tier".into(),
            big.clone(),
            "--pub=k".into(),
            "b".into(),
        ],
        vec!["verify".to_owned(), format!("--explain={big}")],
        vec!["clients".to_owned(), "check".into(), big.clone()],
        vec![
            "verify".to_owned(),
            "--expect-count".into(),
            "9".repeat(1 << 20),
            "--pub=k".into(),
            "b".into(),
        ],
    ] {
        let block = usage(parse(words)).failure().to_block(100);
        assert!(block.len() < 4096, "{} bytes", block.len());
    }
    let path = parse(["verify", "--pub", &big, "b"]).unwrap();
    assert_eq!(paths(path.subcommand().unwrap().1, "pub"), [big]);
    let lines = parse(["verify", "--anchor", "a\nb", "--pub=k", "b\nc"]).unwrap();
    assert_eq!(
        lines
            .subcommand()
            .unwrap()
            .1
            .get_one::<String>("anchor")
            .unwrap(),
        "a\nb"
    );
    let block = usage(parse(["verify", "--an\n::error::x\u{1b}"]))
        .failure()
        .to_block_with(100, Escaper::default());
    assert!(
        block.starts_with("plimsoll-attest: error[usage]: unknown flag an\\n::error::x\\u{1b}\n"),
        "{block}"
    );
}

#[cfg(unix)]
#[test]
fn paths_are_bytes_and_text_is_utf_8() {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let path = bytes(b"k\xff.pub");
    for words in [
        vec!["verify".into(), "--pub".into(), path.clone(), "b".into()],
        vec!["verify".into(), bytes(b"-pub=k\xff.pub"), "b".into()],
    ] {
        let matches = parse(words).unwrap();
        let got = matches
            .subcommand()
            .unwrap()
            .1
            .get_one::<std::path::PathBuf>("pub")
            .unwrap();
        assert_eq!(got.as_os_str().as_bytes(), b"k\xff.pub");
    }
    let text = usage(parse(vec![
        "verify".into(),
        bytes(b"--anchor=\xff"),
        "--pub=k".into(),
        "b".into(),
    ]));
    assert_eq!(
        text.kind,
        UsageKind::NotText {
            name: Some("--anchor".into())
        }
    );
    let flag = usage(parse(vec!["verify".into(), bytes(b"--\xff")]));
    assert!(matches!(
        flag.kind,
        UsageKind::UnknownFlag { near: None, .. }
    ));
    let command = usage(parse(vec![bytes(b"verif\xff")]));
    assert!(matches!(
        command.kind,
        UsageKind::UnknownCommand { near: None, .. }
    ));
}

proptest! {
    #[test]
    fn no_arguments_make_it_panic(
        words in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "verify", "clients", "list", "mcp", "help", "--", "-", "--pub", "-pub=k", "--json",
                    "-h", "-q", "-o", "--explain=", "--title=", "--", "=", "--=", "-=", "---", "b",
                ]).prop_map(OsString::from),
                "\\PC{0,12}".prop_map(OsString::from),
                "-{0,3}[a-z=-]{0,8}".prop_map(OsString::from),
            ],
            0..8,
        )
    ) {
        if let Err(ParseOutcome::Usage(error)) = args::parse(&root(), words) {
            let block = error.failure().to_block(100);
            prop_assert!(block.lines().count() >= 3, "fact, cure and synopsis: {}", block);
        }
    }

    #[test]
    fn order_of_flags_and_arguments_does_not_matter(
        bundles in prop::collection::vec("[a-z]{1,6}", 1..4),
        places in prop::collection::vec(any::<prop::sample::Index>(), 3),
        dash in prop::sample::select(vec!["-", "--"]),
    ) {
        let mut groups: Vec<Vec<String>> = bundles.iter().map(|b| vec![b.clone()]).collect();
        let flags = [
            vec![format!("{dash}pub"), "k".into()],
            vec![format!("{dash}max-age=1h")],
            vec![format!("{dash}explain")],
        ];
        for (flag, place) in flags.into_iter().zip(places) {
            let at = place.index(groups.len() + 1);
            groups.insert(at, flag);
        }
        let words = std::iter::once("verify".to_owned()).chain(groups.into_iter().flatten());
        let matches = parse(words).unwrap();
        let verify = matches.subcommand().unwrap().1;
        prop_assert_eq!(paths(verify, "BUNDLE"), bundles);
        prop_assert_eq!(paths(verify, "pub"), ["k"]);
        prop_assert!(verify.get_flag("explain"));
    }
}
