//! A footer that describes some pages of a file as uncompressed, and where they are.
//!
//! A page that is not compressed is longer than it is in the file, so a chunk in memory finds no place between its neighbours. All
//! columns but the first of a row group with chunks in memory get addresses behind the end of any file. The first column keeps its
//! position, since DataFusion sees by it which part of a plan reads the row group; it grows into the room of the others, as far as
//! the next row group or a Bloom filter, and stays in the file if that is too short.
//!
//! Invariant: no two chunks of a view, and nothing else of the file, have an address in common. Chunks of the file that were moved
//! are as long as before.

use super::ChunkId;
use super::expanded::Expanded;
use bytes::Bytes;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use datafusion::parquet::file::page_index::offset_index::OffsetIndexMetaData;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Where the addresses begin that are no positions: no file has as many bytes.
const BEHIND_FILES: u64 = 1 << 48;

/// A file as a reader sees it.
pub(in crate::scan) struct View {
    metadata: Arc<ParquetMetaData>,
    /// The chunks that were moved or are in memory, by their address.
    moved: Vec<Moved>,
}

struct Moved {
    addresses: Range<u64>,
    to: To,
}

/// The place of the first address of a chunk.
enum To {
    File(u64),
    Memory(Bytes),
}

/// Where bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::scan) enum Place {
    File(Range<u64>),
    Memory(Bytes),
}

impl View {
    /// The file as it is.
    pub(super) fn of_file(footer: Arc<ParquetMetaData>) -> Self {
        Self { metadata: footer, moved: Vec::new() }
    }

    /// The file with these chunks in memory.
    ///
    /// # Errors
    /// The footer has something that a footer can't have.
    pub(super) fn new(footer: &ParquetMetaData, held: &HashMap<ChunkId, Arc<Expanded>>) -> Result<Self> {
        let mut index = footer.offset_index().filter(|groups| !groups.is_empty()).cloned();
        let positions = Positions::of(footer);
        let mut moved = Vec::new();
        let mut free = BEHIND_FILES;
        let mut groups = Vec::with_capacity(footer.num_row_groups());
        for (number, group) in footer.row_groups().iter().enumerate() {
            let placed = |column: usize| placed(held, &positions, group, (number, column));
            if !(0..group.num_columns()).any(|column| placed(column).is_some()) {
                groups.push(group.clone());
                continue;
            }
            let mut columns = Vec::with_capacity(group.num_columns());
            for (column, chunk) in group.columns().iter().enumerate() {
                let expanded = placed(column);
                let (start, bytes) = chunk.byte_range();
                let length = expanded.map_or(bytes, |expanded| expanded.bytes.len() as u64);
                let address = if column == 0 { start } else { free };
                if column > 0 {
                    free += length;
                }
                let pages = index.as_mut().and_then(|groups| groups.get_mut(number)?.get_mut(column));
                columns.push(match expanded {
                    Some(expanded) => in_memory(chunk, pages, expanded, address)?,
                    None => shifted(chunk, pages, address)?,
                });
                let to = expanded.map_or(To::File(start), |expanded| To::Memory(expanded.bytes.clone()));
                moved.push(Moved { addresses: address..address + length, to });
            }
            groups.push(group.clone().into_builder().set_column_metadata(columns).build()?);
        }
        moved.sort_by_key(|moved| moved.addresses.start);
        let builder = ParquetMetaDataBuilder::new_from_metadata(footer.clone());
        let index = index.or_else(|| footer.offset_index().cloned());
        let metadata = builder.set_row_groups(groups).set_offset_index(index).build();
        Ok(Self { metadata: Arc::new(metadata), moved })
    }

