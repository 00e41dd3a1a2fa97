//! Aggregates that DataFusion lacks, and the functions that make an answer of what an aggregate has collected.
//!
//! Most of Doris's aggregates are two steps here: one of few aggregates collects values, counts or events, and a scalar function
//! with the constant arguments makes the answer of them. The rewrite of a query puts the two together.
//!
//! Not here: aggregates over BITMAP and HLL, which are in [`crate::functions::states`].

mod averages;
mod best;
mod counts;
mod events;
mod funnel;
mod histograms;
mod lists;
mod moments;
mod sequence;
mod top;

use super::MySqlFunction;
use datafusion::logical_expr::AggregateUDF;
use std::sync::{Arc, LazyLock};

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        averages::functions(),
        events::functions(),
        funnel::functions(),
        histograms::functions(),
        lists::functions(),
        sequence::functions(),
        top::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Our aggregate of that name.
pub fn get(name: &str) -> Option<Arc<AggregateUDF>> {
    static ALL: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(|| {
        vec![
            Arc::new(AggregateUDF::new_from_impl(best::Best::new("max_by", true))),
            Arc::new(AggregateUDF::new_from_impl(best::Best::new("min_by", false))),
            Arc::new(AggregateUDF::new_from_impl(counts::Counts::default())),
            Arc::new(AggregateUDF::new_from_impl(moments::Shape::new("skew"))),
            Arc::new(AggregateUDF::new_from_impl(moments::Shape::new("kurt"))),
        ]
    });
    let found = ALL.iter().find(|function| function.name() == name).cloned();
    found.or_else(|| super::states::aggregates::get(name))
}
