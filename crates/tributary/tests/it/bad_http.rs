//! Bad HTTP loads: each with its exact answer, and no row of it in the table.

use crate::support::{Curl, Database, LoadReply, PATIENCE, Server};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

const TOO_MANY: &str = "[DATA_QUALITY_ERROR]too many filtered rows";

fn csv(server: &Server, db: &Database) -> Curl {
    Curl::stream_load(server, &db.name, "dt").header("column_separator:,")
}

/// The reasons behind the answer's `ErrorURL`.
fn reasons(reply: &LoadReply) -> String {
    let url = reply.get("ErrorURL");
    assert!(url.contains("/api/_load_error_log?file=__shard_"), "{}", reply.text);
    let (status, text) = Curl::anonymous(&url).status_and_text();
    assert_eq!(status, 200, "{text}");
    text
}

fn count(db: &mut Database) -> String {
    db.client.value("SELECT count(*) FROM dt")
}

#[test]
fn an_unknown_table_or_database_is_named() {
    let server = Server::shared();
    let db = server.database();
    let table = csv(&server, &db).body("1,a,1\n").load();
    let message = |what: &str| format!("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = {what}");
    assert_eq!(table.failure(), message(&format!("Table [dt] does not exist in database [{}].", db.name)));
    assert_eq!(table.get("TxnId"), "-1");
    let database = Curl::stream_load(&server, "nowhere", "dt").body("1\n").load();
    assert_eq!(database.failure(), message("Database [nowhere] does not exist."));
}

#[test]
fn a_wrong_number_of_fields_is_reported_with_the_line() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let reply = csv(&server, &db).body("1,a\n2,b,2,extra\n").load();
    assert_eq!(reply.failure(), TOO_MANY);
    assert_eq!(reply.rows(), [2, 0, 2, 0], "{}", reply.text);
    let few = "actual column number in csv file is  less than  schema column number.actual number: 2, schema column number: 3; line delimiter: [\n], column separator: [,], result values:[1, a, ]";
    assert_eq!(reply.get("FirstErrorMsg"), few);
    let log = reasons(&reply);
    assert!(log.starts_with(&format!("Reason: {few}. src line [1,a]; \n")), "{log}");
    assert!(
        log.contains("is  more than  schema column number.actual number: 4, schema column number: 3;"),
        "{log}"
    );
    assert!(log.ends_with("result values:[2, b, 2, extra, ]. src line [2,b,2,extra]; \n"), "{log}");
    assert_eq!(count(&mut db), "0");
}

#[test]
fn text_in_an_int_column_is_filtered_when_strict() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let reply = csv(&server, &db).header("strict_mode:true").body("1,a,many\n2,b,2\n").load();
    assert_eq!(reply.failure(), TOO_MANY);
    assert_eq!(reply.get("NumberFilteredRows"), "1", "{}", reply.text);
    assert_eq!(
        reasons(&reply),
        "Reason: column(score) value is incorrect while strict mode is true, src value is many. src line [1 a many]; \n"
    );
    assert_eq!(count(&mut db), "0");
}

#[test]
fn text_in_an_int_column_is_null_when_not_strict() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let reply = csv(&server, &db).body("1,a,many\n2,b,2\n").load().success();
    assert_eq!(reply.rows(), [2, 2, 0, 0], "{}", reply.text);
    assert!(!reply.has("ErrorURL"), "{}", reply.text);
    assert_eq!(db.client.rows("SELECT * FROM dt ORDER BY id"), ["1|a|NULL", "2|b|2"]);
}

#[test]
fn text_in_a_not_null_int_column_is_filtered_in_any_case() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let reply = csv(&server, &db).body("one,a,1\n").load();
    assert_eq!(reply.failure(), TOO_MANY);
    assert_eq!(
        reasons(&reply),
        "Reason: column(id) values is null while columns is not nullable. src line [one a 1]; \n"
    );
    assert_eq!(count(&mut db), "0");
}

#[test]
fn null_in_a_not_null_column_is_filtered() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for strict in ["strict_mode:true", "strict_mode:false"] {
        let reply = csv(&server, &db).header(strict).body("\\N,a,1\n").load();
        assert_eq!(reply.failure(), TOO_MANY);
        assert_eq!(
            reasons(&reply),
            "Reason: column(id) values is null while columns is not nullable. src line [NULL a 1]; \n"
        );
    }
    assert_eq!(count(&mut db), "0");
}

