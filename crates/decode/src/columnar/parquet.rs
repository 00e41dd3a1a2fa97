//! Parquet: gathered until its end, which says where everything is, then read batch by batch.
//!
//! Times are instants or wall-clock times as the file's types say; what a writer's Arrow schema says of them
//! beyond that is left aside, so that files of all writers are read alike. An INT96 is an instant, as in Spark.

use super::{damaged, gathered, guarded};
use crate::host::{Spool, Spooled};
use crate::loader::BLOCK_ROWS_TARGET;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, Read};
use std::sync::Arc;
use tributary_types::SqlError;

const NAME: &str = "parquet";
/// The longest page, in bytes, as it is unpacked; most writers make pages of 1 MiB.
const PAGE_BYTES_MAX: u32 = 256 * 1024 * 1024;
/// What is read at a time where a reader asks for a few bytes.
const READ_AHEAD_BYTES: usize = 16 * 1024;

/// A Parquet file.
pub(super) struct ParquetSource {
    state: State,
    file: Option<Arc<dyn Spooled>>,
}

enum State {
    Gathering(Box<dyn Spool>),
    Known(File, ArrowReaderMetadata),
    Reading(SchemaRef, ParquetRecordBatchReader),
    /// The body is empty or is not to be read any more.
    Empty,
}

impl ParquetSource {
    pub(super) fn new(spool: Box<dyn Spool>) -> Self {
        Self { state: State::Gathering(spool), file: None }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let State::Gathering(spool) = &mut self.state else { return Ok(()) };
        spool.write(chunk).map_err(|error| gathered(NAME, &error))
    }

    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        let State::Gathering(spool) = std::mem::replace(&mut self.state, State::Empty) else { return Ok(()) };
        let file = spool.finish().map_err(|error| gathered(NAME, &error))?;
        if file.len_bytes() == 0 {
            return Ok(());
        }
        self.file = Some(Arc::clone(&file));
        let file = File { file, has_pages: false };
        let metadata = guarded(NAME, || metadata(&file))?;
        self.state = State::Known(File { has_pages: true, ..file }, metadata);
        Ok(())
    }

    pub(super) fn schema(&self) -> Option<&SchemaRef> {
        match &self.state {
            State::Known(_, metadata) => Some(metadata.schema()),
            State::Reading(schema, _) => Some(schema),
            State::Gathering(_) | State::Empty => None,
        }
    }

    pub(super) fn choose(&mut self, columns: &[usize]) -> Result<(), SqlError> {
        let State::Known(file, metadata) = std::mem::replace(&mut self.state, State::Empty) else {
            return Ok(());
        };
        let schema = Arc::clone(metadata.schema());
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
        let reader = guarded(NAME, || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_batch_size(BLOCK_ROWS_TARGET)
                .with_projection(mask)
                .build()
                .map_err(|error| damaged(NAME, error))
        })?;
        self.state = State::Reading(schema, reader);
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let State::Reading(_, reader) = &mut self.state else { return Ok(None) };
        let next = guarded(NAME, || Ok(reader.next()))?;
        next.transpose().map_err(|error| damaged(NAME, error))
    }

    pub(super) fn held_bytes(&self) -> usize {
        match &self.state {
            State::Gathering(spool) => spool.held_bytes(),
            _ => self.file.as_ref().map_or(0, |file| file.held_bytes()),
        }
    }
}

fn metadata(file: &File) -> Result<ArrowReaderMetadata, SqlError> {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(file, plain).map_err(|error| damaged(NAME, error))?;
    let schema = with_instants(&metadata);
    if schema == *metadata.schema() {
        return Ok(metadata);
    }
    let options = ArrowReaderOptions::new().with_schema(schema);
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
        .map_err(|error| damaged(NAME, error))
}

