//! Shared helpers of this crate's tests.

use crate::{Block, BlockBuilder, BodyDecoder, Decoded, Reject, blocks_to_batches};
use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;
use std::sync::Arc;
use tributary_types::{
    ColumnDef, DataType, KeyModel, NestedType, SchemaVersion, TableDef, TableId, TableSchema,
};

/// A nullable column without a default.
pub(crate) fn column(id: u32, name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef { physical_name: format!("col-{id}"), ..ColumnDef::new(id, name, data_type) }
}

pub(crate) fn schema(columns: Vec<ColumnDef>) -> Arc<TableSchema> {
    Arc::new(TableSchema::new(SchemaVersion(3), columns))
}

pub(crate) fn table(columns: Vec<ColumnDef>) -> Arc<TableDef> {
    let schema = TableSchema::new(SchemaVersion(3), columns);
    Arc::new(TableDef {
        keys: KeyModel::Duplicate { declared: false },
        ..TableDef::new(TableId(7), "db", "t", schema)
    })
}

pub(crate) fn all_types_table() -> Arc<TableDef> {
    let columns = DataType::EXAMPLES.into_iter().enumerate();
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
        DataType::Time { .. } => format!("{:02}:59:{:02}.{:03}", seed % 24, seed % 60, seed % 1000),
        DataType::Char { .. } => format!("é{}", seed % 100),
        DataType::Varchar { .. } => format!("text {}", seed % 10_000),
        DataType::String => "x".repeat((seed % 50) as usize),
        DataType::Ipv4 => format!("10.0.0.{}", seed % 256),
        DataType::Ipv6 => format!("2001:db8::{:x}", seed % 0x1_0000),
        DataType::Json | DataType::Variant => format!("{{\"k\":{seed}}}"),
        DataType::Varbinary { .. } => format!("bytes {}", seed % 10_000),
        DataType::Bitmap | DataType::Hll => unreachable!("functions make them"),
        DataType::Nested(nested) => match nested.kept() {
            NestedType::Array(item) => format!("[{}, null]", sample(*item, seed)),
            _ => "{}".to_owned(),
        },
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

/// The load of a body that is forked at a place, with a decoder for each line of the rest; `None` if it can't be forked there.
pub(crate) fn load_forked(mut decoder: impl BodyDecoder, body: &[u8], at: usize) -> Option<Decoded> {
    decoder.push(&body[..at]).ok()?;
    let fork = decoder.fork()?;
    decoder.finish().unwrap();
    let mut all = Decoded {
        blocks: decoder.take_blocks(),
        counts: decoder.counts(),
        rejects: decoder.rejects().into_owned(),
    };
    let mut rest = [&fork.rest[..], &body[at..]].concat();
    while !rest.is_empty() {
        let line =
            (1..rest.len()).find(|&end| fork.whole_lines(&rest[..end]).is_some()).unwrap_or(rest.len());
        let later = rest.split_off(line);
        let mut decoder = fork.decoder(BlockBuilder::new(&schema(Vec::new())), all.rejects.len()).unwrap();
        decoder.push(&rest).unwrap();
        decoder.finish().unwrap();
        all.blocks.append(&mut decoder.take_blocks());
        Reject::append(&mut all.rejects, all.counts.total, decoder.rejects().into_owned());
        all.counts = all.counts.plus(decoder.counts());
        rest = later;
    }
    Some(all)
}
