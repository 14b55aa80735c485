//! A definition with every kind of flag, and short ways to parse with it.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_console::args::{self, ParseOutcome, UsageError, UsageKind};
use plimsoll_console::{output, values};

pub fn set(name: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("VALUE")
}

pub fn root() -> Command {
    let verify = Command::new("verify")
        .about("verify bundles")
        .args(output::shared_flags())
        .arg(
            set("pub")
                .action(ArgAction::Append)
                .required(true)
                .value_parser(value_parser!(std::path::PathBuf)),
        )
        .arg(
            set("expect-count")
                .value_parser(values::number(-1..=i64::MAX))
                .default_value("-1"),
        )
        .arg(set("max-age").value_parser(values::duration))
        .arg(set("require-tier").value_parser(values::words(&values::TIERS)))
        .arg(set("title").num_args(0..=1))
        .arg(set("out-dir").alias("outdir").conflicts_with("title"))
        .arg(
            set("out")
                .short('o')
                .value_parser(value_parser!(std::path::PathBuf)),
        )
        .arg(set("anchor"))
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue),
        )
        .arg(
            Arg::new("BUNDLE")
                .num_args(1..)
                .required(true)
                .value_parser(value_parser!(std::path::PathBuf)),
        );
    Command::new("plimsoll-attest")
        .version("9.9.9")
        .subcommand_required(true)
        .subcommand(verify)
        .subcommand(
            Command::new("clients")
                .subcommand_required(true)
                .subcommand(
                    Command::new("list")
                        .args(output::shared_flags())
                        .arg(set("file")),
                )
                .subcommand(Command::new("check")),
        )
        .subcommand(
            Command::new("mcp")
                .arg(set("listen"))
                .subcommand(Command::new("serve-http").arg(set("port")))
                .subcommand(Command::new("check")),
        )
        .subcommand(Command::new("daemon").subcommand(Command::new("help").hide(true)))
}

pub fn parse<S: Into<OsString>>(
    line: impl IntoIterator<Item = S>,
) -> Result<ArgMatches, ParseOutcome> {
    args::parse(&root(), line.into_iter().map(Into::into))
}

/// Parses words that hold no spaces.
pub fn line(line: &str) -> Result<ArgMatches, ParseOutcome> {
    parse(line.split_whitespace())
}

pub fn usage<T: std::fmt::Debug>(result: Result<T, ParseOutcome>) -> UsageError {
    let Err(ParseOutcome::Usage(error)) = result else {
        unreachable!("not a usage error: {result:?}")
    };
    *error
}

pub fn kind(text: &str) -> UsageKind {
    usage(line(text)).kind
}

pub fn paths(matches: &ArgMatches, id: &str) -> Vec<String> {
    let paths = matches
        .get_many::<std::path::PathBuf>(id)
        .unwrap_or_default();
    paths
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}
