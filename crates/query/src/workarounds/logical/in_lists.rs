//! Keeps DataFusion's simplifier from putting IN lists together that know NULL.
//!
//! It turns `a IN (1, 2) AND a IN (3, 4)` into FALSE and `a NOT IN (1) OR a NOT IN (2)` into TRUE, even if `a` is NULL, and
//! `a IN (1, 2) AND a NOT IN (2, NULL)` into `a IN (1)`. While it runs, lists of one value that meet in an expression are calls
//! that it does not understand.
//!
//! Upstream: apache/datafusion#24258, which mends it.
//!
//! Delete when DataFusion has that change.

use crate::workarounds::logical::guard::{Guard, Rule};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::OptimizerConfig;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

/// Hides lists from the simplifier.
#[derive(Debug)]
pub struct HideLists;

impl Guard for HideLists {
    const RULE: &'static str = "simplify_expressions";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        let hide_lists = |expr: Expr| {
            if !lists_meet(&expr) {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            Ok(expr.transform(hide)?.update_data(|expr| name.restore(expr)))
        };
        let hidden = plan.map_expressions(|expr| match expr {
            // Its parts are columns above, not the set.
            Expr::GroupingSet(_) => expr.map_children(hide_lists),
            expr => hide_lists(expr),
        })?;
        let is_hidden = hidden.transformed;
        let done = rule.rewrite(hidden.data, config)?;
        if !is_hidden {
            return Ok(done);
        }
        let changed = done.transformed;
        let shown = done.data.map_expressions(|expr| expr.transform(show))?;
        Ok(Transformed::new_transformed(shown.data, changed))
    }
}

/// Whether an expression has two lists whose values are of one column: the simplifier may find that they are one
/// value only while it runs.
fn lists_meet(expr: &Expr) -> bool {
    let mut seen: HashSet<&Column> = HashSet::new();
    let mut meet = false;
    let _ = expr.apply(|part| {
        if let Expr::InList(list) = part {
            let columns = list.expr.column_refs();
            meet |= columns.iter().any(|column| seen.contains(column));
            seen.extend(columns);
        }
        Ok(if meet { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    meet
}

fn hide(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr, list, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let args = std::iter::once(*expr).chain(list).collect();
    let func = Arc::clone(&LISTS[usize::from(negated)]);
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
}

fn show(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, mut args }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let Some(hidden) = func.inner().downcast_ref::<Hidden>() else {
        return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
    };
    let list = args.split_off(1);
    let Some(expr) = args.pop() else { return internal_err!("IN without a value") };
    let negated = hidden.negated;
    Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(expr), list, negated })))
}

/// A list that is hidden, by whether it is negated.
static LISTS: LazyLock<[Arc<ScalarUDF>; 2]> =
    LazyLock::new(|| [false, true].map(|negated| Arc::new(ScalarUDF::new_from_impl(Hidden::new(negated)))));

#[derive(Debug, PartialEq, Eq, Hash)]
struct Hidden {
    negated: bool,
    /// Volatile, so that it is not computed while the plan is made.
    signature: Signature,
}

impl Hidden {
    fn new(negated: bool) -> Self {
        Self { negated, signature: Signature::variadic_any(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Hidden {
    fn name(&self) -> &str {
        if self.negated { "__not_in" } else { "__in" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a list that is hidden from the simplifier is not computed")
    }
}
