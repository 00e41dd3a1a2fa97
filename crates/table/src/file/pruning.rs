//! Statistics of many files as Arrow arrays, with one element per file, for a query engine that prunes files by them.
//!
//! An element is NULL if the value is unknown; a reader must then keep the file.

use crate::file::{ColumnStats, LiveFile};
use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use tributary_types::{ColumnDef, ColumnId, DataType};

/// Statistics of the files of a snapshot. Each array is built on first use, and cached.
#[derive(Debug)]
pub struct FileBounds {
    files: Arc<Vec<LiveFile>>,
    /// A column has another type after a change.
    columns: Mutex<Vec<(ColumnId, DataType, Arc<ColumnBounds>)>>,
    rows: OnceLock<ArrayRef>,
}

#[derive(Debug)]
struct ColumnBounds {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: ArrayRef,
}

impl FileBounds {
    pub(crate) fn new(files: &Arc<Vec<LiveFile>>) -> Self {
        Self { files: Arc::clone(files), columns: Mutex::default(), rows: OnceLock::new() }
    }

    /// Whether they belong to these files.
    pub(crate) fn are_of(&self, files: &Arc<Vec<LiveFile>>) -> bool {
        Arc::ptr_eq(&self.files, files)
    }

    /// Lower bounds of `column` in its Arrow type.
    #[must_use]
    pub fn min_values(&self, column: &ColumnDef) -> Option<ArrayRef> {
        self.of_column(column).min.clone()
    }

    /// Upper bounds of `column` in its Arrow type. They may be larger than the largest value.
    #[must_use]
    pub fn max_values(&self, column: &ColumnDef) -> Option<ArrayRef> {
        self.of_column(column).max.clone()
    }

    /// NULLs of `column`. A file that was written before the column was added has only NULLs.
    #[must_use]
    pub fn null_counts(&self, column: &ColumnDef) -> ArrayRef {
        Arc::clone(&self.of_column(column).nulls)
    }

    /// Rows of each file. Like [`FileBounds::null_counts`] it counts deleted ones, too, so that the two can be compared.
    #[must_use]
    pub fn row_counts(&self) -> ArrayRef {
        let counts = || -> ArrayRef {
            Arc::new(self.files.iter().map(|live| Some(live.file.rows)).collect::<UInt64Array>())
        };
        Arc::clone(self.rows.get_or_init(counts))
    }

    fn of_column(&self, column: &ColumnDef) -> Arc<ColumnBounds> {
        let is_its = |(id, data_type, _): &&(ColumnId, DataType, Arc<ColumnBounds>)| {
            (*id, *data_type) == (column.id, column.data_type)
        };
        if let Some((.., known)) = self.columns.lock().iter().find(is_its) {
            return Arc::clone(known);
        }
        let of_column = Arc::new(ColumnBounds {
            min: bounds(&self.files, column, |stats| stats.min.as_deref()),
            max: bounds(&self.files, column, |stats| stats.max.as_deref()),
            nulls: nulls(&self.files, column),
        });
        self.columns.lock().push((column.id, column.data_type, Arc::clone(&of_column)));
        of_column
    }
}

fn nulls(files: &[LiveFile], column: &ColumnDef) -> ArrayRef {
    let count = |live: &LiveFile| match live.file.stats.columns.get(&column.physical_name) {
        Some(stats) => stats.null_count,
        None => (column.id >= live.file.columns_below).then_some(live.file.rows),
    };
    Arc::new(files.iter().map(count).collect::<UInt64Array>())
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
