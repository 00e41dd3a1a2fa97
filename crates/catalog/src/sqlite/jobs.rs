//! Jobs and positions of sources.

use super::change::Change;
use super::{Sql, signed, unsigned};
use crate::jobs::{JobRecord, PositionRecord};
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{Row, query, query_scalar};
use tributary_types::{Attachment, SourceId, TxnId};

/// The node's number, which it gets with its first record.
async fn number(change: &mut SqliteConnection, node: &str) -> Sql<i64> {
    query("INSERT INTO nodes (id) VALUES (?) ON CONFLICT DO NOTHING")
        .bind(node)
        .execute(&mut *change)
        .await?;
    query_scalar("SELECT number FROM nodes WHERE id = ?").bind(node).fetch_one(change).await
}

pub(super) async fn put(pool: &SqlitePool, node: &str, job: &JobRecord) -> Sql<()> {
    let mut change = Change::begin(pool).await?;
    put_within(&mut change, node, job).await?;
    change.commit().await
}

pub(super) async fn put_within(change: &mut SqliteConnection, node: &str, job: &JobRecord) -> Sql<()> {
    let node = number(change, node).await?;
    query(
        "INSERT INTO jobs (node, id, definition) VALUES (?, ?, ?)
         ON CONFLICT (node, id) DO UPDATE SET definition = excluded.definition",
    )
    .bind(node)
    .bind(signed(job.id.0))
    .bind(&job.definition)
    .execute(change)
    .await?;
    Ok(())
}

pub(super) async fn all(pool: &SqlitePool, node: &str) -> Sql<Vec<JobRecord>> {
    let read = |row: SqliteRow| {
        Ok(JobRecord { id: SourceId(unsigned(&row, "id")?), definition: row.try_get("definition")? })
    };
    query("SELECT id, definition FROM jobs WHERE node = (SELECT number FROM nodes WHERE id = ?) ORDER BY id")
        .bind(node)
        .try_map(read)
        .fetch_all(pool)
        .await
}

pub(super) async fn delete(pool: &SqlitePool, node: &str, id: SourceId) -> Sql<()> {
    let mut change = Change::begin(pool).await?;
    delete_within(&mut change, node, id).await?;
    change.commit().await
}

pub(super) async fn delete_within(change: &mut SqliteConnection, node: &str, id: SourceId) -> Sql<()> {
    let node = number(change, node).await?;
    for statement in
        ["DELETE FROM jobs WHERE node = ? AND id = ?", "DELETE FROM positions WHERE node = ? AND source = ?"]
    {
        query(statement).bind(node).bind(signed(id.0)).execute(&mut *change).await?;
    }
    Ok(())
}

pub(super) async fn put_positions(pool: &SqlitePool, node: &str, positions: &[PositionRecord]) -> Sql<()> {
    let mut change = Change::begin(pool).await?;
    let node = number(&mut change, node).await?;
    for record in positions {
        query("INSERT OR REPLACE INTO positions (node, source, txn_id, position) VALUES (?, ?, ?, ?)")
            .bind(node)
            .bind(signed(record.source.0))
            .bind(signed(record.txn.0))
            .bind(record.position.bytes())
            .execute(&mut *change)
            .await?;
    }
    change.commit().await
}

pub(super) async fn positions(pool: &SqlitePool, node: &str) -> Sql<Vec<PositionRecord>> {
    let read = |row: SqliteRow| {
        Ok(PositionRecord {
            source: SourceId(unsigned(&row, "source")?),
            txn: TxnId(unsigned(&row, "txn_id")?),
            position: Attachment::from_storage(row.try_get("position")?),
        })
    };
    query(
        "SELECT source, txn_id, position FROM positions WHERE node = (SELECT number FROM nodes WHERE id = ?) \
         ORDER BY source",
    )
    .bind(node)
    .try_map(read)
    .fetch_all(pool)
    .await
}
