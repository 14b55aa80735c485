// Included by the build script, which compiles the module, and by the library, which runs the result: machine code is
// accepted only by an engine whose settings are those of the engine that made it.

/// Native stack the guest may use, in bytes. The engine's own check stops ordinary recursion well before it.
const WASM_STACK: usize = 4 << 20;

/// The settings both sides share.
fn engine_config() -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config
        // The deadline: wall-clock, and several times cheaper here than counting instructions.
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(WASM_STACK)
        .memory_init_cow(true)
        // A reservation of the whole 32-bit space with a guard behind it lets the compiler leave out bounds checks.
        .memory_reservation(4 << 30)
        .memory_guard_size(32 << 20)
        .memory_may_move(false)
        // What the module does not use stays off.
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_simd(false)
        .wasm_tail_call(false)
        .wasm_extended_const(false)
        // A trap is reported by its kind; frames of the guest's machine code would tell a caller nothing.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false);
    config
}
