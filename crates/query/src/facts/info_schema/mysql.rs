//! The tables of the databases `mysql` and `performance_schema` that clients read.
//!
//! Most are empty: their objects do not exist here. Nobody sees more in them than in `information_schema`.

use super::privileges;
use crate::model::{Cell, Grid, SessionView};
use crate::namespace::Namespace;
use std::collections::BTreeSet;

/// The database of MySQL's grants.
pub(super) const MYSQL: [(&str, &str); 16] = [
    (
        "user",
        "Host User Select_priv Insert_priv Update_priv Delete_priv Create_priv Drop_priv Reload_priv Shutdown_priv Process_priv File_priv Grant_priv References_priv Index_priv Alter_priv Show_db_priv Super_priv Create_tmp_table_priv Lock_tables_priv Execute_priv Repl_slave_priv Repl_client_priv Create_view_priv Show_view_priv Create_routine_priv Alter_routine_priv Create_user_priv Event_priv Trigger_priv Create_tablespace_priv ssl_type ssl_cipher x509_issuer x509_subject max_questions# max_updates# max_connections# max_user_connections# plugin authentication_string password_expired password_last_changed password_lifetime# account_locked",
    ),
    (
        "db",
        "Host Db User Select_priv Insert_priv Update_priv Delete_priv Create_priv Drop_priv Grant_priv References_priv Index_priv Alter_priv Create_tmp_table_priv Lock_tables_priv Create_view_priv Show_view_priv Create_routine_priv Alter_routine_priv Execute_priv Event_priv Trigger_priv",
    ),
    ("tables_priv", "Host Db User Table_name Grantor Timestamp Table_priv Column_priv"),
    ("columns_priv", "Host Db User Table_name Column_name Timestamp Column_priv"),
    ("procs_priv", "Host Db User Routine_name Routine_type Grantor Proc_priv Timestamp"),
    ("proxies_priv", "Host User Proxied_host Proxied_user With_grant# Grantor Timestamp"),
    (
        "proc",
        "db name type specific_name language sql_data_access is_deterministic security_type param_list returns body definer created modified sql_mode comment character_set_client collation_connection db_collation body_utf8",
    ),
    ("func", "name ret# dl type"),
    (
        "event",
        "db name body definer execute_at interval_value# interval_field created modified last_executed starts ends status on_completion sql_mode comment originator# time_zone",
    ),
    ("plugin", "name dl"),
    ("servers", "Server_name Host Db Username Password Port# Socket Wrapper Owner"),
    ("time_zone_name", "Name Time_zone_id#"),
    ("general_log", "event_time user_host thread_id# server_id# command_type argument"),
    (
        "slow_log",
        "start_time user_host query_time lock_time rows_sent# rows_examined# db last_insert_id# insert_id# server_id# sql_text thread_id#",
    ),
    (
        "innodb_table_stats",
        "database_name table_name last_update n_rows# clustered_index_size# sum_of_other_index_sizes#",
    ),
    (
        "innodb_index_stats",
        "database_name table_name index_name last_update stat_name stat_value# sample_size# stat_description",
    ),
];

