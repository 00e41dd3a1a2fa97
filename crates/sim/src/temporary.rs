//! Replacement of partitions by temporary ones, by the engine's own steps ([`tributary_ddl`]): a load fills a partition of a
//! companion table.
//!
//! To the model it is a load that replaces others with its commit: it is present as a whole, and they are removed, or neither.

use crate::model::LoadId;
use crate::rows::{batch_of, block_of};
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_ddl::{Beside, Change, Effect, Failed, NewPartitions, Replaced, Subject, run};
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
    let change = Change {
        id: world.hardware.catalog.next_change(),
        table: table.id(),
        effect: Effect::Partitions(NewPartitions {
            beside: Some(Beside { table: beside.id(), moved: vec![of_beside] }),
            ..NewPartitions::new(partitions.clone())
        }),
    };
    let id = change.id.0;
    note!(world.trace, "switch", load, id, "load {load} replaces {old:?} of table {}", table.id());
    let switch = PartitionSwitch { id, partitions: Arc::new(partitions), moved: vec![(of_beside, new)] };
    let subject = Replaced { ingest: &ingest, table, beside, switch: &switch };
    let is_replaced = carry_out(world, &subject, change, TRIES_MAX).await?;
    note!(world.trace, "switched", load, id, "load {load}: {is_replaced}");
    world.count(|counts| counts.switched_partitions += u64::from(is_replaced));
    is_replaced.then_some(answered)
}

/// Takes the steps of a change of partitions, and returns whether it is made. `None` if the server has died.
pub async fn carry_out(world: &World, subject: &dyn Subject, change: Change, tries: u64) -> Option<bool> {
    let halt = Arc::new(Halt::default());
    let (id, table) = (change.id.0, change.table);
    let left = AtomicU64::new(tries - 1);
    let goes_on =
        || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let made = run(&world.hardware.catalog, subject, change, &halt, &goes_on).await;
    if !world.is_alive() {
        return None;
    }
    match made {
        Ok(Switched::Yes(_)) => Some(true),
        Ok(Switched::NotYet) => Some(false),
        Err(Failed::Table(error @ TableError::Unsure { .. })) => {
            world.violated(format!("a change of partitions that nobody stopped: {error}"));
            None
        }
        Err(error) => {
            note!(world.trace, "kept", table.0, id, "table {table}: {error:?}");
            Some(false)
        }
    }
}
