//! The software rule as it is given on a command line.

use std::path::{Path, PathBuf};

use plimsoll_wire::{Refusal, Rule, proto::SoftwareRule};

use crate::files::{ReadError, read_regular};

/// Most bytes of a file of identities.
pub const MAX_FILE_BYTES: usize = 64 << 10;

/// Why a text is no software rule.
#[derive(Debug, thiserror::Error)]
pub enum SoftwareError {
    /// The file of identities cannot be read.
    #[error("the file of identities cannot be read: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ReadError,
    },
    /// Neither `exact:ID` nor `approved:FILE`.
    #[error("a software rule is exact:ID or approved:FILE")]
    Form,
    /// The file is not UTF-8.
    #[error("the file of identities is not UTF-8")]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// The identities break a rule of the wire.
    #[error("{0}")]
    Rule(Refusal),
}

/// Reads `exact:ID`, or `approved:FILE` with one identity a line; blank lines
/// and lines that start with `#` are skipped.
///
/// # Errors
/// [`SoftwareError`].
pub fn parse(text: &str) -> Result<Rule, SoftwareError> {
    let (mode, identities) = match text.split_once(':') {
        Some(("exact", identity)) => ("exact", vec![identity.to_owned()]),
        Some(("approved", file)) if !file.is_empty() => ("approved", read(Path::new(file))?),
        _ => return Err(SoftwareError::Form),
    };
    let message = SoftwareRule {
        mode: mode.to_owned(),
        identities,
    };
    Rule::parse(Some(&message)).map_err(SoftwareError::Rule)
}

fn read(path: &Path) -> Result<Vec<String>, SoftwareError> {
    let bytes = read_regular(path, MAX_FILE_BYTES).map_err(|error| SoftwareError::File {
        path: path.to_owned(),
        error,
    })?;
    let text = String::from_utf8(bytes).map_err(|_| SoftwareError::NotUtf8 {
        path: path.to_owned(),
    })?;
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        assert_eq!(parse("exact:a:1").unwrap().id(), "exact:a:1");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("approved");
        std::fs::write(&file, "# ours\n\n b:2 \r\na:1\n").unwrap();
        let rule = parse(&format!("approved:{}", file.display())).unwrap();
        assert_eq!(rule.identities(), ["b:2", "a:1"]);
        std::fs::write(&file, "# nothing\n").unwrap();
        let empty = parse(&format!("approved:{}", file.display()));
        assert!(matches!(empty, Err(SoftwareError::Rule(_))));
        std::fs::write(&file, b"\xff").unwrap();
        let binary = parse(&format!("approved:{}", file.display()));
        assert!(matches!(binary, Err(SoftwareError::NotUtf8 { .. })));
        for bad in ["", "exact", "a:1", "approved:", "Exact:a"] {
            assert!(matches!(parse(bad), Err(SoftwareError::Form)), "{bad}");
        }
        assert!(matches!(parse("exact:"), Err(SoftwareError::Rule(_))));
        assert!(matches!(parse("exact:a b"), Err(SoftwareError::Rule(_))));
        assert!(matches!(
            parse("approved:/nowhere/x"),
            Err(SoftwareError::File { .. })
        ));
    }
}
