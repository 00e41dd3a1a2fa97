//! Stream Load and HTTP Stream: a body becomes one load.
//!
//! The body is decoded as it arrives and never held whole, but for Parquet, which waits in a file if it is large; its rows
//! take the path of every [`Load`].

mod ends;
mod http_stream;
mod query;
mod read_plan;
mod repeated;

use crate::access::finished::Door;
use crate::access::interrupt::{Interrupt, Interrupted};
use crate::access::{Object, Privilege};
use crate::ddl::tables::table_error;
use crate::engine::Engine;
use crate::front::login::{Claimed, authenticate};
use crate::load::body::reader::{Mapping, ReadError, RowReader};
use crate::load::body::time::LoadTime;
use crate::load::hidden_columns;
use crate::load::partial_update::{self, KnownKeys, Updates};
use crate::load::{Finished, Load, LoadDetails, LoadError, LoadLimits, Loads, Outcome, Tally};
use async_trait::async_trait;
use ends::RequestedLoad;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_decode::{Compression, FieldNames, Reject};
use tributary_http::{
    AnsweredLoad, AskedName, Authenticator, Backend, ErrorLogReader, Health, HttpStreamRequest,
    InspectService, LabelInfo, LoadAnswer, LoadBody, LoadCode, LoadRoute, LoadService, LoadStages, MergeType,
    NamedState, Peer, ReadPlan, StreamLoadRequest, TableHeaders, TwoPhaseOp, TwoPhaseTarget, UpdateMode,
    WalCount,
};
use tributary_ingest::{
    Body, CloseReason, IngestError, LoadTraits, NamedLoad, Route, Source, TransactionStatus,
};
use tributary_table::{Freshness, Table};
use tributary_types::table::Distribution;
use tributary_types::{
    ErrorCode, Fingerprinter, GroupCommitMode, Label, LoadName, Principal, RejectPolicy, Requirement, Secret,
    SqlError, TableDef, TableRef, TxnId,
};

/// The HTTP front end's way into the engine.
pub struct HttpLoads(pub Arc<Engine>);

/// A load request over HTTP, from either endpoint.
struct LoadRequest {
    source: Source,
    label: Option<Label>,
    name: Option<LoadName>,
    /// The statement of an HTTP Stream, if the load has a name.
    statement: Option<String>,
    group_commit: Option<GroupCommitMode>,
    required: Option<Requirement>,
    two_phase_commit: bool,
    partial_update: bool,
    /// Partitions are named.
    partitions: bool,
    /// A row whose key is not there fails a partial update.
    rejects_new_keys: bool,
    max_filter_ratio: f64,
    rejected_rows: Option<RejectPolicy>,
    timeout: Duration,
    body: Body,
    /// The body is compressed: its length says little about its memory.
    is_packed: bool,
}

