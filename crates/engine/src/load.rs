//! The one path of a load into a table, whatever its protocol: begin, push rows, finish.
//!
//! [`Load::begin`] decides the route and reserves the label, [`Load::push`] takes decoded rows and [`Load::finish`] judges them
//! and commits. INSERT, explicit transactions, Stream Load and HTTP Stream all use it; they differ in the source of rows and in
//! the wording of the outcome.
//!
//! Invariant: a load that is not committed leaves nothing, neither rows nor data files, and its label is free again; even if it
//! is dropped.
//!
//! Not here: bytes, statements, sessions, texts of answers.

pub(crate) mod auto_increment;
pub(crate) mod body;
pub(crate) mod builders;
pub(crate) mod error_log;
pub(crate) mod hidden_columns;
pub(crate) mod info;
pub(crate) mod labels;
pub(crate) mod lanes;
pub(crate) mod load_records;
pub(crate) mod names;
pub(crate) mod overwrites;
pub(crate) mod partial_update;
pub(crate) mod replays;
pub(crate) mod row_changes;
pub(crate) mod sink;

use crate::access::gate::Gate;
use crate::access::interrupt::{Interrupt, Interrupted};
use crate::access::limits::{AdmittedLoad, LimitReached, Limits};
use crate::access::right::right_to_load;
use crate::ddl::Ddl;
use crate::generated::GeneratedColumns;
use crate::load::partial_update::KnownKeys;
use crate::load::sink::{LoadSink, SinkError};
use crate::node::clock::rfc_3339;
use crate::node::host::SpoolRoom;
use crate::node::options::{EngineOptions, Ports};
use crate::queries::namespace::Facts;
use body::parts::DecodeThreads;
use builders::Builders;
use error_log::ErrorLog;
use load_records::LoadRecords;
use names::Claim;
use overwrites::RunningOverwrites;
use replays::RunningReplays;
use row_changes::RowChanges;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tributary_decode::{Block, Counts, Reject, blocks_to_batches};
use tributary_ingest::{
    Answered, AutoIncrements, Body, CloseReason, Ingest, IngestError, LoadRejects, LoadRight, LoadRows,
    LoadTraits, NamedLoad, ReplayedRows, Reservation, Route, Source, Stages, TransactionKind,
    TransactionStatus, route,
};
use tributary_query::QueryEngine;
use tributary_table::{Replaced, Table};
use tributary_types::host::{self, unix_ms};
use tributary_types::{
    Attachment, DbId, GroupCommitMode, Label, Partitions, Principal, RejectPolicy, Retry, SourceId, SqlError,
    TableRole, TableSchema, TxnId,
};

/// The parts that loads use, and state that loads share.
pub(crate) struct Loads {
    pub(crate) ingest: Arc<Ingest>,
    pub(crate) options: Arc<EngineOptions>,
    gate: Arc<Gate>,
    /// Limits of users and tables, by which loads are admitted.
    pub(crate) limits: Arc<Limits>,
    ddl: Arc<Ddl>,
    /// Queries of nobody, who sees no table: for expressions over the fields of a load.
    query: Arc<QueryEngine>,
    pub(crate) generated: Arc<GeneratedColumns>,
    /// Values of AUTO_INCREMENT columns.
    increments: Arc<AutoIncrements>,
    facts: Arc<Facts>,
    pub(crate) error_log: Arc<ErrorLog>,
    pub(crate) builders: Builders,
    /// Threads that decode parts of large bodies.
    pub(crate) decode_threads: DecodeThreads,
    /// Permits of loads that write data files.
    file_turns: Arc<Semaphore>,
    pub(crate) load_records: LoadRecords,
    /// Turns of statements that change rows which they have read.
    pub(crate) row_changes: RowChanges,
    /// The targets of running INSERT OVERWRITE statements.
    pub(crate) overwrites: RunningOverwrites,
    /// The rejected rows that running statements bring again.
    pub(crate) replays: RunningReplays,
}

/// The parts of [`Loads`].
pub(crate) struct LoadParts {
    pub ingest: Arc<Ingest>,
    pub options: Arc<EngineOptions>,
    pub gate: Arc<Gate>,
    pub limits: Arc<Limits>,
    pub ddl: Arc<Ddl>,
    pub query: Arc<QueryEngine>,
    pub generated: Arc<GeneratedColumns>,
    pub increments: Arc<AutoIncrements>,
    pub facts: Arc<Facts>,
}

