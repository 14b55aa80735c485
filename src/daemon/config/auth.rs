//! How callers are known: a registry, one shared token, or not at all.

use std::{path::Path, sync::Arc};

use plimsoll_callers::Registry;

use super::{
    environment::Reader,
    error::{ConfigError, Fault},
    providers::Choice,
    settings::Auth,
    variable as v,
};

/// The shortest bearer token.
const MIN_TOKEN: usize = 32;

/// The registry wins over the shared token, that over open development mode,
/// which a provider that runs code needs `PLIMSOLL_INSECURE=1` for. What is set
/// and not used is still checked: it may be tomorrow's fall-back.
pub(super) fn read(reader: &Reader<'_>, provider: &Choice) -> Result<Auth, ConfigError> {
    let insecure = reader.exactly_one(&v::PLIMSOLL_INSECURE)?;
    let registry = registry(reader.text(&v::PLIMSOLL_CLIENTS_FILE)?)?;
    let fault = |fault| ConfigError::Secret {
        variable: v::PLIMSOLL_TOKEN.name,
        fault,
    };
    let token = reader.secret(&v::PLIMSOLL_TOKEN)?;
    if let Some(token) = &token {
        if token.len() < MIN_TOKEN {
            return Err(fault(Fault::ShortToken));
        }
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(fault(Fault::UnusableToken));
        }
    }
    match (registry, token) {
        (Some(registry), _) => Ok(Auth::Registry(registry)),
        (None, Some(token)) => Ok(Auth::Token(token)),
        (None, None) if insecure || *provider == Choice::Disabled => Ok(Auth::Open),
        (None, None) => Err(ConfigError::NoAuthentication {
            provider: provider.name(),
        }),
    }
}

/// The registry of this file; `None` when no file is named.
fn registry(path: &str) -> Result<Option<Arc<Registry>>, ConfigError> {
    if path.is_empty() {
        return Ok(None);
    }
    match Registry::load_for_daemon(Path::new(path)) {
        Ok(registry) => Ok(Some(Arc::new(registry))),
        Err(error) => Err(ConfigError::Clients {
            path: path.to_owned(),
            fault: error.to_string(),
        }),
    }
}
