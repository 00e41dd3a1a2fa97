//! Stream Load and HTTP Stream: a body of CSV becomes one load.
//!
//! The body is decoded as it arrives and never held whole: rows gather in a [`LoadSink`], which
//! writes them to data files when they are many. Only when the body has ended, its rows were
//! judged and its label is reserved does anything join a group or a transaction.

mod http_stream;
mod reader;

use crate::engine::Engine;
use crate::sink::LoadSink;
use async_trait::async_trait;
use reader::{Mapping, RowReader};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_decode::{Counts, CsvOptions, Reject};
use tributary_http::{
    Backend, ErrorLogReader, HttpStreamRequest, LabelInfo, LoadAnswer, LoadBody, LoadCode, LoadService,
    StreamLoadRequest, TwoPhaseOp, TwoPhaseTarget, WalCount,
};
use tributary_ingest::{
    Body, IngestError, LoadRows, LoadTraits, Reservation, Route, Source, Switch, TransactionKind,
    TransactionStatus, route,
};
use tributary_table::Table;
use tributary_types::{ErrorCode, GroupCommitMode, Label, SqlError, TableDef, TxnId};

/// The HTTP front end's way into the engine.
pub struct HttpLoads(pub Arc<Engine>);

/// What a load over HTTP asks for, whichever endpoint it came by.
struct LoadRequest {
    source: Source,
    label: Option<Label>,
    group_commit: Option<GroupCommitMode>,
    two_phase_commit: bool,
    partial_update: bool,
    partitions: bool,
    max_filter_ratio: f64,
    timeout: Duration,
    body: Body,
}

/// The rows of a body, decoded.
struct ReadRows {
    rows: LoadRows,
    counts: Counts,
    rejects: Vec<Reject>,
    read_time: Duration,
}

impl Engine {
    async fn load_stream(self: &Arc<Self>, request: StreamLoadRequest, body: LoadBody) -> LoadAnswer {
        if let Some(header) = request.unique_table_header {
            return LoadAnswer::fail(
                LoadCode::NotImplemented,
                format!(
                    "header {header} needs a UNIQUE KEY table; tables have DUPLICATE KEY only so far, leave it out"
                ),
            );
        }
        let table = match self.table(None, Some(&request.db), &request.table) {
            Ok(table) => table,
            Err(error) => return LoadAnswer::from_sql_error(&error),
        };
        let load = LoadRequest {
            source: Source::StreamLoad,
            label: request.label.clone(),
            group_commit: request.group_commit,
            two_phase_commit: request.two_phase_commit,
            partial_update: request.partial_columns,
            partitions: request.partitions,
            max_filter_ratio: request.max_filter_ratio,
            timeout: request.timeout,
            body: body_size(request.content_length, request.chunked),
        };
        let plan = |engine: &Arc<Self>, table: &Arc<Table>| {
            let options = CsvOptions {
                column_separator: request.csv.column_separator.clone(),
                line_delimiter: request.csv.line_delimiter.clone(),
                enclose: request.csv.enclose,
                escape: request.csv.escape,
                trim_double_quotes: request.csv.trim_double_quotes,
                skip_lines: usize::try_from(request.csv.lines_to_skip()).unwrap_or(usize::MAX),
                empty_field_as_null: request.csv.empty_field_as_null,
                strict: request.strict_mode,
                clock: engine.load_clock(request.timezone.as_deref())?,
            };
            let columns = request.columns.as_deref().map(reader::mapped).transpose()?;
            let mapping = Mapping {
                columns: columns.as_deref(),
                where_expr: request.where_expr.as_deref(),
                source_where: None,
            };
            RowReader::new(engine, &table.def(), &mapping, options)
        };
        self.run_load(table, load, body, plan).await
    }

