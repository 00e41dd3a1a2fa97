//! Stream Load: the mode used, the transfer of the body, and the treatment of its rows.

use crate::support::{Curl, Database, LoadReply, Server, is_group_label};
use std::fmt::Write as _;
use std::process::Command;

const SHORT_INTERVAL: &str = "\"group_commit_interval_ms\" = \"300\"";

fn csv(server: &Server, db: &Database) -> Curl {
    Curl::stream_load(server, &db.name, "dt").header("column_separator:,")
}

fn rows(db: &mut Database) -> Vec<String> {
    db.client.ok("SYNC");
    db.client.rows("SELECT * FROM dt ORDER BY id, name")
}

fn assert_grouped(reply: &LoadReply) {
    assert_eq!(reply.get("GroupCommit"), "true", "{}", reply.text);
    assert!(is_group_label(&reply.label()), "{}", reply.text);
}

fn assert_alone(reply: &LoadReply) {
    assert!(!reply.has("GroupCommit"), "{}", reply.text);
    assert!(!is_group_label(&reply.label()), "{}", reply.text);
}

#[test]
fn without_a_header_the_table_property_decides() {
    let server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_mode\" = \"async_mode\"");
    let reply = csv(&server, &db).body("6,Amy,60\n").load().success();
    assert_grouped(&reply);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "0");
    assert_eq!(rows(&mut db), ["6|Amy|60"]);
    db.client.ok("ALTER TABLE dt SET (\"group_commit_mode\" = \"off_mode\")");
    let reply = csv(&server, &db).body("7,Ross,98\n").load().success();
    assert_alone(&reply);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "2");
}

#[test]
fn the_header_beats_the_table_property() {
    let server = Server::shared();
    let mut db =
        server.database().with_dt(&format!("\"group_commit_mode\" = \"async_mode\", {SHORT_INTERVAL}"));
    let off = csv(&server, &db).header("group_commit:off_mode").body("1,a,1\n").load().success();
    assert_alone(&off);
    assert!(!off.has("GroupCommitFallback"), "nothing fell back: {}", off.text);
    db.client.ok("ALTER TABLE dt SET (\"group_commit_mode\" = \"off_mode\")");
    let sync = csv(&server, &db).header("group_commit:sync_mode").body("2,b,2\n").load().success();
    assert_grouped(&sync);
    assert_eq!(db.client.rows("SELECT * FROM dt ORDER BY id"), ["1|a|1", "2|b|2"]);
}

#[test]
fn modes_may_be_written_in_any_case() {
    let server = Server::shared();
    let db = server.database().with_dt(SHORT_INTERVAL);
    let reply = csv(&server, &db).header("group_commit:ASYNC_MODE").body("1,a,1\n").load().success();
    assert_grouped(&reply);
}

#[test]
fn a_chunked_async_load_is_answered_as_sync() {
    let server = Server::shared();
    let mut db = server.database().with_dt(SHORT_INTERVAL);
    let reply = csv(&server, &db)
        .header("group_commit:async_mode")
        .header("Transfer-Encoding: chunked")
        .body("6,Amy,60\n7,Ross,98\n")
        .load()
        .success();
    assert_grouped(&reply);
    assert_eq!(reply.get("GroupCommitMode"), "sync_mode", "{}", reply.text);
    assert!(!reply.get("GroupCommitFallback").is_empty(), "the answer says why: {}", reply.text);
    assert_eq!(reply.rows(), [2, 2, 0, 0]);
    assert_eq!(db.client.value("SELECT count(*) FROM dt"), "2", "sync means visible");
}

#[test]
fn loads_of_one_interval_share_label_and_transaction() {
    let server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"3600000\"");
    let load = |body: &str| csv(&server, &db).header("group_commit:async_mode").body(body).load().success();
    let (one, two) = (load("1,a,1\n"), load("2,b,2\n"));
    assert_eq!((one.label(), one.get("TxnId")), (two.label(), two.get("TxnId")));
    assert_eq!(rows(&mut db), ["1|a|1", "2|b|2"]);
}

#[test]
fn a_gzip_body_is_unpacked() {
    let server = Server::shared();
    let mut db = server.database().with_dt(SHORT_INTERVAL);
    let file = server.scratch().join(format!("{}.csv", db.name));
    std::fs::write(&file, "6,Amy,60\n7,Ross,98\n").expect("the file is written");
    let packed = Command::new("gzip").arg(&file).status().expect("gzip runs");
    assert!(packed.success());
    let file = file.with_extension("csv.gz");
    let bytes = std::fs::metadata(&file).expect("gzip made it").len();
    let by_type = csv(&server, &db).header("compress_type:gz").file(&file).load().success();
    assert_eq!(
        (by_type.rows(), by_type.get("LoadBytes")),
        ([2, 2, 0, 0], bytes.to_string()),
        "{}",
        by_type.text
    );
    let by_encoding = csv(&server, &db)
        .header("group_commit:sync_mode")
        .header("Content-Encoding: gzip")
        .file(&file)
        .load()
        .success();
    assert_eq!(by_encoding.rows(), [2, 2, 0, 0]);
    assert_eq!(rows(&mut db), ["6|Amy|60", "6|Amy|60", "7|Ross|98", "7|Ross|98"]);
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let mut curl = csv(&server, &db).header("Expect: 100-continue").argument("-v").body("6,Amy,60\n");
    curl = curl.argument("--stderr").argument("-");
    let output = curl.text();
    assert!(output.contains("HTTP/1.1 100 Continue"), "{output}");
    assert!(output.contains("\"Status\": \"Success\""), "{output}");
    assert_eq!(rows(&mut db), ["6|Amy|60"]);
}

