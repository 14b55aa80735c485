//! The HTTP and RPC transport: a listener that speaks Connect, gRPC and
//! gRPC-Web over HTTP/1.1 and HTTP/2, with or without TLS; and one that serves
//! a single page with the same care, for metrics.
//!
//! Everything a stranger can reach before authentication lives here. A request
//! passes, in this order:
//!
//! 1. the connection: place under the cap, TLS, preface, timers ([`server`]);
//! 2. the shell: request-ID echo, header mark, unread bodies;
//! 3. the gate: path, credential, scope, declared length, decode slot, method,
//!    content type, compression, version, deadline, sizes, strict JSON;
//! 4. the RPC library, which only decodes, dispatches and encodes;
//! 5. the [`Service`](crate::call::Service), in a task of its own.
//!
//! The order is a security property: nothing expensive happens before the
//! cheap checks, and no body byte is read before the credential is checked.
//! An answer says "nothing ran" only while that can no longer change, see
//! `reached.rs`.

pub mod auth;
pub mod events;
pub mod server;
pub mod settings;
pub mod tls;

mod admit;
mod answer;
mod body;
mod connection;
mod content;
mod frame;
mod gate;
mod heads;
mod inflate;
mod page;
mod places;
mod pulse;
mod reached;
mod refused;
mod respond;
mod rpc;
mod slots;
mod timeout;

pub use auth::{Auth, AuthFailure, SharedToken, TokenLookup, Verified};
pub use events::Events;
pub use page::Page;
pub use server::{Drained, Ended, Options, Server};
pub use settings::Settings;
