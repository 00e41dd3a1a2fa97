//! Column chunks whose pages are not compressed.

use bytes::{Buf, Bytes};
use datafusion::parquet::column::page::{CompressedPage, PageReader, PageWriter};
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::parquet::file::serialized_reader::SerializedPageReader;
use datafusion::parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that the header of a page may take more than in the file: its sizes are numbers of variable length.
const LONGER: usize = 16;

/// A column chunk in memory.
pub(super) struct Expanded {
    /// Its pages with their headers, a dictionary first.
    pub bytes: Bytes,
    /// The places of its data pages in the bytes, in their order.
    pub pages: Vec<Range<usize>>,
}

impl Expanded {
    /// The position of the first data page, behind the dictionary.
    pub(super) fn data_start(&self) -> usize {
        self.pages.first().map_or(0, |page| page.start)
    }
}

/// Decompresses the pages of a column chunk, whose bytes in the file these are.
///
/// # Errors
/// The bytes are not pages that the footer and the page index tell of.
pub(super) fn expand(
    footer: &ParquetMetaData,
    row_group: usize,
    column: usize,
    bytes: Bytes,
) -> Result<Expanded> {
    let group = footer.row_group(row_group);
    let chunk = group.column(column);
    let index = footer.offset_index().filter(|groups| !groups.is_empty());
    let index = index.and_then(|groups| groups.get(row_group)?.get(column));
    let locations = index.map(|index| index.page_locations.clone());
    let count = locations.as_ref().map(Vec::len);
    let rows = usize::try_from(group.num_rows())?;
    let at = Arc::new(At { start: chunk.byte_range().0, bytes });
    let mut reader = SerializedPageReader::new(at, chunk, rows, locations)?;
    let size = usize::try_from(chunk.uncompressed_size())?;
    let mut sink = TrackedWrite::new(Vec::with_capacity(size + LONGER * (count.unwrap_or(0) + 1)));
    let mut pages = Vec::with_capacity(count.unwrap_or(0));
    while let Some(page) = reader.get_next_page()? {
        let (start, is_data) = (sink.bytes_written(), page.is_data_page());
        let size = page.buffer().len();
        SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, size))?;
        if is_data {
            pages.push(start..sink.bytes_written());
        } else if start > 0 {
            return Err(ParquetError::General("a dictionary that is not the first page".to_owned()));
        }
    }
    if count.is_some_and(|count| count != pages.len()) || pages.is_empty() {
        return Err(ParquetError::General(format!("{} data pages, {count:?} in the index", pages.len())));
    }
    Ok(Expanded { bytes: Bytes::from(sink.into_inner()?), pages })
}

/// Bytes of a file from a position on.
struct At {
    start: u64,
    bytes: Bytes,
}

impl At {
    fn from(&self, position: u64) -> Result<Bytes> {
        let skipped = position.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        match skipped.filter(|skipped| *skipped <= self.bytes.len()) {
            Some(skipped) => Ok(self.bytes.slice(skipped..)),
            None => Err(ParquetError::EOF(format!("a page at {position} is not in its chunk"))),
        }
    }
}

impl Length for At {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl ChunkReader for At {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("a page at {start} ends behind its chunk")));
        }
        Ok(bytes.slice(..length))
    }
}
