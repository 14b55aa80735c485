//! What the child's environment holds.

use std::ffi::{OsStr, OsString};

/// Variables of ours that the child keeps although they begin with `PLIMSOLL_`.
const KEPT: &str = "PLIMSOLL_GRANTS_FILE";
const PROVIDER: &str = "SANDBOX_PROVIDER";

/// The child's environment, made from ours: without any `PLIMSOLL_` variable
/// but the grants file, so neither the signing key nor a token nor another
/// daemon's setting reaches it; for `wasm` without any `SANDBOX_` variable;
/// and with what makes it a private daemon of this process.
#[must_use]
pub fn cleaned(
    ours: &[(OsString, OsString)],
    provider: &str,
    token: &str,
) -> Vec<(OsString, OsString)> {
    let starts = |name: &OsStr, with: &str| name.as_encoded_bytes().starts_with(with.as_bytes());
    let mut theirs: Vec<_> = ours
        .iter()
        .filter(|(name, _)| name == KEPT || !starts(name, "PLIMSOLL_"))
        .filter(|(name, _)| provider != "wasm" || !starts(name, "SANDBOX_"))
        .filter(|(name, _)| name != PROVIDER)
        .cloned()
        .collect();
    for (name, value) in [
        (PROVIDER, provider),
        ("PLIMSOLL_ADDR", "127.0.0.1:0"),
        ("PLIMSOLL_METRICS_ADDR", "off"),
        ("PLIMSOLL_LOG_FORMAT", "json"),
        ("PLIMSOLL_TOKEN", token),
        ("PLIMSOLL_EMBEDDED", "1"),
    ] {
        theirs.push((name.into(), value.into()));
    }
    theirs
}

/// The provider our environment names when it is another than the one used:
/// it is not a choice there, and one note says so. Data, to be escaped.
#[must_use]
pub fn other_provider(ours: &[(OsString, OsString)], provider: &str) -> Option<OsString> {
    ours.iter()
        .find(|(name, value)| name == PROVIDER && !value.is_empty() && value != provider)
        .map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Vec<(OsString, OsString)> {
        [
            ("PATH", "/bin"),
            ("PLIMSOLL_ATTEST_KEY", "canary-key"),
            ("PLIMSOLL_CALLER_TOKEN", "canary-token"),
            ("PLIMSOLL_TOKEN", "canary-daemon-token"),
            ("PLIMSOLL_TLS_CERT", "/x"),
            ("PLIMSOLL_GRANTS_FILE", "/grants"),
            ("PLIMSOLL_INSECURE", "1"),
            ("PLIMSOLL_", "odd"),
            ("SANDBOX_PROVIDER", "docker"),
            ("SANDBOX_MEM_MB", "1"),
            ("E2B_API_KEY", "k"),
        ]
        .map(|(n, v)| (n.into(), v.into()))
        .to_vec()
    }

    fn names(environment: &[(OsString, OsString)]) -> Vec<&str> {
        let mut names: Vec<_> = environment
            .iter()
            .map(|(n, _)| n.to_str().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_what_the_child_needs() {
        let theirs = cleaned(&ours(), "wasm", "t");
        assert_eq!(
            names(&theirs),
            [
                "E2B_API_KEY",
                "PATH",
                "PLIMSOLL_ADDR",
                "PLIMSOLL_EMBEDDED",
                "PLIMSOLL_GRANTS_FILE",
                "PLIMSOLL_LOG_FORMAT",
                "PLIMSOLL_METRICS_ADDR",
                "PLIMSOLL_TOKEN",
                "SANDBOX_PROVIDER",
            ]
        );
        let value = |name: &str| theirs.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(value("PLIMSOLL_TOKEN"), "t");
        assert_eq!(value("SANDBOX_PROVIDER"), "wasm");
        assert!(!format!("{theirs:?}").contains("canary"));
        let docker = cleaned(&ours(), "docker", "t");
        assert!(names(&docker).contains(&"SANDBOX_MEM_MB"));
        assert!(!format!("{docker:?}").contains("canary"));
    }

    #[test]
    fn another_provider_is_noted() {
        assert_eq!(other_provider(&ours(), "wasm"), Some("docker".into()));
        assert_eq!(other_provider(&ours(), "docker"), None);
        assert_eq!(
            other_provider(&[("SANDBOX_PROVIDER".into(), "".into())], "wasm"),
            None
        );
        assert_eq!(other_provider(&[], "wasm"), None);
    }
}
