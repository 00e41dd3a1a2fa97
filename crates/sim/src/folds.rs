//! Tables that fold the rows of a key: the rows behind a folded one, and a check of its values against these rows.
//!
//! Columns of sums are counters of five bits for each load: the number of its rows in the folded row. So a query shows for each
//! load whether it is present once, twice, or in part, as in a table that retains all rows. The other columns are checked against
//! the rows found in this way.

use crate::model::{Load, LoadId, ROWS_PER_LOAD, Shown, Violation};
use crate::rows::{id_of, number_in, text_of};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Decimal128Type, Int64Type};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::{Aggregation, ColumnDef, DataType, KeyModel, TableDef, TableId, TableSchema};

/// The largest number of a load that folded rows can identify.
pub const LOADS_MAX: LoadId = COUNTERS * COLUMNS;

const COLUMNS: u64 = 10;
/// Counters of a column.
const COUNTERS: u64 = 25;
const COUNTER_BITS: u64 = 5;
/// The beginning of the names of columns of counters.
const COUNTERS_NAME: &str = "loads";

/// A row of a table that folds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    key: i64,
    /// Numbers of rows.
    last: i64,
    least: i64,
    most: i64,
    given: Option<i64>,
    /// How many rows of each load are in it.
    counts: Vec<(LoadId, u64)>,
}

impl Folded {
    /// The row's key.
    #[must_use]
    pub const fn key(&self) -> i64 {
        self.key
    }
}

/// The table with keys whose rows are folded.
#[must_use]
pub fn aggregate(def: &TableDef) -> Arc<TableDef> {
    let mut columns = def.schema.columns.clone();
    columns[1].aggregation = Some(Aggregation::Replace);
    let mut add = |name: &str, data_type, aggregation| {
        let id = columns.len() as u32 + 1;
        columns.push(ColumnDef::new(id, name, data_type).aggregated(aggregation));
    };
    add("least", DataType::BigInt, Aggregation::Min);
    add("most", DataType::BigInt, Aggregation::Max);
    add("given", DataType::Varchar { bytes: 200 }, Aggregation::ReplaceIfNotNull);
    for number in 0..COLUMNS {
        add(&format!("{COUNTERS_NAME}{number}"), DataType::LargeInt, Aggregation::Sum);
    }
    let schema = TableSchema::new(def.schema.version, columns);
    Arc::new(TableDef { keys: KeyModel::Aggregate, schema: Arc::new(schema), ..def.clone() })
}

/// The contribution of a load's row to the column of counters with that name. `None`: the column does not exist.
#[must_use]
pub fn counted(column: &str, row: i64) -> Option<i128> {
    let number: u64 = column.strip_prefix(COUNTERS_NAME)?.parse().ok()?;
    let counter = (row / ROWS_PER_LOAD) as LoadId - 1;
    let is_there = counter / COUNTERS == number;
    Some(if is_there { 1 << (counter % COUNTERS * COUNTER_BITS) } else { 0 })
}

/// Whether a row gives a value where NULL replaces nothing.
#[must_use]
pub const fn gives(row: i64) -> bool {
    row % 3 == 0
}

/// The rows of a batch as they were folded.
///
/// # Errors
/// A row that cannot be one, in words.
pub fn folded(batch: &RecordBatch) -> Result<Vec<Folded>, String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("there is no column {name}"));
    let numbers = |name: &str| {
        column(name)?.as_primitive_opt::<Int64Type>().ok_or_else(|| format!("column {name} is no BIGINT"))
    };
    let texts = |name: &str| {
        column(name)?.as_string_opt::<i32>().ok_or_else(|| format!("column {name} is no VARCHAR"))
    };
    let (keys, least, most) = (numbers("id")?, numbers("least")?, numbers("most")?);
    let (last, given) = (texts("text")?, texts("given")?);
    let mut rows = Vec::with_capacity(batch.num_rows());
    for index in 0..batch.num_rows() {
        let key = keys.value(index);
        let row_of = |text: &str| {
            let row = number_in(text).filter(|row| text_of(*row) == text && id_of(*row, true) == key);
            row.ok_or_else(|| format!("the row of key {key} has the text '{text}', which nobody sent"))
        };
        let mut counts = Vec::new();
        for number in 0..COLUMNS {
            let name = format!("{COUNTERS_NAME}{number}");
            let sums = column(&name)?.as_primitive_opt::<Decimal128Type>().ok_or("counters are LARGEINT")?;
            let counter = |place: u64| {
                let count = (sums.value(index) >> (place * COUNTER_BITS)) & ((1 << COUNTER_BITS) - 1);
                (number * COUNTERS + place + 1, count as u64)
            };
            counts.extend((0..COUNTERS).map(counter).filter(|(_, count)| *count > 0));
        }
        rows.push(Folded {
            key,
            last: row_of(last.value(index))?,
            least: least.value(index),
            most: most.value(index),
            given: given.is_valid(index).then(|| row_of(given.value(index))).transpose()?,
            counts,
        });
    }
    Ok(rows)
}

/// The loaded rows behind the rows of a query, checked against their values.
///
/// # Errors
/// The promise that they break.
pub fn unfolded(
    loads: &BTreeMap<LoadId, Load>,
    table: TableId,
    shown: &[Folded],
    where_: &str,
) -> Result<Shown, Violation> {
    let violation = |text: String| Err(Violation(format!("{where_} {text}")));
    let mut rows = Shown::default();
    let mut last_of_key = BTreeMap::new();
    for folded in shown {
        let key = folded.key;
        if last_of_key.insert(key, folded.last).is_some() {
            return violation(format!("shows key {key} twice"));
        }
        let mut parts: Vec<i64> = Vec::new();
        for &(id, count) in &folded.counts {
            let Some(load) = loads.get(&id).filter(|load| load.table == table) else {
                return violation(format!(
                    "shows rows of load {id} for key {key}, which is not of this table"
                ));
            };
            let first = id as i64 * ROWS_PER_LOAD;
            let sent: Vec<i64> =
                (first..first + load.rows as i64).filter(|row| id_of(*row, true) == key).collect();
            if sent.is_empty() || count % sent.len() as u64 != 0 {
                return violation(format!(
                    "shows {count} rows of load {id} for key {key}, of which it has {}",
                    sent.len()
                ));
            }
            for _ in 0..count / sent.len() as u64 {
                sent.iter().for_each(|row| rows.add(*row));
            }
            parts.extend(sent);
        }
        let given = parts.iter().copied().filter(|row| gives(*row));
        let is_given = match folded.given {
            _ if gives(folded.last) => folded.given == Some(folded.last),
            Some(row) => given.clone().any(|given| given == row),
            None => given.count() == 0,
        };
        let (least, most) = (parts.iter().min(), parts.iter().max());
        if least != Some(&folded.least)
            || most != Some(&folded.most)
            || !is_given
            || !parts.contains(&folded.last)
        {
            return violation(format!("shows {folded:?} for key {key}, which has the rows {parts:?}"));
        }
    }
    rows.last_of_key = last_of_key;
    Ok(rows)
}
