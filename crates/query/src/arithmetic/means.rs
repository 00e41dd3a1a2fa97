//! Means share the sums and the counts of other aggregates.
//!
//! DataFusion's AVG adds up and counts for itself. Where an aggregation also has the SUM or the COUNT of the same values, [`rule`]
//! makes a mean of these two, in a projection above the aggregation. For values that are never NULL the count is that of rows.
//!
//! Invariant: the same answers. So the mean of decimals is that of DataFusion's AVG, by its own [`DecimalAverager`], and decimals whose
//! sum AVG would make wider than SUM does stay.

use super::parts::{Parts, count, function, only_value};
use crate::scan::provider::travels;
use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
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
    let mut parts = Parts::new(&aggregate.aggr_expr, "means");
    let schema = aggregate.input.schema();
    let mut means = vec![None; aggregate.aggr_expr.len()];
    for (place, expr) in aggregate.aggr_expr.iter().enumerate() {
        means[place] = Mean::of(expr, schema)?.and_then(|mean| mean.placed(&mut parts));
    }
    match means.iter().all(Option::is_none) {
        true => Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
        false => parts.put_together(aggregate, &means).map(Transformed::yes),
    }
}

/// A mean that may be computed of its sum and its count.
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
        let Some(value) = only_value(mean) else { return Ok(None) };
        let (of, data_type) = (value.get_type(schema)?, expr.get_type(schema)?);
        let is_known = match (&of, &data_type) {
            (DataType::Decimal128(digits, _), DataType::Decimal128(..)) => *digits <= DIGITS_MAX,
            (DataType::Float64, DataType::Float64) => true,
            _ => false,
        };
        if !is_known {
            return Ok(None);
        }
        let sum = AggregateFunction { func: sum_udaf(), params: mean.params.clone() };
        let count = count(&mean.params, value, schema)?;
        Ok(Some(Self { sum, count, of, data_type }))
    }

    /// The mean of its sum and its count, one of which may be added. `None`: there is neither.
    fn placed(self, parts: &mut Parts) -> Option<Expr> {
        if parts.find(&self.sum).is_none() && parts.find(&self.count).is_none() {
            return None;
        }
        let function = ScalarUDF::new_from_impl(MeanOf::new(self.of, self.data_type));
        let columns = [parts.find_or_add(self.sum), parts.find_or_add(self.count)];
        Some(function.call(columns.map(Expr::Column).into()))
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
