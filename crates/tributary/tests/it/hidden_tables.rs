//! Tables that can't be named: tables of temporary partitions, and tables that get their rows before their names.

use crate::support::{Client, Curl, Database, HttpServer, Page, Server, ServerError, wait_until};
use std::path::PathBuf;

/// Every statement that takes a table's name.
const STATEMENTS: &[&str] = &[
    "SELECT * FROM {t}",
    "SELECT COUNT(*) FROM {d}.{t}",
    "EXPLAIN SELECT * FROM {t}",
    "SELECT * FROM days WHERE id IN (SELECT id FROM {t})",
    "SELECT * FROM {t} PARTITION (new)",
    "INSERT INTO {t} VALUES (1, '2024-01-11', 'x')",
    "INSERT INTO {d}.{t} (id, day, v) VALUES (1, '2024-01-11', 'x')",
    "INSERT INTO {t} (id, day, v) VALUES (1 + 1, '2024-01-11', 'x')",
    "INSERT INTO {t} SELECT * FROM days",
    "INSERT INTO days SELECT * FROM {t}",
    "INSERT INTO {t} PARTITION (new) VALUES (1, '2024-01-11', 'x')",
    "INSERT OVERWRITE TABLE {t} SELECT * FROM days",
    "UPDATE {t} SET v = 'x' WHERE id = 1",
    "DELETE FROM {t} WHERE id = 11",
    "DELETE FROM days USING {t} WHERE days.id = 1",
    "TRUNCATE TABLE {t}",
    "DROP TABLE {t}",
    "DROP TABLE {d}.{t} FORCE",
    "ALTER TABLE {t} ADD COLUMN x INT",
    "ALTER TABLE {t} DROP COLUMN v",
    "ALTER TABLE {t} MODIFY COLUMN id BIGINT",
    "ALTER TABLE {t} RENAME mine",
    "ALTER TABLE {t} DROP PARTITION new",
    "ALTER TABLE {t} SET (\"group_commit_interval_ms\" = \"10\")",
    "CANCEL ALTER TABLE COLUMN FROM {t}",
    "RECOVER PARTITION new FROM {t}",
    "CREATE TABLE mine LIKE {t}",
    "CREATE TABLE mine AS SELECT * FROM {t}",
    "CREATE VIEW mine AS SELECT * FROM {t}",
    "SHOW CREATE TABLE {t}",
    "SHOW COLUMNS FROM {t}",
    "SHOW FULL COLUMNS FROM {t}",
    "SHOW INDEX FROM {t}",
    "SHOW PARTITIONS FROM {t}",
    "SHOW TEMPORARY PARTITIONS FROM {t}",
    "DESCRIBE {t}",
    "EXPORT TABLE {t} TO \"s3://bucket/x_\" WITH S3 (\"s3.endpoint\" = \"http://127.0.0.1:1\")",
    "LOAD LABEL {d}.l (DATA INFILE('s3://bucket/x.csv') INTO TABLE {t}) WITH S3 ('s3.endpoint' = 'http://127.0.0.1:1')",
    "CREATE ROUTINE LOAD j ON {t} FROM KAFKA (\"kafka_broker_list\" = \"127.0.0.1:1\", \"kafka_topic\" = \"t\")",
];

/// Statements that would give a table such a name.
const NAMING: &[&str] = &[
    "RECOVER TABLE {t}",
    "CREATE TABLE {t} (id INT) DISTRIBUTED BY HASH(id) BUCKETS 1",
    "CREATE TABLE {t} LIKE days",
    "CREATE TABLE {t} AS SELECT * FROM days",
    "CREATE VIEW {t} AS SELECT * FROM days",
    "ALTER TABLE days RENAME {t}",
];

fn says_unknown(error: &ServerError) -> bool {
    let text = error.message.to_lowercase();
    ["does not exist", "doesn't exist", "unknown table", "no such table"]
        .iter()
        .any(|known| text.contains(known))
}

/// The id of the table whose files are in a directory of that name.
fn id_of(server: &Server, db: &Database, name: &str) -> Option<u64> {
    let tables = std::fs::read_dir(server.data().join("tables").join(&db.name)).ok()?;
    let mut directories = tables.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    directories.find_map(|directory| directory.strip_prefix(name)?.strip_prefix('-')?.parse().ok())
}

