//! `partition.retention_count`: limits the old partitions of a table whose loads create partitions by ranges of time.
//!
//! A partition is old if it ends at the given moment or before. The newest of the old ones stay up to that number, and so do all
//! others. Not this module's business: the schedule.

use super::dynamic::{bound, column};
use super::refused;
use chrono::NaiveDateTime;
use std::sync::Arc;
use tributary_types::partition::{AutoPartition, PartitionRows};
use tributary_types::{Partitioning, Partitions, SqlError, TableDef};

/// The name of the property.
pub(in crate::table) const COUNT: &str = "partition.retention_count";

/// Checks the value of the property.
pub(in crate::table) fn checked(value: &str) -> Result<String, SqlError> {
    match value.trim().parse::<u32>() {
        Ok(count) if count > 0 => Ok(count.to_string()),
        _ => Err(refused(format!("{COUNT} should be a positive integer, and is '{value}'"))),
    }
}

/// Refuses the property for tables without such partitions.
pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    if !def.properties.others.contains_key(COUNT) || is_possible(def) {
        return Ok(());
    }
    Err(refused(format!("{COUNT} is a property of tables with AUTO PARTITION BY RANGE only: leave it out")))
}

fn is_possible(def: &TableDef) -> bool {
    let auto = def.partitioning.partitions().and_then(|partitions| partitions.auto);
    matches!(auto, Some(AutoPartition::Range(_)))
}

/// Number of old partitions that the table retains; `None`: all.
pub(super) fn count(def: &TableDef) -> Option<usize> {
    let count = def.properties.others.get(COUNT)?.parse().ok()?;
    is_possible(def).then_some(count)
}

/// The table without the partitions that are too old at the moment; `None` if there are none.
pub(super) fn kept(def: &TableDef, now: NaiveDateTime) -> Option<TableDef> {
    let (count, column) = (count(def)?, column(def)?);
    let partitions = def.partitioning.partitions()?;
    let now = bound(now, column);
    let mut old: Vec<_> = partitions
        .list
        .iter()
        .filter_map(|partition| match &partition.rows {
            PartitionRows::Range { upper, .. } => Some((&upper[0], partition.id)),
            _ => None,
        })
        .filter(|(upper, _)| **upper <= now)
        .collect();
    old.sort_unstable();
    old.truncate(old.len().saturating_sub(count));
    if old.is_empty() {
        return None;
    }
    let mut left = Partitions::clone(partitions);
    left.remove(&old.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
    Some(TableDef { partitioning: Partitioning::By(Arc::new(left)), ..def.clone() })
}
