//! Generates the message types from `proto/plimsoll/v1/sandbox.proto`.
//!
//! The schema compiler is pure Rust, so no `protoc` is needed on any machine.

use std::{env, error::Error, fs, path::PathBuf};

use buffa_codegen::{CodeGenConfig, generate, generated::descriptor::FileDescriptorSet};

const PROTO: &str = "plimsoll/v1/sandbox.proto";

/// The generator's rule for leaving a double out of JSON takes negative zero
/// for the default. It is not: a double that changes its sign on the way
/// changes the digest of the message.
const LEFT_OUT: &str = "::buffa::json_helpers::skip_if::is_zero_f64";
const KEPT: &str = "crate::json::is_default_double";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", root.join(PROTO).display());
    println!("cargo:rerun-if-changed=build.rs");

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_source_info(true).open_file(PROTO)?;
    let encoded = compiler.encode_file_descriptor_set();
    let set = buffa_codegen::tooling_decode_options()
        .map_err(|e| e.to_string())?
        .decode_from_slice::<FileDescriptorSet>(&encoded)?;

    let mut config = CodeGenConfig::default();
    config.generate_json = true;
    config.generate_views = false;
    // Unknown fields must never reach evidence: what is stored is encoded again
    // from the decoded message.
    config.preserve_unknown_fields = false;
    config.file_per_package = true;

    let mut kept = 0;
    for file in generate(&set.file, &[PROTO.to_owned()], &config)? {
        println!("generated {} {:?}", file.name, file.kind);
        kept += file.content.matches(LEFT_OUT).count();
        fs::write(out.join(&file.name), file.content.replace(LEFT_OUT, KEPT))?;
    }
    if kept == 0 {
        return Err("no double of the schema is written by the rule replaced here".into());
    }
    Ok(())
}
