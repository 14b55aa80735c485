//! An engine for tests: the Engine API on a Unix socket, over processes of this
//! host. It really executes, and does wrong what a test tells it to.

use std::{
    collections::HashMap,
    io::{Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
    sync::{mpsc, watch},
};

/// The identity of the one image there is.
pub(super) const IMAGE: &str =
    "sha256:1111111111111111111111111111111111111111111111111111111111111111";
/// Words of the engine that no caller may see.
pub(super) const SECRET: &str = "SECRET-OF-THE-ENGINE";
/// What that image gives its containers.
const ENVIRONMENT: [&str; 2] = ["PATH=/usr/bin:/bin", "FROM_IMAGE=yes"];

/// What goes wrong at a route.
#[derive(Clone, Debug)]
pub(super) enum Wrong {
    /// It answers this status.
    Status(u16),
    /// It closes the connection.
    Close,
    /// It answers what is no JSON.
    Garbage,
    /// It answers without end.
    Huge,
    /// It does the work and answers only when told to go on.
    Held,
}

/// A container.
struct Container {
    name: String,
    body: Value,
    input: Option<mpsc::Receiver<Vec<u8>>>,
    output: Option<mpsc::Sender<Vec<u8>>>,
    pid: Option<u32>,
    exit: watch::Sender<Option<i64>>,
    cut: watch::Sender<bool>,
}

#[derive(Default)]
struct World {
    containers: HashMap<String, Container>,
    wrong: HashMap<&'static str, Wrong>,
    /// Merged into answers: route, JSON pointer's parent and key.
    changes: Vec<(&'static str, String, Value)>,
    asked: Vec<String>,
    made: usize,
}

pub(super) struct FakeEngine {
    directory: TempDir,
    world: Arc<Mutex<World>>,
    go_on: watch::Sender<bool>,
    /// Changes whenever a request has been answered or held.
    pub(super) seen: watch::Receiver<usize>,
}

type Answer = Response<Full<Bytes>>;

impl FakeEngine {
    pub(super) fn start() -> FakeEngine {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("engine.sock")).unwrap();
        let world: Arc<Mutex<World>> = Arc::default();
        let (go_on, wait) = watch::channel(false);
        let (tell, seen) = watch::channel(0);
        let tell = Arc::new((tell, AtomicUsize::new(0)));
        let served = Arc::clone(&world);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (world, wait, tell) = (Arc::clone(&served), wait.clone(), Arc::clone(&tell));
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let (world, wait, tell) =
                            (Arc::clone(&world), wait.clone(), Arc::clone(&tell));
                        async move {
                            let answer = answer(&world, request, wait, &tell.0, &tell.1).await;
                            tell.0
                                .send_replace(tell.1.fetch_add(1, Ordering::SeqCst) + 1);
                            answer.ok_or_else(|| std::io::Error::other("closed"))
                        }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .with_upgrades()
                        .await;
                });
            }
        });
        FakeEngine {
            directory,
            world,
            go_on,
            seen,
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory.path().join("engine.sock")
    }

    pub(super) fn gone(&self) -> PathBuf {
        self.directory.path().join("gone.sock")
    }

    /// From now on `route` does this.
    pub(super) fn wrong(&self, route: &'static str, wrong: Wrong) {
        self.world().wrong.insert(route, wrong);
    }

    pub(super) fn right(&self, route: &'static str) {
        self.world().wrong.remove(route);
    }

    /// From now on answers of `route` have this value at a JSON pointer.
    pub(super) fn change(&self, route: &'static str, pointer: &str, value: Value) {
        self.world()
            .changes
            .push((route, pointer.to_owned(), value));
    }

    /// Ends every attached stream cleanly; the containers run on.
    pub(super) fn cut(&self) {
        for container in self.world().containers.values() {
            container.cut.send_replace(true);
        }
    }

    /// Lets held answers go.
    pub(super) fn go_on(&self) {
        self.go_on.send_replace(true);
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.world()
            .containers
            .values()
            .map(|c| c.name.clone())
            .collect()
    }

    pub(super) fn made(&self) -> usize {
        self.world().made
    }

    /// Whether a route was asked since the fake began.
    pub(super) fn was_asked(&self, route: &str) -> bool {
        self.world().asked.iter().any(|asked| asked == route)
    }

    /// Waits until a route was asked.
    pub(super) async fn asked(&self, route: &str) {
        let mut seen = self.seen.clone();
        tokio::time::timeout(Duration::from_secs(20), async {
            while !self.was_asked(route) {
                seen.changed().await.unwrap();
            }
        })
        .await
        .expect("the route was never asked");
    }

    /// Waits until it has no container.
    pub(super) async fn emptied(&self) {
        let mut seen = self.seen.clone();
        tokio::time::timeout(Duration::from_secs(20), async {
            while !self.names().is_empty() {
                seen.changed().await.unwrap();
            }
        })
        .await
        .expect("a container stayed");
    }

    /// Puts a container there that nobody made through this engine's socket.
    pub(super) fn leave(&self, name: &str, labels: Value) {
        let id = format!("left-{name}");
        let container = Container {
            name: name.to_owned(),
            body: json!({"Labels": labels}),
            input: None,
            output: None,
            pid: None,
            exit: watch::channel(None).0,
            cut: watch::channel(false).0,
        };
        self.world().containers.insert(id, container);
    }
}