/// The database of MySQL's measurements.
pub(super) const PERFORMANCE: [(&str, &str); 25] = [
    ("global_variables", "VARIABLE_NAME VARIABLE_VALUE"),
    ("session_variables", "VARIABLE_NAME VARIABLE_VALUE"),
    ("global_status", "VARIABLE_NAME VARIABLE_VALUE"),
    ("session_status", "VARIABLE_NAME VARIABLE_VALUE"),
    ("user_variables_by_thread", "THREAD_ID# VARIABLE_NAME VARIABLE_VALUE"),
    (
        "threads",
        "THREAD_ID# NAME TYPE PROCESSLIST_ID# PROCESSLIST_USER PROCESSLIST_HOST PROCESSLIST_DB PROCESSLIST_COMMAND PROCESSLIST_TIME# PROCESSLIST_STATE PROCESSLIST_INFO PARENT_THREAD_ID# ROLE INSTRUMENTED HISTORY CONNECTION_TYPE THREAD_OS_ID#",
    ),
    (
        "events_statements_summary_by_digest",
        "SCHEMA_NAME DIGEST DIGEST_TEXT COUNT_STAR# SUM_TIMER_WAIT# MIN_TIMER_WAIT# AVG_TIMER_WAIT# MAX_TIMER_WAIT# SUM_LOCK_TIME# SUM_ERRORS# SUM_WARNINGS# SUM_ROWS_AFFECTED# SUM_ROWS_SENT# SUM_ROWS_EXAMINED# SUM_CREATED_TMP_DISK_TABLES# SUM_CREATED_TMP_TABLES# SUM_SELECT_FULL_JOIN# SUM_SELECT_FULL_RANGE_JOIN# SUM_SELECT_RANGE# SUM_SELECT_RANGE_CHECK# SUM_SELECT_SCAN# SUM_SORT_MERGE_PASSES# SUM_SORT_RANGE# SUM_SORT_ROWS# SUM_SORT_SCAN# SUM_NO_INDEX_USED# SUM_NO_GOOD_INDEX_USED# SUM_CPU_TIME# MAX_CONTROLLED_MEMORY# MAX_TOTAL_MEMORY# COUNT_SECONDARY# FIRST_SEEN LAST_SEEN",
    ),
    (
        "events_statements_current",
        "THREAD_ID# EVENT_ID# EVENT_NAME TIMER_WAIT# LOCK_TIME# SQL_TEXT DIGEST DIGEST_TEXT CURRENT_SCHEMA ROWS_SENT# ROWS_EXAMINED# ROWS_AFFECTED# ERRORS# WARNINGS#",
    ),
    (
        "events_statements_history",
        "THREAD_ID# EVENT_ID# EVENT_NAME TIMER_WAIT# LOCK_TIME# SQL_TEXT DIGEST DIGEST_TEXT CURRENT_SCHEMA ROWS_SENT# ROWS_EXAMINED# ROWS_AFFECTED# ERRORS# WARNINGS#",
    ),
    (
        "events_waits_summary_global_by_event_name",
        "EVENT_NAME COUNT_STAR# SUM_TIMER_WAIT# MIN_TIMER_WAIT# AVG_TIMER_WAIT# MAX_TIMER_WAIT#",
    ),
    (
        "table_io_waits_summary_by_table",
        "OBJECT_TYPE OBJECT_SCHEMA OBJECT_NAME COUNT_STAR# SUM_TIMER_WAIT# COUNT_READ# SUM_TIMER_READ# COUNT_WRITE# SUM_TIMER_WRITE# COUNT_FETCH# SUM_TIMER_FETCH# COUNT_INSERT# SUM_TIMER_INSERT# COUNT_UPDATE# SUM_TIMER_UPDATE# COUNT_DELETE# SUM_TIMER_DELETE#",
    ),
    (
        "table_io_waits_summary_by_index_usage",
        "OBJECT_TYPE OBJECT_SCHEMA OBJECT_NAME INDEX_NAME COUNT_STAR# SUM_TIMER_WAIT# COUNT_READ# COUNT_WRITE# COUNT_FETCH# SUM_TIMER_FETCH# COUNT_INSERT# SUM_TIMER_INSERT# COUNT_UPDATE# SUM_TIMER_UPDATE# COUNT_DELETE# SUM_TIMER_DELETE#",
    ),
    (
        "file_summary_by_instance",
        "FILE_NAME EVENT_NAME COUNT_STAR# SUM_TIMER_WAIT# COUNT_READ# SUM_NUMBER_OF_BYTES_READ# COUNT_WRITE# SUM_NUMBER_OF_BYTES_WRITE#",
    ),
    (
        "replication_group_members",
        "CHANNEL_NAME MEMBER_ID MEMBER_HOST MEMBER_PORT# MEMBER_STATE MEMBER_ROLE MEMBER_VERSION",
    ),
    (
        "replication_group_member_stats",
        "CHANNEL_NAME VIEW_ID MEMBER_ID COUNT_TRANSACTIONS_IN_QUEUE# COUNT_TRANSACTIONS_CHECKED# COUNT_CONFLICTS_DETECTED# COUNT_TRANSACTIONS_ROWS_VALIDATING# TRANSACTIONS_COMMITTED_ALL_MEMBERS LAST_CONFLICT_FREE_TRANSACTION COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE# COUNT_TRANSACTIONS_REMOTE_APPLIED# COUNT_TRANSACTIONS_LOCAL_PROPOSED# COUNT_TRANSACTIONS_LOCAL_ROLLBACK#",
    ),
    (
        "replication_connection_status",
        "CHANNEL_NAME GROUP_NAME SOURCE_UUID THREAD_ID# SERVICE_STATE COUNT_RECEIVED_HEARTBEATS# LAST_ERROR_NUMBER# LAST_ERROR_MESSAGE",
    ),
    (
        "replication_applier_status_by_worker",
        "CHANNEL_NAME WORKER_ID# THREAD_ID# SERVICE_STATE LAST_SEEN_TRANSACTION LAST_ERROR_NUMBER# LAST_ERROR_MESSAGE LAST_ERROR_TIMESTAMP LAST_APPLIED_TRANSACTION LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP APPLYING_TRANSACTION APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP APPLYING_TRANSACTION_START_APPLY_TIMESTAMP",
    ),
    (
        "file_summary_by_event_name",
        "EVENT_NAME COUNT_STAR# SUM_TIMER_WAIT# MIN_TIMER_WAIT# AVG_TIMER_WAIT# MAX_TIMER_WAIT# COUNT_READ# SUM_TIMER_READ# MIN_TIMER_READ# AVG_TIMER_READ# MAX_TIMER_READ# SUM_NUMBER_OF_BYTES_READ# COUNT_WRITE# SUM_TIMER_WRITE# MIN_TIMER_WRITE# AVG_TIMER_WRITE# MAX_TIMER_WRITE# SUM_NUMBER_OF_BYTES_WRITE# COUNT_MISC# SUM_TIMER_MISC# MIN_TIMER_MISC# AVG_TIMER_MISC# MAX_TIMER_MISC#",
    ),
    (
        "memory_summary_global_by_event_name",
        "EVENT_NAME COUNT_ALLOC# COUNT_FREE# SUM_NUMBER_OF_BYTES_ALLOC# SUM_NUMBER_OF_BYTES_FREE# LOW_COUNT_USED# CURRENT_COUNT_USED# HIGH_COUNT_USED# LOW_NUMBER_OF_BYTES_USED# CURRENT_NUMBER_OF_BYTES_USED# HIGH_NUMBER_OF_BYTES_USED#",
    ),
    (
        "table_lock_waits_summary_by_table",
        "OBJECT_TYPE OBJECT_SCHEMA OBJECT_NAME COUNT_STAR# SUM_TIMER_WAIT# COUNT_READ# SUM_TIMER_READ# COUNT_WRITE# SUM_TIMER_WRITE# COUNT_READ_NORMAL# SUM_TIMER_READ_NORMAL# COUNT_READ_WITH_SHARED_LOCKS# SUM_TIMER_READ_WITH_SHARED_LOCKS# COUNT_READ_HIGH_PRIORITY# SUM_TIMER_READ_HIGH_PRIORITY# COUNT_READ_NO_INSERT# SUM_TIMER_READ_NO_INSERT# COUNT_READ_EXTERNAL# SUM_TIMER_READ_EXTERNAL# COUNT_WRITE_ALLOW_WRITE# SUM_TIMER_WRITE_ALLOW_WRITE# COUNT_WRITE_CONCURRENT_INSERT# SUM_TIMER_WRITE_CONCURRENT_INSERT# COUNT_WRITE_LOW_PRIORITY# SUM_TIMER_WRITE_LOW_PRIORITY# COUNT_WRITE_NORMAL# SUM_TIMER_WRITE_NORMAL# COUNT_WRITE_EXTERNAL# SUM_TIMER_WRITE_EXTERNAL#",
    ),
    (
        "events_statements_summary_by_account_by_event_name",
        "USER HOST EVENT_NAME COUNT_STAR# SUM_TIMER_WAIT# MIN_TIMER_WAIT# AVG_TIMER_WAIT# MAX_TIMER_WAIT# SUM_LOCK_TIME# SUM_ERRORS# SUM_WARNINGS# SUM_ROWS_AFFECTED# SUM_ROWS_SENT# SUM_ROWS_EXAMINED# SUM_CREATED_TMP_DISK_TABLES# SUM_CREATED_TMP_TABLES# SUM_SELECT_FULL_JOIN# SUM_SELECT_FULL_RANGE_JOIN# SUM_SELECT_RANGE# SUM_SELECT_RANGE_CHECK# SUM_SELECT_SCAN# SUM_SORT_MERGE_PASSES# SUM_SORT_RANGE# SUM_SORT_ROWS# SUM_SORT_SCAN# SUM_NO_INDEX_USED# SUM_NO_GOOD_INDEX_USED#",
    ),
    (
        "events_stages_history_long",
        "THREAD_ID# EVENT_ID# END_EVENT_ID# EVENT_NAME SOURCE TIMER_START# TIMER_END# TIMER_WAIT# WORK_COMPLETED# WORK_ESTIMATED# NESTING_EVENT_ID# NESTING_EVENT_TYPE",
    ),
    (
        "events_waits_history_long",
        "THREAD_ID# EVENT_ID# END_EVENT_ID# EVENT_NAME SOURCE TIMER_START# TIMER_END# TIMER_WAIT# SPINS# OBJECT_SCHEMA OBJECT_NAME INDEX_NAME OBJECT_TYPE OBJECT_INSTANCE_BEGIN# NESTING_EVENT_ID# NESTING_EVENT_TYPE OPERATION NUMBER_OF_BYTES# FLAGS#",
    ),
    ("setup_consumers", "NAME ENABLED"),
    ("setup_instruments", "NAME ENABLED TIMED"),
];

