//! A client of Arrow Flight SQL: sessions of the engine behind one token.
//!
//! A session runs one statement at a time, to its last row, and clients read several results at once. So a statement that comes
//! while the session has another one runs in a session of its own, with the settings of the first; the newest one goes on. Only
//! a session with a transaction or temporary tables is waited for.
//!
//! Not here: statements, and rows once they are computed ([`super::rows`]).

use super::FlightLoads;
use super::parameters::ArrowParameters;
use super::rows::{OpenRows, schema_of};
use crate::access::finished::Door;
use crate::access::processes::Process;
use crate::answer::Answer as EngineAnswer;
use crate::answer::Done;
use crate::engine::Engine;
use crate::session::{EngineSession, Login, NewSession, SessionSettings, Volume, logged_in};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tributary_flight::{Answer, LoadRequest, LoadStream, ParameterRow, Prepared, Session};
use tributary_types::{ErrorCode, Principal, SqlError, TlsSession};

/// Sessions of one client at a time.
const SESSIONS_MAX: usize = 16;
/// How often a statement is told to end.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// How long a statement waits for a session that no other can replace.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client whose password was right.
pub(super) struct Client {
    pub principal: Principal,
    pub address: SocketAddr,
    pub tls: Option<TlsSession>,
    /// Ends all that it has.
    pub kill: CancellationToken,
}

/// See the module.
pub(super) struct FlightSession(Arc<Shared>);

/// The common state of the sessions of a client.
pub(super) struct Shared {
    pub engine: Arc<Engine>,
    pub client: Client,
    pub loads: FlightLoads,
    state: Mutex<State>,
    /// A session was given back.
    freed: Notify,
}

struct State {
    /// The session that goes on, unless it has a statement.
    idle: Option<Taken>,
    /// Sessions that have statements.
    taken: usize,
    /// The number of the newest session.
    newest: u64,
    /// The number of the irreplaceable one among them.
    irreplaceable: Option<u64>,
    settings: SessionSettings,
    /// Prepared statements: their texts, and the numbers of their parameters.
    prepared: HashMap<u32, (Arc<str>, usize)>,
    next_prepared: u32,
    idle_timeout: Option<Duration>,
    is_closed: bool,
}

/// A session that has a statement.
pub(super) struct Taken {
    pub session: Box<EngineSession>,
    number: u64,
}

/// The text of a statement, or the number of a prepared one.
pub(super) enum Statement {
    Text(String),
    Prepared(u32),
}

impl Statement {
    /// The statement as it would be written in the default `sql_mode`.
    fn in_mode_of(self, session: &EngineSession) -> Self {
        match self {
            Self::Text(text) => {
                let translated = match session.in_default_mode(&text) {
                    Cow::Owned(translated) => Some(translated),
                    Cow::Borrowed(_) => None,
                };
                Self::Text(translated.unwrap_or(text))
            }
            prepared @ Self::Prepared(_) => prepared,
        }
    }
}

impl FlightSession {
    /// Opens a session.
    ///
    /// # Errors
    /// See [`EngineSession::open`].
    pub fn open(engine: Arc<Engine>, client: Client, loads: FlightLoads) -> Result<Self, SqlError> {
        let begun = Instant::now();
        let admission = engine.requests.admit()?;
        let id = engine.processes().next_id();
        let opened = EngineSession::open(Arc::clone(&engine), new_session(&client, id));
        let user = client.principal.user().to_owned();
        let login = Login { door: Door::FlightLogin, id, user: &user, peer: client.address, database: None };
        logged_in(&engine, &login, begun, opened.as_ref().map(drop), admission);
        let session = Box::new(opened?);
        let state = State {
            settings: session.settings(),
            idle_timeout: session.wait_timeout(),
            idle: Some(Taken { session, number: 0 }),
            taken: 0,
            newest: 0,
            irreplaceable: None,
            prepared: HashMap::new(),
            next_prepared: 0,
            is_closed: false,
        };
        let (state, freed) = (Mutex::new(state), Notify::new());
        Ok(Self(Arc::new(Shared { engine, client, loads, state, freed })))
    }
}

fn new_session(client: &Client, id: u32) -> NewSession {
    NewSession {
        door: Door::Flight,
        id,
        principal: client.principal.clone(),
        peer: client.address,
        database: None,
        tls: client.tls.clone(),
        counts_found_rows: true,
        kill: client.kill.clone(),
    }
}

