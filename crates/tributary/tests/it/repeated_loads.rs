//! Loads that clients send again: by idempotency keys and by offsets of channels, through every door.

use crate::support::{Client, Curl, LoadReply, MariaDb, Server, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;
use tributary_client::Value as Parameter;

fn server() -> (Server, Client) {
    with_settings(&[])
}

fn with_settings(settings: &[(&str, &str)]) -> (Server, Client) {
    let server = Server::with_settings(settings);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    create(&mut client, "t");
    (server, client)
}

fn create(client: &mut Client, table: &str) {
    client.ok(&format!(
        "CREATE TABLE {table} (id INT NOT NULL, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '50')"
    ));
}

fn stream_load(server: &Server, mode: &str) -> Curl {
    Curl::stream_load(server, "d", "t").header("column_separator: ,").header(&format!("group_commit: {mode}"))
}

fn answer(load: Curl, body: &str) -> Value {
    serde_json::from_str(&load.body(body).text()).expect("JSON")
}

/// The answer without what differs from load to load.
fn parts(answer: &Value) -> Value {
    let part = |name: &str| answer[name].clone();
    json!([
        part("TxnId"),
        part("Label"),
        part("Status"),
        part("NumberLoadedRows"),
        part("NumberFilteredRows")
    ])
}

fn state(server: &Server, table: &str, query: &str) -> Value {
    let url = format!("http://127.0.0.1:{}/api/d/{table}/_load_state?{query}", server.http_port());
    let answer: Value = serde_json::from_str(&Curl::as_user("root:", &url).text()).expect("JSON");
    answer["data"].clone()
}

fn rows(client: &mut Client) -> Vec<String> {
    client.ok("SYNC");
    client.rows("SELECT CONCAT(id, name) FROM t ORDER BY 1")
}

#[test]
fn a_load_with_a_key_is_stored_once_and_gets_the_first_answer_again_even_after_a_kill() {
    let (mut server, mut client) =
        with_settings(&[("wal_segment_bytes", "1048576"), ("flush_age_ms", "100")]);
    let modes = ["async_mode", "sync_mode", "off_mode"];
    let load = |server: &Server, number: usize, body: &str| {
        let mode = modes[number];
        let key = format!("Idempotency-Key: k-{mode}");
        answer(stream_load(server, mode).header(&key).header("max_filter_ratio: 0.5"), body)
    };
    let body = |number: usize| format!("{number},a\nx,b\n{number},c\n");
    let first: Vec<Value> = (0..3).map(|number| load(&server, number, &body(number))).collect();
    for (number, first) in first.iter().enumerate() {
        assert_eq!(first["Status"], "Success", "{first}");
        assert_eq!(
            (&first["NumberLoadedRows"], &first["NumberFilteredRows"]),
            (&json!(2), &json!(1)),
            "{first}"
        );
        assert!(first.get("Repeated").is_none(), "{first}");
        assert_eq!(first["GroupCommit"], if number == 2 { Value::Null } else { json!(true) });
    }
    let check = |server: &Server, client: &mut Client| {
        for (number, first) in first.iter().enumerate() {
            let again = load(server, number, &body(number));
            assert_eq!(parts(&again), parts(first));
            assert_eq!(
                (&again["Repeated"], &again["GroupCommit"]),
                (&json!(true), &first["GroupCommit"]),
                "{again}"
            );
            let other = load(server, number, "7,x\n");
            assert_eq!(other["Status"], "Fail", "{other}");
            let text = other["Message"].as_str().expect("a text");
            assert!(text.starts_with("[IDEMPOTENCY_KEY_CONFLICT]idempotency key [k-"), "{text}");
            assert!(
                text.contains(&format!("used for other bytes by transaction {}", first["TxnId"])),
                "{text}"
            );
            let found = state(server, "t", &format!("idempotency_key=k-{}", modes[number]));
            assert_eq!((&found["txn_id"], &found["label"]), (&first["TxnId"], &first["Label"]), "{found}");
            assert!(["DURABLE", "VISIBLE"].contains(&found["state"].as_str().expect("a state")), "{found}");
        }
        assert_eq!(rows(client), ["0a", "0c", "1a", "1c", "2a", "2c"]);
    };
    check(&server, &mut client);
    server.kill();
    server.start_again();
    client = server.connect();
    client.ok("USE d");
    check(&server, &mut client);
    // Until the keys are in a file of their own, and no longer in the log.
    create(&mut client, "u");
    let bulk = "1,aaaaaaaaaaaaaaaaaaaa\n".repeat(60_000);
    let file = server.scratch().join("bulk.csv");
    std::fs::write(&file, bulk).expect("written");
    wait_until("the keys are in a file", || {
        Curl::stream_load(&server, "d", "u").header("column_separator: ,").file(&file).load().success();
        client.rows("SELECT STORED FROM information_schema.load_keys") == ["3"]
    });
    server.stop();
    server.start_again();
    client = server.connect();
    client.ok("USE d");
    check(&server, &mut client);
    assert_eq!(state(&server, "t", "idempotency_key=unknown"), json!({ "state": "NONE" }));
}

#[test]
fn a_load_that_fails_leaves_its_key_free() {
    let (server, mut client) = server();
    let load = |body: &str| answer(stream_load(&server, "sync_mode").header("Idempotency-Key: k"), body);
    let failed = load("x,a\n");
    assert!(failed["Message"].as_str().expect("a text").contains("too many filtered rows"), "{failed}");
    let loaded = load("1,a\n");
    assert_eq!((&loaded["Status"], loaded.get("Repeated")), (&json!("Success"), None), "{loaded}");
    assert_eq!(rows(&mut client), ["1a"]);
    // Even one without rows has an answer that stays.
    let empty = |body: &str| {
        let load = stream_load(&server, "sync_mode").header("Idempotency-Key: e").header("where: id > 5");
        answer(load, body)
    };
    let first = empty("1,a\n");
    assert_eq!((&first["Status"], &first["NumberUnselectedRows"]), (&json!("Success"), &json!(1)), "{first}");
    let again = empty("1,a\n");
    assert_eq!((&again["Repeated"], &again["NumberUnselectedRows"]), (&json!(true), &json!(1)), "{again}");
    assert_eq!(parts(&again), parts(&first));
}

#[test]
fn loads_that_are_sent_at_the_same_time_with_one_key_are_one_load() {
    let (server, mut client) = server();
    let send = |number: usize| {
        let mode = if number.is_multiple_of(2) { "sync_mode" } else { "async_mode" };
        answer(stream_load(&server, mode).header("Idempotency-Key: k"), "1,a\n")
    };
    let send = &send;
    let answers: Vec<Value> = thread::scope(|scope| {
        let sent: Vec<_> = (0..12).map(|number| scope.spawn(move || send(number))).collect();
        sent.into_iter().map(|sent| sent.join().expect("no panic")).collect()
    });
    assert!(answers.iter().all(|answer| parts(answer) == parts(&answers[0])), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.get("Repeated").is_none()).count(), 1, "{answers:?}");
    assert_eq!(rows(&mut client), ["1a"]);
}

