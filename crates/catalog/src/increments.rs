//! Values of AUTO_INCREMENT columns, reserved for a node a range at a time.
//!
//! Not its business: which row gets which.

use crate::catalog::{Catalog, Result};
use tributary_types::TableId;

impl Catalog {
    /// Reserves `count` values of a table: the first ones that were never reserved and that are not below `start`. Returns the
    /// first; `None` if the range up to the greatest BIGINT is too small. They are reserved for ever, durably on return.
    ///
    /// # Errors
    /// [`crate::CatalogError::Store`], even for a table that no longer exists; the values may be reserved nevertheless.
    pub async fn reserve_increments(&self, table: TableId, start: i64, count: u64) -> Result<Option<i64>> {
        match i64::try_from(count) {
            Ok(count) => self.store().reserve_increments(table, start, count).await,
            Err(_) => Ok(None),
        }
    }
}
