//! The seccomp profile of containers.

use std::{fs, sync::Arc};

use serde_json::Value;

use super::settings::Seccomp;

/// The product's own profile: what Node.js, its tools, Python and their
/// children need, and nothing else. Denied by being absent: tracing, other
/// processes' memory, mounts, namespaces, keys, modules, the clock, SysV IPC,
/// io_uring and every socket family but Unix.
const OWN: &str = include_str!("seccomp.json");
/// A profile is some 20 KiB.
const CAP: u64 = 1 << 20;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    /// It cannot be read.
    #[error("the seccomp profile {path} cannot be read: {fault}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        fault: String,
    },
    /// It is no profile.
    #[error("the seccomp profile {path} is not a JSON object with a defaultAction")]
    NoProfile {
        /// Its path.
        path: String,
    },
}

/// The value of the engine's option: the profile's text, not its path, so that
/// what was checked is what is used until a restart. `None` leaves the engine's.
pub(super) fn option(chosen: &Seccomp) -> Result<Option<Arc<str>>, ProfileError> {
    let text = match chosen {
        Seccomp::Engine => return Ok(None),
        Seccomp::Unconfined => return Ok(Some("unconfined".into())),
        Seccomp::Own => OWN.to_owned(),
        Seccomp::File(path) => {
            let unreadable = |fault: String| ProfileError::Unreadable {
                path: path.display().to_string(),
                fault,
            };
            let size = fs::metadata(path)
                .map_err(|e| unreadable(e.to_string()))?
                .len();
            if size > CAP {
                return Err(unreadable("it is too large".to_owned()));
            }
            fs::read_to_string(path).map_err(|e| unreadable(e.to_string()))?
        }
    };
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let is_profile = parsed
        .as_ref()
        .is_some_and(|profile| profile.get("defaultAction").is_some_and(Value::is_string));
    match (parsed, chosen) {
        // One line: it travels in every creation.
        (Some(profile), _) if is_profile => Ok(Some(profile.to_string().into())),
        (_, Seccomp::File(path)) => Err(ProfileError::NoProfile {
            path: path.display().to_string(),
        }),
        _ => Err(ProfileError::NoProfile {
            path: "of the product".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn own() -> Value {
        serde_json::from_str(&option(&Seccomp::Own).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn the_own_profile_denies_by_default() {
        let profile = own();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        assert_eq!(profile["defaultErrnoRet"], 1);
        let mut free = BTreeSet::new();
        let mut bound = BTreeSet::new();
        for rule in profile["syscalls"].as_array().unwrap() {
            for name in rule["names"].as_array().unwrap() {
                let name = name.as_str().unwrap();
                if rule["action"] == "SCMP_ACT_ALLOW" && rule.get("args").is_none() {
                    assert!(free.insert(name.to_owned()), "{name} twice");
                } else {
                    bound.insert(name.to_owned());
                }
            }
        }
        for name in [
            "read",
            "openat",
            "execve",
            "futex",
            "mmap",
            "epoll_pwait",
            "wait4",
            "statx",
        ] {
            assert!(free.contains(name), "{name}");
        }
        for name in [
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "io_uring_setup",
            "io_uring_enter",
            "mount",
            "umount2",
            "move_mount",
            "open_tree",
            "fsopen",
            "pivot_root",
            "chroot",
            "unshare",
            "setns",
            "add_key",
            "keyctl",
            "request_key",
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_load",
            "reboot",
            "swapon",
            "modify_ldt",
            "open_by_handle_at",
            "clock_settime",
            "settimeofday",
            "adjtimex",
            "clock_adjtime",
            "shmget",
            "semget",
            "msgget",
            "syslog",
            "quotactl",
            "acct",
            "iopl",
            "ioperm",
            "kcmp",
            "pidfd_getfd",
            "name_to_handle_at",
            "lookup_dcookie",
            "mq_open",
            "landlock_create_ruleset",
            "fanotify_init",
            "vhangup",
            "nfsservctl",
        ] {
            assert!(!free.contains(name) && !bound.contains(name), "{name}");
        }
        let expected = [
            "clone",
            "clone3",
            "mknod",
            "mknodat",
            "personality",
            "socket",
            "socketpair",
        ];
        assert_eq!(bound, expected.map(str::to_owned).into());
    }

    #[test]
    fn what_an_operator_can_choose() {
        assert_eq!(option(&Seccomp::Engine).unwrap(), None);
        assert_eq!(
            option(&Seccomp::Unconfined).unwrap().as_deref(),
            Some("unconfined")
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("p.json");
        let file = || option(&Seccomp::File(path.clone())).map_err(|e| e.to_string());
        assert!(file().unwrap_err().contains("cannot be read"));
        for bad in ["", "{", "[]", "{\"defaultAction\": 1}"] {
            fs::write(&path, bad).unwrap();
            assert!(file().unwrap_err().contains("defaultAction"), "{bad}");
        }
        fs::write(&path, "{\n\"defaultAction\": \"SCMP_ACT_ALLOW\"}").unwrap();
        let text = file().unwrap().unwrap();
        assert_eq!(&*text, r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#);
    }
}
