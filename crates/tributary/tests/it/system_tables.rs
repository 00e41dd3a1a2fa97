//! Tables of `information_schema` about the work of the server: jobs, flushes and compactions, memory.

use crate::support::{Client, MariaDb, Server, wait_until};
use tempfile::TempDir;

const TAIL: &str = "DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A server with two tables, and a user who may read one of them.
fn server(files: &TempDir) -> (Server, Client, Client) {
    let path = files.path().display().to_string();
    let settings = [("flush_age_ms", "20"), ("mysql_load_server_secure_path", &path)];
    let server = Server::with_settings(&settings);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("USE d");
    for table in ["shown", "hidden"] {
        root.ok(&format!("CREATE TABLE {table} (id INT NOT NULL) {TAIL}"));
    }
    root.ok("CREATE USER eve");
    root.ok("GRANT SELECT_PRIV ON d.shown TO eve");
    let eve = Client::connect_as("eve", server.mysql_port()).expect("eve may log in");
    (server, root, eve)
}

#[test]
fn flushes_and_compactions_are_listed_to_those_who_see_the_table() {
    let files = directory();
    let (_server, mut root, mut eve) = server(&files);
    let of = |table: &str, kind: &str| {
        format!(
            "SELECT STATE, ROWS, FILES, REPLACED_FILES, BYTES > 0, TIME_US > 0, DELTA_VERSION > 0, ERROR \
             FROM information_schema.table_work WHERE TABLE_NAME = '{table}' AND KIND = '{kind}'"
        )
    };
    for id in 0..3 {
        for table in ["shown", "hidden"] {
            root.ok(&format!("INSERT INTO {table} VALUES ({id})"));
            wait_until("the row is in a data file", || root.rows(&of(table, "FLUSH")).len() > id);
        }
    }
    let flushes = root.rows(&of("shown", "FLUSH"));
    assert_eq!(flushes, ["FINISHED|1|1|0|1|1|1|NULL"; 3]);
    // A table at rest has its small files merged.
    wait_until("the files are one", || {
        root.rows(&of("shown", "COMPACTION")) == ["FINISHED|3|1|3|1|1|1|NULL"]
    });
    let seen = eve.rows("SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.table_work");
    assert_eq!(seen, ["d|shown"]);
}

#[test]
fn a_flush_that_fails_says_why() {
    let files = directory();
    let (server, mut root, _) = server(&files);
    root.ok("INSERT INTO hidden VALUES (1)");
    let flushed = "SELECT COUNT(*) FROM information_schema.table_work WHERE STATE = 'FINISHED'";
    wait_until("the row is in a data file", || root.value(flushed) == "1");
    let tables = server.data().join("tables/d");
    let table = std::fs::read_dir(&tables).expect("a directory").map(|entry| entry.expect("an entry").path());
    let table =
        table.into_iter().find(|path| path.display().to_string().contains("hidden")).expect("its directory");
    let log = table.join("_delta_log");
    std::fs::rename(&log, table.join("away")).expect("moved");
    std::fs::write(&log, "no directory").expect("written");
    root.ok("INSERT INTO hidden VALUES (2)");
    let failed =
        "SELECT TABLE_NAME, KIND, ERROR <> '' FROM information_schema.table_work WHERE STATE = 'FAILED'";
    wait_until("the flush has failed", || {
        root.rows(failed).first().is_some_and(|row| row == "hidden|FLUSH|1")
    });
    std::fs::remove_file(&log).expect("removed");
    std::fs::rename(table.join("away"), &log).expect("moved back");
    wait_until("it is repeated", || root.value(flushed) == "2");
}

