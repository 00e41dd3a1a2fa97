//! The pages of a column, read for the library.
//!
//! The library would trust a page's header, and use fields of the header that occur a second time. Here a header is read once and
//! completely, and the memory of its page is charged before anything is allocated.
//!
//! Invariant: a page decompresses to at most [`PAGE_BYTES_MAX`] bytes; it, the dictionary, and the library's arrays of both are
//! charged to the body's memory. Pages that a batch refers to remain charged as long as the batch.
//!
//! Not its business: values and levels, except where the library would trust a length that is encoded in a page ([`deltas`]).

use super::codec::Codec;
use super::deltas;
use super::thrift::{Fault, Field, Kind, Outcome, Shape, Thrift, wrong};
use crate::formats::columnar::memory::{BodyMemory, Charge, MemoryRefused};
use crate::formats::host::Spooled;
use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{ConvertedType, Encoding, LogicalType, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::ColumnDescriptor;
use std::ops::Range;
use std::sync::Arc;

/// The longest page, in decompressed bytes; most writers make pages of 1 MiB.
const PAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The bytes that are read for the header of a page: more only for longer headers, which have long values in their statistics.
const HEAD_BYTES: [u64; 3] = [16 * 1024, 1024 * 1024, 16 * 1024 * 1024];
/// The bytes of a text in an array of views, and of the levels of a value in a repeated column.
const VIEW_BYTES: usize = 16;
const LEVEL_BYTES: usize = 4;
/// The longest number of a DECIMAL that is stored as bytes: numbers of a dictionary are copied for each row.
const NUMBER_BYTES_MAX: usize = 64;

impl From<MemoryRefused> for ParquetError {
    fn from(refused: MemoryRefused) -> Self {
        Self::General(refused.to_string())
    }
}

/// The facts about a column that are needed to read its pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnFacts {
    stored: Type,
    /// The minimum bytes of a value in a page.
    width: usize,
    max_def_level: i16,
    max_rep_level: i16,
    is_number_of_bytes: bool,
}

impl ColumnFacts {
    pub fn of(column: &ColumnDescriptor) -> Self {
        let stored = column.physical_type();
        let width = match stored {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0).max(1),
        };
        let is_decimal = column.converted_type() == ConvertedType::DECIMAL
            || matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)));
        Self {
            stored,
            width,
            max_def_level: column.max_def_level(),
            max_rep_level: column.max_rep_level(),
            is_number_of_bytes: is_decimal && stored == Type::BYTE_ARRAY,
        }
    }

    /// The minimum bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The bytes of a value in an array, without the bytes of a text.
    pub fn array_width(&self) -> usize {
        if self.stored == Type::BYTE_ARRAY { VIEW_BYTES } else { self.width.max(VIEW_BYTES / 2) }
    }
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: PageKind,
    unpacked_bytes: usize,
    packed_bytes: usize,
    values: u32,
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageKind {
    Dictionary {
        is_sorted: bool,
    },
    Data {
        def_levels: Encoding,
        rep_levels: Encoding,
    },
    DataV2 {
        rows: u32,
        nulls: u32,
        def_bytes: u32,
        rep_bytes: u32,
        is_packed: bool,
    },
    /// Unused.
    Index,
}

/// Fields of the parts of a header, of which it has one; statistics are omitted.
const DATA: &[(i16, Shape)] = &[(1, Shape::I32), (2, Shape::I32), (3, Shape::I32), (4, Shape::I32)];
const DICTIONARY: &[(i16, Shape)] = &[(1, Shape::I32), (2, Shape::I32), (3, Shape::Bool)];
const DATA_V2: &[(i16, Shape)] = &[
    (1, Shape::I32),
    (2, Shape::I32),
    (3, Shape::I32),
    (4, Shape::I32),
    (5, Shape::I32),
    (6, Shape::I32),
    (7, Shape::Bool),
];

/// The numbers of a struct, by their fields.
type Numbers = [Option<i32>; 9];

