//! Starts and stops a server: its parts are made, and end, in the order in which they depend on each
//! other.
//!
//! Invariant: a start that is refused, or ends anywhere, leaves a storage root that the next start can open. The node's file
//! precedes the catalog: a root with a catalog has an identity.

use super::replayed::Replayed;
use super::{Engine, JobsShown};
use crate::access::Access;
use crate::access::accounts::Accounts;
use crate::access::events::EventKind;
use crate::access::finished::Requests;
use crate::access::gate::Gate;
use crate::access::limits::{Closed, Limits};
use crate::access::logins::Logins;
use crate::access::names::Names;
use crate::access::privileges::Privileges;
use crate::audit::Audit;
use crate::audit_table::AuditTable;
use crate::background::JobParts;
use crate::ddl::change::records;
use crate::ddl::{Ddl, DdlParts};
use crate::files::FileReading;
use crate::files::outfile::LineFormat;
use crate::follow::Follower;
use crate::generated::GeneratedColumns;
use crate::jobs::{ServerJobParts, ServerJobs};
use crate::load::auto_increment::CatalogIncrements;
use crate::load::labels::{CatalogLabels, CatalogSchemas};
use crate::load::{LoadParts, Loads};
use crate::node::catalog_place::{self, Opened};
use crate::node::health::LastReadiness;
use crate::node::host::{SpoolDisk, SpoolRoom, disk_limit, emptied};
use crate::node::metrics::Metrics;
use crate::node::node_file::NodeFile;
use crate::node::options::{EngineOptions, Ports};
use crate::node::session_memory::SessionsMemory;
use crate::node::start_error::StartError;
use crate::node::state_dir;
use crate::node::table_storage;
use crate::node::wal_dirs::{self, WalDirs};
use crate::queries::Queries;
use crate::queries::namespace::{EngineNamespace, Facts, OtherMemory, ShownJobs};
use crate::queries::nodes::{self, Nodes, cpu_cores};
use crate::variables::VERSION_COMMENT;
use crate::verify::Verifier;
use crate::watch::{self, Looked, Sizes, Watch};
use crate::writer::{Question, WriterLink};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use std::fs::{File, Permissions};
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tributary_catalog::{Catalog, NodeAccess, NodeSign};
use tributary_ingest::{AutoIncrements, Ingest, IngestMetrics, IngestOptions, Ownership, RecoveryReport};
use tributary_query::{QueryEngine, QueryOptions, Spill};
use tributary_table::{StoreOptions, Table, TableError, TableStore, Writer};
use tributary_traces::{TraceOptions, Traces};
use tributary_types::host::unix_ms;
use tributary_types::process::log_lines_dropped;
use tributary_types::{Live, SqlError, TableDef};
use tributary_wal::{Disk, OsDisk};

/// How many tables are opened at a time.
const TABLES_OPENED_AT_ONCE: usize = 16;
/// How often error logs are purged.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);
/// How often a change of the server's readiness is looked for, and a catalog that failed is tried.
const HEALTH_INTERVAL: Duration = Duration::from_secs(5);
/// How often nodes that read are told how far the tables' files are.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// How often nodes that share a catalog say that they live.
const NODES_INTERVAL: Duration = Duration::from_secs(5);
/// How often a node that reads asks the one that writes whether it is there.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked whether this node has ports that it can name.
const PORTS_INTERVAL: Duration = Duration::from_millis(100);
/// How often the process looks whether it was frozen.
const OWNER_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval for checking the recycle bin, which happens at least once per retention time.
const EXPIRE_INTERVAL_MIN: Duration = Duration::from_secs(1);
const EXPIRE_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// When a comparison of the tables that could not be made is tried again.
const VERIFY_RETRY_MIN: Duration = Duration::from_secs(1);
const VERIFY_RETRY_MAX: Duration = Duration::from_secs(600);
/// How often a pause looks whether its setting has changed.
const LOOK: Duration = Duration::from_secs(5);

/// The time between two runs of work.
enum Pause {
    For(Duration),
    /// As long as a setting says, from the end of the work. Zero: until it says something else.
    As(Live<Duration>),
}

