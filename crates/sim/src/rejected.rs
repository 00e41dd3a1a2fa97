//! Rejected rows of loads: they are found if and only if their load was stored, once, and as they were sent.

use crate::model::{Fate, Load, LoadId, Violation};
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_decode::{Reject, RejectCode};
use tributary_ingest::{Claim, LoadFacts, LoadRejects, RejectedLoad};
use tributary_types::TableId;

/// How many rows of each load were rejected.
#[derive(Debug, Default)]
pub struct Rejected(BTreeMap<LoadId, u64>);

fn rejects_of(id: LoadId, filtered: u64) -> LoadRejects {
    let row = |number| Reject {
        row: Some(number),
        ..Reject::of_bytes(RejectCode::WrongValue, "not a number", format!("{id},{number}").as_bytes())
    };
    // The last one is only counted.
    let rows: Vec<_> = (1..filtered.max(2)).map(row).collect();
    LoadRejects::new(filtered, &rows, id.to_string())
}

/// The facts about a load that is about to be sent: its key, and rejected rows if it is to have any.
pub fn facts(world: &World, id: LoadId, key: Option<Arc<Claim>>) -> LoadFacts {
    let filtered = match world.plan.rejects && world.throw(|dice| dice.one_in(3)) {
        true => world.throw(|dice| dice.between(1, 5)),
        false => 0,
    };
    if filtered == 0 {
        world.rejected.borrow_mut().0.remove(&id);
        return world.process().ingest.load_facts(key, None);
    }
    note!(world.trace, "rejects", id, filtered, "{filtered} rows of load {id} are rejected");
    world.rejected.borrow_mut().0.insert(id, filtered);
    world.process().ingest.load_facts(key, Some(Box::new(rejects_of(id, filtered))))
}

impl Rejected {
    /// Checks what the server has of the tables that are there.
    ///
    /// # Errors
    /// Rejected rows that are missing, there twice, of a load that was not stored, or not as they were sent.
    fn check(
        &self,
        found: &[Arc<RejectedLoad>],
        loads: &BTreeMap<LoadId, Load>,
        is_there: impl Fn(TableId) -> bool,
    ) -> Result<(), Violation> {
        let mut seen = BTreeMap::new();
        for one in found {
            let id: LoadId =
                one.rejects.source.parse().map_err(|_| {
                    Violation(format!("rejected rows are of a load that nobody sent: {one:?}"))
                })?;
            let wrong =
                |what: &str| Err(Violation(format!("the rejected rows of load {id} {what}: {one:?}")));
            let (Some(filtered), Some(load)) = (self.0.get(&id), loads.get(&id)) else {
                return wrong("were never there");
            };
            if one.table != load.table || one.rejects != rejects_of(id, *filtered) {
                return wrong("are not as they were sent");
            }
            if matches!(load.fate, Fate::Never | Fate::Prepared) {
                return wrong("are kept, and the load was not stored");
            }
            if seen.insert(id, one).is_some() {
                return wrong("are there twice");
            }
        }
        for id in self.0.keys().filter(|id| !seen.contains_key(id)) {
            let Some(load) = loads.get(id).filter(|load| is_there(load.table)) else { continue };
            if matches!(load.fate, Fate::Visible | Fate::Promised) {
                return Err(Violation(format!("the rejected rows of load {id} are lost: {load:?}")));
            }
        }
        Ok(())
    }
}

/// Checks all rejected rows.
pub fn check(world: &World) {
    let process = world.process();
    let Ok(found) = process.ingest.rejected_loads(|_| true) else { return };
    if !world.is_alive() {
        return;
    }
    world.count(|counts| counts.rejected += found.len() as u64);
    let is_there = |table| process.table(table).is_some();
    let checked = world.rejected.borrow().check(&found, &world.model.borrow().loads, is_there);
    world.check(checked);
}
