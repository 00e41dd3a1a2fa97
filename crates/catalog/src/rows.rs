//! The tables that every store has, for copies of a whole catalog from one kind of store to another.
//!
//! Invariant: a table comes after the ones that it refers to. Not here: the row by which PostgreSQL fences changes, which is about the
//! place and not part of the contents.

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
    Bytes,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Columns {
    pub table: &'static str,
    pub columns: &'static [(&'static str, Kind)],
}

/// Rows that are copied at a time.
pub(crate) const BATCH: usize = 500;

/// SQLite counts the ids of databases by itself; there it is read and written by name.
pub(crate) const NEXT_DATABASE_ID: &str = "next_database_id";

use Kind::{Bytes, Number, Text};

pub(crate) const TABLES: [Columns; 19] = [
    Columns { table: "meta", columns: &[("key", Text), ("value", Text)] },
    Columns { table: "revision", columns: &[("number", Number)] },
    Columns { table: "next_table_id", columns: &[("id", Number)] },
    Columns { table: "databases", columns: &[("id", Number), ("name", Text)] },
    Columns { table: NEXT_DATABASE_ID, columns: &[("id", Number)] },
    Columns {
        table: "tables",
        columns: &[
            ("id", Number),
            ("database_id", Number),
            ("name", Text),
            ("location", Text),
            ("definition", Text),
            ("last_change", Number),
        ],
    },
    Columns {
        table: "schemas",
        columns: &[("table_id", Number), ("version", Number), ("definition", Text), ("made_at_ms", Number)],
    },
    Columns {
        table: "views",
        columns: &[("id", Number), ("database_id", Number), ("name", Text), ("definition", Text)],
    },
    Columns { table: "increments", columns: &[("table_id", Number), ("next", Number)] },
    Columns {
        table: "recycled_databases",
        columns: &[("database_id", Number), ("name", Text), ("dropped_at_ms", Number)],
    },
    Columns {
        table: "recycled_tables",
        columns: &[
            ("table_id", Number),
            ("dropped_at_ms", Number),
            ("bytes", Number),
            ("with_database", Number),
        ],
    },
    Columns {
        table: "recycled_partitions",
        columns: &[
            ("table_id", Number),
            ("partition_id", Number),
            ("name", Text),
            ("dropped_at_ms", Number),
            ("bytes", Number),
            ("definition", Text),
        ],
    },
    Columns { table: "garbage", columns: &[("location", Text), ("table_id", Number)] },
    Columns {
        table: "users",
        columns: &[
            ("name", Text),
            ("host", Text),
            ("password_hash", Bytes),
            ("salted_hash", Text),
            ("definition", Text),
        ],
    },
    Columns { table: "roles", columns: &[("name", Text), ("definition", Text)] },
    Columns { table: "nodes", columns: &[("number", Number), ("id", Text)] },
    Columns {
        table: "transactions",
        columns: &[
            ("node", Number),
            ("txn_id", Number),
            ("database_id", Number),
            ("table_id", Number),
            ("database_name", Text),
            ("table_name", Text),
            ("label", Text),
            ("label_is_kept", Number),
            ("kind", Text),
            ("status", Text),
            ("loads", Number),
            ("row_count", Number),
            ("bytes", Number),
            ("prepared_at_ms", Number),
            ("precommitted_at_ms", Number),
            ("finished_at_ms", Number),
            ("reason", Text),
            ("attachment", Bytes),
        ],
    },
    Columns { table: "jobs", columns: &[("node", Number), ("id", Number), ("definition", Text)] },
    Columns {
        table: "positions",
        columns: &[("node", Number), ("source", Number), ("txn_id", Number), ("position", Bytes)],
    },
];

impl Columns {
    /// The names of the columns, separated by commas.
    pub fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}
