//! The settings of the `docker` provider. Nothing of the engine is asked here.

use super::{Profile, guest};
use crate::{
    config::{
        environment::{Reader, refused},
        error::{ConfigError, Fault},
        rules, variable as v,
        variable::Variable,
    },
    provider::{ClientSettings, DockerSettings, Seccomp},
};

/// What the other settings must know.
pub const PROFILE: Profile = Profile {
    name: "docker",
    guest_uid: true,
    ..Profile::NONE
};

const IMAGE: &str = "node:22-alpine";
const PROJECT_IMAGE: &str = "plimsoll/sandbox:latest";
/// More containers of a kind kept ready than this many help nobody.
const MOST_FRESH: i64 = 1024;
/// The least part of a core that can be a limit: the kernel's shortest quota, a
/// millisecond, of the engine's period of 100 ms. Less would be no limit at all.
const LEAST_CPUS: f64 = 0.01;
/// The engine counts billionths of a core in 63 bits.
const MOST_CPUS: f64 = 9_223_372_036.0;
/// The engine counts bytes in 63 bits.
const MOST_MIB: u64 = i64::MAX.cast_unsigned() >> 20;

/// Reads and checks them.
pub(super) fn read(reader: &Reader<'_>) -> Result<DockerSettings, ConfigError> {
    rules::later(
        reader,
        &v::SANDBOX_DOCKER_MODULE_IMAGE,
        "unset it; module runs are refused",
    )?;
    expressible(reader)?;
    let runtime = reader.text(&v::SANDBOX_DOCKER_RUNTIME)?;
    let settings = DockerSettings {
        image: image(reader, &v::SANDBOX_DOCKER_IMAGE, IMAGE)?,
        project_image: image(reader, &v::SANDBOX_DOCKER_PROJECT_IMAGE, PROJECT_IMAGE)?,
        runtime: runtime.to_owned(),
        seccomp: match reader.text(&v::SANDBOX_DOCKER_SECCOMP)? {
            "" | "default" => Seccomp::Own,
            "engine" => Seccomp::Engine,
            "unconfined" => Seccomp::Unconfined,
            path => Seccomp::File(path.into()),
        },
        guest_uid: uid(reader)?,
        pinned: reader.opt_in(&v::SANDBOX_REQUIRE_PINNED_IMAGES)?,
        open_runner_fds: reader.opt_in(&v::SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS)?,
        fresh_pool: reader
            .integer(&v::SANDBOX_DOCKER_FRESH_POOL, 0, Some(MOST_FRESH))?
            .map_or(0, |n| u32::try_from(n).unwrap_or(0)),
        client: ClientSettings {
            host: host(reader)?,
            context: reader.text(&v::DOCKER_CONTEXT)?.to_owned(),
            config: reader.text(&v::DOCKER_CONFIG)?.to_owned(),
            home: reader.raw(&v::HOME)?.to_owned(),
            platform: reader.text(&v::DOCKER_DEFAULT_PLATFORM)?.to_owned(),
        },
    };
    if settings.open_runner_fds {
        let variable = &v::SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS;
        let value = reader.text(variable)?;
        if !settings.is_gvisor() {
            return Err(refused(variable, value, Fault::NeedsGvisor));
        }
        if reader.opt_in(&v::PLIMSOLL_HARDENED)? {
            return Err(refused(variable, value, Fault::NotHardened));
        }
    }
    Ok(settings)
}

fn image(reader: &Reader<'_>, variable: &Variable, default: &str) -> Result<String, ConfigError> {
    match reader.text(variable)? {
        "" => Ok(default.to_owned()),
        named if DockerSettings::names_an_image(named) => Ok(named.to_owned()),
        other => Err(refused(variable, other, Fault::NotAnImage)),
    }
}

/// Refuses a bound the engine has no number for: it would get another one, or
/// none.
fn expressible(reader: &Reader<'_>) -> Result<(), ConfigError> {
    let cpus = reader.float(&v::SANDBOX_CPUS)?;
    if cpus != 0.0 && !(LEAST_CPUS..=MOST_CPUS).contains(&cpus) {
        let variable = &v::SANDBOX_CPUS;
        return Err(refused(variable, reader.text(variable)?, Fault::NotCores));
    }
    for variable in [&v::SANDBOX_MEMORY_MB, &v::SANDBOX_DISK_MB] {
        if reader.count(variable)? > MOST_MIB {
            let bounds = Fault::OutOfBounds {
                least: 0,
                most: MOST_MIB.cast_signed(),
            };
            return Err(refused(variable, reader.text(variable)?, bounds));
        }
    }
    Ok(())
}

fn host(reader: &Reader<'_>) -> Result<String, ConfigError> {
    let host = reader.text(&v::DOCKER_HOST)?;
    if host.is_empty() || ClientSettings::local_socket(host).is_some() {
        return Ok(host.to_owned());
    }
    Err(refused(&v::DOCKER_HOST, host, Fault::NotLocal))
}