#[test]
fn a_too_long_text_is_filtered_when_strict_and_cut_when_not() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let long = "x".repeat(60);
    let body = format!("1,{long},1\n");
    let strict = csv(&server, &db).header("strict_mode:true").body(&body).load();
    assert_eq!(strict.failure(), TOO_MANY);
    assert_eq!(
        reasons(&strict),
        format!(
            "Reason: column_name[name], the length of input is too long than schema. first 32 bytes of input str: [{}] schema length: 50; actual length: 60; . src line []; \n",
            &long[..32]
        )
    );
    csv(&server, &db).body(&body).load().success();
    assert_eq!(db.client.value("SELECT length(name) FROM dt"), "50");
}

#[test]
fn a_filter_ratio_lets_bad_rows_pass_with_their_reasons() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let body = "1,a,1\n2,b,2\n3,c,3\nfour,d,4\n";
    let load = |ratio: &str| csv(&server, &db).header(&format!("max_filter_ratio:{ratio}")).body(body).load();
    let passed = load("0.25").success();
    assert_eq!(passed.rows(), [4, 3, 1, 0], "{}", passed.text);
    assert!(reasons(&passed).contains("src line [four d 4]"));
    let failed = load("0.24");
    assert_eq!(failed.failure(), TOO_MANY);
    assert_eq!(count(&mut db), "3");
}

#[test]
fn the_ratio_holds_for_groups_of_any_size() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let mut body: String = (0..10_000).map(|id| format!("{id},n,1\n")).collect();
    body.push_str("bad,n,1\n");
    let file = server.scratch().join(format!("{}.csv", db.name));
    std::fs::write(&file, body).expect("the file is written");
    let reply =
        csv(&server, &db).header("group_commit:async_mode").header("strict_mode:true").file(&file).load();
    assert_eq!(reply.failure(), TOO_MANY);
    assert_eq!(reply.get("NumberFilteredRows"), "1", "{}", reply.text);
    db.client.ok("SYNC");
    assert_eq!(count(&mut db), "0");
}

#[test]
fn bad_header_values_are_reported_as_in_doris() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for (header, message) in [
        (
            "group_commit:maybe",
            "[INVALID_ARGUMENT]group_commit can only be [async_mode, sync_mode, off_mode]",
        ),
        ("strict_mode:x", "[INVALID_ARGUMENT]Invalid strict mode format. Must be bool type"),
        (
            "max_filter_ratio:2",
            "[INVALID_ARGUMENT]Invalid max_filter_ratio: 2. It must be a number from 0 to 1",
        ),
        ("format:xml", "[DATA_FILE_TYPE_ERROR]unknown data format, format=xml"),
        ("enclose:ab", "[INVALID_ARGUMENT]enclose must be single-char, actually is ab"),
        ("escape:ab", "[INVALID_ARGUMENT]escape must be single-char, actually is ab"),
        ("skip_lines:-1", "[INVALID_ARGUMENT]Invalid 'skip_lines': -1"),
        (
            "send_batch_parallelism:x",
            "[INVALID_ARGUMENT]invalid HTTP header send_batch_parallelism=x: invalid digit found in string; give a whole number",
        ),
        ("merge_type:REPLACE", "[INVALID_ARGUMENT]Invalid merge type REPLACE"),
        (
            "label:my label",
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Label format error. regex: ^[-_A-Za-z0-9:]{1,128}$, label: my label",
        ),
    ] {
        let reply = csv(&server, &db).header(header).body("1,a,1\n").load();
        assert_eq!(reply.failure(), message, "{header}");
        assert_eq!(reply.get("TxnId"), "-1", "{header}");
    }
    assert_eq!(count(&mut db), "0");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for (header, names) in [("format:avro", "format=avro"), ("compress_type:lzo", "compress_type=lzo")] {
        let reply = csv(&server, &db).header(header).body("1,a,1\n").load();
        let message = reply.failure();
        assert!(
            message.starts_with("[NOT_IMPLEMENTED_ERROR]") && message.contains(names),
            "{header}: {message}"
        );
    }
    assert_eq!(count(&mut db), "0");
}

#[test]
fn an_unknown_column_in_the_mapping_or_filter_is_named() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let filter = csv(&server, &db).header("where: nickname = 'x'").body("1,a,1\n").load();
    let message = filter.failure();
    assert!(message.starts_with("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = "), "{message}");
    assert!(message.contains("nickname"), "{message}");
    let missing = csv(&server, &db).header("columns: name, score").body("a,1\n").load();
    assert_eq!(
        missing.failure(),
        "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Column has no default value, column=id"
    );
    assert_eq!(count(&mut db), "0");
}

