//! INSERT: from the statement's text or parameters to a load, and its answer.
//!
//! `INSERT … VALUES` with literals bypasses the general parser: it is scanned directly into column blocks, and the plan (table,
//! columns, target) of the last one is cached, because a driver sends the same head repeatedly. Expressions, DEFAULT and SELECT
//! go through the query engine.

use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::access::limits::{AdmittedLoad, LimitReached};
use crate::answer::{Answer, Done};
use crate::engine::Engine;
use crate::generated::Completer;
use crate::load::hidden_columns;
use crate::load::info::{LoadInfo, ShownDetails};
use crate::load::partial_update::{self, KnownKeys};
use crate::load::{self, Finished, Load, LoadCommitted, LoadDetails, LoadError, LoadLimits, Outcome, Tally};
use crate::session::compat::Warning;
use crate::session::rows::changed_rows::count_unchanged;
use crate::session::rows::insert_parts;
use crate::session::rows::upsert::{Upsert, reads_rows, upsert};
use crate::session::{EngineSession, LastInsert};
use crate::variables::QUERY_TIMEOUT_DEFAULT_SECONDS;
use futures::StreamExt;
use sqlparser::ast::Value as SqlValue;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tributary_decode::{
    Block, BlockBuilder, Counts, Decoded, InsertOptions, Reject, RejectCode, Target, ValuesOutcome,
    decode_batch, decode_values, scan_insert_head,
};
use tributary_ingest::{Body, IngestError, LoadRight, LoadTraits, Source, TransactionStatus};
use tributary_query::{QueryEngine, ScalarValue};
use tributary_sql::{Expr, Insert, InsertSource, SelectQuery, Value};
use tributary_table::Table;
use tributary_types::{
    DefaultValue, ErrorCode, GroupCommitMode, HiddenColumn, Label, Partitions, SqlError, TableDef,
    TableSchema, TxnId, UserProperty,
};

/// Limit on the rejected rows in SHOW WARNINGS, as in MySQL.
const WARNINGS_KEPT_MAX: usize = 64;

/// How many rows with expressions are planned at once: a plan takes far more memory than a row.
const ROWS_PER_QUERY: usize = 250;

/// The plan of an INSERT … VALUES by its head, valid while the table's definition is this one.
pub(in crate::session) struct PlannedInsert {
    head: Box<[u8]>,
    table: Arc<Table>,
    target: Target,
    /// The state of the names that the plan was made from.
    generation: u64,
    right: Arc<LoadRight>,
    /// Whether partial updates were on.
    is_partial: bool,
}

/// A decoded INSERT on its way into a group or a transaction.
pub(in crate::session) struct InsertLoad {
    pub table: Arc<Table>,
    /// The schema of the decoded blocks.
    pub schema: Arc<TableSchema>,
    /// The partitions that their rows were looked up in.
    pub partitions: Option<Arc<Partitions>>,
    pub decoded: Decoded,
    pub traits: LoadTraits,
    pub admitted: AdmittedLoad,
    pub label: Option<Label>,
    /// Requirements on the keys of the rows.
    pub known_keys: Option<Box<KnownKeys>>,
    pub reused_plan: bool,
}

/// The target of a query's rows.
pub(in crate::session) struct QueryLoad {
    pub table: Arc<Table>,
    pub target: Target,
    pub label: Option<Label>,
    /// Requirements on the keys of the rows.
    pub known_keys: Option<Box<KnownKeys>>,
}

/// The outcome of an INSERT.
pub(in crate::session) struct InsertAnswer {
    pub label: Label,
    pub txn: TxnId,
    pub status: TransactionStatus,
    pub remark: Option<&'static str>,
    /// It was loaded before, and this is the answer of then.
    pub is_repeated: bool,
    /// The mode in which it was answered, and what it says of the way there.
    pub details: Option<(GroupCommitMode, LoadDetails)>,
}

impl InsertAnswer {
    /// A plain answer.
    pub const fn of(label: Label, txn: TxnId, status: TransactionStatus) -> Self {
        Self { label, txn, status, remark: None, is_repeated: false, details: None }
    }
}

/// A load that is done, and not answered yet.
pub(in crate::session) struct Loaded {
    table: Arc<Table>,
    counts: Counts,
    /// `None`: there were no rows, and no transaction.
    answer: Option<InsertAnswer>,
    error_url: Option<String>,
}

