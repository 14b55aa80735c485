//! Each rule of the command line, kept and broken.

use clap::{Arg, ArgAction, Command};
use plimsoll_console::args::{self, ParseOutcome, UsageKind};
use plimsoll_console::values;

use crate::definition::{kind, line, parse, paths, root, usage};

#[test]
fn the_definition_follows_the_rules_and_departures_are_named() {
    assert_eq!(args::definition_faults(&root()), Vec::<String>::new());
    let odd = Command::new("x")
        .arg(Arg::new("a").short('a').long("all"))
        .arg(Arg::new("b").long("b"))
        .arg(Arg::new("c").short('q'))
        .arg(Arg::new("d").long("dd").action(ArgAction::Count));
    assert_eq!(args::definition_faults(&odd).len(), 4);
}

#[test]
fn both_spellings_any_place_and_glued_values_mean_the_same() {
    for text in [
        "verify --pub k --expect-count 3 --explain b",
        "verify -pub k -expect-count 3 -explain b",
        "verify --pub=k --expect-count=3 --explain=true b",
        "verify b -pub=k -expect-count=3 -explain=1",
        "verify -explain b --pub k --expect-count 3",
        "verify --pub k --expect-count 3 --explain -- b",
    ] {
        let matches = line(text).unwrap();
        let (name, verify) = matches.subcommand().unwrap();
        assert_eq!(
            (name, paths(verify, "pub"), paths(verify, "BUNDLE")),
            ("verify", vec!["k".into()], vec!["b".into()])
        );
        assert_eq!(verify.get_one::<i64>("expect-count"), Some(&3));
        assert!(verify.get_flag("explain"), "{text}");
    }
}

#[test]
fn a_value_is_the_next_argument_unless_it_is_a_flag_of_the_command() {
    let matches = line("verify --pub - --expect-count -1 --out -explain -o-not").unwrap_err();
    assert!(
        matches!(usage::<()>(Err(matches)).kind, UsageKind::UnknownFlag { given, .. } if given == "o-not")
    );

    let matches = line("verify --pub -explain --anchor --json=x --title -- -").unwrap();
    let verify = matches.subcommand().unwrap().1;
    assert_eq!(paths(verify, "pub"), ["-explain"]);
    assert_eq!(verify.get_one::<String>("anchor").unwrap(), "--json=x");
    assert_eq!(verify.get_one::<String>("title").unwrap(), "--");
    assert_eq!(paths(verify, "BUNDLE"), ["-"]);
    assert!(!verify.get_flag("json"));

    let missing = |next: Option<&str>| UsageKind::MissingValue {
        flag: "anchor".into(),
        next: next.map(Into::into),
    };
    assert_eq!(kind("verify --pub k b --anchor"), missing(None));
    assert_eq!(
        kind("verify --pub k b --anchor --explain"),
        missing(Some("--explain"))
    );
    assert_eq!(
        kind("verify --pub k b -anchor --outdir"),
        missing(Some("--outdir")),
        "aliases too"
    );
    let glued = line("verify --pub k b --anchor=--explain").unwrap();
    let verify = glued.subcommand().unwrap().1;
    assert_eq!(verify.get_one::<String>("anchor").unwrap(), "--explain");
    assert!(!verify.get_flag("explain"));
}

#[test]
fn one_letter_flags_stand_alone() {
    let matches = line("verify -q -o x --pub k b").unwrap();
    let verify = matches.subcommand().unwrap().1;
    assert!(verify.get_flag("quiet"));
    assert_eq!(paths(verify, "out"), ["x"]);
    for text in [
        "-qh", "-oFILE", "-o=FILE", "-q=true", "--o", "--q", "-x", "-1", "-Q", "---pub",
    ] {
        let given = kind(&format!("verify {text} --pub k b"));
        assert!(
            matches!(given, UsageKind::UnknownFlag { .. }),
            "{text}: {given:?}"
        );
    }
}

#[test]
fn booleans_take_four_words() {
    let off = line("verify --explain=false -json=0 --pub k b").unwrap();
    let verify = off.subcommand().unwrap().1;
    assert!(!verify.get_flag("explain") && !verify.get_flag("json"));
    assert!(line("verify --explain --explain=true -explain=1 --pub k b").is_ok());
    assert_eq!(
        kind("verify --explain --explain=false --pub k b"),
        UsageKind::Repeated {
            flag: "explain".into()
        }
    );
    for word in ["yes", "TRUE", "", "01"] {
        let given = kind(&format!("verify --explain={word} --pub k b"));
        assert_eq!(
            given,
            UsageKind::NotBoolean {
                flag: "explain".into(),
                given: word.into()
            }
        );
    }
}

