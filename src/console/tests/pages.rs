//! Help, completions and manual pages from one definition.
#![allow(clippy::unwrap_used, clippy::panic)]

use clap::{Arg, Command};
use plimsoll_console::help::{self, Sections};
use plimsoll_console::pages::{self, PageInfo};
use plimsoll_console::{ExitCode, args, output, values};

const INFO: PageInfo<'_> = PageInfo {
    date: "2026-10-18",
    version: "9.9.9",
};

fn root() -> Command {
    let verify = Command::new("verify")
        .about("Verify whole bundles offline")
        .args(output::shared_flags())
        .arg(
            Arg::new("floor")
                .long("floor")
                .value_name("TIER")
                .value_parser(values::words(&values::TIERS))
                .help("The weakest tier that is met"),
        )
        .arg(Arg::new("BUNDLE").required(true));
    let verify = help::with_sections(
        verify,
        &Sections {
            exit_codes: &[
                (ExitCode::Ok, "verified"),
                (ExitCode::Refused, ""),
                (ExitCode::Internal, ""),
            ],
            environment: &[("NO_COLOR", "when not empty, no colour")],
            examples: &[
                ("verify a.jsonl", "one bundle"),
                ("verify -- -odd.jsonl", "an odd name; .roff"),
            ],
        },
    );
    Command::new("plimsoll-attest")
        .version("9.9.9")
        .about("Run code and sign what came of it")
        .subcommand_required(true)
        .subcommand(verify)
        .subcommand(
            Command::new("clients")
                .about("The registry")
                .subcommand_required(true)
                .subcommand(Command::new("list")),
        )
        .subcommand(Command::new("inner").hide(true))
}

fn help_of(words: &[&str]) -> String {
    match args::parse(&root(), words.iter().map(Into::into)) {
        Err(args::ParseOutcome::Help { text }) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn help_holds_its_sections_within_the_width() {
    let text = help_of(&["help", "verify"]);
    for part in [
        "Exit codes:\n  0   verified\n  1   evidence does not verify, an input was refused, a check differs\n  70  a fault",
        "Environment:\n  NO_COLOR  when",
        "Examples:\n  plimsoll-attest verify a.jsonl\n      one bundle\n",
        "possible values: process, container, kernel, vm",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
}

#[test]
fn a_synopsis_is_short_and_names_the_commands_of_a_group() {
    let mut root = root();
    root.build();
    let synopsis = help::synopsis(&root);
    assert!(
        synopsis.starts_with("usage: plimsoll-attest "),
        "{synopsis}"
    );
    assert!(
        synopsis.contains("  verify   Verify whole bundles offline\n")
            && !synopsis.contains("inner"),
        "{synopsis}"
    );
    let verify = help::synopsis(root.find_subcommand("verify").unwrap());
    assert!(
        verify.starts_with("usage: plimsoll-attest verify ") && verify.lines().count() == 1,
        "{verify}"
    );
}

#[test]
fn every_shell_has_a_script_that_knows_flags_and_words() {
    for shell in pages::SHELLS {
        let script = String::from_utf8(pages::completions(&root(), shell).unwrap()).unwrap();
        for word in ["plimsoll-attest", "verify", "floor", "kernel"] {
            // Only value words are beyond what some generators offer.
            let optional = word == "kernel" && matches!(shell, "powershell" | "elvish");
            assert!(optional || script.contains(word), "{shell} lacks {word}");
        }
    }
    assert!(pages::completions(&root(), "tcsh").is_none());
}

#[test]
fn pages_are_reproducible_and_complete() {
    let pages = pages::manual(&root(), INFO);
    assert_eq!(pages, pages::manual(&root(), INFO));
    let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
    assert_eq!(
        files,
        [
            "plimsoll-attest.1",
            "plimsoll-attest-verify.1",
            "plimsoll-attest-clients.1",
            "plimsoll-attest-clients-list.1"
        ]
    );
    let page = pages::manual_page(&root(), &["verify"], INFO).unwrap();
    let text = String::from_utf8(page.text).unwrap();
    for part in [
        ".TH plimsoll-attest-verify 1 2026-10-18 \"plimsoll-attest 9.9.9\"",
        ".SH NAME\nplimsoll\\-attest\\-verify \\- Verify whole bundles offline",
        ".SH SYNOPSIS",
        ".SH OPTIONS",
        ".SH \"EXIT STATUS\"",
        ".SH ENVIRONMENT",
        ".SH EXAMPLES",
        "plimsoll\\-attest verify a.jsonl",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(pages::manual_page(&root(), &["bogus"], INFO).is_none());
}

#[test]
fn bash_looks_for_a_command_under_the_name_it_noted() {
    let script = String::from_utf8(pages::completions(&root(), "bash").unwrap()).unwrap();
    let noted = "cmd=\"plimsoll__attest__subcmd__verify\"";
    assert!(
        script.contains(noted) && script.contains("\n        plimsoll__attest__subcmd__verify)")
    );
}

#[test]
fn a_long_example_goes_on_as_a_shell_reads_it() {
    let line = "verify --pub a.pub ".to_owned() + &"one-more-bundle.jsonl ".repeat(5) + "end";
    let line: &'static str = line.leak();
    let examples: &'static [(&str, &str)] = vec![(line, "long")].leak();
    let command = help::with_sections(
        Command::new("verify"),
        &Sections {
            exit_codes: &[],
            environment: &[],
            examples,
        },
    );
    let text = command.get_after_help().unwrap().to_string();
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.replace(" \\\n    ", " ").contains(line), "{text}");
}
