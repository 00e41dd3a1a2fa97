//! A group without the protocol: 500 one-row loads join, the group closes, its commit is logged, published and answered. The log
//! is on a simulated disk, the table in memory: what remains is the CPU work.

#[path = "../../decode/benches/data/mod.rs"]
mod data;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::future::join_all;
use object_store::memory::InMemory;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tributary_decode::{BlockBuilder, InsertOptions, Target, ValuesOutcome, decode_values};
use tributary_ingest::{
    Ingest, IngestMetrics, IngestOptions, LabelStore, LoadRows, SchemaHistory, SourcePosition,
    TransactionInfo,
};
use tributary_table::{StoreOptions, Table, TableStore};
use tributary_types::{Live, Portion};
use tributary_types::{SchemaVersion, TableDef, TableId, TableProperties, TableSchema, TxnId};
use tributary_wal::{MemDisk, WalOptions};

const LOADS: u64 = 500;
const LONG: Duration = Duration::from_secs(60);

/// Keeps no labels.
#[derive(Debug)]
struct NoLabels;

#[async_trait::async_trait]
impl LabelStore for NoLabels {
    async fn record(
        &self,
        _finished: &[TransactionInfo],
        _positions: &[SourcePosition],
    ) -> Result<(), String> {
        Ok(())
    }

    async fn positions(&self) -> Result<Vec<SourcePosition>, String> {
        Ok(Vec::new())
    }

    async fn kept(&self) -> Result<Vec<TransactionInfo>, String> {
        Ok(Vec::new())
    }

    async fn freed(&self) -> Result<Vec<TxnId>, String> {
        Ok(Vec::new())
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

async fn open(def: &Arc<TableDef>) -> (Arc<Ingest>, Arc<Table>) {
    let url = url::Url::parse("memory:///bench/").expect("a URL");
    let store = TableStore::with_object_store(Arc::new(InMemory::new()), url, StoreOptions::default())
        .expect("legal options");
    let table = store.create(def).await.expect("a table");
    let options = IngestOptions {
        wal_dirs: vec![PathBuf::from("/wal")],
        retired_wal_dirs: Vec::new(),
        wal_limit: Live::new(Portion::Bytes(4 << 30)),
        wal: WalOptions::default(),
        memory_limit_bytes: Live::new(4 << 30),
        keys_dir: PathBuf::from("/keys"),
        load_keys_max: Live::new(1_000_000),
        rejected_dir: PathBuf::from("/rejected"),
        rejected_keep: Live::new(LONG),
        rejected_bytes_max: Live::new(1 << 30),
        label_keep: Live::new(LONG),
        precommit_timeout: Live::new(LONG),
        ownership: tributary_ingest::Ownership::default(),
        sweep_interval: Live::new(LONG),
    };
    let (ingest, _) = Ingest::open(
        options,
        Arc::new(MemDisk::new()),
        Arc::new(IngestMetrics::new(&prometheus::Registry::new()).expect("new names")),
        Arc::new(NoLabels),
        &NoHistory,
        vec![Arc::clone(&table)],
    )
    .await
    .expect("an empty log");
    (ingest, table)
}

fn one_row(def: &Arc<TableDef>, sql: &str) -> LoadRows {
    let target = Target::new(def, None).expect("every column is there");
    let mut builder = BlockBuilder::new(&def.schema);
    match decode_values(sql.as_bytes(), &target, &InsertOptions::default(), &mut builder) {
        Ok(ValuesOutcome::Rows(decoded)) => LoadRows::of_blocks(Arc::clone(&def.schema), decoded.blocks),
        other => panic!("{other:?}"),
    }
}

/// All loads at once; returns when the last one is answered.
async fn loads(ingest: &Ingest, table: &Table, row: &LoadRows, is_async: bool) {
    let load = |_| ingest.load_into_group(table, is_async, row.clone(), LONG);
    for answer in join_all((0..LOADS).map(load)).await {
        answer.expect("space");
    }
}

fn group_of(runtime: &Runtime, def: &TableDef, sql: &str, is_async: bool, criterion: &mut Criterion) {
    let properties = TableProperties { group_commit_interval_ms: 0, ..TableProperties::default() };
    let def = Arc::new(TableDef { properties, ..def.clone() });
    let row = one_row(&def, sql);
    let (ingest, table) = runtime.block_on(open(&def));
    let mut group = criterion.benchmark_group("group");
    group.throughput(Throughput::Elements(LOADS));
    let mode = if is_async { "async" } else { "sync" };
    group.bench_function(format!("{mode}/{}/{LOADS}x1", def.name), |bencher| {
        bencher.iter_custom(|iterations| {
            let began = Instant::now();
            runtime.block_on(async {
                for _ in 0..iterations {
                    loads(&ingest, &table, &row, is_async).await;
                }
            });
            let took = began.elapsed();
            runtime.block_on(ingest.flush_all());
            took
        });
    });
    group.finish();
    runtime.block_on(ingest.shutdown());
}

fn group(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("threads");
    let (small, lineitem) = (data::small_table(), data::lineitem_table());
    for is_async in [false, true] {
        group_of(&runtime, &small, &data::small_values(1), is_async, criterion);
        group_of(&runtime, &lineitem, &data::lineitem_values(1), is_async, criterion);
    }
}

criterion_group!(benches, group);
criterion_main!(benches);
