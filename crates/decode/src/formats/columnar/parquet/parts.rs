//! Divides the rows of a file into consecutive parts, which decoders read in parallel.
//!
//! A part is a range of rows. It begins and ends with a row group if one begins nearby; else two parts read the same row group, and
//! pass over the pages of each other's rows without unpacking them.
//!
//! Invariant: the rows of the parts, one part after another, are the rows of the file. The parts together may hold as much memory as
//! one decoder of the whole file.

use super::{BodyMemory, ParquetSource, Reading, State};
use crate::formats::columnar::source::{Part, Source};
use crate::formats::host::LoadHost;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use std::ops::Range;

/// Fewer rows are not worth a part. Tests divide smaller files.
const ROWS_MIN: u64 = if cfg!(test) { 500 } else { 65_536 };
/// A part ends with a row group if that moves its end by at most this fraction of its length.
const MOVED_FRACTION: u64 = 16;

impl ParquetSource {
    /// See [`Source::divide`].
    pub(in super::super) fn divide(&self, host: &dyn LoadHost, count: usize, bytes_min: u64) -> Vec<Part> {
        let State::Reading(reading) = &self.state else { return Vec::new() };
        if reading.bytes() < bytes_min {
            return Vec::new();
        }
        let groups = reading.file.metadata.row_groups().iter();
        let groups: Vec<u64> = groups.map(|group| group.num_rows().unsigned_abs()).collect();
        let ranges = ranges(&groups, count as u64, ROWS_MIN);
        let count = ranges.len();
        let part = |rows: Range<u64>| {
            let first_row = rows.start;
            let source = Self {
                memory: BodyMemory::of_part(&self.memory, host, count),
                state: State::Reading(Box::new(reading.part(&groups, rows))),
                // It is held, and counted, by the whole.
                file: None,
            };
            Part { first_row, source: Source::Parquet(Box::new(source)) }
        };
        ranges.into_iter().map(part).collect()
    }

    pub(in super::super) fn parts_lacked_memory(&self) -> bool {
        self.memory.was_refused()
    }
}

impl Reading {
    /// The minimum bytes of the rows in memory.
    fn bytes(&self) -> u64 {
        let mut bytes = 0_u64;
        for group in self.file.metadata.row_groups() {
            let rows = group.num_rows().unsigned_abs();
            for leaf in &self.columns {
                let written = u64::try_from(group.column(leaf.place).uncompressed_size()).unwrap_or(0);
                let fixed = rows.saturating_mul(leaf.facts.width() as u64);
                bytes = bytes.saturating_add(written.max(fixed));
            }
        }
        bytes
    }

    /// A reader of some rows of the file; this one has read none yet.
    fn part(&self, groups: &[u64], rows: Range<u64>) -> Self {
        let (mut next_group, mut next_row) = (0, 0_u64);
        for group in groups {
            let end = next_row.saturating_add(*group);
            if end > rows.start {
                break;
            }
            (next_group, next_row) = (next_group + 1, end);
        }
        Self {
            file: self.file.clone(),
            levels: self.levels.clone(),
            columns: self.columns.clone(),
            rows,
            next_group,
            next_row,
            reader: None,
            batch_bytes: 0,
        }
    }
}

/// Divides row groups of these lengths into at most `count` ranges of rows of about the same length; there are none if the rows are
/// not worth two. The last one is open: a file that has more rows than it says loses none.
fn ranges(groups: &[u64], count: u64, rows_min: u64) -> Vec<Range<u64>> {
    let all = groups.iter().fold(0_u64, |sum, rows| sum.saturating_add(*rows));
    let count = count.min(all / rows_min);
    if count < 2 {
        return Vec::new();
    }
    let length = all / count;
    let ends: Vec<u64> = groups
        .iter()
        .scan(0_u64, |end, rows| {
            *end = end.saturating_add(*rows);
            Some(*end)
        })
        .collect();
    let (mut ranges, mut start) = (Vec::new(), 0);
    for number in 1..count {
        let end = length * number;
        let nearest = ends.iter().copied().min_by_key(|of_group| of_group.abs_diff(end));
        let end = nearest.filter(|near| near.abs_diff(end) <= length / MOVED_FRACTION).unwrap_or(end);
        ranges.push(start..end);
        start = end;
    }
    ranges.push(start..u64::MAX);
    ranges
}

/// The wanted rows of consecutive row groups, which have the rows `of`; `None`: all.
pub(super) fn selection(wanted: &Range<u64>, of: Range<u64>) -> Option<RowSelection> {
    if wanted.start <= of.start && wanted.end >= of.end {
        return None;
    }
    let start = wanted.start.clamp(of.start, of.end);
    let end = wanted.end.clamp(start, of.end);
    let rows = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let selectors = [RowSelector::skip(rows(start - of.start)), RowSelector::select(rows(end - start))];
    Some(selectors.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_about_equal_and_end_with_row_groups_nearby() {
        let of = |groups: &[u64], count| ranges(groups, count, 65_536);
        assert_eq!(of(&[], 2), []);
        assert_eq!(of(&[131_071], 4), [], "one part is worth it");
        assert_eq!(of(&[1_000_000], 2), [0..500_000, 500_000..u64::MAX]);
        assert_eq!(of(&[150_000], 4), [0..75_000, 75_000..u64::MAX]);
        assert_eq!(of(&[122_880; 10], 2), [0..614_400, 614_400..u64::MAX]);
        assert_eq!(of(&[300_000, 320_000, 310_000], 3), [0..300_000, 300_000..620_000, 620_000..u64::MAX]);
        assert_eq!(of(&[100_000, 0, 900_000], 2), [0..500_000, 500_000..u64::MAX]);
        assert_eq!(of(&[u64::MAX, u64::MAX], 2).len(), 2, "a file may say anything");
    }

    #[test]
    fn row_groups_are_read_whole_if_all_of_their_rows_are_wanted() {
        let selected = |wanted: Range<u64>, of| {
            let selection = selection(&wanted, of)?;
            Some(selection.iter().map(|part| (part.skip, part.row_count)).collect::<Vec<_>>())
        };
        assert_eq!(selected(0..u64::MAX, 0..100), None);
        assert_eq!(selected(100..200, 100..200), None);
        assert_eq!(selected(50..u64::MAX, 0..100), Some(vec![(true, 50), (false, 50)]));
        assert_eq!(selected(0..30, 0..100), Some(vec![(false, 30)]));
        assert_eq!(selected(110..130, 100..200), Some(vec![(true, 10), (false, 20)]));
    }
}
