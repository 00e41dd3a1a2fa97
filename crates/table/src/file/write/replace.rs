//! A file that replaces another: row group by row group, some columns re-created, the others copied in encoded form.

use super::{RunWriter, evolve};
use crate::error::TableError;
use crate::file::LiveFile;
use crate::file::encode::{ColumnSource, encode};
use crate::file::encoded::EncodedFile;
use crate::place::root::TableRoot;
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use parquet::arrow::ArrowSchemaConverter;
use parquet::schema::types::SchemaDescriptor;
use std::sync::Arc;
use tributary_types::TableDef;

/// The columns of a row group that are made.
pub(crate) struct Made {
    /// Their places in the schema, in order.
    pub(crate) columns: Vec<usize>,
    /// They alone, with the names and types of the table's schema.
    pub(crate) batches: Vec<RecordBatch>,
}

impl RunWriter {
    /// A writer of one file under `def` that replaces `like`: with rows of its partition, none younger than its own. Only
    /// [`RunWriter::replace`] may add rows to it.
    pub(crate) fn in_place_of(root: &Arc<TableRoot>, def: &TableDef, like: &LiveFile) -> Self {
        let mut writer = Self::new(root, def);
        (writer.partitions, writer.partition) = (None, like.file.partition);
        writer.at(like.version());
        writer
    }

    fn descriptor(&self) -> Result<SchemaDescriptor, TableError> {
        let failed = TableError::parquet("making a data file's schema");
        ArrowSchemaConverter::new().convert(&self.physical).map_err(failed)
    }

    /// For each column of the new file the parts of the other's row group that it can be copied from.
    ///
    /// # Errors
    /// [`TableError::Parquet`]: the table has a column that Parquet has no type for.
    pub(crate) fn copyable(
        &self,
        file: &EncodedFile,
        row_group: usize,
    ) -> Result<Vec<Option<Vec<usize>>>, TableError> {
        Ok(file.copyable(row_group, &self.descriptor()?))
    }

    /// Writes the next row group: columns that are made, and for all others the columns of the other file's row group
    /// that `copied` names.
    ///
    /// # Errors
    /// As [`RunWriter::append_file`].
    pub(crate) async fn replace(
        &mut self,
        made: Made,
        file: &EncodedFile,
        row_group: usize,
        copied: &[Option<Vec<usize>>],
    ) -> Result<(), TableError> {
        let rows: usize = made.batches.iter().map(RecordBatch::num_rows).sum();
        if rows == 0 {
            return Ok(());
        }
        let fields = made.columns.iter().map(|&column| Arc::clone(&self.physical.fields()[column]));
        let physical = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut batches = Vec::with_capacity(made.batches.len());
        for batch in made.batches {
            let rows = batch.num_rows();
            let columns = evolve::stored(batch.columns(), &physical)?;
            batches.push(evolve::assemble(&physical, columns, rows, &self.schema)?);
        }
        let open = self.open_file(&[])?;
        let doing = format!("encoding the data file '{}'", open.name);
        let writers = match &open.encoder {
            Some(encoder) => encoder.columns().map_err(TableError::parquet(doing.clone()))?,
            None => return Err(TableError::Worker { doing, reason: "an earlier step failed".to_owned() }),
        };
        let schema = self.descriptor()?;
        // A column of values that consist of values has several parts.
        let is_made = |part: usize| made.columns.contains(&schema.get_column_root_idx(part));
        let writers = writers.into_iter().enumerate().filter(|(part, _)| is_made(*part));
        let chunks = encode(writers.map(|(_, writer)| writer).collect(), batches, None, &doing).await?;
        let mut chunks = chunks.into_iter();
        let copied = copied.iter().enumerate().filter(|(column, _)| !made.columns.contains(column));
        let copied: Vec<usize> = copied.flat_map(|(_, parts)| parts.iter().flatten().copied()).collect();
        let source = file.encoded(row_group, |column| copied.contains(&column)).await?;
        let mut copied = copied.into_iter();
        let mut columns = Vec::with_capacity(schema.num_columns());
        for part in 0..schema.num_columns() {
            columns.push(match is_made(part) {
                true => ColumnSource::Made(Box::new(
                    chunks.next().expect("each part of a made column is encoded"),
                )),
                false => ColumnSource::Copied(copied.next().expect("each other part is copied")),
            });
        }
        let open = self.open_file(&[])?;
        open.step(doing, move |encoder| encoder.append_mixed(columns, &source)).await?;
        // However large: there is one file for one.
        open.rows += rows as u64;
        Ok(())
    }
}
