//! Workarounds between planning and the optimizer.

mod grouping_sets;
mod sliding_windows;

use super::InUse;
use datafusion::optimizer::AnalyzerRule;
use grouping_sets::GroupingSetsRule;
use sliding_windows::SlidingWindowsRule;
use std::sync::Arc;

type Rule = Arc<dyn AnalyzerRule + Send + Sync>;

/// A workaround's name, which is that of its file, and its rule.
type Workaround = (&'static str, fn() -> Rule);

/// All workarounds here, in order.
const ALL: [Workaround; 2] =
    [("grouping_sets", || Arc::new(GroupingSetsRule)), ("sliding_windows", || Arc::new(SlidingWindowsRule))];

/// The names of the workarounds here.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The rules that are in use; they come after all others of the analyzer.
#[must_use]
pub fn analyzer_rules(in_use: InUse) -> Vec<Rule> {
    ALL.iter().filter(|(name, _)| in_use.has(name)).map(|(_, rule)| rule()).collect()
}
