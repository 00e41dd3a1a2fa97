//! Aggregates that are made of other aggregates, in a projection above the aggregation.

use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection};
use std::sync::Arc;

/// An aggregate without its name. `None`: the name has metadata or a table, which a projection would lose.
pub(super) fn function(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::AggregateFunction(function) => Some(function),
        Expr::Alias(alias) if alias.metadata.is_none() && alias.relation.is_none() => function(&alias.expr),
        _ => None,
    }
}

/// The only argument of an aggregate without DISTINCT, an order, or a word about NULL.
pub(super) fn only_value(function: &AggregateFunction) -> Option<&Expr> {
    let AggregateFunctionParams { args, distinct, filter: _, order_by, null_treatment } = &function.params;
    match &args[..] {
        [value] if !distinct && order_by.is_empty() && null_treatment.is_none() => Some(value),
        _ => None,
    }
}

/// The count of the values of an aggregate: of rows, if no value is NULL.
pub(super) fn count(
    params: &AggregateFunctionParams,
    value: &Expr,
    schema: &DFSchema,
) -> Result<AggregateFunction> {
    let counted = match value.nullable(schema)? {
        true => value.clone(),
        false => Expr::Literal(ScalarValue::Int64(Some(1)), None),
    };
    let params = AggregateFunctionParams { args: vec![counted], ..params.clone() };
    Ok(AggregateFunction { func: count_udaf(), params })
}

/// The aggregates of which others can be made.
pub(super) struct Parts {
    known: Vec<(AggregateFunction, Column)>,
    /// The ones that the aggregation did not have.
    added: Vec<Expr>,
    /// Ending of their names.
    of: &'static str,
}

impl Parts {
    pub(super) fn new(aggregates: &[Expr], of: &'static str) -> Self {
        let known = aggregates.iter().filter_map(|expr| {
            Some((function(expr)?.clone(), Column::new_unqualified(expr.schema_name().to_string())))
        });
        Self { known: known.collect(), added: Vec::new(), of }
    }

    pub(super) fn find(&self, aggregate: &AggregateFunction) -> Option<Column> {
        // SUM has an implementation of ours, which ends with an error where it overflows.
        let is_same = |known: &AggregateFunction| {
            known.func.name() == aggregate.func.name() && known.params == aggregate.params
        };
        self.known.iter().find(|(known, _)| is_same(known)).map(|(_, column)| column.clone())
    }

    pub(super) fn find_or_add(&mut self, aggregate: AggregateFunction) -> Column {
        self.find(&aggregate).unwrap_or_else(|| {
            let name = format!("__part_{}_of_{}", self.added.len(), self.of);
            let column = Column::new_unqualified(name.clone());
            self.added.push(Expr::AggregateFunction(aggregate.clone()).alias(name));
            self.known.push((aggregate, column.clone()));
            column
        })
    }

    /// The aggregation with these expressions, made of parts, in place of some of its aggregates.
    pub(super) fn put_together(self, aggregate: Aggregate, made: &[Option<Expr>]) -> Result<LogicalPlan> {
        let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
        let kept = made.iter().zip(&aggregate.aggr_expr).filter(|(made, _)| made.is_none());
        let computed: Vec<Expr> = kept.map(|(_, expr)| expr.clone()).chain(self.added).collect();
        let fields = aggregate.schema.iter().map(Column::from);
        let shown = fields.enumerate().map(|(place, column)| {
            match place.checked_sub(groups).and_then(|place| made[place].as_ref()) {
                Some(made) => made.clone().alias(column.name),
                None => Expr::Column(column),
            }
        });
        let shown: Vec<Expr> = shown.collect();
        let below = Aggregate::try_new(aggregate.input, aggregate.group_expr, computed)?;
        let below = Arc::new(LogicalPlan::Aggregate(below));
        Ok(LogicalPlan::Projection(Projection::try_new(shown, below)?))
    }
}
