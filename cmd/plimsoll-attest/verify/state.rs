//! `--state`: what an earlier verification stands for.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use plimsoll_attestation::bundle::state::{State, StateKey, StateKeyFault, StateNote};
use plimsoll_console::{Class, Console, ExitCode, Failure, files::plain_words};

use crate::anchors::DISK;

/// A state file that this command may read and write.
pub struct StateFile {
    path: PathBuf,
    key: Result<StateKey, String>,
}

impl StateFile {
    /// Looks at the place, before any work: only a state, an empty file or
    /// nothing is ever replaced.
    ///
    /// # Errors
    /// Class `exists` or `io`, exit 2.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        let refused = |what: &str| {
            Failure::new(
                Class::Exists,
                format!("{what} and is not replaced by a state"),
                "Name a file that does not exist, or the state of an earlier run.",
            )
            .reason("not_a_state")
            .file(path)
        };
        if path.is_symlink() {
            return Err(refused("is a symbolic link"));
        }
        match State::may_lie_at(&DISK, path) {
            Ok(true) => Ok(StateFile {
                path: path.to_owned(),
                key: state_key(),
            }),
            Ok(false) => Err(refused("is not a state")),
            Err(error) => Err(Failure::new(
                Class::Io,
                format!("cannot be read: {}", plain_words(&error)),
                "Name a file that this user may read and write.",
            )
            .file(path)),
        }
    }

    /// The state that is there, or `None` with a note.
    pub fn load(&self, console: &Console) -> Option<State> {
        match &self.key {
            Ok(key) => match State::load(&DISK, &self.path, key) {
                Ok(state) => Some(state),
                Err(note) => {
                    self.not_used(console, note);
                    None
                }
            },
            Err(fault) => {
                console.note(&format!(
                    "no state is used or kept: {fault}; everything is verified"
                ));
                None
            }
        }
    }

    /// Says why a state stands for nothing.
    pub fn not_used(&self, console: &Console, note: StateNote) {
        console.note(&format!(
            "{}: {note}; everything is verified",
            self.path.display()
        ));
    }

    /// Keeps the state of a verification that succeeded.
    ///
    /// # Errors
    /// Class `io`, exit 1: the product could not be finished.
    pub fn save(&self, state: &State) -> Result<(), Failure> {
        let Ok(key) = &self.key else {
            return Ok(());
        };
        state.save(&DISK, &self.path, key).map_err(|error| {
            Failure::new(
                Class::Io,
                format!(
                    "the bundle verifies; its state could not be written: {}",
                    plain_words(&error)
                ),
                "The older state, if any, is as it was. Check the directory, its permissions and \
                 the space on its disk.",
            )
            .file(&self.path)
            .exit(ExitCode::Refused)
        })
    }
}

/// The user's own key for states, made on first use.
fn state_key() -> Result<StateKey, String> {
    let folder = folder(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))
        .ok_or("neither XDG_STATE_HOME nor HOME is an absolute path")?;
    let path = folder.join("state.key");
    let told = |error: &io::Error| format!("{}: {}", path.display(), plain_words(error));
    make(&folder).map_err(|error| told(&error))?;
    StateKey::load_or_create(&DISK, &path).map_err(|fault| match &fault {
        StateKeyFault::Io(error) => told(error),
        other => format!("{}: {other}", path.display()),
    })
}

fn folder(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute =
        |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let base =
        absolute(state).or_else(|| absolute(home).map(|home| home.join(".local").join("state")))?;
    Some(base.join("plimsoll"))
}

/// Makes the folder, which nobody else may look into.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_name_a_folder() {
        let of = |state: Option<&str>, home: Option<&str>| {
            folder(state.map(OsString::from), home.map(OsString::from))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(Some("/s"), Some("/h")), path("/s/plimsoll"));
        assert_eq!(of(Some("s"), Some("/h")), path("/h/.local/state/plimsoll"));
        assert_eq!(of(None, Some("/h")), path("/h/.local/state/plimsoll"));
        assert_eq!(of(Some(""), Some("h")), None);
        assert_eq!(of(None, None), None);
    }
}
