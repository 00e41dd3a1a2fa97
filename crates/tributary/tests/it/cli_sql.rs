//! `tributary sql` and `tributary status`.

use crate::support::server::program;
use crate::support::{Curl, Server, wait_until};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

fn sql(server: &Server, arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(["sql", "--url", &format!("mysql://root@127.0.0.1:{}/db", server.mysql_port())]);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("bound").port()
}

#[test]
fn statements_are_run_and_their_rows_have_several_forms() {
    let server = Server::start().with_manual_table();
    let insert = "INSERT INTO dt VALUES (1, 'a,\"b\"', NULL), (2, ';', 7)";
    let (code, _, errors) = run(&mut sql(&server, &["-e", insert, "--timing"]));
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("2 rows affected"), "{errors}");
    let select = "SELECT id, name, score FROM dt ORDER BY id";
    let table = "+----+-------+-------+\n| id | name  | score |\n+----+-------+-------+\n|  1 | a,\"b\" |  NULL |\n\
        |  2 | ;     |     7 |\n+----+-------+-------+\n";
    for (form, expected) in [
        ("table", table),
        ("csv", "id,name,score\n1,\"a,\"\"b\"\"\",\n2,;,7\n"),
        (
            "json",
            "{\"id\":1,\"name\":\"a,\\\"b\\\"\",\"score\":null}\n{\"id\":2,\"name\":\";\",\"score\":7}\n",
        ),
    ] {
        let (code, rows, errors) = run(&mut sql(&server, &["--output", form, "-e", select]));
        assert_eq!((code, rows.as_str(), errors.as_str()), (Some(0), expected, ""));
    }
    let file = server.scratch().join("rows.csv");
    let file_option = file.to_str().expect("a name in UTF-8");
    let (code, rows, _) =
        run(&mut sql(&server, &["--output", "csv", "-o", file_option, "-e", "SELECT 1 AS a"]));
    assert_eq!((code, rows.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(&file).expect("rows"), "a\n1\n");
}

#[test]
fn rows_become_a_parquet_file_that_can_be_loaded() {
    let server = Server::start();
    let mut client = server.connect();
    client.ok("CREATE DATABASE db");
    client.ok("USE db");
    let columns = "id BIGINT, price DECIMAL(12, 2), day DATE, at DATETIME(6), name STRING";
    for table in ["a", "b"] {
        client.ok(&format!(
            "CREATE TABLE {table} ({columns}) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"
        ));
    }
    client.ok("INSERT INTO a VALUES (1, -1.05, '1969-12-31', '2024-02-29 12:34:56.789012', 'é'), \
         (2, NULL, NULL, NULL, NULL), (9223372036854775807, 9999999999.99, '9999-12-31', '0001-01-01', '')");
    let file = server.scratch().join("rows.parquet");
    let path = file.to_str().expect("a name in UTF-8");
    let select = "SELECT * FROM a ORDER BY id";
    let (code, rows, errors) = run(&mut sql(&server, &["--output", "parquet", "-o", path, "-e", select]));
    assert_eq!((code, rows.as_str(), errors.as_str()), (Some(0), "", ""));
    let headers = ["format: parquet", "group_commit: off_mode"];
    Curl::stream_load(&server, "db", "b").headers(&headers).file(&file).load().success();
    assert_eq!(client.rows("SELECT * FROM b ORDER BY id"), client.rows(select));
    let two = ["--output", "parquet", "-o", path, "-e", "SELECT 1", "-e", "SELECT 2"];
    let (code, _, errors) = run(&mut sql(&server, &two));
    assert_eq!(code, Some(1));
    assert!(errors.contains("has the rows of one statement"), "{errors}");
    let (code, _, errors) = run(&mut sql(&server, &["--output", "parquet", "-e", "SELECT 1"]));
    assert_eq!(code, Some(2));
    assert!(errors.contains("needs --out"), "{errors}");
}

