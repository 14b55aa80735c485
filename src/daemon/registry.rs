//! Callers of the registry file, as the transport asks for them.

use std::{future::Future, pin::Pin, sync::Arc};

use plimsoll_callers::{Caller, Registry, Scope};

use crate::transport::{AuthFailure, TokenLookup, Verified};

/// Finds callers in a registry that was read at start and never again: what an
/// operator changes takes effect with the next start, not half-way.
pub struct RegistryLookup(Arc<Registry>);

impl RegistryLookup {
    /// Over this registry.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        RegistryLookup(registry)
    }
}

impl TokenLookup for RegistryLookup {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Verified, AuthFailure>> + Send + 'a>> {
        let found = self.0.find(token).map(verified);
        Box::pin(async move { found.ok_or(AuthFailure::Unknown) })
    }
}

fn verified(caller: &Caller) -> Verified {
    let scopes = caller.scopes.iter().map(Scope::as_str);
    Verified {
        id: caller.id.shared(),
        scopes: scopes.map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The SHA-256 of 32 times `a`, and of 32 times `b`.
    const REGISTRY: &str = r#"{"clients":[
        {"id":" alice ","token_sha256":"3BA3F5F43B92602683C19AEE62A20342B084DD5971DDD33808D81A328879A547","scopes":["code:run"]},
        {"id":"bob","token_sha256":"bdb339768bc5e4fecbe55a442056919b2b325907d49bcbf3bf8de13781996a83","scopes":["*"]}
    ]}"#;

    #[tokio::test]
    async fn exact_tokens_find_their_caller() {
        let registry = Arc::new(Registry::parse_for_daemon(REGISTRY.as_bytes()).unwrap());
        let lookup = RegistryLookup::new(registry);
        let alice = lookup.verify(&"a".repeat(32)).await.unwrap();
        assert_eq!(
            (&*alice.id, &alice.scopes[..]),
            ("alice", &["code:run".to_owned()][..])
        );
        for wrong in [
            "",
            &"a".repeat(31),
            &"A".repeat(32),
            &format!("{} ", "a".repeat(32)),
        ] {
            assert_eq!(
                lookup.verify(wrong).await,
                Err(AuthFailure::Unknown),
                "{wrong}"
            );
        }
        // The digest itself is no token.
        let digest = "3ba3f5f43b92602683c19aee62a20342b084dd5971ddd33808d81a328879a547";
        assert_eq!(lookup.verify(digest).await, Err(AuthFailure::Unknown));
    }
}
