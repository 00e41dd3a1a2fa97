//! Keeps DataFusion's simplifier from putting constants in the place of decimals.
//!
//! Where `m` cannot be NULL, the rule replaces `m * 0` by the 0 that it found there, a DECIMAL(1, 0). The nodes above have been
//! planned for the type of the product, and fail: "Invalid comparison operation: Decimal128(11, 0) <= Decimal128(22, 2)". And
//! `m % 1` becomes 0, even for 1.5. While the simplifier runs, each product is wrapped in a cast to its own type, and the left
//! side of each remainder in a call that may be NULL.
//!
//! Upstream: no upstream issue found; apache/datafusion#3643 brought the rule for decimals.
//!
//! Delete when the simplifier keeps the type of a product and leaves `m % 1` alone.

use crate::workarounds::logical::guard::{Guard, Rule};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::OptimizerConfig;
use std::sync::LazyLock;

/// Holds the types of decimals while the simplifier runs.
#[derive(Debug)]
pub struct HoldDecimals;

impl Guard for HoldDecimals {
    const RULE: &'static str = "simplify_expressions";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !plan.expressions().iter().any(has_product) {
            return rule.rewrite(plan, config);
        }
        let schema = input_schema(&plan)?;
        let names = NamePreserver::new(&plan);
        let hold_all = |expr: Expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(|expr| hold(expr, &schema))?.update_data(|expr| name.restore(expr)))
        };
        let held = plan.map_expressions(|expr| match expr {
            // Its parts are columns above, not the set.
            Expr::GroupingSet(_) => expr.map_children(hold_all),
            expr => hold_all(expr),
        })?;
        let done = rule.rewrite(held.data, config)?;
        let schema = input_schema(&done.data)?;
        let changed = done.transformed;
        let freed = done.data.map_expressions(|expr| expr.transform_up(|expr| free(expr, &schema)))?;
        Ok(Transformed::new_transformed(freed.data, changed))
    }
}

fn input_schema(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    Ok(schema)
}

const fn is_product(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply | Operator::Modulo, .. }))
}

fn has_product(expr: &Expr) -> bool {
    expr.exists(|part| Ok(is_product(part))).unwrap_or(true)
}

/// The type of a product of decimals. A cast to it does not show in the name of an expression.
fn product_type(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    let is_product = matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply, .. }));
    is_product.then(|| expr.get_type(schema).ok()).flatten().filter(DataType::is_decimal)
}

fn hold(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(data_type) = product_type(&expr, schema) {
        return Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), data_type))));
    }
    let is_decimal = |expr: &Expr| expr.get_type(schema).is_ok_and(|data_type| data_type.is_decimal());
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Modulo, right })
            if is_decimal(&left) && !matches!(*left, Expr::Literal(..)) =>
        {
            let left = Box::new(HELD.call(vec![*left]));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Modulo, right }))
        }
        other => Transformed::no(other),
    })
}

fn free(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Cast(cast) if product_type(&cast.expr, schema).as_ref() == Some(cast.field.data_type()) => {
            Transformed::yes(*cast.expr)
        }
        Expr::ScalarFunction(mut call) if call.func.inner().is::<Held>() => match call.args.pop() {
            Some(value) => Transformed::yes(value),
            None => return internal_err!("a value that is held from the simplifier is missing"),
        },
        other => Transformed::no(other),
    })
}

static HELD: LazyLock<ScalarUDF> = LazyLock::new(|| ScalarUDF::new_from_impl(Held::new()));

/// A value that the simplifier knows nothing of.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Held {
    /// Volatile, so that it is not computed while the plan is made.
    signature: Signature,
}

impl Held {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Held {
    fn name(&self) -> &'static str {
        "__held"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a value that is held from the simplifier is not computed")
    }
}
