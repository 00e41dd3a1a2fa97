//! A catalog that takes no change, to be copied as it is at one moment.
//!
//! Not its business: why, and where the copy goes.

use crate::catalog::{Catalog, Result};
use crate::store::FrozenStore;
use std::path::Path;

/// No change of the catalog begins as long as this exists; lookups go on.
#[must_use]
pub struct FrozenCatalog {
    store: Box<dyn FrozenStore>,
}

impl Catalog {
    /// Waits for the change under way, which is in the catalog then. Changes wait until the value is dropped, at most half a minute.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn freeze(&self) -> Result<FrozenCatalog> {
        Ok(FrozenCatalog { store: self.store().freeze().await? })
    }
}

impl FrozenCatalog {
    /// Writes a copy of the catalog to a file of SQLite that is not there yet. The file is not durable on return.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`].
    pub async fn save(&mut self, to: &Path) -> Result<()> {
        self.store.save(to).await
    }
}

#[cfg(test)]
mod tests {
    use crate::{Catalog, CatalogLocation};
    use std::sync::Arc;

    #[tokio::test]
    async fn changes_wait_while_the_catalog_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| CatalogLocation::Sqlite(dir.path().join(name));
        let catalog = Arc::new(Catalog::open(&file("catalog.db")).await.unwrap());
        catalog.create_database("before").await.unwrap();
        let mut frozen = catalog.freeze().await.unwrap();
        let changing = tokio::spawn({
            let catalog = Arc::clone(&catalog);
            async move { catalog.create_database("after").await }
        });
        tokio::task::yield_now().await;
        frozen.save(&dir.path().join("copy.db")).await.unwrap();
        assert_eq!(catalog.databases(), ["before"], "lookups go on");
        assert!(!changing.is_finished());
        drop(frozen);
        changing.await.unwrap().unwrap();
        assert_eq!(catalog.databases(), ["after", "before"]);
        let copy = Catalog::open(&file("copy.db")).await.unwrap();
        assert_eq!(copy.databases(), ["before"]);
    }
}