#[test]
fn a_key_is_of_one_table() {
    let (server, mut client) = server();
    create(&mut client, "u");
    for table in ["t", "u"] {
        let load =
            Curl::stream_load(&server, "d", table).header("column_separator: ,").header("Idempotency-Key: k");
        let loaded = answer(load, "1,a\n");
        assert_eq!((&loaded["Status"], loaded.get("Repeated")), (&json!("Success"), None), "{loaded}");
    }
}

#[test]
fn statements_have_keys_by_comments_and_by_variables() {
    let (server, mut client) = server();
    let sql =
        |name: &str, row: u32| format!("/* idempotency_key='{name}' */ INSERT INTO t VALUES ({row}, 'a')");
    client.ok("SET group_commit = 'async_mode'");
    for _ in 0..3 {
        client.ok(&sql("one", 1));
    }
    let error = client.try_query(&sql("one", 2)).expect_err("it is another statement");
    assert!(error.message.contains("idempotency key [one] was used for other bytes"), "{error:?}");
    // Expressions, queries and prepared statements are loads like others.
    for _ in 0..2 {
        client.ok("/* idempotency_key='two' */ INSERT INTO t VALUES (1 + 1, UPPER('b'))");
        client.ok("/* idempotency_key='three' */ INSERT INTO t SELECT 3, 'c'");
    }
    let mut prepared =
        tributary_client::Client::connect_as("root", ("127.0.0.1", server.mysql_port()), Some("d"), None)
            .expect("it may connect");
    let insert = prepared.prepare("INSERT INTO t VALUES (?, ?)").expect("legal");
    for (key, id) in [("four", 4), ("four", 4), ("five", 5)] {
        prepared.query(format!("SET idempotency_key = '{key}'")).expect("set");
        prepared.execute(insert, &[Parameter::Int(id), Parameter::Text("d".to_owned())]).expect("loaded");
    }
    // The variable was used up.
    prepared.execute(insert, &[Parameter::Int(4), Parameter::Text("d".to_owned())]).expect("loaded");
    prepared.query("SET idempotency_key = 'four'").expect("set");
    let other = prepared.execute(insert, &[Parameter::Int(9), Parameter::Text("d".to_owned())]);
    assert!(other.expect_err("other parameters").to_string().contains("used for other bytes"));
    assert_eq!(rows(&mut client), ["1a", "2B", "3c", "4d", "4d", "5d"]);
    let error =
        client.try_query("/* idempotency_key='' */ INSERT INTO t VALUES (1, 'a')").expect_err("no key");
    assert!(error.message.contains("1 to 255 bytes"), "{error:?}");
    client.ok("BEGIN");
    let error = client.try_query(&sql("six", 6)).expect_err("a part of a load");
    assert!(error.message.contains("within BEGIN can't have idempotency key [six]"), "{error:?}");
    client.ok("ROLLBACK");
    let error = client
        .try_query("/* idempotency_key='seven' */ INSERT INTO t WITH LABEL l VALUES (7, 'a')")
        .expect_err("two names");
    assert!(
        error.message.contains("label l can't be given together with idempotency key [seven]"),
        "{error:?}"
    );
}

