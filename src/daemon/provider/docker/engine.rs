//! The calls to the Engine API that the provider makes, each bounded.

use std::{
    collections::HashMap,
    future::Future,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bollard::{
    ClientVersion, Docker,
    errors::Error,
    models::{
        ContainerCreateBody, ContainerInspectResponse, ContainerSummary, ImageInspect, SystemInfo,
    },
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptions, EventsOptionsBuilder,
        InspectContainerOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
        StartContainerOptions, WaitContainerOptionsBuilder,
    },
};
use futures_util::StreamExt;
use http::{Method, Request};
use http_body_util::{BodyExt, Either, Full};

use super::{
    attach::Attached,
    fault::EngineFault,
    limits::{CONTROL_CALL, REMOVAL_ATTEMPT},
    transport::{TooLarge, Transport},
};

/// The oldest API spoken: Engine 20.10.
pub(super) const OLDEST_API: u32 = 41;
/// The newest API this client was written against.
const NEWEST_API: u32 = 53;
/// The API that can inspect an image for one platform.
pub(super) const PLATFORM_API: u32 = 49;

/// How far back the engine is asked for what it told; above any container's life.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// What the engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// `os/arch`, as it runs containers natively.
    pub(super) platform: String,
    /// The minor version of the API that is spoken from now on.
    pub(super) minor: u32,
}

/// A client of the engine behind one socket.
#[derive(Clone)]
pub(super) struct Engine {
    docker: Docker,
    transport: Arc<Transport>,
}

type Called<T> = Result<T, EngineFault>;

impl Engine {
    /// A client; connects to nothing.
    pub(super) fn new(socket: PathBuf) -> Called<Engine> {
        let transport = Transport::new(socket);
        let carrier = Arc::clone(&transport);
        let docker = Docker::connect_with_custom_transport(
            move |request| Arc::clone(&carrier).send(request),
            Some("http://docker"),
            // Every call has a bound of its own; a wait lasts as long as a run.
            24 * 60 * 60,
            &ClientVersion {
                major_version: 1,
                minor_version: OLDEST_API as usize,
            },
        )
        .map_err(fault)?;
        Ok(Engine { docker, transport })
    }

    /// Asks for the versions and speaks the newest both sides know.
    pub(super) async fn negotiate(&self) -> Called<Version> {
        let said = bounded(CONTROL_CALL, self.docker.version()).await?;
        let minor =
            |version: Option<&String>| -> Option<u32> { version?.strip_prefix("1.")?.parse().ok() };
        let newest = minor(said.api_version.as_ref())
            .ok_or_else(|| EngineFault::Malformed("it names no version of its API".to_owned()))?;
        let oldest = minor(said.min_api_version.as_ref()).unwrap_or(0);
        if newest < OLDEST_API || oldest > NEWEST_API {
            return Err(EngineFault::Malformed(format!(
                "it speaks API 1.{oldest} to 1.{newest}, and 1.{OLDEST_API} to 1.{NEWEST_API} is needed"
            )));
        }
        let minor = newest.min(NEWEST_API);
        self.transport.speak(minor);
        let (Some(os), Some(arch)) = (said.os, said.arch) else {
            return Err(EngineFault::Malformed("it names no platform".to_owned()));
        };
        Ok(Version {
            platform: format!("{os}/{arch}"),
            minor,
        })
    }

    pub(super) async fn info(&self) -> Called<SystemInfo> {
        bounded(CONTROL_CALL, self.docker.info()).await
    }

    /// One inspect gives the identity, the volumes and the environment, so that
    /// a tag cannot move between them. Never pulls.
    pub(super) async fn image(&self, reference: &str) -> Called<ImageInspect> {
        bounded(CONTROL_CALL, self.docker.inspect_image(reference)).await
    }

