//! Unix milliseconds as a UTC time.

/// RFC 3339 in UTC with milliseconds; the number itself outside of the years
/// 0 to 9999, which no honest clock states.
#[must_use]
pub fn utc(unix_ms: i64) -> String {
    let (days, ms) = (
        unix_ms.div_euclid(86_400_000),
        unix_ms.rem_euclid(86_400_000),
    );
    // Years begin in March here, so that a leap day is a year's last. The era
    // of 400 years that holds day 0 begins on 0000-03-01.
    let day = days + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    if !(0..=9999).contains(&year) {
        return format!("{unix_ms} ms");
    }
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day_of_month:02}T{hours:02}:{minutes:02}:{:02}.{ms:03}Z",
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_793_000_000_100, "2026-10-26T07:33:20.100Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "253402300800000 ms"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-62167219200001 ms"),
            (i64::MIN, "-9223372036854775808 ms"),
            (i64::MAX, "9223372036854775807 ms"),
        ] {
            assert_eq!(utc(ms), text);
        }
    }
}
