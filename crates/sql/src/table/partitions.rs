//! The meaning of `PARTITION BY`: partitions with bounds of the columns' types.

mod alter;
pub(super) mod dynamic;
pub(super) mod retention;
mod steps;
mod temporary;
mod value;

pub(super) use alter::{added, dropped, modified, renamed};
pub use alter::{named_partitions, with_recovered, without_partition};
pub use temporary::{Replacement, add_temporary, beside, replacement};

use super::{auto_increment, find, refused};
use crate::parse::{PartitionBy, PartitionItem, RowsSpec, ValueSpec};
use std::collections::BTreeMap;
use tributary_types::partition::{AutoPartition, Bound, PartitionRows, PartitionValue, TimeUnit};
use tributary_types::{
    ColumnDef, DataType, ErrorCode, KeyModel, PartitionMethod, Partitioning, Partitions, SqlError,
};

/// Limit on the partitions that one statement creates, whatever the variable `create_table_partition_max_num` says, whose default
/// it is.
const PARTITIONS_MAX: usize = 10_000;
/// The longest name of a partition, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The partitions of a new table.
pub(super) fn of_create(
    by: Option<&PartitionBy>,
    model: KeyModel,
    columns: &[ColumnDef],
) -> Result<Partitioning, SqlError> {
    let Some(by) = by else { return Ok(Partitioning::None) };
    let mut decides: Vec<&ColumnDef> = Vec::with_capacity(by.columns.len());
    for name in &by.columns {
        let column =
            find(columns, name).ok_or_else(|| refused(format!("partition key {name} is not exists")))?;
        check_column(column, by.method, model)?;
        auto_increment::check_partition_column(column)?;
        if decides.iter().any(|known| known.id == column.id) {
            return Err(refused(format!("Duplicated partition column {name}")));
        }
        decides.push(column);
    }
    let mut partitions = Partitions::new(by.method, decides.iter().map(|column| column.id).collect());
    partitions.auto = by.auto;
    if let (Some(AutoPartition::Range(unit)), [column]) = (by.auto, decides.as_slice()) {
        check_auto_range(unit, column)?;
    }
    let mut forms = Forms::default();
    for item in &by.items {
        forms.check(item)?;
        add(&mut partitions, item, &decides)?;
    }
    match by.count_max {
        Some(most) if partitions.list.len() > most => Err(too_many(partitions.list.len(), most)),
        _ => Ok(Partitioning::By(partitions.into())),
    }
}

fn check_auto_range(unit: TimeUnit, column: &ColumnDef) -> Result<(), SqlError> {
    if column.nullable {
        return Err(refused("AUTO RANGE PARTITION doesn't support NULL column"));
    }
    match column.data_type {
        DataType::DateTime { .. } => Ok(()),
        DataType::Date if !unit.is_below_day() => Ok(()),
        _ => Err(refused(format!(
            "partition expr date_trunc(`{}`, '{}') is illegal! It divides a column of DATETIME, or by days or more of DATE",
            column.name,
            unit.name()
        ))),
    }
}

/// The notations of ranges that were used: `LESS THAN` and steps can't be combined.
#[derive(Default)]
struct Forms {
    has_less_than: bool,
    has_steps: bool,
}

impl Forms {
    fn check(&mut self, item: &PartitionItem) -> Result<(), SqlError> {
        match item {
            PartitionItem::One { rows: RowsSpec::LessThan(_), .. } => self.has_less_than = true,
            PartitionItem::Steps { .. } => self.has_steps = true,
            PartitionItem::One { .. } => {}
        }
        if self.has_less_than && self.has_steps { Err(wrong_form()) } else { Ok(()) }
    }
}

fn wrong_form() -> SqlError {
    refused(
        "partitions types is invalid, expected FIXED or LESS in range partitions and IN in list partitions",
    )
}

