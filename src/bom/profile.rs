//! What a BOM's author chooses, and the fixed words of profile 1.
//!
//! Any change to how a BOM is built is a new profile with a builder of its own:
//! a newer release must rebuild an older BOM byte for byte.

/// The version of the rules, as `plimsoll:bom:profile` states it.
pub const PROFILE: &str = "1";

/// Largest BOM that is built or checked, in bytes.
pub const MAX_BOM_BYTES: u64 = 256 << 20;

/// Largest line attached unless the caller allows more, in bytes.
pub const DEFAULT_MAX_ATTACH: u64 = 16 << 20;

/// What every tier is qualified with, wherever it is stated in full.
pub const QUALIFICATION: &str = "The isolation tier is what the daemon stated: configuration and \
    provider evidence plus startup behaviour checks, never hardware attestation. A compromised \
    daemon can state anything. The signature shows that the holder of the signing key recomputed \
    this record from its own copy of the request and the answer.";

/// The qualification's short form, for tables.
pub const QUALIFICATION_SHORT: &str = "stated by the daemon; not hardware attestation";

pub(crate) const RECEIPT_LIMITS: &str = "A receipt whose key was made inside the pull request's \
    own job shows that its parts belong together, not who made them. The pull request can change \
    the workflow that made it. Run the tests again to be sure of the result.";

/// What is attached of each line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Attach {
    /// The whole line: the BOM then carries its own evidence.
    #[default]
    Line,
    /// The record's envelope alone, without request and response.
    Envelope,
}

impl Attach {
    /// The word in the BOM and on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Attach::Line => "line",
            Attach::Envelope => "envelope",
        }
    }

    /// The choice of this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Attach::Line, Attach::Envelope]
            .into_iter()
            .find(|a| a.word() == word)
    }
}

/// How much of the bundle was verified.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Scope {
    /// All of it.
    #[default]
    Bundle,
    /// The one line: nothing is established of the rest of the file.
    Line,
}

impl Scope {
    /// The word in the BOM and on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Scope::Bundle => "bundle",
            Scope::Line => "line",
        }
    }

    /// The choice of this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Scope::Bundle, Scope::Line]
            .into_iter()
            .find(|s| s.word() == word)
    }
}

/// A version of the CycloneDX specification.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SpecVersion {
    /// 1.6, which every common reader takes.
    #[default]
    V1_6,
    /// 1.7.
    V1_7,
}

impl SpecVersion {
    /// The number, as in `specVersion`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            SpecVersion::V1_6 => "1.6",
            SpecVersion::V1_7 => "1.7",
        }
    }

    /// The version of this number.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [SpecVersion::V1_6, SpecVersion::V1_7]
            .into_iter()
            .find(|v| v.word() == word)
    }
}

/// What a BOM describes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// One call.
    Run,
    /// A closed session of calls.
    Session,
    /// A pull request as tested in one call.
    Receipt,
}

impl Kind {
    /// The word in the BOM.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Session => "session",
            Kind::Receipt => "receipt",
        }
    }

    /// The kind of this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Kind::Run, Kind::Session, Kind::Receipt]
            .into_iter()
            .find(|k| k.word() == word)
    }
}

/// A repository name that the BOM's author states for the image: a record
/// names images by digest alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageName(String);

impl ImageName {
    /// Takes a name such as `docker.io/library/node`: lowercase letters and
    /// digits joined by single `.`, `_`, `/`, `:` or `-`, at most 255 bytes,
    /// neither a tag nor a digest. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let joins = |b: u8| matches!(b, b'.' | b'_' | b'/' | b':' | b'-');
        let bytes = text.as_bytes();
        let pairs = bytes.windows(2).all(|pair| match pair {
            [a, b] => (alphanumeric(*a) || joins(*a)) && !(joins(*a) && joins(*b)),
            _ => false,
        });
        let ends = bytes.first().is_some_and(|b| alphanumeric(*b))
            && bytes.last().is_some_and(|b| alphanumeric(*b));
        // After the last slash a colon begins a tag; before it, a port.
        let tag = text
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains(':'));
        (bytes.len() <= 255 && pairs && ends && !tag).then(|| ImageName(text.to_owned()))
    }

    /// The name as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its last part.
    pub(crate) fn short(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

/// The author's choices. The default is what the command line does without flags.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Options {
    /// What is attached.
    pub attach: Attach,
    /// The image's name, if the author states one.
    pub image_name: Option<ImageName>,
    /// The version of the specification.
    pub spec_version: SpecVersion,
    /// Largest line attached whole, in bytes.
    pub max_attach: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            attach: Attach::default(),
            image_name: None,
            spec_version: SpecVersion::default(),
            max_attach: DEFAULT_MAX_ATTACH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_names() {
        let long = "a".repeat(255);
        for (text, fits) in [
            ("node", true),
            ("docker.io/library/node", true),
            ("localhost:5000/node", true),
            ("a-b_c.d/e", true),
            (long.as_str(), true),
            ("", false),
            ("Node", false),
            ("node:20", false),
            ("node@sha256:00", false),
            ("a//b", false),
            ("a..b", false),
            ("-a", false),
            ("a-", false),
            ("a b", false),
            ("é", false),
            ("a\n", false),
        ] {
            assert_eq!(ImageName::parse(text).is_some(), fits, "{text:?}");
        }
        assert!(ImageName::parse(&"a".repeat(256)).is_none());
        assert_eq!(
            ImageName::parse("localhost:5000/x/node").unwrap().short(),
            "node"
        );
    }
}
