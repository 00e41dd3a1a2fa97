//! Loads everything, at one revision.

use super::errors::{PgError, Sql, failed_to};
use super::link::{Link, Session};
use super::unsigned;
use crate::definition;
use crate::recycled::{RecycleBin, RecycledDatabase, RecycledPartition, RecycledTable};
use crate::store::{KeptSchema, Loaded, Revision, Stored};
use crate::stored::{StoredUser, move_views};
use crate::users::{Role, User};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;
use tributary_types::{DbId, PartitionId, SourceId, TableDef, TableId, ViewDef};

pub(super) async fn all(link: &Link) -> Stored<Loaded> {
    let failed = failed_to("load itself", &link.place());
    let mut held = link.held().await.map_err(&failed)?;
    let session = held.session().map_err(&failed)?;
    match within(session).await {
        Ok((mut loaded, users)) => {
            loaded.users = users.into_iter().map(StoredUser::read).collect::<Stored<_>>()?;
            move_views(&mut loaded);
            Ok(loaded)
        }
        Err(error) => {
            held.discard();
            Err(failed(error))
        }
    }
}

/// Reads in one transaction, so that nothing changes between its queries.
async fn within(session: &Session) -> Sql<(Loaded, Vec<StoredUser>)> {
    session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let (recycled_tables, tables) = tables(session).await?;
    let loaded = Loaded {
        revision: revision(session).await?,
        next_db_id: DbId(
            session.row("SELECT id FROM next_database_id", &[]).await?.try_get::<_, i64>(0)? as u64
        ),
        databases: databases(session).await?,
        tables,
        last_changes: last_changes(session).await?,
        schemas: schemas(session).await?,
        views: views(session).await?,
        users: Vec::<User>::new(),
        roles: roles(session).await?,
        recycled: RecycleBin {
            databases: recycled_databases(session).await?,
            tables: recycled_tables,
            partitions: recycled_partitions(session).await?,
        },
    };
    let users = users(session).await?;
    session.batch("COMMIT").await?;
    Ok((loaded, users))
}

pub(super) async fn revision(session: &Session) -> Sql<Revision> {
    Ok(Revision(session.row("SELECT number FROM revision", &[]).await?.try_get::<_, i64>(0)? as u64))
}

/// For `map_err`: a text that can't be read.
fn corrupt(what: String) -> impl FnOnce(serde_json::Error) -> PgError {
    move |error| PgError::Corrupt { what, reason: error.to_string() }
}

async fn databases(session: &Session) -> Sql<Vec<(DbId, String)>> {
    let rows = session
        .rows(
            "SELECT id, name FROM databases WHERE id NOT IN (SELECT database_id FROM recycled_databases) ORDER BY id",
            &[],
        )
        .await?;
    rows.iter().map(|row| Ok((DbId(unsigned(row, "id")?), row.try_get("name")?))).collect()
}

type Tables = (BTreeMap<TableId, Arc<RecycledTable>>, Vec<TableDef>);

/// The recycled tables, and the others.
async fn tables(session: &Session) -> Sql<Tables> {
    let rows = session
        .rows(
            "SELECT id, definition, dropped_at_ms, bytes, with_database \
             FROM tables LEFT JOIN recycled_tables ON table_id = id ORDER BY id",
            &[],
        )
        .await?;
    let (mut recycled, mut present) = (BTreeMap::new(), Vec::new());
    for row in rows {
        let id: i64 = row.try_get("id")?;
        let text: &str = row.try_get("definition")?;
        let def = definition::table(text).map_err(corrupt(format!("the definition of table {id}")))?;
        let dropped_at_ms: Option<i64> = row.try_get("dropped_at_ms")?;
        let Some(dropped_at_ms) = dropped_at_ms else {
            present.push(def);
            continue;
        };
        let (bytes, with_database) = (unsigned(&row, "bytes")?, unsigned(&row, "with_database")? != 0);
        let id = def.id;
        recycled
            .insert(id, Arc::new(RecycledTable { def: Arc::new(def), dropped_at_ms, bytes, with_database }));
    }
    Ok((recycled, present))
}

