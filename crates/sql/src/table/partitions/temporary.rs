//! Temporary partitions: partitions of a table beside the target table, until they replace partitions of the latter.
//!
//! The table beside has the columns and keys of its table, and the temporary partitions as its own. So the rules of partitions
//! apply: they do not overlap, and rows are assigned by their values.

use super::alter::{check_distribution, divided};
use super::{Forms, add, refused};
use crate::ast::ReplacePartitions;
use crate::parse::PartitionItem;
use crate::table::location;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::partition::{Bound, PartitionRows};
use tributary_types::{
    ColumnDef, ErrorCode, Partition, PartitionId, PartitionMethod, Partitioning, Partitions, SqlError,
    TableDef, TableId,
};

/// The prefix of the properties of scheduled partitions, which temporary ones never are.
const DYNAMIC: &str = "dynamic_partition.";

/// The outcome of `REPLACE PARTITION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The table's partitions after it.
    pub partitions: Partitions,
    /// The temporary partitions with their new ids.
    pub moved: Vec<(PartitionId, PartitionId)>,
}

/// The table beside `def` for its temporary partitions, initially without any.
///
/// # Errors
/// The table has no partitions.
pub fn beside(def: &TableDef, id: TableId, name: String) -> Result<TableDef, SqlError> {
    let Some(of_table) = def.partitioning.partitions() else {
        return Err(refused("Only support adding partition to range and list partitioned table"));
    };
    let partitions = Partitions::new(of_table.method, of_table.columns.clone());
    let mut properties = def.properties.clone();
    properties.others.retain(|name, _| !name.starts_with(DYNAMIC));
    Ok(TableDef {
        id,
        name,
        partitioning: Partitioning::By(Arc::new(partitions)),
        drop_mark: None,
        properties,
        location: location(&def.db, "temporary", id),
        ..def.clone()
    })
}

/// The temporary partitions after `ADD TEMPORARY PARTITION`; `beside` is their table.
///
/// # Errors
/// A name is taken, by a partition or a temporary one (1517); rows that another temporary partition has; a wrong form.
pub fn add_temporary(
    def: &TableDef,
    beside: &TableDef,
    item: &PartitionItem,
    if_not_exists: bool,
) -> Result<TableDef, SqlError> {
    let (of_table, temporary) = (divided(def)?, divided(beside)?);
    let taken = |name: &str| {
        Err(SqlError::new(ErrorCode::PartitionExists, format!("Duplicate partition name {name}")))
    };
    if let PartitionItem::One { name, .. } = item
        && (of_table.index_of(name).is_some() || temporary.index_of(name).is_some())
    {
        return if if_not_exists { Ok(beside.clone()) } else { taken(name) };
    }
    check_distribution(def, item)?;
    let mut changed = Partitions::clone(temporary);
    let columns: Vec<ColumnDef> = changed.columns_of(&def.schema).into_iter().cloned().collect();
    Forms::default().check(item)?;
    add(&mut changed, item, &columns.iter().collect::<Vec<_>>())?;
    if let Some(both) = changed.list.iter().find(|added| of_table.index_of(&added.name).is_some()) {
        return taken(&both.name);
    }
    Ok(TableDef { partitioning: Partitioning::By(Arc::new(changed)), ..beside.clone() })
}

/// The table after `REPLACE PARTITION`; `beside` is the table of its temporary partitions, if it has any.
///
/// # Errors
/// No such partitions; different rows (`strict_range`), or rows of other partitions; unknown properties.
pub fn replacement(
    def: &TableDef,
    beside: Option<&TableDef>,
    replace: &ReplacePartitions,
) -> Result<Replacement, SqlError> {
    let of_table = divided(def)?;
    let options = Options::of(&replace.properties)?;
    let none = Partitions::new(of_table.method, of_table.columns.clone());
    let temporary = beside.and_then(|beside| beside.partitioning.partitions()).map_or(&none, |all| all);
    let old = named(of_table, &replace.names, "Partition")?;
    let new = named(temporary, &replace.with, "Temp partition")?;
    let columns = of_table.columns_of(&def.schema);
    // Values of a list are compared strictly in any case.
    if options.strict_range || of_table.method == PartitionMethod::List {
        check_same(&old, &new, &columns)?;
    }
    let ids: Vec<PartitionId> = old.iter().map(|partition| partition.id).collect();
    let mut partitions = Partitions::clone(of_table);
    partitions.remove(&ids);
    let keeps_names = !options.use_temporary_name && old.len() == new.len();
    let mut moved = Vec::with_capacity(new.len());
    for (place, partition) in new.iter().enumerate() {
        if let PartitionRows::Range { lower, upper } = &partition.rows
            && partitions.intersection(lower, upper, &columns).is_some()
        {
            return Err(refused(format!(
                "Range: {} conflicts with existing range",
                partition.range_text(&columns)
            )));
        }
        let name = if keeps_names { &old[place].name } else { &partition.name };
        moved.push((partition.id, partitions.next_id));
        partitions.add(name, partition.rows.clone(), partition.properties.clone());
    }
    Ok(Replacement { partitions, moved })
}

