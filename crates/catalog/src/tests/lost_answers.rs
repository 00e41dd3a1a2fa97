//! Changes that the store has made and whose answer is lost.

use super::*;
use crate::jobs::{JobRecord, PositionRecord};
use crate::sqlite::SqliteStore;
use crate::store::{Applied, FrozenStore, Garbage, Loaded, Operation, Revision, Store, Stored};
use crate::transactions::TxnRecord;
use crate::trouble::CatalogTrouble;
use async_trait::async_trait;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_types::{Label, SourceId, TxnId};

/// The faults of the next operation.
#[derive(Debug, Default)]
struct Faults {
    /// It is made, and answered with an error.
    loses_answer: AtomicBool,
    /// It is not made.
    fails: AtomicBool,
    /// Nothing can be read from then on.
    is_unreadable: AtomicBool,
}

#[derive(Debug)]
struct Losing {
    inner: SqliteStore,
    faults: Arc<Faults>,
}

fn broken() -> CatalogError {
    CatalogError::Store { action: "answer", source: "broken".into() }
}

impl Losing {
    fn readable(&self) -> Stored<&SqliteStore> {
        if self.faults.is_unreadable.load(Ordering::SeqCst) { Err(broken()) } else { Ok(&self.inner) }
    }
}

#[async_trait]
impl Store for Losing {
    async fn load(&self) -> Stored<Loaded> {
        self.readable()?.load().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }

    fn write_trouble(&self) -> Option<CatalogTrouble> {
        self.inner.write_trouble()
    }

    async fn try_writing(&self) {
        self.inner.try_writing().await;
    }

    async fn freeze(&self) -> Stored<Box<dyn FrozenStore>> {
        self.inner.freeze().await
    }

    async fn revision(&self) -> Stored<Revision> {
        self.readable()?.revision().await
    }

    async fn apply(&self, at: Revision, operation: &Operation) -> Stored<Applied> {
        if self.faults.fails.swap(false, Ordering::SeqCst) {
            return Err(broken());
        }
        let applied = self.inner.apply(at, operation).await;
        if self.faults.loses_answer.swap(false, Ordering::SeqCst) { Err(broken()) } else { applied }
    }

    async fn meta_get(&self, key: &str) -> Stored<Option<String>> {
        self.inner.meta_get(key).await
    }

    async fn meta_put(&self, key: &str, value: &str, instead_of: &[&str]) -> Stored<()> {
        self.inner.meta_put(key, value, instead_of).await
    }

    async fn next_table_id(&self) -> Stored<TableId> {
        self.inner.next_table_id().await
    }

    async fn insert_garbage(&self, garbage: &Garbage) -> Stored<()> {
        self.inner.insert_garbage(garbage).await
    }

    async fn list_garbage(&self) -> Stored<Vec<Garbage>> {
        self.inner.list_garbage().await
    }

    async fn delete_garbage(&self, locations: &[String]) -> Stored<()> {
        self.inner.delete_garbage(locations).await
    }

    async fn put_transactions(&self, node: &str, records: &[TxnRecord]) -> Stored<()> {
        self.inner.put_transactions(node, records).await
    }

    async fn kept_transactions(&self, node: &str) -> Stored<Vec<TxnRecord>> {
        self.inner.kept_transactions(node).await
    }

    async fn freed_transactions(&self, node: &str) -> Stored<Vec<TxnId>> {
        self.inner.freed_transactions(node).await
    }

    async fn transaction_by_id(&self, node: &str, txn: TxnId) -> Stored<Option<TxnRecord>> {
        self.inner.transaction_by_id(node, txn).await
    }

    async fn transaction_by_label(&self, db: DbId, label: &Label) -> Stored<Option<TxnRecord>> {
        self.inner.transaction_by_label(db, label).await
    }

    async fn recent_transactions(&self, db: DbId, limit: u32) -> Stored<Vec<TxnRecord>> {
        self.inner.recent_transactions(db, limit).await
    }

    async fn put_job(&self, node: &str, job: &JobRecord) -> Stored<()> {
        self.inner.put_job(node, job).await
    }

    async fn jobs(&self, node: &str) -> Stored<Vec<JobRecord>> {
        self.inner.jobs(node).await
    }

    async fn delete_job(&self, node: &str, id: SourceId) -> Stored<()> {
        self.inner.delete_job(node, id).await
    }

