//! Dynamic partitions by the clock: they are made, and old ones dropped, when a table is created or altered, and every so often
//! after that.
//!
//! Not this module's business: which partitions a table has at a moment ([`tributary_sql::scheduled`]).

use crate::access::{Object, Privilege};
use crate::ddl::Ddl;
use crate::ddl::change::switching::WAIT_MAX;
use crate::ddl::change::turns::TableTurn;
use crate::node::clock::date_time;
use crate::variables::time_zone::{self, Zone};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_query::{Cell, Grid};
use tributary_sql::{dynamic_facts, dynamic_time_zone, scheduled};
use tributary_table::Table;
use tributary_types::{ErrorCode, Partitioning, Partitions, Principal, SqlError, TableDef, TableId};

/// Tables whose partitions are updated at a time.
const SCHEDULED_AT_ONCE: usize = 8;
/// Doris's placeholder for an empty value.
const NOTHING: &str = "N/A";
const COLUMNS: [&str; 16] = [
    "TableName",
    "Enable",
    "TimeUnit",
    "Start#",
    "End#",
    "Prefix",
    "Buckets#",
    "ReplicationNum#",
    "ReplicaAllocation",
    "StartOf",
    "LastUpdateTime",
    "LastSchedulerTime",
    "State",
    "LastCreatePartitionMsg",
    "LastDropPartitionMsg",
    "ReservedHistoryPeriods",
];

/// How the tables were when they were last looked at, since the start of the server.
#[derive(Debug, Default)]
pub(crate) struct DynamicTables(Mutex<HashMap<TableId, Looked>>);

#[derive(Clone, Debug, Default)]
struct Looked {
    /// When partitions were last made or dropped.
    changed_ms: Option<i64>,
    at_ms: i64,
    create_error: Option<String>,
    /// Why the table could not be changed.
    change_error: Option<String>,
}

impl Ddl {
    /// The table with its current dynamic partitions.
    ///
    /// # Errors
    /// Nobody knows its time zone.
    pub(crate) fn with_dynamic_partitions(&self, def: TableDef, now_ms: i64) -> Result<TableDef, SqlError> {
        let Some(zone) = dynamic_time_zone(&def) else { return Ok(def) };
        if !time_zone::is_known(zone) {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "Unknown or incorrect time zone: '{zone}'; use an offset like +08:00 or a name like Asia/Shanghai in \
                     dynamic_partition.time_zone"
                ),
            ));
        }
        let ahead_ms = i64::from(Zone::named(zone).offset_seconds(now_ms * 1000)) * 1000;
        let now = chrono::DateTime::from_timestamp_millis(now_ms + ahead_ms).unwrap_or_default();
        let scheduled = scheduled(&def, now.naive_utc());
        let mut tables = self.dynamic_tables.0.lock();
        let looked = tables.entry(def.id).or_default();
        looked.at_ms = now_ms;
        looked.create_error = scheduled.create_error;
        looked.change_error = None;
        if scheduled.def.is_some() {
            looked.changed_ms = Some(now_ms);
        }
        Ok(scheduled.def.unwrap_or(def))
    }

    /// Gives a table the partitions of `new`. Old ones that loads wait for stay until the next time; those ahead are made in any case.
    async fn give_partitions(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Arc<Table>,
        new: TableDef,
    ) -> Result<(), SqlError> {
        let dropped = self.change_and_keep(turn, Arc::clone(table), new.clone()).await;
        let def = table.def();
        if dropped.is_err()
            && !turn.is_switching()
            && let (Some(before), Some(after)) =
                (def.partitioning.partitions(), new.partitioning.partitions())
        {
            let mut both = Partitions::clone(before);
            both.list.extend(after.without(before).list);
            both.next_id = after.next_id;
            let partitioning = Partitioning::By(Arc::new(both));
            self.change_table(turn, Arc::clone(table), TableDef { partitioning, ..new }).await?;
        }
        dropped
    }

    /// Updates the dynamic partitions of all tables.
    pub(crate) async fn schedule_partitions(self: &Arc<Self>, now_ms: i64) {
        let tables = self.names.all_tables();
        let ids: Vec<TableId> = tables.iter().map(|table| table.id()).collect();
        self.dynamic_tables.0.lock().retain(|id, _| ids.contains(id));
        let dynamic =
            tables.into_iter().filter(|table| table.with_def(|def| dynamic_time_zone(def).is_some()));
        let schedule = |table| {
            let ddl = Arc::clone(self);
            async move { ddl.schedule_table(&table, now_ms).await }
        };
        // A table that waits delays no other.
        stream::iter(dynamic).map(schedule).buffer_unordered(SCHEDULED_AT_ONCE).collect::<()>().await;
    }

    async fn schedule_table(self: &Arc<Self>, table: &Arc<Table>, now_ms: i64) {
        if self.refuse_while_changing(&table.def()).is_err() {
            // When its job is done.
            return;
        }
        let turn = match tokio::time::timeout(WAIT_MAX, self.turn_of(&table.def())).await {
            Ok(Ok(turn)) => turn,
            // Next time.
            Ok(Err(_)) => return,
            Err(_) => {
                let table = table.def().table_ref();
                tracing::warn!(%table, "dynamic partitions wait for the next time: another change of the table goes on");
                return;
            }
        };
        let def = table.def();
        // It may have been dropped, or a job may have begun.
        if !self.names.has(&def.table_ref(), table) || self.refuse_while_changing(&def).is_err() {
            return;
        }
        let changed = match self.with_dynamic_partitions((*def).clone(), now_ms) {
            Ok(new) => self.give_partitions(&turn, table, new).await,
            Err(error) => Err(error),
        };
        if let Err(error) = changed {
            tracing::warn!(table = %def.table_ref(), error = error.detail_text(), "dynamic partitions are not as they should be");
            let mut tables = self.dynamic_tables.0.lock();
            tables.entry(def.id).or_default().change_error = Some(error.detail_text().to_owned());
        }
    }

    /// The tables of a database that have dynamic partitions.
    ///
    /// # Errors
    /// No privilege, or no such database.
    pub(crate) fn show_dynamic_tables(&self, principal: &Principal, db: &str) -> Result<Grid, SqlError> {
        self.gate.database(principal, Privilege::Show, db)?;
        let mut grid = Grid::new(&COLUMNS);
        let mut defs: Vec<_> = self.names.all_tables().iter().map(|table| table.def()).collect();
        defs.retain(|def| {
            let object = Object::Table { db, table: &def.name };
            def.db == db && self.gate.check(principal, Privilege::Show, object).is_ok()
        });
        defs.sort_by(|a, b| a.name.cmp(&b.name));
        for def in defs {
            let looked = self.dynamic_tables.0.lock().get(&def.id).cloned().unwrap_or_default();
            if let Some(row) = row(&def, looked) {
                grid.push(row);
            }
        }
        Ok(grid)
    }
}

