//! The audit log: a record by each door, in the file and in the table, and what happens when there are too many.

use crate::support::kafka::{Kafka, create_table, shown};
use crate::support::{Client, Curl, MariaDb, Server, wait_until};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tributary_client::Value as Parameter;

const TABLE: &str =
    "CREATE TABLE t (id INT, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";
/// Counts rows of the table, up to the pattern.
const COUNT: &str = "SELECT COUNT(*) FROM __internal_schema.audit_log WHERE stmt LIKE";

/// A server that writes the file, and the directory of the file.
fn server(more: &[(&str, &str)]) -> (Server, PathBuf, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path().join("audit");
    let text = files.display().to_string();
    let mut settings = vec![("audit_log_dir", text.as_str())];
    settings.extend(more);
    (Server::with_settings(&settings), files, directory)
}

/// The records of a file.
fn records_of(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

fn records(files: &Path) -> Vec<Value> {
    records_of(&files.join("audit.log"))
}

/// Waits for the newest record of which this is true.
fn record(files: &Path, what: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
    let mut found = None;
    wait_until(&format!("there is a record: {what}"), || {
        found = records(files).into_iter().rfind(|record| is_meant(record));
        found.is_some()
    });
    found.expect("it was found")
}

/// Waits for the newest record of a statement.
fn of_statement(files: &Path, statement: &str) -> Value {
    record(files, statement, |record| record["stmt"] == statement)
}

fn of_door(files: &Path, door: &str) -> Value {
    record(files, door, |record| record["door"] == door)
}

/// Checks fields of a record, which are given as JSON.
fn check(record: &Value, fields: Value) {
    for (name, value) in fields.as_object().expect("an object") {
        assert_eq!(&record[name], value, "{name} of {record}");
    }
}

#[test]
fn statements_are_recorded_with_who_where_what_and_how_they_ended() {
    let (server, files, _directory) = server(&[]);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("USE d");
    root.ok(TABLE);
    root.ok("SET group_commit = async_mode");
    let label = root.ok("INSERT INTO t VALUES (1, 'a'), (2, 'b')").label().to_owned();
    root.rows("SELECT id FROM t WHERE id > 100");
    root.ok("SYNC");
    root.rows("SELECT id FROM t");
    root.error("SELECT nothing FROM t");
    root.error("INSERT INTO nowhere VALUES (1)");
    root.error("SELEC 1");
    let insert = of_statement(&files, "INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    check(
        &insert,
        serde_json::json!({
            "door": "statement", "protocol": "mysql", "user": "root", "account": "'root'@'%'", "db": "d", "table_name": "t",
            "state": "OK", "error_code": 0, "affected_rows": 2, "return_rows": 0, "received_bytes": 39, "label": label,
            "stmt_type": "INSERT", "is_query": false,
        }),
    );
    assert!(insert["client_ip"].as_str().expect("text").starts_with("127.0.0.1:"), "{insert}");
    assert!(insert["connection_id"].is_number() && insert["txn_id"].is_number(), "{insert}");
    check(
        &of_statement(&files, "SELECT id FROM t"),
        serde_json::json!({"state": "EOF", "return_rows": 2, "is_query": true}),
    );
    check(
        &of_statement(&files, "SELECT id FROM t WHERE id > 100"),
        serde_json::json!({"state": "EOF", "return_rows": 0}),
    );
    check(
        &of_statement(&files, "SELECT nothing FROM t"),
        serde_json::json!({"state": "ERR", "error_code": 1054, "stmt_type": "SELECT"}),
    );
    check(
        &of_statement(&files, "INSERT INTO nowhere VALUES (1)"),
        serde_json::json!({"state": "ERR", "error_code": 1146, "stmt_type": "INSERT"}),
    );
    let broken = of_statement(&files, "? … (7 bytes)");
    check(&broken, serde_json::json!({"state": "ERR", "error_code": 1064, "stmt_type": ""}));
    let set = of_statement(&files, "SET group_commit = async_mode");
    assert!(set.get("txn_id").is_none() && set.get("label").is_none(), "{set}");
    let ids: Vec<String> = records(&files).iter().map(|record| record["query_id"].to_string()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
fn each_statement_of_a_text_and_long_and_prepared_ones_are_recorded() {
    let (server, files, _directory) = server(&[]);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("USE d");
    root.ok(TABLE);
    root.ok("SET GLOBAL audit_plugin_max_sql_length = 30");
    root.ok("INSERT INTO t VALUES (1, 'a'), (2, 'ä'), (3, 'c')");
    let cut = "INSERT INTO t VALUES (1, 'a'), ... /* truncated. audit_plugin_max_sql_length=30 */";
    check(&of_statement(&files, cut), serde_json::json!({"affected_rows": 3, "received_bytes": 50}));
    root.ok("SET GLOBAL audit_plugin_max_sql_length = DEFAULT");

    // The command line client asks for several statements in one text.
    let several = "delimiter //\nINSERT INTO d.t VALUES (7, 'x'); SELECT 7 FROM d.t; SELECT nothing FROM d.t; SELECT 8//";
    MariaDb::new(&server).run(several).failure();
    check(&of_statement(&files, "INSERT INTO d.t VALUES (7, 'x')"), serde_json::json!({"affected_rows": 1}));
    check(
        &of_statement(&files, "SELECT 7 FROM d.t"),
        serde_json::json!({"return_rows": 4, "affected_rows": 0}),
    );
    check(&of_statement(&files, "SELECT nothing FROM d.t"), serde_json::json!({"error_code": 1054}));
    assert!(records(&files).iter().all(|record| record["stmt"] != "SELECT 8"), "it did not run");

    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some("d"), None).expect("connected");
    let insert = prepared.prepare("INSERT INTO t VALUES (?, 'p')").expect("prepared");
    let select = prepared.prepare("SELECT id FROM t WHERE id = ?").expect("prepared");
    assert!(prepared.prepare("SELECT nothing FROM t").is_err());
    prepared.execute(insert, &[Parameter::BigInt(1)]).expect("executed");
    prepared.execute_query(select, &[Parameter::BigInt(1)]).expect("executed");
    check(
        &of_statement(&files, "SELECT id FROM t WHERE id = ?"),
        serde_json::json!({"door": "prepared", "stmt_type": "SELECT", "return_rows": 2}),
    );
    let is_recorded = |files: &Path| {
        records(files).iter().filter(|record| record["stmt"] == "INSERT INTO t VALUES (?, 'p')").count()
    };
    assert_eq!(is_recorded(&files), 0, "successful executions of an INSERT are left out");
    record(&files, "a failed PREPARE", |record| {
        record["door"] == "prepared" && record["stmt"] == "SELECT nothing FROM t"
    });
    prepared.run("SET enable_prepared_stmt_audit_log = true").expect("set");
    prepared.execute(insert, &[Parameter::BigInt(2)]).expect("executed");
    check(
        &of_statement(&files, "INSERT INTO t VALUES (?, 'p')"),
        serde_json::json!({"door": "prepared", "affected_rows": 1, "stmt_type": "INSERT", "table_name": "t"}),
    );
    prepared.run("SET enable_prepared_stmt_audit_log = false").expect("set");
    root.ok("SET GLOBAL enable_prepared_stmt_audit_log = true");
    prepared.execute(insert, &[Parameter::BigInt(3)]).expect("executed");
    wait_until("the global value applies to all sessions", || is_recorded(&files) == 2);
}

#[test]
fn logins_are_recorded_as_asked_and_as_matched() {
    let (server, files, _directory) = server(&[]);
    let mut root = server.connect();
    root.ok("CREATE USER 'u'@'127.%' IDENTIFIED BY 'right password'");
    let login = |user: &str| {
        record(&files, "a login", |record| record["door"] == "mysql_login" && record["user"] == *user)
    };
    check(
        &login("root"),
        serde_json::json!({"state": "OK", "account": "'root'@'%'", "stmt": "LOGIN", "protocol": "mysql"}),
    );
    MariaDb::new(&server).user("u").option("--password=wrong").run("SELECT 1").failure();
    let refused = login("u");
    check(&refused, serde_json::json!({"state": "ERR", "error_code": 1045, "account": "'u'@'127.%'"}));
    MariaDb::new(&server).user("u").option("--password=right password").shows("SELECT 1");
    wait_until("the login is recorded", || login("u")["state"] == "OK");
    assert!(Client::connect_as("nobody", server.mysql_port()).is_err());
    let refused = login("nobody");
    check(&refused, serde_json::json!({"state": "ERR", "error_code": 1045}));
    assert!(refused.get("account").is_none(), "there is no such user: {refused}");
    assert!(Client::try_connect(server.mysql_port(), Some("nowhere")).is_err());
    wait_until("a login that failed later is recorded", || login("root")["error_code"] == 1049);
    let url = format!("http://127.0.0.1:{}/api/d/t/_stream_load", server.webserver_port());
    Curl::as_user("u:wrong", &url).argument("-X").argument("PUT").body("1").text();
    check(
        &of_door(&files, "http_login"),
        serde_json::json!({"user": "u", "account": "'u'@'127.%'", "error_code": 1045, "client_ip": "127.0.0.1"}),
    );
    let statement =
        record(&files, "a statement of u", |record| record["user"] == "u" && record["stmt"] == "SELECT 1");
    check(&statement, serde_json::json!({"account": "'u'@'127.%'"}));
}

#[test]
fn loads_and_other_requests_over_http_are_recorded() {
    let (server, files, _directory) = server(&[]);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("USE d");
    root.ok(TABLE);
    let load = |headers: &[&str], body: &str| {
        Curl::stream_load(&server, "d", "t").header("column_separator:,").headers(headers).body(body).load()
    };
    let txn: u64 = load(&["label:l1"], "1,a\n2,b\n").success().get("TxnId").parse().expect("a number");
    check(
        &of_door(&files, "stream_load"),
        serde_json::json!({
            "protocol": "http", "client_ip": "127.0.0.1", "user": "root", "account": "'root'@'%'", "db": "d", "table_name": "t",
            "label": "l1", "txn_id": txn, "format": "csv", "affected_rows": 2, "received_bytes": 8, "state": "OK",
            "stmt": "PUT /api/d/t/_stream_load", "stmt_type": "LOAD",
        }),
    );
    load(&["format:json", "strict_mode:true", "label:l2"], "{\"id\": \"x\"}").failure();
    let second = record(&files, "the second load", |record| record["label"] == "l2");
    check(
        &second,
        serde_json::json!({"door": "stream_load", "format": "json", "state": "ERR", "affected_rows": 0}),
    );
    // Refused for its head: it never began.
    load(&["max_filter_ratio:much"], "1,a\n").failure();
    wait_until("a refused load is recorded", || {
        let newest = of_door(&files, "stream_load");
        newest["state"] == "ERR" && newest.get("label").is_none() && newest["table_name"] == "t"
    });
    let base = format!("http://127.0.0.1:{}/api", server.webserver_port());
    let sql = "sql:INSERT INTO d.t SELECT * FROM http_stream('format' = 'csv', 'column_separator' = ',')";
    Curl::put(&format!("{base}/_http_stream")).header(sql).body("3,c\n").load().success();
    check(
        &of_door(&files, "http_stream"),
        serde_json::json!({"stmt": &sql[4..], "stmt_type": "INSERT", "affected_rows": 1, "db": "d", "table_name": "t"}),
    );
    Curl::put(&format!("{base}/_http_stream"))
        .header("sql:INSERT INTO d.t hush")
        .body("3,c\n")
        .load()
        .failure();
    wait_until("a text that is no statement is not shown", || {
        of_door(&files, "http_stream")["stmt"] == "INSERT … (20 bytes)"
    });
    load(&["label:l3", "two_phase_commit:true"], "4,d\n").success();
    Curl::put(&format!("{base}/d/_stream_load_2pc")).headers(&["label:l3", "txn_operation:commit"]).text();
    check(
        &of_door(&files, "two_phase"),
        serde_json::json!({"label": "l3", "db": "d", "stmt_type": "COMMIT", "state": "OK"}),
    );
    Curl::get(&format!("{base}/d/t/_count")).text();
    check(
        &of_door(&files, "http_api"),
        serde_json::json!({"stmt": "GET /api/d/t/_count", "state": "OK", "user": "root"}),
    );
}

#[test]
fn jobs_and_their_tasks_are_recorded() {
    let inputs = tempfile::tempdir().expect("a directory");
    std::fs::write(inputs.path().join("a.csv"), "1,a\n2,b\n3,c\n").expect("written");
    let (server, files, _directory) =
        server(&[("mysql_load_server_secure_path", &inputs.path().display().to_string())]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok(TABLE);
    client.ok("LOAD LABEL l1 (DATA INFILE('a.csv') INTO TABLE t COLUMNS TERMINATED BY ',') WITH LOCAL");
    let job =
        |kind: &str| record(&files, kind, |record| record["door"] == "job" && record["stmt_type"] == *kind);
    let load =
        record(&files, "the end of the load", |record| record["door"] == "job" && record["label"] == "l1");
    check(
        &load,
        serde_json::json!({"protocol": "job", "db": "d", "affected_rows": 3, "state": "OK", "user": "root"}),
    );
    assert!(load["txn_id"].is_number(), "{load}");
    client.ok(&format!(
        "EXPORT TABLE t TO 'file://{}/out_' PROPERTIES ('label' = 'e1')",
        inputs.path().display()
    ));
    check(&job("export"), serde_json::json!({"label": "e1", "state": "OK"}));

    let mut kafka = Kafka::start();
    kafka.run("create events 1");
    kafka.run("json events 0 10 1");
    create_table(&mut client, "messages");
    client.ok(&format!(
        "CREATE ROUTINE LOAD j ON messages PROPERTIES (\"format\" = \"json\", \"max_batch_interval\" = \"1\") {}",
        kafka.source("events")
    ));
    wait_until("the messages are there", || client.value("SELECT COUNT(*) FROM messages") == "10");
    let task = of_door(&files, "task");
    check(
        &task,
        serde_json::json!({
            "protocol": "job", "db": "d", "table_name": "messages", "state": "OK", "user": "root", "account": "'root'@'%'",
            "stmt": "ROUTINE LOAD d.j",
        }),
    );
    assert!(task["txn_id"].is_number() && task["label"].is_string(), "{task}");
    kafka.run("say events 0 {\"id\": nothing}");
    wait_until("the job is paused", || shown(&mut client, "j", "State") == "PAUSED");
}

#[test]
fn the_file_is_rotated_and_survives_restarts() {
    let (mut server, files, _directory) =
        server(&[("audit_log_roll_bytes", "2000"), ("audit_log_roll_num", "3")]);
    let mut root = server.connect();
    for number in 0..100 {
        root.rows(&format!("SELECT {number}"));
    }
    of_statement(&files, "SELECT 99");
    server.kill();
    server.start_again();
    server.connect().rows("SELECT 'again'");
    of_statement(&files, "SELECT 'again'");
    // Everything that waits is written before the server stops.
    server.connect().rows("SELECT 'last'");
    server.stop();
    assert_eq!(std::fs::read_dir(&files).expect("a directory").count(), 3);
    let mut all: Vec<String> = Vec::new();
    for name in ["audit.log.2", "audit.log.1", "audit.log"] {
        let bytes = std::fs::metadata(files.join(name)).expect("a file").len();
        assert!(bytes <= 2000 && bytes > 0, "{name}: {bytes}");
        all.extend(records_of(&files.join(name)).iter().map(|record| record["stmt"].to_string()));
    }
    assert!(all.iter().any(|text| text.contains("'last'")), "{all:?}");
    let numbers: Vec<&String> = all.iter().filter(|text| text.starts_with("\"SELECT 9")).collect();
    assert!(numbers.is_sorted() && numbers.len() >= 3, "{all:?}");
}

#[test]
fn records_without_a_place_are_counted() {
    let (server, files, _directory) = server(&[("audit_queue_records", "1")]);
    let mut root = server.connect();
    let dropped = || server.metric("tributary_audit_dropped_total{at=\"queue\"}");
    let mut sent = 0;
    wait_until("there was no place for a record", || {
        (0..500).for_each(|_| root.send("SET @a = 'counted'"));
        (0..500).for_each(|_| root.answered_ok());
        sent += 500;
        dropped() > 0.0
    });
    wait_until("all others are written", || {
        let written = records(&files).iter().filter(|record| record["stmt"] == "SET @a = 'counted'").count();
        written as f64 + dropped() == f64::from(sent)
    });
    assert_eq!(server.metric("tributary_audit_refused_total"), 0.0);
}

/// Runs a statement that waits for its group, as soon as the server takes it.
fn wait_for_group(mut client: Client) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for sql in ["SET group_commit = sync_mode", "INSERT INTO d.slow VALUES (1)"] {
            wait_until(sql, || !client.try_query(sql).is_err_and(|error| error.number == 1205));
        }
    })
}