    async fn put_positions(&self, node: &str, positions: &[PositionRecord]) -> Stored<()> {
        self.inner.put_positions(node, positions).await
    }

    async fn positions(&self, node: &str) -> Stored<Vec<PositionRecord>> {
        self.inner.positions(node).await
    }

    async fn reserve_increments(&self, table: TableId, start: i64, count: i64) -> Stored<Option<i64>> {
        self.inner.reserve_increments(table, start, count).await
    }

    async fn purge_transactions(&self, node: &str, before_ms: i64, keep_max: u64) -> Stored<u64> {
        self.inner.purge_transactions(node, before_ms, keep_max).await
    }
}

/// A catalog with the table `t` over a store with these faults.
async fn losing(dir: &TempDir) -> (Catalog, Arc<TableDef>, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let inner = SqliteStore::open(&dir.path().join("catalog.db")).await.unwrap();
    let catalog = Catalog::with_store(Box::new(Losing { inner, faults: Arc::clone(&faults) })).await.unwrap();
    catalog.create_database("d").await.unwrap();
    let table = create(&catalog, "t").await;
    (catalog, table, faults)
}

fn finished(id: u64, before: &Arc<TableDef>, after: TableDef) -> FinishedChange {
    FinishedChange {
        id: SourceId(id),
        node: "n".to_owned(),
        record: None,
        table: (Arc::clone(before), after),
        beside: None,
        dropped: Vec::new(),
        recovered: Vec::new(),
    }
}

fn record(id: u64) -> JobRecord {
    JobRecord { id: SourceId(id), definition: "{}".to_owned() }
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_found_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (catalog, table, faults) = losing(&dir).await;
    faults.loses_answer.store(true, Ordering::SeqCst);
    let wider = catalog.replace_table_def(&table, with_column(&table, "b")).await.unwrap();
    assert_eq!(catalog.table_by_id(table.id).unwrap(), wider);
    faults.loses_answer.store(true, Ordering::SeqCst);
    catalog.drop_table(&name("d", "t")).await.unwrap();
    assert!(catalog.table_by_id(table.id).is_none());
    let catalog = reopen(catalog, &dir).await;
    assert!(catalog.table_by_id(table.id).is_none());
}

#[tokio::test]
async fn a_change_that_the_store_has_not_made_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (catalog, table, faults) = losing(&dir).await;
    faults.fails.store(true, Ordering::SeqCst);
    catalog.replace_table_def(&table, with_column(&table, "b")).await.unwrap_err();
    assert_eq!(catalog.table_by_id(table.id).unwrap(), table);
}

#[tokio::test]
async fn a_finished_change_may_be_repeated_until_its_answer_comes() {
    for is_made in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (catalog, table, faults) = losing(&dir).await;
        catalog.put_job("n", &record(8)).await.unwrap();
        let wider = with_column(&table, "b");
        let fault = if is_made { &faults.loses_answer } else { &faults.fails };
        fault.store(true, Ordering::SeqCst);
        // Whether it is made can't be asked either.
        faults.is_unreadable.store(true, Ordering::SeqCst);
        catalog.finish_change(finished(8, &table, wider.clone())).await.unwrap_err();
        assert_eq!(*catalog.table_by_id(table.id).unwrap(), *table);
        faults.is_unreadable.store(false, Ordering::SeqCst);
        catalog.finish_change(finished(8, &table, wider.clone())).await.unwrap();
        assert_eq!(*catalog.table_by_id(table.id).unwrap(), wider);
        assert_eq!(catalog.last_change(table.id), SourceId(8));
        assert!(catalog.jobs("n").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_change_that_is_not_newer_than_the_last_one_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (catalog, table, _) = losing(&dir).await;
    let wider = with_column(&table, "b");
    catalog.finish_change(finished(8, &table, wider.clone())).await.unwrap();
    let shown = catalog.table_by_id(table.id).unwrap();
    for older in [7, 8] {
        catalog.put_job("n", &record(older)).await.unwrap();
        catalog.finish_change(finished(older, &shown, (*table).clone())).await.unwrap();
    }
    assert!(catalog.jobs("n").await.unwrap().is_empty(), "their records end");
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(*catalog.table_by_id(table.id).unwrap(), wider);
    assert_eq!(catalog.last_change(table.id), SourceId(8));
}