impl Loads {
    pub fn new(parts: LoadParts) -> Self {
        let LoadParts { ingest, options, gate, limits, ddl, query, generated, increments, facts } = parts;
        Self {
            error_log: Arc::new(ErrorLog::new(options.state_dir.join("error_log"))),
            ingest,
            options,
            gate,
            limits,
            ddl,
            query,
            generated,
            increments,
            facts,
            builders: Builders::default(),
            decode_threads: DecodeThreads::new(),
            file_turns: sink::file_turns(),
            load_records: LoadRecords::default(),
            row_changes: RowChanges::default(),
            overwrites: RunningOverwrites::default(),
            replays: RunningReplays::default(),
        }
    }

    /// Admits a load into the table: the first step of every load of a user.
    ///
    /// # Errors
    /// The user or the table has reached a limit.
    #[inline]
    pub(crate) fn admit(
        &self,
        principal: &Principal,
        table: &Arc<Table>,
        traits: &LoadTraits,
    ) -> Result<AdmittedLoad, LimitReached> {
        let right = self.right(principal, table, None);
        self.admit_with(principal, table, traits, right)
    }

    /// Admits a load like [`Loads::admit`] whose right is known.
    #[inline]
    pub(crate) fn admit_with(
        &self,
        principal: &Principal,
        table: &Table,
        traits: &LoadTraits,
        right: Arc<LoadRight>,
    ) -> Result<AdmittedLoad, LimitReached> {
        let bytes = match traits.body {
            Body::Known(bytes) => Some(bytes),
            Body::Unknown => None,
        };
        Ok(self.limits.admit_load(principal, table, bytes)?.with_right(right))
    }

    /// The right of a user who may load into the table, as it was [looked up](right_to_load).
    pub(crate) fn right(
        &self,
        principal: &Principal,
        table: &Arc<Table>,
        generation: Option<u64>,
    ) -> Arc<LoadRight> {
        right_to_load(&self.gate, principal, table, generation)
    }

    fn ports(&self) -> Ports {
        self.facts.ports.get().copied().unwrap_or_default()
    }

    fn unix_ms(&self) -> i64 {
        unix_ms()
    }

    /// The server's time zone.
    fn time_zone(&self) -> String {
        self.facts.globals.read().values().time_zone.name.clone()
    }

    /// Space for bodies that are read from their end.
    pub(crate) fn spool_room(&self) -> SpoolRoom {
        self.facts.files.room.clone()
    }
}

/// A load's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadLabel {
    /// The client chose it: it stays used after the load.
    Chosen(Label),
    /// It was made for the client before the load began and is only a name.
    Made(Label),
    /// It is made if the load becomes a transaction of its own.
    Unnamed,
}

impl From<Option<Label>> for LoadLabel {
    fn from(chosen: Option<Label>) -> Self {
        chosen.map_or(Self::Unnamed, Self::Chosen)
    }
}

/// The limits of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadLimits<'a> {
    /// The share of rejected rows above which the load fails.
    pub max_filter_ratio: f64,
    /// Whether it may fail for them at all; `None`: the table's property decides.
    pub rejected_rows: Option<RejectPolicy>,
    /// How long it may wait for its group.
    pub timeout: Duration,
    pub interrupt: Interrupt<'a>,
    /// Whether its client is told where the time went.
    pub has_details: bool,
}

/// The counts of decoding the rows.
#[derive(Debug, Default)]
pub(crate) struct Tally<'a> {
    pub counts: Counts,
    pub rejects: &'a [Reject],
}

/// A load on its way.
#[must_use = "finish or abort it; dropped, it is aborted"]
pub(crate) struct Load {
    route: Route,
    /// The transaction of a load that shares no group.
    reservation: Option<Reservation>,
    sink: LoadSink,
    /// The limits that it counts against, and its user.
    admitted: AdmittedLoad,
    /// Whether a load without rows is committed, too: then its label is used.
    is_kept_empty: bool,
    two_phase_commit: bool,
    has_kept_label: bool,
    source: Source,
    /// Fields that few loads have.
    extras: Option<Box<Extras>>,
}

