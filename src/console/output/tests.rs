//! What reaches the two streams, and the exit codes that follow.

use std::sync::Arc;

use clap::{Arg, Command};

use super::conclude::answer;
use super::*;
use crate::args;

/// A stream that keeps what is written and can fail after a number of bytes.
#[derive(Clone, Default)]
struct Sink {
    seen: Arc<Mutex<Vec<u8>>>,
    fails_after: Option<(usize, io::ErrorKind)>,
}

impl Sink {
    fn failing(after: usize, kind: io::ErrorKind) -> Self {
        Self {
            fails_after: Some((after, kind)),
            ..Self::default()
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.seen.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut seen = self.seen.lock().unwrap();
        match self.fails_after {
            Some((after, kind)) if seen.len() + bytes.len() > after => Err(kind.into()),
            _ => {
                seen.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn options(stream: Stream) -> Options {
    Options::new("pr-receipt verify", stream)
}

fn console_on(options: Options, out: &Sink, terminals: (bool, bool)) -> (Console, Sink) {
    let err = Sink::default();
    (
        Console::with_streams(
            options,
            Box::new(out.clone()),
            Box::new(err.clone()),
            terminals,
        ),
        err,
    )
}

fn failure() -> Failure {
    Failure::new(Class::Chain, "it is cut", "Get it again.")
        .file("b.jsonl")
        .line(2)
}

#[test]
fn people_get_data_on_one_stream_and_errors_on_the_other() {
    let out = Sink::default();
    let (console, err) = console_on(options(Stream::Verdict), &out, (false, false));
    console
        .print(&format!(
            "{}verified{:#} 3\n",
            style::GOOD.render(),
            style::GOOD
        ))
        .unwrap();
    console.success("kept x\n").unwrap();
    console.note("new\nkey \u{1b}[1m");
    console.warning("old");
    let failure = failure();
    let code = console.finish(ExitCode::Refused, Errors::One(&failure), JsonObject::new());
    assert_eq!(code, ExitCode::Refused);
    assert_eq!(
        out.text(),
        "verified 3\nkept x\n",
        "without colour styles are stripped"
    );
    let expected = "plimsoll-attest: note: new\\nkey \\u{1b}[1m\nplimsoll-attest: warning: old\n\
                    plimsoll-attest: error[chain]: b.jsonl line 2: it is cut\n  \
                    place     b.jsonl, line 2\n  do        Get it again.\n";
    assert_eq!(err.text(), expected);
}

#[test]
fn quiet_drops_notes_and_success_lines_only() {
    let out = Sink::default();
    let quiet = Options {
        quiet: true,
        ..options(Stream::Text)
    };
    let (console, err) = console_on(quiet, &out, (false, false));
    console.print("data\n").unwrap();
    console.success("kept x\n").unwrap();
    console.note("n");
    console.warning("w");
    console.show(&failure());
    assert_eq!(out.text(), "data\n");
    let lines = err.text();
    assert!(
        !lines.contains("note") && lines.contains("warning: w") && lines.contains("error[chain]")
    );
}

#[test]
fn long_notes_wrap_and_stay_one_message() {
    let (console, err) = console_on(options(Stream::Text), &Sink::default(), (false, false));
    console.note(&"word ".repeat(40));
    let text = err.text();
    assert!(
        text.lines().count() == 3 && text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(
        text.lines().skip(1).all(|line| line.starts_with("    ")),
        "{text}"
    );
}

#[test]
fn json_is_one_object_with_the_common_members_first() {
    let out = Sink::default();
    let json = Options {
        json: true,
        color: Color::Always,
        ..options(Stream::Verdict)
    };
    let (console, err) = console_on(json, &out, (true, true));
    console.print("text\n").unwrap();
    let failures = [failure(), failure()];
    let members = JsonObject::new().with("z", &1).with("a", &2);
    let code = console.finish(ExitCode::Refused, Errors::Many(&failures), members);
    assert_eq!(code, ExitCode::Refused);
    let object =
        r#"{"class":"chain","message":"it is cut","file":"b.jsonl","line":2,"do":"Get it again."}"#;
    let expected = format!(
        "{{\"format\":\"plimsoll-attest/pr-receipt-verify/v1\",\"ok\":false,\"exit\":1,\"errors\":[{object},{object}],\"z\":1,\"a\":2}}\n"
    );
    assert_eq!(out.text(), expected);
    assert_eq!(err.text(), "");
}

#[test]
fn an_object_that_cannot_be_written_in_full_is_an_internal_fault() {
    let out = Sink::default();
    let json = Options {
        json: true,
        ..options(Stream::Verdict)
    };
    let (console, _) = console_on(json, &out, (false, false));
    let keys = std::collections::BTreeMap::from([(vec![1_u8], 1)]);
    let members = JsonObject::new().with("m", &keys);
    assert_eq!(
        console.finish(ExitCode::Ok, Errors::None, members),
        ExitCode::Internal
    );
    assert!(
        out.text()
            .contains("\"exit\":70,\"error\":{\"class\":\"internal\""),
        "{}",
        out.text()
    );
}

/// Prints until the stream says stop, then ends as a command with a verdict would.
fn printed_into(out: &Sink, stream: Stream, verdict: ExitCode) -> (bool, ExitCode, String) {
    let (console, err) = console_on(options(stream), out, (false, false));
    let told = console.print("line\n").is_err() | console.print("line\n").is_err();
    let code = if verdict.is_ok() || told && stream == Stream::Text {
        console.finish(ExitCode::Ok, Errors::None, JsonObject::new())
    } else {
        console.finish(verdict, Errors::One(&failure()), JsonObject::new())
    };
    (told, code, err.text())
}

#[test]
fn a_closed_pipe_means_what_the_stream_is_for() {
    for after in [0, 5] {
        let closed = Sink::failing(after, io::ErrorKind::BrokenPipe);
        for verdict in [ExitCode::Ok, ExitCode::Refused, ExitCode::Negative] {
            let (told, code, err) = printed_into(&closed, Stream::Verdict, verdict);
            assert!(!told);
            assert_eq!(code, verdict, "the verdict stands");
            assert!(!err.contains("error[io]"), "{err}");
        }
        let (told, code, err) = printed_into(&closed, Stream::Text, ExitCode::Refused);
        assert_eq!((told, code, err.as_str()), (true, ExitCode::Ok, ""));
        let (told, code, err) = printed_into(&closed, Stream::Product, ExitCode::Ok);
        assert_eq!((told, code), (true, ExitCode::Refused));
        assert!(
            err.starts_with("plimsoll-attest: error[io]: standard output"),
            "{err}"
        );
        let (told, code, err) = printed_into(&closed, Stream::Delivery, ExitCode::Ok);
        assert_eq!(
            (told, code, err.as_str()),
            (true, ExitCode::Ok, ""),
            "the caller says it"
        );
    }
}

#[test]
fn any_other_write_error_is_io_for_every_command() {
    let full = Sink::failing(5, io::ErrorKind::StorageFull);
    for stream in [
        Stream::Verdict,
        Stream::Text,
        Stream::Product,
        Stream::Delivery,
    ] {
        let (_, code, err) = printed_into(&full, stream, ExitCode::Ok);
        assert_eq!(code, ExitCode::Refused, "{stream:?}");
        assert!(
            err.contains("error[io]: standard output could not be written: no space is left"),
            "{err}"
        );
    }
    let (_, code, _) = printed_into(&full, Stream::Verdict, ExitCode::Unrecorded);
    assert_eq!(code, ExitCode::Unrecorded, "worse news stays");
}

#[test]
fn a_broken_standard_error_changes_nothing() {
    let out = Sink::default();
    let err = Sink::failing(0, io::ErrorKind::BrokenPipe);
    let console = Console::with_streams(
        options(Stream::Verdict),
        Box::new(out.clone()),
        Box::new(err),
        (false, false),
    );
    console.note("n");
    console.print("data\n").unwrap();
    assert_eq!(
        console.finish(
            ExitCode::Negative,
            Errors::One(&failure()),
            JsonObject::new()
        ),
        ExitCode::Negative
    );
    assert_eq!(out.text(), "data\n");
}

#[test]
fn colour_follows_the_flag_then_the_environment() {
    let with = |color| Options {
        color,
        ..options(Stream::Text)
    };
    assert!(with(Color::Auto).colors_in(true, false, false));
    assert!(!with(Color::Auto).colors_in(false, false, false));
    assert!(!with(Color::Auto).colors_in(true, true, false));
    assert!(!with(Color::Auto).colors_in(true, false, true));
    assert!(with(Color::Always).colors_in(false, true, true));
    assert!(!with(Color::Never).colors_in(true, false, false));
    let json = Options {
        json: true,
        ..with(Color::Always)
    };
    assert!(!json.colors_in(true, false, false));

    let out = Sink::default();
    let (console, err) = console_on(with(Color::Always), &out, (false, false));
    console
        .print(&format!("{}ok{:#}\n", style::GOOD.render(), style::GOOD))
        .unwrap();
    console.product(b"\x1b raw \xc3\xa9").unwrap();
    console.show(&failure());
    assert!(out.text().starts_with("\u{1b}[") && out.text().ends_with("\u{1b} raw é"));
    assert!(err.text().contains("\u{1b}[") && err.text().contains("error[chain]\u{1b}[0m"));
}

#[test]
fn progress_is_for_terminals_and_nobody_else() {
    let plain = options(Stream::Verdict);
    assert!(plain.shows_progress(true));
    assert!(!plain.shows_progress(false));
    for hushed in [
        Options {
            json: true,
            ..plain.clone()
        },
        Options {
            quiet: true,
            ..plain.clone()
        },
        Options {
            no_progress: true,
            ..plain.clone()
        },
    ] {
        assert!(!hushed.shows_progress(true));
    }
    let (console, err) = console_on(plain, &Sink::default(), (false, false));
    let progress = console.progress(Measure::Bytes(Some(10)));
    progress.advance(10);
    drop(progress);
    assert_eq!(err.text(), "");
}

fn root() -> Command {
    let run = Command::new("run")
        .args(shared_flags())
        .arg(Arg::new("key").long("key"));
    Command::new("plimsoll-attest")
        .version("1")
        .subcommand_required(true)
        .subcommand(run)
}

/// Code, standard output and standard error of a line that never reaches a command.
fn answered(line: &str) -> (ExitCode, String, String) {
    let outcome = args::parse(&root(), line.split(' ').map(Into::into)).unwrap_err();
    let (out, err) = (Sink::default(), Sink::default());
    let version = Version {
        line: "plimsoll-attest 1".into(),
        members: JsonObject::new().with("version", "1"),
    };
    let code = answer(outcome, version, |options| {
        Console::with_streams(
            options,
            Box::new(out.clone()),
            Box::new(err.clone()),
            (false, false),
        )
    });
    (code, out.text(), err.text())
}

#[test]
fn help_version_and_usage_errors_are_answered() {
    let (code, out, err) = answered("run --help");
    assert_eq!((code, err.as_str()), (ExitCode::Ok, ""));
    assert!(
        out.contains("--no-progress") && !out.contains('\u{1b}'),
        "{out}"
    );
    assert_eq!(
        answered("-V"),
        (ExitCode::Ok, "plimsoll-attest 1\n".into(), String::new())
    );
    let (code, out, _) = answered("--version --json");
    assert_eq!(
        (code, out.as_str()),
        (
            ExitCode::Ok,
            "{\"format\":\"plimsoll-attest/version/v1\",\"ok\":true,\"exit\":0,\"version\":\"1\"}\n"
        )
    );
    let (code, out, err) = answered("run --kye x");
    assert_eq!((code, out.as_str()), (ExitCode::Usage, ""));
    assert!(
        err.contains("Did you mean --key?\nusage: plimsoll-attest run"),
        "{err}"
    );
    for (line, format) in [("run --kye x --json", "run"), ("rnu --json", "usage")] {
        let (code, out, err) = answered(line);
        assert_eq!((code, err.as_str()), (ExitCode::Usage, ""));
        assert!(out.starts_with(&format!("{{\"format\":\"plimsoll-attest/{format}/v1\",\"ok\":false,\"exit\":2,\"error\":{{\"class\":\"usage\"")), "{out}");
        assert_eq!(out.lines().count(), 1);
    }
}

#[test]
fn options_come_from_the_shared_flags() {
    let matches = args::parse(
        &root(),
        "run --json -q --color never".split(' ').map(Into::into),
    )
    .unwrap();
    let matches = matches.subcommand().unwrap().1;
    let options = Options::from_matches("run", Stream::Verdict, matches);
    assert!(options.json && options.quiet && !options.no_progress);
    assert_eq!(
        (options.color, options.format().as_str()),
        (Color::Never, "plimsoll-attest/run/v1")
    );
}
