//! The room as its callers see it: real logs and tables, on a simulated disk or a directory.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int32Type;
use object_store::memory::InMemory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tributary_decode::{BlockBuilder, InsertOptions, Target, ValuesOutcome, decode_values};
use tributary_ingest::wal_space::WalLimit;
use tributary_ingest::{
    Ingest, IngestError, IngestMetrics, IngestOptions, LabelStore, LoadRows, RecoveryReport, SchemaHistory,
    SystemClock, TransactionInfo, TransactionKind, TransactionStatus, TwoPhaseTarget,
};
use tributary_table::{StoreOptions, Table, TableStore};
use tributary_types::{
    ColumnDef, DataType, DbId, Label, SchemaVersion, TableDef, TableId, TableProperties, TableSchema, TxnId,
};
use tributary_wal::{MemDisk, WalOptions};

const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Labels(Mutex<BTreeMap<TxnId, TransactionInfo>>);

#[async_trait::async_trait]
impl LabelStore for Labels {
    async fn record(&self, finished: &[TransactionInfo]) -> Result<(), String> {
        self.0.lock().unwrap().extend(finished.iter().map(|info| (info.txn, info.clone())));
        Ok(())
    }

    async fn kept(&self) -> Result<Vec<TransactionInfo>, String> {
        Ok(self.0.lock().unwrap().values().cloned().collect())
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
    store: TableStore,
    labels: Arc<Labels>,
    def: Arc<TableDef>,
    wal_dirs: Vec<PathBuf>,
    retired_wal_dirs: Vec<PathBuf>,
}

struct Running {
    ingest: Arc<Ingest>,
    table: Arc<Table>,
    report: RecoveryReport,
}

impl Machine {
    fn new(properties: TableProperties) -> Self {
        let url = url::Url::parse("memory:///root/").unwrap();
        let store =
            TableStore::with_object_store(Arc::new(InMemory::new()), url, StoreOptions::default()).unwrap();
        Self {
            disk: MemDisk::new(),
            store,
            labels: Arc::default(),
            def: table_def(properties),
            wal_dirs: vec![PathBuf::from("/wal")],
            retired_wal_dirs: Vec::new(),
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
                    ..WalOptions::default()
                },
                memory_limit_bytes: 1 << 30,
                label_keep: LONG,
                precommit_timeout: LONG,
            },
            Arc::new(self.disk.clone()),
            Arc::new(SystemClock),
            Arc::new(IngestMetrics::new(&prometheus::Registry::new()).unwrap()),
            Arc::clone(&self.labels) as Arc<dyn LabelStore>,
            &NoHistory,
            tables,
        )
        .await
        .unwrap()
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

    async fn group(&self, is_async: bool, values: &str) -> Result<tributary_ingest::Committed, IngestError> {
        self.ingest.load_into_group(&self.table, is_async, self.rows(values), LONG).await
    }

    fn begin(&self, label: &str) -> Result<tributary_ingest::Reservation, IngestError> {
        self.ingest.begin(&self.table.def(), Label::new(label).unwrap(), true, TransactionKind::StreamLoad)
    }

    /// The visible ids of the memtable, sorted.
    fn ids(&self) -> Vec<i32> {
        let snapshot = self.table.snapshot();
        let of = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
        let mut ids: Vec<i32> = snapshot.memtable.iter().flat_map(|part| of(&part.batch)).collect();
        ids.sort_unstable();
        ids
    }
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
async fn an_interval_of_zero_commits_as_soon_as_the_log_is_free() {
    let machine = Machine::new(properties(0));
    let running = machine.start().await;
    let rows: Vec<String> = (0..200).map(|id| format!("VALUES ({id}, 'x')")).collect();
    futures::future::join_all(rows.iter().map(|values| running.group(false, values)))
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    assert_eq!(running.ids(), (0..200).collect::<Vec<_>>());
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
    let mut frames = Vec::new();
    let survey = tributary_wal::Survey::open(&machine.disk, &machine.wal_dirs[0]).unwrap();
    survey
        .walk(&mut |found| {
            if let tributary_wal::Found::Frame(frame) = found {
                frames.push((frame.file, frame.offset));
            }
        })
        .unwrap();
    drop(survey);
    let (file, offset) = frames[1].clone();
    let mut bytes = machine.disk.contents(&file).unwrap();
    bytes[offset as usize + 40] ^= 1;
    machine.disk.put(&file, bytes);
    skip_first_damage(&machine);
    let again = machine.start().await;
    assert_eq!(again.ids(), [1, 3, 4]);
    assert_eq!((again.report.skipped, again.report.rows_given_up), (1, 1));
    again.ingest.sync().await;
    machine.power_off(again, 2);
    assert_eq!(machine.start().await.ids(), [1, 3, 4], "and again after the next crash");
}
