//! Limits: what users and tables may take of the server at a time and per second, and all together at a time.
//!
//! A load is admitted while neither its user nor its table is in debt ([`bucket`]); what it brings is charged when it is about to be
//! committed. Only loads of limited users and tables take a lock, once per load; all count in one number. A changed limit applies to
//! the next request.
//!
//! Invariant: a refused request has taken nothing of any limit, and one that was admitted is never refused later. Every
//! [load](crate::load::Load) has an [`AdmittedLoad`].
//!
//! The loads of each user are counted ([`shares`]), whether it has limits or not.
//!
//! Not here: shares of memory and of the log, which users have without limits, too (`ingest`).

mod bucket;
mod shares;

use arc_swap::ArcSwap;
use bucket::Bucket;
use parking_lot::Mutex;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use shares::Shares;
pub(crate) use shares::UserLoads;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_catalog::{Catalog, User};
use tributary_ingest::LoadRight;
use tributary_table::Table;
use tributary_types::{
    ErrorCode, Live, Principal, SqlError, TableId, TableRef, UserKey, UserLimits, UserProperty,
};

/// When a request that is one too many at a time may come again.
const RETRY_OF_CONCURRENT: Duration = Duration::from_secs(1);
/// The refusal of a server that is being decommissioned.
const DRAINING: &str = "The server is being decommissioned and takes no loads until CANCEL DECOMMISSION BACKEND or its next start";
/// The refusal of a server that has lost what it owned.
const TAKEN_OVER: &str = "Another process of this server has taken over its catalog and tables, and this one takes no loads any more: send them there";
/// The refusal of a node that reads the tables of another server, in MySQL's words.
const ONLY_READS: &str = "The MySQL server is running with the --read-only option so it cannot execute this statement: it takes no loads; send it to the \
     server that writes";
/// How often a job that waits looks whether a limit was changed.
const JOB_LOOK: Duration = Duration::from_secs(1);
const JOB_LOOK_MIN: Duration = Duration::from_millis(5);
/// Properties of users whose refusals are counted.
const COUNTED: [UserProperty; 6] = [
    UserProperty::MaxUserConnections,
    UserProperty::MaxConcurrentQueries,
    UserProperty::MaxConcurrentLoads,
    UserProperty::MaxLoadRequestsPerSecond,
    UserProperty::MaxLoadRowsPerSecond,
    UserProperty::MaxLoadBytesPerSecond,
];
/// The properties of a table.
const OF_TABLE: [UserProperty; 3] = [
    UserProperty::MaxConcurrentLoads,
    UserProperty::MaxLoadRowsPerSecond,
    UserProperty::MaxLoadBytesPerSecond,
];
/// The settings of the server.
const OF_SERVER: [UserProperty; 1] = [UserProperty::MaxConcurrentLoads];

/// Name and host of a user.
type Account = (Arc<str>, Arc<str>);

/// The limits of all users and tables, and their use.
pub(crate) struct Limits {
    catalog: Arc<Catalog>,
    /// Whether any user has a limit: all that others look at.
    has_users: AtomicBool,
    users: ArcSwap<HashMap<Account, Arc<UserUse>>>,
    /// Held while the users are read from the catalog.
    reading: Mutex<()>,
    tables: Mutex<HashMap<TableId, Arc<TableUse>>>,
    loads: Arc<AllLoads>,
    /// Parts of loads, which do not count as running ones.
    parts: Arc<AllLoads>,
    loads_max: Live<u64>,
    /// Why no load is admitted, as [`Closed`] has it; 0: loads are admitted.
    closed: AtomicU8,
    metrics: LimitMetrics,
}

/// A limited user, and its use of the limits.
struct UserUse {
    /// `'u'@'h'`
    name: String,
    limits: ArcSwap<UserLimits>,
    state: Mutex<UserState>,
}

#[derive(Default)]
struct UserState {
    loads: u64,
    queries: u64,
    requests: Bucket,
    rows: Bucket,
    bytes: Bucket,
}

