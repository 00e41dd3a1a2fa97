//! Encoding a data file: the columns of a row group in parallel, on blocking threads.

use super::checksums::{Checksums, ChunkPages, Walk};
use super::encoded::EncodedRowGroup;
use crate::error::{TableError, blocking};
use crate::keys::side_by_side::threads_max;
use crate::view::memtable::array_bytes;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use bytes::Bytes;
use futures::future::join_all;
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::Result;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::{self, Write};
use std::sync::Arc;

/// Encoded bytes are handed on in pieces of about this size; the first ones of a file are smaller, because the file may be.
const PIECE_BYTES: usize = 1 << 20;
const FIRST_PIECE_BYTES: usize = 1 << 16;

/// The source of a column of a row group.
pub(super) enum ColumnSource {
    Made(Box<ArrowColumnChunk>),
    /// The column of another file's row group.
    Copied(usize),
}

/// A data file in the making.
pub(super) struct Encoder {
    writer: SerializedFileWriter<Pieces>,
    row_groups: ArrowRowGroupWriterFactory,
    checksums: Checksums,
    /// The pages of the row group whose bytes were not taken yet.
    pages: Vec<ChunkPages>,
    bytes_taken: u64,
}

impl Encoder {
    pub(super) fn new(schema: &SchemaRef, properties: WriterProperties) -> Result<Self> {
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Pieces::default(), Arc::clone(schema), options)?;
        let (writer, row_groups) = writer.into_serialized_writer()?;
        let (checksums, pages) = (Checksums::default(), Vec::new());
        Ok(Self { writer, row_groups, checksums, pages, bytes_taken: 0 })
    }

    /// One writer for each column of the next row group.
    pub(super) fn columns(&self) -> Result<Vec<ArrowColumnWriter>> {
        self.row_groups.create_column_writers(self.writer.flushed_row_groups().len())
    }

    /// Ends a row group. [`Encoder::take_bytes`] must follow.
    pub(super) fn append(&mut self, columns: Vec<ArrowColumnChunk>) -> Result<()> {
        self.pages = columns.iter().map(|column| ChunkPages::new(column.close())).collect();
        let mut row_group = self.writer.next_row_group()?;
        for column in columns {
            column.append_to_row_group(&mut row_group)?;
        }
        row_group.close().map(drop)
    }

    /// Ends a row group that is the copy of another file's. [`Encoder::take_bytes`] must follow.
    pub(super) fn append_encoded(&mut self, source: &EncodedRowGroup) -> Result<()> {
        let mut row_group = self.writer.next_row_group()?;
        self.pages = source.append_to(&mut row_group)?;
        row_group.close().map(drop)
    }

    /// Ends a row group whose columns come from both sources. [`Encoder::take_bytes`] must follow.
    pub(super) fn append_mixed(
        &mut self,
        columns: Vec<ColumnSource>,
        source: &EncodedRowGroup,
    ) -> Result<()> {
        let mut pages = Vec::with_capacity(columns.len());
        let mut row_group = self.writer.next_row_group()?;
        for column in columns {
            match column {
                ColumnSource::Made(chunk) => {
                    pages.push(ChunkPages::new(chunk.close()));
                    chunk.append_to_row_group(&mut row_group)?;
                }
                ColumnSource::Copied(number) => pages.push(source.append_column(&mut row_group, number)?),
            }
        }
        self.pages = pages;
        row_group.close().map(drop)
    }

    /// Writes the footer; after it only [`Encoder::take_bytes`] is of use.
    pub(super) fn finish(&mut self) -> Result<ParquetMetaData> {
        self.writer.append_key_value_metadata(self.checksums.to_entry());
        self.writer.finish()
    }

    /// Takes the bytes encoded since the last call.
    pub(super) fn take_bytes(&mut self) -> Result<Vec<Bytes>> {
        self.writer.flush()?;
        let taken = self.writer.inner_mut().take();
        let mut walk = Walk::new(&taken);
        let first = self.writer.flushed_row_groups().last().and_then(|group| group.columns().first());
        if let Some(first) = first {
            // The mark at the beginning of the file, or nothing.
            walk.crc32c(first.byte_range().0.saturating_sub(self.bytes_taken));
        }
        for pages in self.pages.drain(..) {
            self.checksums.add(&pages, &mut walk);
        }
        self.bytes_taken += taken.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Ok(taken)
    }
}