#[test]
fn load_data_has_a_key() {
    let (server, mut client) = server();
    let file = server.scratch().join("rows.tsv");
    std::fs::write(&file, "1\ta\n").expect("written");
    let load = format!(
        "USE d; SET idempotency_key = 'k'; LOAD DATA LOCAL INFILE '{}' INTO TABLE t;",
        file.display()
    );
    for _ in 0..2 {
        MariaDb::new(&server).option("--local-infile=1").run(&load).success();
    }
    assert_eq!(rows(&mut client), ["1a"]);
    std::fs::write(&file, "2\ta\n").expect("written");
    let ran = MariaDb::new(&server).option("--local-infile=1").run(&load);
    assert!(ran.stderr.contains("used for other bytes"), "{}", ran.stderr);
}

#[test]
fn a_channel_stores_its_loads_in_order_without_gaps_and_each_once() {
    let (mut server, mut client) = server();
    let load = |server: &Server, offset: u64, mode: &str, body: &str| {
        let load = stream_load(server, mode)
            .header("channel: sensor 7")
            .header(&format!("channel_offset: {offset}"));
        answer(load, body)
    };
    assert_eq!(state(&server, "t", "channel=sensor+7"), json!({ "state": "NONE", "next_offset": 0 }));
    let early = load(&server, 1, "async_mode", "1,a\n");
    assert_eq!((&early["Status"], &early["ChannelNextOffset"]), (&json!("Fail"), &json!(0)), "{early}");
    assert!(early["Message"].as_str().expect("a text").starts_with("[OFFSET_OUT_OF_RANGE]"), "{early}");
    for (offset, mode) in ["async_mode", "sync_mode", "off_mode", "async_mode"].into_iter().enumerate() {
        let loaded = load(&server, offset as u64, mode, &format!("{offset},a\n"));
        assert_eq!(
            (&loaded["Status"], &loaded["ChannelNextOffset"]),
            (&json!("Success"), &json!(offset + 1)),
            "{loaded}"
        );
    }
    let check = |server: &Server, client: &mut Client| {
        let again = load(server, 3, "async_mode", "3,a\n");
        assert_eq!((&again["Status"], &again["Repeated"]), (&json!("Success"), &json!(true)), "{again}");
        let old = load(server, 1, "async_mode", "1,a\n");
        assert_eq!(
            (&old["Status"], &old["ChannelNextOffset"]),
            (&json!("Offset Already Exists"), &json!(4)),
            "{old}"
        );
        let other = load(server, 3, "async_mode", "9,a\n");
        assert!(
            other["Message"]
                .as_str()
                .expect("a text")
                .contains("offset 3 of channel [sensor 7] was used for other bytes")
        );
        assert_eq!(rows(client), ["0a", "1a", "2a", "3a"]);
        let found = state(server, "t", "channel=sensor%207");
        assert_eq!(
            (&found["state"], &found["next_offset"], &found["loaded_rows"]),
            (&json!("VISIBLE"), &json!(4), &json!(1))
        );
        let shown = client
            .rows("SELECT CONCAT(TABLE_NAME, CHANNEL, NEXT_OFFSET) FROM information_schema.load_channels");
        assert_eq!(shown, ["tsensor 74"]);
    };
    check(&server, &mut client);
    for is_killed in [true, false] {
        if is_killed {
            server.kill();
        } else {
            server.stop();
        }
        server.start_again();
        client = server.connect();
        client.ok("USE d");
        check(&server, &mut client);
    }
    client.ok("/* channel='sensor 7', channel_offset='4', channel_next_offset='10' */ INSERT INTO t VALUES (4, 'a')");
    client.ok("SET channel = 'sensor 7', channel_offset = 10");
    client.ok("INSERT INTO t VALUES (5, 'a')");
    assert_eq!(state(&server, "t", "channel=sensor+7")["next_offset"], 11);
    client.ok("DROP TABLE t FORCE");
    create(&mut client, "t");
    assert_eq!(state(&server, "t", "channel=sensor+7"), json!({ "state": "NONE", "next_offset": 0 }));
    assert_eq!(client.rows("SELECT CHANNEL FROM information_schema.load_channels"), [] as [&str; 0]);
}