/// A limited table, and the use of its limits.
struct TableUse {
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    loads: u64,
    rows: Bucket,
    bytes: Bucket,
    limits: TableLimits,
}

/// The limits of a table.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct TableLimits {
    loads: Option<u64>,
    rows: Option<u64>,
    bytes: Option<u64>,
}

impl TableLimits {
    fn of(table: &Table) -> Self {
        table.with_def(|def| Self {
            loads: def.properties.max_concurrent_loads,
            rows: def.properties.max_load_rows_per_second,
            bytes: def.properties.max_load_bytes_per_second,
        })
    }
}

/// The owner of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// `'u'@'h'`
    User(String),
    Table(TableRef),
    Server,
    /// The server, which takes no loads.
    Closed(Closed),
}

/// Why a server admits no load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Closed {
    /// All rows are moved to data files.
    Draining = 1,
    /// Another process owns what this one has written to.
    TakenOver = 2,
    /// The tables are another server's.
    OnlyReads = 3,
}

impl Closed {
    const fn of(value: u8) -> Option<Self> {
        match value {
            1 => Some(Self::Draining),
            2 => Some(Self::TakenOver),
            3 => Some(Self::OnlyReads),
            _ => None,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Draining => DRAINING,
            Self::TakenOver => TAKEN_OVER,
            Self::OnlyReads => ONLY_READS,
        }
    }
}

/// A request beyond a limit. The same request may succeed later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitReached {
    owner: Owner,
    property: UserProperty,
    value: u64,
    /// The time after which the request may succeed; `None` for connections, which end when their clients want, and for loads that
    /// another server takes.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = (self.property.name(), self.value);
        // MySQL's text for users.
        match &self.owner {
            Owner::User(user) => {
                write!(f, "User {user} has exceeded the '{name}' resource (current value: {value})")?;
            }
            Owner::Table(table) => {
                write!(f, "Table '{table}' has exceeded its property '{name}' (current value: {value})")?;
            }
            Owner::Server => {
                write!(f, "The server has reached its setting '{name}' (current value: {value})")?;
            }
            Owner::Closed(why) => f.write_str(why.text())?,
        }
        match self.retry_after {
            Some(after) => {
                write!(f, "; nothing was done, retry it in {:.3} s", after.as_secs_f64().max(0.001))
            }
            None => Ok(()),
        }
    }
}

impl From<LimitReached> for SqlError {
    fn from(reached: LimitReached) -> Self {
        let code = match reached.owner {
            Owner::User(_) => ErrorCode::UserLimit,
            Owner::Closed(Closed::OnlyReads) => ErrorCode::OnlyReads,
            Owner::Table(_) | Owner::Server | Owner::Closed(_) => ErrorCode::Busy,
        };
        Self::new(code, reached.to_string())
    }
}

/// Counters of refused and waiting requests.
struct LimitMetrics {
    of_users: [IntCounter; COUNTED.len()],
    of_tables: [IntCounter; OF_TABLE.len()],
    of_server: [IntCounter; OF_SERVER.len()],
    job_waits: IntCounter,
}

impl LimitMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = Opts::new(
            "tributary_limit_refusals_total",
            "Requests refused by limits, by whose limit it is and by its name",
        );
        let all = IntCounterVec::new(opts, &["of", "limit"])?;
        registry.register(Box::new(all.clone()))?;
        let help = "Times that jobs have waited for a limit of their user or table";
        let job_waits = IntCounter::new("tributary_limit_job_waits_total", help)?;
        registry.register(Box::new(job_waits.clone()))?;
        Ok(Self {
            of_users: COUNTED.map(|property| all.with_label_values(&["user", property.name()])),
            of_tables: OF_TABLE.map(|property| all.with_label_values(&["table", property.name()])),
            of_server: OF_SERVER.map(|property| all.with_label_values(&["server", property.name()])),
            job_waits,
        })
    }

    fn refused(&self, reached: &LimitReached) {
        let counters: (&[UserProperty], &[IntCounter]) = match reached.owner {
            Owner::User(_) => (&COUNTED, &self.of_users),
            Owner::Table(_) => (&OF_TABLE, &self.of_tables),
            Owner::Server | Owner::Closed(_) => (&OF_SERVER, &self.of_server),
        };
        let place = counters.0.iter().position(|property| *property == reached.property);
        place.into_iter().for_each(|place| counters.1[place].inc());
    }
}

