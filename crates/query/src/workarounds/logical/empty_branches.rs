//! Unions of which only one branch has rows.
//!
//! DataFusion replaces the union by the branch, below the union's columns under their bare names. Where the branch calls them
//! `left.a`, as EXCEPT does, a condition on them was moved down past the node that computes `left.a`, unchanged, and applied to
//! the column below that has this name, too. [`NameColumns`] assigns a column of the branch to each of the union's.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when `propagate_empty_relation` keeps the qualifiers of the union.

use crate::workarounds::logical::guard::{Guard, Rule};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::OptimizerConfig;
use std::sync::Arc;

/// Gives the only branch with rows the names of the union.
#[derive(Debug)]
pub struct NameColumns;

impl Guard for NameColumns {
    const RULE: &'static str = "propagate_empty_relation";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Union(union) = &plan else { return rule.rewrite(plan, config) };
        let mut branches = union.inputs.iter().filter(|branch| !is_empty(branch));
        let (Some(branch), None) = (branches.next(), branches.next()) else {
            return rule.rewrite(plan, config);
        };
        let columns = branch.schema().columns().into_iter().zip(union.schema.iter());
        let named = columns.map(|(column, (relation, field))| {
            let is_same = column.relation.as_ref() == relation && column.name == *field.name();
            let column = Expr::Column(column);
            if is_same { column } else { column.alias_qualified(relation.cloned(), field.name()) }
        });
        let named = named.collect();
        let named = Projection::try_new_with_schema(named, Arc::clone(branch), Arc::clone(&union.schema))?;
        Ok(Transformed::yes(LogicalPlan::Projection(named)))
    }
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row)
}
