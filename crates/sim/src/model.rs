//! The rules: the model of all loads, against which every query and every recovery is checked.
//!
//! It knows the promises of a load's mode and the answers of its client, and nothing of groups, logs and files. The order of rows
//! is in [`crate::order`], deletions of single rows are in [`crate::deletes`].

use crate::deletes::{DeletionId, Deletions};
use crate::folds::{self, Folded};
use crate::order::{Order, Place};
use crate::partial::{Column, Completed, load_of};
use crate::recycled::Recycled;
use crate::rows::id_of;
use crate::winners::{Lost, Winners};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use tributary_types::{Label, PartitionId, TableId, TxnId};

/// A load's number; its rows are numbered from `number * ROWS_PER_LOAD`.
pub type LoadId = u64;

/// The most rows in a load.
pub const ROWS_PER_LOAD: i64 = 1000;

/// How a load was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Async,
    Sync,
    Off,
    TwoPhase,
    /// By another engine, into the table's Delta log.
    Foreign,
}

/// The known fate of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its client has no answer yet.
    Running,
    /// Acknowledged, to become visible: an async load.
    Promised,
    /// Every query shows it.
    Visible,
    /// Its client was told that it failed as a whole, or a recovery showed it.
    Never,
    /// No answer arrived; it is present as a whole or not at all.
    Unknown,
    /// Waits for its commit or abort, invisible.
    Prepared,
    /// A commit or abort of a prepared load has no answer yet.
    Committing,
    Aborting,
    /// It was visible (or about to be) and its table was emptied or dropped.
    Removed,
    /// It met a truncation half-way: there as a whole or not at all.
    Loose,
}

/// One load.
#[derive(Clone, Debug)]
pub struct Load {
    pub table: TableId,
    pub kind: Kind,
    pub rows: u64,
    pub label: Option<Label>,
    pub fate: Fate,
    pub txn: Option<TxnId>,
    /// The transaction that was reserved for it, whether or not an answer named it.
    pub reserved: Option<TxnId>,
    /// A query has shown it.
    pub seen: bool,
    /// A truncation ran at the same time.
    overlapped: bool,
    /// Whether its label is in use is unknown.
    pub label_unsure: bool,
    /// The possible position of its rows among those of other loads.
    pub place: Place,
}

/// A truncation that has no answer yet.
#[derive(Clone, Debug, Default)]
struct Wipe {
    /// Loads that were acknowledged before it began.
    settled: BTreeSet<LoadId>,
    /// A query has shown that it happened.
    applied: bool,
    /// The load that replaces the wiped rows, in the same commit.
    by: Option<LoadId>,
    /// The partition whose rows are retained.
    into: Option<(PartitionId, Meets)>,
    /// Loads that may be met, or not.
    unsure: BTreeSet<LoadId>,
}

/// The loads that have rows of a partition, by their numbers.
#[derive(Clone)]
struct Meets(Rc<dyn Fn(LoadId) -> bool>);

impl fmt::Debug for Meets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meets")
    }
}

/// The possible results of a query: taken with its snapshot.
#[derive(Clone, Debug)]
pub struct Expected {
    table: TableId,
    loads: Vec<(LoadId, Fate, bool)>,
    settled: BTreeSet<LoadId>,
    applied: bool,
    by: Option<LoadId>,
    first_unborn: LoadId,
    deletions: Deletions,
    lost: Lost,
    /// The recovery of a partition that is under way.
    recovery: Option<u64>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

type Checked<T = ()> = Result<T, Violation>;

fn violation<T>(text: impl Into<String>) -> Checked<T> {
    Err(Violation(text.into()))
}

/// All loads, tables and labels of one simulation.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub loads: BTreeMap<LoadId, Load>,
    next: LoadId,
    wipes: BTreeMap<TableId, Wipe>,
    /// The label that an answer gave for a transaction.
    txns: BTreeMap<TxnId, Label>,
    order: Order,
    deletions: Deletions,
    winners: Winners,
    recycled: Recycled,
    /// Tables that were truncated, at least in part.
    wiped: BTreeSet<TableId>,
    /// Loads of one transaction.
    together: Vec<[LoadId; 2]>,
}

/// The rows that a query showed: how often each load's rows occurred.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub rows: BTreeMap<LoadId, BTreeMap<i64, u32>>,
    /// Rows of a table that folds; `rows` is empty then.
    pub folded: Vec<Folded>,
    /// Rows of a table with partial updates; `rows` has the rows whose values they have.
    pub completed: Vec<Completed>,
    /// The row whose values replaced those of the others, by keys.
    pub last_of_key: BTreeMap<i64, i64>,
}

impl Shown {
    pub fn add(&mut self, row: i64) {
        let load = (row / ROWS_PER_LOAD) as LoadId;
        *self.rows.entry(load).or_default().entry(row).or_default() += 1;
    }

    /// A row of a table some of whose rows update some columns.
    pub fn add_completed(&mut self, completed: Completed) {
        for row in completed.sources.into_iter().flatten() {
            self.rows.entry(load_of(row)).or_default().insert(row, 1);
        }
        self.completed.push(completed);
    }

    fn has_row(&self, row: i64) -> bool {
        self.rows.get(&((row / ROWS_PER_LOAD) as LoadId)).is_some_and(|rows| rows.contains_key(&row))
    }

