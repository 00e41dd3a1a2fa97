use super::*;
use crate::access::Everything;
use crate::front::mysql::serve_on_loopback;
use crate::testing::{TestEngine, wait_until};
use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tributary_client::Client;
use tributary_table::TableStore;

const PATIENCE: Duration = Duration::from_secs(300);

/// A store in memory that answers no write below a directory until it is told to.
#[derive(Debug)]
struct Stalled {
    objects: InMemory,
    /// A part of the stalled directory's name; none is empty.
    directory: Mutex<String>,
    waiting: AtomicUsize,
    answers: Semaphore,
}

impl Stalled {
    async fn wait(&self, location: &Path) {
        let directory = self.directory.lock().clone();
        if directory.is_empty() || !location.as_ref().contains(&directory) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.acquire().await.expect("it is never closed");
        // So that all calls are answered.
        drop(answer);
    }

    /// Stalls the directories of tables of that name.
    fn stall(&self, table: &str) {
        *self.directory.lock() = format!("/{table}-");
    }

    fn answer(&self) {
        self.directory.lock().clear();
        self.answers.add_permits(1);
    }

    fn is_stalled(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stalled")
    }
}

#[async_trait]
impl ObjectStore for Stalled {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.wait(location).await;
        self.objects.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.wait(location).await;
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

/// A server whose store can be stalled.
struct Stalling {
    test: TestEngine,
    store: Arc<Stalled>,
    address: SocketAddr,
    _guard: DropGuard,
}

impl Stalling {
    async fn start() -> Self {
        let store = Arc::new(Stalled {
            objects: InMemory::new(),
            directory: Mutex::default(),
            waiting: AtomicUsize::new(0),
            answers: Semaphore::new(0),
        });
        let objects = Arc::clone(&store);
        let url = url::Url::parse("memory:///store/").unwrap();
        let make = |_: &_, options| TableStore::with_object_store(objects, url, options);
        let never_late = |options: &mut crate::node::options::EngineOptions| {
            options.store.call_timeout = PATIENCE * 2;
        };
        let test = TestEngine::open_on(never_late, Arc::new(Everything), make).await;
        test.table().await;
        let shutdown = CancellationToken::new();
        let address = serve_on_loopback(&test.engine, shutdown.clone()).await;
        Self { test, store, address, _guard: shutdown.drop_guard() }
    }

    fn client(&self) -> Client {
        Client::connect(self.address, Some("d"), Some(PATIENCE)).expect("it listens")
    }

    /// Runs statements in a connection of their own, one after another.
    fn beside(&self, statements: &[&str]) -> JoinHandle<std::result::Result<(), String>> {
        let mut client = self.client();
        let statements: Vec<String> = statements.iter().map(|sql| (*sql).to_owned()).collect();
        let run = move |sql: &String| client.run(sql).map(drop).map_err(|error| format!("{sql}: {error}"));
        std::thread::spawn(move || statements.iter().try_for_each(run))
    }

    /// Runs statements, which must end.
    async fn run(&self, statements: &[&str]) {
        ended(self.beside(statements)).await.unwrap();
    }

    /// Runs a statement about the table until the store stalls it.
    async fn stalled(&self, table: &str, sql: &str) -> JoinHandle<std::result::Result<(), String>> {
        self.store.stall(table);
        let stalled = self.beside(&[sql]);
        wait_until("the store has not answered", || self.store.is_stalled()).await;
        stalled
    }

    /// The number of statements that the server lists with this text.
    async fn listed(&self, text: &str) -> usize {
        let mut client = self.client();
        let text = text.to_owned();
        let count = move || {
            let rows = client.rows("SHOW FULL PROCESSLIST").expect("they are listed").rows;
            rows.iter().filter(|row| row.iter().flatten().any(|cell| *cell == text)).count()
        };
        tokio::task::spawn_blocking(count).await.expect("no panic")
    }
}

async fn ended<T: Send + 'static>(thread: JoinHandle<T>) -> T {
    tokio::task::spawn_blocking(|| thread.join().expect("no panic")).await.expect("no panic")
}

