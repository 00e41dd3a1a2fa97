//! The room as its callers see it: real logs and tables, on a simulated disk or a directory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod support;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int32Type;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{GatedDisk, Held};
use tributary_decode::{
    BlockBuilder, InsertOptions, Target, ValuesOutcome, blocks_to_batches, decode_values,
};
use tributary_ingest::wal_space::WalLimit;
use tributary_ingest::{
    Ingest, IngestError, IngestMetrics, IngestOptions, LabelStore, LoadRows, RecoveryReport, SchemaHistory,
    TransactionInfo, TransactionKind, TransactionStatus, TwoPhaseTarget,
};
use tributary_table::{StoreOptions, Table, TableStore};
use tributary_types::{
    ColumnDef, DataType, DbId, Label, SchemaVersion, TableDef, TableId, TableProperties, TableSchema, TxnId,
};
use tributary_wal::{MemDisk, Wal, WalOptions};

const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Labels {
    kept: Mutex<BTreeMap<TxnId, TransactionInfo>>,
    asked: AtomicU64,
    /// Whether storing takes for ever.
    stalls: AtomicBool,
}

#[async_trait::async_trait]
impl LabelStore for Labels {
    async fn record(&self, finished: &[TransactionInfo]) -> Result<(), String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.stalls.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.kept.lock().unwrap().extend(finished.iter().map(|info| (info.txn, info.clone())));
        Ok(())
    }

    async fn kept(&self) -> Result<Vec<TransactionInfo>, String> {
        Ok(self.kept.lock().unwrap().values().cloned().collect())
    }

    async fn purge(&self, _before_ms: i64) -> Result<(), String> {
        Ok(())
    }
}

struct NoHistory;

impl SchemaHistory for NoHistory {
    fn schema(&self, _table: TableId, _version: SchemaVersion) -> Option<Arc<TableSchema>> {
        None
    }
}

fn table_def(properties: TableProperties) -> Arc<TableDef> {
    let columns = vec![
        ColumnDef::new(1, "id", DataType::Int).key(),
        ColumnDef::new(2, "name", DataType::Varchar { bytes: 50 }),
    ];
    let schema = TableSchema::new(SchemaVersion(1), columns);
    Arc::new(TableDef { properties, ..TableDef::new(TableId(1), "db", "dt", schema) })
}

/// A machine: what survives when a process ends.
struct Machine {
    disk: MemDisk,
    gated: GatedDisk,
    objects: Arc<InMemory>,
    store: TableStore,
    labels: Arc<Labels>,
    def: Arc<TableDef>,
    wal_dirs: Vec<PathBuf>,
    retired_wal_dirs: Vec<PathBuf>,
    memory_limit_bytes: u64,
    /// Whether a lone load's thread may write the log. Not where a test holds syncs, and would hold its own thread.
    may_write_here: bool,
}

struct Running {
    ingest: Arc<Ingest>,
    table: Arc<Table>,
    report: RecoveryReport,
}

impl Machine {
    fn new(properties: TableProperties) -> Self {
        let url = url::Url::parse("memory:///root/").unwrap();
        let objects = Arc::new(InMemory::new());
        let store = TableStore::with_object_store(objects.clone(), url, StoreOptions::default()).unwrap();
        let disk = MemDisk::new();
        Self {
            gated: GatedDisk::new(disk.clone()),
            disk,
            objects,
            store,
            labels: Arc::default(),
            def: table_def(properties),
            wal_dirs: vec![PathBuf::from("/wal")],
            retired_wal_dirs: Vec::new(),
            memory_limit_bytes: 1 << 30,
            may_write_here: false,
        }
    }

    async fn start(&self) -> Running {
        let table = self.store.create(&self.def).await.unwrap();
        let (ingest, report) = self.open(vec![Arc::clone(&table)]).await;
        Running { ingest, table, report }
    }

    async fn open(&self, tables: Vec<Arc<Table>>) -> (Arc<Ingest>, RecoveryReport) {
        Ingest::open(
            IngestOptions {
                wal_dirs: self.wal_dirs.clone(),
                retired_wal_dirs: self.retired_wal_dirs.clone(),
                wal_limit: WalLimit::Bytes(1 << 30),
                wal: WalOptions {
                    segment_bytes: 1 << 20,
                    on_fatal: Some(Arc::new(|_| {})),
                    may_write_here: Some(self.may_write_here),
                    ..WalOptions::default()
                },
                memory_limit_bytes: self.memory_limit_bytes,
                label_keep: LONG,
                precommit_timeout: LONG,
            },
            Arc::new(self.gated.clone()),
            Arc::new(IngestMetrics::new(&prometheus::Registry::new()).unwrap()),
            Arc::clone(&self.labels) as Arc<dyn LabelStore>,
            &NoHistory,
            tables,
        )
        .await
        .unwrap()
    }

    /// No sync of the log ends before this is dropped.
    fn hold_syncs(&self) -> Held {
        self.gated.hold()
    }

    /// How many data files there are, published or not.
    async fn data_files(&self) -> usize {
        let all: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        all.iter().filter(|object| object.location.as_ref().ends_with(".parquet")).count()
    }

    /// The process is gone; nothing unsynced survives.
    fn power_off(&self, running: Running, seed: u64) {
        self.disk.crash(seed);
        drop(running);
    }
}

impl Running {
    fn rows(&self, values: &str) -> LoadRows {
        let def = self.table.def();
        let target = Target::new(&def, None).unwrap();
        let mut builder = BlockBuilder::new(&def.schema);
        match decode_values(values.as_bytes(), &target, &InsertOptions::default(), &mut builder).unwrap() {
            ValuesOutcome::Rows(decoded) => LoadRows::of_blocks(Arc::clone(&def.schema), decoded.blocks),
            ValuesOutcome::General => panic!("{values} are literals"),
        }
    }

