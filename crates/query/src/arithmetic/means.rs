//! Means share the sums and the counts of other aggregates.
//!
//! DataFusion's AVG adds up and counts for itself. Where an aggregation also has the SUM or the COUNT of the same values, [`rule`]
//! makes a mean of these two, in a projection above the aggregation. For values that are never NULL the count is that of rows.
//!
//! Invariant: the same answers. So the mean of decimals is that of DataFusion's AVG, by its own [`DecimalAverager`], and decimals whose
//! sum AVG would make wider than SUM does stay.

use crate::scan::provider::travels;
use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Projection, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion_functions_aggregate_common::utils::DecimalAverager;
use std::sync::Arc;

/// The most digits of decimals whose sums AVG keeps in 128 bits, as SUM does.
const DIGITS_MAX: u8 = 25;

/// The rule that shares sums and counts. Comes after other rules, which change aggregates.
pub(super) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(SharedMeans)
}

#[derive(Debug)]
struct SharedMeans;

impl OptimizerRule for SharedMeans {
    fn name(&self) -> &'static str {
        "shared_means"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // Other nodes don't know the function.
        if travels(&config.options()) {
            return Ok(Transformed::no(plan));
        }
        match plan {
            LogicalPlan::Aggregate(aggregate) => shared(aggregate),
            other => Ok(Transformed::no(other)),
        }
    }
}

/// The aggregation with means that share sums and counts.
fn shared(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut parts = Parts::of(&aggregate.aggr_expr);
    let schema = aggregate.input.schema();
    let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let mut means = vec![None; aggregate.aggr_expr.len()];
    for (place, expr) in aggregate.aggr_expr.iter().enumerate() {
        means[place] = Mean::of(expr, schema)?.and_then(|mean| parts.place(mean));
    }
    if means.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let kept = means.iter().zip(&aggregate.aggr_expr).filter(|(mean, _)| mean.is_none());
    let computed: Vec<Expr> = kept.map(|(_, expr)| expr.clone()).chain(parts.added.clone()).collect();
    let fields = aggregate.schema.iter().map(Column::from);
    let shown = fields.enumerate().map(|(place, column)| {
        match place.checked_sub(groups).and_then(|place| means[place].as_ref()) {
            Some(mean) => mean.call().alias(column.name),
            None => Expr::Column(column),
        }
    });
    let shown: Vec<Expr> = shown.collect();
    let below = Aggregate::try_new(aggregate.input, aggregate.group_expr, computed)?;
    let below = Arc::new(LogicalPlan::Aggregate(below));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, below)?)))
}

/// An aggregate without its name. `None`: the name has metadata or a table, which a projection would lose.
fn function(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::AggregateFunction(function) => Some(function),
        Expr::Alias(alias) if alias.metadata.is_none() && alias.relation.is_none() => function(&alias.expr),
        _ => None,
    }
}

/// A mean that may be computed of its sum and its count.
#[derive(Clone)]
struct Mean {
    sum: AggregateFunction,
    count: AggregateFunction,
    /// The type of the values.
    of: DataType,
    /// The type of the mean.
    data_type: DataType,
}

impl Mean {
    fn of(expr: &Expr, schema: &DFSchema) -> Result<Option<Self>> {
        let Some(mean) = function(expr).filter(|function| function.func.name() == "avg") else {
            return Ok(None);
        };
        let params = &mean.params;
        let [value] = &params.args[..] else { return Ok(None) };
        let (of, data_type) = (value.get_type(schema)?, expr.get_type(schema)?);
        let is_known = match (&of, &data_type) {
            (DataType::Decimal128(digits, _), DataType::Decimal128(..)) => *digits <= DIGITS_MAX,
            (DataType::Float64, DataType::Float64) => true,
            _ => false,
        };
        let is_plain = !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none();
        if !is_known || !is_plain {
            return Ok(None);
        }
        let counted = match value.nullable(schema)? {
            true => value.clone(),
            false => Expr::Literal(ScalarValue::Int64(Some(1)), None),
        };
        let sum = AggregateFunction { func: sum_udaf(), params: params.clone() };
        let params = AggregateFunctionParams { args: vec![counted], ..params.clone() };
        Ok(Some(Self { sum, count: AggregateFunction { func: count_udaf(), params }, of, data_type }))
    }
}

