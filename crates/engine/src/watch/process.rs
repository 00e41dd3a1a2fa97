//! The process's file descriptors and the machine's processors, as the kernel has them.

use rustix::process::{Resource, getrlimit};
use std::fs;

/// Open file descriptors, and how many there may be; `None` if they are unknown, or without a limit.
pub(super) fn descriptors() -> Option<(u64, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some((open, getrlimit(Resource::Nofile).current?))
}

/// The time of all processors since the machine's start, in ticks of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessorTime {
    all: u64,
    busy: u64,
}

impl ProcessorTime {
    #[cfg(test)]
    pub const fn of(all: u64, busy: u64) -> Self {
        Self { all, busy }
    }

    /// The time until now; `None` if the kernel does not tell it.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is part of user's.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Option<Vec<u64>> = line.split_whitespace().take(8).map(|time| time.parse().ok()).collect();
        let times = times.filter(|times| times.len() >= 5)?;
        let all: u64 = times.iter().sum();
        Some(Self { all, busy: all - times[3] - times[4] })
    }

    /// The part of the time since `earlier` in which the processors were busy.
    pub fn busy_since(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        Some(self.busy.saturating_sub(earlier.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_descriptors() {
        assert!(descriptors().is_none_or(|(open, most)| (3..=most).contains(&open)));
    }

    #[test]
    fn processors_are_busy_unless_they_idle_or_wait_for_disks() {
        let before = ProcessorTime::parse("cpu  10 0 10 100 20 0 0 0 5 0\ncpu0 1 1 1 1").expect("a line");
        let after = ProcessorTime::parse("cpu  70 0 20 110 30 5 5 0 9 0\n").expect("a line");
        assert_eq!(after.busy_since(before), Some(0.8));
        assert_eq!(before.busy_since(before), None);
        assert_eq!(ProcessorTime::parse("cpu 1 2"), None);
    }
}
