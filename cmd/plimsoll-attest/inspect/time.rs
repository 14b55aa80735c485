//! Times as people read them, and that they read back.

pub use plimsoll_record::time::utc;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_a_cycle_reads_back() {
        for day in -146_097..146_097_i64 {
            let ms = day * 86_400_000 + 43_200_000;
            assert_eq!(plimsoll_console::values::time(&utc(ms)), Ok(ms));
        }
    }
}
