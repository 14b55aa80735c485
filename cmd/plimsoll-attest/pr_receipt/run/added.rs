//! Directories of the runner that are sent too. Their files are not of the
//! commit, and the receipt lists each.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
};

use plimsoll_console::{Class, Failure};
use plimsoll_harness::project::{self, ProjectError, Selection};
use plimsoll_receipt::{collect::Collected, config};

use super::usage;

/// A file of the runner, at its place in the sandbox.
pub struct AddedFile {
    pub path: String,
    pub content: String,
}

/// Who names the directories.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Named {
    /// Flags, whose writer may name any directory of the runner.
    ByFlag,
    /// A configuration, which names directories of the repository alone.
    ByConfiguration,
}

/// Reads each `DIR=DEST`, DIR below the work tree unless a flag gives it
/// absolute. No link of the work tree is followed, on the way to DIR or in it;
/// files that are not UTF-8 are left out.
///
/// # Errors
/// Class `usage` for a path that is sent already, `usage` or `config` for a
/// directory that may not be read, `io` or `request`.
pub fn read(
    add: &[String],
    named: Named,
    repo: &Path,
    collected: &Collected,
) -> Result<Vec<AddedFile>, Failure> {
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
        let folder = folder(repo, Path::new(from), named)
            .map_err(|why| refused(&format!("{from} of {text} {why}"), named))?;
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

/// Where DIR is. The pull request decides what the work tree holds, so a link
/// in it could lead anywhere on the runner.
fn folder(repo: &Path, from: &Path, named: Named) -> Result<PathBuf, &'static str> {
    let root = repo
        .canonicalize()
        .map_err(|_| "is of a repository that cannot be read")?;
    if from.has_root() && named == Named::ByConfiguration {
        return Err("is absolute; a configuration names directories of the repository alone");
    }
    let mut at = if from.has_root() {
        PathBuf::new()
    } else {
        root.clone()
    };
    for part in from.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => at.push(part),
            Component::CurDir => {}
            Component::ParentDir => return Err("holds .."),
            Component::Normal(name) => {
                let below = at.canonicalize().is_ok_and(|real| real.starts_with(&root));
                if below && name.eq_ignore_ascii_case(".git") {
                    return Err("is of git itself, which may hold credentials");
                }
                at.push(name);
                let link = at.symlink_metadata().is_ok_and(|seen| seen.is_symlink());
                if below && link {
                    return Err("is or goes through a link in the repository");
                }
            }
        }
    }
    Ok(at)
}

fn refused(fact: &str, named: Named) -> Failure {
    match named {
        Named::ByFlag => usage(
            fact,
            "Name a directory in the repository without links, or an absolute one outside it.",
        ),
        Named::ByConfiguration => Failure::new(
            Class::Config,
            format!("{fact}; nothing was run"),
            "Name a directory in the repository without links. The pull request may have put the \
             link there.",
        ),
    }
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_never_reached_through_a_link_of_the_repository() {
        let here = tempfile::tempdir().unwrap();
        let (repo, outside) = (here.path().join("repo"), here.path().join("outside"));
        std::fs::create_dir_all(repo.join("real/deep")).unwrap();
        std::fs::create_dir_all(repo.join(".git")).unwrap();
        std::fs::create_dir_all(outside.join("deep")).unwrap();
        symlink(&outside, repo.join("link")).unwrap();
        symlink("real", repo.join("within")).unwrap();
        symlink(&repo, here.path().join("back")).unwrap();
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        for named in [Named::ByFlag, Named::ByConfiguration] {
            for good in ["real", "real/deep", "./real/", "missing"] {
                assert!(folder(&repo, Path::new(good), named).is_ok(), "{good}");
            }
            for bad in [
                "link".to_owned(),
                "link/deep".to_owned(),
                "within/deep".to_owned(),
                "real/..".to_owned(),
                "../outside".to_owned(),
                ".git".to_owned(),
                ".GIT/x".to_owned(),
                text(repo.join("link/deep")),
                text(here.path().join("back/link")),
                text(repo.join("../outside")),
            ] {
                assert!(folder(&repo, Path::new(&bad), named).is_err(), "{bad}");
            }
        }
        assert!(folder(&repo, &outside, Named::ByFlag).is_ok());
        assert!(folder(&repo, &repo.join("real"), Named::ByFlag).is_ok());
        assert!(folder(&repo, &outside, Named::ByConfiguration).is_err());
        assert!(folder(&repo, &repo.join("real"), Named::ByConfiguration).is_err());
    }
}
