//! Filters of a physical plan move down only where a column's name says which one it is.
//!
//! DataFusion's rule looks up the columns of a filter by name in the schema below and takes the first match. In a join of two
//! tables with a column of the same name, a filter on the second table's column was applied to the first's, and rows were lost or
//! wrongly shown. [`kept`] confines the rule to the parts of a plan with unique names.
//!
//! Upstream: apache/datafusion#25296 and apache/datafusion#25244, fixed by apache/datafusion#25259.
//!
//! Delete when DataFusion has that change.

use crate::workarounds::physical::only_where::{OnlyWhere, Rule};
use arrow::datatypes::Schema;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::HashSet;
use std::sync::Arc;

/// The common prefix of the rules that move filters.
const RULES: &str = "FilterPushdown";

/// The rules, with the ones that move filters confined to correct cases.
pub fn kept(rules: Vec<Rule>) -> Vec<Rule> {
    assert!(rules.iter().any(|rule| rule.name().starts_with(RULES)), "DataFusion has rules called {RULES}");
    let keep = |rule: Rule| match rule.name().starts_with(RULES) {
        true => Arc::new(OnlyWhere { rule, is_right: names_are_unique }) as Rule,
        false => rule,
    };
    rules.into_iter().map(keep).collect()
}

/// Whether no node of the plan has two columns of one name.
fn names_are_unique(plan: &Arc<dyn ExecutionPlan>) -> bool {
    has_unique_names(&plan.schema()) && plan.children().into_iter().all(names_are_unique)
}

fn has_unique_names(schema: &Schema) -> bool {
    let mut names = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().all(|field| names.insert(field.name()))
}
