//! mysql2 for Node, unmodified.

use crate::support::Server;
use crate::support::programs::node;

fn check(name: &str) {
    let server = Server::shared();
    let db = server.database();
    assert_eq!(node("mysql2_checks.js", &[name, &server.mysql_port().to_string(), &db.name]), "ok\n");
}

#[test]
fn queries_take_placeholders_and_give_the_info_text() {
    check("query");
}

#[test]
fn many_rows_are_inserted_by_one_placeholder() {
    check("bulk");
}

#[test]
fn prepared_statements_are_used_again() {
    check("execute");
}

#[test]
fn values_of_all_types_come_back_by_both_protocols() {
    check("types");
}

#[test]
fn several_statements_give_several_results() {
    check("multiple");
}

#[test]
fn a_pool_of_connections_fills_groups() {
    check("pool");
}

#[test]
fn transactions_commit_and_roll_back() {
    check("transactions");
}

#[test]
fn errors_have_numbers_and_states() {
    check("errors");
}

#[test]
fn the_compressed_protocol_carries_small_and_large_answers() {
    check("compressed");
}