#[test]
fn a_large_body_is_loaded_whole_in_every_mode() {
    let server = Server::shared();
    let mut db = server.database().with_dt(SHORT_INTERVAL);
    let mut text = String::new();
    for id in 0..200_000 {
        writeln!(text, "{id},name {id},{}", id % 100).expect("a String takes all");
    }
    let file = server.scratch().join(format!("{}.csv", db.name));
    std::fs::write(&file, &text).expect("the file is written");
    for mode in ["off_mode", "sync_mode", "async_mode"] {
        let reply = csv(&server, &db).header(&format!("group_commit:{mode}")).file(&file).load().success();
        assert_eq!(reply.rows(), [200_000, 200_000, 0, 0], "{mode}: {}", reply.text);
        assert_eq!(reply.get("LoadBytes"), text.len().to_string());
    }
    db.client.ok("SYNC");
    assert_eq!(
        db.client.rows("SELECT count(*), count(DISTINCT id), min(id), max(id), sum(score) FROM dt"),
        ["600000|200000|0|199999|29700000"]
    );
}

#[test]
fn columns_are_mapped_by_name_and_may_be_computed() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let by_name = csv(&server, &db).header("columns: name, id").body("Amy,6\n").load().success();
    assert_eq!(by_name.rows(), [1, 1, 0, 0]);
    let computed = csv(&server, &db)
        .header("columns: id, name, half, score = half * 2")
        .body("7,Ross,49\n")
        .load()
        .success();
    assert_eq!(computed.rows(), [1, 1, 0, 0]);
    assert_eq!(rows(&mut db), ["6|Amy|NULL", "7|Ross|98"]);
}

#[test]
fn rows_that_where_leaves_out_are_unselected() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let reply =
        csv(&server, &db).header("where: score > 10").body("1,a,10\n2,b,11\n3,c,\\N\n").load().success();
    assert_eq!(reply.rows(), [3, 1, 0, 2], "{}", reply.text);
    assert_eq!(rows(&mut db), ["2|b|11"]);
}

#[test]
fn separators_may_be_long_and_invisible() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let reply = Curl::stream_load(&server, &db.name, "dt")
        .header("column_separator:\\x01")
        .header("line_delimiter:||")
        .body("6\u{1}Amy\u{1}60||7\u{1}Ross\u{1}98||")
        .load()
        .success();
    assert_eq!(reply.rows(), [2, 2, 0, 0]);
    let tabs = Curl::stream_load(&server, &db.name, "dt").body("8\tTab\t1\n").load().success();
    assert_eq!(tabs.rows(), [1, 1, 0, 0]);
    assert_eq!(rows(&mut db), ["6|Amy|60", "7|Ross|98", "8|Tab|1"]);
}

#[test]
fn nulls_and_empty_fields_are_distinguished() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    csv(&server, &db).body("1,\\N,\\N\n2,,7\n3,NULL,8\n").load().success();
    csv(&server, &db).header("empty_field_as_null:true").body("4,,\n").load().success();
    assert_eq!(rows(&mut db), ["1|NULL|NULL", "2||7", "3|NULL|8", "4|NULL|NULL"]);
    assert_eq!(db.client.rows("SELECT id FROM dt WHERE name IS NULL ORDER BY id"), ["1", "4"]);
}

#[test]
fn enclosed_fields_may_hold_separators() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    csv(&server, &db)
        .header("enclose:\"")
        .header("escape:\\")
        .header("trim_double_quotes:true")
        .body("1,\"a, \\\"b\\\"\",5\n")
        .load()
        .success();
    assert_eq!(rows(&mut db), ["1|a, \"b\"|5"]);
}

#[test]
fn header_lines_are_skipped() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    csv(&server, &db).header("format: csv_with_names").body("id,name,score\n1,a,1\n").load().success();
    csv(&server, &db)
        .header("format: csv_with_names_and_types")
        .body("id,name,score\nint,varchar,int\n2,b,2\n")
        .load()
        .success();
    csv(&server, &db).header("skip_lines: 1").body("junk\n3,c,3\n").load().success();
    assert_eq!(rows(&mut db), ["1|a|1", "2|b|2", "3|c|3"]);
}

