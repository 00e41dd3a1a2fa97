//! `intersect_count(bitmap, column, value, …)`: how many elements those bitmaps have in common that belong to each of the values.
//!
//! Each value of a call arrives as a condition, `column = value`, so that values are compared as anywhere else.

use crate::functions::states::sets::{bytes_of, read_bitmap};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;
use tributary_types::state::Bitmap;

/// The name of the aggregate.
pub const NAME: &str = "intersect_count";

/// The aggregate of a bitmap and conditions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct IntersectCount {
    signature: Signature,
}

impl Default for IntersectCount {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for IntersectCount {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null) => {
                Ok(DataType::Int64)
            }
            other => {
                let is = other.map(ToString::to_string).unwrap_or_default();
                plan_err!("{NAME} function first argument should be of BITMAP type, but was {is}")
            }
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let of_condition = |number: usize| {
            Arc::new(Field::new(format!("{}[state {number}]", args.name), DataType::Binary, true))
        };
        Ok((1..args.input_fields.len()).map(of_condition).collect())
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let conditions = args.exprs.len().saturating_sub(1);
        Ok(Box::new(OfValues { bitmaps: vec![Bitmap::default(); conditions] }))
    }
}

/// The bitmaps of each value, together.
#[derive(Debug)]
struct OfValues {
    bitmaps: Vec<Bitmap>,
}

impl Accumulator for OfValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let bytes = bytes_of(&values[0])?;
        for (bitmap, condition) in self.bitmaps.iter_mut().zip(&values[1..]) {
            let condition = cast(condition, &DataType::Boolean)?;
            let condition: &BooleanArray = condition.as_boolean();
            for (row, bytes) in bytes.iter().enumerate() {
                if let Some(bytes) = bytes.filter(|_| condition.is_valid(row) && condition.value(row)) {
                    bitmap.union(read_bitmap(bytes)?);
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (bitmap, of_value) in self.bitmaps.iter_mut().zip(states) {
            for bytes in bytes_of(of_value)?.iter().flatten() {
                bitmap.union(read_bitmap(bytes)?);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.bitmaps.iter().map(|bitmap| ScalarValue::Binary(Some(bitmap.bytes()))).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut bitmaps = self.bitmaps.iter();
        let mut common = bitmaps.next().cloned().unwrap_or_default();
        bitmaps.for_each(|other| common.intersect(other));
        Ok(ScalarValue::Int64(Some(i64::try_from(common.count()).unwrap_or(i64::MAX))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bitmaps.iter().map(|bitmap| bitmap.bytes().len()).sum::<usize>()
    }
}
