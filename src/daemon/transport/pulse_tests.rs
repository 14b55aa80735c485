use super::{
    super::places::{Places, tests::taken},
    *,
};

/// What a client that says nothing more begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn settings() -> Settings {
    Settings::new(1)
}

async fn after(pulse: &Pulse, told: Option<Instant>) -> (Expiry, u64) {
    let alone = taken(&Places::new(None), 1).await;
    after_in(pulse, told, alone[0].crowd()).await
}

async fn after_in(pulse: &Pulse, told: Option<Instant>, mut crowd: Crowd) -> (Expiry, u64) {
    let start = Instant::now();
    let expiry = pulse.expired(told, &mut crowd).await;
    (expiry, start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_first_head_has_the_time_of_a_head() {
    let pulse = Pulse::new(&settings(), false, Instant::now());
    assert_eq!(after(&pulse, None).await, (Expiry::Head, 5));
    let pulse = Pulse::new(&settings(), true, Instant::now());
    assert_eq!(after(&pulse, None).await, (Expiry::Head, 5));
    let pulse = Pulse::new(&settings(), true, Instant::now());
    pulse.read(PREFACE);
    assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
}

#[tokio::test(start_paused = true)]
async fn a_head_behind_another_request_has_the_time_of_a_head() {
    let pulse = Pulse::new(&settings(), false, Instant::now());
    pulse.read(b"GET / HTTP/1.1\r\n\r\nGET /");
    drop(pulse.begin());
    assert_eq!(after(&pulse, None).await, (Expiry::Head, 5));
    // It may also come while the request before it is answered.
    for (more, expiry) in [
        (&b""[..], (Expiry::Idle, 120)),
        (b"GET /", (Expiry::Head, 5)),
    ] {
        let pulse = Pulse::new(&settings(), false, Instant::now());
        pulse.read(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
        let exchange = pulse.begin();
        exchange.request_read();
        if !more.is_empty() {
            pulse.read(more);
        }
        drop(exchange);
        assert_eq!(after(&pulse, None).await, expiry);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_cut_short_has_the_time_of_a_head() {
    let whole = b"\0\0\x02\x01\x04\0\0\0\x01ab";
    let unfinished = b"\0\0\x02\x01\0\0\0\0\x01ab";
    for (frame, expiry) in [
        (&whole[..], (Expiry::Idle, 60)),
        (&whole[..10], (Expiry::Head, 5)),
        (&whole[..3], (Expiry::Head, 5)),
        (unfinished, (Expiry::Head, 5)),
    ] {
        let pulse = Pulse::new(&settings(), true, Instant::now());
        pulse.read(PREFACE);
        tokio::time::sleep(Duration::from_secs(60)).await;
        pulse.read(frame);
        assert_eq!(after(&pulse, None).await, expiry, "{frame:?}");
        // A call in flight has its time, and its answer some to leave.
        let pulse = Pulse::new(&settings(), true, Instant::now());
        pulse.read(PREFACE);
        let call = pulse.begin();
        call.request_read();
        pulse.read(frame);
        assert_eq!(after(&pulse, None).await, (Expiry::Exchange, 360));
        drop(call);
        let left = if expiry.0 == Expiry::Idle { 120 } else { 5 };
        assert_eq!(after(&pulse, None).await, (expiry.0, left));
    }
}

#[tokio::test(start_paused = true)]
async fn idle_then_a_head_that_stops() {
    let pulse = Pulse::new(&settings(), false, Instant::now());
    drop(pulse.begin());
    let watch = {
        let pulse = Arc::clone(&pulse);
        tokio::spawn(async move { after(&pulse, None).await })
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    pulse.read(b"G");
    pulse.read(b"E");
    pulse.wrote();
    assert_eq!(watch.await.unwrap(), (Expiry::Head, 65));
    pulse.read(b"T / HTTP/1.1\r\n\r\n");
    drop(pulse.begin());
    assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
    let told = Instant::now();
    assert_eq!(after(&pulse, Some(told)).await, (Expiry::Idle, 5));
    drop(pulse.begin());
    assert_eq!(after(&pulse, Some(told)).await, (Expiry::Idle, 5));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_gives_way_in_a_crowd() {
    for http2 in [false, true] {
        let places = Places::new(Some(4));
        let mut others = taken(&places, 3).await;
        let crowd = || others[0].crowd();
        let pulse = Pulse::new(&settings(), http2, Instant::now());
        if http2 {
            pulse.read(PREFACE);
        }
        drop(pulse.begin());
        let watch = {
            let (pulse, crowd) = (Arc::clone(&pulse), crowd());
            tokio::spawn(async move { after_in(&pulse, None, crowd).await })
        };
        tokio::time::sleep(Duration::from_secs(60)).await;
        let last = taken(&places, 1).await;
        assert_eq!(watch.await.unwrap(), (Expiry::Idle, 60));
        // One that has just answered gets a moment, one in a call all its time.
        drop(pulse.begin());
        assert_eq!(after_in(&pulse, None, crowd()).await, (Expiry::Idle, 1));
        let told = Some(Instant::now());
        assert_eq!(after_in(&pulse, told, crowd()).await, (Expiry::Idle, 1));
        let call = pulse.begin();
        call.request_read();
        assert_eq!(
            after_in(&pulse, None, crowd()).await,
            (Expiry::Exchange, 360)
        );
        drop((call, last));
        assert_eq!(after_in(&pulse, None, crowd()).await, (Expiry::Idle, 1));
        others.pop();
        drop(pulse.begin());
        let alone = others[0].crowd();
        assert_eq!(after_in(&pulse, None, alone).await, (Expiry::Idle, 120));
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_exchange_counts() {
    let pulse = Pulse::new(&settings(), true, Instant::now());
    pulse.read(PREFACE);
    let first = pulse.begin();
    let second = pulse.begin();
    first.request_read();
    assert_eq!(after(&pulse, None).await, (Expiry::Exchange, 360));
    drop(first);
    assert_eq!(after(&pulse, None).await, (Expiry::Exchange, 30));
    drop(second);
    assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
}

#[tokio::test(start_paused = true)]
async fn an_answer_still_going_out_is_not_idle() {
    let pulse = Pulse::new(&settings(), false, Instant::now());
    drop(pulse.begin());
    tokio::time::sleep(Duration::from_secs(100)).await;
    pulse.wrote();
    assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
}