/// Fields that few loads have.
#[derive(Default)]
struct Extras {
    /// Requirements on the keys of its rows.
    known_keys: Option<Box<KnownKeys>>,
    /// The rows that it replaces.
    overwrites: Option<Overwrites>,
    /// Its name, by which it may have been loaded before.
    named: Option<Box<NamedLoad>>,
    /// The places that its rows come from.
    origin: Option<String>,
    /// The rejected rows of other loads that it brings again.
    replays: Vec<ReplayedRows>,
}

/// The rows that a load replaces, with its commit.
#[derive(Clone, Debug)]
pub(crate) enum Overwrites {
    All,
    /// All rows of these partitions.
    In(Partitions),
    /// All rows of the partitions that the load's rows are in.
    Touched,
}

/// How a load ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The address of the reasons for rejected rows, if there are any.
    pub error_url: Option<String>,
    pub outcome: Result<Outcome, LoadError>,
}

/// A load that did not fail.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `None`: there were no rows, so there was nothing to commit.
    pub committed: Option<LoadCommitted>,
    /// How it was committed in the end.
    pub route: Route,
    /// It was loaded before, with these counts.
    pub repeated: Option<Box<Counts>>,
}

#[derive(Debug)]
pub(crate) struct LoadCommitted {
    pub label: Label,
    pub txn: TxnId,
    /// `PREPARE` for a load of a group, whose transaction others share.
    pub status: TransactionStatus,
    /// Unknown for the answer to a load that was stored before, and without a client who sees them.
    pub details: Option<LoadDetails>,
}

/// The reasons and the times of a load's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadDetails {
    /// Data files of a large load, reasons of rejected rows, the first load with the same name.
    pub write: Duration,
    pub stages: Stages,
    /// Why its group closed, if it has closed.
    pub closed_by: Option<CloseReason>,
    /// When its group closes at the latest, in milliseconds of Unix time.
    visible_by_ms: Option<i64>,
}

impl LoadDetails {
    /// The details of a load that was `begun` to be finished then; its commit is just done.
    fn of(answered: &Answered, begun: Instant) -> Self {
        let took = host::now().saturating_duration_since(begun);
        let visible_by_ms = answered.closes_by.map(|at| {
            let left = at.saturating_duration_since(host::now());
            host::unix_ms() + i64::try_from(left.as_millis()).unwrap_or(i64::MAX / 2)
        });
        let stages = answered.stages;
        Self {
            write: took.saturating_sub(stages.total()),
            stages,
            closed_by: answered.closed_by,
            visible_by_ms,
        }
    }

    /// When its group closes at the latest, in RFC 3339.
    pub fn visible_by(&self) -> Option<String> {
        self.visible_by_ms.map(rfc_3339)
    }
}

/// Why a load failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Too many rows were rejected.
    #[error("too many filtered rows")]
    Filtered,
    #[error("{0}")]
    Sink(#[from] SinkError),
    #[error("{0}")]
    Ingest(#[from] IngestError),
    #[error("the load was interrupted")]
    Interrupted(Interrupted),
    /// A partial update contains a key that must exist, and does not.
    #[error("{}", .0.detail_text())]
    NewKey(SqlError),
}

impl LoadError {
    /// Whether the load may be sent again. One that can be known again, by its name or its label, may even if its outcome is unknown.
    pub fn retry(&self, is_known_again: bool) -> Retry {
        let (retry, is_unknown) = match self {
            Self::Filtered => (Retry::Never, false),
            Self::Sink(error) => (error.retry(), false),
            Self::Ingest(error) => (error.retry(), !error.says_nothing_was_kept()),
            // It may have waited for memory, or for its group, which continues.
            Self::Interrupted(_) => (Retry::Never, true),
            Self::NewKey(error) => (error.retry, false),
        };
        if is_unknown && is_known_again { Retry::Safe } else { retry }
    }
}

impl From<LoadError> for SqlError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Sink(error) => error.into(),
            LoadError::Ingest(error) => error.into(),
            LoadError::Interrupted(interrupted) => interrupted.into(),
            LoadError::NewKey(error) => error,
            LoadError::Filtered => Self::detail(tributary_types::ErrorCode::Unknown, error.to_string()),
        }
    }
}