    /// Runs a load: label, plan, body, judgement, commit.
    async fn run_load(
        self: &Arc<Self>,
        table: Arc<Table>,
        request: LoadRequest,
        body: LoadBody,
        plan: impl FnOnce(&Arc<Self>, &Arc<Table>) -> Result<RowReader, SqlError>,
    ) -> LoadAnswer {
        let started = Instant::now();
        let def = table.def();
        let route = self.route_load(&table, &request);
        let is_group = matches!(route, Route::GroupAsync | Route::GroupSync(_));
        let reservation = match self.reserve(&def, &request, is_group) {
            Ok(reservation) => reservation,
            Err(IngestError::LabelUsed { label, txn, status }) => {
                return LoadAnswer::label_already_exists(label.as_str(), txn, status);
            }
            Err(error) => return LoadAnswer::fail(LoadCode::Internal, error),
        };
        let begun = started.elapsed();
        let named = |mut answer: LoadAnswer| {
            answer.two_phase_commit = request.two_phase_commit;
            answer.group_commit = is_group;
            answer.fallback_reason = route.remark().map(str::to_owned);
            if let Some(reservation) = &reservation {
                answer.txn_id = Some(reservation.txn());
                reservation.label().as_str().clone_into(&mut answer.label);
            }
            answer
        };
        let reader = match plan(self, &table) {
            Ok(reader) => reader,
            Err(error) => return named(LoadAnswer::from_sql_error(&error)),
        };
        let planned = started.elapsed();
        let read = tokio::time::timeout(request.timeout, self.read_body(&table, &def, reader, body));
        let read = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(answer)) => return named(*answer),
            Err(_) => {
                return named(LoadAnswer::fail(
                    LoadCode::Timeout,
                    format!("timeout of {} s reached while the body was read", request.timeout.as_secs()),
                ));
            }
        };
        let error_url = self.write_error_log(&read.rejects).await;
        let mut answer = match self.judge_load(&table, &request, &read).await {
            Some(refusal) => named(refusal),
            None => {
                let remaining = request.timeout.saturating_sub(started.elapsed());
                let outline = named(LoadAnswer::success(TxnId(0), String::new()));
                self.commit_load(&table, &request, route, reservation, read.rows, remaining, outline).await
            }
        };
        answer.total_rows = read.counts.total;
        answer.loaded_rows = read.counts.loaded;
        answer.filtered_rows = read.counts.filtered;
        answer.unselected_rows = read.counts.unselected;
        answer.error_url = error_url;
        answer.times.begin_txn = begun;
        answer.times.stream_load_put = planned.saturating_sub(begun);
        answer.times.read_data = read.read_time;
        answer
    }

    fn route_load(&self, table: &Table, request: &LoadRequest) -> Route {
        let traits = LoadTraits {
            two_phase_commit: request.two_phase_commit,
            has_label: request.label.is_some(),
            partial_update: request.partial_update,
            partitions: request.partitions,
            ..LoadTraits::plain(request.source, request.group_commit, request.body)
        };
        let route = route(&traits, &table.def().properties, || self.ingest.wal_available_bytes());
        match route {
            Route::Own(Some(reason)) => self.ingest.metrics().fell_back(reason),
            Route::GroupSync(Some(reason)) => self.ingest.metrics().switched(reason),
            _ => {}
        }
        route
    }

    fn reserve(
        &self,
        def: &TableDef,
        request: &LoadRequest,
        is_group: bool,
    ) -> Result<Option<Reservation>, IngestError> {
        if is_group {
            return Ok(None);
        }
        let is_kept = request.label.is_some() || request.two_phase_commit;
        let label = request.label.clone().unwrap_or_else(|| Label::of_stream_load(rand::random()));
        self.ingest.begin(def, label, is_kept, TransactionKind::StreamLoad).map(Some)
    }

    async fn read_body(
        self: &Arc<Self>,
        table: &Arc<Table>,
        def: &Arc<TableDef>,
        mut reader: RowReader,
        mut body: LoadBody,
    ) -> Result<ReadRows, Box<LoadAnswer>> {
        let mut sink =
            LoadSink::new(Arc::clone(table), Arc::clone(&def.schema), self.options.large_load_bytes);
        let mut read_time = Duration::ZERO;
        let outcome = loop {
            let chunk = match body.next().await {
                None => break Ok(()),
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => break Err(LoadAnswer::from_body_error(&error)),
            };
            let before = Instant::now();
            let decoded = reader.push(&chunk);
            read_time += before.elapsed();
            match decoded {
                Ok(blocks) if blocks.is_empty() => {}
                Ok(blocks) => {
                    if let Err(error) = sink.push(blocks).await {
                        break Err(LoadAnswer::fail(LoadCode::Internal, error));
                    }
                }
                Err(error) => break Err(LoadAnswer::fail(LoadCode::DataQuality, error.detail_text())),
            }
        };
        let outcome = match outcome {
            Ok(()) => match reader.finish() {
                Ok(blocks) => {
                    sink.push(blocks).await.map_err(|error| LoadAnswer::fail(LoadCode::Internal, error))
                }
                Err(error) => Err(LoadAnswer::fail(LoadCode::DataQuality, error.detail_text())),
            },
            failed => failed,
        };
        if let Err(answer) = outcome {
            sink.abort().await;
            return Err(Box::new(answer));
        }
        let rows =
            sink.finish().await.map_err(|error| Box::new(LoadAnswer::fail(LoadCode::Internal, error)))?;
        Ok(ReadRows { rows, counts: reader.counts(), rejects: reader.rejects(), read_time })
    }

    /// The answer of a load with too many bad rows; nothing of it is kept.
    async fn judge_load(&self, table: &Table, request: &LoadRequest, read: &ReadRows) -> Option<LoadAnswer> {
        if !read.counts.exceed(request.max_filter_ratio) {
            return None;
        }
        self.ingest.metrics().load_failed(request.group_commit.unwrap_or_default());
        table.discard(&read.rows.files).await;
        let mut refusal = LoadAnswer::too_many_filtered_rows();
        refusal.first_error_msg = read.rejects.first().map(|reject| reject.reason.clone());
        Some(refusal)
    }

    #[expect(clippy::too_many_arguments, reason = "one call, each argument a step's outcome")]
    async fn commit_load(
        &self,
        table: &Arc<Table>,
        request: &LoadRequest,
        route: Route,
        reservation: Option<Reservation>,
        rows: LoadRows,
        remaining: Duration,
        mut answer: LoadAnswer,
    ) -> LoadAnswer {
        let started = Instant::now();
        let route = match route {
            Route::GroupAsync if !rows.files.is_empty() => {
                let switch = Switch::DataFiles;
                self.ingest.metrics().switched(switch);
                answer.fallback_reason = Some(switch.reason().to_owned());
                Route::GroupSync(Some(switch))
            }
            route => route,
        };
        let is_async = route == Route::GroupAsync;
        let outcome = match reservation {
            Some(reservation) if request.two_phase_commit => {
                self.ingest.prepare(table, reservation, rows).await
            }
            Some(reservation) => self.ingest.commit(table, reservation, rows).await,
            None if rows.is_empty() => {
                answer.txn_id = None;
                return answer;
            }
            None => {
                self.ingest
                    .load_into_group(table, is_async, rows, remaining.max(Duration::from_millis(1)))
                    .await
            }
        };
        match outcome {
            Ok(committed) => {
                answer.txn_id = Some(committed.txn);
                committed.label.as_str().clone_into(&mut answer.label);
                if matches!(route, Route::GroupSync(Some(_))) {
                    answer.answered_mode = Some(GroupCommitMode::Sync);
                }
            }
            Err(error) => {
                let code = match &error {
                    IngestError::Timeout { .. } => LoadCode::Timeout,
                    IngestError::ShuttingDown => LoadCode::ServiceUnavailable,
                    _ => LoadCode::Internal,
                };
                let failed = LoadAnswer::fail(code, error);
                answer.status = failed.status;
                answer.message = failed.message;
            }
        }
        if matches!(route, Route::Own(_)) {
            answer.times.commit_and_publish = started.elapsed();
        } else {
            answer.times.write_data = started.elapsed();
        }
        answer
    }
}