#[test]
fn keys_are_bounded_and_told() {
    let (server, mut client) = with_settings(&[("load_keys_max", "2")]);
    let load = |key: &str| {
        let load = stream_load(&server, "async_mode").header(&format!("Idempotency-Key: {key}"));
        answer(load, "1,a\n")
    };
    assert_eq!(load("a")["Status"], "Success");
    assert_eq!(load("b")["Status"], "Success");
    let refused = load("c");
    let text = refused["Message"].as_str().expect("a text");
    assert!(
        text.starts_with("[EXCEEDED_LIMIT]2 idempotency keys are kept, which is the limit (load_keys_max)"),
        "{text}"
    );
    assert_eq!(load("a")["Repeated"], true, "those that are kept still answer");
    wait_until("the keys are counted", || {
        client.rows("SELECT CONCAT(RUNNING, RECENT + STORED, KEYS_MAX) FROM information_schema.load_keys")
            == ["022"]
    });
}

#[test]
fn a_user_sees_channels_of_its_tables_only() {
    let (server, mut root) = server();
    let load = stream_load(&server, "async_mode").header("channel: c").header("channel_offset: 0");
    LoadReply::parse(&load.body("1,a\n").text()).success();
    root.ok("CREATE USER amy");
    let mut amy = Client::connect_as("amy", server.mysql_port()).expect("it may connect");
    let channels = "SELECT CHANNEL FROM information_schema.load_channels";
    assert_eq!(amy.rows(channels), [] as [&str; 0]);
    let url = format!("http://127.0.0.1:{}/api/d/t/_load_state?channel=c", server.http_port());
    let refused = Curl::as_user("amy:", &url).text();
    assert!(refused.contains("denied"), "{refused}");
    root.ok("GRANT LOAD_PRIV ON d.t TO amy");
    assert_eq!(amy.rows(channels), ["c"]);
    assert!(Curl::as_user("amy:", &url).text().contains("\"next_offset\":1"));
}

