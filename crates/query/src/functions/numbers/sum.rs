//! SUM that ends with an error where BIGINT or DECIMAL overflows. DataFusion's wraps around.
//!
//! Floats, which do not overflow in that way, are left to DataFusion's, and so is which values DISTINCT finds.

use crate::error::external;
use crate::functions::numbers::arithmetic::is_decimal;
use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    Signature,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use tributary_types::{ErrorCode, SqlError};

/// The function `SUM`.
pub fn sum() -> Arc<AggregateUDF> {
    static SUM: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = sum_udaf().signature().clone();
        Arc::new(AggregateUDF::new_from_impl(CheckedSum { signature }))
    });
    Arc::clone(&SUM)
}

fn out_of_range(data_type: &DataType) -> DataFusionError {
    let name = if *data_type == DataType::Int64 { "BIGINT" } else { "DECIMAL" };
    external(SqlError::detail(
        ErrorCode::Unknown,
        format!("{name} value is out of range in SUM; sum up CAST(… AS LARGEINT) or AS DOUBLE"),
    ))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    signature: Signature,
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        sum_udaf().return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            let data_type = args.return_field.data_type().clone();
            let values = sum_udaf().accumulator(args)?;
            return Ok(Box::new(DistinctSum { values, data_type }));
        }
        match own(&args) {
            Some(Own::Whole) => Ok(Box::new(Sum::<Int64Type>::new(args.return_field.data_type()))),
            Some(Own::Decimal) => Ok(Box::new(Sum::<Decimal128Type>::new(args.return_field.data_type()))),
            None => sum_udaf().accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match own(&args) {
            Some(_) => self.accumulator(args),
            None => sum_udaf().create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        sum_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match own(&args) {
            Some(Own::Whole) => Ok(groups::<Int64Type>(args.return_field.data_type())),
            Some(Own::Decimal) => Ok(groups::<Decimal128Type>(args.return_field.data_type())),
            None => sum_udaf().create_groups_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        sum_udaf().state_fields(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn simplify_expr_op_literal(
        &self,
        call: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        sum_udaf().simplify_expr_op_literal(call, arg, op, literal, arg_is_left)
    }
}

enum Own {
    Whole,
    Decimal,
}

fn own(args: &AccumulatorArgs<'_>) -> Option<Own> {
    match args.return_field.data_type() {
        _ if args.is_distinct => None,
        DataType::Int64 => Some(Own::Whole),
        DataType::Decimal128(..) => Some(Own::Decimal),
        _ => None,
    }
}

/// The sum of all rows, or of those in a window's frame.
#[derive(Debug)]
struct Sum<T: ArrowPrimitiveType> {
    total: T::Native,
    /// How many values are in it. Without any it is NULL.
    values: u64,
    data_type: DataType,
}

impl<T: ArrowPrimitiveType> Sum<T> {
    fn new(data_type: &DataType) -> Self {
        Self { total: T::Native::ZERO, values: 0, data_type: data_type.clone() }
    }

    /// The sum of a batch and how many values are in it.
    fn of(&self, array: &ArrayRef) -> Result<(T::Native, u64)> {
        let values = array.as_primitive::<T>();
        let count = (values.len() - values.null_count()) as u64;
        let sum = match array.as_primitive_opt::<Int64Type>() {
            // Adding without checks is several times faster.
            Some(whole) if are_small(whole) => arrow::compute::sum(values),
            _ => arrow::compute::sum_checked(values).map_err(|_| out_of_range(&self.data_type))?,
        };
        Ok((sum.unwrap_or(T::Native::ZERO), count))
    }
}

/// Whether not even a billion such values overflow when they are added.
fn are_small(values: &PrimitiveArray<Int64Type>) -> bool {
    let bits = values.values().iter().fold(0, |bits, value| bits | (value ^ (value >> 63)));
    bits < 1 << 32 && values.len() < 1 << 30
}

impl<T: ArrowPrimitiveType + std::fmt::Debug> Accumulator for Sum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = self.of(&values[0])?;
        self.total = self.total.add_checked(sum).map_err(|_| out_of_range(&self.data_type))?;
        self.values += count;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = self.of(&values[0])?;
        self.total = self.total.sub_checked(sum).map_err(|_| out_of_range(&self.data_type))?;
        self.values -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = (self.values > 0).then_some(self.total);
        let total = ScalarValue::new_primitive::<T>(total, &self.data_type)?;
        match total {
            ScalarValue::Decimal128(Some(digits), ..) if !is_decimal(digits) => {
                Err(out_of_range(&self.data_type))
            }
            total => Ok(total),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of the different values that DataFusion's accumulator found: its state is the list of them.
#[derive(Debug)]
struct DistinctSum {
    values: Box<dyn Accumulator>,
    data_type: DataType,
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum: Box<dyn Accumulator> = match self.data_type {
            DataType::Int64 => Box::new(Sum::<Int64Type>::new(&self.data_type)),
            DataType::Decimal128(..) => Box::new(Sum::<Decimal128Type>::new(&self.data_type)),
            _ => return self.values.evaluate(),
        };
        for state in self.values.state()? {
            let ScalarValue::List(lists) = state else {
                return internal_err!("SUM(DISTINCT) without a list");
            };
            for values in lists.iter().flatten() {
                sum.update_batch(&[values])?;
            }
        }
        sum.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}

fn groups<T: ArrowPrimitiveType + Send>(data_type: &DataType) -> Box<dyn GroupsAccumulator> {
    let overflowed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&overflowed);
    let sums =
        PrimitiveGroupsAccumulator::<T, _>::new(data_type, move |sum: &mut T::Native, value| {
            match sum.add_checked(value) {
                Ok(added) => *sum = added,
                Err(_) => flag.store(true, Ordering::Relaxed),
            }
        });
    Box::new(GroupSums { sums: Box::new(sums), overflowed, data_type: data_type.clone() })
}

/// One sum for each group; see [`groups`].
struct GroupSums {
    sums: Box<dyn GroupsAccumulator>,
    /// Set by the addition, which cannot give an error itself.
    overflowed: Arc<AtomicBool>,
    data_type: DataType,
}

impl GroupSums {
    fn check(&self) -> Result<()> {
        if self.overflowed.load(Ordering::Relaxed) { Err(out_of_range(&self.data_type)) } else { Ok(()) }
    }
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.sums.update_batch(values, group_indices, filter, groups)?;
        self.check()
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], groups: usize) -> Result<()> {
        self.sums.merge_batch(values, group_indices, groups)?;
        self.check()
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.sums.evaluate(emit_to)?;
        let is_lost =
            |sums: &PrimitiveArray<Decimal128Type>| sums.iter().flatten().any(|sum| !is_decimal(sum));
        if sums.as_primitive_opt().is_some_and(is_lost) {
            return Err(out_of_range(&self.data_type));
        }
        Ok(sums)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
