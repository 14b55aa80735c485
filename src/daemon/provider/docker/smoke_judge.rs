//! Whether what the storage probe found inside a container is what was promised.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::{host_dir::RESOLVER, limits::MIB, storage::Storage};

/// What a container was promised to be.
pub(super) struct Promised {
    pub(super) storage: Storage,
    pub(super) uid: u32,
    pub(super) pids: u64,
    pub(super) gvisor: bool,
    pub(super) socket: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    root_writable: bool,
    mounts: Vec<Mount>,
    writable: BTreeSet<String>,
    pids_max: String,
    status: Status,
    interfaces: Vec<String>,
    resolver: String,
    pong: Option<String>,
    boot: String,
}

#[derive(Deserialize)]
struct Mount {
    point: String,
    kind: String,
    options: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Status {
    uid: Vec<u64>,
    gid: Vec<u64>,
    #[serde(default)]
    groups: Vec<u64>,
}

/// Judges the probe's answer. Returns gVisor's boot line, printable and short:
/// a diagnostic, never a decision.
///
/// # Errors
/// The first promise that is broken, in words.
pub(super) fn judge(answer: &[u8], promised: &Promised) -> Result<String, String> {
    let found: Found = serde_json::from_slice(answer)
        .map_err(|error| format!("the storage probe's answer cannot be read: {error}"))?;
    if found.root_writable {
        return Err("the root file system accepted a write".to_owned());
    }
    if STANDARD.decode(&found.resolver).ok().as_deref() != Some(RESOLVER) {
        return Err(
            "the guest does not read this daemon's /etc/resolv.conf: the engine must be able to reach the directory it is mounted from"
                .to_owned(),
        );
    }
    if found.interfaces != ["lo"] {
        return Err(format!(
            "the guest has network interfaces other than lo: {:?}",
            found.interfaces
        ));
    }
    identity(&found.status, promised.uid.into())?;
    if !promised.gvisor && (promised.pids == 0 || found.pids_max != promised.pids.to_string()) {
        return Err(format!(
            "the guest's process limit is {:?}, not {}",
            found.pids_max, promised.pids
        ));
    }
    mounts(&found, promised)?;
    if promised.socket && found.pong.as_deref() != Some("pong") {
        let fix = if promised.gvisor {
            ": register runsc with --host-uds=open and restart the engine"
        } else {
            ""
        };
        return Err(format!(
            "the guest cannot use a socket that is mounted for it ({}){fix}",
            found.pong.as_deref().unwrap_or("not tried")
        ));
    }
    Ok(found
        .boot
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(120)
        .collect())
}

fn identity(status: &Status, uid: u64) -> Result<(), String> {
    let all = |ids: &[u64]| ids.len() == 4 && ids.iter().all(|id| *id == uid);
    if all(&status.uid) && all(&status.gid) && status.groups.iter().all(|id| *id == uid) {
        return Ok(());
    }
    Err(format!(
        "the guest is not uid and gid {uid} alone: uid {:?}, gid {:?}, groups {:?}",
        status.uid, status.gid, status.groups
    ))
}

fn mounts(found: &Found, promised: &Promised) -> Result<(), String> {
    let wanted = promised.storage.mounts();
    for tmpfs in &wanted {
        let path = tmpfs.path;
        // The last of several mounts on one point is the one in force.
        let mount = found.mounts.iter().rev().find(|mount| mount.point == path);
        let Some(mount) = mount else {
            return Err(format!("nothing is mounted at {path}"));
        };
        let options: Vec<&str> = mount.options.split(',').collect();
        let size = options
            .iter()
            .find_map(|option| option.strip_prefix("size="))
            .and_then(bytes);
        // gVisor releases of 2022 do not print nosuid.
        let nosuid = promised.gvisor || options.contains(&"nosuid");
        if mount.kind != "tmpfs"
            || !options.contains(&"noexec")
            || !nosuid
            || size != Some(tmpfs.bytes)
        {
            return Err(format!(
                "{path} is not a tmpfs with noexec, nosuid and {} bytes: {} {}",
                tmpfs.bytes, mount.kind, mount.options
            ));
        }
    }
    let wanted: BTreeSet<String> = wanted.iter().map(|mount| mount.path.to_owned()).collect();
    if found.writable == wanted {
        return Ok(());
    }
    if !found.writable.contains("/work") && wanted.contains("/work") {
        return Err(
            "the guest cannot write to /work: the image must hold an empty directory /work of mode 1777"
                .to_owned(),
        );
    }
    Err(format!(
        "the guest can write to {:?}, not exactly to {wanted:?}",
        found.writable
    ))
}

/// A size as kernels print it.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match size.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => MIB,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn promised(gvisor: bool) -> Promised {
        Promised {
            storage: Storage::Work(128),
            uid: 61000,
            pids: 256,
            gvisor,
            socket: true,
        }
    }

    fn good() -> Value {
        let linux = "rw,nosuid,nodev,noexec,relatime";
        json!({
            "rootWritable": false,
            "mounts": [
                {"point": "/", "kind": "overlay", "options": "ro"},
                {"point": "/tmp", "kind": "tmpfs", "options": format!("{linux},size=16384k")},
                {"point": "/dev/shm", "kind": "tmpfs", "options": format!("{linux},size=16384k")},
                {"point": "/work", "kind": "tmpfs", "options": format!("{linux},size=131072k,mode=1777")},
            ],
            "writable": ["/tmp", "/work", "/dev/shm"],
            "pidsMax": "256",
            "status": {"Uid": [61000, 61000, 61000, 61000], "Gid": [61000, 61000, 61000, 61000], "Groups": [61000]},
            "interfaces": ["lo"],
            "resolver": STANDARD.encode(RESOLVER),
            "pong": "pong",
            "boot": "",
        })
    }

    fn judged(gvisor: bool, change: impl Fn(&mut Value)) -> Result<String, String> {
        let mut value = good();
        change(&mut value);
        judge(value.to_string().as_bytes(), &promised(gvisor))
    }

    #[test]
    fn what_was_promised_passes() {
        assert_eq!(judged(false, |_| {}), Ok(String::new()));
        let old_gvisor = |value: &mut Value| {
            for mount in [1, 2, 3] {
                let size = if mount == 3 { "128m" } else { "16m" };
                value["mounts"][mount]["options"] = json!(format!("rw,noexec,size={size}"));
            }
            value["pidsMax"] = json!("");
            value["boot"] = json!("[    0.0] Starting gVisor...\u{7}");
        };
        assert_eq!(
            judged(true, old_gvisor),
            Ok("[    0.0] Starting gVisor...".to_owned())
        );
        assert!(judged(false, old_gvisor).is_err());
    }

    #[test]
    fn every_broken_promise_is_named() {
        let changes: [(&str, &str, Value); 13] = [
            ("root file system", "/rootWritable", json!(true)),
            (
                "resolv.conf",
                "/resolver",
                json!(STANDARD.encode("search corp\n")),
            ),
            ("other than lo", "/interfaces", json!(["lo", "eth0"])),
            ("other than lo", "/interfaces", json!([])),
            ("not uid", "/status/Uid", json!([61000, 0, 61000, 61000])),
            ("not uid", "/status/Groups", json!([61000, 10])),
            ("process limit", "/pidsMax", json!("max")),
            (
                "/tmp is not",
                "/mounts/1/options",
                json!("rw,nosuid,noexec"),
            ),
            (
                "/tmp is not",
                "/mounts/1/options",
                json!("rw,nosuid,size=16384k"),
            ),
            (
                "/dev/shm is not",
                "/mounts/2/options",
                json!("rw,nosuid,noexec,size=65536k"),
            ),
            ("/work is not", "/mounts/3/kind", json!("ext4")),
            (
                "can write to",
                "/writable",
                json!(["/tmp", "/work", "/dev/shm", "/dev/mqueue"]),
            ),
            ("mode 1777", "/writable", json!(["/tmp", "/dev/shm"])),
        ];
        for (words, pointer, value) in changes {
            let fault = judged(false, |all| {
                *all.pointer_mut(pointer).unwrap() = value.clone();
            });
            let fault = fault.unwrap_err();
            assert!(fault.contains(words), "{pointer}: {fault}");
        }
        let no_socket = |value: &mut Value| value["pong"] = json!("EACCES");
        assert!(
            judged(true, no_socket)
                .unwrap_err()
                .contains("--host-uds=open")
        );
        assert!(judge(b"garbage", &promised(false)).is_err());
    }
}
