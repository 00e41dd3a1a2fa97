//! Workarounds among the rules of the optimizer of logical plans.
//!
//! Most are a [`Guard`](guard::Guard) around one of DataFusion's rules, which hides from it what it would get wrong.

mod computed_lists;
mod constant_keys;
mod decimal_types;
mod empty_branches;
mod guard;
mod held_filters;
mod in_lists;
mod key_names;
mod null_equality;
mod repeated_windows;
mod self_equality;
mod spanning_keys;
mod zero_keys;

use super::InUse;
use datafusion::optimizer::Optimizer;
use guard::{Rule, guarded, place_of};

/// A workaround's name, which is that of its file, and the rules with it.
type Workaround = (&'static str, fn(Vec<Rule>) -> Vec<Rule>);

/// All workarounds here, in the order in which they are put in.
const ALL: [Workaround; 12] = [
    ("in_lists", |rules| guarded(rules, in_lists::HideLists)),
    ("decimal_types", |rules| guarded(rules, decimal_types::HoldDecimals)),
    ("null_equality", |rules| guarded(rules, null_equality::HoldNullSafe)),
    ("held_filters", |rules| guarded(rules, held_filters::HoldConditions)),
    ("repeated_windows", |rules| guarded(rules, repeated_windows::ComputeOnce)),
    ("spanning_keys", |rules| guarded(rules, spanning_keys::HoldSpanningKeys)),
    ("empty_branches", |rules| guarded(rules, empty_branches::NameColumns)),
    ("self_equality", |rules| before(rules, self_equality::BEFORE, self_equality::rule())),
    ("zero_keys", |rules| last(rules, zero_keys::rule())),
    ("constant_keys", |rules| last(rules, constant_keys::rule())),
    ("computed_lists", |rules| last(rules, computed_lists::rule())),
    ("key_names", |rules| last(rules, key_names::rule())),
];

/// The names of the workarounds here.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// DataFusion's rules with the workarounds that are in use.
#[must_use]
pub fn optimizer_rules(in_use: InUse) -> Vec<Rule> {
    let used = ALL.iter().filter(|(name, _)| in_use.has(name));
    used.fold(Optimizer::new().rules, |rules, (_, put_in)| put_in(rules))
}

fn before(mut rules: Vec<Rule>, name: &str, rule: Rule) -> Vec<Rule> {
    rules.insert(place_of(&rules, name), rule);
    rules
}

fn last(mut rules: Vec<Rule>, rule: Rule) -> Vec<Rule> {
    rules.push(rule);
    rules
}
