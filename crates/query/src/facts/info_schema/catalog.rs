//! The tables of `information_schema`, their columns and rows.
//!
//! Many are always empty; tools ask for them and expect that they exist.

use super::columns::{
    character_length, column_size, column_type, numeric_precision, numeric_scale, type_name,
};
use super::{privileges, views};
use crate::facts::show::facts;
use crate::model::SessionView;
use crate::model::{Cell, Grid};
use crate::namespace::{JobKind, LiveTable, Namespace};
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_table::{PartitionFacts, Table};
use tributary_types::system::{INFORMATION_SCHEMA, SYSTEM_DATABASES};
use tributary_types::{ColumnDef, DataType, DefaultValue, TableDef};

/// The name of the only catalog.
pub(super) const CATALOG: &str = "internal";
pub(super) const COLLATION: &str = "utf8mb4_0900_bin";

/// The columns of SHOW LOAD, and the database.
const LOAD_JOBS: &str = "JOB_ID LABEL STATE PROGRESS TYPE ETL_INFO TASK_INFO ERROR_MSG CREATE_TIME ETL_START_TIME ETL_FINISH_TIME LOAD_START_TIME LOAD_FINISH_TIME URL JOB_DETAILS TRANSACTION_ID ERROR_TABLETS USER COMMENT FIRST_ERROR_MSG DB_NAME";

