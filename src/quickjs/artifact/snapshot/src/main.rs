//! `snapshot IN.wasm OUT.wasm`: runs the module's `_initialize` and `guest_preinit` once and stores the resulting
//! memory as a new module. Clock and random source answer constants, so that the bytes repeat.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};

use wasmtime::{Caller, Engine, Error, Extern, Linker, Result, Store, error::Context as _};
use wasmtime_wizer::Wizer;

const PREINIT: &str = "guest_preinit";
const EFAULT: i32 = 21;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, input, output] = args.as_slice() else {
        eprintln!("usage: snapshot IN.wasm OUT.wasm");
        return ExitCode::from(2);
    };
    match run(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("snapshot: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(input: &str, output: &str) -> Result<()> {
    let module = std::fs::read(input).context("reading the module")?;
    let engine = Engine::default();
    let mut linker: Linker<()> = Linker::new(&engine);
    linker.func_wrap("wasi_snapshot_preview1", "clock_time_get", |caller: Caller<'_, ()>, _: i32, _: i64, at: i32| {
        write(caller, at, &0u64.to_le_bytes())
    })?;
    linker.func_wrap("wasi_snapshot_preview1", "random_get", |caller: Caller<'_, ()>, at: i32, len: i32| {
        write(caller, at, &vec![0; len as u32 as usize])
    })?;
    let mut store = Store::new(&engine, ());
    let mut wizer = Wizer::new();
    wizer.init_func(PREINIT);
    let snapshot = now(wizer.run(&mut store, &module, async |store, module| {
        // The rest of the closed import list must not be needed to make a context.
        linker.define_unknown_imports_as_traps(module)?;
        linker.instantiate_async(store, module).await
    }))?;
    std::fs::write(output, snapshot).context("writing the snapshot")
}

fn write(mut caller: Caller<'_, ()>, at: i32, bytes: &[u8]) -> i32 {
    match caller.get_export("memory").and_then(Extern::into_memory) {
        Some(memory) if memory.write(&mut caller, at as u32 as usize, bytes).is_ok() => 0,
        _ => EFAULT,
    }
}

/// Nothing here waits for anything: the future is ready when first asked.
fn now<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::msg("the snapshot waits for something")),
    }
}