impl EngineSession {
    /// Runs the statement if it is an INSERT of literals. `None`: it is for the general parser.
    pub(crate) async fn try_values_insert(&mut self, sql: &[u8]) -> Result<Option<Answer>, SqlError> {
        if self.refuses_existing_keys() {
            return Ok(None);
        }
        let generation = self.engine.generation();
        let is_partial = self.variables.values().enable_unique_key_partial_update;
        let known = self.last_plan.as_ref().filter(|plan| {
            plan.is_partial == is_partial
                && plan.is_for(sql, generation)
                && !self.must_be_ready_to_update(plan.target.table())
        });
        let values_offset = match known {
            Some(plan) => plan.head.len(),
            None => {
                let Some(head) = scan_insert_head(sql) else { return Ok(None) };
                let table = self.table(Privilege::Load, head.db.as_deref(), &head.table)?;
                let target = self.insert_target(&table, head.columns.as_deref()).await?;
                let text = sql[..head.values_offset].into();
                let right = self.engine.loads.right(&self.principal, &table, Some(generation));
                self.last_plan =
                    Some(PlannedInsert { head: text, table, target, generation, right, is_partial });
                head.values_offset
            }
        };
        self.check_writes()?;
        self.begin_with_insert().await?;
        let options = self.insert_options();
        let Some(plan) = &self.last_plan else { return Ok(None) };
        if plan.target.computed_field().is_some() {
            // Only DEFAULT is allowed there.
            return Ok(None);
        }
        if self.running.named.is_some() {
            let table = Arc::clone(&plan.table);
            if let Some(answer) = Box::pin(self.loaded_before(&table, None)).await? {
                return Ok(Some(answer));
            }
        }
        let Some(plan) = &self.last_plan else { return Ok(None) };
        let traits = self.traits(sql.len());
        let admitted = self.admit_insert(&plan.table, &traits, &plan.right)?;
        let mut builder = self.builder.take(&self.engine.loads.builders, plan.target.schema());
        let outcome = decode_values(&sql[values_offset..], &plan.target, &options, &mut builder);
        let (table, schema) = (Arc::clone(&plan.table), Arc::clone(plan.target.schema()));
        let partitions = plan.target.table().partitioning.partitions().cloned();
        let known_keys = self.known_keys(&plan.target);
        let completer = self.completer(&plan.target, &options);
        self.keep_builder(builder);
        self.parsed("INSERT", None);
        let ValuesOutcome::Rows(mut decoded) = outcome? else {
            admitted.give_back();
            return Ok(None);
        };
        if let Some(completer) = completer? {
            completer.complete_all(&mut decoded)?;
        }
        self.warnings.clear();
        let load = InsertLoad {
            table,
            schema,
            partitions,
            decoded,
            traits,
            admitted,
            label: None,
            known_keys,
            reused_plan: false,
        };
        self.finish_insert(load, &options).await.map(Some)
    }

    /// Admits an INSERT of rows before they are decoded. One within BEGIN belongs to the load of its transaction.
    #[inline]
    pub(in crate::session) fn admit_insert(
        &self,
        table: &Table,
        traits: &LoadTraits,
        right: &Arc<LoadRight>,
    ) -> Result<AdmittedLoad, LimitReached> {
        match traits.in_transaction {
            true => Ok(AdmittedLoad::later(&self.principal)),
            false => self.engine.loads.admit_with(&self.principal, table, traits, Arc::clone(right)),
        }
    }

    /// The target of an INSERT that names these columns. The table is ready for it then.
    pub(in crate::session) async fn insert_target(
        &mut self,
        table: &Arc<Table>,
        columns: Option<&[String]>,
    ) -> Result<Target, SqlError> {
        let variables = self.variables.values();
        let (needs_sequence, is_partial) =
            (variables.require_sequence_in_insert, variables.enable_unique_key_partial_update);
        table.with_def(check_has_partitions)?;
        if columns.is_none() {
            table.with_def(check_order_of_columns)?;
        }
        if table.with_def(|def| self.must_be_ready_to_update(def)) {
            Box::pin(self.engine.loads.ready_to_update(table)).await?;
        }
        // As in Doris, a statement that names no columns gives whole rows.
        if is_partial && columns.is_some() && table.with_def(partial_update::is_possible) {
            return Box::pin(partial_target(Arc::clone(&self.engine), table, columns)).await;
        }
        let def = table.def();
        if needs_sequence {
            hidden_columns::check_named(&def, columns)?;
        }
        Target::new(&def, columns)
    }

    /// The target of an INSERT that updates these columns of rows that exist. The table is ready for partial updates.
    pub(super) async fn upsert_target(
        &mut self,
        table: &Arc<Table>,
        columns: Option<&[String]>,
        updated: &[String],
    ) -> Result<Target, SqlError> {
        // Its checks hold here, too.
        self.insert_target(table, columns).await?;
        Target::upserting(&table.def(), columns, updated)
    }

    /// The requirements on the keys of an INSERT's rows.
    pub(in crate::session) fn known_keys(&self, target: &Target) -> Option<Box<KnownKeys>> {
        KnownKeys::of(target, self.variables.values().partial_update_new_key_behavior == "ERROR")
    }

