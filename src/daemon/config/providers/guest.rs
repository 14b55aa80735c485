//! `SANDBOX_GUEST_UID`: the user every guest runs as.

use std::ops::RangeInclusive;

/// The user and group of a guest when none is set.
pub const DEFAULT: u32 = 61_000;

/// What can be set.
const BOUNDS: RangeInclusive<i64> = 1..=65_532;
/// IDs that systemd hands out by itself: homes, dynamic users and containers of
/// the host, so that a guest must not share one.
const RESERVED: [RangeInclusive<i64>; 3] = [60_001..=60_513, 60_578..=60_705, 61_184..=65_519];

/// Reads the user ID of every guest. The group has the same number and a session's
/// check of identity runs as the next one, so both must be free. `None` for a
/// text that is not such a number.
#[must_use]
pub fn parse(text: &str) -> Option<u32> {
    let taken = |id: i64| RESERVED.iter().any(|range| range.contains(&id));
    let id: i64 = text.trim().parse().ok()?;
    if !BOUNDS.contains(&id) || taken(id) || taken(id + 1) {
        return None;
    }
    u32::try_from(id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_reserved_ranges() {
        for (value, id) in [
            ("61000", DEFAULT),
            (" 1000 ", 1000),
            ("1", 1),
            ("59999", 59_999),
            ("60514", 60_514),
            ("60576", 60_576),
            ("60706", 60_706),
            ("61182", 61_182),
            ("65520", 65_520),
            ("65532", 65_532),
        ] {
            assert_eq!(parse(value), Some(id), "{value:?}");
        }
        for value in [
            "", "0", "-1", "60000", "60001", "60100", "60513", "60577", "60578", "60705", "61183",
            "61184", "65519", "65533", "nobody", "61000.0",
        ] {
            assert_eq!(parse(value), None, "{value:?}");
        }
    }
}
