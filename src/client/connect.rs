//! From a base URL to an open byte stream. No byte of a request leaves here.

use std::{io, net::SocketAddr, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    time::sleep,
};

use crate::{
    base_url::{BaseUrl, Host},
    tls_fault::TlsFault,
};

/// Addresses tried of one name.
const MAX_ADDRESSES: usize = 16;

/// How long one address is tried alone before the next is tried beside it, so
/// that one silent address does not eat the whole budget (as RFC 8305 does).
const STAGGER: Duration = Duration::from_millis(250);

/// An open connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why no connection stands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("no connection to {base}: {error}")]
    Connect { base: String, error: io::Error },
    #[error("the name {host} was not found: {error}")]
    Lookup { host: String, error: io::Error },
    #[error("the name {host} leads to no loopback address; cleartext goes nowhere else")]
    NotLoopback { host: String },
    #[cfg_attr(not(feature = "tls"), allow(dead_code))]
    #[error("no TLS connection to {base}: {}", told(.fault.as_ref(), error))]
    Tls {
        base: String,
        error: io::Error,
        fault: Option<TlsFault>,
    },
}

/// A fault of the other side in our words; the system's where the connection broke.
fn told(fault: Option<&TlsFault>, error: &io::Error) -> String {
    fault.map_or_else(|| error.to_string(), ToString::to_string)
}

impl ConnectError {
    /// What is wrong with the other side of a TLS connection.
    pub(crate) fn tls(&self) -> Option<TlsFault> {
        match self {
            ConnectError::Tls { fault, .. } => *fault,
            _ => None,
        }
    }
}

/// How connections are encrypted, where they are.
#[derive(Clone)]
pub(crate) enum Security {
    Cleartext,
    #[cfg(feature = "tls")]
    Tls(crate::tls::Connector),
}

pub(crate) async fn open(
    base: &BaseUrl,
    security: &Security,
) -> Result<Box<dyn Stream>, ConnectError> {
    let addresses = addresses(base).await?;
    let stream = connect_any(addresses)
        .await
        .map_err(|error| ConnectError::Connect {
            base: base.to_string(),
            error,
        })?;
    // Only latency is lost when this fails.
    let _ = stream.set_nodelay(true);
    match security {
        Security::Cleartext => Ok(Box::new(stream)),
        #[cfg(feature = "tls")]
        Security::Tls(connector) => match connector.connect(base.host(), stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(ConnectError::Tls {
                base: base.to_string(),
                fault: crate::tls::fault(&error),
                error,
            }),
        },
    }
}

async fn addresses(base: &BaseUrl) -> Result<Vec<SocketAddr>, ConnectError> {
    let name = match base.host() {
        Host::Address(address) => return Ok(vec![SocketAddr::new(*address, base.port())]),
        Host::Name(name) => name,
    };
    let found = lookup_host((name.as_str(), base.port()))
        .await
        .map_err(|error| ConnectError::Lookup {
            host: name.clone(),
            error,
        })?;
    let loopback_only = base.is_loopback_only();
    let addresses = usable(found, loopback_only);
    if addresses.is_empty() && loopback_only {
        return Err(ConnectError::NotLoopback { host: name.clone() });
    }
    Ok(addresses)
}

/// The addresses of a name that may be connected to: what the name
/// `localhost` means is up to whoever answers lookups.
fn usable(found: impl Iterator<Item = SocketAddr>, loopback_only: bool) -> Vec<SocketAddr> {
    found
        .filter(|address| !loopback_only || address.ip().is_loopback())
        .take(MAX_ADDRESSES)
        .collect()
}

async fn connect_any(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut next = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match next.next() {
            Some(address) => attempts.push(TcpStream::connect(address)),
            None if attempts.is_empty() => return Err(last),
            None => {}
        }
        tokio::select! {
            biased;
            Some(result) = attempts.next() => match result {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            },
            () = sleep(STAGGER), if next.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_next_address_is_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (open, shut) = (listener.local_addr().unwrap(), closed.local_addr().unwrap());
        drop(closed);
        let stream = connect_any(vec![shut, open]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        let error = connect_any(vec![shut, shut]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(connect_any(Vec::new()).await.is_err());
    }

    #[test]
    fn cleartext_goes_where_localhost_leads_only_if_that_is_here() {
        let found = ["192.0.2.1:1", "127.0.0.1:1", "[2001:db8::1]:1", "[::1]:1"]
            .map(|text| text.parse::<SocketAddr>().unwrap());
        assert_eq!(usable(found.into_iter(), true), [found[1], found[3]]);
        assert_eq!(usable(found.into_iter(), false), found);
        let many = std::iter::repeat_n(found[1], 1000);
        assert_eq!(usable(many, true).len(), MAX_ADDRESSES);
        assert!(
            BaseUrl::parse("http://localhost")
                .unwrap()
                .is_loopback_only()
        );
        let insecure = BaseUrl::parse_insecure("http://localhost").unwrap();
        assert!(!insecure.is_loopback_only());
    }
}
