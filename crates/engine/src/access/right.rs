//! The right of a load that runs: it is asked for again when the load's waiting is over.
//!
//! Not here: the decision, and where loads wait.

use super::gate::Gate;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_ingest::LoadRight;
use tributary_table::Table;
use tributary_types::Principal;

/// No generation of names and rights.
const NONE: u64 = u64::MAX;

/// The right of a user who is allowed to load into a table, as it was looked up at a generation of names and rights. `None`: at some
/// earlier one, so it is asked for in any case.
pub(crate) fn right_to_load(
    gate: &Arc<Gate>,
    principal: &Principal,
    table: &Arc<Table>,
    generation: Option<u64>,
) -> Arc<LoadRight> {
    let (gate, principal, table) = (Arc::clone(gate), principal.clone(), Arc::clone(table));
    // The generation at which it was there last.
    let held_at = AtomicU64::new(generation.unwrap_or(NONE));
    Arc::new(LoadRight::new(move || {
        // Read before the rights are.
        let now = gate.generation();
        if held_at.load(Ordering::Acquire) == now {
            return true;
        }
        let holds = gate.may_load(&principal, &table);
        if holds {
            held_at.store(now, Ordering::Release);
        }
        holds
    }))
}
