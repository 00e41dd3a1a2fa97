use crate::front::mysql::MysqlHooks;
use crate::testing::TestEngine;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};
use tributary_client::{Client, Rows};

const PATIENCE: Duration = Duration::from_secs(60);

/// A MySQL port with the table `d.t` behind it, until the guard is dropped.
async fn serve(test: &TestEngine) -> (SocketAddr, DropGuard) {
    test.table().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port of the loopback");
    let address = listener.local_addr().expect("it is bound");
    let shutdown = CancellationToken::new();
    tokio::spawn(tributary_mysql::serve(
        listener,
        Arc::new(MysqlHooks::new(Arc::clone(&test.engine))),
        tributary_mysql::ServeOptions::default(),
        shutdown.clone(),
    ));
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

/// Every statement that changes the catalog waits for its turn: one at a time.
#[tokio::test(flavor = "multi_thread")]
async fn kill_query_ends_a_statement_that_waits_for_its_turn_to_change_the_catalog() {
    let test = TestEngine::open(|_| ()).await;
    let (address, _guard) = serve(&test).await;
    for statement in [
        "CREATE DATABASE late",
        "DROP DATABASE d",
        "CREATE TABLE late (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN late INT",
    ] {
        let turn = test.engine.changing().await;
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
        drop(turn);
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