#[test]
fn a_broken_gzip_body_loads_nothing() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for (mode, body) in [("off_mode", "1,a,1\n"), ("async_mode", "this is no gzip\n")] {
        let reply = csv(&server, &db)
            .header("compress_type:gz")
            .header(&format!("group_commit:{mode}"))
            .body(body)
            .load();
        let message = reply.failure();
        assert!(message.starts_with("[DATA_QUALITY_ERROR]broken gzip body after "), "{message}");
        assert!(message.contains("send whole gzip members"), "it says what to do: {message}");
    }
    db.client.ok("SYNC");
    assert_eq!(count(&mut db), "0");
}

#[test]
fn a_gzip_body_that_ends_early_loads_nothing() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let file = server.scratch().join(format!("{}.csv", db.name));
    let rows: String = (0..5000).map(|id| format!("{id},name {id},{id}\n")).collect();
    std::fs::write(&file, rows).expect("the file is written");
    assert!(std::process::Command::new("gzip").arg(&file).status().expect("gzip runs").success());
    let packed = file.with_extension("csv.gz");
    let bytes = std::fs::read(&packed).expect("gzip made it");
    std::fs::write(&packed, &bytes[..bytes.len() / 2]).expect("the file is cut");
    let reply = csv(&server, &db).header("compress_type:gz").file(&packed).load();
    assert!(reply.failure().contains("broken gzip body after"), "{}", reply.text);
    assert_eq!(count(&mut db), "0");
}

#[test]
fn a_wrong_password_is_401_with_the_jsons_message() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let url = format!("http://127.0.0.1:{}/api/{}/dt/_stream_load", server.http_port(), db.name);
    for curl in [Curl::as_user("root:wrong", &url), Curl::as_user("nobody:", &url), Curl::anonymous(&url)] {
        let curl = curl.argument("-X").argument("PUT").header("column_separator:,").body("1,a,1\n");
        let (status, text) = curl.status_and_text();
        assert_eq!(status, 401, "{text}");
        let reply = LoadReply::parse(&text);
        let message = reply.failure();
        assert!(message.starts_with("[NOT_AUTHORIZED]"), "{message}");
    }
    let anonymous = Curl::anonymous(&url).argument("-X").argument("PUT").body("1\n").status_and_text();
    assert_eq!(LoadReply::parse(&anonymous.1).message(), "[NOT_AUTHORIZED]no valid Basic authorization");
    let mut client = db.client;
    assert_eq!(client.value("SELECT count(*) FROM dt"), "0");
}

/// Sends a request whose body is shorter than its Content-Length, ends the sending side, and reads
/// the answer.
fn send_short_body(server: &Server, db: &Database, mode: &str) -> LoadReply {
    let mut stream = TcpStream::connect(("127.0.0.1", server.http_port())).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is legal");
    let head = format!(
        "PUT /api/{}/dt/_stream_load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\ncolumn_separator: ,\r\ngroup_commit: {mode}\r\nContent-Length: 100\r\n\r\n1,a,1\n2,b,2\n",
        db.name
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.shutdown(Shutdown::Write).expect("the sending side closes");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers and closes");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP answer: {answer:?}"));
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    LoadReply::parse(body)
}

#[test]
fn a_body_shorter_than_its_content_length_loads_nothing() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    for mode in ["off_mode", "sync_mode", "async_mode"] {
        let reply = send_short_body(&server, &db, mode);
        let message = reply.failure();
        assert_eq!(
            message,
            "[NETWORK_ERROR]receive body don't equal with body bytes, Content-Length: 100, received: 12",
            "{mode}"
        );
    }
    db.client.ok("SYNC");
    assert_eq!(count(&mut db), "0");
}

#[test]
fn wrong_methods_and_paths_are_told() {
    let server = Server::shared();
    let base = format!("http://127.0.0.1:{}", server.http_port());
    let (status, text) = Curl::get(&format!("{base}/api/db/dt/_stream_load")).status_and_text();
    assert_eq!(status, 405, "{text}");
    assert!(text.contains("PUT"), "{text}");
    let (status, text) = Curl::get(&format!("{base}/api/no/such/thing")).status_and_text();
    assert_eq!(status, 404, "{text}");
    assert!(text.contains("Not Found"), "{text}");
}

#[test]
fn an_error_log_outside_its_folder_is_not_served() {
    let server = Server::shared();
    for file in ["../../catalog.db", "/etc/passwd", "__shard_0/../../catalog.db", ""] {
        let url = format!("http://127.0.0.1:{}/api/_load_error_log?file={file}", server.http_port());
        let (status, text) = Curl::anonymous(&url).argument("--path-as-is").status_and_text();
        assert!(
            status >= 400 || text.len() < 1000 && !text.contains("SQLite") && !text.contains("root:x"),
            "{text}"
        );
    }
}
