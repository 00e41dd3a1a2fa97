//! Changes of the visible state, each checked against a revision.

use super::errors::Sql;
use super::link::{Link, Session};
use super::{jobs, recycled, signed};
use crate::definition;
use crate::jobs::JobRecord;
use crate::store::{Applied, Operation, Revision};
use crate::users::User;
use tributary_types::{DbId, PasswordHash, SourceId, TableDef, TableId, ViewDef};

pub(super) async fn apply(link: &Link, at: Revision, operation: &Operation) -> Sql<Applied> {
    let change = link.begin().await?;
    let advance = "UPDATE revision SET number = number + 1 WHERE number = $1";
    if change.execute(advance, &[&signed(at.0)]).await? == 0 {
        change.undo().await?;
        return Ok(Applied::Stale);
    }
    make(&change, operation).await?;
    change.commit().await?;
    Ok(Applied::Made)
}

async fn make(change: &Session, operation: &Operation) -> Sql<()> {
    match operation {
        Operation::CreateDatabase { id, name } => insert_database(change, *id, name).await?,
        Operation::DropDatabase { id, .. } => delete_database(change, *id).await?,
        Operation::CreateTable { def, made_at_ms } => insert_table(change, def, *made_at_ms).await?,
        Operation::ReplaceTable { def, made_at_ms } => update_table(change, def, *made_at_ms).await?,
        Operation::RenameTables { tables } => {
            // Names are unique at each step, so all old ones go first.
            for (def, _) in tables {
                put_definition(change, def, &name_between(def.id)).await?;
            }
            for (def, made_at_ms) in tables {
                update_table(change, def, *made_at_ms).await?;
            }
        }
        Operation::DropTable(def) => delete_table(change, def.id).await?,
        Operation::RecycleTable(table) => recycled::put_table(change, table).await?,
        Operation::RecycleDatabase { database, tables, dropped } => {
            for def in dropped {
                delete_table(change, def.id).await?;
            }
            recycled::put_database(change, database, tables).await?;
        }
        Operation::FinishChange { .. } => finish_change(change, operation).await?,
        Operation::RecoverTable { def, made_at_ms } => {
            recycled::forget_table(change, def.id).await?;
            update_table(change, def, *made_at_ms).await?;
        }
        Operation::RecoverDatabase { id, name, tables, left, views } => {
            recycled::recover_database(change, *id, name).await?;
            for def in tables {
                recycled::forget_table(change, def.id).await?;
                put_definition(change, def, &def.name).await?;
            }
            for table in left {
                recycled::redefine(change, table).await?;
            }
            for view in views {
                put_view(change, view).await?;
            }
        }
        Operation::ErasePartition { table, id } => recycled::forget_partition(change, *table, *id).await?,
        Operation::PutView(view) => put_view(change, view).await?,
        Operation::DropView(view) => {
            let gone = "DELETE FROM views WHERE database_id = $1 AND name = $2";
            change.execute(gone, &[&signed(view.db_id.0), &view.name]).await?;
        }
        Operation::CreateUser(_)
        | Operation::ChangeUser(_)
        | Operation::DropUser { .. }
        | Operation::PutRole(_)
        | Operation::DropRole { .. } => apply_to_accounts(change, operation).await?,
    }
    Ok(())
}

/// Replaces definitions and ends the record of their change; any other operation changes nothing.
async fn finish_change(change: &Session, operation: &Operation) -> Sql<()> {
    let Operation::FinishChange { change: id, node, record, tables, dropped, recovered } = operation else {
        return Ok(());
    };
    for (def, made_at_ms) in tables {
        update_table(change, def, *made_at_ms).await?;
    }
    for partition in dropped {
        recycled::put_partition(change, partition).await?;
    }
    if let Some((def, _)) = tables.first() {
        for partition in recovered {
            recycled::forget_partition(change, def.id, *partition).await?;
        }
        put_last_change(change, def.id, *id).await?;
    }
    match record {
        Some(definition) => {
            jobs::put_within(change, node, &JobRecord { id: *id, definition: definition.clone() }).await
        }
        None => jobs::delete_within(change, node, *id).await,
    }
}

