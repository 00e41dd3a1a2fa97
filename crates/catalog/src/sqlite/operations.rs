//! Changes of the visible state, each checked against a revision.

use super::change::Change;
use super::{Sql, signed};
use super::{jobs, recycled};
use crate::definition;
use crate::jobs::JobRecord;
use crate::store::{Applied, Operation, Revision};
use crate::users::User;
use sqlx::query;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use tributary_types::{DbId, PasswordHash, SourceId, TableDef, TableId, ViewDef};

pub(super) async fn apply(pool: &SqlitePool, at: Revision, operation: &Operation) -> Sql<Applied> {
    let mut change = Change::begin(pool).await?;
    let is_at = query("UPDATE revision SET number = number + 1 WHERE number = ?")
        .bind(signed(at.0))
        .execute(&mut *change)
        .await?;
    if is_at.rows_affected() == 0 {
        return Ok(Applied::Stale);
    }
    match operation {
        Operation::CreateDatabase { id, name } => insert_database(&mut change, *id, name).await?,
        Operation::DropDatabase { id, .. } => delete_database(&mut change, *id).await?,
        Operation::CreateTable { def, made_at_ms } => insert_table(&mut change, def, *made_at_ms).await?,
        Operation::ReplaceTable { def, made_at_ms } => update_table(&mut change, def, *made_at_ms).await?,
        Operation::RenameTables { tables } => {
            // Names are unique at each step, so all old ones go first.
            for (def, _) in tables {
                put_definition(&mut change, def, &name_between(def.id)).await?;
            }
            for (def, made_at_ms) in tables {
                update_table(&mut change, def, *made_at_ms).await?;
            }
        }
        Operation::DropTable(def) => delete_table(&mut change, def.id).await?,
        Operation::RecycleTable(table) => recycled::put_table(&mut change, table).await?,
        Operation::RecycleDatabase { database, tables, dropped } => {
            for def in dropped {
                delete_table(&mut change, def.id).await?;
            }
            recycled::put_database(&mut change, database, tables).await?;
        }
        Operation::FinishChange { change: id, node, record, tables, dropped, recovered } => {
            for (def, made_at_ms) in tables {
                update_table(&mut change, def, *made_at_ms).await?;
            }
            for partition in dropped {
                recycled::put_partition(&mut change, partition).await?;
            }
            if let Some((def, _)) = tables.first() {
                for partition in recovered {
                    recycled::forget_partition(&mut change, def.id, *partition).await?;
                }
                put_last_change(&mut change, def.id, *id).await?;
            }
            match record {
                Some(definition) => {
                    let job = JobRecord { id: *id, definition: definition.clone() };
                    jobs::put_within(&mut change, node, &job).await?;
                }
                None => jobs::delete_within(&mut change, node, *id).await?,
            }
        }
        Operation::RecoverTable { def, made_at_ms } => {
            recycled::forget_table(&mut change, def.id).await?;
            update_table(&mut change, def, *made_at_ms).await?;
        }
        Operation::RecoverDatabase { id, name, tables, left, views } => {
            recycled::recover_database(&mut change, *id, name).await?;
            for def in tables {
                recycled::forget_table(&mut change, def.id).await?;
                put_definition(&mut change, def, &def.name).await?;
            }
            for table in left {
                recycled::redefine(&mut change, table).await?;
            }
            for view in views {
                put_view(&mut change, view).await?;
            }
        }
        Operation::ErasePartition { table, id } => {
            recycled::forget_partition(&mut change, *table, *id).await?;
        }
        Operation::PutView(view) => put_view(&mut change, view).await?,
        Operation::DropView(view) => {
            query("DELETE FROM views WHERE database_id = ? AND name = ?")
                .bind(signed(view.db_id.0))
                .bind(&view.name)
                .execute(&mut *change)
                .await?;
        }
        Operation::CreateUser(_)
        | Operation::ChangeUser(_)
        | Operation::DropUser { .. }
        | Operation::PutRole(_)
        | Operation::DropRole { .. } => apply_to_accounts(&mut change, operation).await?,
    }
    change.commit().await?;
    Ok(Applied::Made)
}

