//! The catalog in PostgreSQL: with [`crate::sqlite`] the only modules that know SQL.
//!
//! Each change is one transaction, fenced by the epoch of this process's claim ([`claim`]) and found again if its answer is lost
//! ([`link`]). The tables are those of SQLite ([`format`]). Every wait has a bound: while PostgreSQL is away, calls fail with
//! [`CatalogError::Away`]. Not its business: what the other errors mean for a client.

mod claim;
mod encryption;
mod errors;
mod format;
mod jobs;
mod link;
mod load;
mod nodes;
mod operations;
mod progress;
mod recycled;
mod rows;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transactions;
mod url;

pub use claim::{Claim, Claimed};
pub use url::{BadPostgresUrl, PostgresOptions, PostgresUrl};

use crate::error::CatalogError;
use crate::jobs::{JobRecord, PositionRecord};
use crate::nodes::{HeardNode, NodeSign};
use crate::rows::TABLES;
use crate::sqlite::SqliteStore;
use crate::store::{Applied, FrozenStore, Garbage, Loaded, Operation, Revision, Store, Stored};
use crate::transactions::TxnRecord;
use crate::trouble::{CatalogTrouble, WriteTrouble};
use async_trait::async_trait;
use errors::{PgError, Sql, failed_to};
use link::{Held, Link, Session};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::Row;
use tributary_types::{DbId, Label, SourceId, TableId, TxnId};

/// A catalog in a database of PostgreSQL.
pub(crate) struct PostgresStore {
    link: Link,
    trouble: WriteTrouble,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({})", self.link.place())
    }
}

impl PostgresStore {
    /// Opens a catalog to read it, as long as another process owns it.
    ///
    /// # Errors
    /// [`CatalogError::Missing`], [`CatalogError::NewerFormat`], [`CatalogError::Away`].
    pub(crate) async fn read(options: &PostgresOptions) -> Stored<Self> {
        let store = Self { link: Link::new(options.clone()), trouble: WriteTrouble::default() };
        let failed = failed_to("open itself", &store.link.place());
        let held = store.link.held().await.map_err(&failed)?;
        let session = held.session().map_err(&failed)?;
        let path = store.link.place();
        if !format::is_there(session).await.map_err(&failed)? {
            return Err(CatalogError::NoCatalog(path));
        }
        let row = session.row("SELECT format FROM catalog", &[]).await.map_err(&failed)?;
        let found: i64 = row.try_get(0).map_err(PgError::from).map_err(&failed)?;
        if found > format::FORMAT {
            return Err(CatalogError::NewerFormat { path, found, known: format::FORMAT });
        }
        drop(held);
        Ok(store)
    }

    /// Opens a catalog as its owner, and makes it if there is none. Also returns what was claimed.
    ///
    /// # Errors
    /// [`CatalogError::OfAnother`], [`CatalogError::InUse`], [`CatalogError::NotTheCatalog`], [`CatalogError::Missing`] if it is known
    /// and not there, [`CatalogError::NewerFormat`], [`CatalogError::Unfit`], [`CatalogError::Away`].
    pub(crate) async fn claim(options: &PostgresOptions, claim: &Claim<'_>) -> Stored<(Self, Claimed)> {
        let link = Link::new(options.clone());
        let claimed = claim::claim(&link, claim).await?;
        Ok((Self { link, trouble: WriteTrouble::default() }, claimed))
    }

    /// A second way to a catalog that another store of this process has claimed.
    #[cfg(test)]
    pub(crate) async fn join(options: &PostgresOptions, epoch: i64) -> Stored<Self> {
        let store = Self::read(options).await?;
        store.link.set_epoch(epoch);
        Ok(store)
    }