#[test]
fn nothing_runs_without_a_record_if_the_operator_wants_that() {
    let (server, files, _directory) = server(&[("audit_queue_records", "2"), ("audit_when_full", "refuse")]);
    let retried = |client: &mut Client, sql: &str| {
        wait_until(sql, || match client.try_query(sql) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.number, 1205, "{error}");
                false
            }
        });
    };
    let connect = || {
        let mut found = None;
        wait_until("there is a place for a login", || {
            found = Client::try_connect(server.mysql_port(), None).ok();
            found.is_some()
        });
        found.expect("connected")
    };
    let mut root = connect();
    let slow = "CREATE TABLE slow (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
        PROPERTIES (\"group_commit_interval_ms\" = \"3600000\")";
    for sql in ["CREATE DATABASE d", "USE d", TABLE, slow] {
        retried(&mut root, sql);
    }
    let mut first = connect();
    let mut id = String::new();
    wait_until("the connection has a number", || {
        id = first.try_rows("SELECT CONNECTION_ID()").map(|rows| rows[0].clone()).unwrap_or_default();
        !id.is_empty()
    });
    let (second, killer) = (connect(), connect());
    // Statements that run have both places.
    let waiting = [wait_for_group(first), wait_for_group(second)];
    let mut refusals = 0;
    wait_until("every statement is refused", || {
        refusals = if root.try_query("SELECT 1").is_err() { refusals + 1 } else { 0 };
        refusals > 20
    });
    root.refused("INSERT INTO t VALUES (1, 'a')", 1205, "audit_when_full");
    let answer =
        Curl::stream_load(&server, "d", "t").header("column_separator:,").body("5,x\n").load().failure();
    assert!(answer.contains("[SERVICE_UNAVAILABLE]") && answer.contains("retry later"), "{answer}");
    assert!(Client::try_connect(server.mysql_port(), None).is_err_and(|error| error.number == 1205));
    assert!(server.metric("tributary_audit_refused_total") >= 3.0);
    // COM_PROCESS_KILL is no statement.
    let mut kill = vec![5, 0, 0, 0, 0x0c];
    kill.extend(id.parse::<u32>().expect("a number").to_le_bytes());
    killer.into_stream().write_all(&kill).expect("the server reads");
    retried(&mut root, "INSERT INTO t VALUES (2, 'b')");
    of_statement(&files, "INSERT INTO t VALUES (2, 'b')");
    let mut rows = Vec::new();
    wait_until("the rows can be read", || {
        rows = root.try_rows("SELECT id FROM t").unwrap_or_default();
        !rows.is_empty()
    });
    assert_eq!(rows, ["2"], "what was refused did not run");
    let [killed, _] = waiting;
    drop(killed.join());
}

