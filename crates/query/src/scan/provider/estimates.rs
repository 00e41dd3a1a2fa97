//! Estimates of the columns of a scan, by which the planner chooses the sides of joins: bounds and NULLs of the data files that it reads.
//!
//! Nothing is answered from them: bounds may be wide, and counts include deleted rows. Rows in memory have none, so a table with
//! such rows is joined by the number of its rows alone.

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::compute::{sum, take};
use arrow::datatypes::{DataType, SchemaRef, UInt64Type};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue};
use datafusion_functions_aggregate_common::min_max::{max_batch, min_batch};
use tributary_table::{FileBounds, Snapshot};

/// Above this number of files bounds are not looked up: planning would take longer than it gains.
pub(super) const FILES_MAX: usize = 1024;

/// Fills in the estimates of `columns` of the data files, which are `files`; the others stay unknown.
pub(super) fn fill(
    known: &mut [ColumnStatistics],
    snapshot: &Snapshot,
    bounds: &FileBounds,
    physical: &SchemaRef,
    files: &[usize],
    columns: &[usize],
) {
    if files.len() > FILES_MAX {
        return;
    }
    let read = (files.len() < snapshot.files.len())
        .then(|| files.iter().map(|file| *file as u64).collect::<UInt64Array>());
    for &column in columns.iter().filter(|column| **column < physical.fields().len()) {
        known[column] = of_column(snapshot, bounds, physical.field(column).name(), read.as_ref());
    }
}

/// The estimates of the column with this name in data files: of all of them, or only of the `read` ones.
pub(super) fn of_column(
    snapshot: &Snapshot,
    bounds: &FileBounds,
    name: &str,
    read: Option<&UInt64Array>,
) -> ColumnStatistics {
    let unknown = ColumnStatistics::new_unknown();
    let def = snapshot.def.schema.columns.iter().find(|def| def.physical_name == name);
    // NaN is in no bounds, and the planner concludes from bounds and a filter that a column is constant.
    let has_bounds = |arrow: DataType| arrow.is_primitive() && !arrow.is_floating();
    let Some(def) = def.filter(|def| has_bounds(def.data_type.to_arrow())) else { return unknown };
    let of_read = |values: ArrayRef| match read {
        Some(read) => take(&values, read, None).ok(),
        None => Some(values),
    };
    let extreme = |values: Option<ArrayRef>, which: fn(&ArrayRef) -> Result<ScalarValue>| {
        // Without a bound of one file there is none of all.
        let values = values.and_then(of_read).filter(|values| values.null_count() == 0 && !values.is_empty());
        values.and_then(|values| which(&values).ok()).map_or(Precision::Absent, Precision::Inexact)
    };
    let nulls = of_read(bounds.null_counts(def)).filter(|nulls| nulls.null_count() == 0);
    let nulls = nulls.and_then(|nulls| sum(nulls.as_primitive::<UInt64Type>()));
    ColumnStatistics {
        min_value: extreme(bounds.min_values(def), min_batch),
        max_value: extreme(bounds.max_values(def), max_batch),
        null_count: nulls
            .and_then(|nulls| usize::try_from(nulls).ok())
            .map_or(Precision::Absent, Precision::Inexact),
        ..unknown
    }
}
