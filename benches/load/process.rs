//! What the kernel says of a process.

use std::{fs, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::measure::Outcome;

/// Ticks of a second in the kernel's process times, on every Linux port.
const TICKS: u64 = 100;

/// Memory and time of a process.
pub struct Usage {
    /// Memory that is resident now.
    pub resident_kib: u64,
    /// The most there ever was.
    pub most_resident_kib: u64,
    /// Time of all its threads on a processor.
    pub cpu: Duration,
}

impl Usage {
    /// Reads them.
    pub fn of(process: u32) -> Outcome<Usage> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let kib = |name: &str| -> Outcome<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let value = line.and_then(|line| line.split_whitespace().next());
            Ok(value.ok_or("a line is missing")?.parse()?)
        };
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name, in parentheses, may hold spaces. After it: state, then
        // eleven fields, then the times in user and system mode.
        let (_, after) = stat.rsplit_once(") ").ok_or("an odd line")?;
        let ticks: u64 = after
            .split(' ')
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().unwrap_or(0))
            .sum();
        Ok(Usage {
            resident_kib: kib("VmRSS:")?,
            most_resident_kib: kib("VmHWM:")?,
            cpu: Duration::from_millis(ticks * 1000 / TICKS),
        })
    }
}

/// A connection for each caller takes more than the usual limit.
pub fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where it is refused the connections say so.
    let _ = setrlimit(Resource::Nofile, raised);
}
