//! Loads with idempotency keys: clients that repeat what they have sent, and the rules of their answers.
//!
//! Of all loads with one key of a table at most one is stored. Whether it is stored is known when one of them is answered with
//! success: as the first, or as the repetition of one, whose transaction and counts the answer has.

use crate::clients::{answered, load_rows, request, row_count};
use crate::model::{Fate, Kind, LoadId, Violation};
use crate::rejected;
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_decode::Counts;
use tributary_ingest::{
    Answered, Claim, Claimed, FirstAnswer, IngestError, LoadRows, NamedLoad, TransactionKind,
};
use tributary_table::Table;
use tributary_types::{Label, LoadKey, LoadName, TableId, TxnId};

/// Few, so that they meet.
const KEYS: u64 = 6;

/// A key of a table.
type KeyOf = (TableId, u64);

/// The loads of one key.
#[derive(Clone, Debug, Default)]
struct Loads {
    /// The last one that was the first with its key: only it may be stored.
    first: Option<LoadId>,
    /// The answer that was given for it.
    answer: Option<TxnId>,
    counts: Counts,
    fingerprint: u64,
}

/// The keys of all tables.
#[derive(Clone, Debug, Default)]
pub struct Keys(BTreeMap<KeyOf, Loads>);

fn named(key: u64) -> LoadKey {
    LoadKey::new(&format!("key-{key}")).expect("letters, digits and a dash")
}

impl Keys {
    /// A load has taken a key. Gives the one that had it before, and was not stored then.
    ///
    /// # Errors
    /// That one was stored.
    fn taken(
        &mut self,
        key: KeyOf,
        id: LoadId,
        load: &NamedLoad,
        counts: Counts,
    ) -> Result<Option<LoadId>, Violation> {
        let loads = self.0.entry(key).or_default();
        if let Some(txn) = loads.answer {
            return Err(Violation(format!(
                "{} of table {} is taken by load {id}, but load {:?} was stored with it by transaction {txn}",
                load.name, key.0, loads.first
            )));
        }
        let before = loads.first.replace(id);
        (loads.counts, loads.fingerprint) = (counts, load.fingerprint);
        Ok(before)
    }

    /// A load was answered as the repetition of one. Gives that one.
    ///
    /// # Errors
    /// The answer is not that one's.
    fn repeated(&mut self, key: KeyOf, load: &NamedLoad, answer: &FirstAnswer) -> Result<LoadId, Violation> {
        let loads = self.0.entry(key).or_default();
        let wrong = |what: &str| {
            Err(Violation(format!(
                "the repetition of {} of table {} {what}: {answer:?}, {loads:?}",
                load.name, key.0
            )))
        };
        let Some(first) = loads.first else { return wrong("is of no load") };
        if loads.answer.is_some_and(|txn| txn != answer.txn) {
            return wrong("has another transaction");
        }
        if loads.counts != answer.counts {
            return wrong("has other counts");
        }
        if loads.fingerprint != load.fingerprint {
            return wrong("has other bytes");
        }
        loads.answer = Some(answer.txn);
        Ok(first)
    }

    /// The load that had the key first was answered.
    fn stored(&mut self, key: KeyOf, id: LoadId, txn: TxnId) {
        let loads = self.0.entry(key).or_default();
        if loads.first == Some(id) {
            loads.answer = Some(txn);
        }
    }

    /// The load was refused, and the key is free.
    fn refused(&mut self, key: KeyOf, id: LoadId) {
        let loads = self.0.entry(key).or_default();
        if loads.first == Some(id) {
            loads.first = None;
        }
    }

    /// Forgets a dropped table.
    pub fn dropped(&mut self, table: TableId) {
        self.0.retain(|(of_table, _), _| *of_table != table);
    }

    /// Checks all keys after a recovery. `found` gives the answer that the server knows, `fate` what became of a load.
    ///
    /// # Errors
    /// A stored load whose key is free, or a key of a load that was not stored.
    pub fn recovered(
        &mut self,
        found: impl Fn(TableId, &LoadName) -> Result<Option<FirstAnswer>, IngestError>,
        fate: impl Fn(LoadId) -> Fate,
    ) -> Result<(), Violation> {
        for ((table, key), loads) in &mut self.0 {
            let name = LoadName::Key(named(*key));
            let found = found(*table, &name).map_err(|error| Violation(error.to_string()))?;
            let wrong = |what: &str| {
                Err(Violation(format!("{name} of table {table} {what} after a recovery: {loads:?}")))
            };
            let became = loads.first.map(&fate);
            match (found, loads.answer, became) {
                (Some(found), Some(txn), _) if found.txn != txn => return wrong("has another transaction"),
                (None, Some(_), _) => return wrong("is free, and its load is stored,"),
                (None, None, Some(Fate::Visible | Fate::Promised)) => {
                    return wrong("is free, and its load is there,");
                }
                (Some(_), None, None | Some(Fate::Never)) => return wrong("is of a load that is not there"),
                (Some(found), None, _) => loads.answer = Some(found.txn),
                (None, None, _) => loads.first = None,
                (Some(_), Some(_), _) => {}
            }
        }
        Ok(())
    }
}

