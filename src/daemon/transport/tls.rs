//! The TLS identity of a listener, loaded from PEM.

use std::{fs, io, path::Path, sync::Arc};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    },
};

/// The largest certificate or key file read.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Why a TLS identity could not be loaded. `file` says whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("the {file} cannot be read: {error}")]
    Read {
        /// Which of the two.
        file: PemFile,
        /// The system's words.
        #[source]
        error: io::Error,
    },
    /// A file is larger than 1 MiB.
    #[error("the {file} is larger than 1 MiB")]
    TooLarge {
        /// Which of the two.
        file: PemFile,
    },
    /// A file is not PEM, or holds nothing of its kind.
    #[error("the {file} holds no usable PEM section")]
    NotPem {
        /// Which of the two.
        file: PemFile,
    },
    /// Certificate and key do not fit, or the key's kind is not supported.
    #[error("certificate and key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

/// The two files of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemFile {
    /// The certificate chain, leaf first.
    Certificate,
    /// The private key: PKCS #8, PKCS #1 or SEC 1.
    Key,
}

impl std::fmt::Display for PemFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PemFile::Certificate => "certificate file",
            PemFile::Key => "key file",
        })
    }
}

/// Loads an identity from two PEM files of at most 1 MiB each.
///
/// # Errors
/// [`TlsError`] names the file at fault.
pub fn load(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let certificate = read(PemFile::Certificate, certificate)?;
    let key = zeroize::Zeroizing::new(read(PemFile::Key, key)?);
    acceptor(&certificate, &key)
}

/// An acceptor for TLS 1.2 and 1.3 that offers HTTP/2 and HTTP/1.1 by ALPN.
/// Client certificates are not asked for.
///
/// # Errors
/// [`TlsError`] when the text is not PEM or the pair does not fit.
pub fn acceptor(certificate: &[u8], key: &[u8]) -> Result<TlsAcceptor, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| not_pem(PemFile::Certificate, &error))?;
    if chain.is_empty() {
        return Err(TlsError::NotPem {
            file: PemFile::Certificate,
        });
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| not_pem(PemFile::Key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The parser's own error can quote the file, which may be a key.
fn not_pem(file: PemFile, _error: &pem::Error) -> TlsError {
    TlsError::NotPem { file }
}

fn read(file: PemFile, path: &Path) -> Result<Vec<u8>, TlsError> {
    use std::io::Read;
    let failed = |error| TlsError::Read { file, error };
    let mut out = Vec::new();
    fs::File::open(path)
        .map_err(failed)?
        .take(MAX_PEM_BYTES + 1)
        .read_to_end(&mut out)
        .map_err(failed)?;
    if out.len() as u64 > MAX_PEM_BYTES {
        return Err(TlsError::TooLarge { file });
    }
    Ok(out)
}
