//! The partitions of rows in Arrow columns.

use super::{Partitions, ValueRef};
use crate::data_type::DataType;
use crate::table::TableSchema;
use arrow::array::{Array, AsArray, RecordBatch};
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
        let mut values = Vec::with_capacity(columns.len());
        let of_row = |row| {
            values.clear();
            values.extend(columns.iter().map(|&(array, data_type)| value(array, data_type, row)));
            self.find(&values)
        };
        (0..batch.num_rows()).map(of_row).collect()
    }
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
