//! The OCI runtime containers run under: what the engine has registered under
//! its name and, under gVisor, which file that is on this host.
//!
//! A name says little: the program behind it can be exchanged while the daemon
//! runs. So every preflight looks again and compares with what the smoke test
//! ran on.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use bollard::models::SystemInfo;
use plimsoll_wire::Tier;

use super::settings::DockerSettings;

/// Where a program is looked for whose registered path is only a name. The
/// engine's own search path is not known here; a file that is not the one it
/// runs does not change when that one does, and no more than that.
const SEARCHED: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// A runtime as one preflight found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runtime {
    /// Its name on the engine; the engine's own choice when none is set.
    pub(super) name: String,
    /// Whether it counts as gVisor.
    gvisor: bool,
    path: String,
    arguments: Vec<String>,
    /// The file behind a gVisor's path; `None` when this host has none there.
    program: Option<Program>,
}

/// Why no runtime can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuntimeFault {
    /// None of this name.
    #[error("the engine has no runtime {0:?}: register it and restart the engine")]
    NotRegistered(String),
    /// gVisor's name on another program.
    #[error("the engine's runtime {name:?} is the program {path:?}, not one named runsc")]
    NotGvisor {
        /// As set.
        name: String,
        /// As registered.
        path: String,
    },
    /// None is set and the engine names none of its own.
    #[error("the engine does not say which runtime it uses when none is named")]
    NoDefault,
}

impl Runtime {
    /// The runtime a setting selects, empty being the engine's own. Only one of
    /// gVisor's name whose program has gVisor's name counts as gVisor.
    pub(super) fn of(setting: &str, info: &SystemInfo) -> Result<Runtime, RuntimeFault> {
        let chosen = match setting {
            "" => info.default_runtime.as_deref().unwrap_or_default(),
            named => named,
        };
        if chosen.is_empty() {
            return Err(RuntimeFault::NoDefault);
        }
        let name = chosen.to_owned();
        let registered = info.runtimes.as_ref().and_then(|all| all.get(chosen));
        if registered.is_none() && !setting.is_empty() {
            return Err(RuntimeFault::NotRegistered(name));
        }
        let registered = registered.cloned().unwrap_or_default();
        let path = registered.path.unwrap_or_default();
        let gvisor = setting == DockerSettings::GVISOR;
        let program = Path::new(&path).file_name().and_then(|name| name.to_str());
        if gvisor && program != Some(DockerSettings::GVISOR) {
            return Err(RuntimeFault::NotGvisor { name, path });
        }
        Ok(Runtime {
            name,
            gvisor,
            program: gvisor.then(|| Program::behind(&path)).flatten(),
            path,
            arguments: registered.runtime_args.unwrap_or_default(),
        })
    }

    /// What the runtime stands for.
    pub(super) fn tier(&self) -> Tier {
        if self.gvisor {
            Tier::Kernel
        } else {
            Tier::Container
        }
    }

    /// Whether this is still the runtime that was proven; else what changed, in
    /// words for the log.
    pub(super) fn is_still(&self, proven: &Runtime) -> Result<(), String> {
        let what = if self.name != proven.name {
            format!("the engine's own runtime is {:?} now", self.name)
        } else if self.path != proven.path {
            format!("it is the program {:?} now", self.path)
        } else if self.arguments != proven.arguments {
            "it has other arguments now".to_owned()
        } else if self.program != proven.program {
            format!("the file {:?} is another one or has changed", self.path)
        } else {
            return Ok(());
        };
        Err(format!(
            "docker runtime {:?} is not the one the smoke test proved: {what}; restart (or run the smoke test again) to prove it",
            proven.name
        ))
    }
}