impl From<Duration> for Pause {
    fn from(time: Duration) -> Self {
        Self::For(time)
    }
}

impl Pause {
    async fn pass(self) {
        let setting = match self {
            Self::For(time) => return tokio::time::sleep(time).await,
            Self::As(setting) => setting,
        };
        let begun = tokio::time::Instant::now();
        loop {
            let time = setting.get();
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() && !time.is_zero() {
                return;
            }
            tokio::time::sleep(if time.is_zero() { LOOK } else { left.min(LOOK) }).await;
        }
    }
}

/// State that lives from start to stop and is used only there.
pub(super) struct Running {
    background: Mutex<Vec<JoinHandle<()>>>,
    /// Kept for queries, which see it as long as the server runs.
    _shown: Arc<dyn ShownJobs>,
    node: NodeFile,
    wal_dirs: WalDirs,
    /// Locked while this process has the state directory.
    _lock: File,
}

impl Engine {
    /// Opens the storage root: catalog, tables, logs. Every acknowledged row is in its table, once,
    /// when this returns. `lines` writes rows as lines of text.
    ///
    /// # Errors
    /// See [`StartError`]; nothing was changed that the next start would not correct.
    pub(crate) async fn open(
        options: EngineOptions,
        lines: LineFormat,
    ) -> Result<(Arc<Self>, RecoveryReport), StartError> {
        let directory = options.tables.directory().to_owned();
        let table_storage = options.table_storage.clone();
        let store = |options| match &table_storage {
            Some(given) => TableStore::remote(given, options),
            None => TableStore::local(&directory, options),
        };
        let access =
            |catalog: &Arc<Catalog>| -> Arc<dyn Access> { Arc::new(Privileges::new(Arc::clone(catalog))) };
        Self::open_with(options, access, store, lines).await
    }

