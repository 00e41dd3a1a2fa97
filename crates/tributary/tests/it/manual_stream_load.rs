//! The Stream Load and HTTP Stream examples of the Group Commit manual, run by a shell word for word.

use crate::support::curl::shell;
use crate::support::{LoadReply, Server, is_group_label, wait_until};
use std::time::{Duration, Instant};

const STREAM_LOAD: &str = "curl --location-trusted -u {user}:{passwd} -T data.csv -H \"group_commit:MODE\" -H \"column_separator:,\" http://{fe_host}:{http_port}/api/db/dt/_stream_load";
const HTTP_STREAM: &str = "curl --location-trusted -u {user}:{passwd} -T data.csv  -H \"group_commit:MODE\" -H \"sql:insert into db.dt select * from http_stream('column_separator'=',', 'format' = 'CSV')\"  http://{fe_host}:{http_port}/api/_http_stream";

/// The keys of the manual's answers, in order, with the one that newer servers added.
const KEYS: [&str; 16] = [
    "TxnId",
    "Label",
    "Comment",
    "GroupCommit",
    "Status",
    "Message",
    "NumberTotalRows",
    "NumberLoadedRows",
    "NumberFilteredRows",
    "NumberUnselectedRows",
    "LoadBytes",
    "LoadTimeMs",
    "StreamLoadPutTimeMs",
    "ReadDataTimeMs",
    "WriteDataTimeMs",
    "ReceiveDataTimeMs",
];

/// A server with the manual's database, table and file.
fn server_with_file() -> Server {
    let server = Server::start().with_manual_table();
    std::fs::write(server.scratch().join("data.csv"), "6,Amy,60\n7,Ross,98\n").expect("the file is written");
    server
}

fn run(server: &Server, line: &str, mode: &str, port: u16) -> LoadReply {
    let line = line
        .replace("MODE", mode)
        .replace("{user}:{passwd}", "root:")
        .replace("{fe_host}:{http_port}", &format!("127.0.0.1:{port}"));
    LoadReply::parse(&shell(server.scratch(), &line).success())
}

/// The keys are Doris's; after them come ours: one of `either`, if there is any, and the stages.
fn assert_keys(reply: &LoadReply, of_doris: &[&str], either: &[&str]) {
    let keys = reply.keys();
    let (first, ours) = keys.split_at(of_doris.len().min(keys.len()));
    assert_eq!(first, of_doris, "{}", reply.text);
    let is_right = match ours {
        [key, "StagesUs"] => either.contains(key),
        ["StagesUs"] => either.is_empty(),
        _ => false,
    };
    assert!(is_right, "{}", reply.text);
}

fn assert_grouped(reply: &LoadReply) {
    assert_keys(reply, &KEYS, &["GroupClosedBy", "VisibleBy"]);
    assert_eq!([reply.status(), reply.message()], ["Success", "OK"], "{}", reply.text);
    assert_eq!(reply.get("GroupCommit"), "true");
    assert!(is_group_label(&reply.label()), "{}", reply.text);
    assert!(reply.get("TxnId").parse::<u64>().is_ok_and(|txn| txn > 0), "{}", reply.text);
    assert_eq!(reply.rows(), [2, 2, 0, 0], "{}", reply.text);
    assert_eq!(
        (reply.get("Comment").as_str(), reply.get("LoadBytes").as_str()),
        ("", "19"),
        "{}",
        reply.text
    );
    assert!(reply.text.starts_with("{\n    \"TxnId\": "), "{}", reply.text);
    assert!(reply.text.ends_with("\n}\n"), "{}", reply.text);
}

fn count(server: &Server) -> String {
    server.connect_to("db").value("select count(*) from dt")
}

fn assert_both_rows(server: &Server) {
    assert_eq!(server.connect_to("db").rows("select * from dt order by id"), ["6|Amy|60", "7|Ross|98"]);
}

fn async_example(line: &str) {
    let server = server_with_file();
    let started = Instant::now();
    let reply = run(&server, line, "async_mode", server.http_port());
    assert_grouped(&reply);
    assert_eq!(count(&server), "0", "an async load is not visible before its group commits");
    wait_until("the group has committed", || count(&server) == "2");
    assert!(
        started.elapsed() >= Duration::from_secs(10),
        "the default interval is 10 s, not {:?}",
        started.elapsed()
    );
    assert_both_rows(&server);
}

fn sync_example(line: &str) {
    let server = server_with_file();
    server.connect_to("db").ok("ALTER TABLE dt SET (\"group_commit_interval_ms\" = \"1000\")");
    let reply = run(&server, line, "sync_mode", server.http_port());
    assert_grouped(&reply);
    assert_both_rows(&server);
    assert!(reply.get("LoadTimeMs").parse::<u64>().is_ok_and(|ms| ms >= 1000), "{}", reply.text);
    assert!(reply.get("WriteDataTimeMs").parse::<u64>().is_ok_and(|ms| ms > 0), "{}", reply.text);
}

fn off_example(line: &str) {
    let server = server_with_file();
    let reply = run(&server, line, "off_mode", server.http_port());
    assert_keys(
        &reply,
        &[
            "TxnId",
            "Label",
            "Comment",
            "TwoPhaseCommit",
            "Status",
            "Message",
            "NumberTotalRows",
            "NumberLoadedRows",
            "NumberFilteredRows",
            "NumberUnselectedRows",
            "LoadBytes",
            "LoadTimeMs",
            "BeginTxnTimeMs",
            "StreamLoadPutTimeMs",
            "ReadDataTimeMs",
            "WriteDataTimeMs",
            "ReceiveDataTimeMs",
            "CommitAndPublishTimeMs",
        ],
        &[],
    );
    assert_eq!(reply.get("TwoPhaseCommit"), "false");
    assert!(reply.text.contains("\"TwoPhaseCommit\": \"false\""), "it is a text: {}", reply.text);
    assert_eq!(reply.label().matches('-').count(), 4, "the label is a UUID: {}", reply.text);
    assert_eq!(reply.clone().success().rows(), [2, 2, 0, 0]);
    assert_both_rows(&server);
}

#[test]
fn stream_load_in_async_mode() {
    async_example(STREAM_LOAD);
}

#[test]
fn stream_load_in_sync_mode() {
    sync_example(STREAM_LOAD);
}

#[test]
fn stream_load_in_off_mode() {
    off_example(STREAM_LOAD);
}

#[test]
fn http_stream_in_async_mode() {
    async_example(HTTP_STREAM);
}

#[test]
fn http_stream_in_sync_mode() {
    sync_example(HTTP_STREAM);
}

#[test]
fn http_stream_in_off_mode() {
    off_example(HTTP_STREAM);
}

#[test]
fn the_back_ends_port_serves_loads_too() {
    let server = server_with_file();
    let reply = run(&server, STREAM_LOAD, "async_mode", server.webserver_port());
    assert_grouped(&reply);
    server.connect().ok("SYNC");
    assert_both_rows(&server);
}
