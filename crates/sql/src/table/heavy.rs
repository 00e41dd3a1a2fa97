//! Heavy schema changes of `ALTER TABLE`: other types, other keys, another order of columns. Computes the new definition;
//! converting rows is a job's business.

use super::alter::{behind, change_columns, index_of, is_partition_column};
use super::{aggregate, auto_increment, generated};
use super::{keys, refused};
use crate::ast::{ColumnSpec, Position};
use std::sync::Arc;
use tributary_types::change::{grows, keeps_apart};
use tributary_types::table::Distribution;
use tributary_types::{
    Aggregation, ColumnDef, DataType, DefaultValue, ErrorCode, SqlError, TableDef, TableSchema,
};

/// Digits and signs that numbers take as texts at most, as Doris counts them.
const TINYINT_TEXT: u32 = 4;
const SMALLINT_TEXT: u32 = 6;
const INT_TEXT: u32 = 11;
const BIGINT_TEXT: u32 = 20;
const LARGEINT_TEXT: u32 = 40;
const FLOAT_TEXT: u32 = 12;
const DOUBLE_TEXT: u32 = 20;

/// Whether a change of the definition is a job's: anything but new and dropped value columns, other names and comments, and, in their
/// places, longer VARCHARs and STRUCTs with further fields. In a table without light changes any change of columns is.
#[must_use]
pub fn is_heavy(old: &TableDef, new: &TableDef) -> bool {
    if old.schema.columns == new.schema.columns {
        return false;
    }
    let kept = |schema: &TableSchema, other: &TableSchema| {
        let kept = schema.columns.iter().filter(|column| other.index_of_id(column.id).is_some());
        kept.cloned().collect::<Vec<ColumnDef>>()
    };
    let is_same = |old: &ColumnDef, new: &ColumnDef| {
        old.id == new.id
            && old.is_key == new.is_key
            && old.nullable == new.nullable
            && grows(old.data_type, new.data_type)
    };
    let (before, after) = (kept(&old.schema, &new.schema), kept(&new.schema, &old.schema));
    let keys = |schema: &TableSchema| schema.key_indices().len();
    !old.properties.light_schema_change
        || keys(&old.schema) != keys(&new.schema)
        || !before.iter().zip(&after).all(|(old, new)| is_same(old, new))
}

/// The index of a new key column.
pub(super) fn key_position(def: &TableDef, position: Option<&Position>) -> Result<usize, SqlError> {
    let keys = def.schema.key_indices().len();
    if keys == 0 {
        return Err(refused("Duplicate table without keys do not support add key column!"));
    }
    let index = match position {
        None => keys,
        Some(Position::First) => 0,
        Some(Position::After(name)) => behind(def, name)?,
    };
    if index > keys { Err(value_before_key(def)) } else { Ok(index) }
}

fn value_before_key(def: &TableDef) -> SqlError {
    refused(format!("Invalid column order. value should be after key. index[{}]", def.name))
}

/// Whether a key column may be dropped. Rows of a table with AGGREGATE KEY would have to be folded again.
pub(super) fn check_dropped_key(def: &TableDef, column: &ColumnDef) -> Result<(), SqlError> {
    if def.keys.is_aggregate() {
        return Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!(
                "dropping the key column '{}' of a table with AGGREGATE KEY is not supported: its rows would have to be \
                 folded anew. Create a new table and INSERT … SELECT",
                column.name
            ),
        ));
    }
    if def.schema.key_indices().len() == 1 {
        return Err(refused(format!("No key column left. index[{}]", def.name)));
    }
    Ok(())
}

/// `MODIFY COLUMN`: the whole definition is repeated, and a comment only where it changes.
pub(super) fn modify(
    def: &mut TableDef,
    spec: &ColumnSpec,
    position: Option<&Position>,
) -> Result<(), SqlError> {
    let missing = |_| refused(format!("Column[{}] does not exists", spec.name));
    let index = index_of(def, &spec.name).map_err(missing)?;
    let old = def.schema.columns[index].clone();
    if spec.aggregation.is_some() && (spec.is_key || old.is_key) {
        return Err(refused(format!("Can not assign aggregation method on key column: {}", old.name)));
    }
    let is_other = spec.data_type != old.data_type;
    if is_partition_column(def, &old) && is_other {
        return Err(refused(format!("Can not modify partition column[{}]. index[{}]", old.name, def.name)));
    }
    if is_distribution_column(def, &old) && is_other {
        return Err(refused(format!(
            "Can not modify distribution column[{}]. index[{}]",
            old.name, def.name
        )));
    }
    auto_increment::check_modified(&old, spec)?;
    generated::check_modified(&def.schema, &old, spec)?;
    check_type_change(&old, spec.data_type)?;
    let new = modified(def, &old, spec)?;
    check_keys(def, &old, &new)?;
    if new == old && position.is_none() {
        return Err(refused("Nothing is changed. please check your alter stmt"));
    }
    let target = match position {
        None => index,
        Some(position) => moved_to(def, index, position)?,
    };
    change_columns(def, |columns| {
        columns.remove(index);
        columns.insert(target, new);
    });
    Ok(())
}

