//! Rows of loads, and reading them back as a query does: memtable and data files of one snapshot.

use crate::folds::{Folded, counted, folded, gives};
use crate::model::{LoadId, ROWS_PER_LOAD, Shown};
use crate::partial::{self, Column, Completed, completed, given_text, is_partial};
use crate::partitions;
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int8Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{Decimal128Type, Int64Type, SchemaRef};
use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tributary_decode::{Block, BlockBuilder};
use tributary_table::{FoundRows, LiveFile, Snapshot, Table};
use tributary_types::{ColumnDef, DataType, HiddenColumn, KeyModel, TableDef, TableSchema};

/// The text of a row, which shows whether it was read back unchanged. Texts are in another order than their rows.
#[must_use]
pub fn text_of(row: i64) -> String {
    let filler = ((row * 37) % 90) as usize;
    format!("{}{row}{}", first_letter(row), "x".repeat(filler))
}

fn first_letter(row: i64) -> char {
    char::from(b'a' + (row * 11 % 23) as u8)
}

/// The value of a row's column `id`: in a table of unique keys one of few, else the row's number.
#[must_use]
pub fn id_of(row: i64, is_unique: bool) -> i64 {
    if is_unique { (row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 40).rem_euclid(KEYS) } else { row }
}

/// The sequence of a row in a table that has such, NULL in some.
#[must_use]
pub fn sequence_of(row: i64) -> Option<i64> {
    Some((row.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).rem_euclid(SEQUENCES))
        .filter(|sequence| *sequence > 0)
}

/// Whether a row of a table of unique keys deletes the row of its key.
#[must_use]
pub fn deletes(row: i64) -> bool {
    (row.wrapping_mul(0x1000_0000_01b3_i64 ^ 0x5bd1_e995) >> 21).rem_euclid(5) == 0
}

/// The rows of a load as one block.
#[must_use]
pub fn block_of(schema: &Arc<TableSchema>, is_unique: bool, load: LoadId, rows: u64) -> Block {
    let mut builder = BlockBuilder::new(schema);
    let is_partial = is_partial(schema);
    for row in row_numbers(load, rows) {
        for (index, column) in schema.columns.iter().enumerate() {
            match (column.name.as_str(), column.data_type, column.hidden) {
                (_, _, Some(HiddenColumn::DeleteSign)) => builder.push_i8(index, deletes(row).into()),
                (_, _, Some(HiddenColumn::Sequence)) => match sequence_of(row) {
                    Some(sequence) => builder.push_i64(index, sequence),
                    None => builder.push_null(index),
                },
                (_, _, Some(HiddenColumn::Given)) => push(&mut builder, index, given_text(schema, row)),
                ("id", ..) => builder.push_i64(index, id_of(row, is_unique)),
                (name, ..) if is_partial && Column::named(name).is_some() => {
                    push(
                        &mut builder,
                        index,
                        Column::named(name).and_then(|column| partial::value(row, column)),
                    );
                }
                ("text", ..) => builder.push_text(index, &text_of(row)),
                ("least" | "most", ..) => builder.push_i64(index, row),
                ("given", ..) if gives(row) => builder.push_text(index, &text_of(row)),
                (name, DataType::LargeInt, _) if counted(name, ROWS_PER_LOAD).is_some() => {
                    builder.push_i128(index, counted(name, row).unwrap_or_default());
                }
                (_, DataType::Int, _) => builder.push_i32(index, row as i32),
                (_, DataType::BigInt, _) => builder.push_i64(index, row),
                (_, DataType::LargeInt, _) => builder.push_i128(index, row.into()),
                _ => builder.push_null(index),
            }
        }
        builder.finish_row();
    }
    builder.finish().expect("few rows")
}

fn push(builder: &mut BlockBuilder, index: usize, text: Option<String>) {
    match text {
        Some(text) => builder.push_text(index, &text),
        None => builder.push_null(index),
    }
}

