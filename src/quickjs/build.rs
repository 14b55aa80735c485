//! Compiles the interpreter module for the target, so that a starting process only maps machine code.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

include!("engine_config.rs");

const MODULE: &str = "artifact/quickjs.wasm";
const PINNED: &str = "artifact/quickjs.wasm.sha256";

fn main() -> Result<(), Box<dyn Error>> {
    for input in [MODULE, PINNED, "engine_config.rs", "build.rs"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let module = fs::read(MODULE)?;
    let mut digest = String::new();
    for byte in Sha256::digest(&module) {
        write!(digest, "{byte:02x}")?;
    }
    if !fs::read_to_string(PINNED)?.starts_with(&digest) {
        return Err(
            format!("{MODULE} has the SHA-256 {digest}, which {PINNED} does not pin").into(),
        );
    }
    // A target named explicitly gets its baseline instruction set, not the build machine's.
    let mut config = engine_config();
    config.target(&env::var("TARGET")?)?;
    let code = wasmtime::Engine::new(&config)?.precompile_module(&module)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("quickjs.cwasm"), code)?;
    println!("cargo::rustc-env=QUICKJS_WASM_SHA256={digest}");
    Ok(())
}
