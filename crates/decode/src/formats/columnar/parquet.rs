//! Parquet: gathered until its end, which says where everything is, then read batch by batch.
//!
//! | file | |
//! | --- | --- |
//! | `thrift` | the encoding of footers and page headers, walked without trust |
//! | `footer` | checks and measures a footer before the library reads it |
//! | `pages` | reads pages for the library, and charges them |
//! | `codec`, `deltas` | decompresses pages; checks lengths that are encoded in them |
//! | `parts` | divides the rows of a file into parts that are read in parallel |
//!
//! Times are instants or wall-clock times according to the file's types; further details in a writer's Arrow schema are ignored,
//! so that files of all writers are read alike. An INT96 is an instant, as in Spark.
//!
//! Invariant: the library sees no footer that was not walked, and no page that was not charged. Texts and bytes are read as views
//! of their pages: a value that a dictionary contains once is not copied for each row.

mod codec;
mod deltas;
mod footer;
mod pages;
mod parts;
mod thrift;

use super::memory::{BodyMemory, Charge};
use super::{damaged, gathered, guarded};
use crate::formats::host::{LoadHost, Spool, Spooled};
use crate::rows::loader::BLOCK_ROWS_TARGET;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use pages::{ColumnFacts, Run};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use std::ops::Range;
use std::sync::Arc;
use tributary_types::SqlError;

const NAME: &str = "parquet";
/// The end of a file, after the length of its footer.
const MARK: &[u8; 4] = b"PAR1";
const ENCRYPTED_MARK: &[u8; 4] = b"PARE";
const TAIL_BYTES: u64 = 8;
/// Longer rows are read in smaller batches, so that a batch covers about this many bytes of the file.
const BATCH_BYTES_TARGET: u64 = 16 * 1024 * 1024;
/// The maximum bytes of pages that rows of one batch should span, where long rows are adjacent.
const BATCH_PAGES_BYTES_TARGET: u64 = 256 * 1024 * 1024;
/// Row groups with fewer rows are read together.
const RUN_ROWS_MIN: u64 = 65_536;

/// A Parquet file.
pub(super) struct ParquetSource {
    memory: Arc<BodyMemory>,
    state: State,
    file: Option<Arc<dyn Spooled>>,
}

enum State {
    Gathering(Box<dyn Spool>),
    Known(Arc<Opened>),
    Reading(Box<Reading>),
    /// The body is empty or is not to be read any more.
    Empty,
}

struct Opened {
    file: Arc<dyn Spooled>,
    metadata: Arc<ParquetMetaData>,
    schema: SchemaRef,
    _footer: Charge,
}

struct Reading {
    file: Arc<Opened>,
    levels: FieldLevels,
    columns: Vec<Leaf>,
    /// The rows of the file that are read.
    rows: Range<u64>,
    next_group: usize,
    /// The number of its first row.
    next_row: u64,
    reader: Option<ParquetRecordBatchReader>,
    /// The bytes of a batch without those of texts.
    batch_bytes: usize,
}

/// A column that is read, or a part of a nested one.
#[derive(Clone, Copy)]
struct Leaf {
    place: usize,
    facts: ColumnFacts,
}

impl ParquetSource {
    pub(super) fn new(host: &dyn LoadHost) -> Self {
        Self { memory: BodyMemory::new(host), state: State::Gathering(host.spool()), file: None }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let State::Gathering(spool) = &mut self.state else { return Ok(()) };
        spool.write(chunk).map_err(|error| gathered(NAME, &error))
    }

    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        if !matches!(self.state, State::Gathering(_)) {
            return Ok(());
        }
        let State::Gathering(spool) = std::mem::replace(&mut self.state, State::Empty) else { return Ok(()) };
        let file = spool.finish().map_err(|error| gathered(NAME, &error))?;
        if file.len_bytes() == 0 {
            return Ok(());
        }
        self.file = Some(Arc::clone(&file));
        let opened = guarded(NAME, || Opened::new(file, &self.memory))?;
        self.state = State::Known(Arc::new(opened));
        Ok(())
    }

    pub(super) fn schema(&self) -> Option<&SchemaRef> {
        match &self.state {
            State::Known(file) => Some(&file.schema),
            State::Reading(reading) => Some(&reading.file.schema),
            State::Gathering(_) | State::Empty => None,
        }
    }

    pub(super) fn choose(&mut self, columns: &[usize]) -> Result<(), SqlError> {
        let State::Known(file) = std::mem::replace(&mut self.state, State::Empty) else {
            return Ok(());
        };
        let reading = guarded(NAME, || Reading::new(file, columns))?;
        self.state = State::Reading(Box::new(reading));
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let State::Reading(reading) = &mut self.state else { return Ok(None) };
        guarded(NAME, || reading.next(&self.memory))
    }

    /// The bytes held of the body itself.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.state {
            State::Gathering(spool) => spool.held_bytes(),
            _ => self.file.as_ref().map_or(0, |file| file.held_bytes()),
        }
    }
}

