//! TLS to an https daemon: ring, TLS 1.2 and 1.3, HTTP/1.1 only.

use std::{io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        CertificateError, ClientConfig, Error, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    base_url::Host,
    options::{ClientError, Trust},
    tls_fault::TlsFault,
};

/// Most certificates read of one PEM text.
const MAX_ROOTS: usize = 10_000;

#[derive(Clone)]
pub(crate) struct Connector(TlsConnector);

impl Connector {
    pub(crate) fn new(trust: &Trust) -> Result<Connector, ClientError> {
        let roots = match trust {
            Trust::Platform => platform()?,
            Trust::Pem(text) => pem(text)?,
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| ClientError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // One connection a call: a resumed session would only tie calls together.
        config.resumption = tokio_rustls::rustls::client::Resumption::disabled();
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }

    pub(crate) async fn connect(
        &self,
        host: &Host,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = match host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => {
                let name = name.strip_suffix('.').unwrap_or(name).to_owned();
                ServerName::try_from(name).map_err(io::Error::other)?
            }
        };
        self.0.connect(name, stream).await
    }
}

/// What a failed handshake says of the other side; `None` when the connection
/// itself broke.
pub(crate) fn fault(error: &io::Error) -> Option<TlsFault> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                TlsFault::Expired
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                TlsFault::NotYetValid
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsFault::WrongHost
            }
            // A namesake of a trusted authority that did not sign it is none.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                TlsFault::UnknownIssuer
            }
            _ => TlsFault::BadCertificate,
        },
        // What comes first from one who speaks TLS is a TLS record.
        Error::InvalidMessage(_) => TlsFault::Plaintext,
        _ => return None,
    })
}

fn platform() -> Result<RootCertStore, ClientError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(ClientError::NoRoots);
    }
    Ok(store)
}

fn pem(text: &[u8]) -> Result<RootCertStore, ClientError> {
    let mut store = RootCertStore::empty();
    for (i, certificate) in CertificateDer::pem_slice_iter(text)
        .take(MAX_ROOTS)
        .enumerate()
    {
        let certificate = certificate.map_err(|_| ClientError::NotPem)?;
        store
            .add(certificate)
            .map_err(|_| ClientError::BadRoot { number: i + 1 })?;
    }
    if store.is_empty() {
        return Err(ClientError::NotPem);
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_pem_certificates() {
        let error = |text: &str| Connector::new(&Trust::Pem(text.into())).err();
        assert_eq!(error(""), Some(ClientError::NotPem));
        assert_eq!(error("no pem at all"), Some(ClientError::NotPem));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(error(broken), Some(ClientError::BadRoot { number: 1 }));
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(error(key), Some(ClientError::NotPem));
        let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        assert_eq!(error(cut), Some(ClientError::NotPem));
    }
}
