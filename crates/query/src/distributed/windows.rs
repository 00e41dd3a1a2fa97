//! Functions over windows of rows, in plans that travel.
//!
//! The library writes less of them than there is: neither that NULLs are ignored or rows are read from the end, nor a filter. So they
//! are compared here in everything that they are. Their lines are not: fields are in them, whose metadata is in any order.

use super::same::is_same_aggregate;
use datafusion::logical_expr::{AggregateUDF, Volatility, WindowUDF};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use std::fmt::Debug;
use std::sync::Arc;

/// The end of the debugging form of an aggregate over windows that has no filter, which nothing else tells.
const UNFILTERED: &str = "filter: None }";
/// The end of the debugging form of another function that reads rows from the first to the last, and NULLs like other values.
const PLAIN: &str = "is_reversed: false, ignore_nulls: false }";

/// The calls of a step that computes functions over windows of rows. Empty: it is another step.
pub fn windowed(plan: &Arc<dyn ExecutionPlan>) -> &[Arc<dyn WindowExpr>] {
    let bounded = plan.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr);
    bounded
        .or_else(|| plan.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr))
        .unwrap_or_default()
}

/// The function of such a call.
pub enum Windowed<'a> {
    Aggregate(&'a AggregateUDF),
    Own(&'a WindowUDF),
}

impl<'a> Windowed<'a> {
    /// The function of a call. `None`: it is of no known kind.
    pub fn of(call: &'a Arc<dyn WindowExpr>) -> Option<Self> {
        match aggregate(call) {
            Some(aggregate) => Some(Self::Aggregate(aggregate.fun())),
            None => own(call).map(|call| Self::Own(call.fun().as_ref())),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Aggregate(function) => function.name(),
            Self::Own(function) => function.name(),
        }
    }

    pub fn volatility(&self) -> Volatility {
        match self {
            Self::Aggregate(function) => function.signature().volatility,
            Self::Own(function) => function.signature().volatility,
        }
    }
}

fn aggregate(call: &Arc<dyn WindowExpr>) -> Option<&AggregateFunctionExpr> {
    let plain = call.as_any().downcast_ref::<PlainAggregateWindowExpr>();
    let sliding = || call.as_any().downcast_ref::<SlidingAggregateWindowExpr>();
    plain
        .map(PlainAggregateWindowExpr::get_aggregate_expr)
        .or_else(|| sliding().map(SlidingAggregateWindowExpr::get_aggregate_expr))
}

fn own(call: &Arc<dyn WindowExpr>) -> Option<&WindowUDFExpr> {
    let standard = call.as_any().downcast_ref::<StandardWindowExpr>()?;
    standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>()
}

/// Whether two calls are the same in everything.
fn is_same_call(one: &Arc<dyn WindowExpr>, other: &Arc<dyn WindowExpr>) -> bool {
    let ends = |call: &dyn Debug, end: &str| format!("{call:?}").ends_with(end);
    let is_same_function = match (aggregate(one), aggregate(other), own(one), own(other)) {
        (Some(function), Some(other_function), None, None) => {
            is_same_aggregate(function, other_function) && ends(one, UNFILTERED) && ends(other, UNFILTERED)
        }
        (None, None, Some(function), Some(other_function)) => {
            function.fun() == other_function.fun()
                && function.args() == other_function.args()
                && ends(function, PLAIN)
                && ends(other_function, PLAIN)
        }
        _ => false,
    };
    is_same_function
        && one.name() == other.name()
        && one.expressions() == other.expressions()
        && one.partition_by() == other.partition_by()
        && one.order_by() == other.order_by()
        && one.get_window_frame() == other.get_window_frame()
}

/// Whether two such steps make the same calls of rows that are sorted alike.
pub fn is_same_step(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> bool {
    let mode = |plan: &Arc<dyn ExecutionPlan>| {
        plan.downcast_ref::<BoundedWindowAggExec>().map(|bounded| bounded.input_order_mode.clone())
    };
    let (calls, others) = (windowed(one), windowed(other));
    mode(one) == mode(other)
        && calls.len() == others.len()
        && calls.iter().zip(others).all(|(one, other)| is_same_call(one, other))
}
