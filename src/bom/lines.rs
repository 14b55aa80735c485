//! Where the lines of a bundle are read again from.

use std::{
    borrow::Cow,
    cell::RefCell,
    io::{self, Read, Seek, SeekFrom},
};

use plimsoll_record::Digest;

use crate::fault::BomError;

/// A verified line: where it stands and what it must still be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineRef {
    /// Its number, counted from 1.
    pub number: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length without the newline.
    pub length: u64,
    /// Its LineDigest.
    pub digest: Digest,
}

/// A bundle that can be read at any place. What it gives is believed only when
/// it has the digest that was verified, so a file that is exchanged or changed
/// meanwhile is an error and never a BOM.
pub trait Store {
    /// The bytes of a line without its newline.
    ///
    /// # Errors
    /// When the store cannot be read there.
    fn read(&self, line: &LineRef) -> io::Result<Cow<'_, [u8]>>;
}

/// A whole bundle in memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a>(pub &'a [u8]);

impl Store for Memory<'_> {
    fn read(&self, line: &LineRef) -> io::Result<Cow<'_, [u8]>> {
        let start = usize::try_from(line.offset).ok();
        let length = usize::try_from(line.length).ok();
        start
            .zip(length)
            .and_then(|(start, length)| self.0.get(start..start.checked_add(length)?))
            .map(Cow::Borrowed)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// An open bundle file.
#[derive(Debug)]
pub struct Seekable<R>(RefCell<R>);

impl<R: Read + Seek> Seekable<R> {
    /// Reads from an open file, at any place.
    pub fn new(file: R) -> Self {
        Seekable(RefCell::new(file))
    }

    /// How many bytes it has now.
    pub(crate) fn length(&self) -> io::Result<u64> {
        self.0.borrow_mut().seek(SeekFrom::End(0))
    }

    /// Reads once at a place; 0 bytes at the end of the file.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.0.borrow_mut();
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    /// Reads this many bytes at a place.
    pub(crate) fn read_exact_at(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut file = self.0.borrow_mut();
        file.seek(SeekFrom::Start(offset))?;
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl<R: Read + Seek> Store for Seekable<R> {
    fn read(&self, line: &LineRef) -> io::Result<Cow<'_, [u8]>> {
        self.read_exact_at(line.offset, line.length).map(Cow::Owned)
    }
}

/// Reads a line and checks that it is the verified one.
pub(crate) fn verified<'s>(
    store: &'s dyn Store,
    line: &LineRef,
) -> Result<Cow<'s, [u8]>, BomError> {
    let bytes = store.read(line).map_err(BomError::Read)?;
    if Digest::of(&bytes) != line.digest {
        return Err(BomError::Read(io::Error::other(
            "it was changed while it was read",
        )));
    }
    Ok(bytes)
}
