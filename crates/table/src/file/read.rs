//! Reads the rows of a data file back as rows of a schema, for rewriting and compaction.
//!
//! Columns are found by physical name; one that the file does not have gets its default.
//!
//! Invariant: a batch holds about [`BATCH_BYTES`] at most, however large rows are: a column of texts in one batch takes less than
//! 2 GiB. What row groups say of their sizes are averages; where they mislead, rows are read again, fewer at a time. Beside it are
//! the encoded columns of one row group, or only their pages with wanted rows.

use super::encoded::EncodedFile;
use super::guarded;
use crate::error::{TableError, blocking};
use crate::view::evolve::{as_type, assemble, default_array};
use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::SchemaRef;
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use std::ops::Range;
use std::sync::Arc;
use tributary_types::{ColumnId, DefaultValue, TableSchema};

const BATCH_ROWS: usize = 32 * 1024;
/// Approximate bytes of rows that are decoded at a time.
const BATCH_BYTES: u64 = 64 << 20;
/// The parts in which a batch that is too large for Arrow is read again.
const SMALLER: usize = 16;
/// The Parquet library's error for a column of one batch that would have 2 GiB or more.
const TOO_LARGE: &str = "index overflow decoding byte array";

/// Rows of one file, batch by batch.
pub(crate) struct FileReader {
    /// `None`: all rows were read, or it has failed.
    decoder: Option<ParquetPushDecoder>,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    columns_below: ColumnId,
    now_micros: i64,
    /// The file's path as an operator finds it.
    name: String,
    file: EncodedFile,
    row_groups: Vec<usize>,
    /// `None`: all rows of the row groups.
    wanted: Option<RowSelection>,
    batch_rows: usize,
    /// Rows that were read.
    read: usize,
}

impl FileReader {
    /// Reads the row groups `row_groups` of `file`, without deleted rows, as rows of `schema`. `now_micros` is for
    /// defaults such as `CURRENT_TIMESTAMP`.
    pub(crate) fn new(
        file: &EncodedFile,
        row_groups: Vec<usize>,
        schema: &Arc<TableSchema>,
        now_micros: i64,
    ) -> Result<Self, TableError> {
        let left = file.left(&row_groups);
        Self::with_selection(file, row_groups, left, schema, now_micros)
    }

    /// Reads the rows at those positions, which are in order, whether they are deleted or not.
    pub(crate) fn of_rows(
        file: &EncodedFile,
        rows: &[u32],
        schema: &Arc<TableSchema>,
        now_micros: i64,
    ) -> Result<Self, TableError> {
        let wanted = selection(rows, file.rows());
        Self::with_selection(file, file.row_groups(), Some(wanted), schema, now_micros)
    }

    fn with_selection(
        file: &EncodedFile,
        row_groups: Vec<usize>,
        wanted: Option<RowSelection>,
        schema: &Arc<TableSchema>,
        now_micros: i64,
    ) -> Result<Self, TableError> {
        let name = file.name().to_owned();
        let (columns_below, arrow) = (file.columns_below(), schema.arrow());
        let is_wanted = |column: &str| schema.columns.iter().any(|known| known.physical_name == column);
        let mut row_bytes = file.row_bytes(&row_groups, is_wanted);
        for column in schema.columns.iter().filter(|column| column.id >= columns_below) {
            row_bytes += match column.value_of_old_rows() {
                Some(DefaultValue::Literal(text)) => text.len() as u64,
                _ => 0,
            };
        }
        let batch_rows = usize::try_from(BATCH_BYTES / row_bytes.max(1)).unwrap_or(BATCH_ROWS);
        let mut reader = Self {
            decoder: None,
            schema: Arc::clone(schema),
            arrow,
            columns_below,
            now_micros,
            name,
            file: file.clone(),
            row_groups,
            wanted,
            batch_rows: batch_rows.clamp(1, BATCH_ROWS),
            read: 0,
        };
        reader.open()?;
        Ok(reader)
    }

