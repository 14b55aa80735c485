//! Bundles of any size for measuring: signed for real, the same shape each time.

use std::io::Write;

use plimsoll_attestation::{
    Fault, SigningKey,
    bundle::{BundleWriter, Entry},
};
use plimsoll_record::{
    Chain,
    make::{self, Facts},
    request_digest,
};
use plimsoll_wire::{
    Rule,
    proto::{
        JavaScriptResult, JavaScriptRun, MessageField, RunRequest, RunResponse, run_request,
        run_response,
    },
};

/// What a bundle is to hold.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Lines of every kind, at least; the bundle ends at the next checkpoint.
    pub lines: u64,
    /// Bytes of a call's standard output.
    pub output: usize,
}

/// What was written.
#[derive(Default)]
pub struct Forged {
    /// Lines.
    pub lines: u64,
    /// Signatures that a verification checks.
    pub signatures: u64,
}

/// Groups of twenty lines: fourteen single runs, a session of three calls with
/// its close, another run, a checkpoint.
pub fn write(out: impl Write, key: &SigningKey, shape: Shape) -> Result<Forged, Fault> {
    let mut writer = BundleWriter::new(out, key);
    let mut forged = Forged::default();
    let mut n = 0;
    while forged.lines < shape.lines {
        for _ in 0..14 {
            writer.entry(&call(&mut n, None, shape)?.sign(key))?;
        }
        let mut chain = Chain::of_session_id(&format!("{n:032x}"));
        for _ in 0..3 {
            writer.entry(&call(&mut n, Some(&mut chain), shape)?.sign(key))?;
        }
        let close = Entry::close(&chain, chain.calls(), chain.last())?;
        writer.entry(&close.sign(key))?;
        writer.entry(&call(&mut n, None, shape)?.sign(key))?;
        forged.lines = writer.checkpoint()?;
        forged.signatures += 19 * 2 + 1;
    }
    Ok(forged)
}

fn call(n: &mut u64, chain: Option<&mut Chain>, shape: Shape) -> Result<Entry, Fault> {
    *n += 1;
    let request = RunRequest {
        protocol: 3,
        minimum_isolation: "kernel".to_owned(),
        trace_id: format!("trace-{n}"),
        timeout_ms: 5000,
        payload: Some(run_request::Payload::from(JavaScriptRun {
            code: format!("const n = {n};\nconsole.log(n * n);\n"),
            ..Default::default()
        })),
        ..Default::default()
    };
    let line = format!("{}\n", n.wrapping_mul(*n));
    let mut response = RunResponse {
        sandbox: "docker".to_owned(),
        isolation: "kernel".to_owned(),
        environment: format!("docker-image:sha256:{}", "a".repeat(64)),
        duration_ms: 12,
        result: Some(run_response::Result::from(JavaScriptResult {
            stdout: line
                .into_bytes()
                .into_iter()
                .cycle()
                .take(shape.output)
                .collect(),
            ..Default::default()
        })),
        ..Default::default()
    };
    let facts = Facts {
        request: request_digest(&request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 1_793_000_000_000,
        ended_unix_ms: 1_793_000_000_012,
        chain: chain.as_deref(),
    };
    let record = make::answered(&facts, &response);
    if let Some(chain) = chain {
        // A record just made for the chain continues it.
        let _ = chain.advance(&record);
    }
    response.record = MessageField::some(record);
    Entry::answered(&request, &response)
}
