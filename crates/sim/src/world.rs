//! The common state of a simulation's clients: the server, the model, chance, and whether the server still lives.

use crate::backups::Kept;
use crate::channels::Channels;
use crate::counts::Counts;
use crate::dice::Dice;
use crate::engines::{self, Entry};
use crate::feeds::Feeds;
use crate::increments::Increments;
use crate::keyed::Keys;
use crate::machine::Machine;
use crate::model::{Model, Violation};
use crate::plan::Plan;
use crate::process::{Hardware, Process};
use crate::readers::Reader;
use crate::rejected::Rejected;
use crate::rights::Rights;
use crate::rows::{self, FileCache};
use crate::shares::Shares;
use crate::sleepers::Recorded;
use crate::trace::Trace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tributary_table::{Snapshot, Table};
use tributary_types::KeyModel;

/// One simulation.
pub struct World {
    pub plan: Plan,
    pub machine: Rc<Machine>,
    pub hardware: Hardware,
    pub trace: Trace,
    pub model: RefCell<Model>,
    pub feeds: RefCell<Feeds>,
    pub shares: RefCell<Shares>,
    pub increments: RefCell<Increments>,
    pub keys: RefCell<Keys>,
    pub channels: RefCell<Channels>,
    pub rejected: RefCell<Rejected>,
    pub rights: RefCell<Rights>,
    pub dice: RefCell<Dice>,
    pub counts: RefCell<Counts>,
    pub cache: FileCache,
    pub process: RefCell<Option<Rc<Process>>>,
    /// Tables of processes that are frozen.
    pub sleepers: RefCell<Vec<Arc<Table>>>,
    /// Changes that they make when they wake.
    pub recorded: RefCell<Vec<Recorded>>,
    /// Entries of another engine that the server may not have taken in.
    pub entries: RefCell<Vec<Entry>>,
    /// The log or a directory could not be made durable: a server would have ended itself.
    pub is_dead: Arc<AtomicBool>,
    pub violation: RefCell<Option<Violation>>,
    /// The last backup.
    pub backup: RefCell<Option<Kept>>,
    /// Held by a change of the catalog from its check to its end, as in the engine.
    pub changing: Rc<tokio::sync::Mutex<()>>,
    /// A server that only reads.
    pub reader: RefCell<Reader>,
    /// Clients that are not done.
    pub busy: Cell<u64>,
    /// Reads fail now and then, so a query may fail too.
    pub reads_may_fail: Cell<bool>,
}

impl World {
    /// Whether the server runs: only then does anybody get an answer.
    pub fn is_alive(&self) -> bool {
        !self.hardware.disk.is_off() && !self.is_dead.load(Ordering::Relaxed)
    }

    pub fn process(&self) -> Rc<Process> {
        Rc::clone(self.process.borrow().as_ref().expect("clients run only while the server does"))
    }

    /// Notes the first broken promise.
    pub fn check<T>(&self, checked: Result<T, Violation>) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(violation) => {
                self.violation.borrow_mut().get_or_insert(violation);
                None
            }
        }
    }

    pub fn violated(&self, text: String) {
        self.check::<()>(Err(Violation(text)));
    }

    pub fn throw<T>(&self, throw: impl FnOnce(&mut Dice) -> T) -> T {
        throw(&mut self.dice.borrow_mut())
    }

    pub fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.borrow_mut());
    }

    /// Waits up to that long.
    pub async fn think(&self, most_us: u64) {
        let micros = self.throw(|dice| dice.below(most_us + 1));
        self.machine.sleep(Duration::from_micros(micros)).await;
    }

    /// Checks in which order a snapshot that was taken just now has the rows of its memtable.
    pub fn check_order(&self, table: &Table, snapshot: &Snapshot) {
        if !snapshot.def.keys.keeps_all_rows() {
            return;
        }
        if !snapshot.files.is_empty() {
            self.model.borrow_mut().has_files(table.id());
        }
        let checked = self.model.borrow_mut().in_order(table.id(), &rows::in_memtable(snapshot));
        self.check(checked);
    }

    /// Reads a table as a query does, by its name, and checks the result.
    pub async fn query(&self, table: &Arc<Table>) {
        // A client that still holds the table's handle finds no name that was dropped.
        if self.process().table(table.id()).is_none() {
            return;
        }
        engines::taken_in(self, table);
        let expected = self.model.borrow().expected(table.id());
        let outcome = match table.settled().await {
            Ok(snapshot) => {
                self.check_order(table, &snapshot);
                rows::shown(table, &snapshot, &self.hardware.store, &self.cache).await
            }
            Err(error) => Err((error.to_string(), false)),
        };
        let keys = table.with_def(|def| def.keys);
        // Whether a load existed when its table was dropped is not checked.
        let is_dropped = !keys.keeps_all_rows() && self.process().table(table.id()).is_none();
        if !self.is_alive() || is_dropped {
            return;
        }
        match outcome {
            Ok(shown) => {
                self.count(|counts| counts.queries += 1);
                let mut model = self.model.borrow_mut();
                let checked = match keys {
                    KeyModel::Unique => model.winners_shown(&expected, &shown),
                    KeyModel::Aggregate => model.folds_shown(&expected, &shown),
                    KeyModel::Duplicate { .. } => model.shown(&expected, &shown),
                };
                drop(model);
                self.check(checked);
            }
            // A table that was dropped meanwhile has no files.
            Err(_) if self.process().table(table.id()).is_none() => {}
            Err((_, false)) if self.reads_may_fail.get() => {}
            // The keys of a file may be read while the disk fails.
            Err((_, false)) if !keys.keeps_all_rows() => {}
            Err((error, _)) => self.violated(format!("a query of table {}: {error}", table.id())),
        }
    }
}
