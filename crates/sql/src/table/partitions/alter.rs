//! Partitions that ALTER TABLE and TRUNCATE TABLE name.

use super::{Forms, add, refused};
use crate::parse::PartitionItem;
use std::sync::Arc;
use tributary_types::partition::Partition;
use tributary_types::table::Distribution;
use tributary_types::{ColumnDef, ErrorCode, PartitionId, Partitioning, Partitions, SqlError, TableDef};

/// Adds partitions.
pub(in crate::table) fn added(
    def: &mut TableDef,
    item: &PartitionItem,
    if_not_exists: bool,
) -> Result<(), SqlError> {
    let Some(partitions) = def.partitioning.partitions() else {
        return Err(refused("Only support adding partition to range and list partitioned table"));
    };
    if let PartitionItem::One { name, .. } = item
        && partitions.index_of(name).is_some()
    {
        if if_not_exists {
            return Ok(());
        }
        return Err(SqlError::new(ErrorCode::PartitionExists, format!("Duplicate partition name {name}")));
    }
    super::dynamic::refuse_by_hand(def)?;
    check_distribution(def, item)?;
    let mut changed = Partitions::clone(partitions);
    let columns: Vec<ColumnDef> = changed.columns_of(&def.schema).into_iter().cloned().collect();
    Forms::default().check(item)?;
    add(&mut changed, item, &columns.iter().collect::<Vec<_>>())?;
    def.partitioning = Partitioning::By(Arc::new(changed));
    Ok(())
}

/// A partition may have a number of buckets of its own, and nothing else.
pub(super) fn check_distribution(def: &TableDef, item: &PartitionItem) -> Result<(), SqlError> {
    let PartitionItem::One { distribution: Some(own), .. } = item else { return Ok(()) };
    match (own, &def.distribution) {
        (Distribution::Hash { columns: own, .. }, Distribution::Hash { columns, .. }) => {
            let is_same = own.len() == columns.len()
                && own.iter().zip(columns).all(|(own, column)| own.eq_ignore_ascii_case(column));
            if is_same {
                return Ok(());
            }
            Err(refused(format!(
                "Cannot assign hash distribution with different distribution cols. new is: [{}] default is: [{}]",
                own.join(", "),
                columns.join(", ")
            )))
        }
        (Distribution::Random { .. }, Distribution::Random { .. }) => Ok(()),
        (_, default) => Err(refused(format!(
            "Cannot assign different distribution type. default is: {}",
            if matches!(default, Distribution::Hash { .. }) { "HASH" } else { "RANDOM" }
        ))),
    }
}

/// Drops a partition.
pub(in crate::table) fn dropped(def: &mut TableDef, name: &str, if_exists: bool) -> Result<(), SqlError> {
    divided(def)?;
    super::dynamic::refuse_by_hand(def)?;
    *def = without_partition(def, name, if_exists)?;
    Ok(())
}

/// The table without a partition.
///
/// # Errors
/// No partition has that name (1507).
pub fn without_partition(def: &TableDef, name: &str, if_exists: bool) -> Result<TableDef, SqlError> {
    let partitions = divided(def)?;
    let Some(place) = partitions.index_of(name) else {
        if if_exists {
            return Ok(def.clone());
        }
        return Err(SqlError::new(
            ErrorCode::DropPartitionMissing,
            format!("Error in list of partitions to {name}"),
        ));
    };
    let mut changed = Partitions::clone(partitions);
    changed.remove(&[changed.list[place].id]);
    Ok(TableDef { partitioning: Partitioning::By(Arc::new(changed)), ..def.clone() })
}

