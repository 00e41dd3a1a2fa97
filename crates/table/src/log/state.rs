//! The state of the log at one of its versions, in our terms.

use super::replay::{Replayed, rows_of};
use crate::error::TableError;
use crate::file::{DataFile, FileFormat, FileStats, LiveFile, Tags, VectorReader, footer_fault, guarded};
use crate::view::schema::{NEXT_COLUMN_ID_KEY, SCHEMA_VERSION_KEY, TABLE_ID_KEY};
use bytes::Bytes;
use deltalake_core::DeltaTable;
use deltalake_core::kernel::{Add, Metadata, Protocol};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::str::FromStr;
use std::sync::Arc;
use tributary_types::{ColumnId, PartitionId, SchemaVersion, TableSchema, Version};

/// The end of a Parquet file that is read to find its footer, in bytes.
const FOOTER_GUESS_BYTES: u64 = 64 * 1024;

/// The log at `version`. Updated by every writer of an entry.
#[derive(Clone, Debug)]
pub(crate) struct LogState {
    pub(crate) version: u64,
    pub(crate) metadata: Metadata,
    pub(crate) protocol: Protocol,
    /// The table's files by path.
    pub(crate) live: BTreeMap<String, LiveFile>,
    /// The last table version whose rows are all in the log.
    pub(crate) app_version: Version,
    /// The number of the last drop of partitions that is in the log ([`tributary_types::DropMark`]). Only known under a definition with a
    /// mark, or if it was written here.
    pub(crate) last_drop: Option<u64>,
    /// The epoch of the last seal of this writer's claim; 0 if there is none.
    pub(crate) sealed_at: u64,
    /// Entries since the last checkpoint that we wrote or since the state was read.
    pub(crate) uncheckpointed: u64,
    /// Actions of the last checkpoint that we wrote: of the table's files, and of retained files that left it.
    pub(crate) checkpoint_actions: u64,
    /// When old entries were removed last, in milliseconds since 1970; 0: not since the state was read.
    pub(crate) cleaned_ms: i64,
    /// Unreferenced files of deletion vectors, and when that was first seen, in milliseconds since the Unix epoch: the log does
    /// not record it.
    pub(crate) unused_vectors: BTreeMap<String, i64>,
    pub(crate) strays: Strays,
    /// Files that other engines have brought to a table of unique keys, and whose rows may have the keys of others in the log.
    pub(crate) others: BTreeSet<String>,
}

/// Files of a table with partitions whose rows have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strays {
    /// The id that the next partition was to get when that was found: a later one may take their rows.
    pub(crate) next: Option<PartitionId>,
    pub(crate) files: HashSet<String>,
}

/// How the set of live files differs between two states. A file whose deletes have changed is in both.
#[derive(Debug)]
pub(crate) struct LogChange {
    pub(crate) gone: HashSet<String>,
    pub(crate) added: Vec<LiveFile>,
}

impl LogState {
    /// The state for a table that is written to no log.
    pub(crate) fn of_no_log() -> Self {
        Self {
            version: 0,
            metadata: Metadata::default(),
            protocol: Protocol::default(),
            live: BTreeMap::new(),
            app_version: Version(0),
            last_drop: None,
            sealed_at: 0,
            uncheckpointed: 0,
            checkpoint_actions: 0,
            cleaned_ms: 0,
            unused_vectors: BTreeMap::new(),
            strays: Strays::default(),
            others: BTreeSet::new(),
        }
    }

    pub(crate) async fn read(
        table: &DeltaTable,
        app_ids: &[String],
        location: &str,
        schema: &TableSchema,
    ) -> Result<Self, TableError> {
        let failed = || TableError::delta(format!("reading the log of '{location}'"));
        let state = table.snapshot().map_err(failed())?;
        let metadata = state.metadata().clone();
        refuse_partitions(&metadata, location)?;
        let written_with = WrittenWith::read(&metadata, schema);
        let mut live = BTreeMap::new();
        let store = table.object_store();
        let mut vectors = VectorReader::new(&store, location);
        for view in state.log_data().iter() {
            let rows = match view.num_records() {
                Some(rows) => rows as u64,
                None => {
                    let name = format!("{location}/{}", view.path());
                    let bytes = u64::try_from(view.size()).unwrap_or(0);
                    count_rows(&store, &view.object_store_path(), bytes, &name).await?
                }
            };
            #[expect(deprecated, reason = "nothing else tells the tags of a file")]
            let add = Add { path: view.path().into_owned(), ..view.add_action() };
            let file = Arc::new(written_with.data_file(add, rows, location, schema)?);
            let deletes = match view.deletion_vector_descriptor() {
                Some(vector) => Some(vectors.read(vector, file.rows).await?),
                None => None,
            };
            live.insert(file.path.clone(), LiveFile { deletes, ..LiveFile::from_arc(file) });
        }
        let log_store = table.log_store();
        let mut app_version = None;
        for app_id in app_ids {
            // An entry has an id only if the versions of later ids were compared, too: the first one found is the highest.
            app_version = state.transaction_version(log_store.as_ref(), app_id).await.map_err(failed())?;
            if app_version.is_some() {
                break;
            }
        }
        Ok(Self {
            version: state.version(),
            protocol: state.protocol().clone(),
            metadata,
            live,
            app_version: Version(app_version.and_then(|version| u64::try_from(version).ok()).unwrap_or(0)),
            last_drop: None,
            sealed_at: 0,
            uncheckpointed: 0,
            checkpoint_actions: 0,
            cleaned_ms: 0,
            unused_vectors: BTreeMap::new(),
            strays: Strays::default(),
            others: BTreeSet::new(),
        })
    }

