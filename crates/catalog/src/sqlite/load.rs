//! Loads everything, at one revision.

use super::change::Change;
use super::{Sql, failed_to, unsigned};
use crate::definition;
use crate::recycled::{RecycleBin, RecycledDatabase, RecycledPartition, RecycledTable};
use crate::store::{KeptSchema, Loaded, Revision, Stored};
use crate::stored::{StoredUser, corrupt, move_views};
use crate::users::{Role, User};
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{Row, query, query_as, query_scalar};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::{DbId, PartitionId, SourceId, TableDef, TableId, ViewDef};

pub(super) async fn all(pool: &SqlitePool) -> Stored<Loaded> {
    // One transaction, so that nothing changes between its queries.
    let mut transaction = Change::begin(pool).await.map_err(failed_to("begin to read"))?;
    let (recycled_tables, tables) = tables(&mut transaction).await?;
    let mut loaded = Loaded {
        revision: revision(&mut transaction).await.map_err(failed_to("read its revision"))?,
        next_db_id: next_db_id(&mut transaction).await.map_err(failed_to("read databases"))?,
        databases: databases(&mut transaction).await.map_err(failed_to("read databases"))?,
        tables,
        last_changes: last_changes(&mut transaction)
            .await
            .map_err(failed_to("read the tables' last changes"))?,
        schemas: schemas(&mut transaction).await?,
        views: views(&mut transaction).await?,
        users: users(&mut transaction).await?,
        roles: roles(&mut transaction).await?,
        recycled: RecycleBin {
            databases: recycled_databases(&mut transaction)
                .await
                .map_err(failed_to("read dropped databases"))?,
            tables: recycled_tables,
            partitions: recycled_partitions(&mut transaction)
                .await
                .map_err(failed_to("read dropped partitions"))?,
        },
    };
    move_views(&mut loaded);
    transaction.commit().await.map_err(failed_to("end reading"))?;
    Ok(loaded)
}

async fn revision(connection: &mut SqliteConnection) -> Sql<Revision> {
    let number: i64 = query_scalar("SELECT number FROM revision").fetch_one(connection).await?;
    Ok(Revision(number as u64))
}

async fn next_db_id(connection: &mut SqliteConnection) -> Sql<DbId> {
    let last: Option<i64> = query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'databases'")
        .fetch_optional(connection)
        .await?;
    Ok(DbId(last.unwrap_or_default() as u64).next())
}

async fn databases(connection: &mut SqliteConnection) -> Sql<Vec<(DbId, String)>> {
    let read = |row: SqliteRow| Ok((DbId(unsigned(&row, "id")?), row.try_get("name")?));
    query("SELECT id, name FROM databases WHERE id NOT IN (SELECT database_id FROM recycled_databases) ORDER BY id").try_map(read).fetch_all(connection).await
}

type Tables = (BTreeMap<TableId, Arc<RecycledTable>>, Vec<TableDef>);

/// The recycled tables, and the others.
async fn tables(connection: &mut SqliteConnection) -> Stored<Tables> {
    type Row = (i64, String, Option<i64>, Option<i64>, Option<bool>);
    let rows: Vec<Row> = query_as(
        "SELECT id, definition, dropped_at_ms, bytes, with_database
         FROM tables LEFT JOIN recycled_tables ON table_id = id ORDER BY id",
    )
    .fetch_all(connection)
    .await
    .map_err(failed_to("read tables"))?;
    let (mut recycled, mut present) = (BTreeMap::new(), Vec::new());
    for (id, text, dropped_at_ms, bytes, with_database) in rows {
        let def = definition::table(&text).map_err(corrupt(format!("the definition of table {id}")))?;
        let Some(dropped_at_ms) = dropped_at_ms else {
            present.push(def);
            continue;
        };
        let bytes = bytes.unwrap_or(0).max(0) as u64;
        let with_database = with_database.unwrap_or(false);
        let id = def.id;
        let table = RecycledTable { def: Arc::new(def), dropped_at_ms, bytes, with_database };
        recycled.insert(id, Arc::new(table));
    }
    Ok((recycled, present))
}

