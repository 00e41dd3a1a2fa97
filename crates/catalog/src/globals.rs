//! Global variables that statements have set: they outlive the server's process.
//!
//! Not here: which variables there are, and which values are legal.

use crate::catalog::{Catalog, Result};
use crate::error::CatalogError;
use std::collections::BTreeMap;

/// The key under which all of them are stored, as one JSON object.
const KEY: &str = "global_variables";

impl Catalog {
    /// The values that were set, by the variables' names.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`], or [`CatalogError::Store`].
    pub async fn global_variables(&self) -> Result<BTreeMap<String, String>> {
        let Some(text) = self.store().meta_get(KEY).await? else { return Ok(BTreeMap::new()) };
        serde_json::from_str(&text).map_err(|error| CatalogError::Corrupt {
            what: "the global variables".to_owned(),
            reason: error.to_string(),
        })
    }

    /// Stores all values that were set. Durable on return. Calls must not overlap.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn put_global_variables(&self, values: &BTreeMap<String, String>) -> Result<()> {
        let object = values.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let text = serde_json::Value::Object(object.collect()).to_string();
        self.store().meta_put(KEY, &text, &[]).await
    }
}
