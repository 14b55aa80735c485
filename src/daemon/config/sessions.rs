//! Settings of sessions.

use std::time::Duration;

use super::{
    environment::{Reader, refused},
    error::{ConfigError, Fault},
    providers::Profile,
    rules::not_with,
    settings::SessionSettings,
    variable as v,
};

const SECOND: Duration = Duration::from_secs(1);
const HALF_DAY: Duration = Duration::from_secs(12 * 60 * 60);

/// Reads and checks them whether or not sessions are on, so that a mistake
/// cannot lie in wait.
pub(super) fn read(reader: &Reader<'_>) -> Result<SessionSettings, ConfigError> {
    let max = reader.count(&v::SANDBOX_MAX_SESSIONS)?;
    let lifetime = reader.duration(&v::SANDBOX_SESSION_LIFETIME)?;
    let lifetime = lifetime.unwrap_or(Duration::from_secs(30 * 60));
    if !(SECOND..=HALF_DAY).contains(&lifetime) {
        let value = reader.text(&v::SANDBOX_SESSION_LIFETIME)?;
        return Err(refused(
            &v::SANDBOX_SESSION_LIFETIME,
            value,
            Fault::NotALifetime,
        ));
    }
    let idle = reader.duration(&v::SANDBOX_SESSION_IDLE)?;
    let idle = idle.unwrap_or(Duration::from_secs(5 * 60));
    if !idle.is_zero() && !(SECOND..=HALF_DAY).contains(&idle) {
        let value = reader.text(&v::SANDBOX_SESSION_IDLE)?;
        return Err(refused(
            &v::SANDBOX_SESSION_IDLE,
            value,
            Fault::NotAnIdleTime,
        ));
    }
    let most_pool = i64::try_from(max).unwrap_or(i64::MAX);
    Ok(SessionSettings {
        max,
        per_caller: reader.count(&v::SANDBOX_MAX_SESSIONS_PER_CALLER)?,
        per_owner: reader.count(&v::SANDBOX_MAX_SESSIONS_PER_OWNER)?,
        lifetime,
        idle,
        disk_mb: reader
            .integer(&v::SANDBOX_SESSION_DISK_MB, 0, Some(1 << 20))?
            .unwrap_or(1024)
            .unsigned_abs(),
        pool: reader
            .integer(&v::SANDBOX_SESSION_POOL, 0, Some(most_pool))?
            .unwrap_or(0)
            .unsigned_abs(),
    })
}

/// What of the settings the provider cannot do.
pub(super) fn with_provider(
    sessions: &SessionSettings,
    profile: &Profile,
) -> Result<(), ConfigError> {
    if sessions.max == 0 {
        // The pool's bound is the number of sessions, so it is 0 too.
        return Ok(());
    }
    if !profile.sessions {
        return Err(not_with(
            &v::SANDBOX_MAX_SESSIONS,
            profile,
            "keeps no sessions",
        ));
    }
    if profile.metered && sessions.idle.is_zero() {
        return Err(not_with(
            &v::SANDBOX_SESSION_IDLE,
            profile,
            "is billed by the second: a session that is never suspended is billed for its whole life, so 0 is refused",
        ));
    }
    if sessions.pool > 0 && !profile.session_pool {
        return Err(not_with(
            &v::SANDBOX_SESSION_POOL,
            profile,
            "keeps no session pool",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    const BILLED: Profile = Profile {
        name: "e2b",
        metered: true,
        sessions: true,
        ..Profile::NONE
    };

    fn checked(variables: &[(&str, &str)], profile: &Profile) -> Result<(), String> {
        let variables = variables.iter().map(|(n, v)| (n.into(), v.into()));
        let environment = Environment::new(variables);
        let read = read(&Reader::new(&environment)).map_err(|e| e.to_string())?;
        with_provider(&read, profile).map_err(|e| e.to_string())
    }

    #[test]
    fn a_billed_session_must_be_suspended() {
        let on = ("SANDBOX_MAX_SESSIONS", "2");
        assert_eq!(checked(&[on], &BILLED), Ok(()));
        let never = ("SANDBOX_SESSION_IDLE", "0");
        let text = checked(&[on, never], &BILLED).unwrap_err();
        assert!(
            text.contains("SANDBOX_SESSION_IDLE") && text.contains("e2b"),
            "{text}"
        );
        assert_eq!(checked(&[never], &BILLED), Ok(()), "sessions are off");
        let flat = Profile {
            metered: false,
            ..BILLED
        };
        assert_eq!(checked(&[on, never], &flat), Ok(()));
    }

    #[test]
    fn a_pool_needs_sessions_and_a_provider_that_pools() {
        let on = ("SANDBOX_MAX_SESSIONS", "2");
        for (pool, words) in [("1", "keeps no session pool"), ("3", "0 to 2")] {
            let text = checked(&[on, ("SANDBOX_SESSION_POOL", pool)], &BILLED).unwrap_err();
            assert!(
                text.contains("SANDBOX_SESSION_POOL") && text.contains(words),
                "{text}"
            );
        }
        let pooling = Profile {
            session_pool: true,
            ..BILLED
        };
        assert_eq!(
            checked(&[on, ("SANDBOX_SESSION_POOL", "2")], &pooling),
            Ok(())
        );
        let text = checked(&[("SANDBOX_SESSION_POOL", "1")], &pooling).unwrap_err();
        assert!(text.contains("SANDBOX_SESSION_POOL"), "{text}");
        let text = checked(
            &[on],
            &Profile {
                sessions: false,
                ..BILLED
            },
        )
        .unwrap_err();
        assert!(text.contains("SANDBOX_MAX_SESSIONS"), "{text}");
    }
}
