//! Parts of the page's script, run under Node.js instead of a browser.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Runs the parts and then `main`, an async function body that has `input`;
/// gives what it returns.
pub fn run(parts: &[&str], main: &str, input: &Value) -> Value {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/script");
    // Older releases have WebCrypto in a module only.
    let mut program = String::from(
        "\"use strict\";\nif (!globalThis.crypto) globalThis.crypto = require(\"node:crypto\").webcrypto;\n",
    );
    for part in parts {
        program += &fs::read_to_string(scripts.join(format!("{part}.js"))).unwrap();
    }
    program += &format!(
        "(async () => {{\nconst input = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n{main}\n}})()\
         .then((value) => process.stdout.write(JSON.stringify(value)));\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("part.cjs");
    fs::write(&file, program).unwrap();
    let mut node = Command::new("node")
        .arg("--no-warnings")
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("Node.js is needed for this test: {error}"));
    let mut stdin = node.stdin.take().unwrap();
    let input = serde_json::to_vec(input).unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}