impl HttpLoads {
    async fn load_stream(
        &self,
        principal: &Principal,
        request: StreamLoadRequest,
        body: LoadBody,
    ) -> LoadAnswer {
        if let Some(refusal) = refused_header(&request.table_headers) {
            return refusal;
        }
        let table =
            match self.0.gate.table(principal, Privilege::Load, None, Some(&request.db), &request.table) {
                Ok(table) => table,
                Err(error) => return LoadAnswer::from_sql_error(&error),
            };
        let named = &request.table_headers.partitions;
        let is_taken = check_tablets(&table, &request.table_headers);
        let (table, partitions) = match is_taken.and_then(|()| self.0.ddl.table_of_partitions(table, named)) {
            Ok(found) => found,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let updates = match self.updates(&table, &request).await {
            Ok(updates) => updates,
            Err(refusal) => return *refusal,
        };
        let load = LoadRequest {
            source: Source::StreamLoad,
            label: request.label.clone(),
            name: request.name.clone(),
            statement: None,
            group_commit: request.group_commit,
            required: request.required,
            two_phase_commit: request.two_phase_commit,
            partitions: !partitions.is_any(),
            partial_update: request.update.mode != UpdateMode::Upsert,
            rejects_new_keys: request.update.rejects_new_keys,
            max_filter_ratio: request.max_filter_ratio,
            rejected_rows: request.rejected_rows,
            timeout: request.timeout,
            body: body_size(request.content_length, request.chunked),
            is_packed: request.compression != Compression::None,
        };
        let plan = |loads: &Arc<Loads>, def: &Arc<TableDef>| {
            let time = LoadTime::of(loads, request.timezone.as_deref())?;
            let columns = request.columns.as_deref().map(crate::load::body::reader::mapped).transpose()?;
            let where_expr =
                request.where_expr.as_deref().map(tributary_sql::parse_expression).transpose()?;
            let columns =
                hidden_columns::with_hidden(def, columns, &request.merge, request.format.is_keyed())?;
            let mapping = Mapping {
                columns: columns.as_deref(),
                where_expr: where_expr.as_ref(),
                source_where: None,
                deletes: request.merge.merge_type == MergeType::Delete,
                updates,
                unnamed_fields: FieldNames::Numbered,
                partitions: &partitions,
            };
            RowReader::new(loads, def, &mapping, &request.format, request.strict_mode, time)
                .map(RowReader::in_parallel)
        };
        self.run_load(principal, table, load, body, plan).await
    }

    /// Determines the columns that the rows give. The table is ready for them then.
    ///
    /// # Errors
    /// The table or the load does not allow it; the answer says why.
    async fn updates(
        &self,
        table: &Arc<Table>,
        request: &StreamLoadRequest,
    ) -> Result<Updates, Box<LoadAnswer>> {
        let def = table.def();
        let refused = |error: SqlError| Box::new(LoadAnswer::from_sql_error(&error));
        match (request.update.mode, &request.columns) {
            (UpdateMode::Upsert, _) => return Ok(Updates::Whole),
            (UpdateMode::Flexible, _) => {
                partial_update::check_flexible(&def).map_err(refused)?;
                return Ok(Updates::OfRows);
            }
            (UpdateMode::Fixed, None) => {
                partial_update::check_possible(&def).map_err(refused)?;
                return Ok(Updates::Whole);
            }
            (UpdateMode::Fixed, Some(columns)) => {
                partial_update::check_possible(&def).map_err(refused)?;
                let names = columns.iter().map(|column| column.name.as_str());
                partial_update::check_named(&def, names).map_err(refused)?;
            }
        }
        self.0.loads.ready_for_partial(table).await.map_err(refused)?;
        Ok(Updates::Named)
    }

    /// Runs a load: label, plan, body, judgement, commit.
    async fn run_load(
        &self,
        principal: &Principal,
        table: Arc<Table>,
        request: LoadRequest,
        mut body: LoadBody,
        plan: impl FnOnce(&Arc<Loads>, &Arc<TableDef>) -> Result<RowReader, SqlError>,
    ) -> LoadAnswer {
        let (deadline, traits) = (Interrupt::after(request.timeout), request.traits());
        let arrived = Instant::now();
        let admitted = match self.0.loads.admit(principal, &table, &traits) {
            Ok(admitted) => admitted,
            // Nothing becomes of a load that is sent here again.
            Err(reached) if reached.retry_after.is_none() => {
                return LoadAnswer::from_sql_error(&SqlError::from(reached));
            }
            Err(reached) => return LoadAnswer::limited(&reached, reached.retry_after),
        };
        let memory = self.0.ingest.memory();
        let body_memory = match deadline.wait(memory.admit_body(principal.key(), request.known_bytes())).await
        {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(error)) => return failed(LoadCode::ServiceUnavailable, &error),
            Err(interrupted) => return late(interrupted),
        };
        if let Some(answer) = Box::pin(self.known(&table, &request, &mut body, deadline)).await {
            return answer;
        }
        let started = Instant::now();
        // Read once: columns that change meanwhile must not affect only some of the load's parts.
        let def = table.def();
        let mut load = match Load::begin(
            &self.0.loads,
            table,
            Arc::clone(&def.schema),
            &traits,
            request.label.clone().into(),
            admitted,
        ) {
            Ok(load) => load,
            Err(error) => return not_begun(error),
        };
        if let Some(admitted) = body_memory {
            load.sink().hold_body(&self.0.loads, admitted);
        }
        load.is_found_in(def.partitioning.partitions());
        load.set_client(principal);
        let begun = started.elapsed();
        let heading = Heading::of(&request, &load);
        let mut reader = match plan(&self.0.loads, &def) {
            Ok(reader) => reader,
            Err(error) => {
                load.abort(error.detail_text()).await;
                return heading.above(LoadAnswer::from_sql_error(&error));
            }
        };
        load.must_find(KnownKeys::of(reader.target(), request.rejects_new_keys));
        let planned = started.elapsed();
        let planned_after = arrived.elapsed();
        let mut fingerprint = request.name.as_ref().map(|_| request.fingerprinter());
        let body = (&mut body, fingerprint.as_mut());
        if let Err(failed) = read_body(&self.0.loads, &mut load, &mut reader, body, deadline).await {
            load.abort(&failed.message).await;
            return heading.above(failed);
        }
        if let (Some(name), Some(fingerprint)) = (request.name.clone(), fingerprint) {
            load.set_name(Box::new(NamedLoad { name, fingerprint: fingerprint.finish() }));
        }
        let (counts, rejects) = (reader.counts(), reader.rejects());
        let committing = Instant::now();
        let is_known_again = load.is_known_again();
        let limits = LoadLimits {
            max_filter_ratio: request.max_filter_ratio,
            rejected_rows: request.rejected_rows,
            timeout: deadline.remaining().unwrap_or(request.timeout),
            // Rows written by now are committed: the time limit ends only the wait for the group.
            interrupt: Interrupt::NEVER,
            has_details: true,
        };
        let Finished { error_url, outcome } =
            load.finish(&self.0.loads, Tally { counts, rejects: &rejects }, limits).await;
        let mut counts = counts;
        if let Ok(Outcome { repeated: Some(first), .. }) = &outcome {
            counts = **first;
        }
        let details = outcome.as_ref().ok().and_then(|outcome| outcome.committed.as_ref()?.details);
        let mut answer = heading.above(worded(outcome, &rejects, is_known_again));
        if let Some(details) = details {
            let read = committing.saturating_duration_since(arrived).saturating_sub(planned_after);
            detailed(&mut answer, &details, planned_after, read);
        }
        repeated::add_next_offset(&mut answer, request.name.as_ref());
        if heading.is_group {
            answer.times.write_data = committing.elapsed();
        } else {
            answer.times.commit_and_publish = committing.elapsed();
        }
        answer.total_rows = counts.total;
        answer.loaded_rows = counts.loaded;
        answer.filtered_rows = counts.filtered;
        answer.unselected_rows = counts.unselected;
        answer.error_url = error_url;
        answer.times.begin_txn = begun;
        answer.times.stream_load_put = planned.saturating_sub(begun);
        answer.times.read_data = reader.read_time();
        answer
    }
}