/// A client sends a load with one of a few keys, as it or another has done before, or not.
pub async fn load(world: &Rc<World>, table: &Arc<Table>) {
    let key = world.throw(|dice| dice.below(KEYS));
    let has_other_bytes = world.throw(|dice| dice.one_in(8));
    let kind = world.throw(|dice| dice.pick(&[Kind::Async, Kind::Async, Kind::Sync, Kind::Sync, Kind::Off]));
    let rows = row_count(world);
    // Of equal bytes are equal counts.
    let counts = Counts { total: 2 * key + 1, loaded: key + 1, filtered: key, unselected: 0 };
    let name = LoadName::Key(named(key));
    let load = NamedLoad { name, fingerprint: key * 2 + u64::from(has_other_bytes) };
    let key = (table.id(), key);
    let id = world.model.borrow_mut().begin(table.id(), kind, rows, None);
    note!(
        world.trace,
        "keyed",
        id,
        key.1,
        "{kind:?} load {id} of {rows} rows into table {}: {load:?}",
        table.id()
    );
    let ingest = Arc::clone(&world.process().ingest);
    let patience = Duration::from_millis(world.throw(|dice| dice.pick(&[0, 5, 1_000_000])));
    let claimed = request(world, ingest.claim(table.id(), &load, counts, patience)).await;
    if !world.is_alive() || world.process().table(table.id()).is_none() {
        return;
    }
    let claim = match claimed {
        Some(Ok(Claimed::First(claim))) => claim,
        Some(Ok(Claimed::Repeat(first))) => {
            refuse(world, id);
            return repeated(world, key, &load, &first);
        }
        Some(Err(error)) => {
            note!(world.trace, "refused", id, 0, "load {id}: {error}");
            assert!(error.says_nothing_was_kept(), "nothing was sent to the log");
            if matches!(error, IngestError::NameUnknown { .. }) {
                world.violated(format!("the log lives, but for load {id}: {error}"));
            }
            return refuse(world, id);
        }
        None => return refuse(world, id),
    };
    let before = world.keys.borrow_mut().taken(key, id, &load, counts);
    if let Some(Some(before)) = world.check(before) {
        // Its client may be without an answer for ever.
        let is_open = matches!(world.model.borrow().loads[&before].fate, Fate::Running | Fate::Unknown);
        if is_open {
            refuse(world, before);
        }
    }
    let Some(answer) = store(world, table, (id, kind, rows), claim).await else {
        world.keys.borrow_mut().refused(key, id);
        return refuse(world, id);
    };
    if !world.is_alive() {
        return;
    }
    match &answer {
        Some(Ok(answer)) => world.keys.borrow_mut().stored(key, id, answer.txn),
        Some(Err(error)) if error.says_nothing_was_kept() => world.keys.borrow_mut().refused(key, id),
        _ => {}
    }
    answered(world, id, kind, rows, answer);
}

/// Sends a load that has taken its name. `None`: it ended before it was sent.
pub async fn store(
    world: &Rc<World>,
    table: &Arc<Table>,
    (id, kind, rows): (LoadId, Kind, u64),
    claim: Arc<Claim>,
) -> Option<Option<Result<Answered, IngestError>>> {
    let rows_of = load_rows(world, table, id, rows, kind == Kind::Off).await?;
    let rows_of = LoadRows { facts: rejected::facts(world, id, Some(claim)), ..rows_of };
    let ingest = Arc::clone(&world.process().ingest);
    if kind == Kind::Off {
        let label = Label::of_insert(u128::from(world.throw(crate::dice::Dice::next)));
        let reservation = ingest.begin(&table.def(), label, false, TransactionKind::StreamLoad).ok()?;
        return Some(request(world, ingest.commit(table, reservation, rows_of)).await);
    }
    let timeout = Duration::from_millis(world.throw(|dice| dice.pick(&[1, 1_000_000])));
    Some(request(world, ingest.load_into_group(table, kind == Kind::Async, rows_of, timeout)).await)
}

/// A load that was not stored.
pub fn refuse(world: &World, id: LoadId) {
    let checked = world.model.borrow_mut().refused(id);
    world.check(checked);
}

fn repeated(world: &World, key: KeyOf, load: &NamedLoad, first: &FirstAnswer) {
    note!(world.trace, "repeated", first.txn.0, key.1, "{load:?}: {first:?}");
    world.count(|counts| counts.repeated += 1);
    let checked = world.keys.borrow_mut().repeated(key, load, first);
    let Some(of) = world.check(checked) else { return };
    let is_open = matches!(world.model.borrow().loads[&of].fate, Fate::Running | Fate::Unknown);
    if is_open {
        let checked = world.model.borrow_mut().acknowledged(of, first.txn, &first.label);
        world.check(checked);
    }
}
