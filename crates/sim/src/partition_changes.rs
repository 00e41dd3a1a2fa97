//! Clients that drop and add partitions while others load, and loads that create theirs, as the engine does it: the catalog
//! first, then the table; a cut in the log after a partition is dropped, and before one is added to a table that has lost some.

use crate::clients::{compact, cut, flush, group_load};
use crate::model::{Kind, LoadId};
use crate::partitions;
use crate::trace::note;
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::{Answered, IngestError};
use tributary_table::{Replaced, Table};
use tributary_types::partition::PartitionRows;
use tributary_types::{Partitioning, Partitions, TableDef};

/// Drops a partition, or adds one that was dropped.
pub async fn change(world: &Rc<World>, table: &Arc<Table>) {
    let changing = Rc::clone(&world.changing);
    let Ok(_changing) = changing.try_lock() else { return };
    if world.process().table(table.id()).is_none() {
        return;
    }
    let missing = partitions::missing(&table.def());
    // Loads without a partition are all refused, so not many are left out for long.
    if !missing.is_empty() && world.throw(|dice| dice.percent(60)) {
        let rows = missing[world.throw(|dice| dice.below(missing.len() as u64)) as usize].clone();
        add(world, table, rows).await;
    } else {
        drop_one(world, table).await;
    }
}

async fn drop_one(world: &Rc<World>, table: &Arc<Table>) {
    let old = table.def();
    let Some(dropped) = partitions::any_whole(world, table) else { return };
    if world.plan.rewrites {
        // So that the partition has files.
        flush(world, table).await;
    }
    if !divide(world, table).await || world.model.borrow().is_wiping(table.id()) {
        return;
    }
    let Some(mut left) = old.partitioning.partitions().map(|all| Partitions::clone(all)) else { return };
    let ids: Vec<_> = dropped.list.iter().map(|partition| partition.id).collect();
    left.remove(&ids);
    note!(world.trace, "drop part", table.id().0, ids[0].0, "table {}: {:?}", table.id(), dropped.list);
    let is_met = |load| partitions::has_load(&dropped, load);
    world.model.borrow_mut().wipe_of_loads_begins(table.id(), is_met);
    let is_done = put(world, table, left, Some(dropped)).await;
    if !world.is_alive() {
        return;
    }
    world.count(|counts| counts.dropped_partitions += u64::from(is_done));
    let checked = world.model.borrow_mut().wiped(table.id(), is_done);
    world.check(checked);
    world.query(table).await;
}

/// Whether the table has the partition then. The caller holds the right to change tables.
async fn add(world: &Rc<World>, table: &Arc<Table>, rows: PartitionRows) -> bool {
    let old = table.def();
    let Some(before) = old.partitioning.partitions() else { return false };
    let mut after = Partitions::clone(before);
    after.add(&format!("again{}", before.next_id), rows, BTreeMap::new());
    note!(
        world.trace,
        "add part",
        table.id().0,
        before.next_id.0,
        "table {}: {:?}",
        table.id(),
        after.list.last()
    );
    if !before.has_all_that_were() {
        let ingest = Arc::clone(&world.process().ingest);
        if ingest.cut(table, after.without(before)).await.is_err() || !world.is_alive() {
            return false;
        }
    }
    let is_done = put(world, table, after, None).await;
    world.count(|counts| counts.added_partitions += u64::from(is_done));
    is_done
}

/// Takes in files of other engines before a partition goes, as the engine does before each statement that empties or drops one.
/// `false`: the statement is refused.
pub async fn divide(world: &World, table: &Table) -> bool {
    if !world.plan.rewrites {
        return true;
    }
    let divided = table.divide().await;
    world.is_alive() && divided.is_ok() && world.process().table(table.id()).is_some()
}