fn row(def: &TableDef, looked: Looked) -> Option<Vec<Cell>> {
    let facts = dynamic_facts(def)?;
    let time = |at_ms: Option<i64>| at_ms.filter(|at| *at > 0).map_or_else(|| NOTHING.to_owned(), date_time);
    let text = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_owned());
    let replicas = facts.replication.rsplit(':').next().unwrap_or_default().trim().to_owned();
    let is_well = looked.create_error.is_none() && looked.change_error.is_none();
    Some(vec![
        def.name.clone().into(),
        facts.is_enabled.to_string().into(),
        facts.unit.into(),
        facts.start.into(),
        facts.end.into(),
        facts.prefix.into(),
        facts.buckets.into(),
        replicas.into(),
        facts.replication.into(),
        facts.start_of.into(),
        time(looked.changed_ms).into(),
        time(Some(looked.at_ms)).into(),
        if is_well { "NORMAL" } else { "ERROR" }.into(),
        text(looked.create_error).into(),
        text(looked.change_error).into(),
        facts.reserved.into(),
    ])
}

#[cfg(test)]
mod tests {
    use crate::access::interrupt::Interrupt;
    use crate::testing::TestEngine;

    const DAY_MS: i64 = 86_400_000;

    #[tokio::test(flavor = "multi_thread")]
    async fn partitions_come_and_go_with_the_clock() {
        let test = TestEngine::open(|_| ()).await;
        let engine = &test.engine;
        let sql = r#"CREATE TABLE d.days (id INT, day DATE) DUPLICATE KEY(id) PARTITION BY RANGE(day) () DISTRIBUTED BY HASH(id)
            PROPERTIES ("dynamic_partition.time_unit" = "DAY", "dynamic_partition.start" = "-2", "dynamic_partition.end" = "1",
            "dynamic_partition.prefix" = "p")"#;
        let tributary_sql::Statement::CreateTable(create) = tributary_sql::parse(sql).unwrap() else {
            panic!()
        };
        {
            engine.ddl.create_database(Interrupt::NEVER, "d", true).await.unwrap();
            let name = create.table.resolve(None).unwrap();
            engine.ddl.create_table(Interrupt::NEVER, &create, &name).await.unwrap();
        }
        let table = engine.gate.table_called("d", "days").unwrap();
        let names = || -> Vec<String> {
            let def = table.def();
            def.partitioning.partitions().unwrap().list.iter().map(|one| one.name.clone()).collect()
        };
        assert_eq!(names().len(), 2, "at creation");
        // 2100-01-01: all of today's are old.
        let far = 4_102_444_800_000;
        engine.ddl.schedule_partitions(far).await;
        assert_eq!(names(), ["p21000101", "p21000102"]);
        engine.ddl.schedule_partitions(far + DAY_MS).await;
        assert_eq!(names(), ["p21000101", "p21000102", "p21000103"]);
        engine.ddl.schedule_partitions(far + 4 * DAY_MS).await;
        assert_eq!(names(), ["p21000103", "p21000105", "p21000106"]);
        engine.ddl.schedule_partitions(far + 4 * DAY_MS + 5).await;
        let looked = engine.ddl.dynamic_tables.0.lock()[&table.id()].clone();
        assert_eq!(looked.changed_ms, Some(far + 4 * DAY_MS));
        assert_eq!(looked.at_ms, far + 4 * DAY_MS + 5);
    }
}
