//! The process: its end, and the lines that its log lost.
//!
//! Not here: the reasons for an end. Each caller describes its own.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long the end waits for its reason to be written.
const REASON_MAX: Duration = Duration::from_secs(1);

static LOG_LINES_DROPPED: AtomicU64 = AtomicU64::new(0);

/// Ends the process at once, after writing the reason to standard error. A standard error that fails or blocks does not keep it
/// alive; the log, which has a thread of its own, may lose its last lines.
pub fn abort(reason: &str) -> ! {
    let text = format!("tributary: {reason}\n");
    let (written, is_written) = sync_channel(1);
    let write = move || {
        let _ = std::io::stderr().write_all(text.as_bytes());
        let _ = written.send(());
    };
    if std::thread::Builder::new().spawn(write).is_ok() {
        let _ = is_written.recv_timeout(REASON_MAX);
    }
    std::process::abort()
}

/// Counts a line of the log that could not be written.
pub fn log_line_dropped() {
    LOG_LINES_DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// The number of lines that the log lost since the start.
#[must_use]
pub fn log_lines_dropped() -> u64 {
    LOG_LINES_DROPPED.load(Ordering::Relaxed)
}
