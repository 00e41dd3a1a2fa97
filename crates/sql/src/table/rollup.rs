//! Rollups of a definition: what Doris lets a table declare, and how it is printed.
//!
//! They only promise speed, so they are checked and stored, and have no data of their own: queries read the table.

use super::show_create::{escaped, quoted};
use super::{duplicate_column, find, keys, refused};
use crate::ast::RollupSpec;
use crate::names;
use tributary_types::{Aggregation, ColumnDef, ColumnId, DataType, KeyModel, RollupDef, SqlError, TableDef};

/// Properties of a rollup.
const PROPERTIES: [&str; 3] = ["timeout", "storage_type", "storage_format"];

/// The rollups of `CREATE TABLE`.
pub(super) fn of_create(def: &mut TableDef, written: &[RollupSpec]) -> Result<(), SqlError> {
    written.iter().try_for_each(|spec| add(def, spec))
}

/// `ADD ROLLUP`.
pub(super) fn add(def: &mut TableDef, spec: &RollupSpec) -> Result<(), SqlError> {
    names::check_table(&spec.name)?;
    if is_taken(def, &spec.name) {
        return Err(refused(format!("Rollup index[{}] already exists", spec.name)));
    }
    if let Some(base) = spec.base.as_ref().filter(|base| !is_taken(def, base)) {
        return Err(refused(format!("Base index[{base}] does not exist")));
    }
    if let Some((key, _)) = spec.properties.iter().find(|(key, _)| !PROPERTIES.contains(&key.as_str())) {
        return Err(refused(format!(
            "Unknown properties: {key} is no property of a rollup, which has {}",
            PROPERTIES.join(", ")
        )));
    }
    let columns = columns(def, spec)?;
    let keys = match def.keys {
        KeyModel::Duplicate { .. } => keys_of_duplicate(def, spec, &columns)?,
        KeyModel::Unique | KeyModel::Aggregate => keys_of_keyed(def, &columns)?,
    };
    let number = def.rollups.iter().map(|rollup| rollup.number).max().unwrap_or(0) + 1;
    let columns = columns.iter().map(|column| column.id).collect();
    def.rollups.push(RollupDef {
        number,
        name: spec.name.clone(),
        columns,
        keys,
        properties: spec.properties.clone(),
        made_at_ms: None,
    });
    Ok(())
}

/// `DROP ROLLUP`.
pub(super) fn drop(def: &mut TableDef, name: &str) -> Result<(), SqlError> {
    if *name == def.name {
        return Err(refused("Cannot drop base index by using DROP ROLLUP or DROP MATERIALIZED VIEW."));
    }
    let Some(place) = def.rollups.iter().position(|rollup| rollup.name == name) else {
        return Err(refused(format!("Materialized view [{name}] does not exist in table [{}]", def.name)));
    };
    def.rollups.remove(place);
    Ok(())
}

/// `RENAME ROLLUP`.
pub(super) fn rename(def: &mut TableDef, from: &str, to: &str) -> Result<(), SqlError> {
    if *from == def.name {
        return Err(refused("Using ALTER TABLE RENAME to change table name"));
    }
    if from == to {
        return Err(refused("Same rollup name"));
    }
    let Some(place) = def.rollups.iter().position(|rollup| rollup.name == from) else {
        return Err(refused(format!("Rollup index[{from}] does not exists")));
    };
    names::check_table(to)?;
    if is_taken(def, to) {
        return Err(refused(format!("Rollup name[{to}] is already used")));
    }
    to.clone_into(&mut def.rollups[place].name);
    Ok(())
}

/// Removes a dropped column from rollups; a rollup without other columns is dropped.
pub(super) fn column_dropped(def: &mut TableDef, column: ColumnId) -> Result<(), SqlError> {
    for rollup in &mut def.rollups {
        let Some(place) = rollup.columns.iter().position(|id| *id == column) else { continue };
        rollup.columns.remove(place);
        if place < rollup.keys {
            rollup.keys -= 1;
        }
        if rollup.keys == 0 && !rollup.columns.is_empty() {
            return Err(refused(format!("No key column left. index[{}]", rollup.name)));
        }
    }
    def.rollups.retain(|rollup| !rollup.columns.is_empty());
    Ok(())
}

/// The rollups of a table created like this one; `None`: none, an empty list: all.
///
/// # Errors
/// No rollup of such a name.
pub(super) fn of_copy(source: &TableDef, with: Option<&[String]>) -> Result<Vec<RollupDef>, SqlError> {
    let Some(names) = with else { return Ok(Vec::new()) };
    if let Some(name) = names.iter().find(|name| source.rollups.iter().all(|rollup| rollup.name != **name)) {
        return Err(refused(format!("Rollup index[{name}] not exists in Table[{}]", source.name)));
    }
    let is_meant = |rollup: &&RollupDef| names.is_empty() || names.contains(&rollup.name);
    let copy = |rollup: &RollupDef| RollupDef { made_at_ms: None, ..rollup.clone() };
    Ok(source.rollups.iter().filter(is_meant).map(copy).collect())
}

