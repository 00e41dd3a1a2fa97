//! Columns of data files are decoded late where a filter leaves few rows: first those of the filter, then the others of these rows.
//!
//! The Parquet reader can ask filters before it decodes the other columns. It decodes the filters' columns twice then, and rows that are left
//! one by one, so it costs more than it gains unless nearly all rows are left out. Whether they are is known best right before a file is
//! opened: by then, a join knows which keys its other side has. So a scan has a [`source::LateSource`], which asks each filter about
//! samples of its columns' values ([`share`]) and opens each file in one way or the other.
//!
//! | file | its part |
//! | --- | --- |
//! | `source` | the scan that decides for each file |
//! | `share` | how many rows pass a filter, by samples |
//!
//! Invariant: all filters stay where they are above the scan, so the reader may let any row through.
//!
//! Not here: parts of files that are skipped by bounds, which the reader does with the same filters in both ways.

mod share;
mod source;

use crate::scan::home_rule::home_rule;
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use source::LateSource;
use std::sync::Arc;

/// The rule that lets scans decode columns late. Comes after all rules that move filters or change scans.
pub fn late_columns() -> Rule {
    home_rule("LateColumns", all_late)
}

fn all_late(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let late = |plan| Ok(late(&plan).map_or_else(|| Transformed::no(plan), Transformed::yes));
    plan.transform_up(late).data()
}

/// The scan that decides how it reads each file. `None`: it has no filter, or ends after a number of rows.
fn late(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let source = config.file_source().downcast_ref::<ParquetSource>()?;
    if source.filter().is_none() || config.limit.is_some() {
        return None;
    }
    let source = LateSource::new(Arc::new(source.clone()));
    let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
    Some(DataSourceExec::from_data_source(config))
}

#[cfg(test)]
mod tests;
