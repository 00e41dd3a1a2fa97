//! Rejected rows as a table: those of loads that were stored, by every door, after kills and in files, for those who may read the table.

use crate::support::{Client, Curl, LoadReply, Server, wait_until};
use tributary_client::Value;

fn server(settings: &[(&str, &str)]) -> (Server, Client) {
    let server = Server::with_settings(settings);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    create(&mut client, "t", "");
    (server, client)
}

fn create(client: &mut Client, table: &str, properties: &str) {
    client.ok(&format!(
        "CREATE TABLE {table} (id INT NOT NULL, name VARCHAR(5)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '50'{properties})"
    ));
}

fn load(server: &Server, headers: &[&str], body: &str) -> LoadReply {
    Curl::stream_load(server, "d", "t").header("column_separator: ,").headers(headers).body(body).load()
}

/// All rejected rows, without what differs from run to run.
fn rejected(client: &mut Client) -> Vec<String> {
    client.rows(
        "SELECT CONCAT_WS(' | ', TABLE_NAME, SOURCE, IFNULL(ROW_NUMBER, '-'), IFNULL(COLUMN_NAME, '-'), CODE, RAW_ROW, FILTERED_ROWS) \
         FROM information_schema.rejected_rows ORDER BY TXN_ID, LOAD_ID, ROW_NUMBER",
    )
}

#[test]
fn rejected_rows_of_every_kind_of_load_are_found_once_after_kills_and_in_files() {
    let (mut server, mut client) = server(&[("wal_segment_bytes", "1048576"), ("flush_age_ms", "100")]);
    for mode in ["async_mode", "sync_mode", "off_mode"] {
        let mode = format!("group_commit: {mode}");
        let headers = [mode.as_str(), "max_filter_ratio: 0.9", "strict_mode: true"];
        load(&server, &headers, "1,a\nx,b\n2,a,b\n3,toolong\n").success();
    }
    let json = "{\"id\": 4}\n{\"id\": null}\n{\"id\": 5\n{\"other\": 1}\n";
    load(
        &server,
        &["max_filter_ratio: 0.9", "format: json", "read_json_by_line: true", "group_commit: sync_mode"],
        json,
    )
    .success();
    // Nothing of this one is good.
    load(&server, &["max_filter_ratio: 1", "group_commit: async_mode"], "y,b\n").success();
    // A load that fails has no rejected rows: its client has all of them.
    load(&server, &["group_commit: async_mode"], "6,a\nfailed,b\n").failure();
    client.ok("SET enable_insert_strict = false, insert_max_filter_ratio = 1");
    client.ok("INSERT INTO t VALUES (7, 'a'), (NULL, 'it''s')");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (8, 'a'), (NULL, 'b')");
    client.ok("INSERT INTO t VALUES (NULL, 'c')");
    client.ok("COMMIT");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (NULL, 'rolled back')");
    client.ok("ROLLBACK");
    let mut prepared = tributary_client::Client::connect(("127.0.0.1", server.mysql_port()), Some("d"), None)
        .expect("connects");
    prepared.run("SET rejected_rows = 'keep'").expect("set");
    let insert = prepared.prepare("INSERT INTO t VALUES (?, ?)").expect("legal");
    prepared.execute(insert, &[Value::Text("n".into()), Value::Text("d'e".into())]).expect("executed");
    let two_phase = |server: &Server, body: &str| {
        load(server, &["max_filter_ratio: 0.9", "two_phase_commit: true"], body)
    };
    let committed = two_phase(&server, "9,a\ncommitted,b\n").success();
    let aborted = two_phase(&server, "10,a\naborted,b\n").success();
    let later = two_phase(&server, "11,a\nlater,b\n").success();
    let end = |server: &Server, load: &LoadReply, operation: &str| {
        let url = format!("http://127.0.0.1:{}/api/d/_stream_load_2pc", server.http_port());
        let (id, operation) = (format!("txn_id:{}", load.get("TxnId")), format!("txn_operation:{operation}"));
        let reply = Curl::put(&url).headers(&[id, operation]).load();
        assert_eq!(reply.get("status"), "Success", "{}", reply.text);
    };
    end(&server, &committed, "commit");
    end(&server, &aborted, "abort");
    let csv = |mode| {
        [
            format!("t | {mode} | 2 | id | WRONG_VALUE | x,b | 3"),
            format!("t | {mode} | 3 | - | COLUMN_COUNT | 2,a,b | 3"),
            format!("t | {mode} | 4 | name | TOO_LONG | 3,toolong | 3"),
        ]
    };
    let mut expected: Vec<String> = (0..3).flat_map(|_| csv("stream_load")).collect();
    let rest = [
        "t | stream_load | 2 | id | NULL_VALUE | {\"id\": null} | 3",
        "t | stream_load | 3 | - | BAD_JSON | {\"id\": 5 | 3",
        "t | stream_load | 4 | - | NO_FIELDS | {\"other\": 1} | 3",
        "t | stream_load | 1 | id | NULL_VALUE | y,b | 1",
        "t | insert | 2 | id | NULL_VALUE | (NULL, 'it''s') | 1",
        "t | insert | 2 | id | NULL_VALUE | (NULL, 'b') | 2",
        "t | insert | 3 | id | NULL_VALUE | (NULL, 'c') | 2",
        "t | insert | 1 | id | WRONG_VALUE | ('n', 'd''e') | 1",
        "t | stream_load | 2 | id | NULL_VALUE | committed,b | 1",
    ];
    expected.extend(rest.map(str::to_owned));
    assert_eq!(rejected(&mut client), expected);
    // Good and rejected rows are all that was sent.
    client.ok("SYNC");
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "7");
    server.kill();
    server.start_again();
    client = server.connect();
    client.ok("USE d");
    assert_eq!(rejected(&mut client), expected);
    end(&server, &later, "commit");
    expected.push("t | stream_load | 2 | id | NULL_VALUE | later,b | 1".to_owned());
    assert_eq!(rejected(&mut client), expected);
    // Until they are in a file, and no longer in the log.
    create(&mut client, "u", "");
    let bulk = server.scratch().join("bulk.csv");
    std::fs::write(&bulk, "1,aaaaa\n".repeat(120_000)).expect("written");
    let files = server.data().join("rejected_rows");
    wait_until("they are in a file", || {
        Curl::stream_load(&server, "d", "u").header("column_separator: ,").file(&bulk).load().success();
        std::fs::read_dir(&files).expect("the directory").count() > 0
    });
    assert_eq!(rejected(&mut client), expected);
    server.kill();
    server.start_again();
    client = server.connect();
    client.ok("USE d");
    assert_eq!(rejected(&mut client), expected);
    client.ok("DROP TABLE t FORCE");
    assert_eq!(rejected(&mut client), [""; 0]);
}

