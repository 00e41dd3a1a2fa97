//! Heavy schema changes: `ALTER TABLE` as a job beside loads, with its states, crashes, and other readers of the table.

use crate::delta::delta_table;
use crate::support::programs::python;
use crate::support::{Client, Curl, Database, Server, wait_until};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A column of the last job of a table.
fn shown(client: &mut Client, db: &str, table: &str, column: &str) -> String {
    let rows = client.table(&format!(
        "SHOW ALTER TABLE COLUMN FROM {db} WHERE TableName = '{table}' ORDER BY CreateTime DESC LIMIT 1"
    ));
    let at = rows.columns.iter().position(|known| known == column).expect("SHOW ALTER TABLE COLUMN has it");
    rows.rows.last().and_then(|row| row[at].clone()).unwrap_or_else(|| "NULL".to_owned())
}

fn wait_for(client: &mut Client, db: &str, table: &str, state: &str) {
    wait_until(&format!("the change of {table} is {state}"), || {
        let now = shown(client, db, table, "State");
        let is_other_end = ["FINISHED", "CANCELLED"].contains(&now.as_str()) && now != state;
        assert!(!is_other_end, "the change of {table} is {now}: {}", shown(client, db, table, "Msg"));
        now == state
    });
}

fn alter(db: &mut Database, table: &str, clauses: &str) {
    db.client.ok(&format!("ALTER TABLE {table} {clauses}"));
    let name = db.name.clone();
    wait_for(&mut db.client, &name, table, "FINISHED");
}

