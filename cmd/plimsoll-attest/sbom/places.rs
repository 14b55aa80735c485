//! Where BOMs are written, checked as a whole before the first is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::ArgMatches;
use plimsoll_console::{
    Failure,
    files::{Replace, replaceable},
};
use plimsoll_keyfile::Locations;

use super::flags::{Build, usage};

/// What to do about a file that is there already.
pub fn replace(asked: &Build) -> Replace {
    if asked.force {
        Replace::Forced
    } else {
        Replace::WithForce
    }
}

/// Refuses a place that holds an input or the default key, `--force` or not,
/// and one whose file is not to be replaced. Nothing was written then.
///
/// # Errors
/// Class `usage`, `exists` or `io`, for the first place that is refused.
pub fn check(places: &[PathBuf], asked: &Build, matches: &ArgMatches) -> Result<(), Failure> {
    let given = matches.get_many::<PathBuf>("pub").unwrap_or_default();
    let default = Locations::from_environment();
    // The default key is nobody's BOM, whichever key the command was given.
    let kept: Vec<PathBuf> = given
        .chain([&asked.bundle])
        .cloned()
        .chain(default.key())
        .chain(default.public())
        .collect();
    for place in places {
        if kept.iter().any(|kept| is_same(place, kept)) {
            return Err(usage(
                "the output is one of the inputs or a key",
                "Name another file: evidence and keys are never written over.",
            )
            .file(place));
        }
    }
    places
        .iter()
        .try_for_each(|place| replaceable(place, replace(asked)))
}

/// Whether two paths lead to one file, also through links of either kind.
fn is_same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b))
            && (a.dev(), a.ino()) == (b.dev(), b.ino())
        {
            return true;
        }
    }
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