    /// Replaces everything by the contents of SQLite's file, in one change, and gives the catalog a new id, which is returned.
    pub(crate) async fn fill(&self, from: &SqliteStore) -> Stored<String> {
        let failed = self.failed("take over the catalog");
        let change = self.link.begin().await.map_err(&failed)?;
        rows::clear(&change).await.map_err(&failed)?;
        for table in &TABLES {
            let mut reading = from.table(table).await?;
            while let Some(batch) = reading.next().await? {
                rows::put(&change, table, batch).await.map_err(&failed)?;
            }
        }
        let row = change
            .row("UPDATE catalog SET id = gen_random_uuid()::text RETURNING id", &[])
            .await
            .map_err(&failed)?;
        let id = row.try_get(0).map_err(PgError::from).map_err(&failed)?;
        change.commit().await.map_err(&failed)?;
        Ok(id)
    }

    fn failed(&self, action: &'static str) -> impl Fn(PgError) -> CatalogError + use<> {
        failed_to(action, &self.link.place())
    }

    /// Notes the outcome of a change.
    fn noted<T>(&self, outcome: Sql<T>, action: &'static str) -> Stored<T> {
        self.trouble.noted(outcome.map_err(self.failed(action)))
    }
}

/// The catalog, whose only connection is held.
struct Frozen {
    held: Held,
    place: String,
}

#[async_trait]
impl FrozenStore for Frozen {
    async fn save(&mut self, to: &Path) -> Stored<()> {
        let copy = SqliteStore::open(to).await?;
        let saved = self.save_into(&copy).await;
        copy.close().await;
        if saved.is_err() {
            self.held.discard();
        }
        saved
    }
}

impl Frozen {
    async fn save_into(&self, copy: &SqliteStore) -> Stored<()> {
        let failed = failed_to("copy itself", &self.place);
        let session = self.held.session().map_err(&failed)?;
        session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(&failed)?;
        let mut filling = copy.fill().await?;
        for table in &TABLES {
            let reading = rows::Reading::begin(session, table).await.map_err(&failed)?;
            while let Some(batch) = reading.next().await.map_err(&failed)? {
                filling.put(table, batch).await?;
            }
            reading.end().await.map_err(&failed)?;
        }
        filling.commit().await?;
        session.batch("COMMIT").await.map_err(&failed)
    }
}

/// PostgreSQL's integers have a sign; our ids stay far below 2^63.
fn signed(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row, column: &str) -> Sql<u64> {
    Ok(row.try_get::<_, i64>(column)?.max(0) as u64)
}

#[async_trait]
impl Store for PostgresStore {
    fn write_trouble(&self) -> Option<CatalogTrouble> {
        self.trouble.get()
    }