    /// Begins behind the rows that were read.
    fn open(&mut self) -> Result<(), TableError> {
        let wanted = match (self.read, &self.wanted) {
            (0, wanted) => wanted.clone(),
            (read, wanted) => {
                let all = || vec![RowSelector::select(self.file.rows_of(&self.row_groups))].into();
                Some(left_after(&wanted.clone().unwrap_or_else(all), read).into())
            }
        };
        let (row_groups, batch_rows) = (self.row_groups.clone(), self.batch_rows);
        let decoder =
            guarded(&self.name, || open_decoder(&self.file, row_groups, wanted, batch_rows, &self.schema))?;
        self.decoder = Some(decoder);
        Ok(())
    }

    /// The next rows, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            let Some(mut decoder) = self.decoder.take() else { return Ok(None) };
            let name = self.name.clone();
            let decoded = blocking("decoding a data file", move || {
                guarded(&name, || {
                    let decoded = decoder.try_decode().map_err(TableError::unreadable_file(&name))?;
                    Ok((decoder, decoded))
                })
            });
            let (mut decoder, decoded) = match decoded.await {
                Err(TableError::DamagedFile { reason, .. })
                    if reason.contains(TOO_LARGE) && self.batch_rows > 1 =>
                {
                    self.batch_rows = (self.batch_rows / SMALLER).max(1);
                    self.open()?;
                    continue;
                }
                decoded => decoded?,
            };
            let batch = match decoded {
                DecodeResult::NeedsData(ranges) => {
                    let (ranges, bytes) = self.file.read(&ranges).await?.into_parts();
                    decoder.push_ranges(ranges, bytes).map_err(TableError::unreadable_file(&self.name))?;
                    self.decoder = Some(decoder);
                    continue;
                }
                DecodeResult::Data(batch) => batch,
                DecodeResult::Finished => return Ok(None),
            };
            // The row group that is being decoded has its own references to them.
            decoder.clear_all_ranges();
            self.decoder = Some(decoder);
            self.read += batch.num_rows();
            return self.as_rows(&batch).map(Some).map_err(TableError::damaged_file(&self.name));
        }
    }

    fn as_rows(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let mut columns = Vec::with_capacity(self.schema.columns.len());
        for column in &self.schema.columns {
            columns.push(match batch.column_by_name(&column.physical_name) {
                Some(array) => as_type(array, column)?,
                // Files of other writers have no hidden columns: their rows delete nothing.
                None if column.id < self.columns_below && column.nullable => {
                    new_null_array(&column.data_type.to_arrow(), batch.num_rows())
                }
                None => default_array(column, batch.num_rows(), self.now_micros)?,
            });
        }
        assemble(&self.arrow, columns, batch.num_rows(), &self.schema)
    }
}

fn open_decoder(
    file: &EncodedFile,
    row_groups: Vec<usize>,
    wanted_rows: Option<RowSelection>,
    batch_rows: usize,
    schema: &TableSchema,
) -> Result<ParquetPushDecoder, TableError> {
    let builder = ParquetPushDecoderBuilder::new_with_metadata(file.footer());
    let wanted = |column: &str| schema.columns.iter().any(|known| known.physical_name == column);
    let fields = builder.schema().fields();
    let roots: Vec<usize> = (0..fields.len()).filter(|&index| wanted(fields[index].name())).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let mut builder = builder.with_projection(mask).with_row_groups(row_groups).with_batch_size(batch_rows);
    if let Some(rows) = wanted_rows {
        builder = builder.with_row_selection(rows);
    }
    builder.build().map_err(TableError::unreadable_file(file.name()))
}

/// The selection without the first `read` rows that it selects.
fn left_after(selection: &RowSelection, mut read: usize) -> Vec<RowSelector> {
    let mut left = Vec::new();
    for selector in selection.iter() {
        let skipped = if selector.skip { 0 } else { read.min(selector.row_count) };
        read -= skipped;
        if skipped > 0 {
            left.push(RowSelector::skip(skipped));
        }
        left.push(RowSelector { row_count: selector.row_count - skipped, ..*selector });
    }
    left
}

/// Selects rows at ascending positions among `all` rows.
fn selection(rows: &[u32], all: usize) -> RowSelection {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row in rows.iter().map(|row| *row as usize) {
        match ranges.last_mut() {
            Some(range) if range.end == row => range.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    RowSelection::from_consecutive_ranges(ranges.into_iter(), all)
}
