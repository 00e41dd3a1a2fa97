//! Sessions by their tokens: who may use them, their results that nobody has fetched yet, and the end of unused ones.
//!
//! A client of gRPC may close its connection and open another one, and has no word for good-bye that all send. So a session ends when
//! it is killed, when it was idle for too long, and shortly after the last connection on which it was used is closed.
//!
//! Invariant: a token is good for the address of its login, and after a login over TLS for connections with TLS only.

use crate::options::FlightOptions;
use crate::places::Place;
use crate::session::{Credentials, FlightHooks, ParameterRow, Peer, Rows, Session};
use crate::status::status;
use arrow::array::RecordBatch;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tributary_admission::Refusal;
use tributary_types::{ErrorCode, SqlError};

/// Results of one session that may wait to be fetched.
const RESULTS_MAX: usize = 64;
/// How often a session is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A connection on which sessions are used.
#[derive(Debug)]
pub(crate) struct Connection {
    pub peer: Peer,
    pub place: Place,
}

/// All sessions.
pub(crate) struct Sessions {
    by_token: Mutex<HashMap<String, Arc<Open>>>,
    hooks: Arc<dyn FlightHooks>,
    options: Arc<FlightOptions>,
    /// One task looks after each session.
    watchers: TaskTracker,
    /// Ends all of them.
    stop: CancellationToken,
}

/// One session.
pub(crate) struct Open {
    pub session: Arc<dyn Session>,
    kill: CancellationToken,
    address: IpAddr,
    has_tls: bool,
    state: Mutex<State>,
}

struct State {
    /// Calls in flight and results that are being read.
    busy: usize,
    used: Instant,
    connections: Vec<Weak<Connection>>,
    next_result: u64,
    results: HashMap<u64, (Instant, Box<dyn Rows>)>,
    /// Results that are being read.
    readers: Vec<Weak<Reader>>,
    /// Values of prepared statements, by their ids.
    bound: HashMap<u32, ParameterRow>,
}

/// A result that is being read.
pub(crate) struct Reader {
    /// `None`: it was given up.
    rows: AsyncMutex<Option<Box<dyn Rows>>>,
    /// When the last rows were asked for.
    asked: Mutex<Instant>,
}

impl Reader {
    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The statement fails, or the client was too slow.
    pub async fn next(&self) -> Result<Option<RecordBatch>, Status> {
        *self.asked.lock() = Instant::now();
        let mut rows = self.rows.lock().await;
        let Some(open) = rows.as_mut() else {
            let text = "the statement was ended because its rows were not read for too long";
            return Err(Status::aborted(text));
        };
        let next = open.next().await.map_err(|error| status(&error))?;
        *self.asked.lock() = Instant::now();
        Ok(next)
    }

    /// Ends the statement if its client has not asked for rows for this long.
    fn give_up(&self, after: Duration) {
        // While rows are computed, nobody is late.
        if self.asked.lock().elapsed() >= after
            && let Ok(mut rows) = self.rows.try_lock()
        {
            drop(rows.take());
        }
    }
}

/// A call of a session, until the last copy of this is dropped.
#[derive(Clone)]
pub(crate) struct Caller(Arc<InUse>);

struct InUse(Arc<Open>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy -= 1;
        state.used = Instant::now();
    }
}

impl Caller {
    pub fn session(&self) -> &Arc<dyn Session> {
        &self.0.0.session
    }

    /// Keeps a result until it is fetched. Returns its number.
    ///
    /// # Errors
    /// Too many wait already.
    pub fn keep(&self, rows: Box<dyn Rows>) -> Result<u64, SqlError> {
        let mut state = self.0.0.state.lock();
        if state.results.len() >= RESULTS_MAX {
            drop(state);
            drop(rows);
            return Err(SqlError::detail(
                ErrorCode::UserLimit,
                format!("{RESULTS_MAX} results of this session wait to be fetched: fetch them, or log out"),
            ));
        }
        state.next_result += 1;
        let number = state.next_result;
        state.results.insert(number, (Instant::now(), rows));
        Ok(number)
    }

    /// The result of this number, once.
    pub fn take(&self, number: u64) -> Option<Box<dyn Rows>> {
        self.0.0.state.lock().results.remove(&number).map(|(_, rows)| rows)
    }