impl LoadRequest {
    /// The bytes that the body will have in memory, if that can be known.
    const fn known_bytes(&self) -> Option<u64> {
        match self.body {
            Body::Known(bytes) if !self.is_packed => Some(bytes),
            _ => None,
        }
    }

    /// The beginning of the fingerprint of a load with a name; its body follows.
    fn fingerprinter(&self) -> Fingerprinter {
        let mut fingerprint = Fingerprinter::default();
        if let Some(statement) = &self.statement {
            fingerprint.update(statement.as_bytes());
        }
        fingerprint
    }

    fn traits(&self) -> LoadTraits {
        LoadTraits {
            two_phase_commit: self.two_phase_commit,
            has_label: self.label.is_some(),
            partial_update: self.partial_update,
            partitions: self.partitions,
            required: self.required,
            ..LoadTraits::plain(self.source, self.group_commit, self.body)
        }
    }
}

/// The common part of every answer to a load that has begun, however the load ends.
struct Heading {
    two_phase_commit: bool,
    is_group: bool,
    fallback_reason: Option<&'static str>,
    transaction: Option<(TxnId, Label)>,
    table: TableRef,
}

impl Heading {
    fn of(request: &LoadRequest, load: &Load) -> Self {
        Self {
            two_phase_commit: request.two_phase_commit,
            is_group: matches!(load.route(), Route::GroupAsync | Route::GroupSync(_)),
            fallback_reason: load.route().remark(),
            transaction: load.transaction().map(|(txn, label)| (txn, label.clone())),
            table: load.table().with_def(TableDef::table_ref),
        }
    }

