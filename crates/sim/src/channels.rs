//! Channels: clients that store loads in the order of offsets, and the rules of their positions.
//!
//! A client asks for the next offset of its channel and sends a load from there, or repeats an earlier one, or leaves one out. The
//! loads of a channel are stored in the order of their offsets, each once.

use crate::clients::{answered, request, row_count};
use crate::keyed::{refuse, store};
use crate::model::{Fate, Kind, LoadId, Violation};
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_decode::Counts;
use tributary_ingest::{ChannelState, Claimed, IngestError, NamedLoad};
use tributary_table::Table;
use tributary_types::{ChannelOffset, LoadKey, LoadName, TableId, TxnId};

/// Few, so that clients meet.
const CHANNELS: u64 = 2;

/// A channel of a table.
type ChannelOf = (TableId, u64);

/// A load of a channel.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: LoadId,
    offset: u64,
    next: u64,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    /// Where the loads end that are known to be stored.
    next: u64,
    last: Option<(Sent, TxnId)>,
    /// A load whose outcome is unknown.
    open: Option<Sent>,
}

/// The channels of all tables.
#[derive(Clone, Debug, Default)]
pub struct Channels(BTreeMap<ChannelOf, Channel>);

fn named(channel: u64) -> LoadKey {
    LoadKey::new(&format!("channel-{channel}")).expect("letters, digits and a dash")
}

/// The loads of an offset have equal bytes.
fn fingerprint(offset: u64) -> u64 {
    offset * 3 + 1
}

impl Channels {
    /// Checks the state that the server gives while nothing else happens. Gives the load that is known to be stored by it, and its
    /// transaction.
    fn is_at(
        &mut self,
        of: ChannelOf,
        found: Option<&ChannelState>,
    ) -> Result<Option<(LoadId, ChannelState)>, Violation> {
        let channel = self.0.entry(of).or_default();
        let next = found.map_or(0, |found| found.next_offset);
        if let (Some(open), Some(found)) = (channel.open, found)
            && next == open.next
        {
            channel.next = open.next;
            channel.last = Some((open, found.txn));
            channel.open = None;
            return Ok(Some((open.id, found.clone())));
        }
        let last = channel.last.map(|(last, txn)| (last.offset, txn));
        if next != channel.next || last != found.map(|found| (found.last_offset, found.txn)) {
            return Err(Violation(format!(
                "channel {} of table {} is at {found:?}, and its loads are at {channel:?}",
                of.1, of.0
            )));
        }
        Ok(None)
    }

    /// A load is the channel's next. Gives the one that was open, and was not stored then.
    fn taken(&mut self, of: ChannelOf, sent: Sent) -> Result<Option<LoadId>, Violation> {
        let channel = self.0.entry(of).or_default();
        if sent.offset != channel.next {
            return Err(Violation(format!(
                "channel {} of table {} takes {sent:?}, and its loads are at {channel:?}",
                of.1, of.0
            )));
        }
        Ok(channel.open.replace(sent).map(|open| open.id))
    }

    /// The load was stored.
    fn stored(&mut self, of: ChannelOf, id: LoadId, txn: TxnId) {
        let channel = self.0.entry(of).or_default();
        if let Some(open) = channel.open.take_if(|open| open.id == id) {
            channel.next = open.next;
            channel.last = Some((open, txn));
        }
    }

    /// The load was refused.
    fn refused(&mut self, of: ChannelOf, id: LoadId) {
        self.0.entry(of).or_default().open.take_if(|open| open.id == id);
    }

    /// Forgets a dropped table.
    pub fn dropped(&mut self, table: TableId) {
        self.0.retain(|(of_table, _), _| *of_table != table);
    }

    /// Checks all channels after a recovery. `found` gives the state that the server knows, `fate` what became of a load.
    ///
    /// # Errors
    /// An offset that does not match the stored loads.
    pub fn recovered(
        &mut self,
        found: impl Fn(TableId) -> Vec<ChannelState>,
        fate: impl Fn(LoadId) -> Fate,
    ) -> Result<(), Violation> {
        let all: Vec<ChannelOf> = self.0.keys().copied().collect();
        for of in all {
            let states = found(of.0);
            let state = states.iter().find(|state| state.channel == named(of.1));
            let open = self.0.get(&of).and_then(|channel| channel.open);
            let stored = self.is_at(of, state)?;
            let is_wrong = match (open.map(|open| fate(open.id)), stored.is_some()) {
                (Some(Fate::Visible | Fate::Promised), false) => Some("would be stored again"),
                (Some(Fate::Never), true) => Some("would be lost"),
                _ => None,
            };
            if let Some(what) = is_wrong {
                return Err(Violation(format!(
                    "channel {} of table {} after a recovery: load {open:?} {what}: {state:?}",
                    of.1, of.0
                )));
            }
            self.0.entry(of).or_default().open = None;
        }
        Ok(())
    }
}

