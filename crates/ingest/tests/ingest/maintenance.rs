//! Background work: concurrent flushes, under pressure, and after a panic.

use crate::support::*;
use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use tributary_types::Live;

/// A store in memory whose next read of a data file panics on command.
#[derive(Debug, Default)]
struct Panicking {
    objects: InMemory,
    panics: AtomicU64,
}

impl fmt::Display for Panicking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Panicking")
    }
}

#[async_trait]
impl ObjectStore for Panicking {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.objects.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let less = |left: u64| left.checked_sub(1);
        let is_data = location.as_ref().ends_with(".parquet");
        let panics = is_data && self.panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        assert!(!panics, "the store's code is wrong");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_compaction_ends_neither_compactions_nor_flushes() {
    let objects = Arc::new(Panicking::default());
    let url = url::Url::parse("memory:///store/").unwrap();
    let options =
        StoreOptions { flush_age_ms: Live::new(0), compact_min_files: 2, ..StoreOptions::default() };
    let store = TableStore::with_object_store(objects.clone(), url, options).unwrap();
    let machine = Machine { store, ..Machine::new(properties(0)) };
    let running = machine.start().await;
    let metrics = running.ingest.metrics();
    objects.panics.store(1, Ordering::SeqCst);
    let background = running.ingest.start_maintenance();
    let mut id = 0;
    let mut flushed_once_more = async || {
        let before = metrics.flushes.get();
        id += 1;
        running.group(false, &format!("VALUES ({id}, 'a')")).await.unwrap();
        until("it is flushed", || metrics.flushes.get() > before).await;
    };
    flushed_once_more().await;
    flushed_once_more().await;
    until("a compaction panics", || running.ingest.watcher().panics("compaction") == 1).await;
    flushed_once_more().await;
    until("a later one succeeds", || metrics.compactions.get() > 0).await;
    assert_eq!(running.ingest.watcher().panics("compacting"), 0, "one table's panic does not end the work");
    assert_eq!(running.table.snapshot().rows(), 3);
    background.iter().for_each(tokio::task::JoinHandle::abort);
}

const WAL_BYTES: u64 = 8 << 20;

/// A machine with a small log, whose tables are neither old nor large enough for a flush for an hour.
fn pressed_machine() -> Machine {
    let url = url::Url::parse("memory:///store/").unwrap();
    let options = StoreOptions { flush_age_ms: Live::new(3_600_000), ..StoreOptions::default() };
    let objects = Arc::new(InMemory::new());
    let store = TableStore::with_object_store(objects.clone(), url, options).unwrap();
    Machine { store, objects, wal_limit: Portion::Bytes(WAL_BYTES), ..Machine::new(properties(0)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nearly_full_log_has_the_table_flushed_that_holds_its_oldest_rows() {
    const LOAD_ROWS: i32 = 4000;
    let machine = pressed_machine();
    let running = machine.start().await;
    let def = Arc::new(TableDef {
        location: "other".to_owned(),
        ..TableDef::new(TableId(2), "db", "other", TableSchema::clone(&machine.def.schema))
    });
    let other = machine.store.create(&def).await.unwrap();
    running.ingest.attach(Arc::clone(&other));
    let row = running.rows("VALUES (1, 'the oldest row of the log')");
    running.ingest.load_into_group(&other, false, row, LONG).await.unwrap();
    let background = running.ingest.start_maintenance();
    let mut loaded = 0;
    for number in 0..120 {
        // A client that is not faster than the flushes.
        until("the log has space", || running.wal().live_bytes() < WAL_BYTES * 3 / 4).await;
        let rows: Vec<String> =
            (0..LOAD_ROWS).map(|row| format!("({}, '{:040}')", number * LOAD_ROWS + row, row)).collect();
        running.group(false, &format!("VALUES {}", rows.join(","))).await.unwrap();
        loaded += LOAD_ROWS;
    }
    assert!(running.wal().stats().bytes_written > WAL_BYTES * 3 / 2, "the log was full many times");
    assert_eq!(running.table.snapshot().rows(), loaded as u64);
    assert_eq!(other.oldest_unflushed_lsn(), None, "it was flushed");
    let flushes = running.ingest.metrics().flushes.get();
    assert!(flushes < 60, "{flushes} flushes made small files");
    background.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nearly_full_log_has_the_group_closed_that_holds_its_oldest_rows() {
    let machine = pressed_machine();
    let running = machine.start().await;
    let def = Arc::new(TableDef {
        location: "other".to_owned(),
        properties: properties(3_600_000),
        ..TableDef::new(TableId(2), "db", "other", TableSchema::clone(&machine.def.schema))
    });
    let other = machine.store.create(&def).await.unwrap();
    running.ingest.attach(Arc::clone(&other));
    let row = running.rows("VALUES (1, 'a group that stays open for an hour')");
    running.ingest.load_into_group(&other, true, row, LONG).await.unwrap();
    let background = running.ingest.start_maintenance();
    for number in 0..60 {
        until("the log has space", || running.wal().live_bytes() < WAL_BYTES * 3 / 4).await;
        let rows: Vec<String> = (0..4000).map(|row| format!("({number}, '{row:040}')")).collect();
        running.group(false, &format!("VALUES {}", rows.join(","))).await.unwrap();
    }
    assert_eq!(other.snapshot().rows(), 1, "its group was closed");
    background.iter().for_each(tokio::task::JoinHandle::abort);
}
