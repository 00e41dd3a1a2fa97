//! The beginning and the end of a statement: its admission, and what its record says.
//!
//! Not here: the statement's work.

use super::EngineSession;
use super::names::Named;
use super::prepared::KeptStatement;
use super::rows::changed_rows::Unchanged;
use crate::access::finished::{Door, Failure, FinishedRequest, LoadFacts, Stated};
use crate::access::spans::Trace;
use crate::audit::Admission;
use crate::load::LoadDetails;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;
use tributary_sql::Change;
use tributary_traces::Traced;
use tributary_types::{ErrorCode, SqlError, TraceParent};

/// The kind of SET.
const SET: &str = "SET";
/// The longest refused text that is parsed for its record, in bytes.
const PARSED_BYTES_MAX: usize = 64 << 10;

/// Facts about the statement that runs.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Its kind, once it was parsed.
    pub kind: Option<&'static str>,
    /// Its effect on the server.
    change: Option<Change>,
    /// When it began, if its answer is to have details or it is traced.
    pub begun: Option<Instant>,
    /// Its place in a trace, if it is traced.
    traced: Option<Traced>,
    /// Those of its load, if it is one and they are wanted.
    pub details: Option<LoadDetails>,
    /// The first value that AUTO_INCREMENT has given to its rows.
    pub generated: Option<i64>,
    /// Whether it has set what SHOW LAST INSERT shows.
    pub has_inserted: bool,
    /// The name of its load, until that takes it.
    pub named: Option<Box<Named>>,
    /// The session's variables have named its load.
    pub uses_up_name: bool,
    /// It is an INSERT IGNORE: bad values and rows are warnings.
    pub ignores: bool,
    /// It is an UPDATE whose answer counts changed rows: the rows that it found and did not change.
    pub unchanged: Option<Arc<Unchanged>>,
    admission: Option<Admission>,
}

/// The rows and bytes of a statement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Volume {
    pub affected_rows: u64,
    pub returned_rows: u64,
    pub received_bytes: u64,
}

impl EngineSession {
    /// A statement of the client begins, which has this text.
    ///
    /// # Errors
    /// Its end could not be recorded, and nothing runs without a record.
    pub(crate) fn begin_statement(&mut self, text: &str) -> Result<(), SqlError> {
        self.process.begin(self.database.as_deref(), text);
        self.pending_load = None;
        let traces = &self.engine.requests.traces;
        let traced = traces.decide(|| self.trace_parent.take().or_else(|| TraceParent::of_statement(text)));
        self.running = Running { begun: self.details_begin(traced), traced, ..Running::default() };
        self.running.admission = self.engine.requests.admit()?;
        self.running.named = self.read_name(text);
        Ok(())
    }

    /// A prepared statement begins.
    ///
    /// # Errors
    /// As [`EngineSession::begin_statement`].
    pub(super) fn begin_prepared(&mut self, statement: &KeptStatement) -> Result<(), SqlError> {
        self.process.begin(self.database.as_deref(), statement.text());
        let traced = self.engine.requests.traces.decide(|| None);
        self.running = Running { begun: self.details_begin(traced), traced, ..Running::default() };
        self.parsed(statement.kind(), statement.change());
        self.running.named = self.read_name(statement.text());
        if !statement.is_values_insert() || self.records_prepared() {
            self.running.admission = self.engine.requests.admit()?;
        }
        Ok(())
    }

    /// The time now, if the statement's answer is to have details or it is traced.
    fn details_begin(&self, traced: Option<Traced>) -> Option<Instant> {
        (self.variables.values().show_load_details || traced.is_some()).then(Instant::now)
    }

    /// The text was parsed, and is a statement of this kind with this effect.
    pub(super) fn parsed(&mut self, kind: &'static str, change: Option<Change>) {
        self.running.kind = Some(kind);
        self.running.change = change;
        // `SET passwrod = 'x'` is a statement until the variable is looked for.
        if kind != SET {
            self.process.parsed();
        }
    }

    /// Whether executions of prepared INSERT … VALUES are recorded.
    fn records_prepared(&self) -> bool {
        self.variables.values().enable_prepared_stmt_audit_log || self.engine.requests.audit.has_prepared()
    }

    /// The command has been answered.
    pub(crate) fn end_statement(&self) {
        self.process.end();
    }

    /// The outcome as the client is told it: with the verdict on a retry, if the session shows details.
    pub(crate) fn told(&self, outcome: Result<(), SqlError>) -> Result<(), SqlError> {
        match outcome {
            Err(mut error) if self.variables.values().show_load_details => {
                let _ = write!(error.message, " [retry: {}]", error.retry);
                Err(error)
            }
            outcome => outcome,
        }
    }

    /// Records the end of a statement.
    pub(crate) fn finished(
        &mut self,
        text: &str,
        begun: Instant,
        volume: Volume,
        outcome: &Result<(), SqlError>,
    ) {
        if self.has_used_name(self.running.kind) {
            self.use_up_name();
        }
        let Running { kind, change, has_inserted, admission, traced, details, .. } =
            std::mem::take(&mut self.running);
        let kind = kind.filter(|kind| *kind != SET || !is_misspelt(outcome));
        let kind = kind.or_else(|| self.kind_of_refused(text, outcome));
        let stated = kind.map_or(Stated::Illegible(text), |kind| Stated::Statement(text, kind));
        let request = self.request(self.door, stated, begun, volume, outcome, has_inserted);
        let stages = details.map(|details| details.stages(request.took));
        let trace = Trace::Decided(traced, stages.as_ref().map_or(&[], |stages| stages));
        self.engine.requests.finished(&FinishedRequest { change, trace, ..request }, admission);
    }