    async fn group(&self, is_async: bool, values: &str) -> Result<tributary_ingest::Answered, IngestError> {
        self.ingest.load_into_group(&self.table, is_async, self.rows(values), LONG).await
    }

    fn begin(&self, label: &str) -> Result<tributary_ingest::Reservation, IngestError> {
        self.ingest.begin(&self.table.def(), Label::new(label).unwrap(), true, TransactionKind::StreamLoad)
    }

    /// Rows that can't become columns: they are said to be of a later schema than they are.
    fn bad_rows(&self, values: &str) -> LoadRows {
        let rows = self.rows(values);
        let mut schema = TableSchema::clone(&rows.schema);
        schema.version = SchemaVersion(7);
        LoadRows { schema: Arc::new(schema), ..rows }
    }

    /// Rows in data files that were written ahead.
    async fn file_rows(&self, values: &str) -> LoadRows {
        let rows = self.rows(values);
        let mut writer = self.table.new_file_writer().unwrap();
        for batch in blocks_to_batches(&rows.schema, &rows.blocks).unwrap() {
            writer.append(batch).await.unwrap();
        }
        LoadRows::of_files(rows.schema, writer.finish().await.unwrap())
    }

    /// A load on a task of its own, as a client's is.
    fn load(&self, is_async: bool, rows: LoadRows) -> Task<tributary_ingest::Answered> {
        let (ingest, table) = (Arc::clone(&self.ingest), Arc::clone(&self.table));
        tokio::spawn(async move { ingest.load_into_group(&table, is_async, rows, LONG).await })
    }

    async fn prepare(&self, label: &str, values: &str) -> TwoPhaseTarget {
        let reservation = self.begin(label).unwrap();
        let prepared = self.ingest.prepare(&self.table, reservation, self.rows(values)).await.unwrap();
        TwoPhaseTarget { txn: Some(prepared.txn), label: None }
    }

    fn status(&self, label: &str) -> TransactionStatus {
        self.ingest.transactions().by_label(DbId(1), label).unwrap().status
    }

    fn wal(&self) -> &Wal {
        &self.ingest.wal_spaces()[0].wal
    }

    /// Waits until the log has been given something that it has not made durable.
    async fn log_is_busy(&self) {
        until("the log is busy", || !self.wal().is_idle()).await;
    }

    /// The visible ids of the memtable, sorted.
    fn ids(&self) -> Vec<i32> {
        let mut ids = self.ids_in_order();
        ids.sort_unstable();
        ids
    }

    /// The visible ids of the memtable, in its order.
    fn ids_in_order(&self) -> Vec<i32> {
        let snapshot = self.table.snapshot();
        let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
        snapshot.memtable.iter().flat_map(|part| of(&part.batch)).collect()
    }
}

type Task<T> = tokio::task::JoinHandle<Result<T, IngestError>>;

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    in_time(what, wait).await;
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap_or_else(|_| panic!("{what} in 20 s"))
}

/// The client goes away: nobody polls its request any more.
async fn leave<T>(client: tokio::task::JoinHandle<T>) {
    client.abort();
    drop(client.await);
}

