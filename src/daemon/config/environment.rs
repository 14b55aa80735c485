//! The variables as they were handed in, and the rules for reading one.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    time::Duration,
};

use zeroize::{Zeroize, Zeroizing};

use super::{
    duration::parse_duration,
    error::{ConfigError, Fault},
    variable::{VARIABLES, Variable},
};

/// Names that begin like this are the daemon's own; an unknown one is reported.
const PREFIXES: [&str; 2] = ["PLIMSOLL_", "SANDBOX_"];

/// The variables the daemon may look at. Values can be secrets: they are wiped
/// when this is dropped and never printed.
#[derive(Default)]
pub struct Environment {
    values: BTreeMap<String, Vec<u8>>,
}

impl Environment {
    /// Keeps of these variables the ones a daemon has to do with.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let known = |name: &str| {
            PREFIXES.iter().any(|p| name.starts_with(p)) || VARIABLES.iter().any(|v| v.name == name)
        };
        let mut values = BTreeMap::new();
        for (name, value) in variables {
            // A name that is not text becomes one that no setting has, so that
            // it is reported as unknown.
            let name = name.to_string_lossy();
            if known(&name) {
                values.insert(name.into_owned(), value.into_encoded_bytes());
            }
        }
        Environment { values }
    }

    /// The variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::new(std::env::vars_os())
    }

    /// Names with one of the daemon's prefixes that it has no setting for,
    /// sorted. Only names: a value may be a misplaced secret.
    #[must_use]
    pub fn unknown(&self) -> Vec<String> {
        self.values
            .keys()
            .filter(|name| PREFIXES.iter().any(|p| name.starts_with(p)))
            .filter(|name| !VARIABLES.iter().any(|v| v.name == *name))
            .cloned()
            .collect()
    }

    /// Whether the variable is there and not blank.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.values
            .get(name)
            .is_some_and(|value| !value.trim_ascii().is_empty())
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        for value in self.values.values_mut() {
            value.zeroize();
        }
    }
}

/// Reads variables and remembers which.
pub(crate) struct Reader<'a> {
    environment: &'a Environment,
    read: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(environment: &'a Environment) -> Self {
        Reader {
            environment,
            read: RefCell::default(),
        }
    }

    /// Every name asked for so far.
    #[cfg(test)]
    pub(super) fn names_read(&self) -> BTreeSet<&'static str> {
        self.read.borrow().clone()
    }

    /// The value as set; empty when unset.
    pub(super) fn raw(&self, variable: &Variable) -> Result<&'a str, ConfigError> {
        self.read.borrow_mut().insert(variable.name);
        let Some(value) = self.environment.values.get(variable.name) else {
            return Ok("");
        };
        std::str::from_utf8(value).map_err(|_| ConfigError::Secret {
            variable: variable.name,
            fault: Fault::NotUtf8,
        })
    }

    /// The value without surrounding white space; empty when unset.
    pub(crate) fn text(&self, variable: &Variable) -> Result<&'a str, ConfigError> {
        self.raw(variable).map(str::trim)
    }

    /// A secret; `None` when unset or empty.
    pub(super) fn secret(
        &self,
        variable: &Variable,
    ) -> Result<Option<Zeroizing<String>>, ConfigError> {
        let value = self.raw(variable)?;
        Ok((!value.is_empty()).then(|| Zeroizing::new(value.to_owned())))
    }

    /// An integer of at least `least` and, when given, at most `most`; `None`
    /// when unset or blank.
    pub(super) fn integer(
        &self,
        variable: &Variable,
        least: i64,
        most: Option<i64>,
    ) -> Result<Option<i64>, ConfigError> {
        let value = self.text(variable)?;
        if value.is_empty() {
            return Ok(None);
        }
        let number: i64 = value
            .parse()
            .map_err(|_| refused(variable, value, Fault::NotAnInteger))?;
        match most {
            Some(most) if !(least..=most).contains(&number) => {
                Err(refused(variable, value, Fault::OutOfBounds { least, most }))
            }
            None if number < least => Err(refused(variable, value, Fault::TooSmall { least })),
            _ => Ok(Some(number)),
        }
    }

    /// An integer of at least 0; 0 when unset or blank.
    pub(super) fn count(&self, variable: &Variable) -> Result<u64, ConfigError> {
        let number = self.integer(variable, 0, None)?.unwrap_or(0);
        Ok(number.unsigned_abs())
    }

    /// A finite number of at least 0; 0 when unset or blank.
    pub(super) fn float(&self, variable: &Variable) -> Result<f64, ConfigError> {
        let value = self.text(variable)?;
        if value.is_empty() {
            return Ok(0.0);
        }
        match value.parse::<f64>() {
            // Adding 0 makes a negative zero a plain one.
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number + 0.0),
            _ => Err(refused(variable, value, Fault::NotANumber)),
        }
    }

    /// A duration; `None` when unset or blank.
    pub(super) fn duration(&self, variable: &Variable) -> Result<Option<Duration>, ConfigError> {
        let value = self.text(variable)?;
        if value.is_empty() {
            return Ok(None);
        }
        parse_duration(value)
            .map(Some)
            .ok_or_else(|| refused(variable, value, Fault::NotADuration))
    }

    /// An opt-in boolean. Anything but its four words is an error: `yes` on a
    /// safety switch must not read as off.
    pub(crate) fn opt_in(&self, variable: &Variable) -> Result<bool, ConfigError> {
        let value = self.text(variable)?;
        match value.to_ascii_lowercase().as_str() {
            "" | "0" | "false" => Ok(false),
            "1" | "true" => Ok(true),
            _ => Err(refused(variable, value, Fault::NotABoolean)),
        }
    }

    /// A switch only exactly `1` turns on.
    pub(super) fn exactly_one(&self, variable: &Variable) -> Result<bool, ConfigError> {
        self.text(variable).map(|value| value == "1")
    }
}

