//! `plimsoll-attest`: runs untrusted code in a sandbox, signs a record of every
//! run, verifies it offline.
#![forbid(unsafe_code)]

mod anchors;
mod cli;
#[cfg(feature = "clients")]
mod clients;
mod completions;
#[cfg(feature = "daemon")]
mod daemon;
mod digest;
mod digest_line;
mod expect;
mod explain;
mod inspect;
mod keygen;
mod keys;
mod man;
mod message;
mod open_statement;
mod places;
mod policy;
#[cfg(feature = "receipt")]
mod pr_receipt;
mod refusal;
#[cfg(feature = "run")]
mod replay;
#[cfg(feature = "run")]
mod run;
#[cfg(feature = "run")]
mod runtime;
#[cfg(feature = "bom")]
mod sbom;
mod sign_statement;
mod signing;
#[cfg(feature = "run")]
mod target;
mod tidy;
mod verify;
mod verify_entry;
mod version;

fn main() -> std::process::ExitCode {
    plimsoll_console::fault::run(|| cli::main(std::env::args_os().skip(1))).into()
}
