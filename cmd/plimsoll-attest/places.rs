//! Whether two paths of a command line lead to one file, also before it exists.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use plimsoll_attestation::bundle::disk::{Disk as _, OsDisk};

/// Links that are followed by hand before a path is left as it is; systems
/// follow about as many.
const MOST_LINKS: usize = 40;

/// Whether both would be one file. What cannot be found out is no match: using
/// the path will say why.
pub fn are_one(first: &Path, second: &Path) -> bool {
    if first == second {
        return true;
    }
    let identity = |path| OsDisk.facts(path).ok().flatten()?.identity;
    if let (Some(first), Some(second)) = (identity(first), identity(second)) {
        return first == second;
    }
    match (place(first), place(second)) {
        (Ok(first), Ok(second)) => first == second,
        _ => false,
    }
}

/// Where a file is or would be made, without links.
fn place(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(place) = fs::canonicalize(&path) {
            return Ok(place);
        }
        let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
            break;
        };
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let place = fs::canonicalize(folder)?.join(name);
        // A link that leads to nothing yet: its target is what would be made.
        let Ok(target) = fs::read_link(&place) else {
            return Ok(place);
        };
        path = place.with_file_name("").join(target);
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn spellings_and_links_of_one_place_are_one() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("real/none", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let one = |a: &str, b: &str| are_one(&root.join(a), &root.join(b));
        // Before the file is there, and after.
        for _ in 0..2 {
            assert!(one("real/none", "real/./none"));
            assert!(one("real/none", "real/../real/none"));
            assert!(one("real/none", "link/none"));
            assert!(one("dangling", "link/none"));
            assert!(!one("real/none", "none") && !one("real/none", "link/other"));
            assert!(!one("loop", "real/none") && !one("missing/x", "missing/./y"));
            fs::write(root.join("real/none"), b"").unwrap();
        }
        fs::hard_link(root.join("real/none"), root.join("second")).unwrap();
        assert!(one("second", "link/none"));
    }
}
