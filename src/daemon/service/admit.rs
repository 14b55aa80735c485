//! Admission of a run: the paid time it may cost, then slots and rate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plimsoll_wire::{Code, Kind, Reason, Refusal, limits::MAX_RUN};

use crate::{
    admission::{Capacity, Ledger, Limiter, Moment, Reservation, Shed},
    call::Principal,
    provider::{Metering, Provider},
};

/// What a run was admitted with.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) capacity: Capacity,
    /// On a provider billed by the second.
    pub(super) paid: Option<Reservation>,
}

/// Admits one run, or refuses it with nothing spent. The reservation comes
/// first, so that a run the limiter refuses has cost no paid time, and one the
/// allowance refuses no slot and no token.
pub(super) fn run(
    provider: &dyn Provider,
    limiter: &Arc<Limiter>,
    ledger: &Arc<Ledger>,
    principal: &Principal,
    kind: Kind,
    timeout: Option<Duration>,
) -> Result<Admitted, Refusal> {
    let caller: Arc<str> = match &principal.id {
        Some(id) => Arc::clone(id),
        None => Arc::from(principal.key()),
    };
    // What cannot be done costs nothing: it is refused as unsupported.
    let metering = provider
        .metering()
        .filter(|_| provider.capabilities().runs(kind));
    let paid = match metering {
        Some(metering) => {
            let most = most(provider, metering, kind, timeout);
            let reserved = ledger.reserve(&caller, most, Moment::now());
            Some(reserved.map_err(|overdrawn| {
                limiter.count(overdrawn.cause());
                capacity(overdrawn.message())
            })?)
        }
        None => None,
    };
    match limiter.admit(&caller, Instant::now()) {
        Ok(capacity) => Ok(Admitted { capacity, paid }),
        Err(shed) => {
            if let Some(reservation) = paid {
                reservation.cancel(Moment::now());
            }
            Err(refusal(shed))
        }
    }
}

/// The most a run can be billed: its budget as the provider will cut it, and the
/// removal of its machine.
fn most(
    provider: &dyn Provider,
    metering: Metering,
    kind: Kind,
    timeout: Option<Duration>,
) -> Duration {
    let stated = provider.environment(kind).ceiling;
    let ceiling = if stated.is_zero() { MAX_RUN } else { stated };
    let budget = timeout.unwrap_or(metering.default_timeout).min(ceiling);
    budget.saturating_add(metering.teardown)
}

fn refusal(shed: Shed) -> Refusal {
    capacity(shed.message())
}

fn capacity(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::ResourceExhausted, Reason::Capacity, message)
}
