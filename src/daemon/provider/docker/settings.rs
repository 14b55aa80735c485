//! What the provider is told at start.

use std::path::PathBuf;

/// The settings of the docker provider, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DockerSettings {
    /// Image of snippets, as named.
    pub image: String,
    /// Image of projects, as named.
    pub project_image: String,
    /// OCI runtime; empty is the engine's own.
    pub runtime: String,
    /// The seccomp profile. Not used under gVisor.
    pub seccomp: Seccomp,
    /// User and group of every guest.
    pub guest_uid: u32,
    /// Every image must be named by digest.
    pub pinned: bool,
    /// A gVisor that cannot hide the runner's descriptors is accepted.
    pub open_runner_fds: bool,
    /// Containers of each kind kept ready; each is used once.
    pub fresh_pool: u32,
    /// Where the engine is looked for.
    pub client: ClientSettings,
}

/// Which seccomp profile containers get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// The product's own.
    #[default]
    Own,
    /// The one built into the engine.
    Engine,
    /// None.
    Unconfined,
    /// One of the operator's.
    File(PathBuf),
}

/// What the settings of a docker client say about where its engine is. Empty
/// is unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// `DOCKER_HOST`.
    pub host: String,
    /// `DOCKER_CONTEXT`.
    pub context: String,
    /// `DOCKER_CONFIG`.
    pub config: String,
    /// `HOME`.
    pub home: String,
    /// `DOCKER_DEFAULT_PLATFORM`.
    pub platform: String,
}

impl ClientSettings {
    /// The path of the local Unix socket that a host names; `None` for any
    /// other host.
    #[must_use]
    pub fn local_socket(host: &str) -> Option<&str> {
        let path = host.strip_prefix("unix://").unwrap_or(host);
        (path.starts_with('/') && !path.contains('\0')).then_some(path)
    }
}

impl DockerSettings {
    /// The name of gVisor's runtime.
    pub const GVISOR: &'static str = "runsc";

    /// Whether containers run under gVisor, so far as the settings say.
    #[must_use]
    pub fn is_gvisor(&self) -> bool {
        self.runtime == Self::GVISOR
    }

    /// Whether a number may be every guest's user and group. It and its
    /// successor, which checks identities, stay out of the bands that belong to
    /// accounts no file lists.
    #[must_use]
    pub fn may_be_guest(uid: u64) -> bool {
        const BANDS: [(u64, u64); 3] = [(60001, 60513), (60578, 60705), (61184, 65519)];
        let free = |id: u64| {
            BANDS
                .iter()
                .all(|(first, last)| !(*first..=*last).contains(&id))
        };
        (1..=65532).contains(&uid) && free(uid) && free(uid + 1)
    }

    /// Whether text can name an image at all. What the engine resolves it to is
    /// its own question; this keeps text out of a request's path that could
    /// change where the request goes.
    #[must_use]
    pub fn names_an_image(reference: &str) -> bool {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b);
        !reference.is_empty()
            && reference.len() <= 512
            && reference.bytes().all(plain)
            && reference.as_bytes()[0].is_ascii_alphanumeric()
            && !reference.contains("..")
            && !reference.contains("//")
    }

    /// Whether a reference names content: a digest behind a name.
    #[must_use]
    pub fn is_pinned(reference: &str) -> bool {
        reference.split_once("@sha256:").is_some_and(|(name, hex)| {
            !name.is_empty() && hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_stay_out_of_the_bands() {
        for uid in [
            0, 60000, 60001, 60100, 60513, 60577, 60705, 61183, 61184, 65519, 65533,
        ] {
            assert!(!DockerSettings::may_be_guest(uid), "{uid}");
        }
        for uid in [1, 1000, 59999, 60514, 60706, 61000, 61182, 65520, 65532] {
            assert!(DockerSettings::may_be_guest(uid), "{uid}");
        }
        assert!(!DockerSettings::may_be_guest(u64::MAX));
    }

    #[test]
    fn image_references() {
        for good in [
            "node:22-alpine",
            "plimsoll/sandbox:latest",
            "host:5000/a@sha256:00",
        ] {
            assert!(DockerSettings::names_an_image(good), "{good}");
        }
        for bad in [
            "", "-v", "a b", "a?b", "a/../b", "a#b", "../x", "a//b", "\u{e9}", "a%2f",
        ] {
            assert!(!DockerSettings::names_an_image(bad), "{bad}");
        }
        let digest = "0Aa".repeat(21) + "f";
        assert!(DockerSettings::is_pinned(&format!("a@sha256:{digest}")));
        assert!(!DockerSettings::is_pinned(&format!("@sha256:{digest}")));
        assert!(!DockerSettings::is_pinned("a@sha256:12"));
        assert!(!DockerSettings::is_pinned("a:latest"));
    }
}
