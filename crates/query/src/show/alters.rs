//! SHOW ALTER TABLE COLUMN: one row per statement that changed columns.
//!
//! Every change is light: the statement that asks for it is answered when it is made. So each is FINISHED, and clients
//! that wait for that see it at their first look.

use crate::engine::QueryEngine;
use crate::rows::{Cell, Grid};
use chrono::DateTime;
use tributary_types::{ColumnChange, TableDef};

/// Doris's `alter_table_timeout_second`.
const TIMEOUT_SECONDS: i64 = 2_592_000;
/// Jobs are numbered by their table and, within it, by this many versions of its schema.
const VERSIONS_PER_TABLE: u64 = 1_000_000;

impl QueryEngine {
    pub(super) fn column_changes(&self, database: &str) -> Grid {
        let mut grid = Grid::new(&[
            "JobId#",
            "TableName",
            "CreateTime",
            "FinishTime",
            "IndexName",
            "IndexId#",
            "OriginIndexId#",
            "SchemaVersion",
            "TransactionId#",
            "State",
            "Msg",
            "Progress",
            "Timeout#",
        ]);
        for table in self.namespace.tables(database) {
            let def = table.def();
            for change in self.namespace.column_changes(def.id) {
                grid.push(row(&def, change));
            }
        }
        grid
    }
}

fn row(def: &TableDef, change: ColumnChange) -> Vec<Cell> {
    let time = change.made_at_ms.and_then(DateTime::from_timestamp_millis);
    let time = Cell::from(time.map(|time| time.format("%Y-%m-%d %H:%M:%S%.3f").to_string()));
    vec![
        (def.id.0 * VERSIONS_PER_TABLE + u64::from(change.version.0)).into(),
        def.name.as_str().into(),
        time.clone(),
        time,
        def.name.as_str().into(),
        def.id.0.into(),
        def.id.0.into(),
        // Doris has a hash of the schema behind the colon.
        format!("{}:0", change.version).into(),
        // It took no transaction.
        Cell::Int(-1),
        "FINISHED".into(),
        "".into(),
        Cell::Null,
        Cell::Int(TIMEOUT_SECONDS),
    ]
}
