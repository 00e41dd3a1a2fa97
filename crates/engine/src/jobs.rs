//! Work that continues without the session that started it.
//!
//! Not here: grammar, protocols, sessions; the life of a job and its record ([`crate::background`]).

pub(crate) mod broker_load;
pub(crate) mod export;
mod labels;
pub(crate) mod routine_load;
pub(crate) mod scheduled;

use crate::access::finished::Requests;
use crate::access::gate::Gate;
use crate::access::names::Names;
use crate::background::JobParts;
use crate::ddl::Ddl;
use crate::files::outfile::LineFormat;
use crate::load::Loads;
use crate::node::options::EngineOptions;
use crate::queries::Queries;
use crate::watch::RoutineView;
use broker_load::BrokerLoads;
use export::Exports;
use routine_load::RoutineLoads;
use scheduled::ScheduledJobs;
use std::sync::Arc;
use tributary_catalog::Catalog;
use tributary_ingest::Ingest;
use tributary_kafka::Broker;
use tributary_types::host::unix_ms;

/// The jobs of the server, and the parts that they use.
pub(crate) struct ServerJobs {
    catalog: Arc<Catalog>,
    ingest: Arc<Ingest>,
    names: Arc<Names>,
    options: Arc<EngineOptions>,
    gate: Arc<Gate>,
    ddl: Arc<Ddl>,
    loads: Arc<Loads>,
    queries: Arc<Queries>,
    /// How files of text have rows.
    lines: LineFormat,
    routine: RoutineLoads,
    pub(crate) broker_loads: BrokerLoads,
    exports: Exports,
    /// Jobs that run an INSERT at given times.
    pub(crate) scheduled: ScheduledJobs,
    /// The ends of tasks.
    requests: Arc<Requests>,
}

/// The parts of [`ServerJobs`].
pub(crate) struct ServerJobParts {
    pub catalog: Arc<Catalog>,
    pub ingest: Arc<Ingest>,
    pub names: Arc<Names>,
    pub options: Arc<EngineOptions>,
    pub background: JobParts,
    pub gate: Arc<Gate>,
    pub ddl: Arc<Ddl>,
    pub loads: Arc<Loads>,
    pub queries: Arc<Queries>,
    pub lines: LineFormat,
}

impl ServerJobs {
    pub fn new(parts: ServerJobParts) -> Self {
        let ServerJobParts { catalog, ingest, names, options, background, gate, ddl, loads, queries, lines } =
            parts;
        Self {
            routine: RoutineLoads::new(
                background.node.clone(),
                Arc::new(Broker { egress: Arc::clone(&options.egress) }),
            ),
            scheduled: ScheduledJobs::new(background.node.clone()),
            requests: Arc::clone(&background.requests),
            broker_loads: BrokerLoads::new(background.clone()),
            exports: Exports::new(background),
            catalog,
            ingest,
            names,
            options,
            gate,
            ddl,
            loads,
            queries,
            lines,
        }
    }

    fn unix_ms(&self) -> i64 {
        unix_ms()
    }

    /// Resumes the loads of files and exports that the last run left, and reads the jobs that run at given times.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<(), tributary_types::SqlError> {
        self.resume_broker_loads().await?;
        self.resume_exports().await?;
        self.read_scheduled().await
    }

    /// The jobs of ROUTINE LOAD that have not ended, of all users.
    pub(crate) fn routine_views(&self) -> Vec<RoutineView> {
        self.routine.views()
    }

    /// Forgets jobs that ended before the time (ms since 1970).
    pub(crate) async fn purge(&self, before_ms: i64) {
        self.purge_jobs(before_ms).await;
        self.broker_loads.purge(before_ms).await;
        self.exports.purge(before_ms).await;
        self.purge_scheduled(before_ms).await;
    }

    /// Stops running work; the next start resumes it.
    pub(crate) async fn pause(&self) {
        self.scheduled.pause().await;
        self.broker_loads.pause().await;
        self.exports.pause().await;
    }
}
