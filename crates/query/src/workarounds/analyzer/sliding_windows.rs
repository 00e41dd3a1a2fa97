//! Stops the planner from assuming that results of moving windows are sorted.
//!
//! COUNT, MIN and MAX over a frame that moves, such as `ROWS BETWEEN 1 PRECEDING AND CURRENT ROW`, rise and fall with its
//! contents, start again in each partition, and are NULL or 0 for an empty frame. DataFusion assumes that they are sorted if
//! their argument is, MIN even in the wrong direction, and omits an ORDER BY of them. MIN over a shrinking frame rises, and is
//! NULL at the end, where the frame is empty: DataFusion assumes that the NULLs come first. So the columns above are calls that
//! it does not understand.
//!
//! Upstream: no upstream issue found; apache/datafusion#14271 brought the rule.
//!
//! Delete when an aggregate over a frame whose start moves has no order in DataFusion.

use crate::functions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, Window, WindowFrameBound, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Comes after all other rules of the analyzer.
#[derive(Debug)]
pub struct SlidingWindowsRule;

impl AnalyzerRule for SlidingWindowsRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Window(window) if window.window_expr.iter().any(is_misjudged) => {
                shown(window).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        })
        .map(|done| done.data)
    }

    fn name(&self) -> &str {
        "sliding_windows"
    }
}

/// Whether an expression is an aggregate whose order the planner does not know and may think that it does: over a frame
/// whose start moves, or the least or greatest value of a frame that grows.
fn is_misjudged(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_misjudged(&alias.expr),
        Expr::WindowFunction(call) => {
            let params = &call.params;
            let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else { return false };
            let frame = &params.window_frame;
            let is_whole = |bound: &WindowFrameBound| match bound {
                WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) => rows.is_null(),
                WindowFrameBound::CurrentRow => false,
            };
            let from_first = is_whole(&frame.start_bound);
            // Rows may be read from the last to the first, and a frame that grows then gets smaller.
            let has_extremes =
                ["min", "max"].contains(&function.name()) && from_first != is_whole(&frame.end_bound);
            has_extremes || !from_first
        }
        _ => false,
    }
}

fn shown(window: Window) -> Result<LogicalPlan> {
    let inputs = window.schema.fields().len() - window.window_expr.len();
    let columns = window.schema.iter().enumerate().map(|(at, (relation, field))| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        if at < inputs || !is_misjudged(&window.window_expr[at - inputs]) {
            return column;
        }
        functions::named("__opaque").call(vec![column]).alias_qualified(relation.cloned(), field.name())
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Window(window)))?))
}
