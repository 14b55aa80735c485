//! The commands of the program, and how arguments reach them.

use std::ffi::OsString;

use clap::{ArgMatches, Command};
use plimsoll_console::{
    Console, ExitCode, Options, Stream, args,
    help::{self, Sections},
    output,
};

/// One command: its definition and what it does.
pub struct Entry {
    /// Its word.
    pub name: &'static str,
    /// What its standard output is for.
    pub stream: Stream,
    /// Its flags and arguments.
    pub define: fn(Command) -> Command,
    /// Exit codes, environment and examples of its help.
    pub sections: Sections,
    /// Does it.
    pub run: fn(&Console, &ArgMatches) -> ExitCode,
}

/// Every command, in the order help shows them.
const ENTRIES: &[Entry] = &[
    crate::keygen::ENTRY,
    #[cfg(feature = "run")]
    crate::run::ENTRY,
    crate::verify::ENTRY,
    crate::verify_entry::ENTRY,
    #[cfg(feature = "run")]
    crate::replay::ENTRY,
    crate::digest::ENTRY,
    crate::inspect::ENTRY,
    #[cfg(feature = "bom")]
    crate::sbom::ENTRY,
    crate::sign_statement::ENTRY,
    crate::open_statement::ENTRY,
    #[cfg(feature = "receipt")]
    crate::pr_receipt::ENTRY,
    #[cfg(feature = "daemon")]
    crate::daemon::ENTRY,
    #[cfg(feature = "clients")]
    crate::clients::ENTRY,
    crate::completions::ENTRY,
    crate::man::ENTRY,
    crate::version::ENTRY,
];

/// The definition that parsing, help, completions and manual pages share.
pub fn definition() -> Command {
    let root = Command::new(plimsoll_console::PROGRAM)
        .about("Runs untrusted code in a sandbox, signs a record of every run, verifies it offline")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(false);
    ENTRIES.iter().fold(root, |root, entry| {
        let command = (entry.define)(Command::new(entry.name));
        root.subcommand(help::with_sections(command, &entry.sections))
    })
}

/// Parses the arguments after the program's name and runs the command.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    #[cfg(feature = "daemon")]
    if let Some((first, rest)) = args.split_first()
        && first == crate::daemon::ENTRY.name
    {
        // The daemon has no flags: its own check names what it does not take.
        return crate::daemon::main(rest);
    }
    let matches = match args::parse(&definition(), args) {
        Ok(matches) => matches,
        #[cfg(feature = "clients")]
        Err(outcome) => {
            let outcome = crate::clients::without_tokens(outcome);
            return output::report(outcome, crate::version::facts());
        }
        #[cfg(not(feature = "clients"))]
        Err(outcome) => return output::report(outcome, crate::version::facts()),
    };
    let found = matches
        .subcommand()
        .and_then(|(name, matches)| Some((entry(name)?, matches)));
    match found {
        Some((entry, matches)) => {
            let options = Options::from_matches(entry.name, entry.stream, matches);
            (entry.run)(&Console::new(options), matches)
        }
        None => ExitCode::Internal,
    }
}

fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_keeps_the_rules_of_the_command_line() {
        assert_eq!(args::definition_faults(&definition()), Vec::<String>::new());
        definition().debug_assert();
    }

    #[test]
    fn every_command_has_codes_and_two_examples() {
        for entry in ENTRIES {
            assert!(!entry.sections.exit_codes.is_empty(), "{}", entry.name);
            assert!(entry.sections.examples.len() >= 2, "{}", entry.name);
        }
    }
}
