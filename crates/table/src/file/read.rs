//! Reading a data file back as rows of a schema, for rewriting and compaction.
//!
//! Columns are found by physical name; one that the file does not have gets its default. The
//! encoded file is held in memory while it is read, so memory is bounded by the target file size.

use super::DataFile;
use crate::error::{TableError, blocking};
use crate::evolve::{as_type, assemble, default_array};
use crate::root::TableRoot;
use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::SchemaRef;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use std::sync::Arc;
use tributary_types::{ColumnId, TableSchema};

const BATCH_ROWS: usize = 32 * 1024;

/// The rows of one file, batch by batch.
pub(crate) struct FileReader {
    reader: Option<ParquetRecordBatchReader>,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    columns_below: ColumnId,
    now_micros: i64,
    doing: String,
}

impl FileReader {
    /// Opens `file` to be read as `schema`. `now_micros` is for defaults such as
    /// CURRENT_TIMESTAMP.
    pub(crate) async fn open(
        root: &TableRoot,
        file: &DataFile,
        schema: &Arc<TableSchema>,
        now_micros: i64,
    ) -> Result<Self, TableError> {
        let doing = format!("reading the data file '{}'", file.path);
        let failed = || TableError::storage(doing.clone());
        let got = root.store.get(&Path::from(file.path.as_str())).await.map_err(failed())?;
        let bytes = got.bytes().await.map_err(failed())?;
        let wanted = Arc::clone(schema);
        let context = doing.clone();
        let reader = blocking("opening a data file", move || open_reader(bytes, &wanted, &context)).await?;
        Ok(Self {
            reader: Some(reader),
            schema: Arc::clone(schema),
            arrow: schema.arrow(),
            columns_below: file.columns_below,
            now_micros,
            doing,
        })
    }

    /// The next rows, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let doing = self.doing.clone();
        let (reader, batch) = blocking("decoding a data file", move || {
            let batch = reader.next().transpose().map_err(TableError::arrow(doing))?;
            Ok((reader, batch))
        })
        .await?;
        let Some(batch) = batch else { return Ok(None) };
        self.reader = Some(reader);
        self.as_rows(&batch).map(Some)
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
    bytes: bytes::Bytes,
    schema: &TableSchema,
    doing: &str,
) -> Result<ParquetRecordBatchReader, TableError> {
    let failed = || TableError::parquet(doing.to_owned());
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(failed())?;
    let wanted = |name: &str| schema.columns.iter().any(|column| column.physical_name == name);
    let fields = builder.schema().fields();
    let roots: Vec<usize> = (0..fields.len()).filter(|&index| wanted(fields[index].name())).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(failed())
}
