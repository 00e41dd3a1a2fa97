//! The names of calculated keys of joins.
//!
//! The physical planner adds a column for each computed key, named after the expression. The name omits CASTs, so two keys of a
//! join can have one name, such as `CAST(a AS FLOAT) + 0` and `CAST(a AS DOUBLE) + 0`, or the name of a column below; the planner
//! then refuses the join. [`TellKeysApart`] gives such keys complete names.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when the physical planner tells keys apart that differ in a CAST only.

use super::guard::{Rule, node_rule};
use datafusion::common::{DFSchema, Result, tree_node::Transformed};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;

/// Gives each calculated key of a join a name of its own. Comes after the rules that find and change the keys.
pub fn rule() -> Rule {
    node_rule("tell_keys_apart", ApplyOrder::BottomUp, with_names)
}

fn with_names(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let (mut left, mut right): (Vec<_>, Vec<_>) =
        join.on.iter_mut().map(|(left, right)| (left, right)).unzip();
    let changed = tell_apart(&mut left, join.left.schema()) | tell_apart(&mut right, join.right.schema());
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}

/// Names the keys of one side that share their name with another key or with a column of the side. Says whether there was one.
fn tell_apart(keys: &mut [&mut Expr], columns: &DFSchema) -> bool {
    let names: Vec<String> = keys.iter().map(|key| key.schema_name().to_string()).collect();
    let shared: Vec<bool> = keys
        .iter()
        .zip(&names)
        .map(|(key, name)| {
            let twice = keys.iter().zip(&names).any(|(other, other_name)| other_name == name && other != key);
            is_named_by_planner(key) && (twice || columns.field_names().contains(name))
        })
        .collect();
    for (key, _) in keys.iter_mut().zip(&shared).filter(|(_, shared)| **shared) {
        let name = key.to_string();
        **key = std::mem::take(*key).alias(name);
    }
    shared.contains(&true)
}

/// Whether the planner calls the key's column by the expression's name. A CAST it names itself, so that the CAST is seen.
fn is_named_by_planner(key: &Expr) -> bool {
    !matches!(key, Expr::Column(_) | Expr::Alias(_) | Expr::Cast(_) | Expr::TryCast(_))
}
