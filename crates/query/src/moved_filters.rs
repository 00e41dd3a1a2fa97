//! Filters of a physical plan move down only where a column's name says which one it is.
//!
//! DataFusion's rule looks for the columns of a filter by their names in the schema below and takes the first. In a join of
//! two tables that have a column of the same name, a filter on the second table's came down on the first's, and rows
//! were lost or shown that should not be. [`ByUniqueNames`] applies the rule to the parts of a plan where names are unique.

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use std::collections::HashSet;
use std::sync::Arc;

/// What a rule that moves filters is called begins so.
const RULES: &str = "FilterPushdown";

/// A rule that moves filters, kept to where it is right.
#[derive(Debug)]
struct ByUniqueNames(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

/// The rules, those that move filters kept to where they are right.
pub fn kept(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    assert!(rules.iter().any(|rule| rule.name().starts_with(RULES)), "DataFusion has rules called {RULES}");
    let keep = |rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| match rule.name().starts_with(RULES) {
        true => Arc::new(ByUniqueNames(rule)) as _,
        false => rule,
    };
    rules.into_iter().map(keep).collect()
}

impl PhysicalOptimizerRule for ByUniqueNames {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if names_are_unique(&plan) {
            return self.0.optimize(plan, config);
        }
        let children = plan.children().into_iter().map(|child| self.optimize(Arc::clone(child), config));
        let children = children.collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(plan, children)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether no node of the plan has two columns of one name.
fn names_are_unique(plan: &Arc<dyn ExecutionPlan>) -> bool {
    has_unique_names(&plan.schema()) && plan.children().into_iter().all(names_are_unique)
}

fn has_unique_names(schema: &Schema) -> bool {
    let mut names = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().all(|field| names.insert(field.name()))
}