/// The rows of a load as a batch of the schema, for data files written ahead.
///
/// # Panics
/// If the schema has columns that no simulated table has.
#[must_use]
pub fn batch_of(schema: &Arc<TableSchema>, is_unique: bool, load: LoadId, rows: u64) -> RecordBatch {
    let numbers: Vec<i64> = row_numbers(load, rows).collect();
    let array = |column: &ColumnDef| -> ArrayRef {
        match (column.hidden, column.name.as_str()) {
            (Some(HiddenColumn::DeleteSign), _) => {
                Arc::new(numbers.iter().map(|row| i8::from(deletes(*row))).collect::<Int8Array>())
            }
            (Some(HiddenColumn::Sequence), _) => {
                Arc::new(numbers.iter().map(|row| sequence_of(*row)).collect::<Int64Array>())
            }
            (Some(HiddenColumn::Given), _) => {
                Arc::new(numbers.iter().map(|row| given_text(schema, *row)).collect::<StringArray>())
            }
            (None, name) if is_partial(schema) && Column::named(name).is_some() => {
                let value = |row: &i64| Column::named(name).and_then(|column| partial::value(*row, column));
                Arc::new(numbers.iter().map(value).collect::<StringArray>())
            }
            (None, "id") => {
                Arc::new(numbers.iter().map(|row| id_of(*row, is_unique)).collect::<Int64Array>())
            }
            (None, "text") => {
                Arc::new(numbers.iter().map(|row| Some(text_of(*row))).collect::<StringArray>())
            }
            (None, "least" | "most") => Arc::new(Int64Array::from(numbers.clone())),
            (None, "given") => {
                let text = |row: &i64| gives(*row).then(|| text_of(*row));
                Arc::new(numbers.iter().map(text).collect::<StringArray>())
            }
            (None, name) if counted(name, ROWS_PER_LOAD).is_some() => {
                let counts = numbers.iter().map(|row| counted(name, *row)).collect::<Decimal128Array>();
                Arc::new(counts.with_data_type(column.data_type.to_arrow()))
            }
            _ => arrow::array::new_null_array(&column.data_type.to_arrow(), numbers.len()),
        }
    };
    let columns = schema.columns.iter().map(array).collect();
    RecordBatch::try_new(schema.arrow(), columns).expect("the columns have the schema's types")
}

fn row_numbers(load: LoadId, rows: u64) -> impl Iterator<Item = i64> {
    let first = load as i64 * ROWS_PER_LOAD;
    first..first + rows as i64
}

/// The keys of tables of unique keys are below.
pub const KEYS: i64 = 24;
/// Sequences are below.
const SEQUENCES: i64 = 9;

/// Rows of data files that were read once, with the files' columns, by path and checksum.
type FileRows = HashMap<(String, u32), FileRead>;

/// The rows read from a data file.
#[derive(Clone)]
struct FileRead {
    rows: Arc<Vec<Read>>,
    columns: SchemaRef,
}

impl FileRead {
    /// Whether columns of the file have the types that the table says.
    fn check_types(&self, def: &TableDef) -> Result<(), String> {
        for column in &def.schema.columns {
            let Ok(field) = self.columns.field_with_name(&column.physical_name) else { continue };
            let wanted = column.data_type.to_arrow();
            if *field.data_type() != wanted {
                let name = &column.name;
                return Err(format!("has {} in column {name}, which is {wanted}", field.data_type()));
            }
        }
        Ok(())
    }
}

/// A row as it was read back.
#[derive(Clone, Debug)]
enum Read {
    /// Its number.
    Sent(i64),
    Folded(Folded),
    Completed(Completed),
}

impl Read {
    fn id(&self, keys: KeyModel) -> i64 {
        match self {
            Self::Sent(row) => id_of(*row, !keys.keeps_all_rows()),
            Self::Folded(row) => row.key(),
            Self::Completed(row) => row.key,
        }
    }
}

/// Data files that were read before: they never change.
#[derive(Default)]
pub struct FileCache {
    files: RefCell<FileRows>,
}

