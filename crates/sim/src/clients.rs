//! Actions of clients, each step thrown by the dice, and their reports of answers to the model.

use crate::changes;
use crate::channels;
use crate::counts::Counts;
use crate::feeds;
use crate::folds::{LOADS_MAX, aggregate};
use crate::increments;
use crate::keyed;
use crate::model::{Fate, Kind, LoadId, ROWS_PER_LOAD};
use crate::partial::{is_partial, partial};
use crate::partition_changes;
use crate::partitions::{self, partitioned};
use crate::process::{DB, table_def};
use crate::records;
use crate::recycle;
use crate::rejected;
use crate::rights;
use crate::rows::{self, KEYS, Wanted, batch_of, block_of};
use crate::shared_job;
use crate::temporary;
use crate::together;
use crate::trace::note;
use crate::updates;
use crate::world::World;
use futures::future::join_all;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::{
    Answered, Ingest, IngestError, LoadRows, Reservation, TransactionKind, TwoPhaseTarget,
};
use tributary_table::{Snapshot, Table, TableError};
use tributary_types::{
    Aggregation, ColumnDef, ColumnId, DELETION_VECTORS, DataType, DefaultValue, HiddenColumn, KeyModel,
    Label, Partitions, SchemaVersion, SourceId, TableDef, TableSchema, TxnId,
};

/// Clients have fewer loads at a time.
pub const LOADS_AT_ONCE_MAX: LoadId = 64;

/// A client: some actions with pauses between them.
pub async fn client(world: Rc<World>) {
    let actions = world.throw(|dice| dice.between(1, world.plan.actions));
    for _ in 0..actions {
        world.think(world.plan.think_us).await;
        if !world.is_alive() || world.violation.borrow().is_some() {
            break;
        }
        act(&world).await;
    }
    world.busy.set(world.busy.get() - 1);
}

async fn act(world: &Rc<World>) {
    let Some(table) = any_table(world) else { return create_table(world).await };
    if world.plan.rewrites && partitions::has_whole(&table.def()) && world.throw(|dice| dice.one_in(3)) {
        return partition_changes::change(world, &table).await;
    }
    if world.plan.changes_often && world.throw(|dice| dice.one_in(3)) {
        return match world.throw(|dice| dice.below(3)) {
            0 => add_column(world, &table).await,
            1 if partitions::has_whole(&table.def()) => partition_changes::change(world, &table).await,
            _ => changes::change(world, &table).await,
        };
    }
    if partitions::has_whole(&table.def()) && world.throw(|dice| dice.one_in(4)) {
        return match world.throw(|dice| dice.below(6)) {
            0 => truncate(world, &table).await,
            1 => partition_changes::change(world, &table).await,
            2 => replace_by_temporary(world, &table).await,
            3 | 4 => recycle::there_and_back(world, &table).await,
            _ => partition_changes::cut_while_compacting(world, &table).await,
        };
    }
    if has_few_keys(&table) && world.throw(|dice| dice.one_in(30)) {
        return keys_in_doubt(world, &table).await;
    }
    if !has_few_keys(&table) && world.throw(|dice| dice.one_in(20)) {
        return Box::pin(updates::update(world, &table, Hurry::None)).await;
    }
    if changes::is_often_changed(&table.def()) && world.throw(|dice| dice.one_in(10)) {
        return changes::change(world, &table).await;
    }
    if world.plan.keyed_loads && world.throw(|dice| dice.one_in(4)) {
        return match world.throw(|dice| dice.one_in(3)) {
            true => channels::load(world, &table).await,
            false => keyed::load(world, &table).await,
        };
    }
    if world.plan.rights && world.throw(|dice| dice.one_in(5)) {
        return rights::change(world);
    }
    if world.plan.records && world.throw(|dice| dice.one_in(6)) {
        return records::some(world, &table).await;
    }
    if world.plan.shared_source && world.throw(|dice| dice.one_in(8)) {
        return shared_job::run(world).await;
    }
    if world.plan.tables > 1 && world.throw(|dice| dice.one_in(8)) {
        return Box::pin(together::load(world, &table)).await;
    }
    match world.throw(|dice| dice.below(100)) {
        0..=24 => async_loads(world, &table).await,
        25..=42 => group_load(world, &table, Kind::Sync).await,
        43..=50 => own_load(world, &table).await,
        51..=54 => feed(world, &table).await,
        55..=63 => prepare(world, &table).await,
        64..=73 => end_prepared(world).await,
        74..=83 => world.query(&table).await,
        84..=86 => sync(world).await,
        87..=88 => truncate(world, &table).await,
        89 => add_column(world, &table).await,
        90 => changes::change(world, &table).await,
        91 => drop_table(world, &table).await,
        92 => create_table(world).await,
        93..=94 => delete(world, &table, Hurry::None).await,
        95..=96 => flush(world, &table).await,
        97..=98 => compact(world, &table).await,
        _ => sweep(world, &table).await,
    }
}