/// `name|type|null|key` of the columns.
fn columns(client: &mut Client, table: &str) -> Vec<String> {
    let rows = client.rows(&format!("DESC {table}"));
    rows.iter().map(|row| row.split('|').take(4).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn types_become_others_of_the_matrix_with_their_values() {
    let server = Server::shared();
    let mut db = server.database();
    for (number, (from, to, values, expected)) in [
        ("TINYINT", "SMALLINT", "-128, 127, NULL", "-128 127 NULL"),
        ("INT", "BIGINT", "-2147483648, 2147483647, NULL", "-2147483648 2147483647 NULL"),
        ("BIGINT", "LARGEINT", "9223372036854775807, 0, NULL", "9223372036854775807 0 NULL"),
        ("INT", "DOUBLE", "1, -7, NULL", "1 -7 NULL"),
        ("SMALLINT", "VARCHAR(6)", "-32768, 5, NULL", "-32768 5 NULL"),
        ("INT", "DATE", "20240229, 19991231, NULL", "2024-02-29 1999-12-31 NULL"),
        ("FLOAT", "DOUBLE", "1.5, -0.25, NULL", "1.5 -0.25 NULL"),
        ("DOUBLE", "STRING", "1.5, -0.25, NULL", "1.5 -0.25 NULL"),
        ("DECIMAL(5,2)", "DECIMAL(9,4)", "1.25, -999.99, NULL", "1.2500 -999.9900 NULL"),
        ("DECIMAL(5,2)", "VARCHAR(9)", "1.25, -999.99, NULL", "1.25 -999.99 NULL"),
        ("CHAR(3)", "INT", "'12', '-7', NULL", "12 -7 NULL"),
        ("VARCHAR(20)", "LARGEINT", "'9223372036854775808', '0', NULL", "9223372036854775808 0 NULL"),
        ("VARCHAR(9)", "DOUBLE", "'1.5', '2', NULL", "1.5 2 NULL"),
        ("VARCHAR(10)", "DATE", "'2024-02-29', '1999-12-31', NULL", "2024-02-29 1999-12-31 NULL"),
        ("VARCHAR(20)", "JSON", "'{\"a\": 1}', '[]', NULL", "{\"a\": 1} [] NULL"),
        ("JSON", "STRING", "'{}', '[1]', NULL", "{} [1] NULL"),
        (
            "DATE",
            "DATETIME",
            "'2024-02-29', '1999-12-31', NULL",
            "2024-02-29 00:00:00 1999-12-31 00:00:00 NULL",
        ),
        ("DATETIME", "DATE", "'2024-02-29 23:59:59', '1999-12-31', NULL", "2024-02-29 1999-12-31 NULL"),
        (
            "DATETIME(6)",
            "DATETIME(0)",
            "'2024-02-29 01:02:03.4', '1999-12-31', NULL",
            "2024-02-29 01:02:03 1999-12-31 00:00:00 NULL",
        ),
        ("CHAR(3)", "VARCHAR(9)", "'a', 'bcd', NULL", "a bcd NULL"),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("t{number}");
        db.client.ok(&format!("CREATE TABLE {table} (k INT, v {from}, w INT) DUPLICATE KEY(k)"));
        for (k, value) in values.split(", ").enumerate() {
            db.client.ok(&format!("INSERT INTO {table} VALUES ({k}, {value}, {k})"));
        }
        alter(&mut db, &table, &format!("MODIFY COLUMN v {to}"));
        let found = db.client.rows(&format!("SELECT v, w FROM {table} ORDER BY k"));
        let found: Vec<_> = found.iter().map(|row| row.rsplit_once('|').expect("two columns")).collect();
        let text = found.iter().map(|(value, _)| *value).collect::<Vec<_>>().join(" ");
        assert_eq!(text, expected, "{from} to {to}");
        assert!(found.iter().zip(0..).all(|((_, w), k)| *w == k.to_string()), "{from} to {to}");
    }
}

#[test]
fn loads_continue_while_a_type_changes_and_other_readers_see_the_new_one() {
    let server = Server::with_settings(&[("flush_age_ms", "200")]);
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"20\"");
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = ["off_mode", "sync_mode", "async_mode"]
        .into_iter()
        .zip(1_u64..)
        .map(|(mode, writer)| {
            let (mut client, stop) = (server.connect_to(&db.name), Arc::clone(&stop));
            client.ok(&format!("SET group_commit = {mode}"));
            std::thread::spawn(move || {
                let (mut loaded, mut blocked) = (0, 0_u64);
                let mut id = writer * 1_000_000;
                while !stop.load(Ordering::SeqCst) {
                    let insert = format!("INSERT INTO dt (id, name, score) VALUES ({id}, 'x', {id})");
                    match client.try_bytes(insert.as_bytes()).expect("the server answers") {
                        Ok(()) => (loaded, id) = (loaded + 1, id + 1),
                        Err(error) => {
                            let text = error.message;
                            let is_blocked = text.contains("insert table dt is blocked on schema change")
                                || text.contains(
                                    "schema version not match, maybe a schema change is in process",
                                );
                            assert!(is_blocked && mode != "off_mode", "{mode}: {text}");
                            blocked += 1;
                        }
                    }
                }
                (loaded, blocked)
            })
        })
        .collect();
    wait_until("there are some rows", || db.client.value("SELECT count(*) > 200 FROM dt") == "1");
    alter(&mut db, "dt", "MODIFY COLUMN score BIGINT");
    alter(&mut db, "dt", "MODIFY COLUMN score LARGEINT");
    alter(&mut db, "dt", "ADD COLUMN more INT DEFAULT '7', MODIFY COLUMN name STRING");
    stop.store(true, Ordering::SeqCst);
    let loaded: u64 = writers.into_iter().map(|writer| writer.join().expect("it ends").0).sum();
    db.client.ok("SYNC");
    let counted = db.client.value("SELECT count(*) FROM dt WHERE id = score AND name = 'x'");
    assert_eq!(counted, loaded.to_string());
    assert_eq!(db.client.value("SELECT count(DISTINCT id) FROM dt"), loaded.to_string());
    db.client.ok("INSERT INTO dt VALUES (1, 'large', 12345678901234567890, 8)");
    assert_eq!(
        db.client.rows("SELECT name, score, more FROM dt WHERE id = 1"),
        ["large|12345678901234567890|8"]
    );
    python(
        "delta_schema.py",
        &["column", &delta_table(&server), "score", "decimal128(38, 0)", &(loaded + 1).to_string()],
    );
}

#[test]
fn a_value_that_can_not_be_converted_cancels_the_job_and_leaves_the_table() {
    let server = Server::shared();
    let mut db = server.database();
    let name = db.name.clone();
    db.client.ok("CREATE TABLE t (k INT, v VARCHAR(9)) DUPLICATE KEY(k)");
    db.client.ok("INSERT INTO t VALUES (1, '1'), (2, 'two'), (3, '3')");
    db.client.ok("ALTER TABLE t MODIFY COLUMN v INT");
    wait_for(&mut db.client, &name, "t", "CANCELLED");
    let message = shown(&mut db.client, &name, "t", "Msg");
    assert!(
        message.contains("the value 'two' of column 'v' can't be converted from varchar(9) to int"),
        "{message}"
    );
    assert_eq!(db.client.rows("SELECT * FROM t ORDER BY k"), ["1|1", "2|two", "3|3"]);
    db.client.ok("INSERT INTO t VALUES (4, 'four')");
    db.client.ok("DELETE FROM t WHERE v IN ('two', 'four')");
    alter(&mut db, "t", "MODIFY COLUMN v INT");
    assert_eq!(db.client.rows("SELECT * FROM t ORDER BY k"), ["1|1", "3|3"]);
    assert_eq!(columns(&mut db.client, "t"), ["k|int|Yes|true", "v|int|Yes|false"]);
}

fn prepare(server: &Server, db: &Database, label: &str) {
    Curl::stream_load(server, &db.name, "dt")
        .header("column_separator:,")
        .header("two_phase_commit:true")
        .header(&format!("label:{label}"))
        .body("6,Amy,60\n7,Ross,98\n")
        .load()
        .success();
}

fn second(server: &Server, db: &Database, headers: &[&str]) {
    let url = format!("http://127.0.0.1:{}/api/{}/_stream_load_2pc", server.http_port(), db.name);
    let curl = Curl::put(&url).headers(headers);
    assert_eq!(curl.load().get("status"), "Success");
}

#[test]
fn a_job_waits_for_two_phase_loads_can_be_cancelled_and_survives_a_crash() {
    let mut server = Server::start();
    let mut db = server.database().with_dt("");
    let name = db.name.clone();
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    prepare(&server, &db, "before");
    let none = db.client.error("CANCEL ALTER TABLE COLUMN FROM dt").message;
    assert!(none.contains("Table[dt] is not under SCHEMA_CHANGE."), "{none}");
    db.client.ok("ALTER TABLE dt MODIFY COLUMN score BIGINT");
    wait_for(&mut db.client, &name, "dt", "WAITING_TXN");
    for change in [
        "ALTER TABLE dt ADD COLUMN x INT",
        "ALTER TABLE dt MODIFY COLUMN score LARGEINT",
        "ALTER TABLE dt RENAME dt2",
    ] {
        let busy = db.client.error(change).message;
        assert!(
            busy.contains("Table[dt]'s state(SCHEMA_CHANGE) is not NORMAL. Do not allow doing ALTER ops"),
            "{busy}"
        );
    }
    db.client.ok("CANCEL ALTER TABLE COLUMN FROM dt");
    assert_eq!(shown(&mut db.client, &name, "dt", "State"), "CANCELLED");
    assert_eq!(shown(&mut db.client, &name, "dt", "Msg"), "user cancelled");

    db.client.ok("ALTER TABLE dt MODIFY COLUMN score BIGINT");
    wait_for(&mut db.client, &name, "dt", "WAITING_TXN");
    server.kill();
    server.start_again();
    db.client = server.connect_to(&name);
    wait_for(&mut db.client, &name, "dt", "WAITING_TXN");
    second(&server, &db, &["label:before", "txn_operation:commit"]);
    wait_for(&mut db.client, &name, "dt", "FINISHED");
    db.client.ok("INSERT INTO dt VALUES (2, 'b', 3000000000)");
    assert_eq!(
        db.client.rows("SELECT * FROM dt ORDER BY id"),
        ["1|a|1", "2|b|3000000000", "6|Amy|60", "7|Ross|98"]
    );
}

#[test]
fn kills_at_any_time_leave_the_old_table_or_the_new_one() {
    let mut server = Server::with_settings(&[("flush_age_ms", "100")]);
    let mut db = server.database();
    let name = db.name.clone();
    db.client.ok("CREATE TABLE t (k INT, v INT) DUPLICATE KEY(k)");
    let mut rows = 200_000;
    let mut csv = String::new();
    for row in 0..rows {
        writeln!(csv, "{row},{row}").expect("a String takes all");
    }
    let file = server.scratch().join("rows.csv");
    std::fs::write(&file, csv).expect("written");
    Curl::stream_load(&server, &name, "t").header("column_separator:,").file(&file).load().success();
    let types = ["INT", "BIGINT", "LARGEINT", "VARCHAR(60)", "STRING"];
    for (round, to) in types.iter().enumerate().skip(1) {
        let started = std::time::Instant::now();
        db.client.ok(&format!("ALTER TABLE t MODIFY COLUMN v {to}"));
        let pause = std::time::Duration::from_millis(40 * round as u64);
        wait_until("it is somewhere", || {
            if db.client.try_send(&format!("INSERT INTO t VALUES ({rows}, {rows})")).is_some() {
                rows += 1;
            }
            started.elapsed() > pause || shown(&mut db.client, &name, "t", "State") == "FINISHED"
        });
        server.kill();
        server.start_again();
        db.client = server.connect_to(&name);
        wait_for(&mut db.client, &name, "t", "FINISHED");
        let found = columns(&mut db.client, "t");
        let shown_type = to.to_lowercase().replace("string", "text");
        assert_eq!(found[1], format!("v|{shown_type}|Yes|false"));
        assert_eq!(db.client.value("SELECT count(*) FROM t WHERE k = v"), rows.to_string(), "{to}");
    }
}

#[test]
fn keys_are_added_dropped_and_reordered() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (a INT, b VARCHAR(9), v INT) DUPLICATE KEY(a, b) DISTRIBUTED BY RANDOM");
    db.client.ok("INSERT INTO t VALUES (1, 'z', 10), (2, 'y', 20), (3, 'x', 30)");
    db.client.ok("DELETE FROM t WHERE a = 2");
    alter(&mut db, "t", "ADD COLUMN c INT KEY DEFAULT '5'");
    alter(&mut db, "t", "ORDER BY (b, c, a, v)");
    assert_eq!(
        columns(&mut db.client, "t"),
        ["b|varchar(9)|Yes|true", "c|int|Yes|true", "a|int|Yes|true", "v|int|Yes|false"]
    );
    db.client.ok("INSERT INTO t VALUES ('w', 6, 4, 40)");
    assert_eq!(db.client.rows("SELECT * FROM t ORDER BY a"), ["z|5|1|10", "x|5|3|30", "w|6|4|40"]);
    alter(&mut db, "t", "DROP COLUMN c");
    alter(&mut db, "t", "MODIFY COLUMN a BIGINT KEY FIRST");
    assert_eq!(db.client.rows("SELECT * FROM t ORDER BY a"), ["1|z|10", "3|x|30", "4|w|40"]);
    let shown = db.client.rows("SHOW CREATE TABLE t").join("\n");
    assert!(shown.contains("DUPLICATE KEY(`a`, `b`)"), "{shown}");
}

