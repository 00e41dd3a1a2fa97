//! Servers of many tables: start after a crash, look-ups of one table, stop.
//!
//! Times are printed, and not judged: `MANY_TABLES=5000 cargo test --release -p tributary --test it many_tables -- --nocapture`
//! measures.

use crate::support::Server;
use std::time::Instant;

fn tables() -> usize {
    std::env::var("MANY_TABLES").ok().and_then(|count| count.parse().ok()).unwrap_or(120)
}

#[test]
fn a_server_of_many_tables_starts_after_a_crash_and_finds_each_of_them() {
    let count = tables();
    let mut server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("SET group_commit = async_mode");
    for table in 0..count {
        client.ok(&format!(
            "CREATE TABLE t{table} (k INT, v STRING) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1"
        ));
        // One in ten has rows in the log at the crash.
        if table % 10 == 0 {
            client.ok(&format!("INSERT INTO t{table} VALUES ({table}, 'a')"));
        }
    }
    server.kill();
    let began = Instant::now();
    server.start_again();
    println!("{count} tables: ready after {:?}", began.elapsed());
    let mut client = server.connect_to("d");
    let last = count - 1;
    let began = Instant::now();
    for table in ["tables", "columns"] {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.{table} WHERE table_schema = 'd' AND table_name = 't{last}'"
        );
        let rows = if table == "tables" { 1 } else { 2 };
        assert_eq!(client.value(&sql), rows.to_string(), "{sql}");
    }
    println!("{count} tables: two look-ups of information_schema in {:?}", began.elapsed());
    assert_eq!(
        client.value("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'"),
        count.to_string()
    );
    for table in (0..count).step_by(10) {
        assert_eq!(client.rows(&format!("SELECT k, v FROM t{table}")), [format!("{table}|a")]);
    }
    client.ok(&format!("INSERT INTO t{last} VALUES (7, 'b')"));
    client.ok("SYNC");
    drop(client);
    let began = Instant::now();
    assert!(server.stop().success());
    println!("{count} tables: stopped in {:?}", began.elapsed());
    server.start_again();
    let rows = server.connect_to("d").rows(&format!("SELECT v FROM t{last} WHERE k = 7"));
    assert_eq!(rows, ["b"]);
}
