//! The order of joins, by what it costs.
//!
//! DataFusion runs inner joins in the order in which they are written and only swaps the sides of each. [`rule`] takes neighbouring
//! inner joins apart into relations and conditions, estimates the rows of each combination, and puts the relations together in the
//! cheapest order. Outer joins, joins without keys, joins where NULL equals NULL, aggregates and derived tables are relations: nothing
//! moves across them. A semi-join above such joins moves down to the relation that it asks, if that has fewer rows than all of them
//! together.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `graph` | neighbouring joins as relations, classes of equal keys and other conditions, and back |
//! | `search` | rows and costs of combinations; the cheapest order |
//! | `estimates` | rows of a plan, and different values of an expression, from what tables know of themselves |
//! | `shares` | the share of rows that conditions leave |
//!
//! Not here: which side of a join is put into the hash table, which is decided when the physical plan is made.

mod estimates;
mod graph;
mod search;
mod shares;
#[cfg(test)]
mod tests;

use datafusion::common::config::{ConfigExtension, ConfigOptions};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result, extensions_options};
use datafusion::logical_expr::{Join, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use graph::Region;
use std::sync::Arc;

/// The rule of DataFusion behind which this one comes: then conditions are where their columns are.
const BEHIND: &str = "push_down_filter";
/// A new order is taken if it costs at most this share of the old one, beside reading the relations: estimates are not better than
/// that.
const GAIN: f64 = 0.8;

extensions_options! {
    /// Whether joins run in the order in which they are written, as an option of DataFusion.
    pub(crate) struct AsWritten {
        /// They do.
        pub is_on: bool, default = false
    }
}

impl ConfigExtension for AsWritten {
    const PREFIX: &'static str = "tributary_joins_as_written";
}

fn is_off(options: &ConfigOptions) -> bool {
    options.extensions.get::<AsWritten>().is_some_and(|it| it.is_on)
}

/// A rule of the optimizer.
type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules with the one that orders joins.
///
/// # Panics
/// DataFusion's rule before it does not exist.
pub(crate) fn with_join_order(mut rules: Vec<Rule>) -> Vec<Rule> {
    let place = rules.iter().position(|rule| rule.name() == BEHIND);
    let place = place.unwrap_or_else(|| panic!("the optimizer has a rule called {BEHIND}"));
    rules.insert(place + 1, Arc::new(JoinOrder));
    rules
}

/// Orders joins. `disable_join_reorder` turns it off.
#[derive(Debug)]
struct JoinOrder;

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        "join_order"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        if is_off(&config.options()) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        match join.join_type {
            JoinType::Inner => reordered(join),
            JoinType::LeftSemi | JoinType::LeftAnti => moved_down(join),
            _ => Ok(Transformed::no(LogicalPlan::Join(join))),
        }
    }
}

/// The joins in the cheapest order.
fn reordered(join: Join) -> Result<Transformed<LogicalPlan>> {
    let plan = LogicalPlan::Join(join);
    let Some(region) = Region::of(&plan) else { return Ok(Transformed::no(plan)) };
    let Some(order) = search::cheaper(&region, GAIN) else { return Ok(Transformed::no(plan)) };
    region.plan(&order, plan.schema()).map(Transformed::yes)
}

/// A semi-join or anti-join below the inner joins that are its left side, if that costs less.
fn moved_down(join: Join) -> Result<Transformed<LogicalPlan>> {
    let place = graph::place_below(&join);
    let is_less = |below: &LogicalPlan| {
        let (below, above) = (estimates::rows(below), estimates::rows(&join.left));
        below.zip(above).is_some_and(|(below, above)| below < above)
    };
    if !place.is_some_and(is_less) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    match graph::put_below(join)? {
        LogicalPlan::Join(inner) if inner.join_type == JoinType::Inner => {
            Ok(Transformed::yes(reordered(inner)?.data))
        }
        other => Ok(Transformed::yes(other)),
    }
}
