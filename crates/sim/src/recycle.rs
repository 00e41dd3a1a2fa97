//! Partitions that are dropped and kept, and that are recovered or thrown away, as the engine does it: one entry of the Delta log, with a
//! record before it by which a start completes the catalog.
//!
//! To the model a drop is a truncation, and a recovery brings back the loads that were in the partition before it: all or none.

use crate::catalog::SimCatalog;
use crate::clients::{flush, group_load, sweep};
use crate::model::Kind;
use crate::partitions;
use crate::trace::note;
use crate::world::World;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use std::time::Duration;
use tributary_ingest::{Halt, Recycling, SchemaHistory, Switched};
use tributary_table::{KeptFile, Leaving, Table, TableError};
use tributary_types::partition::PartitionRows;
use tributary_types::{ColumnDef, Partition, PartitionId, Partitions, SchemaVersion, TableDef, TableId};

/// How often a change is tried that something is in the way of.
const TRIES_MAX: u64 = 6;

/// A partition that was dropped, as the catalog has it.
#[derive(Clone, Debug)]
pub struct KeptPartition {
    pub partition: Partition,
    pub schema: SchemaVersion,
    pub files: Vec<KeptFile>,
}

/// What the catalog should say when the Delta log has a change.
#[derive(Clone, Debug)]
pub struct Record {
    pub table: TableId,
    pub partitions: Arc<Partitions>,
    pub dropped: Option<KeptPartition>,
    pub recovered: Option<PartitionId>,
}

/// Keeps the record of a drop.
struct Recorder {
    catalog: SimCatalog,
    id: u64,
    record: Mutex<Record>,
}

impl Leaving for Recorder {
    fn record(&self, files: Vec<KeptFile>) -> BoxFuture<'_, Result<(), String>> {
        let mut record = self.record.lock();
        if let Some(dropped) = &mut record.dropped {
            dropped.files = files;
        }
        Box::pin(std::future::ready(self.catalog.put_recycling(self.id, &record)))
    }
}

/// Drops a partition that is likely to have rows, and brings it back or throws it away, while others go on.
pub async fn there_and_back(world: &Rc<World>, table: &Arc<Table>) {
    for _ in 0..world.throw(|dice| dice.between(2, 5)) {
        match world.throw(|dice| dice.below(6)) {
            0 | 1 => group_load(world, table, Kind::Sync).await,
            2 => flush(world, table).await,
            3 => sweep(world, table).await,
            _ => {}
        }
        if !world.is_alive() {
            return;
        }
        change(world, table).await;
        if !world.is_alive() {
            return;
        }
        world.think(world.plan.think_us).await;
    }
}

async fn change(world: &Rc<World>, table: &Arc<Table>) {
    let changing = Rc::clone(&world.changing);
    let Ok(_changing) = changing.try_lock() else { return };
    let is_there = world.is_alive() && world.process().table(table.id()).is_some();
    if !is_there || table.is_changing() || world.hardware.catalog.is_changing(table.id()) {
        return;
    }
    let kept = world.hardware.catalog.recycled(table.id());
    if kept.is_empty() || world.throw(|dice| dice.percent(20)) {
        return drop_one(world, table).await;
    }
    let (id, kept) = kept[world.throw(|dice| dice.below(kept.len() as u64)) as usize].clone();
    match world.throw(|dice| dice.one_in(8)) {
        true => throw_away(world, table, id, &kept),
        false => recover(world, table, id, kept).await,
    }
}

async fn drop_one(world: &Rc<World>, table: &Arc<Table>) {
    let def = table.def();
    let Some(only) = partitions::any_whole(world, table) else { return };
    let (Some(all), Some(partition)) = (def.partitioning.partitions(), only.list.first()) else {
        return;
    };
    if world.model.borrow().is_wiping(table.id()) {
        return;
    }
    let mut left = Partitions::clone(all);
    left.remove(&[partition.id]);
    let left = Arc::new(left);
    let id = world.hardware.catalog.next_change();
    note!(world.trace, "recycle", table.id().0, partition.id.0, "table {}: {:?}", table.id(), partition);
    let dropped = only.clone();
    let is_met = move |load| partitions::has_load(&dropped, load);
    world.model.borrow_mut().recycling_begins(table.id(), partition.id, is_met);
    let dropped =
        KeptPartition { partition: partition.clone(), schema: def.schema.version, files: Vec::new() };
    let record =
        Record { table: table.id(), partitions: Arc::clone(&left), dropped: Some(dropped), recovered: None };
    let recorder = Recorder { catalog: world.hardware.catalog.clone(), id, record: Mutex::new(record) };
    let recycling = Recycling { id, partitions: &left, leaving: Some(&recorder), recovered: None };
    let is_done = carry_out(world, table, recycling, &recorder.record).await;
    if !world.is_alive() {
        return;
    }
    world.count(|counts| counts.recycled_partitions += u64::from(is_done));
    let checked = world.model.borrow_mut().wiped(table.id(), is_done);
    world.check(checked);
    world.query(table).await;
}