/// A mean of two columns of an aggregation.
#[derive(Clone)]
struct Placed {
    sum: Column,
    count: Column,
    function: MeanOf,
}

impl Placed {
    fn call(&self) -> Expr {
        let function = ScalarUDF::new_from_impl(self.function.clone());
        function.call(vec![Expr::Column(self.sum.clone()), Expr::Column(self.count.clone())])
    }
}

/// The aggregates of which means can be computed.
struct Parts {
    known: Vec<(AggregateFunction, Column)>,
    /// The ones that the aggregation did not have.
    added: Vec<Expr>,
}

impl Parts {
    fn of(aggregates: &[Expr]) -> Self {
        let known = aggregates.iter().filter_map(|expr| {
            Some((function(expr)?.clone(), Column::new_unqualified(expr.schema_name().to_string())))
        });
        Self { known: known.collect(), added: Vec::new() }
    }

    fn find(&self, aggregate: &AggregateFunction) -> Option<Column> {
        // SUM has an implementation of ours, which ends with an error where it overflows.
        let is_same = |known: &AggregateFunction| {
            known.func.name() == aggregate.func.name() && known.params == aggregate.params
        };
        self.known.iter().find(|(known, _)| is_same(known)).map(|(_, column)| column.clone())
    }

    /// The mean with its sum and count, one of which may be added. `None`: there is neither.
    fn place(&mut self, mean: Mean) -> Option<Placed> {
        let (sum, count) = (self.find(&mean.sum), self.find(&mean.count));
        if sum.is_none() && count.is_none() {
            return None;
        }
        let function = MeanOf::new(mean.of, mean.data_type);
        let sum = sum.unwrap_or_else(|| self.added(mean.sum));
        let count = count.unwrap_or_else(|| self.added(mean.count));
        Some(Placed { sum, count, function })
    }

    fn added(&mut self, aggregate: AggregateFunction) -> Column {
        let name = format!("__part_{}_of_means", self.added.len());
        let column = Column::new_unqualified(name.clone());
        self.added.push(Expr::AggregateFunction(aggregate.clone()).alias(name));
        self.known.push((aggregate, column.clone()));
        column
    }
}

/// A function of a sum and a count: the mean, as AVG of values of this type has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MeanOf {
    of: DataType,
    data_type: DataType,
    signature: Signature,
}

impl MeanOf {
    fn new(of: DataType, data_type: DataType) -> Self {
        Self { of, data_type, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for MeanOf {
    fn name(&self) -> &'static str {
        "__mean"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [sums, counts] = &ColumnarValue::values_to_arrays(&args.args)?[..] else {
            return internal_err!("a mean is made of a sum and a count");
        };
        let means: ArrayRef = match (&self.of, &self.data_type) {
            (DataType::Decimal128(_, scale), DataType::Decimal128(digits, mean_scale)) => {
                let averager = DecimalAverager::<Decimal128Type>::try_new(*scale, *digits, *mean_scale)?;
                let means =
                    means::<Decimal128Type>(sums, counts, |sum, count| averager.avg(sum, i128::from(count)))?;
                Arc::new(means.with_data_type(self.data_type.clone()))
            }
            _ => Arc::new(means::<Float64Type>(sums, counts, |sum, count| Ok(sum / count as f64))?),
        };
        Ok(ColumnarValue::Array(means))
    }
}

/// The mean for each sum and count; NULL where there is nothing to add up.
fn means<T: ArrowPrimitiveType>(
    sums: &ArrayRef,
    counts: &ArrayRef,
    mean: impl Fn(T::Native, i64) -> Result<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let (sums, counts) = (sums.as_primitive::<T>(), counts.as_primitive::<Int64Type>());
    let rows = sums.iter().zip(counts);
    let means = rows.map(|(sum, count)| match sum.zip(count.filter(|count| *count > 0)) {
        Some((sum, count)) => mean(sum, count).map(Some),
        None => Ok(None),
    });
    means.collect()
}
