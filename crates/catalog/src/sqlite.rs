//! The catalog in SQLite: with [`crate::postgres`] the only modules that know SQL.
//!
//! One connection, write-ahead journal, `synchronous = FULL`: a commit is on disk when it returns. Definitions are stored as text
//! ([`crate::definition`]); fields that are searched have columns of their own.

mod change;
mod increments;
mod jobs;
mod load;
mod migrations;
mod operations;
mod recycled;
mod rows;
#[cfg(test)]
mod tests;
mod transactions;

use crate::error::CatalogError;
use crate::jobs::{JobRecord, PositionRecord};
use crate::store::{Applied, FrozenStore, Garbage, Loaded, Operation, Revision, Store, Stored};
use crate::transactions::TxnRecord;
use crate::trouble::{CatalogTrouble, WriteTrouble};
use async_trait::async_trait;
use change::Change;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Row, Sqlite, query, query_scalar};
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;
use tributary_types::{DbId, Label, SourceId, TableId, TxnId};

/// How long to wait for another process (a backup tool) that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The key, and the size, of a value that is written to find out whether anything can be: a smaller one may fit into the journal of
/// a full disk.
const PROBE: &str = "probe";
const PROBE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct SqliteStore {
    pool: SqlitePool,
    trouble: WriteTrouble,
}

impl SqliteStore {
    /// Opens the file or creates it, and migrates its format.
    pub(crate) async fn open(path: &Path) -> Stored<Self> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_release(|connection, _| {
                Box::pin(async move {
                    change::clean(connection).await;
                    Ok(true)
                })
            })
            .connect_with(options)
            .await
            .map_err(|error| damaged_or(path, "open catalog.db", error))?;
        check_pages(&pool, path).await?;
        migrations::run(&pool, path).await?;
        Ok(Self { pool, trouble: WriteTrouble::default() })
    }
}

/// The file, whose only connection is held.
struct FrozenFile {
    connection: PoolConnection<Sqlite>,
}

#[async_trait]
impl FrozenStore for FrozenFile {
    async fn save(&mut self, to: &Path) -> Stored<()> {
        let path = to.to_str().ok_or_else(|| CatalogError::Corrupt {
            what: format!("the path {}", to.display()),
            reason: "it is not UTF-8".to_owned(),
        })?;
        let saved = query("VACUUM INTO ?").bind(path).execute(&mut *self.connection).await;
        saved.map(drop).map_err(failed_to("copy itself"))
    }
}

/// Reads every page, so that damage is found before the contents are used.
async fn check_pages(pool: &SqlitePool, path: &Path) -> Stored<()> {
    let found: String = query_scalar("PRAGMA quick_check(1)")
        .fetch_one(pool)
        .await
        .map_err(|error| damaged_or(path, "check catalog.db", error))?;
    if found == "ok" {
        return Ok(());
    }
    Err(CatalogError::Damaged { path: path.display().to_string(), reason: found.replace('\n', ", ") })
}

/// SQLite's codes for a file that is not a database (26) and for one that is malformed (11).
fn damaged_or(path: &Path, action: &'static str, error: sqlx::Error) -> CatalogError {
    if matches!(code_of(&error).as_deref(), Some("11" | "26")) {
        return CatalogError::Damaged { path: path.display().to_string(), reason: error.to_string() };
    }
    failed_to(action)(error)
}

/// For `map_err`: the action that failed.
fn failed_to(action: &'static str) -> impl Fn(sqlx::Error) -> CatalogError {
    move |error| {
        // SQLite's code for a full disk.
        if code_of(&error).as_deref() == Some("13") {
            return CatalogError::NoSpace { action, reason: error.to_string() };
        }
        CatalogError::Store { action, source: error.into() }
    }
}

fn code_of(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code)
}

