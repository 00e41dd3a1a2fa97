//! The store of this server's tables stays the same from start to start.
//!
//! Invariant: a server finds its tables where it made them, or does not start; and no two servers have tables at one place.

use crate::node::node_file::NodeFile;
use crate::node::options::EngineOptions;
use crate::node::start_error::StartError;
use tributary_catalog::Catalog;
use tributary_table::TableStore;

/// Compares the setting with what the node's file says, and claims a store that is new.
///
/// # Errors
/// [`StartError::TablesElsewhere`], [`StartError::TablesHere`]; those of [`TableStore::claim`].
pub(crate) async fn settle(
    options: &EngineOptions,
    store: &TableStore,
    node: &NodeFile,
    catalog: &Catalog,
) -> Result<(), StartError> {
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