#[test]
fn a_repetition_in_sync_mode_is_answered_when_the_rows_are_visible() {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok(
        "CREATE TABLE t (id INT NOT NULL, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES ('group_commit_interval_ms' = '1500')",
    );
    let load = |mode: &str| answer(stream_load(&server, mode).header("Idempotency-Key: k"), "1,a\n");
    let first = load("async_mode");
    assert_eq!(parts(&load("async_mode")), parts(&first));
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "0", "the group is open");
    assert_eq!(parts(&load("sync_mode")), parts(&first));
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "1");
    let insert = "/* idempotency_key='i' */ INSERT INTO t VALUES (2, 'a')";
    client.ok("SET group_commit = async_mode");
    client.ok(insert);
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "1", "the next one is open");
    client.ok("SET group_commit = sync_mode");
    client.ok(insert);
    assert_eq!(client.value("SELECT COUNT(*) FROM t"), "2");
}

#[test]
fn variables_that_name_a_load_are_set_one_by_one_and_for_a_session_only() {
    let (_server, mut client) = server();
    client.ok("SET channel = 'c'");
    assert_eq!(client.value("SELECT 1"), "1");
    let error = client.error("INSERT INTO t VALUES (1, 'a')");
    assert!(error.message.contains("give all of one"), "{error}");
    client.ok("SET channel = 'c'");
    client.ok("SET channel_offset = 0");
    client.ok("INSERT INTO t VALUES (1, 'a')");
    client.ok("INSERT INTO t VALUES (2, 'a')");
    assert_eq!(rows(&mut client), ["1a", "2a"]);
    assert_eq!(client.error("SET GLOBAL idempotency_key = 'k'").number, 1228);
    assert_eq!(client.value("/* channel='c' */ SELECT 1"), "1", "only a load has a name");
}

#[test]
fn channels_do_not_count_as_keys_and_leave_with_their_table() {
    let (mut server, mut client) = with_settings(&[("load_keys_max", "1")]);
    for offset in 0..3 {
        client.ok(&format!(
            "/* channel='c', channel_offset='{offset}' */ INSERT INTO t VALUES ({offset}, 'a')"
        ));
    }
    client.ok("/* idempotency_key='k' */ INSERT INTO t VALUES (3, 'a')");
    client.ok("/* channel='c', channel_offset='3' */ INSERT INTO t VALUES (4, 'a')");
    client.ok("DROP TABLE t FORCE");
    server.kill();
    server.start_again();
    assert_eq!(server.metric("tributary_load_channels "), 0.0);
}

/// A Stream Load of `1,a` with the key `k` in off mode, of which the last byte is still to come.
fn all_but_the_last_byte(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.http_port())).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    let head = "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\nExpect: 100-continue\r\n\
                column_separator: ,\r\ngroup_commit: off_mode\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\
                Connection: close\r\n\r\n1,a";
    stream.write_all(head.as_bytes()).expect("sent");
    stream
}

fn end(mut stream: TcpStream) -> Value {
    stream.write_all(b"\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (_, body) = text.rsplit_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn a_repetition_with_a_transaction_of_its_own_gets_the_first_ones_transaction() {
    let (server, mut client) = server();
    let (first, second) = (all_but_the_last_byte(&server), all_but_the_last_byte(&server));
    wait_until("both have begun", || client.rows("SHOW TRANSACTION WHERE STATUS = 'prepare'").len() == 2);
    let (first, second) = (end(first), end(second));
    assert_eq!((&first["Status"], &second["Status"]), (&json!("Success"), &json!("Success")), "{second}");
    assert_eq!((&first["Repeated"], &second["Repeated"]), (&Value::Null, &json!(true)), "{second}");
    assert_eq!(parts(&second), parts(&first), "{second}");
    let seen = client.rows(&format!("SHOW TRANSACTION WHERE ID = {}", second["TxnId"]));
    assert!(seen[0].contains("VISIBLE"), "{seen:?}");
    assert_eq!(rows(&mut client), ["1a"]);
}
