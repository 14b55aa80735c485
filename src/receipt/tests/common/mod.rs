//! The example's receipt and the repository it is of.

#![allow(dead_code, clippy::unwrap_used)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use plimsoll_attestation::SigningKey;
use plimsoll_receipt::folder::Folder;
use serde_json::Value;

pub const HEAD: &str = "242085db39798080553c88a7f6e0b887ba5e33dc";
pub const BASE: &str = "19683cb0da16ed7d25edb0cca77be90b2bbfa720";

pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}

pub fn example() -> Folder {
    let mut folder = Folder::default();
    for (name, _, bytes) in folder.parts() {
        *bytes = std::fs::read(testdata("receipts/adder").join(name)).unwrap();
    }
    folder
}

/// The example's key; its seed is public.
pub fn example_key() -> SigningKey {
    let seed = "5256fb7857e3a68a30c3ba9cd80574e1fc3c4d263fd3f55429ce67af35447fcc";
    let mut der = hex::decode("302e020100300506032b657004220420").unwrap();
    der.extend(hex::decode(seed).unwrap());
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        plimsoll_attestation::base64::encode(&der)
    );
    SigningKey::from_pem(pem.as_bytes()).unwrap()
}

/// Git that knows no configuration but the repository's.
pub fn git(folder: &Path, args: &[&str], input: &[u8]) -> String {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Example Bot")
        .env("GIT_AUTHOR_EMAIL", "bot@example.com")
        .env("GIT_AUTHOR_DATE", "1792310000 +0000")
        .env("GIT_COMMITTER_NAME", "Example Bot")
        .env("GIT_COMMITTER_EMAIL", "bot@example.com")
        .env("GIT_COMMITTER_DATE", "1792310000 +0000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// The example's repository, from its objects.
pub fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    git(at, &["init", "-q", "-b", "main"], b"");
    let objects: Value =
        serde_json::from_slice(&std::fs::read(testdata("receipts/git-objects.json")).unwrap())
            .unwrap();
    let write =
        |kind: &str, bytes: &[u8]| git(at, &["hash-object", "-w", "-t", kind, "--stdin"], bytes);
    let decode =
        |text: &Value| plimsoll_attestation::base64::decode(text.as_str().unwrap()).unwrap();
    let base_lib = write("blob", &decode(&objects["base_lib_js_base64"]));
    for base in [true, false] {
        git(at, &["read-tree", "--empty"], b"");
        for (path, file) in objects["head_files"].as_object().unwrap() {
            let blob = match (base, path.as_str()) {
                (true, "lib.js") => base_lib.clone(),
                _ => write("blob", &decode(&file["content_base64"])),
            };
            let entry = format!("{},{blob},{path}", file["mode"].as_str().unwrap());
            git(at, &["update-index", "--add", "--cacheinfo", &entry], b"");
        }
        let tree = git(at, &["write-tree"], b"");
        let (commit, expected) = if base {
            ("base_commit", "base_tree")
        } else {
            ("head_commit", "head_tree")
        };
        assert_eq!(objects[expected], tree.as_str());
        let id = write(
            "commit",
            objects[commit]["raw"].as_str().unwrap().as_bytes(),
        );
        assert_eq!(objects[commit]["sha1"], id.as_str());
    }
    git(at, &["read-tree", "--empty"], b"");
    folder
}
