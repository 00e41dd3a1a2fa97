//! `PROPERTIES (…)`: known properties, their legal values, and their effects.
//!
//! Group Commit's properties, `light_schema_change`, limits of loads and `rejected_rows` have an effect. Doris's other usual properties
//! are checked by name, stored and printed back.

use super::partitions::{dynamic, retention};
use super::sequence::{SEQUENCE_COL, SEQUENCE_TYPE};
use super::{find, refused};
use std::collections::BTreeMap;
use tributary_types::{
    ColumnDef, DELETION_VECTORS, ErrorCode, GroupCommitMode, RejectPolicy, SqlError, TableProperties,
};

/// Whether key columns were moved to the front: an INSERT has to name its columns then. Not shown, because a table that is made from
/// what is shown has its columns in that order.
pub const COLUMNS_MOVED: &str = "columns_moved";

pub const GROUP_COMMIT_INTERVAL_MS: &str = "group_commit_interval_ms";
pub const GROUP_COMMIT_DATA_BYTES: &str = "group_commit_data_bytes";
pub const GROUP_COMMIT_MODE: &str = "group_commit_mode";
pub const LIGHT_SCHEMA_CHANGE: &str = "light_schema_change";
pub const MAX_CONCURRENT_LOADS: &str = "max_concurrent_loads";
pub const MAX_LOAD_ROWS_PER_SECOND: &str = "max_load_rows_per_second";
pub const MAX_LOAD_BYTES_PER_SECOND: &str = "max_load_bytes_per_second";
pub const REJECTED_ROWS: &str = "rejected_rows";
pub const REPLICATION_ALLOCATION: &str = "replication_allocation";
pub const BLOOM_FILTER_COLUMNS: &str = "bloom_filter_columns";

/// Doris's implementation of unique keys. Answers are the same, so it is only stored.
pub const SKIP_BITMAP: &str = tributary_types::FLEXIBLE_UPDATES;
pub const MERGE_ON_WRITE: &str = "enable_unique_key_merge_on_write";

/// Doris stores Group Commit's numbers in 32 bits.
const NUMBER_MAX: u64 = i32::MAX as u64;
const REPLICATION_NUM: &str = "replication_num";
const REPLICATION_NUM_DEFAULT: u32 = 1;

/// Kept and printed back, in the order of SHOW CREATE TABLE.
pub(super) const KEPT: [&str; 47] = [
    REPLICATION_ALLOCATION,
    "min_load_replica_num",
    BLOOM_FILTER_COLUMNS,
    "is_being_synced",
    "colocate_with",
    "dynamic_partition.enable",
    "dynamic_partition.time_unit",
    "dynamic_partition.time_zone",
    "dynamic_partition.start",
    "dynamic_partition.end",
    "dynamic_partition.prefix",
    "dynamic_partition.replication_allocation",
    "dynamic_partition.replication_num",
    "dynamic_partition.buckets",
    "dynamic_partition.create_history_partition",
    "dynamic_partition.history_partition_num",
    "dynamic_partition.hot_partition_num",
    "dynamic_partition.reserved_history_periods",
    "dynamic_partition.storage_policy",
    "dynamic_partition.start_day_of_week",
    "dynamic_partition.start_day_of_month",
    "partition.retention_count",
    "in_memory",
    "storage_medium",
    "storage_cooldown_time",
    "storage_format",
    "inverted_index_storage_format",
    "compression",
    "estimate_partition_size",
    "storage_policy",
    "store_row_column",
    "row_store_columns",
    "row_store_page_size",
    "storage_page_size",
    "storage_dict_page_size",
    "skip_write_index_on_load",
    "compaction_policy",
    "disable_auto_compaction",
    "enable_single_replica_compaction",
    "variant_enable_flatten_nested",
    "enable_duplicate_without_keys_by_default",
    COLUMNS_MOVED,
    MERGE_ON_WRITE,
    SKIP_BITMAP,
    SEQUENCE_COL,
    SEQUENCE_TYPE,
    DELETION_VECTORS,
];
/// Prefixes of properties that are stored.
const KEPT_PREFIXES: [&str; 2] = ["time_series_compaction_", "binlog."];
/// Properties of unsupported kinds of tables, with the feature they belong to.
const REFUSED: [(&str, &str); 4] = [
    ("enable_mow_light_delete", "deletions by key"),
    ("sequence_mapping.", "sequence columns"),
    ("delete_bitmap_", "delete bitmaps of their own"),
    ("storage_vault_", "storage vaults"),
];