impl Load {
    /// Begins a load of blocks of `schema`: decides its route and, if it is a transaction of its own, reserves
    /// its label.
    ///
    /// # Errors
    /// [`IngestError::LabelUsed`], [`IngestError::NotAsRequired`], [`IngestError::ShuttingDown`].
    pub fn begin(
        loads: &Loads,
        table: Arc<Table>,
        schema: Arc<TableSchema>,
        traits: &LoadTraits,
        label: LoadLabel,
        admitted: AdmittedLoad,
    ) -> Result<Self, IngestError> {
        let has_kept_label = matches!(label, LoadLabel::Chosen(_));
        let route = loads.route(&table, traits);
        route.check(traits.required)?;
        let reservation = match route {
            Route::GroupAsync | Route::GroupSync(_) => None,
            Route::Own(_) => {
                let kind = match traits.source {
                    Source::Insert => TransactionKind::Insert,
                    Source::StreamLoad | Source::HttpStream => TransactionKind::StreamLoad,
                    Source::BrokerLoad => TransactionKind::BrokerLoad,
                    Source::RoutineLoad => TransactionKind::RoutineLoad,
                };
                let is_kept = traits.two_phase_commit || matches!(label, LoadLabel::Chosen(_));
                let label = match label {
                    LoadLabel::Chosen(label) | LoadLabel::Made(label) => label,
                    LoadLabel::Unnamed => match kind {
                        TransactionKind::StreamLoad => Label::of_stream_load(rand::random()),
                        _ => Label::of_insert(rand::random()),
                    },
                };
                Some(loads.ingest.begin(&table.def(), label, is_kept, kind)?)
            }
        };
        Ok(Self {
            route,
            reservation,
            sink: LoadSink::new(table, schema, loads.options.large_load_bytes.get()),
            admitted,
            is_kept_empty: traits.source != Source::Insert || traits.in_transaction,
            two_phase_commit: traits.two_phase_commit,
            has_kept_label,
            source: traits.source,
            extras: None,
        })
    }

    /// Admits a load that has begun before it was [admitted](AdmittedLoad::later).
    pub fn admit(&mut self, admitted: AdmittedLoad) {
        self.admitted = admitted;
    }

    /// Names the client of a two-phase load.
    pub fn set_client(&mut self, client: &Principal) {
        if let Some(reservation) = self.reservation.as_mut().filter(|_| self.two_phase_commit) {
            reservation.set_client(client.to_string());
        }
    }

    /// Names the places that the load's rows come from: files, or a topic with offsets.
    pub fn set_origin(&mut self, origin: String) {
        self.extras.get_or_insert_default().origin = Some(origin);
    }

    /// Notes the rejected rows of other loads that this one brings again.
    pub fn set_replays(&mut self, replays: Vec<ReplayedRows>) {
        if !replays.is_empty() {
            self.extras.get_or_insert_default().replays = replays;
        }
    }

    /// Makes the load's rows replace others, even if there are none; it must not join a group.
    pub fn overwrite(&mut self, what: Overwrites) {
        debug_assert!(self.reservation.is_some(), "a group replaces no rows");
        self.is_kept_empty = true;
        self.extras.get_or_insert_default().overwrites = Some(what);
    }

    /// Rows of the load must find such keys, or it fails before its commit.
    pub fn must_find(&mut self, keys: Option<Box<KnownKeys>>) {
        let Some(more) = keys else { return };
        let known_keys = &mut self.extras.get_or_insert_default().known_keys;
        *known_keys = Some(match known_keys.take() {
            Some(known) => Box::new(known.and(*more)),
            None => more,
        });
    }

    /// Each row of the load is found in one of these partitions when it is decoded.
    pub fn is_found_in(&mut self, partitions: Option<&Arc<Partitions>>) {
        self.sink.found_in = partitions.cloned();
    }

    pub const fn route(&self) -> Route {
        self.route
    }

    /// Whether the server knows the load again when it is sent again, by its label or its name.
    pub fn is_known_again(&self) -> bool {
        self.has_kept_label || self.is_named()
    }

    /// The transaction and label of a load that shares no group.
    pub fn transaction(&self) -> Option<(TxnId, &Label)> {
        self.reservation.as_ref().map(|reservation| (reservation.txn(), reservation.label()))
    }

    /// The label of a load that shares no group, and its database.
    fn named(&self) -> Option<(DbId, Label)> {
        let (_, label) = self.transaction()?;
        Some((self.table().def().db_id, label.clone()))
    }

