//! The addresses that statements may make the server connect to, and the visibility of its secrets.

use crate::support::{Curl, HttpServer, Page, Server};
use std::os::unix::fs::PermissionsExt;

/// Statements that name a server at `{a}`.
const STATEMENTS: [&str; 6] = [
    "SELECT * FROM HTTP(\"uri\" = \"http://{a}/a.csv\", \"column_separator\" = \",\")",
    "SELECT * FROM S3(\"uri\" = \"s3://bucket/a.csv\", \"s3.endpoint\" = \"http://{a}\", \"use_path_style\" = \"true\")",
    "SELECT * FROM dt INTO OUTFILE \"s3://bucket/x_\" PROPERTIES (\"s3.endpoint\" = \"http://{a}\", \"use_path_style\" = \"true\")",
    "EXPORT TABLE dt TO \"s3://bucket/x_\" WITH S3 (\"s3.endpoint\" = \"http://{a}\", \"use_path_style\" = \"true\")",
    "LOAD LABEL l (DATA INFILE('s3://bucket/x.csv') INTO TABLE dt) WITH S3 ('s3.endpoint' = 'http://{a}', 'use_path_style' = 'true')",
    "CREATE ROUTINE LOAD j ON dt FROM KAFKA (\"kafka_broker_list\" = \"{a}\", \"kafka_topic\" = \"t\")",
];

#[test]
fn no_statement_reaches_this_machine_or_its_link_unless_a_setting_allows_it() {
    let web = HttpServer::start(&[("/a.csv", Page::Whole(b"1,a\n".to_vec()))]);
    let port = web.url.rsplit_once(':').expect("it has a port").1.to_owned();
    let mut server = Server::with_settings(&[("egress", "")]);
    let mut db = server.database().with_dt("");
    db.client.ok("INSERT INTO dt VALUES (1, 'a', 1)");
    for address in [format!("127.0.0.1:{port}"), "169.254.169.254:80".to_owned(), format!("[::1]:{port}")] {
        for statement in STATEMENTS {
            let sql = statement.replace("{a}", &address);
            let error = db.client.error(&sql);
            assert!(error.message.contains("may not reach the address"), "{sql}: {error}");
        }
    }
    let named = STATEMENTS[0].replace("{a}", &format!("localhost:{port}"));
    let error = db.client.error(&named);
    assert!(error.message.contains("of this machine itself (loopback)"), "{error}");
    assert!(error.message.contains("egress="), "it says what to do: {error}");
    assert_eq!(web.requests(), 0, "nobody was asked");
    assert_eq!(db.client.rows("SHOW LOAD"), [""; 0], "no job was begun");
    server.set("egress", "127.0.0.0/8;::1/128");
    server.stop();
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows(&named), ["1|a"]);
}

#[test]
fn the_catalog_with_its_keys_is_for_the_servers_user_alone() {
    let mut server = Server::start();
    let mode = |name: &str| {
        let file = std::fs::metadata(server.data().join(name));
        file.map(|file| file.permissions().mode() & 0o777)
    };
    assert_eq!(mode("catalog.db").expect("it is there"), 0o600);
    for name in ["catalog.db-wal", "catalog.db-shm"] {
        assert!(mode(name).is_ok_and(|mode| mode == 0o600), "{name}");
    }
    // A catalog of an earlier version.
    server.stop();
    let file = server.data().join("catalog.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("its owner may");
    server.start_again();
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_reasons_of_rejected_rows_need_a_login_if_a_setting_says_so() {
    for needs_login in ["false", "true"] {
        let server = Server::with_settings(&[("load_error_log_needs_login", needs_login)]);
        let db = server.database().with_dt("");
        let reply =
            Curl::stream_load(&server, &db.name, "dt").header("column_separator:,").body("x,y,z,w\n").load();
        let url = reply.get("ErrorURL");
        let (status, text) = Curl::anonymous(&url).status_and_text();
        let expected = if needs_login == "true" { 401 } else { 200 };
        assert_eq!(status, expected, "{text}");
        let (status, text) = Curl::get(&url).status_and_text();
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("actual column number"), "{text}");
    }
}