/// SQLite's integers have a sign; our ids stay far below 2^63.
fn signed(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn unsigned(row: &SqliteRow, column: &str) -> Result<u64, sqlx::Error> {
    row.try_get::<i64, _>(column).map(|value| value.max(0) as u64)
}

#[async_trait]
impl Store for SqliteStore {
    fn write_trouble(&self) -> Option<CatalogTrouble> {
        self.trouble.get()
    }

    async fn try_writing(&self) {
        let tried = self.put_value(PROBE, &"-".repeat(PROBE_BYTES), &[]).await;
        let _ = self.trouble.noted(tried.map_err(failed_to("write anything")));
        // What is left of it is replaced by the next one.
        let _ = query("DELETE FROM meta WHERE key = ?").bind(PROBE).execute(&self.pool).await;
    }

    async fn load(&self) -> Stored<Loaded> {
        load::all(&self.pool).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }

    async fn freeze(&self) -> Stored<Box<dyn FrozenStore>> {
        let connection = self.pool.acquire().await.map_err(failed_to("wait for its changes"))?;
        Ok(Box::new(FrozenFile { connection }))
    }

    async fn revision(&self) -> Stored<Revision> {
        let number: i64 = query_scalar("SELECT number FROM revision")
            .fetch_one(&self.pool)
            .await
            .map_err(failed_to("read its revision"))?;
        Ok(Revision(number as u64))
    }

    async fn apply(&self, at: Revision, operation: &Operation) -> Stored<Applied> {
        self.trouble
            .noted(operations::apply(&self.pool, at, operation).await.map_err(failed_to(operation.action())))
    }

    async fn meta_get(&self, key: &str) -> Stored<Option<String>> {
        query_scalar("SELECT value FROM meta WHERE key = ?")
            .bind(key)
            .fetch_optional(&self.pool)
            .await
            .map_err(failed_to("read a value"))
    }

    async fn meta_put(&self, key: &str, value: &str, instead_of: &[&str]) -> Stored<()> {
        self.trouble.noted(self.put_value(key, value, instead_of).await.map_err(failed_to("write a value")))
    }

    async fn next_table_id(&self) -> Stored<TableId> {
        let id: Sql<i64> =
            query_scalar("UPDATE next_table_id SET id = id + 1 RETURNING id - 1").fetch_one(&self.pool).await;
        self.trouble.noted(id.map_err(failed_to("give a table id"))).map(|id| TableId(id as u64))
    }

    async fn insert_garbage(&self, garbage: &Garbage) -> Stored<()> {
        let inserted = query("INSERT OR REPLACE INTO garbage (location, table_id) VALUES (?, ?)")
            .bind(&garbage.location)
            .bind(signed(garbage.table_id.0))
            .execute(&self.pool)
            .await;
        self.trouble.noted(inserted.map(drop).map_err(failed_to("note a location")))
    }

    async fn list_garbage(&self) -> Stored<Vec<Garbage>> {
        let read = |row: SqliteRow| {
            Ok(Garbage { location: row.try_get("location")?, table_id: TableId(unsigned(&row, "table_id")?) })
        };
        query("SELECT location, table_id FROM garbage ORDER BY table_id")
            .try_map(read)
            .fetch_all(&self.pool)
            .await
            .map_err(failed_to("read locations"))
    }

    async fn delete_garbage(&self, locations: &[String]) -> Stored<()> {
        self.trouble.noted(self.delete_garbage_rows(locations).await.map_err(failed_to("forget locations")))
    }

    async fn put_transactions(&self, node: &str, records: &[TxnRecord]) -> Stored<()> {
        self.trouble.noted(
            transactions::put(&self.pool, node, records).await.map_err(failed_to("write transactions")),
        )
    }

    async fn kept_transactions(&self, node: &str) -> Stored<Vec<TxnRecord>> {
        transactions::kept(&self.pool, node).await.map_err(failed_to("read transactions"))
    }

    async fn freed_transactions(&self, node: &str) -> Stored<Vec<TxnId>> {
        transactions::freed(&self.pool, node).await.map_err(failed_to("read transactions"))
    }

    async fn transaction_by_id(&self, node: &str, txn: TxnId) -> Stored<Option<TxnRecord>> {
        transactions::by_id(&self.pool, node, txn).await.map_err(failed_to("read a transaction"))
    }

    async fn transaction_by_label(&self, db: DbId, label: &Label) -> Stored<Option<TxnRecord>> {
        transactions::by_label(&self.pool, db, label).await.map_err(failed_to("read a transaction"))
    }

    async fn recent_transactions(&self, db: DbId, limit: u32) -> Stored<Vec<TxnRecord>> {
        transactions::recent(&self.pool, db, limit).await.map_err(failed_to("read transactions"))
    }

    async fn put_job(&self, node: &str, job: &JobRecord) -> Stored<()> {
        self.trouble.noted(jobs::put(&self.pool, node, job).await.map_err(failed_to("write a job")))
    }

    async fn jobs(&self, node: &str) -> Stored<Vec<JobRecord>> {
        jobs::all(&self.pool, node).await.map_err(failed_to("read jobs"))
    }

    async fn delete_job(&self, node: &str, id: SourceId) -> Stored<()> {
        self.trouble.noted(jobs::delete(&self.pool, node, id).await.map_err(failed_to("forget a job")))
    }

    async fn put_positions(&self, node: &str, positions: &[PositionRecord]) -> Stored<()> {
        self.trouble.noted(
            jobs::put_positions(&self.pool, node, positions).await.map_err(failed_to("write positions")),
        )
    }

    async fn positions(&self, node: &str) -> Stored<Vec<PositionRecord>> {
        jobs::positions(&self.pool, node).await.map_err(failed_to("read positions"))
    }

    async fn reserve_increments(&self, table: TableId, start: i64, count: i64) -> Stored<Option<i64>> {
        self.trouble.noted(
            increments::reserve(&self.pool, table, start, count).await.map_err(failed_to("reserve values")),
        )
    }

    async fn purge_transactions(&self, node: &str, finished_before_ms: i64, keep_max: u64) -> Stored<u64> {
        let purged = transactions::purge(&self.pool, node, finished_before_ms, keep_max).await;
        self.trouble.noted(purged.map_err(failed_to("purge transactions")))
    }
}

type Sql<T> = Result<T, sqlx::Error>;

impl SqliteStore {
    async fn put_value(&self, key: &str, value: &str, instead_of: &[&str]) -> Sql<()> {
        let mut transaction = Change::begin(&self.pool).await?;
        for gone in instead_of {
            query("DELETE FROM meta WHERE key = ?").bind(*gone).execute(&mut *transaction).await?;
        }
        query("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .bind(key)
            .bind(value)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    }

    async fn delete_garbage_rows(&self, locations: &[String]) -> Sql<()> {
        let mut transaction = Change::begin(&self.pool).await?;
        for location in locations {
            query("DELETE FROM garbage WHERE location = ?").bind(location).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }
}