/// Tables and their columns; `#` marks whole numbers.
pub(super) const TABLES: [(&str, &str); 61] = [
    (
        "tables",
        "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME TABLE_TYPE ENGINE VERSION# ROW_FORMAT TABLE_ROWS# AVG_ROW_LENGTH# DATA_LENGTH# MAX_DATA_LENGTH# INDEX_LENGTH# DATA_FREE# AUTO_INCREMENT# CREATE_TIME UPDATE_TIME CHECK_TIME TABLE_COLLATION CHECKSUM# CREATE_OPTIONS TABLE_COMMENT",
    ),
    (
        "columns",
        "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION# COLUMN_DEFAULT IS_NULLABLE DATA_TYPE CHARACTER_MAXIMUM_LENGTH# CHARACTER_OCTET_LENGTH# NUMERIC_PRECISION# NUMERIC_SCALE# DATETIME_PRECISION# CHARACTER_SET_NAME COLLATION_NAME COLUMN_TYPE COLUMN_KEY EXTRA PRIVILEGES COLUMN_COMMENT COLUMN_SIZE# DECIMAL_DIGITS# GENERATION_EXPRESSION SRS_ID#",
    ),
    (
        "schemata",
        "CATALOG_NAME SCHEMA_NAME DEFAULT_CHARACTER_SET_NAME DEFAULT_COLLATION_NAME SQL_PATH DEFAULT_ENCRYPTION",
    ),
    (
        "statistics",
        "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME NON_UNIQUE# INDEX_SCHEMA INDEX_NAME SEQ_IN_INDEX# COLUMN_NAME COLLATION CARDINALITY# SUB_PART# PACKED NULLABLE INDEX_TYPE COMMENT INDEX_COMMENT IS_VISIBLE EXPRESSION",
    ),
    (
        "table_constraints",
        "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME TABLE_SCHEMA TABLE_NAME CONSTRAINT_TYPE",
    ),
    (
        "key_column_usage",
        "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME TABLE_CATALOG TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION# POSITION_IN_UNIQUE_CONSTRAINT# REFERENCED_TABLE_SCHEMA REFERENCED_TABLE_NAME REFERENCED_COLUMN_NAME",
    ),
    (
        "referential_constraints",
        "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME UNIQUE_CONSTRAINT_CATALOG UNIQUE_CONSTRAINT_SCHEMA UNIQUE_CONSTRAINT_NAME MATCH_OPTION UPDATE_RULE DELETE_RULE TABLE_NAME REFERENCED_TABLE_NAME",
    ),
    (
        "views",
        "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME VIEW_DEFINITION CHECK_OPTION IS_UPDATABLE DEFINER SECURITY_TYPE CHARACTER_SET_CLIENT COLLATION_CONNECTION",
    ),
    (
        "routines",
        "SPECIFIC_NAME ROUTINE_CATALOG ROUTINE_SCHEMA ROUTINE_NAME ROUTINE_TYPE DTD_IDENTIFIER ROUTINE_BODY ROUTINE_DEFINITION EXTERNAL_NAME EXTERNAL_LANGUAGE PARAMETER_STYLE IS_DETERMINISTIC SQL_DATA_ACCESS SQL_PATH SECURITY_TYPE CREATED LAST_ALTERED SQL_MODE ROUTINE_COMMENT DEFINER CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION",
    ),
    (
        "parameters",
        "SPECIFIC_CATALOG SPECIFIC_SCHEMA SPECIFIC_NAME ORDINAL_POSITION# PARAMETER_MODE PARAMETER_NAME DATA_TYPE CHARACTER_MAXIMUM_LENGTH# CHARACTER_OCTET_LENGTH# NUMERIC_PRECISION# NUMERIC_SCALE# DATETIME_PRECISION# CHARACTER_SET_NAME COLLATION_NAME DTD_IDENTIFIER ROUTINE_TYPE",
    ),
    (
        "triggers",
        "TRIGGER_CATALOG TRIGGER_SCHEMA TRIGGER_NAME EVENT_MANIPULATION EVENT_OBJECT_CATALOG EVENT_OBJECT_SCHEMA EVENT_OBJECT_TABLE ACTION_ORDER# ACTION_CONDITION ACTION_STATEMENT ACTION_ORIENTATION ACTION_TIMING ACTION_REFERENCE_OLD_TABLE ACTION_REFERENCE_NEW_TABLE ACTION_REFERENCE_OLD_ROW ACTION_REFERENCE_NEW_ROW CREATED SQL_MODE DEFINER CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION",
    ),
    (
        "events",
        "EVENT_CATALOG EVENT_SCHEMA EVENT_NAME DEFINER TIME_ZONE EVENT_BODY EVENT_DEFINITION EVENT_TYPE EXECUTE_AT INTERVAL_VALUE INTERVAL_FIELD SQL_MODE STARTS ENDS STATUS ON_COMPLETION CREATED LAST_ALTERED LAST_EXECUTED EVENT_COMMENT ORIGINATOR# CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION",
    ),
    (
        "partitions",
        "PARTITION_ID# TABLE_CATALOG TABLE_SCHEMA TABLE_NAME PARTITION_NAME SUBPARTITION_NAME PARTITION_ORDINAL_POSITION# SUBPARTITION_ORDINAL_POSITION# PARTITION_METHOD SUBPARTITION_METHOD PARTITION_EXPRESSION SUBPARTITION_EXPRESSION PARTITION_DESCRIPTION TABLE_ROWS# AVG_ROW_LENGTH# DATA_LENGTH# MAX_DATA_LENGTH# INDEX_LENGTH# DATA_FREE# CREATE_TIME UPDATE_TIME CHECK_TIME CHECKSUM# PARTITION_COMMENT NODEGROUP TABLESPACE_NAME LOCAL_DATA_SIZE REMOTE_DATA_SIZE STATE REPLICA_ALLOCATION REPLICA_NUM# STORAGE_POLICY STORAGE_MEDIUM COOLDOWN_TIME_MS LAST_CONSISTENCY_CHECK_TIME BUCKET_NUM# COMMITTED_VERSION# VISIBLE_VERSION# PARTITION_KEY RANGE DISTRIBUTION",
    ),
    (
        "files",
        "FILE_ID# FILE_NAME FILE_TYPE TABLESPACE_NAME TABLE_CATALOG TABLE_SCHEMA TABLE_NAME LOGFILE_GROUP_NAME LOGFILE_GROUP_NUMBER# ENGINE FULLTEXT_KEYS DELETED_ROWS# UPDATE_COUNT# FREE_EXTENTS# TOTAL_EXTENTS# EXTENT_SIZE# INITIAL_SIZE# MAXIMUM_SIZE# AUTOEXTEND_SIZE# CREATION_TIME LAST_UPDATE_TIME LAST_ACCESS_TIME RECOVER_TIME# TRANSACTION_COUNTER# VERSION# ROW_FORMAT TABLE_ROWS# AVG_ROW_LENGTH# DATA_LENGTH# MAX_DATA_LENGTH# INDEX_LENGTH# DATA_FREE# CREATE_TIME UPDATE_TIME CHECK_TIME CHECKSUM# STATUS EXTRA",
    ),
    ("check_constraints", "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME CHECK_CLAUSE"),
    (
        "innodb_trx",
        "TRX_ID TRX_STATE TRX_STARTED TRX_REQUESTED_LOCK_ID TRX_WAIT_STARTED TRX_WEIGHT# TRX_MYSQL_THREAD_ID# TRX_QUERY TRX_OPERATION_STATE TRX_TABLES_IN_USE# TRX_TABLES_LOCKED# TRX_ROWS_LOCKED# TRX_ROWS_MODIFIED# TRX_ISOLATION_LEVEL",
    ),
    (
        "innodb_metrics",
        "NAME SUBSYSTEM COUNT# MAX_COUNT# MIN_COUNT# AVG_COUNT# COUNT_RESET# MAX_COUNT_RESET# MIN_COUNT_RESET# AVG_COUNT_RESET# TIME_ENABLED TIME_DISABLED TIME_ELAPSED# TIME_RESET STATUS TYPE COMMENT",
    ),
    (
        "innodb_cmp",
        "PAGE_SIZE# COMPRESS_OPS# COMPRESS_OPS_OK# COMPRESS_TIME# UNCOMPRESS_OPS# UNCOMPRESS_TIME#",
    ),
    (
        "innodb_cmpmem",
        "PAGE_SIZE# BUFFER_POOL_INSTANCE# PAGES_USED# PAGES_FREE# RELOCATION_OPS# RELOCATION_TIME#",
    ),
    (
        "plugins",
        "PLUGIN_NAME PLUGIN_VERSION PLUGIN_STATUS PLUGIN_TYPE PLUGIN_TYPE_VERSION PLUGIN_LIBRARY PLUGIN_LIBRARY_VERSION PLUGIN_AUTHOR PLUGIN_DESCRIPTION PLUGIN_LICENSE LOAD_OPTION",
    ),
    ("engines", "ENGINE SUPPORT COMMENT TRANSACTIONS XA SAVEPOINTS"),
    ("character_sets", "CHARACTER_SET_NAME DEFAULT_COLLATE_NAME DESCRIPTION MAXLEN#"),
    ("collations", "COLLATION_NAME CHARACTER_SET_NAME ID# IS_DEFAULT IS_COMPILED SORTLEN#"),
    ("column_statistics", "SCHEMA_NAME TABLE_NAME COLUMN_NAME HISTOGRAM"),
    (
        "column_privileges",
        "GRANTEE TABLE_CATALOG TABLE_SCHEMA TABLE_NAME COLUMN_NAME PRIVILEGE_TYPE IS_GRANTABLE",
    ),
    ("table_privileges", "GRANTEE TABLE_CATALOG TABLE_SCHEMA TABLE_NAME PRIVILEGE_TYPE IS_GRANTABLE"),
    ("schema_privileges", "GRANTEE TABLE_CATALOG TABLE_SCHEMA PRIVILEGE_TYPE IS_GRANTABLE"),
    ("user_privileges", "GRANTEE TABLE_CATALOG PRIVILEGE_TYPE IS_GRANTABLE"),
    ("session_variables", "VARIABLE_NAME VARIABLE_VALUE DEFAULT_VALUE CHANGED"),
    ("global_variables", "VARIABLE_NAME VARIABLE_VALUE DEFAULT_VALUE CHANGED"),
    (
        "processlist",
        "CURRENT_CONNECTED ID# USER HOST LOGIN_TIME CATALOG DB COMMAND TIME# STATE QUERY_ID INFO FE",
    ),
    ("profiling", "QUERY_ID# SEQ# STATE DURATION CPU_USER CPU_SYSTEM"),
    ("keywords", "WORD RESERVED#"),
    (
        "rowsets",
        "BACKEND_ID# ROWSET_ID TABLET_ID# ROWSET_NUM_ROWS# TXN_ID# NUM_SEGMENTS# START_VERSION# END_VERSION# INDEX_DISK_SIZE# DATA_DISK_SIZE# CREATION_TIME NEWEST_WRITE_TIMESTAMP",
    ),
    ("metadata_name_ids", "CATALOG_ID# CATALOG_NAME DATABASE_ID# DATABASE_NAME TABLE_ID# TABLE_NAME"),
    (
        "active_queries",
        "QUERY_ID QUERY_START_TIME QUERY_TIME_MS# WORKLOAD_GROUP_ID# DATABASE FRONTEND_INSTANCE QUEUE_START_TIME QUEUE_END_TIME QUERY_STATUS USER_NAME SQL",
    ),
    (
        "backend_active_tasks",
        "BE_ID# FE_HOST WORKLOAD_GROUP_ID# QUERY_ID TASK_TIME_MS# TASK_CPU_TIME_MS# SCAN_ROWS# SCAN_BYTES# BE_PEAK_MEMORY_BYTES# CURRENT_USED_MEMORY_BYTES# SHUFFLE_SEND_BYTES# SHUFFLE_SEND_ROWS# QUERY_TYPE",
    ),
    ("workload_groups", "ID# NAME"),
    (
        "table_options",
        "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME TABLE_MODEL TABLE_MODEL_KEY DISTRIBUTE_KEY DISTRIBUTE_TYPE BUCKETS_NUM# PARTITION_NUM#",
    ),
    ("loads", LOAD_JOBS),
    ("load_jobs", LOAD_JOBS),
    (
        "routine_load_jobs",
        "JOB_ID JOB_NAME CREATE_TIME PAUSE_TIME END_TIME DB_NAME TABLE_NAME STATE CURRENT_TASK_NUM JOB_PROPERTIES DATA_SOURCE_PROPERTIES CUSTOM_PROPERTIES STATISTIC PROGRESS LAG REASON_OF_STATE_CHANGED ERROR_LOG_URLS USER_NAME CURRENT_ABORT_TASK_NUM# IS_ABNORMAL_PAUSE",
    ),
    (
        "load_channels",
        "TABLE_SCHEMA TABLE_NAME CHANNEL NEXT_OFFSET# LAST_OFFSET# TXN_ID# LABEL LOADED_ROWS# FILTERED_ROWS# LOADED_AT",
    ),
    ("load_keys", "RUNNING# RECENT# STORED# FILES# MEMORY_BYTES# KEYS_MAX# KEEP_SECONDS#"),
    (
        "group_commit_queues",
        "TABLE_SCHEMA TABLE_NAME STATE OPEN_TXN_ID# OPEN_LABEL OPEN_AGE_MS# CLOSES_IN_MS# OPEN_LOADS# WAITING_LOADS# OPEN_ROWS# OPEN_BYTES# CLOSED_GROUPS# CLOSED_ROWS# COMMITS_IN_FLIGHT# MEMORY_BYTES# LAST_CLOSED_BY",
    ),
    (
        "group_commits",
        "TABLE_SCHEMA TABLE_NAME TXN_ID# LABEL STATUS VERSION# CLOSED_BY LOADS# WAITING_LOADS# LOADED_ROWS# LOADED_BYTES# OPENED_AT FINISHED_AT OPEN_US# BUILD_US# LOG_US# PUBLISH_US# ERROR",
    ),
    (
        "prepared_loads",
        "TABLE_SCHEMA TABLE_NAME TXN_ID# LABEL CLIENT PREPARED_AT AGE_SECONDS# EXPIRES_AT LOADED_ROWS# LOADED_BYTES# MEMORY_BYTES#",
    ),
    (
        "transactions",
        "TABLE_SCHEMA TABLE_NAME TXN_ID# LABEL STATUS SOURCE_TYPE PREPARED_AT PRECOMMITTED_AT FINISHED_AT LOADS# LOADED_ROWS# LOADED_BYTES# VERSION# DELTA_VERSION# REASON",
    ),
    (
        "rejected_rows",
        "TABLE_SCHEMA TABLE_NAME TIME TXN_ID# LABEL LOAD_ID# SOURCE REJECT_ID# ROW_NUMBER# COLUMN_NAME CODE REASON RAW_ROW REPLAYED_BY_TXN_ID# FILTERED_ROWS#",
    ),
    (
        "wal",
        "DIRECTORY SEGMENTS# SPARE_SEGMENTS# FILE_BYTES# LIVE_BYTES# PENDING_BYTES# AVAILABLE_BYTES# START_LSN# END_LSN# FSYNCS# FRAMES# ENTRIES# WRITTEN_BYTES# TABLES# WAITING_LOADS# HELD_BY_SCHEMA HELD_BY_TABLE HELD_BY_TXN_ID# HELD_BYTES# HELD_FOR",
    ),
    ("problems", "CODE SEVERITY TABLE_SCHEMA TABLE_NAME SUBJECT SINCE PROBLEM CAUSE WAY_OUT"),
    (
        "server_samples",
        "SAMPLED_AT EVERY_SECONDS# LOADED_ROWS_PER_SECOND# LOGGED_BYTES_PER_SECOND# LOADS_PER_SECOND# GROUPS_PER_SECOND# REJECTED_ROWS_PER_SECOND# SYNCS_PER_SECOND# LOAD_MEMORY_BYTES# WAL_LIVE_BYTES# RESIDENT_BYTES# WAITING_LOADS# CONNECTIONS# RUNNING_STATEMENTS#",
    ),
    ("server_events", "TIME KIND USER CLIENT TEXT"),
    (
        "nodes",
        "NAME ROLE HOST QUERY_PORT# HTTP_PORT# FLIGHT_PORT# VERSION SINCE HEARD_MS# ROWS_AGE_MS# ALIVE HEARD_AT COMPUTES_PARTS",
    ),
    ("followed_tables", "TABLE_SCHEMA TABLE_NAME DELTA_VERSION# AGE_MS# ERROR"),
    ("file_cache_statistics", "BE_ID# BE_IP CACHE_PATH METRIC_NAME METRIC_VALUE#"),
    ("server_memory", "OWNER BYTES# LIMIT_BYTES# SETTING"),
    (
        "table_work",
        "TABLE_SCHEMA TABLE_NAME KIND STATE BEGIN_TIME TIME_US# ROWS# BYTES# FILES# REPLACED_FILES# DELTA_VERSION# ERROR",
    ),
    ("jobs", "JOB_ID# KIND TABLE_SCHEMA TABLE_NAME NAME STATE PROGRESS CREATE_TIME END_TIME USER ERROR"),
    ("server_settings", "NAME VALUE DEFAULT_VALUE ORIGIN ACCEPTS MEANING TYPE IS_MUTABLE"),
    ("table_properties", "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME PROPERTY_NAME PROPERTY_VALUE"),
];

