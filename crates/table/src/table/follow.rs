//! A table that another server writes: its newest state in the Delta log, how old that is, and the writer's own snapshot.
//!
//! Invariant: the snapshot is one version of the log, under a definition that knows all that the log's rows have; or it is one that the
//! writer has sent whole. The two are never mixed: rows that a flush moves would be there twice, or not at all. Nothing is written.
//! Not here: when to look, and how the writer is reached.

use super::{Table, check_id, delta_version, logged_snapshot};
use crate::error::TableError;
use crate::log::{Following, LogState};
use crate::place::root::TableRoot;
use crate::view::sent::{KnownParts, ReceivedSnapshot, SentSnapshot, SnapshotSender};
use crate::view::snapshot::Snapshot;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_types::{TableDef, TableId};

/// How long looks are for later entries only. Then the newest state is read: the writer may have removed old entries.
const PROBED_MAX: Duration = Duration::from_secs(600);

/// A writer's snapshot that no query has asked for is given up after this time.
const UNUSED_MAX: Duration = Duration::from_secs(60);

/// The server that writes a table.
#[async_trait]
pub trait Writer: fmt::Debug + Send + Sync {
    /// Asks for its snapshot of a table, less the parts that are known. The snapshot has everything that was visible there when this was
    /// called.
    ///
    /// # Errors
    /// [`TableError::Silent`]; [`TableError::Answer`].
    async fn snapshot(&self, table: TableId, known: Option<KnownParts>) -> Result<SentSnapshot, TableError>;
}

/// The age that a query's rows may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// They include everything that was visible at the writer then, or the query fails.
    pub since: Option<Instant>,
    /// The writer is not asked if what is here is not older than this.
    pub tolerance: Duration,
}

impl Freshness {
    fn allows(&self, as_of: Option<Instant>) -> bool {
        self.since.is_none_or(|since| as_of.is_some_and(|as_of| as_of >= since))
    }
}

/// A snapshot for a query.
#[derive(Clone, Debug)]
pub struct Current {
    pub snapshot: Arc<Snapshot>,
    /// The server that writes was asked for a newer one in vain.
    pub old: Option<OldRows>,
}

/// Rows of a table that another server writes, which did not send newer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldRows {
    /// Everything that was visible at the writer this long ago is there. `None`: nobody knows.
    pub age: Option<Duration>,
    pub reason: String,
}

impl From<Arc<Snapshot>> for Current {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, old: None }
    }
}

/// The state of knowledge of the writer's table.
#[derive(Debug)]
pub(super) struct Followed {
    known: parking_lot::Mutex<Known>,
    /// When the log was read last.
    read: parking_lot::Mutex<Instant>,
    /// `None`: the writer cannot be asked, and the log is all there is.
    writer: Option<Arc<dyn Writer>>,
    /// Questions of queries so far.
    questions: AtomicU64,
    /// The last answer. Locked while the writer is asked.
    asked: tokio::sync::Mutex<Asked>,
    /// The last snapshot of the writer's, and when it was asked for.
    received: parking_lot::Mutex<Option<Received>>,
}

/// The last time when the writer was asked.
#[derive(Debug, Default)]
struct Asked {
    /// Questions that had come by then: the answer is theirs, too.
    questions: u64,
    failure: Option<String>,
}

#[derive(Clone, Debug)]
struct Received {
    as_of: Instant,
    used: Instant,
    answer: Arc<ReceivedSnapshot>,
}

impl Followed {
    pub(super) fn new(writer: Option<Arc<dyn Writer>>) -> Self {
        Self {
            known: parking_lot::Mutex::default(),
            read: parking_lot::Mutex::new(Instant::now()),
            writer,
            questions: AtomicU64::new(0),
            asked: tokio::sync::Mutex::default(),
            received: parking_lot::Mutex::default(),
        }
    }

    /// Gives up a snapshot of the writer's that is not used.
    fn forget_unused(&self) {
        let mut received = self.received.lock();
        if received.as_ref().is_some_and(|received| received.used.elapsed() >= UNUSED_MAX) {
            *received = None;
        }
    }

    /// Asks the writer. A question that comes while another one is under way waits for its end, and all that came meanwhile share the
    /// next: a snapshot that was taken before a question might lack rows that it is about.
    async fn ask(&self, table: TableId, writer: &Arc<dyn Writer>) -> Result<Arc<Snapshot>, TableError> {
        let own = self.questions.fetch_add(1, Ordering::AcqRel) + 1;
        let mut asked = self.asked.lock().await;
        if asked.questions >= own {
            if let Some(reason) = asked.failure.clone() {
                return Err(TableError::Silent { reason });
            }
            if let Some(received) = &mut *self.received.lock() {
                received.used = Instant::now();
                return Ok(Arc::clone(&received.answer.snapshot));
            }
        }
        let questions = self.questions.load(Ordering::Acquire);
        let as_of = Instant::now();
        let answer = self.receive(table, writer).await;
        *asked = Asked { questions, failure: answer.as_ref().err().map(ToString::to_string) };
        let answer = Arc::new(answer?);
        let snapshot = Arc::clone(&answer.snapshot);
        *self.received.lock() = Some(Received { as_of, used: Instant::now(), answer });
        Ok(snapshot)
    }

