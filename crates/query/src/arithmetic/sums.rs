//! Sums of the same values plus constants share one sum and one count: `SUM(x + 2)` is `SUM(x) + 2 * COUNT(x)`.
//!
//! DataFusion has a rule for that, which only sees aggregates without a name of their own. Ours have one when `__numeric` has vanished
//! from them.
//!
//! Invariant: the same answers. So only values of at most 32 bits are taken apart, whose sum fits into a BIGINT for two billion rows
//! with and without the constant.

use super::parts::{Parts, count, function, only_value};
use crate::functions::named;
use crate::scan::provider::travels;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::collections::HashMap;
use std::sync::Arc;

/// The rule that shares sums. Comes before the one that looks for common parts of expressions, which would hide the types of values.
pub(super) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(SharedSums)
}

#[derive(Debug)]
struct SharedSums;

impl OptimizerRule for SharedSums {
    fn name(&self) -> &'static str {
        "shared_sums"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Aggregate(aggregate) if !travels(&config.options()) => shared(aggregate),
            other => Ok(Transformed::no(other)),
        }
    }
}

/// The aggregation with sums that share a sum and a count.
fn shared(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let shifted = aggregate.aggr_expr.iter().map(|expr| Shifted::of(expr, schema));
    let shifted: Vec<Option<Shifted>> = shifted.collect::<Result<_>>()?;
    let mut uses: HashMap<&AggregateFunction, usize> = HashMap::new();
    shifted.iter().flatten().for_each(|it| *uses.entry(&it.sum).or_default() += 1);
    let mut parts = Parts::new(&aggregate.aggr_expr, "sums");
    let mut columns: HashMap<&AggregateFunction, (Column, Column)> = HashMap::new();
    let mut made = vec![None; aggregate.aggr_expr.len()];
    for (made, shifted) in made.iter_mut().zip(&shifted) {
        if let Some(it) = shifted.as_ref().filter(|it| it.added != 0 && uses[&it.sum] > 1) {
            let (sum, count) = columns
                .entry(&it.sum)
                .or_insert_with(|| (parts.find_or_add(it.sum.clone()), parts.find_or_add(it.count.clone())));
            let of_all = named("__multiply").call(vec![lit(it.added), Expr::Column(count.clone())]);
            *made = Some(named("__add").call(vec![Expr::Column(sum.clone()), of_all]));
        }
    }
    match made.iter().all(Option::is_none) {
        true => Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
        false => parts.put_together(aggregate, &made).map(Transformed::yes),
    }
}

/// A sum of values that a constant is added to.
struct Shifted {
    /// The sum without the constant.
    sum: AggregateFunction,
    count: AggregateFunction,
    added: i64,
}

impl Shifted {
    fn of(expr: &Expr, schema: &DFSchema) -> Result<Option<Self>> {
        let sum = function(expr).filter(|function| function.func.name() == "sum");
        let Some((sum, value)) = sum.and_then(|sum| Some((sum, only_value(sum)?))) else { return Ok(None) };
        let (value, added) = taken_apart(value);
        if i32::try_from(added).is_err() || value.is_volatile() || !is_small(value, schema)? {
            return Ok(None);
        }
        let count = count(&sum.params, value, schema)?;
        let params = AggregateFunctionParams { args: vec![value.clone()], ..sum.params.clone() };
        let sum = AggregateFunction { func: Arc::clone(&sum.func), params };
        Ok(Some(Self { sum, count, added }))
    }
}

/// A value and the constant that is added to it.
fn taken_apart(value: &Expr) -> (&Expr, i64) {
    let whole = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Int64(whole), _) => *whole,
        _ => None,
    };
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = value else { return (value, 0) };
    let apart = match op {
        Operator::Plus => whole(right).map(|it| (&**left, it)).or_else(|| Some((&**right, whole(left)?))),
        Operator::Minus => whole(right).and_then(i64::checked_neg).map(|it| (&**left, it)),
        _ => None,
    };
    apart.unwrap_or((value, 0))
}

/// Whether a BIGINT is made of a number of at most 32 bits.
fn is_small(value: &Expr, schema: &DFSchema) -> Result<bool> {
    let Expr::Cast(cast) = value else { return Ok(false) };
    let from = cast.expr.get_type(schema)?;
    Ok(*cast.field.data_type() == DataType::Int64
        && matches!(from, DataType::Int8 | DataType::Int16 | DataType::Int32))
}