    /// Whether the load is shown, as a whole but for deleted rows, and once. `None`: all its rows may be deleted.
    pub(crate) fn has(
        &self,
        id: LoadId,
        load: &Load,
        deletions: &Deletions,
        where_: &str,
    ) -> Checked<Option<bool>> {
        let Some(rows) = self.rows.get(&id) else {
            return Ok((!deletions.hides(id, load.rows)).then_some(false));
        };
        if let Some((row, times)) = rows.iter().find(|(_, times)| **times > 1) {
            return violation(format!("{where_} shows row {row} of load {id} {times} times: {load:?}"));
        }
        deletions.check(id, load.rows, rows, where_)?;
        Ok(Some(true))
    }
}

impl Model {
    /// A load is about to be sent.
    pub fn begin(&mut self, table: TableId, kind: Kind, rows: u64, label: Option<Label>) -> LoadId {
        self.next += 1;
        let overlapped =
            self.overlaps(table, self.next) || kind == Kind::Foreign && self.wiped.contains(&table);
        let place = Place::begins(self.order.tick());
        self.deletions.load_begins(table, self.next, rows);
        self.loads.insert(
            self.next,
            Load {
                table,
                kind,
                rows,
                label,
                fate: Fate::Running,
                txn: None,
                reserved: None,
                seen: false,
                overlapped,
                label_unsure: false,
                place,
            },
        );
        self.next
    }

    /// Its transaction, before its rows are sent.
    pub fn reserved(&mut self, id: LoadId, txn: TxnId) {
        self.load(id).reserved = Some(txn);
    }

    /// Whether the table is being truncated while the load starts. If its rows are recycled, the load's rows may be, too.
    fn overlaps(&mut self, table: TableId, id: LoadId) -> bool {
        let Some(wipe) = self.wipes.get_mut(&table) else { return false };
        if wipe.into.as_ref().is_some_and(|(_, meets)| meets.0(id)) {
            wipe.unsure.insert(id);
        }
        true
    }

    fn load(&mut self, id: LoadId) -> &mut Load {
        self.loads.get_mut(&id).expect("loads are never forgotten")
    }

    /// Records that the client was told that the load succeeded.
    ///
    /// # Errors
    /// A transaction id that was given to another label before.
    pub fn acknowledged(&mut self, id: LoadId, txn: TxnId, label: &Label) -> Checked {
        if let Some(known) = self.txns.insert(txn, label.clone())
            && known != *label
        {
            return violation(format!(
                "transaction {txn} of load {id} has label {label} and had {known} before"
            ));
        }
        self.load(id).txn = Some(txn);
        self.is_acknowledged(id);
        Ok(())
    }

    /// Records what the answer to a load says of its rows.
    fn is_acknowledged(&mut self, id: LoadId) {
        let now = self.order.tick();
        let load = self.load(id);
        load.place.acknowledged(now);
        load.fate = match load.kind {
            Kind::TwoPhase => Fate::Prepared,
            _ if load.fate == Fate::Removed => Fate::Removed,
            _ if load.overlapped => Fate::Loose,
            Kind::Async | Kind::Foreign if !load.seen => Fate::Promised,
            _ => Fate::Visible,
        };
        if load.fate == Fate::Visible {
            load.place.visible(now);
        }
    }

    /// Records that an engine's load is in the table's log. The server shows it when it has read the log.
    pub fn appended(&mut self, id: LoadId) {
        self.is_acknowledged(id);
    }

    /// Records that the client was told that the load failed as a whole.
    ///
    /// # Errors
    /// If a query has shown it.
    pub fn refused(&mut self, id: LoadId) -> Checked {
        let load = self.load(id);
        if load.seen {
            return violation(format!("load {id} was refused, but a query has shown it: {load:?}"));
        }
        load.fate = Fate::Never;
        Ok(())
    }

    /// The client will never know.
    pub fn unanswered(&mut self, id: LoadId) {
        let load = self.load(id);
        load.fate = match load.fate {
            Fate::Running | Fate::Unknown => Fate::Unknown,
            other => other,
        };
    }

    /// A commit or abort of a prepared load is about to be sent.
    pub fn ends(&mut self, id: LoadId, commits: bool) {
        let table = self.loads.get(&id).map(|load| load.table);
        let overlapped = table.is_some_and(|table| self.overlaps(table, id));
        let now = self.order.tick();
        let load = self.load(id);
        load.fate = if commits { Fate::Committing } else { Fate::Aborting };
        load.overlapped = overlapped;
        load.place = Place::begins(now);
    }

    /// The commit or abort was answered.
    ///
    /// # Errors
    /// If it failed and a query has shown the load.
    pub fn ended(&mut self, id: LoadId, done: bool) -> Checked {
        let now = self.order.tick();
        let load = self.load(id);
        load.fate = match (load.fate, done) {
            (Fate::Committing, true) if load.overlapped => Fate::Loose,
            (Fate::Committing, true) => Fate::Visible,
            (Fate::Aborting, true) => Fate::Never,
            (Fate::Committing, false) if load.seen => {
                return violation(format!("the commit of load {id} failed, but a query has shown it"));
            }
            (Fate::Committing | Fate::Aborting, false) => Fate::Prepared,
            (other, _) => other,
        };
        if load.fate == Fate::Visible {
            load.place.visible(now);
        }
        Ok(())
    }

    /// A truncation is about to be sent. One at a time per table.
    pub fn wipe_begins(&mut self, table: TableId) {
        self.wipe_of_loads_begins(table, |_| true);
    }

