//! The catalog in SQLite: the only module that knows SQL.
//!
//! One connection, write-ahead journal, `synchronous = FULL`: a commit is on disk when it returns.
//! Definitions are kept as JSON, in the form that serde gives them in `tributary-types`; fields that
//! are looked for have columns of their own.

mod change;
mod migrations;
#[cfg(test)]
mod tests;
mod transactions;

use crate::error::CatalogError;
use crate::store::{Garbage, Loaded, Store, Stored};
use crate::transactions::TxnRecord;
use crate::users::{PasswordHash, User};
use async_trait::async_trait;
use change::Change;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Row, query, query_scalar};
use std::path::Path;
use std::time::Duration;
use tributary_types::{DbId, Label, TableDef, TableId, TableSchema, TxnId};

/// How long to wait for another process (a backup tool) that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct SqliteStore {
    pool: SqlitePool,
}

impl SqliteStore {
    /// Opens the file or creates it, and brings its format up to date.
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
        Ok(Self { pool })
    }
}

/// Reads every page, so that damage is found before anything relies on what is whole.
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
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    if matches!(code.as_deref(), Some("11" | "26")) {
        return CatalogError::Damaged { path: path.display().to_string(), reason: error.to_string() };
    }
    failed_to(action)(error)
}

/// For `map_err`: what the catalog failed to do.
fn failed_to(action: &'static str) -> impl Fn(sqlx::Error) -> CatalogError {
    move |error| CatalogError::Store { action, source: error.into() }
}