#[test]
fn a_table_or_a_load_says_whether_rejected_rows_fail_it() {
    let (server, mut client) = server(&[]);
    let bad = "1,a\nx,b\n";
    load(&server, &[], bad).failure();
    load(&server, &["rejected_rows: keep"], bad).success();
    client.ok("ALTER TABLE t SET ('rejected_rows' = 'keep')");
    assert!(client.rows("SHOW CREATE TABLE t")[0].contains("\"rejected_rows\" = \"keep\""));
    load(&server, &[], bad).success();
    load(&server, &["rejected_rows: fail"], bad).failure();
    let wrong = load(&server, &["rejected_rows: maybe"], bad).failure();
    assert!(wrong.contains("rejected_rows can only be [fail, keep]"), "{wrong}");
    // Strict inserts, too: the good rows are stored.
    let done = client.ok("INSERT INTO t VALUES (2, 'a'), ('y', 'b')");
    assert_eq!((done.affected_rows, done.warnings), (1, 1), "{done:?}");
    client.ok("SET rejected_rows = 'fail'");
    let text = client.error("INSERT INTO t VALUES (3, 'a'), ('z', 'b')").to_string();
    assert!(text.contains("Insert has filtered data in strict mode"), "{text}");
    client.ok("SET rejected_rows = ''");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (4, 'a'), ('w', 'b')");
    client.ok("COMMIT");
    assert!(client.error("SET rejected_rows = 'some'").to_string().contains("rejected_rows"));
    assert!(
        client
            .error("ALTER TABLE t SET ('rejected_rows' = 'some')")
            .to_string()
            .contains("Invalid rejected_rows: some. Valid values: fail, keep")
    );
    client.ok("SYNC");
    assert_eq!(client.rows("SELECT id FROM t ORDER BY 1"), ["1", "1", "2", "4"]);
    let raw = "SELECT RAW_ROW FROM information_schema.rejected_rows ORDER BY TXN_ID, LOAD_ID";
    assert_eq!(client.rows(raw), ["x,b", "x,b", "('y', 'b')", "('w', 'b')"]);
}

