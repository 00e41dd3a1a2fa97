//! Columns TIME of a compatible session.

use crate::support::programs::python;
use crate::support::{Curl, Server};

#[test]
fn drivers_read_times_as_they_have_written_them() {
    let mut server = Server::with_settings(&[("flush_age_ms", "300")]);
    let db = server.database();
    let port = server.mysql_port().to_string();
    python("time_checks.py", &["written", &port, &db.name]);
    server.kill();
    server.start_again();
    let port = server.mysql_port().to_string();
    python("time_checks.py", &["read", &port, &db.name]);
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    python("time_checks.py", &["delta", &crate::delta::delta_table(&server)]);
}

#[test]
fn times_are_in_order_beyond_a_day_and_before_zero() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.ok("SET mysql_ddl = compat");
    client.ok("CREATE TABLE t (k INT PRIMARY KEY, at TIME)");
    client.ok(
        "INSERT INTO t VALUES (1, '-10:00:00'), (2, '-1:00:00'), (3, 0), (4, '9:00:00'), (5, '100:00:00'), (6, '838:59:59'), \
         (7, NULL), (8, '-838:59:59')",
    );
    for (tail, keys) in [
        ("ORDER BY at", "7 8 1 2 3 4 5 6"),
        ("ORDER BY at DESC", "6 5 4 3 2 1 8 7"),
        ("ORDER BY at DESC LIMIT 2", "6 5"),
        ("WHERE at < '-1:00:00' ORDER BY k", "1 8"),
        ("WHERE '100:00:00' <= at ORDER BY k", "5 6"),
        ("WHERE at BETWEEN '-2:00' AND '100:00:00' ORDER BY k", "2 3 4 5"),
        ("WHERE at NOT BETWEEN '-2:00' AND '100:00:00' ORDER BY k", "1 6 8"),
        ("WHERE at > (SELECT at FROM t WHERE k = 4) ORDER BY k", "5 6"),
        ("WHERE at IS NOT NULL GROUP BY k, at ORDER BY MAX(at)", "8 1 2 3 4 5 6"),
        ("WHERE k < 6 ORDER BY ADDTIME(at, '1:00:00') DESC LIMIT 3", "5 4 3"),
    ] {
        assert_eq!(client.rows(&format!("SELECT k FROM t {tail}")).join(" "), keys, "{tail}");
    }
    let sql = "SELECT MIN(at), MAX(at), GROUP_CONCAT(k ORDER BY at DESC), COUNT(DISTINCT at) FROM t";
    assert_eq!(client.rows(sql), ["-838:59:59|838:59:59|6, 5, 4, 3, 2, 1, 8, 7|7"]);
    assert_eq!(client.rows("SELECT MIN(at), MAX(at) FROM t WHERE k = 7"), ["NULL|NULL"]);
    assert_eq!(client.rows("SELECT MIN(DISTINCT at), MAX(DISTINCT at) FROM t"), ["-838:59:59|838:59:59"]);
    let numbers = "SELECT GROUP_CONCAT(n ORDER BY k) FROM (SELECT k, ROW_NUMBER() OVER (ORDER BY at) n FROM t WHERE k < 7) x";
    assert_eq!(client.rows(numbers), ["1, 2, 3, 4, 5, 6"]);
    assert_eq!(client.rows("SELECT DISTINCT at FROM t WHERE k < 3 ORDER BY at"), ["-10:00:00", "-01:00:00"]);
}

#[test]
fn times_have_one_form_and_are_compared_by_it() {
    let server = Server::shared();
    let mut db = server.database();
    let client = &mut db.client;
    client.refused("CREATE TABLE t (k INT, at TIME)", 1235, "column 'at': the type TIME");
    client.ok("SET mysql_ddl = compat");
    client.refused(
        "CREATE TABLE t (at TIME PRIMARY KEY)",
        1105,
        "Time Type should not be used in key column[at]",
    );
    client.refused("CREATE TABLE t (k INT, at TIME(7))", 1105, "TIME takes 0 to 6 digits");
    client.ok("CREATE TABLE t (k INT PRIMARY KEY, at TIME, fine TIME(3) DEFAULT '9:30')");
    client.ok(
        "INSERT INTO t VALUES (1, '9:5', '10:11:12.1239'), (2, 101112, -1), (3, '2024-02-29 23:59:59', NULL)",
    );
    client.ok("INSERT INTO t (k, at) VALUES (4, NULL)");
    let expected =
        ["1|09:05:00|10:11:12.124", "2|10:11:12|-00:00:01.000", "3|23:59:59|NULL", "4|NULL|09:30:00.000"];
    assert_eq!(client.rows("SELECT * FROM t ORDER BY k"), expected);
    client.refused("INSERT INTO t (k, at) VALUES (5, '10:60')", 1366, "value is incorrect");
    client.refused("INSERT INTO t (k, at) VALUES (5, '839:00:00')", 1366, "value is incorrect");
    for (condition, keys) in [
        ("at = '9:05'", "1"),
        ("'9:05' = at", "1"),
        ("at > '9:30'", "2,3"),
        ("at BETWEEN '9:00' AND '101112'", "1,2"),
        ("at IN ('9:05:00.0', '23:59:59')", "1,3"),
        ("at = '9:05:00.5'", "NULL"),
        ("at <> 'noon'", "NULL"),
        ("fine = '10:11:12.124'", "1"),
        ("fine > '10:11:12.1235' AND fine < '10:11:12.1245'", "1"),
        ("at < fine", "1"),
        ("HOUR(at) = 10", "2"),
        ("at = CAST('2024-01-01 09:05:00' AS DATETIME)", "1"),
        ("CASE at WHEN '9:05' THEN true ELSE false END", "1"),
    ] {
        let sql = format!("SELECT GROUP_CONCAT(k ORDER BY k SEPARATOR ',') FROM t WHERE {condition}");
        assert_eq!(client.value(&sql), keys, "{condition}");
    }
    assert_eq!(client.ok("UPDATE t SET at = '9:05:00' WHERE k < 3").affected_rows, 1);
    assert_eq!(
        client.rows("SELECT MAX(at), MIN(fine), ADDTIME(MAX(at), '1') FROM t WHERE k IN (1, 3, 4)"),
        ["23:59:59|09:30:00.000|24:00:00"]
    );
    let sql = "SELECT data_type, column_type, datetime_precision, character_maximum_length FROM information_schema.columns \
               WHERE table_schema = DATABASE() AND column_name = 'fine'";
    assert_eq!(client.rows(sql), ["time|time(3)|3|NULL"]);
    assert!(client.rows("SHOW CREATE TABLE t").join("\n").contains("`fine` time(3) DEFAULT '9:30'"));
    client.ok("ALTER TABLE t ADD COLUMN more TIME(1) DEFAULT '8:00'");
    assert_eq!(client.rows("SELECT more FROM t WHERE k = 1"), ["08:00:00.0"]);
    Curl::stream_load(&server, &db.name, "t")
        .headers(&["column_separator:,", "columns:k,at,fine", "group_commit:off_mode"])
        .body("7,7:07,\\N\n")
        .load()
        .success();
    assert_eq!(db.client.rows("SELECT at, fine, more FROM t WHERE k = 7"), ["07:07:00|NULL|08:00:00.0"]);
}
