//! Logical rules that make arithmetic cheaper and leave its answers as they are.
//!
//! | file | what it changes |
//! | --- | --- |
//! | `scales` | constants that are added to decimals have as many digits behind the point as these |
//! | `means` | AVG is made of the SUM or the COUNT that the same aggregation has |
//! | `sums` | sums of the same values plus constants are made of one sum and one count |
//! | `parts` | none: how aggregates are made of others |
//!
//! Not here: what operators mean, which is decided before (`meaning`).

mod means;
mod parts;
mod scales;
mod sums;

use datafusion::optimizer::OptimizerRule;
use std::sync::Arc;

/// Name of the rule that computes common parts of expressions once.
const COMMON_PARTS: &str = "common_sub_expression_eliminate";

/// The rules with these behind them, and the one of sums before common parts are computed once.
pub(crate) fn with_cheap_arithmetic(
    mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let place = rules.iter().position(|rule| rule.name() == COMMON_PARTS).unwrap_or(rules.len());
    rules.insert(place, sums::rule());
    rules.extend([scales::rule(), means::rule()]);
    rules
}
