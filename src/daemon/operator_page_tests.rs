//! The tables of `docs/operator.md` are what this build does.
//!
//! `OPERATOR_PAGE=overwrite cargo test -p plimsoll-daemon operator_page` writes
//! them again after a change of a variable, a metric, a key or a status.

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf, time::Duration};

use plimsoll_wire::proto::{JavaScriptRun, ModuleRow, ModuleRun, ProjectOutcome, ProjectRun};

use crate::{
    admission::Shed,
    call::Service,
    config::{Group, VARIABLES},
    exit::Exit,
    metrics::FAMILIES,
    provider::{
        Metering, ModuleOutput, Output, ProjectOutput, ProviderError, RunOutput, ScriptOutput,
    },
    service::fake::{Fake, Rig, answering, call, output, request, script},
};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/operator.md")
}

/// Compares the block between the page's markers of this name, or writes it.
fn block(name: &str, table: &str) {
    let page = std::fs::read_to_string(path()).unwrap();
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->"),
    );
    let (before, rest) = page.split_once(&begin).expect("a marker");
    let (there, after) = rest.split_once(&end).expect("a marker");
    if std::env::var_os("OPERATOR_PAGE").is_some_and(|value| value == "overwrite") {
        std::fs::write(path(), format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(
            there, table,
            "docs/operator.md, table {name}: run this test with OPERATOR_PAGE=overwrite"
        );
    }
}

/// Text as a cell: a bar would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// One test, since blocks are written into one file.
#[tokio::test]
async fn tables() {
    block("variables", &variables());
    block("exit", &exits());
    block("audit", &audit_keys().await);
    block("metrics", &metrics());
    block("shed", &shed());
}

fn shed() -> String {
    let mut table = String::from("| `reason` | The caller reads |\n|---|---|\n");
    for cause in Shed::ALL {
        let _ = writeln!(table, "| `{}` | {} |", cause.name(), cause.message());
    }
    table
}

fn variables() -> String {
    let mut table = String::from("| Variable | Unset, and bounds | For |\n|---|---|---|\n");
    let mut groups: Vec<Group> = Vec::new();
    for variable in VARIABLES {
        if !groups.contains(&variable.group) {
            groups.push(variable.group);
        }
    }
    for group in groups {
        let title = match group {
            Group::Daemon => "listeners, log, callers".to_owned(),
            Group::Envelope => "provider and the envelope of one run".to_owned(),
            Group::Limits => "limits".to_owned(),
            Group::Sessions => "sessions; checked even when they are off".to_owned(),
            Group::Later => "known, and refused by this build".to_owned(),
            Group::Provider(name) => format!("provider `{name}`"),
        };
        let _ = writeln!(table, "| **{title}** | | |");
        for variable in VARIABLES.iter().filter(|v| v.group == group) {
            let (default, help) = (cell(variable.default), cell(variable.help));
            let _ = writeln!(table, "| `{}` | {default} | {help} |", variable.name);
        }
    }
    table
}

fn exits() -> String {
    let mut table = String::from("| Status | When |\n|---:|---|\n");
    for exit in Exit::ALL {
        let _ = writeln!(table, "| {} | {} |", exit.code(), exit.meaning());
    }
    table
}

fn metrics() -> String {
    let mut table = String::from("| Name | Type | Labels | Counts |\n|---|---|---|---|\n");
    for family in FAMILIES {
        let labels: Vec<String> = family.labels.iter().map(|l| format!("`{l}`")).collect();
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} |",
            family.name,
            family.kind,
            labels.join(", "),
            family.help
        );
    }
    table
}