    /// Refuses a label within a transaction, which has its own.
    fn check_label(&self, label: Option<&Label>) -> Result<(), SqlError> {
        let (Some(label), Some(_)) = (label, &self.transaction) else { return Ok(()) };
        Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "Transaction insert expect label: the rows of all statements have the transaction's label; leave out WITH \
                 LABEL {label}, or give it to BEGIN WITH LABEL"
            ),
        ))
    }

    /// Whether an INSERT fails if a row of one of its keys exists, instead of replacing it.
    #[inline]
    pub(in crate::session) fn refuses_existing_keys(&self) -> bool {
        self.variables.values().refuse_existing_keys
    }

    /// Whether this INSERT may bring rows of new keys only. It has its turn of the table then, and shares no group: the next one
    /// has to see its rows.
    fn brings_new_keys(&self, insert: &Insert, table: &Table) -> bool {
        let is_sign = |name: &String| name.eq_ignore_ascii_case(HiddenColumn::DeleteSign.name());
        self.refuses_existing_keys()
            && !insert.replaces
            && !insert.ignores
            && insert.on_duplicate.is_none()
            && !self.variables.values().enable_unique_key_partial_update
            && !insert.columns.as_ref().is_some_and(|names| names.iter().any(is_sign))
            && table.with_def(|def| def.keys.is_unique())
    }

    /// Computes values for the rows of an INSERT. `None` if nothing is computed.
    #[inline]
    pub(in crate::session) fn completer(
        &self,
        target: &Target,
        options: &InsertOptions,
    ) -> Result<Option<Box<Completer>>, SqlError> {
        let zone = &self.variables.values().time_zone.name;
        Completer::of_insert(&self.engine.loads.generated, target, options, zone)
    }

    /// A builder for the target; [`Self::keep_builder`] takes it back.
    pub(in crate::session) fn take_builder(&mut self, target: &Target) -> BlockBuilder {
        self.builder.take(&self.engine.loads.builders, target.schema())
    }

    pub(in crate::session) fn keep_builder(&mut self, builder: BlockBuilder) {
        self.builder.keep(builder, &self.engine.loads.builders);
    }

    pub(in crate::session) fn traits(&self, bytes: usize) -> LoadTraits {
        LoadTraits {
            in_transaction: self.transaction.is_some(),
            partial_update: self.variables.values().enable_unique_key_partial_update,
            required: self.variables.values().group_commit_require,
            ..LoadTraits::plain(
                Source::Insert,
                self.variables.values().group_commit,
                Body::Known(bytes as u64),
            )
        }
    }

    /// Runs an INSERT that the general parser took.
    pub(in crate::session) async fn run_insert(
        &mut self,
        insert: Insert,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        if insert.overwrite {
            return Box::pin(self.run_overwrite(insert, params)).await;
        }
        let table = self.table(Privilege::Load, insert.table.db.as_deref(), &insert.table.table)?;
        let (table, partitions) = self.engine.ddl.table_of_partitions(table, &insert.partitions)?;
        let columns = insert.columns.as_deref();
        if let Some(clause) = &insert.on_duplicate
            && !clause.computed.is_empty()
            && table.with_def(|def| reads_rows(def, columns))
        {
            let clause = clause.clone();
            return Box::pin(self.run_computed_upsert(insert, clause, (table, partitions), params)).await;
        }
        let updated = insert.on_duplicate.as_ref().map(|clause| clause.updated.as_slice());
        let upserts = match updated {
            Some(updated) => Some(table.with_def(|def| upsert(def, columns, updated))?),
            None => None,
        };
        let mut ignoring = match (insert.ignores, upserts) {
            (true, None) => Box::pin(self.begin_ignoring(&table)).await?,
            (ignores, _) => {
                self.running.ignores = ignores;
                None
            }
        };
        if let Some(ignoring) = &mut ignoring {
            self.take_turn(ignoring).await?;
        }
        let brings_new = self.brings_new_keys(&insert, &table);
        let _turn = match brings_new && self.transaction.is_none() {
            true => Some(self.turn_to_change(&table).await?),
            false => None,
        };
        let target = match upserts {
            Some(Upsert::Partial) => {
                Box::pin(partial_target(Arc::clone(&self.engine), &table, columns)).await?
            }
            None if ignoring.is_some() => self.upsert_target(&table, columns, &[]).await?,
            Some(Upsert::Updating) => {
                self.engine.loads.ready_to_update(&table).await?;
                self.upsert_target(&table, columns, updated.unwrap_or_default()).await?
            }
            Some(Upsert::Whole) | None => self.insert_target(&table, columns).await?,
        };
        let def = Arc::clone(target.table());
        let target = target.into_partitions(&partitions)?;
        let label = insert.label.as_deref().map(Label::new).transpose()?;
        if let Some(answer) = Box::pin(self.loaded_before(&table, label.as_ref())).await? {
            return Ok(answer);
        }
        self.check_label(label.as_ref())?;
        let mut traits =
            LoadTraits { has_label: label.is_some(), partitions: !partitions.is_any(), ..self.traits(0) };
        traits.partial_update |=
            matches!(upserts, Some(Upsert::Partial | Upsert::Updating)) || ignoring.is_some() || brings_new;
        let known_keys = match (&ignoring, upserts) {
            (Some(ignoring), _) => Some(Box::new(ignoring.counter())),
            (None, Some(Upsert::Updating)) => None,
            (None, _) if brings_new => Some(Box::new(KnownKeys::new_ones())),
            (None, _) => self.known_keys(&target),
        };
        let answer = match insert.source {
            InsertSource::Values(rows) => {
                let right = self.engine.loads.right(&self.principal, &table, None);
                let admitted = self.admit_insert(&table, &traits, &right)?;
                let has_expression = rows.iter().flatten().any(|value| !is_literal(value));
                let queries = row_queries(value_rows(&def, insert.columns.as_deref(), rows.into_inner())?);
                let options = self.insert_options();
                let decoded = self.decode_rows(queries, params, &target, &options).await?;
                let load = InsertLoad {
                    table,
                    schema: Arc::clone(target.schema()),
                    partitions: target.table().partitioning.partitions().cloned(),
                    decoded,
                    traits: LoadTraits { has_expression, ..traits },
                    admitted,
                    label,
                    known_keys,
                    reused_plan: false,
                };
                self.finish_insert(load, &options).await?
            }
            InsertSource::Query(query) => {
                check_computes(&target)?;
                let is_row = is_single_row(&query);
                let traits = LoadTraits { has_expression: is_row, from_query: !is_row, ..traits };
                let load = QueryLoad { table, target, label, known_keys };
                self.insert_query(&query, params, load, traits).await?
            }
        };
        Ok(match &ignoring {
            Some(ignoring) => self.answer_ignoring(answer, ignoring),
            None => answer,
        })
    }

    /// The rows of queries as blocks of the target.
    pub(in crate::session) async fn decode_rows(
        &mut self,
        queries: Vec<SelectQuery>,
        mut params: &[ScalarValue],
        target: &Target,
        options: &InsertOptions,
    ) -> Result<Decoded, SqlError> {
        // One time for the whole statement.
        let view = self.view();
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_query_timeout());
        let completer = self.completer(target, options)?;
        let mut all = Decoded::default();
        let mut rest = queries.into_iter().peekable();
        while let Some(query) = rest.next() {
            let own = match rest.peek() {
                Some(_) => params.split_off(..query.param_count()).unwrap_or_default(),
                None => params,
            };
            interrupt.check()?;
            let called = Box::pin(self.run_waiting_calls(&query, own)).await?;
            let (query, own) = called.as_ref().map_or((&query, own), |(query, own)| (query, own.as_slice()));
            // One part after another: of two rows with the same unique key the later one has to come later.
            for mut part in interrupt.wait(self.queries.query_in_parts(&view, query, own)).await?? {
                check_width(part.columns.len(), target)?;
                while let Some(batch) = interrupt.wait(part.stream.next()).await? {
                    let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
                    let mut builder = self.take_builder(target);
                    let decoded = decode_batch(&batch, target, options, &mut builder);
                    self.keep_builder(builder);
                    append(&mut all, decoded?);
                }
            }
        }
        if let Some(completer) = completer {
            completer.complete_all(&mut all)?;
        }
        Ok(all)
    }

    /// INSERT … SELECT: the rows stream into memory or data files.
    pub(in crate::session) async fn insert_query(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
        load: QueryLoad,
        traits: LoadTraits,
    ) -> Result<Answer, SqlError> {
        let called = Box::pin(self.run_waiting_calls(query, params)).await?;
        let (query, params) =
            called.as_ref().map_or((query, params), |(query, params)| (query, params.as_slice()));
        if self.transaction.is_some() {
            return self.insert_query_in_transaction(query, params, load).await;
        }
        let loaded = self.load_query(query, params, load, traits).await?;
        Ok(self.answer_loaded(loaded, false))
    }

    /// Loads the rows of a query, outside of transactions.
    pub(in crate::session) async fn load_query(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
        QueryLoad { table, target, label, known_keys }: QueryLoad,
        traits: LoadTraits,
    ) -> Result<Loaded, SqlError> {
        let replay = self.replay(query).await?;
        let query = replay.as_ref().map_or(query, |replay| &replay.query);
        let schema = Arc::clone(target.schema());
        let loads = &self.engine.loads;
        let admitted = loads.admit(&self.principal, &table, &traits)?;
        let load = Load::begin(loads, Arc::clone(&table), schema, &traits, label.into(), admitted);
        let mut load = load.map_err(begin_failed)?;
        load.is_found_in(target.table().partitioning.partitions());
        load.must_find(known_keys);
        let options = self.insert_options();
        let queries = replay.as_ref().map_or_else(|| self.queries.clone(), |replay| replay.queries.clone());
        let read = self.read_parts(&queries, query, params, &target, &options, &mut load).await;
        let (counts, rejects) = match read {
            Ok(read) => read,
            Err(error) => {
                self.engine.ingest.metrics().load_failed(load::mode(load.route()));
                load.abort(error.detail_text()).await;
                return Err(error);
            }
        };
        if let Some(replay) = &replay {
            load.set_replays(replay.claim.marks(counts.total));
        }
        self.finish_load(load, counts, &rejects, &options).await
    }

    async fn insert_query_in_transaction(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
        QueryLoad { table, target, known_keys, .. }: QueryLoad,
    ) -> Result<Answer, SqlError> {
        let options = self.insert_options();
        let mut blocks = Vec::new();
        let (counts, rejects) = self.read_in_memory(query, params, &target, &options, &mut blocks).await?;
        let load = InsertLoad {
            table,
            schema: Arc::clone(target.schema()),
            partitions: target.table().partitioning.partitions().cloned(),
            decoded: Decoded { blocks, counts, rejects },
            traits: self.traits(0),
            admitted: AdmittedLoad::later(&self.principal),
            label: None,
            known_keys,
            reused_plan: false,
        };
        self.add_statement(load, &options).await
    }

    /// Runs a query and adds its rows to the load, each part of them in a task of its own. KILL and time limits end it where it
    /// waits for rows.
    pub(in crate::session) async fn read_parts(
        &mut self,
        queries: &QueryEngine,
        query: &SelectQuery,
        params: &[ScalarValue],
        target: &Target,
        options: &InsertOptions,
        load: &mut Load,
    ) -> Result<(Counts, Vec<Reject>), SqlError> {
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_query_timeout());
        let view = self.view();
        let parts = interrupt.wait(queries.query_in_parts(&view, query, params)).await??;
        let unchanged = self.running.unchanged.clone();
        if let Some(part) = parts.first() {
            check_width(part.columns.len() - usize::from(unchanged.is_some()), target)?;
        }
        let completer = self.completer(target, options)?;
        let computed = (target, completer.as_deref());
        let loads = &self.engine.loads;
        let read = insert_parts::read(loads, parts, computed, options, interrupt, load, unchanged).await?;
        Ok((read.counts, read.rejects))
    }

    /// Runs a query of a statement within BEGIN, whose rows stay in memory until it is known that all of them are good.
    async fn read_in_memory(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
        target: &Target,
        options: &InsertOptions,
        blocks: &mut Vec<Block>,
    ) -> Result<(Counts, Vec<Reject>), SqlError> {
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_query_timeout());
        let view = self.view();
        let completer = self.completer(target, options)?;
        let unchanged = self.running.unchanged.clone();
        let mut read = Decoded::default();
        for mut part in interrupt.wait(self.queries.query_in_parts(&view, query, params)).await?? {
            check_width(part.columns.len() - usize::from(unchanged.is_some()), target)?;
            while let Some(batch) = interrupt.wait(part.stream.next()).await? {
                interrupt.check()?;
                let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
                let batch = count_unchanged(unchanged.as_deref(), batch)?;
                let mut builder = self.take_builder(target);
                let decoded = decode_batch(&batch, target, options, &mut builder);
                self.keep_builder(builder);
                let mut decoded = decoded?;
                if let Some(completer) = &completer {
                    completer.complete_all(&mut decoded)?;
                }
                blocks.append(&mut decoded.blocks);
                check_memory(&self.engine, blocks)?;
                append(&mut read, decoded);
            }
        }
        Ok((read.counts, read.rejects))
    }

    pub(in crate::session) fn insert_timeout(&self) -> Duration {
        self.seconds(self.variables.values().insert_timeout, UserProperty::InsertTimeout)
    }

    /// How long an INSERT … SELECT may read: as long as any INSERT, or less if the session has said how long a
    /// query may take.
    pub(in crate::session) fn insert_query_timeout(&self) -> Duration {
        let insert_timeout = self.insert_timeout();
        let is_default = self.variables.values().query_timeout == QUERY_TIMEOUT_DEFAULT_SECONDS
            && self.engine.limits().value(&self.principal, UserProperty::QueryTimeout).is_none();
        if is_default { insert_timeout } else { insert_timeout.min(self.query_timeout()) }
    }

    /// Judges a decoded INSERT, commits it as its route says and answers.
    pub(in crate::session) async fn finish_insert(
        &mut self,
        insert: InsertLoad,
        options: &InsertOptions,
    ) -> Result<Answer, SqlError> {
        if insert.traits.in_transaction {
            return Box::pin(self.add_statement(insert, options)).await;
        }
        let InsertLoad {
            table,
            schema,
            partitions,
            decoded,
            traits,
            admitted,
            label,
            known_keys,
            reused_plan,
        } = insert;
        let load = Load::begin(&self.engine.loads, table, schema, &traits, label.into(), admitted);
        let mut load = load.map_err(begin_failed)?;
        load.is_found_in(partitions.as_ref());
        load.must_find(known_keys);
        load.push(&self.engine.loads, decoded.blocks).await?;
        let loaded = self.finish_load(load, decoded.counts, &decoded.rejects, options).await?;
        Ok(self.answer_loaded(loaded, reused_plan))
    }

    /// Adds a decoded INSERT to the open transaction and answers.
    async fn add_statement(
        &mut self,
        insert: InsertLoad,
        options: &InsertOptions,
    ) -> Result<Answer, SqlError> {
        let InsertLoad { table, schema, decoded, known_keys, .. } = insert;
        let Decoded { blocks, counts, rejects } = decoded;
        self.keep_warnings(&rejects);
        let error_url = self.engine.loads.write_error_log(&rejects, None).await;
        if options.refuses(counts) && !load::keeps_rejects(&table, self.variables.values().rejected_rows) {
            self.engine.ingest.metrics().load_failed(GroupCommitMode::Off);
            return Err(self.numbered(refusal(options, counts, &rejects, error_url.as_deref()), &rejects));
        }
        let read = (counts, rejects);
        let (label, txn) = self.add_to_transaction(&table, schema, blocks, read, known_keys).await?;
        let status = TransactionStatus::Prepare;
        let answer = InsertAnswer::of(label, txn, status);
        Ok(self.answer_insert(&table, counts, answer, error_url, false))
    }

    pub(in crate::session) async fn finish_load(
        &mut self,
        mut load: Load,
        counts: Counts,
        rejects: &[Reject],
        options: &InsertOptions,
    ) -> Result<Loaded, SqlError> {
        self.keep_warnings(rejects);
        if self.running.named.is_some() {
            load = Box::pin(self.name_load(load)).await?;
        }
        let (table, is_known_again) = (Arc::clone(load.table()), load.is_known_again());
        let generated = load.sink().take_first_generated();
        let limits = LoadLimits {
            max_filter_ratio: if options.strict { 0.0 } else { options.max_filter_ratio },
            rejected_rows: self.variables.values().rejected_rows,
            timeout: self.insert_timeout(),
            interrupt: self.interrupt(),
            has_details: self.running.begun.is_some(),
        };
        let Finished { error_url, outcome } =
            load.finish(&self.engine.loads, Tally { counts, rejects }, limits).await;
        let Outcome { committed, route, repeated } = match outcome {
            Ok(outcome) => outcome,
            Err(LoadError::Filtered) => {
                return Err(self.numbered(refusal(options, counts, rejects, error_url.as_deref()), rejects));
            }
            Err(error) => {
                let retry = error.retry(is_known_again);
                return Err(SqlError::from(error).with_retry(retry));
            }
        };
        self.running.details = committed.as_ref().and_then(|committed| committed.details);
        let answer = committed.map(|LoadCommitted { label, txn, status, details }| InsertAnswer {
            label,
            txn,
            status,
            remark: route.remark(),
            is_repeated: repeated.is_some(),
            details: details.map(|details| (load::mode(route), details)),
        });
        self.running.generated = generated.filter(|_| repeated.is_none());
        let counts = repeated.map_or(counts, |first| *first);
        Ok(Loaded { table, counts, answer, error_url })
    }

    /// The answer to a load that is done.
    pub(in crate::session) fn answer_loaded(&mut self, loaded: Loaded, reused_plan: bool) -> Answer {
        let Loaded { table, counts, answer, error_url } = loaded;
        let Some(answer) = answer else {
            return Answer::Done(Done { warnings: warning_count(counts), ..Done::default() });
        };
        self.answer_insert(&table, counts, answer, error_url, reused_plan)
    }

    pub(in crate::session) fn answer_insert(
        &mut self,
        table: &Table,
        counts: Counts,
        answer: InsertAnswer,
        error_url: Option<String>,
        reused_plan: bool,
    ) -> Answer {
        let info = LoadInfo {
            label: Some(&answer.label),
            status: answer.status.name(),
            txn: Some(answer.txn),
            error_url: error_url.as_deref(),
            remark: answer.remark,
            reused_plan,
            is_repeated: answer.is_repeated,
            details: self.shown_details(&answer),
        }
        .text();
        self.running.has_inserted = true;
        self.has_written(answer.txn, answer.status);
        self.last_insert = Some(LastInsert {
            txn: answer.txn,
            label: answer.label,
            table: table.def(),
            status: answer.status,
            loaded: counts.loaded,
            filtered: counts.filtered,
        });
        let last_insert_id = self.running.generated.take().and_then(|first| u64::try_from(first).ok());
        if let Some(first) = last_insert_id {
            self.last_insert_id = first;
        }
        let last_insert_id = last_insert_id.unwrap_or_default();
        let unchanged = self.running.unchanged.as_ref().map_or(0, |unchanged| unchanged.rows());
        Answer::Done(Done {
            affected_rows: counts.loaded.saturating_sub(unchanged),
            warnings: warning_count(counts),
            info,
            last_insert_id,
        })
    }

    /// The error for rejected rows with MySQL's number of the first fault, if the session wants its answers. A number out of range
    /// has MySQL's text, too, before the one that Doris has for all rejected rows.
    fn numbered(&self, error: SqlError, rejects: &[Reject]) -> SqlError {
        let Some(first) = rejects.first().filter(|_| self.is_compatible()) else { return error };
        let code = match first.code {
            RejectCode::NullValue => ErrorCode::ColumnCannotBeNull,
            RejectCode::OutOfRange => ErrorCode::OutOfRange,
            RejectCode::TooLong => ErrorCode::DataTooLong,
            RejectCode::WrongValue => ErrorCode::WrongValue,
            _ => return error,
        };
        match (code, &first.column, first.row) {
            (ErrorCode::OutOfRange, Some(column), Some(row)) => {
                let message =
                    format!("Out of range value for column '{column}' at row {row}. {}", error.message);
                SqlError { code, message, ..error }
            }
            _ => SqlError { code, ..error },
        }
    }

    /// The details of an answer, if the session shows them.
    fn shown_details(&self, answer: &InsertAnswer) -> Option<ShownDetails> {
        let (mode, details) = answer.details.filter(|_| self.variables.values().show_load_details)?;
        let took = self.running.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        Some(ShownDetails { mode, details, took })
    }

    /// Keeps the reasons of rejected rows for SHOW WARNINGS.
    pub(in crate::session) fn keep_warnings(&mut self, rejects: &[Reject]) {
        if !rejects.is_empty() {
            self.warnings = rejects
                .iter()
                .take(WARNINGS_KEPT_MAX)
                .map(|reject| Warning::of(reject.reason.clone()))
                .collect();
        }
    }
}

