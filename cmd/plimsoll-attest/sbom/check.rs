//! Checking BOMs.

use std::{
    fs::File,
    io::{BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use clap::ArgMatches;
use plimsoll_attestation::PublicKey;
use plimsoll_bom::{BomError, Bundle, Checked, Claimed, MAX_BOM_BYTES, Outline, Scope, Seekable};
use plimsoll_console::{
    Console, Errors, ExitCode, Failure, JsonObject, escape,
    files::{Dash, Input, Inputs},
    output::Stop,
    progress::Measure,
};

use super::{
    build::one_key,
    failure,
    flags::{Check, usage},
    shown::{self, Entry},
};

pub fn run(console: &Console, matches: &ArgMatches, asked: &Check) -> ExitCode {
    match checked(console, matches, asked) {
        Err(failure) => console.conclude(Err(Stop::Failed(failure))),
        Ok(entries) => {
            let failures: Vec<Failure> = entries.iter().filter_map(|e| e.error.clone()).collect();
            let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
            let members = JsonObject::new().with("boms", &entries);
            match failures.as_slice() {
                [failure] if entries.len() == 1 => {
                    console.finish(code, Errors::One(failure), members)
                }
                failures if console.options().json => {
                    console.finish(code, Errors::Many(failures), members)
                }
                // Their blocks were shown as they came.
                _ => console.finish(code, Errors::None, members),
            }
        }
    }
}

fn checked(console: &Console, matches: &ArgMatches, asked: &Check) -> Result<Vec<Entry>, Failure> {
    let key = one_key(console, matches)?;
    let inputs = Inputs::new(console);
    let input = match &asked.bundle {
        Some(bundle) => Some(inputs.open(bundle, Dash::Refused)?),
        None => None,
    };
    let file = match &input {
        Some(input) => Some(input.file().ok_or_else(|| {
            usage(
                "the bundle is no file",
                "Name a file: it is read more than once.",
            )
        })?),
        None => None,
    };
    let store = file.map(Seekable::new);
    let mut evidence = match (&input, file, &store) {
        (Some(input), Some(file), Some(store)) => Some(Evidence {
            console,
            key: &key,
            input,
            file,
            store,
            whole: None,
        }),
        _ => None,
    };
    let mut entries = Vec::new();
    for bom in &asked.boms {
        let result = one(&inputs, bom, &key, evidence.as_mut());
        match result {
            Ok(checked) => {
                let attached = asked.bundle.is_none();
                let _ = console.print(&shown::verdict(&escape::path(bom), &checked, attached));
                entries.push(Entry::checked(bom, &checked));
            }
            Err(failure) => {
                if asked.boms.len() > 1 {
                    console.show(&failure);
                }
                entries.push(Entry::refused(bom, &failure));
            }
        }
    }
    Ok(entries)
}

fn one(
    inputs: &Inputs<'_>,
    bom: &Path,
    key: &PublicKey,
    mut evidence: Option<&mut Evidence<'_>>,
) -> Result<Checked, Failure> {
    let input = inputs.open(bom, Dash::Refused)?;
    if let Some(checked) = streamed(&input, key, evidence.as_deref_mut()) {
        return Ok(checked);
    }
    // Only now is it held in memory: to say what is wrong, and where.
    let text = read(inputs, bom)?;
    let about_bom = |error: &BomError| failure::of(error, bom, bom, key);
    let claimed = Claimed::read(&text, key).map_err(|error| about_bom(&error))?;
    let Some(evidence) = evidence else {
        return claimed
            .against_attached()
            .map_err(|error| about_bom(&error));
    };
    let (scope, lines) = (claimed.scope(), claimed.lines());
    let checked = evidence.verified(scope, lines, bom, |bundle| claimed.against_bundle(bundle))?;
    checked.map_err(|error| failure::of(&error, evidence.input.path(), bom, key))
}

/// Checks a BOM without holding it; `None` for one that does not pass.
fn streamed(
    input: &Input,
    key: &PublicKey,
    evidence: Option<&mut Evidence<'_>>,
) -> Option<Checked> {
    let outline = Outline::read(input.file()?, key)?;
    let Some(evidence) = evidence else {
        return outline.against_attached();
    };
    let (scope, lines) = (outline.scope(), outline.lines());
    let checked = evidence.verified(scope, lines, input.path(), |bundle| {
        outline.against_bundle(bundle)
    });
    checked.ok().flatten()
}

/// Reads one byte more than a BOM may have: its size is its own rule, not that
/// of a file.
fn read(inputs: &Inputs<'_>, bom: &Path) -> Result<Vec<u8>, Failure> {
    let mut input = inputs.open(bom, Dash::Refused)?;
    let size = input.size().unwrap_or_default().min(MAX_BOM_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let most = MAX_BOM_BYTES.saturating_add(1);
    let read = (&mut input).take(most).read_to_end(&mut bytes);
    read.map_err(|error| input.fault(&error))?;
    Ok(bytes)
}

/// The bundle, verified as a whole at most once.
struct Evidence<'e> {
    console: &'e Console,
    key: &'e PublicKey,
    input: &'e Input,
    file: &'e File,
    store: &'e Seekable<&'e File>,
    whole: Option<Result<Bundle<'e>, Failure>>,
}

impl Evidence<'_> {
    /// Verifies what a BOM of this scope rests on, and gives it to `take`.
    fn verified<T>(
        &mut self,
        scope: Scope,
        lines: &[u64],
        bom: &Path,
        take: impl FnOnce(&Bundle<'_>) -> T,
    ) -> Result<T, Failure> {
        let path = self.input.path().to_owned();
        let key = self.key;
        let refused = |error: &BomError| failure::of(error, &path, bom, key);
        if scope == Scope::Line {
            let line = lines.first().copied().unwrap_or_default();
            let source = self.start()?;
            let bundle = Bundle::verify_line(self.store, source, key, line)
                .map_err(|error| refused(&error))?;
            return Ok(take(&bundle));
        }
        if self.whole.is_none() {
            let source = self.start()?;
            let progress = self.console.progress(Measure::Bytes(self.input.size()));
            progress.phase("verifying");
            let verified = Bundle::verify(self.store, source, key, &mut |n| progress.advance(n));
            drop(progress);
            self.whole = Some(verified.map_err(|error| refused(&error)));
        }
        match &self.whole {
            Some(Ok(bundle)) => Ok(take(bundle)),
            Some(Err(failure)) => Err(failure.clone()),
            None => Err(refused(&BomError::Read(
                std::io::ErrorKind::NotFound.into(),
            ))),
        }
    }

    fn start(&self) -> Result<BufReader<&File>, Failure> {
        let mut file = self.file;
        file.seek(SeekFrom::Start(0))
            .map_err(|error| self.input.fault(&error))?;
        Ok(BufReader::with_capacity(1 << 16, file))
    }
}
