//! Tables in partitions: each data file says which one its rows are in, and has rows of no other; the partitions together have all
//! rows, each once, wherever they are.
//!
//! The partition of a row is computed here independently, from the bounds alone and not as the tables do.

use crate::model::{LoadId, ROWS_PER_LOAD};
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_table::{LiveFile, Snapshot, Table};
use tributary_types::partition::{AutoPartition, Bound, PartitionRows, PartitionValue, TimeUnit};
use tributary_types::{ColumnId, PartitionId, PartitionMethod, Partitioning, Partitions, TableDef, Version};

/// The number of loads that share an automatic partition.
const LOADS_PER_MADE: i64 = 6;

/// The table with partitions by ranges of its ids, which cut loads in two.
#[must_use]
pub fn partitioned(def: &TableDef) -> Arc<TableDef> {
    let cuts: Vec<i64> = match def.keys.keeps_all_rows() {
        // In most tables whole loads are in a partition.
        true => (1..12)
            .chain([16, 24, 40])
            .map(|load| load * ROWS_PER_LOAD + if cuts_loads(def) { load % 4 } else { 0 })
            .collect(),
        false => vec![5, 6, 14, 20],
    };
    let mut partitions = Partitions::new(PartitionMethod::Range, vec![ColumnId(1)]);
    if def.keys.keeps_all_rows() && !cuts_loads(def) && def.id.0.is_multiple_of(3) {
        // The unit is the engine's business.
        partitions.auto = Some(AutoPartition::Range(TimeUnit::Day));
        return Arc::new(TableDef { partitioning: Partitioning::By(partitions.into()), ..def.clone() });
    }
    let mut lower = Bound::Min;
    for (number, cut) in cuts.into_iter().enumerate() {
        let upper = Bound::Value(PartitionValue::Int(cut.into()));
        let rows = PartitionRows::Range {
            lower: vec![std::mem::replace(&mut lower, upper.clone())],
            upper: vec![upper],
        };
        partitions.add(&format!("p{number}"), rows, BTreeMap::new());
    }
    let rest = PartitionRows::Range { lower: vec![lower], upper: vec![Bound::Max] };
    partitions.add("rest", rest, BTreeMap::new());
    Arc::new(TableDef { partitioning: Partitioning::By(partitions.into()), ..def.clone() })
}

const fn cuts_loads(def: &TableDef) -> bool {
    def.properties.group_commit_data_bytes == 2_000
}

/// Whether each load of the table is in one partition as a whole.
#[must_use]
pub fn has_whole(def: &TableDef) -> bool {
    def.partitioning.partitions().is_some() && def.keys.keeps_all_rows() && !cuts_loads(def)
}

/// Any partition that has whole loads, often.
#[must_use]
pub fn any_whole(world: &World, table: &Table) -> Option<Partitions> {
    let def = table.def();
    let partitions = def.partitioning.partitions()?;
    if !has_whole(&def) || world.throw(|dice| dice.one_in(4)) {
        return None;
    }
    // One that is likely to have rows.
    let last = world.model.borrow().last_load();
    let load = world.throw(|dice| dice.below(last + 1));
    let id = partition_of(partitions, load as i64 * ROWS_PER_LOAD)?;
    Some(partitions.only(&[id]))
}

/// The rows of the partitions that the table had when it was created and has no more.
#[must_use]
pub fn missing(def: &TableDef) -> Vec<PartitionRows> {
    let first = partitioned(def);
    let (Some(first), Some(now)) = (first.partitioning.partitions(), def.partitioning.partitions()) else {
        return Vec::new();
    };
    let is_there = |rows: &PartitionRows| now.list.iter().any(|partition| partition.rows == *rows);
    first.list.iter().map(|partition| partition.rows.clone()).filter(|rows| !is_there(rows)).collect()
}

/// The rows of the partition that a load creates, if the table's loads do so and it does not exist.
#[must_use]
pub fn made_for(def: &TableDef, load: LoadId) -> Option<PartitionRows> {
    let partitions = def.partitioning.partitions().filter(|partitions| partitions.auto.is_some())?;
    if has_load(partitions, load) {
        return None;
    }
    let first = load as i64 / LOADS_PER_MADE * LOADS_PER_MADE;
    let bound = |load: i64| vec![Bound::Value(PartitionValue::Int((load * ROWS_PER_LOAD).into()))];
    Some(PartitionRows::Range { lower: bound(first), upper: bound(first + LOADS_PER_MADE) })
}

