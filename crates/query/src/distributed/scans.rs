//! Scans divided among the tasks of a stage: each piece of a data file is read by one task, and tasks have even numbers of bytes.

use crate::scan::provider::pieces::divided;
use datafusion::common::Result;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{DistributedLeafExec, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse};
use std::sync::Arc;

/// Divides a scan of data files among the tasks of its stage. `None`: it is another leaf.
#[must_use]
pub fn divide(leaf: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let source = leaf.plan.downcast_ref::<DataSourceExec>()?;
    let scan = source.data_source().downcast_ref::<FileScanConfig>()?;
    let pieces = scan.file_groups.iter().flat_map(FileGroup::iter).cloned().collect();
    let parts = leaf.plan.output_partitioning().partition_count();
    let tasks = divided(pieces, leaf.task_count, parts).into_iter().map(|groups| {
        let scan = FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups).build();
        DataSourceExec::from_data_source(scan) as Arc<dyn ExecutionPlan>
    });
    let divided = DistributedLeafExec::try_new(Arc::clone(leaf.plan), tasks);
    Some(divided.map(|divided| ScaleUpLeafNodeEventResponse::new(Arc::new(divided))))
}