/// Refuses rows without the names of their columns for a table whose columns are in another order than they were written in.
pub(in crate::session) fn check_order_of_columns(def: &TableDef) -> Result<(), SqlError> {
    if !def.properties.others.contains_key(tributary_sql::table::properties::COLUMNS_MOVED) {
        return Ok(());
    }
    let names: Vec<&str> = def.schema.visible().map(|column| column.name.as_str()).collect();
    Err(SqlError::detail(
        ErrorCode::NotSupported,
        format!(
            "the columns of table '{}' are in another order than its CREATE TABLE had, because those of its key come first: name the \
             columns, as in INSERT INTO {} ({})",
            def.name,
            def.name,
            names.join(", ")
        ),
    ))
}

/// Refuses rows for a table that has lost all its partitions.
fn check_has_partitions(def: &TableDef) -> Result<(), SqlError> {
    if def.partitioning.partitions().is_none_or(|it| !it.list.is_empty() || it.auto.is_some()) {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorCode::NoPartitions,
        format!(
            "data cannot be inserted into table with empty partition. Use `SHOW PARTITIONS FROM {}` to see the currently \
             partitions of this table. ",
            def.name
        ),
    ))
}

/// The target of an INSERT that updates these columns.
pub(super) async fn partial_target(
    engine: Arc<Engine>,
    table: &Arc<Table>,
    columns: Option<&[String]>,
) -> Result<Target, SqlError> {
    let Some(names) = columns else {
        let text = "You must explicitly specify the columns to be updated when updating partial columns using the INSERT \
                    statement.";
        return Err(SqlError::detail(ErrorCode::Unknown, text));
    };
    engine.loads.ready_for_partial(table).await?;
    Target::partial(&table.def(), names)
}