fn of_library(error: ParquetError) -> SqlError {
    match error {
        ParquetError::General(text) => damaged(NAME, text),
        error => damaged(NAME, error),
    }
}

impl Opened {
    fn new(file: Arc<dyn Spooled>, memory: &Arc<BodyMemory>) -> Result<Self, SqlError> {
        let read = |start, length| file.read(start, length).map_err(|error| damaged(NAME, error));
        let file_bytes = file.len_bytes();
        let tail_at =
            file_bytes.checked_sub(TAIL_BYTES).ok_or_else(|| damaged(NAME, "it is no Parquet file"))?;
        let tail = read(tail_at, TAIL_BYTES as usize)?;
        match &tail[4..] {
            mark if mark == MARK => {}
            mark if mark == ENCRYPTED_MARK => return Err(damaged(NAME, "encrypted files are not read")),
            _ => return Err(damaged(NAME, "it does not end as a Parquet file does, with PAR1")),
        }
        let footer_bytes = u32::from_le_bytes(tail[..4].try_into().expect("four bytes"));
        let footer_at = tail_at.checked_sub(footer_bytes.into()).ok_or_else(|| {
            damaged(NAME, format_args!("its footer has {footer_bytes} bytes, and the file {file_bytes}"))
        })?;
        // Once as bytes, once as the library's texts.
        let held = memory.hold(2 * footer_bytes as usize);
        let mut held = held.map_err(|refused| damaged(NAME, format_args!("its footer: {refused}")))?;
        let footer = read(footer_at, footer_bytes as usize)?;
        let size = footer::size(&footer, file_bytes)
            .map_err(|fault| damaged(NAME, format_args!("its footer is damaged: {fault}")))?;
        let grown = held.grow(size.decoded_bytes());
        grown.map_err(|refused| {
            damaged(
                NAME,
                format_args!("{} columns in {} row groups: {refused}", size.columns, size.row_groups),
            )
        })?;
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&options));
        let metadata = Arc::new(metadata.map_err(of_library)?);
        if let Some(group) = metadata.row_groups().iter().find(|group| group.num_rows() < 0) {
            return Err(damaged(NAME, format_args!("a row group has {} rows", group.num_rows())));
        }
        let schema = schema(&metadata)?;
        Ok(Self { file, metadata, schema, _footer: held })
    }
}

impl Reading {
    fn new(file: Arc<Opened>, columns: &[usize]) -> Result<Self, SqlError> {
        let of = file.metadata.file_metadata().schema_descr();
        let mask = || ProjectionMask::roots(of, columns.iter().copied());
        let hint = viewed(file.schema.fields());
        let levels = parquet_to_arrow_field_levels(of, mask(), Some(&hint)).map_err(of_library)?;
        let mask = mask();
        let leaves = (0..of.num_columns()).filter(|&leaf| mask.leaf_included(leaf));
        let leaf = |place| Leaf { place, facts: ColumnFacts::of(&of.column(place)) };
        let columns = leaves.map(leaf).collect();
        let rows = 0..u64::MAX;
        Ok(Self { levels, columns, rows, next_group: 0, next_row: 0, reader: None, batch_bytes: 0, file })
    }

