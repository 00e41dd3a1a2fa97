//! COUNT(DISTINCT …) is counted, never taken from what is known of a table beforehand.
//!
//! DataFusion answers aggregates from exact statistics where it can, and says of a constant that it has one distinct value,
//! also over no rows: `SELECT COUNT(DISTINCT c), COUNT(*) FROM (SELECT DATE '2000-06-15' AS c FROM nothing) v` was 1, 0.
//! [`WithoutDistinct`] keeps the rule from such aggregates. Data files have no counts of distinct values, so nothing is lost.

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use std::sync::Arc;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rule that answers from statistics.
const RULE: &str = "aggregate_statistics";

/// [`RULE`], kept to where it is right.
#[derive(Debug)]
struct WithoutDistinct(Rule);

/// The rules, the one that answers from statistics kept to where it is right.
pub fn counted(mut rules: Vec<Rule>) -> Vec<Rule> {
    let rule = rules.iter_mut().find(|rule| rule.name() == RULE);
    let rule = rule.unwrap_or_else(|| panic!("DataFusion has a rule called {RULE}"));
    *rule = Arc::new(WithoutDistinct(Arc::clone(rule)));
    rules
}

impl PhysicalOptimizerRule for WithoutDistinct {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !counts_distinct(&plan) {
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

/// Whether an aggregate somewhere in the plan is over distinct values.
fn counts_distinct(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    let is_distinct = aggregate.is_some_and(|node| node.aggr_expr().iter().any(|expr| expr.is_distinct()));
    is_distinct || plan.children().into_iter().any(counts_distinct)
}