/// All rows of a snapshot.
///
/// # Errors
/// A file that cannot be read or a row that is not as it was sent, in words; `true` if the data is to blame.
pub async fn shown(
    table: &Table,
    snapshot: &Snapshot,
    store: &dyn ObjectStore,
    cache: &FileCache,
) -> Result<Shown, (String, bool)> {
    let mut shown = Shown::default();
    let rules = Rules::of(&snapshot.def);
    let mut add = |row: Read| match row {
        Read::Sent(row) => shown.add(row),
        Read::Folded(row) => shown.folded.push(row),
        Read::Completed(row) => shown.add_completed(row),
    };
    for part in &snapshot.memtable {
        let rows = part.live_batch().map_err(|error| error.to_string());
        let rows = rows.and_then(|batch| read_back(&batch, rules));
        rows.map_err(|error| (format!("the memtable: {error}"), true))?.into_iter().for_each(&mut add);
    }
    for live in snapshot.files.iter() {
        let path = table
            .object_root()
            .and_then(|root| root.path_of(&live.file))
            .map_err(|error| (error.to_string(), true))?;
        let got = store.get(&path).await;
        let got = got.map_err(|error| {
            let is_missing = matches!(error, object_store::Error::NotFound { .. });
            (format!("data file {path}: {error}"), is_missing)
        })?;
        let bytes = got.bytes().await.map_err(|error| (error.to_string(), false))?;
        let read = cache
            .rows(path.as_ref(), &bytes, rules)
            .map_err(|error| (format!("data file {path}: {error}"), true))?;
        read.check_types(&snapshot.def).map_err(|error| (format!("data file {path} {error}"), true))?;
        let rows = read.rows;
        if rows.len() as u64 != live.file.rows {
            return Err((format!("data file {path} has {} rows, not {}", rows.len(), live.file.rows), true));
        }
        let ids = rows.iter().map(|row| row.id(rules.keys));
        partitions::check_file(snapshot, live, ids)
            .map_err(|error| (format!("data file {path} {error}"), true))?;
        let is_left = |position: usize| {
            live.deletes.as_ref().is_none_or(|deletes| !deletes.rows().contains(position as u64))
        };
        let left = rows.iter().enumerate().filter(|(position, _)| is_left(*position));
        left.for_each(|(_, row)| add(row.clone()));
    }
    let in_memory = |part: &Snapshot| {
        let mut ids = Vec::new();
        for part in &part.memtable {
            let batch = part.live_batch().map_err(|error| error.to_string())?;
            ids.extend(read_back(&batch, rules)?.iter().map(|row| row.id(rules.keys)));
        }
        Ok(ids)
    };
    partitions::check_parts(snapshot, in_memory).map_err(|error| (error, true))?;
    Ok(shown)
}

/// Rows to be deleted.
#[derive(Debug)]
pub enum Wanted {
    /// By their numbers.
    Rows(BTreeSet<i64>),
    /// The rows of these keys, of a table that folds.
    Keys(BTreeSet<i64>),
}

impl Wanted {
    fn has(&self, row: &Read) -> bool {
        match (self, row) {
            (Self::Rows(rows), Read::Sent(row)) => rows.contains(row),
            (Self::Keys(keys), Read::Folded(row)) => keys.contains(&row.key()),
            _ => false,
        }
    }
}

/// The rows of a data file, deleted ones included.
///
/// # Errors
/// It cannot be read, in words.
pub async fn of_file(
    table: &Table,
    snapshot: &Snapshot,
    live: &LiveFile,
    store: &dyn ObjectStore,
    cache: &FileCache,
) -> Result<Vec<i64>, String> {
    let path =
        table.object_root().and_then(|root| root.path_of(&live.file)).map_err(|error| error.to_string())?;
    let got = store.get(&path).await.map_err(|error| error.to_string())?;
    let bytes = got.bytes().await.map_err(|error| error.to_string())?;
    let rules = Rules::of(&snapshot.def);
    let read = cache.rows(path.as_ref(), &bytes, rules)?;
    Ok(read.rows.iter().map(|row| row.id(rules.keys)).collect())
}

/// The positions of these rows in a snapshot's data files.
///
/// # Errors
/// A file that cannot be read, in words.
pub async fn find(
    table: &Table,
    snapshot: &Snapshot,
    wanted: &Wanted,
    store: &dyn ObjectStore,
    cache: &FileCache,
) -> Result<FoundRows, String> {
    let mut found = FoundRows::new();
    for live in snapshot.files.iter() {
        let path = table
            .object_root()
            .and_then(|root| root.path_of(&live.file))
            .map_err(|error| error.to_string())?;
        let got = store.get(&path).await.map_err(|error| error.to_string())?;
        let bytes = got.bytes().await.map_err(|error| error.to_string())?;
        let rows = cache.rows(path.as_ref(), &bytes, Rules::of(&snapshot.def))?.rows;
        let hit = rows.iter().zip(0_u64..).filter(|(row, _)| wanted.has(row));
        found.insert(live.path().to_owned(), hit.map(|(_, position)| position).collect());
    }
    Ok(found)
}

