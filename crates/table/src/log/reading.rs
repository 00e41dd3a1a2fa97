//! The store of a log's entries as `deltalake` sees it, with limits for its reader.
//!
//! The kernel's JSON reader has room for a thousand actions of each entry, a megabyte, and reads a thousand entries at once. Our
//! entries have a handful of actions: a start that met a few hundred of them took half a gigabyte, and each checkpoint some megabytes.
//!
//! Not its business: what is read and written; each call goes to `deltalake`'s own store.

use async_trait::async_trait;
use bytes::Bytes;
use delta_kernel::Engine;
use delta_kernel_default_engine::DefaultEngineBuilder;
use delta_kernel_default_engine::executor::tokio::{TokioBackgroundExecutor, TokioMultiThreadExecutor};
use deltalake_core::DeltaResult;
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::logstore::{CommitOrBytes, LogStore, LogStoreConfig, LogStoreRef};
use object_store::ObjectStore;
use std::num::NonZero;
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};
use uuid::Uuid;

/// Actions that the reader takes from an entry at a time, and rows from a checkpoint.
const BATCH_ROWS: NonZero<usize> = NonZero::new(128).unwrap();
/// Entries that are read at once: as many requests are on their way to a store that is far away.
const ENTRIES_AT_ONCE: NonZero<usize> = NonZero::new(64).unwrap();

/// A store of entries whose readers need little memory.
pub(crate) struct BoundedLogStore(LogStoreRef);

impl BoundedLogStore {
    pub(crate) fn wrap(inner: LogStoreRef) -> LogStoreRef {
        Arc::new(Self(inner))
    }
}

#[async_trait]
impl LogStore for BoundedLogStore {
    fn name(&self) -> String {
        self.0.name()
    }

    async fn read_commit_entry(&self, version: u64) -> DeltaResult<Option<Bytes>> {
        self.0.read_commit_entry(version).await
    }

    async fn write_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        self.0.write_commit_entry(version, entry, operation).await
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        self.0.abort_commit_entry(version, entry, operation).await
    }

    async fn get_latest_version(&self, start: u64) -> DeltaResult<u64> {
        self.0.get_latest_version(start).await
    }

    fn object_store(&self, operation: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.0.object_store(operation)
    }

    fn root_object_store(&self, operation: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.0.root_object_store(operation)
    }

    fn engine(&self, operation: Option<Uuid>) -> Arc<dyn Engine> {
        let builder = DefaultEngineBuilder::new(self.root_object_store(operation))
            .with_batch_size(BATCH_ROWS)
            .with_buffer_size(ENTRIES_AT_ONCE);
        let handle = Handle::current();
        // The kernel blocks the thread that it runs on.
        if handle.runtime_flavor() == RuntimeFlavor::MultiThread {
            return Arc::new(
                builder.with_task_executor(Arc::new(TokioMultiThreadExecutor::new(handle))).build(),
            );
        }
        Arc::new(builder.with_task_executor(Arc::new(TokioBackgroundExecutor::new())).build())
    }

    fn config(&self) -> &LogStoreConfig {
        self.0.config()
    }
}
