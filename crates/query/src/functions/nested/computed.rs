//! Arrays of numbers computed from element to element: `ARRAY_DIFFERENCE`, `ARRAY_CUM_SUM`.

use crate::functions::nested::alike::convert_to;
use crate::functions::nested::arrays::{Lists, list_of, sum_type};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, ListArray, PrimitiveArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Field, Float64Type, Int64Type};
use datafusion::common::{Result, exec_datafusion_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Any;
    let list = || list_of(DataType::Null);
    vec![
        MySqlFunction::new("array_difference", &[Any], list, |args| computed(&args[0], Step::Difference))
            .returning(|types| list_of(sum_type(types))),
        MySqlFunction::new("array_cum_sum", &[Any], list, |args| computed(&args[0], Step::Sum))
            .returning(|types| list_of(sum_type(types))),
    ]
}

#[derive(Clone, Copy)]
enum Step {
    Difference,
    Sum,
}

impl Step {
    const fn name(self) -> &'static str {
        match self {
            Self::Difference => "array_difference",
            Self::Sum => "array_cum_sum",
        }
    }
}

fn computed(array: &ArrayRef, step: Step) -> Result<ArrayRef> {
    let lists = Lists::of(array, step.name())?;
    let to = sum_type(&[array.data_type().clone()]);
    let values = convert_to(&lists.values, &to)?;
    let overflow = || exec_datafusion_err!("{}: a number does not fit into {to}", step.name());
    let numbers: ArrayRef = match to {
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>();
            Arc::new(Int64Array::from(
                match step {
                    Step::Difference => differences(&lists, values, 0, i64::checked_sub),
                    Step::Sum => sums(&lists, values, i64::checked_add),
                }
                .ok_or_else(overflow)?,
            ))
        }
        DataType::Decimal128(precision, scale) => {
            let values = values.as_primitive::<Decimal128Type>();
            let numbers = Decimal128Array::from(
                match step {
                    Step::Difference => differences(&lists, values, 0, i128::checked_sub),
                    Step::Sum => sums(&lists, values, i128::checked_add),
                }
                .ok_or_else(overflow)?,
            );
            numbers.validate_decimal_precision(precision).map_err(|_| overflow())?;
            Arc::new(numbers.with_precision_and_scale(precision, scale)?)
        }
        _ => {
            let values = values.as_primitive::<Float64Type>();
            Arc::new(Float64Array::from(
                match step {
                    Step::Difference => differences(&lists, values, 0.0, |a, b| Some(a - b)),
                    Step::Sum => sums(&lists, values, |a, b| Some(a + b)),
                }
                .ok_or_else(overflow)?,
            ))
        }
    };
    let rows = || (0..lists.len).map(|row| lists.row(row));
    let offsets = OffsetBuffer::from_lengths(rows().map(|range| range.map_or(0, |range| range.len())));
    let nulls: NullBuffer = rows().map(|range| range.is_some()).collect::<Vec<bool>>().into();
    let field = Arc::new(Field::new_list_field(to, true));
    Ok(Arc::new(ListArray::try_new(field, offsets, numbers, Some(nulls))?))
}

fn get<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, at: usize) -> Option<T::Native> {
    values.is_valid(at).then(|| values.value(at))
}

/// Each element less the one before it, and zero for the first; NULL next to a NULL. `None` if one does not fit.
fn differences<T: ArrowPrimitiveType>(
    lists: &Lists,
    values: &PrimitiveArray<T>,
    zero: T::Native,
    subtract: impl Fn(T::Native, T::Native) -> Option<T::Native>,
) -> Option<Vec<Option<T::Native>>> {
    let mut all = Vec::with_capacity(values.len());
    for range in (0..lists.len).filter_map(|row| lists.row(row)) {
        for at in range.clone() {
            let before = if at == range.start { None } else { Some(get(values, at - 1)) };
            all.push(match (get(values, at), before) {
                (Some(_), None) => Some(zero),
                (Some(value), Some(Some(before))) => Some(subtract(value, before)?),
                _ => None,
            });
        }
    }
    Some(all)
}

/// The sum of the elements up to each; NULL only before the first number. `None` if one does not fit.
fn sums<T: ArrowPrimitiveType>(
    lists: &Lists,
    values: &PrimitiveArray<T>,
    add: impl Fn(T::Native, T::Native) -> Option<T::Native>,
) -> Option<Vec<Option<T::Native>>> {
    let mut all = Vec::with_capacity(values.len());
    for range in (0..lists.len).filter_map(|row| lists.row(row)) {
        let mut sum = None;
        for at in range {
            sum = match (sum, get(values, at)) {
                (Some(sum), Some(value)) => Some(add(sum, value)?),
                (sum, value) => sum.or(value),
            };
            all.push(sum);
        }
    }
    Some(all)
}
