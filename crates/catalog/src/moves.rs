//! Copies of a whole catalog from one kind of store to another.
//!
//! Invariant: a copy is compared with its original before it is used. Not its business: which of the two counts afterwards.

use crate::catalog::Result;
use crate::error::CatalogError;
use crate::node::MARK;
use crate::postgres::{Claim, PostgresOptions, PostgresStore};
use crate::sqlite::SqliteStore;
use crate::state::State;
use crate::store::Store;
use std::path::Path;

/// A catalog that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The id of the catalog in PostgreSQL.
    pub id: String,
    pub databases: usize,
    pub tables: usize,
}

/// Replaces the catalog of a database by the contents of SQLite's file, which no server may use meanwhile. The database must have
/// none, or an earlier one of the same node. The copy has a new id.
///
/// # Errors
/// Those of [`crate::Catalog::open`] and [`crate::Catalog::claim`]; [`CatalogError::Corrupt`] if the file is of another node.
pub async fn copy_to_postgres(file: &Path, to: &PostgresOptions, node: &str, host: &str) -> Result<Copied> {
    let from = SqliteStore::open(file).await?;
    if from.meta_get(MARK).await?.as_deref() != Some(node) {
        from.close().await;
        return Err(CatalogError::Corrupt {
            what: format!("the file {}", file.display()),
            reason: format!("it is not the catalog of the server {node}"),
        });
    }
    let (store, _) = PostgresStore::claim(to, &Claim { node, host, known: None }).await?;
    let id = store.fill(&from).await?;
    let outcome = compared(&from, &store, id).await;
    store.close().await;
    from.close().await;
    outcome
}

/// Writes the catalog of a database to a file of SQLite that is not there yet. The file is not durable on return.
///
/// # Errors
/// Those of [`crate::Catalog::claim`] and [`crate::Catalog::open`].
pub async fn copy_to_sqlite(from: &PostgresOptions, to: &Path, claim: &Claim<'_>) -> Result<Copied> {
    let (store, claimed) = PostgresStore::claim(from, claim).await?;
    let mut frozen = store.freeze().await?;
    frozen.save(to).await?;
    drop(frozen);
    let copy = SqliteStore::open(to).await?;
    let outcome = compared(&store, &copy, claimed.id).await;
    copy.close().await;
    store.close().await;
    outcome
}

async fn compared(one: &dyn Store, other: &dyn Store, id: String) -> Result<Copied> {
    let (left, right) = (State::new(one.load().await?), State::new(other.load().await?));
    if left != right {
        return Err(CatalogError::Corrupt {
            what: "the copy".to_owned(),
            reason: "it is not equal to its original".to_owned(),
        });
    }
    Ok(Copied { id, databases: left.databases.len(), tables: left.tables.len() })
}
