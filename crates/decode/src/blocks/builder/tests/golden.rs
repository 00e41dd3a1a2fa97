//! Blocks as found in write-ahead logs: everything ever written must stay readable.
//!
//! The files beside this one are blocks of the same three rows in format 1 and in format 2. They are never rewritten: a builder
//! that writes other bytes needs a new format.

use super::*;
use crate::testing::{column, rows, schema};
use crate::{CsvDecoder, CsvFormat, LoadRules, Target};
use tributary_types::TableDef;

const PACKED: &[u8] = include_bytes!("golden/format-1.block");
const ALIGNED: &[u8] = include_bytes!("golden/format-2.block");

fn columns() -> Arc<TableSchema> {
    let types = [
        DataType::Boolean,
        DataType::TinyInt,
        DataType::SmallInt,
        DataType::Int,
        DataType::BigInt,
        DataType::LargeInt,
        DataType::Float,
        DataType::Double,
        DataType::Decimal { precision: 9, scale: 2 },
        DataType::Date,
        DataType::DateTime { scale: 3 },
        DataType::Char { bytes: 4 },
        DataType::Varchar { bytes: 20 },
        DataType::String,
        DataType::Json,
        DataType::Int,
    ];
    schema((0..).zip(types).map(|(id, data_type)| column(id, &format!("c{id}"), data_type)).collect())
}

/// The rows of the files, as Arrow prints them.
fn expected() -> [[&'static str; 16]; 3] {
    [
        [
            "true",
            "-128",
            "32767",
            "-7",
            "9223372036854775807",
            "-99999999999999999999999999999999999999",
            "0.5",
            "-2.25",
            "-1234567.89",
            "2024-02-29",
            "9999-12-31T23:59:59.999",
            "ab",
            "é漢",
            "a text",
            "{\"k\": [1, null]}",
            "NULL",
        ],
        ["NULL"; 16],
        [
            "false",
            "7",
            "-1",
            "2147483647",
            "0",
            "170",
            "inf",
            "NaN",
            "0.01",
            "0000-01-01",
            "1969-12-31T23:59:59.001",
            "",
            "x",
            "",
            "0",
            "NULL",
        ],
    ]
}

fn builder() -> BlockBuilder {
    let table = Arc::new(TableDef::new(tributary_types::TableId(7), "db", "t", columns().as_ref().clone()));
    let target = Target::new(&table, None).unwrap();
    let rules = LoadRules { strict: true, ..LoadRules::default() };
    let mut decoder = CsvDecoder::new(target, CsvFormat::default(), rules).unwrap();
    for row in expected() {
        let fields = row.map(|text| if text == "NULL" { "\\N" } else { text });
        decoder.push((fields.join("\t") + "\n").as_bytes()).unwrap();
    }
    assert_eq!(decoder.rejects(), []);
    decoder.take_builder()
}

#[test]
fn blocks_of_both_formats_are_read_as_they_were_written() {
    for (bytes, format) in [(PACKED, FORMAT_PACKED), (ALIGNED, FORMAT_ALIGNED)] {
        assert_eq!(bytes[0], format);
        let block = Block::from_bytes(Bytes::from_static(bytes)).unwrap();
        assert_eq!((block.row_count(), block.schema_version().0), (3, 3));
        assert_eq!(block.is_aligned(), format == FORMAT_ALIGNED);
        assert_eq!(rows(&columns(), &[block]), expected(), "format {format}");
    }
}

#[test]
fn the_builder_writes_the_formats_that_are_on_disk() {
    let builder = builder();
    assert_eq!(builder.row_count(), 3);
    assert!(builder.write_packed() == PACKED, "format 1 is another one: give it a new number");
    assert!(builder.write_aligned() == ALIGNED, "format 2 is another one: give it a new number");
}