/// Adds the rows of the table called `name`.
pub(super) fn fill(name: &str, grid: &mut Grid, namespace: &dyn Namespace, session: &SessionView) {
    match name {
        "tables" => tables(grid, namespace),
        "columns" => columns(grid, namespace, shows_keys(session)),
        "statistics" if shows_keys(session) => statistics(grid, namespace),
        "table_constraints" if shows_keys(session) => keys(grid, namespace, constraint_row),
        "key_column_usage" if shows_keys(session) => keys(grid, namespace, usage_row),
        "schemata" => schemata(grid, namespace),
        "partitions" => partitions(grid, namespace),
        "views" => views::views(grid, namespace),
        "metadata_name_ids" => name_ids(grid, namespace),
        "table_properties" => properties(grid, namespace),
        "table_options" => options(grid, namespace),
        "engines" => facts::engines().into_iter().for_each(|row| grid.push(row)),
        "character_sets" => facts::character_sets().into_iter().for_each(|row| grid.push(row)),
        "collations" => facts::collations().into_iter().for_each(|row| grid.push(row)),
        "processlist" => facts::processes(namespace, session).into_iter().for_each(|row| grid.push(row)),
        "loads" | "load_jobs" => namespace.jobs(JobKind::Load).into_iter().for_each(|row| grid.push(row)),
        "routine_load_jobs" => namespace.jobs(JobKind::Routine).into_iter().for_each(|row| grid.push(row)),
        "load_channels" => namespace.live(LiveTable::Channels).into_iter().for_each(|row| grid.push(row)),
        "load_keys" => namespace.live(LiveTable::Keys).into_iter().for_each(|row| grid.push(row)),
        "group_commit_queues" => {
            namespace.live(LiveTable::GroupQueues).into_iter().for_each(|row| grid.push(row));
        }
        "group_commits" => {
            namespace.live(LiveTable::FinishedGroups).into_iter().for_each(|row| grid.push(row));
        }
        "prepared_loads" => {
            namespace.live(LiveTable::PreparedLoads).into_iter().for_each(|row| grid.push(row));
        }
        "transactions" => {
            namespace.live(LiveTable::Transactions).into_iter().for_each(|row| grid.push(row));
        }
        "rejected_rows" => {
            namespace.live(LiveTable::RejectedRows).into_iter().for_each(|row| grid.push(row));
        }
        "problems" => namespace.live(LiveTable::Problems).into_iter().for_each(|row| grid.push(row)),
        "nodes" => namespace.live(LiveTable::Nodes).into_iter().for_each(|row| grid.push(row)),
        "server_memory" => namespace.live(LiveTable::Memory).into_iter().for_each(|row| grid.push(row)),
        "table_work" => namespace.live(LiveTable::TableWork).into_iter().for_each(|row| grid.push(row)),
        "jobs" => namespace.jobs(JobKind::Every).into_iter().for_each(|row| grid.push(row)),
        "server_events" => namespace.live(LiveTable::Events).into_iter().for_each(|row| grid.push(row)),
        "server_settings" => namespace.live(LiveTable::Settings).into_iter().for_each(|row| grid.push(row)),
        "followed_tables" => {
            namespace.live(LiveTable::FollowedTables).into_iter().for_each(|row| grid.push(row));
        }
        "file_cache_statistics" => {
            namespace.live(LiveTable::FileCache).into_iter().for_each(|row| grid.push(row));
        }
        "server_samples" => namespace.live(LiveTable::Samples).into_iter().for_each(|row| grid.push(row)),
        "wal" => namespace.live(LiveTable::Logs).into_iter().for_each(|row| grid.push(row)),
        "user_privileges" | "schema_privileges" | "table_privileges" | "column_privileges" => {
            privileges::fill(name, grid, namespace);
        }
        "session_variables" => {
            let own = session.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            variables(grid, own, namespace);
        }
        "global_variables" => variables(grid, namespace.global_variables(), namespace),
        _ => {}
    }
}