/// The schema with INT96 as instants, of all years.
fn with_instants(metadata: &ArrowReaderMetadata) -> SchemaRef {
    let schema = metadata.schema();
    let columns = metadata.parquet_schema().root_schema().get_fields();
    let is_int96 = |at: usize| {
        let column = columns.get(at).filter(|column| column.is_primitive());
        column.is_some_and(|column| column.get_physical_type() == Type::INT96)
    };
    if !(0..columns.len()).any(is_int96) {
        return Arc::clone(schema);
    }
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let fields = schema.fields().iter().enumerate().map(|(at, field)| {
        if is_int96(at) {
            Arc::new(Field::new(field.name(), instant.clone(), field.is_nullable()))
        } else {
            Arc::clone(field)
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A gathered body as a file of the library.
#[derive(Clone)]
struct File {
    file: Arc<dyn Spooled>,
    /// What is read from a place on is a page: its head is looked at before.
    has_pages: bool,
}

impl Length for File {
    fn len(&self) -> u64 {
        self.file.len_bytes()
    }
}

impl ChunkReader for File {
    type T = Ahead;

    fn get_read(&self, start: u64) -> Result<Ahead, ParquetError> {
        let mut ahead = Ahead { file: Arc::clone(&self.file), at: start, bytes: Bytes::new() };
        if self.has_pages {
            ahead.fill()?;
            check_page(&ahead.bytes)?;
        }
        Ok(ahead)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.file.read(start, length)?)
    }
}

/// Reads on from a place.
struct Ahead {
    file: Arc<dyn Spooled>,
    at: u64,
    bytes: Bytes,
}

/// Checks what a page says that it unpacks to: the library allocates so much. Of a page's head these fields are the first,
/// as all writers write them: its kind and that size, each as a number behind the byte 0x15.
fn check_page(head: &[u8]) -> Result<(), ParquetError> {
    let (kind, rest) = number(head).ok_or_else(|| unknown_page(head))?;
    let (bytes, _) = number(rest).ok_or_else(|| unknown_page(head))?;
    // Zigzag: even numbers are those that are not negative.
    let (kind, bytes) = (kind / 2, bytes / 2);
    if bytes > PAGE_BYTES_MAX {
        return Err(ParquetError::General(format!(
            "a page of kind {kind} unpacks to {bytes} bytes, the limit is {PAGE_BYTES_MAX}; write smaller pages"
        )));
    }
    Ok(())
}

fn unknown_page(head: &[u8]) -> ParquetError {
    let shown = &head[..head.len().min(8)];
    ParquetError::General(format!("no page begins with the bytes {shown:02x?}"))
}

/// A field with a number of at most 32 bits, and what follows it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let bytes = bytes.strip_prefix(&[0x15])?;
    let mut value = 0_u32;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u32::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

impl Ahead {
    fn fill(&mut self) -> io::Result<()> {
        let left = self.file.len_bytes().saturating_sub(self.at);
        let length = READ_AHEAD_BYTES.min(usize::try_from(left).unwrap_or(READ_AHEAD_BYTES));
        self.bytes = self.file.read(self.at, length)?;
        self.at += length as u64;
        Ok(())
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            self.fill()?;
        }
        let amount = self.bytes.len().min(into.len());
        self.bytes.copy_to_slice(&mut into[..amount]);
        Ok(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_claims_too_much_is_refused_before_anything_is_allocated() {
        let claim = |bytes: u32| {
            let (mut head, mut rest) = (vec![0x15, 0, 0x15], u64::from(bytes) * 2);
            while rest >= 0x80 {
                head.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            head.extend([rest as u8, 0x15, 4]);
            check_page(&head).map_err(|error| error.to_string())
        };
        assert_eq!(claim(1 << 20), Ok(()));
        assert_eq!(claim(PAGE_BYTES_MAX), Ok(()));
        for bytes in [PAGE_BYTES_MAX + 1, i32::MAX as u32] {
            assert!(claim(bytes).unwrap_err().contains(&format!("unpacks to {bytes} bytes")), "{bytes}");
        }
        for head in [
            &b""[..],
            b"\x15",
            b"\x15\x00\x25\x02",
            b"PAR1",
            &[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert!(check_page(head).unwrap_err().to_string().contains("no page begins with"), "{head:?}");
        }
    }
}
