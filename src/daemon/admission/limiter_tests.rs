use super::*;
use proptest::prelude::*;

fn limits(max_concurrent: u32, per_key: u32, rate_per_min: u64, burst: u64) -> Limits {
    Limits {
        max_concurrent,
        per_key,
        rate_per_min,
        burst,
    }
}

fn key(name: &str) -> Arc<str> {
    Arc::from(name)
}

#[test]
fn slots_of_daemon_and_caller() {
    let limiter = Limiter::new(limits(2, 1, 0, 0));
    let now = Instant::now();
    let a = limiter.admit(&key("a"), now).unwrap();
    assert_eq!(limiter.admit(&key("a"), now).unwrap_err(), Shed::PerKey);
    let _b = limiter.admit(&key("b"), now).unwrap();
    assert_eq!(limiter.admit(&key("c"), now).unwrap_err(), Shed::AtCapacity);
    assert_eq!(Shed::ALL.map(|s| limiter.shed(s)), [1, 1, 0, 0, 0]);
    drop(a);
    assert_eq!(limiter.inflight(), 1);
    assert!(limiter.admit(&key("c"), now).is_ok());
}

#[test]
fn a_refusal_by_slots_spends_no_token() {
    let limiter = Limiter::new(limits(8, 1, 1, 1));
    let now = Instant::now();
    let busy = limiter.admit(&key("a"), now).unwrap();
    let later = now + Duration::from_secs(60);
    for _ in 0..5 {
        assert_eq!(limiter.admit(&key("a"), later).unwrap_err(), Shed::PerKey);
    }
    drop(busy);
    assert!(limiter.admit(&key("a"), later).is_ok());
    assert_eq!(limiter.admit(&key("a"), later).unwrap_err(), Shed::Rate);
    assert_eq!(limiter.inflight(), 0, "a refusal by rate takes no slot");
}

#[test]
fn a_partly_full_bucket_is_not_forgotten() {
    // 1 a minute, bucket of 10: after three minutes 3 tokens, not 10.
    let limiter = Limiter::new(limits(8, 0, 1, 10));
    let now = Instant::now();
    for _ in 0..10 {
        drop(limiter.admit(&key("a"), now).unwrap());
    }
    let later = now + Duration::from_secs(180);
    // Another caller's start makes the sweep run.
    drop(limiter.admit(&key("b"), later).unwrap());
    for _ in 0..3 {
        drop(limiter.admit(&key("a"), later).unwrap());
    }
    assert_eq!(limiter.admit(&key("a"), later).unwrap_err(), Shed::Rate);
}

#[test]
fn an_idle_full_bucket_is_forgotten() {
    let limiter = Limiter::new(limits(8, 0, 60, 2));
    let now = Instant::now();
    drop(limiter.admit(&key("a"), now).unwrap());
    drop(
        limiter
            .admit(&key("b"), now + Duration::from_secs(119))
            .unwrap(),
    );
    assert_eq!(limiter.lock().buckets.len(), 2);
    drop(
        limiter
            .admit(&key("b"), now + Duration::from_secs(181))
            .unwrap(),
    );
    assert!(!limiter.lock().buckets.contains_key("a"));
}

#[test]
fn a_hold_keeps_the_slot_past_the_answer() {
    let limiter = Limiter::new(limits(1, 0, 0, 0));
    let now = Instant::now();
    let call = limiter.admit(&key("a"), now).unwrap();
    let holds = [call.clone(), call.clone()];
    drop(call);
    assert_eq!(limiter.inflight(), 1);
    drop(holds);
    assert_eq!(limiter.inflight(), 0);
    assert!(limiter.lock().per_key.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Start(u8),
    End(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..4).prop_map(Step::Start),
        2 => (0usize..8).prop_map(Step::End),
        1 => (0u64..200_000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// Against a model: slots are exact, and over any stretch of time a caller
    /// starts at most its burst plus what its rate refilled.
    #[test]
    fn never_over_a_limit(
        max in 1u32..5, per_key in 0u32..4, rate in 0u64..120, burst in 1u64..10, steps in steps(),
    ) {
        let limiter = Limiter::new(limits(max, per_key, rate, burst));
        let begin = Instant::now();
        let mut now = begin;
        let mut held: Vec<(u8, Capacity)> = Vec::new();
        let mut started = [0u64; 4];
        for step in steps {
            match step {
                Step::Wait(ms) => now += Duration::from_millis(ms),
                Step::End(i) => { if i < held.len() { held.swap_remove(i); } }
                Step::Start(who) => {
                    let mine = held.iter().filter(|(k, _)| *k == who).count() as u32;
                    let answer = limiter.admit(&key(&who.to_string()), now);
                    let full = held.len() as u32 == max;
                    let own = per_key > 0 && mine == per_key;
                    match answer {
                        Ok(slot) => {
                            prop_assert!(!full && !own);
                            started[who as usize] += 1;
                            held.push((who, slot));
                        }
                        Err(Shed::AtCapacity) => prop_assert!(full),
                        Err(Shed::PerKey) => prop_assert!(!full && own),
                        Err(Shed::Rate) => prop_assert!(!full && !own && rate > 0),
                        Err(paid) => prop_assert!(false, "the limiter knows no {paid:?}"),
                    }
                }
            }
            prop_assert_eq!(limiter.inflight() as usize, held.len());
            if rate > 0 {
                let refill = (now - begin).as_secs_f64() * rate as f64 / 60.0;
                for n in started {
                    prop_assert!(n as f64 <= burst as f64 + refill + 1e-6);
                }
            }
        }
        held.clear();
        prop_assert_eq!(limiter.inflight(), 0);
    }
}
