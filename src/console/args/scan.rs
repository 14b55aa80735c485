//! The scan over raw arguments.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use super::usage::{UsageKind, shown};

/// The only one-letter flags.
pub(super) const SHORT_FLAGS: [char; 4] = ['h', 'V', 'q', 'o'];

/// Farthest edit distance at which a name is suggested.
const NEAR: usize = 2;

/// Longest name that is compared for a suggestion: no known one is longer, and the comparison
/// takes time in the product of both lengths.
const LONGEST_NAME: usize = 64;

/// What the raw arguments say.
pub(super) struct Scan<'a> {
    /// The program and the commands named, outermost first.
    pub commands: Vec<&'a Command>,
    /// The normal form for `clap`, the program's name included.
    pub argv: Vec<OsString>,
    pub help: bool,
    pub version: bool,
    pub json: bool,
    /// The first flag whose value is neither UTF-8 nor meant to be a path, should `clap` refuse
    /// one: it does not say which.
    pub not_text: Option<String>,
    /// The first fault.
    pub fault: Option<UsageKind>,
    /// Flags of the present level in normal form.
    flags: Vec<OsString>,
    arguments: Vec<OsString>,
    /// Flags seen so far, with the value of a boolean.
    seen: BTreeMap<String, Option<bool>>,
}

/// What a flag does with a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Takes {
    Help,
    Version,
    Boolean,
    Value,
}

fn takes(arg: &Arg) -> Takes {
    match arg.get_action() {
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong => Takes::Help,
        ArgAction::Version => Takes::Version,
        ArgAction::Set | ArgAction::Append => Takes::Value,
        _ => Takes::Boolean,
    }
}

/// Whether the scan gives the flag's action its meaning.
pub(super) fn is_supported(arg: &Arg) -> bool {
    takes(arg) != Takes::Boolean || matches!(arg.get_action(), ArgAction::SetTrue)
}

impl<'a> Scan<'a> {
    /// Reads all arguments. A fault does not end the reading: help behind it still wins, and
    /// `--json` behind it still decides the form of the answer.
    pub fn run(root: &'a Command, args: Vec<OsString>) -> Self {
        let mut scan = Self {
            commands: vec![root],
            argv: vec![OsString::from(root.get_name())],
            help: false,
            version: false,
            json: false,
            not_text: None,
            fault: None,
            flags: Vec::new(),
            arguments: Vec::new(),
            seen: BTreeMap::new(),
        };
        let mut args = args.into_iter().peekable();
        let mut only_arguments = false;
        while let Some(arg) = args.next() {
            let bytes = arg.as_encoded_bytes();
            if only_arguments || bytes == b"-" || !bytes.starts_with(b"-") {
                scan.argument(arg, only_arguments);
            } else if bytes == b"--" {
                only_arguments = true;
            } else {
                let next = args.peek().map(OsString::as_os_str);
                if scan.flag(&arg, next) {
                    args.next();
                }
            }
        }
        scan.finish();
        scan
    }