    /// Begins to read a result.
    pub fn read(&self, rows: Box<dyn Rows>) -> Arc<Reader> {
        let (rows, asked) = (AsyncMutex::new(Some(rows)), Mutex::new(Instant::now()));
        let reader = Arc::new(Reader { rows, asked });
        let mut state = self.0.0.state.lock();
        state.readers.retain(|reader| reader.strong_count() > 0);
        state.readers.push(Arc::downgrade(&reader));
        reader
    }

    /// Sets the values of a prepared statement for its next executions.
    pub fn bind(&self, id: u32, row: ParameterRow) {
        self.0.0.state.lock().bound.insert(id, row);
    }

    pub fn bound(&self, id: u32) -> Option<ParameterRow> {
        self.0.0.state.lock().bound.get(&id).cloned()
    }

    pub fn unbind(&self, id: u32) {
        self.0.0.state.lock().bound.remove(&id);
    }

    /// Ends the session.
    pub fn log_out(&self) {
        self.0.0.kill.cancel();
    }
}

impl Sessions {
    pub fn new(hooks: Arc<dyn FlightHooks>, options: Arc<FlightOptions>) -> Arc<Self> {
        let (watchers, stop) = (TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { by_token: Mutex::default(), hooks, options, watchers, stop })
    }

    /// Opens a session. Returns its token.
    ///
    /// # Errors
    /// The refusal, for the client to read.
    pub async fn log_in(
        self: &Arc<Self>,
        credentials: &Credentials,
        connection: &Arc<Connection>,
    ) -> Result<String, SqlError> {
        let (kill, peer) = (self.stop.child_token(), &connection.peer);
        let session = match self.hooks.log_in(credentials, peer, kill.clone()).await {
            Ok(session) => session,
            Err(error) => {
                Refusal::FlightLogin.log(|left_out| {
                    tracing::info!(peer = %peer.ip, %error, left_out, "a Flight SQL client was refused");
                });
                return Err(error);
            }
        };
        let open = Arc::new(Open {
            session,
            kill,
            address: peer.ip,
            has_tls: peer.tls.is_some(),
            state: Mutex::new(State {
                busy: 0,
                used: Instant::now(),
                connections: vec![Arc::downgrade(connection)],
                next_result: 0,
                results: HashMap::new(),
                readers: Vec::new(),
                bound: HashMap::new(),
            }),
        });
        let token = new_token();
        if !self.add(&token, &open) {
            open.session.close().await;
            Refusal::FlightSessions.log(|left_out| {
                let max_connections = self.options.max_connections;
                tracing::warn!(peer = %peer.ip, max_connections, left_out, "too many Flight SQL sessions: one is refused");
            });
            return Err(SqlError::new(ErrorCode::TooManyConnections, "Too many connections"));
        }
        self.watchers.spawn(Arc::clone(self).watch(token.clone(), open));
        Ok(token)
    }

    fn add(&self, token: &str, open: &Arc<Open>) -> bool {
        let mut by_token = self.by_token.lock();
        let has_place = by_token.len() < self.options.max_connections;
        if has_place {
            by_token.insert(token.to_owned(), Arc::clone(open));
        }
        has_place
    }

    /// The session of a token, for a call on this connection.
    pub fn find(&self, token: &str, connection: &Arc<Connection>) -> Option<Caller> {
        let open = self.by_token.lock().get(token).cloned()?;
        let is_own = open.address == connection.peer.ip && (!open.has_tls || connection.peer.tls.is_some());
        if !is_own || open.kill.is_cancelled() {
            return None;
        }
        let mut state = open.state.lock();
        state.busy += 1;
        let this = Arc::downgrade(connection);
        if !state.connections.iter().any(|known| known.ptr_eq(&this)) {
            state.connections.retain(|known| known.strong_count() > 0);
            state.connections.push(this);
        }
        drop(state);
        Some(Caller(Arc::new(InUse(open))))
    }

