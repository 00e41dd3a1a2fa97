//! A root that other servers can reach belongs to one of them, and its store refuses to overwrite what must not be.
//!
//! An object beside the tables names the server. It is created once, and compared at each start; and since it is there, a start
//! can try whether the store refuses to create it again, on which the Delta logs rely.

use crate::ambient::new_uuid;
use crate::error::TableError;
use crate::place::store::TableStore;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const NAME: &str = "_tributary_server.json";
/// The directory of all tables' locations. Another server's prefix may be beside it.
const TABLES: &str = "tables";
const FORMAT: u64 = 1;

/// The owner of a root.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    format: u64,
    server: String,
    /// Random, so that a root that was made twice is not taken for the first one.
    claim: String,
}

impl TableStore {
    /// Makes this root the node's, unless it was claimed before: then it must be the node's still. Refuses a store that cannot have
    /// a Delta log. Ends uploads that an earlier run of the node has left unfinished.
    ///
    /// # Errors
    /// [`TableError::StoreUnfit`]: another server's, another store than before, or one without conditional puts.
    /// [`TableError::Storage`]: it did not answer.
    pub async fn claim(&self, was_claimed: bool) -> Result<(), TableError> {
        let url = self.root_url().to_string();
        let unfit = |reason: String| TableError::StoreUnfit { url: url.clone(), reason };
        let store = self.object_store();
        let prefix = Path::from_url_path(self.root_url().path())
            .map_err(|error| TableError::BadRoot { url: url.clone(), reason: error.to_string() })?;
        let path = prefix.clone().join(NAME);
        let node = self.options().node.clone();
        let owner = match self.owner(&store, &path).await? {
            Some(owner) => owner,
            None if was_claimed => {
                return Err(unfit(format!(
                    "this server's tables are in it according to node.json, and its object {path}, which says so, is gone: \
                     the endpoint leads to another store, or somebody has emptied this one"
                )));
            }
            None => {
                let owner =
                    Owner { format: FORMAT, server: node.clone(), claim: new_uuid().simple().to_string() };
                let created = create(&store, &path, &owner).await;
                // Its answer may have been lost, and another server may have been faster.
                match self.owner(&store, &path).await? {
                    Some(found) => found,
                    None => {
                        created.map_err(TableError::storage(format!("creating '{path}' in {url}")))?;
                        return Err(unfit(format!("its object {path} was written and cannot be found")));
                    }
                }
            }
        };
        if owner.server != node {
            return Err(unfit(format!(
                "the tables of the server {} are in it (its object {path}), and this is {node}: give each server a prefix of its own",
                owner.server
            )));
        }
        match create(&store, &path, &owner).await {
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
            Ok(()) => {
                return Err(unfit(
                    "it overwrites an object although it was asked to create one (If-None-Match: *). Commits of the Delta \
                     logs would overwrite one another. Use a store with conditional puts"
                        .to_owned(),
                ));
            }
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                return Err(unfit(
                    "it does not support conditional puts (If-None-Match: *), which commits of the Delta logs need. \
                     Use a store that has them"
                        .to_owned(),
                ));
            }
            Err(error) => {
                return Err(TableError::storage(format!("trying a conditional put in {url}"))(error));
            }
        }
        // Nothing of this run is being uploaded yet.
        match self.storage().abort_uploads(&prefix.join(TABLES)).await {
            Ok(0) => {}
            Ok(uploads) => tracing::info!(uploads, "aborted uploads that an earlier run has left unfinished"),
            Err(error) => {
                tracing::warn!(%error, "unfinished uploads of an earlier run stay: let a rule of the bucket remove them");
            }
        }
        Ok(())
    }

    /// Checks that the tables in this root are those of a server.
    ///
    /// # Errors
    /// [`TableError::StoreUnfit`]: they are another's, or there are none. [`TableError::Storage`]: the store did not answer.
    pub async fn check_owner(&self, server: &str) -> Result<(), TableError> {
        let url = self.root_url().to_string();
        let prefix = Path::from_url_path(self.root_url().path())
            .map_err(|error| TableError::BadRoot { url: url.clone(), reason: error.to_string() })?;
        let path = prefix.join(NAME);
        let reason = match self.owner(&self.object_store(), &path).await? {
            Some(owner) if owner.server == server => return Ok(()),
            Some(owner) => format!(
                "the tables of the server {} are in it (its object {path}), and the catalog is that of {server}: name catalog_url and \
                 table_storage of one server",
                owner.server
            ),
            None => format!(
                "no server's tables are in it: its object {path} is missing. Name the table_storage of the server {server}, which must have \
                 been started once"
            ),
        };
        Err(TableError::StoreUnfit { url, reason })
    }

    async fn owner(&self, store: &Arc<dyn ObjectStore>, path: &Path) -> Result<Option<Owner>, TableError> {
        let url = self.root_url();
        let failed = || TableError::storage(format!("reading '{path}' in {url}"));
        let bytes = match store.get(path).await {
            Ok(got) => got.bytes().await.map_err(failed())?,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed()(error)),
        };
        let owner = serde_json::from_slice(&bytes);
        owner.map(Some).map_err(|error| TableError::StoreUnfit {
            url: url.to_string(),
            reason: format!("its object {path} does not say to which server it belongs: {error}"),
        })
    }
}

async fn create(store: &Arc<dyn ObjectStore>, path: &Path, owner: &Owner) -> Result<(), Error> {
    let text = serde_json::to_string(owner).expect("a struct of numbers and texts") + "\n";
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(path, PutPayload::from(text), options).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;
    use object_store::memory::InMemory;
    use url::Url;

    fn store(objects: &Arc<InMemory>, node: &str) -> TableStore {
        let url = Url::parse("memory:///lake/one").expect("a URL");
        let options = StoreOptions { node: node.to_owned(), ..StoreOptions::default() };
        TableStore::with_object_store(Arc::clone(objects) as Arc<dyn ObjectStore>, url, options)
            .expect("a root")
    }

    #[tokio::test]
    async fn a_root_belongs_to_the_server_that_claimed_it_first() {
        let objects = Arc::new(InMemory::new());
        let (one, two) = (store(&objects, "one"), store(&objects, "two"));
        let gone = one.claim(true).await.unwrap_err().to_string();
        assert!(gone.contains("is gone") && gone.contains("lake/one/_tributary_server.json"), "{gone}");
        one.claim(false).await.expect("a free root");
        one.claim(false).await.expect("its own, of a start that ended early");
        one.claim(true).await.expect("its own");
        one.check_owner("one").await.expect("its tables");
        let other = one.check_owner("two").await.unwrap_err().to_string();
        assert!(other.contains("the tables of the server one are in it"), "{other}");
        let empty =
            store(&Arc::new(InMemory::new()), "reader").check_owner("one").await.unwrap_err().to_string();
        assert!(empty.contains("lake/one/_tributary_server.json is missing"), "{empty}");
        for was_claimed in [false, true] {
            let taken = two.claim(was_claimed).await.unwrap_err().to_string();
            assert!(taken.contains("the tables of the server one are in it"), "{taken}");
        }
    }
}
