//! A physical rule of DataFusion's that is right in some parts of a plan only.

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use std::sync::Arc;

/// A rule of the physical optimizer.
pub type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rule, applied to the largest parts of a plan in which it is right.
#[derive(Debug)]
pub struct OnlyWhere {
    pub rule: Rule,
    /// Whether the rule is right in a part of a plan, which is everything below its first node.
    pub is_right: fn(&Arc<dyn ExecutionPlan>) -> bool,
}

impl PhysicalOptimizerRule for OnlyWhere {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if (self.is_right)(&plan) {
            return self.rule.optimize(plan, config);
        }
        let children = plan.children().into_iter().map(|child| self.optimize(Arc::clone(child), config));
        let children = children.collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(plan, children)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}