/// The partition that a load is in, alone.
#[must_use]
pub fn only_of(def: &TableDef, load: LoadId) -> Option<Partitions> {
    let partitions = def.partitioning.partitions()?;
    let id = partition_of(partitions, load as i64 * ROWS_PER_LOAD)?;
    Some(partitions.only(&[id]))
}

/// Whether the rows of a load are in one of the partitions.
#[must_use]
pub fn has_load(partitions: &Partitions, load: LoadId) -> bool {
    partition_of(partitions, load as i64 * ROWS_PER_LOAD).is_some()
}

/// Checks that a data file has rows of the partition only that it says.
///
/// # Errors
/// The fault, in words.
pub fn check_file(
    snapshot: &Snapshot,
    live: &LiveFile,
    ids: impl Iterator<Item = i64>,
) -> Result<(), String> {
    let Some(partitions) = snapshot.def.partitioning.partitions() else { return Ok(()) };
    let Some(own) = live.file.partition else {
        return check_foreign(partitions, live, ids);
    };
    for id in ids {
        let should = partition_of(partitions, id);
        if should != Some(own) {
            return Err(format!("is of partition {own} and has id {id}, which is in {should:?}"));
        }
    }
    Ok(())
}

/// Checks a file without a partition: it is another engine's, and each of its rows has one.
fn check_foreign(
    partitions: &Partitions,
    live: &LiveFile,
    mut ids: impl Iterator<Item = i64>,
) -> Result<(), String> {
    if live.file.version != Version(0) {
        return Err("says no partition".to_owned());
    }
    match ids.find(|id| partition_of(partitions, *id).is_none()) {
        Some(id) => Err(format!("has id {id} of another engine, which no partition takes")),
        None => Ok(()),
    }
}

/// Checks that the partitions together have the snapshot's rows, and those in memory are in theirs.
///
/// # Errors
/// The fault, in words.
pub fn check_parts(
    snapshot: &Snapshot,
    ids_in_memory: impl Fn(&Snapshot) -> Result<Vec<i64>, String>,
) -> Result<(), String> {
    let Some(partitions) = snapshot.def.partitioning.partitions() else { return Ok(()) };
    if snapshot.files.iter().any(|live| live.file.partition.is_none()) {
        // Rows of a partition can't be told until the file is divided.
        return Ok(());
    }
    let mut rows = 0;
    for (place, partition) in partitions.list.iter().enumerate() {
        let only: Vec<bool> = (0..partitions.list.len()).map(|other| other == place).collect();
        let part = snapshot.in_partitions(&only).map_err(|error| error.to_string())?;
        rows += part.rows();
        for id in ids_in_memory(&part)? {
            if partition_of(partitions, id) != Some(partition.id) {
                return Err(format!("partition {} shows id {id} of the memtable", partition.id));
            }
        }
    }
    if rows == snapshot.rows() {
        return Ok(());
    }
    Err(format!("the partitions have {rows} rows together, the table has {}", snapshot.rows()))
}

fn partition_of(partitions: &Partitions, id: i64) -> Option<PartitionId> {
    let is_in = |rows: &PartitionRows| match rows {
        PartitionRows::Range { lower, upper } => {
            let below = |bound: &Bound| match bound {
                Bound::Min => false,
                Bound::Value(PartitionValue::Int(value)) => i128::from(id) < *value,
                Bound::Value(_) | Bound::Max => true,
            };
            below(&upper[0]) && !below(&lower[0])
        }
        _ => false,
    };
    partitions.list.iter().find(|partition| is_in(&partition.rows)).map(|partition| partition.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::{SchemaVersion, TableId, TableSchema};

    #[test]
    fn every_row_has_a_partition_and_loads_are_cut_in_two() {
        let schema = TableSchema::new(SchemaVersion(1), Vec::new());
        let mut def = TableDef::new(TableId(1), "db", "t", schema);
        def.properties.group_commit_data_bytes = 2_000;
        let def = partitioned(&def);
        let partitions = def.partitioning.partitions().unwrap();
        let of = |id| partition_of(partitions, id).unwrap();
        assert!((0..60 * ROWS_PER_LOAD).all(|id| of(id).0 >= 1));
        assert_ne!(of(3 * ROWS_PER_LOAD), of(3 * ROWS_PER_LOAD + 3));
    }
}
