//! Secrets that clients send by every statement, header and URL that has one, looked for where others could read them.

use crate::support::{Client, Curl, MariaDb, Server, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use walkdir::WalkDir;

/// Part of each secret. No statement has it anywhere else.
const CANARY: &str = "cAnArY";

/// Statements with a secret `$`, right, refused or broken.
const STATEMENTS: &[&str] = &[
    "CREATE USER u1 IDENTIFIED BY '$'",
    "CREATE USER u2 IDENTIFIED WITH mysql_native_password BY '$'",
    "CREATE USER u3 IDENTIFIED BY \"$\" COMMENT 'nightly'",
    "CREATE USER u1 IDENTIFIED BY '$' 'and $'",
    "CREATE USER u1 IDENTIFIED BY 'it''s $'",
    "CREATE USER u1 IDENTIFIED BY 'it\\'s $'",
    "CREATE USER u1 /* the password is $ */ IDENTIFIED BY '$' -- $",
    "CREATE USER u1 IDENTIFIED BY '$', u4 IDENTIFIED BY '$'",
    "CREATE USER u1 IDENTIFIED BY '$' ACCOUNT LOCK",
    "ALTER USER u1 IDENTIFIED BY '$'",
    "ALTER USER nobody IDENTIFIED BY '$'",
    "SET PASSWORD FOR u1 = PASSWORD('$')",
    "SET PASSWORD FOR u1 = '$'",
    "SET PASSWORD = PASSWORD('$'), PASSWORD = PASSWORD('')",
    "SET PASSWORD FOR nobody = PASSWORD('$')",
    // Broken.
    "CREATE USER u9 IDENTIFIED BY '$",
    "CREATE USER u9 IDENTIFIED BY $",
    "CREATE USER u9 IDENTIFIED '$'",
    "CREATE USER u9 IDENTIFIDE BY '$'",
    "CREATE USER u9 PASSWORD $",
    "CRAETE USER u9 IDENTIFIED BY '$'",
    "SET PASSWROD = '$'",
    "SET PASSWORD FOR u1 TO '$'",
    "$",
    "'$'",
    "SELECT * FORM s3('s3.secret_key' = '$')",
    "INSERT INTO d.t VALUES (1, PASSWORD '$')",
    "INSERT INTO nowhere.t VALUES (1, PASSWORD '$')",
    // Keys of stores, in all spellings.
    "SELECT * FROM s3('uri' = 's3://b/x', 's3.endpoint' = 'http://127.0.0.1:1', 's3.region' = 'r', 's3.access_key' = '$', 's3.secret_key' = '$', 'format' = 'csv')",
    "SELECT * FROM s3(\"uri\" = \"s3://b/x\", \"AWS_ENDPOINT\" = \"http://127.0.0.1:1\", \"AWS_ACCESS_KEY\" = \"$\", \"AWS_SECRET_KEY\" = \"$\", \"AWS_TOKEN\" = \"$\", \"format\" = \"csv\")",
    "SELECT * FROM s3('uri' = 's3://b/x', 's3.endpoint' = 'http://127.0.0.1:1', 's3.session_token' = '$', 'format' = 'csv')",
    "SELECT * FROM s3('uri' = 's3://b/x', 's3.acces_kye' = '$', 's3.sercet_kye' = '$', 'nosuch' = '$', 'format' = 'csv')",
    "SELECT * FROM s3('uri' = 'http://$:$@127.0.0.1:1/b/x?X-Amz-Signature=$', 's3.secret_key' = '$', 'format' = 'csv')",
    "DESC FUNCTION s3('uri' = 's3://b/x', 's3.endpoint' = 'http://127.0.0.1:1', 's3.access_key' = '$', 's3.secret_key' = '$')",
    "EXPLAIN SELECT * FROM s3('uri' = 's3://b/x', 's3.endpoint' = 'http://127.0.0.1:1', 's3.access_key' = '$', 's3.secret_key' = '$', 'format' = 'csv')",
    "INSERT INTO d.t SELECT * FROM s3('uri' = 's3://b/x', 's3.endpoint' = 'http://127.0.0.1:1', 's3.access_key' = '$', 's3.secret_key' = '$', 'format' = 'csv')",
    "CREATE TABLE d.x AS SELECT * FROM s3('uri' = 's3://b/x', 's3.endpoint' = 'http://127.0.0.1:1', 's3.secret_key' = '$', 'format' = 'csv')",
    "SELECT * FROM http('uri' = 'http://u:$@127.0.0.1:1/a.csv', 'format' = 'csv')",
    "SELECT * FROM http('uri' = 'http://127.0.0.1:1/a.csv?signature=$', 'format' = 'csv')",
    "SELECT * FROM http('uri' = 'http://127.0.0.1:1/a.csv', 'http.header.Authorization' = 'Bearer $', 'format' = 'csv')",
    "SELECT * FROM http('uri' = 'http://127.0.0.1:1/a.csv', 'http.headr.Authorization' = 'Bearer $', 'format' = 'csv')",
    "SELECT * FROM local('file_path' = 'a.csv', 'format' = 'csv', 'key' = '$')",
    "SELECT id FROM d.t INTO OUTFILE 's3://b/x_' FORMAT AS csv PROPERTIES ('s3.endpoint' = 'http://127.0.0.1:1', 's3.region' = 'r', 's3.access_key' = '$', 's3.secret_key' = '$')",
    "SELECT id FROM d.t INTO OUTFILE 's3://b/x_' FORMAT AS csv PROPERTIES ('s3.endpoint' = 'http://127.0.0.1:1', 's3.sercet_kye' = '$')",
    "EXPORT TABLE d.t TO 's3://b/x_' PROPERTIES ('label' = 'e1') WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1', 's3.region' = 'r', 's3.access_key' = '$', 's3.secret_key' = '$')",
    "EXPORT TABLE d.t TO 's3://b/x_' WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1', 's3.sercet_kye' = '$')",
    "BACKUP SERVER TO 's3://b/x' PROPERTIES ('s3.endpoint' = 'http://127.0.0.1:1', 's3.region' = 'r', 's3.access_key' = '$', 's3.secret_key' = '$')",
    "BACKUP SERVER TO 's3://b/x' PROPERTIES ('s3.endpoint' = 'http://127.0.0.1:1', 's3.sercet_kye' = '$')",
    "BACKUP SERVR TO 's3://b/x' PROPERTIES ('s3.secret_key' = '$')",
    "LOAD LABEL d.l1 (DATA INFILE('s3://b/x') INTO TABLE t FORMAT AS 'csv') WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1', 's3.region' = 'r', 's3.access_key' = '$', 's3.secret_key' = '$')",
    "LOAD LABEL d.l2 (DATA INFILE('http://u:$@127.0.0.1:1/b/x?signature=$') INTO TABLE t FORMAT AS 'csv') WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1', 'AWS_SECRET_KEY' = '$')",
    "LOAD LABEL d.l3 (DATA INFILE('s3://b/x') INTO TABLE nothing) WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1', 's3.sercet_kye' = '$')",
    "CREATE ROUTINE LOAD d.j1 ON t FROM KAFKA ('kafka_broker_list' = '127.0.0.1:1', 'kafka_topic' = 't', 'property.security.protocol' = 'sasl_plaintext', 'property.sasl.mechanism' = 'PLAIN', 'property.sasl.username' = 'me', 'property.sasl.password' = '$')",
    "CREATE ROUTINE LOAD d.j2 ON t FROM KAFKA ('kafka_broker_list' = '127.0.0.1:1', 'kafka_topic' = 't', 'property.ssl.key.pem' = '$', 'property.ssl.key.password' = '$')",
    "CREATE ROUTINE LOAD d.j3 ON t FROM KAFKA ('kafka_broker_list' = '127.0.0.1:1', 'kafka_topic' = 't', 'property.sasl.passwrd' = '$')",
    "CREATE ROUTINE LOAD d.j4 ON t FROM KAFKA ('kafka_broker_list' = '127.0.0.1:1', 'kafka_topic' = 't', 'property.nosuch' = '$', 'property.sasl.jaas.config' = 'password=$')",
    "ALTER ROUTINE LOAD FOR d.j5 FROM KAFKA ('property.sasl.password' = '$')",
    "SHOW LOAD WARNINGS ON 'http://127.0.0.1:1/api/_load_error_log?file=$'",
];

fn secret(number: usize) -> String {
    format!("{CANARY}{number:03}x")
}

/// The statement with its secret.
fn with_secret(number: usize) -> String {
    STATEMENTS[number].replace('$', &secret(number))
}

/// Fails for a text with a secret, and names the statement that it was in.
fn has_none(place: &str, text: &str) {
    let Some(at) = text.find(CANARY) else { return };
    let number = text[at + CANARY.len()..].get(..3).and_then(|digits| digits.parse::<usize>().ok());
    let statement = number.and_then(|number| STATEMENTS.get(number));
    let around = text.lines().find(|line| line.contains(CANARY)).unwrap_or_default();
    panic!("{place} has the secret of {statement:?}: {around}");
}

/// Reads the process list again and again.
fn watch(mut client: Client, is_over: &Arc<AtomicBool>) -> std::thread::JoinHandle<usize> {
    let is_over = Arc::clone(is_over);
    std::thread::spawn(move || {
        let mut looks = 0;
        while !is_over.load(Ordering::SeqCst) {
            for sql in ["SHOW FULL PROCESSLIST", "SELECT * FROM information_schema.processlist"] {
                has_none("the process list", &client.rows(sql).join("\n"));
            }
            looks += 1;
        }
        looks
    })
}

#[test]
fn no_secret_of_a_client_can_be_read_by_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = directory.path().join("audit");
    let server = Server::with_settings(&[
        ("audit_log_dir", &files.display().to_string()),
        ("enable_audit_plugin", "true"),
        ("log_level", "debug"),
    ]);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok(
        "CREATE TABLE d.t (id INT, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    root.ok("INSERT INTO d.t VALUES (1, 'a')");
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = watch(server.connect(), &is_over);
    let mut accepted = 0;
    let address = ("127.0.0.1", server.mysql_port());
    let mut prepared = tributary_client::Client::connect(address, Some("d"), None).expect("connected");
    for number in 0..STATEMENTS.len() {
        let sql = with_secret(number);
        accepted += usize::from(root.try_query(&sql).is_ok());
        if let Ok(statement) = prepared.prepare(&sql) {
            let _ = prepared.execute_query(statement, &[]);
        }
        let base = format!("http://127.0.0.1:{}/api", server.webserver_port());
        Curl::put(&format!("{base}/_http_stream")).header(&format!("sql:{sql}")).body("1,a\n").text();
    }
    assert!(accepted >= 8, "most of the right ones are accepted: {accepted}");
    // Several statements of one text, of which one is broken.
    let several = format!(
        "delimiter //\nSELECT 1; CREATE USER u8 IDENTIFIED BY '{CANARY}998x'; CREATE USRE '{CANARY}999x'//"
    );
    MariaDb::new(&server).run(&several).failure();
    MariaDb::new(&server).user("u1").option(&format!("--password={CANARY}997x")).run("SELECT 1").failure();
    let load = format!("http://127.0.0.1:{}/api/d/t/_stream_load", server.webserver_port());
    for curl in [
        Curl::as_user(&format!("u1:{CANARY}996x"), &load),
        Curl::anonymous(&load).header(&format!("Authorization: Bearer {CANARY}995x")),
        Curl::anonymous(&load).header(&format!("Authorization: Basic {CANARY}994x")),
        Curl::as_user("root:", &format!("{load}?token={CANARY}993x")),
        Curl::as_user("root:", &load).header(&format!("token: {CANARY}992x")),
        Curl::as_user("root:", &load).header(&format!("X-Api-Key: {CANARY}991x")),
        Curl::as_user("root:", &load).header(&format!("Cookie: session={CANARY}990x")),
    ] {
        curl.argument("-X").argument("PUT").body("1,a\n").text();
    }
    root.rows("SELECT 'the last one'");
    is_over.store(true, Ordering::SeqCst);
    assert!(watching.join().expect("no secret was seen") > 0);
    let mut rows = Vec::new();
    wait_until("all records are rows", || {
        rows = root.try_rows("SELECT * FROM __internal_schema.audit_log").unwrap_or_default();
        rows.iter().any(|row| row.contains("the last one"))
    });
    assert!(rows.len() > STATEMENTS.len() * 2, "{}", rows.len());
    has_none("the table", &rows.join("\n"));
    has_none("the log", &server.log());
    let mut text = String::new();
    for file in WalkDir::new(&files).into_iter().flatten().filter(|entry| entry.file_type().is_file()) {
        text.push_str(&std::fs::read_to_string(file.path()).expect("text"));
    }
    assert!(
        text.contains("CREATE USER u1 IDENTIFIED BY '***'") && text.contains("'format' = 'csv'"),
        "{text}"
    );
    has_none("the file", &text);
    for sql in
        ["SHOW LOAD FROM d", "SHOW EXPORT FROM d", "SHOW ALL ROUTINE LOAD FROM d", "SHOW STREAM LOAD FROM d"]
    {
        has_none(sql, &root.try_rows(sql).unwrap_or_default().join("\n"));
    }
    let metrics = Curl::anonymous(&format!("http://127.0.0.1:{}/metrics", server.webserver_port())).text();
    has_none("metrics", &metrics);
}
