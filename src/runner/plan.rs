//! What the runner is asked to do: JSON on its standard input.

use std::time::Duration;

use serde::Serialize;
use zeroize::Zeroizing;

use crate::ReportKey;

/// One file, written before the first step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// Relative path.
    pub path: String,
    /// UTF-8 text.
    pub content: String,
}

/// A project for the runner. The request it comes from has been validated:
/// counts and sizes are within the wire's limits.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Files in order.
    pub files: &'a [File],
    /// Shell commands in order.
    pub steps: &'a [String],
    /// The whole project's budget; each step may use it up.
    pub step_timeout: Duration,
    /// Relative paths to return.
    pub artifacts: &'a [String],
    /// Source of the host client, with a grant only.
    pub host_client: Option<&'a str>,
    /// `NAME=value` entries for the steps: the image's, then a grant's.
    pub env: &'a [String],
    /// Key of this run.
    pub key: &'a ReportKey,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Encoded<'a> {
    files: &'a [File],
    steps: &'a [String],
    step_timeout_ms: u64,
    artifacts: &'a [String],
    #[serde(rename = "hostSDK", skip_serializing_if = "Option::is_none")]
    host_client: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    env: &'a [String],
    report_key: &'a str,
}

impl Plan<'_> {
    /// The plan's bytes. They hold the key: they go to the runner's standard
    /// input and nowhere else.
    ///
    /// # Errors
    /// None that these types allow; the encoder's own, should it have one.
    pub fn to_json(&self) -> Result<Zeroizing<Vec<u8>>, serde_json::Error> {
        let key = self.key.to_hex();
        let millis = self.step_timeout.as_millis().max(1);
        let encoded = Encoded {
            files: self.files,
            steps: self.steps,
            step_timeout_ms: u64::try_from(millis).unwrap_or(u64::MAX),
            artifacts: self.artifacts,
            host_client: self.host_client,
            env: self.env,
            report_key: &key,
        };
        // Room at once: a buffer that grows would leave copies of the key behind.
        let text: usize = self.files.iter().map(|f| f.content.len()).sum();
        let mut out = Zeroizing::new(Vec::with_capacity(
            text.saturating_mul(6).saturating_add(1 << 20),
        ));
        serde_json::to_writer(&mut *out, &encoded)?;
        Ok(out)
    }
}