/// Whether MODIFY COLUMN to this definition would change nothing.
pub(super) fn is_as_specified(def: &TableDef, spec: &ColumnSpec) -> bool {
    index_of(def, &spec.name).is_ok_and(|index| {
        let old = &def.schema.columns[index];
        modified(def, old, spec).is_ok_and(|new| new == *old)
    })
}

/// The default that a column has by its definition.
fn default_of(spec: &ColumnSpec) -> Option<DefaultValue> {
    match spec.aggregation {
        Some(Aggregation::ReplaceIfNotNull) => spec.default.clone().or(Some(DefaultValue::Null)),
        _ => spec.default.clone(),
    }
}

/// Whether the definition gives the column another default.
pub(super) fn is_other_default(old: &ColumnDef, spec: &ColumnSpec) -> bool {
    // NULL is the default of a column that may be NULL and has none.
    let is_given = |default: &Option<DefaultValue>| {
        default.as_ref().is_some_and(|default| *default != DefaultValue::Null)
    };
    let default = default_of(spec);
    match (is_given(&default), is_given(&old.default)) {
        (false, false) => {
            let nullable = spec.nullable.unwrap_or(!spec.data_type.is_state());
            !nullable && default != old.default
        }
        _ => default != old.default,
    }
}

fn modified(def: &TableDef, old: &ColumnDef, spec: &ColumnSpec) -> Result<ColumnDef, SqlError> {
    let name = &old.name;
    let is_other_aggregation = spec.aggregation != old.aggregation && !def.keys.is_unique();
    if is_other_aggregation || (spec.is_key && !old.is_key) {
        return Err(refused(format!("Can not change aggregation type (column '{name}')")));
    }
    let nullable = spec.nullable.unwrap_or(!spec.data_type.is_state());
    if old.nullable && !nullable {
        return Err(refused(format!(
            "Can not change from nullable to non-nullable (column '{name}': repeat NULL to keep it)"
        )));
    }
    if is_other_default(old, spec) || spec.on_update.is_some() != old.on_update {
        return Err(refused(format!(
            "Can not change default value of column '{name}': repeat the DEFAULT clause that SHOW CREATE TABLE prints, if any"
        )));
    }
    if let Some(default) = default_of(spec) {
        super::default_value::check(name, spec.data_type, nullable, &default)?;
    }
    Ok(ColumnDef {
        data_type: spec.data_type,
        nullable,
        comment: spec.comment.clone().unwrap_or_else(|| old.comment.clone()),
        ..old.clone()
    })
}

/// Checks the change against the column's role in keys, sequences and aggregations.
fn check_keys(def: &TableDef, old: &ColumnDef, new: &ColumnDef) -> Result<(), SqlError> {
    if new.data_type == old.data_type {
        return Ok(());
    }
    if new.is_key && !new.data_type.may_be_key() {
        return Err(keys::not_a_key_type_of(def.keys, new));
    }
    if new.is_key && !def.keys.keeps_all_rows() && !keeps_apart(old, new) {
        return Err(not_supported(
            old,
            new,
            &format!("of a table with {} might make two keys one", def.keys.clause()),
        ));
    }
    if def.schema.sequence == Some(old.id) {
        return Err(refused(format!("Can not alter sequence column[{}]", old.name)));
    }
    if let (true, Some(aggregation)) = (def.keys.is_aggregate(), new.aggregation)
        && !aggregation.takes(new.data_type)
    {
        return Err(aggregate::not_of_type(aggregation, new));
    }
    Ok(())
}

fn not_supported(old: &ColumnDef, new: &ColumnDef, why: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::NotSupported,
        format!(
            "changing column '{}', which {why}, from {} to {} is not supported: create a new table and INSERT … SELECT",
            old.name, old.data_type, new.data_type
        ),
    )
}

fn is_distribution_column(def: &TableDef, column: &ColumnDef) -> bool {
    matches!(&def.distribution, Distribution::Hash { columns, .. } if columns.contains(&column.name))
}

/// The target index of a moved column, after its removal.
fn moved_to(def: &TableDef, index: usize, position: &Position) -> Result<usize, SqlError> {
    let column = &def.schema.columns[index];
    let keys = def.schema.key_indices().len();
    let behind = match position {
        Position::First => 0,
        Position::After(name) => self::behind(def, name)?,
    };
    let target = if behind > index { behind - 1 } else { behind };
    match column.is_key {
        true if target >= keys => {
            Err(refused(format!("Can not modify key column {} after value column", column.name)))
        }
        false if target < keys => Err(value_before_key(def)),
        _ => Ok(target),
    }
}