#[test]
fn records_are_rows_of_a_table_of_the_server() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("USE d");
    root.ok(TABLE);
    assert!(!root.rows("SHOW DATABASES").contains(&"__internal_schema".to_owned()));
    root.ok("SET GLOBAL enable_audit_plugin = true");
    root.ok("INSERT INTO t VALUES (1, 'a')");
    let count = |client: &mut Client, like: &str| {
        client.try_rows(&format!("{COUNT} '{like}'")).map_or_else(|_| "0".to_owned(), |rows| rows[0].clone())
    };
    wait_until("the record is a row", || count(&mut root, "INSERT INTO t%") == "1");
    let row = root.rows(
        "SELECT user, account, protocol, door, db, table_name, state, error_code, affected_rows, stmt_type, is_query, stmt,
            client_ip LIKE '127.0.0.1:%', txn_id > 0, label <> '', TIMESTAMPDIFF(HOUR, `time`, UTC_TIMESTAMP()), query_time >= 0
         FROM __internal_schema.audit_log WHERE stmt LIKE 'INSERT INTO t%'",
    );
    assert_eq!(
        row,
        ["root|'root'@'%'|mysql|statement|d|t|OK|0|1|INSERT|0|INSERT INTO t VALUES (1, 'a')|1|1|1|0|1"]
    );
    // The server's own loads leave no records: the table does not grow by itself.
    let all = "SELECT COUNT(*) FROM __internal_schema.audit_log WHERE stmt NOT LIKE '%audit_log%'";
    let before = root.value(all);
    let written = server.metric("tributary_audit_records_total{sink=\"table\"}");
    wait_until("later records are rows", || {
        root.value("SELECT 'later'");
        server.metric("tributary_audit_records_total{sink=\"table\"}") > written + 5.0
    });
    root.ok("SYNC");
    let of_loads = "SELECT COUNT(*) FROM __internal_schema.audit_log WHERE stmt LIKE '%audit_log%' AND stmt_type = 'INSERT'";
    assert_eq!(root.value(of_loads), "0");
    assert!(root.value(all).parse::<u64>().expect("a number") >= before.parse().expect("a number"));
    root.ok("SET GLOBAL enable_audit_plugin = false");
    root.value("SELECT 'not recorded'");
    root.ok("SET GLOBAL enable_audit_plugin = true");
    root.value("SELECT 'recorded again'");
    let count = |root: &mut Client, text: &str| {
        root.value(&format!(
            "SELECT COUNT(*) FROM __internal_schema.audit_log WHERE stmt = 'SELECT \\'{text}\\''"
        ))
    };
    wait_until("a later statement is a row", || count(&mut root, "recorded again") == "1");
    assert_eq!(count(&mut root, "not recorded"), "0", "records are in the order of their statements");
}