    pub fn table(&self) -> &Arc<Table> {
        self.sink.table()
    }

    pub fn schema(&self) -> &Arc<TableSchema> {
        self.sink.schema()
    }

    /// Sets the source of a load that joins no group, and the position after it.
    pub fn advance(&self, source: SourceId, position: Attachment) {
        if let Some(reservation) = &self.reservation {
            reservation.advance(source, position);
        }
    }

    /// Takes decoded rows. Not to be cut off: a load whose rows were taken in part can only be aborted.
    ///
    /// # Errors
    /// The rows can't be written; the load can't be finished any more.
    pub async fn push(&mut self, loads: &Loads, blocks: Vec<Block>) -> Result<(), SinkError> {
        self.sink.push(loads, blocks).await
    }

    /// The load's rows so far; `None` if some are in data files.
    pub fn blocks(&self) -> Option<&[Block]> {
        self.sink.blocks()
    }

    /// The place behind the load's rows; `None` if some are in data files.
    pub fn mark(&self) -> Option<sink::Mark> {
        self.sink.mark()
    }

    /// The sink of the load's rows.
    pub fn sink(&mut self) -> &mut LoadSink {
        &mut self.sink
    }

    /// Judges the rows and commits them as the route says. What is durable and visible on return is
    /// what [`Ingest`](tributary_ingest::Ingest) promises for the route.
    ///
    /// A load that is interrupted while it waits for memory was not stored; one that waits for its group or its commit continues
    /// without its client.
    pub async fn finish(mut self, loads: &Loads, rows: Tally<'_>, limits: LoadLimits<'_>) -> Finished {
        // Everything that a good small load does not do is boxed, here and below: its future is allocated for each statement, and
        // should not contain the states of large loads and failures. What it does is awaited right here: each async function in
        // between would move the load once more.
        let begun = limits.has_details.then(host::now);
        let error_url = match rows.rejects {
            [] => None,
            rejects => Box::pin(loads.write_error_log(rejects, self.named())).await,
        };
        if rows.counts.exceed(limits.max_filter_ratio)
            && !keeps_rejects(self.sink.table(), limits.rejected_rows)
        {
            loads.ingest.metrics().load_failed(mode(self.route));
            Box::pin(self.abort("too many rows were rejected")).await;
            return Finished { error_url, outcome: Err(LoadError::Filtered) };
        }
        let (rows_counts, rejects) = (rows.counts, self.rejects(&rows));
        let rows = match self.sink.take_small() {
            Some(rows) => Ok(rows),
            None => Box::pin(self.sink.take_files()).await,
        };
        let mut rows = match rows {
            Ok(rows) => rows,
            Err(error) => return Finished { error_url, outcome: Err(error.into()) },
        };
        if let Err(error) = self.take_place(&mut rows) {
            // Rows that can't be read back are in memory; there are no files.
            return Finished { error_url, outcome: Err(error.into()) };
        }
        if self.is_named() || rejects.is_some() {
            let key = match Box::pin(self.claim(loads, rows_counts, &rows, &limits)).await {
                Ok(Claim::Key(key)) => key,
                Ok(Claim::Repeat(outcome)) => return Finished { error_url, outcome: Ok(outcome) },
                Err(error) => return Finished { error_url, outcome: Err(error) },
            };
            rows.facts = loads.ingest.load_facts(key, rejects);
        }
        if rows.is_empty() && (self.reservation.is_none() || !self.is_kept_empty) {
            if let Some(reservation) = self.reservation.take() {
                reservation.abort("the load has no rows");
            }
            return Finished {
                error_url,
                outcome: Ok(Outcome { committed: None, route: self.route, repeated: None }),
            };
        }
        if let Some(keys) = self.extras.as_mut().and_then(|extras| extras.known_keys.take())
            && let Err(error) = Box::pin(keys.check(self.sink.table(), &rows)).await
        {
            loads.ingest.metrics().load_failed(mode(self.route));
            Box::pin(self.sink.table().discard(rows.files())).await;
            Box::pin(self.abort(error.detail_text())).await;
            return Finished { error_url, outcome: Err(LoadError::NewKey(error)) };
        }
        self.admitted.charge(rows.rows, self.sink.taken_bytes());
        (rows.user, rows.right) = (self.admitted.user(), self.admitted.right());
        let routed = self.route.with_data_files(!rows.files().is_empty());
        if let Route::GroupSync(Some(switch)) = routed
            && routed != self.route
        {
            loads.ingest.metrics().switched(switch);
        }
        let (table, interrupt) = (self.sink.table(), limits.interrupt);
        let waited = match self.reservation.take() {
            Some(reservation) if self.two_phase_commit => {
                Box::pin(interrupt.wait(loads.ingest.prepare(table, reservation, rows))).await
            }
            Some(reservation) => {
                Box::pin(interrupt.wait(loads.ingest.commit(table, reservation, rows))).await
            }
            None => {
                // With data files it is answered as in sync mode, and does not wait for the interval.
                let is_async = self.route == Route::GroupAsync;
                let timeout = limits.timeout.max(Duration::from_millis(1));
                interrupt.wait(loads.ingest.load_into_group(table, is_async, rows, timeout)).await
            }
        };
        let outcome = match waited {
            Ok(Ok(answered)) => {
                let details = begun.map(|begun| LoadDetails::of(&answered, begun));
                let Answered { label, txn, .. } = answered;
                let status = match routed {
                    Route::Own(_) if self.two_phase_commit => TransactionStatus::Precommitted,
                    Route::Own(_) => TransactionStatus::Visible,
                    Route::GroupAsync | Route::GroupSync(_) => TransactionStatus::Prepare,
                };
                let committed = Some(LoadCommitted { label, txn, status, details });
                Ok(Outcome { committed, route: routed, repeated: None })
            }
            Ok(Err(error)) => Err(error.into()),
            Err(interrupted) => {
                loads.ingest.metrics().load_failed(mode(routed));
                Err(LoadError::Interrupted(interrupted))
            }
        };
        Finished { error_url, outcome }
    }

