//! The keys of joins have one zero.
//!
//! DataFusion looks keys of joins up by their bits, in the lists that a join makes of its keys to filter its other side: -0.0
//! then does not meet 0.0. [`OneZeroInKeys`] makes one zero of both.
//!
//! Upstream: apache/datafusion#22490, mended in part by apache/datafusion#22835.
//!
//! Delete when filters that joins make of their keys take both zeros for one.

use super::guard::{Rule, node_rule};
use crate::meaning::zeros::{has_one_zero, unify};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;

/// Gives the keys of joins one zero. Comes after the rules that find the keys.
pub fn rule() -> Rule {
    node_rule("one_zero_in_keys", ApplyOrder::BottomUp, with_one_zero)
}

fn with_one_zero(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let mut changed = false;
    for (left, right) in &mut join.on {
        for (key, schema) in [(left, join.left.schema()), (right, join.right.schema())] {
            if !has_one_zero(key) {
                changed |= unify([key], schema.as_ref());
            }
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}