    /// Adds the common part to an answer.
    fn above(&self, mut answer: LoadAnswer) -> LoadAnswer {
        answer.table = Some(self.table.clone());
        if answer.repeated {
            // It is that of the first load, whose transaction and way of commit are others.
            return answer;
        }
        answer.two_phase_commit = self.two_phase_commit;
        answer.group_commit = self.is_group;
        answer.fallback_reason = answer.fallback_reason.or_else(|| self.fallback_reason.map(str::to_owned));
        if let Some((txn, label)) = &self.transaction {
            answer.txn_id = Some(*txn);
            label.as_str().clone_into(&mut answer.label);
        }
        answer
    }
}

/// Reads the body into the load.
async fn read_body(
    loads: &Loads,
    load: &mut Load,
    reader: &mut RowReader,
    (body, mut fingerprint): (&mut LoadBody, Option<&mut Fingerprinter>),
    deadline: Interrupt<'_>,
) -> Result<(), LoadAnswer> {
    // Only the wait for the client is cut off: rows on their way into a file are let there first.
    while let Some(chunk) = deadline.wait(body.next()).await.map_err(late)? {
        let chunk = chunk.map_err(|error| LoadAnswer::from_body_error(&error))?;
        if let Some(fingerprint) = &mut fingerprint {
            fingerprint.update(&chunk);
        }
        reader.feed(loads, load.sink(), &chunk, deadline).await.map_err(unread)?;
    }
    reader.end(loads, load.sink(), deadline).await.map_err(unread)
}

fn late(interrupted: Interrupted) -> LoadAnswer {
    match interrupted {
        Interrupted::TimedOut(limit) => LoadAnswer::fail(
            LoadCode::Timeout,
            format!("timeout of {} s reached while the body was read", limit.as_secs()),
        ),
        Interrupted::Killed => LoadAnswer::fail(LoadCode::Cancelled, "the load was cancelled"),
    }
}

fn unread(error: ReadError) -> LoadAnswer {
    match error {
        ReadError::Rows(error) => LoadAnswer::fail(LoadCode::DataQuality, error.detail_text()),
        ReadError::Sink(error) => {
            let retry = error.retry();
            LoadAnswer { retry, ..LoadAnswer::fail(LoadCode::Internal, error) }
        }
        ReadError::Interrupted(interrupted) => late(interrupted),
    }
}

/// The answer to a load that the engine has refused.
fn failed(code: LoadCode, error: &IngestError) -> LoadAnswer {
    LoadAnswer { retry: error.retry(), ..LoadAnswer::fail(code, error) }
}

/// The answer to a load that could not begin.
fn not_begun(error: IngestError) -> LoadAnswer {
    match error {
        IngestError::LabelUsed { label, txn, status } => {
            LoadAnswer::label_already_exists(label.as_str(), txn, status)
        }
        error @ IngestError::NotAsRequired { .. } => LoadAnswer::fail(LoadCode::InvalidArgument, error),
        error => failed(LoadCode::Internal, &error),
    }
}

/// Adds the reasons and times of a load to its answer.
fn detailed(answer: &mut LoadAnswer, details: &LoadDetails, plan: Duration, read: Duration) {
    let LoadDetails { write, stages, closed_by, .. } = *details;
    answer.closed_by = closed_by.map(CloseReason::name);
    answer.visible_by = details.visible_by();
    answer.times.stages = Some(LoadStages {
        accept: Duration::ZERO,
        plan,
        read,
        write,
        admit: stages.admit,
        wait: stages.wait,
        build: stages.build,
        log: stages.log,
        publish: stages.publish,
    });
}