    /// Makes the rows of a load ready to be committed together with those of others, which have their own transactions. `None`: it
    /// has no rows.
    ///
    /// # Errors
    /// The rows can't be written, or have other keys than they must; nothing of the load is left.
    pub async fn into_rows(
        mut self,
        loads: &Loads,
        tally: Tally<'_>,
    ) -> Result<Option<(Arc<Table>, Reservation, LoadRows)>, LoadError> {
        if !tally.rejects.is_empty() {
            loads.write_error_log(tally.rejects, self.named()).await;
        }
        let rejects = self.rejects(&tally);
        let mut rows = match self.sink.take_small() {
            Some(rows) => rows,
            None => self.sink.take_files().await?,
        };
        rows.facts = loads.ingest.load_facts(None, rejects);
        if let Some(keys) = self.extras.as_mut().and_then(|extras| extras.known_keys.take())
            && let Err(error) = keys.check(self.sink.table(), &rows).await
        {
            loads.ingest.metrics().load_failed(mode(self.route));
            self.sink.table().discard(rows.files()).await;
            self.abort(error.detail_text()).await;
            return Err(LoadError::NewKey(error));
        }
        self.admitted.charge(rows.rows, self.sink.taken_bytes());
        (rows.user, rows.right) = (self.admitted.user(), self.admitted.right());
        let Some(reservation) = self.reservation.take() else { return Ok(None) };
        if rows.is_empty() && !self.is_kept_empty {
            reservation.abort("the load has no rows");
            return Ok(None);
        }
        Ok(Some((Arc::clone(self.sink.table()), reservation, rows)))
    }

    /// The rejected rows that are stored with the load, and the marks of those it brings again.
    fn rejects(&mut self, rows: &Tally<'_>) -> Option<Box<LoadRejects>> {
        let filtered = rows.counts.filtered;
        let extras = self.extras.as_mut();
        let (origin, replays) = extras
            .map(|extras| (extras.origin.take(), std::mem::take(&mut extras.replays)))
            .unwrap_or_default();
        if filtered == 0 && replays.is_empty() {
            return None;
        }
        let source = origin.unwrap_or_else(|| self.source.name().to_owned());
        Some(Box::new(LoadRejects { replays, ..LoadRejects::new(filtered, rows.rejects, source) }))
    }

    /// Sets the rows that the load replaces, if any.
    fn take_place(&mut self, rows: &mut LoadRows) -> Result<(), SinkError> {
        let Some(overwrites) = self.extras.as_mut().and_then(|extras| extras.overwrites.take()) else {
            return Ok(());
        };
        rows.replaces = Some(Arc::new(replaced(overwrites, self.sink.table(), rows)?));
        Ok(())
    }

