//! `.plimsoll/receipt.toml`: what is run, reviewed like code.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use plimsoll_wire::limits::{MAX_STEP_BYTES, MAX_STEPS};
use serde::Deserialize;

use crate::report::{Spec, SpecError};

/// Where it lies in a repository.
pub const PATH: &str = ".plimsoll/receipt.toml";
/// Largest file that is read.
pub const MAX_BYTES: u64 = 256 << 10;
/// Most patterns of a list.
pub const MAX_PATTERNS: usize = 1000;

/// Paths that are taken for tests when nothing else is said.
pub const TEST_PATHS: [&str; 6] = [
    "**/test/**",
    "**/tests/**",
    "**/__tests__/**",
    "**/*.test.*",
    "**/*_test.*",
    "**/test_*.py",
];

/// What is run and how its result is read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Config {
    /// The steps, for the sandbox's shell.
    pub steps: Vec<String>,
    /// The reports; empty when exit codes alone decide.
    pub reports: Vec<Spec>,
    /// Paths of the commit that are not sent.
    pub exclude: Vec<String>,
    /// Directories of the runner that are sent too, each `DIR=DEST`.
    pub add: Vec<String>,
    /// Paths that are tests; `None` for [`TEST_PATHS`].
    pub test_paths: Option<Vec<String>>,
}

/// Why a configuration is not valid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Over [`MAX_BYTES`], or not UTF-8.
    #[error("it is no text file of at most 256 KiB")]
    File,
    /// Not TOML, an unknown key, or a value of another type.
    #[error("{0}")]
    Toml(String),
    /// Another version than 1.
    #[error("its version is {0}; this program knows 1")]
    Version(i64),
    /// No step, more than the wire takes, or one that is empty or too long.
    #[error("it needs 1 to {MAX_STEPS} steps of 1 to {MAX_STEP_BYTES} bytes")]
    Steps,
    /// A report's words.
    #[error("{0}")]
    Report(#[from] SpecError),
    /// A pattern.
    #[error("{0}")]
    Pattern(#[from] PatternError),
    /// Not `DIR=DEST`.
    #[error("{0:?} is not DIR=DEST")]
    Add(String),
}

/// A pattern that is not valid, or too many.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// Not a valid pattern.
    #[error("the pattern is not valid: {0}")]
    Invalid(#[from] globset::Error),
    /// More than [`MAX_PATTERNS`].
    #[error("more than {MAX_PATTERNS} patterns")]
    TooMany,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: i64,
    steps: Vec<String>,
    #[serde(default)]
    reports: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    add: Vec<String>,
    test_paths: Option<Vec<String>>,
}

impl Config {
    /// Reads the file. Unknown keys are refused.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(bytes: &[u8]) -> Result<Config, ConfigError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ConfigError::File);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| ConfigError::File)?;
        let file: File =
            toml::from_str(text).map_err(|error| ConfigError::Toml(error.message().to_owned()))?;
        if file.version != 1 {
            return Err(ConfigError::Version(file.version));
        }
        let config = Config {
            steps: file.steps,
            reports: specs(&file.reports)?,
            exclude: file.exclude,
            add: file.add,
            test_paths: file.test_paths,
        };
        config.check()?;
        Ok(config)
    }

    /// Checks what both a file and flags must keep.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let fits = |step: &String| (1..=MAX_STEP_BYTES).contains(&step.len());
        if !(1..=MAX_STEPS).contains(&self.steps.len()) || !self.steps.iter().all(fits) {
            return Err(ConfigError::Steps);
        }
        for add in &self.add {
            added(add).ok_or_else(|| ConfigError::Add(add.clone()))?;
        }
        patterns(&self.exclude)?;
        patterns(&self.test_paths())?;
        Ok(())
    }

    /// The patterns of tests.
    #[must_use]
    pub fn test_paths(&self) -> Vec<String> {
        match &self.test_paths {
            Some(paths) => paths.clone(),
            None => TEST_PATHS.map(str::to_owned).to_vec(),
        }
    }
}

/// Reads reports' words; `none` stands alone.
///
/// # Errors
/// [`SpecError`].
pub fn specs<S: AsRef<str>>(words: &[S]) -> Result<Vec<Spec>, SpecError> {
    let mut specs = Vec::new();
    for word in words {
        match Spec::parse(word.as_ref())? {
            Some(spec) if !specs.contains(&spec) => specs.push(spec),
            None if words.len() == 1 => {}
            _ => return Err(SpecError(word.as_ref().to_owned())),
        }
    }
    Ok(specs)
}

/// The directory and the destination of `DIR=DEST`.
#[must_use]
pub fn added(text: &str) -> Option<(&str, &str)> {
    let (from, to) = text.split_once('=')?;
    (!from.is_empty() && plimsoll_wire::validate::path(to).is_ok()).then_some((from, to))
}

/// Compiles patterns: `*` stays within a segment, `**` crosses `/`.
///
/// # Errors
/// [`PatternError`].
pub fn patterns<S: AsRef<str>>(patterns: &[S]) -> Result<GlobSet, PatternError> {
    if patterns.len() > MAX_PATTERNS {
        return Err(PatternError::TooMany);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(
            GlobBuilder::new(pattern.as_ref())
                .literal_separator(true)
                .build()?,
        );
    }
    Ok(set.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file() {
        let config = Config::read(
            br#"
version = 1
steps   = ["node --test"]
reports = ["junit:artifact:plimsoll-report.xml", "tap:stdout:1"]
exclude = ["docs/**"]
add     = ["node_modules=node_modules"]
"#,
        )
        .unwrap();
        assert_eq!(config.reports.len(), 2);
        assert_eq!(config.test_paths().len(), TEST_PATHS.len());
        let set = patterns(&config.test_paths()).unwrap();
        for (path, is) in [
            ("test/a.js", true),
            ("src/tests/a", true),
            ("a.test.js", true),
            ("pkg/a_test.go", true),
            ("x/test_a.py", true),
            ("latest/a.js", false),
            ("lib.js", false),
        ] {
            assert_eq!(set.is_match(path), is, "{path}");
        }
    }

    #[test]
    fn refusals() {
        for text in [
            "",
            "version = 2\nsteps = [\"a\"]",
            "version = 1\nsteps = []",
            "version = 1\nsteps = [\"\"]",
            "version = 1\nsteps = [\"a\"]\nstep = 1",
            "version = 1\nsteps = [\"a\"]\nsteps = [\"b\"]",
            "version = 1\nsteps = [\"a\"]\nreports = [\"junit\"]",
            "version = 1\nsteps = [\"a\"]\nreports = [\"none\", \"tap:stdout:1\"]",
            "version = 1\nsteps = [\"a\"]\nreports = [\"tap:stdout:0\"]",
            "version = 1\nsteps = [\"a\"]\nreports = [\"tap:artifact:../x\"]",
            "version = 1\nsteps = [\"a\"]\nexclude = [\"[\"]",
            "version = 1\nsteps = [\"a\"]\nadd = [\"x\"]",
            "version = 1\nsteps = [\"a\"]\nadd = [\"x=/etc\"]",
        ] {
            assert!(Config::read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(Config::read(b"\xff"), Err(ConfigError::File));
    }
}
