//! go-sql-driver, unmodified: the manual's program, and what else Go programs do.

use crate::support::programs::{go, run};
use crate::support::{Server, wait_until};

/// The table of the manual's benchmark under the name that its Go program uses.
const ASYNC_LINEITEM: &str = "CREATE TABLE IF NOT EXISTS async_lineitem (
    L_ORDERKEY INTEGER NOT NULL,
    L_PARTKEY INTEGER NOT NULL,
    L_SUPPKEY INTEGER NOT NULL,
    L_LINENUMBER INTEGER NOT NULL,
    L_QUANTITY DECIMAL(15,2) NOT NULL,
    L_EXTENDEDPRICE DECIMAL(15,2) NOT NULL,
    L_DISCOUNT DECIMAL(15,2) NOT NULL,
    L_TAX DECIMAL(15,2) NOT NULL,
    L_RETURNFLAG CHAR(1) NOT NULL,
    L_LINESTATUS CHAR(1) NOT NULL,
    L_SHIPDATE DATE NOT NULL,
    L_COMMITDATE DATE NOT NULL,
    L_RECEIPTDATE DATE NOT NULL,
    L_SHIPINSTRUCT CHAR(25) NOT NULL,
    L_SHIPMODE CHAR(10) NOT NULL,
    L_COMMENT VARCHAR(44) NOT NULL
)
DUPLICATE KEY(L_ORDERKEY, L_PARTKEY, L_SUPPKEY, L_LINENUMBER)
DISTRIBUTED BY HASH(L_ORDERKEY) BUCKETS 32
PROPERTIES (
    \"replication_num\" = \"1\",
    \"group_commit_mode\" = \"async_mode\",
    \"group_commit_interval_ms\" = \"500\"
);";

fn check(name: &str) {
    let server = Server::shared();
    let db = server.database();
    let port = server.mysql_port().to_string();
    assert_eq!(run("checks", go("checks").args([name, &port, &db.name])).success(), "ok\n");
}

#[test]
fn the_manuals_program_inserts_from_twenty_threads() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(ASYNC_LINEITEM);
    let mut program = go("manual");
    program.args([&server.mysql_port().to_string(), &db.name]).env("BATCHES", "3");
    let output = run("manual", &mut program).success();
    // 20 threads, 3 batches, 100 rows
    assert_eq!(output.lines().last(), Some("Total inserted rows: 6000"), "{output}");
    wait_until("all groups have committed", || {
        db.client.value("SELECT count(*) FROM async_lineitem") == "6000"
    });
    let sums = "SELECT sum(L_QUANTITY), sum(L_TAX), min(L_RETURNFLAG), max(L_SHIPINSTRUCT), count(DISTINCT L_SHIPMODE) FROM async_lineitem";
    assert_eq!(db.client.rows(sums), ["6000.00|6000.00|N|DELIVER IN PERSON|1"]);
    let last = db.client.value(
        "SELECT count(*) FROM async_lineitem WHERE L_SHIPDATE = L_RECEIPTDATE AND L_SHIPDATE > '2020-01-01'",
    );
    assert!(last.parse::<u32>().is_ok_and(|count| count > 5000), "dates come from time.Now(): {last}");
}

#[test]
fn prepared_values_of_all_types_come_back() {
    check("prepared");
}

#[test]
fn interpolated_values_of_all_types_come_back() {
    check("interpolated");
}

#[test]
fn a_statement_is_prepared_once_and_used_often() {
    check("statements");
}

#[test]
fn transactions_commit_and_roll_back() {
    check("transactions");
}

#[test]
fn the_address_can_set_the_mode() {
    check("mode");
}

#[test]
fn errors_have_numbers_and_states() {
    check("failures");
}
