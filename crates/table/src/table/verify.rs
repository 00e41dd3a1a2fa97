//! Reads a table's Delta log and the ends of its data files again, as a start or another engine would, while the table goes on.
//!
//! Invariant: nothing that the running table knows is used but its definition, so the facts can be compared with it.
//!
//! Not its business: the pages of data files, whose checksums every reader checks.

use crate::error::TableError;
use crate::file::LiveFile;
use crate::log::count_rows;
use crate::place::root::TableRoot;
use crate::place::store::TableStore;
use crate::table::TableCut;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStoreExt;
use object_store::path::Path;
use tributary_types::Version;

/// Data files that are looked at at a time.
const FILES_AT_ONCE: usize = 8;
/// Faults that are told one by one.
const FAULTS_SHOWN: usize = 5;

/// A table as its Delta log and the ends of its data files say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaFacts {
    /// The version of the Delta log.
    pub version: u64,
    /// The last version of the table whose rows are all in data files.
    pub persisted: Version,
    pub files: u64,
    /// Bytes of the data files.
    pub bytes: u64,
    /// Rows that a reader of the Delta table sees.
    pub rows: u64,
    /// Rows of data files that are deleted.
    pub deleted_rows: u64,
    /// Sentences about files that are missing or not what the log says of them.
    pub faults: Vec<String>,
}

impl TableStore {
    /// Reads the facts of a table at the Delta version of its cut. The caller [keeps](TableStore::keep_files) the files.
    ///
    /// # Errors
    /// [`TableError::NotFound`] without a log, [`TableError::Delta`], [`TableError::Storage`], and the errors of damaged entries and
    /// deletion vectors. A data file that is missing or damaged is a fault of the facts, not an error.
    pub async fn verify(&self, cut: &TableCut) -> Result<DeltaFacts, TableError> {
        let root = self.direct_root(cut.location())?;
        let version = u64::try_from(cut.delta_version()).unwrap_or(0);
        let state = root.log.state_at(&cut.def(), version).await?;
        let mut facts = DeltaFacts {
            version: state.version,
            persisted: state.app_version,
            files: state.live.len() as u64,
            bytes: state.live.values().map(LiveFile::size_bytes).sum(),
            rows: state.live.values().map(LiveFile::live_rows).sum(),
            deleted_rows: state.live.values().map(LiveFile::deleted_rows).sum(),
            faults: Vec::new(),
        };
        let found = futures::stream::iter(state.live.into_values())
            .map(|live| {
                let root = &root;
                async move { fault_of(root, &live).await }
            })
            .buffer_unordered(FILES_AT_ONCE);
        let mut faults: Vec<String> = found.try_filter_map(async |fault| Ok(fault)).try_collect().await?;
        faults.sort_unstable();
        let more = faults.len().saturating_sub(FAULTS_SHOWN);
        faults.truncate(FAULTS_SHOWN);
        if more > 0 {
            faults.push(format!("{more} more data files are missing or damaged"));
        }
        facts.faults = faults;
        Ok(facts)
    }
}

/// Why a data file can't be the one that the log names.
async fn fault_of(root: &TableRoot, live: &LiveFile) -> Result<Option<String>, TableError> {
    let name = root.shown(live.path());
    let path = Path::from(live.path());
    let bytes = match root.store.head(&path).await {
        Ok(meta) => meta.size,
        Err(object_store::Error::NotFound { .. }) => {
            return Ok(Some(format!("the data file {name} is missing")));
        }
        Err(source) => return Err(TableError::storage(format!("looking at the data file {name}"))(source)),
    };
    if bytes != live.size_bytes() {
        let said = live.size_bytes();
        return Ok(Some(format!("the data file {name} has {bytes} bytes, and the Delta log says {said}")));
    }
    match count_rows(&root.store, &path, bytes, &name).await {
        Ok(rows) if rows == live.file.rows => Ok(None),
        Ok(rows) => {
            let said = live.file.rows;
            Ok(Some(format!(
                "the footer of the data file {name} has {rows} rows, and the Delta log says {said}"
            )))
        }
        Err(error @ (TableError::DamagedFile { .. } | TableError::Parquet { .. })) => {
            Ok(Some(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{publish, two_columns};
    use crate::{StoreOptions, TableStore};
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStore, ObjectStoreExt};
    use std::sync::Arc;
    use tributary_types::Version;
    use url::Url;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_facts_are_those_of_the_files_and_a_damaged_or_missing_one_is_a_fault() {
        let objects = Arc::new(InMemory::new());
        let store = Arc::clone(&objects) as Arc<dyn ObjectStore>;
        let url = Url::parse("memory:///").unwrap();
        let store = TableStore::with_object_store(store, url, StoreOptions::default()).unwrap();
        let table = store.create(&two_columns()).await.unwrap();
        publish(&table, [1, 2, 3]);
        table.flush().await.unwrap();
        publish(&table, [4]);
        let cut = table.cut();
        publish(&table, [5]);
        table.flush().await.unwrap();
        let facts = store.verify(&cut).await.unwrap();
        assert_eq!((facts.rows, facts.files, facts.persisted), (3, 1, Version(1)), "{facts:?}");
        assert!(facts.faults.is_empty() && facts.version == cut.delta_version() as u64, "{facts:?}");
        assert_eq!(cut.rows(), 4);

        let file = cut.files().into_iter().next().unwrap();
        let path = Path::from(format!("{}/{file}", cut.location()));
        let whole = objects.get(&path).await.unwrap().bytes().await.unwrap();
        objects.put(&path, whole.slice(1..).into()).await.unwrap();
        let facts = store.verify(&cut).await.unwrap();
        assert!(facts.faults.len() == 1 && facts.faults[0].contains("the Delta log says"), "{facts:?}");
        let mut garbled = whole.to_vec();
        let length = garbled.len();
        garbled[length - 6] ^= 0xff;
        objects.put(&path, garbled.into()).await.unwrap();
        let facts = store.verify(&cut).await.unwrap();
        assert!(facts.faults.len() == 1 && facts.faults[0].contains("damaged"), "{facts:?}");
        objects.delete(&path).await.unwrap();
        let facts = store.verify(&cut).await.unwrap();
        assert!(facts.faults.len() == 1 && facts.faults[0].contains("is missing"), "{facts:?}");
    }
}