/// The clause of SHOW CREATE TABLE.
pub(super) fn clause(def: &TableDef) -> Option<String> {
    if def.rollups.is_empty() {
        return None;
    }
    let name_of = |id: &ColumnId| def.schema.index_of_id(*id).map(|at| quoted(&def.schema.columns[at].name));
    let list = |ids: &[ColumnId]| ids.iter().filter_map(name_of).collect::<Vec<_>>().join(", ");
    let item = |rollup: &RollupDef| {
        let mut item = format!("{} ({})", quoted(&rollup.name), list(&rollup.columns));
        if def.keys.keeps_all_rows() {
            item.push_str(&format!(" DUPLICATE KEY ({})", list(&rollup.columns[..rollup.keys])));
        }
        if !rollup.properties.is_empty() {
            let pair = |(key, value): &(String, String)| {
                format!("\"{}\" = \"{}\"", escaped(key, '"'), escaped(value, '"'))
            };
            let pairs: Vec<String> = rollup.properties.iter().map(pair).collect();
            item.push_str(&format!(" PROPERTIES ({})", pairs.join(", ")));
        }
        item
    };
    let items: Vec<String> = def.rollups.iter().map(item).collect();
    Some(format!("ROLLUP (\n{}\n)", items.join(",\n")))
}

/// A table is its own base index.
fn is_taken(def: &TableDef, name: &str) -> bool {
    *name == def.name || def.rollups.iter().any(|rollup| rollup.name == name)
}

fn columns<'d>(def: &'d TableDef, spec: &RollupSpec) -> Result<Vec<&'d ColumnDef>, SqlError> {
    let mut columns: Vec<&ColumnDef> = Vec::with_capacity(spec.columns.len());
    for name in &spec.columns {
        let found = find(&def.schema.columns, name).filter(|column| column.hidden.is_none());
        let Some(column) = found else {
            let of_base =
                if def.keys.keeps_all_rows() && spec.keys.is_empty() { " in base index" } else { "" };
            return Err(refused(format!("Column[{name}] does not exist{of_base}")));
        };
        if columns.iter().any(|other| other.id == column.id) {
            return Err(duplicate_column(name));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// How many of the columns are keys in a table with UNIQUE or AGGREGATE KEY.
fn keys_of_keyed(def: &TableDef, columns: &[&ColumnDef]) -> Result<usize, SqlError> {
    let keys = columns.iter().take_while(|column| column.is_key).count();
    if columns[keys..].iter().any(|column| column.is_key) {
        return Err(refused("Invalid column order. value should be after key"));
    }
    if columns[..keys].iter().any(|column| is_float(column)) {
        return Err(refused("Do not support float/double type on group by, you can change it to decimal"));
    }
    if keys == 0 {
        return Err(refused("No key column is found"));
    }
    let of_table = def.schema.key_indices();
    let replaces = columns.iter().any(|column| column.aggregation.is_some_and(Aggregation::replaces));
    if keys != of_table.len() && def.keys.is_unique() {
        return Err(refused("Rollup should contains all unique keys in basetable"));
    }
    if keys != of_table.len() && replaces {
        return Err(refused("Rollup should contains all keys if there is a REPLACE value"));
    }
    let of_table = of_table.iter().map(|at| def.schema.columns[*at].id);
    if of_table.eq(columns[..keys].iter().map(|column| column.id)) {
        return Err(refused(
            "Rollup contains all keys in base table with same order for aggregation or unique table is useless.",
        ));
    }
    Ok(keys)
}

/// How many of the columns are keys in a table whose rows all stay.
fn keys_of_duplicate(def: &TableDef, spec: &RollupSpec, columns: &[&ColumnDef]) -> Result<usize, SqlError> {
    let keys = match spec.keys.as_slice() {
        [] if columns.first().is_some_and(|first| is_float(first)) => {
            return Err(refused("The first column could not be float or double"));
        }
        [] => {
            let columns: Vec<ColumnDef> = columns.iter().copied().cloned().collect();
            keys::derive(&columns)?.len()
        }
        named if named.len() > columns.len() => {
            return Err(refused("Num of duplicate keys should less than or equal to num of rollup columns."));
        }
        named => {
            let is_prefix =
                named.iter().zip(columns).all(|(name, column)| name.eq_ignore_ascii_case(&column.name));
            if !is_prefix {
                return Err(refused("Duplicate keys should be the prefix of rollup columns"));
            }
            if let Some(column) = columns[..named.len()].iter().find(|column| !column.data_type.may_be_key())
            {
                return Err(keys::not_a_key_type_of(def.keys, column));
            }
            named.len()
        }
    };
    // A key column at another index makes another order.
    let is_same =
        columns.iter().zip(def.schema.visible()).all(|(own, base)| own.id == base.id || !base.is_key);
    if is_same {
        return Err(refused(
            "Rollup contain the columns of the base table in prefix order for duplicate table is useless.",
        ));
    }
    Ok(keys)
}

const fn is_float(column: &ColumnDef) -> bool {
    matches!(column.data_type, DataType::Float | DataType::Double)
}
