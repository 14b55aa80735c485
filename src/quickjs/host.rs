//! The module's imports, served by hand: there are few of them, and each is all the authority a guest has.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wasmtime::{Caller, Linker, Memory, StoreLimits};

use crate::grant::{HostCalls, answer, deliver};
use crate::streams::Capped;

/// Every import the interpreter module may have, as module and name. A module that differs is refused at start.
pub const IMPORTS: [(&str, &str); 7] = [
    (GRANTED, "host_call"),
    (WASI, "clock_time_get"),
    (WASI, "fd_close"),
    (WASI, "fd_fdstat_get"),
    (WASI, "fd_seek"),
    (WASI, "fd_write"),
    (WASI, "random_get"),
];

const GRANTED: &str = "plimsoll";
const WASI: &str = "wasi_snapshot_preview1";

/// Most bytes of randomness in one call.
const MAX_RANDOM: usize = 64 << 10;
/// Most pieces in one write.
const MAX_PIECES: u32 = 1024;

/// WASI error numbers.
mod errno {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const BADF: i32 = 8;
    pub(super) const FAULT: i32 = 21;
    pub(super) const INVAL: i32 = 28;
    pub(super) const IO: i32 = 29;
    pub(super) const SPIPE: i32 = 70;
}

/// What one run's host functions work on.
pub(crate) struct State {
    pub(crate) stdout: Capped,
    pub(crate) stderr: Capped,
    pub(crate) limits: StoreLimits,
    /// Set as soon as the instance is there; the module has no start function that could call before.
    pub(crate) memory: Option<Memory>,
    pub(crate) calls: Option<Arc<dyn HostCalls>>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
}

impl State {
    pub(crate) fn new(limits: StoreLimits, started: Instant, deadline: Instant) -> Self {
        let (stdout, stderr) = Default::default();
        Self {
            stdout,
            stderr,
            limits,
            memory: None,
            calls: None,
            started,
            deadline,
        }
    }
}

/// Defines every import.
pub(crate) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(WASI, "fd_write", fd_write)?;
    linker.func_wrap(WASI, "fd_fdstat_get", fd_fdstat_get)?;
    linker.func_wrap(WASI, "fd_seek", |fd: i32, _: i64, _: i32, _: i32| {
        if is_stream(fd) {
            errno::SPIPE
        } else {
            errno::BADF
        }
    })?;
    linker.func_wrap(WASI, "fd_close", |fd: i32| {
        if is_stream(fd) {
            errno::SUCCESS
        } else {
            errno::BADF
        }
    })?;
    linker.func_wrap(WASI, "clock_time_get", clock_time_get)?;
    linker.func_wrap(WASI, "random_get", random_get)?;
    linker.func_wrap(GRANTED, "host_call", host_call)?;
    Ok(())
}

fn is_stream(fd: i32) -> bool {
    (0..=2).contains(&fd)
}

/// The guest's memory beside the rest of the state. An instance without a memory has an empty one.
fn memory<'a>(caller: &'a mut Caller<'_, State>) -> (&'a mut [u8], &'a mut State) {
    match caller.data().memory {
        Some(memory) => memory.data_and_store_mut(caller),
        None => (&mut [], caller.data_mut()),
    }
}

/// `len` bytes of guest memory from `at`, both the guest's and read as unsigned.
fn slice(memory: &mut [u8], at: u32, len: u32) -> Option<&mut [u8]> {
    let (at, len) = (at as usize, len as usize);
    memory.get_mut(at..at.checked_add(len)?)
}

fn put(memory: &mut [u8], at: u32, bytes: &[u8]) -> i32 {
    match u32::try_from(bytes.len())
        .ok()
        .and_then(|len| slice(memory, at, len))
    {
        Some(room) => {
            room.copy_from_slice(bytes);
            errno::SUCCESS
        }
        None => errno::FAULT,
    }
}

fn word(memory: &mut [u8], at: u32) -> Option<u32> {
    Some(u32::from_le_bytes(slice(memory, at, 4)?.try_into().ok()?))
}

fn fd_write(mut caller: Caller<'_, State>, fd: i32, pieces: u32, count: u32, written: u32) -> i32 {
    let (memory, state) = memory(&mut caller);
    let stream = match fd {
        1 => &mut state.stdout,
        2 => &mut state.stderr,
        _ => return errno::BADF,
    };
    match gather(memory, stream, pieces, count) {
        // What the cap dropped counts as written too: the guest is not to notice.
        Ok(total) => put(memory, written, &total.to_le_bytes()),
        Err(error) => error,
    }
}

