//! Where one table's files are, shared by all that read and write them.

use crate::log::DeltaLog;
use crate::options::StoreOptions;
use crate::storage::TableStorage;
use object_store::ObjectStore;
use object_store::path::Path;
use parquet::basic::ZstdLevel;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_types::lock::Ranked;
use url::Url;

pub(crate) struct TableRoot {
    /// Rooted at the table's location.
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) log: DeltaLog,
    pub(crate) options: Arc<StoreOptions>,
    pub(crate) zstd: ZstdLevel,
    /// The URL of the table, ending in `/`.
    pub(crate) url: Url,
    pub(crate) storage: Arc<dyn TableStorage>,
    /// Where the table is in the storage.
    pub(crate) prefix: Path,
    /// Data files that somebody writes or has yet to publish. A sweep leaves them alone.
    pub(crate) unpublished: Ranked<HashSet<String>>,
}

impl TableRoot {
    /// A file's path as an operator finds it.
    pub(crate) fn shown(&self, path: &str) -> String {
        let relative = Path::from(path);
        self.storage.shown(&self.prefix.parts().chain(relative.parts()).collect())
    }
}
