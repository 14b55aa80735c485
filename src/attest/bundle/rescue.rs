//! The side file that keeps signed entries when their bundle cannot take them.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    disk::{BundleFile as _, Disk},
    seal::SignedEntry,
};

/// How many names are tried; each has 32 random bits.
const TRIES: usize = 8;

/// Writes the entries, without links, to a new side file and syncs it. The code
/// they record ran: losing them would lose its evidence.
///
/// # Errors
/// As the system says; no part of the file is left.
pub fn keep_aside<D: Disk>(
    disk: &D,
    bundle: &Path,
    entries: &[SignedEntry],
) -> io::Result<PathBuf> {
    let text: String = entries.iter().map(SignedEntry::to_unlinked_line).collect();
    let (path, mut file) = create_side_file(disk, bundle)?;
    let kept = file.append(0, text.as_bytes()).and_then(|()| file.sync());
    if let Err(error) = kept {
        // Part of an entry proves nothing, and nobody would be told of it.
        let _ = disk.remove(&path);
        return Err(error);
    }
    // The file is there and whole. Where its name cannot be synced too, only a
    // crash could still lose it: no reason to throw it away.
    let _ = disk.sync_directory_of(&path);
    Ok(path)
}

/// Makes an empty side file beside the bundle, mode 0600, under a new name:
/// `<bundle>.unsealed-<UTC time>-<8 hex digits>.jsonl`.
///
/// # Errors
/// As the system says.
pub fn create_side_file<D: Disk>(disk: &D, bundle: &Path) -> io::Result<(PathBuf, D::File)> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..TRIES {
        let path = name(bundle, disk.now())?;
        match disk.create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn name(bundle: &Path, now: SystemTime) -> io::Result<PathBuf> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    let random = u32::from_be_bytes(random);
    let mut name = OsString::from(bundle.as_os_str());
    name.push(format!(".unsealed-{}-{random:08x}.jsonl", stamp(now)));
    Ok(PathBuf::from(name))
}

/// UTC as `20060102T150405Z`; times before 1970 read as 1970.
fn stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The proleptic Gregorian date of a day counted from 1970-01-01. Counted in
/// 400-year eras that begin on 1 March, so that the leap day ends a year.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days.saturating_add(719_468);
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn stamps() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_136_214_245, "20060102T150405Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
