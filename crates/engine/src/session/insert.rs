//! INSERT: from the statement's text or parameters to a load, and its answer.
//!
//! `INSERT … VALUES` of literals never meets the general parser: it is scanned by hand into column
//! blocks, and the plan (table, columns, target) of the last one is kept, because a driver sends
//! the same head again and again. Expressions, DEFAULT and SELECT go through the query engine.

use super::{EngineSession, LastInsert};
use crate::answer::LoadInfo;
use crate::sink::LoadSink;
use futures::StreamExt;
use sqlparser::ast::Value as SqlValue;
use std::sync::Arc;
use tributary_decode::{
    Block, BlockBuilder, Counts, Decoded, InsertOptions, Reject, Target, ValuesOutcome, decode_batch,
    decode_values, scan_insert_head,
};
use tributary_ingest::{
    Body, Committed, LoadRows, LoadTraits, Route, Source, TransactionKind, TransactionStatus, route,
};
use tributary_mysql::{OkInfo, ResultWriter};
use tributary_query::ScalarValue;
use tributary_sql::{Expr, Insert, InsertSource, SelectQuery, Value};
use tributary_table::Table;
use tributary_types::{DefaultValue, ErrorCode, GroupCommitMode, Label, SqlError, TableDef, TxnId};

/// The most rejected rows that SHOW WARNINGS lists; MySQL keeps as many.
const WARNINGS_KEPT_MAX: usize = 64;

/// So many rows with expressions are planned at once: a plan takes far more memory than a row.
const ROWS_PER_QUERY: usize = 250;

/// The plan of an INSERT … VALUES by its head, valid while the table's definition is this one.
pub(super) struct PlannedInsert {
    head: Box<[u8]>,
    pub table: Arc<Table>,
    pub def: Arc<TableDef>,
    pub target: Target,
    /// The state of the names that the plan was made from.
    generation: u64,
}

/// A decoded INSERT on its way into a group or a transaction.
pub(super) struct InsertLoad {
    pub table: Arc<Table>,
    pub target_def: Arc<TableDef>,
    pub decoded: Decoded,
    pub traits: LoadTraits,
    pub label: Option<Label>,
    pub reused_plan: bool,
}

/// What an INSERT came to.
struct InsertAnswer {
    label: Label,
    txn: TxnId,
    status: TransactionStatus,
    remark: Option<&'static str>,
}

impl EngineSession {
    /// Runs the statement if it is an INSERT of literals. False: it is for the general parser.
    pub(super) async fn try_values_insert(
        &mut self,
        sql: &[u8],
        out: &mut ResultWriter<'_>,
    ) -> Result<bool, SqlError> {
        let generation = self.engine.names.generation();
        let known = self.last_plan.as_ref().filter(|plan| plan.is_for(sql, generation));
        let values_offset = match known {
            Some(plan) => plan.head.len(),
            None => {
                let Some(head) = scan_insert_head(sql) else { return Ok(false) };
                let table = self.engine.table(self.database.as_deref(), head.db.as_deref(), &head.table)?;
                let def = table.def();
                let target = Target::new(&def, head.columns.as_deref())?;
                let text = sql[..head.values_offset].into();
                self.last_plan = Some(PlannedInsert { head: text, table, def, target, generation });
                head.values_offset
            }
        };
        let options = self.insert_options();
        let Some(plan) = &self.last_plan else { return Ok(false) };
        let mut builder = self.builder.take(&self.engine.builders, plan.target.schema());
        let outcome = decode_values(&sql[values_offset..], &plan.target, &options, &mut builder);
        let (table, target_def) = (Arc::clone(&plan.table), Arc::clone(&plan.def));
        self.keep_builder(builder);
        let ValuesOutcome::Rows(decoded) = outcome? else { return Ok(false) };
        self.warnings.clear();
        let load = InsertLoad {
            table,
            target_def,
            decoded,
            traits: self.traits(sql.len()),
            label: None,
            reused_plan: false,
        };
        self.finish_insert(load, &options, out).await?;
        Ok(true)
    }

    /// A builder for the target; [`Self::keep_builder`] takes it back.
    pub(super) fn take_builder(&mut self, target: &Target) -> BlockBuilder {
        self.builder.take(&self.engine.builders, target.schema())
    }

    pub(super) fn keep_builder(&mut self, builder: BlockBuilder) {
        self.builder.keep(builder, &self.engine.builders);
    }

    pub(super) fn traits(&self, bytes: usize) -> LoadTraits {
        LoadTraits {
            in_transaction: self.transaction.is_some(),
            partial_update: self.variables.hot().partial_update,
            ..LoadTraits::plain(Source::Insert, self.variables.group_commit(), Body::Known(bytes as u64))
        }
    }