    #[expect(clippy::too_many_lines, reason = "each part is made once, after those that it needs")]
    pub(crate) async fn open_with(
        mut options: EngineOptions,
        access: impl FnOnce(&Arc<Catalog>) -> Arc<dyn Access>,
        store: impl FnOnce(StoreOptions) -> Result<TableStore, TableError>,
        lines: LineFormat,
    ) -> Result<(Arc<Self>, RecoveryReport), StartError> {
        let started = Instant::now();
        if options.only_reads() {
            // Rows arrive at the server that writes.
            options.ingest.wal_dirs.clear();
        }
        let lock = state_dir::lock(&options.state_dir)?;
        let metrics = Metrics::new()?;
        let audit = Audit::open(options.audit.clone(), metrics.registry())?;
        let ingest_metrics = Arc::new(IngestMetrics::new(metrics.registry())?);
        let Opened { node, catalog, claimed } = catalog_place::open(&options).await?;
        let ownership = claimed.as_ref().map_or_else(Ownership::default, |_| Ownership::that_may_end());
        let traces = options.traces.clone().map(|traces| TraceOptions { instance: node.id(), ..traces });
        let traces = Traces::new(traces, metrics.registry())?;
        let requests = Arc::new(Requests::new(metrics.registry(), audit, traces)?);
        let keys_directory = Some(options.state_dir.join("keys"));
        let read_cache = table_storage::read_cache(&options)?;
        let store_options = StoreOptions {
            node: node.id(),
            epoch: claimed.as_ref().map_or(0, |claimed| claimed.epoch),
            claim: table_storage::write_claim(&options, claimed.as_ref()),
            keys_directory,
            read_cache,
            ..options.store.clone()
        };
        let writer = Arc::new(WriterLink::new(Arc::clone(&catalog), metrics.registry())?);
        let asked = options.only_reads().then(|| Arc::clone(&writer) as Arc<dyn Writer>);
        let store = Arc::new(store(store_options)?.with_writer(asked));
        table_storage::settle(&options, &store, &node, &catalog).await?;
        let tables = if options.only_reads() {
            // They are opened when the follower looks first.
            Vec::new()
        } else {
            super::records::check(&catalog.jobs(&node.id()).await?)?;
            records::complete(&catalog, &store, &node.id()).await?;
            open_tables(&catalog, &store).await?
        };
        let wal_dirs = wal_dirs::to_open(&node, &options.state_dir, &options.ingest.wal_dirs)?;
        private_directories(&options)?;
        let (ingest, report) = Ingest::open(
            IngestOptions {
                retired_wal_dirs: wal_dirs.retired.clone(),
                ownership: ownership.clone(),
                ..options.ingest.clone()
            },
            Arc::new(OsDisk),
            ingest_metrics,
            Arc::new(CatalogLabels { catalog: Arc::clone(&catalog), node: node.id() }),
            &CatalogSchemas(Arc::clone(&catalog)),
            tables.clone(),
        )
        .await?;
        let replayed = Replayed::of(&tables);
        wal_dirs.remember(&node)?;
        let disk_bytes = disk_limit(options.spool_limit_bytes, &options.state_dir);
        let options = Arc::new(options);
        let facts = Arc::new(Facts {
            names: Arc::new(names(&catalog, tables)),
            limits: Arc::new(Limits::new(
                Arc::clone(&catalog),
                options.max_concurrent_loads.clone(),
                metrics.registry(),
            )?),
            catalog: Arc::clone(&catalog),
            nodes: Nodes::new(options.only_reads()),
            processes: Arc::default(),
            ingest: Arc::clone(&ingest),
            store: Arc::clone(&store),
            watch: Arc::new(Watch::new(metrics.registry(), Arc::clone(&requests.events))?),
            events: Arc::clone(&requests.events),
            settings: OnceLock::new(),
            globals: Arc::default(),
            ports: OnceLock::new(),
            host: options.host.clone(),
            node: node.id(),
            tables: options.tables.clone(),
            files: FileReading {
                room: SpoolRoom {
                    memory: Arc::clone(ingest.memory()),
                    directory: empty_directory(options.state_dir.join("spool"))?,
                    disk: Arc::new(SpoolDisk::new(disk_bytes)),
                },
                local_dir: options.secure_load_dir.clone(),
                egress: Arc::clone(&options.egress),
                parallel: options.query.target_partitions,
            },
            started,
            started_unix_ms: unix_ms(),
            memory: OnceLock::new(),
            backup: Mutex::default(),
            jobs: OnceLock::new(),
        });
        let follower = options.only_reads().then(|| {
            let (names, limits) = (Arc::clone(&facts.names), Arc::clone(&facts.limits));
            let (catalog, writer) = (Arc::clone(&catalog), Arc::clone(&writer));
            let max_staleness = options.store.max_staleness.clone();
            Arc::new(Follower::new(catalog, Arc::clone(&store), names, limits, writer, max_staleness))
        });
        let spill =
            Spill { directory: empty_directory(options.state_dir.join("spill"))?, limit_bytes: disk_bytes };
        let query_options = QueryOptions { spill: Some(spill), ..options.query.clone() };
        let nobody = EngineNamespace { facts: Arc::clone(&facts), viewer: None, rejects: None };
        let query = QueryEngine::new(Arc::new(nobody), &store, query_options);
        let query = Arc::new(query.map_err(StartError::Query)?);
        let background = JobParts {
            catalog: Arc::clone(&catalog),
            node: node.id(),
            watcher: ingest.watcher().clone(),
            requests: Arc::clone(&requests),
        };
        let increments = Arc::new(AutoIncrements::new(Arc::new(CatalogIncrements(Arc::clone(&catalog)))));
        let access = access(&catalog);
        let shared =
            Shared { access, catalog, store, ingest, query, facts, options, background, increments, lines };
        let Structs { gate, logins, accounts, queries, ddl, loads, jobs, shown } = shared.structs();
        let Shared { catalog, ingest, query, facts, options, lines, .. } = shared;
        let sessions_memory = SessionsMemory::new(options.session_memory_bytes.clone());
        // Set once, here.
        drop(facts.memory.set(other_memory(&sessions_memory, &query, &options)));
        let audit_table = AuditTable::new(
            Arc::clone(requests.audit.rows()),
            Arc::clone(&loads),
            Arc::clone(&ddl),
            Arc::clone(&facts.names),
            options.audit.table_days,
        );
        let server_uuid = uuid_of(&node.id());
        let verifier = Verifier::new(Arc::clone(&ingest), Arc::clone(&ddl), metrics.registry())?;
        let engine = Arc::new(Self {
            catalog,
            ingest,
            options,
            gate,
            logins,
            accounts,
            queries,
            ddl,
            loads,
            jobs,
            lines,
            facts,
            metrics,
            requests,
            tls: OnceLock::new(),
            last_readiness: LastReadiness::default(),
            sessions_memory,
            user_locks: Arc::default(),
            stored_globals: tokio::sync::Mutex::default(),
            audit_table,
            backing_up: tokio::sync::Mutex::default(),
            verifier,
            ownership,
            replayed,
            follower,
            running: Running { background: Mutex::default(), _shown: shown, node, wal_dirs, _lock: lock },
        });
        let started = format!(
            "Started: {} rows of acknowledged loads were read from the log, and {} groups were finished.",
            report.rows_replayed, report.groups_finished
        );
        engine.facts.events.note(EventKind::Start, &started);
        engine.restore_globals().await.map_err(StartError::Query)?;
        engine.announce("server_uuid", server_uuid);
        engine.take_up().await.map_err(StartError::Query)?;
        Ok((engine, report))
    }

