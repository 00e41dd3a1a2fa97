//! The declarations of all variables, in order of name.
//!
//! A test generates the reference, `docs/variables.md`, from them.

#![allow(
    clippy::doc_markdown,
    clippy::manual_string_new,
    reason = "the declarations are the reference's rows"
)]

use super::kind::{
    Decimal, Kind, NamedZone, SqlMode, any_whole, charset, decimal, flag, group_commit, mysql_ddl, new_keys,
    password_strength, ratio, reject_policy, requirement, row_limit, sql_mode, switch, text, whole, zone,
};
use super::{
    Effect, MAX_PREPARED_STATEMENTS, QUERY_TIMEOUT_DEFAULT_SECONDS, VERSION_COMMENT, Variable,
    WAIT_TIMEOUT_DEFAULT_SECONDS,
};
use tributary_types::{
    GROUP_CONCAT_BYTES, GroupCommitMode, PASSWORD_HISTORY_MAX, RejectPolicy, Requirement, SERVER_VERSION,
};

variables! {
    /// A tuning variable of Doris; answers are the same.
    agg_phase: i64 = 0, any_whole(), Kept;
    /// There are no materialized views.
    allow_modify_materialized_view_data: bool = false, flag(), Fixed;
    /// Partition columns may be NULL.
    allow_partition_column_nullable: bool = true, flag(), Fixed;
    /// Longest statement in a record of the audit log, in bytes; the rest is cut off.
    audit_plugin_max_sql_length: i64 = 4096, whole(0, 2147483647), Global;
    /// A tuning variable of Doris; answers are the same.
    auto_broadcast_join_threshold: String = "0.8".into(), text(), Kept;
    /// Values of AUTO_INCREMENT columns do not follow it.
    auto_increment_increment: i64 = 1, any_whole(), Kept;
    /// Values of AUTO_INCREMENT columns do not follow it.
    auto_increment_offset: i64 = 1, any_whole(), Kept;
    /// OFF with `mysql_ddl = compat`: statements are of one transaction until COMMIT. Otherwise, as in Doris, it has no effect.
    autocommit: bool = true, switch(), Obeyed;
    /// Where files of the server's installation would be; it has none.
    basedir: String = "/".into(), text(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    batch_size: i64 = 4064, any_whole(), Kept;
    /// Queries have no temporary tables.
    big_tables: bool = false, switch(), Kept;
    /// There is no binary log.
    binlog_format: String = "ROW".into(), text(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    broadcast_row_count_limit: i64 = 30_000_000, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    broker_load_batch_size: i64 = 16_352, any_whole(), Kept;
    /// Buffers grow as needed.
    bulk_insert_buffer_size: i64 = 8_388_608, any_whole(), Kept;
    /// Channel of the session's next INSERT or LOAD DATA, which uses it up: its loads are stored in the order of their offsets, each once.
    channel: String = "".into(), text(), Session;
    /// Where the next load of the channel ends; -1: at its offset plus 1.
    channel_next_offset: i64 = -1, whole(-1, i64::MAX), Session;
    /// Where the next load of the channel begins: where the one before ended.
    channel_offset: i64 = -1, whole(-1, i64::MAX), Session;
    /// Text is UTF-8. Character sets that are not a subset of it are refused.
    character_set_client: String = "utf8mb4".into(), charset(), Obeyed;
    /// Text is UTF-8. Character sets that are not a subset of it are refused.
    character_set_connection: String = "utf8mb4".into(), charset(), Obeyed;
    /// Text is UTF-8.
    character_set_database: String = "utf8mb4".into(), charset(), Kept;
    /// Text is UTF-8. Character sets that are not a subset of it are refused.
    character_set_results: String = "utf8mb4".into(), charset(), Obeyed;
    /// Text is UTF-8.
    character_set_server: String = "utf8mb4".into(), charset(), Kept;
    /// Character set of names.
    character_set_system: String = "utf8mb4".into(), text(), ReadOnly;
    /// Overflow of decimal arithmetic is an error.
    check_overflow_for_decimal: bool = true, flag(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    codegen_level: i64 = 0, any_whole(), Kept;
    /// Texts are compared by their bytes.
    collation_connection: String = "utf8mb4_general_ci".into(), text(), Kept;
    /// Texts are compared by their bytes.
    collation_database: String = "utf8mb4_general_ci".into(), text(), Kept;
    /// Texts are compared by their bytes.
    collation_server: String = "utf8mb4_general_ci".into(), text(), Kept;
    /// COMMIT ends its transaction.
    completion_type: String = "NO_CHAIN".into(), text(), Kept;
    /// Limit on the partitions of one CREATE TABLE; always 10,000.
    create_table_partition_max_num: i64 = 10_000, any_whole(), Obeyed;
    /// The setting `storage_root_path`, as an absolute path.
    datadir: String = "/".into(), text(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    debug_skip_fold_constant: bool = false, flag(), Kept;
    /// Scale of a decimal whose digits overflow.
    decimal_overflow_scale: i64 = 6, any_whole(), Fixed;
    /// Plugin that the greeting names.
    default_authentication_plugin: String = "mysql_native_password".into(), text(), ReadOnly;
    /// ORDER BY without LIMIT returns all rows.
    default_order_by_limit: i64 = -1, any_whole(), Fixed;
    /// Days after which passwords expire, unless a user has a rule of its own; 0: never.
    default_password_lifetime: i64 = 0, whole(0, 36_500), Global;
    /// A tuning variable of Doris; answers are the same.
    default_rowset_type: String = "beta".into(), text(), Kept;
    /// There is one storage engine.
    default_storage_engine: String = "olap".into(), text(), Kept;
    /// There are no temporary tables.
    default_tmp_storage_engine: String = "olap".into(), text(), Kept;
    /// The mode of WEEK without a second argument.
    default_week_format: i64 = 0, any_whole(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    delete_without_partition: bool = true, flag(), Kept;
    /// DESC shows VARIANT columns as one.
    describe_extend_variant_column: bool = false, flag(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    detail_shape_nodes: String = "".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    disable_colocate_plan: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    disable_file_cache: bool = false, flag(), Kept;
    /// true: joins run in the order in which they are written, not in the cheapest one.
    disable_join_reorder: bool = false, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    disable_nereids_expression_rules: String = "".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    disable_nereids_rules: String = "".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    disable_streaming_preaggregations: bool = false, flag(), Kept;
    /// Digits that a division adds to a decimal.
    div_precision_increment: i64 = 4, any_whole(), Fixed;
    /// Queries return their rows.
    dry_run_query: bool = false, flag(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    enable_agg_spill: bool = false, flag(), Kept;
    /// There are no AGG_STATE columns.
    enable_agg_state: bool = false, flag(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    enable_aggregate_cse: bool = true, flag(), Kept;
    /// Set operations bind as in MySQL.
    enable_ansi_query_organization_behavior: bool = false, flag(), Fixed;
    /// Whether the audit log is written to `__internal_schema.audit_log`. The setting of the same name turns it on at each start.
    enable_audit_plugin: bool = false, flag(), Global;
    /// A tuning variable of Doris; answers are the same.
    enable_auto_analyze: bool = true, flag(), Kept;
    /// INSERT OVERWRITE creates the partitions that its rows need, in tables with AUTO PARTITION.
    enable_auto_create_when_overwrite: bool = false, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    enable_bucket_shuffle_join: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_bushy_tree: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_cbo_statistics: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_common_expr_pushdown: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_common_expr_pushdown_for_inverted_index: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_compress_materialize: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_cooldown_replica_affinity: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_cost_based_join_reorder: bool = true, flag(), Kept;
    /// Decimals have 38 digits.
    enable_decimal256: bool = false, flag(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    enable_distinct_streaming_aggregation: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_dphyp_optimizer: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_eliminate_sort_node: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_exchange_node_parallel_merge: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_fallback_on_missing_inverted_index: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_fallback_to_original_planner: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_file_cache: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_fold_constant_by_be: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_fold_nondeterministic_fn: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_force_spill: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_function_pushdown: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_group_commit_full_prepare: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_hash_join_early_start_probe: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_hive_sql_cache: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_infer_predicate: bool = true, flag(), Kept;
    /// Doris's former name; set `group_commit` instead.
    enable_insert_group_commit: bool = false, flag(), Fixed;
    /// On: an INSERT with a bad row fails. Off: bad values become NULL.
    enable_insert_strict: bool = true, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    enable_inverted_index_query: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_inverted_index_query_cache: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_inverted_index_searcher_cache: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_join_reorder_based_cost: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_join_spill: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_left_zig_zag: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_local_exchange: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_local_merge_sort: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_local_shuffle: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_match_without_inverted_index: bool = true, flag(), Kept;
    /// There are no materialized views.
    enable_materialized_view_nest_rewrite: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_materialized_view_rewrite: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_memtable_on_sink_node: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_minidump: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_nereids_distribute_planner: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_nereids_dml: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_nereids_planner: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_nereids_rules: String = "".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_nereids_timeout: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_nereids_trace: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_odbc_transcation: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_orc_lazy_materialization: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_page_cache: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_parallel_outfile: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_parallel_result_sink: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_parallel_scan: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_parquet_lazy_materialization: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_partition_cache: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_partition_topn: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_phrase_query_sequential_opt: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_pipeline_engine: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_pipeline_x_engine: bool = true, flag(), Kept;
    /// Whether the audit log records executions of prepared INSERT … VALUES that succeed. The global value, if on, applies to all sessions.
    enable_prepared_stmt_audit_log: bool = false, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    enable_profile: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_projection: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_push_down_no_group_agg: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_pushdown_minmax_on_unique: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_query_cache: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_remove_no_conjuncts_runtime_filter_policy: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_reserve_memory: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_rewrite_element_at_to_slot: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_runtime_filter_partition_prune: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_runtime_filter_prune: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_scan_node_run_serial: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_server_side_prepared_statement: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_share_hash_table_for_broadcast_join: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_shared_scan: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_short_circuit_query: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_short_circuit_query_access_column_store: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_single_distinct_column_opt: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_single_replica_insert: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_snapshot_point_query: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_sort_spill: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_spill: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_spilling: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_sql_cache: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_stats: bool = true, flag(), Kept;
    /// A cast of text without such a value gives NULL; a number that does not fit its type is an error.
    enable_strict_cast: bool = false, flag(), Fixed;
    /// A tuning variable of Doris; answers are the same.
    enable_strict_consistency_dml: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_sync_mv_cost_based_rewrite: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_sync_runtime_filter_size: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_topn_lazy_materialization: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_two_phase_read_opt: bool = true, flag(), Kept;
    /// Names are ASCII.
    enable_unicode_name_support: bool = false, flag(), Fixed;
    /// On: an INSERT into a table with UNIQUE KEY does not change the columns of existing rows that it does not name.
    enable_unique_key_partial_update: bool = false, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    enable_use_hybrid_sort: bool = false, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    enable_vectorized_engine: bool = true, flag(), Kept;
    /// There are no events.
    event_scheduler: bool = false, switch(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    exec_mem_limit: i64 = 2_147_483_648, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    external_agg_bytes_threshold: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    external_sort_bytes_threshold: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    extract_wide_range_expr: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    force_jni_scanner: bool = false, flag(), Kept;
    /// There are no foreign keys.
    foreign_key_checks: bool = true, switch(), Kept;
    /// A tuning variable of Doris; answers are the same.
    forward_to_master: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    fragment_transmission_compression_codec: String = "lz4".into(), text(), Kept;
    /// Statements are in the audit log.
    general_log: bool = false, switch(), ReadOnly;
    /// Columns come before aliases in GROUP BY and HAVING.
    group_by_and_having_use_alias_first: bool = false, flag(), Fixed;
    /// Group Commit mode of INSERTs.
    group_commit: Option<GroupCommitMode> = None, group_commit(), Obeyed;
    /// The least that loads of the session are: one that would not be `visible` at its answer, or not `grouped`, is refused. All are `durable`.
    group_commit_require: Option<Requirement> = None, requirement(), Obeyed;
    /// Length in bytes at which results of GROUP_CONCAT are truncated if it is set below the default; by default they are not.
    group_concat_max_len: i64 = GROUP_CONCAT_BYTES, whole(4, i64::MAX), Obeyed;
    /// There is no binary log.
    gtid_mode: String = "OFF".into(), text(), ReadOnly;
    /// The protocol's compression is offered.
    have_compress: String = "YES".into(), text(), ReadOnly;
    /// `YES` if TLS is offered.
    have_openssl: String = "DISABLED".into(), text(), ReadOnly;
    /// Statements are not profiled.
    have_profiling: String = "NO".into(), text(), ReadOnly;
    /// There is no query cache.
    have_query_cache: String = "NO".into(), text(), ReadOnly;
    /// `YES` if TLS is offered.
    have_ssl: String = "DISABLED".into(), text(), ReadOnly;
    /// The server's name.
    hostname: String = "tributary".into(), text(), ReadOnly;
    /// Key of the session's next INSERT or LOAD DATA, which uses it up: a load that is sent again with the same key is stored once, and gets the first answer again.
    idempotency_key: String = "".into(), text(), Session;
    /// A tuning variable of Doris; answers are the same.
    ignore_shape_nodes: String = "".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    ignore_storage_data_distribution: bool = true, flag(), Kept;
    /// information_schema is always current.
    information_schema_stats_expiry: i64 = 86_400, any_whole(), Kept;
    /// No statement runs when a client connects.
    init_connect: String = "".into(), text(), Kept;
    /// There are no table or row locks to wait for.
    innodb_lock_wait_timeout: i64 = 50, any_whole(), Kept;
    /// Share of bad rows that an INSERT may skip when `enable_insert_strict` is off.
    insert_max_filter_ratio: Decimal = "1.0".into(), ratio(), Obeyed;
    /// Seconds after which an INSERT fails.
    insert_timeout: i64 = 14_400, whole(1, 2147483647), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    insert_visible_timeout_ms: i64 = 60_000, any_whole(), Kept;
    /// An idle connection is closed after 8 hours.
    interactive_timeout: i64 = 28_800, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    inverted_index_conjunction_opt_threshold: i64 = 1000, any_whole(), Kept;
    /// Buffers grow as needed.
    join_buffer_size: i64 = 262_144, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    join_reorder_time_limit: i64 = 1000, any_whole(), Kept;
    /// A carriage return before the end of a CSV line belongs to the line end.
    keep_carriage_return: bool = false, flag(), Fixed;
    /// Language of error messages.
    language: String = "/share/english/".into(), text(), ReadOnly;
    /// Error messages are in English.
    lc_messages: String = "en_US".into(), text(), Kept;
    /// Language of the names of months and days.
    lc_time_names: String = "en_US".into(), text(), Fixed;
    /// The server's license.
    license: String = "Apache License, Version 2.0".into(), text(), ReadOnly;
    /// LIKE, REGEXP and REGEXP_LIKE match in any case, unless BINARY or a collation says otherwise. Comparisons, IN, joins, GROUP BY, DISTINCT, ORDER BY and keys tell cases apart.
    like_ignores_case: bool = false, switch(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    load_mem_limit: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    load_stream_per_node: i64 = 2, any_whole(), Kept;
    /// LOAD DATA LOCAL is offered to clients that allow it.
    local_infile: bool = true, switch(), ReadOnly;
    /// There are no table or row locks to wait for.
    lock_wait_timeout: i64 = 31_536_000, any_whole(), Kept;
    /// There is no binary log.
    log_bin: bool = false, switch(), ReadOnly;
    /// Where the server's messages go.
    log_error: String = "stderr".into(), text(), ReadOnly;
    /// There is no slow query log.
    long_query_time: String = "10".into(), text(), Kept;
    /// Names are compared with case.
    lower_case_table_names: i64 = 0, any_whole(), ReadOnly;
    /// There are no materialized views.
    materialized_view_rewrite_enable_contain_external_table: bool = false, flag(), Kept;
    /// Largest packet that a client may send; taken from the setting of the same name.
    max_allowed_packet: i64 = 67_108_864, any_whole(), Kept;
    /// The setting `qe_max_connection` applies instead.
    max_connections: i64 = 4096, any_whole(), Kept;
    /// SHOW WARNINGS shows all warnings.
    max_error_count: i64 = 64, any_whole(), Kept;
    /// Milliseconds after which a SELECT fails. 0: only `query_timeout` applies.
    max_execution_time: i64 = 0, whole(0, i64::MAX), Obeyed;
    /// Buffers grow as needed.
    max_heap_table_size: i64 = 16_777_216, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    max_instance_num: i64 = 64, any_whole(), Kept;
    /// Without effect, because `sql_big_selects` is on.
    max_join_size: String = "18446744073709551615".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    max_msg_size_of_result_receiver: i64 = 104_857_600, any_whole(), Kept;
    /// Limit on the prepared statements of one connection; beyond it, error 1461.
    max_prepared_stmt_count: i64 = 16_382, whole(0, MAX_PREPARED_STATEMENTS), Global;
    /// A tuning variable of Doris; answers are the same.
    max_pushdown_conditions_per_column: i64 = 1024, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    max_scan_key_num: i64 = 48, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    max_table_count_use_cascades_join_reorder: i64 = 10, any_whole(), Kept;
    /// The setting `qe_max_connection` applies instead.
    max_user_connections: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    memo_max_group_expression_size: i64 = 10_000, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    min_revocable_mem: i64 = 33_554_432, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    minidump_path: String = "".into(), text(), Kept;
    /// With compat, CREATE TABLE and ALTER TABLE map what only MySQL has, and SHOW WARNINGS says how; with doris, it is refused.
    mysql_ddl: String = "doris".into(), mysql_ddl(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    nereids_cbo_penalty_factor: String = "0.7".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    nereids_star_schema_support: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    nereids_timeout_second: i64 = 30, any_whole(), Kept;
    /// Buffers grow as needed.
    net_buffer_length: i64 = 16_384, any_whole(), Kept;
    /// An incomplete command closes its connection after a minute.
    net_read_timeout: i64 = 600, any_whole(), Kept;
    /// An incomplete command closes its connection after a minute.
    net_retry_count: i64 = 10, any_whole(), Kept;
    /// A client that reads nothing of its answer for a minute is disconnected.
    net_write_timeout: i64 = 600, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    num_scanner_threads: i64 = 0, any_whole(), Kept;
    /// Passwords are hashed as MySQL's native ones.
    old_passwords: i64 = 0, any_whole(), Kept;
    /// Answers are the same.
    optimizer_switch: String = "".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_exchange_instance_num: i64 = 100, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_fragment_exec_instance_num: i64 = 1, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_pipeline_task_num: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_prepare_threshold: i64 = 32, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_scan_max_scanners_count: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_scan_min_rows_per_scanner: i64 = 2_097_152, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    parallel_sync_analyze_task_num: i64 = 2, any_whole(), Kept;
    /// Handling of new keys in a partial update: load the row, or fail.
    partial_update_new_key_behavior: String = "APPEND".into(), new_keys(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    partition_pruning_expand_threshold: i64 = 10, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    partitioned_hash_agg_rows_threshold: i64 = 0, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    partitioned_hash_join_rows_threshold: i64 = 0, any_whole(), Kept;
    /// Last passwords of a user that can't be set again, unless the user has a rule of its own.
    password_history: i64 = 0, whole(0, PASSWORD_HISTORY_MAX as i64), Global;
    /// There is no performance_schema.
    performance_schema: bool = false, switch(), ReadOnly;
    /// The MySQL protocol's default port.
    port: i64 = 9030, any_whole(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    prefer_join_method: String = "broadcast".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    profile_level: i64 = 1, any_whole(), Kept;
    /// Statements are not profiled.
    profiling: bool = false, switch(), Kept;
    /// The MySQL protocol's version.
    protocol_version: i64 = 10, any_whole(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    push_topn_to_agg: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    query_cache_entry_max_bytes: i64 = 5_242_880, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    query_cache_entry_max_rows: i64 = 500_000, any_whole(), Kept;
    /// There is no query cache.
    query_cache_size: i64 = 1_048_576, any_whole(), Kept;
    /// There is no query cache.
    query_cache_type: i64 = 0, any_whole(), Kept;
    /// At a server that only reads, how old rows may be, in milliseconds, before it asks the one that writes for newer ones; -1 and 0: it always asks.
    query_freshness_tolerance_ms: i64 = -1, whole(-1, 2147483647), Obeyed;
    /// Seconds after which a query fails.
    query_timeout: i64 = QUERY_TIMEOUT_DEFAULT_SECONDS, whole(1, 2147483647), Obeyed;
    /// Receipt of a load, which is its transaction's id: reads of the session wait until it is visible; 0: none.
    read_after: i64 = 0, whole(0, i64::MAX), Session;
    /// Buffers grow as needed.
    read_buffer_size: i64 = 131_072, any_whole(), Kept;
    /// An empty line of a CSV file is not a row.
    read_csv_empty_line_as_null: bool = false, flag(), Fixed;
    /// Tables can be written.
    read_only: bool = false, switch(), ReadOnly;
    /// Reads of the session wait until its own loads of Group Commit are visible.
    read_own_writes: bool = false, flag(), Obeyed;
    /// Buffers grow as needed.
    read_rnd_buffer_size: i64 = 262_144, any_whole(), Kept;
    /// An INSERT of a key that exists, or that it has twice, fails with MySQL's error 1062; off: the row replaces the one of its key. INSERT IGNORE, REPLACE and ON DUPLICATE KEY UPDATE are as always.
    refuse_existing_keys: bool = false, switch(), Obeyed;
    /// `keep`: loads of the session go on when rows are rejected, which are found in `information_schema.rejected_rows`; `fail`: they fail; empty: as the table's property says.
    rejected_rows: Option<RejectPolicy> = None, reject_policy(), Obeyed;
    /// Clients without TLS are refused if it is `ON`.
    require_secure_transport: String = "OFF".into(), text(), ReadOnly;
    /// An INSERT into a table with a sequence column must name the column.
    require_sequence_in_insert: bool = true, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    resource_group: String = "".into(), text(), Kept;
    /// On: BITMAP and HLL values are shown as their bytes; off: as NULL.
    return_object_data_as_binary: bool = false, flag(), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    rewrite_count_distinct_to_bitmap_hll: bool = true, flag(), Kept;
    /// A tuning variable of Doris; answers are the same.
    rewrite_or_to_in_predicate_threshold: i64 = 2, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_bloom_filter_max_size: i64 = 16_777_216, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_bloom_filter_min_size: i64 = 1_048_576, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_bloom_filter_size: i64 = 2_097_152, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_filter_jump_threshold: i64 = 2, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_filter_max_in_num: i64 = 1024, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_filter_mode: String = "GLOBAL".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_filter_type: String = "IN_OR_BLOOM_FILTER,MIN_MAX".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_filter_wait_time_ms: i64 = 1000, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    runtime_filters_max_num: i64 = 10, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    scan_queue_mem_limit: i64 = 107_374_182, any_whole(), Kept;
    /// The setting `mysql_load_server_secure_path` names the directory of files that statements may read.
    secure_file_priv: String = "".into(), text(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    send_batch_parallelism: i64 = 1, any_whole(), Kept;
    /// Values are written as Doris writes them.
    serde_dialect: String = "doris".into(), text(), Fixed;
    /// The server's number.
    server_id: i64 = 1, any_whole(), ReadOnly;
    /// The server's identity, which it keeps from its first start on.
    server_uuid: String = "".into(), text(), ReadOnly;
    /// Session tracking is not offered.
    session_track_gtids: String = "OFF".into(), text(), Kept;
    /// Session tracking is not offered.
    session_track_schema: bool = false, switch(), Kept;
    /// Session tracking is not offered.
    session_track_state_change: bool = false, switch(), Kept;
    /// Session tracking is not offered.
    session_track_system_variables: String = "".into(), text(), Kept;
    /// Session tracking is not offered.
    session_track_transaction_info: String = "OFF".into(), text(), Kept;
    /// information_schema shows database names without a catalog.
    show_full_dbname_in_info_schema_db: bool = false, flag(), Fixed;
    /// On: `SELECT *` and DESC include hidden columns, and queries show rows that delete while they are in memory; UPDATE and DELETE of tables with UNIQUE KEY are refused.
    show_hidden_columns: bool = false, flag(), Obeyed;
    /// The info text of a load says why and how long: its mode, why its group closed, when it is visible, its stages in microseconds; errors say whether the statement may be sent again.
    show_load_details: bool = false, flag(), Obeyed;
    /// Deleted rows are not shown.
    skip_delete_bitmap: bool = false, flag(), Fixed;
    /// Deleted rows are not shown.
    skip_delete_predicate: bool = false, flag(), Fixed;
    /// Deleted rows are not shown.
    skip_delete_sign: bool = false, flag(), Fixed;
    /// A table with missing data is not read.
    skip_missing_version: bool = false, flag(), Fixed;
    /// Clients connect over TCP.
    skip_networking: bool = false, switch(), ReadOnly;
    /// Rows of one key are merged.
    skip_storage_engine_merge: bool = false, flag(), Fixed;
    /// Slow statements are in the audit log.
    slow_query_log: bool = false, switch(), ReadOnly;
    /// There is no Unix socket.
    socket: String = "".into(), text(), ReadOnly;
    /// Buffers grow as needed.
    sort_buffer_size: i64 = 262_144, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    sort_phase_num: i64 = 0, any_whole(), Kept;
    /// `IS NULL` matches NULL only.
    sql_auto_is_null: bool = false, switch(), Fixed;
    /// No SELECT is too large.
    sql_big_selects: bool = true, switch(), Fixed;
    /// Results are sent as they are computed.
    sql_buffer_result: bool = false, switch(), Kept;
    /// Statements are parsed as Doris parses them.
    sql_dialect: String = "doris".into(), text(), Fixed;
    /// There is no binary log.
    sql_log_bin: bool = true, switch(), Kept;
    /// How statements are read; modes that change values or types (`HIGH_NOT_PRECEDENCE`, `NO_UNSIGNED_SUBTRACTION`, …) are refused.
    sql_mode: SqlMode = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION".into(), sql_mode(), Obeyed;
    /// Warnings do not change.
    sql_notes: bool = true, switch(), Kept;
    /// SHOW CREATE quotes names.
    sql_quote_show_create: bool = true, switch(), Fixed;
    /// UPDATE and DELETE may use conditions on any columns.
    sql_safe_updates: bool = false, switch(), Kept;
    /// Limit on the rows of a SELECT without LIMIT.
    sql_select_limit: u64 = u64::MAX, row_limit(), Obeyed;
    /// Warnings do not change.
    sql_warnings: bool = false, switch(), Kept;
    /// There is one storage engine.
    storage_engine: String = "olap".into(), text(), Kept;
    /// Tables can be written.
    super_read_only: bool = false, switch(), ReadOnly;
    /// The server's time zone.
    system_time_zone: String = "UTC".into(), text(), ReadOnly;
    /// Time zone of clock functions and of date defaults.
    time_zone: NamedZone = "UTC".into(), zone(), Obeyed;
    /// Unix time that clock functions return. 0: the current time.
    timestamp: Decimal = "0".into(), decimal(), Obeyed;
    /// Buffers grow as needed.
    tmp_table_size: i64 = 16_777_216, any_whole(), Kept;
    /// Queries spill into a directory below `datadir`.
    tmpdir: String = "/tmp".into(), text(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    topn_filter_ratio: String = "0.5".into(), text(), Kept;
    /// A tuning variable of Doris; answers are the same.
    topn_lazy_materialization_threshold: i64 = 1024, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    topn_opt_limit_threshold: i64 = 1024, any_whole(), Kept;
    /// A tuning variable of Doris; answers are the same.
    trace_nereids: String = "OFF".into(), text(), Kept;
    /// A statement reads what was committed when it began, whatever is set.
    transaction_isolation: String = "READ-COMMITTED".into(), text(), Kept;
    /// Whether statements that write are refused (1792).
    transaction_read_only: bool = false, switch(), Obeyed;
    /// Trailing blanks are preserved.
    trim_tailing_spaces_for_external_table_query: bool = false, flag(), Fixed;
    /// Texts of external tables are not truncated.
    truncate_char_or_varchar_columns: bool = false, flag(), Fixed;
    /// A statement reads what was committed when it began, whatever is set.
    tx_isolation: String = "READ-COMMITTED".into(), text(), Kept;
    /// As `transaction_read_only`.
    tx_read_only: bool = false, switch(), Obeyed;
    /// There are no unique indexes.
    unique_checks: bool = true, switch(), Kept;
    /// A tuning variable of Doris; answers are the same.
    use_fix_replica: i64 = -1, any_whole(), Kept;
    /// With STRONG (2), new passwords have 8 characters and 3 kinds of them.
    validate_password_policy: i64 = 0, password_strength(), Global;
    /// MySQL version that drivers see, as in Doris.
    version: String = SERVER_VERSION.into(), text(), ReadOnly;
    /// The server's name and version.
    version_comment: String = VERSION_COMMENT.into(), text(), ReadOnly;
    /// The machine's architecture.
    version_compile_machine: String = std::env::consts::ARCH.into(), text(), ReadOnly;
    /// The operating system.
    version_compile_os: String = std::env::consts::OS.into(), text(), ReadOnly;
    /// A tuning variable of Doris; answers are the same.
    wait_full_block_schedule_times: i64 = 2, any_whole(), Kept;
    /// Seconds after which an idle connection is closed; 8 hours by default.
    wait_timeout: i64 = WAIT_TIMEOUT_DEFAULT_SECONDS, whole(1, 31536000), Obeyed;
    /// A tuning variable of Doris; answers are the same.
    workload_group: String = "normal".into(), text(), Kept;
}
