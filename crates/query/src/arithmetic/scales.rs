//! Constants in sums of decimals get the scale of the other side.
//!
//! Arrow multiplies both sides of `1 - discount` for each row until they have as many digits behind the point, and checks whether the
//! products fit, even if one is a constant and the other is multiplied by one. Two sides of one scale are only subtracted.
//! `1.00 - discount` is the same number of the same type.

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule that gives constants scales. Comes after the rules that make constants.
pub(super) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(ConstantScales)
}

#[derive(Debug)]
struct ConstantScales;

impl OptimizerRule for ConstantScales {
    fn name(&self) -> &'static str {
        "constant_scales"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            // Grouping sets have no name that could be restored.
            if matches!(expr, Expr::GroupingSet(_)) {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| Ok(scaled(expr, &schema)))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    }
}

/// The sum or the difference with a constant of the other side's scale.
fn scaled(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) = expr
    else {
        return Transformed::no(expr);
    };
    let changed = match (&*left, &*right) {
        (Expr::Literal(..), Expr::Literal(..)) => None,
        (constant @ Expr::Literal(..), other) => {
            of_scale(constant, other, schema).map(|it| (it, other.clone()))
        }
        (other, constant @ Expr::Literal(..)) => {
            of_scale(constant, other, schema).map(|it| (other.clone(), it))
        }
        _ => None,
    };
    match changed {
        Some((left, right)) => Transformed::yes(Expr::BinaryExpr(BinaryExpr {
            left: Box::new(left),
            op,
            right: Box::new(right),
        })),
        None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

/// The constant with the scale of the other side. `None`: it is no decimal, has the scale already, or would have too many digits.
fn of_scale(constant: &Expr, other: &Expr, schema: &dyn ExprSchema) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Decimal128(Some(value), digits, scale), metadata) = constant else {
        return None;
    };
    let DataType::Decimal128(_, other_scale) = other.get_type(schema).ok()? else { return None };
    let more = u8::try_from(other_scale.checked_sub(*scale)?).ok().filter(|more| *more > 0)?;
    let digits = digits.checked_add(more).filter(|digits| *digits <= DECIMAL128_MAX_PRECISION)?;
    let value = value.checked_mul(10_i128.checked_pow(more.into())?)?;
    let scaled = ScalarValue::Decimal128(Some(value), digits, other_scale);
    Some(Expr::Literal(scaled, metadata.clone()))
}
