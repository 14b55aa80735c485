//! A daemon that answers what a test tells it to, over loopback, byte by byte.
#![allow(dead_code)]

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use plimsoll_client::{BaseUrl, Client, Options};
use plimsoll_wire::proto::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A request as the fake read it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// 0-based number among the fake's requests.
    pub number: usize,
    pub method: String,
    pub path: String,
    /// By lower-case name.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Seen {
    /// The procedure asked for.
    pub fn procedure(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }

    pub fn request_id(&self) -> &str {
        &self.headers["plimsoll-request-id"]
    }

    pub fn message<M: Message>(&self) -> M {
        plimsoll_wire::proto::decode(&self.body).unwrap()
    }
}

/// Which request ID an answer states.
#[derive(Clone, Debug, Default)]
pub enum Echo {
    #[default]
    Right,
    None,
    Twice,
    Is(String),
}

/// What the fake does with a request.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub echo: Echo,
    /// Write only this many bytes of the answer, then close.
    pub cut: Option<usize>,
    /// Write nothing and keep the connection open.
    pub hang: bool,
}

impl Reply {
    /// A success with this message.
    pub fn proto(message: &impl Message) -> Reply {
        Reply::bytes(message.encode_to_vec())
    }

    /// A success with this body.
    pub fn bytes(body: Vec<u8>) -> Reply {
        Reply {
            status: 200,
            body,
            ..Default::default()
        }
        .header("content-type", "application/proto")
    }

    /// An error with this body.
    pub fn error(status: u16, body: &str) -> Reply {
        Reply {
            status,
            body: body.into(),
            ..Default::default()
        }
        .header("content-type", "application/json")
    }

    /// Closes without a byte.
    pub fn drop_connection() -> Reply {
        Reply {
            status: 200,
            cut: Some(0),
            ..Default::default()
        }
    }

    /// Never answers.
    pub fn hang() -> Reply {
        Reply {
            hang: true,
            ..Default::default()
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn echo(mut self, echo: Echo) -> Reply {
        self.echo = echo;
        self
    }

    pub fn cut(mut self, at: usize) -> Reply {
        self.cut = Some(at);
        self
    }

    /// The whole answer to a request of this ID.
    pub fn to_bytes(&self, id: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
        if !self
            .headers
            .iter()
            .any(|(name, _)| name == "content-length")
        {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let echo = |id: &str| format!("plimsoll-request-id: {id}\r\n");
        match &self.echo {
            Echo::Right => head += &echo(id),
            Echo::None => {}
            Echo::Twice => head += &echo(id).repeat(2),
            Echo::Is(other) => head += &echo(other),
        }
        head += "\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// A running fake; it ends when it is dropped.
pub struct Fake {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// Starts a fake that answers each request with what `handler` says.
    pub async fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Fake {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let handler = Arc::new(handler);
        let log = Arc::clone(&seen);
        let mut fake = Self::raw(move |mut stream| {
            let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
            async move {
                let Some(mut request) = read_request(&mut stream).await else {
                    return;
                };
                {
                    let mut log = log.lock().unwrap();
                    request.number = log.len();
                    log.push(request.clone());
                }
                let reply = handler(&request);
                if reply.hang {
                    std::future::pending::<()>().await;
                }
                let id = request.headers.get("plimsoll-request-id");
                let bytes = reply.to_bytes(id.map_or("", String::as_str));
                let end = reply.cut.unwrap_or(bytes.len());
                let _ = stream.write_all(&bytes[..end]).await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        fake.seen = seen;
        fake
    }

    /// Starts a fake that hands each connection to `handler`.
    pub async fn raw<F>(handler: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Fake
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                tasks.spawn(handler(stream));
            }
        });
        Fake {
            port,
            seen: Arc::default(),
            connections,
            task,
        }
    }

    /// The requests read so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn options(&self) -> Options {
        let base = format!("http://127.0.0.1:{}", self.port);
        Options::new(BaseUrl::parse(&base).unwrap())
    }

    pub fn client(&self) -> Client {
        Client::new(self.options()).unwrap()
    }
}

/// Reads one request; `None` when the peer closes before it is whole.
pub async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |l| l.parse().unwrap());
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen {
        number: 0,
        method,
        path,
        headers,
        body,
    })
}