    /// Runs an INSERT that the general parser took.
    pub(super) async fn run_insert(
        &mut self,
        insert: Insert,
        params: &[ScalarValue],
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        if insert.overwrite {
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                "INSERT OVERWRITE is not supported yet; use TRUNCATE TABLE and INSERT INTO",
            ));
        }
        let table =
            self.engine.table(self.database.as_deref(), insert.table.db.as_deref(), &insert.table.table)?;
        let def = table.def();
        let target = Target::new(&def, insert.columns.as_deref())?;
        let label = insert.label.as_deref().map(Label::new).transpose()?;
        let traits =
            LoadTraits { has_label: label.is_some(), partitions: insert.partitions, ..self.traits(0) };
        match insert.source {
            InsertSource::Values(rows) => {
                let has_expression = rows.iter().flatten().any(|value| !is_literal(value));
                let rows = value_rows(&def, insert.columns.as_deref(), rows)?;
                let options = self.insert_options();
                let decoded = self.decode_rows(rows, params, &target, &options).await?;
                let load = InsertLoad {
                    table,
                    target_def: def,
                    decoded,
                    traits: LoadTraits { has_expression, ..traits },
                    label,
                    reused_plan: false,
                };
                self.finish_insert(load, &options, out).await
            }
            InsertSource::Query(query) => {
                let is_row = is_single_row(&query);
                let traits = LoadTraits { has_expression: is_row, from_query: !is_row, ..traits };
                self.insert_query(&query, params, (table, target, label), traits, out).await
            }
        }
    }

    /// Rows of expressions as blocks of the target.
    async fn decode_rows(
        &mut self,
        rows: Vec<Vec<Expr>>,
        mut params: &[ScalarValue],
        target: &Target,
        options: &InsertOptions,
    ) -> Result<Decoded, SqlError> {
        // One time for the whole statement.
        let view = self.view();
        let mut all = Decoded::default();
        let mut rest = rows.into_iter().peekable();
        while rest.peek().is_some() {
            let Some(query) = SelectQuery::of_rows(rest.by_ref().take(ROWS_PER_QUERY).collect()) else {
                break;
            };
            let own = match rest.peek() {
                Some(_) => params.split_off(..query.param_count()).unwrap_or_default(),
                None => params,
            };
            let mut result = self.engine.query.query(&view, &query, own).await?;
            check_width(result.columns.len(), target)?;
            while let Some(batch) = result.stream.next().await {
                let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
                let mut builder = self.take_builder(target);
                let decoded = decode_batch(&batch, target, options, &mut builder);
                self.keep_builder(builder);
                append(&mut all, decoded?);
            }
        }
        Ok(all)
    }

    /// INSERT … SELECT: the rows stream into memory or data files.
    async fn insert_query(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
        (table, target, label): (Arc<Table>, Target, Option<Label>),
        traits: LoadTraits,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let options = self.insert_options();
        let route = self.route(&table, &traits);
        let mut result = self.engine.query.query(&self.view(), query, params).await?;
        check_width(result.columns.len(), &target)?;
        let mut sink = LoadSink::new(
            Arc::clone(&table),
            Arc::clone(target.schema()),
            self.engine.options.large_load_bytes,
        );
        let mut summary = Decoded::default();
        while let Some(batch) = result.stream.next().await {
            let step = match batch.map_err(|error| tributary_query::stream_error(&error)) {
                Ok(batch) => {
                    let mut builder = self.take_builder(&target);
                    let decoded = decode_batch(&batch, &target, &options, &mut builder);
                    self.keep_builder(builder);
                    decoded
                }
                Err(error) => Err(error),
            };
            let kept = match step {
                Ok(mut decoded) => {
                    let blocks = std::mem::take(&mut decoded.blocks);
                    append(&mut summary, decoded);
                    sink.push(blocks).await.map_err(SqlError::from)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = kept {
                sink.abort().await;
                return Err(error);
            }
        }
        if let Err(error) = self.judge(&summary, &options).await {
            sink.abort().await;
            return Err(error);
        }
        let rows = sink.finish().await?;
        let error_url = self.log_rejects(&summary.rejects).await;
        if self.transaction.is_some() {
            let answer = self.gather(&table, &target, rows, summary.counts).await?;
            return self.answer_insert(&table, summary.counts, answer, error_url, false, out).await;
        }
        if rows.is_empty() {
            return out.ok(OkInfo { warnings: warning_count(summary.counts), ..OkInfo::default() }).await;
        }
        let answer = self.submit(&table, route, label, rows).await?;
        self.answer_insert(&table, summary.counts, answer, error_url, false, out).await
    }

    async fn gather(
        &mut self,
        table: &Arc<Table>,
        target: &Target,
        rows: LoadRows,
        counts: Counts,
    ) -> Result<InsertAnswer, SqlError> {
        if !rows.files.is_empty() {
            table.discard(&rows.files).await;
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                format!(
                    "INSERT … SELECT of more than {} bytes within BEGIN is not supported; run it outside of the transaction",
                    self.engine.options.large_load_bytes
                ),
            ));
        }
        self.add_blocks(table, Arc::clone(target.schema()), rows.blocks, counts).await
    }

    async fn add_blocks(
        &mut self,
        table: &Arc<Table>,
        schema: Arc<tributary_types::TableSchema>,
        blocks: Vec<Block>,
        counts: Counts,
    ) -> Result<InsertAnswer, SqlError> {
        let (label, txn) = self.add_to_transaction(table, schema, blocks, counts).await?;
        Ok(InsertAnswer { label, txn, status: TransactionStatus::Prepare, remark: None })
    }

    /// Judges a decoded INSERT, commits it as its route says and answers.
    pub(super) async fn finish_insert(
        &mut self,
        load: InsertLoad,
        options: &InsertOptions,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let InsertLoad { table, target_def, decoded, traits, label, reused_plan } = load;
        self.judge(&decoded, options).await?;
        let error_url = self.log_rejects(&decoded.rejects).await;
        let schema = Arc::clone(&target_def.schema);
        if traits.in_transaction {
            let answer = self.add_blocks(&table, schema, decoded.blocks, decoded.counts).await?;
            return self.answer_insert(&table, decoded.counts, answer, error_url, false, out).await;
        }
        let rows = LoadRows::of_blocks(schema, decoded.blocks);
        if rows.is_empty() {
            return out.ok(OkInfo { warnings: warning_count(decoded.counts), ..OkInfo::default() }).await;
        }
        let route = self.route(&table, &traits);
        let answer = self.submit(&table, route, label, rows).await?;
        self.answer_insert(&table, decoded.counts, answer, error_url, reused_plan, out).await
    }

    fn route(&self, table: &Table, traits: &LoadTraits) -> Route {
        let ingest = &self.engine.ingest;
        let route = table.with_def(|def| route(traits, &def.properties, || ingest.wal_available_bytes()));
        match route {
            Route::Own(Some(reason)) => ingest.metrics().fell_back(reason),
            Route::GroupSync(Some(reason)) => ingest.metrics().switched(reason),
            _ => {}
        }
        route
    }

    async fn submit(
        &mut self,
        table: &Arc<Table>,
        route: Route,
        label: Option<Label>,
        rows: LoadRows,
    ) -> Result<InsertAnswer, SqlError> {
        let ingest = &self.engine.ingest;
        let timeout = self.variables.hot().insert_timeout;
        let (committed, status): (Committed, _) = match route {
            Route::GroupAsync | Route::GroupSync(_) => {
                let is_async = route == Route::GroupAsync;
                (ingest.load_into_group(table, is_async, rows, timeout).await?, TransactionStatus::Prepare)
            }
            Route::Own(_) => {
                let label_is_kept = label.is_some();
                let label = label.unwrap_or_else(|| Label::of_insert(rand::random()));
                let begun = ingest.begin(&table.def(), label, label_is_kept, TransactionKind::Insert);
                let reservation = match begun {
                    Ok(reservation) => reservation,
                    Err(error) => {
                        table.discard(&rows.files).await;
                        return Err(SqlError::detail(
                            ErrorCode::Unknown,
                            format!("begin transaction failed. errCode = 2, detailMessage = {error}"),
                        ));
                    }
                };
                (ingest.commit(table, reservation, rows).await?, TransactionStatus::Visible)
            }
        };
        Ok(InsertAnswer { label: committed.label, txn: committed.txn, status, remark: route.remark() })
    }

    async fn answer_insert(
        &mut self,
        table: &Table,
        counts: Counts,
        answer: InsertAnswer,
        error_url: Option<String>,
        reused_plan: bool,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let info = LoadInfo {
            label: Some(&answer.label),
            status: answer.status.name(),
            txn: Some(answer.txn),
            error_url: error_url.as_deref(),
            remark: answer.remark,
            reused_plan,
        }
        .text();
        self.last_insert = Some(LastInsert {
            txn: answer.txn,
            label: answer.label,
            table: table.def(),
            status: answer.status,
            loaded: counts.loaded,
            filtered: counts.filtered,
        });
        let ok = OkInfo {
            affected_rows: counts.loaded,
            warnings: warning_count(counts),
            info: &info,
            last_insert_id: 0,
        };
        out.ok(ok).await
    }

    /// Fails the statement if it has more bad rows than the session allows.
    async fn judge(&mut self, decoded: &Decoded, options: &InsertOptions) -> Result<(), SqlError> {
        if !options.refuses(decoded.counts) {
            return Ok(());
        }
        let url = self.log_rejects(&decoded.rejects).await.unwrap_or_default();
        let first = decoded.first_reason().unwrap_or_default();
        self.engine.ingest.metrics().load_failed(GroupCommitMode::Off);
        let text = if options.strict {
            format!("Insert has filtered data in strict mode. first_error_msg: {first}. url: {url}")
        } else {
            format!(
                "Insert has too many filtered data {}/{} insert_max_filter_ratio is {:.6}. first_error_msg: {first}. url: {url}",
                decoded.counts.filtered, decoded.counts.total, options.max_filter_ratio
            )
        };
        Err(SqlError::detail(ErrorCode::Unknown, text))
    }

    /// Keeps the reasons of rejected rows: as warnings of the session and in an error log, whose
    /// URL is given.
    async fn log_rejects(&mut self, rejects: &[Reject]) -> Option<String> {
        if rejects.is_empty() {
            return None;
        }
        self.warnings = rejects.iter().take(WARNINGS_KEPT_MAX).map(|reject| reject.reason.clone()).collect();
        self.engine.write_error_log(rejects).await
    }
}

