//! Partitions whose place temporary ones take, as the engine does it: a load fills a partition of a table beside, the catalog keeps
//! what is to be, and one entry of the Delta log has it.
//!
//! To the model it is a load that replaces others with its commit: it is present as a whole, and they are removed, or neither.

use crate::model::LoadId;
use crate::rows::{batch_of, block_of};
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::{Answered, Halt, LoadRows, PartitionSwitch, Switched, TransactionKind};
use tributary_table::{Table, TableError};
use tributary_types::{Label, Partition, Partitioning, Partitions, TableDef};

/// The prefix of the names of companion tables.
const PREFIX: &str = "beside ";
/// How often a replacement is tried that something is in the way of.
const TRIES_MAX: u64 = 12;

/// Whether the table has temporary partitions of another.
#[must_use]
pub fn is_beside(def: &TableDef) -> bool {
    def.name.starts_with(PREFIX)
}

/// Loads `rows` rows into a temporary partition of the same rows as the one that `only` has, and lets it take its place. `None`: nothing
/// has changed, or the server has died.
pub async fn replace(
    world: &Rc<World>,
    table: &Arc<Table>,
    load: LoadId,
    rows: u64,
    only: &Partitions,
) -> Option<Answered> {
    let changing = Rc::clone(&world.changing);
    let _changing = changing.lock().await;
    let def = table.def();
    let process = world.process();
    let is_there = world.is_alive() && process.table(table.id()).is_some();
    if !is_there || table.is_changing() || world.hardware.catalog.is_changing(table.id()) {
        return None;
    }
    let old = only.list.first()?;
    let before = def.partitioning.partitions().filter(|partitions| partitions.by_id(old.id).is_some())?;
    let beside = create_beside(world, &def, old).await?;
    let replaced = fill_and_replace(world, table, &beside, load, rows, before, old).await;
    if world.is_alive() {
        let id = beside.id();
        drop(world.hardware.catalog.drop_table(id));
        beside.close().await;
        process.ingest.detach(id);
    }
    replaced
}

async fn create_beside(world: &World, def: &TableDef, old: &Partition) -> Option<Arc<Table>> {
    let all = def.partitioning.partitions()?;
    let mut partitions = Partitions::new(all.method, all.columns.clone());
    partitions.add("temporary", old.rows.clone(), BTreeMap::new());
    let id = world.hardware.catalog.next_table_id();
    let def = Arc::new(TableDef {
        id,
        name: format!("{PREFIX}{}", def.id),
        partitioning: Partitioning::By(Arc::new(partitions)),
        location: format!("db/beside-{id}"),
        ..def.clone()
    });
    let process = world.process();
    let table = process.store.create(&def).await.ok()?;
    world.hardware.catalog.put_table(&def).ok()?;
    process.ingest.attach(Arc::clone(&table));
    Some(table)
}

/// The rows of the load, in memory or in data files written ahead.
async fn rows_of(world: &World, beside: &Table, load: LoadId, rows: u64) -> Option<LoadRows> {
    if world.throw(|dice| dice.one_in(2)) {
        let schema = Arc::clone(&beside.def().schema);
        let block = block_of(&schema, false, load, rows);
        return Some(LoadRows::of_blocks(schema, vec![block]));
    }
    let mut writer = beside.new_file_writer().ok()?;
    let schema = Arc::clone(writer.schema());
    if writer.append(batch_of(&schema, false, load, rows)).await.is_err() {
        writer.abort().await;
        return None;
    }
    Some(LoadRows::of_files(schema, writer.finish().await.ok()?))
}

async fn fill_and_replace(
    world: &Rc<World>,
    table: &Arc<Table>,
    beside: &Arc<Table>,
    load: LoadId,
    rows: u64,
    before: &Partitions,
    old: &Partition,
) -> Option<Answered> {
    let ingest = Arc::clone(&world.process().ingest);
    let label = Label::of_insert(u128::from(world.throw(crate::dice::Dice::next)));
    let begun = ingest.begin(&beside.def(), label, false, TransactionKind::Insert).ok()?;
    let answered = ingest.commit(beside, begun, rows_of(world, beside, load, rows).await?).await.ok()?;
    let mut partitions = before.clone();
    partitions.remove(&[old.id]);
    let new = partitions.next_id;
    partitions.add(&format!("replaced{new}"), old.rows.clone(), BTreeMap::new());
    let of_beside = beside.def().partitioning.partitions()?.list.first()?.id;
    let partitions = Arc::new(partitions);
    let id = world.hardware.catalog.put_replacement(table.id(), &partitions).ok()?;
    note!(world.trace, "switch", load, id, "load {load} replaces {old:?} of table {}", table.id());
    let switch = PartitionSwitch { id, partitions, moved: vec![(of_beside, new)] };
    let is_replaced = carry_out(world, table, beside, &switch).await;
    if !world.is_alive() {
        return None;
    }
    note!(world.trace, "switched", load, id, "load {load}: {is_replaced}");
    drop(world.hardware.catalog.end_replacement(id));
    world.count(|counts| counts.switched_partitions += u64::from(is_replaced));
    is_replaced.then_some(answered)
}

async fn carry_out(
    world: &Rc<World>,
    table: &Arc<Table>,
    beside: &Arc<Table>,
    switch: &PartitionSwitch,
) -> bool {
    let ingest = Arc::clone(&world.process().ingest);
    let halt = Arc::new(Halt::default());
    for _ in 0..TRIES_MAX {
        let keep = |def: Arc<TableDef>| async move {
            world.power_may_go_off();
            while world.is_alive() {
                if world.hardware.catalog.put_table(&def).is_ok() {
                    return true;
                }
                world.machine.sleep(Duration::from_millis(1)).await;
            }
            false
        };
        match ingest.replace_partitions(table, beside, switch, &halt, keep).await {
            Ok(Switched::Yes(_)) => return true,
            Ok(Switched::NotYet) => ingest.pause().await,
            Err(error @ TableError::Unsure { .. }) => {
                if world.is_alive() {
                    world.violated(format!("a replacement of partitions that nobody stopped: {error}"));
                }
                return false;
            }
            Err(error) => {
                note!(world.trace, "kept", table.id().0, switch.id, "table {}: {error}", table.id());
                return false;
            }
        }
    }
    false
}