fn check_column(column: &ColumnDef, method: PartitionMethod, model: KeyModel) -> Result<(), SqlError> {
    let name = &column.name;
    if !model.keeps_all_rows() && !column.is_key {
        return Err(refused(match model {
            KeyModel::Aggregate => format!("The partition column could not be aggregated column: {name}"),
            _ => format!("Merge-on-Write table's partition column must be KEY column: {name}"),
        }));
    }
    match (column.data_type, method) {
        (DataType::Float | DataType::Double, _) => {
            Err(refused("Floating point type column can not be partition column"))
        }
        (DataType::String, _) => {
            Err(refused(format!("String Type should not be used in partition column[{name}].")))
        }
        (
            DataType::Time { .. }
            | DataType::Json
            | DataType::Variant
            | DataType::Ipv4
            | DataType::Ipv6
            | DataType::Decimal { .. }
            | DataType::Nested(_)
            | DataType::Varbinary { .. }
            | DataType::Bitmap
            | DataType::Hll,
            _,
        ) => Err(refused(format!(
            "Complex type column can't be partition column: {}",
            column.data_type.base_name()
        ))),
        (DataType::Boolean | DataType::Char { .. } | DataType::Varchar { .. }, PartitionMethod::Range) => {
            Err(refused(format!(
                "Column[{name}] type[{}] cannot be a range partition key: use an integer, DATE or DATETIME, or PARTITION BY LIST",
                column.data_type
            )))
        }
        _ => Ok(()),
    }
}

/// Adds the partitions of one item.
pub(super) fn add(
    partitions: &mut Partitions,
    item: &PartitionItem,
    columns: &[&ColumnDef],
) -> Result<(), SqlError> {
    match item {
        PartitionItem::One { name, rows, properties, .. } => {
            let rows = rows_of(partitions, rows, columns)?;
            add_one(partitions, name, rows, properties.iter().cloned().collect(), columns)
        }
        PartitionItem::Steps { from, to, interval, unit } => {
            if partitions.method == PartitionMethod::List {
                return Err(wrong_form());
            }
            let room = PARTITIONS_MAX.saturating_sub(partitions.list.len());
            for (name, lower, upper) in steps::ranges(from, to, *interval, unit.as_deref(), columns, room)? {
                let rows = PartitionRows::Range { lower: vec![lower], upper: vec![upper] };
                add_one(partitions, &name, rows, BTreeMap::new(), columns)?;
            }
            Ok(())
        }
    }
}

fn add_one(
    partitions: &mut Partitions,
    name: &str,
    rows: PartitionRows,
    properties: BTreeMap<String, String>,
    columns: &[&ColumnDef],
) -> Result<(), SqlError> {
    check_name(name)?;
    if partitions.index_of(name).is_some() {
        return Err(refused(format!("Duplicated named partition: {name}")));
    }
    if partitions.list.len() >= PARTITIONS_MAX {
        return Err(too_many(PARTITIONS_MAX + 1, PARTITIONS_MAX));
    }
    match &rows {
        PartitionRows::Range { lower, upper } => {
            if let Some(text) = partitions.intersection(lower, upper, columns) {
                return Err(refused(text));
            }
        }
        PartitionRows::Values(tuples) => check_values(partitions, tuples, columns)?,
        PartitionRows::Others => {
            if partitions.list.iter().any(|other| other.rows == PartitionRows::Others) {
                return Err(refused("there is a partition without VALUES already, which has all other rows"));
            }
        }
    }
    partitions.add(name, rows, properties);
    Ok(())
}

fn too_many(count: usize, most: usize) -> SqlError {
    refused(format!(
        "The number of partitions to be created is [{count}], exceeding the maximum value of [{most}]. \
         Creating too many partitions can be time-consuming. If necessary, You can set the session variable \
         'create_table_partition_max_num' to a larger value."
    ))
}

fn check_name(name: &str) -> Result<(), SqlError> {
    let is_plain = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !name.starts_with("placeholder_");
    if is_plain {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorCode::WrongPartitionName,
        format!(
            "Incorrect partition name '{name}'. Partition name regex is '^[a-zA-Z][a-zA-Z0-9-_]{{0,63}}$'"
        ),
    ))
}