/// The name tests know a request by.
fn route(method: &Method, path: &str) -> &'static str {
    let path = path.trim_start_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let parts = match parts.as_slice() {
        [version, rest @ ..] if version.starts_with("v1.") => rest.to_vec(),
        all => all.to_vec(),
    };
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["version"]) => "version",
        ("GET", ["info"]) => "info",
        ("GET", ["events"]) => "events",
        ("GET", ["images", .., "json"]) => "image",
        ("POST", ["containers", "create"]) => "create",
        ("GET", ["containers", "json"]) => "list",
        ("GET", ["containers", _, "json"]) => "inspect",
        ("POST", ["containers", _, "attach"]) => "attach",
        ("POST", ["containers", _, "start"]) => "start",
        ("POST", ["containers", _, "wait"]) => "wait",
        ("DELETE", ["containers", _]) => "remove",
        _ => "unknown",
    }
}

async fn answer(
    world: &Arc<Mutex<World>>,
    request: Request<Incoming>,
    mut wait: watch::Receiver<bool>,
    tell: &watch::Sender<usize>,
    count: &AtomicUsize,
) -> Option<Answer> {
    let path = request.uri().path().to_owned();
    let mut route = route(request.method(), &path);
    if route == "image"
        && request
            .uri()
            .query()
            .is_some_and(|q| q.contains("platform"))
    {
        route = "image-on";
    }
    let wrong = {
        let mut world = world.lock().unwrap();
        world.asked.push(route.to_owned());
        world.wrong.get(route).cloned()
    };
    tell.send_replace(count.fetch_add(1, Ordering::SeqCst) + 1);
    match wrong {
        Some(Wrong::Status(status)) => {
            let body = json!({"message": SECRET}).to_string();
            return Some(of(StatusCode::from_u16(status).unwrap(), body));
        }
        Some(Wrong::Close) => return None,
        Some(Wrong::Garbage) => return Some(of(StatusCode::OK, format!("{{{SECRET}"))),
        Some(Wrong::Huge) => return Some(of(StatusCode::OK, " ".repeat(5 << 20))),
        Some(Wrong::Held) | None => {}
    }
    let held = matches!(wrong, Some(Wrong::Held));
    let answer = handle(world, route, request).await;
    if held {
        wait.wait_for(|go| *go).await.ok()?;
    }
    Some(answer)
}

