//! The server as queries see it.
//!
//! Not here: statements, loads, the execution of queries (`query`).

mod live;
pub(crate) mod namespace;

use crate::access::Access;
use namespace::{EngineNamespace, Facts};
use std::sync::Arc;
use tributary_query::QueryEngine;
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

    /// Queries over what `principal` may see.
    pub fn of(&self, principal: &Principal) -> QueryEngine {
        let viewer = Some((Arc::clone(&self.policy), principal.clone()));
        self.nobody.with_namespace(Arc::new(EngineNamespace { facts: Arc::clone(&self.facts), viewer }))
    }
}
