//! Data files that a filter excludes.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_table::{FileBounds, Snapshot};
use tributary_types::ColumnDef;

/// The positions of the files that may have rows for `predicate`, which is over physical names.
pub(super) fn kept(
    snapshot: &Snapshot,
    bounds: &FileBounds,
    physical: &SchemaRef,
    predicate: Option<&Arc<dyn PhysicalExpr>>,
) -> Result<Vec<usize>> {
    let all = || (0..snapshot.files.len()).collect();
    let Some(predicate) = predicate else { return Ok(all()) };
    let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(physical));
    let Ok(pruning) = builder.try_build(Arc::clone(predicate)) else { return Ok(all()) };
    let keep = pruning.prune(&FileStatistics { snapshot, bounds })?;
    Ok(keep.into_iter().enumerate().filter(|(_, keep)| *keep).map(|(index, _)| index).collect())
}

struct FileStatistics<'a> {
    snapshot: &'a Snapshot,
    bounds: &'a FileBounds,
}

impl FileStatistics<'_> {
    fn column(&self, column: &Column) -> Option<&ColumnDef> {
        self.snapshot.def.schema.columns.iter().find(|def| def.physical_name == column.name)
    }
}

impl PruningStatistics for FileStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds.min_values(self.column(column)?)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds.max_values(self.column(column)?)
    }

    fn num_containers(&self) -> usize {
        self.snapshot.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.bounds.null_counts(self.column(column)?))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(self.bounds.row_counts())
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
