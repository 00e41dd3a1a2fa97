//! The server as queries see it.
//!
//! Not here: statements, loads, the execution of queries (`query`).

mod live;
pub(crate) mod namespace;
pub(crate) mod nodes;

use crate::access::Access;
use namespace::{EngineNamespace, Facts, RejectId};
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_query::{Nodes, PageCacheFigures, QueryEngine};
use tributary_types::Principal;

/// Queries of everybody, each over what its principal may see.
pub(crate) struct Queries {
    /// Those of nobody, who sees no table.
    nobody: Arc<QueryEngine>,
    facts: Arc<Facts>,
    policy: Arc<dyn Access>,
}

impl Queries {
    pub fn new(nobody: Arc<QueryEngine>, facts: Arc<Facts>, policy: Arc<dyn Access>) -> Self {
        Self { nobody, facts, policy }
    }

    /// The nodes that compute parts of queries.
    pub fn nodes(&self) -> &Arc<Nodes> {
        self.nobody.nodes()
    }

    /// The pages of data files that queries have read, and those in memory.
    pub fn page_cache(&self) -> PageCacheFigures {
        self.nobody.page_cache()
    }

    /// Queries over what `principal` may see.
    pub fn of(&self, principal: &Principal) -> QueryEngine {
        self.over(principal, None)
    }

    /// Queries over what `principal` may see, with these rejected rows only.
    pub fn over_rejects(&self, principal: &Principal, rejects: Arc<BTreeSet<RejectId>>) -> QueryEngine {
        self.over(principal, Some(rejects))
    }

    fn over(&self, principal: &Principal, rejects: Option<Arc<BTreeSet<RejectId>>>) -> QueryEngine {
        let viewer = Some((Arc::clone(&self.policy), principal.clone()));
        let facts = Arc::clone(&self.facts);
        self.nobody.with_namespace(Arc::new(EngineNamespace { facts, viewer, rejects }))
    }
}
