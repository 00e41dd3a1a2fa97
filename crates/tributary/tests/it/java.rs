//! MySQL Connector/J, unmodified: the manual's program with the manual's addresses, and what else
//! JDBC programs do.

use crate::support::Server;
use crate::support::programs::java;

fn check(name: &str) {
    let server = Server::shared();
    let db = server.database();
    assert_eq!(java("JdbcChecks", &[&server.mysql_port().to_string(), &db.name, name]), "ok\n");
}

/// Runs the manual's program, which inserts five batches of ten rows.
fn manual_program(more: &str) {
    let server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"3600000\"");
    java("GroupCommitInsertBatch", &[&server.mysql_port().to_string(), &db.name, more]);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "0", "the rows wait for their group's commit");
    db.client.ok("SYNC");
    let each = "SELECT id, name, score, count(*) FROM dt GROUP BY id, name, score ORDER BY id";
    let expected: Vec<String> = (0..10).map(|id| format!("{id}|name{id}|{}|5", id + 10)).collect();
    assert_eq!(db.client.rows(each), expected);
}

#[test]
fn the_manuals_program_inserts_fifty_rows_in_one_group() {
    manual_program("");
}

#[test]
fn the_manuals_program_runs_with_the_manuals_other_address() {
    manual_program(",enable_nereids_planner=false");
}

#[test]
fn all_setters_and_getters_keep_values_by_both_protocols() {
    check("types");
}

#[test]
fn transactions_commit_and_roll_back() {
    check("transactions");
}

#[test]
fn a_statement_can_set_the_mode() {
    check("mode");
}

#[test]
fn tables_and_columns_are_found_by_metadata() {
    check("metadata");
}

#[test]
fn tables_and_columns_are_found_by_information_schema() {
    check("information_schema");
}

#[test]
fn errors_have_numbers_and_states() {
    check("errors");
}

#[test]
fn an_address_without_options_works() {
    check("plain");
}

#[test]
fn the_compressed_protocol_carries_batches_and_large_values() {
    check("compressed");
}

#[test]
fn the_jdks_client_follows_loads_that_are_sent_on() {
    let server = Server::with_settings(&[("redirect_loads", "true")]);
    for way in ["followed", "by_hand"] {
        let mut db = server.database().with_dt("");
        assert_eq!(java("StreamLoadChecks", &[&server.http_port().to_string(), &db.name, way]), "ok\n");
        assert_eq!(db.client.rows("SELECT count(*), count(DISTINCT id) FROM dt"), ["20000|20000"], "{way}");
    }
}