    /// Takes up the work of the last run, and starts work in the background.
    async fn take_up(self: &Arc<Self>) -> Result<(), SqlError> {
        if let Some(follower) = &self.follower {
            self.limits().close(Closed::OnlyReads);
            follower.look().await;
            self.start_background();
            return Ok(());
        }
        self.ddl.keep_recycled_files();
        self.ddl.drop_unfinished_tables().await?;
        self.ddl.drop_left_beside().await?;
        self.ddl.end_drops().await;
        self.ddl.collect_garbage().await?;
        self.jobs.resume().await?;
        self.ddl.resume_schema_changes().await?;
        self.start_background();
        self.jobs.start_jobs().await
    }

    fn start_background(self: &Arc<Self>) {
        let mut tasks = vec![
            self.repeat("watching_health", Self::watch_health),
            self.repeat("watching", Self::watch),
            self.repeat("writing_audit", Self::write_audit),
            self.repeat("sending_traces", Self::send_traces),
            self.repeat("telling_nodes", Self::tell_nodes),
        ];
        if self.follower.is_some() {
            tasks.push(self.repeat("following", Self::follow));
            tasks.push(self.repeat("asking_the_writer", Self::ask_the_writer));
        } else {
            tasks.extend(self.ingest.start_maintenance());
            tasks.extend([
                self.repeat("purging_jobs", Self::purge_ended),
                self.repeat("scheduling_partitions", Self::schedule_partitions_now),
                self.repeat("emptying_recycle_bin", Self::empty_recycle_bin),
                self.repeat("watching_the_owner", Self::watch_owner),
                self.repeat("telling_progress", Self::tell_progress),
                self.repeat("draining", Self::drain),
                self.repeat("verifying", Self::verify_repeatedly),
            ]);
        }
        self.running.background.lock().extend(tasks);
    }

