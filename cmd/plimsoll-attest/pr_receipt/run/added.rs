//! Directories of the runner that are sent too. Their files are not of the
//! commit, and the receipt lists each.

use std::{collections::HashSet, path::Path};

use plimsoll_console::{Class, Failure};
use plimsoll_harness::project::{self, ProjectError, Selection};
use plimsoll_receipt::{collect::Collected, config};

use super::usage;

/// A file of the runner, at its place in the sandbox.
pub struct AddedFile {
    pub path: String,
    pub content: String,
}

/// Reads each `DIR=DEST`, DIR below the work tree unless it is absolute. Links
/// are not followed, files that are not UTF-8 are left out.
///
/// # Errors
/// Class `usage` for a path that is sent already, `io` or `request`.
pub fn read(add: &[String], repo: &Path, collected: &Collected) -> Result<Vec<AddedFile>, Failure> {
    let mut taken: HashSet<String> = collected
        .files
        .iter()
        .map(|file| file.path.clone())
        .collect();
    let mut added = Vec::new();
    for text in add {
        let Some((from, to)) = config::added(text) else {
            return Err(usage(&format!("{text} is not DIR=DEST"), "Correct --add."));
        };
        let folder = repo.join(from);
        let selection = Selection::new::<&str>(&[], true)
            .map_err(|error| usage(&error.to_string(), "Correct --add."))?;
        let found =
            project::collect(&folder, &selection).map_err(|error| failure(&folder, &error))?;
        for file in found.files {
            let path = format!("{to}/{}", file.path);
            if !taken.insert(path.clone()) {
                return Err(usage(
                    &format!("{path} of --add {text} is sent already"),
                    "Give the directory another destination.",
                ));
            }
            added.push(AddedFile {
                path,
                content: file.content,
            });
        }
    }
    added.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(added)
}

fn failure(folder: &Path, error: &ProjectError) -> Failure {
    let (class, largest) = match error {
        ProjectError::Io { .. } => (Class::Io, String::new()),
        ProjectError::Large { largest, .. } => {
            let named: Vec<String> = largest
                .iter()
                .map(|file| format!("{} ({})", file.path.display(), file.bytes))
                .collect();
            (
                Class::Request,
                format!(" The largest: {}.", named.join(", ")),
            )
        }
        _ => (Class::Request, String::new()),
    };
    Failure::new(
        class,
        format!("{error}; nothing was run"),
        format!("Name a directory with fewer and smaller files with --add.{largest}"),
    )
    .file(folder)
}
