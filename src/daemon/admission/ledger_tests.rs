use super::*;
use proptest::prelude::*;

const S: Duration = Duration::from_secs(1);
const NO_DEBT: Charge = Charge::Elapsed {
    owed: Duration::ZERO,
};

/// Both clocks of a test, moved together.
#[derive(Clone, Copy)]
struct Clock(Moment);

impl Clock {
    /// Noon of some day.
    fn noon() -> Clock {
        Clock(Moment {
            wall: UNIX_EPOCH + Duration::from_secs(20_000 * DAY + DAY / 2),
            clock: Instant::now(),
        })
    }

    fn after(self, time: Duration) -> Clock {
        Clock(Moment {
            wall: self.0.wall + time,
            clock: self.0.clock + time,
        })
    }

    /// This long before the next midnight.
    fn before_midnight(time: Duration) -> Clock {
        Clock::noon().after(Duration::from_secs(DAY / 2) - time)
    }
}

fn id(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn ledger(daemon: u64, callers: &[(&str, u64)]) -> Arc<Ledger> {
    Ledger::new(daemon, callers.iter().map(|(n, s)| (id(n), *s)).collect())
}

#[test]
fn a_run_is_charged_what_it_took() {
    let ledger = ledger(0, &[("a", 100)]);
    let noon = Clock::noon();
    let run = ledger.reserve(&id("a"), 93 * S, noon.0).unwrap();
    let receipt = run.receipt();
    assert_eq!(receipt.charged(), 93 * S);
    let refused = ledger.reserve(&id("a"), 93 * S, noon.0).unwrap_err();
    assert_eq!(
        refused.message(),
        "this caller's paid time of today does not cover the run: 7 s are left of 100 s a day and the run reserves 93 s"
    );
    let later = noon.after(2 * S);
    run.settle(NO_DEBT, later.0);
    assert_eq!(receipt.charged(), 2 * S);
    assert_eq!(ledger.used_by("a", later.0), 2 * S);
    assert!(ledger.reserve(&id("a"), 98 * S, later.0).is_ok());
}

#[test]
fn the_daemons_refusal_has_no_numbers() {
    let ledger = ledger(100, &[("a", 1000)]);
    let noon = Clock::noon();
    let _run = ledger.reserve(&id("b"), 60 * S, noon.0).unwrap();
    let refused = ledger.reserve(&id("a"), 41 * S, noon.0).unwrap_err();
    assert_eq!(refused, Overdrawn::Daemon);
    assert!(!refused.message().contains(|c: char| c.is_ascii_digit()));
    assert!(ledger.reserve(&id("a"), 40 * S, noon.0).is_ok());
}

#[test]
fn what_a_run_costs_at_most_and_at_least() {
    let noon = Clock::noon();
    let charged = |charge, took: Duration| {
        let ledger = ledger(0, &[("a", 1000)]);
        let run = ledger.reserve(&id("a"), 50 * S, noon.0).unwrap();
        let receipt = run.receipt();
        run.settle(charge, noon.after(took).0);
        assert_eq!(ledger.used_by("a", noon.after(took).0), receipt.charged());
        receipt.charged()
    };
    assert_eq!(charged(NO_DEBT, 500 * S), 50 * S, "at most the reservation");
    assert_eq!(charged(Charge::Elapsed { owed: 7 * S }, 2 * S), 9 * S);
    assert_eq!(
        charged(
            Charge::Whole {
                owed: Duration::ZERO
            },
            2 * S
        ),
        50 * S
    );
    assert_eq!(charged(Charge::Whole { owed: 7 * S }, 2 * S), 57 * S);
}

#[test]
fn a_cancelled_reservation_costs_nothing_and_a_lost_one_its_time() {
    let ledger = ledger(10, &[]);
    let now = Moment::now();
    let run = ledger.reserve(&id("a"), 10 * S, now).unwrap();
    run.cancel(now);
    assert_eq!(ledger.used_by("a", now), Duration::ZERO);
    let run = ledger.reserve(&id("a"), 10 * S, now).unwrap();
    let receipt = run.receipt();
    drop(run);
    assert!(receipt.charged() < 10 * S, "the reservation is given back");
    assert!(ledger.lock().open.is_empty());
}

#[test]
fn a_new_day_is_a_new_allowance() {
    let ledger = ledger(0, &[("a", 100)]);
    let evening = Clock::before_midnight(10 * S);
    ledger
        .reserve(&id("a"), 100 * S, evening.0)
        .unwrap()
        .settle(
            Charge::Whole {
                owed: Duration::ZERO,
            },
            evening.0,
        );
    assert!(ledger.reserve(&id("a"), S, evening.after(9 * S).0).is_err());
    let morning = evening.after(11 * S);
    assert!(ledger.reserve(&id("a"), 100 * S, morning.0).is_ok());
}

#[test]
fn midnight_divides_a_run() {
    let ledger = ledger(0, &[("a", 100)]);
    let evening = Clock::before_midnight(10 * S);
    let run = ledger.reserve(&id("a"), 93 * S, evening.0).unwrap();
    // 30 s later, 20 s of the new day: 83 s of the reservation are today's.
    let morning = evening.after(30 * S);
    assert_eq!(ledger.used_by("a", morning.0), 83 * S);
    assert!(ledger.reserve(&id("a"), 18 * S, morning.0).is_err());
    run.settle(NO_DEBT, morning.0);
    assert_eq!(ledger.used_by("a", morning.0), 20 * S);
}

#[test]
fn a_clock_set_back_gives_no_day_twice() {
    let ledger = ledger(0, &[("a", 100)]);
    let noon = Clock::noon();
    let spend = |moment: Moment| {
        let run = ledger.reserve(&id("a"), 100 * S, moment)?;
        run.settle(
            Charge::Whole {
                owed: Duration::ZERO,
            },
            moment,
        );
        Ok::<_, Overdrawn>(())
    };
    spend(noon.0).unwrap();
    let yesterday = Moment {
        wall: noon.0.wall - Duration::from_secs(DAY),
        clock: noon.0.clock + S,
    };
    assert!(spend(yesterday).is_err());
    assert!(spend(noon.after(2 * S).0).is_err());
    let before_1970 = Moment {
        wall: UNIX_EPOCH - Duration::from_secs(1),
        clock: noon.0.clock + S,
    };
    assert!(spend(before_1970).is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(u8, u64),
    Settle(usize, u64),
    Cancel(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..3, 0u64..200).prop_map(|(who, s)| Step::Reserve(who, s)),
        2 => (0usize..8, 0u64..50).prop_map(|(i, owed)| Step::Settle(i, owed)),
        1 => (0usize..8).prop_map(Step::Cancel),
        2 => (0u64..40_000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..150)
}

proptest! {
    /// No reservation is granted beyond an allowance, and once nothing is open a
    /// day's use is exactly what was charged of it.
    #[test]
    fn never_over_an_allowance(daemon in 0u64..2000, own in 0u64..500, steps in steps()) {
        let ledger = ledger(daemon, &[("0", own), ("1", own / 2)]);
        let allowance = |who: u8| match who { 0 => own, 1 => own / 2, _ => 0 };
        let mut now = Clock::noon();
        let mut open: Vec<Reservation> = Vec::new();
        for step in steps {
            match step {
                Step::Wait(s) => now = now.after(Duration::from_secs(s)),
                Step::Reserve(who, s) => {
                    let name = id(&who.to_string());
                    let before = ledger.used_by(&name, now.0);
                    let all: Duration = ["0", "1", "2"].map(|n| ledger.used_by(n, now.0)).iter().sum();
                    let fits = |used: Duration, of: u64| {
                        of == 0 || Duration::from_secs(of).saturating_sub(used) >= Duration::from_secs(s)
                    };
                    match ledger.reserve(&name, Duration::from_secs(s), now.0) {
                        Ok(run) => {
                            prop_assert!(fits(before, allowance(who)) && fits(all, daemon));
                            open.push(run);
                        }
                        Err(Overdrawn::Caller { left, .. }) => {
                            prop_assert!(!fits(before, allowance(who)));
                            prop_assert!(left < s);
                        }
                        Err(Overdrawn::Daemon) => prop_assert!(!fits(all, daemon)),
                    }
                }
                Step::Settle(i, owed) => if i < open.len() {
                    let charge = Charge::Elapsed { owed: Duration::from_secs(owed) };
                    open.swap_remove(i).settle(charge, now.0);
                },
                Step::Cancel(i) => if i < open.len() { open.swap_remove(i).cancel(now.0); },
            }
        }
        for run in open { run.cancel(now.0); }
        prop_assert!(ledger.lock().open.is_empty());
        let tomorrow = now.after(Duration::from_secs(DAY));
        for name in ["0", "1", "2"] {
            prop_assert_eq!(ledger.used_by(name, tomorrow.0), Duration::ZERO);
        }
    }
}