    /// The state that the entries of a short log say, as [`LogState::read`] finds it.
    pub(crate) async fn replayed(
        log: Replayed,
        store: &Arc<dyn ObjectStore>,
        app_ids: &[String],
        location: &str,
        schema: &TableSchema,
    ) -> Result<Self, TableError> {
        refuse_partitions(&log.metadata, location)?;
        let written_with = WrittenWith::read(&log.metadata, schema);
        let mut live = BTreeMap::new();
        let mut vectors = VectorReader::new(store, location);
        for (path, add) in log.files {
            let file = written_with.live_file(add, store, &mut vectors, location, schema).await?;
            live.insert(path, file);
        }
        let app_version = app_ids.iter().find_map(|app_id| log.applications.get(app_id));
        Ok(Self {
            version: log.version,
            protocol: log.protocol,
            metadata: log.metadata,
            live,
            app_version: Version(app_version.and_then(|version| u64::try_from(*version).ok()).unwrap_or(0)),
            last_drop: None,
            sealed_at: 0,
            uncheckpointed: 0,
            checkpoint_actions: 0,
            cleaned_ms: 0,
            unused_vectors: BTreeMap::new(),
            strays: Strays::default(),
            others: BTreeSet::new(),
        })
    }

    /// The id of the table that the log belongs to, as it was written.
    pub(crate) fn table_id(&self) -> Option<&str> {
        self.metadata.configuration().get(TABLE_ID_KEY).map(String::as_str)
    }

    /// The version of the schema that the log's rows have, as it was written.
    pub(crate) fn schema_version(&self) -> Option<SchemaVersion> {
        let version = self.metadata.configuration().get(SCHEMA_VERSION_KEY);
        version.and_then(|text| u32::from_str(text).ok()).map(SchemaVersion)
    }

    /// Replaces this state by the newly read `fresh` one and returns the changes.
    pub(crate) fn advance(&mut self, fresh: Self) -> LogChange {
        let is_there = |known: &LiveFile| fresh.live.get(known.path()).is_some_and(|new| new.is_same(known));
        let gone = self.live.values().filter(|known| !is_there(known));
        let gone = gone.map(|known| known.path().to_owned()).collect();
        let mut live = BTreeMap::new();
        let mut added = Vec::new();
        for (path, new) in fresh.live {
            let known = self.live.remove(&path);
            let is_known = known.as_ref().is_some_and(|known| known.is_same(&new));
            // Our own metadata of a file is better than the log's JSON.
            let known = known.filter(|known| known.file.partition == new.file.partition);
            let file = known.map_or(new.file, |known| known.file);
            let new = LiveFile { deletes: new.deletes, ..LiveFile::from_arc(file) };
            if !is_known {
                added.push(new.clone());
            }
            live.insert(path, new);
        }
        let uncheckpointed = self.uncheckpointed + (fresh.version - self.version.min(fresh.version));
        let unused_vectors = std::mem::take(&mut self.unused_vectors);
        let (strays, others) = (std::mem::take(&mut self.strays), std::mem::take(&mut self.others));
        let (checkpoint_actions, cleaned_ms) = (self.checkpoint_actions, self.cleaned_ms);
        *self = Self {
            live,
            uncheckpointed,
            checkpoint_actions,
            cleaned_ms,
            unused_vectors,
            strays,
            others,
            ..fresh
        };
        LogChange { gone, added }
    }
}

fn refuse_partitions(metadata: &Metadata, location: &str) -> Result<(), TableError> {
    if metadata.partition_columns().is_empty() {
        return Ok(());
    }
    Err(TableError::UnsupportedLog {
        location: location.to_owned(),
        what: format!("the partition columns {:?}", metadata.partition_columns()),
        remedy: "restore the table without partitions",
    })
}

/// The rows of a file whose writer left no statistics, from its Parquet footer.
pub(crate) async fn count_rows(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    file_bytes: u64,
    name: &str,
) -> Result<u64, TableError> {
    let doing = || format!("counting the rows of '{name}'");
    let mut wanted = FOOTER_GUESS_BYTES.min(file_bytes);
    loop {
        let range = file_bytes - wanted..file_bytes;
        let bytes = store.get_range(path, range).await.map_err(TableError::storage(doing()))?;
        match guarded(name, || rows_of_footer(&bytes, file_bytes, name))? {
            Counted::Rows(rows) => return Ok(rows),
            Counted::Needs(more) if more > wanted && more <= file_bytes => wanted = more,
            Counted::Needs(more) => {
                let reason = format!("its footer has {more} bytes, and the file has {file_bytes}");
                return Err(TableError::damaged_file(name)(reason));
            }
        }
    }
}