#[test]
fn rows_of_the_table_survive_kills_and_days_are_partitions() {
    let mut server = Server::with_settings(&[("enable_audit_plugin", "true"), ("audit_log_table_days", "7")]);
    for round in 0..3 {
        let mut root = server.connect();
        for number in 0..50 {
            root.rows(&format!("SELECT {round}, {number}"));
        }
        let requests = |door: &str| server.metric(&format!("tributary_requests_total{{door=\"{door}\"}}"));
        let ended = requests("statement") + requests("mysql_login");
        wait_until("the rows are acknowledged", || {
            server.metric("tributary_audit_records_total{sink=\"table\"}") == ended
        });
        server.kill();
        if round == 1 {
            server.set("audit_log_table_days", "9");
        }
        server.start_again();
        let mut root = server.connect();
        let count = format!("{COUNT} 'SELECT {round}, %'");
        let expected = root.value(&format!("{COUNT} 'SELECT {round}, %' AND stmt_type = 'SELECT'"));
        assert!(
            expected.parse::<u64>().expect("a number") >= 49,
            "round {round}: {expected} {}",
            root.value(&count)
        );
    }
    let mut root = server.connect();
    wait_until("the setting applies", || {
        let create = root.rows("SHOW CREATE TABLE __internal_schema.audit_log").join("\n");
        create.contains("\"partition.retention_count\" = \"9\"")
    });
    let partitions = root.rows("SHOW PARTITIONS FROM __internal_schema.audit_log");
    assert!(!partitions.is_empty() && partitions.len() <= 2, "{partitions:?}");
    assert_eq!(
        root.value("SELECT COUNT(DISTINCT query_id) = COUNT(*) FROM __internal_schema.audit_log"),
        "1"
    );
}