/// Refuses a statement within BEGIN whose rows take too much memory.
fn check_memory(engine: &Engine, blocks: &[Block]) -> Result<(), SqlError> {
    let limit_bytes = engine.options.large_load_bytes.get();
    if blocks.iter().map(|block| block.len_bytes() as u64).sum::<u64>() <= limit_bytes {
        return Ok(());
    }
    Err(SqlError::detail(
        ErrorCode::NotSupported,
        format!(
            "INSERT … SELECT of more than {limit_bytes} bytes within BEGIN is not supported; run it outside of the \
             transaction"
        ),
    ))
}

/// The error of an INSERT with more bad rows than the session allows.
pub(in crate::session) fn refusal(
    options: &InsertOptions,
    counts: Counts,
    rejects: &[Reject],
    error_url: Option<&str>,
) -> SqlError {
    let first = rejects.first().map_or("", |reject| reject.reason.as_str());
    let url = error_url.unwrap_or_default();
    let text = if options.strict {
        format!("Insert has filtered data in strict mode. first_error_msg: {first}. url: {url}")
    } else {
        format!(
            "Insert has too many filtered data {}/{} insert_max_filter_ratio is {:.6}. first_error_msg: {first}. url: {url}",
            counts.filtered, counts.total, options.max_filter_ratio
        )
    };
    SqlError::detail(ErrorCode::Unknown, text)
}

