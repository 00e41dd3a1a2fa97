//! Rules of ours around rules of DataFusion's optimizer.
//!
//! A guard changes the plan before a rule sees it and changes it back afterwards. Rules are known by their names, so
//! a rule that has another name in a later DataFusion would lose its guard: [`optimizer_rules`] panics then, in
//! every test that makes an engine.

use crate::constant_keys::NoConstantKeys;
use crate::decimal_types::HoldDecimals;
use crate::empty_branches::NameColumns;
use crate::held_filters::HoldConditions;
use crate::in_lists::HideLists;
use crate::key_names::TellKeysApart;
use crate::null_equality::HoldNullSafe;
use crate::repeated_windows::ComputeOnce;
use crate::self_equality::NotNull;
use crate::spanning_keys::HoldSpanningKeys;
use crate::zeros::OneZeroInKeys;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};
use std::fmt::Debug;
use std::sync::Arc;

/// A rule of the optimizer.
pub type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// What stands around one rule.
pub trait Guard: Debug + Send + Sync + 'static {
    /// The name of the rule that it stands around.
    const RULE: &'static str;

    /// Applies `rule` to `plan`, keeping from it what it would get wrong.
    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>>;
}

/// DataFusion's rules with our guards.
pub fn optimizer_rules() -> Vec<Rule> {
    let mut rules = Optimizer::new().rules;
    guard(&mut rules, HideLists);
    guard(&mut rules, HoldDecimals);
    guard(&mut rules, HoldNullSafe);
    guard(&mut rules, HoldConditions);
    guard(&mut rules, ComputeOnce);
    guard(&mut rules, HoldSpanningKeys);
    guard(&mut rules, NameColumns);
    let decorrelates = place_of(&rules, NotNull::BEFORE);
    rules.insert(decorrelates, Arc::new(NotNull));
    rules.push(Arc::new(OneZeroInKeys));
    rules.push(Arc::new(NoConstantKeys));
    rules.push(Arc::new(TellKeysApart));
    rules
}

fn guard<G: Guard>(rules: &mut [Rule], guard: G) {
    let rule = &mut rules[place_of(rules, G::RULE)];
    *rule = Arc::new(Guarded { rule: Arc::clone(rule), guard });
}

fn place_of(rules: &[Rule], name: &str) -> usize {
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