#[test]
fn jobs_of_all_kinds_are_in_one_table() {
    let files = directory();
    let (server, mut root, mut eve) = server(&files);
    root.ok(&format!("CREATE TABLE texts (id INT NOT NULL, v VARCHAR(20)) {TAIL}"));
    root.ok("INSERT INTO texts VALUES (1, '1'), (2, '2')");
    let path = files.path().display();
    root.ok(&format!("EXPORT TABLE texts TO \"file://{path}/out_\" PROPERTIES (\"label\" = \"copy\")"));
    let jobs = "SELECT KIND, TABLE_SCHEMA, TABLE_NAME, NAME, STATE, PROGRESS, USER, END_TIME IS NULL, ERROR \
                FROM information_schema.jobs ORDER BY KIND";
    let is_over = |rows: &[String], kind: &str| {
        rows.iter().any(|row| row.starts_with(kind) && row.contains("FINISHED"))
    };
    wait_until("the export has ended", || is_over(&root.rows(jobs), "EXPORT"));
    root.ok("ALTER TABLE texts MODIFY COLUMN v INT");
    wait_until("the change has ended", || is_over(&root.rows(jobs), "SCHEMA_CHANGE"));
    let rows = root.rows(jobs);
    assert_eq!(rows[0], "EXPORT|d|texts|copy|FINISHED|100%|root|0|NULL");
    assert!(rows[1].starts_with("SCHEMA_CHANGE|d|texts|NULL|FINISHED|"), "{rows:?}");
    assert!(eve.rows(jobs).is_empty(), "of tables that eve does not see");
    let sql = "SELECT JOB_ID > 0 AS id FROM information_schema.jobs WHERE KIND = 'EXPORT';";
    let shown = MariaDb::new(&server).shows(sql);
    assert!(shown.contains(" 1 |"), "{shown}");
}

#[test]
fn memory_is_shown_by_owner_with_its_limit() {
    let files = directory();
    let (_server, mut root, mut eve) = server(&files);
    root.ok("ALTER TABLE shown SET (\"group_commit_interval_ms\" = \"3600000\")");
    root.ok("SET group_commit = async_mode");
    root.ok("INSERT INTO shown VALUES (1)");
    root.ok("ADMIN SET FRONTEND CONFIG (\"session_mem_limit\" = \"12345678\")");
    let memory = "SELECT OWNER, BYTES > 0, LIMIT_BYTES > 0, SETTING FROM information_schema.server_memory";
    let rows = root.rows(memory);
    for row in [
        "PROCESS|1|1|mem_limit",
        "GROUPS|1|1|group_commit_queue_mem_limit",
        "LOADS_IN_FLIGHT|0|1|group_commit_queue_mem_limit",
    ] {
        assert!(rows.iter().any(|found| found == row), "{row}: {rows:?}");
    }
    let limit = "SELECT LIMIT_BYTES FROM information_schema.server_memory WHERE OWNER = 'SESSIONS'";
    assert_eq!(root.value(limit), "12345678");
    assert!(eve.rows(memory).is_empty());
}

#[test]
fn what_queries_read_twice_is_in_memory_then() {
    let server = Server::with_settings(&[("flush_age_ms", "20"), ("storage_page_cache_limit", "50000000")]);
    let mut root = server.connect();
    root.ok("CREATE DATABASE d");
    root.ok("USE d");
    root.ok(&format!("CREATE TABLE t (id INT NOT NULL, v VARCHAR(20)) {TAIL}"));
    root.ok("INSERT INTO t SELECT number, CONCAT('value ', number % 10) FROM numbers('number' = '20000')");
    let in_files = "SELECT COUNT(*) FROM information_schema.table_work WHERE STATE = 'FINISHED'";
    wait_until("the rows are in a data file", || root.value(in_files) != "0");
    let sum = "SELECT SUM(id), COUNT(DISTINCT v) FROM t";
    wait_until("the pages are in memory", || {
        assert_eq!(root.rows(sum), ["199990000|10"]);
        server.metric("tributary_page_cache_hit_bytes_total ") > 0.0
    });
    let plan = root.rows(&format!("EXPLAIN ANALYZE {sum}")).join("\n");
    assert!(plan.contains(" in memory"), "{plan}");
    let memory = "SELECT BYTES > 10000, LIMIT_BYTES, SETTING FROM information_schema.server_memory \
                  WHERE OWNER = 'PAGE_CACHE'";
    wait_until("the cache tells its size", || root.rows(memory) == ["1|50000000|storage_page_cache_limit"]);
    assert!(server.metric("tributary_page_cache_bytes ") > 10_000.0);
}
