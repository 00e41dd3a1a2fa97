//! Where one table's files are, shared by all that read and write them.

use crate::log::DeltaLog;
use crate::options::StoreOptions;
use object_store::ObjectStore;
use parking_lot::Mutex;
use parquet::basic::ZstdLevel;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

pub(crate) struct TableRoot {
    /// Rooted at the table's location.
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) log: DeltaLog,
    pub(crate) options: Arc<StoreOptions>,
    pub(crate) zstd: ZstdLevel,
    /// Of the table, ending in `/`.
    pub(crate) url: Url,
    /// The table's directory, where storage is a local disk.
    pub(crate) directory: Option<PathBuf>,
    /// Data files that somebody writes or has yet to publish. A sweep leaves them alone.
    pub(crate) unpublished: Mutex<HashSet<String>>,
}

impl TableRoot {
    /// A file's path as an operator finds it.
    pub(crate) fn shown(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) => directory.join(path).display().to_string(),
            None => format!("{}{path}", self.url),
        }
    }
}