impl PlannedInsert {
    /// Whether a statement has this head; a `(` must follow, or the head would be longer.
    fn is_for(&self, sql: &[u8], generation: u64) -> bool {
        let values = sql.strip_prefix(&*self.head).map(<[u8]>::trim_ascii_start);
        self.generation == generation && values.is_some_and(|values| values.first() == Some(&b'('))
    }
}

fn warning_count(counts: Counts) -> u16 {
    u16::try_from(counts.filtered).unwrap_or(u16::MAX)
}

fn append(all: &mut Decoded, more: Decoded) {
    all.blocks.extend(more.blocks);
    all.counts = all.counts.plus(more.counts);
    let room = tributary_decode::REJECTS_KEPT_MAX.saturating_sub(all.rejects.len());
    all.rejects.extend(more.rejects.into_iter().take(room));
}

fn check_width(found: usize, target: &Target) -> Result<(), SqlError> {
    if found == target.field_count() {
        return Ok(());
    }
    Err(SqlError::detail(ErrorCode::ColumnCountMismatch, "Column count doesn't match value count"))
}

fn is_literal(value: &Value) -> bool {
    use sqlparser::ast::UnaryOperator;
    match value {
        Value::Default => false,
        Value::Expr(Expr::Value(_)) => true,
        Value::Expr(Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr }) => {
            matches!(**expr, Expr::Value(_))
        }
        Value::Expr(_) => false,
    }
}

