//! The one place that trusts machine code.
#![allow(unsafe_code)]

use wasmtime::{Engine, Module, Result};

/// What the build script made of the interpreter module, inside the executable's own bytes.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quickjs.cwasm"));

/// Maps the interpreter's machine code into `engine`. Fails when the engine's settings or this machine do not suit it.
pub(crate) fn module(engine: &Engine) -> Result<Module> {
    // SAFETY: `deserialize` runs whatever it is given. `CODE` is a constant of this executable, written by this
    // crate's build script with the same version of the runtime; no file, argument or guest can change it.
    unsafe { Module::deserialize(engine, CODE) }
}
