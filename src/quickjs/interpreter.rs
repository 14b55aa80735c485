//! The interpreter a daemon keeps: the engine, the module's code, the pool of instances.

use std::io;
use std::thread;
use std::time::Duration;

use thiserror::Error;
use wasmtime::{
    Engine, ExternType, InstanceAllocationStrategy, InstancePre, Linker, Module,
    PoolingAllocationConfig,
};

use crate::cancel::CancelToken;
use crate::grant::Grant;
use crate::host::{self, IMPORTS, State};
use crate::outcome::{Cause, HostError, Outcome, RunError};
use crate::precompiled;
use crate::run::{DEFAULT_TIMEOUT, Job, run};
use crate::ticker::Ticker;

include!("engine_config.rs");

/// Memory cap when none is set, in MiB.
const DEFAULT_MEMORY_MB: u32 = 256;
/// The most a 32-bit guest can address, in MiB.
const MAX_MEMORY_MB: u32 = 4096;
/// Instances beyond the caller's own bound, for runs whose instance is still being cleaned up.
const SPARE_INSTANCES: u32 = 2;
/// Memory of an idle slot that is reset in place, not given back: the part nearly every run touches.
const KEEP_RESIDENT: usize = 4 << 20;
/// Native stack of a run's thread: the guest's share and as much again as the host functions can need.
const THREAD_STACK: usize = WASM_STACK + (1 << 20);
const IDENTITY: &str = concat!("quickjs-wasm:sha256:", env!("QUICKJS_WASM_SHA256"));

/// What an operator chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Cap on a guest's linear memory in MiB. 0 means 256; values above 4096 are pinned there.
    pub memory_mb: u32,
    /// Most runs at once. 0 means 1.
    pub max_instances: u32,
}

/// Why there is no interpreter.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The runtime refused its settings, or the pool's address space could not be reserved.
    #[error("the WebAssembly runtime could not be set up: {0}")]
    Engine(#[source] Cause),
    /// The built-in machine code does not suit this machine.
    #[error("the interpreter's machine code could not be loaded: {0}")]
    Module(#[source] Cause),
    /// The module wants something of the host that is not on the closed list, or does not want what is.
    #[error("the interpreter's imports are not the closed list")]
    Imports,
    /// The cap is below what the interpreter occupies before any code runs.
    #[error("a memory cap of {have_mb} MiB is below the {need_mb} MiB the interpreter starts with")]
    MemoryTooSmall {
        /// The cap that was set.
        have_mb: u32,
        /// The least that works.
        need_mb: u32,
    },
    /// The operating system refused the thread that keeps the deadlines.
    #[error("the deadline thread could not be started: {0}")]
    Ticker(#[source] io::Error),
    /// The fixed snippet did not run.
    #[error("the interpreter does not run its check: {0}")]
    Check(#[from] RunError),
    /// The fixed snippet ran and gave another answer.
    #[error("the interpreter's check exited with {exit_code} and the wrong answer")]
    WrongAnswer {
        /// Its exit code.
        exit_code: i32,
    },
}

/// Runs snippets. Cheap to share between threads; dropping it ends its own thread.
pub struct Interpreter {
    engine: Engine,
    pre: InstancePre<State>,
    ticker: Ticker,
    memory_bytes: usize,
}

impl Interpreter {
    /// Maps the code, reserves the pool and runs one fixed snippet.
    pub fn new(settings: Settings) -> Result<Self, StartError> {
        let memory_mb = match settings.memory_mb {
            0 => DEFAULT_MEMORY_MB,
            mb => mb.min(MAX_MEMORY_MB),
        };
        let memory_bytes = usize::try_from(u64::from(memory_mb) << 20).unwrap_or(usize::MAX);
        let instances = settings
            .max_instances
            .max(1)
            .saturating_add(SPARE_INSTANCES);
        let engine =
            engine(memory_bytes, instances).map_err(|error| StartError::Engine(error.into()))?;
        let module =
            precompiled::module(&engine).map_err(|error| StartError::Module(error.into()))?;
        check_imports(&module)?;
        check_memory(&module, memory_mb)?;

        let mut linker = Linker::new(&engine);
        host::define(&mut linker).map_err(|error| StartError::Engine(error.into()))?;
        let pre = linker
            .instantiate_pre(&module)
            .map_err(|error| StartError::Module(error.into()))?;
        let ticker = Ticker::start(engine.clone()).map_err(StartError::Ticker)?;
        let interpreter = Self {
            engine,
            pre,
            ticker,
            memory_bytes,
        };

        let check = interpreter.run(
            "console.log(6 * 7)",
            DEFAULT_TIMEOUT,
            &CancelToken::new(),
            None,
        )?;
        if check.exit_code != 0 || check.stdout != b"42\n" {
            return Err(StartError::WrongAnswer {
                exit_code: check.exit_code,
            });
        }
        Ok(interpreter)
    }

    /// Names the interpreter in records: `quickjs-wasm:sha256:` and the digest of the module the code was made from.
    pub const fn identity() -> &'static str {
        IDENTITY
    }

    /// Runs one snippet and waits for its end. Blocks for up to the timeout: not for the thread of an async executor.
    ///
    /// A zero timeout is [`DEFAULT_TIMEOUT`], one over [`MAX_TIMEOUT`](crate::MAX_TIMEOUT) is cut to it. More runs at
    /// once than the pool holds fail with [`HostError::NoInstance`].
    pub fn run(
        &self,
        code: &str,
        timeout: Duration,
        cancel: &CancelToken,
        grant: Option<&Grant>,
    ) -> Result<Outcome, RunError> {
        if cancel.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        let job = Job {
            code,
            timeout,
            cancel,
            grant,
            memory_bytes: self.memory_bytes,
        };
        let _ticking = self.ticker.run();
        // A thread of its own gives the guest a stack of known size, whatever thread the caller is on.
        thread::scope(|scope| {
            thread::Builder::new()
                .name("quickjs".into())
                .stack_size(THREAD_STACK)
                .spawn_scoped(scope, || run(&self.engine, &self.pre, &job))
                .map_err(HostError::Thread)?
                .join()
                .unwrap_or(Err(HostError::Panicked.into()))
        })
    }
}

fn engine(memory_bytes: usize, instances: u32) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(instances)
        .total_memories(instances)
        .total_tables(instances)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        // At least what the module starts with, so that too low a cap is told apart from a module that does not load.
        .max_memory_size(memory_bytes.max(KEEP_RESIDENT))
        .linear_memory_keep_resident(KEEP_RESIDENT);
    let mut config = engine_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

fn check_imports(module: &Module) -> Result<(), StartError> {
    let mut imports: Vec<_> = module
        .imports()
        .map(|import| (import.module(), import.name()))
        .collect();
    imports.sort_unstable();
    if imports == IMPORTS {
        Ok(())
    } else {
        Err(StartError::Imports)
    }
}

fn check_memory(module: &Module, have_mb: u32) -> Result<(), StartError> {
    const PAGES_PER_MB: u64 = 16;
    let pages = match module.get_export("memory") {
        Some(ExternType::Memory(memory)) => memory.minimum(),
        _ => return Err(StartError::Imports),
    };
    let need_mb = u32::try_from(pages.div_ceil(PAGES_PER_MB)).unwrap_or(u32::MAX);
    if have_mb < need_mb {
        Err(StartError::MemoryTooSmall { have_mb, need_mb })
    } else {
        Ok(())
    }
}