/// The rows of a snapshot's memtable in their order.
#[must_use]
pub fn in_memtable(snapshot: &Snapshot) -> Vec<i64> {
    let ids = |batch: &RecordBatch| {
        let ids = batch.column_by_name("id").and_then(|column| column.as_primitive_opt::<Int64Type>());
        ids.map(|ids| ids.values().to_vec()).unwrap_or_default()
    };
    // Rows of partitions that were emptied are left out of the batches only when these are flushed.
    snapshot.memtable.iter().filter_map(|part| part.live_batch().ok()).flat_map(|batch| ids(&batch)).collect()
}

impl FileCache {
    fn rows(&self, path: &str, bytes: &Bytes, rules: Rules) -> Result<FileRead, String> {
        let key = (path.to_owned(), crc32c::crc32c(bytes));
        if let Some(read) = self.files.borrow().get(&key) {
            return Ok(read.clone());
        }
        let failed = |error: parquet::errors::ParquetError| error.to_string();
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(failed)?;
        let columns = SchemaRef::clone(builder.schema());
        let reader = builder.build().map_err(failed)?;
        let mut rows = Vec::new();
        for batch in reader {
            rows.extend(read_back(&batch.map_err(|error| error.to_string())?, rules)?);
        }
        let read = FileRead { rows: Arc::new(rows), columns };
        self.files.borrow_mut().insert(key, read.clone());
        Ok(read)
    }
}

/// The number of the row that has this text.
#[must_use]
pub fn number_in(text: &str) -> Option<i64> {
    let row = text.get(1..)?.trim_end_matches('x').parse().ok()?;
    text.starts_with(first_letter(row)).then_some(row)
}

/// How rows of a table are read back.
#[derive(Clone, Copy)]
struct Rules {
    keys: KeyModel,
    is_partial: bool,
}

impl Rules {
    fn of(def: &TableDef) -> Self {
        Self { keys: def.keys, is_partial: is_partial(&def.schema) }
    }
}

fn read_back(batch: &RecordBatch, Rules { keys, is_partial }: Rules) -> Result<Vec<Read>, String> {
    Ok(if keys.is_aggregate() {
        folded(batch)?.into_iter().map(Read::Folded).collect()
    } else if is_partial {
        completed(batch)?.into_iter().map(Read::Completed).collect()
    } else {
        checked(batch, keys.is_unique())?.into_iter().map(Read::Sent).collect()
    })
}

/// A column that the table got later, whatever its type is by now.
struct Added(Decimal128Array);

impl Added {
    fn value(&self, index: usize) -> Option<i128> {
        self.0.is_valid(index).then(|| self.0.value(index))
    }
}

fn added(batch: &RecordBatch) -> Result<Vec<Added>, String> {
    let is_added = |name: &str| name.strip_prefix('c').is_some_and(|number| number.parse::<u32>().is_ok());
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| is_added(field.name()));
    let as_numbers = |(_, column): (_, &ArrayRef)| {
        let wide = arrow::compute::cast(column, &DataType::LargeInt.to_arrow());
        Ok(Added(wide.map_err(|error| error.to_string())?.as_primitive::<Decimal128Type>().clone()))
    };
    columns.map(as_numbers).collect()
}

/// Whether a row has the value in a column that it got later: its number, the default of 7, or nothing.
fn is_of_row(value: Option<i128>, row: i64) -> bool {
    value.is_none_or(|value| value == 7 || value == i128::from(row))
}

/// The numbers of the rows, whose texts are as they were sent.
fn checked(batch: &RecordBatch, is_unique: bool) -> Result<Vec<i64>, String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("there is no column {name}"));
    let ids = column("id")?.as_primitive_opt::<Int64Type>().ok_or("column id is no BIGINT")?;
    let texts = column("text")?.as_string_opt::<i32>().ok_or("column text is no VARCHAR")?;
    let added = added(batch)?;
    let rows = (0..batch.num_rows()).map(|index| {
        let id = ids.value(index);
        let row = if is_unique { number_in(texts.value(index)) } else { Some(id) };
        let is_as_sent = |row: &i64| texts.value(index) == text_of(*row) && id_of(*row, is_unique) == id;
        let row = row.filter(is_as_sent).filter(|_| ids.is_valid(index) && texts.is_valid(index));
        let row = row.filter(|row| added.iter().all(|column| is_of_row(column.value(index), *row)));
        row.ok_or_else(|| format!("the row of id {id} is not as it was sent"))
    });
    rows.collect()
}
