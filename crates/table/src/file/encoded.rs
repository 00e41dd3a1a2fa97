//! An encoded data file: its footer in memory, and its pages as they are asked for, which are read by ranges and checked.
//!
//! Large row groups are copied into another file unchanged ([`EncodedFile::encoded`]), which costs the copying of their bytes;
//! decoding and encoding them again would take most of a compaction's time and yield nearly the same. At most the wanted columns
//! of one row group are in memory at a time.

use super::checksums::{Checksums, ChunkPages};
use super::deletes::Deletes;
use super::{LiveFile, footer_fault, guarded, is_ours};
use crate::error::{TableError, blocking};
use crate::place::root::TableRoot;
use bytes::{Buf, Bytes};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, RowGroupMetaData,
};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{SchemaDescriptor, Type};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use tributary_types::{ColumnId, PartitionId, Version};

/// Bytes at a file's end that are read first: the footers and page indexes of most files have fewer.
const END_BYTES: u64 = 64 * 1024;
/// Ranges with no more bytes between them are read as one.
const GAP_BYTES: u64 = 64 * 1024;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EncodedFile {
    source: Source,
    /// It has the page index.
    footer: ArrowReaderMetadata,
    /// `None`: another writer's file.
    checksums: Option<Arc<Checksums>>,
    deletes: Option<Arc<Deletes>>,
    columns_below: ColumnId,
    version: Version,
    partition: Option<PartitionId>,
}

/// Where the bytes of a file are.
#[derive(Clone)]
struct Source {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Its path as an operator finds it.
    name: String,
    /// As the table knows it.
    file_bytes: u64,
    /// All of a small file, which came with its footer.
    whole: Option<Bytes>,
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
    pieces: Pieces,
    /// It has the page index.
    metadata: Arc<ParquetMetaData>,
    number: usize,
}

impl EncodedFile {
    /// Reads the footer and the page index of `file`.
    ///
    /// # Errors
    /// [`TableError::Storage`]; [`TableError::DamagedFile`] for a footer that can't be that of this file.
    pub(crate) async fn open(root: &TableRoot, live: &LiveFile) -> Result<Self, TableError> {
        let file = &live.file;
        let mut source = Source {
            store: Arc::clone(&root.store),
            path: Path::from(file.path.as_str()),
            name: root.shown(&file.path),
            file_bytes: file.size_bytes,
            whole: None,
        };
        let (footer, checksums) = source.footer(file.rows).await?;
        Ok(Self {
            source,
            footer,
            checksums,
            deletes: live.deletes.clone(),
            columns_below: file.columns_below,
            version: file.version,
            partition: file.partition,
        })
    }

    /// Reads these ranges, and what is between neighbours that are near. Pages that are in one piece are checked.
    ///
    /// # Errors
    /// [`TableError::Storage`]; [`TableError::DamagedFile`] for ranges beyond the end of the file, and for pages whose checksums
    /// are others than the footer says.
    pub(super) async fn read(&self, ranges: &[Range<u64>]) -> Result<Pieces, TableError> {
        let pieces = self.source.read(ranges).await?;
        let Some(checksums) = self.checksums.clone() else { return Ok(pieces) };
        let (metadata, name) = (Arc::clone(self.footer.metadata()), self.name().to_owned());
        blocking("checking a data file", move || {
            guarded(&name, || {
                let mut all = pieces.0.iter();
                match all.find_map(|(start, bytes)| checksums.fault(&metadata, *start, bytes)) {
                    Some(fault) => Err(TableError::damaged_file(&name)(fault)),
                    None => Ok(()),
                }
            })?;
            Ok(pieces)
        })
        .await
    }

