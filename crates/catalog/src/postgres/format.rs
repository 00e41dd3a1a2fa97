//! The tables of a catalog in PostgreSQL: those of SQLite's, and the row of the catalog itself, all in the schema `tributary`.
//!
//! A catalog has the number of its format. A table that is changed once it was released raises [`FORMAT`] and gets a step here.

use super::errors::Sql;
use super::link::Session;

/// The format that is written, and the newest that is read.
pub(super) const FORMAT: i64 = 1;

/// `catalog` has one row: the catalog's id, its owner, and the fence of changes.
const TABLES: &str = r#"
    CREATE TABLE catalog (
        one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
        id TEXT NOT NULL,
        format BIGINT NOT NULL,
        owner TEXT NOT NULL DEFAULT '',
        host TEXT NOT NULL DEFAULT '',
        session TEXT NOT NULL DEFAULT '',
        epoch BIGINT NOT NULL DEFAULT 0,
        last_change TEXT NOT NULL DEFAULT '',
        expires TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
    ) WITH (fillfactor = 25);
    CREATE TABLE revision (number BIGINT NOT NULL);
    CREATE TABLE next_database_id (id BIGINT NOT NULL);
    CREATE TABLE next_table_id (id BIGINT NOT NULL);
    CREATE TABLE meta (
        key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        value TEXT NOT NULL
    );
    CREATE TABLE databases (
        id BIGINT PRIMARY KEY,
        name TEXT COLLATE "C" NOT NULL UNIQUE
    );
    CREATE TABLE tables (
        id BIGINT PRIMARY KEY,
        database_id BIGINT NOT NULL REFERENCES databases (id),
        name TEXT COLLATE "C" NOT NULL,
        location TEXT COLLATE "C" NOT NULL UNIQUE,
        definition TEXT NOT NULL,
        last_change BIGINT NOT NULL DEFAULT 0,
        UNIQUE (database_id, name)
    );
    CREATE TABLE schemas (
        table_id BIGINT NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
        version BIGINT NOT NULL,
        definition TEXT NOT NULL,
        made_at_ms BIGINT,
        PRIMARY KEY (table_id, version)
    );
    CREATE TABLE views (
        id BIGINT PRIMARY KEY,
        database_id BIGINT NOT NULL REFERENCES databases (id),
        name TEXT COLLATE "C" NOT NULL,
        definition TEXT NOT NULL,
        UNIQUE (database_id, name)
    );
    CREATE TABLE increments (
        table_id BIGINT PRIMARY KEY REFERENCES tables (id) ON DELETE CASCADE,
        next BIGINT NOT NULL
    );
    CREATE TABLE recycled_databases (
        database_id BIGINT PRIMARY KEY REFERENCES databases (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        dropped_at_ms BIGINT NOT NULL
    );
    CREATE TABLE recycled_tables (
        table_id BIGINT PRIMARY KEY REFERENCES tables (id) ON DELETE CASCADE,
        dropped_at_ms BIGINT NOT NULL,
        bytes BIGINT NOT NULL,
        with_database BIGINT NOT NULL
    );
    CREATE TABLE recycled_partitions (
        table_id BIGINT NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
        partition_id BIGINT NOT NULL,
        name TEXT NOT NULL,
        dropped_at_ms BIGINT NOT NULL,
        bytes BIGINT NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (table_id, partition_id)
    );
    CREATE TABLE garbage (
        location TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        table_id BIGINT NOT NULL
    );
    CREATE TABLE users (
        name TEXT COLLATE "C" NOT NULL,
        host TEXT COLLATE "C" NOT NULL,
        password_hash BYTEA,
        salted_hash TEXT,
        definition TEXT NOT NULL,
        PRIMARY KEY (name, host)
    );
    CREATE TABLE roles (
        name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        definition TEXT NOT NULL
    );
    CREATE TABLE nodes (
        number BIGINT PRIMARY KEY,
        id TEXT COLLATE "C" NOT NULL UNIQUE
    );
    CREATE TABLE transactions (
        node BIGINT NOT NULL REFERENCES nodes (number),
        txn_id BIGINT NOT NULL,
        database_id BIGINT NOT NULL,
        table_id BIGINT NOT NULL,
        database_name TEXT NOT NULL,
        table_name TEXT NOT NULL,
        label TEXT COLLATE "C" NOT NULL,
        label_is_kept BIGINT NOT NULL,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        loads BIGINT NOT NULL,
        row_count BIGINT NOT NULL,
        bytes BIGINT NOT NULL,
        prepared_at_ms BIGINT NOT NULL,
        precommitted_at_ms BIGINT,
        finished_at_ms BIGINT,
        reason TEXT NOT NULL,
        attachment BYTEA,
        PRIMARY KEY (node, txn_id)
    );
    CREATE INDEX transactions_by_label ON transactions (database_id, label);
    CREATE INDEX transactions_by_end ON transactions (node, finished_at_ms);
    CREATE TABLE jobs (
        node BIGINT NOT NULL REFERENCES nodes (number),
        id BIGINT NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (node, id)
    );
    CREATE TABLE positions (
        node BIGINT NOT NULL REFERENCES nodes (number),
        source BIGINT NOT NULL,
        txn_id BIGINT NOT NULL,
        position BYTEA NOT NULL,
        PRIMARY KEY (node, source)
    );
    INSERT INTO revision VALUES (1);
    INSERT INTO next_database_id VALUES (1);
    INSERT INTO next_table_id VALUES (1);
    INSERT INTO catalog (id, format) VALUES (gen_random_uuid()::text, 1);
"#;

/// Whether the database has a catalog.
pub(super) async fn is_there(session: &Session) -> Sql<bool> {
    session
        .row("SELECT to_regclass('tributary.catalog') IS NOT NULL", &[])
        .await?
        .try_get(0)
        .map_err(Into::into)
}

/// Whether the server is one that a catalog can be in: its version, and whether its texts are UTF-8.
pub(super) async fn refusal(session: &Session) -> Sql<Option<String>> {
    let row = session
        .row(
            "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), \
              current_setting('server_encoding')",
            &[],
        )
        .await?;
    let (number, version, encoding): (i64, String, String) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(if number < 130_000 {
        Some(format!("it is PostgreSQL {version}, and 13 is the oldest that can have a catalog"))
    } else if encoding != "UTF8" {
        Some(format!(
            "its encoding is {encoding}; make a database of the encoding UTF8: createdb -E UTF8 -T template0 NAME"
        ))
    } else {
        None
    })
}

/// Makes the tables of a catalog, unless somebody else does at the same time. Nothing is there on an error.
pub(super) async fn create(session: &Session) -> Sql<()> {
    session.batch("BEGIN; SELECT pg_advisory_xact_lock(hashtext('tributary.catalog'))").await?;
    if !is_there(session).await? {
        let has_schema: bool =
            session.row("SELECT to_regnamespace('tributary') IS NOT NULL", &[]).await?.try_get(0)?;
        if !has_schema {
            session.batch("CREATE SCHEMA tributary").await?;
        }
        session.batch(TABLES).await?;
    }
    session.batch("COMMIT").await
}
