//! The daemon's wasm provider called directly, without transport and service.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plimsoll_client::CancelToken;
use plimsoll_daemon::{
    admission::{Limiter, Limits, Shed},
    provider::{Output, Payload, Provider, Resources, RunContext, RunSpec, Teardown, Wasm},
};
use plimsoll_wire::{Rule, proto::JavaScriptRun};
use tokio::runtime::Runtime;

use crate::measure::Outcome;

/// Instances; the daemon's default.
const CONCURRENT: u32 = 8;
/// Longest run.
const BUDGET: Duration = Duration::from_secs(10);

/// A provider on a runtime like the daemon's.
pub struct Bare {
    runtime: Runtime,
    provider: Arc<Wasm>,
    limiter: Arc<Limiter>,
    code: String,
}

impl Bare {
    /// A provider that is ready for this snippet.
    pub fn ready(code: &str) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(crate::workers())
            .enable_all()
            .build()?;
        let resources = Resources {
            memory_mb: 256,
            ..Resources::default()
        };
        let provider = Arc::new(Wasm::new(resources, CONCURRENT));
        runtime
            .block_on(provider.preflight())
            .map_err(|error| error.full_text())?;
        Ok(Bare {
            runtime,
            provider,
            limiter: Limiter::new(Limits {
                max_concurrent: CONCURRENT,
                per_key: 0,
                rate_per_min: 0,
                burst: 0,
            }),
            code: code.to_owned(),
        })
    }

    /// Runs the snippet in `tasks` at once for this time; gives how many runs.
    pub fn run_for(&self, tasks: usize, time: Duration) -> Outcome<usize> {
        let until = Instant::now() + time;
        let tasks: Vec<_> = (0..tasks)
            .map(|_| {
                let (provider, limiter) = (Arc::clone(&self.provider), Arc::clone(&self.limiter));
                let code = self.code.clone();
                self.runtime.spawn(async move {
                    let mut runs = 0;
                    while Instant::now() < until {
                        let (spec, context) = prepared(&limiter, &code)?;
                        provider
                            .run(spec, context)
                            .await
                            .map_err(|error| error.full_text())?;
                        runs += 1;
                    }
                    Ok::<usize, String>(runs)
                })
            })
            .collect();
        let mut runs = 0;
        for task in tasks {
            runs += self.runtime.block_on(task)??;
        }
        Ok(runs)
    }

    /// Runs the snippet; gives the time and standard output. In a task, as the
    /// service does it: waking the main thread is no part of the provider.
    pub fn run(&self) -> Outcome<(Duration, Vec<u8>)> {
        let provider = Arc::clone(&self.provider);
        let (spec, context) = prepared(&self.limiter, &self.code)?;
        let (time, answer) = self.runtime.block_on(self.runtime.spawn(async move {
            let started = Instant::now();
            let answer = provider.run(spec, context).await;
            (started.elapsed(), answer)
        }))?;
        match answer.map_err(|error| error.full_text())?.output {
            Output::Javascript(output) => Ok((time, output.stdout.bytes)),
            _ => Err("the answer is of another kind".into()),
        }
    }
}

/// What one run is given.
fn prepared(limiter: &Arc<Limiter>, code: &str) -> Result<(RunSpec, RunContext), String> {
    let capacity = limiter
        .admit(&Arc::from("bench"), Instant::now())
        .map_err(Shed::message)?;
    let spec = RunSpec {
        payload: Payload::Javascript(Box::new(JavaScriptRun {
            code: code.to_owned(),
            ..JavaScriptRun::default()
        })),
        timeout: None,
        floor: None,
        rule: Rule::default(),
    };
    let context = RunContext {
        deadline: Instant::now() + BUDGET,
        caller_gone: CancelToken::new(),
        capacity,
        grant: None,
        teardown: Teardown::default(),
    };
    Ok((spec, context))
}