    fn command(&self) -> &'a Command {
        // Begins with the root and only grows.
        self.commands[self.commands.len() - 1]
    }

    fn fail(&mut self, kind: UsageKind) {
        self.fault.get_or_insert(kind);
    }

    /// An argument that is no flag: a command's name where one may stand, else an argument.
    fn argument(&mut self, arg: OsString, only_arguments: bool) {
        let command = self.command();
        if !self.arguments.is_empty() || !command.has_subcommands() || only_arguments {
            self.arguments.push(arg);
            return;
        }
        let found = arg.to_str().and_then(|name| command.find_subcommand(name));
        match found {
            Some(found) if found.get_name() != "help" => {
                self.argv.append(&mut self.flags);
                self.argv.push(OsString::from(found.get_name()));
                self.commands.push(found);
            }
            _ if arg == "help" => self.help = true,
            _ if command.get_positionals().next().is_some() => self.arguments.push(arg),
            _ => {
                let names = command
                    .get_subcommands()
                    .flat_map(Command::get_name_and_visible_aliases);
                let kind = UsageKind::UnknownCommand {
                    near: nearest(&arg, names),
                    given: shown(&arg),
                };
                self.fail(kind);
            }
        }
    }

    /// A flag; gives whether it took the next argument.
    fn flag(&mut self, arg: &OsStr, next: Option<&OsStr>) -> bool {
        let (name, glued) = split(arg);
        let Some(found) = self.find(arg, name) else {
            // Not a flag of this command; scripts that ask for an object still get one.
            self.json |= name == b"json";
            let longs = self.command().get_arguments().flat_map(long_names);
            let name = as_os_str(arg, name);
            let kind = UsageKind::UnknownFlag {
                near: nearest(name, longs),
                given: shown(name),
            };
            self.fail(kind);
            return false;
        };
        let flag = found
            .get_long()
            .map_or_else(|| found.get_id().to_string(), str::to_owned);
        match takes(found) {
            Takes::Help => self.help = true,
            Takes::Version => self.version = true,
            Takes::Boolean => self.boolean(flag, glued),
            Takes::Value => return self.value(found, flag, glued.map(|v| as_os_str(arg, v)), next),
        }
        false
    }

    fn boolean(&mut self, flag: String, glued: Option<&[u8]>) {
        let value = match glued {
            None | Some(b"true" | b"1") => true,
            Some(b"false" | b"0") => false,
            Some(other) => {
                let given = shown(OsStr::new(&*String::from_utf8_lossy(other)));
                return self.fail(UsageKind::NotBoolean { flag, given });
            }
        };
        self.json |= value && flag == "json";
        match self.seen.insert(flag.clone(), Some(value)) {
            None if value => self.flags.push(OsString::from(format!("--{flag}"))),
            Some(Some(before)) if before != value => self.fail(UsageKind::Repeated { flag }),
            _ => {}
        }
    }

    fn value(
        &mut self,
        found: &Arg,
        flag: String,
        glued: Option<&OsStr>,
        next: Option<&OsStr>,
    ) -> bool {
        let (value, took_next) = match (glued, next) {
            (Some(value), _) => (value, false),
            (None, Some(next)) if !self.is_exact_flag(next) => (next, true),
            (None, next) => {
                self.fail(UsageKind::MissingValue {
                    flag,
                    next: next.map(shown),
                });
                return false;
            }
        };
        let repeatable = matches!(found.get_action(), ArgAction::Append);
        if self.seen.insert(flag.clone(), None).is_some() && !repeatable {
            self.fail(UsageKind::Repeated { flag });
            return took_next;
        }
        let accepts_empty = found
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        if value.is_empty() && !accepts_empty {
            self.fail(UsageKind::EmptyValue { flag });
            return took_next;
        }
        if value.to_str().is_none() && !is_path(found) {
            self.not_text.get_or_insert_with(|| format!("--{flag}"));
        }
        let mut normal = OsString::from(format!("--{flag}="));
        normal.push(value);
        self.flags.push(normal);
        took_next
    }

    /// The flag a name stands for: a long one behind one dash or two, or one letter behind one.
    fn find(&self, arg: &OsStr, name: &[u8]) -> Option<&'a Arg> {
        let name = std::str::from_utf8(name).ok()?;
        let mut letters = name.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            // The whole argument is the dash and the letter, so nothing is glued to it.
            let alone = arg.as_encoded_bytes().len() == 2 && SHORT_FLAGS.contains(&letter);
            let has = |arg: &&Arg| arg.get_short() == Some(letter);
            return self.command().get_arguments().find(has).filter(|_| alone);
        }
        self.command()
            .get_arguments()
            .find(|arg| long_names(arg).contains(&name))
    }

    /// Whether an argument is exactly a flag of the command in the `--` form.
    fn is_exact_flag(&self, arg: &OsStr) -> bool {
        let name = arg.to_str().and_then(|text| text.strip_prefix("--"));
        name.is_some_and(|name| {
            self.command()
                .get_arguments()
                .any(|arg| long_names(arg).contains(&name))
        })
    }

    fn finish(&mut self) {
        let command = self.command();
        let needs = command.is_subcommand_required_set() || command.is_arg_required_else_help_set();
        if command.has_subcommands() && needs && self.arguments.is_empty() {
            self.fail(UsageKind::NoCommand);
        }
        self.argv.append(&mut self.flags);
        if !self.arguments.is_empty() {
            if command.get_positionals().next().is_none() {
                let given = shown(&self.arguments[0]);
                self.fail(UsageKind::ExtraArgument { given });
            }
            self.argv.push(OsString::from("--"));
            self.argv.append(&mut self.arguments);
        }
    }
}

/// Whether a flag's value may be any bytes.
fn is_path(arg: &Arg) -> bool {
    let kind = arg.get_value_parser().type_id();
    kind == TypeId::of::<PathBuf>() || kind == TypeId::of::<OsString>()
}

/// All long names of a flag; none for a positional argument.
fn long_names(arg: &Arg) -> Vec<&str> {
    let mut names: Vec<&str> = arg.get_long().into_iter().collect();
    names.extend(arg.get_all_aliases().unwrap_or_default());
    names
}

/// Name and glued value of an argument that begins with a dash.
fn split(arg: &OsStr) -> (&[u8], Option<&[u8]>) {
    let bytes = arg.as_encoded_bytes();
    let bytes = bytes
        .strip_prefix(b"--")
        .or_else(|| bytes.strip_prefix(b"-"))
        .unwrap_or(bytes);
    match bytes.iter().position(|&b| b == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
}

/// The part of `arg` that `part` is a slice of.
#[cfg(unix)]
fn as_os_str<'b>(_arg: &OsStr, part: &'b [u8]) -> &'b OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(part)
}

/// The part of `arg` that `part` is a slice of. Where arguments are not bytes, one that is not
/// Unicode has no glued value that could be told apart, and reads as empty.
#[cfg(not(unix))]
fn as_os_str<'b>(_arg: &OsStr, part: &'b [u8]) -> &'b OsStr {
    OsStr::new(std::str::from_utf8(part).unwrap_or_default())
}

/// The nearest known name, when one is near enough.
fn nearest<'n>(given: &OsStr, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let given = given.to_str().filter(|name| name.len() <= LONGEST_NAME)?;
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|&(distance, name)| distance <= NEAR && distance < name.len())
        .min()
        .map(|(_, name)| name.to_owned())
}
