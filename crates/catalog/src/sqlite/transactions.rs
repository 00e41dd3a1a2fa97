//! Finished transactions. Each node counts its own, so that a node and a number name one.

use super::change::Change;
use super::{Sql, signed, unsigned};
use crate::transactions::{TxnRecord, status_of};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, query, query_scalar};
use tributary_types::{Attachment, DbId, Label, TableId, TableRef, TransactionKind, TxnId};

pub(super) async fn put(pool: &SqlitePool, node: &str, records: &[TxnRecord]) -> Sql<()> {
    let mut transaction = Change::begin(pool).await?;
    query("INSERT INTO nodes (id) VALUES (?) ON CONFLICT DO NOTHING")
        .bind(node)
        .execute(&mut *transaction)
        .await?;
    let node: i64 =
        query_scalar("SELECT number FROM nodes WHERE id = ?").bind(node).fetch_one(&mut *transaction).await?;
    for record in records {
        query(
            "INSERT OR REPLACE INTO transactions (node, txn_id, database_id, table_id, database_name, table_name, label, \
             label_is_kept, kind, status, loads, row_count, bytes, prepared_at_ms, precommitted_at_ms, \
             finished_at_ms, reason, attachment) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(node)
        .bind(signed(record.txn_id.0))
        .bind(signed(record.db_id.0))
        .bind(signed(record.table_id.0))
        .bind(&record.table.db)
        .bind(&record.table.table)
        .bind(record.label.as_str())
        .bind(record.label_is_kept)
        .bind(record.kind.name())
        .bind(record.status.name())
        .bind(record.loads)
        .bind(signed(record.rows))
        .bind(signed(record.bytes))
        .bind(record.prepared_at_ms)
        .bind(record.precommitted_at_ms)
        .bind(record.finished_at_ms)
        .bind(&record.reason)
        .bind(record.attachment.as_ref().map(Attachment::bytes))
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await
}

pub(super) async fn kept(pool: &SqlitePool, node: &str) -> Sql<Vec<TxnRecord>> {
    query(
        "SELECT * FROM transactions WHERE node = (SELECT number FROM nodes WHERE id = ?) AND label_is_kept \
         AND status <> 'ABORTED' ORDER BY txn_id",
    )
    .bind(node)
    .try_map(read)
    .fetch_all(pool)
    .await
}

pub(super) async fn freed(pool: &SqlitePool, node: &str) -> Sql<Vec<TxnId>> {
    query(
        "SELECT txn_id FROM transactions WHERE node = (SELECT number FROM nodes WHERE id = ?) AND NOT label_is_kept \
         ORDER BY txn_id",
    )
    .bind(node)
    .try_map(|row: SqliteRow| unsigned(&row, "txn_id").map(TxnId))
    .fetch_all(pool)
    .await
}

pub(super) async fn by_id(pool: &SqlitePool, node: &str, txn: TxnId) -> Sql<Option<TxnRecord>> {
    query("SELECT * FROM transactions WHERE node = (SELECT number FROM nodes WHERE id = ?) AND txn_id = ?")
        .bind(node)
        .bind(signed(txn.0))
        .try_map(read)
        .fetch_optional(pool)
        .await
}

pub(super) async fn by_label(pool: &SqlitePool, db: DbId, label: &Label) -> Sql<Option<TxnRecord>> {
    query(
        "SELECT * FROM transactions WHERE database_id = ? AND label = ? \
         ORDER BY status = 'ABORTED', prepared_at_ms DESC, txn_id DESC LIMIT 1",
    )
    .bind(signed(db.0))
    .bind(label.as_str())
    .try_map(read)
    .fetch_optional(pool)
    .await
}

pub(super) async fn recent(pool: &SqlitePool, db: DbId, limit: u32) -> Sql<Vec<TxnRecord>> {
    query(
        "SELECT * FROM transactions WHERE database_id = ? ORDER BY prepared_at_ms DESC, txn_id DESC LIMIT ?",
    )
    .bind(signed(db.0))
    .bind(limit)
    .try_map(read)
    .fetch_all(pool)
    .await
}

pub(super) async fn purge(pool: &SqlitePool, node: &str, finished_before_ms: i64, keep_max: u64) -> Sql<u64> {
    let mut transaction = Change::begin(pool).await?;
    let number: Option<i64> = query_scalar("SELECT number FROM nodes WHERE id = ?")
        .bind(node)
        .fetch_optional(&mut *transaction)
        .await?;
    let Some(node) = number else { return Ok(0) };
    let old = query("DELETE FROM transactions WHERE node = ? AND finished_at_ms < ?")
        .bind(node)
        .bind(finished_before_ms)
        .execute(&mut *transaction)
        .await?;
    let above = query(
        "DELETE FROM transactions WHERE node = ?1 AND txn_id IN (SELECT txn_id FROM transactions \
         WHERE node = ?1 AND finished_at_ms IS NOT NULL ORDER BY finished_at_ms DESC, txn_id DESC LIMIT -1 OFFSET ?2)",
    )
    .bind(node)
    .bind(signed(keep_max))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(old.rows_affected() + above.rows_affected())
}

fn read(row: SqliteRow) -> Sql<TxnRecord> {
    let kind: String = row.try_get("kind")?;
    let status: String = row.try_get("status")?;
    Ok(TxnRecord {
        txn_id: TxnId(unsigned(&row, "txn_id")?),
        db_id: DbId(unsigned(&row, "database_id")?),
        table_id: TableId(unsigned(&row, "table_id")?),
        table: TableRef { db: row.try_get("database_name")?, table: row.try_get("table_name")? },
        label: Label::from_storage(row.try_get("label")?),
        label_is_kept: row.try_get("label_is_kept")?,
        kind: TransactionKind::parse(&kind).ok_or_else(|| unknown("kind", &kind))?,
        status: status_of(&status).ok_or_else(|| unknown("status", &status))?,
        loads: row.try_get("loads")?,
        rows: unsigned(&row, "row_count")?,
        bytes: unsigned(&row, "bytes")?,
        prepared_at_ms: row.try_get("prepared_at_ms")?,
        precommitted_at_ms: row.try_get("precommitted_at_ms")?,
        finished_at_ms: row.try_get("finished_at_ms")?,
        reason: row.try_get("reason")?,
        attachment: row.try_get::<Option<Vec<u8>>, _>("attachment")?.map(Attachment::from_storage),
    })
}

fn unknown(what: &str, value: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("a transaction has the unknown {what} '{value}'").into())
}