/// A table for a load, if there is one.
pub fn any_table(world: &World) -> Option<Arc<Table>> {
    let process = world.process();
    let tables = process.tables.lock();
    if tables.is_empty() {
        return None;
    }
    let index = world.throw(|dice| dice.below(tables.len() as u64)) as usize;
    let table = tables.values().nth(index)?;
    // Folded rows can identify a limited number of loads.
    let is_full = world.model.borrow().last_load() + LOADS_AT_ONCE_MAX > LOADS_MAX;
    let folds = table.with_def(|def| def.keys.is_aggregate());
    (!(folds && is_full)).then(|| Arc::clone(table))
}

/// Runs a request to its end, or leaves it after a while, like a client that disconnects.
pub async fn request<T>(world: &World, work: impl Future<Output = T>) -> Option<T> {
    if !world.throw(|dice| dice.one_in(25)) {
        return Some(work.await);
    }
    leave(world, work).await
}

/// Leaves a request after a while.
pub async fn leave<T>(world: &World, work: impl Future<Output = T>) -> Option<T> {
    let patience = world.throw(|dice| dice.below(3_000));
    tokio::select! {
        biased;
        output = work => Some(output),
        () = world.machine.sleep(Duration::from_micros(patience)) => None,
    }
}

fn is_unique(table: &Table) -> bool {
    table.with_def(|def| def.keys.is_unique())
}

pub fn row_count(world: &World) -> u64 {
    world.throw(|dice| if dice.one_in(8) { dice.between(5, 30) } else { dice.between(1, 4) })
}

/// Whether rows of the table have keys of a few.
fn has_few_keys(table: &Table) -> bool {
    table.with_def(|def| !def.keys.keeps_all_rows())
}

/// Rows in memory, or in data files written ahead. `None`: writing the files failed.
pub async fn load_rows(
    world: &Rc<World>,
    table: &Arc<Table>,
    id: LoadId,
    rows: u64,
    may_be_large: bool,
) -> Option<LoadRows> {
    if !partition_changes::make(world, table, id).await || !increments::give(world, table, id, rows).await {
        return None;
    }
    let def = table.def();
    let schema = Arc::clone(&def.schema);
    if !may_be_large || !world.throw(|dice| dice.one_in(6)) {
        let block = block_of(&schema, has_few_keys(table), id, rows);
        // As a decoder does, which rejects rows without a partition.
        let batch = batch_of(&schema, has_few_keys(table), id, rows);
        let has_all =
            |partitions: &&Arc<Partitions>| partitions.of_rows(&batch, &schema).iter().all(Option::is_some);
        let partitions = def.partitioning.partitions().filter(has_all).cloned();
        // Loads of several users, who take turns where loads wait.
        let (user, right) = (rights::user(id), rights::right(world, id));
        let facts = rejected::facts(world, id, None);
        let rows = LoadRows::of_blocks(Arc::clone(&schema), vec![block]);
        return Some(LoadRows { partitions, user, right, facts, ..rows });
    }
    let mut writer = table.new_file_writer().ok()?;
    let schema = Arc::clone(writer.schema());
    if writer.append(batch_of(&schema, has_few_keys(table), id, rows)).await.is_err() {
        writer.abort().await;
        return None;
    }
    let rows = LoadRows::of_files(schema, writer.finish().await.ok()?);
    let (user, right) = (rights::user(id), rights::right(world, id));
    Some(LoadRows { facts: rejected::facts(world, id, None), user, right, ..rows })
}

/// One async load, or several at once, as the clients of a busy table send them.
async fn async_loads(world: &Rc<World>, table: &Arc<Table>) {
    let count = world.throw(|dice| if dice.one_in(4) { dice.between(3, 8) } else { 1 });
    join_all((0..count).map(|_| group_load(world, table, Kind::Async))).await;
}

