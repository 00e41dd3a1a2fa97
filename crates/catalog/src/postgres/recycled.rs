//! Rows of dropped objects that are retained.
//!
//! Invariant: rows of databases and tables that are recycled have names that no statement can write, so that theirs are free.

use super::errors::Sql;
use super::link::Session;
use super::operations::put_definition;
use super::signed;
use crate::recycled::{RecycledDatabase, RecycledPartition, RecycledTable};
use std::sync::Arc;
use tributary_types::{DbId, PartitionId, TableId};

/// No name has a dot.
fn hidden(id: u64) -> String {
    format!("tributary.dropped.{id}")
}

pub(super) async fn put_table(session: &Session, table: &RecycledTable) -> Sql<()> {
    redefine(session, table).await?;
    let put =
        "INSERT INTO recycled_tables (table_id, dropped_at_ms, bytes, with_database) VALUES ($1, $2, $3, $4)";
    let (bytes, with_database) = (signed(table.bytes), i64::from(table.with_database));
    session
        .execute(put, &[&signed(table.def.id.0), &table.dropped_at_ms, &bytes, &with_database])
        .await
        .map(drop)
}

/// Keeps the definition of a recycled table.
pub(super) async fn redefine(session: &Session, table: &RecycledTable) -> Sql<()> {
    put_definition(session, &table.def, &hidden(table.def.id.0)).await
}

pub(super) async fn put_database(
    session: &Session,
    database: &RecycledDatabase,
    tables: &[Arc<RecycledTable>],
) -> Sql<()> {
    for table in tables {
        put_table(session, table).await?;
    }
    rename_database(session, database.id, &hidden(database.id.0)).await?;
    let put = "INSERT INTO recycled_databases (database_id, name, dropped_at_ms) VALUES ($1, $2, $3)";
    session.execute(put, &[&signed(database.id.0), &database.name, &database.dropped_at_ms]).await.map(drop)
}

async fn rename_database(session: &Session, id: DbId, name: &str) -> Sql<()> {
    session.execute("UPDATE databases SET name = $1 WHERE id = $2", &[&name, &signed(id.0)]).await.map(drop)
}

pub(super) async fn put_partition(session: &Session, partition: &RecycledPartition) -> Sql<()> {
    let put = "INSERT INTO recycled_partitions (table_id, partition_id, name, dropped_at_ms, bytes, definition) \
         VALUES ($1, $2, $3, $4, $5, $6)";
    let (table, id) = (signed(partition.table.0), signed(partition.id.0));
    let bytes = signed(partition.bytes);
    session
        .execute(
            put,
            &[&table, &id, &partition.name, &partition.dropped_at_ms, &bytes, &partition.definition],
        )
        .await
        .map(drop)
}

pub(super) async fn forget_partition(session: &Session, table: TableId, id: PartitionId) -> Sql<()> {
    let forget = "DELETE FROM recycled_partitions WHERE table_id = $1 AND partition_id = $2";
    session.execute(forget, &[&signed(table.0), &signed(id.0)]).await.map(drop)
}

/// Removes the table's recycled state; the caller gives it a name.
pub(super) async fn forget_table(session: &Session, id: TableId) -> Sql<()> {
    session.execute("DELETE FROM recycled_tables WHERE table_id = $1", &[&signed(id.0)]).await.map(drop)
}

/// The database is not recycled any more, and has this name.
pub(super) async fn recover_database(session: &Session, id: DbId, name: &str) -> Sql<()> {
    session.execute("DELETE FROM recycled_databases WHERE database_id = $1", &[&signed(id.0)]).await?;
    rename_database(session, id, name).await
}
