use std::{sync::mpsc, time::Duration};

use super::*;

/// A sink that writes one line for each permit it is given.
struct Gated {
    permits: mpsc::Receiver<()>,
    lines: mpsc::Sender<Vec<u8>>,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.permits.recv().map_err(io::Error::other)?;
        let _ = self.lines.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Rig {
    queue: Arc<Queue>,
    written: Arc<Written>,
    permits: mpsc::Sender<()>,
    lines: mpsc::Receiver<Vec<u8>>,
}

fn rig() -> Rig {
    let (permits, taken) = mpsc::channel();
    let (sent, lines) = mpsc::channel();
    let written = Arc::new(Written::default());
    let sink = Gated {
        permits: taken,
        lines: sent,
    };
    let queue = Queue::start(Arc::new(Mutex::new(sink)), Arc::clone(&written)).unwrap();
    Rig {
        queue,
        written,
        permits,
        lines,
    }
}

impl Rig {
    fn fill(&self, lines: usize) {
        for n in 0..lines {
            self.queue
                .push(n.to_string().into_bytes(), true, &self.written);
        }
    }

    /// Lets a line go and waits until it went.
    fn step(&self) -> Vec<u8> {
        self.permits.send(()).unwrap();
        self.lines.recv().unwrap()
    }
}

#[tokio::test]
async fn a_run_waits_for_room_and_no_line_is_lost() {
    let rig = rig();
    assert!(rig.queue.room().await);
    // One more than fit may be in the writer's hand.
    rig.fill(LINES + 1);
    assert_eq!(rig.step(), b"0");
    rig.fill(1);
    assert!(!rig.queue.has_room());
    let waiting = tokio::spawn({
        let queue = Arc::clone(&rig.queue);
        async move { queue.room().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    for _ in 0..=LINES {
        rig.step();
    }
    assert!(waiting.await.unwrap());
    rig.queue
        .close(Instant::now() + Duration::from_secs(60), &rig.written);
    assert_eq!(rig.written.lost(), 0);
}

#[tokio::test]
async fn a_stop_ends_every_wait_and_counts_what_is_left() {
    let rig = rig();
    rig.fill(LINES + 1);
    rig.fill(1);
    let waiting = tokio::spawn({
        let queue = Arc::clone(&rig.queue);
        async move { queue.room().await }
    });
    tokio::task::yield_now().await;
    rig.queue.stop_waits();
    assert!(!waiting.await.unwrap());
    rig.queue.close(Instant::now(), &rig.written);
    assert_eq!(rig.written.lost(), LINES as u64 + 2);
}

#[test]
fn only_lines_of_runs_go_beyond_the_longest_queue() {
    let rig = rig();
    rig.fill(MOST_LINES + 1);
    rig.queue.push(b"runs".to_vec(), true, &rig.written);
    rig.queue.push(b"other".to_vec(), false, &rig.written);
    assert_eq!(rig.written.lost(), 1);
}

#[test]
fn a_write_that_fails_is_counted_until_one_succeeds() {
    let written = Written::default();
    written.line(&mut [0u8; 0].as_mut_slice(), b"x");
    assert_eq!((written.lost(), written.is_failing()), (1, true));
    written.line(&mut Vec::new(), b"x");
    assert_eq!((written.lost(), written.is_failing()), (1, false));
}