pub async fn group_load(world: &Rc<World>, table: &Arc<Table>, kind: Kind) {
    let rows = row_count(world);
    let id = world.model.borrow_mut().begin(table.id(), kind, rows, None);
    note!(world.trace, "load", id, rows, "{kind:?} load {id} of {rows} rows into table {}", table.id());
    let Some(load) = load_rows(world, table, id, rows, false).await else { return };
    let timeout = Duration::from_millis(world.throw(|dice| dice.pick(&[1, 1_000_000, 1_000_000])));
    let ingest = Arc::clone(&world.process().ingest);
    let work = ingest.load_into_group(table, kind == Kind::Async, load, timeout);
    let answer = request(world, work).await;
    let receipt = answer.as_ref().and_then(|answer| Some(answer.as_ref().ok()?.txn));
    answered(world, id, kind, rows, answer);
    if let Some(receipt) = receipt
        && world.plan.keyed_loads
        && world.throw(|dice| dice.one_in(3))
    {
        read_after(world, table, id, receipt).await;
    }
    if world.is_alive() {
        world.check_order(table, &table.snapshot());
        if world.plan.rejects && world.throw(|dice| dice.one_in(4)) {
            rejected::check(world);
        }
    }
    if kind == Kind::Sync && world.model.borrow().loads[&id].fate == Fate::Visible {
        world.query(table).await;
    }
}

/// Reads a table with the receipt of a load that was acknowledged.
async fn read_after(world: &Rc<World>, table: &Arc<Table>, id: LoadId, receipt: TxnId) {
    let ingest = Arc::clone(&world.process().ingest);
    let Some(waited) = request(world, ingest.wait_visible(receipt)).await else { return };
    if !world.is_alive() || world.process().table(table.id()).is_none() {
        return;
    }
    note!(world.trace, "receipt", receipt.0, id, "of load {id}: {waited:?}");
    match waited {
        Ok(()) => {
            world.count(|counts| counts.receipts += 1);
            world.model.borrow_mut().synced(&[id]);
            world.query(table).await;
        }
        Err(error) => world.violated(format!("the receipt {receipt} of load {id}: {error}")),
    }
}

/// Reports a client's answer to the model.
pub fn answered(
    world: &World,
    id: LoadId,
    kind: Kind,
    rows: u64,
    answer: Option<Result<Answered, IngestError>>,
) {
    if !world.is_alive() {
        return;
    }
    if let Some(answer) = &answer {
        rights::check(world, id, answer);
    }
    match answer {
        Some(Ok(committed)) => {
            note!(world.trace, "ack", id, committed.txn.0, "load {id} by transaction {}", committed.txn);
            let checked = world.model.borrow_mut().acknowledged(id, committed.txn, &committed.label);
            world.check(checked);
            world.count(|counts| {
                let count = match kind {
                    Kind::Async => &mut counts.acknowledged_async,
                    Kind::Sync => &mut counts.acknowledged_sync,
                    Kind::Off => &mut counts.acknowledged_off,
                    Kind::TwoPhase => &mut counts.prepared,
                    Kind::Foreign => &mut counts.foreign,
                };
                *count += 1;
                counts.rows += rows;
            });
        }
        Some(Err(error)) if error.says_nothing_was_kept() => {
            note!(world.trace, "refused", id, 0, "load {id}: {error}");
            world.count(|counts| counts.refused += 1);
            let checked = world.model.borrow_mut().refused(id);
            world.check(checked);
        }
        Some(Err(error)) => {
            note!(world.trace, "unsure", id, 0, "load {id}: {error}");
            world.count(|counts| counts.unanswered += 1);
            world.model.borrow_mut().unanswered(id);
        }
        None => {
            note!(world.trace, "left", id, 0, "the client of load {id} went away");
            world.count(|counts| counts.unanswered += 1);
            world.model.borrow_mut().unanswered(id);
        }
    }
}

/// A label of few, so that they meet.
fn any_label(world: &World) -> Label {
    let number = world.throw(|dice| dice.below(20));
    Label::new(&format!("label-{number}")).expect("letters, digits and a dash")
}

/// Begins a transaction, and checks the state of its label.
pub fn begin(
    world: &World,
    def: &TableDef,
    label: &Label,
    is_kept: bool,
) -> Option<tributary_ingest::Reservation> {
    let in_use = world.model.borrow().label_in_use(label);
    let begun = world.process().ingest.begin(def, label.clone(), is_kept, TransactionKind::StreamLoad);
    match (&begun, in_use) {
        _ if !is_kept => {}
        (Ok(_), Some(true)) => {
            world.violated(format!("label {label} of a committed or prepared load was taken again"));
        }
        (Err(error), Some(false)) => {
            world.violated(format!("label {label} is free, but was refused: {error}"));
        }
        _ => {}
    }
    begun.ok()
}