/// Makes a change of users and roles; any other changes nothing.
async fn apply_to_accounts(change: &Session, operation: &Operation) -> Sql<()> {
    match operation {
        Operation::CreateUser(user) => {
            let put = "INSERT INTO users (name, host, password_hash, salted_hash, definition) VALUES ($1, $2, $3, $4, $5)";
            let salted = user.password.salted.as_ref().map(ToString::to_string);
            let (hash, account) = (bytes(user.password.native), definition::of_account(&user.account)?);
            change.execute(put, &[&user.name, &user.host, &hash, &salted, &account]).await?;
        }
        Operation::ChangeUser(user) => change_user(change, user).await?,
        Operation::DropUser { name, host } => {
            change.execute("DELETE FROM users WHERE name = $1 AND host = $2", &[name, host]).await?;
        }
        Operation::PutRole(role) => {
            let put = "INSERT INTO roles (name, definition) VALUES ($1, $2) \
                 ON CONFLICT (name) DO UPDATE SET definition = excluded.definition";
            change.execute(put, &[&role.name, &definition::of_role(role)?]).await?;
        }
        Operation::DropRole { name, users } => {
            change.execute("DELETE FROM roles WHERE name = $1", &[name]).await?;
            for user in users {
                change_user(change, user).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn bytes(hash: PasswordHash) -> Option<Vec<u8>> {
    hash.0.map(|hash| hash.to_vec())
}

async fn change_user(change: &Session, user: &User) -> Sql<()> {
    let put = "UPDATE users SET password_hash = $1, salted_hash = $2, definition = $3 WHERE name = $4 AND host = $5";
    let salted = user.password.salted.as_ref().map(ToString::to_string);
    let (hash, account) = (bytes(user.password.native), definition::of_account(&user.account)?);
    change.execute(put, &[&hash, &salted, &account, &user.name, &user.host]).await.map(drop)
}

async fn insert_database(change: &Session, id: DbId, name: &str) -> Sql<()> {
    let id = signed(id.0);
    change.execute("INSERT INTO databases (id, name) VALUES ($1, $2)", &[&id, &name]).await?;
    change.execute("UPDATE next_database_id SET id = greatest(id, $1::bigint + 1)", &[&id]).await.map(drop)
}

async fn delete_database(change: &Session, id: DbId) -> Sql<()> {
    for statement in [
        "INSERT INTO garbage (location, table_id) SELECT location, id FROM tables WHERE database_id = $1 \
         ON CONFLICT (location) DO UPDATE SET table_id = excluded.table_id",
        "DELETE FROM tables WHERE database_id = $1",
        "DELETE FROM views WHERE database_id = $1",
        "DELETE FROM databases WHERE id = $1",
    ] {
        change.execute(statement, &[&signed(id.0)]).await?;
    }
    Ok(())
}

async fn insert_table(change: &Session, def: &TableDef, made_at_ms: Option<i64>) -> Sql<()> {
    let put = "INSERT INTO tables (id, database_id, name, location, definition) VALUES ($1, $2, $3, $4, $5)";
    let (id, database) = (signed(def.id.0), signed(def.db_id.0));
    change.execute(put, &[&id, &database, &def.name, &def.location, &definition::of_table(def)?]).await?;
    put_schema(change, def, made_at_ms).await?;
    change.execute("DELETE FROM garbage WHERE location = $1", &[&def.location]).await.map(drop)
}

/// Inserts the view in place of the ones of its name and its id.
async fn put_view(change: &Session, view: &ViewDef) -> Sql<()> {
    let (id, database) = (signed(view.id.0), signed(view.db_id.0));
    let gone = "DELETE FROM views WHERE id = $1 OR (database_id = $2 AND name = $3)";
    change.execute(gone, &[&id, &database, &view.name]).await?;
    let put = "INSERT INTO views (id, database_id, name, definition) VALUES ($1, $2, $3, $4)";
    change.execute(put, &[&id, &database, &view.name, &definition::of_view(view)?]).await.map(drop)
}

async fn update_table(change: &Session, def: &TableDef, made_at_ms: Option<i64>) -> Sql<()> {
    put_definition(change, def, &def.name).await?;
    put_schema(change, def, made_at_ms).await
}

/// Keeps the definition under a name, which is another than its own while the table is recycled.
pub(super) async fn put_definition(change: &Session, def: &TableDef, name: &str) -> Sql<()> {
    let put = "UPDATE tables SET name = $1, location = $2, definition = $3 WHERE id = $4";
    change
        .execute(put, &[&name, &def.location, &definition::of_table(def)?, &signed(def.id.0)])
        .await
        .map(drop)
}

/// A name that no table can have.
fn name_between(id: TableId) -> String {
    format!("/{id}")
}

async fn put_last_change(session: &Session, id: TableId, change: SourceId) -> Sql<()> {
    let put = "UPDATE tables SET last_change = $1 WHERE id = $2";
    session.execute(put, &[&signed(change.0), &signed(id.0)]).await.map(drop)
}

async fn put_schema(change: &Session, def: &TableDef, made_at_ms: Option<i64>) -> Sql<()> {
    let put = "INSERT INTO schemas (table_id, version, definition, made_at_ms) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (table_id, version) DO UPDATE SET definition = excluded.definition, made_at_ms = excluded.made_at_ms";
    let (id, version) = (signed(def.id.0), i64::from(def.schema.version.0));
    change.execute(put, &[&id, &version, &definition::of_schema(&def.schema)?, &made_at_ms]).await.map(drop)
}

async fn delete_table(change: &Session, id: TableId) -> Sql<()> {
    for statement in [
        "INSERT INTO garbage (location, table_id) SELECT location, id FROM tables WHERE id = $1 \
         ON CONFLICT (location) DO UPDATE SET table_id = excluded.table_id",
        "DELETE FROM tables WHERE id = $1",
    ] {
        change.execute(statement, &[&signed(id.0)]).await?;
    }
    Ok(())
}
