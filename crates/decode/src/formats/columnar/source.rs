//! Files of all formats as batches of their columns.

use super::ColumnarFormat;
use super::ipc::IpcSource;
use super::orc::OrcSource;
use super::parquet::ParquetSource;
use crate::formats::host::LoadHost;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::sync::Arc;
use tributary_types::SqlError;

/// The bytes of a body as batches.
pub(super) enum Source {
    Parquet(Box<ParquetSource>),
    Orc(OrcSource),
    Ipc(Box<IpcSource>),
}

/// Consecutive rows of a body.
pub(super) struct Part {
    /// The number of the first one in the body, from 0.
    pub first_row: u64,
    pub source: Source,
}

impl Source {
    pub(super) fn new(format: ColumnarFormat, host: &Arc<dyn LoadHost>) -> Self {
        match format {
            ColumnarFormat::Parquet => Self::Parquet(Box::new(ParquetSource::new(&**host))),
            ColumnarFormat::Orc => Self::Orc(OrcSource::new(host)),
            ColumnarFormat::Arrow => Self::Ipc(Box::new(IpcSource::new(&**host))),
        }
    }

    /// Takes bytes of the body.
    ///
    /// # Errors
    /// They can't be stored, or are not such a file.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        match self {
            Self::Parquet(source) => source.push(chunk),
            Self::Orc(source) => source.push(chunk),
            Self::Ipc(source) => source.push(chunk),
        }
    }

    /// Says that the body is complete.
    ///
    /// # Errors
    /// It is not such a file, or is truncated.
    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        match self {
            Self::Parquet(source) => source.finish(),
            Self::Orc(source) => source.finish(),
            Self::Ipc(source) => source.finish(),
        }
    }

    /// The columns of the file, once they are known.
    pub(super) fn schema(&self) -> Option<&SchemaRef> {
        match self {
            Self::Parquet(source) => source.schema(),
            Self::Orc(source) => source.schema(),
            Self::Ipc(source) => source.schema(),
        }
    }

    /// Says which columns batches have: their places in the file, ascending. Once, when the schema is known.
    ///
    /// # Errors
    /// The file can't be read.
    pub(super) fn choose(&mut self, columns: Vec<usize>) -> Result<(), SqlError> {
        match self {
            Self::Parquet(source) => source.choose(&columns),
            Self::Orc(source) => source.choose(columns),
            Self::Ipc(source) => {
                source.choose(columns);
                Ok(())
            }
        }
    }

    /// The next batch; `None` if the body has no more yet.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        match self {
            Self::Parquet(source) => source.next(),
            Self::Orc(source) => source.next(),
            Self::Ipc(source) => source.next(),
        }
    }

    /// Whether a complete body may be divided.
    pub(super) fn has_parts(&self) -> bool {
        matches!(self, Self::Parquet(_))
    }

    /// See [`BodyDecoder::divide`](crate::BodyDecoder::divide). The columns are chosen, and nothing was read.
    pub(super) fn divide(&self, host: &dyn LoadHost, count: usize, bytes_min: u64) -> Vec<Part> {
        match self {
            Self::Parquet(source) => source.divide(host, count, bytes_min),
            Self::Orc(_) | Self::Ipc(_) => Vec::new(),
        }
    }

    /// See [`BodyDecoder::parts_lacked_memory`](crate::BodyDecoder::parts_lacked_memory).
    pub(super) fn parts_lacked_memory(&self) -> bool {
        matches!(self, Self::Parquet(source) if source.parts_lacked_memory())
    }

    /// The bytes held of the body itself; decoded bytes are charged to its memory.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Parquet(source) => source.held_bytes(),
            Self::Orc(source) => source.held_bytes(),
            Self::Ipc(source) => source.held_bytes(),
        }
    }
}