fn of(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

fn missing() -> Answer {
    of(
        StatusCode::NOT_FOUND,
        json!({"message": "no such thing"}).to_string(),
    )
}

async fn handle(
    world: &Arc<Mutex<World>>,
    route: &'static str,
    request: Request<Incoming>,
) -> Answer {
    let path = request.uri().path().to_owned();
    let id = path
        .split('/')
        .skip_while(|part| *part != "containers")
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    match route {
        "version" => changed(
            world,
            route,
            json!({"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Os": "linux", "Arch": "amd64"}),
        ),
        "info" => changed(
            world,
            route,
            json!({"DefaultRuntime": "runc", "Runtimes": {"runc": {"path": "runc"}, "runsc": {"path": "/usr/bin/runsc"}}}),
        ),
        "image" | "image-on" => changed(
            world,
            route,
            json!({
                "Id": IMAGE, "Os": "linux", "Architecture": "amd64",
                "Descriptor": {"digest": IMAGE, "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1},
                "Config": {"Env": ENVIRONMENT},
            }),
        ),
        "events" => {
            let of = world
                .lock()
                .unwrap()
                .containers
                .keys()
                .find(|id| query.contains(*id))
                .cloned();
            let told = json!({"Type": "container", "Action": "die", "Actor": {"ID": of}});
            changed(world, route, told)
        }
        "create" => {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let name = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("name="))
                .unwrap()
                .to_owned();
            let mut world = world.lock().unwrap();
            world.made += 1;
            let id = format!("{:064x}", world.made);
            let container = Container {
                name,
                body,
                input: None,
                output: None,
                pid: None,
                exit: watch::channel(None).0,
                cut: watch::channel(false).0,
            };
            world.containers.insert(id.clone(), container);
            of(
                StatusCode::CREATED,
                json!({"Id": id, "Warnings": []}).to_string(),
            )
        }
        "inspect" => {
            let Some(found) = inspected(world, &id) else {
                return missing();
            };
            changed(world, route, found)
        }
        "attach" => attach(world, &id, request),
        "start" => start(world, &id),
        "wait" => {
            let exit = world
                .lock()
                .unwrap()
                .containers
                .get(&id)
                .map(|c| c.exit.subscribe());
            let Some(mut exit) = exit else {
                return missing();
            };
            let code = match exit.wait_for(Option::is_some).await {
                Ok(code) => code.unwrap(),
                Err(_) => return missing(),
            };
            of(StatusCode::OK, json!({"StatusCode": code}).to_string())
        }
        "remove" => {
            let mut world = world.lock().unwrap();
            let found = world
                .containers
                .iter()
                .find(|(own, container)| **own == id || container.name == id)
                .map(|(own, _)| own.clone());
            match found.and_then(|id| world.containers.remove(&id)) {
                Some(container) => {
                    if let Some(pid) = container.pid.filter(|_| container.exit.borrow().is_none()) {
                        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
                        let _ =
                            rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
                    }
                    of(StatusCode::NO_CONTENT, "")
                }
                None => missing(),
            }
        }
        "list" => {
            let world = world.lock().unwrap();
            let listed: Vec<Value> = world
                .containers
                .iter()
                .filter(|(_, c)| !query.contains("name") || query.contains(&c.name))
                .map(|(id, c)| json!({"Id": id, "Names": [format!("/{}", c.name)], "Labels": c.body["Labels"]}))
                .collect();
            of(StatusCode::OK, Value::from(listed).to_string())
        }
        _ => missing(),
    }
}

fn changed(world: &Arc<Mutex<World>>, route: &str, mut value: Value) -> Answer {
    for (at, pointer, new) in &world.lock().unwrap().changes {
        if *at == route {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap()[key] = new.clone();
        }
    }
    of(StatusCode::OK, value.to_string())
}

fn inspected(world: &Arc<Mutex<World>>, id: &str) -> Option<Value> {
    let world = world.lock().unwrap();
    let container = world.containers.get(id)?;
    let mut config = container.body.clone();
    let mut host = config.as_object_mut()?.remove("HostConfig")?;
    // What a real one fills in.
    config["Env"] = json!(ENVIRONMENT);
    config["Hostname"] = json!(id.get(..12)?);
    if host["Runtime"].is_null() {
        host["Runtime"] = json!("runc");
    }
    let mounts: Vec<Value> = host["Mounts"]
        .as_array()?
        .iter()
        .map(|mount| {
            json!({"Type": mount["Type"], "Source": mount["Source"], "Destination": mount["Target"],
                   "Mode": "", "RW": mount["ReadOnly"] != json!(true), "Propagation": "rprivate"})
        })
        .collect();
    let exit = *container.exit.borrow();
    Some(json!({
        "Id": id, "Image": container.body["Image"], "Config": config, "HostConfig": host,
        "Mounts": mounts, "NetworkSettings": {"Networks": {"none": {}}},
        "State": {"Running": container.pid.is_some() && exit.is_none(), "Paused": false,
                  "OOMKilled": false, "Pid": container.pid, "StartedAt": "2026-01-01T00:00:00Z", "ExitCode": exit.unwrap_or(0)},
    }))
}

fn attach(world: &Arc<Mutex<World>>, id: &str, mut request: Request<Incoming>) -> Answer {
    let (feed, input) = mpsc::channel(16);
    let (output, mut written) = mpsc::channel::<Vec<u8>>(16);
    let mut cut = match world.lock().unwrap().containers.get_mut(id) {
        Some(container) => {
            container.input = Some(input);
            container.output = Some(output);
            container.cut.subscribe()
        }
        None => return missing(),
    };
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(stream) = upgraded.await else { return };
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(stream));
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = reader.read(&mut buffer).await {
                if feed.send(buffer[..count].to_vec()).await.is_err() {
                    break;
                }
            }
        });
        loop {
            let frame = tokio::select! {
                frame = written.recv() => frame,
                _ = cut.wait_for(|cut| *cut) => None,
            };
            let Some(frame) = frame else { break };
            if writer.write_all(&frame).await.is_err() {
                break;
            }
        }
        let _ = writer.shutdown().await;
    });
    let mut response = of(StatusCode::SWITCHING_PROTOCOLS, "");
    response
        .headers_mut()
        .insert("connection", "Upgrade".parse().unwrap());
    response
        .headers_mut()
        .insert("upgrade", "tcp".parse().unwrap());
    response
}