fn body_size(content_length: Option<u64>, chunked: bool) -> Body {
    match content_length {
        Some(bytes) if !chunked => Body::Known(bytes),
        _ => Body::Unknown,
    }
}

#[async_trait]
impl LoadService for HttpLoads {
    async fn authenticate(&self, user: &str, password: &str, peer: IpAddr) -> Result<(), SqlError> {
        self.0.check_password(user, password, &peer.to_string())
    }

    async fn stream_load(&self, request: StreamLoadRequest, body: LoadBody) -> LoadAnswer {
        self.0.load_stream(request, body).await
    }

    async fn http_stream(&self, request: HttpStreamRequest, body: LoadBody) -> LoadAnswer {
        self.0.load_http_stream(request, body).await
    }

    async fn two_phase(
        &self,
        _user: &str,
        db: &str,
        op: TwoPhaseOp,
        target: TwoPhaseTarget,
    ) -> Result<(), SqlError> {
        let db = self.0.names.database_id(db)?;
        let target = tributary_ingest::TwoPhaseTarget { txn: target.txn_id, label: target.label };
        match op {
            TwoPhaseOp::Commit => self.0.ingest.commit_prepared(db, &target).await?,
            TwoPhaseOp::Abort => self.0.ingest.abort_prepared(db, &target, "User Abort").await?,
        };
        Ok(())
    }