fn throw_away(world: &World, table: &Table, id: PartitionId, kept: &KeptPartition) {
    if world.hardware.catalog.erase(table.id(), id).is_ok() {
        table.let_files_go(&kept.files);
        world.model.borrow_mut().erased(table.id(), id);
    }
}

async fn recover(world: &Rc<World>, table: &Arc<Table>, from: PartitionId, kept: KeptPartition) {
    let def = table.def();
    let Some(all) = def.partitioning.partitions() else { return };
    let PartitionRows::Range { lower, upper } = &kept.partition.rows else { return };
    let is_taken = all.intersection(lower, upper, &all.columns_of(&def.schema)).is_some();
    let old = world.hardware.catalog.schema(table.id(), kept.schema);
    let has_same_types = old.is_some_and(|old| {
        let is_same = |column: &ColumnDef| {
            old.index_of_id(column.id).is_none_or(|at| {
                let before = &old.columns[at];
                (before.data_type, before.is_key) == (column.data_type, column.is_key)
            })
        };
        old.key_indices() == def.schema.key_indices() && def.schema.columns.iter().all(is_same)
    });
    if is_taken || !has_same_types || !table.can_take(&kept.files) {
        return;
    }
    if world.model.borrow().is_wiping(table.id()) {
        return;
    }
    let mut with = Partitions::clone(all);
    let to = with.next_id;
    with.add(&format!("back{to}"), kept.partition.rows.clone(), BTreeMap::new());
    let with = Arc::new(with);
    let id = world.hardware.catalog.next_change();
    let record =
        Record { table: table.id(), partitions: Arc::clone(&with), dropped: None, recovered: Some(from) };
    if world.hardware.catalog.put_recycling(id, &record).is_err() {
        return;
    }
    note!(world.trace, "recover", table.id().0, from.0, "table {}: {:?}", table.id(), kept.partition);
    world.model.borrow_mut().recovery_begins(table.id(), from);
    let recycling = Recycling { id, partitions: &with, leaving: None, recovered: Some((to, &kept.files)) };
    let is_done = carry_out(world, table, recycling, &Mutex::new(record)).await;
    if !world.is_alive() {
        return;
    }
    if is_done {
        table.let_files_go(&kept.files);
    }
    world.count(|counts| counts.recovered_partitions += u64::from(is_done));
    let checked = world.model.borrow_mut().recovery_ends(table.id(), is_done);
    world.check(checked);
    world.query(table).await;
}

async fn carry_out(
    world: &Rc<World>,
    table: &Arc<Table>,
    recycling: Recycling<'_>,
    record: &Mutex<Record>,
) -> bool {
    let ingest = Arc::clone(&world.process().ingest);
    let halt = Arc::new(Halt::default());
    let mut is_done = false;
    for _ in 0..TRIES_MAX {
        let keep = |def: Arc<TableDef>| async move {
            world.power_may_go_off();
            while world.is_alive() {
                let record = record.lock().clone();
                if world.hardware.catalog.recycle(&def, &record).is_ok() {
                    return true;
                }
                world.machine.sleep(Duration::from_millis(1)).await;
            }
            false
        };
        match ingest.recycle_partitions(table, recycling, &halt, keep).await {
            Ok(Switched::Yes(_)) => {
                is_done = true;
                break;
            }
            Ok(Switched::NotYet) => ingest.pause().await,
            Err(error @ TableError::Unsure { .. }) => {
                if world.is_alive() {
                    world.violated(format!("a change of partitions that nobody stopped: {error}"));
                }
                return false;
            }
            Err(error) => {
                note!(world.trace, "kept", table.id().0, recycling.id, "table {}: {error}", table.id());
                break;
            }
        }
    }
    if world.is_alive() {
        drop(world.hardware.catalog.end_recycling(recycling.id));
    }
    is_done
}
