//! Where the engine is. Found once and kept: the boundary assumes one local
//! engine, whose mounts are this host's files and whose containers can always
//! be removed through the same socket.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::settings::ClientSettings;

const DEFAULT: &str = "/var/run/docker.sock";
/// The client's files are a few hundred bytes; more is not one of them.
const FILE_CAP: u64 = 1 << 20;

/// Why no engine can be named.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndpointError {
    /// A host that is not a Unix socket here.
    #[error("the docker endpoint {0:?} is not local: a local Unix socket is required")]
    NotLocal(String),
    /// A context the client's store does not have.
    #[error("the docker context {0:?} is not in the client's store")]
    NoSuchContext(String),
    /// A file of the client.
    #[error("the docker client's {path} cannot be used: {fault}")]
    File {
        /// Which.
        path: String,
        /// What is wrong.
        fault: String,
    },
}

/// The engine's socket, as a docker client with these settings finds it:
/// the host, else the context, else the default.
pub(super) fn find(settings: &ClientSettings) -> Result<PathBuf, EndpointError> {
    if !settings.host.is_empty() {
        return local(&settings.host);
    }
    let directory = match (settings.config.as_str(), settings.home.as_str()) {
        ("", "") => None,
        ("", home) => Some(Path::new(home).join(".docker")),
        (config, _) => Some(PathBuf::from(config)),
    };
    let context = match settings.context.as_str() {
        "" => directory
            .as_deref()
            .map(current_context)
            .transpose()?
            .flatten(),
        named => Some(named.to_owned()),
    };
    match context {
        Some(name) if name != "default" => {
            let store = directory.ok_or_else(|| EndpointError::NoSuchContext(name.clone()))?;
            local(&context_host(&store, &name)?)
        }
        _ => Ok(PathBuf::from(DEFAULT)),
    }
}

fn local(host: &str) -> Result<PathBuf, EndpointError> {
    let path = ClientSettings::local_socket(host)
        .ok_or_else(|| EndpointError::NotLocal(host.to_owned()))?;
    Ok(PathBuf::from(path))
}

#[derive(Deserialize)]
struct ClientConfig {
    #[serde(rename = "currentContext", default)]
    current_context: String,
}

fn current_context(directory: &Path) -> Result<Option<String>, EndpointError> {
    let path = directory.join("config.json");
    let Some(bytes) = read(&path)? else {
        return Ok(None);
    };
    let config: ClientConfig = serde_json::from_slice(&bytes).map_err(|e| faulty(&path, e))?;
    Ok((!config.current_context.is_empty()).then_some(config.current_context))
}

#[derive(Deserialize)]
struct Context {
    #[serde(rename = "Endpoints")]
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<DockerEndpoint>,
}

#[derive(Deserialize)]
struct DockerEndpoint {
    #[serde(rename = "Host", default)]
    host: String,
}

/// The store names a context's directory by the digest of its name.
fn context_host(directory: &Path, name: &str) -> Result<String, EndpointError> {
    let path = directory
        .join("contexts/meta")
        .join(hex::encode(Sha256::digest(name.as_bytes())))
        .join("meta.json");
    let missing = || EndpointError::NoSuchContext(name.to_owned());
    let bytes = read(&path)?.ok_or_else(missing)?;
    let context: Context = serde_json::from_slice(&bytes).map_err(|e| faulty(&path, e))?;
    context
        .endpoints
        .docker
        .map(|docker| docker.host)
        .filter(|host| !host.is_empty())
        .ok_or_else(missing)
}

/// A file's bytes; `None` when it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, EndpointError> {
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(faulty(path, error)),
    };
    if size > FILE_CAP {
        return Err(faulty(path, "it is too large"));
    }
    fs::read(path)
        .map(Some)
        .map_err(|error| faulty(path, error))
}

fn faulty(path: &Path, fault: impl std::fmt::Display) -> EndpointError {
    EndpointError::File {
        path: path.display().to_string(),
        fault: fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_host(host: &str) -> ClientSettings {
        ClientSettings {
            host: host.to_owned(),
            ..ClientSettings::default()
        }
    }

    #[test]
    fn only_a_local_socket_is_an_endpoint() {
        for (host, path) in [("unix:///run/e.sock", "/run/e.sock"), ("/x", "/x")] {
            assert_eq!(find(&with_host(host)).unwrap(), Path::new(path));
        }
        for host in [
            "tcp://127.0.0.1:2375",
            "ssh://host",
            "npipe://x",
            "http://x",
            "unix://relative",
            "engine",
            "fd://",
        ] {
            let text = find(&with_host(host)).unwrap_err().to_string();
            assert!(
                text.contains(host) && text.contains("local Unix socket"),
                "{text}"
            );
        }
        let nothing = find(&ClientSettings::default()).unwrap();
        assert_eq!(nothing, Path::new(DEFAULT));
    }

    #[test]
    fn contexts_come_from_the_clients_store() {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join(".docker");
        let settings = |context: &str| ClientSettings {
            home: home.path().to_str().unwrap().to_owned(),
            context: context.to_owned(),
            ..ClientSettings::default()
        };
        assert_eq!(find(&settings("")).unwrap(), Path::new(DEFAULT));
        assert!(matches!(
            find(&settings("mine")),
            Err(EndpointError::NoSuchContext(_))
        ));
        let digest = hex::encode(Sha256::digest(b"mine"));
        let meta = store.join("contexts/meta").join(digest);
        fs::create_dir_all(&meta).unwrap();
        let write = |host: &str| {
            let text = format!(r#"{{"Name":"mine","Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
            fs::write(meta.join("meta.json"), text).unwrap();
        };
        write("unix:///run/mine.sock");
        assert_eq!(
            find(&settings("mine")).unwrap(),
            Path::new("/run/mine.sock")
        );
        fs::write(store.join("config.json"), r#"{"currentContext":"mine"}"#).unwrap();
        assert_eq!(find(&settings("")).unwrap(), Path::new("/run/mine.sock"));
        assert_eq!(find(&settings("default")).unwrap(), Path::new(DEFAULT));
        write("tcp://10.0.0.1:2375");
        assert!(matches!(
            find(&settings("")),
            Err(EndpointError::NotLocal(_))
        ));
        fs::write(store.join("config.json"), "{").unwrap();
        assert!(matches!(
            find(&settings("")),
            Err(EndpointError::File { .. })
        ));
    }
}
