//! Client of the plimsoll daemon: sends, checks, records, never retries.
//!
//! One call is one HTTP/1.1 exchange on its own connection. There is no pool,
//! no redirect, no proxy variable and no second attempt: an error after the
//! first byte may mean that the code ran, so only the caller may decide to
//! send it again, and [`CallFailure::ran`] says what is known.
//!
//! What an answer states counts only when it is bound to the request by its
//! request ID, and a run's answer is handed out only when its record was
//! recomputed from this side's own copies of request and answer.
//!
//! Trust: the daemon is trusted for what it measured (provider, tier, time),
//! never for digests, chains or the claim that nothing ran on an answer made
//! for another request. The token and session IDs are capabilities: they are
//! in no error, no debug output and no result.
//!
//! ```no_run
//! use plimsoll_client::{BaseUrl, Client, Options, Ran, Token};
//! use plimsoll_wire::{json, proto::RunRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = Options::new(BaseUrl::parse("https://sandbox.example")?);
//! options.token = Some(Token::new("example-token-0123456789abcdef0123456789")?);
//! let client = Client::new(options)?;
//! let request: RunRequest = json::read(br#"{"protocol":3,"javascript":{"code":"6*7"}}"#)?;
//! match client.run(&request).await {
//!     Ok(checked) => println!("ran behind {}", checked.record().isolation),
//!     Err(failure) => match failure.ran {
//!         Ran::No { reason } => println!("nothing ran: {reason}"),
//!         Ran::Maybe | Ran::Yes => println!("do not send it again blindly"),
//!     },
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod base_url;
pub mod failure;
pub mod options;
pub mod recorder;
pub mod session;

mod checks;
mod client;
mod close;
mod connect;
mod drive;
mod error_body;
mod exchange;
mod open;
mod scan;
#[cfg(feature = "tls")]
mod tls;
mod tls_fault;
mod token;

pub use base_url::BaseUrl;
pub use client::{CallOptions, Client};
pub use failure::{CallFailure, Checked, Class, Ran, Stage};
pub use options::{ClientError, Options, Trust};
pub use recorder::{Recorder, RecorderError};
pub use session::{Closed, OpenSession, Session};
pub use tls_fault::TlsFault;
pub use token::{MAX_TOKEN_BYTES, Token, TokenError};
/// Cancels calls that were started with it; see [`CallOptions::cancel`].
pub use tokio_util::sync::CancellationToken as CancelToken;
