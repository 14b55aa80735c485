//! Exit codes: the one table from which the program, its help, its manual pages and its tests read.

use std::fmt;

/// How a command ended, as the calling shell or script sees it.
///
/// A child's, a guest's or a step's exit code never becomes one of these.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ExitCode {
    /// 0: done, verified, reproduced.
    Ok,
    /// 1: evidence does not verify, an input was refused, a check differs.
    Refused,
    /// 2: usage or configuration; nothing was done.
    Usage,
    /// 3: code ran or may have run without a complete signed record.
    Unrecorded,
    /// 4: not dispatched, or the daemon or environment is not available.
    Unavailable,
    /// 5: the evidence is good and its outcome is negative.
    Negative,
    /// 70: a fault of this program.
    Internal,
}

impl ExitCode {
    /// Every code in ascending order: the table that documentation is generated from.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Refused,
        Self::Usage,
        Self::Unrecorded,
        Self::Unavailable,
        Self::Negative,
        Self::Internal,
    ];

    /// Worst news first: possible unrecorded execution, then refused evidence, ahead of a mere
    /// inability to check.
    const WORST_FIRST: [Self; 7] = [
        Self::Internal,
        Self::Unrecorded,
        Self::Refused,
        Self::Usage,
        Self::Unavailable,
        Self::Negative,
        Self::Ok,
    ];

    /// Number, name and meaning: the only place where they are written down.
    const fn row(self) -> (u8, &'static str, &'static str) {
        match self {
            Self::Ok => (0, "ok", "done, verified, reproduced, nothing to object to"),
            Self::Refused => (
                1,
                "refused",
                "evidence does not verify, an input was refused, a check differs",
            ),
            Self::Usage => (
                2,
                "usage",
                "usage or configuration error, an input that cannot be read or an output that \
                 cannot be created; nothing was done",
            ),
            Self::Unrecorded => (
                3,
                "unrecorded",
                "code ran or may have run, and no complete signed record was kept",
            ),
            Self::Unavailable => (
                4,
                "unavailable",
                "not dispatched, or the daemon or the environment is not available: nothing ran",
            ),
            Self::Negative => (
                5,
                "negative",
                "the work was done, the evidence is good, and its outcome is negative",
            ),
            Self::Internal => (
                70,
                "internal",
                "a fault of this program; nothing was written",
            ),
        }
    }

    /// The number the process ends with.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.row().0
    }

    /// The stable one-word name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().1
    }

    /// What it means, in half a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.row().2
    }

    /// Whether this is [`ExitCode::Ok`].
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }

    /// The code of two inputs worked on in one invocation: the worse news wins, in the order
    /// 70, 3, 1, 2, 4, 5, 0.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self::WORST_FIRST
            .into_iter()
            .find(|&code| code == self || code == other)
            .unwrap_or(Self::Internal)
    }

    /// [`ExitCode::combine`] over any number of inputs; no input at all is [`ExitCode::Ok`], so a
    /// caller for whom "nothing" is a failure must say so itself.
    #[must_use]
    pub fn combine_all(codes: impl IntoIterator<Item = Self>) -> Self {
        codes.into_iter().fold(Self::Ok, Self::combine)
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code())
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_published_ones() {
        let numbers: Vec<u8> = ExitCode::ALL.iter().map(|code| code.code()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 70]);
    }

    #[test]
    fn worse_news_wins_whichever_comes_first() {
        let order = [70, 3, 1, 2, 4, 5, 0];
        let rank = |code: ExitCode| order.iter().position(|&n| n == code.code());
        for a in ExitCode::ALL {
            for b in ExitCode::ALL {
                let worse = if rank(a) < rank(b) { a } else { b };
                assert_eq!(a.combine(b), worse);
                assert_eq!(b.combine(a), worse);
            }
        }
        assert_eq!(ExitCode::combine_all([]), ExitCode::Ok);
        let mixed = [ExitCode::Negative, ExitCode::Usage, ExitCode::Refused];
        assert_eq!(ExitCode::combine_all(mixed), ExitCode::Refused);
    }
}
