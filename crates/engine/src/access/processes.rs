//! The current connections, for SHOW PROCESSLIST and KILL.

use crate::access::interrupt::Stop;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tributary_sql::{outline, redacted};
use tributary_types::Principal;

/// The longest statement that the list shows, in bytes.
const STATEMENT_SHOWN_BYTES_MAX: usize = 1024;

/// One connection.
#[derive(Debug)]
pub(crate) struct Process {
    pub id: u32,
    pub peer: Arc<str>,
    pub login_unix_ms: i64,
    /// Ends the statement that runs and leaves the connection.
    pub stop: Stop,
    kill: CancellationToken,
    /// Whether the text of its statement was parsed: until then it may have secrets anywhere.
    is_legible: AtomicBool,
    state: Mutex<ProcessState>,
}

/// The current state of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ProcessState {
    /// The logged-in user, which `COM_CHANGE_USER` changes.
    pub principal: Principal,
    pub database: Option<String>,
    /// The statement that runs or ran last; a buffer that is used again.
    pub statement: String,
    /// The length of the whole statement.
    pub statement_bytes: usize,
    pub is_running: bool,
    pub since: Instant,
}

impl Process {
    pub fn state(&self) -> ProcessState {
        self.state.lock().clone()
    }

    /// Whether a statement runs.
    pub fn is_running(&self) -> bool {
        self.state.lock().is_running
    }

    /// Records the start of a statement.
    pub fn begin(&self, database: Option<&str>, statement: &str) {
        self.is_legible.store(false, Ordering::Relaxed);
        self.stop.clear();
        if self.kill.is_cancelled() {
            // Killed between its last command and this one.
            self.stop.set();
        }
        let mut end = statement.len().min(STATEMENT_SHOWN_BYTES_MAX);
        while !statement.is_char_boundary(end) {
            end -= 1;
        }
        let mut state = self.state.lock();
        if state.database.as_deref() != database {
            state.database = database.map(str::to_owned);
        }
        state.statement.clear();
        state.statement.push_str(&statement[..end]);
        state.statement_bytes = statement.len();
        state.is_running = true;
        state.since = Instant::now();
    }

    /// Records that the text of the statement was parsed.
    pub fn parsed(&self) {
        self.is_legible.store(true, Ordering::Relaxed);
    }

    /// The statement that runs, without secrets; `None` if none does.
    pub fn shown_statement(&self) -> Option<String> {
        let (state, is_legible) = (self.state(), self.is_legible.load(Ordering::Relaxed));
        state.is_running.then(|| match is_legible {
            true => redacted(&state.statement).text.into_owned(),
            false => outline(&state.statement, state.statement_bytes),
        })
    }

    /// Whether it is a connection of the same user, who did not come with a token that is limited to some rights.
    pub fn is_of(&self, principal: &Principal) -> bool {
        principal.limit().is_none() && self.is_of_account(principal.user(), principal.account_host())
    }

    /// Whether it is a connection of the user of that name and host.
    pub fn is_of_account(&self, user: &str, host: &str) -> bool {
        let state = self.state.lock();
        state.principal.user() == user && state.principal.account_host() == host
    }

    /// Ends the connection, and the statement that it runs.
    pub fn kill(&self) {
        self.kill.cancel();
        self.stop.set();
    }

    /// The statement has ended.
    pub fn end(&self) {
        let mut state = self.state.lock();
        if state.is_running {
            state.is_running = false;
            state.since = Instant::now();
        }
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    last_id: AtomicU32,
    by_id: Mutex<BTreeMap<u32, Arc<Process>>>,
}

impl Processes {
    /// The number of a new connection, 1 or more.
    pub fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Lists a new connection, unless its user has `most` others already.
    pub fn enter(
        &self,
        id: u32,
        principal: Principal,
        peer: Arc<str>,
        login_unix_ms: i64,
        kill: CancellationToken,
        most: Option<u64>,
    ) -> Option<Arc<Process>> {
        let state = ProcessState {
            principal,
            database: None,
            statement: String::new(),
            statement_bytes: 0,
            is_running: false,
            since: Instant::now(),
        };
        let process = Arc::new(Process {
            id,
            peer,
            login_unix_ms,
            stop: Stop::default(),
            kill,
            is_legible: AtomicBool::new(false),
            state: Mutex::new(state),
        });
        let mut by_id = self.by_id.lock();
        if !has_place(&by_id, id, &process.state.lock().principal, most) {
            return None;
        }
        by_id.insert(id, Arc::clone(&process));
        Some(process)
    }

    /// Records that another user has logged in on a connection, unless it has `most` others already. Returns whether it may.
    pub fn change_user(&self, process: &Process, principal: &Principal, most: Option<u64>) -> bool {
        let by_id = self.by_id.lock();
        let may = has_place(&by_id, process.id, principal, most);
        if may {
            process.state.lock().principal = principal.clone();
        }
        may
    }

    pub fn leave(&self, id: u32) {
        self.by_id.lock().remove(&id);
    }

    pub fn all(&self) -> Vec<Arc<Process>> {
        self.by_id.lock().values().cloned().collect()
    }

    pub fn find(&self, id: u32) -> Option<Arc<Process>> {
        self.by_id.lock().get(&id).cloned()
    }
}

/// Whether the user has fewer than `most` connections besides this one.
fn has_place(by_id: &BTreeMap<u32, Arc<Process>>, id: u32, principal: &Principal, most: Option<u64>) -> bool {
    let is_same =
        |other: &Process| other.is_of_account(principal.user(), principal.account_host()) && other.id != id;
    let others = || by_id.values().filter(|other| is_same(other)).count() as u64;
    most.is_none_or(|most| others() < most)
}
