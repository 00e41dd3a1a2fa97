use crate::front::mysql::serve_on_loopback;
use crate::testing::TestEngine;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};
use tributary_client::{Client, Rows};

const PATIENCE: Duration = Duration::from_secs(60);

/// A MySQL port with the table `d.t` behind it, until the guard is dropped.
async fn serve(test: &TestEngine) -> (SocketAddr, DropGuard) {
    test.table().await;
    let shutdown = CancellationToken::new();
    let address = serve_on_loopback(&test.engine, shutdown.clone()).await;
    (address, shutdown.drop_guard())
}

/// Runs `check` with a connection to the database `d`.
async fn with_client(check: impl FnOnce(&mut Client) + Send + 'static) {
    let test = TestEngine::open(|_| ()).await;
    let (address, _guard) = serve(&test).await;
    let run = move || check(&mut Client::connect(address, Some("d"), Some(PATIENCE)).expect("it listens"));
    tokio::task::spawn_blocking(run).await.expect("no panic");
}

fn shown(client: &mut Client, sql: &str) -> Rows {
    client.rows(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn lines(rows: &Rows) -> Vec<String> {
    rows.rows
        .iter()
        .map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn show_create_names_what_it_shows_and_the_statement_makes_it_again() {
    with_client(|client| {
        let database = shown(client, "SHOW CREATE DATABASE d");
        assert_eq!(database.columns, ["Database", "Create Database"]);
        assert_eq!(lines(&database), ["d|CREATE DATABASE `d`"]);
        let table = shown(client, "SHOW CREATE TABLE t");
        assert_eq!(table.columns, ["Table", "Create Table"]);
        let [Some(name), Some(statement)] = &table.rows[0][..] else { panic!("{table:?}") };
        assert_eq!(name, "t");
        client.run("DROP TABLE t").expect("dropped");
        client.run(statement).expect("created");
        assert_eq!(shown(client, "SHOW CREATE TABLE d.t").rows, table.rows);
        for missing in ["SHOW CREATE TABLE nope", "SHOW CREATE TABLE nope.t", "SHOW CREATE DATABASE nope"] {
            let error = client.rows(missing).expect_err("it does not exist").to_string();
            assert!(error.contains("nope"), "{missing}: {error}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn show_warnings_lists_the_rows_that_the_last_insert_filtered() {
    with_client(|client| {
        assert_eq!(lines(&shown(client, "SHOW COUNT(*) WARNINGS")), ["0"]);
        client.run("SET enable_insert_strict = false").expect("set");
        client.run("INSERT INTO t VALUES (NULL, 'a'), (1, 'b')").expect("one row is loaded");
        let warnings = shown(client, "SHOW WARNINGS");
        assert_eq!(warnings.columns, ["Level", "Code", "Message"]);
        assert_eq!(
            lines(&warnings),
            ["Warning|1105|column_name[id], null value for not null column, type=INT"]
        );
        assert_eq!(lines(&shown(client, "SHOW COUNT(*) WARNINGS")), ["1"]);
        let errors = shown(client, "SHOW ERRORS");
        assert_eq!((errors.columns.len(), errors.rows.len()), (3, 0));
        assert_eq!(lines(&shown(client, "SHOW COUNT(*) ERRORS")), ["0"]);
        client.run("INSERT INTO t VALUES (2, 'c')").expect("loaded");
        assert!(shown(client, "SHOW WARNINGS").rows.is_empty());
    })
    .await;
}

/// A statement waits for the turn of its table, and for the turn to change the catalog.
#[tokio::test(flavor = "multi_thread")]
async fn kill_query_ends_a_statement_that_waits_for_its_turn_to_change_the_catalog() {
    let test = TestEngine::open(|_| ()).await;
    let (address, _guard) = serve(&test).await;
    let table = test.engine.gate.table_called("d", "t").expect("it was created");
    for (statement, waits_for_its_table) in [
        ("CREATE DATABASE late", false),
        ("CREATE VIEW late AS SELECT id FROM t", false),
        ("CREATE TABLE late (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1", false),
        ("DROP TABLE t", false),
        ("DROP TABLE t FORCE", false),
        ("DROP DATABASE d", false),
        ("DROP DATABASE d", true),
        ("DROP TABLE t", true),
        ("ALTER TABLE t ADD COLUMN late INT", true),
    ] {
        let (mut changing, mut turn) = (None, None);
        match waits_for_its_table {
            true => turn = Some(test.engine.ddl.wait_for_turn(&table.def()).await),
            false => changing = Some(test.engine.ddl.changing().await),
        }
        let connect = move || Client::connect(address, Some("d"), Some(PATIENCE)).expect("it listens");
        let check = move || {
            let (mut client, mut other) = (connect(), connect());
            let id = lines(&shown(&mut client, "SELECT connection_id()")).remove(0);
            let waiting = std::thread::spawn(move || (client.run(statement).map(drop), client));
            let listed = |other: &mut Client| lines(&shown(other, "SHOW FULL PROCESSLIST"));
            let begun = Instant::now();
            while !listed(&mut other).iter().any(|line| line.contains(statement)) {
                assert!(begun.elapsed() < PATIENCE, "{statement} is not listed");
            }
            other.run(&format!("KILL QUERY {id}")).expect("killed");
            let (outcome, mut client) = waiting.join().expect("no panic");
            let error = outcome.expect_err("it was killed").to_string();
            assert!(error.contains("Query execution was interrupted"), "{statement}: {error}");
            assert_eq!(lines(&shown(&mut client, "SELECT 1")), ["1"], "the connection stays");
        };
        tokio::task::spawn_blocking(check).await.expect("no panic");
        drop((changing, turn));
    }
    let check = move || {
        let mut client = Client::connect(address, Some("d"), Some(PATIENCE)).expect("it listens");
        assert_eq!(lines(&shown(&mut client, "SHOW TABLES")), ["t"], "nothing has changed");
        assert_eq!(shown(&mut client, "DESC t").rows.len(), 2);
        assert!(!lines(&shown(&mut client, "SHOW DATABASES")).contains(&"late".to_owned()));
        client.run("ALTER TABLE t ADD COLUMN late INT").expect("its turn is free");
    };
    tokio::task::spawn_blocking(check).await.expect("no panic");
}

/// The names of a condition choose the rows that are made; what they are compared with in another way makes all rows first.
#[tokio::test(flavor = "multi_thread")]
async fn information_schema_says_of_one_table_what_it_says_among_all() {
    with_client(|client| {
        client.run("CREATE DATABASE e").expect("created");
        for table in ["d.u", "e.t", "e.u"] {
            let sql = format!(
                "CREATE TABLE {table} (k INT, v STRING) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1"
            );
            client.run(&sql).expect("created");
        }
        client.run("CREATE VIEW e.w AS SELECT k FROM e.u").expect("created");
        let same = [
            ("table_schema = 'e' AND table_name = 'u'", "CONCAT(table_schema, '.', table_name) = 'e.u'"),
            ("'u' = table_name", "CONCAT(table_name, '') = 'u'"),
            ("table_schema IN ('e', 'none')", "CONCAT(table_schema, '') = 'e'"),
            (
                "table_name IN ('t', 'w') AND table_schema = 'e'",
                "CONCAT(table_schema, table_name) IN ('et', 'ew')",
            ),
            ("table_schema = 'e' AND table_schema = 'd'", "1 = 0"),
            ("table_name = 'columns'", "CONCAT(table_name, '') = 'columns'"),
            ("table_schema = 'E' OR table_name = 't'", "CONCAT(table_name, '') = 't'"),
        ];
        for table in ["tables", "columns", "partitions", "table_properties", "table_options", "views"] {
            for (chosen, of_all) in same {
                let rows = |client: &mut Client, condition: &str| {
                    let mut rows = lines(&shown(
                        client,
                        &format!("SELECT * FROM information_schema.{table} WHERE {condition}"),
                    ));
                    rows.sort();
                    rows
                };
                assert_eq!(rows(client, chosen), rows(client, of_all), "{table} WHERE {chosen}");
            }
        }
        let one =
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'e' AND table_name = 'u'";
        assert_eq!(lines(&shown(client, one)), ["2"]);
    })
    .await;
}
