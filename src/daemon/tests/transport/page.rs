//! The listener of one page: nothing else there, and the same care.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use plimsoll_daemon::transport::{Ended, Page, Server, Settings};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

use crate::support::{in_time, raw::Raw};

/// A page that is being served.
pub struct Served {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Ended>,
}

impl Served {
    pub async fn start(settings: Settings, tls: Option<TlsAcceptor>) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::over(listener, settings, tls)
    }

    fn over(listener: TcpListener, settings: Settings, tls: Option<TlsAcceptor>) -> Served {
        let server = Server::new(listener).unwrap();
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let page = Page::new("/metrics", "text/plain; version=0.0.4", || "a 1\n".into());
        let ended = tokio::spawn(server.serve_page(page, tls, settings, Arc::new(()), async {
            let _ = stopped.await;
        }));
        Served {
            address,
            stop,
            ended,
        }
    }

    async fn end(self) -> Ended {
        self.stop.send(()).unwrap();
        in_time(self.ended).await.unwrap()
    }
}

fn get(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n")
}

#[tokio::test]
async fn one_page_and_nothing_else() {
    let served = Served::start(Settings::page(), None).await;
    let mut raw = Raw::connect(served.address).await;
    for (request, status, body) in [
        (get("GET", "/metrics", ""), 200, "a 1\n"),
        (get("GET", "/metrics?x=1", ""), 200, "a 1\n"),
        (get("GET", "/", ""), 404, "not found\n"),
        (get("GET", "/metrics/", ""), 404, "not found\n"),
        (get("GET", "/healthz", ""), 404, "not found\n"),
        (get("OPTIONS", "*", ""), 404, "not found\n"),
        (get("DELETE", "/metrics", ""), 405, ""),
    ] {
        raw.send(&request).await;
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.text()), (status, body), "{request}");
        assert!(!answer.closes(), "{request}");
        // It is no listener of calls: it says nothing of dispatch.
        assert_eq!(answer.mark(), "");
    }
    let ended = served.end().await;
    assert!(ended.failure.is_none());
}

/// A body is not waited for, on this listener neither.
#[tokio::test]
async fn a_withheld_body_holds_nothing() {
    let served = Served::start(Settings::page(), None).await;
    for more in [
        "Content-Length: 100\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    ] {
        for method in ["GET", "POST"] {
            let mut raw = Raw::connect(served.address).await;
            raw.send(get(method, "/metrics", more)).await;
            let answer = raw.answer().await;
            assert!(answer.closes(), "{method} {more}");
            raw.closed().await;
        }
    }
}

#[tokio::test]
async fn its_places_are_bounded() {
    let mut settings = Settings::page();
    settings.connection_cap = Some(2);
    settings.head = Duration::from_millis(500);
    let served = Served::start(settings, None).await;
    let mut silent = Raw::connect(served.address).await;
    let _also = Raw::connect(served.address).await;
    let mut third = Raw::connect(served.address).await;
    third.send(get("GET", "/metrics", "")).await;
    assert_eq!(third.answer().await.status, 200);
    silent.closed().await;
}

/// What the kernel says of the listening socket ends it, with its error.
#[tokio::test]
async fn a_listener_that_fails_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Both are one socket.
    let other = rustix::io::dup(&listener).unwrap();
    let served = Served::over(listener, Settings::page(), None);
    let mut raw = Raw::connect(served.address).await;
    raw.send(get("GET", "/metrics", "")).await;
    assert_eq!(raw.answer().await.status, 200);
    rustix::net::shutdown(&other, rustix::net::Shutdown::Both).unwrap();
    let ended = in_time(served.ended).await.unwrap();
    assert!(ended.failure.is_some());
}
