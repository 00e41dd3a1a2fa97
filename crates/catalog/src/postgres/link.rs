//! The connection to the database: one, made again when it is lost, with a bound on every wait; and changes over it.
//!
//! Invariants: a change is made only if its epoch is the one of the catalog's row, which the change updates first; and the row says
//! which change was the last, so that one whose answer was lost is found.

use super::encryption::Tls;
use super::errors::{PgError, Sql};
use super::url::PostgresOptions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

/// How long the answer to one statement may take.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long one try to connect may take.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long a database that is away is waited for. Later calls fail after one try, until it is back.
const AWAY_MAX: Duration = Duration::from_secs(8);
/// How long a database is waited for to learn whether it has made a change. Longer than for others: nobody can tell the client
/// whether to repeat it.
const DOUBT_MAX: Duration = Duration::from_secs(120);
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// How long a call waits for the ones before it; a backup's copy of the catalog is one of them.
const TURN_MAX: Duration = Duration::from_secs(30);
/// A connection that was not used for longer is tried first: it may have ended meanwhile.
const TRIED_AFTER: Duration = Duration::from_secs(1);

/// Settings of each connection. A transaction that its client left open (it was frozen) ends by itself: it holds the catalog's row.
const SETTINGS: &str = "SET search_path = tributary; SET client_min_messages = warning; SET statement_timeout = '10s'; \
     SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '15s'; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// A connection and the statements that it knows.
pub(super) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

/// The values of one row.
pub(super) type Values = Vec<Box<dyn ToSql + Send + Sync>>;

type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

impl Session {
    pub async fn execute(&self, sql: &'static str, parameters: Parameters<'_>) -> Sql<u64> {
        let statement = self.prepared(sql).await?;
        in_time(self.client.execute(&statement, parameters)).await
    }

    pub async fn rows(&self, sql: &'static str, parameters: Parameters<'_>) -> Sql<Vec<Row>> {
        let statement = self.prepared(sql).await?;
        in_time(self.client.query(&statement, parameters)).await
    }

    /// The only row.
    pub async fn row(&self, sql: &'static str, parameters: Parameters<'_>) -> Sql<Row> {
        let statement = self.prepared(sql).await?;
        in_time(self.client.query_one(&statement, parameters)).await
    }

    pub async fn row_if_any(&self, sql: &'static str, parameters: Parameters<'_>) -> Sql<Option<Row>> {
        let statement = self.prepared(sql).await?;
        in_time(self.client.query_opt(&statement, parameters)).await
    }

    /// Runs statements without parameters.
    pub async fn batch(&self, sql: &str) -> Sql<()> {
        in_time(self.client.batch_execute(sql)).await
    }

    /// Runs a statement that is prepared for this call, once for each row, all on their way at the same time.
    pub async fn execute_each(&self, sql: &str, rows: &[Values]) -> Sql<()> {
        let statement = in_time(self.client.prepare(sql)).await?;
        let executed = rows.iter().map(|row| self.execute_row(&statement, row));
        in_time(futures::future::try_join_all(executed)).await.map(drop)
    }

    async fn execute_row(&self, statement: &Statement, row: &Values) -> Result<u64, tokio_postgres::Error> {
        let parameters: Vec<&(dyn ToSql + Sync)> =
            row.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.client.execute(statement, &parameters).await
    }

    /// The rows of a statement that is not kept.
    pub async fn rows_once(&self, sql: &str) -> Sql<Vec<Row>> {
        in_time(self.client.query(sql, &[])).await
    }

    async fn prepared(&self, sql: &'static str) -> Sql<Statement> {
        if let Some(known) = self.statements.lock().get(sql) {
            return Ok(known.clone());
        }
        let statement = in_time(self.client.prepare(sql)).await?;
        self.statements.lock().insert(sql, statement.clone());
        Ok(statement)
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Sql<T> {
    match timeout(ANSWER_MAX, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(PgError::Late),
    }
}

/// The connection while nobody uses it.
#[derive(Default)]
pub(super) struct Line {
    session: Option<Session>,
    used: Option<Instant>,
    /// When a try to connect first failed, since the last success.
    away_since: Option<Instant>,
}

/// The way to the database, for one call at a time.
pub(super) struct Link {
    options: PostgresOptions,
    line: Arc<AsyncMutex<Line>>,
    /// 0: none was claimed, and nothing can be changed.
    epoch: AtomicI64,
    changes: AtomicU64,
}

/// A connection that is used.
pub(super) struct Held {
    line: OwnedMutexGuard<Line>,
}

impl Held {
    pub fn session(&self) -> Sql<&Session> {
        self.line.session.as_ref().ok_or_else(|| PgError::Away("the connection was lost".to_owned()))
    }

    /// Ends the connection, and with it a transaction in it.
    pub fn discard(&mut self) {
        self.line.session = None;
    }
}

impl Link {
    pub fn new(options: PostgresOptions) -> Self {
        Self { options, line: Arc::default(), epoch: AtomicI64::new(0), changes: AtomicU64::new(0) }
    }

    /// Where the database is.
    pub fn place(&self) -> String {
        self.options.url.to_string()
    }

    pub fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::SeqCst)
    }

