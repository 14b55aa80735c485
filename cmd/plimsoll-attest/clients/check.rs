//! `clients check`: what a daemon would say of the file.

use clap::{ArgMatches, Command};
use plimsoll_callers::{Links, Registry, Scope, read};
use plimsoll_console::{Console, JsonObject, Stream, escape, output};

use super::{
    Sub, flags,
    refusal::{self, Outcome},
};

pub const SUB: Sub = Sub {
    name: "check",
    define,
    stream: |_| Stream::Verdict,
    examples: &[
        (
            "clients check --file /etc/plimsoll/clients.json",
            "every fault, before a daemon is restarted",
        ),
        (
            "clients check --file clients.json --json",
            "the same for a script",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Loads the registry as a daemon would and shows every fault")
        .long_about(
            "Loads the registry as a daemon would, an empty one refused and a symbolic link \
             followed, and shows every fault. Warns when group or others can write the file.",
        )
        .arg(flags::file())
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> Outcome {
    let path = flags::file_of(matches)?;
    let source = read(&path, Links::Follow).map_err(|error| refusal::unreadable(&path, &error))?;
    let mut warnings = Vec::new();
    if source.others_can_write() {
        warnings.push("group or others can write the file, and so add callers".to_owned());
    }
    let registry =
        Registry::parse_for_daemon(&source.text).map_err(|faults| refusal::invalid(&path, &faults));
    if let Ok(registry) = &registry {
        let idle = |caller: &&plimsoll_callers::Caller| {
            let scopes = &caller.scopes;
            !scopes
                .iter()
                .any(|scope| *scope == Scope::run() || scope.as_str() == "*")
        };
        for caller in registry.callers().iter().filter(idle) {
            warnings.push(format!(
                "caller {:?} has neither code:run nor *: every call of it is refused",
                caller.id.as_str()
            ));
        }
    }
    for warning in &warnings {
        console.warning(warning);
    }
    let callers = registry?.callers().len();
    let noun = if callers == 1 { "caller" } else { "callers" };
    console.success(&format!("{}: {callers} {noun}\n", escape::path(&path)))?;
    let object = JsonObject::new()
        .with("file", &path.to_string_lossy())
        .with("callers", &callers);
    Ok(object.with("warnings", &warnings))
}