    /// Runs `work` repeatedly in a watched task, with the returned pause in between, as long as the engine exists.
    fn repeat<W: Future<Output: Into<Pause> + Send> + Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        work: fn(Arc<Self>) -> W,
    ) -> JoinHandle<()> {
        let weak = Arc::downgrade(self);
        let repeated = move || {
            let weak = Weak::clone(&weak);
            async move {
                while let Some(engine) = weak.upgrade() {
                    let pause: Pause = work(engine).await.into();
                    pause.pass().await;
                }
            }
        };
        self.ingest.watcher().spawn_watched(name, repeated).expect("an engine is never simulated")
    }

    /// The identity of this node.
    pub(crate) fn node_file(&self) -> &NodeFile {
        &self.running.node
    }

    async fn verify_repeatedly(self: Arc<Self>) -> Pause {
        let interval = &self.options.verify_interval;
        match self.verifier.verify_by_the_clock().await {
            true => Pause::As(interval.clone()),
            false => Pause::For(interval.get().clamp(VERIFY_RETRY_MIN, VERIFY_RETRY_MAX)),
        }
    }

    async fn write_audit(self: Arc<Self>) -> Duration {
        self.audit_table.write().await
    }

    async fn send_traces(self: Arc<Self>) -> Duration {
        self.requests.traces.send().await
    }

    /// Writes the last records of the audit log.
    async fn close_audit(&self) {
        let requests = Arc::clone(&self.requests);
        // Not on a thread of the runtime: it waits for a thread that writes files.
        if let Err(error) = tokio::task::spawn_blocking(move || requests.audit.close()).await {
            tracing::error!(%error, "the audit log could not be closed");
        }
        self.audit_table.close().await;
    }

    async fn purge_ended(self: Arc<Self>) -> Duration {
        self.loads.purge_error_logs().await;
        let before_ms = unix_ms() - self.options.ingest.label_keep.get().as_millis() as i64;
        self.jobs.purge(before_ms).await;
        self.ddl.purge_jobs(before_ms).await;
        PURGE_INTERVAL
    }

    async fn schedule_partitions_now(self: Arc<Self>) -> Pause {
        self.ddl.schedule_partitions(unix_ms()).await;
        Pause::As(self.options.dynamic_partition_interval.clone())
    }

    /// Takes what the server that writes has.
    async fn follow(self: Arc<Self>) -> Duration {
        match &self.follower {
            Some(follower) => follower.look_if_due().await,
            None => HEALTH_INTERVAL,
        }
    }

    /// Asks the server that writes whether it is there, so that queries need not find out.
    async fn ask_the_writer(self: Arc<Self>) -> Duration {
        if let Some(follower) = &self.follower {
            drop(follower.writer().ask(&Question::Presence).await);
        }
        PRESENCE_INTERVAL
    }

    /// Tells nodes that only read how far the tables' files are.
    async fn tell_progress(self: Arc<Self>) -> Duration {
        let is_owner = self.ownership.may_end() && self.ownership.lost_to().is_none();
        // The others have dropped the word of the process before this one, and wait for the next.
        if is_owner && self.replayed.are_in_files(|| self.names().all_tables()) {
            let oldest = || self.names().all_tables().iter().filter_map(|table| table.unflushed_for()).max();
            if let Err(error) = self.catalog.tell_progress(oldest).await {
                // A database that is away is a problem of its own.
                tracing::debug!(%error, "nodes that read were not told how far the tables are");
            }
        }
        PROGRESS_INTERVAL
    }

    /// Says to nodes that share the catalog that this one lives, and learns which others do.
    async fn tell_nodes(self: Arc<Self>) -> Duration {
        let Some(ports) = self.facts.ports.get().copied() else { return PORTS_INTERVAL };
        let own = NodeSign {
            name: self.facts.node.clone(),
            reads_only: self.follower.is_some(),
            host: self.facts.host.clone(),
            query_port: ports.mysql,
            http_port: ports.http,
            webserver_port: ports.webserver,
            flight_port: ports.flight,
            version: VERSION_COMMENT.to_lowercase().replace(' ', "-"),
            since_ms: self.facts.started_unix_ms,
            rows_age_ms: match &self.follower {
                Some(follower) => {
                    follower.age().map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
                }
                None => Some(0),
            },
            access: self.access(ports),
            computes_parts: self.queries.nodes().is_on(),
            cpu_cores: cpu_cores(),
        };
        let is_former = self.follower.is_none() && self.ownership.lost_to().is_some();
        let heard = if is_former { Err(None) } else { self.catalog.say_node(&own).await.map_err(Some) };
        let heard = match heard {
            Ok(heard) => heard,
            Err(error) => {
                // A database that is away is a problem of its own, and a reader's user may only read it.
                tracing::debug!(?error, "other nodes were not told that this one lives");
                self.catalog.heard_nodes().await.unwrap_or_default()
            }
        };
        self.queries.nodes().hear(nodes::peer(&own).as_ref(), nodes::peers(&own, &heard));
        self.facts.nodes.heard(own, heard);
        NODES_INTERVAL
    }

    /// The access of other nodes to this one. `None`: there is none.
    fn access(&self, ports: Ports) -> Option<NodeAccess> {
        let is_on = ports.flight.is_some() && self.shares_catalog();
        is_on.then(|| self.facts.nodes.access(self.certificate()))
    }

    pub(crate) fn shares_catalog(&self) -> bool {
        self.options.catalog_database.is_some()
    }

    /// Notes that the process runs. It waits for nothing: a pause is taken for a freeze.
    async fn watch_owner(self: Arc<Self>) -> Duration {
        self.ownership.runs();
        OWNER_INTERVAL
    }

    /// Says that this process lives, and learns whether another one has taken over what it owns.
    async fn ask_for_the_owner(&self) {
        if self.follower.is_some() {
            return;
        }
        let question = self.ownership.ask();
        self.catalog.keep_up().await;
        let lost = self.catalog.write_trouble().filter(|trouble| trouble.is_lost);
        let is_news = lost.is_some() && self.ownership.lost_to().is_none();
        self.ownership.answered(&question, lost.as_ref().map(|trouble| trouble.reason.as_str()));
        if let Some(trouble) = lost.filter(|_| is_news) {
            self.limits().close(Closed::TakenOver);
            tracing::error!(
                reason = trouble.reason,
                "another process has taken over: this one takes no loads and changes nothing any more; stop it"
            );
        }
    }

    async fn watch_health(self: Arc<Self>) -> Duration {
        // Nobody may come to change anything while the server is not ready.
        self.ask_for_the_owner().await;
        self.last_readiness.look(&self.health());
        tributary_admission::report_left_out();
        HEALTH_INTERVAL
    }

    /// Takes a sample, and looks for what is not well.
    async fn watch(self: Arc<Self>) -> Duration {
        let (ingest, memory) = (&self.ingest, self.ingest.memory());
        let tables = self.names().all_tables();
        let processes = self.processes().all();
        let logs = ingest.logs();
        let waiting: u64 = logs.iter().map(|log| log.waiting_loads).sum();
        let sizes = Sizes {
            load_memory_bytes: memory.used() + memory.in_flight(),
            wal_live_bytes: logs.iter().map(|log| log.stats.live_bytes).sum(),
            resident_bytes: tributary_types::memory::resident(),
            waiting_loads: waiting + (memory.waiting_bodies() + memory.waiting_loads()) as u64,
            connections: processes.len() as u64,
            running_statements: processes.iter().filter(|process| process.is_running()).count() as u64,
        };
        let looked = Looked {
            ingest,
            tables: tables.iter().map(|table| (table.id(), table)).collect(),
            queues: ingest.group_queues(),
            logs,
            rejected: ingest.rejected_counts(),
            health: self.health(),
            taken_over: self.ownership.lost_to(),
            behind: self.complaint(),
            catalog_away: self.catalog.write_trouble().filter(|trouble| trouble.is_away),
            failures: self.requests.failures.recent(Instant::now()),
            users: self.limits().loads_of_users(),
            user_name: &|key| self.limits().name_of(key),
            waiting_loads: sizes.waiting_loads,
            jobs: self.jobs.routine_views(),
            wrong: self.verifier.wrong(),
            not_verified: self.verifier.failure(),
            lost_lines: log_lines_dropped() + self.requests.audit.lost(),
            traffic: self.facts.store.traffic(),
            collector: self.requests.traces.trouble(),
        };
        self.facts.watch.look(&looked, sizes);
        watch::INTERVAL
    }

    async fn empty_recycle_bin(self: Arc<Self>) -> Duration {
        if let Err(error) = self.ddl.expire_recycled(unix_ms()).await {
            tracing::warn!(%error, "what was dropped long ago stays for now");
        }
        self.options.trash_expire.get().clamp(EXPIRE_INTERVAL_MIN, EXPIRE_INTERVAL_MAX)
    }

    /// Commits open groups, flushes all tables, stops the logs. Call it when no client is served
    /// any more.
    pub async fn shutdown(&self) {
        self.jobs.pause().await;
        self.ddl.pause().await;
        self.jobs.stop_jobs().await;
        self.close_audit().await;
        self.requests.traces.close().await;
        let Running { background, node, wal_dirs, .. } = &self.running;
        let background = std::mem::take(&mut *background.lock());
        background.iter().for_each(JoinHandle::abort);
        for task in background {
            // Cancelled, as requested. Until then it may flush and release the logs.
            drop(task.await);
        }
        self.ddl.turns.end_switches().await;
        self.ingest.shutdown().await;
        if let Err(error) = wal_dirs.forget_empty(node, &self.ingest) {
            tracing::warn!(%error, "the list of write-ahead logs stays as it was");
        }
        let tables = self.names().all_tables();
        if self.follower.is_none()
            && tables.iter().all(|table| table.unflushed_for().is_none())
            && let Err(error) = self.catalog.tell_end().await
        {
            tracing::warn!(%error, "nodes that read were not told that the tables are complete");
        }
        if let Err(error) = self.catalog.unsay_node(&self.facts.node).await {
            tracing::debug!(%error, "other nodes were not told that this one ends");
        }
        self.catalog.close().await;
    }
}