fn take_number(
    thrift: &mut Thrift<'_>,
    field: Field,
    known: &[(i16, Shape)],
    into: &mut Numbers,
) -> Outcome<()> {
    let place = usize::try_from(field.id).ok().filter(|&place| place < into.len());
    match (place, field.kind) {
        (Some(place), Kind::I32) => into[place] = Some(thrift.i32()?),
        (Some(place), Kind::Bool) => into[place] = Some(i32::from(field.flag)),
        _ => thrift.check_known(field, known, 3)?,
    }
    Ok(())
}

fn numbers(thrift: &mut Thrift<'_>, field: Field, known: &[(i16, Shape)]) -> Outcome<Numbers> {
    let mut numbers = Numbers::default();
    if field.kind != Kind::Struct {
        return wrong(format!("the field {} of a page's head is no struct", field.id));
    }
    thrift.fields(2, |thrift, field| take_number(thrift, field, known, &mut numbers))?;
    Ok(numbers)
}

fn required(numbers: &Numbers, field: usize, what: &str) -> Outcome<i32> {
    match numbers[field] {
        Some(number) => Ok(number),
        None => wrong(format!("a page's head does not say {what}")),
    }
}

fn count(numbers: &Numbers, field: usize, what: &str) -> Outcome<u32> {
    let number = required(numbers, field, what)?;
    u32::try_from(number).or_else(|_| wrong(format!("a page has {number} {what}")))
}

#[allow(deprecated, reason = "levels of old files are encoded so")]
fn encoding(number: i32) -> Outcome<Encoding> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return wrong(format!("there is no encoding {number}")),
    })
}

impl Head {
    /// The header at the start of `bytes`, and its length.
    fn read(bytes: &[u8]) -> Outcome<(Self, usize)> {
        let mut thrift = Thrift::new(bytes);
        let mut page = Numbers::default();
        let (mut data, mut dictionary, mut data_v2) = (None, None, None);
        thrift.fields(1, |thrift, field| {
            match field.id {
                5 => data = Some(numbers(thrift, field, DATA)?),
                7 => dictionary = Some(numbers(thrift, field, DICTIONARY)?),
                8 => data_v2 = Some(numbers(thrift, field, DATA_V2)?),
                _ => take_number(thrift, field, &[], &mut page)?,
            }
            Ok(())
        })?;
        let missing = || Fault::Wrong("a page's head is not complete".into());
        let coded = |numbers: &Numbers, field| encoding(required(numbers, field, "its encoding")?);
        let (kind, values, encoding) = match required(&page, 1, "its kind")? {
            0 => {
                let of = data.ok_or_else(missing)?;
                let kind = PageKind::Data { def_levels: coded(&of, 3)?, rep_levels: coded(&of, 4)? };
                (kind, count(&of, 1, "values")?, coded(&of, 2)?)
            }
            1 => (PageKind::Index, 0, Encoding::PLAIN),
            2 => {
                let of = dictionary.ok_or_else(missing)?;
                let kind = PageKind::Dictionary { is_sorted: of[3] == Some(1) };
                (kind, count(&of, 1, "values")?, coded(&of, 2)?)
            }
            3 => {
                let of = data_v2.ok_or_else(missing)?;
                let kind = PageKind::DataV2 {
                    rows: count(&of, 3, "rows")?,
                    nulls: count(&of, 2, "NULLs")?,
                    def_bytes: count(&of, 5, "bytes of levels")?,
                    rep_bytes: count(&of, 6, "bytes of levels")?,
                    is_packed: of[7] != Some(0),
                };
                (kind, count(&of, 1, "values")?, coded(&of, 4)?)
            }
            other => return wrong(format!("there is no page of kind {other}")),
        };
        let head = Self {
            kind,
            unpacked_bytes: count(&page, 2, "bytes")? as usize,
            packed_bytes: count(&page, 3, "bytes")? as usize,
            values,
            encoding,
        };
        Ok((head, thrift.position()))
    }
}

