//! Stops the planner from confusing columns of grouping sets with the columns below.
//!
//! A column that is constant, sorted or filtered below `GROUP BY ROLLUP (a)` is NULL in the rows of other sets above
//! it. DataFusion knows that of neither, and leaves out an ORDER BY of `1 AS a`. So the columns above are
//! calls that it cannot look through, of the column and the set's number.
//!
//! Upstream: no upstream issue found for the order; apache/datafusion#24038 is the same of statistics.
//!
//! Delete when DataFusion keeps no order and no constant of a key through grouping sets.

use crate::functions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Comes after all other rules of the analyzer, which look for a set's number right above its aggregate.
#[derive(Debug)]
pub struct GroupingSetsRule;

impl AnalyzerRule for GroupingSetsRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(aggregate)
                if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) =>
            {
                shown(aggregate).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        })
        .map(|done| done.data)
    }

    fn name(&self) -> &str {
        "grouping_sets"
    }
}

fn shown(aggregate: Aggregate) -> Result<LogicalPlan> {
    let set = Expr::Column(Column::new_unqualified(Aggregate::INTERNAL_GROUPING_ID));
    let results = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let columns = aggregate.schema.iter().enumerate().map(|(at, (relation, field))| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        if at >= results || column == set {
            return column;
        }
        let call = functions::named("__in_set").call(vec![column, set.clone()]);
        call.alias_qualified(relation.cloned(), field.name())
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(aggregate)))?))
}
