//! The two zeros of floating-point numbers are one value.
//!
//! DataFusion compares and groups numbers as SQL does, for which -0.0 equals 0.0; but it sorts them, finds peers of windows and
//! looks values up in lists by their bits, even in the lists of join keys with which it filters a join's other side. Values for
//! these purposes go through [`one_zero`]. A negative zero that is only shown is unchanged, as in Doris.

use arrow::datatypes::DataType;
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr};

/// A number with negative zero turned into zero. Types without a negative zero are unchanged.
pub fn one_zero(expr: Expr, data_type: &DataType) -> Expr {
    let zero = match data_type {
        DataType::Float64 => ScalarValue::Float64(Some(0.0)),
        DataType::Float32 => ScalarValue::Float32(Some(0.0)),
        _ => return expr,
    };
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), metadata) => {
            Expr::Literal(ScalarValue::Float64(Some(value + 0.0)), metadata)
        }
        Expr::Literal(ScalarValue::Float32(Some(value)), metadata) => {
            Expr::Literal(ScalarValue::Float32(Some(value + 0.0)), metadata)
        }
        other if has_one_zero(&other) => other,
        other => binary_expr(other, Operator::Plus, Expr::Literal(zero, None)),
    }
}

/// Whether an expression has been through [`one_zero`].
pub fn has_one_zero(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { op: Operator::Plus, right, .. }) = expr else { return false };
    match right.as_ref() {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => *value == 0.0 && value.is_sign_positive(),
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => *value == 0.0 && value.is_sign_positive(),
        _ => false,
    }
}

fn zeroed(expr: Expr, schema: &dyn ExprSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(data_type) => one_zero(expr, &data_type),
        Err(_) => expr,
    }
}

fn is_float(expr: &Expr, schema: &dyn ExprSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_floating())
}

/// Whether an expression is a constant other than zero.
fn is_never_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(value), _) => value.is_none_or(|value| value != 0.0),
        Expr::Literal(ScalarValue::Float32(value), _) => value.is_none_or(|value| value != 0.0),
        Expr::Literal(ScalarValue::Null, _) => true,
        _ => false,
    }
}

/// A value and the list in which it is looked up, all of one kind; and whether they have changed. A column that is compared with
/// constants, none of which is zero, remains bare, because a filter on it can prune files.
pub fn looked_up(expr: Expr, list: Vec<Expr>, schema: &dyn ExprSchema) -> (Expr, Vec<Expr>, bool) {
    let has_floats = is_float(&expr, schema) || list.iter().any(|item| is_float(item, schema));
    if !has_floats || is_never_zero(&expr) || list.iter().all(is_never_zero) {
        return (expr, list, false);
    }
    let list = list.into_iter().map(|item| zeroed(item, schema)).collect();
    (zeroed(expr, schema), list, true)
}

/// Unifies values that are equal in SQL: arguments of DISTINCT, even as texts, and keys of partitions. Returns whether any of
/// them can differ from its equals.
pub fn unify<'a>(exprs: impl IntoIterator<Item = &'a mut Expr>, schema: &dyn ExprSchema) -> bool {
    let mut changed = false;
    for expr in exprs {
        match expr {
            Expr::ScalarFunction(call) if call.func.name() == "__text" => {
                changed |= unify(&mut call.args, schema);
            }
            expr if is_float(expr, schema) && !is_never_zero(expr) => {
                *expr = zeroed(std::mem::take(expr), schema);
                changed = true;
            }
            _ => {}
        }
    }
    changed
}

/// Rows that are equal in a key of an order are ordered by the keys behind it. Behind the last key their order has no meaning,
/// and a bare column lets a sort with a limit skip files.
pub fn order(keys: &mut [Sort], schema: &dyn ExprSchema) -> bool {
    let before_last = keys.len().saturating_sub(1);
    unify(keys[..before_last].iter_mut().map(|key| &mut key.expr), schema)
}