/// Takes `count` pieces, each described at `pieces` by address and length, and gives the sum of their lengths. Every
/// piece is checked before any is taken: a faulty write prints nothing.
fn gather(memory: &mut [u8], stream: &mut Capped, pieces: u32, count: u32) -> Result<u32, i32> {
    const DESCRIPTION: u32 = 8;
    if count > MAX_PIECES {
        return Err(errno::INVAL);
    }
    let mut total = 0u32;
    for take in [false, true] {
        for i in 0..count {
            let at = pieces.checked_add(i * DESCRIPTION).ok_or(errno::FAULT)?;
            let end = at.checked_add(4).ok_or(errno::FAULT)?;
            let (Some(from), Some(len)) = (word(memory, at), word(memory, end)) else {
                return Err(errno::FAULT);
            };
            let bytes = slice(memory, from, len).ok_or(errno::FAULT)?;
            if take {
                stream.push(bytes);
            } else {
                total = total.checked_add(len).ok_or(errno::INVAL)?;
            }
        }
    }
    Ok(total)
}

fn fd_fdstat_get(mut caller: Caller<'_, State>, fd: i32, at: u32) -> i32 {
    const CHARACTER_DEVICE: u8 = 2;
    const RIGHT_TO_WRITE: u64 = 1 << 6;
    if !is_stream(fd) {
        return errno::BADF;
    }
    let mut stat = [0; 24];
    stat[0] = CHARACTER_DEVICE;
    stat[8..16].copy_from_slice(&if fd == 0 { 0 } else { RIGHT_TO_WRITE }.to_le_bytes());
    put(memory(&mut caller).0, at, &stat)
}

/// Whole milliseconds only: a fine clock in the guest is a tool for measuring the host through its caches.
fn clock_time_get(mut caller: Caller<'_, State>, clock: i32, _precision: i64, at: u32) -> i32 {
    const REALTIME: i32 = 0;
    const MONOTONIC: i32 = 1;
    let (memory, state) = memory(&mut caller);
    let now = match clock {
        REALTIME => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        MONOTONIC => state.started.elapsed(),
        _ => return errno::INVAL,
    };
    let nanoseconds = u64::try_from(now.as_millis())
        .ok()
        .and_then(|ms| ms.checked_mul(1_000_000));
    put(memory, at, &nanoseconds.unwrap_or(u64::MAX).to_le_bytes())
}

fn random_get(mut caller: Caller<'_, State>, at: u32, len: u32) -> i32 {
    if len as usize > MAX_RANDOM {
        return errno::INVAL;
    }
    match slice(memory(&mut caller).0, at, len) {
        Some(room) => getrandom::fill(room).map_or(errno::IO, |()| errno::SUCCESS),
        None => errno::FAULT,
    }
}

fn host_call(
    mut caller: Caller<'_, State>,
    request: u32,
    len: u32,
    response: u32,
    cap: u32,
) -> u64 {
    let (memory, state) = memory(&mut caller);
    let answer = answer(state.calls.as_deref(), memory, request, len, state.deadline);
    deliver(&answer, memory, response, cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory of 64 bytes: piece descriptions from 0, the text "abcdef" at 32.
    fn memory(pieces: &[(u32, u32)]) -> Vec<u8> {
        let mut memory: Vec<u8> = pieces
            .iter()
            .flat_map(|(at, len)| [at.to_le_bytes(), len.to_le_bytes()])
            .flatten()
            .collect();
        memory.resize(64, 0);
        memory[32..38].copy_from_slice(b"abcdef");
        memory
    }

    fn write(pieces: &[(u32, u32)], at: u32, count: u32) -> (Result<u32, i32>, Vec<u8>) {
        let mut stream = Capped::default();
        let result = gather(&mut memory(pieces), &mut stream, at, count);
        (result, stream.bytes)
    }

    #[test]
    fn pieces_are_joined_in_order() {
        assert_eq!(
            write(&[(34, 4), (32, 2), (64, 0)], 0, 3),
            (Ok(6), b"cdefab".to_vec())
        );
        assert_eq!(write(&[], 0, 0), (Ok(0), vec![]));
    }

    #[test]
    fn a_faulty_piece_prints_nothing() {
        for (second, fault) in [
            ((32, 33), errno::FAULT),
            ((65, 0), errno::FAULT),
            ((u32::MAX, 1), errno::FAULT),
            ((32, u32::MAX), errno::FAULT),
        ] {
            assert_eq!(
                write(&[(32, 6), second], 0, 2),
                (Err(fault), vec![]),
                "{second:?}"
            );
        }
        assert_eq!(write(&[], 60, 1), (Err(errno::FAULT), vec![]));
        assert_eq!(write(&[], u32::MAX - 3, 1), (Err(errno::FAULT), vec![]));
        assert_eq!(write(&[], 0, MAX_PIECES + 1), (Err(errno::INVAL), vec![]));
    }

    #[test]
    fn nothing_is_written_past_the_memory() {
        let mut memory = [0; 8];
        assert_eq!(put(&mut memory, 4, &[1; 4]), errno::SUCCESS);
        assert_eq!(put(&mut memory, 5, &[2; 4]), errno::FAULT);
        assert_eq!(put(&mut memory, u32::MAX, &[2; 4]), errno::FAULT);
        assert_eq!(memory, [0, 0, 0, 0, 1, 1, 1, 1]);
    }
}
