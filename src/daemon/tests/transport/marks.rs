//! Where errors and marks are made. An error that wrongly says "nothing ran"
//! lets a caller run code twice, so there is one place for each, and this
//! fails on any other.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every source file of the daemon, tests left out.
fn sources(directory: &Path, out: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" && name != "benches" {
                sources(&path, out);
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap().to_owned();
            out.push((path, code));
        }
    }
}

/// Files that hold the text, and how often.
fn holders(text: &str) -> Vec<(String, usize)> {
    let mut files = Vec::new();
    sources(Path::new(env!("CARGO_MANIFEST_DIR")), &mut files);
    assert!(files.len() > 15, "the sources were not found");
    let mut out: Vec<_> = files
        .into_iter()
        .map(|(path, code)| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, code.matches(text).count())
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    out.sort();
    out
}

#[test]
fn errors_of_the_library_are_made_in_one_function() {
    assert_eq!(holders("ConnectError::"), [("rpc.rs".to_owned(), 1)]);
    for text in ["connectrpc::", "ErrorDetail::"] {
        let files: Vec<_> = holders(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(files, ["rpc.rs"], "{text}");
    }
}

#[test]
fn the_header_mark_is_set_in_one_place() {
    // The import and the one use.
    assert_eq!(
        holders("NOT_DISPATCHED_HEADER"),
        [("gate.rs".to_owned(), 2)]
    );
    assert_eq!(holders("plimsoll-not-dispatched"), []);
}
