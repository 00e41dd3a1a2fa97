//! Tables with unique keys some of whose rows update some columns only: which columns a row gives, and which rows the values of a shown row
//! are from. The rows of some loads are those of INSERT IGNORE: they leave an existing row as it is.
//!
//! Each column has winners of its own ([`crate::winners`]): for it, a key belongs to the last row that gives the column or deletes.

use crate::model::{LoadId, ROWS_PER_LOAD};
use crate::rows::{id_of, number_in, text_of};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use std::sync::Arc;
use tributary_types::{ColumnDef, DataType, GivenColumns, HiddenColumn, TableDef, TableSchema};

/// A column whose value identifies its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Text,
    Left,
    Right,
}

impl Column {
    pub const ALL: [Self; 3] = [Self::Text, Self::Left, Self::Right];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Left => "left",
            Self::Right => "right",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

/// A row as a table shows it: for each column the number of the row that its value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub key: i64,
    pub sources: [Option<i64>; 3],
}

impl Completed {
    #[must_use]
    pub const fn source(&self, column: Column) -> Option<i64> {
        self.sources[column as usize]
    }
}

/// The table with rows that update some columns; it has unique keys, rows that delete and no sequence.
#[must_use]
pub fn partial(def: &TableDef) -> Arc<TableDef> {
    let mut columns = def.schema.columns.clone();
    let mut next_id = columns.len() as u32;
    let mut id = || {
        next_id += 1;
        next_id
    };
    for column in [Column::Left, Column::Right] {
        columns.push(ColumnDef::new(id(), column.name(), DataType::Varchar { bytes: 65_533 }));
    }
    for hidden in [HiddenColumn::DeleteSign, HiddenColumn::Given] {
        columns.push(ColumnDef::hidden(id(), hidden, DataType::BigInt));
    }
    let schema = TableSchema::new(def.schema.version, columns);
    let keys = tributary_types::KeyModel::Unique;
    Arc::new(TableDef { keys, schema: Arc::new(schema), ..def.clone() })
}

/// Whether rows of the schema may update some columns.
#[must_use]
pub fn is_partial(schema: &TableSchema) -> bool {
    schema.index_of_hidden(HiddenColumn::Given).is_some()
}

/// Whether the row is of an INSERT IGNORE: it gives no column but its key, and its values to a new one.
#[must_use]
pub const fn ignores(row: i64) -> bool {
    (load_of(row) as i64).wrapping_mul(0x517c_c1b7_2722_0a95).wrapping_shr(40).rem_euclid(4) == 0
}

/// The one column that a row gives; `None`: it gives all, or none.
#[must_use]
pub const fn only(row: i64) -> Option<Column> {
    if ignores(row) {
        return None;
    }
    match (row.wrapping_mul(0x2127_599b_f432_5c37) >> 37).rem_euclid(5) {
        0 | 1 => Some(Column::Left),
        2 => Some(Column::Right),
        _ => None,
    }
}

/// Whether a row of such a table gives the column, if there is no row of its key.
#[must_use]
pub fn gives(row: i64, column: Column) -> bool {
    only(row).is_none_or(|only| only == column)
}

/// The text of the columns that the row gives.
#[must_use]
pub fn given_text(schema: &TableSchema, row: i64) -> Option<String> {
    let index = match only(row) {
        Some(column) => Some(schema.index_of(column.name())?),
        None if ignores(row) => None,
        None => return None,
    };
    let ids = schema.key_indices().into_iter().chain(index).map(|index| schema.columns[index].id);
    Some(GivenColumns::new(ids).text())
}

/// The value of a row's column.
#[must_use]
pub fn value(row: i64, column: Column) -> Option<String> {
    gives(row, column).then(|| text_of(row))
}

/// The rows of a batch, each value as some row gave it.
///
/// # Errors
/// A row that cannot be one, in words.
pub fn completed(batch: &RecordBatch) -> Result<Vec<Completed>, String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("there is no column {name}"));
    let keys = column("id")?.as_primitive_opt::<Int64Type>().ok_or("column id is no BIGINT")?;
    let mut rows: Vec<Completed> =
        keys.values().iter().map(|key| Completed { key: *key, sources: [None; 3] }).collect();
    for of in Column::ALL {
        let texts = column(of.name())?.as_string_opt::<i32>().ok_or("a value is no VARCHAR")?;
        for (index, row) in rows.iter_mut().enumerate().filter(|(index, _)| texts.is_valid(*index)) {
            let text = texts.value(index);
            let is_sent = |source: &i64| {
                text_of(*source) == text && id_of(*source, true) == row.key && gives(*source, of)
            };
            let source = number_in(text).filter(is_sent);
            let source = source.ok_or_else(|| {
                format!("column {} of key {} has '{text}', which nobody sent", of.name(), row.key)
            })?;
            row.sources[of as usize] = Some(source);
        }
    }
    Ok(rows)
}

/// The load that a row is of.
#[must_use]
pub const fn load_of(row: i64) -> LoadId {
    (row / ROWS_PER_LOAD) as LoadId
}
