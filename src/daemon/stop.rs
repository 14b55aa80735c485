//! What tells a daemon to stop.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

/// Waits for SIGINT, SIGTERM, SIGHUP or, in an embedded daemon, the end of
/// standard input. As soon as one came, a further signal ends the process at
/// once: the default action is taken inside the handler, so that it works even
/// when nothing else does. The first process of a container has no default
/// actions: it exits with 128 and the signal's number.
///
/// A terminal that is closed is as good a reason to stop as any other, and its
/// default action would leave sandboxes behind. A daemon that was started with
/// SIGHUP ignored, as `nohup` does, goes on ignoring it.
///
/// An embedded daemon goes on instead. Its parent may ask twice, with a
/// person's second Ctrl-C, while the sandbox is being removed, and kills it
/// when that takes too long.
///
/// # Errors
/// The system's, when no handler can be installed.
pub fn requested(embedded: bool) -> io::Result<impl Future<Output = ()>> {
    let stopping = Arc::new(AtomicBool::new(false));
    let watches_hangup = !is_ignored(SignalKind::hangup());
    let mut ends_at_once = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if watches_hangup {
        ends_at_once.push(SignalKind::hangup());
    }
    let first_process = std::process::id() == 1;
    for signal in ends_at_once.into_iter().filter(|_| !embedded) {
        let (number, stopping) = (signal.as_raw_value(), Arc::clone(&stopping));
        if first_process {
            signal_hook::flag::register_conditional_shutdown(number, 128 + number, stopping)?;
        } else {
            signal_hook::flag::register_conditional_default(number, stopping)?;
        }
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = watches_hangup
        .then(|| signal(SignalKind::hangup()))
        .transpose()?;
    let ended = embedded.then(|| input_end(io::stdin())).transpose()?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = next(hangup.as_mut()) => {}
            () = wait(ended) => {}
        }
        stopping.store(true, Ordering::Release);
    })
}

async fn next(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process ignores a signal. Where the system does not say so, it
/// does not.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    let bit = u32::try_from(signal.as_raw_value() - 1).unwrap_or(u32::MAX);
    mask.checked_shr(bit).is_some_and(|mask| mask & 1 == 1)
}

async fn wait(ended: Option<oneshot::Receiver<()>>) {
    match ended {
        // A lost sender is a lost reader: nobody would see the end any more.
        Some(ended) => drop(ended.await),
        None => std::future::pending().await,
    }
}

/// Reads input until it ends, on a thread of its own: a read that never returns
/// must not keep the runtime from stopping.
fn input_end(mut input: impl Read + Send + 'static) -> io::Result<oneshot::Receiver<()>> {
    let (send, receive) = oneshot::channel();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut buffer = [0u8; 256];
            loop {
                match input.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = send.send(());
        })?;
    Ok(receive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_input_is_seen() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut ended = input_end(reader).unwrap();
        io::Write::write_all(&mut writer, b"ignored").unwrap();
        assert!(ended.try_recv().is_err());
        drop(writer);
        ended.await.unwrap();
    }
}