impl Shared {
    /// The session that goes on, or another one beside it.
    ///
    /// # Errors
    /// The client was killed, or has too many.
    async fn take(self: &Arc<Self>) -> Result<Taken, SqlError> {
        let waited = timeout(PATIENCE, async {
            loop {
                let freed = self.freed.notified();
                if let Some(taken) = self.try_take()? {
                    return Ok::<Taken, SqlError>(taken);
                }
                freed.await;
            }
        });
        waited.await.unwrap_or_else(|_| {
            Err(SqlError::detail(
                ErrorCode::Busy,
                "the session has a transaction or temporary tables, and another statement of it runs or has rows left: read \
                 them to their end first",
            ))
        })
    }

    fn try_take(&self) -> Result<Option<Taken>, SqlError> {
        let mut state = self.state.lock();
        if state.is_closed || self.client.kill.is_cancelled() {
            return Err(SqlError::new(ErrorCode::QueryInterrupted, "the session was ended"));
        }
        if let Some(taken) = state.idle.take() {
            if taken.session.is_irreplaceable() {
                state.irreplaceable = Some(taken.number);
            }
            state.taken += 1;
            return Ok(Some(taken));
        }
        if state.irreplaceable.is_some() {
            return Ok(None);
        }
        if state.taken >= SESSIONS_MAX {
            return Err(SqlError::detail(
                ErrorCode::UserLimit,
                format!(
                    "{SESSIONS_MAX} statements of this session run or have rows left: read them to their ends first"
                ),
            ));
        }
        state.newest += 1;
        state.taken += 1;
        let (number, settings) = (state.newest, state.settings.clone());
        drop(state);
        let id = self.engine.processes().next_id();
        let opened = EngineSession::open(Arc::clone(&self.engine), new_session(&self.client, id));
        let opened = opened.and_then(|mut session| session.set_all(settings).map(|()| session));
        match opened {
            Ok(session) => Ok(Some(Taken { session: Box::new(session), number })),
            Err(error) => {
                self.state.lock().taken -= 1;
                Err(error)
            }
        }
    }

    /// Gives back a session whose statement has ended.
    pub fn give_back(&self, mut taken: Taken) {
        let mut state = self.state.lock();
        state.taken -= 1;
        let is_first = |idle: &Taken| {
            (idle.session.is_irreplaceable(), idle.number) > (taken.session.is_irreplaceable(), taken.number)
        };
        let is_over = state.is_closed || self.client.kill.is_cancelled();
        // It is older than one that has a transaction and still runs.
        let is_past = state.irreplaceable.is_some_and(|number| number != taken.number);
        let left = if is_over || is_past || state.idle.as_ref().is_some_and(is_first) {
            Some(taken)
        } else {
            state.irreplaceable = None;
            taken.session.retain_prepared(|id| state.prepared.contains_key(&id));
            state.settings = taken.session.settings();
            state.idle_timeout = taken.session.wait_timeout();
            state.idle.replace(taken)
        };
        drop(state);
        self.freed.notify_waiters();
        if let Some(mut left) = left
            && left.session.is_irreplaceable()
        {
            // Unwatched: a transaction is rolled back, which has no outcome.
            tokio::spawn(async move { left.session.close().await });
        }
    }

    /// Runs a statement in a session.
    pub async fn run(
        self: &Arc<Self>,
        statement: Statement,
        received_bytes: u64,
        parameters: Option<ArrowParameters>,
        left: CancellationToken,
    ) -> Result<Answer, SqlError> {
        let mut taken = self.take().await?;
        let (process, begun) = (Arc::clone(&taken.session.process), Instant::now());
        let statement = statement.in_mode_of(&taken.session);
        let answer = {
            let running = start(&mut taken.session, &statement, self, parameters);
            self.unless_left(Box::pin(running), &process, &left).await
        };
        let volume = Volume { received_bytes, ..Volume::default() };
        let mut rows = OpenRows::new(Arc::clone(self), taken, statement, begun, volume);
        let outcome = match answer {
            Ok(EngineAnswer::Rows(answer)) => {
                rows.begin(answer);
                return Ok(Answer::Rows(Box::new(rows)));
            }
            Ok(EngineAnswer::Done(Done { affected_rows, .. })) => Ok(affected_rows),
            Ok(EngineAnswer::NeedsFile(_)) => {
                rows.give_up_file();
                let text = "LOAD DATA LOCAL needs the MySQL protocol; send the rows with DoPut";
                Err(SqlError::detail(ErrorCode::NotSupported, text))
            }
            Err(error) => Err(error),
        };
        let affected_rows = outcome.as_ref().copied().unwrap_or_default();
        rows.end(affected_rows, outcome.map(drop))?;
        Ok(Answer::Done { affected_rows })
    }

