//! Rules of ours around rules of DataFusion's optimizer.
//!
//! A guard changes the plan before a rule sees it and changes it back afterwards. Rules are known by their names, so
//! a rule that has another name in a later DataFusion would lose its guard: [`place_of`] panics then, in
//! every test that makes an engine.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::fmt::Debug;
use std::sync::Arc;

/// A rule of the optimizer.
pub type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// A wrapper of one rule.
pub trait Guard: Debug + Send + Sync + 'static {
    /// The name of the guarded rule.
    const RULE: &'static str;

    /// Applies `rule` to `plan`, and shields the parts that it would get wrong.
    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>>;
}

/// Puts a guard around its rule.
///
/// # Panics
/// If the rule does not exist.
pub fn guarded<G: Guard>(mut rules: Vec<Rule>, guard: G) -> Vec<Rule> {
    let place = place_of(&rules, G::RULE);
    let rule = Arc::clone(&rules[place]);
    rules[place] = Arc::new(Guarded { rule, guard });
    rules
}

/// The place of DataFusion's rule of this name.
///
/// # Panics
/// If the rule does not exist.
pub fn place_of(rules: &[Rule], name: &str) -> usize {
    let place = rules.iter().position(|rule| rule.name() == name);
    place.unwrap_or_else(|| panic!("the optimizer has a rule called {name}"))
}

#[derive(Debug)]
struct Guarded<G> {
    rule: Rule,
    guard: G,
}

impl<G: Guard> OptimizerRule for Guarded<G> {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        self.guard.rewrite(&self.rule, plan, config)
    }
}

/// The rule of this name that gives every node of a plan to `change`.
pub fn node_rule(
    name: &'static str,
    order: ApplyOrder,
    change: fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Rule {
    Arc::new(NodeRule { name, order, change })
}

#[derive(Debug)]
struct NodeRule {
    name: &'static str,
    order: ApplyOrder,
    change: fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
}

impl OptimizerRule for NodeRule {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(self.order)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.change)(plan)
    }
}