/// Whether the table has these partitions then, and no others, which `dropped` are.
async fn put(world: &World, table: &Table, partitions: Partitions, dropped: Option<Partitions>) -> bool {
    let catalog = &world.hardware.catalog;
    let is_open = || world.is_alive() && world.process().table(table.id()).is_some();
    if !is_open() || tributary_ddl::complete_drop(catalog, table).await.is_err() || !is_open() {
        return false;
    }
    let old = table.def();
    let partitioning = Partitioning::By(Arc::new(partitions));
    let new = TableDef { partitioning, ..TableDef::clone(&old) };
    let new = Arc::new(tributary_ddl::marked(table, new, dropped.as_ref()));
    if dropped.is_some() {
        catalog.power_off_soon();
    }
    if catalog.put_table(&new).is_err() {
        return false;
    }
    let ingest = Arc::clone(&world.process().ingest);
    let changed = match dropped {
        Some(dropped) => ingest.drop_partitions(table, new, dropped).await,
        None => table.alter(new).await,
    };
    if !world.is_alive() {
        return false;
    }
    if changed.is_ok() {
        // Otherwise the mark stays.
        drop(tributary_ddl::end_drop(catalog, table).await);
        return true;
    }
    drop(catalog.put_table(&old));
    false
}

/// Creates the partition that a load needs in a table with automatic partitions. Returns whether the table has it.
pub async fn make(world: &Rc<World>, table: &Arc<Table>, load: u64) -> bool {
    let is_missing = || partitions::made_for(&table.def(), load);
    if is_missing().is_none() {
        return true;
    }
    let changing = Rc::clone(&world.changing);
    let _changing = changing.lock().await;
    if !world.is_alive() || world.process().table(table.id()).is_none() {
        return false;
    }
    // Another load may have made it.
    let Some(rows) = is_missing() else { return true };
    add(world, table, rows).await
}

/// The rows that a load replaces, occasionally: all rows of the table, or those of the load's partition.
pub fn replaced(world: &World, table: &Table, load: LoadId) -> Option<Replaced> {
    let def = table.def();
    let is_possible = def.keys.keeps_all_rows() && !world.model.borrow().is_wiping(table.id());
    if !is_possible || !world.throw(|dice| dice.one_in(4)) {
        return None;
    }
    if !partitions::has_whole(&def) || world.throw(|dice| dice.one_in(4)) {
        note!(world.trace, "replace", load, table.id().0, "load {load} replaces all of table {}", table.id());
        world.model.borrow_mut().replacement_begins(table.id(), load, |_| true);
        return Some(Replaced::All);
    }
    let only = partitions::only_of(&def, load)?;
    note!(
        world.trace,
        "replace",
        load,
        table.id().0,
        "load {load} replaces {:?} of table {}",
        only.list,
        table.id()
    );
    let is_met = |other| partitions::has_load(&only, other);
    world.model.borrow_mut().replacement_begins(table.id(), load, is_met);
    Some(Replaced::In(only))
}

/// Tells the model how the commit of a load that replaces others was answered.
pub fn replacement_answered(world: &World, table: &Table, answer: &Result<Answered, IngestError>) {
    let is_sure = answer.as_ref().err().is_none_or(IngestError::says_nothing_was_kept);
    if !world.is_alive() || !is_sure {
        return;
    }
    world.count(|counts| counts.replacements += u64::from(answer.is_ok()));
    let checked = world.model.borrow_mut().wiped(table.id(), answer.is_ok());
    world.check(checked);
}

/// A compaction, and a partition with several files that is emptied while it runs.
pub async fn cut_while_compacting(world: &Rc<World>, table: &Arc<Table>) {
    if world.plan.compact_min_files > 3 {
        return;
    }
    // Loads in a row are in the same partition, most of them.
    for _ in 0..world.plan.compact_min_files {
        group_load(world, table, Kind::Sync).await;
        flush(world, table).await;
        if !world.is_alive() {
            return;
        }
    }
    let snapshot = table.snapshot();
    let mut files = BTreeMap::new();
    for id in snapshot.files.iter().filter_map(|live| live.file.partition) {
        *files.entry(id).or_insert(0) += 1;
    }
    let most = files.into_iter().max_by_key(|(_, files)| *files);
    let Some((id, _)) = most.filter(|(_, files)| *files >= world.plan.compact_min_files.min(3)) else {
        return;
    };
    let pause = Duration::from_micros(world.throw(|dice| dice.below(2_000)));
    let emptied = async {
        world.machine.sleep(pause).await;
        // Another may have taken its place, with rows that stay.
        let def = table.def();
        let partitions = def.partitioning.partitions().filter(|all| all.by_id(id).is_some());
        if let Some(only) = partitions.map(|all| all.only(&[id])) {
            cut(world, table, Some(only)).await;
        }
    };
    futures::future::join(compact(world, table), emptied).await;
}
