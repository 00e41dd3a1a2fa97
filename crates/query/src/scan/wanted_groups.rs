//! Scans below aggregations leave out rows of groups that a join above does not look for.
//!
//! A join hands the keys of its other side down as a filter, through an aggregation that groups by them, to a scan. The scan compares it
//! with the bounds of parts of files, and asks it about rows only where that lets it decode columns late
//! ([`super::late_columns`]). Otherwise all rows were grouped, and the join dropped nearly all groups. [`wanted_groups`] asks the
//! filter right above the scan: a look-up costs less than joining a row below the aggregation, and finding, adding to and
//! handing on its group.
//!
//! Invariant: all filters stay where they are, so rows may be left out or not.

use crate::scan::home_rule::home_rule;
use crate::scan::sieve::Sieve;
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::Result;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::HashJoinExec;
use std::sync::Arc;

/// The rule that asks filters of joins above the scans below aggregations. Comes after all rules that move filters, and before the ones that
/// look into conditions of filters or change sources of scans.
pub fn wanted_groups() -> Rule {
    home_rule("WantedGroups", |plan| Joins::default().sieved(&plan))
}

/// The joins above a step, by the numbers of the filters that they hand down.
#[derive(Clone, Debug, Default)]
struct Joins {
    /// Without an aggregation between.
    near: Vec<u64>,
    /// With one.
    far: Vec<u64>,
}

impl Joins {
    /// The plan whose scans are asked the filters of far joins.
    fn sieved(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && let Some(sieves) = self.sieves_of(filter.input())?
        {
            let all = split_conjunction(filter.predicate()).into_iter().cloned().chain(sieves);
            return Ok(Arc::new(FilterExecBuilder::from(filter).with_predicate(conjunction(all)).build()?));
        }
        if let Some(sieves) = self.sieves_of(plan)? {
            return Ok(Arc::new(FilterExec::try_new(conjunction(sieves), Arc::clone(plan))?));
        }
        let mut below = self.clone();
        if plan.is::<AggregateExec>() {
            below.far.append(&mut below.near);
        }
        if plan.is::<HashJoinExec>() {
            let handed_down = plan.dynamic_expressions_produced();
            below.near.extend(handed_down.iter().filter_map(|filter| filter.expression_id()));
        }
        let children = plan.children().into_iter().map(|child| below.sieved(child));
        replace_children_if_necessary(Arc::clone(plan), children.collect::<Result<_>>()?)
    }

    /// Sieves over the columns of a scan of files with filters of far joins.
    fn sieves_of(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Vec<Arc<dyn PhysicalExpr>>>> {
        let scan = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        let Some(config) = scan.and_then(|source| source.downcast_ref::<FileScanConfig>()) else {
            return Ok(None);
        };
        let (source, schema) = (config.file_source(), plan.schema());
        // A computed column may have the name of another one that the filter means.
        let is_shown = |column: &Column| match source.projection() {
            Some(shown) => shown.iter().any(|shown| {
                shown.alias == column.name()
                    && shown.expr.downcast_ref::<Column>().is_some_and(|it| it == column)
            }),
            None => schema.column_with_name(column.name()).is_some(),
        };
        let is_far = |filter: &&Arc<dyn PhysicalExpr>| {
            filter.expression_id().is_some_and(|id| self.far.contains(&id))
                && collect_columns(filter).iter().all(is_shown)
        };
        let all = source.filter();
        let sieves = all.iter().flat_map(split_conjunction).filter(is_far).map(
            |filter| -> Result<Arc<dyn PhysicalExpr>> {
                Ok(Arc::new(Sieve::new(reassign_expr_columns(Arc::clone(filter), &schema)?, Arc::default())))
            },
        );
        let sieves = sieves.collect::<Result<Vec<_>>>()?;
        Ok((!sieves.is_empty()).then_some(sieves))
    }
}

#[cfg(test)]
mod tests;
