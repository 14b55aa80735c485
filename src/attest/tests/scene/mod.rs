//! A directory with a bundle to append to.
#![allow(dead_code)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use plimsoll_attestation::{
    SigningKey,
    bundle::{
        AppendError, Appended, Options, Report, SignedEntry, append,
        disk::{Disk, OsDisk},
    },
};

use super::common::{check, signing, single_run};

pub struct Scene {
    pub directory: tempfile::TempDir,
    pub path: PathBuf,
    pub key: SigningKey,
    pub entry: SignedEntry,
}

impl Scene {
    /// A directory with no bundle, or with one of so many calls.
    pub fn new(calls: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let key = signing();
        let scene = Scene {
            entry: single_run(9).sign(&key),
            directory,
            path,
            key,
        };
        for n in 0..calls {
            let entry = single_run(n).sign(&scene.key);
            scene
                .append_with(&OsDisk, &entry, Options::default())
                .unwrap();
        }
        scene
    }

    pub fn append_with<D: Disk>(
        &self,
        disk: &D,
        entry: &SignedEntry,
        options: Options<'_>,
    ) -> Result<Appended, AppendError> {
        let entries = std::slice::from_ref(entry);
        append(disk, &self.path, &self.key, entries, options, &mut ())
    }

    pub fn append<D: Disk>(&self, disk: &D) -> Result<Appended, AppendError> {
        self.append_with(disk, &self.entry, Options::default())
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap_or_default()
    }

    pub fn report(&self) -> Report {
        check(&self.bytes(), self.key.public()).unwrap()
    }

    pub fn side_files(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.directory.path()).unwrap();
        let paths = names.map(|name| name.unwrap().path());
        paths.filter(|path| *path != self.path).collect()
    }

    /// The side file holds the entry, for its owner only.
    pub fn kept(&self, error: &AppendError) {
        let path = error.kept.as_ref().unwrap();
        assert_eq!(self.side_files(), std::slice::from_ref(path));
        assert_eq!(
            fs::read_to_string(path).unwrap(),
            self.entry.to_unlinked_line()
        );
        assert_eq!(mode(path), 0o600);
        let name = path.file_name().unwrap().to_str().unwrap();
        let rest = name.strip_prefix("runs.jsonl.unsealed-").unwrap();
        assert_eq!(
            rest.len(),
            "20060102T150405Z-01234567.jsonl".len(),
            "{name}"
        );
        fs::remove_file(path).unwrap();
    }
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