/// The answer of a load whose body was read to its end.
fn worded(outcome: Result<Outcome, LoadError>, rejects: &[Reject], is_known_again: bool) -> LoadAnswer {
    let Outcome { committed, route, repeated } = match outcome {
        Ok(outcome) => outcome,
        Err(LoadError::Filtered) => {
            let mut refusal = LoadAnswer::too_many_filtered_rows();
            refusal.first_error_msg = rejects.first().map(|reject| reject.reason.clone());
            return refusal;
        }
        Err(LoadError::Ingest(error)) if repeated::is_about_names(&error) => {
            return repeated::refused(&error);
        }
        Err(error) => {
            let code = match &error {
                LoadError::Ingest(IngestError::Timeout { .. }) => LoadCode::Timeout,
                LoadError::Ingest(IngestError::ShuttingDown) => LoadCode::ServiceUnavailable,
                LoadError::Ingest(IngestError::RightRevoked { .. }) => LoadCode::NotAuthorized,
                _ => LoadCode::Internal,
            };
            let retry = error.retry(is_known_again);
            return LoadAnswer { retry, ..LoadAnswer::fail(code, error) };
        }
    };
    let Some(committed) = committed else {
        return LoadAnswer { txn_id: None, ..LoadAnswer::success(TxnId(0), String::new()) };
    };
    let mut answer = LoadAnswer::success(committed.txn, committed.label.as_str().to_owned());
    if repeated.is_some() {
        answer.repeated = true;
        answer.group_commit = committed.status == TransactionStatus::Prepare;
        return answer;
    }
    if let Route::GroupSync(Some(switch)) = route {
        answer.answered_mode = Some(GroupCommitMode::Sync);
        answer.fallback_reason = Some(switch.reason().to_owned());
    }
    answer
}

/// The refusal of a load that requests what no table here supports: it would load other rows than it says.
fn refused_header(headers: &TableHeaders) -> Option<LoadAnswer> {
    let header = headers.unique?;
    let text = format!("header {header} needs what tables with UNIQUE KEY cannot do yet, leave it out");
    Some(LoadAnswer::fail(LoadCode::NotImplemented, text))
}

/// Refuses a load into one tablet of a table whose rows are distributed by their columns.
fn check_tablets(table: &Table, headers: &TableHeaders) -> Result<(), SqlError> {
    let is_random = || table.with_def(|def| matches!(def.distribution, Distribution::Random { .. }));
    if !headers.to_single_tablet || is_random() {
        return Ok(());
    }
    Err(SqlError::detail(
        ErrorCode::Unknown,
        "if load_to_single_tablet set to true, the olap table must be with random distribution",
    ))
}

fn body_size(content_length: Option<u64>, chunked: bool) -> Body {
    match content_length {
        Some(bytes) if !chunked => Body::Known(bytes),
        _ => Body::Unknown,
    }
}

#[async_trait]
impl Authenticator for HttpLoads {
    async fn authenticate(&self, user: &str, password: &str, peer: &Peer) -> Result<Principal, SqlError> {
        // `user@cluster` is an older way to name a user.
        let user = user.split('@').next().unwrap_or(user);
        let claimed = Claimed { door: Door::HttpLogin, user, password: &Secret::new(password) };
        authenticate(&self.0, claimed, peer.ip, peer.tls.as_ref()).await
    }
}

impl HttpLoads {
    /// Runs a load that came by this route, and records its end.
    pub(super) async fn load_by(
        &self,
        route: LoadRoute,
        principal: &Principal,
        request: StreamLoadRequest,
        body: LoadBody,
    ) -> LoadAnswer {
        let admission = match self.admit() {
            Ok(admission) => admission,
            Err(refusal) => return *refusal,
        };
        let (begun, label, meter) = (Instant::now(), request.label.clone(), body.meter());
        let (format, table, trace_parent) =
            (request.format.name(), request.table_ref(), request.trace_parent);
        let answer = self.load_stream(principal, request, body).await;
        let load = RequestedLoad {
            principal,
            route,
            table: Some(&table),
            format: Some(format),
            sql: None,
            label: label.as_ref().map(Label::as_str),
            begun,
            trace_parent,
        };
        self.ended(&load, &answer, meter.received_bytes(), admission);
        answer
    }

