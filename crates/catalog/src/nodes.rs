//! Nodes that share a catalog, by what they say of themselves: its owner, and the nodes that only read.
//!
//! A node says it every few seconds, and the store notes when, by its own clock. Not here: who the owner is, which a claim decides
//! whatever is said here.

use crate::catalog::{Catalog, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The facts that a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSign {
    /// The node's id.
    pub name: String,
    /// It follows the tables of another.
    pub reads_only: bool,
    pub host: String,
    pub query_port: u16,
    pub http_port: u16,
    /// 0: it did not say, as nodes of before.
    #[serde(default)]
    pub webserver_port: u16,
    /// `None`: Arrow Flight SQL is off.
    pub flight_port: Option<u16>,
    pub version: String,
    /// When it was started, in milliseconds since 1970 by its own clock.
    pub since_ms: i64,
    /// How old its rows may be, in milliseconds. `None`: it does not know.
    pub rows_age_ms: Option<u64>,
    /// How other nodes call it on the port of Arrow Flight SQL. `None`: they do not.
    #[serde(default)]
    pub access: Option<NodeAccess>,
    /// It computes parts of their queries.
    #[serde(default)]
    pub computes_parts: bool,
    /// 0: it did not say.
    #[serde(default)]
    pub cpu_cores: u32,
}

/// The access of other nodes to one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAccess {
    /// It lets in who shows it. A new one at each start.
    pub token: String,
    /// The digest of its certificate. `None`: it has none, and is spoken to in clear text.
    pub certificate: Option<String>,
}

impl fmt::Debug for NodeAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeAccess").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A node that was heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardNode {
    pub sign: NodeSign,
    /// How long ago.
    pub heard: Duration,
}

impl Catalog {
    /// Says that a node lives, and returns all that were heard of in the last hour, in the order of their names. A catalog in a file has
    /// one node, which need not say anything.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`], [`crate::CatalogError::Away`]; nothing was said if the user of the database may only read.
    pub async fn say_node(&self, sign: &NodeSign) -> Result<Vec<HeardNode>> {
        self.store().say_node(sign).await
    }

    /// The nodes that were heard of in the last hour, as [`Catalog::say_node`] returns them.
    ///
    /// # Errors
    /// As [`Catalog::say_node`].
    pub async fn heard_nodes(&self) -> Result<Vec<HeardNode>> {
        self.store().heard_nodes().await
    }

    /// Takes back what a node has said, because it ends.
    ///
    /// # Errors
    /// As [`Catalog::say_node`].
    pub async fn unsay_node(&self, name: &str) -> Result<()> {
        self.store().unsay_node(name).await
    }
}
