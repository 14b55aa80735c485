//! `pr-receipt init`: the workflow and a starter configuration.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

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
            "the path is no workflow's, a file exists already or cannot be written; nothing was \
             written",
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
                .help("Where the workflow goes: .github/workflows/NAME.yml below the current directory"),
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
    let asked = matches.get_one::<PathBuf>("path");
    let workflow = place(asked.map_or(Path::new(""), PathBuf::as_path))?;
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
    if !Path::new(".git").exists() {
        console.warning(
            "there is no .git here: workflows and configuration are read from the repository's root alone",
        );
    }
    console.note(
        "set each UNSET pin at the top of the workflow: its job refuses to start without them",
    );
    console.note(
        "the configuration is read from the base branch, so it counts once it is merged; until then \
         receipts use the flags of the workflow",
    );
    Ok(JsonObject::new()
        .with("workflow", &workflow.to_string_lossy())
        .with("configuration", &configuration.to_string_lossy())
        .with("preset", preset))
}

/// A workflow's path below the repository, which is the current directory.
///
/// # Errors
/// Class `usage` for a place that is outside of it or where no workflow is read.
fn place(asked: &Path) -> Result<PathBuf, Failure> {
    let refused = |fact: &str| {
        let advice = "Workflows are read from .github/workflows/NAME.yml (or .yaml) of the \
                      repository: give such a path, in the repository's root.";
        Err(super::usage(SUB.name, fact, advice))
    };
    let Some(below) = below_here(asked) else {
        return refused("--path is outside of the current directory");
    };
    let parts: Vec<_> = below.iter().collect();
    let [github, workflows, _] = parts.as_slice() else {
        return refused("--path is no place of a workflow");
    };
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    let name = below.file_name().unwrap_or_default().as_encoded_bytes();
    let is_folder = asked.as_os_str().as_encoded_bytes().ends_with(b"/");
    if is_folder || !name.iter().copied().all(plain) {
        return refused("--path names no file by letters, digits, dots, dashes and underscores");
    }
    let kind = below.extension().and_then(OsStr::to_str);
    let kept = *github == ".github" && *workflows == "workflows";
    if !kept || !matches!(kind, Some("yml" | "yaml")) {
        return refused("--path is no place of a workflow");
    }
    Ok(below)
}

/// A path as one below the current directory, without `.` and `..`.
fn below_here(asked: &Path) -> Option<PathBuf> {
    let mut rest = asked;
    if asked.has_root() {
        let here = Path::new(".").canonicalize().ok()?;
        let is_here = |above: &Path| above.canonicalize().is_ok_and(|above| above == here);
        // The one nearest to the root: what comes after it is looked at for links.
        let above = asked.ancestors().filter(|above| is_here(above)).last()?;
        rest = asked.strip_prefix(above).ok()?;
    }
    let mut below = PathBuf::new();
    for part in rest.components() {
        match part {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(below)
}

/// The first link among the directories of a relative path. One in a repository
/// may lead anywhere.
fn link_above(path: &Path) -> Option<&Path> {
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