    /// Waits for the end of a session.
    async fn watch(self: Arc<Self>, token: String, open: Arc<Open>) {
        loop {
            tokio::select! {
                () = open.kill.cancelled() => break,
                () = sleep(LOOK_INTERVAL) => {}
            }
            open.give_up_results(self.options.result_timeout);
            open.give_up_readers(self.options.read_timeout);
            let idle = open.session.idle_timeout().unwrap_or(self.options.idle_timeout);
            if open.is_over(idle, self.options.detached_timeout) {
                open.kill.cancel();
                break;
            }
        }
        self.by_token.lock().remove(&token);
        open.give_up_results(Duration::ZERO);
        open.session.close().await;
    }

    /// Ends all sessions.
    pub async fn close(&self) {
        self.stop.cancel();
        self.watchers.close();
        self.watchers.wait().await;
    }
}

impl Open {
    /// Gives up results that nobody has fetched for this long.
    fn give_up_results(&self, after: Duration) {
        let mut state = self.state.lock();
        let late = |since: &Instant| since.elapsed() >= after;
        let numbers: Vec<u64> =
            state.results.iter().filter(|(_, (since, _))| late(since)).map(|(number, _)| *number).collect();
        let given_up: Vec<_> = numbers.iter().filter_map(|number| state.results.remove(number)).collect();
        drop(state);
        // Their statements end here.
        drop(given_up);
    }

    /// Gives up results whose clients have not asked for rows for this long.
    fn give_up_readers(&self, after: Duration) {
        let readers: Vec<_> = self.state.lock().readers.iter().filter_map(Weak::upgrade).collect();
        readers.iter().for_each(|reader| reader.give_up(after));
    }

    /// Whether nobody uses the session any more.
    fn is_over(&self, idle: Duration, detached: Duration) -> bool {
        let state = self.state.lock();
        let silent = state.used.elapsed();
        let is_connected = state.connections.iter().any(|connection| connection.strong_count() > 0);
        state.busy == 0 && (silent >= idle || (!is_connected && silent >= detached))
    }
}

