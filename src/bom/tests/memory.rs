//! What the check of a BOM in a file holds of it.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use std::{
    env,
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
    process::Command,
};

use common::{
    build,
    make::{Shape, session},
    signing,
};
use plimsoll_bom::{Bundle, MAX_BOM_BYTES, Options, Outline, Seekable, Selection};

/// Set for the process that is measured: where the files lie.
const MEASURED: &str = "PLIMSOLL_BOM_MEMORY_TEST";

/// The most this process ever held, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

/// Checks the BOM in `folder` both ways and prints by how much that raised the peak.
fn measured(folder: &Path) {
    let key = signing().public().clone();
    let open = |name: &str| File::open(folder.join(name)).unwrap();
    let bundle = open("bundle");
    let store = Seekable::new(&bundle);
    let source = BufReader::new(open("bundle"));
    let verified = Bundle::verify(&store, source, &key, &mut |_| {}).unwrap();
    let before = peak();
    let outline = Outline::read(open("bom"), &key).unwrap();
    let checked = outline.against_bundle(&verified).unwrap();
    let alone = outline.against_attached().unwrap();
    assert_eq!(checked.sha256, alone.sha256);
    println!("\ngrown {}", peak() - before);
}

#[test]
fn a_bom_is_checked_without_being_held() {
    if let Some(folder) = env::var_os(MEASURED) {
        return measured(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let shapes = (0..32).map(|n| Shape {
        text: format!("{n}{}", "x".repeat(400 << 10)),
        provider: "wasm".to_owned(),
        isolation: "process".to_owned(),
        ..Shape::default()
    });
    let (bundle, fingerprint) = session(&signing(), shapes);
    let selection = Selection::Session(fingerprint);
    let bom = build(&bundle, signing().public(), &selection, &Options::default()).unwrap();
    fs::write(folder.path().join("bundle"), &bundle).unwrap();
    fs::write(folder.path().join("bom"), &bom).unwrap();

    let child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "a_bom_is_checked_without_being_held",
            "--nocapture",
        ])
        .env(MEASURED, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(child.status.success(), "{said}");
    let grown = said.lines().find_map(|line| line.strip_prefix("grown "));
    let grown: u64 = grown.unwrap().parse().unwrap();
    let size = bom.len() as u64;
    assert!(grown < size / 2, "{grown} bytes more for a BOM of {size}");
}

/// A file of one endless line that says how long it is.
struct Long {
    length: u64,
    read: u64,
}

impl Read for Long {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'x');
        self.read += buffer.len() as u64;
        Ok(buffer.len())
    }
}

impl Seek for Long {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        match place {
            SeekFrom::Start(at) => Ok(at),
            SeekFrom::End(_) | SeekFrom::Current(_) => Ok(self.length),
        }
    }
}

#[test]
fn a_file_too_large_for_a_bom_is_not_read() {
    let mut file = Long {
        length: MAX_BOM_BYTES + 1,
        read: 0,
    };
    assert!(Outline::read(&mut file, signing().public()).is_none());
    assert_eq!(file.read, 0);
}