/// The refusal of a value.
pub(super) fn refused(variable: &Variable, value: &str, fault: Fault) -> ConfigError {
    ConfigError::Value {
        variable: variable.name,
        value: value.to_owned(),
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::variable::{
        SANDBOX_CPUS, SANDBOX_MEMORY_MB, SANDBOX_REQUIRE_PINNED_IMAGES, SANDBOX_SESSION_IDLE,
    };
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStringExt as _;

    fn environment(name: &str, value: &str) -> Environment {
        Environment::new([(name.into(), value.into())])
    }

    /// The value read; a refusal must name the variable and show the value.
    macro_rules! read {
        ($method:ident, $variable:ident, $value:expr) => {{
            let value: &str = $value;
            let environment = environment($variable.name, value);
            let read = Reader::new(&environment).$method(&$variable);
            read.map_err(|error| {
                let text = error.to_string();
                assert!(text.contains($variable.name), "{text}");
                assert!(text.contains(&format!("{:?}", value.trim())), "{text}");
            })
            .ok()
        }};
    }

    #[test]
    fn integers() {
        let count = |value| read!(count, SANDBOX_MEMORY_MB, value);
        for (value, number) in [("", 0), ("  ", 0), (" 12 ", 12), ("+3", 3), ("-0", 0)] {
            assert_eq!(count(value), Some(number), "{value:?}");
        }
        for value in [
            "eight",
            "1.5",
            "-1",
            "0x10",
            "1_000",
            "1 0",
            "9223372036854775808",
        ] {
            assert_eq!(count(value), None, "{value}");
        }
    }

    #[test]
    fn floats() {
        let float = |value| read!(float, SANDBOX_CPUS, value);
        assert_eq!(float("0.5"), Some(0.5));
        assert_eq!(float("2e0"), Some(2.0));
        assert!(float("-0").is_some_and(f64::is_sign_positive));
        for value in ["-1", "NaN", "inf", "1e999", "one", "1,5"] {
            assert_eq!(float(value), None, "{value}");
        }
    }

    #[test]
    fn opt_in_booleans() {
        let flag = |value| read!(opt_in, SANDBOX_REQUIRE_PINNED_IMAGES, value);
        for value in ["", "0", "False", " FALSE "] {
            assert_eq!(flag(value), Some(false), "{value}");
        }
        for value in ["1", "true", " TRUE"] {
            assert_eq!(flag(value), Some(true), "{value}");
        }
        for value in ["yes", "on", "2", "01", "t", "no"] {
            assert_eq!(flag(value), None, "{value}");
        }
    }

    #[test]
    fn bare_numbers_are_no_durations() {
        let idle = |value| read!(duration, SANDBOX_SESSION_IDLE, value);
        assert_eq!(idle(" 90s "), Some(Some(Duration::from_secs(90))));
        assert_eq!(idle("5"), None);
    }

    #[test]
    fn unknown_names_without_values() {
        let environment = Environment::new([
            ("SANDBOX_MAX_CONCRURENT".into(), "SECRET".into()),
            ("PLIMSOLL_ADR".into(), "SECRET".into()),
            ("PLIMSOLL_ADDR".into(), ":1".into()),
            ("PATH".into(), "/bin".into()),
            ("NOT_SANDBOX_X".into(), "1".into()),
            (
                OsString::from_vec(b"SANDBOX_CPUS\xff".to_vec()),
                "SECRET".into(),
            ),
            (OsString::from_vec(b"OTHER\xff".to_vec()), "1".into()),
        ]);
        assert_eq!(
            environment.unknown(),
            [
                "PLIMSOLL_ADR",
                "SANDBOX_CPUS\u{fffd}",
                "SANDBOX_MAX_CONCRURENT"
            ]
        );
    }

    #[test]
    fn a_value_that_is_not_text_is_refused_without_showing_it() {
        let environment = Environment {
            values: [("SANDBOX_CPUS".to_owned(), vec![b'1', 0xff])].into(),
        };
        let error = Reader::new(&environment).float(&SANDBOX_CPUS).unwrap_err();
        assert_eq!(error.to_string(), "SANDBOX_CPUS: not valid UTF-8");
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_a_refusal(value in any::<String>()) {
            let count = read!(count, SANDBOX_MEMORY_MB, &value);
            let trimmed = value.trim();
            let plain = !trimmed.is_empty() && trimmed.len() < 18 && trimmed.bytes().all(|b| b.is_ascii_digit());
            if plain {
                prop_assert_eq!(count, trimmed.parse::<u64>().ok());
            }
            let cpus: Option<f64> = read!(float, SANDBOX_CPUS, &value);
            if let Some(number) = cpus {
                prop_assert!(number.is_finite() && number >= 0.0);
            }
        }

        #[test]
        fn integers_read_back(number in 0i64..) {
            prop_assert_eq!(
                read!(count, SANDBOX_MEMORY_MB, &number.to_string()),
                Some(number.unsigned_abs())
            );
        }
    }
}