    async fn label_in_use(&self, _user: &str, db: &str, label: &Label) -> Option<LoadAnswer> {
        let db = self.0.names.database_id(db).ok()?;
        let info = self.0.ingest.transactions().by_label(db, label.as_str())?;
        (info.status != TransactionStatus::Aborted)
            .then(|| LoadAnswer::label_already_exists(label.as_str(), info.txn, info.status.name()))
    }

    async fn label_info(&self, _user: &str, db: &str, label: &str) -> Result<Option<LabelInfo>, SqlError> {
        let db = self.0.names.database_id(db)?;
        Ok(self.0.ingest.transactions().by_label(db, label).map(|info| LabelInfo {
            txn_id: info.txn,
            tables: vec![info.table_ref.table.clone()],
            status: info.status.name(),
            reason: info.reason,
            error_url: String::new(),
        }))
    }

    async fn table(&self, _user: &str, db: &str, table: &str) -> Result<Arc<TableDef>, SqlError> {
        self.0.table(None, Some(db), table).map(|table| table.def())
    }

    async fn row_count(&self, _user: &str, db: &str, table: &str) -> Result<u64, SqlError> {
        self.0.table(None, Some(db), table).map(|table| table.snapshot().rows())
    }

    fn backends(&self) -> Vec<Backend> {
        let options = &self.0.options;
        vec![Backend { ip: options.host.clone(), http_port: self.0.ports().webserver, is_alive: true }]
    }

    fn wal_counts(&self) -> Vec<WalCount> {
        let host_port = format!("{}:{}", self.0.options.host, self.0.ports().webserver);
        vec![WalCount { host_port, count: self.0.ingest.open_groups() }]
    }

    async fn error_log(&self, file: &str) -> std::io::Result<Option<ErrorLogReader>> {
        let log = self.0.error_log.open(file)?;
        Ok(log.map(|file| Box::pin(tokio::fs::File::from_std(file)) as ErrorLogReader))
    }

    fn metrics(&self) -> String {
        self.0.metrics_text()
    }
}

/// The error of a body or statement that can't be planned.
fn plan_error(text: impl Into<String>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text.into())
}