/// Called with the bytes of Arrow memory that were encoded since the last call.
pub(crate) type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// Encodes the columns of a row group in parallel.
pub(super) async fn encode(
    columns: Vec<ArrowColumnWriter>,
    batches: Vec<RecordBatch>,
    progress: Option<Progress>,
    doing: &str,
) -> std::result::Result<Vec<ArrowColumnChunk>, TableError> {
    let work = Work::new(columns, batches, progress);
    let threads = threads_max().min(work.len());
    let work = Arc::new(work);
    let workers = (0..threads).map(|_| {
        let (work, doing) = (Arc::clone(&work), doing.to_owned());
        blocking("encoding a data file", move || work.run().map_err(TableError::parquet(doing)))
    });
    let mut chunks = Vec::new();
    for done in join_all(workers).await {
        chunks.extend(done?);
    }
    chunks.sort_unstable_by_key(|(column, _)| *column);
    Ok(chunks.into_iter().flat_map(|(_, chunks)| chunks).collect())
}

/// Encodes the columns of a row group on this thread.
pub(super) fn encode_here(
    columns: Vec<ArrowColumnWriter>,
    batches: Vec<RecordBatch>,
    progress: Option<Progress>,
) -> Result<Vec<ArrowColumnChunk>> {
    let mut chunks = Work::new(columns, batches, progress).run()?;
    chunks.sort_unstable_by_key(|(column, _)| *column);
    Ok(chunks.into_iter().flat_map(|(_, chunks)| chunks).collect())
}

/// The columns that no thread has started, the largest last.
struct Work {
    batches: Vec<RecordBatch>,
    /// A column of values that consist of values has several writers.
    columns: Mutex<Vec<(usize, Vec<ArrowColumnWriter>)>>,
    progress: Option<Progress>,
}

impl Work {
    fn new(columns: Vec<ArrowColumnWriter>, batches: Vec<RecordBatch>, progress: Option<Progress>) -> Self {
        let mut writers = columns.into_iter();
        let leaves = batches.first().map(|batch| {
            batch.schema_ref().fields().iter().map(|field| leaves(field.data_type())).collect::<Vec<_>>()
        });
        let of_column = |(column, leaves): (usize, usize)| (column, writers.by_ref().take(leaves).collect());
        let mut columns: Vec<_> = leaves.unwrap_or_default().into_iter().enumerate().map(of_column).collect();
        columns.sort_by_key(|(column, _)| batches.first().map(|batch| array_bytes(batch.column(*column))));
        Self { batches, columns: Mutex::new(columns), progress }
    }

    /// How many columns there are.
    fn len(&self) -> usize {
        self.columns.lock().len().max(1)
    }

    /// Encodes columns until none remains.
    fn run(&self) -> Result<Vec<(usize, Vec<ArrowColumnChunk>)>> {
        let mut chunks = Vec::new();
        loop {
            // Not in a `while let`: the lock would be held while the column is encoded.
            let next = self.columns.lock().pop();
            let Some((column, mut writers)) = next else { return Ok(chunks) };
            for batch in &self.batches {
                let leaves = compute_leaves(batch.schema_ref().field(column), batch.column(column))?;
                for (leaf, writer) in leaves.iter().zip(&mut writers) {
                    writer.write(leaf)?;
                }
                if let Some(progress) = &self.progress {
                    progress(array_bytes(batch.column(column)) as u64);
                }
            }
            let closed = writers.into_iter().map(ArrowColumnWriter::close).collect::<Result<_>>()?;
            chunks.push((column, closed));
        }
    }
}

/// How many columns of Parquet a column of this type is.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item) => leaves(item.data_type()),
        DataType::Map(entries, _) => leaves(entries.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        _ => 1,
    }
}

/// Takes bytes without moving them again when there are more.
#[derive(Default)]
struct Pieces {
    full: Vec<Bytes>,
    last: Vec<u8>,
}

impl Pieces {
    fn take(&mut self) -> Vec<Bytes> {
        if !self.last.is_empty() {
            self.full.push(std::mem::take(&mut self.last).into());
        }
        std::mem::take(&mut self.full)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() + bytes.len() > self.last.capacity() {
            let piece = (2 * self.last.capacity()).clamp(FIRST_PIECE_BYTES, PIECE_BYTES);
            if !self.last.is_empty() {
                self.full.push(std::mem::take(&mut self.last).into());
            }
            self.last = Vec::with_capacity(bytes.len().max(piece));
        }
        self.last.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
