//! PyMySQL and MySQL's own Python driver, unmodified.

use crate::support::Server;
use crate::support::programs::python;

fn check(program: &str, name: &str) {
    let server = Server::shared();
    let db = server.database();
    assert_eq!(python(program, &[name, &server.mysql_port().to_string(), &db.name]), "ok\n");
}

#[test]
fn pymysql_keeps_values_of_all_types() {
    check("pymysql_checks.py", "types");
}

#[test]
fn pymysql_runs_queries_with_parameters_and_large_batches() {
    check("pymysql_checks.py", "parameters");
}

#[test]
fn pymysql_counts_found_or_changed_rows() {
    check("pymysql_checks.py", "found_rows");
}

#[test]
fn pymysql_is_told_the_digits_of_times() {
    check("pymysql_checks.py", "times");
}

#[test]
fn pymysql_reads_an_unbuffered_result() {
    check("pymysql_checks.py", "unbuffered");
}

#[test]
fn pymysql_works_with_its_default_of_no_autocommit() {
    check("pymysql_checks.py", "autocommit_off");
}

#[test]
fn pymysql_transactions_commit_and_roll_back() {
    check("pymysql_checks.py", "transactions");
}

#[test]
fn pymysql_can_set_the_mode_at_connecting() {
    check("pymysql_checks.py", "group_commit");
}

#[test]
fn pymysql_errors_have_classes_and_numbers() {
    check("pymysql_checks.py", "errors");
}

#[test]
fn pymysql_sees_its_schema_changes_finished() {
    check("pymysql_checks.py", "schema_changes");
}

#[test]
fn pymysql_pings_changes_databases_and_reads_several_results() {
    check("pymysql_checks.py", "life");
}

#[test]
fn mysqls_driver_runs_prepared_statements() {
    check("connector_checks.py", "prepared");
}

#[test]
fn mysqls_driver_runs_plain_statements_and_resets_its_connection() {
    check("connector_checks.py", "plain");
}

#[test]
fn mysqls_driver_speaks_the_compressed_protocol() {
    check("connector_checks.py", "compressed");
}

#[test]
fn pythons_own_clients_follow_loads_that_are_sent_on() {
    let server = Server::with_settings(&[("redirect_loads", "true")]);
    for way in ["urllib", "http_client"] {
        let mut db = server.database().with_dt("");
        let arguments = [way, &server.http_port().to_string(), &db.name];
        assert_eq!(python("stream_load_checks.py", &arguments), "ok\n");
        assert_eq!(db.client.rows("SELECT count(*), count(DISTINCT id) FROM dt"), ["20000|20000"], "{way}");
    }
}
