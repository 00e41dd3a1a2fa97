//! A catalog's entry about the node in whose state directory it is.
//!
//! A node stores its identity and the list of its logs in a file of its own: a catalog may be shared by nodes one day. Earlier
//! versions stored both here. Invariant: the mark is set once the file is durable, in the write that removes the old entries; so
//! the mark without the file means that the file is missing. Not its business: the file.

use crate::catalog::{Catalog, OLD_NODE_ID, Result};
use crate::error::CatalogError;
use crate::store::Store;

/// The id of the node whose file is durable.
pub(crate) const MARK: &str = "node_file";
const OLD_CREATED_AT_MS: &str = "node_created_at_ms";
/// One directory per line.
const OLD_WAL_DIRS: &str = "wal_dirs";

/// The location of a node's identity and the list of its logs, as far as the catalog knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEntry {
    /// No node has used the catalog, or none has got far enough to record it.
    Nowhere,
    /// In the catalog, as in earlier versions.
    Here(OldNode),
    /// In the node's own file; this is its id.
    InFile(String),
}

/// The entries of earlier versions in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldNode {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// Directories of logs; relative to the state directory if they are below it.
    pub wal_dirs: Vec<String>,
}

impl Catalog {
    /// The location of the node's identity.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if an earlier version's entry cannot be read, or [`CatalogError::Store`].
    pub async fn node_entry(&self) -> Result<NodeEntry> {
        let store = self.store();
        if let Some(id) = store.meta_get(MARK).await? {
            return Ok(NodeEntry::InFile(id));
        }
        let Some(id) = store.meta_get(OLD_NODE_ID).await? else { return Ok(NodeEntry::Nowhere) };
        let wal_dirs = store.meta_get(OLD_WAL_DIRS).await?.unwrap_or_default();
        Ok(NodeEntry::Here(OldNode {
            id,
            created_at_ms: old_created_at_ms(store).await?,
            wal_dirs: wal_dirs.lines().map(str::to_owned).collect(),
        }))
    }

    /// Records that the node's file is durable: from now on its absence is an error, and the entries of earlier versions are
    /// removed. Durable on return.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn node_is_in_file(&self, id: &str) -> Result<()> {
        self.store().meta_put(MARK, id, &[OLD_NODE_ID, OLD_CREATED_AT_MS, OLD_WAL_DIRS]).await
    }
}

async fn old_created_at_ms(store: &dyn Store) -> Result<i64> {
    let Some(text) = store.meta_get(OLD_CREATED_AT_MS).await? else { return Ok(0) };
    text.parse().map_err(|error: std::num::ParseIntError| CatalogError::Corrupt {
        what: format!("the value '{text}' of {OLD_CREATED_AT_MS}"),
        reason: error.to_string(),
    })
}
