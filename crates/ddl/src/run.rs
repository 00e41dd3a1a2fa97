//! The steps of a change.

use crate::change::{Change, Dropped, Effect};
use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use tributary_ingest::{Halt, Switched};
use tributary_table::{KeptFile, Leaving, TableError};
use tributary_types::{SourceId, TableDef, TableId, host};

/// The catalog from a change's view. Each call is one step: all of it is durable on return; on an error none of it happened, or
/// it did and its answer was lost.
#[async_trait]
pub trait Records: Send + Sync {
    /// The table's definition; `None` if the table no longer exists.
    fn table(&self, id: TableId) -> Option<Arc<TableDef>>;

    /// The number of the last [finished](Records::finish) change of the table; 0 if it has had none.
    fn last_change(&self, table: TableId) -> SourceId;

    /// Stores the record of a change, and replaces an earlier one with its number.
    async fn keep(&self, change: &Change) -> Result<(), String>;

    /// Replaces the definitions, adds and removes retained partitions, records the number and ends the record: in one step, which
    /// may be repeated. A change that is not newer than the last one of its table only ends its record. If the table no longer
    /// exists, nothing is left to do.
    async fn finish(&self, finished: &Finished) -> Result<(), String>;

    /// Deletes the record of an abandoned change.
    async fn forget(&self, change: &Change) -> Result<(), String>;
}

/// A change that the Delta log has, for the catalog.
#[derive(Clone, Debug)]
pub struct Finished {
    pub change: Change,
    /// The definition before the change, and after it.
    pub table: (Arc<TableDef>, TableDef),
    /// The same of the table whose rows it took over, if it still exists.
    pub beside: Option<(Arc<TableDef>, TableDef)>,
}

/// The table from its change's view.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The table's definition.
    fn def(&self) -> Arc<TableDef>;

    /// The definition of the table whose rows the change takes over, if it takes over any.
    fn beside(&self) -> Option<Arc<TableDef>> {
        None
    }

    /// Makes the change once with one entry of the Delta log, while loads are held. Before it, [`Step::leaving`] gets the dropped
    /// parts that are retained; after it, [`Step::tell`] is called before loads continue.
    ///
    /// # Errors
    /// Nothing has changed; only after [`TableError::Unsure`] the next start finds out, and no load of the table is taken until
    /// then.
    async fn switch(&self, step: &Step<'_>) -> Result<Switched, TableError>;

    /// Gives the table whose rows were taken over its new definition, which the catalog has.
    ///
    /// # Errors
    /// If it must be retried.
    async fn follow(&self, _beside: Arc<TableDef>) -> Result<(), String> {
        Ok(())
    }

    /// Waits briefly before a retry.
    async fn pause(&self);
}

/// An attempt at a change, for [`Subject::switch`].
pub struct Step<'a> {
    records: &'a dyn Records,
    subject: &'a dyn Subject,
    change: &'a Mutex<Change>,
    halt: &'a Arc<Halt>,
    before: Arc<TableDef>,
}

/// The reason why a change was not made, or may not have been.
#[derive(Debug)]
pub enum Failed {
    /// Its record could not be stored: nothing was attempted.
    NotRecorded(String),
    Table(TableError),
}

/// Takes all steps of a change. It is retried as long as it is blocked and `goes_on` allows it ([`Switched::NotYet`] if it was
/// not made). Nothing else may change the definition meanwhile, and this must not be cancelled.
///
/// # Errors
/// Nothing has changed; only after [`TableError::Unsure`] the next start finds out, and no load of the table is taken until then.
pub async fn run(
    records: &dyn Records,
    subject: &dyn Subject,
    change: Change,
    halt: &Arc<Halt>,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Switched, Failed> {
    if dropped(&change).is_empty() {
        // Dropped parts are known, and recorded, once loads are held.
        records.keep(&change).await.map_err(Failed::NotRecorded)?;
    }
    let change = Mutex::new(change);
    let switched = loop {
        let before = subject.def();
        let step = Step { records, subject, change: &change, halt, before };
        match subject.switch(&step).await {
            Ok(Switched::NotYet) if goes_on() => subject.pause().await,
            ended => break ended,
        }
    };
    let change = change.into_inner();
    match &switched {
        // The record was deleted when the catalog was updated.
        Ok(Switched::Yes(_)) => {}
        Err(TableError::Unsure { table, reason }) => {
            tracing::error!(
                table,
                reason,
                "whether a table has changed is not known; the next start finds out"
            );
        }
        Ok(Switched::NotYet) | Err(_) => {
            if let Err(error) = records.forget(&change).await {
                tracing::warn!(
                    change = change.id.0,
                    error,
                    "the record of a change that came to nothing stays until the next start"
                );
            }
        }
    }
    switched.map_err(Failed::Table)
}

fn dropped(change: &Change) -> &[Dropped] {
    change.partitions().map_or(&[], |partitions| &partitions.dropped)
}

impl Step<'_> {
    #[must_use]
    pub const fn halt(&self) -> &Arc<Halt> {
        self.halt
    }

    /// Records the retained parts of dropped partitions; `None` if none is retained.
    #[must_use]
    pub fn leaving(&self) -> Option<&dyn Leaving> {
        if dropped(&self.change.lock()).is_empty() { None } else { Some(self) }
    }

    /// Updates the catalog, which is behind the Delta log, until it succeeds (`true`) or is left to the next start.
    pub async fn tell(&self, after: Arc<TableDef>) -> bool {
        let change = self.change.lock().clone();
        let beside = self.subject.beside().map(|def| {
            let left = change.definition_beside(&def);
            (def, left)
        });
        let table = (Arc::clone(&self.before), TableDef::clone(&after));
        let finished = Finished { change, table, beside };
        loop {
            match self.told(&finished).await {
                Ok(()) => return true,
                Err(error) if self.halt.is_at_once() => {
                    tracing::error!(
                        table = after.name,
                        error,
                        "the catalog lags behind a change; the next start completes it"
                    );
                    return false;
                }
                Err(error) => {
                    tracing::error!(
                        table = after.name,
                        error,
                        "the catalog can't be told of a change; it is tried again, and loads wait"
                    );
                    self.halt.doubts(&error);
                    self.subject.pause().await;
                }
            }
        }
    }

    async fn told(&self, finished: &Finished) -> Result<(), String> {
        self.records.finish(finished).await?;
        match &finished.beside {
            Some((_, left)) => self.subject.follow(Arc::new(left.clone())).await,
            None => Ok(()),
        }
    }
}

impl Leaving for Step<'_> {
    fn record(&self, files: Vec<KeptFile>) -> BoxFuture<'_, Result<(), String>> {
        let at_ms = host::unix_ms();
        let change = {
            let mut change = self.change.lock();
            if let Effect::Partitions(partitions) = &mut change.effect {
                for dropped in &mut partitions.dropped {
                    let id = dropped.kept.partition.id;
                    let its = files.iter().filter(|kept| kept.file.partition == Some(id));
                    dropped.kept.files = its.cloned().collect();
                    dropped.at_ms = at_ms;
                }
            }
            change.clone()
        };
        Box::pin(async move { self.records.keep(&change).await })
    }
}
