//! `ALTER TABLE`: applies clauses to a definition. Changes that rewrite rows are in [`super::heavy`].

use super::properties::{self, BLOOM_FILTER_COLUMNS};
use super::sequence::SEQUENCE_COL;
use super::{
    aggregate, auto_increment, can_be_omitted, column_def, duplicate_column, find, generated, heavy, index,
    keys, rollup,
};
use super::{partitions, refused};
use crate::ast::{AlterOp, ColumnSpec, Position};
use crate::names;
use std::sync::Arc;
use tributary_types::table::Distribution;
use tributary_types::{
    Aggregation, ColumnDef, ColumnId, DataType, DefaultValue, ErrorCode, FLEXIBLE_UPDATES, SqlError,
    TableDef, TableSchema,
};

/// The table after all clauses of an ALTER TABLE.
///
/// # Errors
/// A column is added twice; [`apply_alter`].
pub fn apply_alters(def: &TableDef, ops: &[AlterOp]) -> Result<TableDef, SqlError> {
    let mut added: Vec<&ColumnSpec> = Vec::new();
    for op in ops {
        let columns = match op {
            AlterOp::AddColumn { column, .. } => std::slice::from_ref(column),
            AlterOp::AddColumns(columns) => columns,
            _ => &[],
        };
        for column in columns {
            match added.iter().find(|other| other.name.eq_ignore_ascii_case(&column.name)) {
                Some(other) if *other == column => {
                    return Err(refused(format!("Repeatedly add column: {}", column.name)));
                }
                Some(_) => {
                    return Err(refused(format!(
                        "Repeatedly add same column with different definition: {}",
                        column.name
                    )));
                }
                None => added.push(column),
            }
        }
    }
    ops.iter().try_fold(def.clone(), |def, op| apply_alter(&def, op))
}

/// Returns the table after one clause of ALTER TABLE. A change of columns makes a new schema version; a change of properties,
/// comments or the table's name does not. Nothing is stored.
///
/// # Errors
/// Changes that Doris does not allow, in its words; unsupported changes, with [`ErrorCode::NotSupported`]; wrong names, values
/// and duplicates as in CREATE TABLE.
pub fn apply_alter(def: &TableDef, op: &AlterOp) -> Result<TableDef, SqlError> {
    let mut new = def.clone();
    match op {
        AlterOp::SetProperties(written) => {
            new.properties = properties::of_alter(&def.properties, written, &def.schema.columns)?;
            partitions::dynamic::settle(&mut new)?;
        }
        AlterOp::RenameTable { to } => {
            names::check_table(to)?;
            if *to == def.name {
                return Err(refused(format!("Same table name: {to}")));
            }
            new.name.clone_from(to);
        }
        AlterOp::ReplaceTable { .. } => {
            return Err(refused("REPLACE WITH TABLE is a statement of its own: leave out the other clauses"));
        }
        AlterOp::ChangeColumn { from, column, position } => {
            if *from != column.name {
                rename(&mut new, from, &column.name)?;
            }
            change(&mut new, column, position.as_ref())?;
        }
        AlterOp::AddPartitions { item, if_not_exists } => partitions::added(&mut new, item, *if_not_exists)?,
        AlterOp::AddTemporaryPartitions { .. }
        | AlterOp::DropTemporaryPartition { .. }
        | AlterOp::ReplacePartitions(_) => {
            return Err(refused(
                "temporary partitions are changed by a statement of their own: write one clause of them in an ALTER TABLE",
            ));
        }
        AlterOp::DropPartition { name, if_exists, .. } => partitions::dropped(&mut new, name, *if_exists)?,
        AlterOp::RenamePartition { from, to } => partitions::renamed(&mut new, from, to)?,
        AlterOp::ModifyPartitions { names, properties } => {
            partitions::modified(&mut new, names, properties)?;
        }
        AlterOp::ModifyComment { comment } => new.comment.clone_from(comment),
        AlterOp::ModifyColumnComment { name, comment } => {
            let index = index_of(def, name)?;
            change_columns(&mut new, |columns| columns[index].comment.clone_from(comment));
        }
        AlterOp::ColumnDefault { name, default } => set_default(&mut new, name, default.as_ref())?,
        AlterOp::AddColumn { column, position } => add(&mut new, column, position.as_ref())?,
        AlterOp::AddColumns(columns) => columns.iter().try_for_each(|column| add(&mut new, column, None))?,
        AlterOp::DropColumn { name } => drop(&mut new, name)?,
        AlterOp::RenameColumn { from, to } => rename(&mut new, from, to)?,
        AlterOp::ModifyColumn { column, position } => heavy::modify(&mut new, column, position.as_ref())?,
        AlterOp::OrderBy { columns } => heavy::order_by(&mut new, columns)?,
        AlterOp::AddRollups(specs) => specs.iter().try_for_each(|spec| rollup::add(&mut new, spec))?,
        AlterOp::DropRollups(names) => names.iter().try_for_each(|name| rollup::drop(&mut new, name))?,
        AlterOp::RenameRollup { from, to } => rollup::rename(&mut new, from, to)?,
        AlterOp::AddIndex(spec) => index::add(&mut new, spec)?,
        AlterOp::RenameIndex { from, to } => index::rename(&mut new, from, to)?,
        AlterOp::DropIndex { name, if_exists } => index::drop(&mut new, name, *if_exists)?,
        AlterOp::EnableFeature { name } => enable(&mut new, name)?,
    }
    if new.schema != def.schema {
        let mut schema = TableSchema::clone(&new.schema);
        schema.version = def.schema.version.next();
        new.schema = Arc::new(schema);
    }
    Ok(new)
}