    /// A truncation that meets some of the loads, by their numbers, is about to be sent. One at a time per table.
    pub fn wipe_of_loads_begins(&mut self, table: TableId, is_met: impl Fn(LoadId) -> bool) {
        let mut wipe = Wipe::default();
        self.wiped.insert(table);
        for (id, load) in self.loads.iter_mut().filter(|(id, load)| load.table == table && is_met(**id)) {
            match load.fate {
                // The server may not have read of it yet.
                Fate::Promised if load.kind == Kind::Foreign => {
                    load.overlapped = true;
                    load.fate = Fate::Loose;
                    wipe.unsure.insert(*id);
                }
                Fate::Visible | Fate::Promised => drop(wipe.settled.insert(*id)),
                Fate::Running | Fate::Unknown | Fate::Committing => {
                    load.overlapped = true;
                    wipe.unsure.insert(*id);
                }
                Fate::Loose => drop(wipe.unsure.insert(*id)),
                Fate::Never | Fate::Prepared | Fate::Aborting | Fate::Removed => {}
            }
        }
        self.wipes.insert(table, wipe);
        self.deletions.disturb(table);
    }

    /// A load is about to be committed that takes the place of some of the others. One at a time per table, with truncations.
    pub fn replacement_begins(&mut self, table: TableId, by: LoadId, is_met: impl Fn(LoadId) -> bool) {
        self.wipe_of_loads_begins(table, |load| load != by && is_met(load));
        if let Some(wipe) = self.wipes.get_mut(&table) {
            wipe.by = Some(by);
        }
    }

    /// Loads with rows that a deletion may meet: `(load, rows)`.
    #[must_use]
    pub fn deletable(&self, table: TableId) -> Vec<(LoadId, u64)> {
        let may_be_there = |load: &Load| {
            matches!(load.fate, Fate::Visible | Fate::Promised | Fate::Running | Fate::Unknown)
                && load.kind != Kind::TwoPhase
                || load.fate == Fate::Visible
        };
        let of_table = self.loads.iter().filter(|(_, load)| load.table == table && may_be_there(load));
        of_table.map(|(id, load)| (*id, load.rows)).collect()
    }

    /// Records that a deletion of some of these rows is about to be sent: of rows without an earlier deletion. `None` if none are
    /// left.
    pub fn delete_begins(&mut self, table: TableId, rows: &[i64]) -> Option<(DeletionId, Vec<i64>)> {
        let rows: Vec<i64> = rows.iter().copied().filter(|row| !self.deletions.knows(*row)).collect();
        let is_visible = |row: &i64| {
            let id = (row / ROWS_PER_LOAD) as LoadId;
            let is_there = |load: &Load| load.table == table && load.fate == Fate::Visible;
            self.loads.get(&id).is_some_and(is_there) && !self.goes_away(table, id)
        };
        let (visible, others): (Vec<i64>, Vec<i64>) = rows.iter().partition(|row| is_visible(row));
        let disturbed = self.is_wiping(table);
        (!rows.is_empty()).then(|| (self.deletions.begins(table, visible, &others, disturbed), rows))
    }

    /// Records that an engine is about to remove a file with these rows. `None` if not every query shows all of them.
    pub fn removal_begins(&mut self, table: TableId, rows: &[i64]) -> Option<DeletionId> {
        if rows.is_empty() || !rows.iter().all(|row| self.is_certain(table, *row)) {
            return None;
        }
        let disturbed = self.is_wiping(table);
        Some(self.deletions.begins(table, rows.to_vec(), &[], disturbed))
    }

    /// Records that an update of some of these rows is about to be sent: of visible rows without a deletion, in whose place come the
    /// rows of a load. `None` if none are left.
    pub fn update_begins(&mut self, table: TableId, rows: &[i64]) -> Option<(DeletionId, LoadId, Vec<i64>)> {
        let rows: Vec<i64> = rows.iter().copied().filter(|row| self.is_certain(table, *row)).collect();
        if rows.is_empty() {
            return None;
        }
        let disturbed = self.is_wiping(table);
        let deletion = self.deletions.begins(table, rows.clone(), &[], disturbed);
        let load = self.begin(table, Kind::Off, rows.len() as u64, None);
        self.deletions.becomes(deletion, load, rows.len() as u64);
        Some((deletion, load, rows))
    }

    /// Whether every query shows the row.
    fn is_certain(&self, table: TableId, row: i64) -> bool {
        let id = (row / ROWS_PER_LOAD) as LoadId;
        let is_there = |load: &Load| load.table == table && load.fate == Fate::Visible;
        !self.deletions.knows(row) && self.loads.get(&id).is_some_and(is_there) && !self.goes_away(table, id)
    }

    /// Records that an update was answered with success.
    pub fn updated(&mut self, deletion: DeletionId, load: LoadId) {
        self.deletions.done(deletion);
        self.is_acknowledged(load);
    }

    /// A deletion of all rows of some keys of a table that folds is about to be sent.
    pub fn delete_of_keys_begins(&mut self, table: TableId, keys: BTreeSet<i64>) -> DeletionId {
        let (mut visible, mut others) = (Vec::new(), Vec::new());
        for (id, load) in self.loads.iter().filter(|(_, load)| load.table == table) {
            let rows = match load.fate {
                Fate::Never | Fate::Removed => continue,
                Fate::Visible => &mut visible,
                _ => &mut others,
            };
            let first = *id as i64 * ROWS_PER_LOAD;
            let all = first..first + load.rows as i64;
            rows.extend(all.filter(|row| keys.contains(&id_of(*row, true))));
        }
        let disturbed = self.is_wiping(table);
        self.deletions.of_keys_begins(table, keys, (visible, others), disturbed)
    }

