//! Tables and rows that the benches of several crates share: deterministic, from a seed.
//!
//! | table | row | bytes as text |
//! | --- | --- | --- |
//! | `small` | id, name, score | about 30 |
//! | `lineitem` | TPC-H's sixteen columns | about 150 |
//! | `access_log` | id, time, client, method, url, status, size | about 90 |

#![allow(dead_code)]

mod rows;

pub use rows::*;
use std::sync::Arc;
use tributary_types::{ColumnDef, DataType, SchemaVersion, TableDef, TableId, TableSchema};

const VARCHAR: fn(u32) -> DataType = |bytes| DataType::Varchar { bytes };
const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };

fn table(name: &str, columns: &[(&str, DataType)]) -> Arc<TableDef> {
    let column = |(id, &(name, data_type)): (usize, &(&str, DataType))| ColumnDef {
        nullable: id > 0,
        is_key: id == 0,
        ..ColumnDef::new(id as u32 + 1, name, data_type)
    };
    let columns = columns.iter().enumerate().map(column).collect();
    Arc::new(TableDef::new(TableId(1), "bench", name, TableSchema::new(SchemaVersion(1), columns)))
}

pub fn small_table() -> Arc<TableDef> {
    table("small", &[("id", DataType::Int), ("name", VARCHAR(50)), ("score", DataType::Int)])
}

pub fn lineitem_table() -> Arc<TableDef> {
    table(
        "lineitem",
        &[
            ("l_orderkey", DataType::BigInt),
            ("l_partkey", DataType::Int),
            ("l_suppkey", DataType::Int),
            ("l_linenumber", DataType::Int),
            ("l_quantity", MONEY),
            ("l_extendedprice", MONEY),
            ("l_discount", MONEY),
            ("l_tax", MONEY),
            ("l_returnflag", VARCHAR(1)),
            ("l_linestatus", VARCHAR(1)),
            ("l_shipdate", DataType::Date),
            ("l_commitdate", DataType::Date),
            ("l_receiptdate", DataType::Date),
            ("l_shipinstruct", VARCHAR(25)),
            ("l_shipmode", VARCHAR(10)),
            ("l_comment", VARCHAR(44)),
        ],
    )
}

pub fn access_log_table() -> Arc<TableDef> {
    table(
        "access_log",
        &[
            ("id", DataType::BigInt),
            ("ts", DataType::DateTime { scale: 0 }),
            ("client", VARCHAR(40)),
            ("method", VARCHAR(8)),
            ("url", DataType::String),
            ("status", DataType::SmallInt),
            ("size", DataType::Int),
        ],
    )
}
