//! A registry that has been read: its callers, found by token, and the changes
//! the offline tool makes.

use std::{collections::HashMap, path::Path};

use crate::{
    caller::{Caller, CallerId},
    document,
    fault::{Fault, FaultKind, Faults},
    read::{Links, ReadError, read},
    token::Fingerprint,
};

/// The callers of a daemon. Identities and tokens are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    callers: Vec<Caller>,
    by_fingerprint: HashMap<Fingerprint, usize>,
}

/// Why a registry cannot be served from.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The registry is not valid, or it is empty.
    #[error("{0}")]
    Invalid(#[from] Faults),
}

/// Why a change is refused; the registry is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A caller of this identity is there already.
    #[error("a caller with this ID is there already")]
    Exists,
    /// There is none of this identity.
    #[error("there is no caller with this ID")]
    NotThere,
    /// Another caller has this token: calls could not be told apart.
    #[error("another caller has this token")]
    TokenInUse,
    /// The token is the one the caller has.
    #[error("the token is the one the caller has already")]
    TokenUnchanged,
}

impl Registry {
    /// Reads a registry; an empty one too, so that a tool can revoke the last
    /// caller.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(text: &[u8]) -> Result<Registry, Faults> {
        document::parse(text).map(Registry::of)
    }

    /// Reads a registry to serve from; symbolic links are followed. An empty one
    /// is refused: no call could be answered.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_for_daemon(path: &Path) -> Result<Registry, LoadError> {
        Ok(Self::parse_for_daemon(&read(path, Links::Follow)?.text)?)
    }

    /// [`Registry::load_for_daemon`] of text that was read already.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse_for_daemon(text: &[u8]) -> Result<Registry, Faults> {
        let registry = Registry::parse(text)?;
        if registry.callers.is_empty() {
            return Err(Faults::one(Fault {
                pointer: "/clients".to_owned(),
                offset: None,
                kind: FaultKind::Empty,
            }));
        }
        Ok(registry)
    }

    fn of(callers: Vec<Caller>) -> Registry {
        let by_fingerprint = callers
            .iter()
            .enumerate()
            .map(|(index, caller)| (caller.fingerprint, index))
            .collect();
        Registry {
            callers,
            by_fingerprint,
        }
    }

    /// The callers, in the order of the file.
    #[must_use]
    pub fn callers(&self) -> &[Caller] {
        &self.callers
    }

    /// The caller of exactly this token text. It is looked up by its SHA-256, so
    /// how long that takes tells nothing of a token.
    #[must_use]
    pub fn find(&self, token: &str) -> Option<&Caller> {
        let index = self
            .by_fingerprint
            .get(&Fingerprint::of(token.as_bytes()))?;
        self.callers.get(*index)
    }

    /// The registry as text, as it is written to a file.
    ///
    /// # Errors
    /// Never for a registry that was read; the writer's interface has one.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        document::write(&self.callers)
    }

    /// Adds a caller.
    ///
    /// # Errors
    /// [`ChangeError::Exists`], [`ChangeError::TokenInUse`].
    pub fn add(&mut self, caller: Caller) -> Result<(), ChangeError> {
        if self.place(&caller.id).is_ok() {
            return Err(ChangeError::Exists);
        }
        if self.by_fingerprint.contains_key(&caller.fingerprint) {
            return Err(ChangeError::TokenInUse);
        }
        self.by_fingerprint
            .insert(caller.fingerprint, self.callers.len());
        self.callers.push(caller);
        Ok(())
    }

    /// Sets a caller's daily allowance in seconds; 0 removes it.
    ///
    /// # Errors
    /// [`ChangeError::NotThere`].
    pub fn limit(&mut self, id: &CallerId, seconds: u64) -> Result<(), ChangeError> {
        self.find_mut(id)?.paid_seconds_per_day = seconds;
        Ok(())
    }

    /// Replaces a caller's token; everything else stays. A cutover: the old one
    /// and the new one are never valid together.
    ///
    /// # Errors
    /// [`ChangeError::NotThere`], [`ChangeError::TokenUnchanged`],
    /// [`ChangeError::TokenInUse`].
    pub fn rotate(&mut self, id: &CallerId, token: Fingerprint) -> Result<(), ChangeError> {
        let index = self.place(id)?;
        match self.by_fingerprint.get(&token) {
            Some(owner) if *owner == index => return Err(ChangeError::TokenUnchanged),
            Some(_) => return Err(ChangeError::TokenInUse),
            None => {}
        }
        let caller = self.find_mut(id)?;
        let old = std::mem::replace(&mut caller.fingerprint, token);
        self.by_fingerprint.remove(&old);
        self.by_fingerprint.insert(token, index);
        Ok(())
    }

    /// Removes a caller.
    ///
    /// # Errors
    /// [`ChangeError::NotThere`].
    pub fn revoke(&mut self, id: &CallerId) -> Result<(), ChangeError> {
        let index = self.place(id)?;
        let mut callers = std::mem::take(&mut self.callers);
        callers.remove(index);
        *self = Registry::of(callers);
        Ok(())
    }

    fn place(&self, id: &CallerId) -> Result<usize, ChangeError> {
        self.callers
            .iter()
            .position(|caller| caller.id == *id)
            .ok_or(ChangeError::NotThere)
    }

    fn find_mut(&mut self, id: &CallerId) -> Result<&mut Caller, ChangeError> {
        self.callers
            .iter_mut()
            .find(|caller| caller.id == *id)
            .ok_or(ChangeError::NotThere)
    }
}
