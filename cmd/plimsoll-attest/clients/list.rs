//! `clients list`: who may call.

use clap::{ArgMatches, Command};
use plimsoll_callers::{Caller, Links, Registry, Scope, read};
use plimsoll_console::{Console, JsonObject, Stream, escape, json::Count, output};
use serde::Serialize;

use super::{
    Sub, flags,
    refusal::{self, Outcome, Refusal},
};

pub const SUB: Sub = Sub {
    name: "list",
    define,
    stream: |_| Stream::Text,
    examples: &[
        ("clients list --file clients.json", "a table, sorted by ID"),
        (
            "clients list --file clients.json --json",
            "the same for a script",
        ),
    ],
    run,
};

const HEAD: [&str; 3] = ["CALLER", "SCOPES", "PAID SECONDS/DAY"];

fn define(command: Command) -> Command {
    command
        .about("Shows callers, scopes and allowances; never what is kept of a token")
        .arg(flags::file())
        .args(output::shared_flags())
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    scopes: Vec<&'a str>,
    paid_seconds_per_day: Count,
}

fn run(console: &Console, matches: &ArgMatches) -> Outcome {
    let path = flags::file_of(matches)?;
    let source = read(&path, Links::Refuse).map_err(|error| refusal::unreadable(&path, &error))?;
    let registry = Registry::parse(&source.text).map_err(|e| refusal::invalid(&path, &e))?;
    let mut callers: Vec<&Caller> = registry.callers().iter().collect();
    callers.sort_by(|a, b| a.id.cmp(&b.id));
    table(console, &callers)?;
    let rows: Vec<Row<'_>> = callers
        .iter()
        .map(|caller| Row {
            id: caller.id.as_str(),
            scopes: caller.scopes.iter().map(Scope::as_str).collect(),
            paid_seconds_per_day: Count(caller.paid_seconds_per_day),
        })
        .collect();
    Ok(JsonObject::new().with("clients", &rows))
}

fn table(console: &Console, callers: &[&Caller]) -> Result<(), Refusal> {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(callers.iter().map(|caller| {
        let scopes: Vec<String> = caller
            .scopes
            .iter()
            .map(|scope| escape::line(scope.as_str()))
            .collect();
        [
            escape::line(caller.id.as_str()),
            if scopes.is_empty() {
                "none".to_owned()
            } else {
                scopes.join(",")
            },
            match caller.paid_seconds_per_day {
                0 => "none".to_owned(),
                seconds => seconds.to_string(),
            },
        ]
    }));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let (ids, scopes) = (width(0), width(1));
    for [id, scope, paid] in &rows {
        console.print(&format!("{id:<ids$}  {scope:<scopes$}  {paid}\n"))?;
    }
    Ok(())
}
