//! The format of `catalog.db` and the migration of older files. `user_version` is the number of migrations that a file has had; a
//! migration is never changed once it was released, and `golden/` has the resulting tables.

use super::change::Change;
use super::failed_to;
use crate::error::CatalogError;
use crate::store::Stored;
use sqlx::sqlite::SqlitePool;
use sqlx::{query, query_scalar, raw_sql};
use std::path::Path;

/// Each migration and the statement that counts it.
const MIGRATIONS: [(&str, &str); 11] = [
    (FIRST, "PRAGMA user_version = 1"),
    (REVISIONS_NODES_TIMES, "PRAGMA user_version = 2"),
    (ATTACHMENTS, "PRAGMA user_version = 3"),
    (JOBS, "PRAGMA user_version = 4"),
    (VIEWS, "PRAGMA user_version = 5"),
    (INCREMENTS, "PRAGMA user_version = 6"),
    (RECYCLED, "PRAGMA user_version = 7"),
    (LAST_CHANGES, "PRAGMA user_version = 8"),
    (RIGHTS, "PRAGMA user_version = 9"),
    (SALTED_HASHES, "PRAGMA user_version = 10"),
    (TIMES_OF_PASSWORDS, "PRAGMA user_version = 11"),
];

pub(super) const FIRST: &str = "
    CREATE TABLE meta (
        key TEXT NOT NULL PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE databases (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE
    ) STRICT;

    CREATE TABLE next_table_id (id INTEGER NOT NULL) STRICT;
    INSERT INTO next_table_id VALUES (1);

    CREATE TABLE tables (
        id INTEGER PRIMARY KEY,
        database_id INTEGER NOT NULL REFERENCES databases (id),
        name TEXT NOT NULL,
        location TEXT NOT NULL UNIQUE,
        definition TEXT NOT NULL,
        UNIQUE (database_id, name)
    ) STRICT;

    CREATE TABLE schemas (
        table_id INTEGER NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (table_id, version)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE garbage (
        location TEXT NOT NULL PRIMARY KEY,
        table_id INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE users (
        name TEXT NOT NULL,
        host TEXT NOT NULL,
        password_hash BLOB,
        PRIMARY KEY (name, host)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE transactions (
        txn_id INTEGER PRIMARY KEY,
        database_id INTEGER NOT NULL,
        table_id INTEGER NOT NULL,
        database_name TEXT NOT NULL,
        table_name TEXT NOT NULL,
        label TEXT NOT NULL,
        label_is_kept INTEGER NOT NULL,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        loads INTEGER NOT NULL,
        row_count INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        prepared_at_ms INTEGER NOT NULL,
        precommitted_at_ms INTEGER,
        finished_at_ms INTEGER,
        reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX transactions_by_label ON transactions (database_id, label);
    CREATE INDEX transactions_by_end ON transactions (finished_at_ms);
";

/// Changes name the revision they were checked against, each node counts its own transactions, and it is known when
/// columns were changed.
const REVISIONS_NODES_TIMES: &str = "
    CREATE TABLE revision (number INTEGER NOT NULL) STRICT;
    INSERT INTO revision VALUES (1);

    ALTER TABLE schemas ADD COLUMN made_at_ms INTEGER;

    CREATE TABLE nodes (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE
    ) STRICT;
    INSERT INTO nodes (number, id) SELECT 1, value FROM meta WHERE key = 'node_id';

    DROP INDEX transactions_by_label;
    DROP INDEX transactions_by_end;
    ALTER TABLE transactions RENAME TO transactions_of_one_node;
    CREATE TABLE transactions (
        node INTEGER NOT NULL REFERENCES nodes (number),
        txn_id INTEGER NOT NULL,
        database_id INTEGER NOT NULL,
        table_id INTEGER NOT NULL,
        database_name TEXT NOT NULL,
        table_name TEXT NOT NULL,
        label TEXT NOT NULL,
        label_is_kept INTEGER NOT NULL,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        loads INTEGER NOT NULL,
        row_count INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        prepared_at_ms INTEGER NOT NULL,
        precommitted_at_ms INTEGER,
        finished_at_ms INTEGER,
        reason TEXT NOT NULL,
        PRIMARY KEY (node, txn_id)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO transactions SELECT 1, * FROM transactions_of_one_node;
    DROP TABLE transactions_of_one_node;
    CREATE INDEX transactions_by_label ON transactions (database_id, label);
    CREATE INDEX transactions_by_end ON transactions (node, finished_at_ms);
";

/// Transactions have an attachment from their client.
const ATTACHMENTS: &str = "ALTER TABLE transactions ADD COLUMN attachment BLOB";

/// Jobs that load from sources, and their progress.
const JOBS: &str = "
    CREATE TABLE jobs (
        node INTEGER NOT NULL REFERENCES nodes (number),
        id INTEGER NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (node, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE positions (
        node INTEGER NOT NULL REFERENCES nodes (number),
        source INTEGER NOT NULL,
        txn_id INTEGER NOT NULL,
        position BLOB NOT NULL,
        PRIMARY KEY (node, source)
    ) STRICT, WITHOUT ROWID;
";

/// Queries that are tables wherever one may be read.
const VIEWS: &str = "
    CREATE TABLE views (
        id INTEGER PRIMARY KEY,
        database_id INTEGER NOT NULL REFERENCES databases (id),
        name TEXT NOT NULL,
        definition TEXT NOT NULL,
        UNIQUE (database_id, name)
    ) STRICT;
";

/// The first values of AUTO_INCREMENT columns that no server has reserved.
const INCREMENTS: &str = "
    CREATE TABLE increments (
        table_id INTEGER PRIMARY KEY REFERENCES tables (id) ON DELETE CASCADE,
        next INTEGER NOT NULL
    ) STRICT;
";

/// Dropped objects that are retained. Rows of databases and tables have names that leave their own names free.
const RECYCLED: &str = "
    CREATE TABLE recycled_databases (
        database_id INTEGER PRIMARY KEY REFERENCES databases (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        dropped_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE recycled_tables (
        table_id INTEGER PRIMARY KEY REFERENCES tables (id) ON DELETE CASCADE,
        dropped_at_ms INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        with_database INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE recycled_partitions (
        table_id INTEGER NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
        partition_id INTEGER NOT NULL,
        name TEXT NOT NULL,
        dropped_at_ms INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (table_id, partition_id)
    ) STRICT, WITHOUT ROWID;
";

/// The last recorded change of each table; 0 if it has had none since this is recorded.
const LAST_CHANGES: &str = "ALTER TABLE tables ADD COLUMN last_change INTEGER NOT NULL DEFAULT 0";

/// Roles, and the rights of users. Until now every user could do everything, so each keeps that by a role until an administrator
/// decides otherwise.
const RIGHTS: &str = r#"
    CREATE TABLE roles (
        name TEXT NOT NULL PRIMARY KEY,
        definition TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    ALTER TABLE users ADD COLUMN definition TEXT NOT NULL DEFAULT '{}';
    UPDATE users SET definition = '{"format":2,"roles":["admin"]}';
    UPDATE users SET definition = '{"format":2,"roles":["operator"]}' WHERE name = 'root';
"#;

/// The second stored form of passwords. A server that does not know it would take a user that has only this one for a user without a
/// password, so it must refuse the file.
const SALTED_HASHES: &str = "ALTER TABLE users ADD COLUMN salted_hash TEXT";

/// When passwords were set: ones from before count as new, so that a rule about their age does not end all of them at once. A server
/// that does not know the rules would let logins pass that they forbid, so it must refuse the file.
const TIMES_OF_PASSWORDS: &str = "
    UPDATE users SET definition =
        json_set(definition, '$.password_set_at_ms', CAST(strftime('%s', 'now') AS INTEGER) * 1000);
";

/// Brings the file up to date, each migration in a transaction of its own.
pub(super) async fn run(pool: &SqlitePool, path: &Path) -> Stored<()> {
    let known = MIGRATIONS.len() as i64;
    let found: i64 =
        query_scalar("PRAGMA user_version").fetch_one(pool).await.map_err(failed_to("read its format"))?;
    if found > known {
        return Err(CatalogError::NewerFormat { path: path.display().to_string(), found, known });
    }
    for (change, set_version) in MIGRATIONS.into_iter().skip(found.max(0) as usize) {
        migrate(pool, change, set_version).await.map_err(failed_to("bring its format up to date"))?;
    }
    Ok(())
}

async fn migrate(
    pool: &SqlitePool,
    change: &'static str,
    set_version: &'static str,
) -> Result<(), sqlx::Error> {
    let mut transaction = Change::begin(pool).await?;
    raw_sql(change).execute(&mut *transaction).await?;
    query(set_version).execute(&mut *transaction).await?;
    transaction.commit().await
}
