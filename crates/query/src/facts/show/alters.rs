//! SHOW ALTER TABLE COLUMN: one row per statement that changed columns. SHOW ALTER TABLE ROLLUP: one per rollup that was added.
//!
//! A light change is already complete when its statement is answered: so it is FINISHED, and clients that wait for that see it at
//! their first look. A heavy one is a job.

use super::Facts;
use crate::facts::show::facts;
use crate::model::{Cell, Grid};
use crate::namespace::SchemaChangeRow;
use chrono::DateTime;
use std::collections::HashSet;
use tributary_types::{ColumnChange, TableDef};

/// Doris's `alter_table_timeout_second`.
const TIMEOUT_SECONDS: i64 = 2_592_000;
/// Light changes are numbered by their table and, within it, by this many versions of its schema.
const VERSIONS_PER_TABLE: u64 = 1_000_000;

impl Facts<'_> {
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
        let jobs = self.namespace.schema_changes(database);
        // The catalog has a schema shortly before its job is FINISHED; a client that relied on it would have its next change
        // refused.
        let made: HashSet<_> =
            jobs.iter().filter(|job| job.state != "CANCELLED").map(|job| (job.table, job.version)).collect();
        for table in self.namespace.tables(database) {
            let def = table.def();
            for change in self.namespace.column_changes(def.id) {
                if !made.contains(&(def.id, change.version)) {
                    grid.push(row(&def, change));
                }
            }
            let of_table = |job: &&SchemaChangeRow| job.table == def.id;
            jobs.iter().filter(of_table).for_each(|job| grid.push(job_row(&def, job)));
        }
        grid
    }
}

impl Facts<'_> {
    pub(super) fn rollups(&self, database: &str) -> Grid {
        let mut grid = Grid::new(&[
            "JobId#",
            "TableName",
            "CreateTime",
            "FinishTime",
            "BaseIndexName",
            "RollupIndexName",
            "RollupId#",
            "TransactionId#",
            "State",
            "Msg",
            "Progress",
            "Timeout#",
        ]);
        for table in self.namespace.tables(database) {
            let def = table.def();
            for rollup in def.rollups.iter().filter(|rollup| rollup.made_at_ms.is_some()) {
                let id: Cell = facts::rollup_id(&def, rollup).into();
                grid.push(vec![
                    id.clone(),
                    def.name.as_str().into(),
                    time(rollup.made_at_ms),
                    time(rollup.made_at_ms),
                    def.name.as_str().into(),
                    rollup.name.as_str().into(),
                    id,
                    // It took no transaction.
                    Cell::Int(-1),
                    "FINISHED".into(),
                    "".into(),
                    Cell::Null,
                    Cell::Int(TIMEOUT_SECONDS),
                ]);
            }
        }
        grid
    }
}

fn time(at_ms: Option<i64>) -> Cell {
    let time = at_ms.and_then(DateTime::from_timestamp_millis);
    Cell::from(time.map(|time| time.format("%Y-%m-%d %H:%M:%S%.3f").to_string()))
}

fn row(def: &TableDef, change: ColumnChange) -> Vec<Cell> {
    vec![
        (def.id.0 * VERSIONS_PER_TABLE + u64::from(change.version.0)).into(),
        def.name.as_str().into(),
        time(change.made_at_ms),
        time(change.made_at_ms),
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

fn job_row(def: &TableDef, job: &SchemaChangeRow) -> Vec<Cell> {
    vec![
        job.job.into(),
        def.name.as_str().into(),
        time(Some(job.created_ms)),
        time(job.finished_ms),
        def.name.as_str().into(),
        def.id.0.into(),
        def.id.0.into(),
        format!("{}:0", job.version).into(),
        job.txn.map_or(Cell::Int(-1), |txn| txn.0.into()),
        job.state.into(),
        job.message.as_str().into(),
        Cell::from(job.progress.clone()),
        Cell::Int(TIMEOUT_SECONDS),
    ]
}
