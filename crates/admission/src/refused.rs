//! Clients that were refused: all are counted, and a few lines a second are logged.
//!
//! Who may not log in must not fill the disk that has the log, nor drive out the lines of others. The counts are those of the
//! process.
//!
//! Not its business: the reasons.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lines of each kind that are logged in a second.
pub const LINES_PER_SECOND: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// Why a client was refused, or its connection ended before it said who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A wrong password, an unknown user, no right to log in.
    MysqlLogin,
    /// A login that is malformed, or by means that the server does not have.
    MysqlHandshake,
    /// There are as many sessions as there may be.
    MysqlSessions,
    /// It had not logged in when another client needed the place.
    MysqlMadeRoom,
    HttpLogin,
    /// There are as many connections as there may be, of all or of its address.
    HttpConnections,
    /// It had not sent a request when another client needed the place.
    HttpMadeRoom,
    /// It did not send its request in time.
    HttpHeadTime,
    /// Requests that are being sent take all the memory that there is for them.
    HttpHeadBytes,
    /// A wrong password, an unknown user, no right to log in.
    FlightLogin,
    /// There are as many sessions as there may be.
    FlightSessions,
    /// It had not logged in when another client needed the place.
    FlightMadeRoom,
}

impl Refusal {
    pub const ALL: [Self; 12] = [
        Self::MysqlLogin,
        Self::MysqlHandshake,
        Self::MysqlSessions,
        Self::MysqlMadeRoom,
        Self::HttpLogin,
        Self::HttpConnections,
        Self::HttpMadeRoom,
        Self::HttpHeadTime,
        Self::HttpHeadBytes,
        Self::FlightLogin,
        Self::FlightSessions,
        Self::FlightMadeRoom,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MysqlLogin => "mysql_login",
            Self::MysqlHandshake => "mysql_handshake",
            Self::MysqlSessions => "mysql_sessions",
            Self::MysqlMadeRoom => "mysql_made_room",
            Self::HttpLogin => "http_login",
            Self::HttpConnections => "http_connections",
            Self::HttpMadeRoom => "http_made_room",
            Self::HttpHeadTime => "http_head_time",
            Self::HttpHeadBytes => "http_head_bytes",
            Self::FlightLogin => "flight_login",
            Self::FlightSessions => "flight_sessions",
            Self::FlightMadeRoom => "flight_made_room",
        }
    }

    /// Counts one, and logs it with `line` unless too many of its kind were logged in this second. `line` gets the number of
    /// clients that were left out before it.
    pub fn log(self, line: impl FnOnce(u64)) {
        let kind = &KINDS[self as usize];
        kind.count.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = kind.lines.lock().take(Instant::now()) {
            line(left_out);
        }
    }

    /// The number of such clients since the start.
    #[must_use]
    pub fn count(self) -> u64 {
        KINDS[self as usize].count.load(Ordering::Relaxed)
    }
}

/// Logs how many clients were left out of the log and not mentioned since. To be called now and then.
pub fn report_left_out() {
    for kind in Refusal::ALL {
        let left_out = KINDS[kind as usize].lines.lock().take_left_out(Instant::now());
        if left_out > 0 {
            tracing::info!(kind = kind.name(), left_out, "further clients were refused");
        }
    }
}

struct Kind {
    count: AtomicU64,
    lines: Mutex<Lines>,
}

static KINDS: [Kind; Refusal::ALL.len()] =
    [const { Kind { count: AtomicU64::new(0), lines: Mutex::new(Lines::new()) } }; Refusal::ALL.len()];

/// The lines of the current second.
#[derive(Debug)]
struct Lines {
    since: Option<Instant>,
    logged: u32,
    left_out: u64,
}

impl Lines {
    const fn new() -> Self {
        Self { since: None, logged: 0, left_out: 0 }
    }

    /// Takes a line; the result is how many were left out before it. `None`: this one is left out.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= SECOND) {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged >= LINES_PER_SECOND {
            self.left_out += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.left_out))
    }

    /// The number of lines left out in a second that is over.
    fn take_left_out(&mut self, now: Instant) -> u64 {
        let is_over = self.since.is_some_and(|since| now.saturating_duration_since(since) >= SECOND);
        if is_over { std::mem::take(&mut self.left_out) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_are_logged_and_the_others_counted() {
        let mut lines = Lines::new();
        let start = Instant::now();
        let logged: Vec<u64> = (0..100).filter_map(|_| lines.take(start)).collect();
        assert_eq!(logged, [0; LINES_PER_SECOND as usize]);
        assert_eq!(lines.take_left_out(start), 0, "more may come");
        assert_eq!(lines.take(start + SECOND), Some(90));
        assert_eq!(lines.take(start + SECOND), Some(0));
        let logged = (0..20).filter_map(|_| lines.take(start + SECOND)).count();
        assert_eq!(logged, 8);
        assert_eq!(lines.take_left_out(start + 2 * SECOND), 12);
        assert_eq!(lines.take(start + 2 * SECOND), Some(0));
    }

    #[test]
    fn every_kind_has_a_count_of_its_own() {
        for (place, kind) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{}", kind.name());
            let before = kind.count();
            kind.log(|_| {});
            assert_eq!(kind.count(), before + 1);
        }
    }
}
