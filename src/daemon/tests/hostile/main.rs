//! A real daemon among hostile peers. After each of them it answers the next
//! honest call; how fast is no matter here.
//!
//! Peers are bounded in count, bytes and time and stay on loopback. As in
//! `tests/process`, this program is its own child.
// Not under the harness, so clippy does not know that these are tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../child/mod.rs"]
mod child;

mod bodies;
mod connections;
mod honest;
mod http2;
mod load;
mod malformed;
mod random;
mod secrets;
mod tokens;

use std::{env, process::ExitCode};

use child::{Collected, Running};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == "daemon") {
        return ExitCode::from(plimsoll_daemon::main(arguments));
    }
    // A name, as the usual harness takes one.
    let only = first
        .and_then(|first| first.into_string().ok())
        .filter(|first| !first.starts_with('-'));
    let checks: &[(&str, fn())] = &[
        ("slow_heads", connections::slow_heads),
        ("silent_connections", connections::silent_connections),
        ("ten_thousand_connects", connections::ten_thousand_connects),
        ("crowded_metrics", connections::crowded_metrics),
        ("withheld_bodies", bodies::withheld),
        ("oversize_bodies", bodies::oversize),
        ("compressed_bombs", bodies::bombs),
        ("http2_floods", http2::floods),
        ("malformed_bodies", malformed::ten_thousand),
        ("odd_tokens", tokens::odd),
        ("a_stop_under_load", load::a_stop_loses_no_answer),
        ("planted_secrets", secrets::planted),
        ("no_core_file", secrets::no_core),
    ];
    for (name, check) in checks {
        if only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
        {
            check();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// A daemon that runs snippets, whose log is being read.
fn serving(variables: &[(&str, &str)]) -> (Running, Collected) {
    let mut all = vec![
        ("SANDBOX_RATE_PER_MIN", "0"),
        #[cfg(feature = "wasm")]
        ("SANDBOX_PROVIDER", "wasm"),
    ];
    all.extend_from_slice(variables);
    let mut running = Running::start(&all);
    let log = running.collect();
    (running, log)
}
