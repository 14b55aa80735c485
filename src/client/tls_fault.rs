//! Why a TLS connection is not trusted, in words of this program.

use std::fmt;

/// What is wrong with the other side of a TLS connection. Nothing was sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TlsFault {
    /// The certificate is not valid for another reason.
    BadCertificate,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The other side does not speak TLS.
    Plaintext,
    /// No authority that is trusted here signed the certificate.
    UnknownIssuer,
    /// The certificate is for another host.
    WrongHost,
}

impl TlsFault {
    /// Every fault, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::BadCertificate,
        Self::Expired,
        Self::NotYetValid,
        Self::Plaintext,
        Self::UnknownIssuer,
        Self::WrongHost,
    ];

    /// The stable word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BadCertificate => "bad_certificate",
            Self::Expired => "certificate_expired",
            Self::NotYetValid => "certificate_not_yet_valid",
            Self::Plaintext => "no_tls",
            Self::UnknownIssuer => "unknown_issuer",
            Self::WrongHost => "wrong_host",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn cure(self) -> &'static str {
        match self {
            Self::BadCertificate => {
                "Ask the daemon's operator for a certificate that clients accept."
            }
            Self::Expired => {
                "Ask the daemon's operator to renew its certificate; check this machine's clock too."
            }
            Self::NotYetValid => {
                "Check this machine's clock; if it is right, the daemon's certificate is not in \
                 force yet."
            }
            Self::Plaintext => {
                "Check the port. A daemon without a certificate is reached with http, on this \
                 machine only."
            }
            Self::UnknownIssuer => {
                "If the daemon has a certificate of its own authority, give that authority's \
                 certificate with --ca-file. Otherwise somebody may stand in between."
            }
            Self::WrongHost => "Name the daemon by a host that its certificate is for.",
        }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadCertificate => "its certificate is not valid",
            Self::Expired => "its certificate has expired",
            Self::NotYetValid => "its certificate is not valid yet",
            Self::Plaintext => "the other side does not speak TLS",
            Self::UnknownIssuer => "no authority trusted here signed its certificate",
            Self::WrongHost => "its certificate is for another host",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_sentences_are_unique() {
        let words: std::collections::BTreeSet<_> = TlsFault::ALL.map(TlsFault::word).into();
        let texts: std::collections::BTreeSet<_> =
            TlsFault::ALL.map(|fault| fault.to_string()).into();
        assert_eq!((words.len(), texts.len()), (6, 6));
    }
}
