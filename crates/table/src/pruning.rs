//! Statistics of many files as Arrow arrays, one element for each file, for a query engine that
//! prunes files by them.
//!
//! An element is NULL where nothing is known; a reader must then keep the file.

use crate::file::{ColumnStats, LiveFile};
use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options};
use std::sync::Arc;
use tributary_types::ColumnDef;

/// Lower bounds of `column` in its Arrow type.
#[must_use]
pub fn min_values(files: &[LiveFile], column: &ColumnDef) -> Option<ArrayRef> {
    bounds(files, column, |stats| stats.min.as_deref())
}

/// Upper bounds of `column` in its Arrow type. They may be larger than the largest value.
#[must_use]
pub fn max_values(files: &[LiveFile], column: &ColumnDef) -> Option<ArrayRef> {
    bounds(files, column, |stats| stats.max.as_deref())
}

/// NULLs of `column`. A file that was written before the column was added has only NULLs.
#[must_use]
pub fn null_counts(files: &[LiveFile], column: &ColumnDef) -> ArrayRef {
    let count = |live: &LiveFile| match live.file.stats.columns.get(&column.physical_name) {
        Some(stats) => stats.null_count,
        None => (column.id >= live.file.columns_below).then_some(live.file.rows),
    };
    Arc::new(files.iter().map(count).collect::<UInt64Array>())
}

/// Rows of each file. Like [`null_counts`] it counts deleted ones, too, so that the two can be compared.
#[must_use]
pub fn row_counts(files: &[LiveFile]) -> ArrayRef {
    Arc::new(files.iter().map(|live| Some(live.file.rows)).collect::<UInt64Array>())
}

fn bounds(
    files: &[LiveFile],
    column: &ColumnDef,
    pick: impl Fn(&ColumnStats) -> Option<&str>,
) -> Option<ArrayRef> {
    // A text, and no text too, would become an array of one element.
    if column.data_type.is_nested() {
        return None;
    }
    let texts: StringArray =
        files.iter().map(|live| live.file.stats.columns.get(&column.physical_name).and_then(&pick)).collect();
    let options = CastOptions { safe: true, ..CastOptions::default() };
    cast_with_options(&texts, &column.data_type.to_arrow(), &options).ok()
}
