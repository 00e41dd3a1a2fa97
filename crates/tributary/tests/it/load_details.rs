//! Answers that say why and how long, whether a failed load may be sent again, and the live tables of groups and logs.

use crate::support::{Client, Curl, LoadReply, Server, wait_until};
use serde_json::Value;

fn server(properties: &str) -> (Server, Client) {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok(&format!(
        "CREATE TABLE t (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ({properties})"
    ));
    (server, client)
}

fn load(server: &Server, headers: &[&str], body: &str) -> LoadReply {
    let file = server.scratch().join("body.csv");
    std::fs::write(&file, body).expect("written");
    Curl::stream_load(server, "d", "t").headers(headers).file(&file).load()
}

/// The stages by name, in microseconds.
fn stages(reply: &LoadReply) -> Vec<(String, u64)> {
    let json: Value = serde_json::from_str(&reply.text).expect("JSON");
    let stages = json["StagesUs"].as_object().unwrap_or_else(|| panic!("no stages: {}", reply.text));
    stages.iter().map(|(name, micros)| (name.clone(), micros.as_u64().expect("microseconds"))).collect()
}

fn stage(reply: &LoadReply, wanted: &str) -> u64 {
    stages(reply).iter().find(|(name, _)| name == wanted).map(|(_, micros)| *micros).expect("a stage")
}

#[test]
fn the_stages_of_a_load_add_up_to_its_time_in_every_mode() {
    let (server, mut client) = server("'group_commit_interval_ms' = '300'");
    let large: String = (0..60_000).map(|id| format!("{id}\n")).collect();
    for (mode, body) in [
        ("sync_mode", "1\n"),
        ("async_mode", "1\n2\n"),
        ("off_mode", "1\n"),
        ("sync_mode", &large),
        ("off_mode", &large),
    ] {
        let reply = load(&server, &[&format!("group_commit: {mode}")], body).success();
        let parts = stages(&reply);
        let (total, parts): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(name, _)| name == "Total");
        let names: Vec<_> = parts.iter().map(|(name, _)| name.as_str()).collect();
        let all = [
            "Accept", "Plan", "Receive", "Decode", "Write", "Admit", "Wait", "Build", "Log", "Publish",
            "Answer",
        ];
        assert_eq!(names, all);
        let (total, sum) = (total[0].1, parts.iter().map(|(_, micros)| micros).sum::<u64>());
        assert!(total.abs_diff(sum) <= 11, "{mode}: {sum} of {total}: {}", reply.text);
        if total > 100_000 {
            assert!(stage(&reply, "Answer") * 20 < total, "{mode}: the rest is no stage: {}", reply.text);
        }
        let load_ms: u64 = reply.get("LoadTimeMs").parse().expect("a number");
        assert_eq!(total / 1000, load_ms, "{}", reply.text);
        match mode {
            "sync_mode" => {
                assert_eq!(reply.get("GroupClosedBy"), "interval", "{}", reply.text);
                // A group of an earlier load may have been open.
                assert!(stage(&reply, "Wait") > 0, "{}", reply.text);
                assert!(!reply.has("VisibleBy"), "{}", reply.text);
            }
            "async_mode" => {
                assert!(!reply.has("GroupClosedBy"), "its group is open: {}", reply.text);
                assert_eq!((stage(&reply, "Wait"), stage(&reply, "Publish")), (0, 0), "{}", reply.text);
                assert!(stage(&reply, "Log") > 0, "{}", reply.text);
                let by = reply.get("VisibleBy");
                let (date, time) = by.split_once('T').expect("RFC 3339");
                let time = time.strip_suffix('Z').expect("UTC");
                let left = format!("SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), '{date} {time}')");
                let left: i64 = client.value(&left).parse().expect("seconds");
                assert!((-60..=1).contains(&left), "{left} s: {}", reply.text);
            }
            _ => {
                assert!(!reply.has("GroupClosedBy") && !reply.has("VisibleBy"), "{}", reply.text);
                assert!(stage(&reply, "Log") > 0 && stage(&reply, "Wait") == 0, "{}", reply.text);
            }
        }
    }
}

#[test]
fn tools_read_the_stages_from_the_head_of_the_answer() {
    let (server, _client) = server("'group_commit_interval_ms' = '20'");
    let load = Curl::stream_load(&server, "d", "t").header("group_commit: sync_mode").body("1\n");
    let text = load.argument("-i").text();
    let timing = text.lines().find_map(|line| line.strip_prefix("server-timing: ")).expect("the header");
    let entry = |name: &str| {
        let entry = timing.trim().split(", ").find_map(|entry| entry.strip_prefix(&format!("{name};dur=")));
        entry.unwrap_or_else(|| panic!("{name} in {timing}")).parse::<f64>().expect("milliseconds")
    };
    assert!(entry("wait") > 0.0 && entry("log") > 0.0 && entry("total") >= entry("wait"), "{timing}");
    let refused = Curl::stream_load(&server, "d", "t").body("x\n").argument("-i").text();
    assert!(!refused.contains("server-timing"), "{refused}");
}

