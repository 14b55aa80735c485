//! The descriptor limit and how many connections it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, as far as the system allows.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // A refused raise leaves the limit as it was.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Raises the soft limit to the hard one and returns how many connections a
/// listener may hold: half of the soft limit, so that the other half is there
/// for everything else. `None` when there is no limit.
#[must_use]
pub fn connection_cap() -> Option<usize> {
    raise_limit();
    cap_of(getrlimit(Resource::Nofile).current)
}

fn cap_of(soft: Option<u64>) -> Option<usize> {
    soft.map(|soft| usize::try_from(soft / 2).unwrap_or(usize::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_limit() {
        assert_eq!(cap_of(Some(100)), Some(50));
        assert_eq!(cap_of(Some(1)), Some(1));
        assert_eq!(cap_of(None), None);
    }

    #[test]
    fn the_soft_limit_is_raised() {
        let cap = connection_cap();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(cap, cap_of(limit.current));
    }
}
