//! Turns of tables: one statement, load or job at a time changes the definition of a table.
//!
//! A change has the turn of its table from its check to its end, over all slow work: loads that have to end, flushes, the Delta
//! log. A table and its temporary partitions have one turn. Tables do not wait for each other, and [`Changing`], which all
//! share, is held only while the catalog and the names change together.
//!
//! A switch to other partitions or another schema keeps the turn until it has ended, even if its statement no longer waits for it.
//! When it has been in doubt for [`DOUBT_MAX`], statements that want the turn are refused; loads wait for it.
//!
//! Invariant: turns of several tables are taken in the order of their ids, and before [`Changing`].
//!
//! Not its business: the work of a change.

use crate::ddl::Ddl;
use crate::ddl::partitions::temporary::table_of_rows;
use crate::ddl::tables::Changing;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, watch};
use tributary_ingest::Halt;
use tributary_types::{ErrorCode, SqlError, TableDef, TableId};

/// How long a statement waits for a switch in doubt: its own, or another one of its table.
const DOUBT_MAX: Duration = Duration::from_secs(10);

/// The turns of all tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<HashMap<TableId, Claimed>>>);

/// The turn of a table, and the number of those who have it or wait for it.
#[derive(Debug)]
struct Claimed {
    claims: usize,
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The switch that has the turn.
    switch: watch::Sender<Option<Switch>>,
}

#[derive(Debug)]
struct Switch {
    halt: Arc<Halt>,
    /// It has been in doubt for long.
    in_doubt: bool,
}

impl Place {
    /// Waits until a switch has been in doubt for long, and returns the reason.
    async fn in_doubt(&self) -> String {
        let mut switch = self.switch.subscribe();
        let is_in_doubt = |switch: &Option<Switch>| switch.as_ref().is_some_and(|switch| switch.in_doubt);
        // The sender lives as long as this.
        let seen = switch.wait_for(is_in_doubt).await;
        let halt = seen.ok().and_then(|switch| switch.as_ref().map(|switch| Arc::clone(&switch.halt)));
        halt.and_then(|halt| halt.doubt()).unwrap_or_default()
    }
}

/// A claim to the turn of a table, by its holder or while it waits.
#[derive(Debug)]
struct Claim {
    turns: Turns,
    table: TableId,
    place: Arc<Place>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut all = self.turns.0.lock();
        if let Some(claimed) = all.get_mut(&self.table) {
            claimed.claims -= 1;
            if claimed.claims == 0 {
                all.remove(&self.table);
            }
        }
    }
}

#[derive(Debug)]
struct Held {
    // Released before the claim.
    _turn: OwnedMutexGuard<()>,
    claim: Claim,
}

/// The right to change a table, until all clones are dropped.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct TableTurn(Arc<Held>);

impl TableTurn {
    /// Whether this is the turn of the table with that definition.
    pub fn is_of(&self, def: &TableDef) -> bool {
        self.0.claim.table == table_of_rows(def)
    }

    /// Whether a switch of the table is under way.
    pub fn is_switching(&self) -> bool {
        self.0.claim.place.switch.borrow().is_some()
    }

    /// Waits until the switch of the table has been in doubt for long, and returns the reason.
    pub async fn in_doubt(&self) -> String {
        self.0.claim.place.in_doubt().await
    }

    /// Registers a switch, which keeps the turn.
    pub fn begin_switch(&self, halt: Arc<Halt>) -> RunningSwitch {
        let switch = Switch { halt: Arc::clone(&halt), in_doubt: false };
        let before = self.0.claim.place.switch.send_replace(Some(switch));
        debug_assert!(before.is_none(), "a table has one switch at a time");
        RunningSwitch { turn: self.clone(), halt }
    }
}

/// A registered switch, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct RunningSwitch {
    turn: TableTurn,
    halt: Arc<Halt>,
}

impl RunningSwitch {
    /// Takes the steps of the switch. When they have been in doubt for long, statements stop waiting for it.
    pub async fn run<T>(&self, steps: impl Future<Output = T>) -> T {
        tokio::pin!(steps);
        tokio::select! {
            biased;
            ended = &mut steps => return ended,
            () = doubt_lasts(&self.halt) => {}
        }
        self.turn.0.claim.place.switch.send_modify(|switch| {
            if let Some(switch) = switch {
                switch.in_doubt = true;
            }
        });
        steps.await
    }
}

impl Drop for RunningSwitch {
    fn drop(&mut self) {
        self.turn.0.claim.place.switch.send_replace(None);
    }
}

/// Waits until a change has been in doubt for [`DOUBT_MAX`].
async fn doubt_lasts(halt: &Halt) {
    halt.in_doubt().await;
    tokio::time::sleep(DOUBT_MAX).await;
}

/// The turn of a table is kept by a switch in doubt.
#[derive(Debug)]
pub(crate) struct InDoubt {
    reason: String,
}

impl InDoubt {
    /// The answer to a statement about the table of that name.
    pub fn refusal(&self, name: &str) -> SqlError {
        let reason = &self.reason;
        SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "Table[{name}]'s last change is in doubt ({reason}). Do not allow doing ALTER ops or DROP without FORCE until it is known how it ended"
            ),
        )
    }
}

