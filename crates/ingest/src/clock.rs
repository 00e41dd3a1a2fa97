//! Time, behind a trait so that a simulation can own it.

use std::fmt::Debug;
use std::time::Instant;

/// What time it is.
pub trait Clock: Send + Sync + Debug + 'static {
    /// A time that only grows; deadlines of groups are measured on it.
    fn now(&self) -> Instant;
    /// Wall-clock time in ms since 1970, for what people read.
    fn unix_ms(&self) -> i64;
}

/// The machine's clock, or the simulation's on a thread that has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        tributary_types::host::now()
    }

    fn unix_ms(&self) -> i64 {
        tributary_types::host::unix_ms()
    }
}