    /// Runs a statement to its end, which comes early if nobody waits for it.
    async fn unless_left<T>(
        &self,
        mut running: impl Future<Output = T> + Unpin,
        process: &Process,
        left: &CancellationToken,
    ) -> T {
        tokio::select! {
            biased;
            answer = &mut running => return answer,
            () = left.cancelled() => {}
            () = self.client.kill.cancelled() => {}
        }
        loop {
            // More than once: it may not have begun, and begins with a clean slate.
            process.stop.set();
            tokio::select! {
                answer = &mut running => return answer,
                () = sleep(STOP_INTERVAL) => {}
            }
        }
    }

    /// The current database.
    pub fn database(&self) -> Option<String> {
        let state = self.state.lock();
        match &state.idle {
            Some(idle) => idle.session.database.clone(),
            None => state.settings.database().map(str::to_owned),
        }
    }

    /// The text of a prepared statement, and the number of its parameters.
    fn prepared(&self, id: u32) -> Result<(Arc<str>, usize), SqlError> {
        let found = self.state.lock().prepared.get(&id).cloned();
        found.ok_or_else(|| {
            let text = format!("Unknown prepared statement handler ({id}) given to EXECUTE");
            SqlError::new(ErrorCode::UnknownStatementHandle, text)
        })
    }
}

/// Begins a statement in a session, and runs it as far as its first rows.
async fn start(
    session: &mut EngineSession,
    statement: &Statement,
    shared: &Arc<Shared>,
    parameters: Option<ArrowParameters>,
) -> Result<EngineAnswer, SqlError> {
    match statement {
        Statement::Text(text) => {
            session.begin_statement(text)?;
            session.run_text(text).await
        }
        Statement::Prepared(id) => {
            let (text, count) = shared.prepared(*id)?;
            let parameters = parameters.unwrap_or_default();
            parameters.check_count(count)?;
            if !session.has_prepared(*id) {
                session.prepare(*id, &text).await?;
            }
            session.execute(*id, &parameters).await
        }
    }
}

#[async_trait]
impl Session for FlightSession {
    async fn query(&self, text: String, left: CancellationToken) -> Result<Answer, SqlError> {
        let received_bytes = text.len() as u64;
        self.0.run(Statement::Text(text), received_bytes, None, left).await
    }

    async fn prepare(&self, text: String) -> Result<Prepared, SqlError> {
        let (shared, begun) = (&self.0, Instant::now());
        let mut taken = shared.take().await?;
        let id = {
            let mut state = shared.state.lock();
            state.next_prepared = state.next_prepared.wrapping_add(1) & (u32::MAX >> 1);
            state.next_prepared
        };
        let text = taken.session.in_default_mode(&text).into_owned();
        let prepared = taken.session.prepare(id, &text).await;
        if let Err(error) = &prepared {
            taken.session.not_prepared(&text, begun, &Err(error.clone()));
        }
        let prepared = prepared.map(|prepared| {
            let count = usize::from(prepared.param_count);
            shared.state.lock().prepared.insert(id, (text.into(), count));
            let schema = (!prepared.columns.is_empty()).then(|| schema_of(&prepared.columns));
            Prepared { id, parameter_count: count, schema }
        });
        shared.give_back(taken);
        prepared
    }

    async fn execute(
        &self,
        id: u32,
        parameters: Option<ParameterRow>,
        left: CancellationToken,
    ) -> Result<Answer, SqlError> {
        let parameters = parameters.as_ref().map(ArrowParameters::of).transpose()?;
        let received_bytes = parameters.as_ref().map_or(0, ArrowParameters::bytes);
        self.0.run(Statement::Prepared(id), received_bytes, parameters, left).await
    }

    async fn forget(&self, id: u32) {
        let mut state = self.0.state.lock();
        state.prepared.remove(&id);
        if let Some(idle) = &mut state.idle {
            idle.session.forget_prepared(id);
        }
    }

    async fn load(
        &self,
        request: LoadRequest,
        rows: LoadStream,
        left: CancellationToken,
    ) -> Result<u64, SqlError> {
        super::load::load(&self.0, request, rows, left).await
    }

    fn idle_timeout(&self) -> Option<Duration> {
        self.0.state.lock().idle_timeout
    }

    async fn close(&self) {
        let idle = {
            let mut state = self.0.state.lock();
            state.is_closed = true;
            state.idle.take()
        };
        if let Some(mut idle) = idle {
            idle.session.close().await;
        }
    }
}