/// `ORDER BY (…)`: all columns of the definition, keys first.
pub(super) fn order_by(def: &mut TableDef, names: &[String]) -> Result<(), SqlError> {
    let visible = def.schema.visible_count();
    let mut order: Vec<usize> = Vec::with_capacity(visible);
    let mut value_seen = false;
    for name in names {
        let index = def.schema.index_of(name).filter(|index| *index < visible);
        let index = index.ok_or_else(|| refused(format!("Column[{name}] not exists")))?;
        if order.contains(&index) {
            return Err(refused(format!("Reduplicative column[{name}]")));
        }
        let column = &def.schema.columns[index];
        if column.is_key && value_seen {
            return Err(refused(format!("Cannot add key column {} after value column", column.name)));
        }
        value_seen |= !column.is_key;
        order.push(index);
    }
    if order.len() != visible {
        return Err(refused("Reorder stmt should contains all columns"));
    }
    generated::check_order(&def.schema, &order)?;
    order.extend(visible..def.schema.columns.len());
    let schema = Arc::make_mut(&mut def.schema);
    schema.columns = order.into_iter().map(|index| schema.columns[index].clone()).collect();
    Ok(())
}

/// Doris's matrix.
fn check_type_change(old: &ColumnDef, to: DataType) -> Result<(), SqlError> {
    use DataType as T;
    let from = old.data_type;
    if from == to {
        return Ok(());
    }
    let narrower = || {
        Err(refused(format!(
            "Can not change from wider type {from} to narrower type {to} (column '{}')",
            old.name
        )))
    };
    let is_allowed = match (from, to) {
        (T::Char { bytes: old_bytes }, T::Char { bytes } | T::Varchar { bytes })
        | (T::Varchar { bytes: old_bytes }, T::Varchar { bytes })
        | (T::Varbinary { bytes: old_bytes }, T::Varbinary { bytes }) => {
            if bytes < old_bytes {
                return Err(refused(format!(
                    "Shorten type length is prohibited, srcType={from}, dstType={to} (column '{}')",
                    old.name
                )));
            }
            true
        }
        (_, T::Varchar { bytes }) if let Some(needed) = number_text(from) => {
            if bytes < needed {
                return narrower();
            }
            true
        }
        (from, T::String) if number_text(from).is_some() => true,
        (T::Decimal { precision: p, scale: s }, T::Decimal { precision, scale }) => {
            if scale < s || precision - scale < p - s {
                return narrower();
            }
            true
        }
        (T::Int | T::DateTime { .. }, T::Date)
        | (T::Float, T::Double)
        | (T::String | T::Varchar { .. }, T::Json)
        | (T::Json, T::String | T::Varchar { .. })
        | (T::Date | T::DateTime { .. }, T::DateTime { .. })
        | (
            T::Char { .. } | T::Varchar { .. },
            T::String
            | T::TinyInt
            | T::SmallInt
            | T::Int
            | T::BigInt
            | T::LargeInt
            | T::Float
            | T::Double
            | T::Date,
        ) => true,
        (from, T::Float | T::Double) => width(from).is_some(),
        (from, to) => matches!((width(from), width(to)), (Some(from), Some(to)) if from < to),
    };
    if is_allowed {
        return Ok(());
    }
    if let (T::Nested(from), T::Nested(to)) = (from, to)
        && from.base_name() == to.base_name()
    {
        return super::nested_change::check(old, from, to);
    }
    Err(refused(format!("Can not change {} to {} (column '{}')", from.base_name(), to.base_name(), old.name)))
}

/// The order of the integers.
const fn width(of: DataType) -> Option<u8> {
    Some(match of {
        DataType::TinyInt => 1,
        DataType::SmallInt => 2,
        DataType::Int => 3,
        DataType::BigInt => 4,
        DataType::LargeInt => 5,
        _ => return None,
    })
}

/// The bytes that numbers of a type take as texts.
fn number_text(of: DataType) -> Option<u32> {
    Some(match of {
        DataType::TinyInt => TINYINT_TEXT,
        DataType::SmallInt => SMALLINT_TEXT,
        DataType::Int => INT_TEXT,
        DataType::BigInt => BIGINT_TEXT,
        DataType::LargeInt => LARGEINT_TEXT,
        DataType::Float => FLOAT_TEXT,
        DataType::Double => DOUBLE_TEXT,
        // The point and the sign.
        DataType::Decimal { precision, .. } => u32::from(precision) + 2,
        _ => return None,
    })
}