#[test]
fn an_empty_body_loads_nothing_and_succeeds() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let file = server.scratch().join(format!("{}.csv", db.name));
    std::fs::write(&file, "").expect("the file is written");
    let reply = csv(&server, &db).header("group_commit:async_mode").file(&file).load().success();
    assert_eq!((reply.rows(), reply.get("LoadBytes")), ([0, 0, 0, 0], "0".to_owned()), "{}", reply.text);
    assert!(rows(&mut db).is_empty());
}

#[test]
fn the_comment_is_given_back() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let reply = csv(&server, &db).header("comment: nightly \"run\"").body("1,a,1\n").load().success();
    assert_eq!(reply.get("Comment"), "nightly \"run\"");
}

#[test]
fn a_bad_load_fails_alone_in_its_group() {
    let server = Server::start();
    let mut db = server.database().with_dt("\"group_commit_interval_ms\" = \"3600000\"");
    let load = |body: &str| {
        csv(&server, &db).header("group_commit:async_mode").header("strict_mode:true").body(body).load()
    };
    let first = load("1,a,1\n").success();
    let bad = load("2,b,2\nnot a number,c,3\n");
    assert_eq!(bad.failure(), "[DATA_QUALITY_ERROR]too many filtered rows");
    let last = load("4,d,4\n").success();
    assert_eq!(first.label(), last.label());
    assert_eq!(rows(&mut db), ["1|a|1", "4|d|4"]);
}

#[test]
fn a_load_has_one_time_zone() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE zones (id INT, stamp DATETIME, epoch BIGINT, here DATETIME, text DATETIME, \
         kept DATETIME DEFAULT CURRENT_TIMESTAMP) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let is_one_zone =
        "SELECT stamp, epoch, text, here = kept, timestampdiff(hour, utc_timestamp(), here) FROM zones";
    for (zone, expected) in [
        ("+08:00", "1970-01-01 08:00:00|0|1970-01-01 08:00:00|1|"),
        ("Asia/Shanghai", "1970-01-01 08:00:00|0|1970-01-01 08:00:00|1|"),
        ("CST", "1970-01-01 08:00:00|0|1970-01-01 08:00:00|1|"),
        ("GMT", "1970-01-01 00:00:00|28800|1970-01-01 00:00:00|1|"),
    ] {
        let check = |db: &mut Database| {
            let rows = db.client.rows(is_one_zone);
            assert!(rows.len() == 1 && rows[0].starts_with(expected), "{zone}: {rows:?}");
            db.client.ok("TRUNCATE TABLE zones");
        };
        Curl::stream_load(&server, &db.name, "zones")
            .header("column_separator:,")
            .header(&format!("timezone:{zone}"))
            .header("columns: id, seconds, text, stamp = from_unixtime(seconds), epoch = unix_timestamp('1970-01-01 08:00:00') + 0 * seconds, here = now()")
            .header("where: stamp = from_unixtime(0)")
            .body("1,0,1970-01-01 00:00:00Z\n2,1,1970-01-01 00:00:00Z\n")
            .load()
            .success();
        check(&mut db);
        let sql = format!(
            "insert into {}.zones (id, stamp, epoch, here, text) select c1, from_unixtime(c2), unix_timestamp('1970-01-01 08:00:00'), now(), c3 from http_stream('column_separator' = ',', 'format' = 'csv') where from_unixtime(c2) = from_unixtime(0)",
            db.name
        );
        Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
            .header(&format!("sql:{sql}"))
            .header(&format!("timezone:{zone}"))
            .body("1,0,1970-01-01 00:00:00Z\n2,1,1970-01-01 00:00:00Z\n")
            .load()
            .success();
        check(&mut db);
    }
}

#[test]
fn values_that_doris_takes_are_taken() {
    let server = Server::shared();
    let mut db = server.database();
    db.client.ok("CREATE TABLE odd (id INT, at DATETIME, f FLOAT, d DOUBLE, big LARGEINT, s STRING) \
         DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let reply = Curl::stream_load(&server, &db.name, "odd")
        .header("column_separator:,")
        .header("enclose:\"")
        .header("max_filter_ratio:0.5")
        .body("1,2022-12-01:09:30:31,1e39,-1e400,1,\"aaa\"bbb\"ccc\"\n2,,,,170141183460469231731687303715884105727,x\n")
        .load()
        .success();
    assert_eq!(reply.rows(), [2, 1, 1, 0], "{}", reply.text);
    let reason = reply.get("ErrorURL");
    let (_, text) = Curl::anonymous(&reason).status_and_text();
    assert!(text.starts_with("Reason: column_name[big], a largeint of this table keeps 38 digits"), "{text}");
    let rows = db.client.rows("SELECT id, at, s, f > 1e30, d < -1e300 FROM odd");
    assert_eq!(rows, ["1|2022-12-01 09:30:31|aaa\"bbb\"ccc|1|1"]);
}
