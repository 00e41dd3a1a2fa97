//! Rejected rows: their reasons and their number.
//!
//! Clients and test suites of Doris match the texts; they are preserved to the letter, odd blanks included.

use std::fmt;

/// Limit on the rejected rows of a load whose reasons are stored; the others are only counted.
pub const REJECTS_KEPT_MAX: usize = 10_000;

/// The longest text of a client's data in a reason or source line, in bytes.
const SHOWN_BYTES_MAX: usize = 1024;

/// The longest text of a rejected row that is kept of a load's first rejected rows, in bytes; [`SHOWN_BYTES_MAX`] of others.
const KEPT_BYTES_MAX: usize = 8 * 1024;

/// The first rejected rows of a load, which are kept at greater length.
const KEPT_LONGER: usize = 128;

/// The kinds of reasons for which rows are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RejectCode {
    /// NULL in a column that does not allow it.
    NullValue,
    /// Not a value of the column's type.
    WrongValue,
    /// A number beyond the column's range.
    OutOfRange,
    /// A text beyond the column's length.
    TooLong,
    /// The row lacks a field that its column must have.
    MissingField,
    /// More or fewer fields than columns.
    ColumnCount,
    /// The row is not UTF-8.
    NotUtf8,
    /// The row is no JSON object.
    BadJson,
    /// A JSON object without any of the columns.
    NoFields,
    /// All values together are too long.
    RowTooLong,
    /// No partition takes the row.
    NoPartition,
    /// A generated column's value can't be computed.
    NotComputed,
    /// The row names a table that is not there.
    UnknownTable,
}

impl RejectCode {
    /// The name for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NullValue => "NULL_VALUE",
            Self::WrongValue => "WRONG_VALUE",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::TooLong => "TOO_LONG",
            Self::MissingField => "MISSING_FIELD",
            Self::ColumnCount => "COLUMN_COUNT",
            Self::NotUtf8 => "NOT_UTF8",
            Self::BadJson => "BAD_JSON",
            Self::NoFields => "NO_FIELDS",
            Self::RowTooLong => "ROW_TOO_LONG",
            Self::NoPartition => "NO_PARTITION",
            Self::NotComputed => "NOT_COMPUTED",
            Self::UnknownTable => "UNKNOWN_TABLE",
        }
    }
}

/// A row that was not loaded. Logs store it in JSON, so its fields keep their names.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reject {
    pub code: RejectCode,
    /// The column with the fault, where it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The row's number in its load, from 1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    pub reason: String,
    /// The row as the error log shows it; empty where the check is on the final values.
    #[serde(skip)]
    pub source_line: String,
    /// The row as it arrived, shortened if it is long.
    pub raw: String,
}

impl Reject {
    /// A row that was rejected before anything was decoded: as text, shortened if it is long.
    #[must_use]
    pub fn of_bytes(code: RejectCode, reason: impl Into<String>, row: &[u8]) -> Self {
        let line = shown(row);
        Self { code, column: None, row: None, reason: reason.into(), source_line: line.clone(), raw: line }
    }

    /// [`Reject::of_bytes`] of a row with a place.
    pub(crate) fn of_row(place: Place, code: RejectCode, reason: String, row: &[u8]) -> Self {
        Self { row: Some(place.row), raw: cut(row, place.raw_max), ..Self::of_bytes(code, reason, row) }
    }

    /// The same, without a number: the rows that it counts are not those of the load.
    #[must_use]
    pub fn unnumbered(self) -> Self {
        Self { row: None, ..self }
    }

    /// Adds rejected rows that follow `rows` others, as far as there is space for them.
    pub fn append(rejects: &mut Vec<Self>, rows: u64, more: impl IntoIterator<Item = Self>) {
        let room = REJECTS_KEPT_MAX.saturating_sub(rejects.len());
        let later = |reject: Self| Self { row: reject.row.map(|row| row + rows), ..reject };
        rejects.extend(more.into_iter().take(room).map(later));
    }
}

/// A rejected row's number in its load, and the space for its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    row: u64,
    raw_max: usize,
}

impl Place {
    /// Of row number `row`, before which `rejects` rows were rejected.
    pub fn of(row: u64, rejects: usize) -> Self {
        Self { row, raw_max: if rejects < KEPT_LONGER { KEPT_BYTES_MAX } else { SHOWN_BYTES_MAX } }
    }

    /// The part of a row that is kept.
    pub fn raw_of(self, source: &impl Source) -> String {
        source.raw(self.raw_max)
    }

    pub fn row(self) -> u64 {
        self.row
    }
}

/// A row where it was read.
pub(crate) trait Source {
    /// The row as the error log shows it.
    fn line(&self) -> String;

    /// The row as it arrived, in about `max` bytes.
    fn raw(&self, max: usize) -> String;
}

/// A row that the error log does not show, with blanks around it.
pub(crate) struct Unshown<'a>(pub &'a [u8]);

impl Source for Unshown<'_> {
    fn line(&self) -> String {
        String::new()
    }

    fn raw(&self, max: usize) -> String {
        cut(self.0.trim_ascii(), max)
    }
}

impl Source for &[u8] {
    fn line(&self) -> String {
        shown(self)
    }

    fn raw(&self, max: usize) -> String {
        cut(self, max)
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
    cut(bytes, SHOWN_BYTES_MAX)
}

/// `bytes` as text, of which at most `max` bytes are kept.
fn cut(bytes: &[u8], max: usize) -> String {
    if bytes.len() <= max {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let end = (max - 3..=max).rev().find(|&at| bytes[at] & 0xc0 != 0x80).unwrap_or(max);
    format!("{}...", String::from_utf8_lossy(&bytes[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_row_prints_as_a_line_of_the_error_log() {
        let reject = Reject {
            source_line: String::new(),
            ..Reject::of_bytes(
                RejectCode::NullValue,
                "column_name[user_id], null value for not null column, type=BIGINT",
                b"",
            )
        };
        let line = "Reason: column_name[user_id], null value for not null column, type=BIGINT. src line []; ";
        assert_eq!(reject.to_string(), line);
    }

    #[test]
    fn rows_of_a_later_part_are_counted_after_those_of_the_first() {
        let of = |row| Reject { row, ..Reject::of_bytes(RejectCode::BadJson, "no", b"x") };
        let mut rejects = vec![of(Some(3))];
        Reject::append(&mut rejects, 10, [of(Some(1)), of(None)]);
        assert_eq!(rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(), [Some(3), Some(11), None]);
        Reject::append(&mut rejects, 0, vec![of(None); REJECTS_KEPT_MAX]);
        assert_eq!(rejects.len(), REJECTS_KEPT_MAX);
    }

    #[test]
    fn the_first_rows_are_kept_at_greater_length() {
        let long = vec![b'x'; 2 * KEPT_BYTES_MAX];
        let kept = |rejects| Reject::of_row(Place::of(5, rejects), RejectCode::BadJson, String::new(), &long);
        let (first, later) = (kept(0), kept(KEPT_LONGER));
        assert_eq!((first.row, first.raw.len()), (Some(5), KEPT_BYTES_MAX + 3));
        assert_eq!((later.raw.len(), later.raw), (SHOWN_BYTES_MAX + 3, first.source_line));
    }

    #[test]
    fn a_code_is_stored_by_the_name_that_users_see() {
        let stored = serde_json::to_string(&RejectCode::NotUtf8).expect("a name");
        assert_eq!(stored, format!("\"{}\"", RejectCode::NotUtf8.name()));
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
