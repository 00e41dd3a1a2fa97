//! One change of the database: everything in it, or nothing.

use super::Sql;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqlitePool;
use sqlx::{Sqlite, SqliteConnection, query};
use std::ops::{Deref, DerefMut};

/// A transaction. Dropped without a commit it is rolled back when its connection returns to the pool ([`clean`]).
///
/// Not sqlx's own transaction: it counts its nesting depth, and SQLite ends a transaction by itself when the disk is full. From
/// then on the count was one too high, and after a second failure commits were commits of savepoints within a transaction that
/// was never committed: they were answered, visible, and lost with the process. Nor is the connection dropped after a failure: on
/// a full disk, SQLite maps the index of its journal again, which ends in SIGBUS.
pub(super) struct Change {
    connection: PoolConnection<Sqlite>,
}

impl Change {
    pub(super) async fn begin(pool: &SqlitePool) -> Sql<Self> {
        let mut change = Self { connection: pool.acquire().await? };
        query("BEGIN IMMEDIATE").execute(&mut *change).await?;
        Ok(change)
    }

    /// Durable on return. After an error nothing of it happened, or the file is no longer writable.
    pub(super) async fn commit(mut self) -> Sql<()> {
        query("COMMIT").execute(&mut *self).await.map(drop)
    }
}

/// Ends the remainder of a change that failed or was interrupted. To be called after every use of a connection.
pub(super) async fn clean(connection: &mut SqliteConnection) {
    // Usually there is no transaction, which SQLite reports as an error.
    drop(query("ROLLBACK").execute(connection).await);
}

impl Deref for Change {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Change {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