async fn own_load(world: &Rc<World>, table: &Arc<Table>) {
    let label = world.throw(|dice| dice.one_in(2)).then(|| any_label(world));
    let named =
        label.clone().unwrap_or_else(|| Label::of_insert(u128::from(world.throw(crate::dice::Dice::next))));
    let Some(reservation) = begin(world, &table.def(), &named, label.is_some()) else { return };
    let rows = row_count(world);
    let id = world.model.borrow_mut().begin(table.id(), Kind::Off, rows, label);
    note!(
        world.trace,
        "load",
        id,
        rows,
        "Off load {id} of {rows} rows into table {}, label {named}",
        table.id()
    );
    let load = load_rows(world, table, id, rows, true).await;
    let is_bad = world.throw(|dice| dice.one_in(8));
    let (Some(load), false) = (load, is_bad) else {
        return give_up(world, id, reservation);
    };
    let ingest = Arc::clone(&world.process().ingest);
    if !partition_changes::divide(world, table).await {
        return give_up(world, id, reservation);
    }
    if let Some(replaced) = partition_changes::replaced(world, table, id) {
        let load = LoadRows { replaces: Some(Arc::new(replaced)), ..load };
        let answer = ingest.commit(table, reservation, load).await;
        partition_changes::replacement_answered(world, table, &answer);
        answered(world, id, Kind::Off, rows, Some(answer));
        return world.query(table).await;
    }
    let answer = request(world, ingest.commit(table, reservation, load)).await;
    answered(world, id, Kind::Off, rows, answer);
    if world.model.borrow().loads[&id].fate == Fate::Visible {
        world.query(table).await;
    }
}

/// A load fills a temporary partition, which takes the place of the one that its rows are in.
async fn replace_by_temporary(world: &Rc<World>, table: &Arc<Table>) {
    if world.model.borrow().is_wiping(table.id()) {
        return;
    }
    let rows = row_count(world);
    let id = world.model.borrow_mut().begin(table.id(), Kind::Off, rows, None);
    let Some(only) = partitions::only_of(&table.def(), id) else {
        let checked = world.model.borrow_mut().refused(id);
        world.check(checked);
        return;
    };
    note!(
        world.trace,
        "temporary",
        id,
        rows,
        "load {id} of {rows} rows replaces {:?} of table {}",
        only.list,
        table.id()
    );
    let is_met = |other| partitions::has_load(&only, other);
    world.model.borrow_mut().replacement_begins(table.id(), id, is_met);
    let answer = temporary::replace(world, table, id, rows, &only).await;
    if !world.is_alive() {
        return;
    }
    let checked = world.model.borrow_mut().wiped(table.id(), answer.is_some());
    world.check(checked);
    if let Some(answer) = answer {
        answered(world, id, Kind::Off, rows, Some(Ok(answer)));
    } else {
        let checked = world.model.borrow_mut().refused(id);
        world.check(checked);
    }
    world.query(table).await;
}

/// A job loads the next messages of the table's source: one after the other, each from the position that the server gives.
async fn feed(world: &Rc<World>, table: &Arc<Table>) {
    let source = SourceId(table.id().0);
    if !world.feeds.borrow().is_idle(source) || world.process().table(table.id()).is_none() {
        return;
    }
    for _ in 0..world.throw(|dice| dice.between(1, 3)) {
        if !next_of_feed(world, table, source).await {
            return;
        }
    }
}

/// Whether the job can continue.
async fn next_of_feed(world: &Rc<World>, table: &Arc<Table>, source: SourceId) -> bool {
    let ingest = Arc::clone(&world.process().ingest);
    let position = || feeds::read(ingest.transactions().position(source).as_ref());
    let from = position();
    let checked = world.feeds.borrow().is_at(source, from);
    world.check(checked);
    let label = Label::of_insert(u128::from(world.throw(crate::dice::Dice::next)));
    let Some(reservation) = begin(world, &table.def(), &label, false) else { return false };
    let rows = row_count(world);
    let to = from + rows;
    let id = world.model.borrow_mut().begin(table.id(), Kind::Off, rows, None);
    note!(world.trace, "feed", id, to, "load {id} of {rows} rows into table {} up to {to}", table.id());
    reservation.advance(source, feeds::written(to));
    world.feeds.borrow_mut().begins(source, id, to);
    let load = load_rows(world, table, id, rows, true).await;
    let is_bad = world.throw(|dice| dice.one_in(8));
    let read = Read { id, rows, load: load.filter(|_| !is_bad) };
    let Some(committed) = read.commit(world, &ingest, table, reservation).await else { return false };
    world.feeds.borrow_mut().answered(source, committed);
    world.count(|counts| counts.fed += u64::from(committed));
    let checked = world.feeds.borrow().is_at(source, position());
    world.check(checked);
    true
}

