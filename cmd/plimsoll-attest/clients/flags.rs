//! Flags of the group and their values.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use plimsoll_callers::{CallerId, FaultKind, Scope};
use plimsoll_console::{Class, Failure, args, values};

/// Why an ID or scope is refused; follows the value in a sentence.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum WordFault {
    /// Only white space.
    #[error("is blank")]
    Blank,
    /// The word for everyone.
    #[error("stands for every caller and can be none")]
    Everyone,
    /// Would forge log lines.
    #[error("holds a control character")]
    Control,
    /// Not one word.
    #[error("is not one word without white space or control characters")]
    NotAWord,
}

fn caller_id(text: &str) -> Result<CallerId, WordFault> {
    CallerId::parse(text).map_err(|fault| match fault {
        FaultKind::EmptyId => WordFault::Blank,
        FaultKind::StarId => WordFault::Everyone,
        _ => WordFault::Control,
    })
}

fn scope_word(text: &str) -> Result<Scope, WordFault> {
    Scope::parse(text).map_err(|_| WordFault::NotAWord)
}

pub fn file() -> Arg {
    Arg::new("file")
        .long("file")
        .value_name("PATH")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The registry")
}

pub fn id() -> Arg {
    Arg::new("id")
        .long("id")
        .value_name("ID")
        .required(true)
        .value_parser(caller_id)
        .help("The caller; limits, sessions and log lines are kept by it")
}

pub fn scope() -> Arg {
    Arg::new("scope")
        .long("scope")
        .value_name("S")
        .action(ArgAction::Append)
        .value_parser(scope_word)
        .help("What the caller may do: code:run (the default) or * for all; repeatable")
}

pub fn paid() -> Arg {
    Arg::new("paid-seconds-per-day")
        .long("paid-seconds-per-day")
        .value_name("N")
        .value_parser(values::number(0..=i64::MAX))
        .help("Seconds a UTC day on a provider billed by the second; 0 is no allowance of its own")
}

pub fn token_stdout() -> Arg {
    Arg::new("token-stdout")
        .long("token-stdout")
        .action(ArgAction::SetTrue)
        .help("Make a new token and show it on standard output, this once")
}

/// The file named, which is locked and replaced and so cannot be a stream.
pub fn file_of(matches: &ArgMatches) -> Result<PathBuf, Failure> {
    let path = matches
        .get_one::<PathBuf>("file")
        .cloned()
        .unwrap_or_default();
    if path.as_os_str() == "-" {
        return Err(Failure::new(
            Class::Usage,
            "- (standard input) is not allowed for --file",
            "Name the registry's file: it is locked while it is changed.",
        ));
    }
    Ok(path)
}

/// The caller named.
pub fn id_of(matches: &ArgMatches) -> Result<CallerId, Failure> {
    matches
        .get_one::<CallerId>("id")
        .cloned()
        .ok_or_else(|| plimsoll_console::fault::internal("caller ID"))
}

/// The scopes given, or the one every caller gets.
pub fn scopes_of(words: &[&str], matches: &ArgMatches) -> Result<Vec<Scope>, Failure> {
    let given: Vec<Scope> = matches
        .get_many::<Scope>("scope")
        .unwrap_or_default()
        .cloned()
        .collect();
    let repeated = given
        .iter()
        .enumerate()
        .any(|(index, scope)| given.iter().take(index).any(|before| before == scope));
    if repeated {
        return Err(rule(
            words,
            "--scope is given twice with one value",
            "Give each scope once.",
        ));
    }
    if given.is_empty() {
        return Ok(vec![Scope::run()]);
    }
    Ok(given)
}

/// The allowance given; 0 when none is.
pub fn paid_of(matches: &ArgMatches) -> u64 {
    matches
        .get_one::<i64>("paid-seconds-per-day")
        .map_or(0, |n| n.unsigned_abs())
}

/// A token goes to standard output as it is, so no object can.
pub fn no_json_with_token(words: &[&str], matches: &ArgMatches) -> Result<(), Failure> {
    if matches.get_flag("json") && matches.get_flag("token-stdout") {
        return Err(rule(
            words,
            "--json cannot be given with --token-stdout",
            "Standard output carries the new token alone. Leave --json out.",
        ));
    }
    Ok(())
}

/// A usage error of one of the group's own rules.
pub fn rule(words: &[&str], fact: &str, advice: &str) -> Failure {
    args::rule(&crate::cli::definition(), words, fact, advice)
}
