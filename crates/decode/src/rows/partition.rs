//! Rows that have no partition: they are rejected as rows with bad values are.
//!
//! Not this module's business: where the rows of a partition go.

use crate::blocks::block::Kind;
use crate::blocks::builder::{BlockBuilder, ColumnBuffer};
use crate::cells::cell::show_decimal;
use crate::cells::convert::temporal;
use arrow::array::RecordBatch;
use std::fmt::Write;
use std::sync::Arc;
use tributary_types::partition::ValueRef;
use tributary_types::{DataType, Partitions, TableDef, TableSchema};

/// Checks which rows of a load have a partition.
#[derive(Clone, Debug)]
pub(crate) struct PartitionCheck {
    partitions: Arc<Partitions>,
    /// The places of the columns that decide.
    columns: Vec<usize>,
    /// By the places of the partitions, which of them the load may go to; `None`: all.
    allowed: Option<Arc<[bool]>>,
}

impl PartitionCheck {
    /// The check for a table, if it has partitions.
    pub(crate) fn of(table: &TableDef) -> Option<Self> {
        let partitions = Arc::clone(table.partitioning.partitions()?);
        let schema = &table.schema;
        let columns = partitions.columns.iter().filter_map(|id| schema.index_of_id(*id)).collect();
        Some(Self { partitions, columns, allowed: None })
    }

    /// Leaves only some of the partitions, by their places.
    pub(crate) fn only(&mut self, allowed: Vec<bool>) {
        self.allowed = Some(allowed.into());
    }

    /// Whether the row under construction, which is complete, has a partition.
    pub(crate) fn takes_row(&self, builder: &BlockBuilder) -> bool {
        if self.takes_any() {
            return true;
        }
        if let [column] = self.columns.as_slice() {
            return self.takes(&[last(builder.column(*column))]);
        }
        let values: Vec<_> = self.columns.iter().map(|&column| last(builder.column(column))).collect();
        self.takes(&values)
    }

    /// Whether all rows of a batch with the table's columns have a partition.
    pub(crate) fn takes_all(&self, batch: &RecordBatch, schema: &TableSchema) -> bool {
        self.takes_any() || self.partitions.of_rows(batch, schema).into_iter().all(|found| self.allows(found))
    }

    /// The load may write to any partition, and creates missing ones.
    fn takes_any(&self) -> bool {
        self.allowed.is_none() && self.partitions.auto.is_some()
    }

    fn takes(&self, values: &[ValueRef<'_>]) -> bool {
        self.allows(self.partitions.find(values))
    }

    fn allows(&self, found: Option<usize>) -> bool {
        match &self.allowed {
            Some(allowed) => found.is_some_and(|place| allowed[place]),
            None => found.is_some(),
        }
    }
}

/// The last value of a column.
fn last(column: &ColumnBuffer) -> ValueRef<'_> {
    match (column.last(), column.kind()) {
        (None, _) => ValueRef::Null,
        (Some(text), Kind::Text) => ValueRef::Text(std::str::from_utf8(text).unwrap_or_default()),
        (Some(bit), Kind::Bits) => ValueRef::Int(i128::from(bit[0])),
        (Some(number), _) => ValueRef::Int(integer(number)),
    }
}

/// A little-endian number of any width.
fn integer(bytes: &[u8]) -> i128 {
    let fill = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut wide = [fill; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

/// Why the row under construction is rejected, in Doris's words.
pub(crate) fn reason(builder: &BlockBuilder, schema: &TableSchema) -> String {
    let mut row = String::from("no partition for this tuple. tuple={");
    for (place, column) in schema.visible().enumerate() {
        if place > 0 {
            row.push(',');
        }
        let value = shown(builder.column(place), column.data_type);
        // Writing to a String cannot fail.
        let _ = write!(row, "{}:{value}", quoted(&column.name));
    }
    row.push('}');
    row
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The last value of a column as JSON.
fn shown(column: &ColumnBuffer, data_type: DataType) -> String {
    let Some(value) = column.last() else { return "null".to_owned() };
    let number = || integer(value);
    let narrow = || i64::try_from(number()).unwrap_or_default();
    match data_type {
        DataType::Boolean => (value[0] != 0).to_string(),
        DataType::Float => f32::from_bits(narrow() as u32).to_string(),
        DataType::Double => f64::from_bits(narrow() as u64).to_string(),
        DataType::Decimal { scale, .. } => show_decimal(number(), scale as i8),
        DataType::Date => quoted(&temporal::show_date(narrow())),
        DataType::DateTime { .. } => quoted(&temporal::show_datetime(narrow())),
        data_type if data_type.is_text() => quoted(&String::from_utf8_lossy(value)),
        _ => number().to_string(),
    }
}
