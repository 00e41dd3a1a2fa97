//! Checksums of a data file's pages, stored in its footer.
//!
//! The Parquet library writes no checksums of its own. The footer's key-value metadata has the CRC32C of every page under the key
//! [`KEY`]; other readers ignore it. The offset index says where pages begin. Not its business: the footer and the page index
//! themselves.

use super::is_ours;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use std::ops::Range;
use std::slice;

/// The key of the footer's entry. Its value is base64 of, for each column of each row group in their order: the number of
/// its pages (a dictionary page is the first) and the CRC32C of each; all are 32 bits, little-endian.
const KEY: &str = "tributary.crc32c";

/// The checksums of all pages of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    /// In the order of row groups and columns.
    chunks: Vec<Vec<u32>>,
    /// The chunks by their first byte. Present only for a footer that was read.
    places: Vec<Place>,
}

/// The position of a column chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    bytes: Range<u64>,
    /// The highest end of this and all preceding chunks: a damaged footer may have overlapping chunks.
    end_max: u64,
    /// Its number in the order of row groups and columns.
    chunk: usize,
    row_group: usize,
    column: usize,
}

impl Checksums {
    /// Reads them from a file's footer; `None` for files of other writers, even if those copied the entry from
    /// a file that they read.
    ///
    /// # Errors
    /// A description of the damage.
    pub fn of_footer(metadata: &ParquetMetaData) -> Result<Option<Self>, String> {
        let entries = metadata.file_metadata().key_value_metadata().filter(|_| is_ours(metadata));
        let Some(entry) = entries.and_then(|entries| entries.iter().find(|entry| entry.key == KEY)) else {
            return Ok(None);
        };
        let chunks = metadata.row_groups().iter().map(|group| group.columns().len()).sum();
        let bytes = STANDARD.decode(entry.value.as_deref().unwrap_or_default()).ok();
        let sums = bytes.and_then(|bytes| Self::decode(&bytes, chunks));
        sums.map(|sums| Some(Self { places: places(metadata), ..sums }))
            .ok_or_else(|| format!("the value of '{KEY}' in its footer is not the checksums of its pages"))
    }

