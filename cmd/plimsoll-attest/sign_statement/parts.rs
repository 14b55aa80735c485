//! A statement built from its parts: subjects named one by one, or the records
//! of checked runs.

use std::{
    io::{BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use plimsoll_attestation::{
    Fault, PublicKey, Reason,
    bundle::{self, Call, SeenLine, Visitor},
    own::OwnStatement,
    statement::{MAX_SUBJECTS, STATEMENT_TYPE},
};
use plimsoll_console::{
    Class, Console, Failure,
    files::{Dash, Inputs},
    progress::{Measure, Progress},
};
use serde_json::{Map, Value, json};

use super::input_failure;
use crate::refusal;

/// The name of a subject that is a run's record.
const RECORD: &str = "run-record";

/// One subject: a name and one digest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Subject {
    pub name: String,
    pub algorithm: String,
    pub digest: String,
}

impl Subject {
    /// Reads `NAME=ALG:HEX`; `ALG:` may be left out for `sha256`. `None` when
    /// there is no name. Whether the digest is one is the statement's rule.
    pub fn read(text: &str) -> Option<Self> {
        let (name, digest) = text.rsplit_once('=')?;
        let (algorithm, digest) = digest.split_once(':').unwrap_or(("sha256", digest));
        (!name.is_empty()).then(|| Subject {
            name: name.to_owned(),
            algorithm: algorithm.to_owned(),
            digest: digest.to_owned(),
        })
    }

    fn record(digest: String) -> Self {
        Subject {
            name: RECORD.to_owned(),
            algorithm: "sha256".to_owned(),
            digest,
        }
    }
}

/// Which runs of a bundle a statement is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Runs {
    All,
    Lines(Vec<u64>),
}

/// Builds the statement.
///
/// # Errors
/// Class `statement` or `reserved`.
pub fn statement(
    predicate_type: &str,
    subjects: &[Subject],
    predicate: Option<&[u8]>,
) -> Result<OwnStatement, Fault> {
    if subjects.iter().all(|subject| subject.algorithm == "sha256") {
        let named = subjects
            .iter()
            .map(|s| (s.name.as_str(), s.digest.as_str()));
        return OwnStatement::build(predicate_type, named, predicate);
    }
    // The builder knows SHA-256 alone. Everything after the subjects is taken
    // from what it makes for a stand-in, and the whole is checked once more.
    let stand_in = "0".repeat(64);
    let built = OwnStatement::build(predicate_type, [("-", stand_in.as_str())], predicate)?;
    let text = String::from_utf8_lossy(built.payload());
    let rest = text
        .split_once("],\"predicateType\":")
        .map_or("", |(_, rest)| rest);
    let listed: Vec<Value> = subjects
        .iter()
        .map(|subject| {
            let digest = Map::from_iter([(subject.algorithm.clone(), json!(subject.digest))]);
            json!([subject.name, digest])
        })
        .collect();
    let listed: Vec<String> = listed
        .iter()
        .map(|pair| {
            format!(
                "{{\"name\":{},\"digest\":{}}}",
                escaped(&pair[0]),
                escaped(&pair[1])
            )
        })
        .collect();
    let payload = format!(
        "{{\"_type\":\"{STATEMENT_TYPE}\",\"subject\":[{}],\"predicateType\":{rest}",
        listed.join(",")
    );
    OwnStatement::from_payload(payload.into_bytes())
}

