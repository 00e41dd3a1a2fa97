//! The zone of the session, into which texts that name another zone are converted.
//!
//! A text becomes a moment deep within an expression: while constants are converted, while a plan is simplified, and while
//! a batch is computed. So the zone is the thread's for as long as one of these runs ([`within`]). A plan carries it from one thread
//! to the other in its options ([`SessionZone`]).
//!
//! Invariant: outside of [`within`] the zone is UTC.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};
use datafusion::common::config::{ConfigExtension, ConfigOptions};
use datafusion::common::extensions_options;
use std::cell::Cell;

thread_local! {
    static UTC_OFFSET_SECONDS: Cell<i32> = const { Cell::new(0) };
}

extensions_options! {
    /// The session's zone, as an option of DataFusion.
    pub struct SessionZone {
        /// Seconds ahead of UTC.
        pub utc_offset_seconds: i32, default = 0
    }
}

impl ConfigExtension for SessionZone {
    const PREFIX: &'static str = "tributary_session";
}

/// How many seconds the session's zone is ahead of UTC, for what runs on this thread.
#[must_use]
pub fn utc_offset_seconds() -> i32 {
    UTC_OFFSET_SECONDS.get()
}

/// Runs `work` in the zone that is `utc_offset_seconds` ahead of UTC.
pub fn within<T>(utc_offset_seconds: i32, work: impl FnOnce() -> T) -> T {
    struct Back(i32);
    impl Drop for Back {
        fn drop(&mut self) {
            UTC_OFFSET_SECONDS.set(self.0);
        }
    }
    let _back = Back(UTC_OFFSET_SECONDS.replace(utc_offset_seconds));
    work()
}

/// The zone that a plan carries.
#[must_use]
pub fn of(options: &ConfigOptions) -> i32 {
    options.extensions.get::<SessionZone>().map_or(0, |zone| zone.utc_offset_seconds)
}

/// How many seconds a zone is ahead of UTC at a time; 0 for a name that is none.
#[must_use]
pub fn offset_of(name: &str, unix_micros: i64) -> i32 {
    let at = DateTime::from_timestamp_micros(unix_micros).unwrap_or_default().naive_utc();
    let zone: Option<Tz> = name.parse().ok();
    zone.map_or(0, |zone| zone.offset_from_utc_datetime(&at).fix().local_minus_utc())
}