/// Gives a column another definition, which may be the one that it has.
fn change(def: &mut TableDef, spec: &ColumnSpec, position: Option<&Position>) -> Result<(), SqlError> {
    let index = index_of(def, &spec.name)?;
    if heavy::is_other_default(&def.schema.columns[index], spec) {
        // The new one is of the new type, and the old one may not be.
        set_default(def, &spec.name, None)?;
        change(def, &ColumnSpec { default: None, ..spec.clone() }, position)?;
        return set_default(def, &spec.name, spec.default.as_ref());
    }
    match heavy::modify(def, spec, position) {
        Err(_) if heavy::is_as_specified(def, spec) && position.is_none() => Ok(()),
        modified => modified,
    }
}

/// Gives a column another default, for rows that are loaded from now on.
fn set_default(def: &mut TableDef, name: &str, default: Option<&DefaultValue>) -> Result<(), SqlError> {
    let index = index_of(def, name)?;
    let column = &def.schema.columns[index];
    let what = if column.aggregation.is_some() || column.data_type.is_state() {
        Some("has an aggregation")
    } else if column.generated.is_some() {
        Some("is generated")
    } else if column.auto_increment.is_some() {
        Some("has AUTO_INCREMENT")
    } else if column.on_update {
        Some("has ON UPDATE CURRENT_TIMESTAMP")
    } else if def.schema.sequence == Some(column.id) {
        Some("is the sequence column")
    } else {
        None
    };
    if let Some(what) = what {
        return Err(refused(format!("Can not change default value of column '{name}', which {what}")));
    }
    if let Some(default) = default {
        super::default_value::check(name, column.data_type, column.nullable, default)?;
    }
    change_columns(def, |columns| {
        let column = &mut columns[index];
        // Rows from before the column was added do not change.
        let of_old_rows = column.value_of_old_rows().cloned().unwrap_or(DefaultValue::Null);
        column.default = default.cloned();
        column.filled = Some(of_old_rows).filter(|filled| default.unwrap_or(&DefaultValue::Null) != filled);
    });
    Ok(())
}

/// Adds the columns and properties that a way of loading needs.
fn enable(def: &mut TableDef, feature: &str) -> Result<(), SqlError> {
    let is_unique = def.keys.is_unique();
    match feature {
        "UPDATE_FLEXIBLE_COLUMNS" if is_unique => {
            def.properties.others.insert(FLEXIBLE_UPDATES.to_owned(), "true".to_owned());
            def.schema = Arc::new(def.schema.with_given());
            Ok(())
        }
        "UPDATE_FLEXIBLE_COLUMNS" => {
            Err(refused(format!("{FLEXIBLE_UPDATES} property only support unique key table")))
        }
        "BATCH_DELETE" if is_unique => {
            Err(refused("Can not enable batch delete support, already supported batch delete."))
        }
        "SEQUENCE_LOAD" if is_unique && def.schema.sequence.is_some() => {
            Err(refused("Can not enable sequence column support, already supported sequence column."))
        }
        "SEQUENCE_LOAD" | "BATCH_DELETE" => Err(not_supported(&format!("ENABLE FEATURE \"{feature}\""))),
        _ => Err(refused(format!(
            "unknown feature \"{feature}\": there are UPDATE_FLEXIBLE_COLUMNS, SEQUENCE_LOAD and BATCH_DELETE"
        ))),
    }
}

