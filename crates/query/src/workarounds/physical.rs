//! Workarounds among the rules of the optimizer of physical plans.

pub mod calculated_keys;
mod distinct_counts;
mod first_groups;
pub mod forgotten;
mod moved_filters;
mod needed_sorts;
pub mod node_rule;
pub mod only_where;
pub mod pass_through;
mod shown_columns;

use super::InUse;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use only_where::Rule;

/// A workaround's name, which is that of its file, and the rules with it.
type Workaround = (&'static str, fn(Vec<Rule>) -> Vec<Rule>);

/// All workarounds here, in the order in which they are put in.
const ALL: [Workaround; 7] = [
    ("distinct_counts", distinct_counts::counted),
    ("first_groups", first_groups::limited),
    ("shown_columns", shown_columns::shown),
    ("moved_filters", moved_filters::kept),
    ("forgotten", forgotten::guarded),
    ("needed_sorts", needed_sorts::sorted),
    ("calculated_keys", calculated_keys::hidden_calculations),
];

/// The names of the workarounds here.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// DataFusion's rules with the workarounds that are in use.
#[must_use]
pub fn physical_rules(in_use: InUse) -> Vec<Rule> {
    let used = ALL.iter().filter(|(name, _)| in_use.has(name));
    used.fold(PhysicalOptimizer::new().rules, |rules, (_, put_in)| put_in(rules))
}
