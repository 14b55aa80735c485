//! Containers that nobody answers for, and what dead processes left on the host.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bollard::models::ContainerSummary;
use futures_util::{StreamExt, stream};

use super::{
    body::{EXPIRES, OWNER},
    dead_dirs::{self, Owner},
    fault::during,
    host_dir::{ALIVE, PREFIX},
    limits::REAP_MARGIN,
    removal::force_remove,
    state::State,
};
use crate::provider::{Answer, ProviderError};

/// Removals at once: more would only wait for each other in the engine.
const AT_ONCE: usize = 8;

/// One sweep. Needs the pinned engine and nothing that was proven. Returns how
/// many containers went.
pub(super) async fn reconcile(state: &Arc<State>) -> Answer<usize> {
    let swept = tokio::task::spawn_blocking(|| {
        dead_dirs::remove(&std::env::temp_dir(), SystemTime::now());
    });
    let _ = swept.await;
    let Some(ground) = state.ground() else {
        return Ok(0);
    };
    let before = state.living.names();
    let listed = ground
        .engine
        .labelled(EXPIRES)
        .await
        .map_err(|fault| during("listing containers", fault))?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let own = ground.host.alive();
    let doomed: Vec<String> = listed
        .into_iter()
        .filter_map(|container| doomed(container, now, &own))
        // A name is noted before its container is asked for and kept until it
        // is gone, so one that is in neither list is not in use here.
        .filter(|name| !before.contains(name) && !state.living.contains(name))
        .collect();
    let engine = &ground.engine;
    let removed = stream::iter(doomed)
        .map(|name| async move { force_remove(engine, &name).await })
        .buffer_unordered(AT_ONCE);
    let results: Vec<_> = removed.collect().await;
    let count = results.iter().filter(|result| result.is_ok()).count();
    match results.into_iter().find_map(Result::err) {
        Some(fault) if count == 0 => Err(during("removing a leaked container", fault)),
        _ => Ok(count),
    }
}

/// The name of a container that is to go, this process's own containers in use
/// aside.
fn doomed(container: ContainerSummary, now: u64, own: &Path) -> Option<String> {
    let name = container.names?.into_iter().next()?;
    let name = name.strip_prefix('/').unwrap_or(&name).to_owned();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    if name.is_empty() || !name.bytes().all(plain) {
        return None;
    }
    let labels = container.labels.unwrap_or_default();
    let expires: i64 = labels.get(EXPIRES)?.trim().parse().ok()?;
    let owner = labels.get(OWNER).and_then(|owner| socket_of_ours(owner));
    let overdue = || {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let margin = i64::try_from(REAP_MARGIN.as_secs()).unwrap_or(i64::MAX);
        now.saturating_sub(expires) >= margin
    };
    let goes = match owner {
        Some(socket) if socket == own => true,
        Some(socket) if dead_dirs::owner(&socket) == Owner::Dead => true,
        _ => overdue(),
    };
    goes.then_some(name)
}

/// A label's path, when it has the form our daemons give it.
fn socket_of_ours(label: &str) -> Option<PathBuf> {
    let path = PathBuf::from(label);
    let directory = path.parent()?.file_name()?.to_str()?;
    let ours =
        path.is_absolute() && path.file_name()?.to_str()? == ALIVE && directory.starts_with(PREFIX);
    ours.then_some(path)
}

/// The error of a sweep that could not be made.
pub(super) fn text(error: &ProviderError) -> String {
    crate::surface::cut(&error.full_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::os::unix::net::UnixListener;

    const NOW: u64 = 1_000_000;

    fn container(labels: &[(&str, String)]) -> ContainerSummary {
        ContainerSummary {
            names: Some(vec!["/crsbx-1".to_owned()]),
            labels: Some(
                labels
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                    .collect::<HashMap<_, _>>(),
            ),
            ..ContainerSummary::default()
        }
    }

    fn goes(expires: &str, owner: Option<&Path>) -> bool {
        let mut labels = vec![(EXPIRES, expires.to_owned())];
        if let Some(owner) = owner {
            labels.push((OWNER, owner.display().to_string()));
        }
        let own = Path::new("/tmp/plimsoll-docker-config-own/alive.sock");
        doomed(container(&labels), NOW, own).is_some()
    }

    #[test]
    fn only_what_nobody_answers_for_goes() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("plimsoll-docker-config-a");
        std::fs::create_dir(&directory).unwrap();
        let socket = directory.join(ALIVE);
        let listener = UnixListener::bind(&socket).unwrap();
        let soon = (NOW + 30).to_string();
        let late = (NOW - 300).to_string();
        assert!(!goes(&soon, Some(&socket)), "its owner lives");
        assert!(!goes(&(NOW - 299).to_string(), Some(&socket)));
        assert!(goes(&late, Some(&socket)), "long past its end");
        drop(listener);
        assert!(goes(&soon, Some(&socket)), "its owner died");
        assert!(goes(
            &soon,
            Some(&directory.with_extension("gone").join(ALIVE))
        ));
        assert!(goes(
            &soon,
            Some(Path::new("/tmp/plimsoll-docker-config-own/alive.sock"))
        ));

        assert!(!goes(&soon, None));
        assert!(goes(&late, None));
        for label in ["", "soon", "1e9", "0x10"] {
            assert!(!goes(label, Some(&socket)), "{label}");
        }
        // A path of another form is nobody's word.
        for other in [
            "/run/else/alive.sock",
            "relative/plimsoll-docker-config-a/alive.sock",
        ] {
            assert!(!goes(&soon, Some(Path::new(other))), "{other}");
        }
    }
}