/// The messages that a job has read.
pub struct Read {
    pub id: LoadId,
    pub rows: u64,
    /// Nothing if it has failed before its commit.
    pub load: Option<LoadRows>,
}

impl Read {
    /// Whether it was committed. `None`: the job can't continue, because the load is still without an answer, or the server has
    /// died.
    pub async fn commit(
        self,
        world: &Rc<World>,
        ingest: &Ingest,
        table: &Table,
        reservation: Reservation,
    ) -> Option<bool> {
        let Self { id, rows, load } = self;
        let committed = if let Some(load) = load {
            let answer = ingest.commit(table, reservation, load).await;
            let committed = match &answer {
                Ok(_) => true,
                Err(error) if error.says_nothing_was_kept() => false,
                Err(_) => return None,
            };
            answered(world, id, Kind::Off, rows, Some(answer));
            committed
        } else {
            give_up(world, id, reservation);
            false
        };
        world.is_alive().then_some(committed)
    }
}

/// A load ends with an error of its own before its commit.
pub fn give_up(world: &World, id: LoadId, reservation: Reservation) {
    drop(reservation);
    if world.is_alive() {
        let checked = world.model.borrow_mut().refused(id);
        world.check(checked);
    }
}

async fn prepare(world: &Rc<World>, table: &Arc<Table>) {
    let label = any_label(world);
    let Some(reservation) = begin(world, &table.def(), &label, true) else { return };
    let rows = row_count(world);
    let id = world.model.borrow_mut().begin(table.id(), Kind::TwoPhase, rows, Some(label.clone()));
    world.model.borrow_mut().reserved(id, reservation.txn());
    note!(
        world.trace,
        "load",
        id,
        rows,
        "TwoPhase load {id} of {rows} rows into table {}, label {label}",
        table.id()
    );
    let Some(load) = load_rows(world, table, id, rows, true).await else {
        return give_up(world, id, reservation);
    };
    let ingest = Arc::clone(&world.process().ingest);
    let answer = request(world, ingest.prepare(table, reservation, load)).await;
    answered(world, id, Kind::TwoPhase, rows, answer);
}

async fn end_prepared(world: &Rc<World>) {
    let waiting = world.model.borrow().prepared();
    if waiting.is_empty() {
        return;
    }
    let id = world.throw(|dice| dice.pick(&waiting));
    let load = world.model.borrow().loads[&id].clone();
    let commits = world.throw(|dice| dice.percent(65));
    let by_label = world.throw(|dice| dice.one_in(3));
    let target = TwoPhaseTarget {
        txn: load.txn.filter(|_| !by_label || load.label.is_none()),
        label: load.label.filter(|_| by_label),
    };
    world.model.borrow_mut().ends(id, commits);
    note!(world.trace, "end", id, commits, "{} of load {id}", if commits { "commit" } else { "abort" });
    let ingest = Arc::clone(&world.process().ingest);
    let work = async {
        if commits {
            ingest.commit_prepared(DB, &target).await
        } else {
            ingest.abort_prepared(DB, &target, "the client said so").await
        }
    };
    let answer = request(world, work).await;
    if !world.is_alive() {
        return;
    }
    let checked = match answer {
        Some(Ok(_)) => {
            note!(world.trace, "ended", id, 1, "load {id}");
            world.count(|counts| {
                if commits { counts.committed_two_phase += 1 } else { counts.aborted_two_phase += 1 }
            });
            world.model.borrow_mut().ended(id, true)
        }
        Some(Err(error @ (IngestError::TransactionNotFound(_) | IngestError::TransactionState { .. }))) => {
            if world.process().table(load.table).is_some() {
                world.violated(format!("load {id} is prepared, but: {error}"));
            }
            Ok(())
        }
        Some(Err(error @ IngestError::RightRevoked { .. })) => {
            world.violated(format!("the right of prepared load {id} was asked for again: {error}"));
            Ok(())
        }
        Some(Err(IngestError::WalFailed(_))) | None => Ok(()),
        Some(Err(error)) => {
            note!(world.trace, "ended", id, 0, "load {id}: {error}");
            world.model.borrow_mut().ended(id, false)
        }
    };
    world.check(checked);
}

async fn sync(world: &Rc<World>) {
    let promised = world.model.borrow().promised();
    let ingest = Arc::clone(&world.process().ingest);
    ingest.sync().await;
    if world.is_alive() {
        note!(world.trace, "SYNC", promised.len(), 0, "shows {promised:?}");
        world.count(|counts| counts.syncs += 1);
        world.model.borrow_mut().synced(&promised);
    }
}

