//! The client: one call, one exchange.

use std::{fmt, sync::Arc, time::Duration};

use plimsoll_wire::{
    proto::{DescribeRequest, DescribeResponse, Message, RunRequest, decode},
    validate,
};
use tokio::time::Instant;

use crate::{
    CancelToken,
    base_url::BaseUrl,
    checks,
    connect::Security,
    exchange::{Plan, Procedure, Progress, exchange, malformed},
    failure::{CallFailure, Checked, Stage},
    options::{ClientError, MAX_TIMEOUT, Options},
    recorder::Recorder,
    token::Token,
};

/// A client of one daemon. Cheap to clone; clones share nothing that changes.
/// Needs a tokio runtime with I/O and time.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) base: BaseUrl,
    pub(crate) token: Option<Token>,
    pub(crate) timeout: Duration,
    pub(crate) security: Security,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
}

/// What one call may do differently.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The whole exchange's budget, instead of the client's.
    pub timeout: Option<Duration>,
    /// Ends the call when it is cancelled. The failure says whether a byte had
    /// left. Dropping the call's future does the same without an answer.
    pub cancel: Option<CancelToken>,
}

impl Client {
    /// Makes a client; nothing is contacted.
    ///
    /// # Errors
    /// [`ClientError`] when the budget is zero or the trust roots of an https
    /// daemon cannot be used.
    pub fn new(options: Options) -> Result<Client, ClientError> {
        if options.timeout.is_zero() {
            return Err(ClientError::Timeout);
        }
        let security = security(&options)?;
        Ok(Client(Arc::new(Shared {
            base: options.base,
            token: options.token,
            timeout: options.timeout,
            security,
            recorder: options.recorder,
        })))
    }

    /// Runs one request, exactly as given, and checks its answer. What the
    /// daemon validates is validated here first, but for the protocol number.
    ///
    /// # Errors
    /// [`CallFailure`]; its `ran` says whether anything may have run.
    pub async fn run(&self, request: &RunRequest) -> Result<Checked, Box<CallFailure>> {
        self.run_with(request, &CallOptions::default()).await
    }

    /// As [`Client::run`], with options for this call.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn run_with(
        &self,
        request: &RunRequest,
        options: &CallOptions,
    ) -> Result<Checked, Box<CallFailure>> {
        validate::single_run(request)?;
        let body = request.encode_to_vec();
        let answer = self.simple(Procedure::Run, body, options).await?;
        let checked = checks::single_run(request.clone(), &answer)?;
        self.keep(checked)
    }

    /// What the daemon states of itself: configuration and provider evidence,
    /// never attestation. Compare its `protocol` with
    /// [`plimsoll_wire::PROTOCOL`]; a run is checked for it in any case.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn describe(
        &self,
        options: &CallOptions,
    ) -> Result<DescribeResponse, Box<CallFailure>> {
        let body = DescribeRequest::default().encode_to_vec();
        let answer = self.simple(Procedure::Describe, body, options).await?;
        decode(&answer).map_err(|error| malformed(error.to_string()).into())
    }

    /// Whether the daemon says it is ready for runs.
    ///
    /// # Errors
    /// [`CallFailure`] when it cannot be asked.
    pub async fn ready(&self, options: &CallOptions) -> Result<bool, Box<CallFailure>> {
        match self.simple(Procedure::Ready, Vec::new(), options).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.stage == Stage::Daemon => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn simple(
        &self,
        procedure: Procedure,
        body: Vec<u8>,
        options: &CallOptions,
    ) -> Result<bytes::Bytes, Box<CallFailure>> {
        let plan = Plan {
            procedure,
            body: body.into(),
            deadline: self.deadline(options),
            cancel: options.cancel.as_ref(),
            keep_after_send: false,
            progress: &Progress::default(),
            session_id: "",
        };
        Ok(exchange(&self.0, plan).await?)
    }

    /// Hands a checked exchange to the recorder.
    pub(crate) fn keep(&self, checked: Checked) -> Result<Checked, Box<CallFailure>> {
        let Some(recorder) = &self.0.recorder else {
            return Ok(checked);
        };
        match recorder.answered(&checked) {
            Ok(()) => Ok(checked),
            Err(error) => {
                let mut failure = CallFailure::not_recorded(error);
                failure.checked = Some(Box::new(checked));
                Err(Box::new(failure))
            }
        }
    }

    pub(crate) fn deadline(&self, options: &CallOptions) -> Instant {
        let timeout = options.timeout.unwrap_or(self.0.timeout);
        Instant::now() + timeout.min(MAX_TIMEOUT)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.0.base.to_string())
            .field("token", &self.0.token)
            .field("timeout", &self.0.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "tls")]
fn security(options: &Options) -> Result<Security, ClientError> {
    if options.base.is_https() {
        return Ok(Security::Tls(crate::tls::Connector::new(&options.trust)?));
    }
    Ok(Security::Cleartext)
}

#[cfg(not(feature = "tls"))]
fn security(options: &Options) -> Result<Security, ClientError> {
    if options.base.is_https() {
        return Err(ClientError::NoTls);
    }
    Ok(Security::Cleartext)
}
