//! The grammars of what a record states about image, software and policy.
//!
//! The whole value must match; anything else is carried as text alone, with no
//! hash and no package URL, so that nothing is claimed of a value that only
//! looks like a digest.

/// What an environment or policy value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Identity<'a> {
    /// `<scheme>:sha256:<hex>`.
    Hashed { scheme: &'a str, hex: &'a str },
    /// Anything else.
    Opaque,
}

/// The scheme of images that docker selected.
pub(crate) const DOCKER_IMAGE: &str = "docker-image";

impl<'a> Identity<'a> {
    pub(crate) fn of(value: &'a str) -> Self {
        let parts = value
            .split_once(':')
            .and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix("sha256:")?)));
        match parts {
            Some((scheme, hex)) if is_word(scheme, 64, b"-") && is_sha256(hex) => {
                Identity::Hashed { scheme, hex }
            }
            _ => Identity::Opaque,
        }
    }
}

/// An image manifest: `oci-manifest:<os>/<arch>[/<variant>]@sha256:<hex>`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Manifest<'a> {
    pub(crate) os: &'a str,
    pub(crate) arch: &'a str,
    pub(crate) variant: Option<&'a str>,
    pub(crate) hex: &'a str,
}

impl<'a> Manifest<'a> {
    pub(crate) fn of(value: &'a str) -> Option<Self> {
        let (platform, hex) = value
            .strip_prefix("oci-manifest:")?
            .split_once("@sha256:")?;
        let mut parts = platform.split('/');
        let manifest = Manifest {
            os: parts.next()?,
            arch: parts.next()?,
            variant: parts.next(),
            hex,
        };
        let named = [Some(manifest.os), Some(manifest.arch), manifest.variant];
        let fits = named.iter().flatten().all(|part| is_word(part, 32, b"._-"));
        (fits && parts.next().is_none() && is_sha256(hex)).then_some(manifest)
    }
}

/// `[a-z0-9]` and then at most `most - 1` of the same or `others`.
fn is_word(text: &str, most: usize, others: &[u8]) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= most
        && text.bytes().next().is_some_and(alphanumeric)
        && text.bytes().all(|b| alphanumeric(b) || others.contains(&b))
}

fn is_sha256(text: &str) -> bool {
    plimsoll_wire::ids::is_hex_digest(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_values_match_or_nothing_does() {
        let hex = "0f".repeat(32);
        let hashed = |scheme| Identity::Hashed { scheme, hex: &hex };
        for (value, identity) in [
            (format!("docker-image:sha256:{hex}"), hashed("docker-image")),
            (format!("x:sha256:{hex}"), hashed("x")),
            (format!("{}:sha256:{hex}", "a".repeat(65)), Identity::Opaque),
            (format!("-x:sha256:{hex}"), Identity::Opaque),
            (format!("X:sha256:{hex}"), Identity::Opaque),
            (format!("x:sha512:{hex}"), Identity::Opaque),
            (format!("x:sha256:{hex}\n"), Identity::Opaque),
            (format!("x:sha256:{}", hex.to_uppercase()), Identity::Opaque),
            ("x:sha256:short".to_owned(), Identity::Opaque),
            (format!("x:y:sha256:{hex}"), Identity::Opaque),
            (String::new(), Identity::Opaque),
        ] {
            assert_eq!(Identity::of(&value), identity, "{value}");
        }
        for (platform, fits) in [
            ("linux/amd64", true),
            ("linux/arm/v7", true),
            ("linux", false),
            ("linux/arm/v7/x", false),
            ("/amd64", false),
            ("linux/", false),
            ("Linux/amd64", false),
            ("linux/amd64?x=1", false),
        ] {
            let value = format!("oci-manifest:{platform}@sha256:{hex}");
            assert_eq!(Manifest::of(&value).is_some(), fits, "{value}");
        }
    }
}