    /// Records the end of a command that is no statement, in words of the server.
    pub(crate) fn finished_command(
        &self,
        words: &str,
        kind: &'static str,
        begun: Instant,
        outcome: &Result<(), SqlError>,
    ) {
        let stated = Stated::Plain(words, kind);
        let request = self.request(self.door, stated, begun, Volume::default(), outcome, false);
        self.engine.requests.finished(&request, None);
    }

    /// Records the end of an execution of a prepared statement.
    pub(crate) fn finished_prepared(
        &mut self,
        id: u32,
        begun: Instant,
        volume: Volume,
        outcome: &Result<(), SqlError>,
    ) {
        if self.has_used_name(self.running.kind) {
            self.use_up_name();
        }
        let Running { change, has_inserted, admission, traced, details, .. } =
            std::mem::take(&mut self.running);
        let statement = self.statements.get(&id);
        let is_hot = statement.is_some_and(KeptStatement::is_values_insert);
        let stated = match statement {
            Some(statement) if is_misspelt(outcome) => Stated::Illegible(statement.text()),
            Some(statement) => Stated::Statement(statement.text(), statement.kind()),
            None => Stated::Plain("EXECUTE of an unknown prepared statement", "EXECUTE"),
        };
        let door = self.door.of_prepared();
        let request = self.request(door, stated, begun, volume, outcome, has_inserted);
        let is_recorded = outcome.is_err() || !is_hot || self.records_prepared();
        let stages = details.map(|details| details.stages(request.took));
        let trace = Trace::Decided(traced, stages.as_ref().map_or(&[], |stages| stages));
        self.engine.requests.finished(&FinishedRequest { change, is_recorded, trace, ..request }, admission);
    }

    /// Records that the connection's user has changed, or could not.
    pub(crate) fn changed_user(
        &self,
        user: &str,
        database: Option<&str>,
        begun: Instant,
        outcome: &Result<(), SqlError>,
    ) {
        let Ok(peer) = self.process.peer.parse() else { return };
        let login = Login { door: Door::MysqlLogin, id: self.id, user, peer, database };
        logged_in(&self.engine, &login, begun, outcome.as_ref().copied(), None);
    }

    /// Records a statement that could not be prepared.
    pub(crate) fn not_prepared(&mut self, text: &str, begun: Instant, outcome: &Result<(), SqlError>) {
        let kind = self.running.kind.take().or_else(|| self.kind_of_refused(text, outcome));
        let stated = kind.map_or(Stated::Illegible(text), |kind| Stated::Statement(text, kind));
        let volume = Volume { received_bytes: text.len() as u64, ..Volume::default() };
        let request = self.request(self.door.of_prepared(), stated, begun, volume, outcome, false);
        self.engine.requests.finished(&request, None);
    }

    /// The kind of a statement that was refused before all of it was read, if it is one.
    fn kind_of_refused(&self, text: &str, outcome: &Result<(), SqlError>) -> Option<&'static str> {
        let error = outcome.as_ref().err()?;
        let is_statement = error.code != ErrorCode::Syntax && !is_misspelt(outcome);
        let is_wanted = is_statement && self.engine.requests.audit.is_on();
        let statement =
            (is_wanted && text.len() <= PARSED_BYTES_MAX).then(|| tributary_sql::parse(text).ok())?;
        statement.map(|statement| statement.kind())
    }

    fn request<'a>(
        &'a self,
        door: Door,
        stated: Stated<'a>,
        begun: Instant,
        volume: Volume,
        outcome: &'a Result<(), SqlError>,
        has_inserted: bool,
    ) -> FinishedRequest<'a> {
        let last = self.last_insert.as_ref().filter(|_| has_inserted);
        let load = last.map_or_else(LoadFacts::default, |last| LoadFacts {
            table: Some(&last.table.name),
            format: None,
            txn: Some(last.txn.0),
            label: Some(last.label.as_str()),
        });
        FinishedRequest {
            connection: Some((self.id, &self.process.peer)),
            db: self.database.as_deref(),
            load,
            affected_rows: volume.affected_rows,
            returned_rows: volume.returned_rows,
            received_bytes: volume.received_bytes,
            error: outcome.as_ref().err().map(Failure::from),
            ..FinishedRequest::new(&self.principal, door, stated, begun.elapsed())
        }
    }

    /// The text of the statement that runs or ran last, or its beginning.
    pub(crate) fn last_text(&self) -> String {
        self.process.state().statement
    }
}

/// Whether a statement names a variable that does not exist. Its value may be meant for something else.
fn is_misspelt(outcome: &Result<(), SqlError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.code == ErrorCode::UnknownVariable)
}

/// A client that says who it is.
pub(crate) struct Login<'a> {
    pub door: Door,
    pub id: u32,
    pub user: &'a str,
    pub peer: std::net::SocketAddr,
    pub database: Option<&'a str>,
}

/// Records a login to a session, or the attempt.
pub(crate) fn logged_in(
    engine: &crate::engine::Engine,
    login: &Login<'_>,
    begun: Instant,
    outcome: Result<(), &SqlError>,
    admission: Option<Admission>,
) {
    let host = login.peer.ip().to_canonical().to_string();
    let is_known = engine.catalog.find_user(login.user, &host).is_some();
    let principal = engine.gate.principal(login.user, &host);
    let peer: Arc<str> = login.peer.to_string().into();
    let request = FinishedRequest {
        is_known,
        connection: Some((login.id, &peer)),
        db: login.database,
        error: outcome.err().map(Failure::from),
        ..FinishedRequest::new(&principal, login.door, Stated::Plain("LOGIN", "LOGIN"), begun.elapsed())
    };
    engine.requests.finished(&request, admission);
}
