//! That no account of this host has a guest's number.

use std::{fs, io, path::Path};

/// Why the guest's number cannot be used here.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccountError {
    /// An account or group has it.
    #[error(
        "the guest uid {uid} or its successor belongs to the host's {what} {name:?}: choose another SANDBOX_GUEST_UID"
    )]
    Taken {
        /// The number set.
        uid: u32,
        /// Account or group.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// Looks for `uid` and its successor among the accounts and groups of a host.
pub(super) fn check(uid: u32, passwd: &Path, group: &Path) -> Result<(), AccountError> {
    let taken = |what, name: &str| AccountError::Taken {
        uid,
        what,
        name: name.to_owned(),
    };
    let is_guest = |field: &str| {
        field
            .parse::<u64>()
            .is_ok_and(|id| id == u64::from(uid) || id == u64::from(uid) + 1)
    };
    for line in read(passwd)?.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let fields: Vec<&str> = line.split(':').collect();
        if let [name, _, own, primary, ..] = fields.as_slice()
            && (is_guest(own) || is_guest(primary))
        {
            return Err(taken("account", name));
        }
    }
    for line in read(group)?.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let fields: Vec<&str> = line.split(':').collect();
        if let [name, _, id, ..] = fields.as_slice()
            && is_guest(id)
        {
            return Err(taken("group", name));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, AccountError> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(AccountError::Unreadable {
            path: path.display().to_string(),
            error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_nobody_of_this_host() {
        let directory = tempfile::tempdir().unwrap();
        let passwd = directory.path().join("passwd");
        let group = directory.path().join("group");
        let check = || check(61000, &passwd, &group).map_err(|e| e.to_string());
        assert_eq!(check(), Ok(()), "files that are missing list nobody");
        fs::write(&group, "root:x:0:\nodd\nother:x:61002:\n").unwrap();
        for (line, bad) in [
            ("a:x:1000:1000::/:/bin/sh\n:::\nshort:x\n", false),
            ("a:x:61000:1000::/:/bin/sh", true),
            ("a:x:061000:1000::/:/bin/sh", true),
            ("a:x:61001:1000::/:/bin/sh", true),
            ("a:x:1000:61000::/:/bin/sh", true),
            ("a:x:60999:1000:61000:/:/bin/sh", false),
        ] {
            fs::write(&passwd, line).unwrap();
            assert_eq!(check().is_err(), bad, "{line}");
        }
        fs::write(&passwd, "").unwrap();
        fs::write(&group, "own:x:61001:").unwrap();
        assert!(check().unwrap_err().contains("\"own\""));
        fs::remove_file(&group).unwrap();
        fs::create_dir(&group).unwrap();
        assert!(check().unwrap_err().contains("cannot be read"));
    }
}
