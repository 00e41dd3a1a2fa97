//! Keeps the keys of inner joins that ask several tables.
//!
//! DataFusion takes inner joins apart and reassembles them, each with the keys that have one side in the tables joined so far and
//! the other one in the next table. A key such as `(a.k > b.k) = c.x` of `(a JOIN b) JOIN c` has none if `c` is joined before
//! `b`, and is lost. So such keys become conditions beside the keys before joins are taken apart.
//!
//! Upstream: apache/datafusion#4844 is the same of filters.
//!
//! Delete when `eliminate_cross_join` keeps keys whose sides ask several tables.

use crate::workarounds::logical::guard::{Guard, Rule};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::OptimizerConfig;
use std::mem::take;

/// Makes conditions of keys that ask several tables.
#[derive(Debug)]
pub struct HoldSpanningKeys;

impl Guard for HoldSpanningKeys {
    const RULE: &'static str = "eliminate_cross_join";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let held = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => Ok(hold(join)),
            other => Ok(Transformed::no(other)),
        })?;
        let changed = held.transformed;
        let done = rule.rewrite(held.data, config)?;
        Ok(Transformed::new_transformed(done.data, changed || done.transformed))
    }
}

fn hold(mut join: Join) -> Transformed<LogicalPlan> {
    let sides = [tables(&join.left), tables(&join.right)];
    let is_of_one = |expr: &Expr, tables: &[&DFSchema]| {
        let columns = expr.column_refs();
        tables.iter().any(|table| columns.iter().all(|column| table.has_column(column)))
    };
    let is_kept = |(left, right): &(Expr, Expr)| is_of_one(left, &sides[0]) && is_of_one(right, &sides[1]);
    if join.on.iter().all(is_kept) {
        return Transformed::no(LogicalPlan::Join(join));
    }
    let (kept, held): (Vec<_>, Vec<_>) = take(&mut join.on).into_iter().partition(is_kept);
    let op = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let held = held.into_iter().map(|(left, right)| binary_expr(left, op, right));
    join.filter = conjunction(take(&mut join.filter).into_iter().chain(held));
    join.on = kept;
    Transformed::yes(LogicalPlan::Join(join))
}

/// The tables that the inner joins of a plan combine.
fn tables(plan: &LogicalPlan) -> Vec<&DFSchema> {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            let mut all = tables(&join.left);
            all.extend(tables(&join.right));
            all
        }
        other => vec![other.schema()],
    }
}