#[test]
fn rejected_rows_are_loaded_again_by_a_query_over_them_which_marks_them() {
    let (mut server, mut client) = server(&[]);
    let many: String = (0..1_500).map(|id| format!("{id}a,n{}\n", id % 10)).collect();
    let reply = load(&server, &["rejected_rows: keep"], &many).success();
    assert_eq!((reply.get("NumberLoadedRows"), reply.get("NumberFilteredRows")), ("0".into(), "1500".into()));
    let of_load = format!("FROM information_schema.rejected_rows WHERE TXN_ID = {}", reply.get("TxnId"));
    assert_eq!(client.value(&format!("SELECT COUNT(*) {of_load} AND CODE = 'NULL_VALUE'")), "1000");
    assert_eq!(
        client.rows(&format!("SELECT REASON {of_load} AND CODE = 'NOT_KEPT'")),
        ["500 more rejected rows of the load were only counted"]
    );
    let marked = |client: &mut Client| {
        client.rows(&format!(
            "SELECT CONCAT(COUNT(*), ' ', MIN(ROW_NUMBER), ' ', MAX(ROW_NUMBER)) {of_load} AND REPLAYED_BY_TXN_ID IS NOT NULL"
        ))
    };
    let values = "CAST(REPLACE(SPLIT_PART(RAW_ROW, ',', 1), 'a', '') AS INT), SPLIT_PART(RAW_ROW, ',', 2)";
    // A statement that fails marks nothing, nor does one that gives other rows than it reads.
    client.error(&format!("INSERT INTO t SELECT CAST(NULL AS INT), RAW_ROW {of_load} AND ROW_NUMBER <= 400"));
    client.ok(&format!("INSERT INTO t SELECT {values} {of_load} AND ROW_NUMBER <= 400 LIMIT 1"));
    client.ok(&format!("INSERT INTO t SELECT CAST(COUNT(RAW_ROW) AS INT), 'n' {of_load}"));
    client.ok("BEGIN");
    client.ok(&format!("INSERT INTO t SELECT {values} {of_load} AND ROW_NUMBER = 1"));
    client.ok("ROLLBACK");
    client.ok("SYNC");
    client.ok("TRUNCATE TABLE t");
    assert_eq!(marked(&mut client), ["NULL"]);
    for (mode, rows) in [("async_mode", "ROW_NUMBER <= 400"), ("off_mode", "REPLAYED_BY_TXN_ID IS NULL")] {
        client.ok(&format!("SET group_commit = '{mode}'"));
        client.ok(&format!("INSERT INTO t SELECT {values} {of_load} AND {rows}"));
    }
    let check = |client: &mut Client| {
        client.ok("SYNC");
        let sums = "SELECT CONCAT(COUNT(*), ' ', SUM(id), ' ', MAX(name)) FROM t";
        assert_eq!(client.rows(sums), ["1000 499500 n9"]);
        assert_eq!(marked(client), ["1000 1 1000"]);
        let by = client.rows(&format!(
            "SELECT COUNT(*) {of_load} AND REPLAYED_BY_TXN_ID IS NOT NULL GROUP BY REPLAYED_BY_TXN_ID ORDER BY REPLAYED_BY_TXN_ID"
        ));
        assert_eq!(by, ["400", "600"]);
    };
    check(&mut client);
    server.kill();
    server.start_again();
    client = server.connect();
    client.ok("USE d");
    check(&mut client);
    // A row that is rejected again is another one.
    let bad = load(&server, &["rejected_rows: keep"], "x,b\n").success();
    client.ok("SET rejected_rows = 'keep', group_commit = 'sync_mode'");
    client.ok(&format!(
        "INSERT INTO t SELECT SPLIT_PART(RAW_ROW, ',', 1), 'b' FROM information_schema.rejected_rows WHERE TXN_ID = {}",
        bad.get("TxnId")
    ));
    let shown = "SELECT CONCAT_WS(' ', CODE, RAW_ROW, REPLAYED_BY_TXN_ID IS NULL) FROM information_schema.rejected_rows";
    let shown = client.rows(&format!("{shown} WHERE FILTERED_ROWS = 1 ORDER BY TXN_ID"));
    assert_eq!(shown[0], "NULL_VALUE x,b 0");
    assert_eq!((shown.len(), shown[1].ends_with(" 1")), (2, true), "{shown:?}");
}

#[test]
fn only_those_who_may_read_a_table_see_its_rejected_rows() {
    let (server, mut client) = server(&[]);
    load(&server, &["rejected_rows: keep"], "1,a\nsecret,b\n").success();
    for (user, right) in [("loader", "LOAD_PRIV"), ("reader", "SELECT_PRIV")] {
        client.ok(&format!("CREATE USER {user}"));
        client.ok(&format!("GRANT {right} ON d.t TO {user}"));
    }
    client.ok("CREATE USER column_reader");
    client.ok("GRANT SELECT_PRIV(name) ON d.t TO column_reader");
    let query = "SELECT RAW_ROW FROM information_schema.rejected_rows";
    for (user, expected) in [("loader", vec![]), ("reader", vec!["secret,b"]), ("column_reader", vec![])] {
        let mut client = Client::connect_as(user, server.mysql_port()).expect("connects");
        assert_eq!(client.rows(query), expected, "{user}");
    }
    assert_eq!(client.rows(query), ["secret,b"]);
}
