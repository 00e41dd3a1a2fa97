//! Logical rules that make arithmetic cheaper and leave its answers as they are.
//!
//! | file | what it changes |
//! | --- | --- |
//! | `scales` | constants that are added to decimals have as many digits behind the point as these |
//! | `means` | AVG is made of the SUM or the COUNT that the same aggregation has |
//!
//! Not here: what operators mean, which is decided before (`meaning`).

mod means;
mod scales;

use datafusion::optimizer::OptimizerRule;
use std::sync::Arc;

/// The rules with these behind them.
pub(crate) fn with_cheap_arithmetic(
    mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    rules.extend([scales::rule(), means::rule()]);
    rules
}
