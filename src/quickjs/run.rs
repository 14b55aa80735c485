//! One run: a fresh instance, a deadline, an outcome.

use std::time::{Duration, Instant};

use wasmtime::{
    Engine, Instance, InstancePre, PoolConcurrencyLimitError, Store, StoreLimitsBuilder, Trap,
    TypedFunc, UpdateDeadline,
};

use crate::cancel::CancelToken;
use crate::grant::Grant;
use crate::host::State;
use crate::outcome::{EXIT_TIMED_OUT, EXIT_TRAPPED, HostError, Outcome, RunError};

/// Time a run has when its caller names none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most time a run may have; longer requests are cut.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(30);

const OUT_OF_MEMORY: &[u8] = b"guest out of memory\n";

/// What the guest is given to do.
pub(crate) struct Job<'a> {
    pub(crate) code: &'a str,
    pub(crate) timeout: Duration,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) grant: Option<&'a Grant>,
    pub(crate) memory_bytes: usize,
}

/// How the guest's own part ended.
enum Ending {
    Exit(i32),
    Trapped(Trap),
}

/// Runs the job on this thread, which needs the native stack the engine's configuration promises the guest.
pub(crate) fn run(
    engine: &Engine,
    pre: &InstancePre<State>,
    job: &Job<'_>,
) -> Result<Outcome, RunError> {
    let started = Instant::now();
    let timeout = if job.timeout.is_zero() {
        DEFAULT_TIMEOUT
    } else {
        job.timeout.min(MAX_TIMEOUT)
    };
    let deadline = started + timeout;
    let limits = StoreLimitsBuilder::new()
        .memory_size(job.memory_bytes)
        .instances(1)
        .memories(1)
        .tables(1)
        .build();
    let mut state = State::new(limits, started, deadline);
    state.calls = job.grant.map(|grant| grant.calls.clone());

    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limits);
    // Looked at once a tick: the deadline by the clock, not by counting ticks, and the caller's token.
    store.set_epoch_deadline(1);
    let cancel = job.cancel.clone();
    store.epoch_deadline_callback(move |_| {
        let over = Instant::now() >= deadline || cancel.is_cancelled();
        Ok(if over {
            UpdateDeadline::Interrupt
        } else {
            UpdateDeadline::Continue(1)
        })
    });

    let ending = guest(&mut store, pre, job)?;
    let duration = started.elapsed();
    let timed_out = duration >= timeout;
    if !timed_out && job.cancel.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    let State {
        stdout, mut stderr, ..
    } = store.into_data();
    let exit_code = match ending {
        _ if timed_out => EXIT_TIMED_OUT,
        Ending::Exit(code) => code,
        Ending::Trapped(trap) => {
            if stderr.bytes.is_empty() {
                stderr.push(format!("guest aborted: {trap}").as_bytes());
            }
            EXIT_TRAPPED
        }
    };
    Ok(Outcome {
        exit_code,
        timed_out,
        stdout_truncated: stdout.truncated,
        stderr_truncated: stderr.truncated,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        duration,
    })
}

fn guest(
    store: &mut Store<State>,
    pre: &InstancePre<State>,
    job: &Job<'_>,
) -> Result<Ending, HostError> {
    let instance = pre.instantiate(&mut *store).map_err(|error| {
        if error.is::<PoolConcurrencyLimitError>() {
            HostError::NoInstance
        } else {
            HostError::Instantiate(error.into())
        }
    })?;
    store.data_mut().memory = instance.get_memory(&mut *store, "memory");
    match scripts(store, &instance, job) {
        Ok(code) => Ok(Ending::Exit(code)),
        Err(error) => match error.downcast::<Trap>() {
            Ok(trap) => Ok(Ending::Trapped(trap)),
            Err(error) => Err(HostError::Module(error.into())),
        },
    }
}

/// The grant's client, the grant's preamble, the snippet: the first that fails ends the run.
fn scripts(store: &mut Store<State>, instance: &Instance, job: &Job<'_>) -> wasmtime::Result<i32> {
    if let Some(grant) = job.grant {
        let code = script(store, instance, "guest_grant", &grant.description()?)?;
        if code != 0 {
            return Ok(code);
        }
        if !grant.preamble.is_empty() {
            let code = script(store, instance, "guest_preamble", &grant.preamble)?;
            if code != 0 {
                return Ok(code);
            }
        }
    }
    script(store, instance, "guest_eval", job.code)
}

/// Copies a text into the guest and calls the export that takes it.
fn script(
    store: &mut Store<State>,
    instance: &Instance,
    export: &str,
    text: &str,
) -> wasmtime::Result<i32> {
    let alloc: TypedFunc<u32, u32> = instance.get_typed_func(&mut *store, "guest_alloc")?;
    let call: TypedFunc<(u32, u32), i32> = instance.get_typed_func(&mut *store, export)?;
    let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let at = alloc.call(&mut *store, len)?;
    let room = store.data().memory.and_then(|memory| {
        let at = at as usize;
        memory
            .data_mut(&mut *store)
            .get_mut(at..at.checked_add(text.len())?)
    });
    match room {
        Some(room) if at != 0 => room.copy_from_slice(text.as_bytes()),
        _ => {
            store.data_mut().stderr.push(OUT_OF_MEMORY);
            return Ok(1);
        }
    }
    call.call(&mut *store, (at, len))
}
