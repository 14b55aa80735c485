//! Bounds of the wire. All lengths are bytes of UTF-8 unless a name says otherwise.

use std::time::Duration;

/// Raw request body, and separately the decompressed message.
pub const MAX_REQUEST_BYTES: usize = 8 << 20;
/// Answer a client reads.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Code of a snippet or cell.
pub const MAX_CODE_BYTES: usize = 256 << 10;
/// Files in one request.
pub const MAX_FILES: usize = 200;
/// Contents of all files together; paths do not count.
pub const MAX_FILES_BYTES: usize = 4 << 20;
/// One path.
pub const MAX_PATH_BYTES: usize = 1024;
/// Steps of a project.
pub const MAX_STEPS: usize = 20;
/// One step.
pub const MAX_STEP_BYTES: usize = 16 << 10;
/// Artifacts asked for.
pub const MAX_ARTIFACTS: usize = 100;
/// Artifact content returned in one answer.
pub const MAX_ARTIFACT_BYTES: usize = 8 << 20;
/// Rows of a module table.
pub const MAX_MODULE_ROWS: usize = 100_000;
/// Elements of one list of a request, counted before it is decoded: the longest
/// that any may have.
pub const MAX_LIST_ELEMENTS: usize = MAX_MODULE_ROWS;
/// Values of one row.
pub const MAX_ROW_VALUES: usize = 64;
/// Steps of one module run (`end_time / step`).
pub const MAX_MODULE_STEPS: f64 = 1_000_000.0;
/// Bound on a module table's result.
pub const MAX_MODULE_RESULT_BYTES: u64 = 8 << 20;
/// Identities of an approved rule.
pub const MAX_IDENTITIES: usize = 32;
/// One software identity.
pub const MAX_IDENTITY_BYTES: usize = 256;
/// A grant profile's name.
pub const MAX_GRANT_PROFILE_BYTES: usize = 128;
/// A trace ID.
pub const MAX_TRACE_ID_BYTES: usize = 64;
/// A session owner's name.
pub const MAX_OWNER_BYTES: usize = 64;
/// Longest run the RPC layer allows, in milliseconds.
pub const MAX_RUN_MS: u32 = 300_000;
/// Longest run the RPC layer allows.
pub const MAX_RUN: Duration = Duration::from_millis(MAX_RUN_MS as u64);
/// Memory that the elements of repeated fields of one decoded message may take
/// together. An element of two bytes on the wire becomes a hundred in memory;
/// everything else of a message is bounded by its own length.
pub const MAX_ELEMENT_MEMORY: usize = 32 << 20;
/// Nesting of a binary message.
pub const MAX_MESSAGE_DEPTH: u32 = 100;
/// Nesting of a JSON text.
pub const MAX_JSON_DEPTH: usize = 100;