    pub fn set_epoch(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::SeqCst);
    }

    /// Waits for its turn and for a connection.
    pub async fn held(&self) -> Sql<Held> {
        self.held_within(AWAY_MAX).await
    }

    async fn held_within(&self, patience: Duration) -> Sql<Held> {
        let line = timeout(TURN_MAX, Arc::clone(&self.line).lock_owned()).await.map_err(|_| PgError::Late)?;
        let mut held = Held { line };
        if let Some(session) = &held.line.session {
            let is_fresh = held.line.used.is_some_and(|used| used.elapsed() < TRIED_AFTER);
            if session.client.is_closed() || !is_fresh && session.batch("").await.is_err() {
                held.discard();
            }
        }
        self.connect(&mut held, patience).await?;
        held.line.used = Some(Instant::now());
        Ok(held)
    }

    /// Connects unless there is a connection.
    async fn connect(&self, held: &mut Held, patience: Duration) -> Sql<()> {
        while held.line.session.is_none() {
            let failed = match timeout(CONNECT_MAX, self.new_session()).await {
                Ok(Ok(session)) => {
                    held.line.away_since = None;
                    held.line.session = Some(session);
                    return Ok(());
                }
                Ok(Err(error)) => error,
                Err(_) => PgError::Late,
            };
            if !failed.may_pass() {
                return Err(failed);
            }
            let since = *held.line.away_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= patience {
                return Err(PgError::Away(failed.to_string()));
            }
            sleep(TRY_AGAIN).await;
        }
        Ok(())
    }

    async fn new_session(&self) -> Sql<Session> {
        let PostgresOptions { url, password } = &self.options;
        let mut config = Config::new();
        config
            .user(&url.user)
            .dbname(&url.database)
            .port(url.port)
            .application_name("tributary")
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(ANSWER_MAX)
            .keepalives_idle(ANSWER_MAX)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        match url.host.starts_with('/') {
            true => config.host_path(&url.host),
            false => config.host(&url.host),
        };
        if !password.is_empty() {
            config.password(password.reveal());
        }
        let client = match Tls::of(&url.encryption).map_err(PgError::Tls)? {
            Some(tls) => {
                let (client, connection) = config.ssl_mode(SslMode::Require).connect(tls).await?;
                // It ends with its client, and its error is the client's.
                tokio::spawn(async move { drop(connection.await) });
                client
            }
            None => {
                let (client, connection) = config.ssl_mode(SslMode::Disable).connect(NoTls).await?;
                // As above.
                tokio::spawn(async move { drop(connection.await) });
                client
            }
        };
        let session = Session { client, statements: Mutex::default() };
        session.batch(SETTINGS).await?;
        Ok(session)
    }

    /// Ends the connection.
    pub async fn close(&self) {
        self.line.lock().await.session = None;
    }

    /// Begins a change.
    pub async fn begin(&self) -> Sql<Change<'_>> {
        let epoch = self.epoch();
        if epoch == 0 {
            return Err(PgError::NotClaimed);
        }
        let token = format!("{epoch}/{}", self.changes.fetch_add(1, Ordering::Relaxed));
        let mut held = self.held().await?;
        loop {
            match begun(held.session()?, epoch, &token).await {
                Ok(true) => return Ok(Change { link: self, held, token, is_open: true }),
                Ok(false) => {
                    let holder = holder(held.session()?).await;
                    held.discard();
                    return Err(PgError::Fenced(holder));
                }
                Err(error) => {
                    held.discard();
                    if !error.is_lost() {
                        return Err(error);
                    }
                    // Nothing has happened yet.
                    self.connect(&mut held, AWAY_MAX).await?;
                }
            }
        }
    }

    /// Whether the database has made a change whose answer was lost. Waits for its end.
    async fn has_made(&self, held: &mut Held, token: &str) -> Sql<bool> {
        held.discard();
        held.line.away_since = None;
        self.connect(held, DOUBT_MAX).await?;
        // The row is locked as long as the change is open.
        let row = held.session()?.row("SELECT last_change, epoch FROM catalog FOR UPDATE", &[]).await?;
        let (last, epoch): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        if last == token {
            return Ok(true);
        }
        if epoch == self.epoch() {
            return Ok(false);
        }
        // The other one may have made changes since.
        Err(PgError::Fenced(holder(held.session()?).await))
    }
}

async fn begun(session: &Session, epoch: i64, token: &str) -> Sql<bool> {
    session.batch("BEGIN").await?;
    let claimed =
        session.execute("UPDATE catalog SET last_change = $1 WHERE epoch = $2", &[&token, &epoch]).await?;
    Ok(claimed == 1)
}

/// Who has the catalog, for an error.
async fn holder(session: &Session) -> String {
    let found = session.row("SELECT owner, host, epoch FROM catalog", &[]).await;
    let told = found.and_then(|row| {
        let (owner, host, epoch): (String, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(format!("server {owner} on {host}, epoch {epoch}"))
    });
    told.unwrap_or_else(|error| error.to_string())
}

/// A change: everything in it or nothing. Dropped without a commit, nothing.
pub(super) struct Change<'l> {
    link: &'l Link,
    held: Held,
    token: String,
    is_open: bool,
}

impl Change<'_> {
    /// Durable on return. After an error nothing of it happened, unless that is [`PgError::InDoubt`].
    pub async fn commit(mut self) -> Sql<()> {
        let error = match self.batch("COMMIT").await {
            Ok(()) => {
                self.is_open = false;
                return Ok(());
            }
            Err(error) => error,
        };
        self.is_open = false;
        match self.link.has_made(&mut self.held, &self.token).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(error),
            Err(unknown) => {
                self.held.discard();
                Err(PgError::InDoubt(format!("{error}; {unknown}")))
            }
        }
    }

    /// Ends it: nothing happened.
    pub async fn undo(mut self) -> Sql<()> {
        self.batch("ROLLBACK").await?;
        self.is_open = false;
        Ok(())
    }
}

impl Deref for Change<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.held.session().expect("a change has a connection until it ends")
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.held.discard();
        }
    }
}
