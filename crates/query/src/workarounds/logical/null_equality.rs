//! Keeps `<=>` out of the keys of joins.
//!
//! Whether NULL equals NULL is one property of all keys of a DataFusion join. Once `<=>` is a key, an equality that a later rule
//! moves down to that join becomes one too, and then matches NULL with NULL. So `<=>` remains a condition beside the keys.
//!
//! Upstream: no upstream issue found; apache/datafusion#17319 made keys of `<=>`.
//!
//! Delete when each key of a join has its own equality of NULLs.

use crate::workarounds::logical::guard::{Guard, Rule};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::OptimizerConfig;

/// Holds `<=>` back while keys are looked for.
#[derive(Debug)]
pub struct HoldNullSafe;

impl Guard for HoldNullSafe {
    const RULE: &'static str = "extract_equijoin_predicate";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return rule.rewrite(plan, config) };
        // INTERSECT and EXCEPT.
        if join.null_equality == NullEquality::NullEqualsNull {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let conditions = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
        let (held, others): (Vec<_>, Vec<_>) = conditions.into_iter().partition(is_null_safe);
        join.filter = conjunction(others);
        let mut done = rule.rewrite(LogicalPlan::Join(join), config)?;
        if let LogicalPlan::Join(join) = &mut done.data {
            join.filter = conjunction(join.filter.take().into_iter().chain(held));
        }
        Ok(done)
    }
}

fn is_null_safe(condition: &Expr) -> bool {
    matches!(condition, Expr::BinaryExpr(BinaryExpr { op: Operator::IsNotDistinctFrom, .. }))
}
