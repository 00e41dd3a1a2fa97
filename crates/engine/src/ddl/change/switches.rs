//! Tables that are being switched to other partitions or another schema, from the first step to the last.
//!
//! A switch holds the lock of all changes, like statements, until it has been in doubt for [`DOUBT_MAX`]; then it releases the
//! lock and continues alone, so that other tables can be changed. No other change touches its own table as long as it is
//! registered here.
//!
//! Not its business: the work of a switch.

use crate::ddl::tables::Changing;
use crate::engine::Engine;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tributary_ingest::Halt;
use tributary_types::{ErrorCode, SqlError, TableDef, TableId};

/// How long a switch in doubt keeps all other changes waiting.
const DOUBT_MAX: Duration = Duration::from_secs(10);
/// How often a switch is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The switches under way.
#[derive(Debug, Default)]
pub(crate) struct Switches(Arc<Mutex<HashMap<TableId, Arc<Switching>>>>);

/// The holder of the lock of all changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The statement that started the switch.
    Begun,
    /// The statement that started it, until it has ended: the outcome is known.
    Known,
    /// Others.
    GivenBack,
}

/// A switch under way.
#[derive(Debug)]
pub(crate) struct Switching {
    pub halt: Arc<Halt>,
    turn: Mutex<Turn>,
    ended: watch::Sender<bool>,
}

impl Switching {
    /// Waits until the switch has been in doubt for long, and returns the reason.
    pub async fn in_doubt(&self) -> String {
        while self.halt.doubt().is_none() {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(DOUBT_MAX).await;
        self.halt.doubt().unwrap_or_default()
    }

    /// Records that the statement behind the switch no longer waits for it. `false` if it is about to end.
    pub fn give_back(&self) -> bool {
        let mut turn = self.turn.lock();
        if *turn == Turn::Begun {
            *turn = Turn::GivenBack;
        }
        *turn == Turn::GivenBack
    }

    /// Records that the outcome of the switch is known. `true` if its statement still waits for it.
    pub fn is_known(&self) -> bool {
        let mut turn = self.turn.lock();
        if *turn == Turn::Begun {
            *turn = Turn::Known;
        }
        *turn == Turn::Known
    }

    /// Waits until nothing of the switch is under way.
    pub async fn ended(&self) {
        // The sender lives as long as this.
        drop(self.ended.subscribe().wait_for(|ended| *ended).await);
    }
}

/// A registered switch, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Registered {
    all: Arc<Mutex<HashMap<TableId, Arc<Switching>>>>,
    table: TableId,
    pub switching: Arc<Switching>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.all.lock().remove(&self.table);
        self.switching.ended.send_replace(true);
    }
}

/// Releases the lock when it is dropped: the statement no longer waits.
pub(crate) struct Waiting<'a>(pub &'a Switching);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Switches {
    /// Registers a switch. The table must have none, and the caller must hold the lock of all changes.
    pub fn begin(&self, table: TableId, halt: Arc<Halt>) -> Registered {
        let ended = watch::Sender::new(false);
        let switching = Arc::new(Switching { halt, turn: Mutex::new(Turn::Begun), ended });
        self.0.lock().insert(table, Arc::clone(&switching));
        Registered { all: Arc::clone(&self.0), table, switching }
    }

    pub fn of(&self, table: TableId) -> Option<Arc<Switching>> {
        self.0.lock().get(&table).cloned()
    }
}

impl Engine {
    /// Refuses a change of a table with a switch in doubt.
    ///
    /// # Errors
    /// It has one.
    pub(crate) fn refuse_while_switching(&self, def: &TableDef) -> Result<(), SqlError> {
        let Some(switching) = self.switches.of(def.id) else { return Ok(()) };
        let reason = switching.halt.doubt().unwrap_or_default();
        Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "Table[{}]'s last change is in doubt ({reason}). Do not allow doing ALTER ops or DROP without FORCE until it is known how it ended",
                def.name
            ),
        ))
    }

    /// [`Engine::changing`] for a change of a table, which waits for a switch of it.
    pub(crate) async fn changing_table(&self, table: TableId) -> Changing<'_> {
        loop {
            let turn = self.changing().await;
            let Some(switching) = self.switches.of(table) else { return turn };
            drop(turn);
            switching.ended().await;
        }
    }

    /// Takes the lock of all changes for the rest of a switch; `None` if it must end at once.
    pub(crate) async fn changing_unless(&self, halt: &Halt) -> Option<Changing<'_>> {
        loop {
            if halt.is_at_once() {
                return None;
            }
            if let Ok(turn) = tokio::time::timeout(LOOK, self.changing()).await {
                return Some(turn);
            }
        }
    }

    /// Ends the switch of a table that is dropped.
    pub(crate) async fn end_switch(&self, table: TableId) {
        if let Some(switching) = self.switches.of(table) {
            switching.halt.at_once();
            switching.ended().await;
        }
    }

    /// Ends all switches; the next start finds out how those ended that are in doubt.
    pub(crate) async fn end_switches(&self) {
        let tables: Vec<TableId> = self.switches.0.lock().keys().copied().collect();
        for table in tables {
            self.end_switch(table).await;
        }
    }
}
