//! Admission: how many runs at once, how often, and how much paid time a day, for
//! the daemon and for each caller. It refuses at once and never queues.

mod ledger;
mod limiter;
mod shed;

pub use ledger::{Charge, Ledger, Moment, Overdrawn, Receipt, Reservation};
pub use limiter::{Capacity, Limiter, Limits};
pub use shed::Shed;
