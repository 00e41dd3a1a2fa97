//! The partitions of rows in Arrow columns.

use super::find::Finder;
use super::{Partitions, ValueRef};
use crate::data_type::DataType;
use crate::table::TableSchema;
use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};

impl Partitions {
    /// The values of a row that decide.
    #[must_use]
    pub fn values_of<'b>(
        &self,
        batch: &'b RecordBatch,
        schema: &TableSchema,
        row: usize,
    ) -> Vec<ValueRef<'b>> {
        let places = self.columns.iter().filter_map(|id| schema.index_of_id(*id));
        places
            .map(|place| value(batch.column(place).as_ref(), schema.columns[place].data_type, row))
            .collect()
    }

    /// For each row of a batch with the columns of `schema`, the place in the list of its partition.
    #[must_use]
    pub fn of_rows(&self, batch: &RecordBatch, schema: &TableSchema) -> Vec<Option<usize>> {
        let places = self.columns.iter().filter_map(|id| schema.index_of_id(*id));
        let columns: Vec<_> =
            places.map(|place| (batch.column(place).as_ref(), schema.columns[place].data_type)).collect();
        if let [(array, data_type)] = columns[..]
            && array.len() >= KNOWN
            && let Some(found) = self.of_integers(array, data_type)
        {
            return found;
        }
        let mut values = Vec::with_capacity(columns.len());
        let of_row = |row| {
            values.clear();
            values.extend(columns.iter().map(|&(array, data_type)| value(array, data_type, row)));
            self.find(&values)
        };
        (0..batch.num_rows()).map(of_row).collect()
    }
}

/// How many values are remembered with their partitions, a power of two.
const KNOWN: usize = 256;

impl Partitions {
    /// The partitions of many rows by one column of numbers that are days or fit in 64 bits. `None`: it is another one.
    fn of_integers(&self, array: &dyn Array, data_type: DataType) -> Option<Vec<Option<usize>>> {
        Some(match data_type {
            DataType::Int => self.of_values(array.as_primitive::<Int32Type>()),
            DataType::BigInt => self.of_values(array.as_primitive::<Int64Type>()),
            DataType::Date => self.of_values(array.as_primitive::<Date32Type>()),
            DataType::DateTime { .. } => self.of_values(array.as_primitive::<TimestampMicrosecondType>()),
            _ => return None,
        })
    }

    fn of_values<T: ArrowPrimitiveType<Native: Into<i64>>>(
        &self,
        array: &PrimitiveArray<T>,
    ) -> Vec<Option<usize>> {
        let find = |value: i64| self.find(&[ValueRef::Int(value.into())]);
        if let Finder::Integers(ranges) = self.finder() {
            return each(array, ranges.null, |value| ranges.find(value.into()));
        }
        // Most lists are of a few values.
        let mut known: Vec<Option<(i64, Option<usize>)>> = vec![None; KNOWN];
        each(array, self.find(&[ValueRef::Null]), |value| {
            let slot = &mut known[value as usize % KNOWN];
            match *slot {
                Some((same, found)) if same == value => found,
                _ => {
                    let found = find(value);
                    *slot = Some((value, found));
                    found
                }
            }
        })
    }
}

/// Maps each value, and each NULL.
fn each<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &PrimitiveArray<T>,
    null: Option<usize>,
    mut find: impl FnMut(i64) -> Option<usize>,
) -> Vec<Option<usize>> {
    if array.null_count() == 0 {
        return array.values().iter().map(|value| find((*value).into())).collect();
    }
    array.iter().map(|value| value.map_or(null, |value| find(value.into()))).collect()
}

fn value(array: &dyn Array, data_type: DataType, row: usize) -> ValueRef<'_> {
    if array.is_null(row) {
        return ValueRef::Null;
    }
    ValueRef::Int(match data_type {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::TinyInt => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::SmallInt => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::BigInt => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::LargeInt => array.as_primitive::<Decimal128Type>().value(row),
        DataType::Date => array.as_primitive::<Date32Type>().value(row).into(),
        DataType::DateTime { .. } => array.as_primitive::<TimestampMicrosecondType>().value(row).into(),
        _ => return ValueRef::Text(array.as_string::<i32>().value(row)),
    })
}
