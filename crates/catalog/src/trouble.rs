//! Whether the store takes changes, as its last writes have shown.
//!
//! Not its business: reads, and refusals by a check.

use crate::error::CatalogError;
use parking_lot::Mutex;

/// Why the last change could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogTrouble {
    pub reason: String,
    /// The database can't be reached now. It is on another machine or restarts; loads go on without it.
    pub is_away: bool,
    /// Another process has taken it: this one changes nothing any more.
    pub is_lost: bool,
}

/// The reason why the last change failed, until one succeeds.
#[derive(Debug, Default)]
pub(crate) struct WriteTrouble(Mutex<Option<CatalogTrouble>>);

impl WriteTrouble {
    /// Notes the outcome of a write.
    pub fn noted<T>(&self, outcome: Result<T, CatalogError>) -> Result<T, CatalogError> {
        *self.0.lock() = outcome.as_ref().err().map(|error| CatalogTrouble {
            reason: error.to_string(),
            is_away: matches!(error, CatalogError::Away { .. } | CatalogError::InDoubt { .. }),
            is_lost: matches!(error, CatalogError::Lost { .. }),
        });
        outcome
    }

    pub fn get(&self) -> Option<CatalogTrouble> {
        self.0.lock().clone()
    }
}
