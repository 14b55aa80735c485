//! `pr-receipt init`: the workflow and a starter configuration.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_console::{
    Class, Console, ExitCode, Failure, JsonObject, Stream, escape,
    files::{self, Mode, Replace, plain_words},
    output::{self, Stop},
    values,
};
use plimsoll_receipt::config;

use super::Sub;

/// The workflow for pull requests; its pins are set by this project's releases.
const WORKFLOW: &str = include_str!("../../../examples/ci/pull-request.yml");

const PRESETS: [&str; 4] = ["node", "pytest", "nextest", "custom"];

pub const SUB: Sub = Sub {
    name: "init",
    stream: Stream::Text,
    define,
    exit_codes: &[
        (ExitCode::Ok, "both files were written"),
        (
            ExitCode::Usage,
            "a file exists already, or cannot be written; nothing was written",
        ),
    ],
    environment: &[],
    examples: &[
        (
            "pr-receipt init",
            "writes .github/workflows/plimsoll-receipt.yml and .plimsoll/receipt.toml for Node",
        ),
        (
            "pr-receipt init --preset pytest",
            "with steps and report for pytest",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Writes the workflow for pull requests and a starter configuration")
        .arg(
            Arg::new("path")
                .long("path")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .default_value(".github/workflows/plimsoll-receipt.yml")
                .help("Where the workflow goes"),
        )
        .arg(
            Arg::new("preset")
                .long("preset")
                .value_name("NAME")
                .value_parser(values::words(&PRESETS))
                .default_value("node")
                .help("What the steps and the report are for"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    console.conclude(written(console, matches))
}

fn written(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let workflow = matches
        .get_one::<PathBuf>("path")
        .cloned()
        .unwrap_or_default();
    let preset = matches
        .get_one::<String>("preset")
        .map_or("node", String::as_str);
    let configuration = PathBuf::from(config::PATH);
    // Both or none: what exists is found before anything is written.
    for path in [&workflow, &configuration] {
        if let Some(link) = link_above(path) {
            return Err(Failure::new(
                Class::Io,
                "a directory on the way is a link; nothing was written",
                "Replace the link by a directory: what is written belongs into the repository.",
            )
            .file(link)
            .into());
        }
        if path.symlink_metadata().is_ok() {
            return Err(Failure::new(
                Class::Exists,
                "exists already; nothing was written",
                "Move it away, or edit it by hand.",
            )
            .file(path)
            .into());
        }
    }
    for (path, text) in [(&workflow, WORKFLOW), (&configuration, starter(preset))] {
        directory(path)?;
        files::write(path, text.as_bytes(), Mode::Public, Replace::Never)?;
        console.success(&format!("{}\n", escape::path(path)))?;
    }
    console.note(
        "the configuration is read from the base branch, so it counts once it is merged; until then \
         receipts use the flags of the workflow",
    );
    Ok(JsonObject::new()
        .with("workflow", &workflow.to_string_lossy())
        .with("configuration", &configuration.to_string_lossy())
        .with("preset", preset))
}

/// The first link among the directories of a relative path. One in a repository
/// may lead anywhere.
fn link_above(path: &Path) -> Option<&Path> {
    if path.has_root() {
        return None;
    }
    path.ancestors()
        .skip(1)
        .filter(|above| above.symlink_metadata().is_ok_and(|seen| seen.is_symlink()))
        .last()
}

fn directory(path: &Path) -> Result<(), Failure> {
    let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    else {
        return Ok(());
    };
    std::fs::create_dir_all(parent).map_err(|error| {
        Failure::new(
            Class::Io,
            format!("the directory cannot be made: {}", plain_words(&error)),
            "Run it in the root of a repository that you can write to.",
        )
        .file(parent)
    })
}

fn starter(preset: &str) -> &'static str {
    match preset {
        "pytest" => {
            "version = 1\n\
             # The sandbox has no network: the guest image must hold Python and pytest.\n\
             steps   = [\"python3 -m pytest --junit-xml=plimsoll-report.xml\"]\n\
             reports = [\"junit:artifact:plimsoll-report.xml\"]\n\
             exclude = [\"docs/**\"]\n"
        }
        "nextest" => {
            "version = 1\n\
             # The sandbox has no network: vendor the dependencies, and give nextest's ci profile a\n\
             # junit path.\n\
             steps   = [\"cargo nextest run --offline --profile ci\"]\n\
             reports = [\"junit:artifact:target/nextest/ci/junit.xml\"]\n\
             exclude = [\"docs/**\"]\n"
        }
        "custom" => {
            "version = 1\n\
             # Commands of the sandbox's shell; the mode of a file does not travel, so name an interpreter.\n\
             steps   = [\"sh run-tests.sh\"]\n\
             # junit:artifact:PATH, tap:artifact:PATH, junit:stdout:STEP, tap:stdout:STEP; none of them: the\n\
             # steps' exit codes alone decide.\n\
             reports = [\"tap:stdout:1\"]\n\
             exclude = [\"docs/**\"]\n\
             add     = []\n"
        }
        _ => {
            "version = 1\n\
             # JUnit reports have no place for a failing hook after the tests; the step's exit code shows it, so do\n\
             # not mask it with || true.\n\
             steps   = [\"node --test --test-reporter=junit --test-reporter-destination=plimsoll-report.xml\"]\n\
             reports = [\"junit:artifact:plimsoll-report.xml\"]\n\
             exclude = [\"docs/**\"]\n\
             # Dependencies installed on the runner without running their scripts (npm ci --ignore-scripts):\n\
             # add = [\"node_modules=node_modules\"]\n\
             add     = []\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_valid_configuration() {
        for preset in PRESETS {
            config::Config::read(starter(preset).as_bytes()).unwrap();
        }
    }

    #[test]
    fn the_workflow_holds_no_secret_and_no_dangerous_trigger() {
        for line in WORKFLOW.lines() {
            let code = line.split('#').next().unwrap_or_default();
            for word in [
                "secrets.",
                "pull_request_target",
                "workflow_run:",
                ": write",
            ] {
                assert!(!code.contains(word), "{line}");
            }
        }
    }
}