struct Options {
    strict_range: bool,
    use_temporary_name: bool,
}

impl Options {
    fn of(properties: &[(String, String)]) -> Result<Self, SqlError> {
        let mut options = Self { strict_range: true, use_temporary_name: false };
        for (name, value) in properties {
            let option = match name.to_ascii_lowercase().as_str() {
                "strict_range" => &mut options.strict_range,
                "use_temp_partition_name" => &mut options.use_temporary_name,
                _ => {
                    return Err(refused(format!(
                        "Unknown properties: {name} is no property of REPLACE PARTITION, which has strict_range and \
                         use_temp_partition_name"
                    )));
                }
            };
            *option = match value.to_ascii_lowercase().as_str() {
                "true" => true,
                "false" => false,
                _ => return Err(refused(format!("{name} must be `true` or `false`, and is '{value}'"))),
            };
        }
        Ok(options)
    }
}

fn named<'p>(
    partitions: &'p Partitions,
    names: &[String],
    what: &str,
) -> Result<Vec<&'p Partition>, SqlError> {
    let mut found: Vec<&Partition> = Vec::with_capacity(names.len());
    for name in names {
        let place = partitions.index_of(name);
        let place = place.ok_or_else(|| refused(format!("{what}[{name}] does not exist")))?;
        let partition = &partitions.list[place];
        if found.iter().any(|known| known.id == partition.id) {
            return Err(refused(format!("{what}[{name}] is named twice")));
        }
        found.push(partition);
    }
    Ok(found)
}

/// An error unless both have the same rows together.
fn check_same(old: &[&Partition], new: &[&Partition], columns: &[&ColumnDef]) -> Result<(), SqlError> {
    let shown = |all: &[&Partition]| {
        let texts: Vec<_> = all.iter().map(|partition| partition.range_text(columns)).collect();
        format!("[{}]", texts.join(", "))
    };
    let has_others = |all: &[&Partition]| all.iter().any(|partition| partition.rows == PartitionRows::Others);
    let is_same =
        joined(old) == joined(new) && values(old) == values(new) && has_others(old) == has_others(new);
    if is_same {
        return Ok(());
    }
    let kind = if values(old).is_empty() && values(new).is_empty() { "range" } else { "list" };
    Err(refused(format!("2 {kind} lists are not stricly matched. {} vs. {}", shown(old), shown(new))))
}

/// The ranges of partitions, adjacent ones merged.
fn joined<'p>(all: &[&'p Partition]) -> BTreeMap<&'p [Bound], &'p [Bound]> {
    let mut ranges: Vec<(&[Bound], &[Bound])> = all
        .iter()
        .filter_map(|partition| match &partition.rows {
            PartitionRows::Range { lower, upper } => Some((lower.as_slice(), upper.as_slice())),
            _ => None,
        })
        .collect();
    ranges.sort_unstable();
    let mut joined: Vec<(&[Bound], &[Bound])> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.1 == range.0 => last.1 = range.1,
            _ => joined.push(range),
        }
    }
    joined.into_iter().collect()
}

fn values<'p>(all: &[&'p Partition]) -> Vec<&'p [tributary_types::partition::PartitionValue]> {
    let tuples = all.iter().filter_map(|partition| match &partition.rows {
        PartitionRows::Values(tuples) => Some(tuples),
        _ => None,
    });
    let mut values: Vec<_> = tuples.flatten().map(Vec::as_slice).collect();
    values.sort_unstable();
    values
}