pub(in crate::session) fn begin_failed(error: IngestError) -> SqlError {
    SqlError::detail(
        ErrorCode::Unknown,
        format!("begin transaction failed. errCode = 2, detailMessage = {error}"),
    )
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
    Reject::append(&mut all.rejects, all.counts.total, more.rejects);
    all.counts = all.counts.plus(more.counts);
}

fn check_width(found: usize, target: &Target) -> Result<(), SqlError> {
    if found == target.field_count() {
        return Ok(());
    }
    Err(SqlError::detail(ErrorCode::ColumnCountMismatch, "Column count doesn't match value count"))
}

/// Refuses a query that gives values of columns whose values are computed.
pub(in crate::session) fn check_computes(target: &Target) -> Result<(), SqlError> {
    match target.computed_field() {
        Some(column) => Err(Target::not_to_be_given(target.table(), column)),
        None => Ok(()),
    }
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

/// `SELECT 1, 'a'`: one row without a table.
fn is_single_row(query: &SelectQuery) -> bool {
    use sqlparser::ast::SetExpr;
    match &*query.ast.body {
        SetExpr::Select(select) => select.from.is_empty(),
        SetExpr::Values(_) => true,
        _ => false,
    }
}

/// Queries that compute rows of expressions, a few rows each. Rows with arrays, maps or structs of other forms have queries of
/// their own: one query would look for the common type of `[1]` and `'[2]'`, where each is a value of the column's type.
pub(in crate::session) fn row_queries(rows: Vec<Vec<Expr>>) -> Vec<SelectQuery> {
    let mut rows = rows.into_iter().peekable();
    std::iter::from_fn(|| {
        let first = rows.next()?;
        let form = nested_form(&first);
        let mut alike = vec![first];
        while alike.len() < ROWS_PER_QUERY
            && let Some(next) = rows.next_if(|row| nested_form(row) == form)
        {
            alike.push(next);
        }
        SelectQuery::of_rows(alike)
    })
    .collect()
}

/// The places of a row at which there is an array, a map or a struct, each with the form of its values.
fn nested_form(row: &[Expr]) -> Vec<(usize, String)> {
    let forms = row.iter().enumerate().filter(|(_, expr)| is_nested(expr));
    forms.map(|(place, expr)| (place, form_of(expr))).collect()
}

fn is_nested(expr: &Expr) -> bool {
    match expr {
        Expr::Array(_) | Expr::Map(_) | Expr::Dictionary(_) | Expr::Struct { .. } | Expr::Named { .. } => {
            true
        }
        Expr::Nested(inner) => is_nested(inner),
        Expr::Function(call) => {
            let name = call.name.to_string().to_ascii_lowercase();
            ["array", "map", "struct", "named_struct"].contains(&name.as_str())
        }
        _ => false,
    }
}

/// The text of an expression in which all numbers are alike, all texts are, and an array has each form of its elements once. Equal
/// forms have one type; a needless difference only costs a query.
fn form_of(expr: &Expr) -> String {
    if let Expr::Array(array) = expr {
        let forms: BTreeSet<String> = array.elem.iter().map(form_of).collect();
        return format!("{forms:?}");
    }
    let mut form = String::new();
    let mut quote = None;
    for letter in expr.to_string().chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => {
                quote = Some(letter);
                form.push('s');
            }
            (None, '0'..='9') if form.ends_with('0') => {}
            (None, '0'..='9') => form.push('0'),
            (None, letter) => form.push(letter),
        }
    }
    form
}

