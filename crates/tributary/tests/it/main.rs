//! Tests of the whole server, through the doors that users have: real clients over real ports.
//!
//! Every test starts the program or shares a running one with other tests, in which case it works in a database of its own.
//! Nothing waits for a fixed time: a test waits for a condition, or fails after a generous limit.
//!
//! The clients of other languages are installed by `scripts/setup-test-clients`; a test whose client
//! is missing fails and says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod abuse;
mod addresses;
mod aggregates;
mod audit;
mod audit_secrets;
mod auto_increment;
mod bad_http;
mod bad_insert;
mod bad_statements;
mod broker_load;
mod cli_load;
mod cli_sql;
mod column_defaults;
mod columnar_load;
mod command_line;
mod console;
mod copy_on_write;
mod crash;
mod create_as;
mod damage;
mod ddl_texts;
mod delete;
mod delta;
mod doubt;
mod duplicate_updates;
mod dynamic_partitions;
mod export;
mod fallback;
mod flood;
mod generated_columns;
mod go;
mod health;
mod heavy_change;
mod hidden_tables;
mod http_api;
mod http_query;
mod http_stream;
mod insert_ignore;
mod insert_select;
mod inspection;
mod interrupt;
mod java;
mod json_load;
mod key_texts;
mod lifecycle;
mod limits;
mod load_data;
mod load_details;
mod load_headers;
mod log;
mod logins;
mod manual_insert;
mod manual_stream_load;
mod many_tables;
mod modes;
mod mysql_clients;
mod mysql_statements;
mod named_statements;
mod nested_change;
mod nested_types;
mod node;
mod node_file;
mod old_data;
mod outbound;
mod outfile;
mod overwrite;
mod packed_bodies;
mod partial_update;
mod partitions;
mod password_rules;
mod planning;
mod poisoned;
mod privileges;
mod problems;
mod python;
mod receipts;
mod recycle;
mod rejected_rows;
mod repeated_loads;
mod rollups;
mod routine_load;
mod routine_load_tables;
mod row_changes;
mod states;
mod stopped_copy;
mod stream_load;
mod support;
mod table_functions;
mod temporary_partitions;
mod texts;
mod tokens;
mod torture;
mod transactions;
mod two_phase;
mod unique;
mod upserts;
mod variables;
mod views;