fn all_tables(namespace: &dyn Namespace) -> Vec<Arc<Table>> {
    namespace.databases().iter().flat_map(|database| namespace.tables(database)).collect()
}

/// Parts that many tables of MySQL have and that are never known here.
pub(super) fn nulls(count: usize) -> Vec<Cell> {
    vec![Cell::Null; count]
}

fn tables(grid: &mut Grid, namespace: &dyn Namespace) {
    for table in all_tables(namespace) {
        let snapshot = table.snapshot();
        let def = &snapshot.def;
        let (rows, bytes) = (snapshot.rows(), facts::table_bytes(&snapshot));
        let mut row: Vec<Cell> = vec![
            CATALOG.into(),
            def.db.as_str().into(),
            def.name.as_str().into(),
            "BASE TABLE".into(),
            "Doris".into(),
            Cell::Null,
            Cell::Null,
            rows.into(),
            bytes.checked_div(rows).unwrap_or(0).into(),
            bytes.into(),
        ];
        row.extend(nulls(7));
        row.extend([COLLATION.into(), Cell::Null, Cell::Null, facts::comment(&table).into()]);
        grid.push(row);
    }
    views::tables(grid, namespace);
    for name in super::names(INFORMATION_SCHEMA) {
        let mut row: Vec<Cell> = vec![
            CATALOG.into(),
            INFORMATION_SCHEMA.into(),
            name.into(),
            "SYSTEM VIEW".into(),
            "MEMORY".into(),
        ];
        row.extend(nulls(2));
        row.extend([Cell::Int(0), Cell::Int(0), Cell::Int(0)]);
        row.extend(nulls(7));
        row.extend([COLLATION.into(), Cell::Null, Cell::Null, "".into()]);
        grid.push(row);
    }
}