#[test]
fn tables_with_keys_keep_one_row_for_each() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE u (k INT, v INT) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)");
    db.client.ok("INSERT INTO u VALUES (2, 20)");
    alter(&mut db, "u", "MODIFY COLUMN v BIGINT");
    alter(&mut db, "u", "ADD COLUMN l INT KEY DEFAULT '0', MODIFY COLUMN v VARCHAR(30)");
    db.client.ok("INSERT INTO u VALUES (3, 0, 'three'), (3, 1, 'other')");
    db.client.ok("DELETE FROM u WHERE k = 1");
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY k, l"), ["2|0|20", "3|0|three", "3|1|other"]);
    alter(&mut db, "u", "ORDER BY (l, k, v)");
    db.client.ok("INSERT INTO u VALUES (1, 3, 'again')");
    assert_eq!(db.client.rows("SELECT * FROM u ORDER BY k, l"), ["0|2|20", "0|3|three", "1|3|again"]);

    db.client
        .ok("CREATE TABLE g (k INT, s INT SUM, m INT MAX) AGGREGATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    db.client.ok("INSERT INTO g VALUES (1, 2000000000, 1), (2, 5, 5)");
    alter(&mut db, "g", "MODIFY COLUMN s BIGINT SUM");
    db.client.ok("INSERT INTO g VALUES (1, 2000000000, 7)");
    alter(&mut db, "g", "ADD COLUMN l INT DEFAULT '0'");
    db.client.ok("INSERT INTO g VALUES (1, 0, 1, 1), (2, 1, 1, 1)");
    assert_eq!(db.client.rows("SELECT * FROM g ORDER BY k, l"), ["1|0|4000000001|7", "2|0|5|5", "2|1|1|1"]);
}

