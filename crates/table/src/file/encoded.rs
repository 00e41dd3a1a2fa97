//! An encoded data file: its bytes in memory, its footer read, its pages checked.
//!
//! Large row groups are copied into another file unchanged ([`EncodedFile::encoded`]), which costs the copying of their bytes;
//! decoding and encoding them again would take most of a compaction's time and yield nearly the same. Memory is bounded by the
//! target file size.

use super::checksums::{Checksums, ChunkPages};
use super::deletes::Deletes;
use super::{LiveFile, footer_fault, guarded, is_ours};
use crate::error::{TableError, blocking};
use crate::place::root::TableRoot;
use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{SchemaDescriptor, Type};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use tributary_types::{ColumnId, PartitionId, Version};

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EncodedFile {
    bytes: Bytes,
    /// It has the page index.
    footer: ArrowReaderMetadata,
    deletes: Option<Arc<Deletes>>,
    columns_below: ColumnId,
    version: Version,
    partition: Option<PartitionId>,
    /// Its path as an operator finds it.
    name: String,
}

/// Row groups that follow one another in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RowGroups {
    /// They can be copied.
    Whole(Vec<usize>),
    /// Their rows must be read and encoded again.
    Rows(Vec<usize>),
}

/// A row group and the file that has it.
pub(super) struct EncodedRowGroup {
    bytes: Bytes,
    /// It has the page index.
    metadata: Arc<ParquetMetaData>,
    number: usize,
}

impl EncodedFile {
    /// Reads the whole of `file`.
    ///
    /// # Errors
    /// [`TableError::Storage`]; [`TableError::DamagedFile`] for a footer that can't be that of this file, and for pages whose
    /// checksums are others than the footer says.
    pub(crate) async fn open(root: &TableRoot, live: &LiveFile) -> Result<Self, TableError> {
        let file = &live.file;
        let doing = format!("reading the data file '{}'", file.path);
        let failed = || TableError::storage(doing.clone());
        let got = root.store.get(&Path::from(file.path.as_str())).await.map_err(failed())?;
        let bytes = got.bytes().await.map_err(failed())?;
        let (name, rows, encoded) = (root.shown(&file.path), file.rows, bytes.clone());
        let shown = name.clone();
        let footer =
            blocking("opening a data file", move || guarded(&shown, || read_footer(&encoded, rows, &shown)))
                .await?;
        let (deletes, columns_below) = (live.deletes.clone(), file.columns_below);
        Ok(Self {
            bytes,
            footer,
            deletes,
            columns_below,
            version: file.version,
            partition: file.partition,
            name,
        })
    }