fn damaged(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// Reads the pages of one column of one row group.
struct Pages {
    file: Arc<dyn Spooled>,
    memory: Arc<BodyMemory>,
    column: ColumnFacts,
    codec: Codec,
    at: u64,
    left: u64,
    /// The header of the page at `at`, if it was read.
    head: Option<Head>,
    dictionary: Charge,
    page: Charge,
}

impl Pages {
    fn head(&mut self) -> Result<Option<Head>> {
        while self.head.is_none() && self.left > 0 {
            let (head, length) = self.read_head()?;
            self.at += length as u64;
            self.left -= length as u64;
            if head.packed_bytes as u64 > self.left {
                return Err(damaged(format!(
                    "a page has {} bytes, and its column {} more",
                    head.packed_bytes, self.left
                )));
            }
            if head.kind == PageKind::Index {
                self.pass(head);
            } else {
                self.head = Some(head);
            }
        }
        Ok(self.head)
    }

    fn read_head(&self) -> Result<(Head, usize)> {
        for most in HEAD_BYTES {
            let length = most.min(self.left);
            let bytes = self.file.read(self.at, length as usize)?;
            match Head::read(&bytes) {
                Ok(read) => return Ok(read),
                Err(Fault::CutOff) if length < self.left => {}
                Err(fault) => {
                    let shown = &bytes[..bytes.len().min(8)];
                    return Err(damaged(format!("no page begins with the bytes {shown:02x?}: {fault}")));
                }
            }
        }
        Err(damaged(format!("the head of a page has more than {} bytes", HEAD_BYTES[2])))
    }

    /// Continues after a page.
    fn pass(&mut self, head: Head) {
        self.at += head.packed_bytes as u64;
        self.left -= head.packed_bytes as u64;
        self.head = None;
    }

    fn read(&mut self, head: Head) -> Result<Page> {
        let bytes = head.unpacked_bytes.max(head.packed_bytes);
        if bytes > PAGE_BYTES_MAX {
            return Err(damaged(format!(
                "a page unpacks to {bytes} bytes, the limit is {PAGE_BYTES_MAX}; write smaller pages"
            )));
        }
        let mut charge = self.memory.hold(bytes.saturating_add(self.beside(head)?))?;
        let page = self.unpacked(head)?;
        charge.grow(self.encoded_lengths(head, &page)?)?;
        if let PageKind::Dictionary { .. } = head.kind {
            self.check_numbers(&page)?;
        }
        self.pass(head);
        let of_kind = match head.kind {
            PageKind::Dictionary { .. } => &mut self.dictionary,
            _ => &mut self.page,
        };
        of_kind.leave_to_batch()?;
        *of_kind = charge;
        Ok(as_page(head, page))
    }

    /// The memory of arrays beside a page.
    fn beside(&self, head: Head) -> Result<usize> {
        let (values, width) = (head.values as usize, self.column.array_width());
        if let PageKind::Dictionary { .. } = head.kind {
            if values.saturating_mul(self.column.width) > head.unpacked_bytes {
                return Err(damaged(format!(
                    "a dictionary has {values} values of type {} in {} bytes",
                    self.column.stored, head.unpacked_bytes
                )));
            }
            return Ok(values.saturating_mul(width));
        }
        // Rows without repetition are read one batch at a time, however many a page has.
        let is_repeated = self.column.max_rep_level > 0;
        Ok(if is_repeated { values.saturating_mul(width + LEVEL_BYTES) } else { 0 })
    }

    fn unpacked(&mut self, head: Head) -> Result<Bytes> {
        let (levels, is_packed) = match head.kind {
            PageKind::DataV2 { def_bytes, rep_bytes, is_packed, .. } => {
                (def_bytes as usize + rep_bytes as usize, is_packed)
            }
            _ => (0, true),
        };
        if levels > head.packed_bytes || levels > head.unpacked_bytes {
            return Err(damaged(format!(
                "a page of {} bytes has {levels} bytes of levels",
                head.packed_bytes
            )));
        }
        if self.codec.is_plain() || !is_packed {
            return Ok(self.file.read(self.at, head.packed_bytes)?);
        }
        let _packed = self.memory.hold(head.packed_bytes)?;
        let packed = self.file.read(self.at, head.packed_bytes)?;
        let mut page = Vec::new();
        if levels > 0 {
            page.reserve_exact(head.unpacked_bytes);
            page.extend_from_slice(&packed[..levels]);
        }
        // A page with only NULLs may have no compressed bytes.
        let length = head.unpacked_bytes - levels;
        if length > 0 {
            let unpacked = self.codec.unpack(&packed[levels..], length, &mut page);
            unpacked.map_err(|error| damaged(format!("a page can't be unpacked: {error}")))?;
        }
        Ok(Bytes::from(page))
    }

    /// The library's memory for lengths within the page.
    fn encoded_lengths(&self, head: Head, page: &[u8]) -> Result<usize> {
        let of_values = match head.encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => deltas::of_lengths,
            Encoding::DELTA_BYTE_ARRAY => deltas::of_prefixes,
            _ => return Ok(0),
        };
        let bytes =
            self.levels_end(head, page).and_then(|end| of_values(page.get(end..)?, head.values as usize));
        bytes.ok_or_else(|| damaged(format!("a page of the encoding {} has wrong lengths", head.encoding)))
    }

    /// The start of the values of a data page.
    #[allow(deprecated, reason = "levels of old files are encoded so")]
    fn levels_end(&self, head: Head, page: &[u8]) -> Option<usize> {
        let (def_levels, rep_levels) = match head.kind {
            PageKind::Data { def_levels, rep_levels } => (def_levels, rep_levels),
            PageKind::DataV2 { def_bytes, rep_bytes, .. } => {
                return Some(def_bytes as usize + rep_bytes as usize);
            }
            PageKind::Dictionary { .. } | PageKind::Index => return Some(0),
        };
        let mut at = 0_usize;
        for (encoding, highest) in
            [(rep_levels, self.column.max_rep_level), (def_levels, self.column.max_def_level)]
        {
            if highest == 0 {
                continue;
            }
            at = at.checked_add(match encoding {
                Encoding::BIT_PACKED => {
                    let bits = (i16::BITS - highest.leading_zeros()) as usize;
                    (head.values as usize * bits).div_ceil(8)
                }
                _ => 4 + u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?) as usize,
            })?;
        }
        Some(at)
    }

    /// Checks the lengths of numbers in a dictionary.
    fn check_numbers(&self, page: &[u8]) -> Result<()> {
        let mut rest = page;
        while self.column.is_number_of_bytes
            && let Some((length, behind)) = rest.split_first_chunk()
        {
            let length = u32::from_le_bytes(*length) as usize;
            if length > NUMBER_BYTES_MAX {
                return Err(damaged(format!(
                    "a DECIMAL has {length} bytes, the limit is {NUMBER_BYTES_MAX}"
                )));
            }
            rest = behind.get(length..).unwrap_or_default();
        }
        Ok(())
    }
}