#[test]
fn each_reason_for_which_groups_close_is_told() {
    let (server, mut client) =
        server("'group_commit_interval_ms' = '60000', 'group_commit_data_bytes' = '2000'");
    client.ok("SET group_commit = 'sync_mode', show_load_details = true");
    let values = |count: u32| (0..count).map(|id| format!("({id})")).collect::<Vec<_>>().join(",");
    let by_bytes = client.ok(&format!("INSERT INTO t VALUES {}", values(1000)));
    assert_eq!(by_bytes.info_value("closed_by"), "bytes", "{by_bytes:?}");
    let port = server.mysql_port();
    let waiting = |setting: &'static str| {
        std::thread::spawn(move || {
            let mut client = Client::connect(port, Some("d"));
            client.ok(setting);
            client.ok("INSERT INTO t VALUES (7)").info.clone()
        })
    };
    let sync = "SET group_commit = 'sync_mode', show_load_details = true";
    for (statement, reason) in [("SYNC", "sync"), ("TRUNCATE TABLE t", "schema_change")] {
        let insert = waiting(sync);
        wait_until("the load waits in its group", || {
            client.value("SELECT WAITING_LOADS FROM information_schema.group_commit_queues") == "1"
        });
        client.ok(statement);
        let info = insert.join().expect("the load is answered");
        assert!(info.contains(&format!("'closed_by':'{reason}'")), "{statement}: {info}");
    }
    client.ok("ALTER TABLE t SET ('group_commit_interval_ms' = '0')");
    let free = client.ok("INSERT INTO t VALUES (8)");
    assert_eq!(free.info_value("closed_by"), "log_free", "{free:?}");
    client.ok("ALTER TABLE t SET ('group_commit_interval_ms' = '20')");
    let interval = client.ok("INSERT INTO t VALUES (9)");
    assert_eq!(interval.info_value("closed_by"), "interval", "{interval:?}");
    let reasons = client.rows(
        "SELECT DISTINCT CLOSED_BY FROM information_schema.group_commits WHERE TABLE_NAME = 't' ORDER BY 1",
    );
    assert_eq!(reasons, ["bytes", "interval", "log_free", "schema_change", "sync"]);
}

#[test]
fn a_session_that_asks_for_it_is_told_the_details_of_its_loads() {
    let (_server, mut client) = server("'group_commit_interval_ms' = '50'");
    let plain = client.ok("INSERT INTO t VALUES (1)");
    assert!(!plain.info.contains("stages_us") && !plain.info.contains("mode"), "{plain:?}");
    assert!(!client.error("INSERT INTO t VALUES ('x')").message.contains("retry"));
    client.ok("SET show_load_details = true");
    for (mode, has) in [("sync_mode", "closed_by"), ("async_mode", "visible_by"), ("off_mode", "stages_us")] {
        client.ok(&format!("SET group_commit = '{mode}'"));
        let answer = client.ok("INSERT INTO t VALUES (2)");
        assert_eq!(answer.info_value("mode"), mode);
        assert!(!answer.info_value(has).is_empty());
        let stages: Vec<(&str, u64)> = answer
            .info_value("stages_us")
            .split(", ")
            .map(|stage| stage.split_once('=').expect("name=micros"))
            .map(|(name, micros)| (name, micros.parse().expect("a number")))
            .collect();
        let ("total", total) = stages[stages.len() - 1] else { panic!("{stages:?}") };
        let sum: u64 = stages[..stages.len() - 1].iter().map(|(_, micros)| micros).sum();
        assert!(sum <= total && sum + 10 >= total, "{stages:?}");
    }
    let rejected = client.error("INSERT INTO t VALUES ('x')");
    assert!(rejected.message.ends_with(" [retry: never]"), "{rejected}");
    client.ok("SET GLOBAL show_load_details = false");
}