/// Whether the user may read a column; `None`: every one.
pub(crate) fn is_readable(columns: Option<&BTreeSet<String>>, column: &ColumnDef) -> bool {
    columns.is_none_or(|columns| columns.contains(&column.name.to_lowercase()))
}

/// Whether keys are shown as MySQL shows primary keys.
#[must_use]
pub(crate) fn shows_keys(session: &SessionView) -> bool {
    session.variables.get("mysql_ddl").is_some_and(|value| value == "compat")
}

/// The row for a key column, by its place in the key.
type KeyRow = fn(&TableDef, &ColumnDef, i64) -> Option<Vec<Cell>>;

/// Adds what `row` makes of each column of a unique key, with its place in it; `None`: only of the first.
fn keys(grid: &mut Grid, namespace: &dyn Namespace, row: KeyRow) {
    for table in all_tables(namespace) {
        let def = table.def();
        if !def.keys.is_unique() {
            continue;
        }
        for (place, column) in (1..).zip(def.schema.columns.iter().filter(|column| column.is_key)) {
            if let Some(row) = row(&def, column, place) {
                grid.push(row);
            }
        }
    }
}

/// Adds the columns of unique keys and of indexes.
fn statistics(grid: &mut Grid, namespace: &dyn Namespace) {
    for table in all_tables(namespace) {
        let def = table.def();
        let key = def.schema.columns.iter().filter(|column| column.is_key && def.keys.is_unique());
        for (place, column) in (1..).zip(key) {
            grid.push(statistics_row(&def, None, column, place));
        }
        for index in &def.indexes {
            for (place, id) in (1..).zip(&index.columns) {
                if let Some(column) = def.schema.columns.iter().find(|column| column.id == *id) {
                    grid.push(statistics_row(&def, Some(&index.name), column, place));
                }
            }
        }
    }
}

