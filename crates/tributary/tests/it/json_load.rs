//! `format: json`: its own headers and those shared with CSV, on the real server.

use crate::support::{Curl, Database, LoadReply, Server, is_group_label};
use std::process::Command;

const SHORT_INTERVAL: &str = "\"group_commit_interval_ms\" = \"300\"";
const TOO_MANY: &str = "[DATA_QUALITY_ERROR]too many filtered rows";

fn json(server: &Server, db: &Database) -> Curl {
    Curl::stream_load(server, &db.name, "dt").header("format: json")
}

fn rows(db: &mut Database) -> Vec<String> {
    db.client.ok("SYNC");
    db.client.rows("SELECT * FROM dt ORDER BY id, name")
}

/// Loads `body` with these headers into an empty table; returns its rows.
fn loaded(headers: &[&str], body: &str) -> Vec<String> {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let load = json(&server, &db).headers(headers);
    load.body(body).load().success();
    rows(&mut db)
}

/// The reasons that the error log of a load has.
fn reasons(reply: &LoadReply) -> String {
    Curl::get(&reply.get("ErrorURL")).text()
}

#[test]
fn each_layout_has_its_headers() {
    let (one, two) = (r#"{"id":1,"name":"a","score":10}"#, r#"{"score":20,"other":[{}],"id":2}"#);
    let expected = ["1|a|10", "2|NULL|20"];
    let lines = format!("{one}\r\n\n{two}");
    let array = format!("[\n {one},\n {two}\n]\n");
    assert_eq!(loaded(&[], &lines), expected);
    assert_eq!(loaded(&["read_json_by_line: true"], &lines), expected);
    assert_eq!(loaded(&["strip_outer_array: true"], &array), expected);
    assert_eq!(loaded(&["strip_outer_array: true", "read_json_by_line: false"], &array), expected);
    assert_eq!(
        loaded(&["strip_outer_array: true", "read_json_by_line: true"], &format!("[{one}]\n[{two}]")),
        expected
    );
    assert_eq!(loaded(&["read_json_by_line: false"], &format!("{{\n{}", &one[1..])), expected[..1]);
    assert_eq!(loaded(&["line_delimiter: |"], &format!("{one}|{two}")), expected);
    let all_ignored =
        ["fuzzy_parse: true", "column_separator: ,", "enclose: \"", "escape: \\", "trim_double_quotes: true"];
    assert_eq!(loaded(&all_ignored, &lines), expected, "clients send them with JSON too");
}

#[test]
fn paths_and_the_root_lead_to_the_values() {
    let body = r#"{"key":{"id":1},"names":["x","a"],"score":{"n": 1}}"#;
    let paths = r#"jsonpaths: ["$.key.id", "$.names[1]"]"#;
    assert_eq!(loaded(&[paths], body), ["1|a|NULL"]);
    assert_eq!(loaded(&[paths, "columns: id, name, score = id * 2"], body), ["1|a|2"]);
    assert_eq!(
        loaded(&[r#"jsonpaths: ["$.names[0]", "$.key.id"]"#, "columns: name, id"], body),
        ["1|x|NULL"]
    );
    assert_eq!(loaded(&["json_root: $.key"], body), ["1|NULL|NULL"]);
    assert_eq!(
        loaded(
            &["json_root: $.data", "strip_outer_array: true"],
            r#"{"n":1,"data":[{"id":1,"name":"a"},{"id":2}]}"#
        ),
        ["1|a|NULL", "2|NULL|NULL"]
    );
    assert_eq!(loaded(&["num_as_string: true"], r#"{"id":1,"name":[1]}"#), ["1|[\"1\"]|NULL"]);
}

#[test]
fn columns_where_and_the_filter_ratio_work_as_with_csv() {
    let body =
        "{\"id\":1,\"x\":4}\n{\"id\":2,\"x\":null}\n{\"id\":\"bad\",\"x\":1}\nbroken\n{\"id\":3,\"x\":6}";
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let load = |headers: &[&str]| json(&server, &db).headers(headers).body(body).load();
    let derived =
        load(&["columns: id, x, score = x + 1, name = 'n'", "max_filter_ratio: 0.7", "where: score > 5"]);
    let derived = derived.success();
    assert_eq!(derived.rows(), [5, 1, 2, 2], "{}", derived.text);
    let renamed = load(&["columns: x, id", "strict_mode: true", "max_filter_ratio: 0.4"]).success();
    assert_eq!(renamed.rows(), [5, 3, 2, 0], "{}", renamed.text);
    let log = reasons(&renamed);
    assert!(
        log.contains("Reason: column(id) value is incorrect while strict mode is true, src value is bad. src line [{\"id\":\"bad\",\"x\":1}]; "),
        "{log}"
    );
    assert!(log.contains("Reason: Parse json data for JsonDoc failed. code: 3, "), "{log}");
    assert!(log.contains(". src line [broken]; "), "{log}");
    let refused = load(&["columns: id", "max_filter_ratio: 0.3"]);
    assert_eq!(refused.failure(), TOO_MANY);
    assert_eq!(rows(&mut db), ["1|NULL|NULL", "2|NULL|NULL", "3|NULL|NULL", "3|n|7"]);
}

#[test]
fn missing_keys_are_defaults_and_rejected_without_one() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE dt (id INT NOT NULL, name VARCHAR(10) NOT NULL DEFAULT 'none', score INT DEFAULT '7')
         DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let body = "{\"id\":1}\n{\"id\":2,\"name\":\"x\",\"score\":null}\n{\"name\":\"y\"}\n{\"id\":3,\"name\":null}\n{\"Id\":4}";
    let reply = json(&server, &db).header("max_filter_ratio: 1").body(body).load().success();
    assert_eq!(reply.rows(), [5, 2, 3, 0], "{}", reply.text);
    let log = reasons(&reply);
    for reason in [
        "The column `id` is not nullable, but it's not found in jsondata.",
        "Json value is null, but the column `name` is not nullable.",
        "All fields is null, this is a invalid row.",
    ] {
        assert!(log.contains(&format!("Reason: {reason}. src line [{{")), "{reason}: {log}");
    }
    let computed = json(&server, &db).header("columns: id, name, score = id + 1").body("{\"id\":5}").load();
    computed.success();
    assert_eq!(rows(&mut db), ["1|none|7", "2|x|NULL", "5|none|6"]);
}

#[test]
fn values_keep_what_they_are() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok(
        "CREATE TABLE dt (id INT, name STRING, big LARGEINT, amount DECIMAL(38,10), day DATE, at DATETIME(3), flag BOOLEAN, doc JSON)
         DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let body = concat!(
        r#"{"id":1,"name":12345678901234567890.10,"big":-12345678901234567890123456789012345678,"amount":1234567890123456789012345678.0123456789,"#,
        r#""day":"2024-05-01","at":"2024-05-01T10:11:12.5","flag":true,"doc":{"a": [1, "\u00e9"]}}"#,
        "\n",
        r#"{"id":"2","name":"\ud83d\ude00\n\u0000\"","big":"7","amount":"1e-3","day":20240501,"at":20240501101112,"flag":"no","doc":"{\"b\": 1}"}"#,
    );
    json(&server, &db).header("strict_mode: true").body(body).load().success();
    assert_eq!(
        rows(&mut db),
        [
            "1|12345678901234567890.10|-12345678901234567890123456789012345678|1234567890123456789012345678.0123456789|2024-05-01|2024-05-01 10:11:12.500|1|{\"a\":[1,\"\\u00e9\"]}",
            "2|😀\n\0\"|7|0.0010000000|2024-05-01|2024-05-01 10:11:12.000|0|{\"b\": 1}"
        ]
    );
}

#[test]
fn a_small_load_joins_a_group_in_each_mode() {
    let server = Server::shared();
    let mut db = server.database().with_dt(SHORT_INTERVAL);
    let load = |mode: &str, body: &str| {
        json(&server, &db).header(&format!("group_commit: {mode}")).body(body).load()
    };
    for (mode, body) in [("async_mode", "{\"id\":1}"), ("sync_mode", "{\"id\":2}\n")] {
        let reply = load(mode, body).success();
        assert_eq!(reply.get("GroupCommit"), "true", "{}", reply.text);
        assert!(is_group_label(&reply.label()), "{}", reply.text);
        assert_eq!(reply.rows(), [1, 1, 0, 0], "{}", reply.text);
    }
    let alone = load("off_mode", "{\"id\":3}").success();
    assert!(!alone.has("GroupCommit"), "{}", alone.text);
    let rejected = load("async_mode", "{\"id\":4}\n{\"name\":\"a\"}");
    assert_eq!(rejected.failure(), TOO_MANY);
    assert!(rejected.get("FirstErrorMsg").contains("The column `id` is not nullable"), "{}", rejected.text);
    assert_eq!(rows(&mut db), ["1|NULL|NULL", "2|NULL|NULL", "3|NULL|NULL"]);
}

#[test]
fn a_body_may_be_packed_or_chunked() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let file = server.scratch().join(format!("{}.json", db.name));
    let body: String =
        (0..20_000).map(|id| format!("{{\"id\":{id},\"name\":\"n\",\"score\":{id}}}\n")).collect();
    std::fs::write(&file, &body).expect("the file is written");
    let chunked = json(&server, &db).header("Transfer-Encoding: chunked").file(&file).load().success();
    assert_eq!(chunked.rows(), [20_000, 20_000, 0, 0]);
    assert!(Command::new("gzip").arg(&file).status().expect("gzip runs").success());
    let packed = file.with_extension("json.gz");
    for header in ["compress_type: gz", "compress_type: gzip", "Content-Encoding: gzip"] {
        let reply = json(&server, &db).header(header).file(&packed).load().success();
        assert_eq!(reply.rows(), [20_000, 20_000, 0, 0], "{header}");
    }
    assert_eq!(
        db.client.rows("SELECT count(*), count(DISTINCT id), sum(score) FROM dt"),
        ["80000|20000|799960000"]
    );
}

#[test]
fn a_broken_array_loads_nothing_and_says_where_it_breaks() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for (body, place) in [
        (
            "[{\"id\":1},{\"id\":2]",
            "',' or '}' behind a value is expected, at byte 17 of the body, in element 2",
        ),
        ("[{\"id\":1},{\"id\":2}", "the text ends inside a value, at byte 18 of the body"),
        ("[{\"id\":1}] x", "something follows the value"),
    ] {
        let reply = json(&server, &db)
            .header("strip_outer_array: true")
            .header("max_filter_ratio: 1")
            .body(body)
            .load();
        let message = reply.failure();
        assert!(
            message.starts_with("[DATA_QUALITY_ERROR]Parse json data for JsonDoc failed. code: 3")
                && message.contains(place),
            "{message}"
        );
    }
    assert_eq!(rows(&mut db), [""; 0]);
}

#[test]
fn what_json_can_not_obey_is_refused_by_name() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    for (header, message) in [
        ("skip_lines: 1", "[INVALID_ARGUMENT]skip_lines has no effect with format=json; leave it out"),
        (
            "empty_field_as_null: true",
            "[INVALID_ARGUMENT]empty_field_as_null has no effect with format=json; leave it out",
        ),
        ("jsonpaths: $.a", "[INVALID_ARGUMENT]It's invalid jsonpaths. $.a: "),
        ("jsonpaths: [\"$.a.*\"]", "[INVALID_ARGUMENT]It's invalid jsonpaths. `$.a.*`: "),
        ("json_root: a.b", "[INVALID_ARGUMENT]It's invalid jsonpaths. `a.b`: "),
        ("compress_type: lzo", "[NOT_IMPLEMENTED_ERROR]compress_type=lzo is not supported, "),
        (
            "unique_key_update_mode: UPDATE_FLEXIBLE_COLUMNS",
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Only unique key merge on write support partial update",
        ),
    ] {
        let reply = json(&server, &db).header(header).body("{\"id\":1}").load();
        assert!(reply.failure().starts_with(message), "{header}: {}", reply.text);
    }
    let csv =
        Curl::stream_load(&server, &db.name, "dt").header("jsonpaths: [\"$.id\"]").body("1\ta\t2\n").load();
    assert_eq!(
        csv.failure(),
        "[INVALID_ARGUMENT]jsonpaths has no effect with format=csv; send format=json if the data are JSON"
    );
    let ignored =
        Curl::stream_load(&server, &db.name, "dt").header("strip_outer_array: true").body("1\ta\t2\n");
    assert_eq!(ignored.load().success().rows(), [1, 1, 0, 0]);
}

#[test]
fn an_http_stream_reads_json_by_the_keys_of_its_first_object() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let stream = |sql: &str, body: &str| {
        Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
            .header(&format!("sql:{}", sql.replace("DT", &format!("{}.dt", db.name))))
            .body(body)
            .load()
    };
    let computed = stream(
        "insert into DT (id, name, score) select k, upper(n), k * 2 from http_stream('format' = 'json') where k > 1",
        "{\"n\":\"a\",\"k\":1}\n{\"k\":2,\"n\":\"b\",\"x\":0}\n{\"k\":3}",
    );
    assert_eq!(computed.success().rows(), [3, 2, 0, 1]);
    stream(
        "insert into DT select * from http_stream('format' = 'json', 'strip_outer_array' = 'true')",
        "[{\"a\":4,\"b\":\"d\",\"c\":40},{\"c\":50,\"a\":5}]",
    )
    .success();
    stream(
        "insert into DT (name, id) select * from http_stream('format' = 'json', 'jsonpaths' = '[\"$.n.m\", \"$.k\"]')",
        "{\"k\":6,\"n\":{\"m\":\"f\"}}",
    )
    .success();
    let narrow = stream("insert into DT select * from http_stream('format' = 'json')", "{\"id\":7}");
    assert!(narrow.failure().contains("Column count doesn't match value count"), "{}", narrow.text);
    assert_eq!(rows(&mut db), ["2|B|4", "3|NULL|6", "4|d|40", "5|NULL|50", "6|f|NULL"]);
}