    /// Gives the load up. On return its data files are deleted and its label is free; `reason` is what SHOW
    /// TRANSACTION gives.
    pub async fn abort(self, reason: &str) {
        if let Some(reservation) = self.reservation {
            reservation.abort(reason);
        }
        self.sink.abort().await;
    }
}

/// The rows that a load takes the place of, whose own are known now.
fn replaced(overwrites: Overwrites, table: &Table, rows: &LoadRows) -> Result<Replaced, SinkError> {
    let partitions = match overwrites {
        Overwrites::All => return Ok(Replaced::All),
        Overwrites::In(partitions) => return Ok(Replaced::In(partitions)),
        Overwrites::Touched => table.with_def(|def| def.partitioning.partitions().cloned()),
    };
    let Some(partitions) = partitions else { return Ok(Replaced::All) };
    let mut touched: BTreeSet<_> = rows.files().iter().filter_map(|file| file.partition).collect();
    for batch in blocks_to_batches(&rows.schema, &rows.blocks)? {
        let places = partitions.of_rows(&batch, &rows.schema).into_iter().flatten();
        touched.extend(places.map(|place| partitions.list[place].id));
    }
    Ok(Replaced::In(partitions.only(&touched.into_iter().collect::<Vec<_>>())))
}

impl Loads {
    /// Decides how a load is committed; counts the reason if it does not get the requested mode.
    fn route(&self, table: &Table, traits: &LoadTraits) -> Route {
        let ingest = &self.ingest;
        let route = table.with_def(|def| {
            // The next statement of its session reads the rows of a temporary table.
            let of_own = LoadTraits { requested: Some(GroupCommitMode::Off), ..*traits };
            let traits = if def.role == TableRole::Unfinished { &of_own } else { traits };
            route(traits, &def.properties, || ingest.wal_available_bytes())
        });
        match route {
            Route::Own(Some(reason)) => ingest.metrics().fell_back(reason),
            Route::GroupSync(Some(reason)) => ingest.metrics().switched(reason),
            _ => {}
        }
        route
    }
}

/// Whether a load into the table never fails for rejected rows. `policy` is the load's own.
pub(crate) fn keeps_rejects(table: &Table, policy: Option<RejectPolicy>) -> bool {
    policy.unwrap_or_else(|| table.with_def(|def| def.properties.rejected_rows)) == RejectPolicy::Keep
}

/// The mode that metrics count a load under.
pub(crate) const fn mode(route: Route) -> GroupCommitMode {
    match route {
        Route::GroupAsync => GroupCommitMode::Async,
        Route::GroupSync(_) => GroupCommitMode::Sync,
        Route::Own(_) => GroupCommitMode::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestEngine, block};
    use std::mem::size_of_val;

    /// Each statement's future is allocated and moved: with the states of large loads and of failures it was five times as large,
    /// and a one-row INSERT noticed.
    #[tokio::test]
    async fn a_small_load_carries_no_room_for_what_it_does_not_do() {
        let test = TestEngine::open(|_| ()).await;
        let table = test.table().await;
        let schema = Arc::clone(&table.def().schema);
        let plain = LoadTraits::plain(Source::Insert, Some(GroupCommitMode::Async), Body::Known(10));
        let mut load = Load::begin(
            &test.engine.loads,
            table,
            Arc::clone(&schema),
            &plain,
            LoadLabel::Unnamed,
            AdmittedLoad::of_server(),
        )
        .expect("a load of a group");
        let size = size_of_val(&load);
        assert!(size <= 264, "the load: {size}");
        let push = load.push(&test.engine.loads, vec![block(&schema, 10)]);
        let size = size_of_val(&push);
        assert!(size <= 256, "push: {size}");
        push.await.expect("it is small");
        let limits = LoadLimits {
            max_filter_ratio: 0.0,
            rejected_rows: None,
            timeout: Duration::from_secs(10),
            interrupt: Interrupt::NEVER,
            has_details: false,
        };
        let finish = load.finish(&test.engine.loads, Tally::default(), limits);
        let size = size_of_val(&finish);
        assert!(size <= 2520, "finish: {size}");
        finish.await.outcome.expect("committed");
    }
}