    /// [`super::DataFile::partition`].
    pub(super) fn partition(&self) -> Option<PartitionId> {
        self.partition
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(super) fn footer(&self) -> ArrowReaderMetadata {
        self.footer.clone()
    }

    pub(super) fn columns_below(&self) -> ColumnId {
        self.columns_below
    }

    /// [`DataFile::version`].
    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The rows of those row groups that are not deleted. `None`: all of them.
    pub(super) fn left(&self, row_groups: &[usize]) -> Option<RowSelection> {
        let deletes = self.deletes.as_ref()?;
        let positions = self.positions();
        Some(deletes.left_in(row_groups.iter().map(|&number| positions[number].clone())))
    }

    /// The row positions of each row group in the file.
    fn positions(&self) -> Vec<Range<u64>> {
        let mut start = 0;
        let groups = self.footer.metadata().row_groups().iter();
        let position = |group: &RowGroupMetaData| {
            let first = start;
            start += group.num_rows().unsigned_abs();
            first..start
        };
        groups.map(position).collect()
    }

    /// All row groups in order: the ones that a file of `schema` can copy, because they have at least `bytes_min` bytes and no
    /// deleted row, and the ones between them.
    pub(crate) fn split(&self, schema: &Type, bytes_min: u64) -> Vec<RowGroups> {
        let metadata = self.footer.metadata();
        let is_alike = is_ours(metadata) && metadata.file_metadata().schema_descr().root_schema() == schema;
        let is_large = |group: &RowGroupMetaData| {
            u64::try_from(group.compressed_size()).is_ok_and(|bytes| bytes >= bytes_min)
        };
        let mut all = Vec::new();
        for ((number, group), positions) in metadata.row_groups().iter().enumerate().zip(self.positions()) {
            let has_deletes =
                self.deletes.as_ref().is_some_and(|deletes| deletes.rows().range_cardinality(positions) > 0);
            let is_whole = is_alike && is_large(group) && is_indexed(group) && !has_deletes;
            match all.last_mut() {
                Some(RowGroups::Whole(numbers)) if is_whole => numbers.push(number),
                Some(RowGroups::Rows(numbers)) if !is_whole => numbers.push(number),
                _ if is_whole => all.push(RowGroups::Whole(vec![number])),
                _ => all.push(RowGroups::Rows(vec![number])),
            }
        }
        all
    }

    /// For each column of `schema` the parts of the row group's column that a file of it can copy; none if rows of the group are
    /// deleted.
    pub(super) fn copyable(&self, row_group: usize, schema: &SchemaDescriptor) -> Vec<Option<Vec<usize>>> {
        let metadata = self.footer.metadata();
        let group = metadata.row_group(row_group);
        let wanted = schema.root_schema().get_fields();
        if !is_ours(metadata) || !is_indexed(group) || self.has_deletes(row_group) {
            return vec![None; wanted.len()];
        }
        let own = metadata.file_metadata().schema_descr();
        let parts =
            |root| (0..own.num_columns()).filter(|&part| own.get_column_root_idx(part) == root).collect();
        let same = |field: &Arc<Type>| own.root_schema().get_fields().iter().position(|own| own == field);
        wanted.iter().map(|field| same(field).map(parts)).collect()
    }

    /// Whether rows of the row group are deleted.
    pub(super) fn has_deletes(&self, row_group: usize) -> bool {
        let positions = self.positions().swap_remove(row_group);
        self.deletes.as_ref().is_some_and(|deletes| deletes.rows().range_cardinality(positions) > 0)
    }

    /// How many rows there are, deleted ones included.
    pub(super) fn rows(&self) -> usize {
        usize::try_from(self.footer.metadata().file_metadata().num_rows()).unwrap_or_default()
    }

    /// The largest bytes of a row in memory that a row group of these has, on average over the group.
    pub(super) fn row_bytes(&self, row_groups: &[usize], is_wanted: impl Fn(&str) -> bool) -> u64 {
        let of_group = |number: &usize| {
            let group = self.footer.metadata().row_group(*number);
            let wanted = group
                .columns()
                .iter()
                .filter(|column| column.column_path().parts().first().is_some_and(|root| is_wanted(root)));
            // The contents of a dictionary exist once in the file, and in each row in memory.
            let bytes = |column: &ColumnChunkMetaData| {
                column.unencoded_byte_array_data_bytes().unwrap_or_default().max(column.uncompressed_size())
            };
            let bytes: u64 = wanted.map(|column| bytes(column).unsigned_abs()).sum();
            bytes / group.num_rows().unsigned_abs().max(1)
        };
        row_groups.iter().map(of_group).max().unwrap_or_default()
    }

    /// How many rows these row groups have, deleted ones included.
    pub(super) fn rows_of(&self, row_groups: &[usize]) -> usize {
        let rows = |number: &usize| self.footer.metadata().row_group(*number).num_rows().unsigned_abs();
        usize::try_from(row_groups.iter().map(rows).sum::<u64>()).unwrap_or_default()
    }

    /// All row groups.
    pub(crate) fn row_groups(&self) -> Vec<usize> {
        (0..self.footer.metadata().num_row_groups()).collect()
    }

    /// These row groups, for copying.
    pub(super) fn encoded(&self, row_groups: Vec<usize>) -> Vec<EncodedRowGroup> {
        let encoded = |number| EncodedRowGroup {
            bytes: self.bytes.clone(),
            metadata: Arc::clone(self.footer.metadata()),
            number,
        };
        row_groups.into_iter().map(encoded).collect()
    }
}

impl EncodedRowGroup {
    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.number)
    }

    pub(super) fn rows(&self) -> u64 {
        self.group().num_rows().unsigned_abs()
    }

    /// Copies the columns' pages and their metadata. Returns the pages' sizes.
    pub(super) fn append_to<W: Write + Send>(
        &self,
        writer: &mut SerializedRowGroupWriter<'_, W>,
    ) -> ParquetResult<Vec<ChunkPages>> {
        (0..self.group().num_columns()).map(|number| self.append_column(writer, number)).collect()
    }

    /// Copies the pages of one column and their metadata. Returns the pages' sizes.
    pub(super) fn append_column<W: Write + Send>(
        &self,
        writer: &mut SerializedRowGroupWriter<'_, W>,
        number: usize,
    ) -> ParquetResult<ChunkPages> {
        let column = self.group().column(number);
        let column_index = self.metadata.column_index().and_then(|groups| groups.get(self.number));
        let offset_index = self.metadata.offset_index().and_then(|groups| groups.get(self.number));
        let close = ColumnCloseResult {
            bytes_written: column.compressed_size().unsigned_abs(),
            rows_written: self.rows(),
            metadata: column.clone(),
            // Our files have none.
            bloom_filter: None,
            column_index: column_index.and_then(|columns| columns.get(number)).cloned(),
            offset_index: offset_index.and_then(|columns| columns.get(number)).cloned(),
        };
        let pages = ChunkPages::new(&close);
        writer.append_column(&self.bytes, close)?;
        Ok(pages)
    }
}

/// Every file of ours has this index; the writer does not support it for only some row groups.
fn is_indexed(group: &RowGroupMetaData) -> bool {
    group.columns().iter().all(|column| column.offset_index_offset().is_some())
}

fn read_footer(bytes: &Bytes, rows: u64, name: &str) -> Result<ArrowReaderMetadata, TableError> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let footer = ArrowReaderMetadata::load(bytes, options).map_err(TableError::unreadable_file(name))?;
    let metadata = footer.metadata();
    let checked = match footer_fault(metadata, bytes.len() as u64, Some(rows)) {
        Some(fault) => Err(fault),
        None => Checksums::of_footer(metadata),
    };
    let fault = match checked {
        Ok(checksums) => checksums.and_then(|checksums| checksums.fault(metadata, 0, bytes)),
        Err(fault) => Some(fault),
    };
    fault.map_or(Ok(footer), |fault| Err(TableError::damaged_file(name)(fault)))
}

#[cfg(test)]
mod tests;
