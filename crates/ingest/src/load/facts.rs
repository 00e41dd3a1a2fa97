//! Facts about a load that the log has beside its rows: its key, and its rejected rows.
//!
//! Invariant: their entries are in one frame with the load's rows, or with the commit that makes them count.

use crate::error::IngestError;
use crate::keys::{AnsweredAs, Claim};
use crate::recovery::record;
use crate::rejects::HeldRejects;
use std::sync::Arc;
use tributary_types::{Label, TableId, TxnId};
use tributary_wal::Entry;

/// The facts about a load; few have any.
#[derive(Clone, Debug, Default)]
pub struct LoadFacts(Option<Arc<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    key: Option<Arc<Claim>>,
    rejects: Option<HeldRejects>,
}

impl LoadFacts {
    pub(crate) fn new(key: Option<Arc<Claim>>, rejects: Option<HeldRejects>) -> Self {
        let is_empty = key.is_none() && rejects.is_none();
        Self((!is_empty).then(|| Arc::new(Facts { key, rejects })))
    }

    /// Whether the log is told nothing.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.0.is_none()
    }

    fn key(&self) -> Option<&Claim> {
        self.0.as_ref()?.key.as_deref()
    }

    fn rejects(&self) -> Option<&HeldRejects> {
        self.0.as_ref()?.rejects.as_ref()
    }

    /// The entries of the load with a number in a transaction of a table.
    #[inline]
    pub(crate) fn entries(
        &self,
        load: (TableId, TxnId, u32),
        label: &Label,
        answered_as: AnsweredAs,
    ) -> Vec<Entry> {
        if self.are_none() {
            return Vec::new();
        }
        let (_, txn, number) = load;
        let key = self.key().map(|key| record::kept(&key.kept(txn, label, answered_as), number));
        let is_acknowledged = answered_as == AnsweredAs::GroupAsync;
        let rejects = self.rejects().map(|rejects| rejects.entry(load, label, is_acknowledged));
        key.into_iter().chain(rejects).collect()
    }

    /// The log may have the load from now on.
    pub(crate) fn are_submitted(&self) {
        if let Some(key) = self.key() {
            key.is_submitted();
        }
    }

    /// The log has refused the load for sure.
    pub(crate) fn are_refused(&self) {
        if let Some(key) = self.key() {
            key.is_refused();
        }
    }

    /// The log has said what became of the load.
    pub(crate) fn are_settled(&self, error: Option<&IngestError>) {
        if error.is_none() {
            return self.are_stored();
        }
        if let Some(key) = self.key() {
            key.is_settled(error);
        }
    }

    /// The load is stored.
    pub(crate) fn are_stored(&self) {
        if let Some(key) = self.key() {
            key.is_stored();
        }
        if let Some(rejects) = self.rejects() {
            rejects.are_stored();
        }
    }
}
