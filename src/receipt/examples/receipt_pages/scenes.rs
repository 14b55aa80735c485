//! What the receipts are about.

use plimsoll_receipt::{
    collect::Reason,
    statement::receipt::{ConfigSource, KeyKind, TestedKind},
};
use plimsoll_wire::proto::{Artifact, EnumValue, ProjectOutcome, ProjectResult, StepResult};

/// One receipt's content.
pub struct Scene {
    pub name: &'static str,
    pub repository: String,
    pub head_repository: String,
    pub base_ref: String,
    pub commit: String,
    pub kind: TestedKind,
    pub files: Vec<(String, String)>,
    pub executable: u64,
    pub left_out: Vec<(String, Reason)>,
    pub added: Vec<(String, String)>,
    pub tests_changed: Vec<String>,
    pub config: ConfigSource,
    pub event: String,
    pub workflow: String,
    pub workflow_blob: String,
    pub run_url: String,
    pub key_kind: KeyKind,
    pub floor: &'static str,
    pub tier: &'static str,
    pub environment: &'static str,
    pub timeout_ms: i32,
    pub steps: Vec<StepResult>,
    pub reports: Vec<&'static str>,
    pub result: ProjectResult,
}

fn step(command: &str, stdout: &[u8], stderr: &[u8], exit_code: i32) -> StepResult {
    StepResult {
        command: command.to_owned(),
        stdout: stdout.to_vec(),
        stderr: stderr.to_vec(),
        exit_code,
        duration_ms: 1234,
        ..Default::default()
    }
}

fn plain(name: &'static str, steps: Vec<StepResult>, artifacts: Vec<(&str, String)>) -> Scene {
    Scene {
        name,
        repository: "https://github.com/example-org/adder".to_owned(),
        head_repository: "https://github.com/example-fork/adder".to_owned(),
        base_ref: "main".to_owned(),
        commit: "a".repeat(40),
        kind: TestedKind::Head,
        files: vec![("lib.js".to_owned(), "module.exports = 1;\n".to_owned())],
        executable: 0,
        left_out: Vec::new(),
        added: Vec::new(),
        tests_changed: Vec::new(),
        config: ConfigSource::Base,
        event: "pull_request".to_owned(),
        workflow: ".github/workflows/plimsoll-receipt.yml".to_owned(),
        workflow_blob: "f".repeat(40),
        run_url: "https://github.com/example-org/adder/actions/runs/1234567890".to_owned(),
        key_kind: KeyKind::Ephemeral,
        floor: "kernel",
        tier: "kernel",
        environment: "",
        timeout_ms: 0,
        reports: vec!["junit:artifact:report.xml"],
        result: ProjectResult {
            steps: steps.clone(),
            outcome: EnumValue::from(ProjectOutcome::PROJECT_OUTCOME_COMPLETED),
            artifacts: artifacts
                .into_iter()
                .map(|(path, content)| Artifact {
                    path: path.to_owned(),
                    content: content.into_bytes(),
                })
                .collect(),
            ..Default::default()
        },
        steps,
    }
}

/// Texts that would act, hide or overflow where they are not escaped.
fn hostile() -> Vec<String> {
    let mut texts: Vec<String> = [
        "<img src=x onerror=document.title='owned'>",
        "</code></li></ol><script>document.title='owned'</script>",
        "</script><script>document.title='owned'</script>",
        "a\u{202e}cod.js",
        "zero\u{200b}width \u{2066}isolate\u{2069} tag\u{e0041}",
        "{{title}} {{{script}}} {{#tests}}",
        "`x` | ::add-mask::x ##[error]x $(x) %s \\n",
        "\"' onmouseover='x",
        "&lt;b&gt; &amp; &#60;",
        "مرحبا שלום 漢字 ❤\u{fe0f} \u{a0}nbsp",
        "Z\u{0335}\u{0321}a\u{0337}\u{0336}l\u{0338}g\u{0334}o\u{0335}",
        "../../etc/passwd",
        "--help",
        "\u{feff}mark\u{ad}soft",
    ]
    .map(str::to_owned)
    .into();
    texts.push("long".repeat(250));
    texts
}

fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Every receipt.
pub fn all() -> Vec<Scene> {
    vec![
        failing(),
        warned(),
        many(),
        steps_alone(),
        unreadable(),
        sha256_repository(),
        timed_out(),
        large(),
    ]
}