    /// [`super::DataFile::partition`].
    pub(super) fn partition(&self) -> Option<PartitionId> {
        self.partition
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
        &self.source.name
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

    /// Reads these columns of a row group for copying.
    ///
    /// # Errors
    /// As [`EncodedFile::read`].
    pub(super) async fn encoded(
        &self,
        number: usize,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<EncodedRowGroup, TableError> {
        let metadata = Arc::clone(self.footer.metadata());
        let columns = metadata.row_group(number).columns().iter().enumerate();
        let range_of = |column: &ColumnChunkMetaData| {
            let (start, bytes) = column.byte_range();
            start..start.saturating_add(bytes)
        };
        let wanted = columns.filter(|(column, _)| is_wanted(*column)).map(|(_, column)| range_of(column));
        let pieces = self.read(&wanted.collect::<Vec<_>>()).await?;
        Ok(EncodedRowGroup { pieces, metadata, number })
    }
}

impl Source {
    /// The footer, with the page index, and the checksums of the pages.
    async fn footer(
        &mut self,
        rows: u64,
    ) -> Result<(ArrowReaderMetadata, Option<Arc<Checksums>>), TableError> {
        let end = self.file_bytes.saturating_sub(END_BYTES)..self.file_bytes;
        let mut decoder = ParquetMetaDataPushDecoder::try_new(self.file_bytes)
            .map_err(TableError::damaged_file(&self.name))?
            .with_page_index_policy(PageIndexPolicy::Optional);
        let mut wanted = vec![end];
        loop {
            let pieces = self.read(&wanted).await?;
            if self.file_bytes <= END_BYTES {
                self.whole = pieces.rest(0);
            }
            let (name, file_bytes) = (self.name.clone(), self.file_bytes);
            let step = blocking("opening a data file", move || {
                guarded(&name, || {
                    let (ranges, bytes) = pieces.into_parts();
                    decoder.push_ranges(ranges, bytes).map_err(TableError::unreadable_file(&name))?;
                    match decoder.try_decode().map_err(TableError::unreadable_file(&name))? {
                        DecodeResult::NeedsData(ranges) => Ok(Err((decoder, ranges))),
                        DecodeResult::Data(metadata) => {
                            checked_footer(metadata, file_bytes, rows, &name).map(Ok)
                        }
                        DecodeResult::Finished => Err(TableError::damaged_file(&name)("it has no footer")),
                    }
                })
            });
            match step.await? {
                Ok(footer) => return Ok(footer),
                Err((again, ranges)) => (decoder, wanted) = (again, ranges),
            }
        }
    }

    /// Reads these ranges, and what is between neighbours that are near.
    async fn read(&self, ranges: &[Range<u64>]) -> Result<Pieces, TableError> {
        let is_possible = |range: &&Range<u64>| range.start <= range.end && range.end <= self.file_bytes;
        if let Some(beyond) = ranges.iter().find(|range| !is_possible(range)) {
            let (start, end) = (beyond.start, beyond.end);
            let fault = format!("its footer names bytes {start} to {end}, and it has {}", self.file_bytes);
            return Err(TableError::damaged_file(&self.name)(fault));
        }
        let ranges = merged(ranges);
        if let Some(whole) = &self.whole {
            let piece =
                |range: Range<u64>| (range.start, whole.slice(range.start as usize..range.end as usize));
            return Ok(Pieces(ranges.into_iter().map(piece).collect()));
        }
        let read = match ranges.is_empty() {
            true => Vec::new(),
            false => match self.store.get_ranges(&self.path, &ranges).await {
                Ok(read) => read,
                Err(error) => return Err(self.failure(error).await),
            },
        };
        let is_short = |(range, bytes): (&Range<u64>, &Bytes)| bytes.len() as u64 != range.end - range.start;
        if ranges.iter().zip(&read).any(is_short) {
            return Err(TableError::damaged_file(&self.name)("it is shorter than the table's log says"));
        }
        Ok(Pieces(ranges.into_iter().map(|range| range.start).zip(read).collect()))
    }

    /// The error of a read, which may be due to the file's length.
    async fn failure(&self, error: object_store::Error) -> TableError {
        match self.store.head(&self.path).await {
            Ok(meta) if meta.size != self.file_bytes => TableError::damaged_file(&self.name)(format!(
                "it has {} bytes, and the table's log says {}",
                meta.size, self.file_bytes
            )),
            _ => TableError::storage(format!("reading the data file '{}'", self.name))(error),
        }
    }
}

/// The ranges in order, neighbours that are near made one.
fn merged(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> =
        ranges.iter().filter(|range| range.start < range.end).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Pieces of a file with their places, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Vec<(u64, Bytes)>);

impl Pieces {
    /// The places and the bytes.
    pub(super) fn into_parts(self) -> (Vec<Range<u64>>, Vec<Bytes>) {
        self.0.into_iter().map(|(start, bytes)| (start..start + bytes.len() as u64, bytes)).unzip()
    }

    /// The bytes from `start` to the end of the piece that has them.
    fn rest(&self, start: u64) -> Option<Bytes> {
        let before = self.0.partition_point(|(first, _)| *first <= start);
        let (first, bytes) = self.0.get(before.checked_sub(1)?)?;
        let skipped = usize::try_from(start - first).ok()?;
        (skipped <= bytes.len()).then(|| bytes.slice(skipped..))
    }
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.0.last().map(|(start, bytes)| start + bytes.len() as u64).unwrap_or_default()
    }
}

impl ChunkReader for Pieces {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let missing = || ParquetError::EOF(format!("byte {start} was not read"));
        self.rest(start).map(Bytes::reader).ok_or_else(missing)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let missing = || ParquetError::EOF(format!("{length} bytes at byte {start} were not read"));
        self.rest(start)
            .filter(|bytes| length <= bytes.len())
            .map(|bytes| bytes.slice(..length))
            .ok_or_else(missing)
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
        writer.append_column(&self.pieces, close)?;
        Ok(pages)
    }
}

/// Every file of ours has this index; the writer does not support it for only some row groups.
fn is_indexed(group: &RowGroupMetaData) -> bool {
    group.columns().iter().all(|column| column.offset_index_offset().is_some())
}

fn checked_footer(
    metadata: ParquetMetaData,
    file_bytes: u64,
    rows: u64,
    name: &str,
) -> Result<(ArrowReaderMetadata, Option<Arc<Checksums>>), TableError> {
    if let Some(fault) = footer_fault(&metadata, file_bytes, Some(rows)) {
        return Err(TableError::damaged_file(name)(fault));
    }
    let checksums = Checksums::of_footer(&metadata).map_err(TableError::damaged_file(name))?;
    let footer = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new());
    Ok((footer.map_err(TableError::unreadable_file(name))?, checksums.map(Arc::new)))
}

#[cfg(test)]
mod tests;