    fn next(&mut self, memory: &Arc<BodyMemory>) -> Result<Option<RecordBatch>, SqlError> {
        loop {
            // The previous batch was dropped, and its pages with it.
            memory.begin_batch();
            let Some(reader) = &mut self.reader else {
                if self.next_group == self.file.metadata.num_row_groups() || self.next_row >= self.rows.end {
                    return Ok(None);
                }
                self.open(memory)?;
                continue;
            };
            memory.add_to_batch(self.batch_bytes).map_err(|refused| damaged(NAME, refused))?;
            if let Some(batch) = reader.next().transpose().map_err(|error| damaged(NAME, error))? {
                return Ok(Some(batch));
            }
            self.reader = None;
        }
    }

    /// Opens the next row groups.
    fn open(&mut self, memory: &Arc<BodyMemory>) -> Result<(), SqlError> {
        let first = self.next_group;
        let (mut rows, mut batch_rows) = (0, BLOCK_ROWS_TARGET as u64);
        let width = self.columns.iter().map(|leaf| leaf.facts.array_width()).sum::<usize>();
        for group in &self.file.metadata.row_groups()[first..] {
            if rows >= RUN_ROWS_MIN || self.next_row.saturating_add(rows) >= self.rows.end {
                break;
            }
            let sizes = self.columns.iter().map(|leaf| group.column(leaf.place).uncompressed_size());
            let bytes = sizes.fold(0_u64, |sum, bytes| sum.saturating_add(u64::try_from(bytes).unwrap_or(0)));
            let of_group = group.num_rows().unsigned_abs();
            batch_rows = batch_rows.min(rows_of_batch(of_group, bytes, width as u64));
            rows = rows.saturating_add(of_group);
            self.next_group += 1;
        }
        self.batch_bytes = (batch_rows as usize).saturating_mul(width);
        let run = Run {
            file: Arc::clone(&self.file.file),
            memory: Arc::clone(memory),
            metadata: Arc::clone(&self.file.metadata),
            groups: first..self.next_group,
        };
        let selection = parts::selection(&self.rows, self.next_row..self.next_row.saturating_add(rows));
        self.next_row = self.next_row.saturating_add(rows);
        let batch_rows = batch_rows as usize;
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&self.levels, &run, batch_rows, selection);
        self.reader = Some(reader.map_err(of_library)?);
        Ok(())
    }
}

/// The number of rows of a row group in one batch. `width` is the memory of a row in arrays without the bytes of texts.
fn rows_of_batch(rows: u64, bytes: u64, width: u64) -> u64 {
    let row_bytes = (bytes / rows.max(1)).max(width).max(1);
    let by_average = BATCH_BYTES_TARGET / row_bytes;
    let by_pages = (BLOCK_ROWS_TARGET as u64 * BATCH_PAGES_BYTES_TARGET) / bytes.max(1);
    by_average.min(by_pages).clamp(1, BLOCK_ROWS_TARGET as u64)
}

/// The file's columns, with INT96 as instants, of all years.
fn schema(metadata: &ParquetMetaData) -> Result<SchemaRef, SqlError> {
    let of = metadata.file_metadata().schema_descr();
    let plain = parquet::arrow::parquet_to_arrow_schema(of, None).map_err(of_library)?;
    let columns = of.root_schema().get_fields();
    let is_int96 = |at: usize| {
        let column = columns.get(at).filter(|column| column.is_primitive());
        column.is_some_and(|column| column.get_physical_type() == Type::INT96)
    };
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let fields = plain.fields().iter().enumerate().map(|(at, field)| {
        if is_int96(at) {
            Arc::new(Field::new(field.name(), instant.clone(), field.is_nullable()))
        } else {
            Arc::clone(field)
        }
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// The fields with views in place of texts and bytes.
fn viewed(fields: &Fields) -> Fields {
    fields.iter().map(viewed_field).collect()
}

fn viewed_field(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::List(item) => DataType::List(viewed_field(item)),
        DataType::Struct(fields) => DataType::Struct(viewed(fields)),
        DataType::Map(entries, is_sorted) => DataType::Map(viewed_field(entries), *is_sorted),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

#[cfg(test)]
mod tests;
