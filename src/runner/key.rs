//! The key that makes a report the runner's.

use std::fmt;

use zeroize::Zeroizing;

/// 32 random bytes, used for one run only. No `Display`; `Debug` says nothing.
#[derive(Clone)]
pub struct ReportKey(Zeroizing<[u8; 32]>);

impl ReportKey {
    /// A fresh key.
    ///
    /// # Errors
    /// The system's generator gave no bytes.
    pub fn fresh() -> Result<ReportKey, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice())?;
        Ok(ReportKey(bytes))
    }

    /// A key of known bytes, for tests and replays of recorded frames.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> ReportKey {
        ReportKey(Zeroizing::new(bytes))
    }

    /// The bytes, for the frame reader.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The form a plan carries.
    pub(crate) fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.0.as_slice()))
    }
}

impl fmt::Debug for ReportKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReportKey(..)")
    }
}