/// The error for a change that rows can't follow.
fn not_supported(what: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::NotSupported,
        format!("{what} is not supported: create a new table and INSERT … SELECT"),
    )
}

pub(super) fn change_columns(def: &mut TableDef, change: impl FnOnce(&mut Vec<ColumnDef>)) {
    change(&mut Arc::make_mut(&mut def.schema).columns);
}

pub(super) fn index_of(def: &TableDef, name: &str) -> Result<usize, SqlError> {
    let index = def.schema.index_of(name);
    index.filter(|index| def.schema.columns[*index].hidden.is_none()).ok_or_else(|| {
        SqlError::detail(
            ErrorCode::UnknownColumn,
            format!("Unknown column '{name}' in table '{}'", def.table_ref()),
        )
    })
}

fn add(def: &mut TableDef, spec: &ColumnSpec, position: Option<&Position>) -> Result<(), SqlError> {
    if spec.is_key && spec.aggregation.is_some() {
        return Err(refused(format!("Can not assign aggregation method on key column: {}", spec.name)));
    }
    // Without an aggregation it is a key.
    let is_key = spec.is_key || (def.keys.is_aggregate() && spec.aggregation.is_none());
    if find(&def.schema.columns, &spec.name).is_some() {
        return Err(refused(format!("Can not add column which already exists in base table: {}", spec.name)));
    }
    check_state(def, spec)?;
    auto_increment::check_added(spec)?;
    generated::check_added(spec)?;
    let id = def.schema.next_column_id;
    let mut column = column_def(spec, id)?;
    column.is_key = is_key;
    if is_key && !column.data_type.may_be_key() {
        return Err(keys::not_a_key_type_of(def.keys, &column));
    }
    aggregate::check_added(def, &mut column)?;
    super::check_on_update(def.keys, super::merges_on_write(&def.properties), std::slice::from_ref(&column))?;
    if !can_be_omitted(&column) {
        return Err(refused(format!(
            "column '{}' is NOT NULL and has no DEFAULT for the rows that exist: give it a DEFAULT or let it be NULL",
            spec.name
        )));
    }
    column.physical_name = physical_name(&def.schema, &spec.name, id);
    let index = if is_key { heavy::key_position(def, position)? } else { index_for(def, spec, position)? };
    let schema = Arc::make_mut(&mut def.schema);
    schema.columns.insert(index, column);
    schema.next_column_id = id.next();
    Ok(())
}

/// Whether a BITMAP or HLL column can be added to an existing table.
fn check_state(def: &TableDef, spec: &ColumnSpec) -> Result<(), SqlError> {
    if def.keys.is_aggregate() {
        return Ok(());
    }
    if spec.data_type == DataType::Hll {
        let text = format!("HLL type column can only be in Aggregation data model table: {}", spec.name);
        return Err(refused(text));
    }
    match spec.aggregation {
        Some(Aggregation::BitmapUnion) => Err(refused("BITMAP_UNION must be used in AGG_KEYS")),
        _ => Ok(()),
    }
}

/// The column's name in data files. A name that files may already use for a column that was
/// dropped or renamed must not be used again; `~` is in no column's name.
fn physical_name(schema: &TableSchema, name: &str, id: ColumnId) -> String {
    let was_dropped = (id.0 - super::FIRST_COLUMN_ID.0) as usize != schema.columns.len();
    let is_taken = schema.columns.iter().any(|column| column.physical_name.eq_ignore_ascii_case(name));
    if was_dropped || is_taken { format!("{name}~{id}") } else { name.to_owned() }
}

