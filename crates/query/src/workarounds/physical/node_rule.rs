//! Physical rules of ours that change one node of a plan at a time, and their places among DataFusion's.
//!
//! DataFusion's rules are known by their names, so a place beside one that has another name in a later DataFusion would be
//! lost: [`place_of`] panics then, in every test that makes an engine.

use crate::workarounds::physical::only_where::{OnlyWhere, Rule};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A node after a rule has seen it.
pub type Changed = Result<Transformed<Arc<dyn ExecutionPlan>>>;

/// The rule of this name that gives every node of a plan to `change`, each after what is below it.
pub fn node_rule(name: &'static str, change: fn(Arc<dyn ExecutionPlan>) -> Changed) -> Rule {
    Arc::new(NodeRule { name, change })
}

/// The place of DataFusion's rule of this name.
///
/// # Panics
/// There is no such rule.
pub fn place_of(rules: &[Rule], name: &str) -> usize {
    let place = rules.iter().position(|rule| rule.name() == name);
    place.unwrap_or_else(|| panic!("DataFusion has a rule called {name}"))
}

/// The rules, with DataFusion's rule of this name kept to the parts of a plan in which it is right.
///
/// # Panics
/// There is no such rule.
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
