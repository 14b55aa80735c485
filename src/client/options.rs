//! What a client is made with.

use std::{sync::Arc, time::Duration};

use crate::{BaseUrl, Recorder, Token};

/// The whole exchange's budget unless another is set.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(6 * 60);

/// The longest budget; a longer one is cut to it.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Settings of a [`crate::Client`].
#[derive(Clone)]
pub struct Options {
    /// The daemon.
    pub base: BaseUrl,
    /// The caller's credential; `None` for an open development daemon.
    pub token: Option<Token>,
    /// Bounds each exchange whole: lookup, connect, TLS, sending, reading to
    /// the end. Above zero.
    pub timeout: Duration,
    /// Who may vouch for an https daemon.
    pub trust: Trust,
    /// Gets every exchange that passed its checks.
    pub recorder: Option<Arc<dyn Recorder>>,
}

impl Options {
    /// Options with every default: no token, [`DEFAULT_TIMEOUT`], platform
    /// roots, no recorder.
    #[must_use]
    pub fn new(base: BaseUrl) -> Options {
        Options {
            base,
            token: None,
            timeout: DEFAULT_TIMEOUT,
            trust: Trust::Platform,
            recorder: None,
        }
    }
}

/// The trust roots of an https daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// What this machine trusts.
    #[default]
    Platform,
    /// Only these certificates: PEM text, one or more `CERTIFICATE` blocks.
    Pem(Vec<u8>),
}

/// Why no client can be made of these options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A certificate that cannot be a trust root.
    #[error("certificate {number} cannot be a trust root")]
    BadRoot {
        /// 1-based number among the file's blocks.
        number: usize,
    },
    /// Neither the file nor the machine gives a trust root.
    #[error("no trust root was found; https daemons could not be checked")]
    NoRoots,
    /// The text is not PEM.
    #[error("the trust roots are not PEM text with CERTIFICATE blocks")]
    NotPem,
    /// An https base URL in a build without the `tls` feature.
    #[error("this build has no TLS")]
    NoTls,
    /// A budget of zero.
    #[error("a timeout is above zero")]
    Timeout,
    /// The TLS library refuses its own defaults.
    #[error("TLS could not be set up")]
    Tls,
}