const DAYS: &str = "CREATE TABLE days (day DATETIME NOT NULL, id INT) DUPLICATE KEY(day) \
                    AUTO PARTITION BY RANGE (date_trunc(day, 'day')) () DISTRIBUTED BY HASH(day) BUCKETS 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_drop_that_waits_for_its_store_delays_no_change_of_another_table() {
    let server = Stalling::start().await;
    server
        .run(&[
            DAYS,
            "CREATE TABLE gone (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
            "DROP TABLE gone",
            "CREATE TABLE old (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
            "CREATE DATABASE e",
            "INSERT INTO t VALUES (1, 'a')",
        ])
        .await;
    let dropping = server.stalled("t", "DROP TABLE t").await;
    server
        .run(&[
            "CREATE TABLE other (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
            "INSERT INTO days VALUES ('2024-01-01 10:00:00', 1), ('2024-01-02 10:00:00', 2)",
            "ALTER TABLE other ADD COLUMN n INT",
            "ALTER TABLE other RENAME another",
            "CREATE TABLE copy AS SELECT * FROM days",
            "CREATE TABLE similar LIKE days",
            "CREATE VIEW seen AS SELECT id FROM days",
            "ALTER TABLE days ADD TEMPORARY PARTITION new VALUES [('2024-01-01'), ('2024-01-02'))",
            "INSERT INTO days TEMPORARY PARTITION (new) VALUES ('2024-01-01 11:00:00', 3)",
            "ALTER TABLE days REPLACE PARTITION (p20240101000000) WITH TEMPORARY PARTITION (new)",
            "ALTER TABLE days DROP PARTITION p20240101000000",
            "TRUNCATE TABLE days",
            "RECOVER TABLE gone",
            "DROP TABLE old FORCE",
            "DROP TABLE gone",
            "DROP DATABASE e",
        ])
        .await;
    let engine = Arc::clone(&server.test.engine);
    engine.ddl.expire_recycled(i64::MAX).await.unwrap();
    engine.ddl.schedule_partitions(engine.unix_ms()).await;
    assert!(!dropping.is_finished(), "the store has not answered");
    server.store.answer();
    ended(dropping).await.unwrap();
    server.run(&["CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_store_does_not_answer_when_it_is_created_delays_no_other_one() {
    let server = Stalling::start().await;
    let late = "CREATE TABLE late (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";
    let creating = server.stalled("late", late).await;
    server
        .run(&[
            "CREATE TABLE other (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
            "DROP TABLE other FORCE",
            "CREATE VIEW late AS SELECT id FROM t",
        ])
        .await;
    assert!(!creating.is_finished(), "the store has not answered");
    server.store.answer();
    let error = ended(creating).await.unwrap_err();
    assert!(error.contains("Table 'late' already exists"), "the view was faster: {error}");
    server.run(&["DROP VIEW late", late, "INSERT INTO late VALUES (1)"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_table_are_made_one_after_another() {
    let server = Stalling::start().await;
    server.run(&["INSERT INTO t VALUES (1, 'a')"]).await;
    let dropping = server.stalled("t", "DROP TABLE t").await;
    let table = server.test.engine.gate.table_called("d", "t").unwrap();
    let columns = table.def().schema.columns.len();
    let waiting: Vec<_> = ["ALTER TABLE t ADD COLUMN n INT", "ALTER TABLE t RENAME u", "DROP TABLE t FORCE"]
        .map(|sql| (sql, server.beside(&[sql])))
        .into();
    for (sql, _) in &waiting {
        let begun = tokio::time::Instant::now();
        while server.listed(sql).await == 0 {
            assert!(begun.elapsed() < PATIENCE, "{sql} does not run");
        }
    }
    // Elsewhere, a change runs from its begin to its end meanwhile.
    server.run(&["CREATE TABLE o (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"]).await;
    assert!(waiting.iter().all(|(_, change)| !change.is_finished()), "they wait for the first one");
    assert!(server.test.engine.ddl.turns.try_take(table.id()).is_none());
    assert_eq!(table.def().schema.columns.len(), columns);
    server.store.answer();
    ended(dropping).await.unwrap();
    for (sql, change) in waiting {
        let error = ended(change).await.unwrap_err();
        assert!(
            error.to_lowercase().contains("unknown table") || error.contains("does not exist"),
            "{sql}: {error}"
        );
    }
    assert!(server.test.engine.ddl.turns.try_take(table.id()).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_add_columns_at_the_same_moment_add_all_of_them() {
    let server = Stalling::start().await;
    server.run(&[DAYS]).await;
    let mut changes: Vec<_> =
        (0..8).map(|n| server.beside(&[&format!("ALTER TABLE days ADD COLUMN c{n} INT")])).collect();
    changes.extend((0..8).map(|n| {
        server.beside(&[&format!("INSERT INTO days (day, id) VALUES ('2024-02-{:02} 10:00:00', {n})", n + 1)])
    }));
    for change in changes {
        ended(change).await.unwrap();
    }
    let def = server.test.engine.gate.table_called("d", "days").unwrap().def();
    let has = |name: &str| def.schema.columns.iter().any(|column| column.name == name);
    assert!((0..8).all(|n| has(&format!("c{n}"))), "{:?}", def.schema.columns);
    assert_eq!(def.partitioning.partitions().unwrap().list.len(), 8);
    assert!(server.test.engine.ddl.turns.0.lock().is_empty(), "nobody has or wants a turn");
}

#[tokio::test]
async fn a_switch_in_doubt_keeps_its_turn_and_refuses_statements() {
    let turns = Turns::default();
    let turn = turns.try_take(TableId(1)).unwrap();
    let halt = Arc::new(Halt::default());
    let running = turn.begin_switch(Arc::clone(&halt));
    drop(turn);
    halt.doubts("storage sleeps");
    let steps = wait_until("the switch is to end", || halt.is_at_once());
    let others = async {
        let refused = turns.take(TableId(1)).await.unwrap_err().refusal("t");
        assert!(
            refused.detail_text().contains("Table[t]'s last change is in doubt (storage sleeps)"),
            "{refused}"
        );
        assert!(turns.try_take(TableId(1)).is_none());
        drop(turns.take(TableId(2)).await.unwrap());
        let load = turns.wait(TableId(1));
        tokio::pin!(load);
        tokio::select! {
            biased;
            _ = &mut load => panic!("a load waits for the switch"),
            () = std::future::ready(()) => {}
        }
        turns.end_switches().await;
        assert!(!load.await.is_switching());
    };
    let switch = async move {
        running.run(steps).await;
        drop(running);
    };
    tokio::join!(switch, others);
    assert!(turns.0.lock().is_empty());
}