/// The parts that the folders' structs share.
struct Shared {
    access: Arc<dyn Access>,
    catalog: Arc<Catalog>,
    store: Arc<TableStore>,
    ingest: Arc<Ingest>,
    query: Arc<QueryEngine>,
    facts: Arc<Facts>,
    options: Arc<EngineOptions>,
    background: JobParts,
    increments: Arc<AutoIncrements>,
    lines: LineFormat,
}

/// The structs of the folders.
struct Structs {
    gate: Arc<Gate>,
    logins: Arc<Logins>,
    accounts: Accounts,
    queries: Arc<Queries>,
    ddl: Arc<Ddl>,
    loads: Arc<Loads>,
    jobs: Arc<ServerJobs>,
    shown: Arc<dyn ShownJobs>,
}

impl Shared {
    fn structs(&self) -> Structs {
        let gate = Arc::new(Gate::new(
            Arc::clone(&self.access),
            Arc::clone(&self.catalog),
            Arc::clone(&self.facts.names),
            Arc::clone(&self.facts.processes),
        ));
        let logins = Arc::new(Logins::new(
            Arc::clone(&self.catalog),
            self.options.password_verifiers,
            Arc::clone(&self.facts.globals),
        ));
        let accounts = Accounts::new(
            Arc::clone(&gate),
            Arc::clone(&self.catalog),
            Arc::clone(&self.facts.names),
            Arc::clone(&self.facts.processes),
            Arc::clone(&logins),
            Arc::clone(&self.facts.limits),
        );
        let generated = Arc::new(GeneratedColumns::new(Arc::clone(&self.query)));
        let queries = Arc::new(Queries::new(
            Arc::clone(&self.query),
            Arc::clone(&self.facts),
            Arc::clone(&self.access),
        ));
        let ddl = Arc::new(Ddl::new(DdlParts {
            catalog: Arc::clone(&self.catalog),
            store: Arc::clone(&self.store),
            ingest: Arc::clone(&self.ingest),
            names: Arc::clone(&self.facts.names),
            gate: Arc::clone(&gate),
            globals: Arc::clone(&self.facts.globals),
            options: Arc::clone(&self.options),
            background: self.background.clone(),
            increments: Arc::clone(&self.increments),
            generated: Arc::clone(&generated),
        }));
        let loads = Arc::new(Loads::new(LoadParts {
            ingest: Arc::clone(&self.ingest),
            options: Arc::clone(&self.options),
            gate: Arc::clone(&gate),
            limits: Arc::clone(&self.facts.limits),
            ddl: Arc::clone(&ddl),
            query: Arc::clone(&self.query),
            generated,
            increments: Arc::clone(&self.increments),
            facts: Arc::clone(&self.facts),
        }));
        let jobs = Arc::new(ServerJobs::new(ServerJobParts {
            catalog: Arc::clone(&self.catalog),
            ingest: Arc::clone(&self.ingest),
            names: Arc::clone(&self.facts.names),
            options: Arc::clone(&self.options),
            background: self.background.clone(),
            gate: Arc::clone(&gate),
            ddl: Arc::clone(&ddl),
            loads: Arc::clone(&loads),
            queries: Arc::clone(&queries),
            lines: self.lines,
        }));
        let shown: Arc<dyn ShownJobs> =
            Arc::new(JobsShown { ddl: Arc::clone(&ddl), jobs: Arc::clone(&jobs) });
        drop(self.facts.jobs.set(Arc::downgrade(&shown)));
        Structs { gate, logins, accounts, queries, ddl, loads, jobs, shown }
    }
}