/// `SELECT 1, 'a'`: one row that comes from no table.
fn is_single_row(query: &SelectQuery) -> bool {
    use sqlparser::ast::SetExpr;
    match &*query.ast.body {
        SetExpr::Select(select) => select.from.is_empty(),
        SetExpr::Values(_) => true,
        _ => false,
    }
}

/// The rows of VALUES with one expression for each field of the target.
fn value_rows(
    def: &TableDef,
    columns: Option<&[String]>,
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Expr>>, SqlError> {
    let defaults: Vec<Expr> = match columns {
        None => def.schema.columns.iter().map(default_of).collect::<Result<_, _>>()?,
        Some(names) => names
            .iter()
            .map(|name| match def.schema.index_of(name) {
                Some(index) => default_of(&def.schema.columns[index]),
                None => Ok(Expr::value(SqlValue::Null)),
            })
            .collect::<Result<_, _>>()?,
    };
    let with_defaults = |(index, row): (usize, Vec<Value>)| {
        if row.is_empty() {
            return Ok(defaults.clone());
        }
        if row.len() != defaults.len() {
            return Err(SqlError::detail(
                ErrorCode::ColumnCountMismatch,
                format!("Column count doesn't match value count at row {}", index + 1),
            ));
        }
        let cells = row.into_iter().zip(&defaults).map(|(value, default)| match value {
            Value::Default => default.clone(),
            Value::Expr(expr) => expr,
        });
        Ok(cells.collect())
    };
    rows.into_iter().enumerate().map(with_defaults).collect()
}

fn default_of(column: &tributary_types::ColumnDef) -> Result<Expr, SqlError> {
    match &column.default {
        None | Some(DefaultValue::Null) => Ok(Expr::value(SqlValue::Null)),
        Some(DefaultValue::Literal(text)) => Ok(Expr::value(SqlValue::SingleQuotedString(text.clone()))),
        Some(DefaultValue::CurrentTimestamp { scale }) => {
            tributary_sql::parse_expression(&format!("now({scale})"))
        }
        Some(DefaultValue::CurrentDate) => tributary_sql::parse_expression("curdate()"),
    }
}
