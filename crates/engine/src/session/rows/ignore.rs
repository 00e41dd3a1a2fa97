//! `INSERT IGNORE`, and `LOAD DATA … IGNORE`: rows whose keys exist are left out, and bad rows are warnings instead of errors.
//!
//! Rows of a table with UNIQUE KEY are loaded as partial updates that give no column but their keys, so the table itself decides, in
//! the order of the log: the first row of a key stays, whichever loads commit meanwhile. New keys are counted right before the commit.
//! Statements that change rows take turns with these, so that of two the second one counts the rows of the first.

use crate::answer::{Answer, Done};
use crate::load::partial_update::KnownKeys;
use crate::session::EngineSession;
use std::sync::{Arc, OnceLock};
use tokio::sync::OwnedMutexGuard;
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError};

/// A running INSERT IGNORE into a table with UNIQUE KEY.
pub(super) struct Ignoring {
    table: Arc<Table>,
    new_keys: Arc<OnceLock<u64>>,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Ignoring {
    /// How many rows were inserted, once that is known.
    pub(super) fn inserted(&self) -> Option<u64> {
        self.new_keys.get().copied()
    }

    /// The counter of the rows' new keys.
    pub(super) fn counter(&self) -> KnownKeys {
        KnownKeys::counted(&self.new_keys)
    }
}

impl EngineSession {
    /// Begins INSERT IGNORE into the table, without its turn. `None`: no row of it replaces another, so that none is left out.
    ///
    /// # Errors
    /// The table decides by other columns than its key which rows stay.
    pub(super) async fn begin_ignoring(&mut self, table: &Arc<Table>) -> Result<Option<Ignoring>, SqlError> {
        self.running.ignores = true;
        let def = table.def();
        if def.keys.keeps_all_rows() {
            return Ok(None);
        }
        if !def.keys.is_unique() {
            return Err(refused("the table has an AGGREGATE KEY, whose columns say how rows are merged"));
        }
        if def.schema.sequence.is_some() {
            return Err(refused("the table has a sequence, which says which row of a key stays"));
        }
        self.engine.loads.ready_to_update(table).await?;
        Ok(Some(Ignoring { table: Arc::clone(table), new_keys: Arc::default(), turn: None }))
    }

    /// Waits for the turn of the table, which the rows need for their commit only: nobody waits for a client that sends them.
    pub(super) async fn take_turn(&mut self, ignoring: &mut Ignoring) -> Result<(), SqlError> {
        if self.transaction.is_none() {
            ignoring.turn = Some(self.turn_to_change(&ignoring.table).await?);
        }
        Ok(())
    }

    /// The answer with the number of inserted rows, and a note of the others.
    pub(super) fn answer_ignoring(&mut self, answer: Answer, ignoring: &Ignoring) -> Answer {
        let (done, inserted) = match (answer, ignoring.inserted()) {
            (Answer::Done(done), Some(inserted)) => (done, inserted),
            // There were no rows, or they were loaded before.
            (answer, _) => return answer,
        };
        let left_out = done.affected_rows.saturating_sub(inserted);
        let answer = Answer::Done(Done { affected_rows: inserted, ..done });
        match left_out {
            0 => answer,
            1 => self.with_notes(answer, vec!["1 row is left out: its key exists".to_owned()]),
            rows => self.with_notes(answer, vec![format!("{rows} rows are left out: their keys exist")]),
        }
    }
}

fn refused(why: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::NotSupported,
        format!("INSERT IGNORE is not possible here: {why}: use INSERT INTO"),
    )
}