/// A function that returns the memory of sessions and queries.
fn other_memory(
    sessions: &Arc<SessionsMemory>,
    query: &Arc<QueryEngine>,
    options: &EngineOptions,
) -> Box<dyn Fn() -> OtherMemory + Send + Sync> {
    // Queries hold the facts that hold this.
    let (sessions, query) = (Arc::clone(sessions), Arc::downgrade(query));
    let (limit, queries_limit) = (options.session_memory_bytes.clone(), options.query.memory_limit_bytes);
    Box::new(move || {
        let query = query.upgrade();
        OtherMemory {
            sessions: sessions.used(),
            sessions_limit: limit.get(),
            queries: query.as_ref().map_or(0, |query| query.memory_reserved() as u64),
            queries_limit: queries_limit as u64,
            page_cache: query.map(|query| query.page_cache()).unwrap_or_default(),
        }
    })
}

/// Makes or empties a directory of files that no start needs.
fn empty_directory(path: PathBuf) -> Result<PathBuf, StartError> {
    emptied(path.clone()).map_err(|source| StartError::Io { action: "empty", path, source })
}

/// Creates the directories that only the server's user may read, whatever others may read.
fn private_directories(options: &EngineOptions) -> Result<(), StartError> {
    let below = ["error_log", "keys"].map(|name| options.state_dir.join(name));
    for path in options.ingest.wal_dirs.iter().chain(&below) {
        if path.exists() {
            continue;
        }
        let created = OsDisk.create_dir_all(path);
        let kept = created.and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(0o700)));
        kept.map_err(|source| StartError::Io { action: "create", path: path.clone(), source })?;
    }
    Ok(())
}