/// Adds the rows of a table of one of them.
pub(super) fn fill(
    database: &str,
    name: &str,
    grid: &mut Grid,
    namespace: &dyn Namespace,
    session: &SessionView,
) {
    let pairs: Vec<(String, String)> = match (database, name) {
        ("mysql", "user") => return users(grid, namespace),
        ("performance_schema", "global_variables") => namespace.global_variables(),
        ("performance_schema", "session_variables") => {
            session.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        ("performance_schema", "global_status" | "session_status") => namespace.server_facts().status,
        _ => return,
    };
    for (name, value) in pairs {
        grid.push(vec![name.into(), value.into()]);
    }
}

/// The users whose grants the session sees, with their global rights.
fn users(grid: &mut Grid, namespace: &dyn Namespace) {
    let mut grants = super::empty("information_schema", "user_privileges").expect("it exists");
    privileges::fill("user_privileges", &mut grants, namespace);
    let mut users: Vec<(String, BTreeSet<String>, bool)> = Vec::new();
    for row in grants.rows() {
        let (Cell::Text(grantee), Cell::Text(right), Cell::Text(grantable)) = (&row[0], &row[2], &row[3])
        else {
            continue;
        };
        if users.last().is_none_or(|(last, ..)| last != grantee) {
            users.push((grantee.clone(), BTreeSet::new(), false));
        }
        if let Some((_, rights, may_grant)) = users.last_mut() {
            rights.insert(right.clone());
            *may_grant |= grantable == "YES";
        }
    }
    let columns: Vec<String> = grid.names().into_iter().map(str::to_owned).collect();
    for (grantee, rights, may_grant) in users {
        // 'user'@'host'
        let mut parts = grantee.split("'@'").map(|part| part.trim_matches('\''));
        let (user, host) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("%"));
        let is_all = rights.contains("ADMIN");
        let cell = |column: &str| -> Cell {
            match column {
                "Host" => host.into(),
                "User" => user.into(),
                "Grant_priv" => if may_grant || is_all { "Y" } else { "N" }.into(),
                "plugin" => "mysql_native_password".into(),
                "password_expired" | "account_locked" => "N".into(),
                "max_questions" | "max_updates" | "max_connections" | "max_user_connections" => Cell::Int(0),
                "password_last_changed" | "password_lifetime" => Cell::Null,
                _ => match column.strip_suffix("_priv") {
                    Some(right) => {
                        let right = right.replace('_', " ").to_uppercase();
                        if is_all || rights.contains(&right) { "Y" } else { "N" }.into()
                    }
                    None => "".into(),
                },
            }
        };
        grid.push(columns.iter().map(|column| cell(column.trim_end_matches('#'))).collect());
    }
}