#[test]
fn names_are_exact_and_near_ones_are_named() {
    let flag = |given: &str, near: Option<&str>| UsageKind::UnknownFlag {
        given: given.into(),
        near: near.map(Into::into),
    };
    assert_eq!(kind("verify --pub k --pubb k f"), flag("pubb", Some("pub")));
    assert_eq!(
        kind("verify --expect-cuont 3 --pub k f"),
        flag("expect-cuont", Some("expect-count"))
    );
    assert_eq!(
        kind("verify --expect 3 --pub k f"),
        flag("expect", None),
        "no abbreviations"
    );
    assert_eq!(
        kind("verify --Pub k f"),
        flag("Pub", Some("pub")),
        "no case folding"
    );
    assert_eq!(
        kind("verify --token=secret f"),
        flag("token", None),
        "the value is not repeated"
    );
    let command = |given: &str, near: Option<&str>| UsageKind::UnknownCommand {
        given: given.into(),
        near: near.map(Into::into),
    };
    assert_eq!(kind("verfy f"), command("verfy", Some("verify")));
    assert_eq!(kind("x f"), command("x", None));
    assert_eq!(kind("clients lst"), command("lst", Some("list")));
    assert_eq!(kind("mcp bogus"), command("bogus", None));
    let error = usage(line("verify --pubb k f"));
    assert_eq!(error.command, ["verify"]);
    let block = error.failure().to_block(100);
    assert!(block.starts_with("plimsoll-attest: error[usage]: unknown flag pubb\n  do        Did you mean --pub?\nusage: plimsoll-attest verify "), "{block}");
}

#[test]
fn once_means_once() {
    let twice = |flag: &str| UsageKind::Repeated { flag: flag.into() };
    assert_eq!(
        kind("verify --pub k --anchor a --anchor a b"),
        twice("anchor")
    );
    assert_eq!(
        kind("verify --pub k --out-dir a -outdir=b b"),
        twice("out-dir")
    );
    assert_eq!(kind("verify --pub k -o a --out a b"), twice("out"));
    let matches = line("verify --pub k -pub=l b c").unwrap();
    assert_eq!(paths(matches.subcommand().unwrap().1, "pub"), ["k", "l"]);
}

#[test]
fn empty_values_are_refused_where_they_are_not_meant() {
    let empty = |flag: &str| UsageKind::EmptyValue { flag: flag.into() };
    assert_eq!(kind("verify --pub= b"), empty("pub"));
    assert_eq!(
        usage(parse(["verify", "--pub", "k", "--anchor", "", "b"])).kind,
        empty("anchor")
    );
    let matches = line("verify --pub k --title= b").unwrap();
    assert_eq!(
        matches
            .subcommand()
            .unwrap()
            .1
            .get_one::<String>("title")
            .unwrap(),
        ""
    );
}

#[test]
fn values_are_checked_and_named() {
    let fault = |text: &str| match kind(text) {
        UsageKind::InvalidValue { name, given, fault } => (name, given, fault),
        other => panic!("{other:?}"),
    };
    let (name, given, why) = fault("verify --pub k --max-age 90 b");
    assert_eq!((name.as_str(), given.as_str()), ("--max-age", "90"));
    assert!(why.contains("no unit"), "{why}");
    assert!(
        fault("verify --pub k --expect-count 99999999999999999999 b")
            .2
            .contains("between")
    );
    match kind("verify --pub k --require-tier kernal b") {
        UsageKind::NotAWord { name, given, words } => {
            assert_eq!(
                (name.as_str(), given.as_str()),
                ("--require-tier", "kernal")
            );
            assert_eq!(words, values::TIERS);
        }
        other => panic!("{other:?}"),
    }
    let advice = usage(line("verify --pub k --require-tier kernal b"))
        .failure()
        .advice()
        .to_owned();
    assert!(advice.contains("Did you mean kernel?"), "{advice}");
    assert_eq!(
        kind("verify --pub k"),
        UsageKind::Missing {
            names: vec!["<BUNDLE>...".into()]
        }
    );
    assert_eq!(
        kind("verify b"),
        UsageKind::Missing {
            names: vec!["--pub <VALUE>".into()]
        }
    );
    assert_eq!(
        kind("verify --pub k --title t --out-dir d b"),
        UsageKind::Conflict {
            name: "--title".into(),
            with: "--out-dir".into()
        }
    );
    assert_eq!(
        kind("clients list x"),
        UsageKind::ExtraArgument { given: "x".into() }
    );
    assert_eq!(
        kind("clients check -- --json"),
        UsageKind::ExtraArgument {
            given: "--json".into()
        }
    );
}

