//! Physical rules of ours that change one node of a plan at a time, and their places among DataFusion's.
//!
//! DataFusion's rules are identified by their names, so a position beside a rule that is renamed in a later DataFusion would be
//! lost: [`place_of`] panics then, in every test that creates an engine.

use crate::workarounds::physical::only_where::{OnlyWhere, Rule};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A node after a rule has seen it.
pub type Changed = Result<Transformed<Arc<dyn ExecutionPlan>>>;

/// The rule of this name that applies `change` to every node of a plan, bottom-up.
pub fn node_rule(name: &'static str, change: fn(Arc<dyn ExecutionPlan>) -> Changed) -> Rule {
    Arc::new(NodeRule { name, change })
}

/// The place of DataFusion's rule of this name.
///
/// # Panics
/// If the rule does not exist.
pub fn place_of(rules: &[Rule], name: &str) -> usize {
    let place = rules.iter().position(|rule| rule.name() == name);
    place.unwrap_or_else(|| panic!("DataFusion has a rule called {name}"))
}

/// The rules, with DataFusion's rule of this name confined to the parts of a plan where it is correct.
///
/// # Panics
/// If the rule does not exist.
pub fn kept_to(mut rules: Vec<Rule>, name: &str, is_right: fn(&Arc<dyn ExecutionPlan>) -> bool) -> Vec<Rule> {
    let place = place_of(&rules, name);
    let rule = Arc::clone(&rules[place]);
    rules[place] = Arc::new(OnlyWhere { rule, is_right });
    rules
}

#[derive(Debug)]
struct NodeRule {
    name: &'static str,
    change: fn(Arc<dyn ExecutionPlan>) -> Changed,
}

impl PhysicalOptimizerRule for NodeRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(self.change).data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
