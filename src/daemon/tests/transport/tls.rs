//! TLS: versions by ALPN, no clear text beside it, loading from PEM.

use std::{sync::Arc, time::Duration};

use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_daemon::transport::{
    Auth,
    tls::{self, PemFile, TlsError},
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, SupportedProtocolVersion,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
        version::{TLS12, TLS13},
    },
};

use crate::page::Served;
use crate::support::{
    Callers, Daemon,
    client::Wire,
    in_time,
    raw::{Raw, json},
    settings,
};

struct Pair {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

fn pair() -> Pair {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    Pair {
        certificate: cert.pem(),
        key: signing_key.serialize_pem(),
        der: cert.der().clone(),
    }
}

async fn daemon(pair: &Pair) -> Daemon {
    let mut settings = settings();
    settings.head = Duration::from_millis(500);
    let acceptor = tls::acceptor(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap();
    Daemon::with(settings, Auth::Lookup(Arc::new(Callers)), Some(acceptor)).await
}

async fn connect(
    daemon: &Daemon,
    pair: &Pair,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    connect_to(daemon.address, pair, versions, alpn).await
}

async fn connect_to(
    address: std::net::SocketAddr,
    pair: &Pair,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(pair.der.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    in_time(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

#[tokio::test]
async fn alpn_picks_the_version() {
    let pair = pair();
    let daemon = daemon(&pair).await;
    for version in [&TLS12, &TLS13] {
        for alpn in [&[&b"http/1.1"[..]][..], &[]] {
            let stream = connect(&daemon, &pair, &[version], alpn).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), alpn.first().copied());
            let mut raw = Raw::over(stream);
            raw.send(json("Run", "{}")).await;
            assert_eq!(raw.answer().await.status, 200);
        }
        let stream = connect(&daemon, &pair, &[version], &[b"h2", b"http/1.1"])
            .await
            .unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut send, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        let request = Wire::Grpc.request("Run", Wire::Grpc.run("1"), &[]);
        let answer = in_time(send.send_request(request)).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(daemon.fake.entered(), 6);
}

#[tokio::test]
async fn no_clear_text_on_a_tls_port_and_no_endless_handshake() {
    let pair = pair();
    let daemon = daemon(&pair).await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(json("Run", "{}")).await;
    let mut io = raw.into_io();
    let mut seen = Vec::new();
    let _ = in_time(tokio::io::AsyncReadExt::read_to_end(&mut io, &mut seen)).await;
    assert!(!seen.starts_with(b"HTTP"), "{seen:?}");
    // A client that says nothing, before the handshake and after it.
    let mut silent = Raw::connect(daemon.address).await;
    let time = silent.closed().await;
    assert!(time >= Duration::from_millis(350), "{time:?}");
    let stream = connect(&daemon, &pair, &[&TLS13], &[]).await.unwrap();
    let mut io = stream;
    let _ = in_time(tokio::io::AsyncReadExt::read_to_end(&mut io, &mut seen)).await;
    let no_common = connect(&daemon, &pair, &[&TLS13], &[b"spdy/3"]).await;
    assert!(no_common.is_err());
    assert_eq!(daemon.fake.entered(), 0);
}

#[test]
fn identities_are_loaded_or_named_as_the_fault() {
    let (good, other) = (pair(), pair());
    let read = |certificate: &str, key: &str| {
        tls::acceptor(certificate.as_bytes(), key.as_bytes())
            .err()
            .map(|e| format!("{e}"))
    };
    assert_eq!(read(&good.certificate, &good.key), None);
    let chain = format!("leaf\n{}{}", good.certificate, other.certificate);
    assert_eq!(read(&chain, &good.key), None);
    let bad_certificate = Some("the certificate file holds no usable PEM section".to_owned());
    let bad_key = Some("the key file holds no usable PEM section".to_owned());
    for text in ["", "x", &good.key, &good.certificate[..80]] {
        assert_eq!(read(text, &good.key), bad_certificate, "{text}");
    }
    for text in ["", "x", &good.certificate, &good.key[..60]] {
        assert_eq!(read(&good.certificate, text), bad_key, "{text}");
    }
    let swapped = tls::acceptor(good.certificate.as_bytes(), other.key.as_bytes());
    assert!(matches!(swapped, Err(TlsError::Pair(_))));

    let directory = std::env::temp_dir().join(format!("plimsoll-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (certificate, key) = (directory.join("c.pem"), directory.join("k.pem"));
    std::fs::write(&certificate, &good.certificate).unwrap();
    let missing = tls::load(&certificate, &key);
    assert!(matches!(
        missing,
        Err(TlsError::Read {
            file: PemFile::Key,
            ..
        })
    ));
    std::fs::write(&key, vec![b'x'; (1 << 20) + 1]).unwrap();
    let large = tls::load(&certificate, &key);
    assert!(matches!(
        large,
        Err(TlsError::TooLarge { file: PemFile::Key })
    ));
    std::fs::write(&key, &good.key).unwrap();
    assert!(tls::load(&certificate, &key).is_ok());
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The metrics listener speaks what the other does.
#[tokio::test]
async fn a_page_is_served_over_tls_too() {
    let pair = pair();
    let acceptor = tls::acceptor(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap();
    let served = Served::start(plimsoll_daemon::transport::Settings::page(), Some(acceptor)).await;
    let get = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    let stream = connect_to(served.address, &pair, &[&TLS13], &[b"http/1.1"]).await;
    let mut raw = Raw::over(stream.unwrap());
    raw.send(get).await;
    assert_eq!(raw.answer().await.text(), "a 1\n");
    let stream = connect_to(served.address, &pair, &[&TLS12], &[b"h2"]).await;
    assert_eq!(
        stream.unwrap().get_ref().1.alpn_protocol(),
        Some(&b"h2"[..])
    );
    // No clear text beside it.
    let mut raw = Raw::connect(served.address).await;
    raw.send(get).await;
    let (mut io, mut seen) = (raw.into_io(), Vec::new());
    let _ = in_time(tokio::io::AsyncReadExt::read_to_end(&mut io, &mut seen)).await;
    assert!(!seen.starts_with(b"HTTP"));
}

/// The hello of a client that knows no version above 3.`minor`, which is TLS 1.2
/// for 3; all else in it is what this server takes.
fn hello(minor: u8) -> Vec<u8> {
    // ECDSA with SHA-256 on P-256, which is also the group.
    let extensions: [&[u8]; 3] = [
        b"\x00\x0d\x00\x04\x00\x02\x04\x03",
        b"\x00\x0a\x00\x04\x00\x02\x00\x17",
        b"\x00\x0b\x00\x02\x01\x00",
    ];
    let extensions = extensions.concat();
    let mut hello = vec![3, minor];
    hello.extend([7; 32]);
    // No session, one suite, no compression.
    hello.extend(b"\x00\x00\x02\xc0\x2b\x01\x00\x00");
    hello.push(u8::try_from(extensions.len()).unwrap());
    hello.extend(extensions);
    let length = u8::try_from(hello.len()).unwrap();
    let handshake = [&[1, 0, 0, length][..], &hello].concat();
    [&[0x16, 3, 1, 0, length + 4][..], &handshake].concat()
}

/// TLS 1.1 and older end with the alert that says why, on both listeners.
#[tokio::test]
async fn no_version_before_1_2() {
    let pair = pair();
    let daemon = daemon(&pair).await;
    let acceptor = tls::acceptor(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap();
    let mut settings = plimsoll_daemon::transport::Settings::page();
    settings.head = Duration::from_millis(500);
    let page = Served::start(settings, Some(acceptor)).await;
    for address in [daemon.address, page.address] {
        for (minor, taken) in [(0, false), (1, false), (2, false), (3, true)] {
            let mut raw = Raw::connect(address).await;
            raw.send(hello(minor)).await;
            let (mut io, mut seen) = (raw.into_io(), Vec::new());
            // A handshake that goes on is cut when its time is over.
            let _ = in_time(tokio::io::AsyncReadExt::read_to_end(&mut io, &mut seen)).await;
            // A handshake message, or the fatal alert protocol_version.
            let first = if taken { 0x16 } else { 0x15 };
            assert_eq!(seen.first(), Some(&first), "{minor}: {seen:?}");
            assert_eq!(seen.ends_with(&[2, 70]), !taken, "{minor}: {seen:?}");
        }
    }
}