enum Counted {
    Rows(u64),
    /// The footer is longer: this many of the file's last bytes are needed.
    Needs(u64),
}

fn rows_of_footer(end: &Bytes, file_bytes: u64, name: &str) -> Result<Counted, TableError> {
    let mut reader = ParquetMetaDataReader::new();
    match reader.try_parse_sized(end, file_bytes) {
        Ok(()) => {}
        Err(ParquetError::NeedMoreData(more)) => return Ok(Counted::Needs(more as u64)),
        Err(error) => return Err(TableError::unreadable_file(name)(error)),
    }
    let metadata = reader.finish().map_err(TableError::unreadable_file(name))?;
    match footer_fault(&metadata, file_bytes, None) {
        Some(reason) => Err(TableError::damaged_file(name)(reason)),
        None => Ok(Counted::Rows(u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0))),
    }
}

/// The schema that the log's files follow, from its metadata.
pub(super) struct WrittenWith {
    schema_version: SchemaVersion,
    columns_below: ColumnId,
}

impl WrittenWith {
    pub(super) fn read(metadata: &Metadata, schema: &TableSchema) -> Self {
        let config = metadata.configuration();
        let number = |key: &str| config.get(key).and_then(|text| u32::from_str(text).ok());
        Self {
            schema_version: number(SCHEMA_VERSION_KEY).map_or(schema.version, SchemaVersion),
            columns_below: number(NEXT_COLUMN_ID_KEY).map_or(schema.next_column_id, ColumnId),
        }
    }

    /// The file that an action adds, with its deletes.
    pub(super) async fn live_file(
        &self,
        mut add: Add,
        store: &Arc<dyn ObjectStore>,
        vectors: &mut VectorReader<'_>,
        location: &str,
        schema: &TableSchema,
    ) -> Result<LiveFile, TableError> {
        let rows = match rows_of(&add) {
            Some(rows) => rows,
            None => {
                let (bytes, name) =
                    (u64::try_from(add.size).unwrap_or(0), format!("{location}/{}", add.path));
                count_rows(store, &Path::from(add.path.as_str()), bytes, &name).await?
            }
        };
        let vector = add.deletion_vector.take();
        let file = Arc::new(self.data_file(add, rows, location, schema)?);
        let deletes = match vector {
            Some(vector) => Some(vectors.read(vector, file.rows).await?),
            None => None,
        };
        Ok(LiveFile { deletes, ..LiveFile::from_arc(file) })
    }

    fn data_file(
        &self,
        add: Add,
        rows: u64,
        location: &str,
        schema: &TableSchema,
    ) -> Result<DataFile, TableError> {
        let unsupported =
            |what: String, remedy| TableError::UnsupportedLog { location: location.to_owned(), what, remedy };
        let tags = Tags::read(add.tags.as_ref()).map_err(|what| {
            unsupported(format!("{what}, for '{}'", add.path), "start a newer version of Tributary")
        })?;
        let stats = add.stats.map(|text| FileStats::from_delta_json(&text, schema));
        Ok(DataFile {
            format: FileFormat,
            path: add.path,
            size_bytes: u64::try_from(add.size).unwrap_or(0),
            rows,
            schema_version: self.schema_version,
            columns_below: self.columns_below,
            stats: stats.unwrap_or_default(),
            modification_time_ms: add.modification_time,
            version: tags.version,
            partition: tags.partition,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, publish, two_columns};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_rows_of_a_file_with_a_damaged_footer_are_not_counted_wrong() {
        let bench = Bench::new();
        let table = bench.store.create(&two_columns()).await.unwrap();
        publish(&table, 1..100);
        table.flush().await.unwrap();
        let file = Arc::clone(&table.snapshot().files[0].file);
        let on_disk = bench.dir.path().join("demo/events-7").join(&file.path);
        let whole = std::fs::read(&on_disk).unwrap();
        let path = Path::from(file.path.as_str());
        let store = &table.root().store;
        let count = async || count_rows(store, &path, whole.len() as u64, &file.path).await;
        assert_eq!(count().await.unwrap(), 99);
        for (from_end, flip) in
            (1..800.min(whole.len())).flat_map(|at| [0x01, 0x40, 0x80, 0xff].map(|flip| (at, flip)))
        {
            let mut damaged = whole.clone();
            damaged[whole.len() - from_end] ^= flip;
            std::fs::write(&on_disk, damaged).unwrap();
            match count().await {
                Ok(rows) => assert_eq!(rows, 99, "byte {from_end} from the end"),
                Err(TableError::DamagedFile { file: named, .. }) => assert_eq!(named, file.path),
                Err(error) => panic!("byte {from_end} from the end, flipped by {flip:#x}: {error}"),
            }
        }
    }
}
