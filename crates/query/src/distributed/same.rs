//! Whether a plan arrives as it was sent.
//!
//! It is written and read once here before it leaves, and compared step by step: names, schemas with all that fields say of
//! themselves, expressions with their functions. What differs in anything is not sent. Steps must also be of those for which it is
//! known that they may run in parts.

use super::stays::Stays;
use super::windows::{is_same_step, windowed};
use crate::scan::provider::VersionFiles;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion_distributed::DistributedCodec;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::DeduplicatingProtoConverter;
use std::sync::Arc;

/// The largest plan that is sent, with deleted rows and rows that are in no file.
const BYTES_MAX: usize = 64 << 20;

/// Bytes of the data files that a plan reads.
#[must_use]
pub fn bytes_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let scan = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(|source| source.data_source().downcast_ref::<FileScanConfig>());
    let own: u64 = scan.map_or(0, |scan| {
        scan.file_groups.iter().flat_map(FileGroup::iter).map(PartitionedFile::effective_size).sum()
    });
    own + plan.children().into_iter().map(bytes_read).sum::<u64>()
}

/// Whether a plan may have scalar subqueries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// Their values will be in their places.
    AreKnownLater,
    Hinder,
}

/// Checks that each step of the plan may run in parts on other nodes.
///
/// # Errors
/// The first that may not.
pub fn check_steps(plan: &Arc<dyn ExecutionPlan>, scalars: Scalars) -> Result<(), Stays> {
    if plan.is::<VersionFiles>() {
        return Ok(());
    }
    let source = plan.downcast_ref::<DataSourceExec>();
    if source.is_some_and(|source| source.data_source().downcast_ref::<MemorySourceConfig>().is_some()) {
        return Err(Stays::Memory);
    }
    let aggregate = plan.downcast_ref::<AggregateExec>();
    // Groups that are made at once need all rows in one place.
    let is_whole = aggregate.is_some_and(|aggregate| *aggregate.mode() == AggregateMode::Single);
    // A union that takes parts with the same keys together, `InterleaveExec`, is not one of them.
    let is_known = plan.is::<AggregateExec>()
        || plan.is::<BoundedWindowAggExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<UnionExec>()
        || plan.is::<WindowAggExec>()
        || plan.is::<ScalarSubqueryExec>() && scalars == Scalars::AreKnownLater;
    if is_whole || !is_known {
        return Err(Stays::Step(plan.name().to_owned()));
    }
    plan.children().into_iter().try_for_each(|child| check_steps(child, scalars))
}

/// Checks that a plan arrives as it is at a node with this context.
///
/// # Errors
/// It does not, or is too long.
pub fn check(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<(), Stays> {
    let failed = |error: DataFusionError| Stays::Differs(error.strip_backtrace());
    let codec = DistributedCodec::new_combined_with_user(context.session_config());
    let converter = DeduplicatingProtoConverter::default();
    let bytes = physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &codec, &converter);
    let bytes = bytes.map_err(failed)?;
    if bytes.len() > BYTES_MAX {
        return Err(Stays::Long(bytes.len()));
    }
    let converter = DeduplicatingProtoConverter::default();
    let read = physical_plan_from_bytes_with_proto_converter(&bytes, context, &codec, &converter);
    match difference(plan, &read.map_err(failed)?).map_err(failed)? {
        None => Ok(()),
        Some(what) => Err(Stays::Differs(what)),
    }
}

/// The first difference between two plans.
fn difference(sent: &Arc<dyn ExecutionPlan>, read: &Arc<dyn ExecutionPlan>) -> Result<Option<String>> {
    let name = sent.name();
    let line = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).one_line().to_string();
    let (one, other) = (line(sent), line(read));
    if name != read.name() || one != other && windowed(sent).is_empty() {
        return Ok(Some(format!("{} became {}", one.trim(), other.trim())));
    }
    if sent.schema() != read.schema() {
        return Ok(Some(format!("the columns of {name}")));
    }
    if sent.output_partitioning().to_string() != read.output_partitioning().to_string() {
        return Ok(Some(format!("the parts of {name}")));
    }
    let (one, other) = (expressions(sent)?, expressions(read)?);
    if one.len() != other.len() {
        return Ok(Some(format!("the expressions of {name}")));
    }
    if let Some((one, _)) = one.iter().zip(&other).find(|(one, other)| one != other) {
        return Ok(Some(format!("{one} in {name}")));
    }
    if !has_same_details(sent, read) {
        return Ok(Some(format!("the details of {name}")));
    }
    let (one, other) = (sent.children(), read.children());
    if one.len() != other.len() {
        return Ok(Some(format!("the inputs of {name}")));
    }
    for (one, other) in one.into_iter().zip(other) {
        if let Some(what) = difference(one, other)? {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

fn expressions(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let mut found = Vec::new();
    // The first rows of a sort make a filter while they run, which nobody else has: such filters are not handed down.
    let is_sort = plan.is::<SortExec>();
    plan.apply_expressions(&mut |expr| {
        if !is_sort || expr.downcast_ref::<DynamicFilterPhysicalExpr>().is_none() {
            found.push(Arc::clone(expr));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether two calls of aggregates are the same in everything.
pub(super) fn is_same_aggregate(one: &AggregateFunctionExpr, other: &AggregateFunctionExpr) -> bool {
    one == other
        && one.is_distinct() == other.is_distinct()
        && one.ignore_nulls() == other.ignore_nulls()
        && one.is_reversed() == other.is_reversed()
        && one.order_bys() == other.order_bys()
}

/// Whether two steps of one kind agree in what is no expression.
fn has_same_details(sent: &Arc<dyn ExecutionPlan>, read: &Arc<dyn ExecutionPlan>) -> bool {
    if let (Some(one), Some(other)) =
        (sent.downcast_ref::<VersionFiles>(), read.downcast_ref::<VersionFiles>())
    {
        return one.version() == other.version();
    }
    if let (Some(one), Some(other)) =
        (sent.downcast_ref::<AggregateExec>(), read.downcast_ref::<AggregateExec>())
    {
        let values = || one.aggr_expr().iter().zip(other.aggr_expr());
        return one.aggr_expr().len() == other.aggr_expr().len()
            && one.mode() == other.mode()
            && values().all(|(one, other)| is_same_aggregate(one, other));
    }
    if !windowed(sent).is_empty() {
        return is_same_step(sent, read);
    }
    if let (Some(one), Some(other)) =
        (sent.downcast_ref::<HashJoinExec>(), read.downcast_ref::<HashJoinExec>())
    {
        return one.join_type() == other.join_type()
            && one.partition_mode() == other.partition_mode()
            && one.null_equality() == other.null_equality()
            && one.null_aware == other.null_aware
            && one.projection == other.projection
            && one.on() == other.on();
    }
    true
}
