//! Partitions that are dropped and retained, and that are recovered or erased, by the engine's own steps ([`tributary_ddl`]).
//!
//! To the model a drop is a truncation, and a recovery brings back the loads that were in the partition before it: all or none.

use crate::clients::{flush, group_load, sweep};
use crate::model::Kind;
use crate::partitions;
use crate::temporary::carry_out;
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use tributary_ddl::{Change, Dropped, Effect, KeptPartition, NewPartitions, Recycled};
use tributary_ingest::SchemaHistory;
use tributary_table::{KeptFile, Table};
use tributary_types::partition::PartitionRows;
use tributary_types::{ColumnDef, PartitionId, Partitions};

/// How often a change is tried that something is in the way of.
const TRIES_MAX: u64 = 6;

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
    note!(world.trace, "recycle", table.id().0, partition.id.0, "table {}: {:?}", table.id(), partition);
    let dropped = only.clone();
    let is_met = move |load| partitions::has_load(&dropped, load);
    world.model.borrow_mut().recycling_begins(table.id(), partition.id, is_met);
    let kept = KeptPartition::new(partition.clone(), def.schema.version, all.next_id, Vec::new());
    let dropped = vec![Dropped { at_ms: 0, kept }];
    let new = NewPartitions { dropped, ..NewPartitions::new(Partitions::clone(&left)) };
    let is_done = make(world, table, &left, new, None).await;
    if !world.is_alive() {
        return;
    }
    world.count(|counts| counts.recycled_partitions += u64::from(is_done));
    if is_done && world.hardware.catalog.recycled(table.id()).iter().all(|(id, _)| *id != partition.id) {
        world.violated(format!(
            "partition {} of table {} was dropped and is not kept",
            partition.id,
            table.id()
        ));
    }
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
    note!(world.trace, "recover", table.id().0, from.0, "table {}: {:?}", table.id(), kept.partition);
    world.model.borrow_mut().recovery_begins(table.id(), from);
    let new = NewPartitions { recovered: vec![from], ..NewPartitions::new(Partitions::clone(&with)) };
    let is_done = make(world, table, &with, new, Some((to, &kept.files))).await;
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

/// Returns whether the table has these partitions afterwards; waits for ever if the server has died.
async fn make(
    world: &World,
    table: &Table,
    partitions: &Arc<Partitions>,
    new: NewPartitions,
    recovered: Option<(PartitionId, &[KeptFile])>,
) -> bool {
    let id = world.hardware.catalog.next_change();
    let change = Change { id, table: table.id(), effect: Effect::Partitions(new) };
    let ingest = Arc::clone(&world.process().ingest);
    let subject = Recycled { ingest: &ingest, table, id: id.0, partitions, recovered };
    carry_out(world, &subject, change, TRIES_MAX).await == Some(true)
}
