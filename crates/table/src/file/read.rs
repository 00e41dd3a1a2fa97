//! Reading the rows of a data file back as rows of a schema, for rewriting and compaction.
//!
//! Columns are found by physical name; one that the file does not have gets its default.

use super::encoded::EncodedFile;
use super::guarded;
use crate::error::{TableError, blocking};
use crate::evolve::{as_type, assemble, default_array};
use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};
use std::ops::Range;
use std::sync::Arc;
use tributary_types::{ColumnId, TableSchema};

const BATCH_ROWS: usize = 32 * 1024;

/// Rows of one file, batch by batch.
pub(crate) struct FileReader {
    reader: Option<ParquetRecordBatchReader>,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    columns_below: ColumnId,
    now_micros: i64,
    /// The file's path as an operator finds it.
    name: String,
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
        let reader = guarded(&name, || open_reader(file, row_groups, wanted, schema))?;
        Ok(Self {
            reader: Some(reader),
            schema: Arc::clone(schema),
            arrow: schema.arrow(),
            columns_below: file.columns_below(),
            now_micros,
            name,
        })
    }

    /// The next rows, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let name = self.name.clone();
        let (reader, batch) = blocking("decoding a data file", move || {
            guarded(&name, || {
                let batch = reader.next().transpose().map_err(TableError::damaged_file(&name))?;
                Ok((reader, batch))
            })
        })
        .await?;
        let Some(batch) = batch else { return Ok(None) };
        self.reader = Some(reader);
        self.as_rows(&batch).map(Some).map_err(TableError::damaged_file(&self.name))
    }

    fn as_rows(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let mut columns = Vec::with_capacity(self.schema.columns.len());
        for column in &self.schema.columns {
            columns.push(match batch.column_by_name(&column.physical_name) {
                Some(array) => as_type(array, column)?,
                None if column.id < self.columns_below => {
                    new_null_array(&column.data_type.to_arrow(), batch.num_rows())
                }
                None => default_array(column, batch.num_rows(), self.now_micros)?,
            });
        }
        assemble(&self.arrow, columns, batch.num_rows(), &self.schema)
    }
}

fn open_reader(
    file: &EncodedFile,
    row_groups: Vec<usize>,
    wanted_rows: Option<RowSelection>,
    schema: &TableSchema,
) -> Result<ParquetRecordBatchReader, TableError> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.bytes(), file.footer());
    let wanted = |column: &str| schema.columns.iter().any(|known| known.physical_name == column);
    let fields = builder.schema().fields();
    let roots: Vec<usize> = (0..fields.len()).filter(|&index| wanted(fields[index].name())).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let mut builder = builder.with_projection(mask).with_row_groups(row_groups).with_batch_size(BATCH_ROWS);
    if let Some(rows) = wanted_rows {
        builder = builder.with_row_selection(rows);
    }
    builder.build().map_err(TableError::unreadable_file(file.name()))
}

/// Those of `all` rows that are at positions which are in order.
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