/// A program's file, by what changes when it is exchanged or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Program {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl Program {
    /// The file behind a registered path, links followed; `None` when this host
    /// has no file there, as with an engine whose files are elsewhere.
    fn behind(path: &str) -> Option<Program> {
        if path.contains('/') {
            return Program::at(Path::new(path));
        }
        SEARCHED
            .iter()
            .map(|directory| PathBuf::from(directory).join(path))
            .find_map(|path| Program::at(&path))
    }

    fn at(path: &Path) -> Option<Program> {
        let seen = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Program {
            device: seen.dev(),
            inode: seen.ino(),
            size: seen.size(),
            modified: (seen.mtime(), seen.mtime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn info(value: Value) -> SystemInfo {
        serde_json::from_value(value).unwrap()
    }

    fn gvisor(path: &Path, arguments: &[&str]) -> Runtime {
        let registered = json!({"path": path, "runtimeArgs": arguments});
        let info = info(json!({"DefaultRuntime": "runc", "Runtimes": {"runsc": registered}}));
        Runtime::of("runsc", &info).unwrap()
    }

    #[test]
    fn what_a_setting_selects() {
        let info = info(json!({
            "DefaultRuntime": "runc",
            "Runtimes": {"runc": {"path": "runc"}, "runsc": {"path": "/usr/bin/runc"}, "kata": {"path": "/k"}},
        }));
        let own = Runtime::of("", &info).unwrap();
        assert_eq!((own.name.as_str(), own.tier()), ("runc", Tier::Container));
        let kata = Runtime::of("kata", &info).unwrap();
        assert_eq!((kata.name.as_str(), kata.tier()), ("kata", Tier::Container));
        let fault = |setting: &str| Runtime::of(setting, &info).unwrap_err().to_string();
        assert!(fault("runsc").contains("not one named runsc"));
        assert!(fault("crun").contains("no runtime \"crun\""));
        let silent = SystemInfo::default();
        assert!(matches!(
            Runtime::of("", &silent),
            Err(RuntimeFault::NoDefault)
        ));
    }

    #[test]
    fn the_engine_s_own_runtime_need_not_be_listed() {
        let info = info(json!({"DefaultRuntime": "io.containerd.runc.v2"}));
        let own = Runtime::of("", &info).unwrap();
        assert_eq!(own.name, "io.containerd.runc.v2");
        assert_eq!(own.tier(), Tier::Container);
    }

    #[test]
    fn a_changed_entry_is_another_runtime() {
        let own = |value: Value| Runtime::of("", &info(value)).unwrap();
        let listed = |path: &str| json!({"DefaultRuntime": "a", "Runtimes": {"a": {"path": path}}});
        let proven = own(listed("/a"));
        assert_eq!(own(listed("/a")).is_still(&proven), Ok(()));
        let moved = own(listed("/b")).is_still(&proven).unwrap_err();
        assert!(moved.contains("the program \"/b\" now"), "{moved}");
        let other = own(json!({"DefaultRuntime": "b"}));
        let other = other.is_still(&proven).unwrap_err();
        assert!(
            other.contains("runtime \"a\"") && other.contains("\"b\" now"),
            "{other}"
        );
        let here = Path::new("/nonexistent/runsc");
        let proven = gvisor(here, &["--network=none"]);
        let opened = gvisor(here, &["--network=host"]).is_still(&proven);
        assert!(opened.unwrap_err().contains("arguments"));
        assert_eq!(gvisor(here, &["--network=none"]).is_still(&proven), Ok(()));
    }

    #[test]
    fn an_exchanged_file_is_another_runtime() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runsc");
        fs::write(&path, "one").unwrap();
        let proven = gvisor(&path, &[]);
        assert_eq!(proven.tier(), Tier::Kernel);
        assert_eq!(gvisor(&path, &[]).is_still(&proven), Ok(()));

        // In place, of the same size, its old time put back to another.
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        let changed = gvisor(&path, &[]).is_still(&proven).unwrap_err();
        assert!(changed.contains("has changed"), "{changed}");

        let proven = gvisor(&path, &[]);
        fs::write(&path, "more").unwrap();
        assert!(gvisor(&path, &[]).is_still(&proven).is_err());

        let proven = gvisor(&path, &[]);
        let new = directory.path().join("new");
        fs::write(&new, "more").unwrap();
        fs::rename(&new, &path).unwrap();
        assert!(gvisor(&path, &[]).is_still(&proven).is_err());

        let proven = gvisor(&path, &[]);
        fs::remove_file(&path).unwrap();
        let gone = gvisor(&path, &[]);
        assert!(gone.is_still(&proven).is_err());
        // Nothing was there at the proof and something is now.
        fs::write(&path, "back").unwrap();
        assert!(gvisor(&path, &[]).is_still(&gone).is_err());
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_another_runtime() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two, link) = (
            directory.path().join("one"),
            directory.path().join("two"),
            directory.path().join("runsc"),
        );
        fs::write(&one, "same").unwrap();
        fs::write(&two, "same").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let proven = gvisor(&link, &[]);
        assert_eq!(gvisor(&link, &[]).is_still(&proven), Ok(()));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&two, &link).unwrap();
        assert!(gvisor(&link, &[]).is_still(&proven).is_err());
    }

    #[test]
    fn a_bare_name_is_looked_for() {
        assert_eq!(Program::behind("sh"), Program::at(Path::new("/bin/sh")));
        assert_eq!(Program::behind("no-program-of-this-name"), None);
        assert_eq!(Program::behind(""), None);
        assert_eq!(
            Program::behind("/usr/bin"),
            None,
            "a directory is no program"
        );
    }
}