    /// The image as it is for one platform; `Ok(None)` when this engine does
    /// not answer that question.
    pub(super) async fn image_on(&self, id: &str, platform: &str) -> Called<Option<ImageInspect>> {
        if self.transport.minor() < PLATFORM_API {
            return Ok(None);
        }
        let Some((os, rest)) = platform.split_once('/') else {
            return Ok(None);
        };
        let (arch, variant) = rest.split_once('/').unwrap_or((rest, ""));
        let wanted = serde_json::json!({"os": os, "architecture": arch, "variant": variant});
        let query: String = percent(&wanted.to_string());
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("http://docker/images/{id}/json?platform={query}"))
            .body(Either::Left(Full::default()))
            .map_err(|error| EngineFault::Malformed(error.to_string()))?;
        let sent = Arc::clone(&self.transport).send(request);
        let answer = async {
            let answer = sent.await?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await?.to_bytes();
            Ok((status, body))
        };
        match bounded(CONTROL_CALL, answer).await? {
            (200, body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| EngineFault::Malformed(error.to_string())),
            (400 | 404 | 501, _) => Ok(None),
            (status, body) => Err(EngineFault::status(status, &String::from_utf8_lossy(&body))),
        }
    }

    /// Creates a container and returns its ID.
    pub(super) async fn create(
        &self,
        name: &str,
        platform: &str,
        body: ContainerCreateBody,
    ) -> Called<String> {
        let options = CreateContainerOptions {
            name: Some(name.to_owned()),
            platform: platform.to_owned(),
        };
        let created = self.docker.create_container(Some(options), body);
        Ok(bounded(CONTROL_CALL, created).await?.id)
    }

    pub(super) async fn inspect(&self, id: &str) -> Called<ContainerInspectResponse> {
        let asked = self
            .docker
            .inspect_container(id, None::<InspectContainerOptions>);
        bounded(CONTROL_CALL, asked).await
    }

    /// Attaches to all three streams; before the start, so that nothing of them
    /// is lost.
    pub(super) async fn attach(&self, id: &str) -> Called<Attached> {
        let options = AttachContainerOptionsBuilder::new()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let attached = self.docker.attach_container(id, Some(options));
        bounded(CONTROL_CALL, attached).await.map(Attached::new)
    }

    pub(super) async fn start(&self, id: &str) -> Called<()> {
        let started = self
            .docker
            .start_container(id, None::<StartContainerOptions>);
        bounded(CONTROL_CALL, started).await
    }

    /// Waits until a started container has stopped, and returns its exit code.
    /// Asked after the start, so that there is no exit it could miss.
    pub(super) async fn wait(&self, id: &str) -> Called<i64> {
        let options = WaitContainerOptionsBuilder::new()
            .condition("not-running")
            .build();
        let mut waited = Box::pin(self.docker.wait_container(id, Some(options)));
        match waited.next().await {
            Some(Ok(answer)) => match answer.error.and_then(|error| error.message) {
                Some(text) if !text.is_empty() => Err(EngineFault::Broken(text)),
                _ => Ok(answer.status_code),
            },
            // The client library makes an error of every status above zero.
            Some(Err(Error::DockerContainerWaitError { error, code })) if error.is_empty() => {
                Ok(code)
            }
            Some(Err(error)) => Err(fault(error)),
            None => Err(EngineFault::Broken(
                "it ended a wait without an answer".to_owned(),
            )),
        }
    }

    /// Ends when the engine tells, or has told and still remembers, that memory
    /// ran out in this container; never when it does not.
    pub(super) async fn memory_ran_out(&self, id: &str) {
        // Events are kept by number, not by age: the time only has to be past.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .saturating_sub(REMEMBERED);
        let filters = HashMap::from([
            ("type", vec!["container"]),
            ("container", vec![id]),
            ("event", vec!["oom"]),
        ]);
        let options = EventsOptionsBuilder::new()
            .since(&since.as_secs().to_string())
            .filters(&filters)
            .build();
        let mut events = self.docker.events(Some(options));
        while let Some(Ok(event)) = events.next().await {
            let of = event.actor.and_then(|actor| actor.id);
            if event.action.as_deref() == Some("oom") && of.as_deref() == Some(id) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// One attempt at removing a container, running or not.
    pub(super) async fn remove(&self, name: &str) -> Called<()> {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        bounded(
            REMOVAL_ATTEMPT,
            self.docker.remove_container(name, Some(options)),
        )
        .await
    }

    /// Whether no container has this name. An empty list is the only proof:
    /// neither a status nor an engine's words are.
    pub(super) async fn is_gone(&self, name: &str) -> Called<bool> {
        let pattern = format!("^/?{name}$");
        let found = self.list("name", pattern, REMOVAL_ATTEMPT).await?;
        Ok(found.is_empty())
    }

    /// Every container that has this label.
    pub(super) async fn labelled(&self, label: &str) -> Called<Vec<ContainerSummary>> {
        self.list("label", label.to_owned(), CONTROL_CALL).await
    }

    async fn list(
        &self,
        key: &str,
        value: String,
        bound: Duration,
    ) -> Called<Vec<ContainerSummary>> {
        let filters = HashMap::from([(key.to_owned(), vec![value])]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        bounded(bound, self.docker.list_containers(Some(options))).await
    }
}

async fn bounded<T>(
    bound: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, EngineFault> {
    match tokio::time::timeout(bound, call).await {
        Ok(answer) => answer.map_err(fault),
        Err(_) => Err(EngineFault::Timeout),
    }
}

/// What a failure of the client library means.
pub(super) fn fault(error: Error) -> EngineFault {
    match error {
        Error::DockerResponseServerError {
            status_code,
            message,
        } => EngineFault::status(status_code, &message),
        Error::IOError { err } if TooLarge::caused(&err) => EngineFault::TooLarge,
        Error::IOError { err } => EngineFault::of_connect(&err),
        Error::HyperResponseError { err } if TooLarge::caused(&err) => EngineFault::TooLarge,
        Error::HyperResponseError { err } => EngineFault::Broken(chain(&err)),
        Error::RequestTimeoutError => EngineFault::Timeout,
        Error::JsonDataError { message, .. } => EngineFault::Malformed(message),
        Error::JsonSerdeError { err } => EngineFault::Malformed(err.to_string()),
        other => EngineFault::Broken(other.to_string()),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Text as it may stand in a query.
fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