fn as_page(head: Head, buf: Bytes) -> Page {
    let Head { kind, values: num_values, encoding, .. } = head;
    match kind {
        PageKind::Dictionary { is_sorted } => Page::DictionaryPage { buf, num_values, encoding, is_sorted },
        PageKind::DataV2 { rows, nulls, def_bytes, rep_bytes, is_packed } => Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls: nulls,
            num_rows: rows,
            def_levels_byte_len: def_bytes,
            rep_levels_byte_len: rep_bytes,
            is_compressed: is_packed,
            statistics: None,
        },
        PageKind::Data { def_levels, rep_levels } => Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding: def_levels,
            rep_level_encoding: rep_levels,
            statistics: None,
        },
        PageKind::Index => unreachable!("pages of an index are passed over"),
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // The batch may still refer to them. Memory above its limit is refused with the next page.
        let _ = (self.dictionary.leave_to_batch(), self.page.leave_to_batch());
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.head()?.map(|head| self.read(head)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.head()?.map(|head| {
            let values = head.values as usize;
            let (num_rows, num_levels, is_dict) = match head.kind {
                PageKind::Dictionary { .. } | PageKind::Index => (None, None, true),
                PageKind::Data { .. } => (None, Some(values), false),
                PageKind::DataV2 { rows, .. } => (Some(rows as usize), Some(values), false),
            };
            PageMetadata { num_rows, num_levels, is_dict }
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if let Some(head) = self.head()? {
            self.pass(head);
        }
        Ok(())
    }
}

/// Row groups of a file that are read together.
pub(super) struct Run {
    pub file: Arc<dyn Spooled>,
    pub memory: Arc<BodyMemory>,
    pub metadata: Arc<ParquetMetaData>,
    pub groups: Range<usize>,
}

impl RowGroups for Run {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(Chunks {
            file: Arc::clone(&self.file),
            memory: Arc::clone(&self.memory),
            metadata: Arc::clone(&self.metadata),
            groups: self.groups.clone(),
            column,
        }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups()[self.groups.clone()].iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The parts of one column in row groups.
struct Chunks {
    file: Arc<dyn Spooled>,
    memory: Arc<BodyMemory>,
    metadata: Arc<ParquetMetaData>,
    groups: Range<usize>,
    column: usize,
}

impl Chunks {
    fn pages(&self, group: usize) -> Result<Box<dyn PageReader>> {
        let chunk = self.metadata.row_group(group).column(self.column);
        let (at, left) = chunk.byte_range();
        Ok(Box::new(Pages {
            file: Arc::clone(&self.file),
            memory: Arc::clone(&self.memory),
            column: ColumnFacts::of(chunk.column_descr()),
            codec: Codec::new(chunk.compression())?,
            at,
            left,
            head: None,
            dictionary: Charge::none(&self.memory),
            page: Charge::none(&self.memory),
        }))
    }
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.groups.next()?;
        Some(self.pages(group))
    }
}

impl PageIterator for Chunks {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::columnar::parquet::tests::thrift::number;

    fn page(fields: &[Vec<u8>]) -> Vec<u8> {
        [&fields.concat()[..], &[0]].concat()
    }

    fn data(values: i64) -> Vec<u8> {
        [vec![0x2c], number(1, 0, values), number(2, 1, 0), number(3, 2, 3), number(4, 3, 3), vec![0]]
            .concat()
    }

    #[test]
    fn a_head_is_read_whole_and_its_fields_once() {
        let whole = page(&[number(1, 0, 0), number(2, 1, 100), number(3, 2, 50), data(7)]);
        let (head, length) = Head::read(&[&whole[..], b"page"].concat()).unwrap();
        assert_eq!((head.unpacked_bytes, head.packed_bytes, head.values), (100, 50, 7));
        assert_eq!(length, whole.len());
        for length in 0..whole.len() {
            assert_eq!(Head::read(&whole[..length]), Err(Fault::CutOff), "{length}");
        }
        // The size twice, the second time by its number.
        let again = [vec![0x05, 4], vec![0xfe, 0xff, 0xff, 0xff, 0x0f]].concat();
        let twice = page(&[number(1, 0, 0), number(2, 1, 100), number(3, 2, 50), data(7), again]);
        assert!(Head::read(&twice).unwrap_err().to_string().contains("the field 2 twice"));
    }

    #[test]
    fn heads_that_are_no_pages_are_refused() {
        let texts = [
            (page(&[number(1, 0, 0), number(2, 1, 9), number(3, 2, 9)]), "not complete"),
            (page(&[number(1, 0, 0), number(2, 1, -9), number(3, 2, 9), data(7)]), "a page has -9 bytes"),
            (page(&[number(1, 0, 0), number(2, 1, 9), number(3, 2, 9), data(-7)]), "a page has -7 values"),
            (page(&[number(1, 0, 9), number(2, 1, 9), number(3, 2, 9)]), "no page of kind 9"),
            (b"PAR1PAR1".to_vec(), ""),
        ];
        for (bytes, why) in texts {
            let text = Head::read(&bytes).unwrap_err().to_string();
            assert!(text.contains(why), "{text}");
        }
    }
}
