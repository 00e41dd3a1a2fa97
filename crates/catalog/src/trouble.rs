//! Whether the store takes changes, as its last writes have shown.
//!
//! Not its business: reads, and refusals by a check.

use crate::error::CatalogError;
use parking_lot::Mutex;

/// The reason why the last change failed, until one succeeds.
#[derive(Debug, Default)]
pub(crate) struct WriteTrouble(Mutex<Option<String>>);

impl WriteTrouble {
    /// Notes the outcome of a write.
    pub fn noted<T>(&self, outcome: Result<T, CatalogError>) -> Result<T, CatalogError> {
        match &outcome {
            Ok(_) => *self.0.lock() = None,
            Err(error) => *self.0.lock() = Some(error.to_string()),
        }
        outcome
    }

    pub fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }
}