/// A column of an index, or of the key.
fn statistics_row(def: &TableDef, index: Option<&str>, column: &ColumnDef, place: i64) -> Vec<Cell> {
    vec![
        CATALOG.into(),
        def.db.as_str().into(),
        def.name.as_str().into(),
        Cell::Int(i64::from(index.is_some())),
        def.db.as_str().into(),
        index.unwrap_or("PRIMARY").into(),
        Cell::Int(place),
        column.name.as_str().into(),
        "A".into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        if index.is_some() && column.nullable { "YES" } else { "" }.into(),
        "BTREE".into(),
        "".into(),
        "".into(),
        "YES".into(),
        Cell::Null,
    ]
}

fn constraint_row(def: &TableDef, _column: &ColumnDef, place: i64) -> Option<Vec<Cell>> {
    (place == 1).then(|| {
        vec![
            CATALOG.into(),
            def.db.as_str().into(),
            "PRIMARY".into(),
            def.db.as_str().into(),
            def.name.as_str().into(),
            "PRIMARY KEY".into(),
        ]
    })
}

fn usage_row(def: &TableDef, column: &ColumnDef, place: i64) -> Option<Vec<Cell>> {
    let mut row: Vec<Cell> = vec![
        CATALOG.into(),
        def.db.as_str().into(),
        "PRIMARY".into(),
        CATALOG.into(),
        def.db.as_str().into(),
        def.name.as_str().into(),
        column.name.as_str().into(),
        Cell::Int(place),
    ];
    row.extend(nulls(4));
    Some(row)
}

