//! The table of the audit log: creates `__internal_schema.audit_log` and writes records to it, as asynchronous loads of groups.
//!
//! The loads are the server's own: no user's rights apply, and they end no request, so they leave no records themselves.
//!
//! Invariant: a record that is taken is in the table, or is counted as dropped.
//!
//! Not here: the contents of records.

use crate::access::interrupt::Interrupt;
use crate::access::limits::AdmittedLoad;
use crate::access::names::Names;
use crate::audit::record::Record;
use crate::ddl::Ddl;
use crate::load::{Finished, Load, LoadLabel, LoadLimits, Loads, Tally};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tributary_decode::{Block, BlockBuilder, BlockError};
use tributary_ingest::{Backlog, Body, LoadTraits, Source};
use tributary_sql::{AlterOp, Statement};
use tributary_table::Table;
use tributary_types::system::INTERNAL_SCHEMA;
use tributary_types::{ErrorCode, GroupCommitMode, SqlError, TableRef, TableSchema};

const TABLE: &str = "audit_log";
const RETENTION: &str = "partition.retention_count";
/// The columns of Doris's table whose meaning is the same, and ours.
const COLUMNS: &str = "
    `query_id` VARCHAR(48) NOT NULL,
    `time` DATETIME(3) NOT NULL,
    `client_ip` VARCHAR(128) NOT NULL,
    `user` STRING,
    `db` STRING,
    `state` VARCHAR(8),
    `error_code` INT,
    `error_message` STRING,
    `query_time` BIGINT,
    `return_rows` BIGINT,
    `stmt_type` VARCHAR(48),
    `is_query` TINYINT,
    `account` STRING,
    `protocol` VARCHAR(8),
    `door` VARCHAR(16),
    `connection_id` BIGINT,
    `table_name` STRING,
    `format` VARCHAR(16),
    `txn_id` BIGINT,
    `label` STRING,
    `affected_rows` BIGINT,
    `received_bytes` BIGINT,
    `stmt` STRING";
/// How long records gather for a load, unless they become many.
const GATHER: Duration = Duration::from_secs(1);
/// The pause after a failed load.
const RETRY: Duration = Duration::from_secs(1);
/// How long a load may wait for its group.
const LOAD_MAX: Duration = Duration::from_secs(30);

/// Writes the table.
pub(crate) struct AuditTable {
    loads: Arc<Loads>,
    ddl: Arc<Ddl>,
    names: Arc<Names>,
    /// Days whose records the table retains.
    days: u64,
    rows: Arc<Backlog<Record>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Failures in succession.
    failures: u32,
    /// The last records were written.
    is_closed: bool,
    /// The table has its retention.
    is_checked: bool,
}

impl AuditTable {
    pub fn new(
        rows: Arc<Backlog<Record>>,
        loads: Arc<Loads>,
        ddl: Arc<Ddl>,
        names: Arc<Names>,
        days: u64,
    ) -> Self {
        Self { loads, ddl, names, days, rows, state: Mutex::default() }
    }

    /// Lets records gather, writes them, and returns the pause until the next time.
    pub async fn write(&self) -> Duration {
        tokio::select! {
            () = tokio::time::sleep(GATHER) => {}
            () = self.rows.half_full() => {}
        }
        let mut state = self.state.lock().await;
        if state.is_closed || !self.is_used() {
            return Duration::ZERO;
        }
        match self.write_all(&mut state).await {
            Ok(()) => Duration::ZERO,
            Err(error) => {
                if state.failures == 1 {
                    let error = error.detail_text();
                    tracing::warn!(
                        error,
                        "records can't be written to the table of the audit log; they wait"
                    );
                }
                RETRY
            }
        }
    }

    /// Writes the last records, and counts the others as dropped.
    pub async fn close(&self) {
        let mut state = self.state.lock().await;
        if self.is_used()
            && let Err(error) = self.write_all(&mut state).await
        {
            let error = error.detail_text();
            tracing::warn!(error, "the last records are not in the table of the audit log");
        }
        self.rows.close().await;
        state.is_closed = true;
    }

    /// Whether there are, or may be, records for the table.
    fn is_used(&self) -> bool {
        self.rows.is_open() || self.rows.outstanding() > 0
    }

    async fn write_all(&self, state: &mut State) -> Result<(), SqlError> {
        state.failures += 1;
        let table = self.table(state).await?;
        while let Some(batch) = self.rows.next().await {
            match self.load(&table, batch.records()).await {
                Ok(()) => batch.stored(),
                Err(error) => {
                    batch.failed();
                    return Err(error);
                }
            }
        }
        state.failures = 0;
        Ok(())
    }

    /// The table, which is created if necessary.
    async fn table(&self, state: &mut State) -> Result<Arc<Table>, SqlError> {
        let name = TableRef { db: INTERNAL_SCHEMA.to_owned(), table: TABLE.to_owned() };
        let found = match self.names.find(&name.db, &name.table) {
            Some(found) => found,
            None => {
                self.ddl.create_internal_database().await?;
                let Statement::CreateTable(create) = tributary_sql::parse(&self.statement())? else {
                    return Err(SqlError::new(ErrorCode::Unknown, "internal error: no CREATE TABLE"));
                };
                self.ddl.create_table(Interrupt::NEVER, &create, &name).await?;
                self.names.table(&name.db, &name.table)?
            }
        };
        if !state.is_checked {
            let days = self.days.to_string();
            if found.with_def(|def| def.properties.others.get(RETENTION) != Some(&days)) {
                let set = AlterOp::SetProperties(vec![(RETENTION.to_owned(), days)]);
                self.ddl.alter_table(Interrupt::NEVER, &name, &[set]).await?;
            }
            state.is_checked = true;
        }
        Ok(found)
    }