async fn truncate(world: &Rc<World>, table: &Arc<Table>) {
    cut(world, table, partitions::any_whole(world, table)).await;
}

/// Empties partitions of the table, or all of it.
pub async fn cut(world: &Rc<World>, table: &Arc<Table>, only: Option<Partitions>) {
    // Rows of a table of unique keys that a truncation removes look like superseded ones.
    if world.model.borrow().is_wiping(table.id()) || is_unique(table) {
        return;
    }
    if only.is_some() && !partition_changes::divide(world, table).await
        || world.model.borrow().is_wiping(table.id())
    {
        return;
    }
    let ingest = Arc::clone(&world.process().ingest);
    let answer = match only {
        Some(cut) => {
            note!(world.trace, "cut", table.id().0, cut.list[0].id.0, "table {}: {cut:?}", table.id());
            let is_met = |load| partitions::has_load(&cut, load);
            world.model.borrow_mut().wipe_of_loads_begins(table.id(), is_met);
            ingest.cut(table, cut).await
        }
        None => {
            note!(world.trace, "truncate", table.id().0, 0, "table {}", table.id());
            world.model.borrow_mut().wipe_begins(table.id());
            ingest.truncate(table).await
        }
    };
    if !world.is_alive() {
        return;
    }
    note!(world.trace, "truncated", table.id().0, answer.is_ok(), "table {}: {answer:?}", table.id());
    world.count(|counts| counts.truncations += 1);
    if !matches!(answer, Err(IngestError::WalFailed(_))) {
        let checked = world.model.borrow_mut().wiped(table.id(), answer.is_ok());
        world.check(checked);
        world.query(table).await;
    }
}

/// Why rows were not deleted.
struct NotDeleted(String);

impl From<TableError> for NotDeleted {
    fn from(error: TableError) -> Self {
        Self(error.to_string())
    }
}

/// How soon a deletion is left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hurry {
    /// Seldom.
    None,
    /// While it looks for rows or writes, most often.
    Leaves,
}

/// Adds rows to a table of few keys while the contents of the Delta log are unknown: a deletion was left half way, or the answers
/// to the entry of a compaction were lost.
async fn keys_in_doubt(world: &Rc<World>, table: &Arc<Table>) {
    for _ in 0..2 {
        group_load(world, table, Kind::Sync).await;
        if !world.is_alive() {
            return;
        }
        flush(world, table).await;
    }
    group_load(world, table, Kind::Sync).await;
    if !world.is_alive() || world.process().table(table.id()).is_none() {
        return;
    }
    if !is_unique(table) && world.throw(|dice| dice.one_in(2)) {
        delete(world, table, Hurry::Leaves).await;
    } else if world.plan.power_off > 0 {
        let before = world.hardware.store.loses_one_in();
        world.hardware.store.lose_answers(2);
        compact(world, table).await;
        world.hardware.store.lose_answers(before);
    }
    for _ in 0..2 {
        if !world.is_alive() || world.process().table(table.id()).is_none() {
            return;
        }
        group_load(world, table, Kind::Sync).await;
        world.query(table).await;
        flush(world, table).await;
        world.query(table).await;
    }
}

/// Deletes some rows of a few loads, or all rows of them; of a table that folds, some keys or all.
async fn delete(world: &Rc<World>, table: &Arc<Table>, hurry: Hurry) {
    if is_unique(table) {
        return;
    }
    if !has_few_keys(table) && world.throw(|dice| dice.one_in(3)) {
        return Box::pin(updates::update(world, table, hurry)).await;
    }
    let (id, wanted) = if has_few_keys(table) {
        let keys = keys_to_delete(world);
        let id = world.model.borrow_mut().delete_of_keys_begins(table.id(), keys.clone());
        (id, Wanted::Keys(keys))
    } else {
        let Some(rows) = rows_to_change(world, table) else { return };
        let Some((id, rows)) = world.model.borrow_mut().delete_begins(table.id(), &rows) else { return };
        (id, Wanted::Rows(rows.into_iter().collect()))
    };
    note!(world.trace, "delete", id, 0, "deletion {id} of {wanted:?} of table {}", table.id());
    let (of_table, wanted) = (table.as_ref(), &wanted);
    let find = |snapshot: Arc<Snapshot>| async move {
        if hurry == Hurry::None {
            // Others do something meanwhile.
            world.think(world.plan.think_us).await;
        }
        let found = rows::find(of_table, &snapshot, wanted, &world.hardware.store, &world.cache).await;
        found.map_err(NotDeleted)
    };
    let answer = match hurry {
        Hurry::None => request(world, table.delete("", find)).await,
        Hurry::Leaves => leave(world, table.delete("", find)).await,
    };
    let answer = answer.map(|answer| answer.map_err(|NotDeleted(reason)| reason));
    if !world.is_alive() {
        return;
    }
    world.model.borrow_mut().delete_of_keys_is_over(id);
    note!(world.trace, "deleted", id, matches!(answer, Some(Ok(_))), "deletion {id}: {answer:?}");
    if let Some(Ok(report)) = answer {
        world.count(|counts| {
            counts.deletions += 1;
            counts.deleted_rows += report.rows;
        });
        world.model.borrow_mut().deleted(id);
        world.query(table).await;
    }
}

