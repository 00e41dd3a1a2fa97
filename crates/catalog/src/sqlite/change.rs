//! One change of the database: everything in it, or nothing.

use super::Sql;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqlitePool;
use sqlx::{Sqlite, SqliteConnection, query};
use std::ops::{Deref, DerefMut};

/// A transaction. Dropped without a commit, or after one that failed, it takes its connection with it.
///
/// Not sqlx's own transaction: that one counts how deep it is, and SQLite ends a transaction by itself when the disk
/// is full. From then on the count was one too high, and after a second failure commits were those of savepoints
/// within a transaction that nobody ever committed: they were answered, seen, and gone with the process.
pub(super) struct Change {
    connection: PoolConnection<Sqlite>,
    is_committed: bool,
}

impl Change {
    pub(super) async fn begin(pool: &SqlitePool) -> Sql<Self> {
        let mut change = Self { connection: pool.acquire().await?, is_committed: false };
        query("BEGIN IMMEDIATE").execute(&mut *change).await?;
        Ok(change)
    }

    /// Durable on return. After an error it may be known with the next connection only whether it happened.
    pub(super) async fn commit(mut self) -> Sql<()> {
        query("COMMIT").execute(&mut *self).await?;
        self.is_committed = true;
        Ok(())
    }
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

impl Drop for Change {
    fn drop(&mut self) {
        if !self.is_committed {
            self.connection.close_on_drop();
        }
    }
}
