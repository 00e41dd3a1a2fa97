//! Jobs and positions of sources.

use super::errors::Sql;
use super::link::{Link, Session};
use super::{number_of, signed, unsigned};
use crate::jobs::{JobRecord, PositionRecord};
use tokio_postgres::Row;
use tributary_types::{Attachment, SourceId, TxnId};

pub(super) async fn put(link: &Link, node: &str, job: &JobRecord) -> Sql<()> {
    let change = link.begin().await?;
    put_within(&change, node, job).await?;
    change.commit().await
}

pub(super) async fn put_within(session: &Session, node: &str, job: &JobRecord) -> Sql<()> {
    let node = number_of(session, node).await?;
    let put = "INSERT INTO jobs (node, id, definition) VALUES ($1, $2, $3) \
         ON CONFLICT (node, id) DO UPDATE SET definition = excluded.definition";
    session.execute(put, &[&node, &signed(job.id.0), &job.definition]).await.map(drop)
}

pub(super) async fn all(link: &Link, node: &str) -> Sql<Vec<JobRecord>> {
    let held = link.held().await?;
    let rows = held
        .session()?
        .rows(
            "SELECT id, definition FROM jobs WHERE node = (SELECT number FROM nodes WHERE id = $1) ORDER BY id",
            &[&node],
        )
        .await?;
    let read = |row: &Row| {
        Ok(JobRecord { id: SourceId(unsigned(row, "id")?), definition: row.try_get("definition")? })
    };
    rows.iter().map(read).collect()
}

pub(super) async fn delete(link: &Link, node: &str, id: SourceId) -> Sql<()> {
    let change = link.begin().await?;
    delete_within(&change, node, id).await?;
    change.commit().await
}

pub(super) async fn delete_within(session: &Session, node: &str, id: SourceId) -> Sql<()> {
    let node = number_of(session, node).await?;
    for statement in [
        "DELETE FROM jobs WHERE node = $1 AND id = $2",
        "DELETE FROM positions WHERE node = $1 AND source = $2",
    ] {
        session.execute(statement, &[&node, &signed(id.0)]).await?;
    }
    Ok(())
}

pub(super) async fn put_positions(link: &Link, node: &str, positions: &[PositionRecord]) -> Sql<()> {
    let change = link.begin().await?;
    let node = number_of(&change, node).await?;
    let put = "INSERT INTO positions (node, source, txn_id, position) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (node, source) DO UPDATE SET txn_id = excluded.txn_id, position = excluded.position";
    for record in positions {
        let position = record.position.bytes();
        change.execute(put, &[&node, &signed(record.source.0), &signed(record.txn.0), &position]).await?;
    }
    change.commit().await
}

pub(super) async fn positions(link: &Link, node: &str) -> Sql<Vec<PositionRecord>> {
    let held = link.held().await?;
    let rows = held
        .session()?
        .rows(
            "SELECT source, txn_id, position FROM positions WHERE node = (SELECT number FROM nodes WHERE id = $1) \
             ORDER BY source",
            &[&node],
        )
        .await?;
    let read = |row: &Row| {
        Ok(PositionRecord {
            source: SourceId(unsigned(row, "source")?),
            txn: TxnId(unsigned(row, "txn_id")?),
            position: Attachment::from_storage(row.try_get("position")?),
        })
    };
    rows.iter().map(read).collect()
}