fn properties(interval_ms: u64) -> TableProperties {
    TableProperties { group_commit_interval_ms: interval_ms, ..TableProperties::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_of_a_group_share_label_and_transaction_and_become_visible_together() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let first = running.group(true, "VALUES (1, 'a'), (2, 'b')").await.unwrap();
    let second = running.group(true, "VALUES (3, NULL)").await.unwrap();
    assert_eq!((&first.label, first.txn), (&second.label, second.txn));
    assert_eq!(running.ids(), [0; 0], "acknowledged, not visible yet");
    running.ingest.sync().await;
    assert_eq!(running.ids(), [1, 2, 3]);
    assert_eq!(running.ingest.transactions().by_id(first.txn).unwrap().status, TransactionStatus::Visible);
    let third = running.group(true, "VALUES (4, 'd')").await.unwrap();
    assert_ne!(third.txn, first.txn, "a committed group takes no more loads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_load_is_visible_when_it_is_answered_and_shares_the_group_of_async_loads() {
    let machine = Machine::new(properties(50));
    let running = machine.start().await;
    let (held, logged) =
        tokio::join!(running.group(false, "VALUES (1, 'a')"), running.group(true, "VALUES (2, 'b')"));
    let (held, logged) = (held.unwrap(), logged.unwrap());
    assert!(held.version.is_some());
    assert!(running.ids().contains(&1));
    assert_eq!(held.txn, logged.txn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_closes_at_its_bytes() {
    let machine = Machine::new(TableProperties { group_commit_data_bytes: 1, ..properties(600_000) });
    let running = machine.start().await;
    running.group(false, "VALUES (1, 'a')").await.unwrap();
    assert_eq!(running.ids(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_fill_the_memory_close_before_their_interval() {
    let machine = Machine { memory_limit_bytes: 8000, ..Machine::new(properties(600_000)) };
    let running = machine.start().await;
    // Each takes some 300 bytes: without it the later ones would wait until the interval is over.
    for id in 0..100 {
        in_time("a load", running.group(true, &format!("VALUES ({id}, 'a')"))).await.unwrap();
    }
    running.ingest.sync().await;
    assert_eq!(running.ids(), (0..100).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_loads_become_columns_while_their_group_is_open() {
    const LOADS: i32 = 6000;
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let values: Vec<String> = (0..LOADS).map(|id| format!("VALUES ({id}, 'small')")).collect();
    let kept_as_they_came: u64 = values.iter().map(|values| running.rows(values).memory_bytes()).sum();
    for some in values.chunks(100) {
        let loads = futures::future::join_all(some.iter().map(|values| running.group(true, values))).await;
        loads.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
    // A large one, and a sync one whose rows the log gets with the commit.
    let name = "x".repeat(40);
    let large: Vec<String> = (LOADS..LOADS + 200).map(|id| format!("({id}, '{name}')")).collect();
    running.group(true, &format!("VALUES {}", large.join(", "))).await.unwrap();
    let in_group = running.ingest.memory().in_groups();
    assert!(in_group < kept_as_they_came / 2, "{in_group} of {kept_as_they_came} bytes");
    assert_eq!(running.ids(), [0; 0], "none is visible before the commit");
    let sync = running.load(false, running.rows(&format!("VALUES ({}, 'sync')", LOADS + 200)));
    until("the sync load joins", || running.ingest.memory().in_groups() > in_group).await;
    running.ingest.sync().await;
    let group = sync.await.unwrap().unwrap();
    let all: Vec<i32> = (0..=LOADS + 200).collect();
    assert_eq!(running.ids(), all);
    let transaction = running.ingest.transactions().by_id(group.txn).unwrap();
    assert_eq!((transaction.loads, transaction.rows), (LOADS as u32 + 2, all.len() as u64));
    assert_eq!(running.ingest.memory().in_groups(), 0);
    machine.power_off(running, 1);
    assert_eq!(machine.start().await.ids(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_group_are_in_the_order_of_the_log_live_and_after_a_replay() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let in_groups = || running.ingest.memory().in_groups();
    // The log gets the small sync load with the commit, behind those that came later.
    let small_sync = running.load(false, running.rows("VALUES (9, 'sync')"));
    until("the small sync load joins", || in_groups() > 0).await;
    running.group(true, "VALUES (2, 'async'), (1, 'async')").await.unwrap();
    let before = in_groups();
    let large_sync = running.load(false, running.rows(&format!("VALUES {}", wide_rows(1000, 8000))));
    until("the large sync load joins", || in_groups() > before).await;
    running.group(true, "VALUES (5, 'async')").await.unwrap();
    running.ingest.sync().await;
    small_sync.await.unwrap().unwrap();
    large_sync.await.unwrap().unwrap();
    running.group(true, "VALUES (0, 'the next group')").await.unwrap();
    running.ingest.sync().await;
    let expected: Vec<i32> = [2, 1].into_iter().chain(1000..9000).chain([5, 9, 0]).collect();
    assert!(running.ids_in_order() == expected);
    machine.power_off(running, 1);
    assert!(machine.start().await.ids_in_order() == expected, "after a replay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_waits_for_space_is_not_overtaken_by_groups_that_were_opened_after_it() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    // The first group's commit brings the rows of sync loads, more than a segment of the log has room for.
    running.group(true, &format!("VALUES {}", wide_rows(0, 17_000))).await.unwrap();
    let mut held = Vec::new();
    for number in 1..=6 {
        let in_groups = running.ingest.memory().in_groups();
        let rows = running.rows(&format!("VALUES {}", wide_rows(number * 20_000, 4_000)));
        held.push(running.load(false, rows));
        until("the sync load joins", || running.ingest.memory().in_groups() > in_groups).await;
    }
    machine.disk.set_capacity(Some(0));
    let sync = |ingest: &Arc<Ingest>| {
        let ingest = Arc::clone(ingest);
        tokio::spawn(async move { ingest.sync().await })
    };
    let first = sync(&running.ingest);
    tokio::time::sleep(Duration::from_millis(100)).await;
    // The second group's would find room.
    running.group(true, "VALUES (200000, 'second')").await.unwrap();
    let second = sync(&running.ingest);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(running.ids().is_empty(), "the second group waits for the first");
    machine.disk.set_capacity(None);
    let (first, second) = in_time("both are visible", async { tokio::join!(first, second) }).await;
    first.and(second).unwrap();
    for load in held {
        load.await.unwrap().unwrap();
    }
    let held = (1..=6).flat_map(|number| number * 20_000..number * 20_000 + 4_000);
    let expected: Vec<i32> = (0..17_000).chain(held).chain([200_000]).collect();
    assert!(running.ids_in_order() == expected);
    machine.power_off(running, 1);
    assert!(machine.start().await.ids_in_order() == expected, "after a replay");
}

/// Rows of some 50 bytes each.
fn wide_rows(first: i32, count: i32) -> String {
    let name = "x".repeat(40);
    (first..first + count).map(|id| format!("({id}, '{name}')")).collect::<Vec<_>>().join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_of_zero_commits_as_soon_as_the_log_is_free() {
    for may_write_here in [false, true] {
        let machine = Machine { may_write_here, ..Machine::new(properties(0)) };
        let running = machine.start().await;
        let rows: Vec<String> = (0..200).map(|id| format!("VALUES ({id}, 'x')")).collect();
        futures::future::join_all(rows.iter().map(|values| running.group(false, values)))
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        assert_eq!(running.ids(), (0..200).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_that_are_written_by_their_own_threads_keep_every_promise() {
    const CLIENTS: i32 = 4;
    const EACH: i32 = 150;
    for is_async in [false, true] {
        let machine = Machine { may_write_here: true, ..Machine::new(properties(0)) };
        let running = Arc::new(machine.start().await);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let running = Arc::clone(&running);
                tokio::spawn(async move {
                    let mut last = None;
                    for id in (client * EACH..).take(EACH as usize) {
                        let done = running.group(is_async, &format!("VALUES ({id}, 'x')")).await.unwrap();
                        assert!(done.version.is_none() == is_async && done.version >= last);
                        assert!(is_async || running.ids().contains(&id), "visible when it is answered");
                        last = done.version;
                    }
                })
            })
            .collect();
        for client in clients {
            in_time("a client's loads", client).await.unwrap();
        }
        machine.power_off(Arc::into_inner(running).unwrap(), 1);
        assert_eq!(machine.start().await.ids(), (0..CLIENTS * EACH).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_async_rows_survive_a_crash_once_and_sync_rows_without_answer_do_not_appear() {
    for seed in 0..20 {
        let machine = Machine::new(properties(600_000));
        let running = machine.start().await;
        running.group(true, "VALUES (1, 'a')").await.unwrap();
        running.group(true, "VALUES (2, 'b')").await.unwrap();
        let waiting = tokio::spawn({
            let (ingest, table, rows) =
                (Arc::clone(&running.ingest), Arc::clone(&running.table), running.rows("VALUES (3, 'c')"));
            async move { ingest.load_into_group(&table, false, rows, LONG).await }
        });
        tokio::task::yield_now().await;
        waiting.abort();
        machine.power_off(running, seed);
        let again = machine.start().await;
        assert_eq!(again.ids(), [1, 2], "seed {seed}");
        assert_eq!(again.report.groups_finished, 1);
        machine.power_off(again, seed);
        let third = machine.start().await;
        assert_eq!(third.ids(), [1, 2], "the recovered group's commit is durable, seed {seed}");
        assert_eq!((third.report.groups_finished, third.report.commits_replayed), (0, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_flushed_are_not_replayed() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let reservation = running.begin("a").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    running.table.flush().await.unwrap().expect("rows were flushed");
    let reservation = running.begin("b").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (2, 'b')")).await.unwrap();
    machine.power_off(running, 1);
    let again = machine.start().await;
    assert_eq!(again.ids(), [2]);
    assert_eq!(again.table.snapshot().rows(), 2);
    assert_eq!((again.report.commits_skipped, again.report.commits_replayed), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_label_stays_used_over_a_crash_and_is_free_after_a_failure() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    drop(running.begin("mine").unwrap());
    let reservation = running.begin("mine").expect("the first one was aborted");
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    machine.power_off(running, 3);
    let again = machine.start().await;
    assert!(matches!(again.begin("mine"), Err(IngestError::LabelUsed { status: "VISIBLE", .. })));
    again.ingest.flush_all().await;
    machine.power_off(again, 4);
    let third = machine.start().await;
    assert!(
        matches!(third.begin("mine"), Err(IngestError::LabelUsed { .. })),
        "also when the log was released"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_with_a_label_is_an_insert_after_a_crash_too() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let label = Label::new("daily").unwrap();
    let begun = running.ingest.begin(&running.table.def(), label, true, TransactionKind::Insert).unwrap();
    running.ingest.commit(&running.table, begun, running.rows("VALUES (1, 'a')")).await.unwrap();
    machine.power_off(running, 1);
    let running = machine.start().await;
    let info = running.ingest.transactions().by_label(DbId(1), "daily").unwrap();
    assert_eq!((info.kind, info.status), (TransactionKind::Insert, TransactionStatus::Visible));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_load_is_invisible_survives_a_crash_and_can_be_committed_once() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("two").unwrap();
    let prepared =
        running.ingest.prepare(&running.table, reservation, running.rows("VALUES (7, 'g')")).await.unwrap();
    running.ingest.flush_all().await;
    assert_eq!(running.ids(), [0; 0]);
    machine.power_off(running, 5);
    let again = machine.start().await;
    assert_eq!((again.ids(), again.report.prepared), (vec![], 1));
    let target = TwoPhaseTarget { txn: Some(prepared.txn), label: Some(Label::new("two").unwrap()) };
    assert_eq!(again.ingest.commit_prepared(DbId(1), &target).await.unwrap(), prepared.txn);
    assert_eq!(again.ids(), [7]);
    assert_eq!(
        again.ingest.commit_prepared(DbId(1), &target).await.unwrap_err().to_string(),
        format!("transaction [{}] is already visible, not pre-committed.", prepared.txn)
    );
    machine.power_off(again, 6);
    assert_eq!(machine.start().await.ids(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_load_leaves_nothing_and_frees_its_label() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("two").unwrap();
    running.ingest.prepare(&running.table, reservation, running.rows("VALUES (7, 'g')")).await.unwrap();
    let target = TwoPhaseTarget { txn: None, label: Some(Label::new("two").unwrap()) };
    running.ingest.abort_prepared(DbId(1), &target, "User Abort").await.unwrap();
    let error = running.ingest.commit_prepared(DbId(1), &target).await.unwrap_err();
    assert!(error.to_string().ends_with("is already aborted. abort reason: User Abort"), "{error}");
    running.begin("two").expect("free");
    machine.power_off(running, 8);
    let again = machine.start().await;
    assert_eq!((again.ids(), again.report.prepared), (vec![], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_table_is_empty_after_a_crash_too_and_takes_loads() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    running.ingest.truncate(&running.table).await.unwrap();
    assert_eq!(running.table.snapshot().rows(), 0, "rows acknowledged before are gone too");
    running.group(true, "VALUES (2, 'b')").await.unwrap();
    machine.power_off(running, 9);
    assert_eq!(machine.start().await.ids(), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_table_tells_the_loads_that_wait() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let waiting = tokio::spawn({
        let (ingest, table, rows) =
            (Arc::clone(&running.ingest), Arc::clone(&running.table), running.rows("VALUES (1, 'a')"));
        async move { ingest.load_into_group(&table, false, rows, LONG).await }
    });
    while running.ingest.open_groups() == 0 {
        tokio::task::yield_now().await;
    }
    running.ingest.detach(TableId(1));
    assert!(matches!(waiting.await.unwrap(), Err(IngestError::TableDropped(_))));
    assert!(matches!(running.group(true, "VALUES (2, 'b')").await, Err(IngestError::TableDropped(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_load_that_times_out_is_told_the_label_and_its_group_goes_on() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let rows = running.rows("VALUES (1, 'a')");
    let outcome = running.ingest.load_into_group(&running.table, false, rows, Duration::from_millis(1)).await;
    let Err(IngestError::Timeout { label, .. }) = outcome else { panic!("{outcome:?}") };
    running.ingest.sync().await;
    assert_eq!(running.ids(), [1]);
    let info = running.ingest.transactions().by_label(DbId(1), label.as_str()).unwrap();
    assert_eq!(info.status, TransactionStatus::Visible);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_loads_and_the_group_commits_when_space_is_back() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    machine.disk.set_capacity(Some(0));
    let long = format!("VALUES (2, '{}')", "x".repeat(50));
    let mut refused = None;
    for _ in 0..100_000 {
        if let Err(error) = running.group(true, &long).await {
            refused = Some(error);
            break;
        }
    }
    assert!(matches!(refused, Some(IngestError::NoSpace { .. })), "{refused:?}");
    let acknowledged = running.ingest.transactions().of_db(DbId(1)).len();
    assert!(acknowledged >= 1);
    machine.disk.set_capacity(None);
    running.ingest.sync().await;
    assert!(running.ids().contains(&1));
    running.group(true, "VALUES (3, 'c')").await.expect("space is back");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_released_when_everything_is_in_data_files() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    for id in 0..50 {
        running.group(false, &format!("VALUES ({id}, 'x')")).await.unwrap();
    }
    assert!(running.table.oldest_unflushed_lsn().is_some());
    running.ingest.flush_all().await;
    let stats = running.ingest.wal_spaces()[0].wal.stats();
    assert_eq!(stats.released_lsn, stats.end_lsn);
    assert_eq!(running.table.snapshot().rows(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_commits_and_flushes_what_was_acknowledged() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    running.ingest.shutdown().await;
    assert_eq!(running.table.persisted_version().0, 1);
    let error = running.group(true, "VALUES (2, 'b')").await.unwrap_err();
    assert!(matches!(error, IngestError::ShuttingDown));
    drop(running);
    let again = machine.start().await;
    assert_eq!((again.table.snapshot().rows(), again.report.commits_replayed), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_recovery_finished_without_a_large_sync_load_is_replayed_without_it_too() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    running.group(true, "VALUES (1, 'a')").await.unwrap();
    let large: Vec<String> =
        (2..20_000).map(|id| format!("({id}, 'a name that takes some bytes')")).collect();
    let rows = running.rows(&format!("VALUES {}", large.join(", ")));
    let waiting = tokio::spawn({
        let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
        async move { ingest.load_into_group(&table, false, rows, LONG).await }
    });
    let wal = running.ingest.wal_spaces()[0].wal.clone();
    while wal.stats().bytes_written < 300_000 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    drop(wal);
    machine.power_off(running, 1);
    let again = machine.start().await;
    assert_eq!((again.ids(), again.report.groups_finished), (vec![1], 1));
    machine.power_off(again, 2);
    assert_eq!(machine.start().await.ids(), [1], "the large load's rows are in the log and never count");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_stays_used_when_its_table_was_dropped_before_a_crash() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("mine").unwrap();
    running.ingest.commit(&running.table, reservation, running.rows("VALUES (1, 'a')")).await.unwrap();
    running.ingest.detach(TableId(1));
    machine.power_off(running, 1);
    let (ingest, _) = machine.open(Vec::new()).await;
    let begun =
        ingest.begin(&machine.def, Label::new("mine").unwrap(), true, TransactionKind::StreamLoad).map(drop);
    assert!(matches!(begun, Err(IngestError::LabelUsed { status: "VISIBLE", .. })), "{begun:?}");
}

/// The log that a table's rows are in is not released under them when the number of logs changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_stays_with_its_log_while_rows_are_there_only() {
    let dirs = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    for (configured, retired) in [(dirs(&["/wal", "/b"]), dirs(&[])), (dirs(&["/b"]), dirs(&["/wal"]))] {
        let mut machine = Machine::new(properties(0));
        let running = machine.start().await;
        let reservation = running.begin("two").unwrap();
        let prepared = running.ingest.prepare(&running.table, reservation, running.rows("VALUES (7, 'g')"));
        let txn = prepared.await.unwrap().txn;
        machine.power_off(running, 1);
        (machine.wal_dirs, machine.retired_wal_dirs) = (configured, retired);
        let again = machine.start().await;
        again.group(false, "VALUES (8, 'h')").await.unwrap();
        again.ingest.flush_all().await;
        let log = again.ingest.wal_spaces().iter().find(|space| space.dir.as_os_str() == "/wal").unwrap();
        assert!(log.wal.stats().live_bytes > 0, "the prepared load is in no other place");
        machine.power_off(again, 2);
        let third = machine.start().await;
        assert_eq!(third.report.prepared, 1);
        let target = TwoPhaseTarget { txn: Some(txn), label: None };
        third.ingest.commit_prepared(DbId(1), &target).await.unwrap();
        assert_eq!(third.ids(), [7]);
    }
}

/// The first damage of the machine's log, skipped as `tributary wal repair --skip` does.
fn skip_first_damage(machine: &Machine) {
    let survey = tributary_wal::Survey::open(&machine.disk, &machine.wal_dirs[0]).unwrap();
    let damage = survey.damage().unwrap();
    survey.skip(&damage[0], "backup").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_skip_the_loads_of_other_frames_are_there_and_those_of_the_skipped_one_are_not() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    for values in ["VALUES (1, 'a')", "VALUES (2, 'b')", "VALUES (3, 'c'), (4, 'd')"] {
        running.group(true, values).await.unwrap();
    }
    running.ingest.sync().await;
    machine.power_off(running, 1);
    // The second load's frame: each load was awaited, so each has one of its own.
    damage(&machine, &frames(&machine)[1]);
    skip_first_damage(&machine);
    let again = machine.start().await;
    assert_eq!(again.ids(), [1, 3, 4]);
    assert_eq!((again.report.skipped, again.report.rows_given_up), (1, 1));
    again.ingest.sync().await;
    machine.power_off(again, 2);
    assert_eq!(machine.start().await.ids(), [1, 3, 4], "and again after the next crash");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_a_prepared_load_goes_on_when_its_client_leaves() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let target = running.prepare("two", "VALUES (7, 'g')").await;
    let held = machine.hold_syncs();
    let ingest = Arc::clone(&running.ingest);
    let client = tokio::spawn(async move { ingest.commit_prepared(DbId(1), &target).await });
    running.log_is_busy().await;
    leave(client).await;
    drop(held);
    until("it is visible", || running.status("two") == TransactionStatus::Visible).await;
    until("its memory is free", || running.ingest.memory().in_groups() == 0).await;
    assert_eq!(running.ids(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_of_a_prepared_load_goes_on_when_its_client_leaves() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let target = running.prepare("two", "VALUES (7, 'g')").await;
    let held = machine.hold_syncs();
    let ingest = Arc::clone(&running.ingest);
    let client = tokio::spawn(async move { ingest.abort_prepared(DbId(1), &target, "User Abort").await });
    running.log_is_busy().await;
    leave(client).await;
    drop(held);
    until("it is aborted", || running.status("two") == TransactionStatus::Aborted).await;
    drop(running.begin("two").expect("its label is free"));
    until("its memory is free", || running.ingest.memory().in_groups() == 0).await;
    running.ingest.flush_all().await;
    assert_eq!(running.wal().live_bytes(), 0, "nothing holds the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pre_commit_goes_on_when_its_client_leaves_and_keeps_its_label() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let held = machine.hold_syncs();
    let client = tokio::spawn({
        let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
        let (reservation, rows) = (running.begin("two").unwrap(), running.rows("VALUES (7, 'g')"));
        async move { ingest.prepare(&table, reservation, rows).await }
    });
    running.log_is_busy().await;
    leave(client).await;
    let again = running.begin("two").map(drop);
    assert!(matches!(again, Err(IngestError::LabelUsed { .. })), "its rows may become durable: {again:?}");
    drop(held);
    until("it is prepared", || running.status("two") == TransactionStatus::Precommitted).await;
    machine.power_off(running, 1);
    let again = machine.start().await;
    assert_eq!(again.report.prepared, 1);
    let target = TwoPhaseTarget { txn: None, label: Some(Label::new("two").unwrap()) };
    again.ingest.commit_prepared(DbId(1), &target).await.unwrap();
    assert_eq!(again.ids(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_loads_of_a_dropped_table_give_their_memory_back() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let waiting = running.prepare("waiting", "VALUES (7, 'g')").await;
    let committing = running.prepare("committing", "VALUES (8, 'h')").await;
    assert!(running.ingest.memory().in_groups() > 0);
    let held = machine.hold_syncs();
    let ingest = Arc::clone(&running.ingest);
    let client = tokio::spawn(async move { ingest.commit_prepared(DbId(1), &committing).await });
    running.log_is_busy().await;
    running.ingest.detach(TableId(1));
    drop(held);
    client.await.unwrap().unwrap();
    assert_eq!(running.status("waiting"), TransactionStatus::Aborted);
    assert_eq!(running.ingest.memory().in_groups(), 0);
    let error = running.ingest.commit_prepared(DbId(1), &waiting).await.unwrap_err();
    assert!(
        error.to_string().ends_with("is already aborted. abort reason: the table was dropped"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_closed_refuses_whatever_comes_and_nobody_waits() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let target = running.prepare("two", "VALUES (7, 'g')").await;
    running.wal().shutdown();
    let sync = in_time("a sync load", running.load(false, running.rows("VALUES (1, 'a')"))).await.unwrap();
    assert!(matches!(sync, Err(IngestError::ShuttingDown)), "{sync:?}");
    let commit = tokio::spawn({
        let (ingest, table) = (Arc::clone(&running.ingest), Arc::clone(&running.table));
        let (reservation, rows) = (running.begin("own").unwrap(), running.rows("VALUES (2, 'b')"));
        async move { ingest.commit(&table, reservation, rows).await }
    });
    let commit = in_time("a commit", commit).await.unwrap();
    assert!(matches!(commit, Err(IngestError::ShuttingDown)), "{commit:?}");
    let truncated = in_time("a truncation", running.ingest.truncate(&running.table)).await;
    assert!(matches!(truncated, Err(IngestError::ShuttingDown)), "{truncated:?}");
    let prepared = in_time("a prepared load", running.ingest.commit_prepared(DbId(1), &target)).await;
    assert!(matches!(prepared, Err(IngestError::ShuttingDown)), "{prepared:?}");
    assert_eq!(running.status("two"), TransactionStatus::Precommitted, "it still waits");
    assert_eq!(running.status("own"), TransactionStatus::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_too_large_for_the_log_is_refused_with_the_limit_and_the_table_goes_on() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let schema = Arc::clone(&running.table.def().schema);
    let mut builder = BlockBuilder::new(&schema);
    for id in 0..1024 {
        builder.push_i32(0, id);
        builder.push_text(1, &"x".repeat(1024));
        builder.finish_row();
    }
    // Blocks share their bytes: this takes 1 MiB.
    let block = builder.finish();
    let rows = LoadRows::of_blocks(schema, vec![block; 1050]);
    let reservation = running.begin("large").unwrap();
    let error = running.ingest.commit(&running.table, reservation, rows).await.unwrap_err();
    assert!(matches!(error, IngestError::TooLarge { .. }), "{error}");
    for part in ["1073741824", "nothing of the load was kept", "large_load_bytes"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    drop(running.begin("large").expect("its label is free"));
    running.group(false, "VALUES (1, 'a')").await.unwrap();
    assert_eq!(running.ids(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_rows_of_a_group_that_fails_stay_in_the_log_and_the_next_start_commits_them() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let waiting = running.load(false, running.rows("VALUES (3, 'c')"));
    until("it has joined", || running.ingest.open_groups() == 1).await;
    let acknowledged = running.group(true, "VALUES (1, 'a')").await.unwrap();
    running.load(true, running.bad_rows("VALUES (2, 'b')")).await.unwrap().unwrap();
    in_time("SYNC", running.ingest.sync()).await;
    assert!(matches!(waiting.await.unwrap(), Err(IngestError::BadBlock(_))));
    assert_eq!(running.ids(), [0; 0]);
    let info = running.ingest.transactions().by_id(acknowledged.txn).unwrap();
    assert_ne!(info.status, TransactionStatus::Aborted, "its rows will be there");
    running.ingest.flush_all().await;
    assert!(running.wal().live_bytes() > 0, "the log keeps the rows");
    running.ingest.shutdown().await;
    drop(running);
    assert_eq!(machine.start().await.ids(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_load_leaves_no_data_file() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    for is_prepared in [false, true] {
        let rows = running.file_rows("VALUES (1, 'a')").await;
        assert_eq!(machine.data_files().await, 1);
        let reservation = running.begin("one").unwrap();
        running.wal().shutdown();
        let outcome = if is_prepared {
            running.ingest.prepare(&running.table, reservation, rows).await
        } else {
            running.ingest.commit(&running.table, reservation, rows).await
        };
        assert!(outcome.is_err());
        assert_eq!(machine.data_files().await, 0);
    }
    let rows = running.file_rows("VALUES (1, 'a')").await;
    running.load(false, rows).await.unwrap().unwrap_err();
    assert_eq!(machine.data_files().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_files_stay_while_the_outcome_of_their_load_is_not_known() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let rows = running.file_rows("VALUES (1, 'a')").await;
    let reservation = running.begin("one").unwrap();
    machine.disk.fail_next_sync();
    let error = running.ingest.commit(&running.table, reservation, rows).await.unwrap_err();
    assert!(matches!(error, IngestError::WalFailed(_)), "{error}");
    assert_eq!(machine.data_files().await, 1, "the next start may find the commit");
}

/// The log knows of data files by the commit only.
#[tokio::test(flavor = "multi_thread")]
async fn an_async_load_of_data_files_is_answered_when_its_group_has_committed() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    let load = running.load(true, running.file_rows("VALUES (1, 'a')").await);
    until("it has joined", || running.ingest.open_groups() == 1).await;
    running.ingest.sync().await;
    assert!(load.await.unwrap().unwrap().version.is_some(), "answered after the commit");
    machine.power_off(running, 1);
    assert_eq!(machine.start().await.table.snapshot().rows(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_on_a_full_disk_ends_flushes_make_room_for_the_last_groups() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    for (number, label) in ["first", "second"].into_iter().enumerate() {
        let rows = running.rows(&many_rows(number as i32 * 20_000, 20_000));
        let reservation = running.begin(label).unwrap();
        running.ingest.commit(&running.table, reservation, rows).await.unwrap();
    }
    assert!(running.wal().stats().segments > 1);
    machine.disk.set_capacity(Some(0));
    let mut acknowledged = 0;
    for values in [many_rows(100_000, 10_000), format!("VALUES (2, '{}')", "x".repeat(50))] {
        let rows = running.rows(&values).rows;
        while running.group(true, &values).await.is_ok() {
            acknowledged += rows;
        }
    }
    assert!(acknowledged > 0);
    in_time("the shutdown ends", Box::pin(running.ingest.shutdown())).await;
    drop(running);
    machine.disk.set_capacity(None);
    let again = machine.start().await;
    assert_eq!(again.table.snapshot().rows(), 40_000 + acknowledged);
    assert_eq!(again.report.groups_finished, 0, "the shutdown committed them");
}

/// `VALUES` of so many rows with ids from `first`.
fn many_rows(first: i32, count: i32) -> String {
    let rows: Vec<String> =
        (first..first + count).map(|id| format!("({id}, 'a name that takes some bytes')")).collect();
    format!("VALUES {}", rows.join(", "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_load_that_found_no_space_is_told_how_much_was_missing() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    machine.disk.set_capacity(Some(0));
    let values = many_rows(0, 20_000);
    let memory = running.rows(&values).memory_bytes();
    let mut loads = Vec::new();
    for number in 1..=2 {
        loads.push(running.load(false, running.rows(&values)));
        until("it has joined", || running.ingest.memory().in_groups() == number * memory).await;
        until("the log has answered", || running.wal().is_idle()).await;
    }
    in_time("SYNC", running.ingest.sync()).await;
    let second = loads.pop().unwrap().await.unwrap();
    assert!(loads.pop().unwrap().await.unwrap().is_ok(), "there was space for the first");
    let Err(IngestError::NoSpace { needed, available, .. }) = second else { panic!("{second:?}") };
    assert!(needed > available, "{needed} bytes are needed and {available} are available");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_stored_although_their_storing_was_cut_off_once() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let reservation = running.begin("mine").unwrap();
    let rows = running.rows("VALUES (1, 'a')");
    let txn = running.ingest.commit(&running.table, reservation, rows).await.unwrap().txn;
    machine.labels.stalls.store(true, Ordering::SeqCst);
    let ingest = Arc::clone(&running.ingest);
    let flush = tokio::spawn(async move { ingest.flush_all().await });
    until("labels are being stored", || machine.labels.asked.load(Ordering::SeqCst) > 0).await;
    leave(flush).await;
    machine.labels.stalls.store(false, Ordering::SeqCst);
    running.ingest.flush_all().await;
    assert_eq!(machine.labels.kept.lock().unwrap().keys().collect::<Vec<_>>(), [&txn]);
    let asked = machine.labels.asked.load(Ordering::SeqCst);
    running.ingest.flush_all().await;
    assert_eq!(machine.labels.asked.load(Ordering::SeqCst), asked, "each is stored once");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_interval_zero_loads_gather_while_the_log_is_busy() {
    for is_async in [false, true] {
        let machine = Machine::new(properties(0));
        let running = machine.start().await;
        let held = machine.hold_syncs();
        let first = running.load(false, running.rows("VALUES (0, 'x')"));
        running.log_is_busy().await;
        let one = running.ingest.memory().in_groups();
        let mut others = Vec::new();
        for id in 1..=9 {
            others.push(running.load(is_async, running.rows(&format!("VALUES ({id}, 'x')"))));
            until("it has joined", || running.ingest.memory().in_groups() == (id + 1) * one).await;
        }
        drop(held);
        let first = in_time("the first", first).await.unwrap().unwrap();
        let mut groups = BTreeSet::new();
        for load in others {
            groups.insert(in_time("the others", load).await.unwrap().unwrap().txn);
        }
        assert_eq!(groups.len(), 1, "async {is_async}");
        assert!(!groups.contains(&first.txn));
        until("all are visible", || running.ids() == (0..10).collect::<Vec<_>>()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_interval_zero_every_load_is_answered_also_when_groups_fail() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let loads: Vec<_> = (0..400)
        .map(|id| {
            let values = format!("VALUES ({id}, 'x')");
            let is_bad = id % 7 == 3;
            running.load(false, if is_bad { running.bad_rows(&values) } else { running.rows(&values) })
        })
        .collect();
    let mut kept = 0;
    for load in loads {
        match in_time("an answer", load).await.unwrap() {
            Ok(_) => kept += 1,
            Err(error) => assert!(matches!(error, IngestError::BadBlock(_)), "{error}"),
        }
    }
    assert_eq!(running.ids().len(), kept);
    assert_eq!(running.ingest.open_groups(), 0);
    in_time("one more", running.group(false, "VALUES (1000, 'x')")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_waits_for_a_free_log_closes_although_its_table_got_an_interval() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let held = machine.hold_syncs();
    let first = running.load(false, running.rows("VALUES (1, 'a')"));
    running.log_is_busy().await;
    let second = running.load(false, running.rows("VALUES (2, 'b')"));
    until("it has joined", || running.ingest.open_groups() == 1).await;
    let slow = TableDef { properties: properties(600_000), ..(*machine.def).clone() };
    running.table.alter(Arc::new(slow)).await.unwrap();
    drop(held);
    in_time("the first", first).await.unwrap().unwrap();
    in_time("the second", second).await.unwrap().unwrap();
    assert_eq!(running.ids(), [1, 2]);
}

/// The frames of the machine's log: files and offsets.
fn frames(machine: &Machine) -> Vec<(PathBuf, u64)> {
    let mut frames = Vec::new();
    let survey = tributary_wal::Survey::open(&machine.disk, &machine.wal_dirs[0]).unwrap();
    survey
        .walk(&mut |found| {
            if let tributary_wal::Found::Frame(frame) = found {
                frames.push((frame.file, frame.offset));
            }
        })
        .unwrap();
    frames
}

fn damage(machine: &Machine, (file, offset): &(PathBuf, u64)) {
    let mut bytes = machine.disk.contents(file).unwrap();
    bytes[*offset as usize + 40] ^= 1;
    machine.disk.put(file, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_commit_was_skipped_is_not_committed_again_when_its_rows_are_in_data_files() {
    let machine = Machine::new(properties(600_000));
    let running = machine.start().await;
    for id in 1..=2 {
        running.group(true, &format!("VALUES ({id}, 'a')")).await.unwrap();
        running.ingest.sync().await;
    }
    running.table.flush().await.unwrap().expect("rows were flushed");
    running.group(true, "VALUES (3, 'c')").await.unwrap();
    machine.power_off(running, 1);
    // Each load and each commit has a frame of its own: the second one is the first group's commit.
    damage(&machine, &frames(&machine)[1]);
    skip_first_damage(&machine);
    let again = machine.start().await;
    assert_eq!(again.table.snapshot().rows(), 3, "no row is there twice");
    assert_eq!(again.ids(), [3], "a group that was open is committed");
    assert_eq!((again.report.skipped, again.report.groups_finished), (1, 1));
}