/// Compact JSON with the escapes of statements. Outside of strings JSON has
/// none of the characters replaced.
fn escaped(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// The records of runs that verify: the whole bundle for all of them, each line
/// on its own for single ones. A record that stands in several lines is one
/// subject.
///
/// # Errors
/// Of evidence, or class `io`. Then nothing is signed.
pub fn records(
    console: &Console,
    file: &Path,
    keys: &[PublicKey],
    runs: &Runs,
) -> Result<Vec<Subject>, Failure> {
    let input = Inputs::new(console).open(file, Dash::Refused)?;
    let Some(mut source) = input.file() else {
        return Err(Failure::new(
            Class::Usage,
            "the bundle is no file",
            "Name a file: it is read more than once.",
        ));
    };
    let refused = |fault: Fault| {
        let empty = "A statement is about at least one run. Name the bundle that holds them.";
        refusal::of_calls(file, &fault, keys, empty)
    };
    let mut found = Records {
        digests: Vec::new(),
        progress: console.progress(Measure::Bytes(input.size())),
    };
    match runs {
        Runs::All => {
            let source = BufReader::with_capacity(1 << 16, source);
            let report = bundle::verify(source, keys, &mut found).map_err(refused)?;
            if report.records == 0 {
                return Err(refused(Fault::new(Reason::Empty)));
            }
        }
        Runs::Lines(lines) => {
            for &line in lines.iter().take(MAX_SUBJECTS + 1) {
                source
                    .seek(SeekFrom::Start(0))
                    .map_err(|error| input.fault(&error))?;
                let entry =
                    bundle::verify_entry(BufReader::new(source), keys, line).map_err(refused)?;
                found.add(&entry.call().record.record_sha256);
            }
        }
    }
    Ok(found.digests.into_iter().map(Subject::record).collect())
}

struct Records {
    digests: Vec<String>,
    progress: Progress,
}

impl Records {
    /// Keeps one more than a statement may have, so that too many are refused
    /// and no more are held.
    fn add(&mut self, digest: &str) {
        if self.digests.len() <= MAX_SUBJECTS && !self.digests.iter().any(|known| known == digest) {
            self.digests.push(digest.to_owned());
        }
    }
}

impl Visitor for Records {
    fn call(&mut self, call: &Call<'_>) {
        self.add(&call.record.record_sha256);
    }

    fn line(&mut self, line: &SeenLine) {
        self.progress.advance(line.length + 1);
    }
}

/// [`statement`], with the failure for a person.
pub fn built(
    predicate_type: &str,
    subjects: &[Subject],
    predicate: Option<&(PathBuf, Vec<u8>)>,
) -> Result<OwnStatement, Failure> {
    let bytes = predicate.map(|(_, bytes)| bytes.as_slice());
    statement(predicate_type, subjects, bytes).map_err(|fault| {
        let in_predicate = fault
            .member()
            .is_some_and(|member| member.starts_with("payload.predicate") && member != TYPE);
        match predicate {
            Some((file, _)) if in_predicate => input_failure(&fault).file(file),
            _ => input_failure(&fault),
        }
    })
}

/// The member whose faults are not the predicate file's.
const TYPE: &str = "payload.predicateType";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_as_text() {
        let read = |text: &str| Subject::read(text).map(|s| (s.name, s.algorithm, s.digest));
        let some = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(read("a=sha256:00"), some("a", "sha256", "00"));
        assert_eq!(read("a=00"), some("a", "sha256", "00"));
        assert_eq!(read("a=b=gitCommit:00"), some("a=b", "gitCommit", "00"));
        assert_eq!(read("a:b=00"), some("a:b", "sha256", "00"));
        assert_eq!(read("=00"), None);
        assert_eq!(read("00"), None);
    }

    #[test]
    fn other_algorithms_are_written_as_the_builder_writes() {
        let kind = "https://example.com/<&>/v1";
        let of = |name: &str, algorithm: &str, digest: &str| Subject {
            name: name.to_owned(),
            algorithm: algorithm.to_owned(),
            digest: digest.to_owned(),
        };
        let name = "<\u{2028}\"],\"predicateType\":\u{1}é\t";
        let digest = "a".repeat(64);
        let predicate = Some(&br#"{ "a" : "<>" }"#[..]);
        let one = of(name, "sha256", &digest);
        let plain = statement(kind, std::slice::from_ref(&one), predicate).unwrap();
        let other = of(name, "gitTree", &digest);
        let both = statement(kind, &[one.clone(), other], predicate).unwrap();
        let text = |s: &OwnStatement| String::from_utf8(s.payload().to_vec()).unwrap();
        let (plain, both) = (text(&plain), text(&both));
        let subject =
            &plain[plain.find("{\"name\"").unwrap()..plain.rfind("],\"predicateType").unwrap()];
        let again = subject.replace("sha256", "gitTree");
        assert_eq!(both, plain.replace(subject, &format!("{subject},{again}")));
        let twice = [of("n", "gitTree", &digest), of("n", "gitTree", &digest)];
        assert!(statement(kind, &twice, None).is_err());
        assert!(statement(kind, &[of("n", "gitTree", "00")], None).is_err());
        assert!(statement(kind, &[of("n", "sha1", &digest[..40])], None).is_ok());
    }
}