/// Starts a container's process here; a shell stands in for Node.js.
fn start(world: &Arc<Mutex<World>>, id: &str) -> Answer {
    let mut held = world.lock().unwrap();
    let Some(container) = held.containers.get_mut(id) else {
        return missing();
    };
    let words = |key: &str| -> Vec<String> {
        let list = container.body[key].as_array().unwrap();
        list.iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut arguments = [words("Entrypoint"), words("Cmd")].concat();
    if arguments.ends_with(&["node".to_owned(), "-".to_owned()]) {
        arguments.truncate(arguments.len() - 2);
        arguments.push("/bin/sh".to_owned());
    }
    let mut child = Command::new(&arguments[0])
        .args(&arguments[1..])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    container.pid = Some(child.id());
    let (input, output) = (container.input.take(), container.output.take());
    let exit = container.exit.clone();
    drop(held);
    let mut stdin = child.stdin.take().unwrap();
    thread::spawn(move || {
        let mut input = input;
        while let Some(bytes) = input.as_mut().and_then(mpsc::Receiver::blocking_recv) {
            if stdin.write_all(&bytes).is_err() {
                break;
            }
        }
    });
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let other = output.clone();
    let attached = output.clone();
    let pumps = [
        thread::spawn(move || pump(1, out, output)),
        thread::spawn(move || pump(2, err, other)),
    ];
    thread::spawn(move || {
        let status = child.wait().unwrap();
        for pump in pumps {
            pump.join().unwrap();
        }
        let code = status.code().or(status.signal().map(|n| 128 + n));
        exit.send_replace(Some(code.unwrap_or(-1).into()));
        // As the real one: the attached stream ends after the exit is known.
        drop(attached);
    });
    of(StatusCode::NO_CONTENT, "")
}

fn pump(stream: u8, mut from: impl Read, to: Option<mpsc::Sender<Vec<u8>>>) {
    let mut buffer = vec![0; 32 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut frame = vec![stream, 0, 0, 0];
        frame.extend_from_slice(&u32::try_from(count).unwrap().to_be_bytes());
        frame.extend_from_slice(&buffer[..count]);
        if to
            .as_ref()
            .is_none_or(|to| to.blocking_send(frame).is_err())
        {
            break;
        }
    }
}