/// The rows of VALUES with one expression for each field of the target.
pub(in crate::session) fn value_rows(
    def: &TableDef,
    columns: Option<&[String]>,
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Expr>>, SqlError> {
    let defaults: Vec<Expr> = match columns {
        None => def.schema.visible().map(default_of).collect::<Result<_, _>>()?,
        Some(names) => names
            .iter()
            .map(|name| match def.schema.index_of(name) {
                Some(index) => default_of(&def.schema.columns[index]),
                None => Ok(Expr::value(SqlValue::Null)),
            })
            .collect::<Result<_, _>>()?,
    };
    let computed = |field: usize| {
        let column = match columns {
            None => def.schema.columns.get(field)?,
            Some(names) => &def.schema.columns[def.schema.index_of(&names[field])?],
        };
        column.generated.is_some().then_some(column)
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
        let cells = row.into_iter().zip(&defaults).enumerate().map(|(field, (value, default))| match value {
            Value::Default => Ok(default.clone()),
            Value::Expr(expr) => match computed(field) {
                Some(column) => Err(Target::not_to_be_given(def, column)),
                None => Ok(expr),
            },
        });
        cells.collect()
    };
    rows.into_iter().enumerate().map(with_defaults).collect()
}

pub(in crate::session) fn default_of(column: &tributary_types::ColumnDef) -> Result<Expr, SqlError> {
    match &column.default {
        None | Some(DefaultValue::Null) => Ok(Expr::value(SqlValue::Null)),
        Some(DefaultValue::Literal(text)) => Ok(Expr::value(SqlValue::SingleQuotedString(text.clone()))),
        Some(DefaultValue::CurrentTimestamp { scale }) => {
            tributary_sql::parse_expression(&format!("now({scale})"))
        }
        Some(DefaultValue::CurrentDate) => tributary_sql::parse_expression("curdate()"),
    }
}
