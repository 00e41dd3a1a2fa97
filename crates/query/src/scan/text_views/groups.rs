//! Groups by texts, and first rows with texts, that are views until few rows are left.
//!
//! Groups are made of views, divided among the threads as views, and become texts in a projection above the last step; the first rows
//! of an order become texts above the sort. That projection hides by which columns the rows are divided, so nothing above may rely
//! on it, and hides no column of the order.

use super::Columns;
use super::scans::with_possible_views;
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{Distribution, ExecutionPlan};
use std::sync::Arc;

/// The most first rows of an order that are views: each may keep a page in memory.
const FIRST_MAX: usize = 1000;

/// The plan with views in its groups and first rows. `is_free`: nothing above relies on how the rows are divided.
pub(super) fn with_views(plan: Arc<dyn ExecutionPlan>, is_free: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let needed = plan.input_distribution_requirements().into_per_child();
    let divides = plan.downcast_ref::<RepartitionExec>().is_some();
    let children = plan.children().into_iter().zip(needed).map(|(child, needed)| {
        let is_free = match needed {
            Distribution::UnspecifiedDistribution => is_free || divides,
            Distribution::SinglePartition => true,
            _ => false,
        };
        with_views(Arc::clone(child), is_free)
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    let plan = replace_children_if_necessary(plan, children)?;
    if !is_free {
        return Ok(plan);
    }
    let changed = if let Some(last) = plan.downcast_ref::<AggregateExec>() {
        last_step(last)?
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        first_rows(&plan, sort)?
    } else {
        None
    };
    match changed {
        Some(changed) => texts_above(changed, &plan.schema()),
        None => Ok(plan),
    }
}

/// A projection that makes texts of a plan's views, as this schema has them. The declared type of a subquery's value is lost below,
/// where the expression was built again, and is put back.
fn texts_above(plan: Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let views = plan.schema();
    let column = |(at, field): (usize, &FieldRef)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let below = views.field(at);
        let expr: Arc<dyn PhysicalExpr> = if below.metadata() != field.metadata() {
            Arc::new(CastExpr::new_with_target_field(column, Arc::clone(field), None))
        } else if below.data_type() != field.data_type() {
            Arc::new(CastExpr::new(column, field.data_type().clone(), None))
        } else {
            column
        };
        ProjectionExpr { expr, alias: field.name().clone() }
    };
    let exprs: Vec<ProjectionExpr> = schema.fields().iter().enumerate().map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(exprs, plan)?))
}

/// The sort with views of texts by which it does not sort; `None` if it stays.
fn first_rows(plan: &Arc<dyn ExecutionPlan>, sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if sort.fetch().is_none_or(|count| count > FIRST_MAX) {
        return Ok(None);
    }
    let mut sorted = Columns::new();
    for by in sort.expr() {
        asked(&by.expr, &mut sorted)?;
    }
    let schema = plan.schema();
    let texts =
        (0..schema.fields().len()).filter(|column| *schema.field(*column).data_type() == DataType::Utf8);
    let texts: Columns = texts.filter(|column| !sorted.contains(column)).collect();
    let Some((input, _)) = with_possible_views(sort.input(), &texts)? else { return Ok(None) };
    replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some)
}

/// The last step of an aggregation over views; `None` if it stays.
fn last_step(last: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !last.group_expr().is_single() || last.group_expr().is_empty() {
        return Ok(None);
    }
    match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => first_step(last),
        AggregateMode::Final | AggregateMode::FinalPartitioned => match between(last.input())? {
            Some((input, schema)) => rebuilt(last, input, &schema).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The nodes between the steps, above a first step with views, and the schema of the first step's input.
fn between(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<(Arc<dyn ExecutionPlan>, SchemaRef)>> {
    if let Some(first) = plan.downcast_ref::<AggregateExec>() {
        if *first.mode() != AggregateMode::Partial || !first.group_expr().is_single() {
            return Ok(None);
        }
        let Some(changed) = first_step(first)? else { return Ok(None) };
        let schema = changed.children()[0].schema();
        return Ok(Some((changed, schema)));
    }
    let passes = plan.downcast_ref::<RepartitionExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some();
    if !passes {
        return Ok(None);
    }
    let Some((input, schema)) = between(plan.children()[0])? else { return Ok(None) };
    Ok(Some((replace_children_if_necessary(Arc::clone(plan), vec![input])?, schema)))
}

/// The first step, over views of the texts that it groups by; `None` if there are none.
fn first_step(first: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let schema = first.input().schema();
    let (mut grouped, mut otherwise) = (Columns::new(), Columns::new());
    for (group, _) in first.group_expr().expr() {
        match group.downcast_ref::<Column>() {
            Some(column) if grouped.insert(column.index()) => {}
            Some(column) => {
                otherwise.insert(column.index());
            }
            None => asked(group, &mut otherwise)?,
        }
    }
    for aggregate in first.aggr_expr() {
        let exprs = aggregate.all_expressions();
        for expr in exprs.args.iter().chain(&exprs.order_by_exprs) {
            asked(expr, &mut otherwise)?;
        }
    }
    for filter in first.filter_expr().iter().flatten() {
        asked(filter, &mut otherwise)?;
    }
    grouped
        .retain(|column| *schema.field(*column).data_type() == DataType::Utf8 && !otherwise.contains(column));
    let Some((input, _)) = with_possible_views(first.input(), &grouped)? else { return Ok(None) };
    let schema = input.schema();
    rebuilt(first, input, &schema).map(Some)
}

fn asked(expr: &Arc<dyn PhysicalExpr>, columns: &mut Columns) -> Result<()> {
    expr.apply(|expr| {
        if let Some(column) = expr.downcast_ref::<Column>() {
            columns.insert(column.index());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The same step over another input; `schema` is that of the first step's input.
fn rebuilt(
    step: &AggregateExec,
    input: Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = AggregateExec::try_new(
        *step.mode(),
        step.group_expr().clone(),
        step.aggr_expr().to_vec(),
        step.filter_expr().to_vec(),
        input,
        Arc::clone(schema),
    )?;
    Ok(Arc::new(changed.with_limit_options(step.limit_options())))
}
