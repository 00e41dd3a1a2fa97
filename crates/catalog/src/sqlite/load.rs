//! Reading all of it, as it is at one revision.

use super::change::Change;
use super::{Sql, corrupt, failed_to, unsigned};
use crate::definition;
use crate::store::{KeptSchema, Loaded, Revision, Stored};
use crate::users::User;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{Row, query, query_as, query_scalar};
use std::sync::Arc;
use tributary_types::{DbId, PasswordHash, TableDef, TableId, ViewDef};

pub(super) async fn all(pool: &SqlitePool) -> Stored<Loaded> {
    // One transaction, so that nothing changes between its queries.
    let mut transaction = Change::begin(pool).await.map_err(failed_to("begin to read"))?;
    let loaded = Loaded {
        revision: revision(&mut transaction).await.map_err(failed_to("read its revision"))?,
        next_db_id: next_db_id(&mut transaction).await.map_err(failed_to("read databases"))?,
        databases: databases(&mut transaction).await.map_err(failed_to("read databases"))?,
        tables: tables(&mut transaction).await?,
        schemas: schemas(&mut transaction).await?,
        views: views(&mut transaction).await?,
        users: users(&mut transaction).await.map_err(failed_to("read users"))?,
    };
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
    query("SELECT id, name FROM databases ORDER BY id").try_map(read).fetch_all(connection).await
}

async fn tables(connection: &mut SqliteConnection) -> Stored<Vec<TableDef>> {
    let rows: Vec<(i64, String)> = query_as("SELECT id, definition FROM tables ORDER BY id")
        .fetch_all(connection)
        .await
        .map_err(failed_to("read tables"))?;
    let read = |(id, text): &(i64, String)| {
        definition::table(text).map_err(corrupt(format!("the definition of table {id}")))
    };
    rows.iter().map(read).collect()
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

async fn users(connection: &mut SqliteConnection) -> Sql<Vec<User>> {
    let read = |row: SqliteRow| {
        let hash: Option<Vec<u8>> = row.try_get("password_hash")?;
        let password_hash = hash
            .map(|hash| {
                hash.try_into().map_err(|_| sqlx::Error::Decode("a password hash has 20 bytes".into()))
            })
            .transpose()?;
        Ok(User {
            name: row.try_get("name")?,
            host: row.try_get("host")?,
            password_hash: PasswordHash(password_hash),
        })
    };
    query("SELECT name, host, password_hash FROM users ORDER BY name, host")
        .try_map(read)
        .fetch_all(connection)
        .await
}