#[test]
fn help_and_version_win() {
    let help = |text: &str| match line(text) {
        Err(ParseOutcome::Help { text }) => text,
        other => panic!("{text}: {other:?}"),
    };
    for text in ["help", "-h", "--help", "-help", "--bogus -h"] {
        assert!(help(text).contains("clients"), "{text}");
    }
    for text in [
        "help verify",
        "verify -h",
        "verify --bogus --help",
        "verify --pub --help",
        "verify --explain=maybe b -help",
        "help --bogus verify",
    ] {
        assert!(help(text).contains("--require-tier"), "{text}");
    }
    assert!(help("help clients list").contains("--file"));
    assert!(help("clients help list").contains("--file"));
    assert!(help("daemon help").contains("daemon"));
    assert!(matches!(
        kind("help verfy"),
        UsageKind::UnknownCommand { .. }
    ));
    assert!(matches!(
        kind("verfy --help"),
        UsageKind::UnknownCommand { .. }
    ));
    // Behind `--`, and as a value, it is only text.
    assert!(line("verify --pub k -- -h").is_ok());
    assert!(line("verify --pub k --anchor -h b").is_ok());
    for (text, json) in [
        ("-V", false),
        ("--version", false),
        ("-version --json", true),
    ] {
        assert!(
            matches!(line(text), Err(ParseOutcome::Version { json: j }) if j == json),
            "{text}"
        );
    }
    assert!(matches!(
        kind("verify --version"),
        UsageKind::UnknownFlag { .. }
    ));
}

#[test]
fn groups_need_a_command_and_some_do_not() {
    assert_eq!(kind(""), UsageKind::NoCommand);
    assert_eq!(kind("clients"), UsageKind::NoCommand);
    assert_eq!(kind("--"), UsageKind::NoCommand);
    assert_eq!(
        kind("-- verify"),
        UsageKind::ExtraArgument {
            given: "verify".into()
        }
    );
    assert!(
        usage(line("clients")).synopsis.contains("  list"),
        "a group's synopsis lists its commands"
    );
    let mcp = line("mcp -listen x serve-http --port 1").unwrap();
    let mcp = mcp.subcommand().unwrap().1;
    assert_eq!(mcp.get_one::<String>("listen").unwrap(), "x");
    assert_eq!(mcp.subcommand().unwrap().0, "serve-http");
    assert!(
        line("mcp")
            .unwrap()
            .subcommand()
            .unwrap()
            .1
            .subcommand()
            .is_none()
    );
    assert!(line("daemon").is_ok());
    assert!(matches!(
        kind("daemon --port 1"),
        UsageKind::UnknownFlag { .. }
    ));
    assert!(matches!(kind("daemon x"), UsageKind::UnknownCommand { .. }));
}

#[test]
fn an_object_is_owed_when_json_is_asked_for() {
    for (text, json) in [
        ("verify --json", true),
        ("verify --bogus -json", true),
        ("verify --json=1 --pub= b", true),
        ("verify --json=false", false),
        ("verfy --json", true),
        ("--json", true),
        ("daemon --json", true),
        ("verify -- --json", false),
        ("verify --anchor=--json", false),
    ] {
        assert_eq!(usage(line(text)).json, json, "{text}");
    }
}

#[test]
fn a_command_can_state_a_rule_of_its_own() {
    let failure = args::rule(
        &root(),
        &["clients", "list"],
        "--file is a directory",
        "Name a file.",
    );
    let block = failure.to_block(100);
    assert!(
        block.starts_with(
            "plimsoll-attest: error[usage]: --file is a directory\n  do        Name a file.\n\
             usage: plimsoll-attest clients list "
        ),
        "{block}"
    );
    assert_eq!(failure.exit_code().code(), 2);
}
