//! Filters of a physical plan show all columns before projections move.
//!
//! DataFusion embeds a projection in the filter below it. When the rule that moves projections runs again and finds another one
//! above such a filter, it confuses the indexes of the columns that the filter shows with those of the columns that it reads, and
//! the columns of a join's first table were shown in place of the second's of the same name. [`Shown`] gives the embedded
//! projection a node of its own first; the rule merges both and embeds them again.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when the rule that moves projections counts through a projection that is embedded in a filter.

use crate::workarounds::physical::node_rule::Changed;
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use std::sync::Arc;

/// The name of the rule that moves projections.
const RULE: &str = "ProjectionPushdown";

/// A rule that moves projections, over filters that show all columns.
#[derive(Debug)]
struct Shown(Rule);

/// The rules, with the ones that move projections confined to filters that show all columns.
pub fn shown(rules: Vec<Rule>) -> Vec<Rule> {
    assert!(rules.iter().any(|rule| rule.name() == RULE), "DataFusion has a rule called {RULE}");
    let show = |rule: Rule| if rule.name() == RULE { Arc::new(Shown(rule)) as _ } else { rule };
    rules.into_iter().map(show).collect()
}

impl PhysicalOptimizerRule for Shown {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.optimize(plan.transform_up(apart).data()?, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// A filter and the projection that was embedded in it.
fn apart(plan: Arc<dyn ExecutionPlan>) -> Changed {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(plan)) };
    let Some(places) = filter.projection() else { return Ok(Transformed::no(plan)) };
    let schema = filter.input().schema();
    let columns = places.iter().map(|&place| {
        let name = schema.field(place).name();
        ProjectionExpr { expr: Arc::new(Column::new(name, place)), alias: name.clone() }
    });
    let all = FilterExecBuilder::from(filter).apply_projection(None)?.build()?;
    let shown = ProjectionExec::try_new(columns.collect::<Vec<_>>(), Arc::new(all))?;
    Ok(Transformed::yes(Arc::new(shown) as _))
}
