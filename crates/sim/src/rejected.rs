//! Rejected rows of loads: they are found if and only if their load was stored, once, and as they were sent.

use crate::model::{Fate, Load, LoadId, Violation};
use crate::trace::note;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_decode::{Reject, RejectCode};
use tributary_ingest::{Claim, Ingest, LoadFacts, LoadRejects, RejectedLoad, ReplayedRows};
use tributary_types::TableId;

/// A load with rejected rows, or one that brings a rejected row of another load again.
#[derive(Clone, Debug, Default)]
struct Sent {
    filtered: u64,
    /// The other load, and the row.
    replays: Option<(LoadId, ReplayedRows)>,
}

/// The loads with rejected rows.
#[derive(Clone, Debug, Default)]
pub struct Rejected {
    sent: BTreeMap<LoadId, Sent>,
    /// A server that died had some in memory only: its log needed the space, and no file could be written.
    may_be_lost: bool,
    /// Loads with rows whose marks may have been lost that way.
    unsure_marks: BTreeSet<LoadId>,
}

fn rejects_of(id: LoadId, sent: &Sent) -> LoadRejects {
    let row = |number| Reject {
        row: Some(number),
        ..Reject::of_bytes(RejectCode::WrongValue, "not a number", format!("{id},{number}").as_bytes())
    };
    // The last one of several is only counted.
    let kept = if sent.filtered > 1 { sent.filtered - 1 } else { sent.filtered };
    let rows: Vec<_> = (1..=kept).map(row).collect();
    let replays = sent.replays.iter().map(|(_, replay)| replay.clone()).collect();
    LoadRejects { replays, ..LoadRejects::new(sent.filtered, &rows, id.to_string()) }
}

fn id_of(load: &RejectedLoad) -> Result<LoadId, Violation> {
    let id = load.rejects.source.parse();
    id.map_err(|_| Violation(format!("rejected rows are of a load that nobody sent: {load:?}")))
}

/// A rejected row to be brought again.
fn replayed(world: &World) -> Option<(LoadId, ReplayedRows)> {
    let found = world.process().ingest.rejected_loads(|_| true).ok()?;
    if found.is_empty() {
        return None;
    }
    let load = world.throw(|dice| dice.pick(&found.iter().collect::<Vec<_>>()));
    Some((id_of(load).ok()?, ReplayedRows { txn: load.txn, load: load.load, rows: vec![0] }))
}

/// The facts about a load that is about to be sent: its key, and rejected rows if it is to have any.
pub fn facts(world: &World, id: LoadId, key: Option<Arc<Claim>>) -> LoadFacts {
    let mut sent = Sent::default();
    if world.plan.rejects && world.throw(|dice| dice.one_in(3)) {
        sent.filtered = world.throw(|dice| dice.between(1, 5));
    }
    if world.plan.rejects && world.throw(|dice| dice.one_in(4)) {
        sent.replays = replayed(world);
    }
    if sent.filtered == 0 && sent.replays.is_none() {
        world.rejected.borrow_mut().sent.remove(&id);
        return world.process().ingest.load_facts(key, None);
    }
    note!(world.trace, "rejects", id, sent.filtered, "of load {id}: {sent:?}");
    let rejects = rejects_of(id, &sent);
    world.rejected.borrow_mut().sent.insert(id, sent);
    world.process().ingest.load_facts(key, Some(Box::new(rejects)))
}

/// Whether the load is not stored for sure.
fn is_refused(load: Option<&Load>) -> bool {
    load.is_none_or(|load| matches!(load.fate, Fate::Never | Fate::Prepared))
}

/// Whether the load is stored for sure.
fn is_stored(load: &Load) -> bool {
    matches!(load.fate, Fate::Visible | Fate::Promised)
}

impl Rejected {
    /// The state that a backup of this moment must restore: the rejected rows that are in memory only are not in it.
    #[must_use]
    pub fn at_moment_of(&self, ingest: &Ingest) -> Self {
        let is_short = ingest.reject_figures().only_in_memory > 0;
        Self { may_be_lost: self.may_be_lost || is_short, ..self.clone() }
    }

    /// Checks what the server has of the tables that are there.
    ///
    /// # Errors
    /// Rejected rows that are missing, there twice, of a load that was not stored, or not as they were sent; a row that is marked as
    /// brought again, and was not, or the other way round.
    fn check(
        &self,
        found: &[RejectedLoad],
        loads: &BTreeMap<LoadId, Load>,
        is_there: impl Fn(TableId) -> bool,
    ) -> Result<(), Violation> {
        let mut seen: BTreeMap<LoadId, &RejectedLoad> = BTreeMap::new();
        for one in found {
            let id = id_of(one)?;
            let wrong =
                |what: &str| Err(Violation(format!("the rejected rows of load {id} {what}: {one:?}")));
            let (Some(sent), Some(load)) = (self.sent.get(&id), loads.get(&id)) else {
                return wrong("were never there");
            };
            if one.table != load.table || one.rejects != rejects_of(id, sent) {
                return wrong("are not as they were sent");
            }
            if is_refused(Some(load)) {
                return wrong("are kept, and the load was not stored");
            }
            if seen.insert(id, one).is_some() {
                return wrong("are there twice");
            }
            let brings = |(by, sent): &(&LoadId, &Sent)| {
                sent.replays.as_ref().is_some_and(|(of, _)| *of == id) && !is_refused(loads.get(by))
            };
            let is_sure = !self.unsure_marks.contains(&id);
            if is_sure && !one.replayed_by.is_empty() && !self.sent.iter().any(|sent| brings(&sent)) {
                return wrong("are marked, and no load has brought them again");
            }
        }
        for (id, sent) in &self.sent {
            let Some(load) = loads.get(id).filter(|load| is_there(load.table) && is_stored(load)) else {
                continue;
            };
            if sent.filtered > 0 && !seen.contains_key(id) {
                return Err(Violation(format!("the rejected rows of load {id} are lost: {load:?}")));
            }
            if let Some((of, _)) = &sent.replays
                && !self.unsure_marks.contains(of)
                && seen.get(of).is_some_and(|of| of.replayed_by.is_empty())
            {
                return Err(Violation(format!(
                    "load {id} has brought a rejected row of load {of} again, which is not marked"
                )));
            }
        }
        Ok(())
    }
}

/// The server is about to die.
pub fn dying(world: &World, ingest: &Ingest) {
    if ingest.reject_figures().only_in_memory > 0 {
        note!(world.trace, "forgets", 0, 0, "some rejected rows are in memory only");
        world.rejected.borrow_mut().may_be_lost = true;
    }
}

/// Forgets the loads whose rejected rows a crash may have lost, and which are not there.
fn forget_lost(world: &World, found: &[RejectedLoad]) {
    let mut rejected = world.rejected.borrow_mut();
    if std::mem::take(&mut rejected.may_be_lost) {
        let found: BTreeSet<LoadId> = found.iter().filter_map(|one| id_of(one).ok()).collect();
        let marked: Vec<LoadId> =
            rejected.sent.values().filter_map(|sent| Some(sent.replays.as_ref()?.0)).collect();
        rejected.unsure_marks.extend(marked);
        let model = world.model.borrow();
        rejected.sent.retain(|id, _| found.contains(id) || !model.loads.get(id).is_some_and(is_stored));
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
    forget_lost(world, &found);
    let is_there = |table| process.table(table).is_some();
    let checked = world.rejected.borrow().check(&found, &world.model.borrow().loads, is_there);
    world.check(checked);
}
