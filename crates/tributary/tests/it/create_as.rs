//! CREATE TABLE … AS SELECT and LIKE: a table with all rows of a query, or no table.

use crate::support::{HttpServer, Page, Server, wait_until};
use walkdir::WalkDir;

/// Number of tables that have files, known or not.
fn tables(server: &Server) -> usize {
    let all = WalkDir::new(server.data().join("tables")).into_iter().flatten();
    all.filter(|entry| entry.file_name() == "00000000000000000000.json").count()
}

#[test]
fn a_table_is_made_with_the_rows_and_types_of_a_query() {
    let server = Server::start();
    let mut db = server.database().with_dt("");
    let client = &mut db.client;
    client.ok("INSERT INTO dt VALUES (1, 'Bob', 90), (2, NULL, 99)");
    let answer =
        client.ok("CREATE TABLE copy AS SELECT name, id, score / 2 AS half, COUNT(*) OVER () FROM dt");
    assert_eq!((answer.affected_rows, answer.info_value("status")), (2, "VISIBLE"));
    assert_eq!(
        client.rows("DESC copy"),
        [
            "name|varchar(65533)|Yes|true|NULL|",
            "id|int|No|false|NULL|NONE",
            "half|double|Yes|false|NULL|NONE",
            "__count_3|bigint|Yes|false|NULL|NONE"
        ]
    );
    assert_eq!(client.rows("SELECT * FROM copy ORDER BY id"), ["Bob|1|45|2", "NULL|2|49.5|2"]);
    assert_eq!(client.rows("SHOW LAST INSERT")[0].split('|').nth(3), Some("copy"));
    client.ok("CREATE TABLE u (k, v) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\") SELECT 1, name FROM dt ORDER BY id DESC");
    assert_eq!(client.rows("SELECT * FROM u"), ["1|Bob"]);
    assert_eq!(client.ok("CREATE TABLE IF NOT EXISTS u AS SELECT 1 AS a").affected_rows, 0);
    assert_eq!(client.rows("SELECT * FROM u"), ["1|Bob"]);
    assert_eq!(client.ok("CREATE TABLE none AS SELECT * FROM dt WHERE id > 9").affected_rows, 0);
    assert_eq!(client.value("SELECT COUNT(*) FROM none"), "0");

    client.ok("ALTER TABLE dt RENAME COLUMN score points");
    client.ok("CREATE TABLE same LIKE dt");
    let shown = |table: &str, rows: Vec<String>| rows[0].replacen(table, "x", 2);
    let (one, other) = (client.rows("SHOW CREATE TABLE dt"), client.rows("SHOW CREATE TABLE same"));
    assert_eq!(shown("dt", one), shown("same", other));
    assert_eq!(client.value("SELECT COUNT(*) FROM same"), "0");
    client.ok("INSERT INTO same (id, points) VALUES (7, 8)");
    assert_eq!(client.rows("SELECT * FROM same"), ["7|NULL|8"]);
    assert_eq!(client.error("CREATE TABLE same LIKE dt").number, 1050);
    client.ok("CREATE TABLE IF NOT EXISTS same LIKE dt");
    assert_eq!(client.error("CREATE TABLE other LIKE nope").number, 1146);
}

#[test]
fn what_fails_or_is_killed_leaves_no_table() {
    let mut server = Server::with_settings(&[("large_load_bytes", "262144")]);
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'Bob', 90)");
    for (sql, number) in [
        ("CREATE TABLE bad AS SELECT nope FROM dt", 1054),
        ("CREATE TABLE bad AS SELECT id, 9223372036854775807 + id FROM dt", 1105),
        ("CREATE TABLE dt AS SELECT 1 AS a", 1050),
        ("CREATE TABLE bad (a, b) AS SELECT 1", 1105),
        ("CREATE TABLE nope.bad AS SELECT 1 AS a", 1049),
    ] {
        let error = db.client.error(sql);
        assert_eq!(error.number, number, "{sql}: {}", error.message);
    }
    wait_until("the tables are gone", || tables(&server) == 1);
    assert_eq!(db.client.rows("SHOW TABLES"), ["dt"]);

    let rows: String = (0..40_000).map(|id| format!("{id},name {id}\n")).collect();
    let web = HttpServer::start(&[("/hanging.csv", Page::Hanging(rows.into_bytes()))]);
    let sql = format!(
        "CREATE TABLE slow AS SELECT * FROM HTTP(\"uri\" = \"{}/hanging.csv\", \"column_separator\" = \",\")",
        web.url
    );
    let id = db.client.value("SELECT connection_id()");
    db.client.send(&sql);
    let mut other = server.connect_to(&db.name);
    wait_until("its table is being filled", || tables(&server) == 2);
    assert_eq!(other.rows("SHOW TABLES"), ["dt"], "nobody sees it");
    assert_eq!(
        other.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"),
        ["dt"]
    );
    other.ok(&format!("KILL QUERY {id}"));
    assert_eq!(db.client.answered_error().number, 1317);
    wait_until("the table is gone", || tables(&server) == 1);

    // A server that is killed meanwhile, and another statement that takes the name.
    db.client.send(&sql);
    wait_until("its table is being filled", || tables(&server) == 2);
    server.kill();
    server.start_again();
    wait_until("the table is gone", || tables(&server) == 1);
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SHOW TABLES"), ["dt"]);
    assert_eq!(client.error("SELECT * FROM slow").number, 1146);
    client.ok("CREATE TABLE slow AS SELECT * FROM dt");
    assert_eq!(client.rows("SELECT * FROM slow"), ["1|Bob|90"]);
}