    async fn receive(
        &self,
        table: TableId,
        writer: &Arc<dyn Writer>,
    ) -> Result<ReceivedSnapshot, TableError> {
        let before = self.received.lock().as_ref().map(|received| Arc::clone(&received.answer));
        if let Some(before) = before {
            let sent = writer.snapshot(table, Some(before.known())).await?;
            match ReceivedSnapshot::receive(Some(&before), table, &sent) {
                Ok(received) => return Ok(received),
                Err(error) => tracing::warn!(%table, %error, "the writer's snapshot is asked for as a whole"),
            }
        }
        ReceivedSnapshot::receive(None, table, &writer.snapshot(table, None).await?)
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Everything that was visible at the writer then is in the snapshot. `None`: nobody knows.
    as_of: Option<Instant>,
    /// Why the last look failed.
    failure: Option<String>,
}

/// How far a followed table is behind its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// Everything that was visible at the writer this long ago can be read. `None`: nobody knows.
    pub age: Option<Duration>,
    /// Why the last look for a newer state failed.
    pub failure: Option<String>,
}

impl Table {
    /// Reads the log of a table that another server writes.
    pub(crate) async fn open_followed(
        root: Arc<TableRoot>,
        def: &Arc<TableDef>,
        writer: Option<Arc<dyn Writer>>,
    ) -> Result<Arc<Self>, TableError> {
        let state = root.log.open(def).await?;
        check_id(&state, def)?;
        check_definition(&state, def)?;
        let table = Self::of_state(root, def, state);
        Ok(Arc::new(Self { followed: Some(Followed::new(writer)), ..table }))
    }

    /// Takes the newest state of a table that another server writes, under the definition that the catalog has. If the log has
    /// everything that was visible at the writer at `as_of`, so has the snapshot then. Returns whether it has changed.
    ///
    /// # Errors
    /// Those of reading the log, [`TableError::LocationTaken`]; [`TableError::DefinitionBehind`] until the catalog has what the log
    /// has. The snapshot stays as it was.
    pub async fn follow(&self, def: &Arc<TableDef>, as_of: Option<Instant>) -> Result<bool, TableError> {
        let outcome = self.try_to_follow(def).await;
        if let Some(followed) = &self.followed {
            let mut known = followed.known.lock();
            known.failure = outcome.as_ref().err().map(ToString::to_string);
            if outcome.is_ok() {
                known.as_of = known.as_of.max(as_of);
            }
        }
        outcome
    }

    /// Whether the table has to be followed without waiting: the catalog has another definition of it, the last look failed, or nobody
    /// knows how old its rows are.
    #[must_use]
    pub fn must_follow(&self, def: &TableDef) -> bool {
        let is_unsure = |followed: &Followed| {
            let known = followed.known.lock();
            known.failure.is_some() || known.as_of.is_none()
        };
        self.followed.as_ref().is_some_and(|followed| *self.def() != *def || is_unsure(followed))
    }

    /// Gives up the writer's snapshot if no query has used it for a minute.
    pub fn forget_unused(&self) {
        if let Some(followed) = &self.followed {
            followed.forget_unused();
        }
    }

    async fn try_to_follow(&self, def: &Arc<TableDef>) -> Result<bool, TableError> {
        let Some(followed) = &self.followed else { return Ok(false) };
        let mut state = self.rewriter.lock().await;
        let is_known = *self.def() == **def;
        let is_probed = is_known && followed.read.lock().elapsed() < PROBED_MAX;
        let following =
            if is_probed { self.root.log.following(&state, def).await? } else { Following::Unknown };
        let fresh = match following {
            Following::Nothing => return Ok(false),
            Following::State(next) => *next,
            Following::Unknown => {
                let reads = Instant::now();
                let fresh = self.root.log.load(def).await?;
                *followed.read.lock() = reads;
                fresh
            }
        };
        check_id(&fresh, def)?;
        check_definition(&fresh, def)?;
        if is_known && fresh.version <= state.version {
            return Ok(false);
        }
        state.advance(fresh);
        self.persisted.store(state.app_version.0, Ordering::Release);
        self.delta_versions.lock().reach(state.app_version, delta_version(&state));
        let _unflushed = self.unflushed.lock();
        self.snapshot.store(Arc::new(logged_snapshot(def, &state)));
        Ok(true)
    }

