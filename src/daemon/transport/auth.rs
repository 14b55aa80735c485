//! Who makes a request: the bearer credential and what it allows.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use http::{HeaderMap, header::AUTHORIZATION};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The scope of all five procedures.
pub const SCOPE_RUN: &str = "code:run";
/// The scope that satisfies every other.
pub const SCOPE_ALL: &str = "*";

/// How callers are known.
#[derive(Clone)]
pub enum Auth {
    /// No verifier: every call is allowed, all callers are one. Development.
    Open,
    /// One token, one caller named `static`.
    Shared(SharedToken),
    /// Each token is its own caller.
    Lookup(Arc<dyn TokenLookup>),
}

/// A caller a verifier knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The caller's stable identity. The transport refuses one that is empty,
    /// `*`, surrounded by white space or holds control characters.
    pub id: Arc<str>,
    /// What the caller may do.
    pub scopes: Vec<String>,
}

/// Why a verifier names no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthFailure {
    /// No caller has this token.
    #[error("the token is unknown")]
    Unknown,
    /// The verifier itself failed; its cause belongs in its own log.
    #[error("the verifier is unavailable")]
    Unavailable,
    /// The verification was given up.
    #[error("the verification was canceled")]
    Canceled,
    /// The verification took too long.
    #[error("the verification took too long")]
    DeadlineExceeded,
}

/// Finds the caller of a token, as a registry of clients does.
pub trait TokenLookup: Send + Sync + 'static {
    /// The caller of exactly this token text. Must not log, keep or answer the
    /// token.
    ///
    /// # Errors
    /// [`AuthFailure`]; only [`AuthFailure::Unknown`] says the token is bad.
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Verified, AuthFailure>> + Send + 'a>>;
}

/// One shared token. Only its SHA-256 is kept: comparing digests takes the
/// same time wherever two tokens differ and whatever their lengths.
#[derive(Clone)]
pub struct SharedToken {
    digest: [u8; 32],
}

impl SharedToken {
    /// Takes the token in and wipes it.
    #[must_use]
    pub fn new(token: Zeroizing<String>) -> Self {
        SharedToken {
            digest: Sha256::digest(token.as_bytes()).into(),
        }
    }

    fn matches(&self, token: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        digest.ct_eq(&self.digest).into()
    }
}

impl fmt::Debug for SharedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedToken")
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Auth::Open => "Open",
            Auth::Shared(_) => "Shared",
            Auth::Lookup(_) => "Lookup",
        })
    }
}

impl Auth {
    /// Whether there is a verifier.
    pub(crate) fn verifies(&self) -> bool {
        !matches!(self, Auth::Open)
    }

    /// The caller of a token; only called when there is a verifier.
    pub(crate) async fn verify(&self, token: &str) -> Result<Verified, AuthFailure> {
        match self {
            Auth::Open => Err(AuthFailure::Unavailable),
            Auth::Shared(shared) if shared.matches(token) => Ok(Verified {
                id: "static".into(),
                scopes: vec![SCOPE_RUN.to_owned()],
            }),
            Auth::Shared(_) => Err(AuthFailure::Unknown),
            Auth::Lookup(lookup) => lookup.verify(token).await,
        }
    }
}

impl Verified {
    /// Whether the caller may call the procedures.
    pub(crate) fn may_run(&self) -> bool {
        self.scopes.iter().any(|s| s == SCOPE_RUN || s == SCOPE_ALL)
    }

    /// Whether the identity can key limits and stand in an audit line.
    pub(crate) fn is_stable(&self) -> bool {
        let id = &*self.id;
        !id.is_empty() && id != "*" && id.trim() == id && !id.chars().any(char::is_control)
    }
}

/// The bearer token of a request: exactly one header of exactly two parts, the
/// scheme in any case. Anything else counts as missing; in particular two
/// headers, of which two readers could take another one each.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let mut parts = value.to_str().ok()?.split_ascii_whitespace();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(scheme), Some(token), None) if scheme.eq_ignore_ascii_case("bearer") => Some(token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(values: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer(&headers).map(str::to_owned)
    }

    #[test]
    fn bearer_spellings() {
        for value in ["Bearer x", "bearer x", "BEARER \t x", "Bearer x "] {
            assert_eq!(read(&[value.as_bytes()]).as_deref(), Some("x"), "{value}");
        }
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Basic x",
            "Bearer x y",
            "x",
            "Bearer\u{a0}x",
        ] {
            assert_eq!(read(&[value.as_bytes()]), None, "{value}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[b"Bearer x", b"Bearer x"]), None);
        assert_eq!(read(&[b"Bearer \xff"]), None);
    }

    #[tokio::test]
    async fn shared_token() {
        let auth = Auth::Shared(SharedToken::new(Zeroizing::new("secret".into())));
        let caller = auth.verify("secret").await.unwrap();
        assert_eq!(&*caller.id, "static");
        assert!(caller.may_run());
        for wrong in ["", "secre", "secret ", "Secret", "secretsecret"] {
            assert_eq!(auth.verify(wrong).await, Err(AuthFailure::Unknown));
        }
        assert_eq!(format!("{auth:?}"), "Shared");
        let Auth::Shared(token) = &auth else {
            panic!("another variant")
        };
        assert_eq!(format!("{token:?}"), "SharedToken");
    }

    #[test]
    fn identities_and_scopes() {
        let caller = |id: &str, scopes: &[&str]| Verified {
            id: id.into(),
            scopes: scopes.iter().map(|s| (*s).to_owned()).collect(),
        };
        for id in ["", "*", " a", "a ", "a\nb", "a\u{85}"] {
            assert!(!caller(id, &[]).is_stable(), "{id:?}");
        }
        assert!(caller("a b", &[]).is_stable());
        assert!(!caller("a", &[]).may_run());
        assert!(!caller("a", &["code:runs", "code"]).may_run());
        assert!(caller("a", &["x", "code:run"]).may_run());
        assert!(caller("a", &["*"]).may_run());
    }
}
