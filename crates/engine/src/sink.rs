//! Where the decoded rows of one load gather: in memory while they are few, in data files when
//! they become many, so that a load of any size takes bounded memory.
//!
//! Invariant: a sink that did not finish leaves no data file, however it ends.

use std::sync::Arc;
use tributary_decode::{Block, BlockError, blocks_to_batches};
use tributary_ingest::LoadRows;
use tributary_table::{FileWriter, Table, TableError};
use tributary_types::{ErrorCode, SqlError, TableSchema};

/// The rows of one load so far.
#[must_use = "finish or abort it; dropped, it deletes what it wrote in the background"]
pub(crate) struct LoadSink {
    table: Arc<Table>,
    schema: Arc<TableSchema>,
    blocks: Vec<Block>,
    bytes: u64,
    limit_bytes: u64,
    writer: Option<FileWriter>,
    /// Rows are missing: writing them failed.
    is_broken: bool,
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
    #[error("rows of this load could not be written before; nothing of it was kept, run it again")]
    Broken,
}

impl From<SinkError> for SqlError {
    fn from(error: SinkError) -> Self {
        Self::detail(ErrorCode::Unknown, error.to_string())
    }
}

impl LoadSink {
    /// A sink for blocks of `schema`, which was the table's when the load began.
    pub fn new(table: Arc<Table>, schema: Arc<TableSchema>, limit_bytes: u64) -> Self {
        Self { table, schema, blocks: Vec::new(), bytes: 0, limit_bytes, writer: None, is_broken: false }
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Takes rows; writes them to data files if they are too many for memory.
    ///
    /// # Errors
    /// The rows can't be written. Then [`LoadSink::finish`] fails, too: no load is committed in part.
    pub async fn push(&mut self, blocks: Vec<Block>) -> Result<(), SinkError> {
        self.bytes += blocks.iter().map(|block| block.len_bytes() as u64).sum::<u64>();
        if self.blocks.is_empty() {
            self.blocks = blocks;
        } else {
            self.blocks.extend(blocks);
        }
        if self.writer.is_some() || self.bytes > self.limit_bytes {
            // Boxed: a small load, which never gets here, should not carry room for its states.
            Box::pin(self.spill()).await?;
        }
        Ok(())
    }

    async fn spill(&mut self) -> Result<(), SinkError> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(SinkError::Broken);
        }
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
        self.is_broken = false;
        Ok(())
    }

    /// The load's rows, ready to be committed. Data files are durable.
    ///
    /// # Errors
    /// Rows can't be written; no data file is left.
    pub async fn finish(mut self) -> Result<LoadRows, SinkError> {
        if self.writer.is_none() && !self.is_broken {
            let blocks = std::mem::take(&mut self.blocks);
            return Ok(LoadRows::of_blocks(Arc::clone(&self.schema), blocks));
        }
        Box::pin(self.finish_files()).await
    }

    async fn finish_files(mut self) -> Result<LoadRows, SinkError> {
        if let Err(error) = self.spill().await {
            self.abort().await;
            return Err(error);
        }
        let Some(writer) = self.writer.take() else { return Err(SinkError::Broken) };
        Ok(LoadRows::of_files(Arc::clone(&self.schema), writer.finish().await?))
    }

    /// Gives up. On return the data files that were written are deleted.
    pub async fn abort(mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abort().await;
        }
    }
}

impl Drop for LoadSink {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(writer.abort())),
            // The process ends; the sweep of a later start finds the files.
            Err(_) => tracing::debug!("data files of a load that did not end are left to the sweep"),
        }
    }
}