async fn last_changes(connection: &mut SqliteConnection) -> Sql<Vec<(TableId, SourceId)>> {
    let read =
        |row: SqliteRow| Ok((TableId(unsigned(&row, "id")?), SourceId(unsigned(&row, "last_change")?)));
    query("SELECT id, last_change FROM tables WHERE last_change > 0")
        .try_map(read)
        .fetch_all(connection)
        .await
}

async fn recycled_databases(connection: &mut SqliteConnection) -> Sql<BTreeMap<DbId, Arc<RecycledDatabase>>> {
    let read = |row: SqliteRow| {
        let id = DbId(unsigned(&row, "database_id")?);
        let (name, dropped_at_ms) = (row.try_get("name")?, row.try_get("dropped_at_ms")?);
        Ok((id, Arc::new(RecycledDatabase { id, name, dropped_at_ms, views: Vec::new() })))
    };
    let rows = query("SELECT * FROM recycled_databases").try_map(read).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}

async fn recycled_partitions(
    connection: &mut SqliteConnection,
) -> Sql<BTreeMap<(TableId, PartitionId), Arc<RecycledPartition>>> {
    let read = |row: SqliteRow| {
        let partition = RecycledPartition {
            table: TableId(unsigned(&row, "table_id")?),
            id: PartitionId(unsigned(&row, "partition_id")?),
            name: row.try_get("name")?,
            dropped_at_ms: row.try_get("dropped_at_ms")?,
            bytes: unsigned(&row, "bytes")?,
            definition: row.try_get("definition")?,
        };
        Ok(((partition.table, partition.id), Arc::new(partition)))
    };
    let rows = query("SELECT * FROM recycled_partitions").try_map(read).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}

async fn views(connection: &mut SqliteConnection) -> Stored<Vec<ViewDef>> {
    let rows: Vec<(String, String)> = query_as("SELECT name, definition FROM views ORDER BY id")
        .fetch_all(connection)
        .await
        .map_err(failed_to("read views"))?;
    let read = |(name, text): &(String, String)| {
        definition::view(text).map_err(corrupt(format!("the definition of the view {name}")))
    };
    rows.iter().map(read).collect()
}

async fn schemas(connection: &mut SqliteConnection) -> Stored<Vec<(TableId, KeptSchema)>> {
    let rows: Vec<(i64, i64, String, Option<i64>)> =
        query_as("SELECT table_id, version, definition, made_at_ms FROM schemas ORDER BY table_id, version")
            .fetch_all(connection)
            .await
            .map_err(failed_to("read schemas"))?;
    let read = |(id, version, text, made_at_ms): &(i64, i64, String, Option<i64>)| {
        let schema = definition::schema(text).map_err(corrupt(format!("schema {version} of table {id}")))?;
        Ok((TableId(*id as u64), KeptSchema { schema: Arc::new(schema), made_at_ms: *made_at_ms }))
    };
    rows.iter().map(read).collect()
}

async fn users(connection: &mut SqliteConnection) -> Stored<Vec<User>> {
    type Row = (String, String, Option<Vec<u8>>, Option<String>, String);
    let rows: Vec<Row> =
        query_as("SELECT name, host, password_hash, salted_hash, definition FROM users ORDER BY name, host")
            .fetch_all(connection)
            .await
            .map_err(failed_to("read users"))?;
    let read = |(name, host, native, salted, account): Row| {
        StoredUser { name, host, native, salted, account }.read()
    };
    rows.into_iter().map(read).collect()
}

async fn roles(connection: &mut SqliteConnection) -> Stored<Vec<Role>> {
    let rows: Vec<(String, String)> = query_as("SELECT name, definition FROM roles ORDER BY name")
        .fetch_all(connection)
        .await
        .map_err(failed_to("read roles"))?;
    let read =
        |(name, text): &(String, String)| definition::role(text).map_err(corrupt(format!("the role {name}")));
    rows.iter().map(read).collect()
}
