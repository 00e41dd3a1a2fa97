//! Physical rules for plans that stay on their node.

use crate::scan::provider::travels;
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A change of a plan as a whole.
type Change = fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>;

/// The rule of this name that applies `change` to a plan that stays on its node. One that travels stays as it is: other nodes do not know
/// steps and expressions of ours.
pub fn home_rule(name: &'static str, change: Change) -> Rule {
    Arc::new(HomeRule { name, change })
}

#[derive(Debug)]
struct HomeRule {
    name: &'static str,
    change: Change,
}

impl PhysicalOptimizerRule for HomeRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match travels(options) {
            true => Ok(plan),
            false => (self.change)(plan),
        }
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