#[test]
fn the_table_is_read_by_whom_it_concerns_and_changed_by_nobody() {
    let server = Server::with_settings(&[("enable_audit_plugin", "true")]);
    let mut root = server.connect();
    wait_until("the table is there", || root.try_rows("SELECT 1 FROM __internal_schema.audit_log").is_ok());
    for sql in [
        "INSERT INTO __internal_schema.audit_log (query_id, time, client_ip) VALUES ('x', NOW(), 'x')",
        "INSERT INTO __internal_schema.audit_log SELECT * FROM __internal_schema.audit_log",
        "INSERT OVERWRITE TABLE __internal_schema.audit_log SELECT * FROM __internal_schema.audit_log",
        "DELETE FROM __internal_schema.audit_log WHERE error_code = 0",
        "UPDATE __internal_schema.audit_log SET stmt = ''",
        "DROP TABLE __internal_schema.audit_log",
        "DROP TABLE __internal_schema.audit_log FORCE",
        "DROP DATABASE __internal_schema",
        "CREATE DATABASE __internal_schema",
        "ALTER TABLE __internal_schema.audit_log ADD COLUMN x INT",
        "ALTER TABLE __internal_schema.audit_log RENAME x",
        "ALTER TABLE __internal_schema.audit_log SET (\"partition.retention_count\" = \"1\")",
        "CREATE TABLE __internal_schema.x (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
        "CREATE TABLE __internal_schema.x AS SELECT 1 AS a",
        "CREATE VIEW __internal_schema.x AS SELECT 1 AS a",
        "CREATE INDEX i ON __internal_schema.audit_log (stmt) USING INVERTED",
    ] {
        let error = root.error(sql);
        assert!([1142, 1044, 1102].contains(&error.number), "{sql}: {error}");
    }
    let url =
        format!("http://127.0.0.1:{}/api/__internal_schema/audit_log/_stream_load", server.webserver_port());
    assert!(Curl::put(&url).body("1").load().failure().contains("LOAD command denied"));
    root.ok("CREATE USER reader");
    root.ok("GRANT SELECT_PRIV, LOAD_PRIV, ALTER_PRIV, DROP_PRIV, CREATE_PRIV, GRANT_PRIV ON *.* TO reader");
    root.ok("CREATE USER auditor");
    root.ok("GRANT SELECT_PRIV ON __internal_schema.audit_log TO auditor");
    let mut reader = Client::connect_as("reader", server.mysql_port()).expect("connected");
    assert!(!reader.rows("SHOW DATABASES").contains(&"__internal_schema".to_owned()));
    assert_eq!(
        reader.value("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'audit_log'"),
        "0"
    );
    for sql in [
        "SELECT * FROM __internal_schema.audit_log",
        "DESC __internal_schema.audit_log",
        "SHOW CREATE TABLE __internal_schema.audit_log",
        "SHOW TABLES FROM __internal_schema",
        "USE __internal_schema",
        "TRUNCATE TABLE __internal_schema.audit_log",
        "DROP TABLE __internal_schema.audit_log",
        "GRANT SELECT_PRIV ON __internal_schema.audit_log TO reader",
    ] {
        let error = reader.try_query(sql).expect_err(sql);
        assert!([1142, 1044, 1227].contains(&error.number), "{sql}: {error}");
    }
    let mut auditor = Client::connect_as("auditor", server.mysql_port()).expect("connected");
    wait_until("the auditor reads", || {
        auditor
            .try_rows("SELECT COUNT(*) > 0 FROM __internal_schema.audit_log")
            .is_ok_and(|rows| rows == ["1"])
    });
    assert_eq!(auditor.rows("SHOW TABLES FROM __internal_schema"), ["audit_log"]);
    assert_eq!(auditor.error("TRUNCATE TABLE __internal_schema.audit_log").number, 1142);
    assert_eq!(auditor.error("DROP TABLE __internal_schema.audit_log").number, 1142);
    root.ok("SET GLOBAL enable_audit_plugin = false");
    root.ok("SYNC");
    root.ok("TRUNCATE TABLE __internal_schema.audit_log");
}
