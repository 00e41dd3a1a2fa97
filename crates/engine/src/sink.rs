//! Where the decoded rows of one load gather: in memory while they are few, in data files when
//! they become many, so that a load of any size takes bounded memory.

use std::sync::Arc;
use tributary_decode::{Block, BlockError, blocks_to_batches};
use tributary_ingest::LoadRows;
use tributary_table::{FileWriter, Table, TableError};
use tributary_types::{ErrorCode, SqlError, TableSchema};

/// The rows of one load so far.
pub(crate) struct LoadSink {
    table: Arc<Table>,
    schema: Arc<TableSchema>,
    blocks: Vec<Block>,
    bytes: u64,
    limit_bytes: u64,
    writer: Option<FileWriter>,
}

/// Why rows could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SinkError {
    #[error("{0}")]
    Block(#[from] BlockError),
    #[error("{0}")]
    Table(#[from] TableError),
    /// Doris's text; a client retries it.
    #[error(
        "schema version not match, maybe a schema change is in process. Please retry this load manually."
    )]
    SchemaChanged,
}

impl From<SinkError> for SqlError {
    fn from(error: SinkError) -> Self {
        Self::detail(ErrorCode::Unknown, error.to_string())
    }
}

impl LoadSink {
    /// A sink for blocks of `schema`, which was the table's when the load began.
    pub fn new(table: Arc<Table>, schema: Arc<TableSchema>, limit_bytes: u64) -> Self {
        Self { table, schema, blocks: Vec::new(), bytes: 0, limit_bytes, writer: None }
    }

    /// Takes rows; writes them to data files if they are too many for memory.
    pub async fn push(&mut self, blocks: Vec<Block>) -> Result<(), SinkError> {
        self.bytes += blocks.iter().map(|block| block.len_bytes() as u64).sum::<u64>();
        self.blocks.extend(blocks);
        if self.writer.is_some() || self.bytes > self.limit_bytes {
            self.spill().await?;
        }
        Ok(())
    }

    async fn spill(&mut self) -> Result<(), SinkError> {
        if self.table.def().schema.version != self.schema.version {
            return Err(SinkError::SchemaChanged);
        }
        let blocks = std::mem::take(&mut self.blocks);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(self.table.new_file_writer()?),
        };
        for batch in blocks_to_batches(&self.schema, &blocks)? {
            writer.append(batch).await?;
        }
        Ok(())
    }

    /// The load's rows, ready to be committed. Data files are durable.
    pub async fn finish(mut self) -> Result<LoadRows, SinkError> {
        if self.writer.is_some() {
            self.spill().await?;
        }
        match self.writer.take() {
            None => Ok(LoadRows::of_blocks(self.schema, self.blocks)),
            Some(writer) => Ok(LoadRows::of_files(self.schema, writer.finish().await?)),
        }
    }

    /// Gives up: data files that were written are deleted.
    pub async fn abort(mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abort().await;
        }
    }
}