fn keys_to_delete(world: &World) -> BTreeSet<i64> {
    world.throw(|dice| {
        let count = if dice.one_in(6) { KEYS as u64 * 4 } else { dice.between(1, 6) };
        (0..count).map(|_| dice.below(KEYS as u64) as i64).collect()
    })
}

/// Rows of some loads of the table.
pub fn rows_to_change(world: &World, table: &Table) -> Option<Vec<i64>> {
    let loads: Vec<(LoadId, u64)> = world.model.borrow().deletable(table.id());
    if loads.is_empty() {
        return None;
    }
    Some(world.throw(|dice| {
        let count = dice.between(1, 4);
        let all_of_all = dice.one_in(6);
        let loads: Vec<_> = if all_of_all { loads } else { (0..count).map(|_| dice.pick(&loads)).collect() };
        let mut rows = Vec::new();
        for (load, count) in loads {
            let all = all_of_all || dice.one_in(3);
            let first = load as i64 * ROWS_PER_LOAD;
            rows.extend((first..first + count as i64).filter(|_| all || dice.one_in(2)));
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }))
}

/// As the engine does it: the catalog first, then the table, and back if its rows can't follow.
async fn add_column(world: &Rc<World>, table: &Arc<Table>) {
    let changing = Rc::clone(&world.changing);
    let Ok(_changing) = changing.try_lock() else { return };
    if world.hardware.catalog.is_changing(table.id()) {
        return;
    }
    let old = table.def();
    let folds = old.keys.is_aggregate();
    let most = if folds {
        17
    } else if is_partial(&old.schema) {
        7
    } else {
        4
    };
    if old.schema.columns.len() > most {
        return;
    }
    let mut new = (*old).clone();
    let mut schema = TableSchema::clone(&old.schema);
    let number = schema.next_column_id;
    let mut added = ColumnDef::new(number.0, &format!("c{number}"), DataType::Int);
    if world.throw(|dice| dice.one_in(3)) {
        added.default = Some(DefaultValue::Literal("7".to_owned()));
    }
    added.aggregation = folds.then_some(Aggregation::Max);
    schema.columns.push(added);
    schema.next_column_id = number.next();
    schema.version = SchemaVersion(schema.version.0 + 1);
    new.schema = Arc::new(schema);
    let new = Arc::new(new);
    note!(world.trace, "alter", table.id().0, number.0, "table {} gets column c{number}", table.id());
    if world.hardware.catalog.put_table(&new).is_err() {
        return;
    }
    match table.alter(Arc::clone(&new)).await {
        Ok(()) => world.count(|counts| counts.added_columns += 1),
        Err(_) if world.is_alive() => {
            note!(world.trace, "altered", table.id().0, 0, "table {} stays as it was", table.id());
            drop(world.hardware.catalog.put_table(&old));
        }
        Err(_) => {}
    }
}

async fn drop_table(world: &Rc<World>, table: &Arc<Table>) {
    let changing = Rc::clone(&world.changing);
    let Ok(_changing) = changing.try_lock() else { return };
    let process = world.process();
    let id = table.id();
    if process.table(id).is_none() {
        return;
    }
    note!(world.trace, "drop", id.0, 0, "table {id}");
    if world.hardware.catalog.drop_table(id).is_err() {
        return;
    }
    process.tables.lock().remove(&id);
    world.model.borrow_mut().dropped(id, true);
    world.feeds.borrow_mut().dropped(SourceId(id.0));
    world.shares.borrow_mut().dropped(id);
    world.keys.borrow_mut().dropped(id);
    world.channels.borrow_mut().dropped(id);
    world.count(|counts| counts.dropped_tables += 1);
    table.close().await;
    process.ingest.detach(id);
}

async fn create_table(world: &Rc<World>) {
    let changing = Rc::clone(&world.changing);
    let Ok(_changing) = changing.try_lock() else { return };
    let process = world.process();
    if process.tables.lock().len() as u64 >= world.plan.tables {
        return;
    }
    let (interval_ms, bytes) =
        world.throw(|dice| (dice.pick(&[0, 0, 2, 20, 500]), dice.pick(&[200, 2_000, 1 << 20])));
    let mut def = table_def(world.hardware.catalog.next_table_id(), interval_ms, bytes);
    if world.throw(|dice| dice.percent(world.plan.unique_tables)) {
        let has_sequence = world.throw(|dice| dice.one_in(2));
        if !has_sequence && def.id.0 * 53 % 100 < world.plan.partial_tables {
            def = partial(&def);
            world.model.borrow_mut().make_partial(def.id);
        } else {
            def = unique(&def, has_sequence);
            world.model.borrow_mut().make_unique(def.id, has_sequence);
        }
    } else if def.id.0 * 37 % 100 < world.plan.aggregate_tables {
        def = aggregate(&def);
        world.model.borrow_mut().make_aggregate(def.id);
    }
    if def.id.0 * 53 % 100 < world.plan.partitioned_tables {
        def = partitioned(&def);
    }
    if def.schema.sequence.is_none() && def.id.0 * 41 % 100 < world.plan.copying_tables {
        def = copying(&def);
    }
    if changes::is_often_changed(&def) {
        def = changes::with_number(&def);
    }
    note!(world.trace, "create", def.id.0, interval_ms, "table {}, interval {interval_ms} ms", def.id);
    let Ok(table) = process.store.create(&def).await else { return };
    if world.hardware.catalog.put_table(&def).is_ok() {
        process.ingest.attach(Arc::clone(&table));
        process.tables.lock().insert(def.id, table);
    }
}

/// The table without deletion vectors.
fn copying(def: &TableDef) -> Arc<TableDef> {
    let mut def = def.clone();
    def.properties.others.insert(DELETION_VECTORS.to_owned(), "false".to_owned());
    Arc::new(def)
}

/// The table with unique keys, rows that delete, and perhaps a sequence.
pub(crate) fn unique(def: &TableDef, has_sequence: bool) -> Arc<TableDef> {
    let mut columns = def.schema.columns.clone();
    let mut hide = |what: HiddenColumn| {
        let id = columns.len() as u32 + 1;
        columns.push(ColumnDef::hidden(id, what, DataType::BigInt));
        ColumnId(id)
    };
    hide(HiddenColumn::DeleteSign);
    let sequence = has_sequence.then(|| hide(HiddenColumn::Sequence));
    let schema = TableSchema { sequence, ..TableSchema::new(def.schema.version, columns) };
    Arc::new(TableDef { keys: KeyModel::Unique, schema: Arc::new(schema), ..def.clone() })
}

pub async fn flush(world: &Rc<World>, table: &Arc<Table>) {
    note!(world.trace, "flush", table.id().0, 0, "table {}", table.id());
    world.check_order(table, &table.snapshot());
    if world.throw(|dice| dice.one_in(3)) {
        let ingest = Arc::clone(&world.process().ingest);
        ingest.flush_all().await;
        return;
    }
    worked(world, table, "flushed", table.flush().await, |counts, report| {
        counts.flushes += u64::from(report.is_some());
    });
}

pub async fn compact(world: &Rc<World>, table: &Arc<Table>) {
    worked(world, table, "compact", table.compact().await, |counts, report| {
        counts.compactions += u64::from(report.is_some());
    });
}

pub async fn sweep(world: &Rc<World>, table: &Arc<Table>) {
    // The second one deletes the files that the first one found unused.
    for _ in 0..world.throw(|dice| dice.between(1, 2)) {
        worked(world, table, "sweep", table.sweep().await, |counts, report| counts.sweeps += report.files);
        if world.plan.keep_removed_ms < 10_000 {
            world.machine.sleep(Duration::from_millis(world.plan.keep_removed_ms + 1)).await;
        }
    }
}

/// Records the outcome of work on a table that no client waits for, and counts it.
fn worked<T: Debug>(
    world: &World,
    table: &Table,
    what: &'static str,
    outcome: Result<T, TableError>,
    count: impl FnOnce(&mut Counts, &T),
) {
    let id = table.id();
    world.trace.note(what, id.0, outcome.is_ok().into(), format_args!("table {id}: {outcome:?}"));
    if let Ok(report) = &outcome {
        world.count(|counts| count(counts, report));
    }
}
