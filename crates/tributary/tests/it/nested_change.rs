//! STRUCTs that gain fields, and texts within types that become longer: light changes beside loads, crashes and other readers.

use crate::delta::delta_table;
use crate::support::programs::python;
use crate::support::{Client, Curl, Server, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

const CREATE: &str = "(id INT, s STRUCT<f:INT, t:VARCHAR(3)>, a ARRAY<STRUCT<f:INT>>, m MAP<VARCHAR(3), STRUCT<f:INT>>, v INT)";
const GROW: &str = "MODIFY COLUMN s STRUCT<f:INT, t:VARCHAR(9), late:ARRAY<DATE>>, MODIFY COLUMN a ARRAY<STRUCT<f:INT, g:VARCHAR(9)>>,
    MODIFY COLUMN m MAP<VARCHAR(9), STRUCT<f:INT, g:INT>>";

fn values(id: u32) -> String {
    format!("({id}, '{{{id},\"abc\"}}', '[{{{id}}},null]', '{{\"k\":{{{id}}}}}', {id})")
}

/// The expected row of before the change.
fn old(id: u32) -> String {
    format!(
        "{id}|{{\"f\":{id}, \"t\":\"abc\", \"late\":null}}|[{{\"f\":{id}, \"g\":null}}, null]|{{\"k\":{{\"f\":{id}, \"g\":null}}}}|{id}"
    )
}

fn grown_values(id: u32) -> String {
    format!(
        "({id}, '{{{id},\"abcdefghi\",[\"2024-02-29\"]}}', '[{{{id},\"long text\"}}]', '{{\"long key\":{{{id},7}}}}', {id})"
    )
}

fn new(id: u32) -> String {
    format!(
        "{id}|{{\"f\":{id}, \"t\":\"abcdefghi\", \"late\":[\"2024-02-29\"]}}|[{{\"f\":{id}, \"g\":\"long text\"}}]|\
         {{\"long key\":{{\"f\":{id}, \"g\":7}}}}|{id}"
    )
}

fn insert(client: &mut Client, mode: &str, table: &str, values: &str) {
    client.ok(&format!("SET group_commit = {mode}"));
    client.ok(&format!("INSERT INTO {table} VALUES {values}"));
}

/// A load that is prepared; returns its transaction.
fn prepare(server: &Server, db: &str, table: &str, id: u32) -> String {
    let body = format!("{id}|{{{id},\"abc\"}}|[{{{id}}},null]|{{\"k\":{{{id}}}}}|{id}\n");
    let load =
        Curl::stream_load(server, db, table).header("column_separator:|").header("two_phase_commit:true");
    load.body(&body).load().success().get("TxnId")
}

fn commit(server: &Server, db: &str, txn: &str) {
    let url = format!("http://127.0.0.1:{}/api/{db}/_stream_load_2pc", server.http_port());
    let reply = Curl::put(&url).headers(&[&format!("txn_id:{txn}"), "txn_operation:commit"]).load();
    assert_eq!(reply.get("status"), "Success", "{}", reply.text);
}

#[test]
fn rows_of_before_are_right_in_files_in_the_log_and_prepared_also_after_a_kill() {
    let mut server = Server::start();
    let db = server.database().name.clone();
    let mut client = server.connect_to(&db);
    for (table, keys) in [("d", "DUPLICATE KEY(id)"), ("u", "UNIQUE KEY(id)")] {
        client.ok(&format!(
            "CREATE TABLE {table} {CREATE} {keys} DISTRIBUTED BY HASH(id) BUCKETS 1
            PROPERTIES (\"group_commit_interval_ms\" = \"100\")"
        ));
        insert(&mut client, "sync_mode", table, &values(1));
    }
    // These are in data files.
    assert!(server.stop().success());
    server.start_again();
    let mut client = server.connect_to(&db);
    client.ok("ALTER TABLE d SET (\"group_commit_interval_ms\" = \"60000\")");
    client.ok("ALTER TABLE u SET (\"group_commit_interval_ms\" = \"60000\")");
    let prepared: Vec<String> = ["d", "u"].map(|table| prepare(&server, &db, table, 4)).into();
    for table in ["d", "u"] {
        // In memory and the log; acknowledged, and in an open group.
        insert(&mut client, "off_mode", table, &values(2));
        insert(&mut client, "async_mode", table, &values(3));
        client.ok(&format!("ALTER TABLE {table} {GROW}"));
        insert(&mut client, "off_mode", table, &grown_values(5));
        insert(&mut client, "async_mode", table, &grown_values(6));
        let shown = client.rows(&format!("SHOW CREATE TABLE {table}")).remove(0);
        assert!(shown.contains("`s` struct<f:int,t:varchar(9),late:array<date>> NULL"), "{shown}");
        let jobs = format!("SHOW ALTER TABLE COLUMN FROM {db} WHERE TableName = '{table}'");
        assert!(
            client.rows(&jobs).iter().all(|job| job.contains("FINISHED")),
            "a light change is made at once"
        );
    }
    commit(&server, &db, &prepared[0]);
    server.kill();
    server.start_again();
    let mut client = server.connect_to(&db);
    commit(&server, &db, &prepared[1]);
    for table in ["d", "u"] {
        let select = format!("SELECT * FROM {table} ORDER BY id");
        let expected = [old(1), old(2), old(3), old(4), new(5), new(6)];
        wait_until("the prepared and the acknowledged rows are visible", || client.rows(&select).len() == 6);
        assert_eq!(client.rows(&select), expected, "{table}");
        let found =
            client.rows(&format!("SELECT id, s.late[1] FROM {table} WHERE s.late IS NOT NULL ORDER BY id"));
        assert_eq!(found, ["5|2024-02-29", "6|2024-02-29"]);
    }
    // The values of an existing key survive a partial update, which reads them.
    client.ok("UPDATE u SET v = 10 WHERE id IN (1, 4)");
    client.ok("DELETE FROM d WHERE id IN (2, 5)");
    // Only the last value has nothing before it.
    let updated = |id: u32| old(id).replace(&format!("|{id}"), "|10");
    let expected = [updated(1), old(2), old(3), updated(4), new(5), new(6)];
    assert_eq!(client.rows("SELECT * FROM u ORDER BY id"), expected);
    assert!(server.stop().success());
    server.start_again();
    let mut client = server.connect_to(&db);
    assert_eq!(client.rows("SELECT * FROM u ORDER BY id"), expected);
    assert_eq!(client.rows("SELECT * FROM d ORDER BY id"), [old(1), old(3), old(4), new(6)]);
}

#[test]
fn another_delta_reader_sees_null_in_fields_that_came_later() {
    let server = Server::with_settings(&[("flush_age_ms", "300")]);
    let mut db = server.database();
    db.client.ok("CREATE TABLE n (id INT, s STRUCT<in:STRUCT<f:INT>>, a ARRAY<STRUCT<f:INT>>, m MAP<VARCHAR(3), STRUCT<f:INT>>)
        DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    db.client.ok("INSERT INTO n VALUES (1, '{{1}}', '[{1},null]', '{k:{1}}')");
    let directory = delta_table(&server);
    // With the column mapping, too.
    db.client.ok("ALTER TABLE n RENAME COLUMN s old, RENAME COLUMN old s");
    db.client.ok("INSERT INTO n VALUES (2, '{{2}}', '[{2},null]', '{k:{2}}')");
    let inner = "STRUCT<f:INT, late:ARRAY<VARCHAR(5)>>";
    db.client.ok(&format!(
        "ALTER TABLE n MODIFY COLUMN s STRUCT<in:{inner}, more:INT>, MODIFY COLUMN a ARRAY<{inner}>, MODIFY COLUMN m MAP<VARCHAR(3), {inner}>"
    ));
    db.client.ok("INSERT INTO n VALUES (3, '{{3,[x]},3}', '[{3,[x]}]', '{k:{3,[x]}}')");
    python("delta_checks.py", &["grown", &directory]);
    let rows = db.client.rows("SELECT id, s.in.late, a[1].late, m['k'].late FROM n ORDER BY id");
    assert_eq!(rows, ["1|NULL|NULL|NULL", "2|NULL|NULL|NULL", "3|[\"x\"]|[\"x\"]|[\"x\"]"]);
}

#[test]
fn they_grow_in_heavy_changes_in_tables_of_every_kind_and_their_rows_come_back_from_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = ("mysql_load_server_secure_path", directory.path().display().to_string());
    let mut server = Server::with_settings(&[(settings.0, &settings.1), ("flush_age_ms", "300")]);
    let db = server.database().name.clone();
    let mut client = server.connect_to(&db);
    let kinds = [
        ("moved", "DUPLICATE KEY(id)", "", ", MODIFY COLUMN v BIGINT, ORDER BY (id, v, s, a, m)"),
        ("only_moved", "DUPLICATE KEY(id)", "", ", ORDER BY (id, v, s, a, m)"),
        ("not_light", "DUPLICATE KEY(id)", ", \"light_schema_change\" = \"false\"", ""),
        (
            "copied",
            "UNIQUE KEY(id)",
            ", \"delta.enableDeletionVectors\" = \"false\"",
            ", ADD COLUMN w INT DEFAULT '1'",
        ),
        ("divided", "DUPLICATE KEY(id) PARTITION BY RANGE(id) (FROM (0) TO (100) INTERVAL 2)", "", ""),
    ];
    for (table, clauses, properties, _) in kinds {
        client.ok(&format!(
            "CREATE TABLE {table} {CREATE} {clauses} DISTRIBUTED BY HASH(id) BUCKETS 1
            PROPERTIES (\"group_commit_interval_ms\" = \"50\"{properties})"
        ));
        insert(&mut client, "off_mode", table, &[values(1), values(2)].join(", "));
        // The others are in a data file then.
        client.ok(&format!("DELETE FROM {table} WHERE id = 2"));
        insert(&mut client, "async_mode", table, &values(3));
    }
    for (table, _, _, more) in kinds {
        client.ok(&format!("ALTER TABLE {table} {GROW}{more}"));
    }
    for (table, ..) in kinds {
        let jobs = format!("SHOW ALTER TABLE COLUMN FROM {db} WHERE TableName = '{table}'");
        wait_until("the job is done", || {
            let jobs = client.rows(&jobs);
            assert!(jobs.iter().all(|job| !job.contains("CANCELLED")), "{jobs:?}");
            jobs.iter().all(|job| job.contains("FINISHED"))
        });
        client.ok("SET group_commit = off_mode");
        client.ok(&format!("INSERT INTO {table} (id, s, a, m, v) VALUES {}", grown_values(5)));
    }
    for round in 0..2 {
        for (table, ..) in kinds {
            let rows = client.rows(&format!("SELECT id, s, a, m, v FROM {table} ORDER BY id"));
            assert_eq!(rows, [old(1), old(3), new(5)], "{table}, round {round}");
        }
        server.kill();
        server.start_again();
        client = server.connect_to(&db);
    }
    let bars = "\"column_separator\" = \"|\"";
    for (format, written, read) in [
        ("parquet", String::new(), String::new()),
        ("csv_with_names", format!("PROPERTIES ({bars})"), format!(", {bars}")),
    ] {
        client.table(&format!(
            "SELECT id, s, a, m, v FROM divided INTO OUTFILE 'file://{}/{format}_' FORMAT AS {format} {written}",
            directory.path().display()
        ));
        client.ok("CREATE TABLE back LIKE divided");
        client.ok(&format!(
            "INSERT INTO back SELECT * FROM LOCAL(\"file_path\" = \"{format}_*\", \"format\" = \"{format}\"{read})"
        ));
        assert_eq!(client.rows("SELECT * FROM back ORDER BY id"), [old(1), old(3), new(5)], "{format}");
        client.ok("DROP TABLE back");
    }
}

/// Ends those who wait for it when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends Stream Loads of one row, each over a connection of its own, until it is stopped; returns how many were accepted, and how
/// many had a truncated answer.
fn load_until(is_over: &AtomicBool, port: u16, path: &str, mode: &str) -> (u32, u32) {
    let (mut taken, mut unknown) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\ncolumns: id, v\r\ncolumn_separator: ,\r\n\
             group_commit: {mode}\r\nConnection: close\r\nContent-Length: 3\r\n\r\n1,1"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        if stream.read_to_string(&mut answer).is_err() || answer.is_empty() {
            // A refusal that arrived before the body was read.
            unknown += 1;
            continue;
        }
        let is_taken =
            answer.contains("\"Status\": \"Success\"") || answer.contains("\"Status\":\"Success\"");
        assert!(is_taken || answer.contains("\"Fail\""), "{mode}: {answer}");
        taken += u32::from(is_taken);
    }
    (taken, unknown)
}

#[test]
fn stream_loads_that_begin_while_columns_change_are_of_the_columns_before_or_after() {
    let server = Server::start();
    let mut db = server.database();
    db.client.ok("CREATE TABLE t (id INT, v INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 \
         PROPERTIES (\"group_commit_interval_ms\" = \"20\")");
    let (is_over, port) = (AtomicBool::new(false), server.http_port());
    let path = format!("/api/{}/t/_stream_load", db.name);
    let answers: Vec<(u32, u32)> = std::thread::scope(|scope| {
        let modes = ["async_mode", "sync_mode", "off_mode"];
        let loads = modes.map(|mode| scope.spawn(|| load_until(&is_over, port, &path, mode)));
        // Stops the loads even if a change fails.
        let over = Over(&is_over);
        for number in 0..150 {
            db.client.ok(&format!("ALTER TABLE t ADD COLUMN c{number} INT DEFAULT '7'"));
            db.client.ok(&format!("ALTER TABLE t DROP COLUMN c{number}"));
        }
        drop(over);
        loads.into_iter().map(|load| load.join().unwrap()).collect()
    });
    db.client.ok("SYNC");
    let (taken, unknown) = answers.into_iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let rows: u32 = db.client.value("SELECT COUNT(*) FROM t").parse().unwrap();
    assert!(
        (taken..=taken + unknown).contains(&rows),
        "{rows} rows, {taken} loads taken, {unknown} not known"
    );
    assert!(!server.log().contains("group failed"), "{}", server.log());
}