fn columns(grid: &mut Grid, namespace: &dyn Namespace, shows_keys: bool) {
    for table in all_tables(namespace) {
        let def = table.def();
        let readable = namespace.readable_columns(&def.db, &def.name);
        let is_shown = |column: &ColumnDef| is_readable(readable.as_deref(), column);
        for (index, column) in def.schema.visible().filter(|column| is_shown(column)).enumerate() {
            let key = match column.is_key {
                true if def.keys.is_unique() && shows_keys => "PRI",
                true if def.keys.is_unique() => "UNI",
                true if shows_keys => "",
                true if def.keys.is_aggregate() => "AGG",
                true => "DUP",
                false => "",
            };
            grid.push(column_row((&def.db, &def.name), column, (key, shows_keys), index as i64 + 1));
        }
    }
    views::columns(grid, namespace, shows_keys);
    for (name, columns) in TABLES {
        for (index, column) in columns.split_whitespace().enumerate() {
            grid.push(system_column_row(name, column, index as i64 + 1));
        }
    }
}

/// A column's default as text, as DESC shows it.
#[must_use]
pub(crate) fn default_text(column: &ColumnDef) -> Option<String> {
    match column.default.as_ref()? {
        DefaultValue::Null => None,
        DefaultValue::Literal(text) => Some(text.clone()),
        DefaultValue::CurrentTimestamp { scale: 0 } => Some("CURRENT_TIMESTAMP".to_owned()),
        DefaultValue::CurrentTimestamp { scale } => Some(format!("CURRENT_TIMESTAMP({scale})")),
        DefaultValue::CurrentDate => Some("CURRENT_DATE".to_owned()),
    }
}

pub(super) fn column_row(
    (db, table): (&str, &str),
    column: &ColumnDef,
    (key, like_mysql): (&str, bool),
    position: i64,
) -> Vec<Cell> {
    let data_type = column.data_type;
    let text = data_type.is_text();
    let scale = match data_type {
        DataType::DateTime { scale } | DataType::Time { scale } => Some(i64::from(scale)),
        _ => None,
    };
    vec![
        CATALOG.into(),
        db.into(),
        table.into(),
        column.name.as_str().into(),
        position.into(),
        default_text(column).into(),
        if column.nullable { "YES" } else { "NO" }.into(),
        type_name(data_type, like_mysql).into(),
        character_length(data_type).into(),
        character_length(data_type).into(),
        numeric_precision(data_type).into(),
        numeric_scale(data_type).into(),
        scale.into(),
        text.then_some("utf8mb4").into(),
        text.then_some(COLLATION).into(),
        column_type(data_type, like_mysql).into(),
        key.into(),
        match (&column.auto_increment, &column.generated) {
            (Some(_), _) if like_mysql => "auto_increment",
            (Some(_), _) => "AUTO_INCREMENT",
            (None, Some(_)) => "STORED GENERATED",
            (None, None) => "",
        }
        .into(),
        "select,insert,update,references".into(),
        column.comment.as_str().into(),
        column_size(data_type).into(),
        numeric_scale(data_type).into(),
        column.generated.as_ref().map(|generated| generated.expr.as_str()).into(),
        Cell::Null,
    ]
}

fn system_column_row(table: &str, column: &str, position: i64) -> Vec<Cell> {
    let (name, data_type) = match column.strip_suffix('#') {
        Some(name) => (name, "bigint"),
        None => (column, "varchar"),
    };
    let mut row: Vec<Cell> = vec![
        CATALOG.into(),
        INFORMATION_SCHEMA.into(),
        table.into(),
        name.into(),
        position.into(),
        Cell::Null,
        "YES".into(),
        data_type.into(),
    ];
    row.extend(nulls(7));
    row.extend([data_type.into(), "".into(), "".into(), "select".into(), "".into()]);
    row.extend(nulls(4));
    row
}