#[test]
fn a_table_that_is_dropped_takes_its_job_with_it() {
    let server = Server::start();
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    prepare(&server, &db, "before");
    db.client.ok("ALTER TABLE dt MODIFY COLUMN score BIGINT");
    db.client.ok("DROP TABLE dt FORCE");
    assert!(db.client.rows(&format!("SHOW ALTER TABLE COLUMN FROM {}", db.name)).is_empty());
    let mut again = server.database().with_dt("");
    again.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
}

#[test]
fn nested_values_addresses_and_variants_stay_what_they_are_when_other_columns_change() {
    let mut server = Server::with_settings(&[("flush_age_ms", "100")]);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE n (id INT NOT NULL, v INT, a ARRAY<BIGINT>, m MAP<VARCHAR(9), ARRAY<INT>>, s STRUCT<f:INT, g:VARCHAR(9)>,
         j VARIANT, i4 IPV4, i6 IPV6) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let mut insert = String::from("INSERT INTO n VALUES (-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    for id in 0..500 {
        write!(insert, ", ({id}, {id}, '[{id},null]', '{{k:[{id}]}}', '{{{id},g}}', '{{\"a\":{{\"b\":{id}}}}}', '10.0.0.{}', '::{id:x}')", id % 250)
            .expect("a String takes all");
    }
    db.client.ok(&insert);
    let sums = "SELECT COUNT(*), SUM(v), SUM(a[1]), SUM(m['k'][1]), SUM(s.f), SUM(CAST(j['a']['b'] AS INT)), COUNT(DISTINCT i4), COUNT(DISTINCT i6) FROM n";
    let rows = "SELECT id, v, a, m, s, j, i4, i6 FROM n ORDER BY id";
    let before = (db.client.value(sums), db.client.rows(rows));
    assert_eq!(before.0, "501|124750|124750|124750|124750|124750|250|500");
    alter(&mut db, "n", "MODIFY COLUMN v BIGINT");
    assert_eq!((db.client.value(sums), db.client.rows(rows)), before);
    alter(&mut db, "n", "ADD COLUMN k2 INT KEY DEFAULT \"5\"");
    alter(&mut db, "n", "ORDER BY (k2, id, i6, j, s, m, a, i4, v)");
    db.client.ok("DELETE FROM n WHERE id >= 250");
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(rows), before.1[..251], "after a crash");
    let shown = client.rows("DESC n");
    let names: Vec<&str> = shown.iter().filter_map(|row| row.split('|').next()).collect();
    assert_eq!(names, ["k2", "id", "i6", "j", "s", "m", "a", "i4", "v"]);
    client.ok("INSERT INTO n (k2, id, a, s, i6) VALUES (1, 1000, [7], '{8,h}', '::1')");
    assert_eq!(client.rows("SELECT a[1], s.f, i6, v FROM n WHERE id = 1000"), ["7|8|::1|NULL"]);
}