/// A load's permission to run, and the account that it is charged to. Dropped, the load counts no longer.
#[must_use = "it counts the load while it runs"]
#[derive(Default)]
pub(crate) struct AdmittedLoad {
    user: UserKey,
    /// `None`: it is the server's own, or not admitted yet.
    counted: Option<Counted>,
    /// `None`: nothing else limits it.
    limited: Option<Box<LimitedLoad>>,
    /// `None`: it is the server's own, or a part of a load that is not admitted yet.
    right: Option<Arc<LoadRight>>,
}

/// The loads of all users into all tables.
#[derive(Default)]
struct AllLoads {
    /// Loads at a time.
    running: AtomicU64,
    /// Those of loads and of their parts are the same.
    shares: Arc<Shares>,
}

/// One of the loads of the server, or a part of one.
struct Counted(Arc<AllLoads>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The limits of a load.
struct LimitedLoad {
    user: Option<Arc<UserUse>>,
    table: Option<Arc<TableUse>>,
    /// Bytes that are charged already.
    bytes: u64,
    /// Whether it counts as a running load of its user and its table.
    is_counted: bool,
}

impl AdmittedLoad {
    /// The permission of a load of the server itself.
    pub fn of_server() -> Self {
        Self::default()
    }

    /// The permission of a load that is [admitted](Limits::wait_for_load) before it reads anything.
    pub fn later(principal: &Principal) -> Self {
        Self { user: principal.key(), ..Self::default() }
    }

    /// Whose load it is.
    pub const fn user(&self) -> UserKey {
        self.user
    }

    /// The permission of a load whose user had this right when it began.
    pub fn with_right(self, right: Arc<LoadRight>) -> Self {
        Self { right: Some(right), ..self }
    }

    /// The right that must hold when the load's waiting is over.
    pub fn right(&self) -> Option<Arc<LoadRight>> {
        self.right.clone()
    }

    /// Gives everything back: the load has not begun, and will be admitted again.
    pub fn give_back(self) {
        let Some(limited) = &self.limited else { return };
        let now = Instant::now();
        if let Some(user) = &limited.user {
            user.take_back(limited.bytes, now);
        }
        if let Some(table) = &limited.table {
            let mut state = table.state.lock();
            if let Some(rate) = state.limits.bytes {
                state.bytes.give_back(limited.bytes, rate, now);
            }
        }
    }

    /// Charges the rows and bytes that the load brings, once.
    pub fn charge(&self, rows: u64, bytes: u64) {
        if let Some(counted) = &self.counted {
            counted.0.shares.bring(self.user, bytes);
        }
        if let Some(limited) = &self.limited {
            limited.charge(rows, bytes, Instant::now());
        }
    }
}

impl LimitedLoad {
    fn charge(&self, rows: u64, bytes: u64, now: Instant) {
        if let Some(user) = &self.user {
            let limits = user.limits.load();
            let mut state = user.state.lock();
            if let Some(rate) = limits.get(UserProperty::MaxLoadRowsPerSecond) {
                state.rows.take(rows, rate, now);
            }
            if let Some(rate) = limits.get(UserProperty::MaxLoadBytesPerSecond) {
                correct(&mut state.bytes, self.bytes, bytes, rate, now);
            }
        }
        if let Some(table) = &self.table {
            let mut state = table.state.lock();
            let limits = state.limits;
            if let Some(rate) = limits.rows {
                state.rows.take(rows, rate, now);
            }
            if let Some(rate) = limits.bytes {
                correct(&mut state.bytes, self.bytes, bytes, rate, now);
            }
        }
    }
}

/// Makes what was charged before what is due.
fn correct(bucket: &mut Bucket, charged: u64, due: u64, rate: u64, now: Instant) {
    if due >= charged {
        bucket.take(due - charged, rate, now);
    } else {
        bucket.give_back(charged - due, rate, now);
    }
}

impl Drop for LimitedLoad {
    fn drop(&mut self) {
        if let Some(user) = self.user.as_ref().filter(|_| self.is_counted) {
            let mut state = user.state.lock();
            state.loads = state.loads.saturating_sub(1);
        }
        if let Some(table) = self.table.as_ref().filter(|_| self.is_counted) {
            let mut state = table.state.lock();
            state.loads = state.loads.saturating_sub(1);
        }
    }
}

/// A query's permission to run. Dropped, the query counts no longer.
#[must_use = "it counts the query while it runs"]
#[derive(Default)]
pub(crate) struct AdmittedQuery(Option<Arc<UserUse>>);

impl Drop for AdmittedQuery {
    fn drop(&mut self) {
        if let Some(user) = &self.0 {
            let mut state = user.state.lock();
            state.queries = state.queries.saturating_sub(1);
        }
    }
}

impl UserUse {
    fn reached(
        &self,
        property: UserProperty,
        value: u64,
        retry_after: impl Into<Option<Duration>>,
    ) -> LimitReached {
        LimitReached {
            owner: Owner::User(self.name.clone()),
            property,
            value,
            retry_after: retry_after.into(),
        }
    }

    /// Counts a load and takes what is known of it, or nothing.
    fn admit_load(&self, bytes: u64, now: Instant) -> Result<(), LimitReached> {
        use UserProperty::{
            MaxConcurrentLoads, MaxLoadBytesPerSecond, MaxLoadRequestsPerSecond, MaxLoadRowsPerSecond,
        };
        let limits = self.limits.load();
        let mut state = self.state.lock();
        if let Some(most) = limits.get(MaxConcurrentLoads)
            && state.loads >= most
        {
            return Err(self.reached(MaxConcurrentLoads, most, RETRY_OF_CONCURRENT));
        }
        let UserState { requests, rows, bytes: sent, .. } = &mut *state;
        for (property, bucket) in [
            (MaxLoadRequestsPerSecond, &mut *requests),
            (MaxLoadRowsPerSecond, rows),
            (MaxLoadBytesPerSecond, &mut *sent),
        ] {
            if let Some(rate) = limits.get(property)
                && let Some(wait) = bucket.wait(rate, now)
            {
                return Err(self.reached(property, rate, wait));
            }
        }
        if let Some(rate) = limits.get(MaxLoadRequestsPerSecond) {
            requests.take(1, rate, now);
        }
        if let Some(rate) = limits.get(MaxLoadBytesPerSecond) {
            sent.take(bytes, rate, now);
        }
        state.loads += 1;
        Ok(())
    }

    /// Takes back what [`UserUse::admit_load`] has taken, but for the count of running loads.
    fn take_back(&self, bytes: u64, now: Instant) {
        let limits = self.limits.load();
        let mut state = self.state.lock();
        if let Some(rate) = limits.get(UserProperty::MaxLoadRequestsPerSecond) {
            state.requests.give_back(1, rate, now);
        }
        if let Some(rate) = limits.get(UserProperty::MaxLoadBytesPerSecond) {
            state.bytes.give_back(bytes, rate, now);
        }
    }
}

impl TableUse {
    /// Takes what is known of a load, or nothing.
    fn admit_load(
        &self,
        bytes: u64,
        limits: TableLimits,
        now: Instant,
    ) -> Result<(), (UserProperty, u64, Duration)> {
        let mut state = self.state.lock();
        state.limits = limits;
        if let Some(most) = limits.loads.filter(|most| state.loads >= *most) {
            return Err((UserProperty::MaxConcurrentLoads, most, RETRY_OF_CONCURRENT));
        }
        let TableState { rows, bytes: sent, loads, .. } = &mut *state;
        for (property, rate, bucket) in [
            (UserProperty::MaxLoadRowsPerSecond, limits.rows, rows),
            (UserProperty::MaxLoadBytesPerSecond, limits.bytes, &mut *sent),
        ] {
            if let Some(rate) = rate
                && let Some(wait) = bucket.wait(rate, now)
            {
                return Err((property, rate, wait));
            }
        }
        if let Some(rate) = limits.bytes {
            sent.take(bytes, rate, now);
        }
        *loads += 1;
        Ok(())
    }

    /// Whether nothing is lost if it is forgotten.
    fn is_idle(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let limits = state.limits;
        let is_full =
            |bucket: &mut Bucket, rate: Option<u64>| rate.is_none_or(|rate| bucket.is_full(rate, now));
        let TableState { rows, bytes, .. } = &mut *state;
        is_full(rows, limits.rows) && is_full(bytes, limits.bytes)
    }
}

impl Limits {
    /// The limits in the catalog; nothing has been taken of them.
    ///
    /// # Errors
    /// The registry has one of the metrics already.
    pub fn new(
        catalog: Arc<Catalog>,
        loads_max: Live<u64>,
        registry: &Registry,
    ) -> Result<Self, prometheus::Error> {
        let loads: Arc<AllLoads> = Arc::default();
        let limits = Self {
            catalog,
            has_users: AtomicBool::new(false),
            users: ArcSwap::default(),
            reading: Mutex::new(()),
            tables: Mutex::default(),
            parts: Arc::new(AllLoads { shares: Arc::clone(&loads.shares), ..AllLoads::default() }),
            loads,
            loads_max,
            closed: AtomicU8::new(0),
            metrics: LimitMetrics::new(registry)?,
        };
        limits.refresh();
        Ok(limits)
    }

    /// Applies the limits that the catalog has now. To be called after each change of users.
    pub fn refresh(&self) {
        let _reading = self.reading.lock();
        let before = self.users.load_full();
        let limited = self.catalog.users().into_iter().filter(|user| !user.account.limits.is_empty());
        let users: HashMap<Account, Arc<UserUse>> = limited.map(|user| self::entry(&user, &before)).collect();
        let has_users = !users.is_empty();
        self.users.store(Arc::new(users));
        self.has_users.store(has_users, Ordering::Release);
    }

    /// The user, if it has limits.
    #[inline]
    fn user(&self, principal: &Principal) -> Option<Arc<UserUse>> {
        if !self.has_users.load(Ordering::Acquire) {
            return None;
        }
        self.users.load().get(&principal.account()).cloned()
    }

    /// The value of a user's limit, if it has one.
    pub fn value(&self, principal: &Principal, property: UserProperty) -> Option<u64> {
        self.user(principal)?.limits.load().get(property)
    }

    /// Admits a load of which `bytes` bytes are known to come.
    ///
    /// # Errors
    /// The user or the table has reached a limit.
    #[inline]
    pub fn admit_load(
        &self,
        principal: &Principal,
        table: &Table,
        bytes: Option<u64>,
    ) -> Result<AdmittedLoad, LimitReached> {
        self.try_admit_load(principal, table, bytes).inspect_err(|reached| self.metrics.refused(reached))
    }

    #[inline]
    fn try_admit_load(
        &self,
        principal: &Principal,
        table: &Table,
        bytes: Option<u64>,
    ) -> Result<AdmittedLoad, LimitReached> {
        let counted = Some(self.count_load()?);
        let user = self.user(principal);
        let limits = TableLimits::of(table);
        if user.is_none() && limits == TableLimits::default() {
            let user = principal.key();
            return Ok(AdmittedLoad { user, counted, limited: None, right: None });
        }
        let admitted = self.admit_limited(user, table, limits, bytes.unwrap_or(0), Instant::now())?;
        let limited = Some(Box::new(admitted));
        Ok(AdmittedLoad { user: principal.key(), counted, limited, right: None })
    }

    /// From now on no load is admitted, or loads are admitted again.
    pub fn drain(&self, is_draining: bool) {
        let (before, after) =
            if is_draining { (0, Closed::Draining as u8) } else { (Closed::Draining as u8, 0) };
        // A server that is closed for good stays so.
        let _ = self.closed.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Admits no load any more.
    pub fn close(&self, why: Closed) {
        self.closed.store(why as u8, Ordering::SeqCst);
    }

    /// Whether the server drains.
    pub fn is_draining(&self) -> bool {
        Closed::of(self.closed.load(Ordering::Acquire)) == Some(Closed::Draining)
    }

    /// Loads that run.
    pub fn running_loads(&self) -> u64 {
        self.loads.running.load(Ordering::SeqCst)
    }

    /// The loads of each user that has had some of late. To be called once a second, by one task.
    pub fn loads_of_users(&self) -> Vec<UserLoads> {
        self.loads.shares.look()
    }

    /// `'u'@'h'` of a user.
    pub fn name_of(&self, key: UserKey) -> Option<String> {
        let mut users = self.catalog.users().into_iter();
        let found = users.find(|user| UserKey::of(&user.name, &user.host) == key)?;
        Some(format!("'{}'@'{}'", found.name, found.host))
    }

    /// Counts a load of the server.
    #[inline]
    fn count_load(&self) -> Result<Counted, LimitReached> {
        let counted = Counted(Arc::clone(&self.loads));
        // One of the two sees the other: a load that is not counted yet sees that the server drains.
        let before = self.loads.running.fetch_add(1, Ordering::SeqCst);
        let closed = Closed::of(self.closed.load(Ordering::SeqCst));
        let loads_max = self.loads_max.get();
        if before < loads_max && closed.is_none() {
            return Ok(counted);
        }
        Err(LimitReached {
            owner: closed.map_or(Owner::Server, Owner::Closed),
            property: UserProperty::MaxConcurrentLoads,
            value: loads_max,
            retry_after: (closed != Some(Closed::OnlyReads)).then_some(RETRY_OF_CONCURRENT),
        })
    }

    fn admit_limited(
        &self,
        user: Option<Arc<UserUse>>,
        table: &Table,
        limits: TableLimits,
        bytes: u64,
        now: Instant,
    ) -> Result<LimitedLoad, LimitReached> {
        if let Some(user) = &user {
            user.admit_load(bytes, now)?;
        }
        // From here on it is dropped, and counts no longer, if it is refused.
        let mut admitted = LimitedLoad { is_counted: true, user, table: None, bytes };
        if limits != TableLimits::default() {
            let of_table = self.table(table.id(), now);
            if let Err((property, value, wait)) = of_table.admit_load(bytes, limits, now) {
                if let Some(user) = &admitted.user {
                    user.take_back(bytes, now);
                }
                let owner = Owner::Table(table.def().table_ref());
                return Err(LimitReached { owner, property, value, retry_after: Some(wait) });
            }
            admitted.table = Some(of_table);
        }
        Ok(admitted)
    }

    /// The permission of a load that is part of an admitted one, into another table. It is charged, but neither counted nor refused.
    pub fn part_of_load(&self, principal: &Principal, table: &Table) -> AdmittedLoad {
        let user = self.user(principal);
        let limits = TableLimits::of(table);
        let of_table = (limits != TableLimits::default()).then(|| {
            let of_table = self.table(table.id(), Instant::now());
            of_table.state.lock().limits = limits;
            of_table
        });
        let is_limited = user.is_some() || of_table.is_some();
        self.parts.running.fetch_add(1, Ordering::Relaxed);
        let counted = Some(Counted(Arc::clone(&self.parts)));
        let limited = LimitedLoad { user, table: of_table, bytes: 0, is_counted: false };
        let limited = is_limited.then(|| Box::new(limited));
        AdmittedLoad { user: principal.key(), counted, limited, right: None }
    }

    /// Waits until a job's load is admitted; without a table, until its user is.
    pub async fn wait_for_load(&self, principal: &Principal, table: Option<&Table>) -> AdmittedLoad {
        let admit = || match table {
            Some(table) => self.try_admit_load(principal, table, None),
            None => self.try_admit_tables(principal),
        };
        self.wait(admit).await
    }

    /// Admits a load into tables that are not known yet.
    fn try_admit_tables(&self, principal: &Principal) -> Result<AdmittedLoad, LimitReached> {
        let counted = Some(self.count_load()?);
        let limited = match self.user(principal) {
            Some(user) => {
                user.admit_load(0, Instant::now())?;
                Some(Box::new(LimitedLoad { user: Some(user), table: None, bytes: 0, is_counted: true }))
            }
            None => None,
        };
        Ok(AdmittedLoad { user: principal.key(), counted, limited, right: None })
    }

    /// Admits a query.
    ///
    /// # Errors
    /// The user has reached its limit.
    pub fn admit_query(&self, principal: &Principal) -> Result<AdmittedQuery, LimitReached> {
        self.try_admit_query(principal).inspect_err(|reached| self.metrics.refused(reached))
    }

    fn try_admit_query(&self, principal: &Principal) -> Result<AdmittedQuery, LimitReached> {
        let Some(user) = self.user(principal) else { return Ok(AdmittedQuery::default()) };
        let most = user.limits.load().get(UserProperty::MaxConcurrentQueries);
        {
            let mut state = user.state.lock();
            if let Some(most) = most.filter(|most| state.queries >= *most) {
                return Err(user.reached(UserProperty::MaxConcurrentQueries, most, RETRY_OF_CONCURRENT));
            }
            state.queries += 1;
        }
        Ok(AdmittedQuery(Some(user)))
    }

    /// Waits until a job's query is admitted.
    pub async fn wait_for_query(&self, principal: &Principal) -> AdmittedQuery {
        self.wait(|| self.try_admit_query(principal)).await
    }

    async fn wait<T>(&self, admit: impl Fn() -> Result<T, LimitReached>) -> T {
        let mut has_waited = false;
        loop {
            let reached = match admit() {
                Ok(admitted) => return admitted,
                Err(reached) => reached,
            };
            if !std::mem::replace(&mut has_waited, true) {
                self.metrics.job_waits.inc();
            }
            let wait = reached.retry_after.unwrap_or(JOB_LOOK).clamp(JOB_LOOK_MIN, JOB_LOOK);
            tokio::time::sleep(wait).await;
        }
    }

    /// The refusal of a connection that is one too many.
    pub fn refuse_connection(&self, principal: &Principal, most: u64) -> SqlError {
        let (user, host) = (principal.user(), principal.account_host());
        let reached = LimitReached {
            owner: Owner::User(format!("'{user}'@'{host}'")),
            property: UserProperty::MaxUserConnections,
            value: most,
            retry_after: None,
        };
        self.metrics.refused(&reached);
        reached.into()
    }

    fn table(&self, id: TableId, now: Instant) -> Arc<TableUse> {
        let mut tables = self.tables.lock();
        if let Some(known) = tables.get(&id) {
            return Arc::clone(known);
        }
        // Tables come and go; a full bucket is like none.
        tables.retain(|_, table| Arc::strong_count(table) > 1 || !table.is_idle(now));
        Arc::clone(tables.entry(id).or_insert_with(|| Arc::new(TableUse { state: Mutex::default() })))
    }
}

/// The user's new limits, with its use so far.
fn entry(user: &User, before: &HashMap<Account, Arc<UserUse>>) -> (Account, Arc<UserUse>) {
    let account: Account = (user.name.as_str().into(), user.host.as_str().into());
    let limits = Arc::new(user.account.limits.clone());
    if let Some(known) = before.get(&account) {
        known.limits.store(limits);
        return (account, Arc::clone(known));
    }
    let user = UserUse {
        name: format!("'{}'@'{}'", user.name, user.host),
        limits: ArcSwap::new(limits),
        state: Mutex::default(),
    };
    (account, Arc::new(user))
}

#[cfg(test)]
mod tests;