/// The properties of a new table.
pub(super) fn of_create(
    written: &[(String, String)],
    columns: &[ColumnDef],
) -> Result<TableProperties, SqlError> {
    let mut properties = TableProperties::default();
    let unknown: BTreeMap<&str, &str> = written
        .iter()
        .filter(|(key, _)| !is_known(key))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    if !unknown.is_empty() {
        let listed: Vec<String> = unknown.iter().map(|(key, value)| format!("{key}={value}")).collect();
        return Err(refused(format!("Unknown properties: {{{}}}", listed.join(", "))));
    }
    for (key, value) in written {
        set(&mut properties, key, value, columns)?;
    }
    properties
        .others
        .entry(REPLICATION_ALLOCATION.to_owned())
        .or_insert_with(|| allocation(REPLICATION_NUM_DEFAULT));
    Ok(properties)
}

/// Applies the properties of `ALTER TABLE … SET (…)`: all of the changes or, on error, none.
pub(super) fn of_alter(
    present: &TableProperties,
    written: &[(String, String)],
    columns: &[ColumnDef],
) -> Result<TableProperties, SqlError> {
    let mut properties = present.clone();
    for (key, value) in written {
        if !is_known(key) {
            return Err(refused(format!("Unknown table property: [{key}]")));
        }
        if key == SKIP_BITMAP {
            return Err(refused(format!(
                "{key} cannot be changed by SET; use ALTER TABLE … ENABLE FEATURE \"UPDATE_FLEXIBLE_COLUMNS\""
            )));
        }
        if [MERGE_ON_WRITE, SEQUENCE_COL, SEQUENCE_TYPE, DELETION_VECTORS].contains(&key.as_str()) {
            return Err(refused(format!("{key} cannot be changed after CREATE TABLE")));
        }
        if key == LIGHT_SCHEMA_CHANGE && parse_bool(key, value)? != present.light_schema_change {
            return Err(refused(format!(
                "{LIGHT_SCHEMA_CHANGE} cannot be changed to {value} after CREATE TABLE: create a new table and \
                 INSERT … SELECT"
            )));
        }
        let key = key.strip_prefix("default.").unwrap_or(key);
        set(&mut properties, key, value, columns)?;
    }
    Ok(properties)
}

fn is_known(key: &str) -> bool {
    const EFFECTIVE: [&str; 9] = [
        GROUP_COMMIT_INTERVAL_MS,
        GROUP_COMMIT_DATA_BYTES,
        GROUP_COMMIT_MODE,
        LIGHT_SCHEMA_CHANGE,
        MAX_CONCURRENT_LOADS,
        MAX_LOAD_ROWS_PER_SECOND,
        MAX_LOAD_BYTES_PER_SECOND,
        REJECTED_ROWS,
        REPLICATION_NUM,
    ];
    let key = match key {
        "default.replication_num" | "default.replication_allocation" => return true,
        key => key,
    };
    EFFECTIVE.contains(&key)
        || KEPT.contains(&key)
        || KEPT_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || REFUSED.iter().any(|(prefix, _)| key.starts_with(prefix))
}

/// Sets one property that is known.
fn set(
    properties: &mut TableProperties,
    key: &str,
    value: &str,
    columns: &[ColumnDef],
) -> Result<(), SqlError> {
    if let Some((_, owner)) = REFUSED.iter().find(|(prefix, _)| key.starts_with(prefix)) {
        return Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!("property '{key}' belongs to {owner}, which are not supported yet: leave it out"),
        ));
    }
    match key {
        GROUP_COMMIT_INTERVAL_MS => properties.group_commit_interval_ms = interval_ms(value)?,
        GROUP_COMMIT_DATA_BYTES => properties.group_commit_data_bytes = data_bytes(value)?,
        GROUP_COMMIT_MODE => properties.group_commit_mode = mode(value)?,
        LIGHT_SCHEMA_CHANGE => properties.light_schema_change = parse_bool(key, value)?,
        MAX_CONCURRENT_LOADS => properties.max_concurrent_loads = limit(key, value)?,
        MAX_LOAD_ROWS_PER_SECOND => properties.max_load_rows_per_second = limit(key, value)?,
        MAX_LOAD_BYTES_PER_SECOND => properties.max_load_bytes_per_second = limit(key, value)?,
        REJECTED_ROWS => properties.rejected_rows = policy(value)?,
        REPLICATION_NUM | "default.replication_num" => {
            keep(properties, REPLICATION_ALLOCATION, allocation(replication_num(value)?));
        }
        REPLICATION_ALLOCATION | "default.replication_allocation" => {
            keep(properties, REPLICATION_ALLOCATION, spaced_allocation(value));
        }
        SKIP_BITMAP | MERGE_ON_WRITE | DELETION_VECTORS => {
            keep(properties, key, parse_bool(key, value)?.to_string());
        }
        BLOOM_FILTER_COLUMNS => {
            check_columns(value, columns)?;
            keep(properties, key, value.to_owned());
        }
        "dynamic_partition.replication_num" => {
            let value = allocation(replication_num(value)?);
            keep(properties, "dynamic_partition.replication_allocation", value);
        }
        retention::COUNT => keep(properties, key, retention::checked(value)?),
        key if key.starts_with(dynamic::PREFIX) => keep(properties, key, dynamic::checked(key, value)?),
        _ => keep(properties, key, value.to_owned()),
    }
    Ok(())
}

