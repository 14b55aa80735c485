//! Which key signs, and making the default one on its first use.
//!
//! Trust: whoever can read the key file can sign as this user, so a file that
//! group or others have any permission on is refused, and a new one exists
//! under its name only when it is whole and private.

use std::{
    env,
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};

use plimsoll_attestation::{
    SigningKey,
    key::{KeyFault, MAX_KEY_BYTES},
};
use zeroize::Zeroizing;

use crate::files::{ReadError, open_regular, read_limited};

/// The environment variable that may hold the key's PEM text.
pub const KEY_VARIABLE: &str = "PLIMSOLL_ATTEST_KEY";

/// Where the default key may lie, from the environment.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    /// `XDG_CONFIG_HOME`; `APPDATA` on Windows.
    pub config: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl Locations {
    /// As the environment says.
    #[must_use]
    pub fn from_environment() -> Self {
        Locations {
            config: env::var_os(if cfg!(windows) {
                "APPDATA"
            } else {
                "XDG_CONFIG_HOME"
            }),
            home: env::var_os("HOME"),
        }
    }

    /// The folder of the default key; `None` when neither variable is an
    /// absolute path. Relative values are ignored: what they name changes with
    /// the working directory.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let absolute = |value: &Option<OsString>| {
            let path = Path::new(value.as_ref()?);
            path.is_absolute().then(|| path.to_owned())
        };
        let config = absolute(&self.config)
            .or_else(|| absolute(&self.home).map(|home| home.join(".config")))?;
        Some(config.join("plimsoll"))
    }

    /// The default private key's path.
    #[must_use]
    pub fn key(&self) -> Option<PathBuf> {
        Some(self.folder()?.join("attest.key"))
    }

    /// The default public key's path.
    #[must_use]
    pub fn public(&self) -> Option<PathBuf> {
        Some(self.folder()?.join("attest.pub"))
    }
}

/// A signing key, and where it was made when it was made just now.
#[derive(Debug)]
pub struct LoadedKey {
    /// The key.
    pub key: SigningKey,
    /// The files of a key this call made, to be told once.
    pub created: Option<Created>,
}

/// The files of a new default key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The private key.
    pub key: PathBuf,
    /// The public key.
    pub public: PathBuf,
}

/// Why there is no key to sign with. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The default key is absent and was not to be made.
    #[error("there is no default key")]
    Absent {
        /// Where it would lie.
        path: PathBuf,
    },
    /// The text is no usable key. No byte of it is repeated.
    #[error("{fault}")]
    Fault {
        /// The file; `None` for the environment variable.
        path: Option<PathBuf>,
        /// What is wrong with it.
        fault: KeyFault,
    },
    /// The default key could not be made.
    #[error("the default key could not be made: {error}")]
    Make {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Neither `XDG_CONFIG_HOME` nor `HOME` is an absolute path.
    #[error("neither XDG_CONFIG_HOME nor HOME says where the default key lies")]
    NoPlace,
    /// Group or others have permissions on the file.
    #[error("group or others have permissions on the key file (mode {mode:03o})")]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A public key lies where the new one's belongs; it may be the only copy.
    #[error("a public key without its private half lies where a new one belongs")]
    PublicExists {
        /// The public key.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("the key file cannot be read: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ReadError,
    },
    /// The variable's text is not UTF-8.
    #[error("{KEY_VARIABLE} is not text")]
    VariableNotText,
}

/// Loads the key to sign with: `file`, else the PEM text of `variable`, else
/// the default key, which is made when it is absent and `make` says so.
///
/// # Errors
/// [`KeyError`].
pub fn load(
    file: Option<&Path>,
    variable: Option<OsString>,
    locations: &Locations,
    make: bool,
) -> Result<LoadedKey, KeyError> {
    if let Some(path) = file {
        return from_file(path).map(existing);
    }
    if let Some(text) = variable.filter(|text| !text.is_empty()) {
        let text = Zeroizing::new(text.into_string().map_err(|_| KeyError::VariableNotText)?);
        let key = SigningKey::from_pem(text.as_bytes())
            .map_err(|fault| KeyError::Fault { path: None, fault })?;
        return Ok(existing(key));
    }
    let (Some(path), Some(public)) = (locations.key(), locations.public()) else {
        return Err(KeyError::NoPlace);
    };
    match from_file(&path) {
        Err(KeyError::Read {
            error: ReadError::Io(error),
            ..
        }) if error.kind() == io::ErrorKind::NotFound => {}
        Err(other) => return Err(other),
        Ok(key) => {
            if make {
                // Lost with a process that died between the two files.
                publish_missing(&public, &key)?;
            }
            return Ok(existing(key));
        }
    }
    if !make {
        return Err(KeyError::Absent { path });
    }
    create(&path, &public)
}

fn existing(key: SigningKey) -> LoadedKey {
    LoadedKey { key, created: None }
}

/// Reads a private key file.
///
/// # Errors
/// [`KeyError`].
pub fn from_file(path: &Path) -> Result<SigningKey, KeyError> {
    let unreadable = |error| KeyError::Read {
        path: path.to_owned(),
        error,
    };
    let file = open_regular(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(|e| unreadable(e.into()))?;
    if let Some(mode) = shared_mode(&facts) {
        return Err(KeyError::Permissions {
            path: path.to_owned(),
            mode,
        });
    }
    let bytes = Zeroizing::new(read_limited(file, MAX_KEY_BYTES).map_err(unreadable)?);
    SigningKey::from_pem(&bytes).map_err(|fault| KeyError::Fault {
        path: Some(path.to_owned()),
        fault,
    })
}

/// The permission bits of a file that group or others have any of.
#[cfg(unix)]
fn shared_mode(facts: &fs::Metadata) -> Option<u32> {
    let mode = facts.mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Elsewhere permissions are no bits, and are not looked at.
#[cfg(not(unix))]
fn shared_mode(_: &fs::Metadata) -> Option<u32> {
    None
}

fn create(path: &Path, public: &Path) -> Result<LoadedKey, KeyError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| KeyError::Make { path, error }
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder).map_err(failed(folder))?;
    let key = SigningKey::generate().map_err(|fault| KeyError::Fault { path: None, fault })?;
    // An old public key may be all a verifier of old bundles has. The file of
    // a race's winner is not looked at: then the private key is there too.
    if public.exists() && !path.exists() {
        return Err(KeyError::PublicExists {
            path: public.to_owned(),
        });
    }
    match write_new(path, key.to_pem().as_bytes(), 0o600) {
        Ok(()) => {}
        // Another first use was faster; its key is whole, since the name
        // appears only after the content.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return from_file(path).map(existing);
        }
        Err(error) => return Err(failed(path)(error)),
    }
    publish_missing(public, &key)?;
    Ok(LoadedKey {
        key,
        created: Some(Created {
            key: path.to_owned(),
            public: public.to_owned(),
        }),
    })
}

fn publish_missing(public: &Path, key: &SigningKey) -> Result<(), KeyError> {
    if public.exists() {
        return Ok(());
    }
    match write_new(public, key.public().to_pem().as_bytes(), 0o644) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(KeyError::Make {
            path: public.to_owned(),
            error,
        }),
        _ => Ok(()),
    }
}

/// Makes a file that appears under its name whole and synced, and only if the
/// name is free.
fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    let temporary = folder.join(format!(".attest-{}", hex::encode(random)));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(&temporary)?;
    let result = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&temporary, path))
        .and_then(|()| sync_folder(folder));
    let removed = fs::remove_file(&temporary);
    result.and(removed)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// A folder cannot be synced everywhere; its files are safe by then.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[path = "default_key_tests.rs"]
mod tests;
