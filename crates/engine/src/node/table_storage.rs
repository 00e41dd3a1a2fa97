//! The store of this server's tables stays the same from start to start.
//!
//! Invariant: a server finds its tables where it made them, or does not start; and no two servers have tables at one place.

use crate::node::node_file::NodeFile;
use crate::node::options::EngineOptions;
use crate::node::start_error::StartError;
use std::fs;
use std::io;
use tributary_catalog::{Catalog, Claimed};
use tributary_table::{ReadCacheOptions, TableStore, WriteClaim};
use tributary_wal::{Disk, OsDisk};

/// The directory of the cache of data files in a store, in that of the server.
const CACHE_DIRECTORY: &str = "table_cache";

/// The cache of data files, if they are in a store and the setting allows one. Otherwise what an earlier run has left is deleted.
///
/// # Errors
/// It can't be deleted, or the free space of the disk is not known.
pub(crate) fn read_cache(options: &EngineOptions) -> Result<Option<ReadCacheOptions>, StartError> {
    let directory = options.state_dir.join(CACHE_DIRECTORY);
    let failed = |action, path| move |source| StartError::Io { action, path, source };
    let Some(limit) = options.table_cache.filter(|_| options.table_storage.is_some()) else {
        return match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("delete the unused cache", directory)(error))
            }
            _ => Ok(None),
        };
    };
    let available_bytes = OsDisk
        .available_bytes(&options.state_dir)
        .map_err(failed("measure the free space of", options.state_dir.clone()))?;
    Ok(Some(ReadCacheOptions { directory, limit, available_bytes }))
}

/// The claim that each table's log is sealed with, if its tables are where another process can reach them. A directory is locked.
pub(crate) fn write_claim(options: &EngineOptions, claimed: Option<&Claimed>) -> Option<WriteClaim> {
    let claimed = claimed.filter(|_| options.table_storage.is_some())?;
    Some(WriteClaim { id: claimed.id.clone(), is_takeover: claimed.is_takeover })
}

/// Compares the setting with what the node's file says, and claims a store that is new. That of another server must be the owner's of
/// the catalog.
///
/// # Errors
/// [`StartError::TablesElsewhere`], [`StartError::TablesHere`]; those of [`TableStore::claim`].
pub(crate) async fn settle(
    options: &EngineOptions,
    store: &TableStore,
    node: &NodeFile,
    catalog: &Catalog,
) -> Result<(), StartError> {
    if options.only_reads() {
        let owner = catalog.owner().await?.map(|(_, server)| server).unwrap_or_default();
        return Ok(store.check_owner(&owner).await?);
    }
    let known = node.table_storage();
    let wanted = options.table_storage.as_ref().map(|given| given.location.to_string());
    let Some(url) = &wanted else {
        return known.map_or(Ok(()), |known| Err(StartError::TablesElsewhere { known, wanted: None }));
    };
    if let Some(known) = known.clone().filter(|known| known != url) {
        return Err(StartError::TablesElsewhere { known, wanted });
    }
    if known.is_none() && !catalog.all_tables().is_empty() {
        let directory = options.tables.directory().to_owned();
        return Err(StartError::TablesHere { directory, wanted: url.clone() });
    }
    store.claim(known.is_some()).await?;
    node.keep_table_storage(url)
}
