//! Finished transactions. Each node counts its own, so that a node and a number name one.

use super::errors::{PgError, Sql};
use super::link::{Link, Values};
use super::{number_of, signed, unsigned};
use crate::transactions::TxnRecord;
use tokio_postgres::Row;
use tributary_types::{Attachment, DbId, Label, TableId, TableRef, TransactionKind, TxnId};

const PUT: &str = "INSERT INTO transactions (node, txn_id, database_id, table_id, database_name, table_name, label, \
     label_is_kept, kind, status, loads, row_count, bytes, prepared_at_ms, precommitted_at_ms, finished_at_ms, reason, \
     attachment) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) \
     ON CONFLICT (node, txn_id) DO UPDATE SET database_id = excluded.database_id, table_id = excluded.table_id, \
     database_name = excluded.database_name, table_name = excluded.table_name, label = excluded.label, \
     label_is_kept = excluded.label_is_kept, kind = excluded.kind, status = excluded.status, loads = excluded.loads, \
     row_count = excluded.row_count, bytes = excluded.bytes, prepared_at_ms = excluded.prepared_at_ms, \
     precommitted_at_ms = excluded.precommitted_at_ms, finished_at_ms = excluded.finished_at_ms, \
     reason = excluded.reason, attachment = excluded.attachment";
/// Records on their way at a time.
const AT_ONCE: usize = 256;

pub(super) async fn put(link: &Link, node: &str, records: &[TxnRecord]) -> Sql<()> {
    let change = link.begin().await?;
    let node = number_of(&change, node).await?;
    for some in records.chunks(AT_ONCE) {
        let rows: Vec<_> = some.iter().map(|record| values(node, record)).collect();
        change.execute_each(PUT, &rows).await?;
    }
    change.commit().await
}

fn values(node: i64, record: &TxnRecord) -> Values {
    vec![
        Box::new(node),
        Box::new(signed(record.txn_id.0)),
        Box::new(signed(record.db_id.0)),
        Box::new(signed(record.table_id.0)),
        Box::new(record.table.db.clone()),
        Box::new(record.table.table.clone()),
        Box::new(record.label.as_str().to_owned()),
        Box::new(i64::from(record.label_is_kept)),
        Box::new(record.kind.name()),
        Box::new(record.status.name()),
        Box::new(i64::from(record.loads)),
        Box::new(signed(record.rows)),
        Box::new(signed(record.bytes)),
        Box::new(record.prepared_at_ms),
        Box::new(record.precommitted_at_ms),
        Box::new(record.finished_at_ms),
        // It may quote a value of a load. PostgreSQL has no text with a zero byte.
        Box::new(record.reason.replace('\0', "\u{fffd}")),
        Box::new(record.attachment.as_ref().map(|attachment| attachment.bytes().to_vec())),
    ]
}

pub(super) async fn kept(link: &Link, node: &str) -> Sql<Vec<TxnRecord>> {
    let held = link.held().await?;
    let rows = held
        .session()?
        .rows(
            "SELECT * FROM transactions WHERE node = (SELECT number FROM nodes WHERE id = $1) AND label_is_kept <> 0 \
             AND status <> 'ABORTED' ORDER BY txn_id",
            &[&node],
        )
        .await?;
    rows.iter().map(read).collect()
}

pub(super) async fn freed(link: &Link, node: &str) -> Sql<Vec<TxnId>> {
    let held = link.held().await?;
    let rows = held
        .session()?
        .rows(
            "SELECT txn_id FROM transactions WHERE node = (SELECT number FROM nodes WHERE id = $1) \
             AND label_is_kept = 0 ORDER BY txn_id",
            &[&node],
        )
        .await?;
    rows.iter().map(|row| unsigned(row, "txn_id").map(TxnId)).collect()
}