    /// The footer, whose positions are addresses.
    pub(in crate::scan) fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }

    /// Where the bytes at these addresses are.
    pub(in crate::scan) fn place(&self, asked: &Range<u64>) -> Place {
        let behind = self.moved.partition_point(|moved| moved.addresses.start <= asked.start);
        let found = behind.checked_sub(1).and_then(|number| self.moved.get(number));
        match found.filter(|moved| asked.end <= moved.addresses.end) {
            Some(Moved { addresses, to }) => {
                let skipped = asked.start - addresses.start;
                let length = asked.end - asked.start;
                match to {
                    To::File(start) => Place::File(start + skipped..start + skipped + length),
                    To::Memory(bytes) => {
                        Place::Memory(bytes.slice(skipped as usize..(skipped + length) as usize))
                    }
                }
            }
            None => Place::File(asked.clone()),
        }
    }
}

/// The positions that readers may ask for of a file, each with its row group; Bloom filters have none.
struct Positions(Vec<(u64, Option<usize>)>);

impl Positions {
    fn of(footer: &ParquetMetaData) -> Self {
        let mut all = Vec::new();
        for (number, group) in footer.row_groups().iter().enumerate() {
            for chunk in group.columns() {
                all.push((chunk.byte_range().0, Some(number)));
                let filter = chunk.bloom_filter_offset().and_then(|offset| u64::try_from(offset).ok());
                all.extend(filter.map(|offset| (offset, None)));
            }
        }
        all.sort_unstable();
        Self(all)
    }

    /// The first position from `start` on that is not the row group's.
    fn next_of_others(&self, start: u64, number: usize) -> u64 {
        let from = self.0.partition_point(|(position, _)| *position < start);
        let mut rest = self.0.iter().skip(from);
        rest.find(|(_, group)| *group != Some(number)).map_or(BEHIND_FILES, |(position, _)| *position)
    }
}

/// The chunk in memory, if it finds a place.
fn placed<'a>(
    held: &'a HashMap<ChunkId, Arc<Expanded>>,
    positions: &Positions,
    group: &RowGroupMetaData,
    (number, column): ChunkId,
) -> Option<&'a Arc<Expanded>> {
    let expanded = held.get(&(number, column))?;
    let start = group.column(column).byte_range().0;
    let has_room = || start + expanded.bytes.len() as u64 <= positions.next_of_others(start, number);
    (column > 0 || has_room()).then_some(expanded)
}

/// A chunk with its pages in memory.
fn in_memory(
    chunk: &ColumnChunkMetaData,
    index: Option<&mut OffsetIndexMetaData>,
    expanded: &Expanded,
    address: u64,
) -> Result<ColumnChunkMetaData> {
    let start = i64::try_from(address)?;
    if let Some(index) = index {
        for (location, page) in index.page_locations.iter_mut().zip(&expanded.pages) {
            location.offset = start + i64::try_from(page.start)?;
            location.compressed_page_size = i32::try_from(page.len())?;
        }
    }
    let data_start = i64::try_from(expanded.data_start())?;
    chunk
        .clone()
        .into_builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_total_compressed_size(i64::try_from(expanded.bytes.len())?)
        .set_dictionary_page_offset((data_start > 0).then_some(start))
        .set_data_page_offset(start + data_start)
        .build()
}

/// A chunk of the file at another address.
fn shifted(
    chunk: &ColumnChunkMetaData,
    index: Option<&mut OffsetIndexMetaData>,
    address: u64,
) -> Result<ColumnChunkMetaData> {
    let by = i64::try_from(address)? - i64::try_from(chunk.byte_range().0)?;
    let moved = |offset: i64| {
        offset.checked_add(by).ok_or_else(|| ParquetError::General(format!("a page at {offset}")))
    };
    if let Some(index) = index {
        for location in &mut index.page_locations {
            location.offset = moved(location.offset)?;
        }
    }
    let dictionary = chunk.dictionary_page_offset().map(moved).transpose()?;
    chunk
        .clone()
        .into_builder()
        .set_dictionary_page_offset(dictionary)
        .set_data_page_offset(moved(chunk.data_page_offset())?)
        .build()
}