#[test]
fn no_statement_and_no_door_finds_a_table_that_nobody_names() {
    let server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE days (id INT, day DATE, v VARCHAR(20)) UNIQUE KEY(id, day) \
         PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) \
         DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"group_commit_interval_ms\" = \"100\")");
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION new VALUES [('2024-01-01'), ('2024-02-01'))");
    db.client.ok("INSERT INTO days TEMPORARY PARTITION new VALUES (11, '2024-01-11', 'kept')");
    let rows: String = (0..1000).map(|id| format!("{id},2024-01-11,x\n")).collect();
    let web = HttpServer::start(&[("/hanging.csv", Page::Hanging(rows.into_bytes()))]);
    let mut other = server.connect_to(&db.name);
    other.send(&format!(
        "CREATE TABLE slow AS SELECT * FROM HTTP(\"uri\" = \"{}/hanging.csv\", \"column_separator\" = \",\")",
        web.url
    ));
    wait_until("a table gets its rows", || id_of(&server, &db, "slow").is_some());
    let ids = ["days", "slow"].map(|name| id_of(&server, &db, name).expect("it has files"));
    let names = [format!("tributary.temporary.{}", ids[0]), format!("tributary.unfinished.{}", ids[1])];
    let mut wrong = Vec::new();
    for name in &names {
        let filled = |statement: &&str| {
            statement.replace("{t}", &format!("`{name}`")).replace("{d}", &format!("`{}`", db.name))
        };
        for sql in STATEMENTS.iter().map(filled) {
            match try_ok(&mut db.client, &sql) {
                Err(error) if says_unknown(&error) => {}
                other => wrong.push(format!("{sql}: {other:?}")),
            }
        }
        for sql in NAMING.iter().map(filled) {
            if let Ok(()) = try_ok(&mut db.client, &sql) {
                wrong.push(format!("{sql}: it was done"));
            }
        }
        let address = ("127.0.0.1", server.mysql_port());
        let mut prepared =
            tributary_client::Client::connect(address, Some(&db.name), None).expect("connected");
        for sql in
            [format!("INSERT INTO `{name}` VALUES (?, ?, ?)"), format!("DELETE FROM `{name}` WHERE id = ?")]
        {
            let statement = prepared.prepare(&sql);
            let refused = match statement {
                Err(error) => error.to_string(),
                Ok(statement) => {
                    let count = sql.matches('?').count();
                    let values = vec![tributary_client::Value::BigInt(1); count];
                    prepared.execute(statement, &values).expect_err("it is refused").to_string()
                }
            };
            if !refused.contains("exist") {
                wrong.push(format!("prepared {sql}: {refused}"));
            }
        }
        let load = Curl::stream_load(&server, &db.name, name).body("1,2024-01-11,x\n").text();
        let stream = Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
            .header(&format!(
                "sql:insert into {}.`{name}` select * from http_stream('format' = 'csv', 'column_separator' = ',')",
                db.name
            ))
            .body("1,2024-01-11,x\n")
            .text();
        let path =
            |end: &str| format!("http://127.0.0.1:{}/api/{}/{name}/{end}", server.http_port(), db.name);
        for (door, text) in [
            ("stream load", load),
            ("http stream", stream),
            ("schema", Curl::get(&path("_schema")).text()),
            ("count", Curl::get(&path("_count")).text()),
        ] {
            let lower = text.to_lowercase();
            if !["exist", "unknown table", "not found"].iter().any(|known| lower.contains(known)) {
                wrong.push(format!("{door} of {name}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(db.client.rows("SELECT id, v FROM days TEMPORARY PARTITION (new)"), ["11|kept"]);
    assert_eq!(db.client.rows("SHOW TABLES"), ["days"]);
}

fn try_ok(client: &mut Client, sql: &str) -> Result<(), ServerError> {
    client.try_bytes(sql.as_bytes()).expect("the connection stays")
}

/// In a catalog from before tables had roles, names imply them.
#[test]
fn temporary_partitions_of_an_old_catalog_are_found_by_their_table_alone() {
    let mut server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE days (id INT, day DATE) DUPLICATE KEY(id) \
         PARTITION BY RANGE(day) (FROM ('2024-01-01') TO ('2024-04-01') INTERVAL 1 MONTH) \
         DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("ALTER TABLE days ADD TEMPORARY PARTITION new VALUES [('2024-01-01'), ('2024-02-01'))");
    db.client.ok("INSERT INTO days TEMPORARY PARTITION new VALUES (11, '2024-01-11')");
    assert!(server.stop().success());
    let catalog = catalog(&server);
    let program = "import sqlite3, json, sys\n\
                   db = sqlite3.connect(sys.argv[1])\n\
                   old = 0\n\
                   for id, text in db.execute('SELECT id, definition FROM tables').fetchall():\n\
                   \x20   fields = json.loads(text)\n\
                   \x20   old += fields.pop('role', None) is not None\n\
                   \x20   db.execute('UPDATE tables SET definition = ? WHERE id = ?', (json.dumps(fields), id))\n\
                   db.commit()\n\
                   print(old)\n";
    let output = std::process::Command::new("python3").args(["-c", program]).arg(&catalog).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "1",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    server.start_again();
    let mut client = server.connect_to(&db.name);
    assert_eq!(client.rows("SELECT id FROM days TEMPORARY PARTITION (new)"), ["11"]);
    let id = id_of(&server, &db, "days").expect("it has files");
    let error = client.error(&format!("DELETE FROM `tributary.temporary.{id}` WHERE id = 11"));
    assert!(says_unknown(&error), "{error}");
}

/// The SQLite file of the catalog.
fn catalog(server: &Server) -> PathBuf {
    let files = std::fs::read_dir(server.data()).unwrap().map(|entry| entry.unwrap().path());
    let is_sqlite = |path: &PathBuf| {
        path.is_file() && std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3"))
    };
    files.into_iter().find(is_sqlite).expect("the catalog is in the data directory")
}
