//! Computes equal window functions once.
//!
//! Two calls that differ in the query may be equal after constant folding, `LEAD(1 + 1) OVER w` and `LEAD(2) OVER w`. DataFusion
//! then extracts them as a common part of two expressions, to be computed before the window, which no physical plan can:
//! "Physical plan does not support logical expression `WindowFunction`".
//!
//! Upstream: apache/datafusion#15190, mended by apache/datafusion#24750.
//!
//! Delete when DataFusion has that change.

use crate::workarounds::logical::guard::{Guard, Rule};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Window};
use datafusion::optimizer::OptimizerConfig;
use std::sync::Arc;

/// Takes repetitions out of windows before common parts are looked for.
#[derive(Debug)]
pub struct ComputeOnce;

impl Guard for ComputeOnce {
    const RULE: &'static str = "common_sub_expression_eliminate";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let once = plan.transform_up(|plan| match plan {
            LogicalPlan::Window(window) if repeats(&window) => computed_once(window).map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        })?;
        let changed = once.transformed;
        let done = rule.rewrite(once.data, config)?;
        Ok(Transformed::new_transformed(done.data, changed || done.transformed))
    }
}

/// A call without the name that it has above.
fn call(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => call(&alias.expr),
        other => other,
    }
}

/// The columns that a window computes, with their calls.
fn computed(window: &Window) -> impl Iterator<Item = (&Expr, Expr)> {
    let inputs = window.schema.fields().len() - window.window_expr.len();
    let columns = (inputs..).map(|at| Expr::Column(Column::from(window.schema.qualified_field(at))));
    window.window_expr.iter().map(call).zip(columns)
}

/// The expressions that the windows right below a window compute.
fn computed_below(window: &Window) -> Vec<(&Expr, Expr)> {
    let mut all = Vec::new();
    let mut input = &window.input;
    while let LogicalPlan::Window(below) = input.as_ref() {
        all.extend(computed(below));
        input = &below.input;
    }
    all
}

fn repeats(window: &Window) -> bool {
    let mut known = computed_below(window);
    computed(window).any(|next| {
        let repeats = known.iter().any(|(before, _)| *before == next.0);
        known.push(next);
        repeats
    })
}

/// The window with each call once, and its columns by the names that they had.
fn computed_once(window: Window) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = window.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut once: Vec<Expr> = Vec::with_capacity(window.window_expr.len());
    let mut known = computed_below(&window);
    let inputs = columns.len();
    for (at, next) in computed(&window).enumerate() {
        if let Some((_, first)) = known.iter().find(|(before, _)| *before == next.0) {
            let (relation, field) = window.schema.qualified_field(inputs + at);
            columns.push(first.clone().alias_qualified(relation.cloned(), field.name()));
            continue;
        }
        once.push(window.window_expr[at].clone());
        columns.push(next.1.clone());
        known.push(next);
    }
    let input = match once.is_empty() {
        true => Arc::clone(&window.input),
        false => Arc::new(LogicalPlan::Window(Window::try_new(once, Arc::clone(&window.input))?)),
    };
    Ok(LogicalPlan::Projection(Projection::try_new(columns, input)?))
}