    /// Records that a deletion of keys was answered, or that its client has gone.
    pub fn delete_of_keys_is_over(&mut self, id: DeletionId) {
        self.deletions.is_over(id);
    }

    /// The deletion was answered with success.
    pub fn deleted(&mut self, id: DeletionId) {
        self.deletions.done(id);
    }

    /// Whether a truncation of the table, or a recovery of a partition, has no answer yet.
    #[must_use]
    pub fn is_wiping(&self, table: TableId) -> bool {
        self.wipes.contains_key(&table) || self.recycled.under_way(table).is_some()
    }

    /// The truncation was answered.
    ///
    /// # Errors
    /// If it failed and a query has shown that it happened.
    pub fn wiped(&mut self, table: TableId, done: bool) -> Checked {
        let Some(wipe) = self.wipes.remove(&table) else { return Ok(()) };
        if !done && wipe.applied {
            return violation(format!(
                "the truncation of table {table} failed, but a query has shown it empty"
            ));
        }
        if done {
            self.removed(table, &wipe);
        }
        Ok(())
    }

    fn removed(&mut self, table: TableId, wipe: &Wipe) {
        wipe.settled.iter().for_each(|id| self.load(*id).fate = Fate::Removed);
        if let Some((into, _)) = wipe.into {
            self.recycled.keep(table, into, wipe.settled.clone(), wipe.unsure.clone());
        }
    }

    /// Records that a partition with some of the loads is about to be dropped and retained. One at a time per table, with
    /// truncations.
    pub fn recycling_begins(
        &mut self,
        table: TableId,
        into: PartitionId,
        is_met: impl Fn(LoadId) -> bool + 'static,
    ) {
        self.wipe_of_loads_begins(table, &is_met);
        if let Some(wipe) = self.wipes.get_mut(&table) {
            wipe.into = Some((into, Meets(Rc::new(is_met))));
            self.deletions.go_away(table, |id| wipe.settled.contains(&id));
        }
    }

    /// Whether a partition with the load is being dropped and retained.
    fn goes_away(&self, table: TableId, id: LoadId) -> bool {
        self.wipes.get(&table).is_some_and(|wipe| wipe.into.is_some() && wipe.settled.contains(&id))
    }

    /// A partition is about to be recovered. One at a time per table.
    pub fn recovery_begins(&mut self, table: TableId, from: PartitionId) {
        let (sure, unsure) = self.recycled.comes_back(table, from);
        for id in sure {
            self.load(id).fate = Fate::Loose;
        }
        // Whether they were in the partition is unknown, so they may come back with it; refused ones may not.
        for id in unsure {
            let load = self.load(id);
            if load.fate == Fate::Removed && load.overlapped {
                load.fate = Fate::Loose;
            }
        }
        self.deletions.disturb(table);
    }

    /// The recovery was answered.
    ///
    /// # Errors
    /// If it failed and a query has shown one of its loads.
    pub fn recovery_ends(&mut self, table: TableId, done: bool) -> Checked {
        let (loads, shown) = self.recycled.ended(table, done);
        if !done && let Some(shown) = shown {
            return violation(format!("the recovery of load {shown} failed, but a query has shown it"));
        }
        let now = self.order.tick();
        for id in loads {
            let load = self.load(id);
            load.fate = if done { Fate::Visible } else { Fate::Removed };
            if done {
                load.place.visible(now);
            }
        }
        Ok(())
    }

    /// Records that a retained partition was erased.
    pub fn erased(&mut self, table: TableId, id: PartitionId) {
        self.recycled.erase(table, id);
    }

    /// Records that the table was dropped.
    pub fn dropped(&mut self, table: TableId, is_sure: bool) {
        self.wipes.remove(&table);
        self.recycled.forget(table);
        self.deletions.disturb(table);
        for load in self.loads.values_mut().filter(|load| load.table == table) {
            match load.fate {
                Fate::Never | Fate::Removed => {}
                Fate::Visible | Fate::Promised | Fate::Loose if is_sure => load.fate = Fate::Removed,
                _ => {
                    load.fate = Fate::Removed;
                    load.label_unsure = true;
                }
            }
        }
    }

    /// The possible results of a query of the table whose snapshot is taken now.
    #[must_use]
    pub fn expected(&self, table: TableId) -> Expected {
        let wipe = self.wipes.get(&table);
        let of_table = self.loads.iter().filter(|(_, load)| load.table == table);
        Expected {
            table,
            loads: of_table.map(|(id, load)| (*id, load.fate, load.seen)).collect(),
            settled: wipe.map(|wipe| wipe.settled.clone()).unwrap_or_default(),
            applied: wipe.is_some_and(|wipe| wipe.applied),
            by: wipe.and_then(|wipe| wipe.by),
            first_unborn: self.next + 1,
            deletions: self.deletions.clone(),
            lost: self.winners.lost(),
            recovery: self.recycled.number(table),
        }
    }