/// The server's state of a channel.
fn state(world: &World, of: ChannelOf) -> Option<ChannelState> {
    let states = world.process().ingest.channels(Some(of.0));
    states.into_iter().find(|state| state.channel == named(of.1))
}

/// A client sends a load of a channel: the next, one that it has sent, or one too early.
pub async fn load(world: &Rc<World>, table: &Arc<Table>) {
    let of = (table.id(), world.throw(|dice| dice.below(CHANNELS)));
    let known = state(world, of);
    let next = known.as_ref().map_or(0, |known| known.next_offset);
    let offset = match world.throw(|dice| dice.below(8)) {
        0 => next + 5,
        1 => next.saturating_sub(2),
        2 => known.map_or(0, |known| known.last_offset),
        _ => next,
    };
    let kind = world.throw(|dice| dice.pick(&[Kind::Async, Kind::Async, Kind::Sync, Kind::Off]));
    let rows = row_count(world);
    // A part of the offsets is used, so that there are some between two loads.
    let sent_to = offset + 1 + offset % 2;
    let at = ChannelOffset { channel: named(of.1), offset, next: sent_to };
    let load = NamedLoad { name: LoadName::Channel(at), fingerprint: fingerprint(offset) };
    let id = world.model.borrow_mut().begin(table.id(), kind, rows, None);
    note!(
        world.trace,
        "channel",
        id,
        offset,
        "{kind:?} load {id} of {rows} rows into table {}: {load:?}",
        table.id()
    );
    let ingest = Arc::clone(&world.process().ingest);
    let patience = Duration::from_millis(world.throw(|dice| dice.pick(&[0, 5, 1_000_000])));
    let claimed = request(world, ingest.claim(table.id(), &load, Counts::default(), patience)).await;
    if !world.is_alive() || world.process().table(table.id()).is_none() {
        return;
    }
    let sent = Sent { id, offset, next: sent_to };
    let claim = match claimed {
        Some(Ok(Claimed::First(claim))) => claim,
        Some(outcome) => {
            refuse(world, id);
            return repeated(world, of, sent, &outcome);
        }
        None => return refuse(world, id),
    };
    // The state of before this load, which is the channel's next.
    look(world, of);
    let before = world.channels.borrow_mut().taken(of, sent);
    if let Some(Some(before)) = world.check(before)
        && matches!(world.model.borrow().loads[&before].fate, Fate::Running | Fate::Unknown)
    {
        refuse(world, before);
    }
    let Some(answer) = store(world, table, (id, kind, rows), claim).await else {
        world.channels.borrow_mut().refused(of, id);
        return refuse(world, id);
    };
    if !world.is_alive() || world.process().table(table.id()).is_none() {
        return;
    }
    match &answer {
        Some(Ok(answer)) => world.channels.borrow_mut().stored(of, id, answer.txn),
        Some(Err(error)) if error.says_nothing_was_kept() => world.channels.borrow_mut().refused(of, id),
        _ => {}
    }
    answered(world, id, kind, rows, answer);
}

/// Checks the state of a channel against what is known of its loads.
fn look(world: &World, of: ChannelOf) {
    let found = state(world, of);
    let checked = world.channels.borrow_mut().is_at(of, found.as_ref());
    let Some(Some((id, found))) = world.check(checked) else { return };
    if matches!(world.model.borrow().loads[&id].fate, Fate::Running | Fate::Unknown) {
        let checked = world.model.borrow_mut().acknowledged(id, found.txn, &found.label);
        world.check(checked);
    }
}

/// A load that was not the channel's next was answered.
fn repeated(world: &World, of: ChannelOf, sent: Sent, outcome: &Result<Claimed, IngestError>) {
    note!(world.trace, "not next", sent.id, sent.offset, "load {}: {outcome:?}", sent.id);
    look(world, of);
    let channel = world.channels.borrow().0.get(&of).cloned().unwrap_or_default();
    let is_right = match outcome {
        Ok(Claimed::First(_)) => false,
        Ok(Claimed::Repeat(first)) => {
            world.count(|counts| counts.repeated += 1);
            channel.last.is_some_and(|(last, txn)| last.offset == sent.offset && txn == first.txn)
        }
        Err(IngestError::OffsetExists { next, .. }) => *next == channel.next && sent.offset < *next,
        Err(IngestError::OffsetOutOfRange { next, .. }) => *next == channel.next && sent.offset > *next,
        // It waited for another one.
        Err(IngestError::NameRunning { .. }) => true,
        Err(_) => false,
    };
    if !is_right {
        world.violated(format!("load {sent:?} of channel {} is answered {outcome:?}: {channel:?}", of.1));
    }
}