#[test]
fn a_file_of_statements_ends_at_the_first_error() {
    let server = Server::start().with_manual_table();
    let text = "-- a comment; with a semicolon\nINSERT INTO dt VALUES (1, 'x;y', 1);\n\
        SELECT * FROM nothing;\nINSERT INTO dt VALUES (2, 'z', 2)";
    let file = server.scratch().join("statements.sql");
    std::fs::write(&file, text).expect("written");
    let (code, _, errors) = run(sql(&server, &["-f"]).arg(&file));
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.starts_with("ERROR 1146 (42S02): "), "{errors}");
    assert_eq!(server.connect_to("db").rows("SELECT id, name FROM dt"), ["1|x;y"]);
    // As standard input, and with all the errors there are.
    let mut command = sql(&server, &["--keep-going"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program runs");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert_eq!(server.connect_to("db").value("SELECT COUNT(*) FROM dt"), "3");
}

#[test]
fn an_interrupt_ends_the_statement_at_the_server() {
    let server = Server::start().with_manual_table();
    let mut client = server.connect_to("db");
    // A statement that waits for its group, which stays open for longer than any test runs.
    client.ok("CREATE TABLE slow (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
        PROPERTIES (\"group_commit_interval_ms\" = \"3600000\")");
    let statements = "SET group_commit = sync_mode; INSERT INTO slow VALUES (1)";
    let mut command = sql(&server, &["-e", statements]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    wait_until("the statement runs", || {
        client.rows("SHOW FULL PROCESSLIST").iter().any(|row| row.contains("INSERT INTO slow"))
    });
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signalled.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("end the statement") && errors.contains("ERROR 1317 (70100)"), "{errors}");
}

#[test]
fn a_password_is_never_an_argument() {
    let server = Server::start().with_manual_table();
    server.connect().ok("SET PASSWORD FOR 'root' = PASSWORD('secret')");
    let (code, _, errors) = run(&mut sql(&server, &["-e", "SELECT 1"]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("ERROR 1045 (28000)"), "{errors}");
    let (code, rows, errors) =
        run(sql(&server, &["--output", "csv", "-e", "SELECT 1 AS a"]).env("TRIBUTARY_PASSWORD", "secret"));
    assert_eq!((code, rows.as_str()), (Some(0), "a\n1\n"), "{errors}");
    let file = server.scratch().join("password");
    std::fs::write(&file, "secret\n").expect("written");
    let (code, ..) = run(sql(&server, &["-e", "SELECT 1", "--password-file"]).arg(&file));
    assert_eq!(code, Some(0));
    let mut with_password = program();
    with_password.args(["sql", "--url", "mysql://root:secret@127.0.0.1/db", "-e", "SELECT 1"]);
    let (code, _, errors) = run(&mut with_password);
    assert_eq!(code, Some(2));
    assert!(errors.contains("--password-file") && !errors.contains("secret@"), "{errors}");
}

#[test]
fn the_status_is_an_exit_code() {
    let server = Server::start();
    let status = |port: u16, arguments: &[&str]| {
        let mut command = program();
        command.args(["status", "--url", &format!("http://127.0.0.1:{port}")]).args(arguments);
        run(&mut command)
    };
    assert_eq!(status(server.http_port(), &["--quiet"]), (Some(0), String::new(), String::new()));
    // A machine that is busy with other tests may have a problem of its own.
    let (code, json, errors) = status(server.http_port(), &["--json"]);
    let problems: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let is_well = problems.as_array().expect("an array").is_empty();
    assert_eq!(code, Some(i32::from(!is_well)), "{json} {errors}");
    for arguments in [&["--quiet"][..], &[]] {
        assert_eq!(status(free_port(), arguments).0, Some(2));
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let directory = tempfile::tempdir().expect("a directory");
    for kind in ["completions", "man"] {
        let status =
            program().args(["generate", kind]).arg(directory.path()).status().expect("the program runs");
        assert!(status.success());
    }
    let manual = std::fs::read_to_string(directory.path().join("tributary-load.1")).expect("a page");
    assert!(manual.contains("journal"), "{manual}");
    let completions = std::fs::read_to_string(directory.path().join("tributary.bash")).expect("completions");
    assert!(completions.contains("--group-commit"), "{completions}");
}