async fn last_changes(session: &Session) -> Sql<Vec<(TableId, SourceId)>> {
    let rows = session.rows("SELECT id, last_change FROM tables WHERE last_change > 0", &[]).await?;
    let read = |row: &Row| Ok((TableId(unsigned(row, "id")?), SourceId(unsigned(row, "last_change")?)));
    rows.iter().map(read).collect()
}

async fn recycled_databases(session: &Session) -> Sql<BTreeMap<DbId, Arc<RecycledDatabase>>> {
    let rows = session.rows("SELECT database_id, name, dropped_at_ms FROM recycled_databases", &[]).await?;
    let read = |row: &Row| {
        let id = DbId(unsigned(row, "database_id")?);
        let (name, dropped_at_ms) = (row.try_get("name")?, row.try_get("dropped_at_ms")?);
        Ok((id, Arc::new(RecycledDatabase { id, name, dropped_at_ms, views: Vec::new() })))
    };
    rows.iter().map(read).collect()
}

async fn recycled_partitions(
    session: &Session,
) -> Sql<BTreeMap<(TableId, PartitionId), Arc<RecycledPartition>>> {
    let rows = session
        .rows(
            "SELECT table_id, partition_id, name, dropped_at_ms, bytes, definition FROM recycled_partitions",
            &[],
        )
        .await?;
    let read = |row: &Row| {
        let partition = RecycledPartition {
            table: TableId(unsigned(row, "table_id")?),
            id: PartitionId(unsigned(row, "partition_id")?),
            name: row.try_get("name")?,
            dropped_at_ms: row.try_get("dropped_at_ms")?,
            bytes: unsigned(row, "bytes")?,
            definition: row.try_get("definition")?,
        };
        Ok(((partition.table, partition.id), Arc::new(partition)))
    };
    rows.iter().map(read).collect()
}

async fn views(session: &Session) -> Sql<Vec<ViewDef>> {
    let rows = session.rows("SELECT name, definition FROM views ORDER BY id", &[]).await?;
    let read = |row: &Row| {
        let (name, text): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        definition::view(text).map_err(corrupt(format!("the definition of the view {name}")))
    };
    rows.iter().map(read).collect()
}

async fn schemas(session: &Session) -> Sql<Vec<(TableId, KeptSchema)>> {
    let rows = session
        .rows("SELECT table_id, version, definition, made_at_ms FROM schemas ORDER BY table_id, version", &[])
        .await?;
    let read = |row: &Row| {
        let (id, version, text): (i64, i64, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let schema = definition::schema(text).map_err(corrupt(format!("schema {version} of table {id}")))?;
        Ok((TableId(id as u64), KeptSchema { schema: Arc::new(schema), made_at_ms: row.try_get(3)? }))
    };
    rows.iter().map(read).collect()
}

async fn users(session: &Session) -> Sql<Vec<StoredUser>> {
    let rows = session
        .rows("SELECT name, host, password_hash, salted_hash, definition FROM users ORDER BY name, host", &[])
        .await?;
    let read = |row: &Row| {
        Ok(StoredUser {
            name: row.try_get(0)?,
            host: row.try_get(1)?,
            native: row.try_get(2)?,
            salted: row.try_get(3)?,
            account: row.try_get(4)?,
        })
    };
    rows.iter().map(read).collect()
}

async fn roles(session: &Session) -> Sql<Vec<Role>> {
    let rows = session.rows("SELECT name, definition FROM roles ORDER BY name", &[]).await?;
    let read = |row: &Row| {
        let (name, text): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        definition::role(text).map_err(corrupt(format!("the role {name}")))
    };
    rows.iter().map(read).collect()
}