fn keep(properties: &mut TableProperties, key: &str, value: String) {
    properties.others.insert(key.to_owned(), value);
}

/// Milliseconds. 0 is ours: the group closes as soon as the log is free.
fn interval_ms(value: &str) -> Result<u64, SqlError> {
    match value.trim().parse::<i128>() {
        Ok(number) if number < 0 => {
            Err(refused(format!("{GROUP_COMMIT_INTERVAL_MS} can not be less than 0:{value}")))
        }
        Ok(number) if number <= i128::from(NUMBER_MAX) => Ok(number as u64),
        _ => Err(refused(format!("parse {GROUP_COMMIT_INTERVAL_MS} format error"))),
    }
}

fn data_bytes(value: &str) -> Result<u64, SqlError> {
    match value.trim().parse::<i128>() {
        Ok(number) if number < 1 => Err(refused(format!("{GROUP_COMMIT_DATA_BYTES} must be greater than 0"))),
        Ok(number) if number <= i128::from(NUMBER_MAX) => Ok(number as u64),
        _ => Err(refused(format!("parse {GROUP_COMMIT_DATA_BYTES} format error"))),
    }
}

/// A limit from 1 on; -1 is none.
fn limit(key: &str, value: &str) -> Result<Option<u64>, SqlError> {
    match value.trim().parse::<i64>() {
        Ok(-1) => Ok(None),
        Ok(number) if number >= 1 => Ok(Some(number as u64)),
        _ => Err(refused(format!(
            "{key} must be a number from 1 to {}, or -1 for no limit, not '{value}'",
            i64::MAX
        ))),
    }
}

fn mode(value: &str) -> Result<GroupCommitMode, SqlError> {
    GroupCommitMode::parse(value).ok_or_else(|| {
        refused(format!(
            "Invalid {GROUP_COMMIT_MODE}: {value}. Valid values: off_mode, async_mode, sync_mode"
        ))
    })
}

fn policy(value: &str) -> Result<RejectPolicy, SqlError> {
    RejectPolicy::parse(value)
        .ok_or_else(|| refused(format!("Invalid {REJECTED_ROWS}: {value}. Valid values: fail, keep")))
}

fn parse_bool(key: &str, value: &str) -> Result<bool, SqlError> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(refused(format!("{key} must be 'true' or 'false', not '{value}'"))),
    }
}

fn replication_num(value: &str) -> Result<u32, SqlError> {
    match value.trim().parse::<i16>() {
        Ok(number) if number >= 1 => Ok(number as u32),
        _ => {
            Err(refused(format!("{REPLICATION_NUM} must be a number from 1 to {}, not '{value}'", i16::MAX)))
        }
    }
}

fn allocation(replicas: u32) -> String {
    format!("tag.location.default: {replicas}")
}

/// `tag.location.default:3` as SHOW CREATE TABLE writes it, with a blank after each colon.
fn spaced_allocation(value: &str) -> String {
    value
        .split(',')
        .map(|part| match part.split_once(':') {
            Some((tag, replicas)) => format!("{}: {}", tag.trim(), replicas.trim()),
            None => part.trim().to_owned(),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn check_columns(value: &str, columns: &[ColumnDef]) -> Result<(), SqlError> {
    match column_names(value).find(|name| find(columns, name).is_none()) {
        Some(name) => {
            Err(refused(format!("Bloom filter column does not exist in table. invalid column: {name}")))
        }
        None => Ok(()),
    }
}

/// The names in a value such as `a, b`.
pub(super) fn column_names(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty())
}
