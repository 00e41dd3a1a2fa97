//! Loads that a client may send again: by an idempotency key, or by the offset of a channel.
//!
//! A load takes its name when its rows were decoded, right before its commit, so that a client that disappears while it sends keeps no
//! other from it. Before, it is only looked whether the answer is known already.
//!
//! Not here: which loads were stored ([`tributary_ingest::keys`]), and the words of answers.

use super::{Load, LoadCommitted, LoadError, LoadLimits, Loads, Outcome};
use std::sync::Arc;
use tributary_decode::Counts;
use tributary_ingest::{
    AnsweredAs, Claimed, FirstAnswer, IngestError, LoadRows, LoadTraits, NamedLoad, Route, TransactionStatus,
    effective_mode,
};
use tributary_table::Table;
use tributary_types::{GroupCommitMode, Requirement};

impl Loads {
    /// The answer to a load that was loaded before, once it holds for this one, too: asynchronous loads are answered before they are
    /// visible, and others not.
    ///
    /// # Errors
    /// The name was used for other bytes, or the channel can't have it next; the first load will not be visible.
    pub async fn first_answer(
        &self,
        table: &Table,
        load: &NamedLoad,
        traits: &LoadTraits,
    ) -> Result<Option<FirstAnswer>, IngestError> {
        let Some(first) = self.ingest.first_answer(table.id(), &load.name)? else { return Ok(None) };
        first.check(load)?;
        let mode = table.with_def(|def| effective_mode(traits.requested, &def.properties));
        let sees_it = mode != GroupCommitMode::Async || traits.required == Some(Requirement::Visible);
        self.hold(&first, sees_it).await?;
        Ok(Some(first))
    }

    /// Waits until the first load is visible, if the client of its repetition is to see it.
    async fn hold(&self, first: &FirstAnswer, sees_it: bool) -> Result<(), IngestError> {
        if sees_it && first.answered_as == AnsweredAs::GroupAsync {
            self.ingest.wait_visible(first.txn).await?;
        }
        Ok(())
    }
}

/// Whether a load is the first with its name.
pub(super) enum Claim {
    /// It is, or it has none.
    Key(Option<Arc<tributary_ingest::Claim>>),
    Repeat(Outcome),
}

impl Load {
    /// Gives the load a name, by which it may have been loaded before.
    pub fn set_name(&mut self, named: Box<NamedLoad>) {
        self.extras.get_or_insert_default().named = Some(named);
    }

    pub(super) fn is_named(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.named.is_some())
    }

    /// Takes the load's name, if it has one, for its rows, or ends the load with the answer to the first one.
    pub(super) async fn claim(
        &mut self,
        loads: &Loads,
        counts: Counts,
        rows: &LoadRows,
        limits: &LoadLimits<'_>,
    ) -> Result<Claim, LoadError> {
        let Some(named) = self.extras.as_mut().and_then(|extras| extras.named.take()) else {
            return Ok(Claim::Key(None));
        };
        let table = self.sink.table().id();
        let sees_it = self.route != Route::GroupAsync;
        let claim = async {
            let claimed = loads.ingest.claim(table, &named, counts, limits.timeout).await?;
            if let Claimed::Repeat(first) = &claimed {
                loads.hold(first, sees_it).await?;
            }
            Ok::<_, IngestError>(claimed)
        };
        let claimed = match limits.interrupt.wait(claim).await {
            Ok(Ok(Claimed::First(claim))) => return Ok(Claim::Key(Some(claim))),
            Ok(Ok(Claimed::Repeat(first))) => Ok(Claim::Repeat(Outcome::repeated(first, self))),
            Ok(Err(error)) => Err(error.into()),
            Err(interrupted) => Err(LoadError::Interrupted(interrupted)),
        };
        let reason = match &claimed {
            Ok(_) => "the load was loaded before".to_owned(),
            Err(error) => error.to_string(),
        };
        self.sink.table().discard(rows.files()).await;
        if let Some(reservation) = self.reservation.take() {
            reservation.abort(reason);
        }
        claimed
    }
}

impl Outcome {
    /// The outcome of a load that was loaded before.
    fn repeated(first: FirstAnswer, load: &Load) -> Self {
        let counts = Box::new(first.counts);
        Self { committed: Some(first.into()), route: load.route, repeated: Some(counts) }
    }
}

impl From<FirstAnswer> for LoadCommitted {
    fn from(first: FirstAnswer) -> Self {
        let status = match first.answered_as {
            AnsweredAs::GroupAsync | AnsweredAs::GroupSync => TransactionStatus::Prepare,
            AnsweredAs::Own => TransactionStatus::Visible,
        };
        Self { label: first.label, txn: first.txn, status, details: None }
    }
}