/// Keys of the audit line: on which lines, and what they hold.
const AUDIT: [(&str, &str, &str); 27] = [
    ("op", "all", "`javascript`, `project`, `module`, `cell`"),
    (
        "caller",
        "all",
        "the caller's ID; `anon` without authentication",
    ),
    ("code_bytes", "javascript", "size of the code"),
    ("files", "project", "files sent"),
    ("steps", "project", "steps asked for"),
    ("total_bytes", "project", "content of the files together"),
    (
        "grant_profile",
        "javascript, project",
        "name of the grant profile, or empty",
    ),
    ("model", "module", "the validated name"),
    ("rows", "module", "rows of the table"),
    ("row_width", "module", "values in a row"),
    ("max_steps", "module", "steps of one simulation at most"),
    (
        "paid_seconds",
        "all",
        "on a provider billed by the second: what the run was charged",
    ),
    (
        "teardown_gave_up",
        "all",
        "only when true: the sandbox is left to the sweep",
    ),
    (
        "oom",
        "all",
        "only when true: memory ran out in the sandbox, so far as the engine says",
    ),
    ("oom_limit_mb", "all", "with `oom`: the limit in MiB"),
    ("sandbox", "all", "the provider"),
    (
        "isolation",
        "all",
        "the tier it ran at; on failure the current one",
    ),
    (
        "outcome",
        "project, module",
        "`completed`, `setup_failed`, `timed_out`, `protocol_error`",
    ),
    (
        "outcome_detail",
        "project, module",
        "the provider's words on an outcome that is not `completed`",
    ),
    ("steps_ran", "project", "steps that ran"),
    (
        "exit_code",
        "javascript, project",
        "the guest's; of the last step",
    ),
    (
        "timed_out",
        "javascript, project",
        "whether the deadline ended it",
    ),
    ("runs", "module", "rows answered"),
    ("width", "module", "values in an answer"),
    ("duration_ms", "all", "time of the provider's call"),
    ("error", "failure", "the provider's error, cut to 4 KiB"),
    (
        "trace_id",
        "all",
        "when the request carried one; `trace_id_rejected` when it was malformed and dropped",
    ),
];

async fn audit_keys() -> String {
    let written = written_keys().await;
    let listed: Vec<&str> = AUDIT.iter().map(|(key, _, _)| *key).collect();
    for line in &written {
        let mut rest = listed.iter();
        for key in line {
            assert!(
                rest.any(|listed| listed == key),
                "{key} is missing or out of order in {line:?}"
            );
        }
    }
    let all: BTreeSet<&str> = written.iter().flatten().map(String::as_str).collect();
    assert_eq!(
        all,
        listed.iter().copied().collect(),
        "a key nothing writes"
    );
    let mut table = String::from("| Key | On | Holds |\n|---|---|---|\n");
    for (key, on, holds) in AUDIT {
        let _ = writeln!(table, "| `{key}` | {on} | {holds} |");
    }
    table
}

/// The keys of one success and one failure of each kind, in their order.
async fn written_keys() -> Vec<Vec<String>> {
    let outputs: [fn() -> RunOutput; 3] = [
        || script(ScriptOutput::default()),
        || {
            output(Output::Project(ProjectOutput {
                outcome: ProjectOutcome::PROJECT_OUTCOME_COMPLETED,
                outcome_detail: Vec::new(),
                steps: Vec::new(),
                artifacts: Vec::new(),
                artifacts_truncated: false,
            }))
        },
        || {
            output(Output::Module(ModuleOutput {
                outcome: ProjectOutcome::PROJECT_OUTCOME_COMPLETED,
                outcome_detail: Vec::new(),
                runs: Vec::new(),
                width: 1,
                stdout: Vec::new(),
                stderr: Vec::new(),
            }))
        },
    ];
    let mut written = Vec::new();
    for (number, good) in outputs.into_iter().enumerate() {
        for fails in [false, true] {
            let rig = Rig::new(Fake {
                behaviour: Box::new(move |spec, context| {
                    context.teardown.give_up();
                    context.teardown.out_of_memory(256);
                    let answer = move || match fails {
                        false => Ok(good()),
                        true => Err(ProviderError::deadline()),
                    };
                    (answering(answer))(spec, context)
                }),
                metering: Some(Metering {
                    teardown: Duration::ZERO,
                    default_timeout: Duration::ZERO,
                }),
                ..Fake::default()
            });
            let mut sent = match number {
                0 => request(JavaScriptRun {
                    code: "1".into(),
                    ..Default::default()
                }),
                1 => request(ProjectRun {
                    steps: vec!["x".into()],
                    ..Default::default()
                }),
                _ => request(ModuleRun {
                    model: "m".into(),
                    rows: vec![ModuleRow { values: vec![1.0] }],
                    end_time: 1.0,
                    step: 1.0,
                }),
            };
            sent.trace_id = "t".into();
            let _ = rig.service.run(call(Some("a")), sent).await;
            written.push(keys(&rig.log.lines()[0]));
        }
    }
    written
}

/// The keys of a line behind its head, in their order.
fn keys(line: &str) -> Vec<String> {
    let mut parts: Vec<&str> = line.split("\":").collect();
    // What follows the last key is its value.
    parts.pop();
    let names = parts.into_iter().filter_map(|part| part.rsplit_once('"'));
    let names: Vec<String> = names.map(|(_, name)| name.to_owned()).collect();
    assert_eq!(names[..3], ["time", "level", "msg"], "{line}");
    names[3..]
        .iter()
        .filter(|name| !name.is_empty())
        .cloned()
        .collect()
}
