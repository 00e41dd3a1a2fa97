//! The table of the audit log: creates `__internal_schema.audit_log` and writes records to it, as asynchronous loads of groups.
//!
//! The loads are the server's own: no user's rights apply, and they end no request, so they leave no records themselves.
//!
//! Invariant: a record that is taken is in the table, or is counted as dropped.
//!
//! Not here: the contents of records.

use crate::access::finished::Requests;
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
use tributary_ingest::{Body, LoadTraits, Source};
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
/// Records of one load, in bytes.
const LOAD_BYTES: usize = 4 << 20;
/// The pause when nothing waits, and while there is no table.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_WITHOUT_TABLE: Duration = Duration::from_secs(1);
/// The pause after a failed load, and how often one is retried.
const RETRY: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 60;
/// How long a load may wait for its group.
const LOAD_MAX: Duration = Duration::from_secs(30);

/// Writes the table.
pub(crate) struct AuditTable {
    requests: Arc<Requests>,
    loads: Arc<Loads>,
    ddl: Arc<Ddl>,
    names: Arc<Names>,
    /// Days whose records the table retains.
    days: u64,
    pending: Mutex<Pending>,
}

/// Records that were taken and are not in the table yet.
#[derive(Default)]
struct Pending {
    records: Vec<Record>,
    attempts: u32,
    /// The last records were written.
    is_closed: bool,
    /// The table has its retention.
    is_checked: bool,
}

impl AuditTable {
    pub fn new(
        requests: Arc<Requests>,
        loads: Arc<Loads>,
        ddl: Arc<Ddl>,
        names: Arc<Names>,
        days: u64,
    ) -> Self {
        Self { requests, loads, ddl, names, days, pending: Mutex::default() }
    }

    /// Writes what waits, and returns the pause until the next time.
    pub async fn write(&self) -> Duration {
        let mut pending = self.pending.lock().await;
        if pending.is_closed || pending.records.is_empty() && !self.requests.audit.has_rows() {
            return PAUSE_WITHOUT_TABLE;
        }
        match self.write_all(&mut pending).await {
            Ok(()) => PAUSE,
            Err(error) => {
                if pending.attempts == 1 {
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

    /// Writes the last records.
    pub async fn close(&self) {
        let mut pending = self.pending.lock().await;
        let is_used = !pending.records.is_empty() || self.requests.audit.has_rows();
        if is_used && let Err(error) = self.write_all(&mut pending).await {
            let error = error.detail_text();
            tracing::warn!(error, "the last records are not in the table of the audit log");
        }
        pending.is_closed = true;
        let mut lost = pending.records.len();
        loop {
            let more = self.requests.audit.take_rows(LOAD_BYTES).len();
            lost += more;
            if more == 0 {
                break;
            }
        }
        self.requests.audit.count_rows(lost, false);
    }

    async fn write_all(&self, pending: &mut Pending) -> Result<(), SqlError> {
        pending.attempts += 1;
        let table = self.table(pending).await?;
        loop {
            if pending.records.is_empty() {
                pending.records = self.requests.audit.take_rows(LOAD_BYTES);
            }
            if pending.records.is_empty() {
                pending.attempts = 0;
                return Ok(());
            }
            let written = self.load(&table, &pending.records).await;
            if written.is_ok() || pending.attempts >= ATTEMPTS {
                self.requests.audit.count_rows(pending.records.len(), written.is_ok());
                pending.records.clear();
                pending.attempts = 1;
            }
            written?;
        }
    }

    /// The table, which is created if necessary.
    async fn table(&self, pending: &mut Pending) -> Result<Arc<Table>, SqlError> {
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
        if !pending.is_checked {
            let days = self.days.to_string();
            if found.with_def(|def| def.properties.others.get(RETENTION) != Some(&days)) {
                let set = AlterOp::SetProperties(vec![(RETENTION.to_owned(), days)]);
                self.ddl.alter_table(Interrupt::NEVER, &name, &[set]).await?;
            }
            pending.is_checked = true;
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

/// The records as rows of the table, whose columns are found by their names.
fn block(schema: &Arc<TableSchema>, records: &[Record]) -> Result<Block, BlockError> {
    let mut rows = BlockBuilder::new(schema);
    for record in records {
        for (index, column) in schema.columns.iter().enumerate() {
            push(&mut rows, index, &column.name, record);
        }
        rows.finish_row();
    }
    rows.finish()
}

fn push(rows: &mut BlockBuilder, index: usize, column: &str, record: &Record) {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let text = |rows: &mut BlockBuilder, text: Option<&str>| match text {
        Some(text) => rows.push_text(index, text),
        None => rows.push_null(index),
    };
    let number = |rows: &mut BlockBuilder, number: Option<u64>| match number {
        Some(number) => rows.push_i64(index, whole(number)),
        None => rows.push_null(index),
    };
    match column {
        "query_id" => rows.push_text(index, &record.query_id),
        "time" => rows.push_i64(index, record.time_ms * 1000),
        "client_ip" => rows.push_text(index, &record.client_ip),
        "user" => rows.push_text(index, &record.user),
        "db" => text(rows, record.db.as_deref()),
        "state" => rows.push_text(index, record.state),
        "error_code" => rows.push_i32(index, i32::from(record.error_code)),
        "error_message" => rows.push_text(index, &record.error_message),
        "query_time" => rows.push_i64(index, whole(record.query_time)),
        "return_rows" => rows.push_i64(index, whole(record.return_rows)),
        "stmt_type" => rows.push_text(index, record.stmt_type),
        "is_query" => rows.push_i8(index, i8::from(record.is_query)),
        "account" => text(rows, record.account.as_deref()),
        "protocol" => rows.push_text(index, record.protocol),
        "door" => rows.push_text(index, record.door),
        "connection_id" => number(rows, record.connection_id.map(u64::from)),
        "table_name" => text(rows, record.table_name.as_deref()),
        "format" => text(rows, record.format),
        "txn_id" => number(rows, record.txn_id),
        "label" => text(rows, record.label.as_deref()),
        "affected_rows" => rows.push_i64(index, whole(record.affected_rows)),
        "received_bytes" => rows.push_i64(index, whole(record.received_bytes)),
        "stmt" => rows.push_text(index, &record.stmt),
        // A column of a later version.
        _ => rows.push_null(index),
    }
}
