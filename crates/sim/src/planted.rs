//! Hunting bugs that were planted on purpose.

use crate::run::{Outcome, run_with};
use std::sync::Arc;
use tokio::runtime::Runtime;
pub use tributary_types::planted::Bug;

/// Every planted bug is found within so many seeds.
pub const SEEDS_MAX: u64 = 2_000;

/// Plays seeds with the bug until one shows it: after how many, and how.
#[must_use]
pub fn hunt(bug: Bug, from: u64, libraries: &Arc<Runtime>) -> Option<(u64, Outcome)> {
    (from..from + SEEDS_MAX)
        .map(|seed| (seed - from + 1, run_with(seed, libraries, false, Some(bug))))
        .find(|(_, outcome)| outcome.violation.is_some())
}