fn failing() -> Scene {
    let texts = hostile();
    let cases: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(i, text)| {
            let inner = [
                "<failure message=\"x\"/>",
                "",
                "<skipped/>",
                "<skipped type=\"todo\"/>",
            ][i % 4];
            format!(
                "<testcase name=\"{}\" classname=\"test\" time=\"{i}.00{i}\">{inner}</testcase>",
                xml(text)
            )
        })
        .collect();
    let report = format!(
        "<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"suite &#27;[31m\">{}</testsuite></testsuites>\n",
        cases.join("\n")
    );
    let mut output = b"\x1b[2J\x1b[31m::error::x\r\n##[error]y </pre><script>document.title='owned'</script>\n\xff\xfe\xc3(\xed\xa0\x80\xf0\x9f\x98\n".to_vec();
    output.extend("❤ fine\ttab\n".repeat(3000).into_bytes());
    let mut scene = plain(
        "failing",
        vec![
            step(
                "npm test -- --reporter='<b>junit</b>' \u{202e}txt",
                &output,
                b"boom\n",
                1,
            ),
            step("echo done", b"", &[0, 1, 2, 0x7f, 0x80], 0),
        ],
        vec![("report.xml", report)],
    );
    scene.repository = "https://git.example.org:8443/group/sub/repo~1".to_owned();
    scene.run_url = format!("{}/actions/runs/1234567890", scene.repository);
    scene.base_ref = "$(reboot)\u{200b}<i>".to_owned();
    scene.head_repository = String::new();
    scene.kind = TestedKind::Merge;
    scene.files = (0_u32..)
        .zip(&texts)
        .map(|(i, text)| (format!("src/{i}/{}", text.replace('/', "-")), text.clone()))
        .collect();
    scene.files.sort();
    scene.files.retain(|(path, _)| {
        path.len() <= 1024 && plimsoll_receipt::collect::sendable(path.as_bytes()).is_some()
    });
    scene.executable = 3;
    scene.left_out = vec![
        ("logo.png".to_owned(), Reason::NotUtf8),
        ("link".to_owned(), Reason::Symlink),
        ("<u>\u{202e}sub".to_owned(), Reason::Submodule),
        ("docs/x".to_owned(), Reason::Configured),
    ];
    scene.added = vec![
        ("link/inside.js".to_owned(), "1".to_owned()),
        ("node_modules/<script>.js".to_owned(), "2".to_owned()),
    ];
    scene.tests_changed = vec![
        "test/<script>.test.js".to_owned(),
        "…and 198 more".to_owned(),
    ];
    scene.config = ConfigSource::Tested;
    scene.workflow_blob = String::new();
    scene.floor = "";
    scene.tier = "<vm>";
    scene
}

fn warned() -> Scene {
    let report = "TAP version 13\n# Subtest: sums\n    ok 1 - adds # time=1\n      ---\n      duration_ms: 1\n      ...\n    not ok 2 - carries # TODO later\n    ok 3 - idle # SKIP\n    1..3\nok 1 - sums\n1..1\n";
    let mut scene = plain(
        "warned",
        vec![step("node --test", report.as_bytes(), b"", 0)],
        vec![],
    );
    scene.reports = vec!["tap:stdout:1"];
    scene.key_kind = KeyKind::File;
    scene.run_url = String::new();
    scene.event = "merge_group".to_owned();
    scene.tier = "vm";
    scene.timeout_ms = 300_000;
    scene
}

fn many() -> Scene {
    let cases: Vec<String> = (0..12_345)
        .map(|i| format!("<testcase name=\"case {}\" time=\"{}\"/>", i % 12_000, i))
        .collect();
    let report = format!("<testsuites>{}</testsuites>", cases.concat());
    let mut scene = plain(
        "many",
        vec![step("npm test", b"", b"", 0)],
        vec![("report.xml", report)],
    );
    scene.files = (0..190)
        .map(|i| (format!("src/{i:03}.js"), format!("{i}\n")))
        .collect();
    scene
}

fn steps_alone() -> Scene {
    let mut scene = plain(
        "steps-alone",
        vec![step("make check", b"ok\n", b"", 0)],
        vec![],
    );
    scene.reports = Vec::new();
    scene.config = ConfigSource::Workflow;
    scene
}

fn unreadable() -> Scene {
    let bomb =
        "<!DOCTYPE x [<!ENTITY a \"aaaa\">]><testsuites><testcase name=\"&a;\"/></testsuites>"
            .to_owned();
    plain(
        "unreadable",
        vec![step("npm test", b"", b"", 0)],
        vec![("report.xml", bomb)],
    )
}

fn sha256_repository() -> Scene {
    let report = "<testsuite><testcase name=\"adds\"/></testsuite>".to_owned();
    let mut scene = plain(
        "sha256-repository",
        vec![step("npm test", b"", b"", 0)],
        vec![("report.xml", report)],
    );
    scene.commit = "a".repeat(64);
    scene.workflow_blob = "f".repeat(64);
    scene
}

fn timed_out() -> Scene {
    let mut stuck = step("npm test", b"starting\n", b"", -1);
    stuck.timed_out = true;
    stuck.stdout_truncated = true;
    let mut scene = plain("timed-out", vec![stuck], vec![]);
    scene.result.outcome = EnumValue::from(ProjectOutcome::PROJECT_OUTCOME_TIMED_OUT);
    scene
}

/// Close to the largest line that a receipt may have, 16 MiB.
fn large() -> Scene {
    let cases: Vec<String> = (0..12_000)
        .map(|i| {
            format!(
                "<testcase name=\"case {i}\" time=\"0.1\"><system-out>{}</system-out></testcase>",
                "x".repeat(330)
            )
        })
        .collect();
    let report = format!("<testsuites>{}</testsuites>", cases.concat());
    let output = "line of output\n".repeat(130_000);
    let mut scene = plain(
        "large",
        vec![step("npm test", output.as_bytes(), output.as_bytes(), 0)],
        vec![("report.xml", report)],
    );
    scene.files = (0..200)
        .map(|i| (format!("src/{i:03}.js"), "y".repeat(9_900)))
        .collect();
    scene
}