    fn statement(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS `{INTERNAL_SCHEMA}`.`{TABLE}` ({COLUMNS})
             DUPLICATE KEY(`query_id`, `time`, `client_ip`)
             COMMENT 'requests and logins that have ended, written by the server'
             AUTO PARTITION BY RANGE (date_trunc(`time`, 'day')) ()
             DISTRIBUTED BY HASH(`query_id`) BUCKETS 1
             PROPERTIES (\"replication_num\" = \"1\", \"group_commit_interval_ms\" = \"1000\", \"{RETENTION}\" = \"{}\")",
            self.days
        )
    }

    async fn load(&self, table: &Arc<Table>, records: &[Record]) -> Result<(), SqlError> {
        let def = table.def();
        let block = block(&def.schema, records)
            .map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
        let body = Body::Known(block.len_bytes() as u64);
        let traits = LoadTraits::plain(Source::Insert, Some(GroupCommitMode::Async), body);
        let schema = Arc::clone(&def.schema);
        let admitted = AdmittedLoad::of_server();
        let mut load =
            Load::begin(&self.loads, Arc::clone(table), schema, &traits, LoadLabel::Unnamed, admitted)?;
        load.is_found_in(def.partitioning.partitions());
        load.push(&self.loads, vec![block]).await?;
        let limits = LoadLimits {
            max_filter_ratio: 0.0,
            rejected_rows: None,
            timeout: LOAD_MAX,
            interrupt: Interrupt::NEVER,
            has_details: false,
        };
        let Finished { outcome, .. } = load.finish(&self.loads, Tally::default(), limits).await;
        Ok(outcome.map(drop)?)
    }
}

/// Writes a record's value of a column, which has this place in the table.
type Write = fn(&mut BlockBuilder, usize, &Record);

const VALUES: [(&str, Write); 23] = [
    ("query_id", |rows, at, record| rows.push_text(at, &record.query_id)),
    ("time", |rows, at, record| rows.push_i64(at, record.time_ms * 1000)),
    ("client_ip", |rows, at, record| rows.push_text(at, &record.client_ip)),
    ("user", |rows, at, record| rows.push_text(at, &record.user)),
    ("db", |rows, at, record| text(rows, at, record.db.as_deref())),
    ("state", |rows, at, record| rows.push_text(at, record.state)),
    ("error_code", |rows, at, record| rows.push_i32(at, i32::from(record.error_code))),
    ("error_message", |rows, at, record| rows.push_text(at, &record.error_message)),
    ("query_time", |rows, at, record| rows.push_i64(at, whole(record.query_time))),
    ("return_rows", |rows, at, record| rows.push_i64(at, whole(record.return_rows))),
    ("stmt_type", |rows, at, record| rows.push_text(at, record.stmt_type)),
    ("is_query", |rows, at, record| rows.push_i8(at, i8::from(record.is_query))),
    ("account", |rows, at, record| text(rows, at, record.account.as_deref())),
    ("protocol", |rows, at, record| rows.push_text(at, record.protocol)),
    ("door", |rows, at, record| rows.push_text(at, record.door)),
    ("connection_id", |rows, at, record| number(rows, at, record.connection_id.map(u64::from))),
    ("table_name", |rows, at, record| text(rows, at, record.table_name.as_deref())),
    ("format", |rows, at, record| text(rows, at, record.format)),
    ("txn_id", |rows, at, record| number(rows, at, record.txn_id)),
    ("label", |rows, at, record| text(rows, at, record.label.as_deref())),
    ("affected_rows", |rows, at, record| rows.push_i64(at, whole(record.affected_rows))),
    ("received_bytes", |rows, at, record| rows.push_i64(at, whole(record.received_bytes))),
    ("stmt", |rows, at, record| rows.push_text(at, &record.stmt)),
];

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn text(rows: &mut BlockBuilder, at: usize, text: Option<&str>) {
    match text {
        Some(text) => rows.push_text(at, text),
        None => rows.push_null(at),
    }
}

fn number(rows: &mut BlockBuilder, at: usize, number: Option<u64>) {
    match number {
        Some(number) => rows.push_i64(at, whole(number)),
        None => rows.push_null(at),
    }
}

/// The records as rows of the table, whose columns are found by their names. A column of a later version has no values.
fn block(schema: &Arc<TableSchema>, records: &[Record]) -> Result<Block, BlockError> {
    let write_of = |name: &str| VALUES.iter().find(|(known, _)| *known == name).map(|(_, write)| *write);
    let writes: Vec<Write> = schema
        .columns
        .iter()
        .map(|column| write_of(&column.name).unwrap_or(|rows, at, _| rows.push_null(at)))
        .collect();
    let mut rows = BlockBuilder::new(schema);
    for record in records {
        for (at, write) in writes.iter().enumerate() {
            write(&mut rows, at, record);
        }
        rows.finish_row();
    }
    rows.finish()
}
