//! What the tests of this room share.

use crate::{Block, Decoded, blocks_to_batches};
use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;
use std::sync::Arc;
use tributary_types::{
    ColumnDef, ColumnId, DataType, DbId, DefaultValue, Distribution, SchemaVersion, TableDef, TableId,
    TableProperties, TableSchema, table::Buckets,
};

/// A nullable column without a default.
pub(crate) fn column(id: u32, name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef {
        id: ColumnId(id),
        name: name.to_owned(),
        physical_name: format!("col-{id}"),
        data_type,
        nullable: true,
        is_key: false,
        default: None,
        comment: String::new(),
    }
}

pub(crate) fn not_null(mut column: ColumnDef) -> ColumnDef {
    column.nullable = false;
    column
}

pub(crate) fn with_default(mut column: ColumnDef, default: DefaultValue) -> ColumnDef {
    column.default = Some(default);
    column
}

pub(crate) fn schema(columns: Vec<ColumnDef>) -> Arc<TableSchema> {
    let next_column_id = ColumnId(columns.iter().map(|column| column.id.0 + 1).max().unwrap_or(0));
    Arc::new(TableSchema { version: SchemaVersion(3), columns, next_column_id })
}

pub(crate) fn table(columns: Vec<ColumnDef>) -> Arc<TableDef> {
    Arc::new(TableDef {
        id: TableId(7),
        db_id: DbId(1),
        db: "db".into(),
        name: "t".into(),
        schema: schema(columns),
        has_key_clause: false,
        distribution: Distribution::Random { buckets: Buckets::Auto },
        properties: TableProperties::default(),
        comment: String::new(),
        location: "db/t".into(),
    })
}

/// One column of each type.
pub(crate) fn all_types() -> Vec<DataType> {
    vec![
        DataType::Boolean,
        DataType::TinyInt,
        DataType::SmallInt,
        DataType::Int,
        DataType::BigInt,
        DataType::LargeInt,
        DataType::Float,
        DataType::Double,
        DataType::Decimal { precision: 10, scale: 2 },
        DataType::Date,
        DataType::DateTime { scale: 3 },
        DataType::Char { bytes: 8 },
        DataType::Varchar { bytes: 16 },
        DataType::String,
        DataType::Json,
    ]
}

pub(crate) fn all_types_table() -> Arc<TableDef> {
    let columns = all_types().into_iter().enumerate();
    table(columns.map(|(id, data_type)| column(id as u32, &format!("c{id}"), data_type)).collect())
}

/// A legal text for the type, different for each `seed`.
pub(crate) fn sample(data_type: DataType, seed: u64) -> String {
    match data_type {
        DataType::Boolean => (seed % 2).to_string(),
        DataType::TinyInt => (seed as i8).to_string(),
        DataType::SmallInt => (seed.wrapping_mul(77) as i16).to_string(),
        DataType::Int => (seed.wrapping_mul(77_777_777) as i32).to_string(),
        DataType::BigInt => (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64).to_string(),
        DataType::LargeInt => format!("-{seed}00000000000000000000"),
        DataType::Float => format!("{}.5", seed % 1000),
        DataType::Double => format!("{seed}.125"),
        DataType::Decimal { .. } => format!("{}.{:02}", seed % 10_000, seed % 100),
        DataType::Date => format!("20{:02}-{:02}-{:02}", seed % 100, seed % 12 + 1, seed % 28 + 1),
        DataType::DateTime { .. } => {
            format!("2024-02-{:02} 23:59:{:02}.{:03}", seed % 29 + 1, seed % 60, seed % 1000)
        }
        DataType::Char { .. } => format!("é{}", seed % 100),
        DataType::Varchar { .. } => format!("text {}", seed % 10_000),
        DataType::String => "x".repeat((seed % 50) as usize),
        DataType::Json => format!("{{\"k\":{seed}}}"),
    }
}

/// The rows of blocks as text, NULL as `NULL`.
pub(crate) fn rows(schema: &TableSchema, blocks: &[Block]) -> Vec<Vec<String>> {
    blocks_to_batches(schema, blocks).unwrap().iter().flat_map(batch_rows).collect()
}

pub(crate) fn batch_rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let value = |column: &arrow::array::ArrayRef, row| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => array_value_to_string(column, row).unwrap(),
    };
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| value(column, row)).collect())
        .collect()
}

/// The rows with a `|` between values.
pub(crate) fn lines(table: &TableDef, decoded: &Decoded) -> Vec<String> {
    rows(&table.schema, &decoded.blocks).iter().map(|row| row.join("|")).collect()
}
