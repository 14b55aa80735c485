//! Software rules: which image identities a run may use.

use sha2::{Digest, Sha256};

use crate::{
    Refusal,
    limits::{MAX_IDENTITIES, MAX_IDENTITY_BYTES},
    proto::SoftwareRule,
};

/// A well-formed software rule. The default is no rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    identities: Vec<String>,
    approved: bool,
}

impl Rule {
    /// Reads a rule from its message; an absent or empty message is no rule.
    ///
    /// # Errors
    /// `invalid_argument`, reason request, for a mode or list out of bounds.
    pub fn parse(message: Option<&SoftwareRule>) -> Result<Rule, Refusal> {
        let Some(SoftwareRule {
            mode, identities, ..
        }) = message
        else {
            return Ok(Rule::default());
        };
        if mode.is_empty() && identities.is_empty() {
            return Ok(Rule::default());
        }
        let (approved, most) = match mode.as_str() {
            "exact" => (false, 1),
            "approved" => (true, MAX_IDENTITIES),
            _ => {
                return Err(Refusal::invalid(
                    "softwareRule.mode",
                    "software rule mode must be exact or approved",
                ));
            }
        };
        if identities.is_empty() || identities.len() > most {
            return Err(Refusal::invalid(
                "softwareRule.identities",
                format!("a software rule of mode {mode} takes 1 to {most} identities"),
            ));
        }
        for (i, identity) in identities.iter().enumerate() {
            check_identity(identity, &identities[..i])
                .map_err(|m| Refusal::invalid(format!("softwareRule.identities[{i}]"), m))?;
        }
        Ok(Rule {
            identities: identities.clone(),
            approved,
        })
    }

    /// Whether this is no rule at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.identities.is_empty()
    }

    /// The identities in the order given.
    #[must_use]
    pub fn identities(&self) -> &[String] {
        &self.identities
    }

    /// The rule's ID in a record: empty for no rule, `exact:` and the identity
    /// when the list has one entry, else a digest of the sorted set.
    #[must_use]
    pub fn id(&self) -> String {
        match self.identities.as_slice() {
            [] => String::new(),
            [one] => format!("exact:{one}"),
            many => {
                let mut sorted: Vec<&str> = many.iter().map(String::as_str).collect();
                sorted.sort_unstable();
                let digest = Sha256::digest(sorted.join("\0").as_bytes());
                format!("approved:sha256:{}", hex::encode(digest))
            }
        }
    }

    /// Whether the rule allows this identity. No rule allows anything; any
    /// rule refuses an empty identity.
    #[must_use]
    pub fn allows(&self, identity: &str) -> bool {
        self.is_none() || (!identity.is_empty() && self.identities.iter().any(|i| i == identity))
    }

    /// The rule of a call in a session: the intersection, in the session's order.
    ///
    /// # Errors
    /// `invalid_argument`, reason request, when nothing is left.
    pub fn merge(session: &Rule, call: &Rule) -> Result<Rule, Refusal> {
        if session.is_none() {
            return Ok(call.clone());
        }
        if call.is_none() {
            return Ok(session.clone());
        }
        let identities: Vec<String> = session
            .identities
            .iter()
            .filter(|i| call.identities.contains(i))
            .cloned()
            .collect();
        if identities.is_empty() {
            return Err(Refusal::invalid(
                "softwareRule",
                "the session's software rule and the call's have no identity in common",
            ));
        }
        Ok(Rule {
            approved: identities.len() > 1,
            identities,
        })
    }

    /// The rule as a message; `None` for no rule.
    #[must_use]
    pub fn to_message(&self) -> Option<SoftwareRule> {
        (!self.is_none()).then(|| SoftwareRule {
            mode: if self.approved { "approved" } else { "exact" }.to_owned(),
            identities: self.identities.clone(),
        })
    }
}

fn check_identity(identity: &str, earlier: &[String]) -> Result<(), String> {
    if identity.is_empty() || identity.len() > MAX_IDENTITY_BYTES {
        return Err(format!(
            "a software identity has 1 to {MAX_IDENTITY_BYTES} bytes"
        ));
    }
    if earlier.iter().any(|e| e == identity) {
        return Err("a software identity is repeated".to_owned());
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:/@+-".contains(&b);
    if !identity.bytes().all(allowed) {
        return Err("a software identity is made of A-Z a-z 0-9 . _ : / @ + -".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(mode: &str, identities: &[&str]) -> Result<Rule, Refusal> {
        Rule::parse(Some(&SoftwareRule {
            mode: mode.into(),
            identities: identities.iter().map(|&i| i.into()).collect(),
        }))
    }

    #[test]
    fn ids() {
        assert_eq!(rule("", &[]).unwrap().id(), "");
        assert_eq!(rule("approved", &["a:1"]).unwrap().id(), "exact:a:1");
        assert_eq!(
            rule("approved", &["b:2", "a:1"]).unwrap().id(),
            "approved:sha256:a647d1910a4395d01d7036d6fe26cc792d97a480ad3e2209c80e93f0d4a6793b"
        );
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        let of = |d: &str| format!("oci-manifest:linux/amd64@sha256:{d}");
        assert_eq!(
            rule("approved", &[&of(&two), &of(&one)]).unwrap().id(),
            "approved:sha256:289fd126571644d23f25467cba27ba8a633d0bfe298142eb43f96da9a146b6bb"
        );
    }

    #[test]
    fn bounds() {
        let many: Vec<String> = (0..33).map(|i| format!("i{i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(rule("approved", &many[..32]).is_ok());
        for (mode, ids) in [
            ("approved", &many[..]),
            ("approved", &[]),
            ("exact", &many[..2]),
            ("exact", &["a b"]),
            ("exact", &[""]),
            ("", &["a"]),
            ("Exact", &["a"]),
            ("approved", &["a", "a"]),
        ] {
            assert!(rule(mode, ids).is_err(), "{mode} {ids:?}");
        }
        assert!(rule("exact", &[&"a".repeat(256)]).is_ok());
        assert!(rule("exact", &[&"a".repeat(257)]).is_err());
    }

    #[test]
    fn merging() {
        let session = rule("approved", &["a", "b", "c"]).unwrap();
        let both = Rule::merge(&session, &rule("approved", &["c", "b", "x"]).unwrap()).unwrap();
        assert_eq!(both.identities(), ["b", "c"]);
        let one = Rule::merge(&session, &rule("exact", &["a"]).unwrap()).unwrap();
        assert_eq!(one.to_message().unwrap().mode, "exact");
        assert!(Rule::merge(&session, &rule("exact", &["x"]).unwrap()).is_err());
        assert_eq!(Rule::merge(&session, &Rule::default()).unwrap(), session);
        assert!(Rule::default().allows(""));
        assert!(!session.allows(""));
    }
}
