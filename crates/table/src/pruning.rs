//! Statistics of many files as Arrow arrays, one element for each file, for a query engine that
//! prunes files by them.
//!
//! An element is NULL where nothing is known; a reader must then keep the file.

use crate::file::{ColumnStats, DataFile};
use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options};
use std::sync::Arc;
use tributary_types::ColumnDef;

/// Lower bounds of `column` in its Arrow type.
#[must_use]
pub fn min_values(files: &[Arc<DataFile>], column: &ColumnDef) -> Option<ArrayRef> {
    bounds(files, column, |stats| stats.min.as_deref())
}

/// Upper bounds of `column` in its Arrow type. They may be larger than the largest value.
#[must_use]
pub fn max_values(files: &[Arc<DataFile>], column: &ColumnDef) -> Option<ArrayRef> {
    bounds(files, column, |stats| stats.max.as_deref())
}

/// NULLs of `column`. A file that was written before the column was added has only NULLs.
#[must_use]
pub fn null_counts(files: &[Arc<DataFile>], column: &ColumnDef) -> ArrayRef {
    let count = |file: &Arc<DataFile>| match file.stats.columns.get(&column.physical_name) {
        Some(stats) => stats.null_count,
        None => (column.id >= file.columns_below).then_some(file.rows),
    };
    Arc::new(files.iter().map(count).collect::<UInt64Array>())
}

/// Rows of each file.
#[must_use]
pub fn row_counts(files: &[Arc<DataFile>]) -> ArrayRef {
    Arc::new(files.iter().map(|file| Some(file.rows)).collect::<UInt64Array>())
}

fn bounds(
    files: &[Arc<DataFile>],
    column: &ColumnDef,
    pick: impl Fn(&ColumnStats) -> Option<&str>,
) -> Option<ArrayRef> {
    let texts: StringArray =
        files.iter().map(|file| file.stats.columns.get(&column.physical_name).and_then(&pick)).collect();
    let options = CastOptions { safe: true, ..CastOptions::default() };
    cast_with_options(&texts, &column.data_type.to_arrow(), &options).ok()
}