fn corrupt(what: impl Into<String>) -> impl Fn(serde_json::Error) -> CatalogError {
    let what = what.into();
    move |error| CatalogError::Corrupt { what: what.clone(), reason: error.to_string() }
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
    async fn load(&self) -> Stored<Loaded> {
        Ok(Loaded {
            databases: self.load_databases().await.map_err(failed_to("read databases"))?,
            tables: self.load_tables().await?,
            schemas: self.load_schemas().await?,
            users: self.load_users().await.map_err(failed_to("read users"))?,
        })
    }

    async fn close(&self) {
        self.pool.close().await;
    }

    async fn meta_init(&self, key: &str, value: &str) -> Stored<String> {
        query("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING")
            .bind(key)
            .bind(value)
            .execute(&self.pool)
            .await
            .map_err(failed_to("write a value"))?;
        Ok(self.meta_get(key).await?.unwrap_or_else(|| value.to_owned()))
    }

    async fn meta_get(&self, key: &str) -> Stored<Option<String>> {
        query_scalar("SELECT value FROM meta WHERE key = ?")
            .bind(key)
            .fetch_optional(&self.pool)
            .await
            .map_err(failed_to("read a value"))
    }

    async fn meta_set(&self, key: &str, value: &str) -> Stored<()> {
        query("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .bind(key)
            .bind(value)
            .execute(&self.pool)
            .await
            .map_err(failed_to("write a value"))?;
        Ok(())
    }

    async fn insert_database(&self, name: &str) -> Stored<DbId> {
        let id: i64 = query_scalar("INSERT INTO databases (name) VALUES (?) RETURNING id")
            .bind(name)
            .fetch_one(&self.pool)
            .await
            .map_err(failed_to("create a database"))?;
        Ok(DbId(id as u64))
    }

    async fn delete_database(&self, id: DbId) -> Stored<()> {
        self.delete_database_rows(id).await.map_err(failed_to("drop a database"))
    }

    async fn next_table_id(&self) -> Stored<TableId> {
        let id: i64 = query_scalar("UPDATE next_table_id SET id = id + 1 RETURNING id - 1")
            .fetch_one(&self.pool)
            .await
            .map_err(failed_to("give a table id"))?;
        Ok(TableId(id as u64))
    }

    async fn insert_table(&self, def: &TableDef) -> Stored<()> {
        let json = TableJson::new(def)?;
        self.insert_table_rows(def, &json).await.map_err(failed_to("create a table"))
    }

    async fn update_table(&self, def: &TableDef) -> Stored<()> {
        let json = TableJson::new(def)?;
        self.update_table_rows(def, &json).await.map_err(failed_to("change a table"))
    }

    async fn delete_table(&self, id: TableId) -> Stored<()> {
        self.delete_table_rows(id).await.map_err(failed_to("drop a table"))
    }

    async fn insert_garbage(&self, garbage: &Garbage) -> Stored<()> {
        query("INSERT OR REPLACE INTO garbage (location, table_id) VALUES (?, ?)")
            .bind(&garbage.location)
            .bind(signed(garbage.table_id.0))
            .execute(&self.pool)
            .await
            .map_err(failed_to("note a location"))?;
        Ok(())
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
        self.delete_garbage_rows(locations).await.map_err(failed_to("forget locations"))
    }

    async fn insert_users(&self, users: &[User]) -> Stored<()> {
        self.insert_user_rows(users).await.map_err(failed_to("create a user"))
    }

    async fn update_password(&self, name: &str, host: &str, hash: PasswordHash) -> Stored<()> {
        query("UPDATE users SET password_hash = ? WHERE name = ? AND host = ?")
            .bind(hash.map(|hash| hash.to_vec()))
            .bind(name)
            .bind(host)
            .execute(&self.pool)
            .await
            .map_err(failed_to("set a password"))?;
        Ok(())
    }

    async fn delete_user(&self, name: &str, host: &str) -> Stored<()> {
        query("DELETE FROM users WHERE name = ? AND host = ?")
            .bind(name)
            .bind(host)
            .execute(&self.pool)
            .await
            .map_err(failed_to("drop a user"))?;
        Ok(())
    }

    async fn put_transactions(&self, records: &[TxnRecord]) -> Stored<()> {
        transactions::put(&self.pool, records).await.map_err(failed_to("write transactions"))
    }

    async fn kept_transactions(&self) -> Stored<Vec<TxnRecord>> {
        transactions::kept(&self.pool).await.map_err(failed_to("read transactions"))
    }

    async fn transaction_by_id(&self, txn: TxnId) -> Stored<Option<TxnRecord>> {
        transactions::by_id(&self.pool, txn).await.map_err(failed_to("read a transaction"))
    }

    async fn transaction_by_label(&self, db: DbId, label: &Label) -> Stored<Option<TxnRecord>> {
        transactions::by_label(&self.pool, db, label).await.map_err(failed_to("read a transaction"))
    }

    async fn recent_transactions(&self, db: DbId, limit: u32) -> Stored<Vec<TxnRecord>> {
        transactions::recent(&self.pool, db, limit).await.map_err(failed_to("read transactions"))
    }

    async fn purge_transactions(&self, finished_before_ms: i64, keep_max: u64) -> Stored<u64> {
        transactions::purge(&self.pool, finished_before_ms, keep_max)
            .await
            .map_err(failed_to("purge transactions"))
    }
}

/// A definition and its schema as they are stored.
struct TableJson {
    definition: String,
    schema: String,
}

impl TableJson {
    fn new(def: &TableDef) -> Stored<Self> {
        let what = format!("table '{}'", def.table_ref());
        Ok(Self {
            definition: serde_json::to_string(def).map_err(corrupt(what.clone()))?,
            schema: serde_json::to_string(def.schema.as_ref()).map_err(corrupt(what))?,
        })
    }
}

type Sql<T> = Result<T, sqlx::Error>;

/// Reading all of it, and the changes that take more than one statement.
impl SqliteStore {
    async fn load_databases(&self) -> Sql<Vec<(DbId, String)>> {
        let read = |row: SqliteRow| Ok((DbId(unsigned(&row, "id")?), row.try_get("name")?));
        query("SELECT id, name FROM databases").try_map(read).fetch_all(&self.pool).await
    }

    async fn load_tables(&self) -> Stored<Vec<TableDef>> {
        let rows: Vec<(i64, String)> = sqlx::query_as("SELECT id, definition FROM tables ORDER BY id")
            .fetch_all(&self.pool)
            .await
            .map_err(failed_to("read tables"))?;
        let parse = |(id, json): &(i64, String)| {
            serde_json::from_str(json).map_err(corrupt(format!("the definition of table {id}")))
        };
        rows.iter().map(parse).collect()
    }

    async fn load_schemas(&self) -> Stored<Vec<(TableId, TableSchema)>> {
        let rows: Vec<(i64, String)> = sqlx::query_as("SELECT table_id, definition FROM schemas")
            .fetch_all(&self.pool)
            .await
            .map_err(failed_to("read schemas"))?;
        let parse = |(id, json): &(i64, String)| {
            serde_json::from_str(json)
                .map(|schema| (TableId(*id as u64), schema))
                .map_err(corrupt(format!("a schema of table {id}")))
        };
        rows.iter().map(parse).collect()
    }

    async fn load_users(&self) -> Sql<Vec<User>> {
        let read = |row: SqliteRow| {
            let hash: Option<Vec<u8>> = row.try_get("password_hash")?;
            let password_hash = hash
                .map(|hash| {
                    hash.try_into().map_err(|_| sqlx::Error::Decode("a password hash has 20 bytes".into()))
                })
                .transpose()?;
            Ok(User { name: row.try_get("name")?, host: row.try_get("host")?, password_hash })
        };
        query("SELECT name, host, password_hash FROM users").try_map(read).fetch_all(&self.pool).await
    }

    async fn delete_database_rows(&self, id: DbId) -> Sql<()> {
        let id = signed(id.0);
        let mut transaction = Change::begin(&self.pool).await?;
        query("INSERT OR REPLACE INTO garbage (location, table_id) SELECT location, id FROM tables WHERE database_id = ?")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        for statement in ["DELETE FROM tables WHERE database_id = ?", "DELETE FROM databases WHERE id = ?"] {
            query(statement).bind(id).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn insert_table_rows(&self, def: &TableDef, json: &TableJson) -> Sql<()> {
        let mut transaction = Change::begin(&self.pool).await?;
        query("INSERT INTO tables (id, database_id, name, location, definition) VALUES (?, ?, ?, ?, ?)")
            .bind(signed(def.id.0))
            .bind(signed(def.db_id.0))
            .bind(&def.name)
            .bind(&def.location)
            .bind(&json.definition)
            .execute(&mut *transaction)
            .await?;
        put_schema(&mut transaction, def, json).await?;
        query("DELETE FROM garbage WHERE location = ?")
            .bind(&def.location)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    }

    async fn update_table_rows(&self, def: &TableDef, json: &TableJson) -> Sql<()> {
        let mut transaction = Change::begin(&self.pool).await?;
        query("UPDATE tables SET name = ?, location = ?, definition = ? WHERE id = ?")
            .bind(&def.name)
            .bind(&def.location)
            .bind(&json.definition)
            .bind(signed(def.id.0))
            .execute(&mut *transaction)
            .await?;
        put_schema(&mut transaction, def, json).await?;
        transaction.commit().await
    }

    async fn delete_table_rows(&self, id: TableId) -> Sql<()> {
        let id = signed(id.0);
        let mut transaction = Change::begin(&self.pool).await?;
        for statement in [
            "INSERT OR REPLACE INTO garbage (location, table_id) SELECT location, id FROM tables WHERE id = ?",
            "DELETE FROM tables WHERE id = ?",
        ] {
            query(statement).bind(id).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn delete_garbage_rows(&self, locations: &[String]) -> Sql<()> {
        let mut transaction = Change::begin(&self.pool).await?;
        for location in locations {
            query("DELETE FROM garbage WHERE location = ?").bind(location).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn insert_user_rows(&self, users: &[User]) -> Sql<()> {
        let mut transaction = Change::begin(&self.pool).await?;
        for user in users {
            query("INSERT INTO users (name, host, password_hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(&user.name)
                .bind(&user.host)
                .bind(user.password_hash.map(|hash| hash.to_vec()))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await
    }
}

async fn put_schema(connection: &mut SqliteConnection, def: &TableDef, json: &TableJson) -> Sql<()> {
    query("INSERT OR REPLACE INTO schemas (table_id, version, definition) VALUES (?, ?, ?)")
        .bind(signed(def.id.0))
        .bind(def.schema.version.0)
        .bind(&json.schema)
        .execute(connection)
        .await?;
    Ok(())
}