/// The table's partitions with one that was dropped, under this name, and its new id.
///
/// # Errors
/// Doris's errors: the name is taken, or other partitions overlap it.
pub fn with_recovered(
    def: &TableDef,
    dropped: &Partition,
    name: &str,
) -> Result<(Partitions, PartitionId), SqlError> {
    let partitions = divided(def)?;
    super::check_name(name)?;
    if partitions.index_of(name).is_some() {
        return Err(refused(format!("Partition name[{name}] is already used")));
    }
    let mut changed = Partitions::clone(partitions);
    let (id, columns) = (changed.next_id, partitions.columns_of(&def.schema));
    super::add_one(&mut changed, name, dropped.rows.clone(), dropped.properties.clone(), &columns).map_err(
        |_| refused(format!("Can not recover partition[{}]. Partition item conflict.", dropped.name)),
    )?;
    Ok((changed, id))
}

/// Gives a partition another name.
pub(in crate::table) fn renamed(def: &mut TableDef, from: &str, to: &str) -> Result<(), SqlError> {
    let partitions = divided(def)?;
    let place = partitions.index_of(from).ok_or_else(|| unknown(def, from))?;
    super::check_name(to)?;
    if partitions.index_of(to).is_some() {
        return Err(SqlError::new(ErrorCode::PartitionExists, format!("Duplicate partition name {to}")));
    }
    let mut changed = Partitions::clone(partitions);
    to.clone_into(&mut changed.list[place].name);
    def.partitioning = Partitioning::By(Arc::new(changed));
    Ok(())
}

/// Keeps properties of partitions; without names, of all.
pub(in crate::table) fn modified(
    def: &mut TableDef,
    names: &[String],
    properties: &[(String, String)],
) -> Result<(), SqlError> {
    const KNOWN: [&str; 6] = [
        "replication_num",
        "replication_allocation",
        "storage_medium",
        "storage_cooldown_time",
        "storage_policy",
        "in_memory",
    ];
    let is_known = |name: &str| KNOWN.contains(&name.trim_start_matches("default."));
    if let Some((name, _)) = properties.iter().find(|(name, _)| !is_known(name)) {
        return Err(refused(format!("Unknown properties: {name} is no property of a partition")));
    }
    let Some(partitions) = def.partitioning.partitions() else {
        // Its one partition has its name.
        return match names.iter().find(|name| !name.eq_ignore_ascii_case(&def.name)) {
            Some(name) => Err(unknown(def, name)),
            None => Ok(()),
        };
    };
    let mut changed = Partitions::clone(partitions);
    let places = match names {
        [] => (0..changed.list.len()).collect(),
        names => names
            .iter()
            .map(|name| changed.index_of(name).ok_or_else(|| unknown(def, name)))
            .collect::<Result<Vec<_>, _>>()?,
    };
    for place in places {
        changed.list[place].properties.extend(properties.iter().cloned());
    }
    def.partitioning = Partitioning::By(Arc::new(changed));
    Ok(())
}

pub(super) fn divided(def: &TableDef) -> Result<&Arc<Partitions>, SqlError> {
    let none = || refused(format!("table [{}] is not a partitioned table", def.name));
    def.partitioning.partitions().ok_or_else(none)
}

fn unknown(def: &TableDef, name: &str) -> SqlError {
    SqlError::new(ErrorCode::UnknownPartition, format!("Unknown partition '{name}' in table '{}'", def.name))
}

/// Finds the partitions of these names. `None` if the table has no partitions, and its own name means all its rows.
///
/// # Errors
/// [`ErrorCode::UnknownPartition`].
pub fn named_partitions(def: &TableDef, names: &[String]) -> Result<Option<Partitions>, SqlError> {
    let Some(partitions) = def.partitioning.partitions() else {
        return match names.iter().find(|name| !name.eq_ignore_ascii_case(&def.name)) {
            Some(name) => Err(unknown(def, name)),
            None => Ok(None),
        };
    };
    let place = |name: &String| partitions.index_of(name).ok_or_else(|| unknown(def, name));
    let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<_> = places.into_iter().map(|place| partitions.list[place].id).collect();
    Ok(Some(partitions.only(&ids)))
}
