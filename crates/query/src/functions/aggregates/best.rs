//! `MAX_BY(x, y)` and `MIN_BY(x, y)`: the x of the row with the greatest or least y.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{SortOptions, sort_to_indices};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::cmp::Ordering;
use std::sync::Arc;

/// The aggregate over a value and the key that decides.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Best {
    name: &'static str,
    is_greatest: bool,
    signature: Signature,
}

impl Best {
    pub fn new(name: &'static str, is_greatest: bool) -> Self {
        Self { name, is_greatest, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Best {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let field = Field::new(self.name, fields[0].data_type().clone(), true);
        Ok(Arc::new(field.with_metadata(fields[0].metadata().clone())))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let state = |number: usize, field: &FieldRef| {
            Arc::new(Field::new(format!("{}[state {number}]", args.name), field.data_type().clone(), true))
        };
        Ok(args.input_fields.iter().enumerate().map(|(number, field)| state(number, field)).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let null = |at: usize| ScalarValue::try_new_null(args.expr_fields[at].data_type());
        Ok(Box::new(Found { is_greatest: self.is_greatest, value: null(0)?, key: null(1)? }))
    }
}

/// The best row so far; its key is NULL if there was none.
#[derive(Debug)]
struct Found {
    is_greatest: bool,
    value: ScalarValue,
    key: ScalarValue,
}

impl Accumulator for Found {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (values, keys) = (&values[0], &values[1]);
        if keys.null_count() == keys.len() || *keys.data_type() == DataType::Null {
            return Ok(());
        }
        let options = SortOptions { descending: self.is_greatest, nulls_first: false };
        let first = sort_to_indices(keys, Some(options), Some(1))?.value(0) as usize;
        let key = ScalarValue::try_from_array(keys, first)?;
        let wanted = if self.is_greatest { Ordering::Greater } else { Ordering::Less };
        let is_better = match key.partial_cmp(&self.key) {
            _ if self.key.is_null() => true,
            Some(order) => order == wanted,
            None => return exec_err!("values of {} have no order", keys.data_type()),
        };
        if is_better {
            // A copy, which holds none of the batch.
            self.value = ScalarValue::try_from_array(values, first)?.compacted();
            self.key = key.compacted();
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.key.clone()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() + self.key.size()
    }
}