#[test]
fn each_refusal_says_whether_the_load_may_be_sent_again() {
    let (server, mut client) = server("'group_commit_interval_ms' = '20'");
    let verdict = |reply: &LoadReply| (reply.get("Retry"), reply.get("RetryAfterMs"));
    let never = ("never".to_owned(), String::new());
    let bad = load(&server, &[], "x\n");
    assert_eq!(
        (verdict(&bad), bad.failure()),
        (never.clone(), "[DATA_QUALITY_ERROR]too many filtered rows".to_owned())
    );
    assert_eq!(
        verdict(&load(&server, &["format: avro"], "1\n")),
        never,
        "a header that is wrong stays wrong"
    );
    load(&server, &["label: one"], "1\n").success();
    assert_eq!(verdict(&load(&server, &["label: one"], "1\n")), never, "its rows are there");
    let required = load(&server, &["group_commit: async_mode", "group_commit_require: visible"], "1\n");
    assert_eq!(verdict(&required), never, "{}", required.text);
    load(&server, &["Idempotency-Key: k"], "1\n").success();
    assert_eq!(verdict(&load(&server, &["Idempotency-Key: k"], "2\n")), never, "another load");
    client.ok("ALTER TABLE t SET (\"max_load_rows_per_second\" = \"1\")");
    client.ok("INSERT INTO t VALUES (1), (2), (3), (4), (5)");
    let limited = Curl::stream_load(&server, "d", "t").body("1\n");
    let (status, text) = limited.status_and_text();
    let limited = LoadReply::parse(&text);
    assert_eq!((status, limited.get("Retry").as_str()), (429, "after_ms"), "{text}");
    assert!(limited.get("RetryAfterMs").parse::<u64>().expect("milliseconds") > 0, "{text}");
    client.ok("SET show_load_details = true");
    let refused = client.error("INSERT INTO t VALUES (1)");
    assert_eq!(refused.number, 1205);
    assert!(refused.message.contains(" [retry: after_ms="), "{refused}");
}

#[test]
fn live_tables_show_groups_and_logs_to_those_who_may_see_them() {
    let (server, mut client) = server("'group_commit_interval_ms' = '60000'");
    client.ok("CREATE TABLE idle (id INT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("SET group_commit = 'async_mode'");
    let txn = client.ok("INSERT INTO t VALUES (1), (2)").info_value("txnId").to_owned();
    client.ok("INSERT INTO t VALUES (3)");
    let queues = "SELECT TABLE_NAME, STATE, OPEN_TXN_ID, OPEN_LOADS, WAITING_LOADS, OPEN_ROWS, CLOSED_GROUPS, LAST_CLOSED_BY, \
                  OPEN_AGE_MS + CLOSES_IN_MS BETWEEN 59000 AND 60000 FROM information_schema.group_commit_queues ORDER BY 1";
    assert_eq!(
        client.rows(queues),
        ["idle|IDLE|NULL|0|0|0|0|NULL|NULL".to_owned(), format!("t|IDLE|{txn}|2|0|3|0|NULL|1")]
    );
    let log = "SELECT SEGMENTS > 0, LIVE_BYTES > 0, TABLES, HELD_BY_SCHEMA, HELD_BY_TABLE, HELD_BY_TXN_ID, HELD_FOR \
               FROM information_schema.wal";
    assert_eq!(
        client.rows(log),
        [format!("1|1|2|d|t|{txn}|a transaction that is not visible yet")],
        "the tail is held by the open group"
    );
    client.ok("SYNC");
    let done = format!(
        "SELECT TABLE_NAME, STATUS, CLOSED_BY, LOADS, LOADED_ROWS, LOG_US > 0, ERROR FROM information_schema.group_commits \
         WHERE TXN_ID = {txn}"
    );
    assert_eq!(client.rows(&done), ["t|VISIBLE|sync|2|3|1|NULL"]);
    let held = client.value("SELECT HELD_FOR FROM information_schema.wal");
    assert_eq!(held, "rows in memory that are not in data files yet");
    client.ok("CREATE USER amy");
    client.ok("GRANT SELECT_PRIV ON d.idle TO amy");
    let mut amy = Client::connect_as("amy", server.mysql_port()).expect("amy may log in");
    assert_eq!(amy.rows("SELECT TABLE_NAME FROM information_schema.group_commit_queues"), ["idle"]);
    assert_eq!(amy.value("SELECT COUNT(*) FROM information_schema.group_commits"), "0");
    assert_eq!(amy.value("SELECT COUNT(*) FROM information_schema.wal"), "0");
}

/// The transaction is over with its COMMIT, which is answered with OK when it is sent again, and stores nothing.
#[test]
fn a_commit_that_fails_is_not_to_be_sent_again_alone() {
    let (server, mut client) = server("'group_commit_interval_ms' = '20'");
    client.ok("CREATE TABLE p (id INT NOT NULL) DUPLICATE KEY(id) PARTITION BY RANGE(id) \
         (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (20)) DISTRIBUTED BY HASH(id) BUCKETS 1");
    client.ok("SET show_load_details = true");
    client.ok("BEGIN");
    client.ok("INSERT INTO p VALUES (15)");
    let mut other = server.connect_to("d");
    other.ok("ALTER TABLE p DROP PARTITION high");
    let refused = client.error("COMMIT");
    assert!(refused.message.contains("no partition for this tuple"), "{refused}");
    assert!(refused.message.ends_with(" [retry: never]"), "{refused}");
}
