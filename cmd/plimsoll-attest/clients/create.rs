//! `clients create` and `clients import`: a new caller, with a new token or with
//! one that is there already.

use clap::{ArgMatches, Command};
use plimsoll_callers::{Caller, Token};
use plimsoll_console::{Console, Stream, output};

use super::{
    Sub, delivery,
    edit::{change, members, warn_of_allowance},
    flags,
    refusal::Outcome,
};

pub const CREATE: Sub = Sub {
    name: "create",
    define: define_create,
    stream: |_| Stream::Delivery,
    examples: &[
        (
            "clients create --file clients.json --id gateway --token-stdout > gateway.token",
            "a caller with scope code:run; the token is shown this once",
        ),
        (
            "clients create --file clients.json --id batch --paid-seconds-per-day 3600 \
             --token-stdout | pass insert -e plimsoll/batch",
            "with an hour a day on a provider billed by the second",
        ),
    ],
    run: create,
};

pub const IMPORT: Sub = Sub {
    name: "import",
    define: define_import,
    stream: |_| Stream::Verdict,
    examples: &[
        (
            "clients import --file clients.json --id gateway < gateway.token",
            "a caller whose token was made elsewhere",
        ),
        (
            "clients import --file clients.json --id admin --scope '*' < admin.token",
            "with every scope",
        ),
    ],
    run: import,
};

fn define_create(command: Command) -> Command {
    command
        .about("Adds a caller with a new token")
        .long_about(
            "Adds a caller with a new token of 32 random bytes in hex, and makes the file when \
             there is none. Standard output carries the token and a newline, nothing else; it is \
             kept nowhere and cannot be shown again.",
        )
        .args([flags::file(), flags::id(), flags::scope()])
        .arg(flags::paid().default_value("0"))
        .arg(flags::token_stdout().required(true))
        .args(output::shared_flags())
}

fn define_import(command: Command) -> Command {
    command
        .about("Adds a caller with the token on standard input")
        .long_about(
            "Adds a caller with the token on standard input: 32 to 4096 visible ASCII characters, \
             at most one line ending behind them. Makes the file when there is none.",
        )
        .args([flags::file(), flags::id(), flags::scope()])
        .arg(flags::paid().default_value("0"))
        .args(output::shared_flags())
}

fn create(console: &Console, matches: &ArgMatches) -> Outcome {
    flags::no_json_with_token(&["clients", "create"], matches)?;
    let (path, caller) = asked(&["clients", "create"], matches)?;
    let token = delivery::make()?;
    let id = caller.id.clone();
    let _held = add(console, &path, caller, &token)?;
    delivery::give(console, &id, &token)?;
    Ok(members(&id, "created"))
}

fn import(console: &Console, matches: &ArgMatches) -> Outcome {
    let (path, caller) = asked(&["clients", "import"], matches)?;
    let token = delivery::take(console)?;
    let id = caller.id.clone();
    let _held = add(console, &path, caller, &token)?;
    Ok(members(&id, "imported"))
}

/// A caller without its token.
struct Asked {
    id: plimsoll_callers::CallerId,
    scopes: Vec<plimsoll_callers::Scope>,
    paid: u64,
}

fn asked(
    words: &[&str],
    matches: &ArgMatches,
) -> Result<(std::path::PathBuf, Asked), super::refusal::Refusal> {
    let caller = Asked {
        id: flags::id_of(matches)?,
        scopes: flags::scopes_of(words, matches)?,
        paid: flags::paid_of(matches),
    };
    Ok((flags::file_of(matches)?, caller))
}

fn add(
    console: &Console,
    path: &std::path::Path,
    asked: Asked,
    token: &Token,
) -> Result<super::edit::Held, super::refusal::Refusal> {
    let caller = Caller {
        id: asked.id,
        fingerprint: token.fingerprint(),
        scopes: asked.scopes,
        paid_seconds_per_day: asked.paid,
    };
    let id = caller.id.clone();
    let held = change(console, path, &id, true, |registry| registry.add(caller))?;
    warn_of_allowance(console, asked.paid);
    Ok(held)
}
