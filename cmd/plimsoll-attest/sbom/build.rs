//! Building BOMs.

use std::{
    fs,
    io::{self, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use clap::ArgMatches;
use plimsoll_attestation::PublicKey;
use plimsoll_bom::{Bom, BomError, Bundle, Scope, Seekable, Selection, Written};
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, escape,
    files::{Dash, Inputs, Mode, OutFile, plain_words},
    output::Stop,
    progress::{Measure, Progress},
    signals::Interrupts,
};

use super::{
    failure,
    flags::{Build, usage},
    places,
    shown::{self, Entry},
};
use crate::keys;

/// Bytes written together.
const BUFFER: usize = 1 << 16;

pub fn run(console: &Console, matches: &ArgMatches, asked: &Build) -> ExitCode {
    // A signal removes what is unfinished. Where none can be heard, it ends the
    // command the system's way.
    let _interrupts = Interrupts::install();
    match built(console, matches, asked) {
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
        Err(stop) => console.conclude(Err(stop)),
    }
}

/// The one key of a command that takes one.
///
/// # Errors
/// Of the key, or class `usage` for two.
pub fn one_key(console: &Console, matches: &ArgMatches) -> Result<PublicKey, Failure> {
    let mut keys = keys::verifying(console, matches)?.into_iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        _ => Err(usage(
            "--pub and --own name two keys",
            "A BOM states one signing key: give the one that signed the bundle.",
        )),
    }
}

fn built(console: &Console, matches: &ArgMatches, asked: &Build) -> Result<Vec<Entry>, Stop> {
    let key = one_key(console, matches)?;
    let inputs = Inputs::new(console);
    let input = inputs.open(&asked.bundle, Dash::Refused)?;
    if let (Some(out), Some(_)) = (&asked.out, &asked.selection) {
        places::check(std::slice::from_ref(out), asked, matches)?;
    }
    let Some(mut file) = input.file() else {
        return Err(usage(
            "the bundle is no file",
            "Name a file: it is read more than once.",
        )
        .into());
    };
    let store = Seekable::new(file);
    let progress = console.progress(Measure::Bytes(input.size()));
    progress.phase("verifying");
    file.seek(SeekFrom::Start(0))
        .map_err(|error| input.fault(&error))?;
    let source = BufReader::with_capacity(BUFFER, file);
    let verified = match (asked.scope, &asked.selection) {
        (Scope::Line, Some(Selection::Line(line))) => {
            Bundle::verify_line(&store, source, &key, *line)
        }
        _ => Bundle::verify(&store, source, &key, &mut |bytes| progress.advance(bytes)),
    };
    drop(progress);
    let refused = |error: &BomError, out: &Path| failure::of(error, &asked.bundle, out, &key);
    let verified = verified.map_err(|error| refused(&error, &asked.bundle))?;
    let Some(selection) = &asked.selection else {
        return each(console, matches, asked, &verified, &key);
    };
    let place = asked.out.as_deref().unwrap_or(Path::new("-"));
    let subject = verified
        .select(selection)
        .map_err(|error| refused(&error, place))?;
    let progress = console.progress(Measure::Phase);
    progress.phase("building");
    let bom = Bom::new(&verified, &subject, &key, &asked.options)
        .map_err(|error| refused(&error, place))?;
    let table = |file: &str| shown::table(file, &subject, bom.serial_number(), &key, asked.scope);
    let Some(out) = &asked.out else {
        drop(progress);
        let result = bom.write(BufWriter::with_capacity(BUFFER, Product(console)));
        if let Err(error) = result {
            return Err(match error {
                BomError::Write(_) => Stop::Closed,
                error => refused(&error, place).into(),
            });
        }
        console.beside(&table("standard output"));
        return Ok(Vec::new());
    };
    let written = write(&bom, out, asked, &key)?;
    drop(progress);
    console.success(&table(&escape::path(out)))?;
    let serial = bom.serial_number();
    Ok(vec![Entry::written(
        out,
        &subject,
        serial,
        written.sha256,
        asked.scope,
    )])
}

/// A BOM for each call. One that is refused does not keep the others back.
fn each(
    console: &Console,
    matches: &ArgMatches,
    asked: &Build,
    bundle: &Bundle<'_>,
    key: &PublicKey,
) -> Result<Vec<Entry>, Stop> {
    let folder = asked.out.clone().unwrap_or_default();
    let lines: Vec<u64> = bundle.call_lines().collect();
    if lines.is_empty() {
        let failure = Failure::new(
            Class::NoRuns,
            "the bundle holds no call",
            "Name the bundle that holds the calls.",
        );
        return Err(failure.file(&asked.bundle).into());
    }
    let places: Vec<PathBuf> = lines
        .iter()
        .map(|line| folder.join(format!("line-{line}.cdx.json")))
        .collect();
    if folder.is_dir() {
        places::check(&places, asked, matches)?;
    }
    make_folder(&folder)?;
    let progress = console.progress(Measure::Lines(Some(lines.len() as u64)));
    progress.phase("building");
    let mut entries = Vec::new();
    for (&line, out) in lines.iter().zip(&places) {
        let entry = one(asked, bundle, key, line, out);
        match entry {
            Ok((entry, row)) => {
                console.success(&row)?;
                entries.push(entry);
            }
            Err(failure) => {
                if lines.len() > 1 {
                    console.show(&failure);
                }
                entries.push(Entry::refused(out, &failure));
            }
        }
        progress.advance(1);
    }
    drop::<Progress>(progress);
    console.success(&format!(
        "tiers are {}\n",
        plimsoll_bom::QUALIFICATION_SHORT
    ))?;
    Ok(entries)
}

fn one(
    asked: &Build,
    bundle: &Bundle<'_>,
    key: &PublicKey,
    line: u64,
    out: &Path,
) -> Result<(Entry, String), Failure> {
    let refused = |error: &BomError| failure::of(error, &asked.bundle, out, key);
    let subject = bundle
        .select(&Selection::Line(line))
        .map_err(|error| refused(&error))?;
    let bom = Bom::new(bundle, &subject, key, &asked.options).map_err(|error| refused(&error))?;
    let written = write(&bom, out, asked, key)?;
    let serial = bom.serial_number();
    Ok((
        Entry::written(out, &subject, serial, written.sha256, asked.scope),
        shown::row(&escape::path(out), &subject, serial),
    ))
}

fn write(bom: &Bom<'_>, out: &Path, asked: &Build, key: &PublicKey) -> Result<Written, Failure> {
    let mut file = OutFile::create(out, Mode::Private, places::replace(asked))?;
    let written = bom.write(BufWriter::with_capacity(BUFFER, &mut file));
    let written = written.map_err(|error| match error {
        BomError::Write(error) => file.fault(&error),
        error => failure::of(&error, &asked.bundle, out, key),
    })?;
    file.commit()?;
    Ok(written)
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(()),
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(Failure::new(
            Class::Io,
            format!("cannot be made: {}", plain_words(&error)),
            "Name a directory, or one that can be made.",
        )
        .file(folder)),
    }
}

/// Standard output as the place of a BOM.
struct Product<'c>(&'c Console);

impl Write for Product<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.product(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
