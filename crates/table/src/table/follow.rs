//! A table that another server writes: its newest state in the Delta log, and how old that is.
//!
//! Invariant: the snapshot is one version of the log, under a definition that knows all that the log's rows have. Nothing is written.
//! Not here: when to look, and what the writer has not put into the log.

use super::{Table, check_id, delta_version, logged_snapshot};
use crate::error::TableError;
use crate::log::LogState;
use crate::place::root::TableRoot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tributary_types::TableDef;

/// Looks for the next entry only, in a row. Between them the newest state is read: the writer may have removed old entries.
const PROBES_MAX: u32 = 600;

/// The state of knowledge of the writer's table.
#[derive(Debug, Default)]
pub(super) struct Followed(parking_lot::Mutex<Known>, AtomicU32);

#[derive(Debug, Default)]
struct Known {
    /// Everything that was visible at the writer then is in the snapshot. `None`: nobody knows.
    as_of: Option<Instant>,
    /// Why the last look failed.
    failure: Option<String>,
}

/// How far a followed table is behind its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// Everything that was visible at the writer this long ago can be read. `None`: nobody knows.
    pub age: Option<Duration>,
    /// Why the last look for a newer state failed.
    pub failure: Option<String>,
}

impl Table {
    /// Reads the log of a table that another server writes.
    pub(crate) async fn open_followed(
        root: Arc<TableRoot>,
        def: &Arc<TableDef>,
    ) -> Result<Arc<Self>, TableError> {
        let state = root.log.open(def).await?;
        check_id(&state, def)?;
        check_definition(&state, def)?;
        Ok(Arc::new(Self::of_state(root, def, state)))
    }

    /// Takes the newest state of a table that another server writes, under the definition that the catalog has. If the log has
    /// everything that was visible at the writer at `as_of`, so has the snapshot then. Returns whether it has changed.
    ///
    /// # Errors
    /// Those of reading the log, [`TableError::LocationTaken`]; [`TableError::DefinitionBehind`] until the catalog has what the log
    /// has. The snapshot stays as it was.
    pub async fn follow(&self, def: &Arc<TableDef>, as_of: Option<Instant>) -> Result<bool, TableError> {
        let outcome = self.try_to_follow(def).await;
        if let Some(followed) = &self.followed {
            let mut known = followed.0.lock();
            known.failure = outcome.as_ref().err().map(ToString::to_string);
            if outcome.is_ok() {
                known.as_of = known.as_of.max(as_of);
            }
        }
        outcome
    }

    async fn try_to_follow(&self, def: &Arc<TableDef>) -> Result<bool, TableError> {
        let Some(followed) = &self.followed else { return Ok(false) };
        let mut state = self.rewriter.lock().await;
        let is_known = *self.def() == **def;
        let probes = followed.1.fetch_add(1, Ordering::Relaxed);
        if is_known && probes < PROBES_MAX && !self.root.log.has_entry(state.version + 1).await? {
            return Ok(false);
        }
        let fresh = self.root.log.load(def).await?;
        check_id(&fresh, def)?;
        check_definition(&fresh, def)?;
        followed.1.store(0, Ordering::Relaxed);
        if is_known && fresh.version <= state.version {
            return Ok(false);
        }
        state.advance(fresh);
        self.persisted.store(state.app_version.0, Ordering::Release);
        self.delta_versions.lock().reach(state.app_version, delta_version(&state));
        let _unflushed = self.unflushed.lock();
        self.snapshot.store(Arc::new(logged_snapshot(def, &state)));
        Ok(true)
    }

    /// How far the table is behind its writer. `None`: this server writes it.
    #[must_use]
    pub fn staleness(&self) -> Option<Staleness> {
        let known = self.followed.as_ref()?.0.lock();
        Some(Staleness { age: known.as_of.map(|as_of| as_of.elapsed()), failure: known.failure.clone() })
    }

    /// Checks that the table's rows are not older than queries may read.
    ///
    /// # Errors
    /// [`TableError::TooOld`].
    pub fn check_staleness(&self) -> Result<(), TableError> {
        let Some(limit) = &self.root.options.max_staleness else { return Ok(()) };
        let limit = limit.get();
        let Some(Staleness { age, failure }) = self.staleness() else { return Ok(()) };
        if limit.is_zero() || age.is_some_and(|age| age <= limit) {
            return Ok(());
        }
        let reason = failure.unwrap_or_else(|| {
            "the writer has not said that its rows are in the tables' files, or it was not heard of"
                .to_owned()
        });
        Err(TableError::TooOld { table: self.def().table_ref(), age, limit, reason })
    }
}

/// Checks that the definition knows all that the log's rows have: a change reaches the log before the catalog.
fn check_definition(state: &LogState, def: &TableDef) -> Result<(), TableError> {
    let known = def.schema.version;
    match state.schema_version() {
        Some(found) if found > known => {
            Err(TableError::DefinitionBehind { location: def.location.clone(), found, known })
        }
        _ => Ok(()),
    }
}
