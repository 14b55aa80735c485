//! Counts refused credentials, so that a flood of them writes one log line.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::events::Events;

/// Counter of one listener.
pub(crate) struct RefusedCredentials {
    /// Refusals of the open window; zero when none is open.
    count: Mutex<u64>,
    window: Duration,
    events: Arc<dyn Events>,
}

impl RefusedCredentials {
    pub(crate) fn new(window: Duration, events: Arc<dyn Events>) -> Arc<Self> {
        Arc::new(RefusedCredentials {
            count: Mutex::new(0),
            window,
            events,
        })
    }

    /// Counts one refusal. The first opens a window, reported when it ends.
    pub(crate) fn add(self: &Arc<Self>) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        if *count == 1 {
            let this = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(this.window).await;
                this.report();
            });
        }
    }

    /// Reports an open window now; at the listener's end.
    pub(crate) fn report(&self) {
        let count = std::mem::take(&mut *self.count.lock().unwrap_or_else(PoisonError::into_inner));
        if count > 0 {
            self.events.credentials_refused(count, self.window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    struct Seen(mpsc::UnboundedSender<u64>);

    impl Events for Seen {
        fn credentials_refused(&self, count: u64, _window: Duration) {
            self.0.send(count).unwrap();
        }
        fn listener_failed(&self, _error: &std::io::Error) {}
    }

    #[tokio::test]
    async fn ten_thousand_refusals_are_one_report() {
        let (sender, mut seen) = mpsc::unbounded_channel();
        let refused = RefusedCredentials::new(Duration::from_millis(50), Arc::new(Seen(sender)));
        for _ in 0..10_000 {
            refused.add();
        }
        assert_eq!(seen.recv().await, Some(10_000));
        refused.report();
        refused.add();
        refused.report();
        assert_eq!(seen.recv().await, Some(1));
        assert!(seen.try_recv().is_err());
    }
}