    async fn end_two_phase(
        &self,
        principal: &Principal,
        db: &str,
        op: TwoPhaseOp,
        target: &tributary_ingest::TwoPhaseTarget,
    ) -> Result<(), SqlError> {
        let transactions = self.0.ingest.transactions();
        let id = self.0.names().database_id(db).ok();
        let by_label = || target.label.as_ref().and_then(|label| transactions.by_label(id?, label.as_str()));
        let found = target.txn.and_then(|txn| transactions.by_id(txn)).or_else(by_label);
        let table = found.filter(|info| Some(info.db) == id).map(|info| info.table_ref);
        self.0.gate.check_transaction(principal, db, table.as_ref())?;
        let db = self.0.gate.database(principal, Privilege::Connect, db)?;
        match op {
            TwoPhaseOp::Commit => self.0.ingest.commit_prepared(db, target).await?,
            TwoPhaseOp::Abort => self.0.ingest.abort_prepared(db, target, "User Abort").await?,
        };
        Ok(())
    }
}

#[async_trait]
impl LoadService for HttpLoads {
    async fn stream_load(
        &self,
        principal: &Principal,
        request: StreamLoadRequest,
        body: LoadBody,
    ) -> LoadAnswer {
        self.load_by(LoadRoute::StreamLoad, principal, request, body).await
    }

    async fn http_stream(
        &self,
        principal: &Principal,
        request: HttpStreamRequest,
        body: LoadBody,
    ) -> LoadAnswer {
        let admission = match self.admit() {
            Ok(admission) => admission,
            Err(refusal) => return *refusal,
        };
        let (begun, sql, label) = (Instant::now(), request.sql.clone(), request.label.clone());
        let (meter, trace_parent) = (body.meter(), request.trace_parent);
        let answer = self.load_http_stream(principal, request, body).await;
        let load = RequestedLoad {
            principal,
            route: LoadRoute::HttpStream,
            table: None,
            format: None,
            sql: Some(&sql),
            label: label.as_ref().map(Label::as_str),
            begun,
            trace_parent,
        };
        self.ended(&load, &answer, meter.received_bytes(), admission);
        answer
    }

    async fn two_phase(
        &self,
        principal: &Principal,
        db: &str,
        op: TwoPhaseOp,
        target: TwoPhaseTarget,
    ) -> Result<(), SqlError> {
        let (begun, admission) = (Instant::now(), self.0.requests.admit()?);
        let target = tributary_ingest::TwoPhaseTarget { txn: target.txn_id, label: target.label };
        let outcome = self.end_two_phase(principal, db, op, &target).await;
        self.ended_two_phase(principal, db, (op, &target), begun, &outcome, admission);
        outcome
    }

    async fn label_in_use(&self, principal: &Principal, db: &str, label: &Label) -> Option<LoadAnswer> {
        let db = self.0.gate.database(principal, Privilege::Connect, db).ok()?;
        let info = self.0.ingest.transactions().by_label(db, label.as_str())?;
        (info.status != TransactionStatus::Aborted)
            .then(|| LoadAnswer::label_already_exists(label.as_str(), info.txn, info.status.name()))
    }

    fn answered(&self, load: AnsweredLoad) {
        if !load.has_begun {
            let requested = RequestedLoad {
                principal: &load.principal,
                route: load.route,
                table: load.answer.table.as_ref(),
                format: None,
                sql: None,
                label: None,
                begun: Instant::now().checked_sub(load.answer.times.load).unwrap_or_else(Instant::now),
                trace_parent: None,
            };
            self.ended(&requested, &load.answer, load.answer.load_bytes, None);
        }
        self.0.loads.load_records.answered(self.0.unix_ms(), load);
    }
}

#[async_trait]
impl InspectService for HttpLoads {
    async fn label_info(
        &self,
        principal: &Principal,
        db: &str,
        label: &str,
    ) -> Result<Option<LabelInfo>, SqlError> {
        let begun = Instant::now();
        let found = self.0.gate.database(principal, Privilege::Show, db);
        self.looked(principal, (&format!("GET /api/{db}/get_load_state"), "SHOW"), db, begun, &found);
        let id = found?;
        let info = self.0.ingest.transactions().by_label(id, label);
        let info =
            info.filter(|info| self.0.gate.check_transaction(principal, db, Some(&info.table_ref)).is_ok());
        Ok(info.map(|info| LabelInfo {
            txn_id: info.txn,
            tables: vec![info.table_ref.table.clone()],
            status: info.status.name(),
            error_url: self.0.jobs.reasons_url(id, db, label).unwrap_or_default(),
            reason: info.reason,
        }))
    }