fn uid(reader: &Reader<'_>) -> Result<u32, ConfigError> {
    let variable = &v::SANDBOX_GUEST_UID;
    match reader.text(variable)? {
        "" => Ok(guest::DEFAULT),
        text => guest::parse(text).ok_or_else(|| refused(variable, text, Fault::NotAGuest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn read_from(variables: &[(&str, &str)]) -> Result<DockerSettings, String> {
        let environment =
            Environment::new(variables.iter().map(|(n, v)| ((*n).into(), (*v).into())));
        read(&Reader::new(&environment)).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults() {
        let settings = read_from(&[("HOME", "/root")]).unwrap();
        assert_eq!(
            settings,
            DockerSettings {
                image: "node:22-alpine".to_owned(),
                project_image: "plimsoll/sandbox:latest".to_owned(),
                runtime: String::new(),
                seccomp: Seccomp::Own,
                guest_uid: 61000,
                pinned: false,
                open_runner_fds: false,
                fresh_pool: 0,
                client: ClientSettings {
                    home: "/root".to_owned(),
                    ..ClientSettings::default()
                },
            }
        );
    }

    #[test]
    fn a_bound_is_one_the_engine_can_keep() {
        for (name, value) in [
            ("SANDBOX_CPUS", "1e-10"),
            ("SANDBOX_CPUS", "1e-320"),
            ("SANDBOX_CPUS", "0.0099"),
            ("SANDBOX_CPUS", "9223372037"),
            ("SANDBOX_CPUS", "1e300"),
            ("SANDBOX_MEMORY_MB", "8796093022208"),
            ("SANDBOX_MEMORY_MB", "9223372036854775807"),
            ("SANDBOX_DISK_MB", "9223372036854775807"),
        ] {
            let refused = read_from(&[(name, value)]).unwrap_err();
            assert!(
                refused.contains(name) && refused.contains(value),
                "{refused}"
            );
            let hardened = [(name, value), ("PLIMSOLL_HARDENED", "1")];
            assert_eq!(read_from(&hardened).unwrap_err(), refused);
        }
        for (name, value) in [
            ("SANDBOX_CPUS", "0"),
            ("SANDBOX_CPUS", "-0"),
            ("SANDBOX_CPUS", "0.01"),
            ("SANDBOX_CPUS", "9223372036"),
            ("SANDBOX_MEMORY_MB", "8796093022207"),
            ("SANDBOX_DISK_MB", "8796093022207"),
        ] {
            assert!(read_from(&[(name, value)]).is_ok(), "{name}={value}");
        }
    }

    #[test]
    fn only_a_local_engine() {
        for host in ["tcp://127.0.0.1:2375", "ssh://host", "unix://run/d.sock"] {
            let refused = read_from(&[("DOCKER_HOST", host)]).unwrap_err();
            assert!(refused.contains("local Unix socket"), "{refused}");
        }
        for host in ["", "unix:///run/d.sock", "/run/d.sock"] {
            assert!(read_from(&[("DOCKER_HOST", host)]).is_ok(), "{host}");
        }
    }

    #[test]
    fn values() {
        for (value, seccomp) in [
            ("default", Seccomp::Own),
            (" engine ", Seccomp::Engine),
            ("unconfined", Seccomp::Unconfined),
            ("/etc/p.json", Seccomp::File("/etc/p.json".into())),
        ] {
            let settings = read_from(&[("SANDBOX_DOCKER_SECCOMP", value)]).unwrap();
            assert_eq!(settings.seccomp, seccomp);
        }
        let settings = read_from(&[
            ("SANDBOX_DOCKER_RUNTIME", "runsc"),
            ("SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS", "TRUE"),
            ("SANDBOX_DOCKER_FRESH_POOL", "4"),
            ("SANDBOX_GUEST_UID", "1000"),
        ])
        .unwrap();
        assert!(settings.is_gvisor() && settings.open_runner_fds);
        assert_eq!((settings.fresh_pool, settings.guest_uid), (4, 1000));
    }

    #[test]
    fn refusals_name_the_variable() {
        for (name, value) in [
            ("SANDBOX_DOCKER_IMAGE", "-v"),
            ("SANDBOX_DOCKER_PROJECT_IMAGE", "a b"),
            ("SANDBOX_DOCKER_MODULE_IMAGE", "x"),
            ("SANDBOX_DOCKER_FRESH_POOL", "-1"),
            ("SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS", "1"),
            ("SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS", "yes"),
            ("SANDBOX_GUEST_UID", "0"),
            ("SANDBOX_GUEST_UID", "60100"),
            ("SANDBOX_GUEST_UID", "61183"),
            ("SANDBOX_GUEST_UID", "65533"),
            ("SANDBOX_GUEST_UID", "nobody"),
        ] {
            let text = read_from(&[(name, value)]).unwrap_err();
            assert!(text.contains(name), "{text}");
        }
        let text = read_from(&[
            ("SANDBOX_DOCKER_RUNTIME", "runsc"),
            ("SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS", "1"),
            ("PLIMSOLL_HARDENED", "1"),
        ])
        .unwrap_err();
        assert!(text.contains("PLIMSOLL_HARDENED"), "{text}");
    }
}
