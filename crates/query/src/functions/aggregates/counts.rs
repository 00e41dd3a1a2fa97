//! `__counts(x[, weight])`: how often each value occurs, or the sum of its weights, as a list in the order of the values.
//!
//! `TOPN`, histograms and `COUNT_BY_ENUM` are functions over such a list.

use crate::functions::conversion::convert::to_integer;
use crate::functions::nested::alike::{convert_to, normal};
use crate::functions::nested::arrays::{Lists, list_of};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of memory that an entry takes beside its value.
const ENTRY_BYTES: usize = 2 * size_of::<(Box<[u8]>, i64)>();

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    signature: Signature,
}

impl Default for Counts {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

/// A value and its count.
fn entry(value: DataType) -> Fields {
    Fields::from(vec![Field::new("value", value, true), Field::new("count", DataType::Int64, true)])
}

fn counts_type(value: DataType) -> DataType {
    list_of(DataType::Struct(entry(value)))
}

impl AggregateUDFImpl for Counts {
    fn name(&self) -> &str {
        "__counts"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(counts_type(types[0].clone()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let counts = counts_type(args.input_fields[0].data_type().clone());
        Ok(vec![Arc::new(Field::new(format!("{}[state]", args.name), counts, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Counting::new(args.expr_fields[0].data_type().clone())?))
    }

    /// The result over no rows, which a subquery has for a row outside that it finds nothing for.
    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        match data_type {
            DataType::List(field) => match field.data_type() {
                DataType::Struct(fields) if !fields.is_empty() => {
                    Counting::new(fields[0].data_type().clone())?.evaluate()
                }
                _ => ScalarValue::try_new_null(data_type),
            },
            other => ScalarValue::try_new_null(other),
        }
    }
}

#[derive(Debug)]
struct Counting {
    value: DataType,
    converter: RowConverter,
    /// By the bytes of values, whose order is that of the values.
    counts: HashMap<Box<[u8]>, i64>,
    key_bytes: usize,
}

impl Counting {
    fn new(value: DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(value.clone())])?;
        Ok(Self { value, converter, counts: HashMap::new(), key_bytes: 0 })
    }

    fn add(&mut self, values: &ArrayRef, weights: Option<&Int64Array>) -> Result<()> {
        let values = normal(convert_to(values, &self.value)?);
        let keys = self.converter.convert_columns(std::slice::from_ref(&values))?;
        for row in 0..values.len() {
            let is_skipped = values.is_null(row) || weights.is_some_and(|weights| weights.is_null(row));
            if is_skipped || self.value == DataType::Null {
                continue;
            }
            let weight = weights.map_or(1, |weights| weights.value(row));
            let key = keys.row(row);
            let key: &[u8] = key.as_ref();
            if let Some(count) = self.counts.get_mut(key) {
                *count = count.saturating_add(weight);
            } else {
                self.key_bytes += key.len();
                self.counts.insert(key.into(), weight);
            }
        }
        Ok(())
    }
}

impl Accumulator for Counting {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let weights = values.get(1).map(to_integer).transpose()?;
        self.add(&values[0], weights.as_ref().map(AsArray::as_primitive::<Int64Type>))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            let entries = lists.value(row);
            let entries = entries.as_struct();
            self.add(entries.column(0), Some(entries.column(1).as_primitive::<Int64Type>()))?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut entries: Vec<(&[u8], i64)> =
            self.counts.iter().map(|(key, count)| (key.as_ref(), *count)).collect();
        entries.sort_unstable();
        let parser = self.converter.parser();
        let keys = entries.iter().map(|(key, _)| parser.parse(key));
        let values = self.converter.convert_rows(keys)?.remove(0);
        let counts: ArrayRef = Arc::new(entries.iter().map(|(_, count)| *count).collect::<Int64Array>());
        let entries = StructArray::try_new(entry(self.value.clone()), vec![values, counts], None)?;
        let field = Arc::new(Field::new_list_field(entries.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([entries.len()]);
        Ok(ScalarValue::List(Arc::new(ListArray::try_new(field, offsets, Arc::new(entries), None)?)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.key_bytes + self.counts.capacity() * ENTRY_BYTES
    }
}

/// Lists of values with their counts, as the aggregate makes them.
pub struct Counted {
    lists: Lists,
    pub values: ArrayRef,
    pub counts: Int64Array,
}

impl Counted {
    pub fn of(array: &ArrayRef, function: &str) -> Result<Self> {
        let lists = Lists::of(array, function)?;
        let (values, counts) = match lists.values.as_struct_opt() {
            Some(entries) if entries.num_columns() == 2 => {
                (Arc::clone(entries.column(0)), to_integer(entries.column(1))?)
            }
            // A NULL without a type, as the optimizer evaluates it.
            _ => (Arc::clone(&lists.values), to_integer(&lists.values)?),
        };
        let counts = counts.as_primitive::<Int64Type>().clone();
        Ok(Self { lists, values, counts })
    }

    /// The places of a row's values, which are in their order; `None` for a NULL.
    pub fn row(&self, row: usize) -> Option<Range<usize>> {
        self.lists.row(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;

    #[test]
    fn counts_of_parts_are_added_and_sorted() {
        let texts = |texts: &[Option<&str>]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
        let mut one = Counting::new(DataType::Utf8).unwrap();
        one.update_batch(&[texts(&[Some("b"), None, Some("a"), Some("b")])]).unwrap();
        let mut other = Counting::new(DataType::Utf8).unwrap();
        let weights = Arc::new(Int64Array::from(vec![Some(5), Some(7), None]));
        other.update_batch(&[texts(&[Some("b"), Some("c"), Some("d")]), weights]).unwrap();
        assert!(other.size() > size_of::<Counting>());
        let state = other.state().unwrap().remove(0).to_array().unwrap();
        one.merge_batch(&[state]).unwrap();
        let ScalarValue::List(list) = one.evaluate().unwrap() else { panic!("no list") };
        let entries = list.value(0);
        let entries = entries.as_struct();
        assert_eq!(entries.column(0).as_string::<i32>(), &StringArray::from(vec!["a", "b", "c"]));
        assert_eq!(entries.column(1).as_primitive::<Int64Type>(), &Int64Array::from(vec![1, 7, 7]));
    }
}
