//! `VERIFY`: what the last comparisons of acknowledged rows, visible rows and Delta tables have found.
//!
//! Not here: the comparison itself, which is `tributary-ingest`'s, and the reading of pages, which a session does.

use crate::ddl::Ddl;
use crate::watch::{VerifyFailure, WrongTable};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use prometheus::{IntCounter, IntGauge, Registry};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_ingest::{Ingest, IngestError, Verified};
use tributary_query::Grid;
use tributary_types::host::unix_ms;
use tributary_types::{ErrorCode, SqlError, TableId};

/// The columns of VERIFY's answer.
const COLUMNS: [&str; 12] = [
    "Table",
    "Result",
    "Version",
    "VisibleRows",
    "DeltaVersion",
    "DeltaRows",
    "LogRows",
    "WaitingRows",
    "DeletedRows",
    "Files",
    "Bytes",
    "Faults",
];

/// The findings of the last comparisons.
pub(crate) struct Verifier {
    ingest: Arc<Ingest>,
    ddl: Arc<Ddl>,
    /// Held by the comparison that runs.
    turn: tokio::sync::Mutex<()>,
    wrong: Mutex<HashMap<TableId, WrongTable>>,
    /// Why the last comparison could not be made; `None`: it was.
    failure: Mutex<Option<VerifyFailure>>,
    /// The server has started less than an interval ago.
    is_young: AtomicBool,
    runs: IntCounter,
    failed: IntCounter,
    tables_wrong: IntGauge,
    last_run: IntGauge,
}

impl Verifier {
    pub fn new(
        ingest: Arc<Ingest>,
        ddl: Arc<Ddl>,
        registry: &Registry,
    ) -> Result<Arc<Self>, prometheus::Error> {
        let counter = |name: &str, help: &str| -> Result<IntCounter, prometheus::Error> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        Ok(Arc::new(Self {
            ingest,
            ddl,
            turn: tokio::sync::Mutex::default(),
            wrong: Mutex::default(),
            failure: Mutex::default(),
            is_young: AtomicBool::new(true),
            runs: counter(
                "tributary_verify_runs_total",
                "Times that VERIFY has compared tables with their logs",
            )?,
            failed: counter(
                "tributary_verify_failed_total",
                "Times that VERIFY could not read a log or a Delta table",
            )?,
            tables_wrong: gauge(
                "tributary_verify_tables_wrong",
                "Tables of which VERIFY has found last that rows are missing, doubled or not readable",
            )?,
            last_run: gauge(
                "tributary_verify_last_run_seconds",
                "When VERIFY has compared tables last, in seconds since 1970; 0 before the first time",
            )?,
        }))
    }

    /// The wrong tables, in the order of their names.
    pub fn wrong(&self) -> Vec<WrongTable> {
        let mut wrong: Vec<_> = self.wrong.lock().values().cloned().collect();
        wrong.sort_by(|one, other| one.name.cmp(&other.name));
        wrong
    }

    /// Why the last comparison could not be made.
    pub fn failure(&self) -> Option<VerifyFailure> {
        self.failure.lock().clone()
    }

    fn failed(&self, error: &IngestError) {
        self.failed.inc();
        // A server that stops is not one that can't read its files.
        if !matches!(error, IngestError::ShuttingDown) {
            let mut failure = self.failure.lock();
            let since_ms = failure.as_ref().map_or_else(unix_ms, |known| known.since_ms);
            let table = match error {
                IngestError::Table { table, .. } => Some(table.to_string()),
                _ => None,
            };
            *failure = Some(VerifyFailure { table, text: error.to_string(), since_ms });
        }
    }

    /// Compares the logs, snapshots and Delta tables of the wanted tables, by default of all.
    // A value of its own, because the compiler cannot prove of the caller's whole future that it may change threads.
    pub fn verify(
        self: &Arc<Self>,
        wanted: Option<HashSet<TableId>>,
    ) -> BoxFuture<'static, Result<Vec<Verified>, SqlError>> {
        let verifier = Arc::clone(self);
        Box::pin(async move {
            let _turn = verifier.turn.lock().await;
            let is_wanted = |table| wanted.as_ref().is_none_or(|wanted| wanted.contains(&table));
            let verified = verifier.ingest.verify(verifier.ddl.store(), is_wanted).await;
            // Files of tables that were dropped meanwhile.
            verifier.ddl.collect_garbage_later();
            let mut verified = verified.map_err(|error| {
                verifier.failed(&error);
                SqlError::detail(ErrorCode::Unknown, format!("VERIFY can't be done: {error}"))
            })?;
            verified.sort_by_key(|verified| verified.name.to_string());
            Ok(verified)
        })
    }

    /// Compares all tables, but not when the server has just started. `false`: it can't be done now.
    pub async fn verify_by_the_clock(self: &Arc<Self>) -> bool {
        if self.is_young.swap(false, Ordering::Relaxed) {
            return true;
        }
        match self.verify(None).await {
            Ok(verified) => {
                self.note(&verified, true);
                true
            }
            Err(error) => {
                tracing::warn!(error = error.detail_text(), "tables are not verified");
                false
            }
        }
    }

    /// Remembers verdicts, for the problems and the metrics. `all`: of all tables that there are.
    pub fn note(&self, verified: &[Verified], all: bool) {
        let mut wrong = self.wrong.lock();
        if all {
            let there: HashSet<TableId> = verified.iter().map(|verified| verified.table).collect();
            wrong.retain(|table, _| there.contains(table));
            *self.failure.lock() = None;
        }
        for verified in verified {
            let Some(fault) = verified.faults.first() else {
                wrong.remove(&verified.table);
                continue;
            };
            let since_ms = wrong.get(&verified.table).map_or_else(unix_ms, |known| known.since_ms);
            let name = verified.name.to_string();
            tracing::error!(table = %name, faults = ?verified.faults, "VERIFY has found a table wrong");
            let more = verified.faults.len() - 1;
            let table = verified.table;
            wrong.insert(table, WrongTable { table, name, fault: fault.clone(), more, since_ms });
        }
        self.tables_wrong.set(wrong.len() as i64);
        drop(wrong);
        self.runs.inc();
        self.last_run.set(unix_ms() / 1000);
    }
}

/// The answer to VERIFY.
pub(crate) fn grid(verified: &[Verified]) -> Grid {
    let mut grid = Grid::new(&COLUMNS);
    for verified in verified {
        let delta = &verified.delta;
        let is_well = verified.faults.is_empty();
        grid.push(vec![
            verified.name.to_string().into(),
            if is_well { "OK" } else { "WRONG" }.into(),
            verified.version.0.into(),
            verified.visible_rows.into(),
            delta.version.into(),
            delta.rows.into(),
            verified.logged_rows.into(),
            verified.waiting_rows.into(),
            delta.deleted_rows.into(),
            delta.files.into(),
            delta.bytes.into(),
            verified.faults.join("; ").into(),
        ]);
    }
    grid
}
