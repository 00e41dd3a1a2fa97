//! Names of properties whose values may be shown. Every other property is treated as a secret: a misspelt `s3.acces_key` has one.
//!
//! Not here: which properties a statement takes.

/// Prefixes that stores, sources and Hadoop put before names.
const PREFIXES: [&str; 12] = [
    "property.",
    "s3.",
    "aws.",
    "aws_",
    "minio.",
    "oss.",
    "cos.",
    "obs.",
    "gs.",
    "fs.s3a.",
    "dynamic_partition.",
    "default.",
];

/// In order.
const NAMES: &[&str] = &[
    "auto_bucket",
    "binlog.enable",
    "bloom_filter_columns",
    "bloom_filter_fpp",
    "broker.name",
    "buckets",
    "client.id",
    "colocate_with",
    "column_separator",
    "columns",
    "compaction_policy",
    "compress_type",
    "compression",
    "connection.maximum",
    "create_history_partition",
    "csv_schema",
    "data_consistency",
    "delete_existing_files",
    "desired_concurrent_number",
    "disable_auto_compaction",
    "empty_field_as_null",
    "enable",
    "enable_duplicate_without_keys_by_default",
    "enable_mow_light_delete",
    "enable_single_replica_compaction",
    "enable_unique_key_merge_on_write",
    "enclose",
    "end",
    "endpoint",
    "escape",
    "estimate_partition_size",
    "exec_mem_limit",
    "fetch.error.backoff.ms",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "fetch.wait.max.ms",
    "file_path",
    "force_parsing_by_standard_uri",
    "format",
    "function_column.sequence_col",
    "function_column.sequence_type",
    "fuzzy_parse",
    "group.id",
    "group_commit_data_bytes",
    "group_commit_interval_ms",
    "group_commit_mode",
    "history_partition_num",
    "hot_partition_num",
    "http.enable.chunk.response",
    "http.enable.range.request",
    "in_memory",
    "insert_timeout",
    "inverted_index_storage_format",
    "is_being_synced",
    "isolation.level",
    "json_root",
    "jsonpaths",
    "kafka_broker_list",
    "kafka_default_offsets",
    "kafka_offsets",
    "kafka_partitions",
    "kafka_topic",
    "label",
    "light_schema_change",
    "line_delimiter",
    "load_parallelism",
    "load_to_single_tablet",
    "max.partition.fetch.bytes",
    "max_batch_interval",
    "max_batch_rows",
    "max_batch_size",
    "max_concurrent_loads",
    "max_concurrent_queries",
    "max_error_number",
    "max_file_size",
    "max_filter_ratio",
    "max_load_bytes_per_second",
    "max_load_requests_per_second",
    "max_load_rows_per_second",
    "max_user_connections",
    "merge_type",
    "metadata.max.age.ms",
    "min_load_replica_num",
    "num_as_string",
    "parallelism",
    "parser",
    "partial_columns",
    "partial_update_new_key_behavior",
    "partition",
    "partition.retention_count",
    "partitions",
    "path_partition_keys",
    "path_style_access",
    "prefix",
    "priority",
    "provider",
    "query_timeout",
    "queued.max.messages.kbytes",
    "queued.min.messages",
    "read_json_by_line",
    "region",
    "replication_allocation",
    "replication_num",
    "request_timeout_ms",
    "reserved_history_periods",
    "row_store_columns",
    "row_store_page_size",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "security.protocol",
    "send_batch_parallelism",
    "skip_lines",
    "skip_write_index_on_load",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "start",
    "start_day_of_month",
    "start_day_of_week",
    "storage_cooldown_time",
    "storage_format",
    "storage_medium",
    "storage_page_size",
    "storage_policy",
    "store_row_column",
    "strict_mode",
    "strip_outer_array",
    "support_phrase",
    "time_unit",
    "time_zone",
    "timeout",
    "timezone",
    "trim_double_quotes",
    "unique_key_update_mode",
    "uri",
    "url",
    "use_path_style",
    "where",
    "with_bom",
];

/// Whether the value of a property with this name may be shown.
pub(super) fn is_harmless(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let mut rest = name.as_str();
    loop {
        if NAMES.binary_search(&rest).is_ok() || rest.starts_with("delta.") {
            return true;
        }
        match PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            Some(shorter) => rest = shorter,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_none_of_them_says_that_it_is_secret() {
        assert!(NAMES.is_sorted());
        for name in NAMES {
            assert!(!super::super::is_secret_property(name), "{name}");
        }
        assert!(is_harmless(b"property.security.protocol") && is_harmless(b"AWS_ENDPOINT"));
        assert!(!is_harmless(b"s3.acces_kye") && !is_harmless(b"") && !is_harmless(b"property.nosuch"));
    }
}