    async fn cancel(&self, principal: &Principal, db: &str, label: &str) -> Result<(), SqlError> {
        let begun = Instant::now();
        let outcome = self.0.jobs.cancel_label(principal, db, label).await;
        self.looked(
            principal,
            (&format!("POST /api/{db}/_cancel label: {label}"), "CANCEL"),
            db,
            begun,
            &outcome,
        );
        outcome
    }

    async fn table(&self, principal: &Principal, db: &str, table: &str) -> Result<Arc<TableDef>, SqlError> {
        let begun = Instant::now();
        let found = self.0.gate.table(principal, Privilege::ShowCreate, None, Some(db), table);
        self.looked(principal, (&format!("GET /api/{db}/{table}/_schema"), "SHOW"), db, begun, &found);
        found.map(|table| table.def())
    }

    async fn named_load(
        &self,
        principal: &Principal,
        db: &str,
        table: &str,
        asked: &AskedName,
    ) -> Result<NamedState, SqlError> {
        let begun = Instant::now();
        let found = self.0.gate.table(principal, Privilege::Load, None, Some(db), table);
        self.looked(principal, (&format!("GET /api/{db}/{table}/_load_state"), "SHOW"), db, begun, &found);
        Ok(repeated::state_of(&self.0.ingest, &*found?, asked)?)
    }

    async fn row_count(&self, principal: &Principal, db: &str, table: &str) -> Result<u64, SqlError> {
        let begun = Instant::now();
        let found = self.0.gate.table(principal, Privilege::Select, None, Some(db), table);
        self.looked(principal, (&format!("GET /api/{db}/{table}/_count"), "SHOW"), db, begun, &found);
        let table = found?;
        let current = table.current(Freshness::default()).await;
        Ok(current.map_err(table_error)?.snapshot.rows())
    }

    async fn read_plan(
        &self,
        principal: &Principal,
        db: &str,
        table: &str,
        sql: &str,
    ) -> Result<ReadPlan, SqlError> {
        let begun = Instant::now();
        let found = self.0.gate.table(principal, Privilege::Select, None, Some(db), table);
        let found = found.and_then(|table| read_plan::check(sql, db, &table.def()).map(|()| table));
        self.looked(principal, (&format!("POST /api/{db}/{table}/_query_plan"), "SHOW"), db, begun, &found);
        let table = found?;
        if self.0.ports().flight.is_none() {
            let text = "tables are read by Arrow Flight SQL, which is off: set arrow_flight_sql_port";
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        let (tablet, version) = (table.id().0, table.snapshot().version.0);
        Ok(ReadPlan { tablet, version, host: self.0.options.host.clone() })
    }

    fn backends(&self, principal: &Principal, reached_as: Option<&str>) -> Result<Vec<Backend>, SqlError> {
        // Connectors of Doris ask for it before they load, with a user that may do nothing else.
        self.0.gate.check(principal, Privilege::Connect, Object::Server)?;
        // Loads go to the node that writes.
        if let Some(writer) = self.0.other_writer() {
            return Ok(vec![Backend {
                ip: writer.host,
                http_port: writer.webserver_port,
                is_alive: writer.is_alive,
            }]);
        }
        let ip = reached_as.unwrap_or(&self.0.options.host).to_owned();
        Ok(vec![Backend { ip, http_port: self.0.ports().webserver, is_alive: true }])
    }

    fn wal_counts(&self, principal: &Principal, reached_as: Option<&str>) -> Result<Vec<WalCount>, SqlError> {
        self.0.gate.check(principal, Privilege::Show, Object::Server)?;
        let host_port =
            format!("{}:{}", reached_as.unwrap_or(&self.0.options.host), self.0.ports().webserver);
        Ok(vec![WalCount { host_port, count: self.0.ingest.open_groups() }])
    }

    fn health(&self) -> Health {
        self.0.health()
    }

    async fn error_log(&self, file: &str) -> std::io::Result<Option<ErrorLogReader>> {
        let log = self.0.loads.error_log.open(file)?;
        Ok(log.map(|file| Box::pin(tokio::fs::File::from_std(file)) as ErrorLogReader))
    }

    fn metrics(&self) -> String {
        self.0.metrics_text()
    }
}
