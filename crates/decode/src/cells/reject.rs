//! Rejected rows: their reasons and their number.
//!
//! Clients and test suites of Doris match the texts; they are preserved to the letter, odd blanks included.

use std::fmt;

/// Limit on the rejected rows of a load whose reasons are stored; the others are only counted.
pub const REJECTS_KEPT_MAX: usize = 10_000;

/// The longest text of a client's data in a reason or source line, in bytes.
const SHOWN_BYTES_MAX: usize = 1024;

/// A row that was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    pub reason: String,
    /// The row as it arrived; empty where the check is on the final values.
    pub source_line: String,
}

impl Reject {
    /// A row that was rejected before anything was decoded: as text, shortened if it is long.
    #[must_use]
    pub fn of_bytes(reason: impl Into<String>, row: &[u8]) -> Self {
        Self { reason: reason.into(), source_line: shown(row) }
    }
}

/// A line of the error log, without its line end.
impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reason: {}. src line [{}]; ", self.reason, self.source_line)
    }
}

/// How many rows of a load were loaded, filtered and unselected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All rows: loaded, filtered and unselected.
    pub total: u64,
    pub loaded: u64,
    /// Rejected for their data.
    pub filtered: u64,
    /// Left out by the load's `where`.
    pub unselected: u64,
}

impl Counts {
    /// Whether the share of filtered rows among the selected ones is above `max_filter_ratio`.
    #[must_use]
    pub fn exceed(&self, max_filter_ratio: f64) -> bool {
        let selected = self.total.saturating_sub(self.unselected);
        selected > 0 && self.filtered as f64 / selected as f64 > max_filter_ratio
    }

    /// The counts of two parts of a load together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            loaded: self.loaded + other.loaded,
            filtered: self.filtered + other.filtered,
            unselected: self.unselected + other.unselected,
        }
    }
}

/// `bytes` as text for a reason: shortened if long, with replacement characters if not UTF-8.
pub(crate) fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN_BYTES_MAX {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let cut = (SHOWN_BYTES_MAX - 3..=SHOWN_BYTES_MAX)
        .rev()
        .find(|&at| bytes[at] & 0xc0 != 0x80)
        .unwrap_or(SHOWN_BYTES_MAX);
    format!("{}...", String::from_utf8_lossy(&bytes[..cut]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_row_prints_as_a_line_of_the_error_log() {
        let reject = Reject {
            reason: "column_name[user_id], null value for not null column, type=BIGINT".into(),
            source_line: String::new(),
        };
        let line = "Reason: column_name[user_id], null value for not null column, type=BIGINT. src line []; ";
        assert_eq!(reject.to_string(), line);
    }

    #[test]
    fn the_ratio_is_of_selected_rows_and_must_be_exceeded_strictly() {
        let counts = Counts { total: 110, loaded: 90, filtered: 10, unselected: 10 };
        assert!(!counts.exceed(0.1));
        assert!(counts.exceed(0.0999));
        assert!(!Counts { total: 5, unselected: 5, ..Counts::default() }.exceed(0.0));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let long = "é".repeat(SHOWN_BYTES_MAX);
        assert!(shown(long.as_bytes()).ends_with("é..."));
        assert_eq!(shown(b"ab\xffc"), "ab\u{fffd}c");
    }
}