    async fn try_writing(&self) {
        if self.link.epoch() == 0 {
            return;
        }
        let renewed = claim::renew(&self.link).await;
        // Another call shows it.
        let _ = self.noted(renewed, "say that its owner lives");
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn tell_progress(&self, oldest: &(dyn Fn() -> Option<Duration> + Send + Sync)) -> Stored<()> {
        progress::tell(&self.link, oldest).await.map_err(self.failed("say how far its tables are"))
    }

    async fn tell_end(&self) -> Stored<()> {
        progress::tell_end(&self.link).await.map_err(self.failed("say that its tables are complete"))
    }

    async fn lag(&self) -> Stored<Option<Duration>> {
        progress::lag(&self.link).await.map_err(self.failed("say how far its tables are"))
    }

    async fn owner(&self) -> Stored<Option<(String, String)>> {
        progress::owner(&self.link).await.map(Some).map_err(self.failed("say whose it is"))
    }

    async fn say_node(&self, sign: &NodeSign) -> Stored<Vec<HeardNode>> {
        nodes::say(&self.link, sign).await.map_err(self.failed("note that a node lives"))?;
        self.heard_nodes().await
    }

    async fn heard_nodes(&self) -> Stored<Vec<HeardNode>> {
        nodes::heard(&self.link).await.map_err(self.failed("say which nodes live"))
    }

    async fn unsay_node(&self, name: &str) -> Stored<()> {
        nodes::unsay(&self.link, name).await.map_err(self.failed("note that a node ends"))
    }

    async fn load(&self) -> Stored<Loaded> {
        load::all(&self.link).await
    }

    async fn close(&self) {
        if self.link.epoch() != 0 && self.trouble.get().is_none() {
            // Without it, the next start waits until the connection is seen to have ended.
            drop(claim::release(&self.link).await);
        }
        self.link.close().await;
    }

    async fn freeze(&self) -> Stored<Box<dyn FrozenStore>> {
        let held = self.link.held().await.map_err(self.failed("wait for its changes"))?;
        Ok(Box::new(Frozen { held, place: self.link.place() }))
    }

    async fn revision(&self) -> Stored<Revision> {
        let failed = self.failed("read its revision");
        let held = self.link.held().await.map_err(&failed)?;
        load::revision(held.session().map_err(&failed)?).await.map_err(&failed)
    }

    async fn apply(&self, at: Revision, operation: &Operation) -> Stored<Applied> {
        self.noted(operations::apply(&self.link, at, operation).await, operation.action())
    }

    async fn meta_get(&self, key: &str) -> Stored<Option<String>> {
        let failed = self.failed("read a value");
        let held = self.link.held().await.map_err(&failed)?;
        let session = held.session().map_err(&failed)?;
        let row =
            session.row_if_any("SELECT value FROM meta WHERE key = $1", &[&key]).await.map_err(&failed)?;
        row.map(|row| row.try_get(0)).transpose().map_err(PgError::from).map_err(&failed)
    }

    async fn meta_put(&self, key: &str, value: &str, instead_of: &[&str]) -> Stored<()> {
        self.noted(self.put_value(key, value, instead_of).await, "write a value")
    }

    async fn next_table_id(&self) -> Stored<TableId> {
        self.noted(self.take_table_id().await, "give a table id")
    }

    async fn insert_garbage(&self, garbage: &Garbage) -> Stored<()> {
        self.noted(self.put_garbage(garbage).await, "note a location")
    }

    async fn list_garbage(&self) -> Stored<Vec<Garbage>> {
        let failed = self.failed("read locations");
        let held = self.link.held().await.map_err(&failed)?;
        let session = held.session().map_err(&failed)?;
        let rows = session
            .rows("SELECT location, table_id FROM garbage ORDER BY table_id", &[])
            .await
            .map_err(&failed)?;
        let read = |row: &Row| {
            Ok(Garbage { location: row.try_get("location")?, table_id: TableId(unsigned(row, "table_id")?) })
        };
        rows.iter().map(read).collect::<Sql<_>>().map_err(&failed)
    }

    async fn delete_garbage(&self, locations: &[String]) -> Stored<()> {
        self.noted(self.delete_garbage_rows(locations).await, "forget locations")
    }

    async fn put_transactions(&self, node: &str, records: &[TxnRecord]) -> Stored<()> {
        self.noted(transactions::put(&self.link, node, records).await, "write transactions")
    }

    async fn kept_transactions(&self, node: &str) -> Stored<Vec<TxnRecord>> {
        transactions::kept(&self.link, node).await.map_err(self.failed("read transactions"))
    }

    async fn freed_transactions(&self, node: &str) -> Stored<Vec<TxnId>> {
        transactions::freed(&self.link, node).await.map_err(self.failed("read transactions"))
    }

    async fn transaction_by_id(&self, node: &str, txn: TxnId) -> Stored<Option<TxnRecord>> {
        transactions::by_id(&self.link, node, txn).await.map_err(self.failed("read a transaction"))
    }

    async fn transaction_by_label(&self, db: DbId, label: &Label) -> Stored<Option<TxnRecord>> {
        transactions::by_label(&self.link, db, label).await.map_err(self.failed("read a transaction"))
    }

    async fn recent_transactions(&self, db: DbId, limit: u32) -> Stored<Vec<TxnRecord>> {
        transactions::recent(&self.link, db, limit).await.map_err(self.failed("read transactions"))
    }

    async fn put_job(&self, node: &str, job: &JobRecord) -> Stored<()> {
        self.noted(jobs::put(&self.link, node, job).await, "write a job")
    }

    async fn jobs(&self, node: &str) -> Stored<Vec<JobRecord>> {
        jobs::all(&self.link, node).await.map_err(self.failed("read jobs"))
    }

    async fn delete_job(&self, node: &str, id: SourceId) -> Stored<()> {
        self.noted(jobs::delete(&self.link, node, id).await, "forget a job")
    }

    async fn put_positions(&self, node: &str, positions: &[PositionRecord]) -> Stored<()> {
        self.noted(jobs::put_positions(&self.link, node, positions).await, "write positions")
    }

    async fn positions(&self, node: &str) -> Stored<Vec<PositionRecord>> {
        jobs::positions(&self.link, node).await.map_err(self.failed("read positions"))
    }

    async fn reserve_increments(&self, table: TableId, start: i64, count: i64) -> Stored<Option<i64>> {
        self.noted(self.reserve(table, start, count).await, "reserve values")
    }

    async fn purge_transactions(&self, node: &str, finished_before_ms: i64, keep_max: u64) -> Stored<u64> {
        let purged = transactions::purge(&self.link, node, finished_before_ms, keep_max).await;
        self.noted(purged, "purge transactions")
    }
}

impl PostgresStore {
    async fn put_value(&self, key: &str, value: &str, instead_of: &[&str]) -> Sql<()> {
        let change = self.link.begin().await?;
        change.execute("DELETE FROM meta WHERE key = ANY($1)", &[&instead_of]).await?;
        let put = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        change.execute(put, &[&key, &value]).await?;
        change.commit().await
    }