pub(super) async fn by_id(link: &Link, node: &str, txn: TxnId) -> Sql<Option<TxnRecord>> {
    let held = link.held().await?;
    let row = held
        .session()?
        .row_if_any(
            "SELECT * FROM transactions WHERE node = (SELECT number FROM nodes WHERE id = $1) AND txn_id = $2",
            &[&node, &signed(txn.0)],
        )
        .await?;
    row.as_ref().map(read).transpose()
}

pub(super) async fn by_label(link: &Link, db: DbId, label: &Label) -> Sql<Option<TxnRecord>> {
    let held = link.held().await?;
    let row = held
        .session()?
        .row_if_any(
            "SELECT * FROM transactions WHERE database_id = $1 AND label = $2 \
             ORDER BY status = 'ABORTED', prepared_at_ms DESC, txn_id DESC LIMIT 1",
            &[&signed(db.0), &label.as_str()],
        )
        .await?;
    row.as_ref().map(read).transpose()
}

pub(super) async fn recent(link: &Link, db: DbId, limit: u32) -> Sql<Vec<TxnRecord>> {
    let held = link.held().await?;
    let rows = held
        .session()?
        .rows(
            "SELECT * FROM transactions WHERE database_id = $1 ORDER BY prepared_at_ms DESC, txn_id DESC LIMIT $2",
            &[&signed(db.0), &i64::from(limit)],
        )
        .await?;
    rows.iter().map(read).collect()
}

pub(super) async fn purge(link: &Link, node: &str, finished_before_ms: i64, keep_max: u64) -> Sql<u64> {
    let change = link.begin().await?;
    let number = change.row_if_any("SELECT number FROM nodes WHERE id = $1", &[&node]).await?;
    let Some(number) = number else {
        change.undo().await?;
        return Ok(0);
    };
    let node: i64 = number.try_get(0)?;
    let old = change
        .execute(
            "DELETE FROM transactions WHERE node = $1 AND finished_at_ms < $2",
            &[&node, &finished_before_ms],
        )
        .await?;
    let above = change
        .execute(
            "DELETE FROM transactions WHERE node = $1 AND txn_id IN (SELECT txn_id FROM transactions WHERE node = $1 \
             AND finished_at_ms IS NOT NULL ORDER BY finished_at_ms DESC, txn_id DESC OFFSET $2)",
            &[&node, &signed(keep_max)],
        )
        .await?;
    change.commit().await?;
    Ok(old + above)
}

fn read(row: &Row) -> Sql<TxnRecord> {
    let kind: String = row.try_get("kind")?;
    let status: String = row.try_get("status")?;
    let attachment: Option<Vec<u8>> = row.try_get("attachment")?;
    Ok(TxnRecord {
        txn_id: TxnId(unsigned(row, "txn_id")?),
        db_id: DbId(unsigned(row, "database_id")?),
        table_id: TableId(unsigned(row, "table_id")?),
        table: TableRef { db: row.try_get("database_name")?, table: row.try_get("table_name")? },
        label: Label::from_storage(row.try_get("label")?),
        label_is_kept: unsigned(row, "label_is_kept")? != 0,
        kind: TransactionKind::parse(&kind).ok_or_else(|| unknown("kind", &kind))?,
        status: crate::transactions::status_of(&status).ok_or_else(|| unknown("status", &status))?,
        loads: u32::try_from(unsigned(row, "loads")?).unwrap_or(u32::MAX),
        rows: unsigned(row, "row_count")?,
        bytes: unsigned(row, "bytes")?,
        prepared_at_ms: row.try_get("prepared_at_ms")?,
        precommitted_at_ms: row.try_get("precommitted_at_ms")?,
        finished_at_ms: row.try_get("finished_at_ms")?,
        reason: row.try_get("reason")?,
        attachment: attachment.map(Attachment::from_storage),
    })
}

fn unknown(what: &str, value: &str) -> PgError {
    PgError::Corrupt {
        what: format!("a transaction with the {what} '{value}'"),
        reason: "it is unknown".to_owned(),
    }
}
