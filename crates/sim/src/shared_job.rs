//! The job of the source whose messages are for several tables, as the engine runs it.

use crate::clients::{LOADS_AT_ONCE_MAX, Read, begin, load_rows};
use crate::folds::LOADS_MAX;
use crate::model::Kind;
use crate::shares::{self, Message};
use crate::trace::note;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use tributary_ingest::Reservation;
use tributary_table::Table;
use tributary_types::{Label, TableId};

/// The job of the shared source loads the next messages, each into its table: batch after batch, from the position that the server gives.
pub async fn run(world: &Rc<World>) {
    // Folded rows can identify a limited number of loads.
    let is_full = world.model.borrow().last_load() + LOADS_AT_ONCE_MAX > LOADS_MAX;
    if is_full || world.shares.borrow().is_busy {
        return;
    }
    world.shares.borrow_mut().is_busy = true;
    let mut goes_on = true;
    for _ in 0..world.throw(|dice| dice.between(1, 4)) {
        goes_on = goes_on && next_of_shares(world).await;
    }
    // The outcome of a load without an answer is unknown; then the job continues after the next recovery.
    if goes_on && world.is_alive() {
        world.shares.borrow_mut().is_busy = false;
    }
}

/// A table's load in a batch of the shared source.
struct Share {
    table: Arc<Table>,
    reservation: Reservation,
    messages: BTreeSet<Message>,
}

/// Whether the job can continue. A batch that failed is read again, as far as it was not loaded, and may be longer or shorter
/// then.
async fn next_of_shares(world: &Rc<World>) -> bool {
    let ingest = Arc::clone(&world.process().ingest);
    let position = || shares::read(ingest.transactions().position(shares::SOURCE).as_ref());
    let mut progress = position();
    let checked = world.shares.borrow().is_at(&progress);
    if world.check(checked).is_none() {
        return false;
    }
    let mut to = progress.offsets().clone();
    let mut messages: BTreeMap<TableId, BTreeSet<Message>> = BTreeMap::new();
    for partition in 0..shares::PARTITIONS {
        let next = to.entry(partition).or_default();
        for _ in 0..world.throw(|dice| dice.between(0, 5)) {
            let message = (partition, *next);
            *next += 1;
            let tables = world.process().tables.lock().keys().copied().collect::<Vec<_>>();
            if let Some(table) = shares::table_of(message, tables.into_iter()) {
                messages.entry(table).or_default().insert(message);
            }
        }
    }
    world.shares.borrow_mut().are_read(&messages, &to);
    let mut batch = Vec::new();
    for (id, mut messages) in messages {
        messages.retain(|&(partition, offset)| !progress.has(id, partition, offset));
        let Some(table) = world.process().table(id).filter(|_| !messages.is_empty()) else { continue };
        let label = Label::of_insert(u128::from(world.throw(crate::dice::Dice::next)));
        let Some(reservation) = begin(world, &table.def(), &label, false) else { return true };
        batch.push(Share { table, reservation, messages });
    }
    let mut batch = batch.into_iter();
    while let Some(Share { table, reservation, messages }) = batch.next() {
        let after = progress.after(table.id(), &to, batch.len() == 0);
        let rows = messages.len() as u64;
        let id = world.model.borrow_mut().begin(table.id(), Kind::Off, rows, None);
        note!(
            world.trace,
            "share",
            id,
            rows,
            "load {id} of the messages {messages:?} into table {}, then {after:?}",
            table.id()
        );
        reservation.advance(shares::SOURCE, shares::written(&after));
        world.shares.borrow_mut().begins(id, table.id(), messages, after.clone());
        let load = load_rows(world, &table, id, rows, true).await;
        // Some tables of a batch have their rows then, and others do not.
        let is_bad = world.throw(|dice| dice.one_in(4));
        let read = Read { id, rows, load: load.filter(|_| !is_bad) };
        let Some(committed) = read.commit(world, &ingest, &table, reservation).await else { return false };
        world.shares.borrow_mut().answered(committed);
        world.count(|counts| counts.shared += u64::from(committed));
        let checked = world.shares.borrow().is_at(&position());
        world.check(checked);
        if !committed {
            return true;
        }
        progress = after;
    }
    true
}
