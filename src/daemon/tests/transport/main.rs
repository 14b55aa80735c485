//! The transport from outside: raw bytes on loopback, a service that counts.

// Support code stops a test as the tests themselves do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binding;
mod bodies;
mod calls;
mod credentials;
mod decoding;
mod http2;
mod marks;
mod order;
mod page;
mod protocols;
mod shutdown;
mod slots;
mod support;
mod timers;
mod tls;