fn schemata(grid: &mut Grid, namespace: &dyn Namespace) {
    let mut names = namespace.databases();
    names.extend(SYSTEM_DATABASES.map(str::to_owned));
    names.sort_unstable();
    for name in names {
        grid.push(vec![
            CATALOG.into(),
            name.into(),
            "utf8mb4".into(),
            COLLATION.into(),
            Cell::Null,
            "NO".into(),
        ]);
    }
}

fn partitions(grid: &mut Grid, namespace: &dyn Namespace) {
    for table in all_tables(namespace) {
        let snapshot = table.snapshot();
        let def = &snapshot.def;
        let method = def.partitioning.partitions().map(|partitions| partitions.method.name());
        for (partition, ordinal) in facts::partitions(&snapshot).into_iter().zip(1..) {
            let PartitionFacts { rows, bytes, version } = partition.facts;
            let version = version.0 + 1;
            let mut row: Vec<Cell> = vec![
                partition.id.into(),
                CATALOG.into(),
                def.db.as_str().into(),
                def.name.as_str().into(),
                partition.name.into(),
                Cell::Null,
                Cell::Int(ordinal),
                Cell::Null,
                method.unwrap_or("UNPARTITIONED").into(),
            ];
            row.extend(nulls(4));
            row.extend([rows.into(), bytes.checked_div(rows).unwrap_or(0).into(), bytes.into()]);
            row.extend(nulls(10));
            row.extend([
                facts::size_text(bytes).into(),
                facts::size_text(0).into(),
                "NORMAL".into(),
                "tag.location.default: 1".into(),
                Cell::Int(1),
                "".into(),
                "HDD".into(),
                Cell::Null,
                Cell::Null,
                facts::bucket_count(def).into(),
                version.into(),
                version.into(),
                partition.key.into(),
                partition.range.into(),
                facts::distribution_key(def).into(),
            ]);
            grid.push(row);
        }
    }
}

fn name_ids(grid: &mut Grid, namespace: &dyn Namespace) {
    for table in all_tables(namespace) {
        let def = table.def();
        grid.push(vec![
            Cell::Int(0),
            CATALOG.into(),
            def.db_id.0.into(),
            def.db.as_str().into(),
            def.id.0.into(),
            def.name.as_str().into(),
        ]);
    }
}

fn properties(grid: &mut Grid, namespace: &dyn Namespace) {
    for table in all_tables(namespace) {
        let def = table.def();
        let own = &def.properties;
        let mut all = own.others.clone();
        all.insert("group_commit_interval_ms".to_owned(), own.group_commit_interval_ms.to_string());
        all.insert("group_commit_data_bytes".to_owned(), own.group_commit_data_bytes.to_string());
        all.insert("group_commit_mode".to_owned(), own.group_commit_mode.to_string());
        all.insert("light_schema_change".to_owned(), own.light_schema_change.to_string());
        all.insert("rejected_rows".to_owned(), own.rejected_rows.as_str().to_owned());
        for (name, limit) in [
            ("max_concurrent_loads", own.max_concurrent_loads),
            ("max_load_rows_per_second", own.max_load_rows_per_second),
            ("max_load_bytes_per_second", own.max_load_bytes_per_second),
        ] {
            all.extend(limit.map(|limit| (name.to_owned(), limit.to_string())));
        }
        for (name, value) in all {
            grid.push(vec![
                CATALOG.into(),
                def.db.as_str().into(),
                def.name.as_str().into(),
                name.into(),
                value.into(),
            ]);
        }
    }
}

fn options(grid: &mut Grid, namespace: &dyn Namespace) {
    for table in all_tables(namespace) {
        let def = table.def();
        let keys: Vec<&str> =
            def.schema.key_indices().into_iter().map(|key| def.schema.columns[key].name.as_str()).collect();
        grid.push(vec![
            CATALOG.into(),
            def.db.as_str().into(),
            def.name.as_str().into(),
            def.keys.name().into(),
            keys.join(",").into(),
            facts::distribution_key(&def).into(),
            facts::distribution_kind(&def).into(),
            facts::bucket_count(&def).into(),
            def.partitioning.partitions().map_or(1, |partitions| partitions.list.len() as u64).into(),
        ]);
    }
}

fn variables(grid: &mut Grid, all: Vec<(String, String)>, namespace: &dyn Namespace) {
    let defaults = namespace.global_variables();
    for (name, value) in all {
        let default = defaults.iter().find(|(known, _)| *known == name).map_or(&value, |(_, value)| value);
        let changed = if *default == value { "0" } else { "1" };
        grid.push(vec![name.into(), value.clone().into(), default.clone().into(), changed.into()]);
    }
}