/// A node's 32 hexadecimal digits in the form of a UUID.
fn uuid_of(node: &str) -> String {
    const ENDS: [usize; 5] = [8, 12, 16, 20, 32];
    let begins = std::iter::once(0).chain(ENDS);
    let parts: Vec<&str> = begins.zip(ENDS).filter_map(|(begin, end)| node.get(begin..end)).collect();
    parts.join("-")
}

async fn open_tables(catalog: &Catalog, store: &Arc<TableStore>) -> Result<Vec<Arc<Table>>, TableError> {
    // In tasks of their own, so that all processors open tables.
    let open = |def: Arc<TableDef>| {
        let store = Arc::clone(store);
        // Unwatched: the caller waits for it and passes its panic on.
        tokio::spawn(async move { store.open(&def).await })
    };
    let opened =
        futures::stream::iter(catalog.all_tables()).map(open).buffer_unordered(TABLES_OPENED_AT_ONCE);
    opened.map(|opened| opened.unwrap_or_else(|error| resume_unwind(error.into_panic()))).try_collect().await
}

fn names(catalog: &Catalog, tables: Vec<Arc<Table>>) -> Names {
    let names = Names::default();
    for database in catalog.databases() {
        if let Some(id) = catalog.database_id(&database) {
            names.add_database(&database, id);
        }
    }
    for table in tables {
        names.add_table(table);
    }
    names
}
