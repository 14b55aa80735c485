//! A BOM that is ready to be written.

use std::io::{self, Write};

use plimsoll_attestation::PublicKey;
use plimsoll_record::Digest;
use serde_json::Value;

use crate::{
    bundle::Bundle,
    components,
    document::{Document, Place},
    fault::{BomError, Code, Refusal},
    lines::Store,
    print::{Form, Hashing, Printer},
    profile::{MAX_BOM_BYTES, Options, Scope},
    schema::{Broken, Parts},
    serial,
    subject::Subject,
};

/// A BOM built from verified evidence and found valid by the official schema.
/// Its lines are read again while it is written.
pub struct Bom<'e> {
    document: Document<'e>,
    serial: String,
    bytes: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Written {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: Digest,
}

impl<'e> Bom<'e> {
    /// Builds the BOM of a subject selected from `bundle`, and validates it
    /// against the embedded schema of its version.
    ///
    /// # Errors
    /// `too_large`, `time_range`, that the bundle could not be read again, or
    /// [`BomError::Internal`] for a BOM that is not valid, which is a bug.
    pub fn new(
        bundle: &Bundle<'e>,
        subject: &'e Subject,
        key: &'e PublicKey,
        options: &'e Options,
    ) -> Result<Self, BomError> {
        components::fits(subject, options)?;
        let bom = Self::unvalidated(subject, key, bundle.store, bundle.scope, options)?;
        if bom.bytes > MAX_BOM_BYTES {
            return Err(
                Refusal::new(Code::TooLarge, "the BOM would be larger than 256 MiB")
                    .expected(format!("at most {MAX_BOM_BYTES} bytes"))
                    .found(format!("{} bytes", bom.bytes))
                    .into(),
            );
        }
        bom.validate(options)?;
        Ok(bom)
    }

    pub(crate) fn unvalidated(
        subject: &'e Subject,
        key: &'e PublicKey,
        store: &'e dyn Store,
        scope: Scope,
        options: &'e Options,
    ) -> Result<Self, BomError> {
        let mut document = Document::new(subject, key, store, scope, options)?;
        let mut hashing = Hashing::over(io::sink());
        let mut printer = Printer::new(&mut hashing, Form::Compact);
        document.print(&mut printer)?;
        let without = printer.finish().map_err(BomError::Write)?;
        let serial = serial::of(&digest(hashing.hasher));
        if let Value::Object(members) = &mut document.skeleton {
            members.insert("serialNumber".to_owned(), serial.as_str().into());
        }
        // A comma, the line's end, two spaces, two names in quotes, `: `.
        let member = 1 + 1 + 2 + "\"serialNumber\": \"\"".len() as u64 + serial.len() as u64;
        Ok(Bom {
            document,
            serial,
            bytes: without.saturating_add(member),
        })
    }

    pub(crate) fn validate(&self, options: &Options) -> Result<(), BomError> {
        let broken = |broken: Broken| {
            BomError::Internal(match broken {
                Broken::Invalid(at) => format!("{} at {}", at.keyword, at.pointer),
                Broken::Schema(error) => error,
            })
        };
        let parts = Parts::new(options.spec_version).map_err(broken)?;
        parts.tree(&self.document.skeleton).map_err(broken)?;
        for place in Place::ALL {
            let mut list = parts.list(place);
            self.document
                .each(place, &mut |item| list.take(item).map_err(broken))?;
            list.finish().map_err(broken)?;
        }
        Ok(())
    }

    /// The serial number, `urn:uuid:` and a UUID.
    #[must_use]
    pub fn serial_number(&self) -> &str {
        &self.serial
    }

    /// The length of the file in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes
    }

    /// Writes the file form.
    ///
    /// # Errors
    /// That `out` could not be written or the bundle not read again. What was
    /// written by then is not a BOM.
    pub fn write(&self, out: impl Write) -> Result<Written, BomError> {
        let mut hashing = Hashing::over(out);
        let mut printer = Printer::new(&mut hashing, Form::File);
        self.document.print(&mut printer)?;
        printer.finish().map_err(BomError::Write)?;
        Ok(Written {
            bytes: hashing.bytes,
            sha256: digest(hashing.hasher),
        })
    }

    /// The file form in memory.
    ///
    /// # Errors
    /// As [`Bom::write`].
    pub fn to_vec(&self) -> Result<Vec<u8>, BomError> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or_default());
        self.write(&mut bytes)?;
        Ok(bytes)
    }
}

pub(crate) fn digest(hasher: sha2::Sha256) -> Digest {
    Digest::from(<[u8; 32]>::from(sha2::Digest::finalize(hasher)))
}