fn check_values(
    partitions: &Partitions,
    tuples: &[Vec<PartitionValue>],
    columns: &[&ColumnDef],
) -> Result<(), SqlError> {
    let shown = |tuple: &[PartitionValue]| {
        let values = tuple.iter().zip(columns).map(|(value, column)| value.show(column.data_type));
        values.collect::<Vec<_>>().join(",")
    };
    let mut known: std::collections::HashSet<&[PartitionValue]> = partitions
        .list
        .iter()
        .flat_map(|partition| match &partition.rows {
            PartitionRows::Values(tuples) => tuples.as_slice(),
            _ => &[],
        })
        .map(Vec::as_slice)
        .collect();
    match tuples.iter().find(|tuple| !known.insert(tuple.as_slice())) {
        Some(tuple) => {
            let all: Vec<_> = tuples.iter().map(|tuple| shown(tuple)).collect();
            Err(refused(format!(
                "The partition key[{}] in partition item[{}] is conflict with current partitionKeys",
                shown(tuple),
                all.join(";")
            )))
        }
        None => Ok(()),
    }
}

/// The rows of a partition to add.
fn rows_of(
    partitions: &Partitions,
    rows: &RowsSpec,
    columns: &[&ColumnDef],
) -> Result<PartitionRows, SqlError> {
    match (rows, partitions.method) {
        (RowsSpec::LessThan(upper), PartitionMethod::Range) => {
            let upper = bounds(upper, columns)?;
            let lower = below(partitions, &upper, columns.len());
            range(lower, upper)
        }
        (RowsSpec::Fixed { lower, upper }, PartitionMethod::Range) => {
            range(bounds(lower, columns)?, bounds(upper, columns)?)
        }
        (RowsSpec::In(tuples), PartitionMethod::List) => {
            let tuples = tuples.iter().map(|tuple| values(tuple, columns)).collect::<Result<_, _>>()?;
            Ok(PartitionRows::Values(tuples))
        }
        (RowsSpec::Others, PartitionMethod::List) => Ok(PartitionRows::Others),
        _ => Err(wrong_form()),
    }
}

/// The lower bound of a range that is written without one: the end of the previous range.
fn below(partitions: &Partitions, upper: &[Bound], columns: usize) -> Vec<Bound> {
    let uppers = partitions.list.iter().filter_map(|partition| match &partition.rows {
        PartitionRows::Range { upper, .. } => Some(upper),
        _ => None,
    });
    let before = uppers.filter(|other| other.as_slice() < upper).max();
    before.cloned().unwrap_or_else(|| vec![Bound::Min; columns])
}

fn range(lower: Vec<Bound>, upper: Vec<Bound>) -> Result<PartitionRows, SqlError> {
    if lower >= upper {
        return Err(refused("The lower values must smaller than upper values"));
    }
    Ok(PartitionRows::Range { lower, upper })
}

/// One bound per column; omitted ones are below all values, or above them after MAXVALUE.
fn bounds(written: &[ValueSpec], columns: &[&ColumnDef]) -> Result<Vec<Bound>, SqlError> {
    if written.len() > columns.len() {
        return Err(refused(format!(
            "Partition values number is more than partition column number: {} values for {} columns",
            written.len(),
            columns.len()
        )));
    }
    let is_max = written == [ValueSpec::Max];
    let bound = |(number, column): (usize, &&ColumnDef)| match written.get(number) {
        Some(ValueSpec::Max) => Ok(Bound::Max),
        Some(ValueSpec::Null) => Err(refused("NULL is no bound of a range: leave the lower bound out")),
        Some(ValueSpec::Text(text)) => Ok(Bound::of(value::parsed(text, column)?, column.data_type)),
        None if is_max => Ok(Bound::Max),
        None => Ok(Bound::Min),
    };
    columns.iter().enumerate().map(bound).collect()
}

fn values(written: &[ValueSpec], columns: &[&ColumnDef]) -> Result<Vec<PartitionValue>, SqlError> {
    if written.len() != columns.len() {
        return Err(refused(format!(
            "partition item's size not equals partition column's size: {} values for {} columns",
            written.len(),
            columns.len()
        )));
    }
    let value = |(written, column): (&ValueSpec, &&ColumnDef)| match written {
        ValueSpec::Null if column.nullable => Ok(PartitionValue::Null),
        ValueSpec::Null => {
            Err(refused(format!("column '{}' is NOT NULL, so no partition has its NULL", column.name)))
        }
        ValueSpec::Max => Err(refused("MAXVALUE is no value of a list")),
        ValueSpec::Text(text) => value::parsed(text, column),
    };
    written.iter().zip(columns).map(value).collect()
}

#[cfg(test)]
mod tests;
