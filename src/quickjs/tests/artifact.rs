//! The checked-in module is the pinned one, made from the checked-in sources, and asks for nothing but the closed list.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_quickjs::{IMPORTS, Interpreter};
use sha2::{Digest, Sha256};

fn artifact() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("artifact")
}

fn digest(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Checks every line of a `sha256sum` list and gives the names.
fn check_list(list: &str) -> Vec<String> {
    let text = fs::read_to_string(artifact().join(list)).unwrap();
    let names: Vec<_> = text
        .lines()
        .map(|line| {
            let (wanted, name) = line.split_once("  ").unwrap();
            assert_eq!(
                digest(&artifact().join(name)),
                wanted,
                "{name} differs from {list}"
            );
            name.to_owned()
        })
        .collect();
    assert!(!names.is_empty());
    names
}

#[test]
fn the_module_has_the_pinned_digest_and_lends_it_to_the_identity() {
    assert_eq!(check_list("quickjs.wasm.sha256"), ["quickjs.wasm"]);
    let identity = format!(
        "quickjs-wasm:sha256:{}",
        digest(&artifact().join("quickjs.wasm"))
    );
    assert_eq!(Interpreter::identity(), identity);
}

/// A shim or patch edited without a rebuild would leave a module nobody can reproduce.
#[test]
fn the_inputs_are_those_the_module_was_built_from() {
    let listed = check_list("inputs.sha256");
    for entry in fs::read_dir(artifact()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let input = [".c", ".h", ".js", ".patch"]
            .iter()
            .any(|end| name.ends_with(end))
            || name.starts_with("LICENSE");
        assert_eq!(
            input,
            listed.contains(&name) && name != "packages.txt",
            "{name}"
        );
    }
    assert!(listed.contains(&"packages.txt".to_owned()));
}

/// A reader of LEB128 numbers and length-prefixed names.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap();
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> usize {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    fn take(&mut self) -> &'a [u8] {
        let len = self.number();
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }
}

#[test]
fn the_imports_are_the_closed_list() {
    const IMPORT_SECTION: u8 = 2;
    const FUNCTION: u8 = 0;
    let module = fs::read(artifact().join("quickjs.wasm")).unwrap();
    let mut sections = Reader(module.strip_prefix(b"\0asm\x01\0\0\0").unwrap());
    let mut imports = Vec::new();
    while !sections.0.is_empty() {
        let (id, mut section) = (sections.byte(), Reader(sections.take()));
        if id == IMPORT_SECTION {
            for _ in 0..section.number() {
                let (from, name) = (section.take(), section.take());
                assert_eq!(section.byte(), FUNCTION);
                section.number();
                imports.push((str::from_utf8(from).unwrap(), str::from_utf8(name).unwrap()));
            }
        }
    }
    imports.sort_unstable();
    assert_eq!(imports, IMPORTS);
}