#[test]
fn types_change_in_tables_without_deletion_vectors_and_in_their_partitions() {
    let mut server = Server::with_settings(&[("flush_age_ms", "100")]);
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE c (id INT NOT NULL, v INT, w VARCHAR(9)) UNIQUE KEY(id)
         PARTITION BY RANGE(id) (PARTITION low VALUES LESS THAN ('1000'), PARTITION high VALUES LESS THAN ('2000'))
         DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"delta.enableDeletionVectors\" = \"false\")",
    );
    let rows = |from: i32, to: i32, v: i32| {
        (from..to).map(|id| format!("({id},{v},'{id}')")).collect::<Vec<_>>().join(",")
    };
    db.client.ok(&format!("INSERT INTO c VALUES {}", rows(0, 2000, 1)));
    db.client.ok(&format!("INSERT INTO c VALUES {}", rows(500, 1500, 2)));
    db.client.ok("DELETE FROM c WHERE id < 100");
    let sums = "SELECT COUNT(*), SUM(v), SUM(CAST(w AS BIGINT)), MIN(id) FROM c";
    let expected = "1900|2900|1994050|100";
    assert_eq!(db.client.value(sums), expected);
    alter(&mut db, "c", "MODIFY COLUMN v BIGINT, MODIFY COLUMN w INT");
    assert_eq!(db.client.value(sums), expected);
    assert_eq!(columns(&mut db.client, "c"), ["id|int|No|true", "v|bigint|Yes|false", "w|int|Yes|false"]);
    db.client.ok(&format!("INSERT INTO c VALUES {}", rows(1990, 2000, 5_000)));
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.value("SELECT COUNT(*), SUM(v) FROM c PARTITION (high)"), "1000|51490");
    client.ok("ALTER TABLE c DROP PARTITION low");
    assert_eq!(client.value("SELECT COUNT(*), MIN(id) FROM c"), "1000|1000");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    let ids: Vec<String> = (1000..2000).map(|id: i32| id.to_string()).collect();
    python("delta_checks.py", &["copied", &delta_table(&server), &ids.join(",")]);
}