    /// The entry for the footer.
    pub(super) fn to_entry(&self) -> KeyValue {
        let mut bytes = Vec::new();
        for pages in &self.chunks {
            let count = u32::try_from(pages.len()).unwrap_or_default();
            for number in [count].iter().chain(pages) {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        KeyValue::new(KEY.to_owned(), STANDARD.encode(bytes))
    }

    fn decode(bytes: &[u8], chunks: usize) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks() else { return None };
        let mut numbers = numbers.iter().map(|&number| u32::from_le_bytes(number));
        let mut sums = Self::default();
        for _ in 0..chunks {
            let count = numbers.next()? as usize;
            let pages: Vec<u32> = numbers.by_ref().take(count).collect();
            if pages.len() < count {
                return None;
            }
            sums.chunks.push(pages);
        }
        numbers.next().is_none().then_some(sums)
    }

    /// Adds the column chunk that is next in `walk`.
    pub(super) fn add(&mut self, pages: &ChunkPages, walk: &mut Walk<'_>) {
        self.chunks.push(pages.bytes.iter().map(|&bytes| walk.crc32c(bytes)).collect());
    }

    /// Verifies the pages that are completely contained in the bytes read from `start` on. `metadata` has the offset index.
    /// Describes the damage, if any.
    #[must_use]
    pub fn fault(&self, metadata: &ParquetMetaData, start: u64, bytes: &[u8]) -> Option<String> {
        let read = start..start.saturating_add(bytes.len() as u64);
        let mut overlapping = self.near(&read).iter().filter(|place| place.bytes.end > read.start);
        overlapping.find_map(|place| self.chunk_fault(metadata, place, &read, bytes))
    }

    /// The chunks that overlap with `read`, found by search. Where chunks overlap with one another there may be more.
    fn near(&self, read: &Range<u64>) -> &[Place] {
        let first = self.places.partition_point(|place| place.end_max <= read.start);
        let (_, rest) = self.places.split_at(first);
        let count = rest.partition_point(|place| place.bytes.start < read.end);
        rest.get(..count).unwrap_or_default()
    }

    fn chunk_fault(
        &self,
        metadata: &ParquetMetaData,
        place: &Place,
        read: &Range<u64>,
        bytes: &[u8],
    ) -> Option<String> {
        let sums = self.chunks.get(place.chunk)?;
        let index = metadata.offset_index().and_then(|groups| groups.get(place.row_group)?.get(place.column));
        let fault = chunk_fault(sums, &place.bytes, index, read, bytes)?;
        let column = metadata.row_group(place.row_group).column(place.column);
        let (name, group) = (column.column_path().string(), place.row_group);
        Some(format!("column '{name}' of row group {group}: {fault}"))
    }
}

/// The places of all column chunks, by their first byte.
fn places(metadata: &ParquetMetaData) -> Vec<Place> {
    let of_group = |(row_group, group): (usize, &RowGroupMetaData)| {
        let columns = group.columns().iter().enumerate();
        columns.map(move |(column, chunk)| (row_group, column, range_of(chunk))).collect::<Vec<_>>()
    };
    let all = metadata.row_groups().iter().enumerate().flat_map(of_group).enumerate();
    let mut places: Vec<Place> = all
        .map(|(chunk, (row_group, column, bytes))| Place { end_max: 0, bytes, chunk, row_group, column })
        .collect();
    places.sort_by_key(|place| place.bytes.start);
    let mut end_max = 0;
    for place in &mut places {
        end_max = place.bytes.end.max(end_max);
        place.end_max = end_max;
    }
    places
}

fn chunk_fault(
    sums: &[u32],
    chunk: &Range<u64>,
    index: Option<&OffsetIndexMetaData>,
    read: &Range<u64>,
    bytes: &[u8],
) -> Option<String> {
    let pages = index.map(|index| pages_of(chunk, index)).unwrap_or_default();
    let ends = pages.iter().map(|page| page.end);
    let next_starts = pages.iter().skip(1).map(|page| page.start).chain([chunk.end]);
    let fits = pages.len() == sums.len() && ends.eq(next_starts);
    if !fits {
        return Some(format!("its offset index is not that of its {} pages", sums.len()));
    }
    pages.iter().zip(sums).find_map(|(page, &sum)| mismatch(page, sum, read, bytes))
}

/// Whether the bytes at `place` have another checksum, if all of them are in `bytes`, which are those at `read`.
fn mismatch(place: &Range<u64>, sum: u32, read: &Range<u64>, bytes: &[u8]) -> Option<String> {
    if place.start < read.start || read.end < place.end {
        return None;
    }
    let offset = |at: u64| usize::try_from(at - read.start).ok();
    let found = crc32c(bytes.get(offset(place.start)?..offset(place.end)?)?);
    (found != sum).then(|| {
        let Range { start, end } = place;
        format!("bytes {start} to {end} have the checksum {found:#010x}, and its footer says {sum:#010x}")
    })
}

fn range_of(column: &ColumnChunkMetaData) -> Range<u64> {
    let (start, bytes) = column.byte_range();
    start..start.saturating_add(bytes)
}

/// The positions of a chunk's pages, the dictionary page first.
fn pages_of(chunk: &Range<u64>, index: &OffsetIndexMetaData) -> Vec<Range<u64>> {
    let pages = index.page_locations.iter().filter_map(|page| {
        let start = u64::try_from(page.offset).ok()?;
        Some(start..start.saturating_add(u64::try_from(page.compressed_page_size).ok()?))
    });
    let mut pages: Vec<_> = pages.collect();
    if let Some(first) = pages.first().map(|page| page.start)
        && first > chunk.start
    {
        pages.insert(0, chunk.start..first);
    }
    pages
}

/// The sizes of a column chunk's pages in bytes, the dictionary page first.
pub(super) struct ChunkPages {
    bytes: Vec<u64>,
}

impl ChunkPages {
    pub(super) fn new(chunk: &ColumnCloseResult) -> Self {
        let locations = chunk.offset_index.as_ref().map(|index| index.page_locations.as_slice());
        let pages = locations
            .unwrap_or_default()
            .iter()
            .map(|page| u64::from(page.compressed_page_size.unsigned_abs()));
        let mut bytes: Vec<u64> = pages.collect();
        let dictionary = chunk.metadata.compressed_size().unsigned_abs().saturating_sub(bytes.iter().sum());
        if dictionary > 0 {
            bytes.insert(0, dictionary);
        }
        Self { bytes }
    }
}

/// Goes through the bytes of a file from some place on.
pub(super) struct Walk<'a> {
    next: slice::Iter<'a, Bytes>,
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    pub(super) fn new(pieces: &'a [Bytes]) -> Self {
        Self { next: pieces.iter(), rest: &[] }
    }

    /// Passes over the next `bytes` bytes and returns their checksum.
    pub(super) fn crc32c(&mut self, mut bytes: u64) -> u32 {
        let mut sum = 0;
        while bytes > 0 {
            if self.rest.is_empty() {
                let Some(piece) = self.next.next() else { break };
                self.rest = piece;
            }
            let (now, rest) =
                self.rest.split_at(self.rest.len().min(usize::try_from(bytes).unwrap_or(usize::MAX)));
            sum = crc32c_append(sum, now);
            (self.rest, bytes) = (rest, bytes - now.len() as u64);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