impl Turns {
    fn claim(&self, table: TableId) -> Claim {
        let mut all = self.0.lock();
        let claimed = all.entry(table).or_insert_with(|| {
            let turn = Arc::default();
            Claimed { claims: 0, place: Arc::new(Place { turn, switch: watch::Sender::new(None) }) }
        });
        claimed.claims += 1;
        Claim { turns: self.clone(), table, place: Arc::clone(&claimed.place) }
    }

    /// Waits for the turn of a table, as long as it takes.
    pub async fn wait(&self, table: TableId) -> TableTurn {
        let claim = self.claim(table);
        let turn = Arc::clone(&claim.place.turn).lock_owned().await;
        TableTurn(Arc::new(Held { _turn: turn, claim }))
    }

    /// Waits for the turn of a table, unless a switch in doubt has it.
    pub async fn take(&self, table: TableId) -> Result<TableTurn, InDoubt> {
        let claim = self.claim(table);
        let turn = tokio::select! {
            biased;
            turn = Arc::clone(&claim.place.turn).lock_owned() => turn,
            reason = claim.place.in_doubt() => return Err(InDoubt { reason }),
        };
        Ok(TableTurn(Arc::new(Held { _turn: turn, claim })))
    }

    /// The turn of a table that is free.
    pub fn try_take(&self, table: TableId) -> Option<TableTurn> {
        let claim = self.claim(table);
        let turn = Arc::clone(&claim.place.turn).try_lock_owned().ok()?;
        Some(TableTurn(Arc::new(Held { _turn: turn, claim })))
    }

    /// Ends the switch of a table at once, and waits until nothing of it is under way.
    pub async fn end_switch(&self, table: TableId) {
        let Some(place) = self.0.lock().get(&table).map(|claimed| Arc::clone(&claimed.place)) else { return };
        let mut switch = place.switch.subscribe();
        loop {
            let halt = switch.borrow_and_update().as_ref().map(|switch| Arc::clone(&switch.halt));
            let Some(halt) = halt else { return };
            halt.at_once();
            // The sender lives as long as this.
            drop(switch.changed().await);
        }
    }

    /// Ends all switches; the next start finds out how those ended that are in doubt.
    pub async fn end_switches(&self) {
        let tables: Vec<TableId> = self.0.lock().keys().copied().collect();
        for table in tables {
            self.end_switch(table).await;
        }
    }
}

impl Ddl {
    /// Waits for the right to change the names of databases, tables and views together with the catalog. It is held briefly: not
    /// while a table's loads, its files or its Delta log are waited for.
    pub(crate) async fn changing(&self) -> Changing<'_> {
        Changing::new(self, self.changing.lock().await)
    }

    /// Waits for the turn of a table.
    ///
    /// # Errors
    /// A change of the table is in doubt.
    pub(crate) async fn turn_of(&self, def: &TableDef) -> Result<TableTurn, SqlError> {
        self.turns.take(table_of_rows(def)).await.map_err(|in_doubt| in_doubt.refusal(&def.name))
    }

    /// Waits for the turn of a table, also for a change in doubt.
    pub(crate) async fn wait_for_turn(&self, def: &TableDef) -> TableTurn {
        self.turns.wait(table_of_rows(def)).await
    }

    /// Waits for the turn of a table that is dropped. A drop by force does not wait for a change in doubt, and ends it: `None`.
    ///
    /// # Errors
    /// A change of the table is in doubt, and the drop is not by force.
    pub(crate) async fn turn_to_drop(
        &self,
        def: &TableDef,
        is_forced: bool,
    ) -> Result<Option<TableTurn>, SqlError> {
        match self.turns.take(table_of_rows(def)).await {
            Ok(turn) => Ok(Some(turn)),
            Err(_) if is_forced => Ok(None),
            Err(in_doubt) => Err(in_doubt.refusal(&def.name)),
        }
    }

    /// [`Ddl::turn_to_drop`] for all tables of a database.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn turns_to_drop(&self, db: &str, is_forced: bool) -> Result<DatabaseTurns, SqlError> {
        let defs = self.names.tables(db).into_iter().map(|table| table.def());
        // A table's own name rather than that of its temporary partitions is in errors.
        let mut tables: BTreeMap<TableId, Arc<TableDef>> = BTreeMap::new();
        for def in defs {
            let id = table_of_rows(&def);
            if id == def.id || !tables.contains_key(&id) {
                tables.insert(id, def);
            }
        }
        let mut turns = Vec::with_capacity(tables.len());
        for def in tables.values() {
            turns.extend(self.turn_to_drop(def, is_forced).await?);
        }
        Ok(DatabaseTurns { tables: tables.into_keys().collect(), _turns: turns })
    }
}

/// The turns of the tables of a database.
#[derive(Debug)]
pub(crate) struct DatabaseTurns {
    tables: BTreeSet<TableId>,
    _turns: Vec<TableTurn>,
}

impl DatabaseTurns {
    /// Whether no table was added to the database since.
    pub fn are_all(&self, ddl: &Ddl, db: &str) -> bool {
        let has = |def: &TableDef| self.tables.contains(&table_of_rows(def));
        ddl.names.tables(db).iter().all(|table| table.with_def(has))
    }
}

#[cfg(test)]
mod tests;