    async fn take_table_id(&self) -> Sql<TableId> {
        let change = self.link.begin().await?;
        let row = change.row("UPDATE next_table_id SET id = id + 1 RETURNING id - 1", &[]).await?;
        let id: i64 = row.try_get(0)?;
        change.commit().await?;
        Ok(TableId(id as u64))
    }

    async fn put_garbage(&self, garbage: &Garbage) -> Sql<()> {
        let change = self.link.begin().await?;
        let put = "INSERT INTO garbage (location, table_id) VALUES ($1, $2) \
             ON CONFLICT (location) DO UPDATE SET table_id = excluded.table_id";
        change.execute(put, &[&garbage.location, &signed(garbage.table_id.0)]).await?;
        change.commit().await
    }

    async fn delete_garbage_rows(&self, locations: &[String]) -> Sql<()> {
        let change = self.link.begin().await?;
        change.execute("DELETE FROM garbage WHERE location = ANY($1)", &[&locations]).await?;
        change.commit().await
    }

    async fn reserve(&self, table: TableId, start: i64, count: i64) -> Sql<Option<i64>> {
        let change = self.link.begin().await?;
        let id = signed(table.0);
        let row = change.row_if_any("SELECT next FROM increments WHERE table_id = $1", &[&id]).await?;
        let next: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        let first = next.map_or(start, |next| next.max(start));
        let Some(end) = first.checked_add(count) else {
            change.undo().await?;
            return Ok(None);
        };
        let put = "INSERT INTO increments (table_id, next) VALUES ($1, $2) \
             ON CONFLICT (table_id) DO UPDATE SET next = excluded.next";
        change.execute(put, &[&id, &end]).await?;
        change.commit().await?;
        Ok(Some(first))
    }
}

/// The number of a node, which it gets with its first record.
async fn number_of(session: &Session, node: &str) -> Sql<i64> {
    let made = "INSERT INTO nodes (number, id) SELECT coalesce(max(number), 0) + 1, $1::text FROM nodes ON CONFLICT (id) DO NOTHING";
    session.execute(made, &[&node]).await?;
    Ok(session.row("SELECT number FROM nodes WHERE id = $1", &[&node]).await?.try_get(0)?)
}