    /// How far the table is behind its writer. `None`: this server writes it.
    #[must_use]
    pub fn staleness(&self) -> Option<Staleness> {
        let known = self.followed.as_ref()?.known.lock();
        Some(Staleness { age: known.as_of.map(|as_of| as_of.elapsed()), failure: known.failure.clone() })
    }

    /// Whether queries ask the server that writes for its snapshot.
    #[must_use]
    pub fn asks_writer(&self) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.writer.is_some())
    }

    /// The snapshot for a query that begins now, settled. Of a table that another server writes, this is the writer's, or the newest that
    /// is here if the writer gives no answer.
    ///
    /// # Errors
    /// Those of [`Table::settled`]; [`TableError::TooOld`].
    pub async fn current(&self, fresh: Freshness) -> Result<Current, TableError> {
        let Some(followed) = &self.followed else { return self.settled().await.map(Current::from) };
        let Some(writer) = &followed.writer else {
            self.check_staleness(fresh)?;
            return Ok(self.snapshot().into());
        };
        let (known, as_of) = self.newest(followed);
        let is_young = as_of.is_some_and(|as_of| as_of.elapsed() <= fresh.tolerance);
        if !fresh.tolerance.is_zero() && is_young && fresh.allows(as_of) {
            return Ok(known.into());
        }
        match followed.ask(self.id, writer).await {
            Ok(snapshot) => Ok(snapshot.into()),
            Err(error) => {
                let (snapshot, as_of) = self.newest(followed);
                let reason = error.to_string();
                self.check_age(as_of, fresh, Some(reason.clone()))?;
                let age = as_of.map(|as_of| as_of.elapsed());
                Ok(Current { snapshot, old: Some(OldRows { age, reason }) })
            }
        }
    }

    /// Bytes of Arrow memory of the rows that the server that writes has sent.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        let received = self.followed.as_ref().and_then(|followed| followed.received.lock().clone());
        received.map_or(0, |received| received.answer.snapshot.memtable_bytes())
    }

    /// The newest snapshot that is here, and a time before which everything that was visible at the writer is in it.
    fn newest(&self, followed: &Followed) -> (Arc<Snapshot>, Option<Instant>) {
        let own = self.snapshot();
        let as_of = followed.known.lock().as_of;
        match &*followed.received.lock() {
            // Rows that were shown once do not disappear. An answer may be younger than its question, and so than what is known of the log.
            Some(received) if received.answer.is_as_new_as(&own) => {
                (Arc::clone(&received.answer.snapshot), as_of.max(Some(received.as_of)))
            }
            _ => (own, as_of),
        }
    }

    /// The snapshot of a query that begins now, and the parts of it that a server that reads lacks if it knows these.
    ///
    /// # Errors
    /// Those of [`Table::settled`].
    pub async fn send_snapshot(
        &self,
        known: Option<&KnownParts>,
    ) -> Result<(Arc<Snapshot>, SentSnapshot), TableError> {
        let snapshot = self.settled().await?;
        let sent = self.sender.lock().get_or_insert_with(SnapshotSender::new).send(&snapshot, known)?;
        Ok((snapshot, sent))
    }

    /// Checks that the rows of the table's log are not older than queries may read.
    ///
    /// # Errors
    /// [`TableError::TooOld`].
    pub fn check_staleness(&self, fresh: Freshness) -> Result<(), TableError> {
        let Some(followed) = &self.followed else { return Ok(()) };
        let as_of = followed.known.lock().as_of;
        self.check_age(as_of, fresh, None)
    }

    fn check_age(
        &self,
        as_of: Option<Instant>,
        fresh: Freshness,
        reason: Option<String>,
    ) -> Result<(), TableError> {
        let Some(limit) = &self.root.options.max_staleness else { return Ok(()) };
        let limit = limit.get();
        let age = as_of.map(|as_of| as_of.elapsed());
        if fresh.allows(as_of) && (limit.is_zero() || age.is_some_and(|age| age <= limit)) {
            return Ok(());
        }
        let failure = || self.followed.as_ref().and_then(|followed| followed.known.lock().failure.clone());
        let reason = reason.or_else(failure).unwrap_or_else(|| {
            "the writer has not said that its rows are in the tables' files, or it was not heard of"
                .to_owned()
        });
        let table = self.def().table_ref();
        match fresh.allows(as_of) {
            true => Err(TableError::TooOld { table, age, limit, reason }),
            false => Err(TableError::NotShown { table, reason }),
        }
    }
}

/// Checks that the definition knows all that the log's rows have: a change reaches the log before the catalog.
fn check_definition(state: &LogState, def: &TableDef) -> Result<(), TableError> {
    let known = def.schema.version;
    match state.schema_version() {
        Some(found) if found > known => {
            Err(TableError::DefinitionBehind { location: def.location.clone(), found, known })
        }
        _ => Ok(()),
    }
}