/// Makes a change of users and roles; any other changes nothing.
async fn apply_to_accounts(connection: &mut SqliteConnection, operation: &Operation) -> Sql<()> {
    match operation {
        Operation::CreateUser(user) => {
            query("INSERT INTO users (name, host, password_hash, salted_hash, definition) VALUES (?, ?, ?, ?, ?)")
                .bind(&user.name)
                .bind(&user.host)
                .bind(bytes(user.password.native))
                .bind(user.password.salted.as_ref().map(ToString::to_string))
                .bind(definition::of_account(&user.account).map_err(not_written)?)
                .execute(&mut *connection)
                .await?;
        }
        Operation::ChangeUser(user) => change_user(connection, user).await?,
        Operation::DropUser { name, host } => {
            query("DELETE FROM users WHERE name = ? AND host = ?")
                .bind(name)
                .bind(host)
                .execute(&mut *connection)
                .await?;
        }
        Operation::PutRole(role) => {
            query("INSERT OR REPLACE INTO roles (name, definition) VALUES (?, ?)")
                .bind(&role.name)
                .bind(definition::of_role(role).map_err(not_written)?)
                .execute(&mut *connection)
                .await?;
        }
        Operation::DropRole { name, users } => {
            query("DELETE FROM roles WHERE name = ?").bind(name).execute(&mut *connection).await?;
            for user in users {
                change_user(connection, user).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn not_written(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(error.into())
}

fn bytes(hash: PasswordHash) -> Option<Vec<u8>> {
    hash.0.map(|hash| hash.to_vec())
}

async fn change_user(connection: &mut SqliteConnection, user: &User) -> Sql<()> {
    query("UPDATE users SET password_hash = ?, salted_hash = ?, definition = ? WHERE name = ? AND host = ?")
        .bind(bytes(user.password.native))
        .bind(user.password.salted.as_ref().map(ToString::to_string))
        .bind(definition::of_account(&user.account).map_err(not_written)?)
        .bind(&user.name)
        .bind(&user.host)
        .execute(connection)
        .await?;
    Ok(())
}

async fn insert_database(connection: &mut SqliteConnection, id: DbId, name: &str) -> Sql<()> {
    query("INSERT INTO databases (id, name) VALUES (?, ?)")
        .bind(signed(id.0))
        .bind(name)
        .execute(connection)
        .await?;
    Ok(())
}

async fn delete_database(connection: &mut SqliteConnection, id: DbId) -> Sql<()> {
    for statement in [
        "INSERT OR REPLACE INTO garbage (location, table_id) SELECT location, id FROM tables WHERE database_id = ?",
        "DELETE FROM tables WHERE database_id = ?",
        "DELETE FROM views WHERE database_id = ?",
        "DELETE FROM databases WHERE id = ?",
    ] {
        query(statement).bind(signed(id.0)).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn insert_table(connection: &mut SqliteConnection, def: &TableDef, made_at_ms: Option<i64>) -> Sql<()> {
    query("INSERT INTO tables (id, database_id, name, location, definition) VALUES (?, ?, ?, ?, ?)")
        .bind(signed(def.id.0))
        .bind(signed(def.db_id.0))
        .bind(&def.name)
        .bind(&def.location)
        .bind(definition::of_table(def).map_err(not_written)?)
        .execute(&mut *connection)
        .await?;
    put_schema(connection, def, made_at_ms).await?;
    query("DELETE FROM garbage WHERE location = ?").bind(&def.location).execute(connection).await?;
    Ok(())
}

async fn put_view(connection: &mut SqliteConnection, view: &ViewDef) -> Sql<()> {
    query("INSERT OR REPLACE INTO views (id, database_id, name, definition) VALUES (?, ?, ?, ?)")
        .bind(signed(view.id.0))
        .bind(signed(view.db_id.0))
        .bind(&view.name)
        .bind(definition::of_view(view).map_err(not_written)?)
        .execute(connection)
        .await?;
    Ok(())
}

async fn update_table(connection: &mut SqliteConnection, def: &TableDef, made_at_ms: Option<i64>) -> Sql<()> {
    put_definition(connection, def, &def.name).await?;
    put_schema(connection, def, made_at_ms).await
}

/// Keeps the definition under a name, which is another than its own while the table is recycled.
pub(super) async fn put_definition(connection: &mut SqliteConnection, def: &TableDef, name: &str) -> Sql<()> {
    query("UPDATE tables SET name = ?, location = ?, definition = ? WHERE id = ?")
        .bind(name)
        .bind(&def.location)
        .bind(definition::of_table(def).map_err(not_written)?)
        .bind(signed(def.id.0))
        .execute(connection)
        .await?;
    Ok(())
}

/// A name that no table can have.
fn name_between(id: TableId) -> String {
    format!("/{id}")
}

async fn put_last_change(connection: &mut SqliteConnection, id: TableId, change: SourceId) -> Sql<()> {
    query("UPDATE tables SET last_change = ? WHERE id = ?")
        .bind(signed(change.0))
        .bind(signed(id.0))
        .execute(connection)
        .await?;
    Ok(())
}

async fn put_schema(connection: &mut SqliteConnection, def: &TableDef, made_at_ms: Option<i64>) -> Sql<()> {
    query("INSERT OR REPLACE INTO schemas (table_id, version, definition, made_at_ms) VALUES (?, ?, ?, ?)")
        .bind(signed(def.id.0))
        .bind(def.schema.version.0)
        .bind(definition::of_schema(&def.schema).map_err(not_written)?)
        .bind(made_at_ms)
        .execute(connection)
        .await?;
    Ok(())
}

async fn delete_table(connection: &mut SqliteConnection, id: TableId) -> Sql<()> {
    for statement in [
        "INSERT OR REPLACE INTO garbage (location, table_id) SELECT location, id FROM tables WHERE id = ?",
        "DELETE FROM tables WHERE id = ?",
    ] {
        query(statement).bind(signed(id.0)).execute(&mut *connection).await?;
    }
    Ok(())
}