    /// Checks the result of a query.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn shown(&mut self, expected: &Expected, shown: &Shown) -> Checked {
        let table = expected.table;
        let where_ = format!("a query of table {table}");
        if let Some(stranger) = shown.rows.keys().find(|id| {
            **id >= expected.first_unborn || self.loads.get(id).is_none_or(|load| load.table != table)
        }) {
            return violation(format!("{where_} shows rows of load {stranger}, which is not of this table"));
        }
        let mut applied = expected.applied;
        let deletions = &expected.deletions;
        deletions.check_whole(table, |row| shown.has_row(row), &self.deletions, &where_)?;
        self.deletions.shown(table, |row| shown.has_row(row), deletions);
        for (id, fate, seen) in &expected.loads {
            let Some(has) = shown.has(*id, &self.loads[id], deletions, &where_)? else { continue };
            let settled = expected.settled.contains(id);
            match fate {
                Fate::Visible if !has && settled => applied = true,
                Fate::Visible if !has => {
                    return violation(format!("{where_} lacks load {id}: {:?}", self.loads[id]));
                }
                Fate::Never | Fate::Prepared | Fate::Aborting | Fate::Removed if has => {
                    return violation(format!(
                        "{where_} shows load {id}: {:?} (was {fate:?})",
                        self.loads[id]
                    ));
                }
                Fate::Running if has && self.loads[id].kind == Kind::TwoPhase => {
                    return violation(format!(
                        "{where_} shows load {id} that is not committed: {:?}",
                        self.loads[id]
                    ));
                }
                Fate::Running | Fate::Promised | Fate::Unknown | Fate::Committing
                    if *seen && !has && !self.loads[id].overlapped && !settled =>
                {
                    return violation(format!(
                        "{where_} lacks load {id}, which was seen: {:?}",
                        self.loads[id]
                    ));
                }
                _ => {}
            }
            if has {
                self.seen(*id, expected.recovery)?;
            }
        }
        if let Some(by) = expected.by {
            let has = shown.rows.contains_key(&by);
            if applied && !has && !deletions.hides(by, self.loads[&by].rows) {
                return violation(format!("{where_} lacks loads that load {by} replaces, and load {by}"));
            }
            applied |= has;
        }
        if applied && let Some(id) = expected.settled.iter().find(|id| shown.rows.contains_key(id)) {
            return violation(format!("{where_} shows load {id} but not others from before a truncation"));
        }
        if let Some(wipe) = self.wipes.get_mut(&table)
            && wipe.settled == expected.settled
        {
            wipe.applied |= applied;
        }
        Ok(())
    }

    /// Checks the order of rows as a query shows them that were published as they were committed: of a memtable.
    /// Called when the snapshot is taken, before anything else happens.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn in_order(&mut self, table: TableId, rows: &[i64]) -> Checked {
        self.order.check(&mut self.loads, table, rows)
    }

    /// The table has unique keys.
    pub fn make_unique(&mut self, table: TableId, has_sequence: bool) {
        self.winners.make_unique(table, has_sequence);
    }

    /// The table has unique keys, and rows that update some columns.
    pub fn make_partial(&mut self, table: TableId) {
        self.winners.make_partial(table);
    }

    /// The table folds rows of equal keys.
    pub fn make_aggregate(&mut self, table: TableId) {
        self.winners.make_aggregate(table);
    }

    /// The load that began last.
    #[must_use]
    pub const fn last_load(&self) -> LoadId {
        self.next
    }

    /// Checks the result of a query of a table that folds. Later loads than expected may be visible, too.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn folds_shown(&mut self, expected: &Expected, shown: &Shown) -> Checked {
        let table = expected.table;
        let where_ = format!("a query of table {table}");
        let rows = folds::unfolded(&self.loads, table, &shown.folded, &where_)?;
        // The snapshot is later than the expectation, and so are deletions that it may show.
        let deletions = expected.deletions.until(&self.deletions);
        deletions.check_whole(table, |row| rows.has_row(row), &self.deletions, &where_)?;
        rows.rows.keys().try_for_each(|id| rows.has(*id, &self.loads[id], &deletions, &where_).map(drop))?;
        self.deletions.shown(table, |row| rows.has_row(row), &expected.deletions);
        let is_hidden =
            |fate: Fate| matches!(fate, Fate::Never | Fate::Prepared | Fate::Aborting | Fate::Removed);
        let before: BTreeMap<LoadId, (Fate, bool)> =
            expected.loads.iter().map(|(id, fate, seen)| (*id, (*fate, *seen))).collect();
        for id in rows.rows.keys() {
            let load = &self.loads[id];
            // A load that arrived or was committed after the query started may have been visible, and be removed by now.
            let was_hidden = match before.get(id) {
                None | Some((Fate::Prepared, _)) => load.fate != Fate::Removed,
                Some((fate, _)) => is_hidden(*fate),
            };
            let is_running = load.fate == Fate::Running && load.kind == Kind::TwoPhase;
            if (is_hidden(load.fate) && was_hidden) || is_running {
                return violation(format!("{where_} shows load {id}: {load:?}"));
            }
        }
        for (id, (fate, seen)) in before.iter().filter(|(id, _)| !rows.rows.contains_key(*id)) {
            let load = &self.loads[id];
            let wiping = self.wipes.get(&table).is_some_and(|wipe| wipe.settled.contains(id));
            let may_be_gone =
                wiping || expected.settled.contains(id) || load.fate == Fate::Removed || load.overlapped;
            let must = *fate == Fate::Visible
                || (*seen
                    && matches!(fate, Fate::Running | Fate::Promised | Fate::Unknown | Fate::Committing));
            if must && !may_be_gone && !deletions.hides(*id, load.rows) {
                return violation(format!("{where_} lacks load {id}: {load:?}"));
            }
        }
        self.check_last(table, &expected.lost, &rows, &where_)?;
        rows.rows.keys().try_for_each(|id| self.seen(*id, expected.recovery))
    }

    /// Checks which rows' values replaced those of others.
    fn check_last(&mut self, table: TableId, lost: &Lost, rows: &Shown, where_: &str) -> Checked {
        let visible: BTreeSet<LoadId> = rows.rows.keys().copied().collect();
        let last = rows.last_of_key.values().map(|row| (*row, 1));
        let is_gone = |row| !rows.has_row(row);
        self.winners.check(&self.loads, (table, Column::Text), (&visible, &is_gone), lost, last, where_)
    }

    /// Checks a table that folds after a recovery, and settles the unknown.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn folds_recovered(&mut self, table: TableId, shown: &Shown) -> Checked {
        let where_ = format!("table {table} after a recovery");
        let rows = folds::unfolded(&self.loads, table, &shown.folded, &where_)?;
        let lost = self.winners.lost();
        self.check_last(table, &lost, &rows, &where_)?;
        self.recovered(table, &rows)
    }

    /// Checks the result of a query of a table of unique keys. Rows of later loads than expected may be visible, too.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn winners_shown(&mut self, expected: &Expected, shown: &Shown) -> Checked {
        let visible = expected.loads.iter().filter(|(_, fate, _)| *fate == Fate::Visible);
        let visible: BTreeSet<LoadId> = visible.map(|(id, ..)| *id).collect();
        let where_ = format!("a query of table {}", expected.table);
        self.check_winners(expected.table, &visible, &expected.lost, shown, &where_)
    }

    fn check_winners(
        &mut self,
        table: TableId,
        visible: &BTreeSet<LoadId>,
        lost: &Lost,
        shown: &Shown,
        where_: &str,
    ) -> Checked {
        for id in shown.rows.keys() {
            let load = self.loads.get(id).filter(|load| load.table == table);
            let Some(load) = load else {
                return violation(format!("{where_} shows rows of load {id}, which is not of this table"));
            };
            let is_hidden =
                matches!(load.fate, Fate::Never | Fate::Prepared | Fate::Aborting | Fate::Removed);
            if is_hidden || (load.fate == Fate::Running && load.kind == Kind::TwoPhase) {
                return violation(format!("{where_} shows load {id}: {load:?}"));
            }
        }
        if self.winners.is_partial(table) {
            let mut keys = BTreeSet::new();
            if let Some(twice) = shown.completed.iter().find(|row| !keys.insert(row.key)) {
                return violation(format!("{where_} shows key {} twice: {twice:?}", twice.key));
            }
            for column in Column::ALL {
                let rows = shown.completed.iter().filter_map(|row| row.source(column)).map(|row| (row, 1));
                self.winners.check(
                    &self.loads,
                    (table, column),
                    (visible, &|_| false),
                    lost,
                    rows,
                    where_,
                )?;
            }
        } else {
            let rows = shown.rows.values().flatten().map(|(row, times)| (*row, *times));
            self.winners.check(
                &self.loads,
                (table, Column::Text),
                (visible, &|_| false),
                lost,
                rows,
                where_,
            )?;
        }
        // Partitions of tables with keys are not recycled.
        shown.rows.keys().try_for_each(|id| self.seen(*id, None))
    }

    /// Checks a table of unique keys after a recovery, and settles the unknown.
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn winners_recovered(&mut self, table: TableId, shown: &Shown) -> Checked {
        let of_table = || self.loads.iter().filter(|(_, load)| load.table == table);
        let must = |load: &Load| {
            matches!(load.fate, Fate::Visible | Fate::Promised)
                || (load.seen && matches!(load.fate, Fate::Running | Fate::Unknown | Fate::Committing))
        };
        let visible: BTreeSet<LoadId> =
            of_table().filter(|(_, load)| must(load)).map(|(id, _)| *id).collect();
        let lost = self.winners.lost();
        self.check_winners(table, &visible, &lost, shown, &format!("table {table} after a recovery"))?;
        let now = self.order.tick();
        for (id, load) in self.loads.iter_mut().filter(|(_, load)| load.table == table) {
            let is_there = visible.contains(id) || shown.rows.contains_key(id);
            match load.fate {
                _ if is_there => {
                    load.fate = Fate::Visible;
                    load.seen = true;
                    load.place.visible(now);
                }
                // It failed, or later rows have superseded it.
                Fate::Running | Fate::Unknown if load.kind != Kind::TwoPhase => {
                    load.fate = Fate::Removed;
                    load.label_unsure = true;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A snapshot of the table has data files.
    pub fn has_files(&mut self, table: TableId) {
        self.order.has_files(table);
    }

    fn seen(&mut self, id: LoadId, recovery: Option<u64>) -> Checked {
        let now = self.order.tick();
        self.recycled.shown(id, recovery);
        let load = self.load(id);
        load.seen = true;
        load.place.visible(now);
        match load.fate {
            Fate::Promised => load.fate = Fate::Visible,
            Fate::Never => {
                return violation(format!("load {id} was refused, but a query has shown it: {load:?}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// `SYNC` was answered: `before` are the loads that were promised when it was sent.
    ///
    /// # Errors
    /// None itself; the loads must be visible from now on.
    pub fn synced(&mut self, before: &[LoadId]) {
        let now = self.order.tick();
        for id in before {
            let load = self.load(*id);
            if load.fate == Fate::Promised {
                load.fate = Fate::Visible;
                load.place.visible(now);
            }
        }
    }

    /// The loads that are promised now.
    #[must_use]
    pub fn promised(&self) -> Vec<LoadId> {
        let is_promised = |load: &Load| load.fate == Fate::Promised && load.kind != Kind::Foreign;
        self.loads.iter().filter(|(_, load)| is_promised(load)).map(|(id, _)| *id).collect()
    }

    /// Checks a table after a recovery, and settles the unknown. Two-phase loads are settled by [`Model::settle_prepared`].
    ///
    /// # Errors
    /// The promise that it breaks.
    pub fn recovered(&mut self, table: TableId, shown: &Shown) -> Checked {
        let where_ = format!("table {table} after a recovery");
        if let Some(stranger) =
            shown.rows.keys().find(|id| self.loads.get(id).is_none_or(|load| load.table != table))
        {
            return violation(format!("{where_} has rows of load {stranger}, which is not of this table"));
        }
        self.settle_wipe(table, shown, &where_)?;
        self.settle_recovery(table, shown, &where_)?;
        self.deletions.check_whole(table, |row| shown.has_row(row), &self.deletions, &where_)?;
        let ids: BTreeSet<_> =
            self.loads.iter().filter(|(_, load)| load.table == table).map(|(id, _)| *id).collect();
        for &id in &ids {
            let load = &self.loads[&id];
            let Some(has) = shown.has(id, load, &self.deletions, &where_)? else {
                self.settle_hidden(id);
                continue;
            };
            let must = load.seen && !load.overlapped;
            let fate = match (load.fate, has) {
                (Fate::Visible | Fate::Promised, true) => Fate::Visible,
                (Fate::Visible | Fate::Promised, false) => {
                    return violation(format!("{where_} lacks load {id}: {load:?}"));
                }
                (Fate::Never | Fate::Prepared | Fate::Aborting | Fate::Removed, true) => {
                    return violation(format!("{where_} has load {id}: {load:?}"));
                }
                (Fate::Running | Fate::Unknown, true) if load.kind == Kind::TwoPhase => {
                    return violation(format!("{where_} has load {id}, which was not committed: {load:?}"));
                }
                (Fate::Running | Fate::Unknown | Fate::Committing, false) if must => {
                    return violation(format!("{where_} lacks load {id}, which was seen: {load:?}"));
                }
                (Fate::Running | Fate::Unknown | Fate::Loose | Fate::Committing, true) => Fate::Visible,
                (Fate::Loose, false) => Fate::Removed,
                // A truncation may have taken it.
                (Fate::Running | Fate::Unknown, false) if load.kind != Kind::TwoPhase && load.overlapped => {
                    Fate::Removed
                }
                (Fate::Running | Fate::Unknown, false) if load.kind != Kind::TwoPhase => Fate::Never,
                (other, false) => other,
            };
            let now = self.order.tick();
            let load = self.load(id);
            if has {
                load.place.visible(now);
            }
            load.label_unsure |= fate == Fate::Removed && matches!(load.fate, Fate::Running | Fate::Unknown);
            load.seen |= fate == Fate::Visible;
            load.fate = fate;
        }
        // Loads that wait for their commits had no rows to be deleted, or it is not known yet. Loads of a retained partition are
        // unknown until it is recovered.
        let is_unknown = |id: &LoadId| match self.loads[id].fate {
            Fate::Prepared | Fate::Committing | Fate::Aborting => true,
            Fate::Running | Fate::Unknown => self.loads[id].kind == Kind::TwoPhase,
            Fate::Removed => self.recycled.has(table, *id),
            _ => false,
        };
        let known = ids.into_iter().filter(|id| !is_unknown(id)).collect();
        self.deletions.settle(table, &known, |row| shown.has_row(row));
        Ok(())
    }

    /// These loads are of one transaction.
    pub fn are_together(&mut self, loads: [LoadId; 2]) {
        self.together.push(loads);
    }

    /// Checks that of the loads of one transaction all were stored, or none, as far as that is known after a recovery.
    ///
    /// # Errors
    /// One was stored without another.
    pub fn check_together(&self) -> Checked {
        for [one, other] in &self.together {
            let fates = [one, other].map(|id| self.loads.get(id).map(|load| load.fate));
            if let [Some(Fate::Visible), Some(Fate::Never)] | [Some(Fate::Never), Some(Fate::Visible)] = fates
            {
                return violation(format!(
                    "of one transaction load {one} is {:?} and load {other} is {:?}",
                    fates[0], fates[1]
                ));
            }
        }
        Ok(())
    }

    /// Whether all rows of the load may be deleted.
    fn is_hidden(&self, id: LoadId) -> bool {
        self.deletions.hides(id, self.loads[&id].rows)
    }

    /// A load whose rows may all be deleted: its outcome is unknown.
    fn settle_hidden(&mut self, id: LoadId) {
        let load = self.load(id);
        match load.fate {
            Fate::Promised => load.fate = Fate::Visible,
            Fate::Running | Fate::Unknown | Fate::Loose if load.kind != Kind::TwoPhase => {
                load.fate = Fate::Removed;
                load.label_unsure = true;
            }
            _ => {}
        }
    }

    /// A truncation without an answer happened as a whole or not at all.
    fn settle_wipe(&mut self, table: TableId, shown: &Shown, where_: &str) -> Checked {
        let Some(wipe) = self.wipes.remove(&table) else { return Ok(()) };
        let is_hidden =
            |id: &LoadId| self.deletions.hides(*id, self.loads[id].rows) && !shown.rows.contains_key(id);
        let (there, gone): (Vec<LoadId>, Vec<LoadId>) = wipe
            .settled
            .iter()
            .copied()
            .filter(|id| !is_hidden(id))
            .partition(|id| shown.rows.contains_key(id));
        if let Some(by) = wipe.by.filter(|by| !is_hidden(by)) {
            let has = shown.rows.contains_key(&by);
            let broken = if has { there.first() } else { gone.first() };
            if let Some(other) = broken {
                let what = if has { "has" } else { "lacks" };
                return violation(format!("{where_} {what} load {by} and load {other}, which it replaces"));
            }
        }
        match (there.first(), gone.first()) {
            (Some(there), Some(gone)) => violation(format!(
                "{where_} has load {there} and not load {gone}, both from before a truncation that was cut off"
            )),
            (Some(there), None) if wipe.applied => violation(format!(
                "{where_} has load {there} from before a truncation that a query had shown"
            )),
            (Some(_), None) => Ok(()),
            (None, _) => {
                self.removed(table, &wipe);
                Ok(())
            }
        }
    }

    /// A recovery of a partition without an answer happened as a whole or not at all.
    fn settle_recovery(&mut self, table: TableId, shown: &Shown, where_: &str) -> Checked {
        let Some(loads) = self.recycled.under_way(table) else { return Ok(()) };
        let known = loads.iter().filter(|id| shown.rows.contains_key(id) || !self.is_hidden(**id));
        let (there, gone): (Vec<LoadId>, Vec<LoadId>) =
            known.copied().partition(|id| shown.rows.contains_key(id));
        if let (Some(there), Some(gone)) = (there.first(), gone.first()) {
            return violation(format!(
                "{where_} has load {there} and not load {gone}, of one partition whose recovery was cut off"
            ));
        }
        let done = !there.is_empty();
        if !done && loads.iter().any(|id| self.recycled.was_shown(table, *id)) && !gone.is_empty() {
            return violation(format!(
                "{where_} lacks loads of a recovered partition that a query had shown"
            ));
        }
        self.recovery_ends(table, done)
    }

    /// Two-phase loads whose state a recovery must show: `(load, transaction, label)`.
    #[must_use]
    pub fn two_phase(&self) -> Vec<(LoadId, Load)> {
        let open = |load: &Load| {
            load.kind == Kind::TwoPhase
                && matches!(
                    load.fate,
                    Fate::Running | Fate::Unknown | Fate::Prepared | Fate::Committing | Fate::Aborting
                )
        };
        self.loads.iter().filter(|(_, load)| open(load)).map(|(id, load)| (*id, load.clone())).collect()
    }

    /// Records whether a recovery showed that the load waits for its commit, and with which transaction.
    ///
    /// # Errors
    /// If it must wait and does not.
    pub fn settle_prepared(&mut self, id: LoadId, waits: Option<TxnId>) -> Checked {
        let load = self.loads.get_mut(&id).expect("loads are never forgotten");
        let fate = match (load.fate, waits) {
            (_, Some(txn)) => {
                if load.txn.is_some_and(|known| known != txn) {
                    return violation(format!(
                        "load {id} waits as transaction {txn} after a recovery: {load:?}"
                    ));
                }
                load.txn = Some(txn);
                Fate::Prepared
            }
            (Fate::Prepared | Fate::Committing, None) if load.overlapped && load.fate == Fate::Committing => {
                load.label_unsure = true;
                Fate::Removed
            }
            // It was committed, and later rows have superseded all of its own, or they were deleted.
            (Fate::Committing, None) if self.winners.has(self.loads[&id].table) || self.is_hidden(id) => {
                let load = self.load(id);
                load.label_unsure = true;
                Fate::Removed
            }
            (Fate::Prepared | Fate::Committing, None) => {
                let load = &self.loads[&id];
                return violation(format!(
                    "load {id} is prepared and can be neither committed nor aborted after a recovery: {load:?}"
                ));
            }
            (_, None) => Fate::Never,
        };
        self.load(id).fate = fate;
        Ok(())
    }

    /// Prepared loads, oldest first.
    #[must_use]
    pub fn prepared(&self) -> Vec<LoadId> {
        self.loads.iter().filter(|(_, load)| load.fate == Fate::Prepared).map(|(id, _)| *id).collect()
    }

    /// Whether a label is in use; `None` if that is unknown.
    #[must_use]
    pub fn label_in_use(&self, label: &Label) -> Option<bool> {
        let mut in_use = Some(false);
        for load in self.loads.values().filter(|load| load.label.as_ref() == Some(label)) {
            match load.fate {
                _ if load.label_unsure => in_use = None,
                Fate::Never => {}
                Fate::Visible
                | Fate::Prepared
                | Fate::Committing
                | Fate::Removed
                | Fate::Loose
                | Fate::Promised => {
                    return Some(true);
                }
                Fate::Running | Fate::Unknown | Fate::Aborting => in_use = None,
            }
        }
        in_use
    }

    /// All labels that clients chose.
    #[must_use]
    pub fn labels(&self) -> BTreeSet<Label> {
        self.loads.values().filter_map(|load| load.label.clone()).collect()
    }
}