/// A token that nobody can guess: 256 bits of the process's cryptographic generator.
fn new_token() -> String {
    (0..4).map(|_| format!("{:016x}", rand::random::<u64>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Places;
    use crate::session::{Answer, LoadRequest, LoadStream, Prepared};
    use async_trait::async_trait;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Hooks {
        session: Arc<Silent>,
    }

    /// A session without statements.
    #[derive(Default)]
    struct Silent {
        is_closed: AtomicBool,
    }

    #[async_trait]
    impl FlightHooks for Hooks {
        async fn log_in(
            &self,
            credentials: &Credentials,
            _peer: &Peer,
            _kill: CancellationToken,
        ) -> Result<Arc<dyn Session>, SqlError> {
            match credentials.user.as_str() {
                "amy" => Ok(Arc::clone(&self.session) as _),
                _ => Err(SqlError::new(ErrorCode::AccessDenied, "no")),
            }
        }

        fn server_version(&self) -> &str {
            "1"
        }
    }

    #[async_trait]
    impl Session for Silent {
        async fn query(&self, _text: String, _left: CancellationToken) -> Result<Answer, SqlError> {
            Ok(Answer::Done { affected_rows: 0 })
        }

        async fn prepare(&self, _text: String) -> Result<Prepared, SqlError> {
            Ok(Prepared { id: 1, parameter_count: 0, schema: None })
        }

        async fn execute(
            &self,
            _id: u32,
            _parameters: Option<ParameterRow>,
            _left: CancellationToken,
        ) -> Result<Answer, SqlError> {
            Ok(Answer::Done { affected_rows: 0 })
        }

        async fn forget(&self, _id: u32) {}

        async fn load(
            &self,
            _request: LoadRequest,
            _rows: LoadStream,
            _left: CancellationToken,
        ) -> Result<u64, SqlError> {
            Ok(0)
        }

        fn idle_timeout(&self) -> Option<Duration> {
            None
        }

        async fn close(&self) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
    }

    fn connection(places: &Arc<Places>, last: u8) -> Arc<Connection> {
        let ip = IpAddr::from([10, 0, 0, last]);
        Arc::new(Connection { peer: Peer { ip, port: 1, tls: None }, place: places.enter(ip) })
    }

    fn amy(name: &str) -> Credentials {
        Credentials { user: name.to_owned(), password: tributary_types::Secret::new("x") }
    }

    fn sessions(options: FlightOptions) -> (Arc<Hooks>, Arc<Sessions>, Arc<Places>) {
        let hooks = Arc::new(Hooks::default());
        let sessions = Sessions::new(Arc::clone(&hooks) as _, Arc::new(options));
        (hooks, sessions, Places::new(8, 8))
    }

    #[tokio::test]
    async fn a_token_is_good_for_the_address_of_its_login() {
        let (_, sessions, places) =
            sessions(FlightOptions { max_connections: 1, ..FlightOptions::default() });
        let here = connection(&places, 1);
        sessions.log_in(&amy("bob"), &here).await.expect_err("he has no password");
        let token = sessions.log_in(&amy("amy"), &here).await.expect("her password is right");
        assert!(token.len() == 64 && sessions.find(&token, &here).is_some());
        assert!(sessions.find(&token, &connection(&places, 1)).is_some());
        assert!(sessions.find(&token, &connection(&places, 2)).is_none());
        assert!(sessions.find("", &here).is_none());
        let refused = sessions.log_in(&amy("amy"), &here).await.expect_err("there is one already");
        assert_eq!(refused.code, ErrorCode::TooManyConnections);
    }

    #[tokio::test]
    async fn a_session_ends_after_its_connections_and_not_while_it_is_used() {
        let (_, sessions, places) = sessions(FlightOptions::default());
        let here = connection(&places, 1);
        let token = sessions.log_in(&amy("amy"), &here).await.expect("her password is right");
        let open = sessions.by_token.lock().get(&token).cloned().expect("it is open");
        let (now, later) = (Duration::ZERO, Duration::from_secs(3600));
        assert!(!open.is_over(later, now), "it is connected");
        assert!(open.is_over(now, later), "it was idle for too long");
        let call = sessions.find(&token, &here).expect("it is connected");
        drop(here);
        assert!(!open.is_over(now, now), "a result is being read");
        drop(call);
        assert!(open.is_over(later, now) && !open.is_over(later, later));
        let again = connection(&places, 1);
        let call = sessions.find(&token, &again).expect("another connection of the same address");
        call.log_out();
        assert!(sessions.find(&token, &again).is_none());
    }

    /// Rows without an end.
    struct Endless;

    #[async_trait]
    impl Rows for Endless {
        fn schema(&self) -> arrow::datatypes::SchemaRef {
            Arc::new(arrow::datatypes::Schema::empty())
        }

        async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
            Ok(Some(RecordBatch::new_empty(self.schema())))
        }
    }

    #[tokio::test]
    async fn results_that_nobody_fetches_or_reads_are_given_up() {
        let (_, sessions, places) = sessions(FlightOptions::default());
        let here = connection(&places, 1);
        let token = sessions.log_in(&amy("amy"), &here).await.expect("her password is right");
        let open = sessions.by_token.lock().get(&token).cloned().expect("it is open");
        let call = sessions.find(&token, &here).expect("it is connected");
        let numbers: Vec<u64> =
            (0..RESULTS_MAX).map(|_| call.keep(Box::new(Endless)).expect("a place")).collect();
        assert_eq!(call.keep(Box::new(Endless)).expect_err("too many").code, ErrorCode::UserLimit);
        let reader = call.read(call.take(numbers[0]).expect("it is kept"));
        assert!(call.take(numbers[0]).is_none(), "once");
        open.give_up_results(Duration::from_secs(3600));
        open.give_up_readers(Duration::from_secs(3600));
        assert!(reader.next().await.expect("it goes on").is_some());
        open.give_up_results(Duration::ZERO);
        assert!(call.take(numbers[1]).is_none());
        open.give_up_readers(Duration::ZERO);
        assert_eq!(reader.next().await.expect_err("it is late").code(), tonic::Code::Aborted);
    }

    #[tokio::test]
    async fn the_end_of_the_server_closes_all_sessions() {
        let (hooks, sessions, places) = sessions(FlightOptions::default());
        sessions.log_in(&amy("amy"), &connection(&places, 1)).await.expect("her password is right");
        sessions.close().await;
        assert!(hooks.session.is_closed.load(Ordering::Relaxed));
    }
}
