//! Writes a bundle of one long session and its public key, for measurements:
//! `session_bundle CALLS BYTES BUNDLE PUB`, each call with so many bytes of output.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../tests/common/make.rs"]
mod make;

use plimsoll_attestation::SigningKey;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [calls, bytes, bundle, public] = args.as_slice() else {
        eprintln!("usage: session_bundle CALLS BYTES BUNDLE PUB");
        std::process::exit(2);
    };
    let bytes: usize = bytes.parse().expect("a number of bytes");
    let shape = |n: i64| make::Shape {
        kind: 1,
        text: format!("{n} {}", "x".repeat(bytes)),
        files: 1,
        steps: 1,
        provider: "docker".to_owned(),
        isolation: "kernel".to_owned(),
        environment: format!("docker-image:sha256:{}", "a1".repeat(32)),
        software: format!("oci-manifest:linux/amd64@sha256:{}", "b2".repeat(32)),
        started_unix_ms: 1_793_000_000_000 + n * 1000,
        ..make::Shape::default()
    };
    let calls: i64 = calls.parse().expect("a number of calls");
    let key = SigningKey::generate().expect("a key");
    let (text, fingerprint) = make::session(&key, (0..calls).map(shape));
    std::fs::write(bundle, &text).expect("the bundle");
    std::fs::write(public, key.public().to_pem()).expect("the public key");
    println!("{fingerprint}");
}