/// The index of a new column: value columns stay after the key columns.
fn index_for(def: &TableDef, spec: &ColumnSpec, position: Option<&Position>) -> Result<usize, SqlError> {
    let keys = def.schema.key_indices().len();
    let index = match position {
        None => def.schema.visible_count(),
        Some(Position::First) => 0,
        Some(Position::After(name)) => behind(def, name)?,
    };
    if index < keys {
        return Err(refused(format!(
            "Invalid column order. value should be after key. index[{}] (column '{}': place it AFTER {})",
            def.name,
            spec.name,
            def.schema.columns[keys - 1].name
        )));
    }
    Ok(index)
}

/// The place behind the column of that name.
pub(super) fn behind(def: &TableDef, name: &str) -> Result<usize, SqlError> {
    let missing = |_| refused(format!("Column[{name}] does not found"));
    Ok(index_of(def, name).map_err(missing)? + 1)
}

fn drop(def: &mut TableDef, name: &str) -> Result<(), SqlError> {
    let index = index_of(def, name).map_err(|_| refused(format!("Column does not exists: {name}")))?;
    generated::check_dropped(&def.schema, index)?;
    let column = &def.schema.columns[index];
    if is_partition_column(def, column) {
        return Err(refused(format!("Partition column[{name}] cannot be dropped. index[{}]", def.name)));
    }
    if column.is_key && def.keys.is_unique() {
        return Err(refused("Can not drop key column in Unique data model table"));
    }
    let replaces = |column: &ColumnDef| column.aggregation.is_some_and(Aggregation::replaces);
    if column.is_key && def.schema.columns.iter().any(replaces) {
        return Err(refused(
            "Can not drop key column when table has value column with REPLACE aggregation method",
        ));
    }
    if column.is_key {
        heavy::check_dropped_key(def, column)?;
    }
    if def.schema.sequence == Some(column.id) {
        return Err(refused(format!(
            "Can not drop sequence mapping column[{name}] in Unique data model table[{}]",
            def.name
        )));
    }
    if let Distribution::Hash { columns, .. } = &def.distribution
        && columns.contains(&column.name)
    {
        return Err(refused(format!("Distribution column[{name}] cannot be dropped. index[{}]", def.name)));
    }
    if def.schema.visible_count() == 1 {
        return Err(refused(format!("column '{name}' is the table's only column: use DROP TABLE")));
    }
    let (name, id) = (column.name.clone(), column.id);
    def.indexes.retain(|index| !index.columns.contains(&id));
    rollup::column_dropped(def, id)?;
    change_bloom_filter(def, |column| (!column.eq_ignore_ascii_case(&name)).then(|| column.to_owned()));
    change_columns(def, |columns| {
        columns.remove(index);
    });
    Ok(())
}

pub(super) fn is_partition_column(def: &TableDef, column: &ColumnDef) -> bool {
    def.partitioning.partitions().is_some_and(|partitions| partitions.columns.contains(&column.id))
}

fn rename(def: &mut TableDef, from: &str, to: &str) -> Result<(), SqlError> {
    let index = index_of(def, from)?;
    generated::check_renamed(&def.schema, index)?;
    names::check_column(to)?;
    if def.schema.index_of(to).is_some_and(|other| other != index) {
        return Err(duplicate_column(to));
    }
    let old = def.schema.columns[index].name.clone();
    if let Distribution::Hash { columns, .. } = &mut def.distribution {
        columns.iter_mut().filter(|column| **column == old).for_each(|column| to.clone_into(column));
    }
    change_bloom_filter(def, |column| {
        Some(if column.eq_ignore_ascii_case(&old) { to.to_owned() } else { column.to_owned() })
    });
    if def.schema.sequence == Some(def.schema.columns[index].id) {
        def.properties.others.insert(SEQUENCE_COL.to_owned(), to.to_owned());
    }
    change_columns(def, |columns| to.clone_into(&mut columns[index].name));
    Ok(())
}

/// Changes the names in `bloom_filter_columns`; the property is removed if none is left.
fn change_bloom_filter(def: &mut TableDef, change: impl Fn(&str) -> Option<String>) {
    let others = &mut def.properties.others;
    let Some(value) = others.get_mut(BLOOM_FILTER_COLUMNS) else { return };
    let names: Vec<String> = properties::column_names(value).filter_map(change).collect();
    if names.is_empty() {
        others.remove(BLOOM_FILTER_COLUMNS);
    } else {
        *value = names.join(",");
    }
}
