//! The columns that decide which rows supersede others: the key, the sequence, and the delete sign.

use super::hash::{KeyHash, KeyHasher};
use crate::error::TableError;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use std::sync::Arc;
use tributary_types::{ColumnDef, HiddenColumn, TableSchema};
use xxhash_rust::xxh3::xxh3_64;

/// Decides between rows of a key: the greater one stays, and of equal ones the later. NULL is less than any value.
pub(crate) type Sequence = Option<i128>;

/// Reads [`KeyedRows`] from batches of one schema.
pub(crate) struct KeyReader {
    hasher: KeyHasher,
    /// Positions in the schema.
    keys: Vec<usize>,
    sequence: Option<usize>,
    delete_sign: Option<usize>,
}

/// Rows without what does not matter here.
pub(crate) struct KeyedRows {
    pub(crate) hashes: Vec<KeyHash>,
    sequences: Option<ArrayRef>,
    delete_signs: Option<ArrayRef>,
}

impl KeyReader {
    pub(crate) fn new(schema: &TableSchema) -> Result<Self, TableError> {
        Ok(Self {
            hasher: KeyHasher::new(schema)?,
            keys: schema.key_indices(),
            sequence: schema.sequence_index(),
            delete_sign: schema.index_of_hidden(HiddenColumn::DeleteSign),
        })
    }

    /// A schema of those columns alone that a reader of `schema` reads.
    pub(crate) fn columns_of(schema: &TableSchema) -> TableSchema {
        let is_read = |index: usize| {
            let column = &schema.columns[index];
            column.is_key
                || schema.sequence_index() == Some(index)
                || column.hidden == Some(HiddenColumn::DeleteSign)
        };
        let read = (0..schema.columns.len()).filter(|&index| is_read(index));
        let columns = read.map(|index| schema.columns[index].clone()).collect();
        TableSchema { sequence: schema.sequence, ..TableSchema::new(schema.version, columns) }
    }

    /// A number that identifies the deciding columns of rows of the schema.
    pub(crate) fn fingerprint(schema: &TableSchema) -> u64 {
        let columns = Self::columns_of(schema).columns;
        let kind =
            |column: &ColumnDef| (column.id, column.data_type.to_arrow(), column.is_key, column.hidden);
        xxh3_64(
            format!("{:?} {:?}", columns.iter().map(kind).collect::<Vec<_>>(), schema.sequence).as_bytes(),
        )
    }

    /// Whether a greater sequence decides which row stays.
    pub(crate) fn has_sequence(&self) -> bool {
        self.sequence.is_some()
    }

    /// The rows of a batch of the schema.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<KeyedRows, TableError> {
        let columns: Vec<_> = self.keys.iter().map(|&key| Arc::clone(batch.column(key))).collect();
        let column = |index: usize| Arc::clone(batch.column(index));
        Ok(KeyedRows {
            hashes: self.hasher.of_columns(&columns)?,
            sequences: self.sequence.map(column),
            delete_signs: self.delete_sign.map(column).filter(has_any),
        })
    }

    /// The sequences of the rows of a batch of the schema.
    pub(crate) fn sequences<'a>(&self, batch: &'a RecordBatch) -> Option<&'a ArrayRef> {
        self.sequence.map(|index| batch.column(index))
    }
}

impl KeyedRows {
    /// The sequence of a row; NULL for all rows without sequences.
    pub(crate) fn sequence(&self, row: usize) -> Sequence {
        self.sequences.as_ref().and_then(|array| sequence_at(array, row))
    }

    /// Whether the row deletes the row of its key.
    pub(crate) fn deletes(&self, row: usize) -> bool {
        self.delete_signs.as_ref().is_some_and(|signs| signs.as_primitive::<Int8Type>().value(row) != 0)
    }
}

/// Whether a row deletes one; usually none does.
fn has_any(delete_signs: &ArrayRef) -> bool {
    delete_signs.as_primitive::<Int8Type>().values().iter().any(|sign| *sign != 0)
}

/// The sequence of a row whose column this is.
///
/// # Panics
/// If the column is neither of integers nor of dates: `CREATE TABLE` refuses others.
pub(crate) fn sequence_at(array: &ArrayRef, row: usize) -> Sequence {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        ArrowType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        ArrowType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        ArrowType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        ArrowType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        ArrowType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value(row),
        ArrowType::Date32 => array.as_primitive::<Date32Type>().value(row).into(),
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => {
            array.as_primitive::<TimestampMicrosecondType>().value(row).into()
        }
        other => unreachable!("{other} is no type of a sequence"),
    })
}
