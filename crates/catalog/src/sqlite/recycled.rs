//! Rows of dropped objects that are retained.
//!
//! Invariant: rows of databases and tables that are recycled have names that no statement can write, so that theirs are free.

use super::operations::put_definition;
use super::{Sql, signed};
use crate::recycled::{RecycledDatabase, RecycledPartition, RecycledTable};
use sqlx::query;
use sqlx::sqlite::SqliteConnection;
use std::sync::Arc;
use tributary_types::{DbId, PartitionId, TableId};

/// No name has a dot.
fn hidden(id: u64) -> String {
    format!("tributary.dropped.{id}")
}

pub(super) async fn put_table(connection: &mut SqliteConnection, table: &RecycledTable) -> Sql<()> {
    redefine(connection, table).await?;
    query("INSERT INTO recycled_tables (table_id, dropped_at_ms, bytes, with_database) VALUES (?, ?, ?, ?)")
        .bind(signed(table.def.id.0))
        .bind(table.dropped_at_ms)
        .bind(signed(table.bytes))
        .bind(table.with_database)
        .execute(connection)
        .await?;
    Ok(())
}

/// Keeps the definition of a recycled table.
pub(super) async fn redefine(connection: &mut SqliteConnection, table: &RecycledTable) -> Sql<()> {
    put_definition(connection, &table.def, &hidden(table.def.id.0)).await
}

pub(super) async fn put_database(
    connection: &mut SqliteConnection,
    database: &RecycledDatabase,
    tables: &[Arc<RecycledTable>],
) -> Sql<()> {
    for table in tables {
        put_table(connection, table).await?;
    }
    rename_database(connection, database.id, &hidden(database.id.0)).await?;
    query("INSERT INTO recycled_databases (database_id, name, dropped_at_ms) VALUES (?, ?, ?)")
        .bind(signed(database.id.0))
        .bind(&database.name)
        .bind(database.dropped_at_ms)
        .execute(connection)
        .await?;
    Ok(())
}

async fn rename_database(connection: &mut SqliteConnection, id: DbId, name: &str) -> Sql<()> {
    query("UPDATE databases SET name = ? WHERE id = ?")
        .bind(name)
        .bind(signed(id.0))
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn put_partition(
    connection: &mut SqliteConnection,
    partition: &RecycledPartition,
) -> Sql<()> {
    query(
        "INSERT INTO recycled_partitions (table_id, partition_id, name, dropped_at_ms, bytes, definition)
         VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(signed(partition.table.0))
    .bind(signed(partition.id.0))
    .bind(&partition.name)
    .bind(partition.dropped_at_ms)
    .bind(signed(partition.bytes))
    .bind(&partition.definition)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn forget_partition(
    connection: &mut SqliteConnection,
    table: TableId,
    id: PartitionId,
) -> Sql<()> {
    query("DELETE FROM recycled_partitions WHERE table_id = ? AND partition_id = ?")
        .bind(signed(table.0))
        .bind(signed(id.0))
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes the table's recycled state; the caller gives it a name.
pub(super) async fn forget_table(connection: &mut SqliteConnection, id: TableId) -> Sql<()> {
    query("DELETE FROM recycled_tables WHERE table_id = ?").bind(signed(id.0)).execute(connection).await?;
    Ok(())
}

/// The database is not recycled any more, and has this name.
pub(super) async fn recover_database(connection: &mut SqliteConnection, id: DbId, name: &str) -> Sql<()> {
    query("DELETE FROM recycled_databases WHERE database_id = ?")
        .bind(signed(id.0))
        .execute(&mut *connection)
        .await?;
    rename_database(connection, id, name).await
}
