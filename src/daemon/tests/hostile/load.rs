//! A stop while everyone is busy.

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    child::{Running, TOKEN, daemon},
    honest::{PATIENCE, answer, request},
};

const CALLERS: usize = 16;

/// What became of one caller's calls.
#[derive(Default)]
struct Seen {
    ran: usize,
    refused: usize,
}

/// Every run that was dispatched is answered, every other call is refused with
/// its mark or never taken, no process is left, and the end is a clean one.
pub fn a_stop_loses_no_answer() {
    let mut command = daemon(
        &[],
        &[
            ("PLIMSOLL_ADDR", "127.0.0.1:0"),
            ("PLIMSOLL_TOKEN", TOKEN),
            ("SANDBOX_RATE_PER_MIN", "0"),
            ("SANDBOX_MAX_CONCURRENT", "4"),
            #[cfg(feature = "wasm")]
            ("SANDBOX_PROVIDER", "wasm"),
        ],
    );
    let mut running = Running::of(command.process_group(0));
    let log = running.collect();
    let answered = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (address, answered) = (running.address.clone(), Arc::clone(&answered));
            thread::spawn(move || calls(&address, &answered))
        })
        .collect();
    let until = Instant::now() + PATIENCE;
    while answered.load(Ordering::SeqCst) < 200 {
        assert!(Instant::now() < until, "no load: {}", log.text());
        thread::sleep(Duration::from_millis(5));
    }
    running.signal("TERM");
    let status = running.child.wait().unwrap();
    let seen: Vec<Seen> = callers.into_iter().map(|c| c.join().unwrap()).collect();
    let text = log.whole();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("plimsolld stopped"));
    let ran: usize = seen.iter().map(|seen| seen.ran).sum();
    let dispatched = text.matches("\"msg\":\"code run\"").count();
    assert_eq!(ran, dispatched, "an answer was lost");
    assert!(seen.iter().map(|seen| seen.refused).sum::<usize>() > 0);
    assert!(!text.contains("were cut"), "{text}");
    let group = running.child.id();
    assert_eq!(processes_of(group), Vec::<String>::new(), "orphans");
}

/// Calls until the daemon takes no more.
fn calls(address: &str, answered: &AtomicUsize) -> Seen {
    let body = br#"{"protocol":3,"javascript":{"code":"let n=0;for(let i=0;i<2000;i++)n+=i;console.log(n)"}}"#;
    let mut seen = Seen::default();
    loop {
        // The listener is closed: the end.
        let Ok(mut stream) = std::net::TcpStream::connect(address) else {
            return seen;
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        for _ in 0..20 {
            let sent = stream.write_all(&request(TOKEN, "application/json", body));
            // A connection that ends here took nothing: the log's count says so.
            let Some(answer) = sent.ok().and_then(|()| answer(&mut stream)) else {
                break;
            };
            answered.fetch_add(1, Ordering::SeqCst);
            match answer.status {
                200 => seen.ran += 1,
                _ => {
                    assert!(answer.is_marked(), "{}: {}", answer.status, answer.text());
                    seen.refused += 1;
                }
            }
            if answer.closes() {
                break;
            }
        }
    }
}

/// Living processes of a process group.
fn processes_of(group: u32) -> Vec<String> {
    let group = group.to_string();
    let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path().join("stat");
        fs::read_to_string(path).ok()
    });
    stats
        .filter(|stat| {
            // pid (name) state parent group
            let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
            after.split(' ').nth(2) == Some(group.as_str())
        })
        .collect()
}
