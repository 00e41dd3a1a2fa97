//! The query engine: plans a rewritten query, runs it, and names its result.
//!
//! Not here: rules and meanings; this module combines them and offers the result to the crate `engine`. Futures are boxed here
//! and the session is [`Sealed`], so that callers compile without looking into plans.

mod files;
mod load_exprs;
mod on_nodes;
mod show;
mod views;

use crate::arithmetic::with_cheap_arithmetic;
use crate::computed_once;
use crate::context::{SettledSnapshots, StatementContext, Within, names_hidden};
use crate::deep::{OnDeepStack, planned};
use crate::distributed::nodes::Nodes;
use crate::distributed::worker::worker;
use crate::error::{plan_error, table_error};
use crate::explain::{self, ReadTables};
use crate::functions::dates::zone::{self, SessionZone};
use crate::join_order::{AsWritten, with_join_order};
use crate::key_arrays::{self, PLACES_ALWAYS};
use crate::meaning::lateral_views::LateralViews;
use crate::meaning::operators::{CoercionRule, OperatorPlanner};
use crate::meaning::rewrite::Rewritten;
use crate::meaning::set_operations::SetOperations;
use crate::meaning::unnest::UnnestRule;
use crate::model::{QueryOptions, QueryResult, ResultColumn, SessionView, Spill};
use crate::namespace::Namespace;
use crate::planning::{LastRule, StopRule, interleaved};
use crate::run::giving_way::joins_give_way;
use crate::run::memory::{self, PoolOfProcess};
use crate::run::output::{self, Nested};
use crate::run::places::{self, PlacedRows};
use crate::run::rows;
use crate::scan::conditions::conditions_apart;
use crate::scan::late_columns::late_columns;
use crate::scan::page_cache::{PageCache, PageCacheFigures};
use crate::scan::provider::SnapshotProvider;
use crate::scan::stream_table;
use crate::scan::table_functions::TableFunctions;
use crate::scan::text_views::with_text_views;
use crate::scan::wanted_groups::wanted_groups;
use crate::workarounds::InUse;
use crate::workarounds::analyzer::analyzer_rules;
use crate::workarounds::logical::optimizer_rules;
use crate::workarounds::physical::physical_rules;
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::optimizer::Analyzer;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream, execute_stream_partitioned};
use datafusion::prelude::SessionConfig;
pub use load_exprs::{Projection, RowFilter};
pub use views::ViewShape;

use futures::StreamExt;
use futures::future::{BoxFuture, try_join_all};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tributary_sql::{Delete, ExplainForm, ROWS_FUNCTION, SelectQuery};
use tributary_table::{Current, FoundRows, OldRows, Snapshot, Table, TableStore};
use tributary_types::{ErrorCode, Sealed, SqlError, TableDef};
use url::Url;

/// Consumers that an error about memory names.
const MEMORY_CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::new(3).expect("3 is not 0");

/// Statements that are planned at a time; others wait. Each has a thread and memory of its own.
const PLANNED_MAX: usize = 16;

/// Size of a join's smaller side, in bytes and rows, that one thread puts into a hash table, times the number of threads: the other
/// side is not divided among the threads by its keys then, which takes longer unless there are many of them.
const COLLECTED_BYTES: usize = 128 << 20;
const COLLECTED_ROWS: usize = 2 << 20;

/// States that are kept, of other zones and without a reordering of joins.
const STATES_KEPT_MAX: usize = 256;

/// States in other zones, by their seconds ahead of UTC, whether joins are reordered, and whether plans are to travel.
type OtherStates = HashMap<(i32, bool, bool), State>;

/// Answers queries over the tables of a [`Namespace`]: those visible to one user. All engines of a server are derived from one
/// ([`QueryEngine::with_namespace`]) and share its memory limit.
#[derive(Clone)]
pub struct QueryEngine {
    namespace: Arc<dyn Namespace>,
    /// In UTC, with joins in the cheapest order.
    state: State,
    others: Arc<Mutex<OtherStates>>,
    /// Statements that are planned at a time.
    places: Arc<Semaphore>,
    store_url: ObjectStoreUrl,
    nodes: Arc<Nodes>,
    page_cache: Arc<PageCache>,
}

type State = Arc<Sealed<SessionState>>;

/// Builds a state whose options reach the functions that are computed row by row; their zone is one of the options.
fn built(builder: SessionStateBuilder) -> State {
    let mut state = builder.build();
    let options = Arc::clone(state.config_options());
    state.execution_props_mut().config_options = Some(options);
    Arc::new(Sealed::new(state))
}

/// Where queries spill to, and how much.
fn disk(spill: Option<Spill>) -> DiskManagerBuilder {
    let builder = DiskManagerBuilder::default();
    match spill {
        None => builder,
        Some(Spill { directory, limit_bytes }) => builder
            .with_mode(DiskManagerMode::Directories(vec![directory]))
            .with_max_temp_directory_size(limit_bytes),
    }
}

impl QueryEngine {
    /// An engine that reads data files from `store`.
    ///
    /// # Errors
    /// When DataFusion's runtime cannot be set up, e.g. without a directory for temporary files.
    pub fn new(
        namespace: Arc<dyn Namespace>,
        store: &TableStore,
        options: QueryOptions,
    ) -> Result<Self, SqlError> {
        Self::with_workarounds(namespace, store, options, InUse::default())
    }

    /// An engine without one of the workarounds for DataFusion, for the test that it is still needed.
    ///
    /// # Errors
    /// As [`Self::new`].
    ///
    /// # Panics
    /// There is no workaround of this name.
    #[doc(hidden)]
    pub fn without_workaround(
        namespace: Arc<dyn Namespace>,
        store: &TableStore,
        options: QueryOptions,
        name: &str,
    ) -> Result<Self, SqlError> {
        Self::with_workarounds(namespace, store, options, InUse::without(name))
    }

    fn with_workarounds(
        namespace: Arc<dyn Namespace>,
        store: &TableStore,
        options: QueryOptions,
        in_use: InUse,
    ) -> Result<Self, SqlError> {
        let pool =
            TrackConsumersPool::new(FairSpillPool::new(options.memory_limit_bytes), MEMORY_CONSUMERS_NAMED);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(PoolOfProcess(Arc::new(pool))))
            .with_disk_manager_builder(disk(options.spill))
            .build_arc()
            .map_err(|error| plan_error(&error))?;
        let store_url = authority(store.root_url())?;
        runtime.register_object_store(store_url.as_ref(), store.object_store());
        let mut analyzer = Analyzer::new();
        analyzer.rules.splice(0..0, [Arc::new(UnnestRule) as _, Arc::new(CoercionRule) as _]);
        analyzer.rules.extend(analyzer_rules(in_use));
        let mut physical_rules = with_text_views(physical_rules(in_use));
        physical_rules.push(key_arrays::rule());
        physical_rules.push(wanted_groups());
        physical_rules.push(late_columns());
        physical_rules.push(conditions_apart());
        physical_rules.push(joins_give_way());
        let optimizer_rules = with_cheap_arithmetic(with_join_order(optimizer_rules(in_use)));
        let mut optimizer_rules = interleaved(optimizer_rules, &(Arc::new(StopRule) as _));
        optimizer_rules.push(Arc::new(LastRule));
        let page_cache = PageCache::new(options.page_cache_bytes);
        let config = config(options.target_partitions).with_extension(Arc::clone(&page_cache));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_analyzer_rules(interleaved(analyzer.rules, &(Arc::new(StopRule) as _)))
            .with_physical_optimizer_rules(interleaved(physical_rules, &(Arc::new(StopRule) as _)))
            .with_optimizer_rules(optimizer_rules)
            .with_query_planner(Arc::new(computed_once::Planner))
            .build();
        let mut planners: Vec<_> = vec![Arc::new(OperatorPlanner) as _];
        planners.extend(state.expr_planners().iter().cloned());
        let state = SessionStateBuilder::new_from_existing(state).with_expr_planners(planners);
        let places = Arc::new(Semaphore::new(PLANNED_MAX));
        let state = built(state);
        let nodes = Arc::new(Nodes::new(options.distributed_bytes_min));
        nodes.set_worker(worker(&state, nodes.peers()));
        Ok(Self { namespace, state, others: Arc::default(), places, store_url, nodes, page_cache })
    }

    /// The nodes that compute parts of queries.
    #[must_use]
    pub const fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// The pages of data files that queries have read, and those in memory.
    #[must_use]
    pub fn page_cache(&self) -> PageCacheFigures {
        self.page_cache.figures()
    }

    /// The same engine over what somebody else may see.
    #[must_use]
    pub fn with_namespace(&self, namespace: Arc<dyn Namespace>) -> Self {
        Self { namespace, ..self.clone() }
    }

    /// Runs a query; `params` are the values of its `?`, in order. Each table is read at the
    /// version that is visible now. Rows are computed while the stream is read.
    ///
    /// # Errors
    /// Unknown names, wrong types and forms that are not supported, in MySQL's or Doris's words.
    #[must_use]
    pub fn query<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        params: &'a [ScalarValue],
    ) -> BoxFuture<'a, Result<QueryResult, SqlError>> {
        self.query_with(session, query, params, Nested::Shown)
    }

    /// Like [`Self::query`], with arrays, maps and structs in this form.
    ///
    /// # Errors
    /// As for [`Self::query`].
    #[must_use]
    pub fn query_with<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        params: &'a [ScalarValue],
        nested: Nested,
    ) -> BoxFuture<'a, Result<QueryResult, SqlError>> {
        Box::pin(async move {
            let (plan, rewritten) =
                self.settled_plan(session, query, params, TableFunctions::default()).await?;
            let columns = output::columns(&plan, &rewritten.titles, &rewritten.spellings, nested);
            let state = self.state_of(session);
            let local = self.physical(session, &state, &plan).await?;
            let rows = match self.rows_of_nodes(session, &plan, &local).await {
                Some(rows) => rows,
                None => {
                    execute_stream(local, self.task_context(&state)).map_err(|error| plan_error(&error))?
                }
            };
            Ok(output::result(columns, rows, nested))
        })
    }

    /// Like [`Self::query`], for files: `nested` determines the form of arrays, maps and structs in them.
    ///
    /// # Errors
    /// As for [`Self::query`]; additionally if a column is a BITMAP or an HLL, which no file can contain.
    #[must_use]
    pub fn query_for_files<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        params: &'a [ScalarValue],
        nested: Nested,
    ) -> BoxFuture<'a, Result<QueryResult, SqlError>> {
        Box::pin(async move {
            let result = self.run(session, query, params, TableFunctions::default(), nested).await?;
            result.columns.iter().try_for_each(output::check_written)?;
            Ok(result)
        })
    }

    /// Like [`Self::query`], for loads: arrays, maps and structs are unchanged, and the rows are in parts that can be computed in
    /// parallel. A query with an order has one part. Rows of VALUES ([`SelectQuery::of_rows`]) are in the order in which they are
    /// written, from the first part to the last: each SELECT of their UNION ALL is a part, or shares one with its neighbours.
    ///
    /// # Errors
    /// As [`Self::query`].
    #[must_use]
    pub fn query_in_parts<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        params: &'a [ScalarValue],
    ) -> BoxFuture<'a, Result<Vec<QueryResult>, SqlError>> {
        Box::pin(async move {
            let functions = TableFunctions::default();
            let (plan, rewritten) = self.settled_plan(session, query, params, functions).await?;
            let columns = output::columns(&plan, &rewritten.titles, &rewritten.spellings, Nested::Kept);
            let state = self.state_of(session);
            let plan = self.physical(session, &state, &plan).await?;
            let streams = execute_stream_partitioned(plan, self.task_context(&state));
            let streams = streams.map_err(|error| plan_error(&error))?;
            Ok(streams.into_iter().map(|rows| output::result(columns.clone(), rows, Nested::Kept)).collect())
        })
    }

    /// As [`Self::query`], where `FROM http_stream(…)` reads `stream`, once.
    ///
    /// # Errors
    /// As for [`Self::query`]; additionally if the query reads the stream twice.
    #[must_use]
    pub fn query_over<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        stream: datafusion::execution::SendableRecordBatchStream,
    ) -> BoxFuture<'a, Result<QueryResult, SqlError>> {
        Box::pin(async move {
            let provider = stream_table::table(stream).map_err(|error| plan_error(&error))?;
            let functions = TableFunctions::of_load("http_stream", provider);
            self.run(session, query, &[], functions, Nested::Shown).await
        })
    }

    /// The rows of the snapshot's data files that `delete` is to delete.
    ///
    /// # Errors
    /// As [`Self::query`].
    #[must_use]
    pub fn rows_to_delete<'a>(
        &'a self,
        session: &'a SessionView,
        delete: &'a Delete,
        params: &'a [ScalarValue],
        table: &'a Table,
        snapshot: &'a Snapshot,
    ) -> BoxFuture<'a, Result<FoundRows, SqlError>> {
        Box::pin(async move {
            let provider = SnapshotProvider::with_places(table, snapshot, self.store_url.clone());
            let provider = Arc::new(provider.map_err(|error| plan_error(&error))?);
            let functions = TableFunctions::of_statement(ROWS_FUNCTION, provider);
            let result = self.run(session, &delete.places(), params, functions, Nested::Shown).await?;
            places::found_rows(result, snapshot).await
        })
    }

    /// The rows of the snapshot's data files that a query of [`tributary_sql::Update::places_and`] finds, with its values as loads
    /// see them.
    ///
    /// # Errors
    /// As [`Self::query`].
    #[must_use]
    pub fn rows_to_update<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        params: &'a [ScalarValue],
        table: &'a Table,
        snapshot: &'a Arc<Snapshot>,
    ) -> BoxFuture<'a, Result<PlacedRows, SqlError>> {
        Box::pin(async move {
            let provider = SnapshotProvider::with_places(table, snapshot, self.store_url.clone());
            let provider = Arc::new(provider.map_err(|error| plan_error(&error))?);
            let functions = TableFunctions::of_statement(ROWS_FUNCTION, provider);
            let result = self.run(session, query, params, functions, Nested::Kept).await?;
            Ok(PlacedRows::new(result, Arc::clone(snapshot)))
        })
    }

    async fn run(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        params: &[ScalarValue],
        functions: TableFunctions,
        nested: Nested,
    ) -> Result<QueryResult, SqlError> {
        let (plan, rewritten) = self.settled_plan(session, query, params, functions).await?;
        let columns = output::columns(&plan, &rewritten.titles, &rewritten.spellings, nested);
        let state = self.state_of(session);
        let plan = self.physical(session, &state, &plan).await?;
        let stream = execute_stream(plan, self.task_context(&state)).map_err(|error| plan_error(&error))?;
        Ok(output::result(columns, stream, nested))
    }

    /// The columns of a query's result, without running it, with arrays, maps and structs as loads see them. Values of `?` are taken as NULL.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub async fn describe(
        &self,
        session: &SessionView,
        query: &SelectQuery,
    ) -> Result<Vec<ResultColumn>, SqlError> {
        let mut functions = TableFunctions::default();
        let over_files = self.with_files(session, query, &mut functions).await?;
        let query = over_files.as_ref().unwrap_or(query);
        let _place = self.places.acquire().await;
        let planned = self.plan(session, query, None, &functions, &SettledSnapshots::new());
        let (plan, rewritten) = planned.plan?;
        Ok(output::columns(&plan, &rewritten.titles, &rewritten.spellings, Nested::Kept))
    }

    /// The plan of a query as text, one line a row, in the column `Explain String`. `analyze` runs the query and shows what each
    /// step took.
    ///
    /// # Errors
    /// As [`Self::query`]; with `analyze` also whatever ends the query.
    #[must_use]
    pub fn explain<'a>(
        &'a self,
        session: &'a SessionView,
        query: &'a SelectQuery,
        params: &'a [ScalarValue],
        analyze: bool,
        form: ExplainForm,
    ) -> BoxFuture<'a, Result<QueryResult, SqlError>> {
        Box::pin(self.run_explain(session, query, params, analyze, form))
    }

    async fn run_explain(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        params: &[ScalarValue],
        analyze: bool,
        form: ExplainForm,
    ) -> Result<QueryResult, SqlError> {
        let (plan, _) = self.settled_plan(session, query, params, TableFunctions::default()).await?;
        let state = self.state_of(session);
        let mut text = String::new();
        if form == ExplainForm::Verbose {
            let optimized = planned(session.stop.as_ref(), || state.optimize(&plan));
            let optimized = optimized.map_err(|error| plan_error(&error))?;
            text += &format!(
                "LOGICAL PLAN\n{}\nOPTIMIZED PLAN\n{}\nPHYSICAL PLAN\n",
                plan.display_indent(),
                optimized.display_indent()
            );
        }
        let physical = self.physical(session, &state, &plan).await?;
        match self.explained_on_nodes(session, &plan, &physical).await {
            Some(Ok(divided)) => {
                let stages = self.stages(&divided, analyze).await;
                text += &stages.map_err(|error| plan_error(&error))?;
                return explained(&text);
            }
            Some(Err(reason)) => text += &reason,
            None => {}
        }
        if analyze {
            let stream = execute_stream(Arc::clone(&physical), self.task_context(&state));
            let mut stream = stream.map_err(|error| plan_error(&error))?;
            while let Some(batch) = stream.next().await {
                batch.map_err(|error| plan_error(&error))?;
            }
        }
        let is_verbose = form == ExplainForm::Verbose;
        text += &match (form, analyze) {
            (ExplainForm::Steps, _) => {
                let tables = ReadTables::of(&plan).map_err(|error| plan_error(&error))?;
                explain::lines(&physical, &tables, analyze)
            }
            (_, true) => {
                DisplayableExecutionPlan::with_metrics(physical.as_ref()).indent(is_verbose).to_string()
            }
            (_, false) => displayable(physical.as_ref()).indent(is_verbose).to_string(),
        };
        explained(&text)
    }

    /// A plan that shows one row for each key of a table with unique keys, and what the server that writes shows. The tables of a
    /// query are known once it is planned, and planning does not wait: if any of them must be settled or asked for, the query is
    /// planned again afterwards.
    async fn settled_plan(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        params: &[ScalarValue],
        mut functions: TableFunctions,
    ) -> Result<(LogicalPlan, Rewritten), SqlError> {
        memory::wait(session.stop.as_ref()).await?;
        let over_files = self.with_files(session, query, &mut functions).await?;
        let query = over_files.as_ref().unwrap_or(query);
        let mut settled = SettledSnapshots::new();
        loop {
            let place = self.places.acquire().await;
            let Planned { plan, mut unsettled } =
                self.plan(session, query, Some(params), &functions, &settled);
            drop(place);
            if plan.is_err() {
                // The server that writes may have columns that are not known here yet.
                unsettled.retain(|table| table.asks_writer());
            }
            if unsettled.is_empty() {
                return plan;
            }
            let wanted = unsettled.iter().map(|table| async {
                let Current { snapshot, old } = table.current(session.fresh).await.map_err(table_error)?;
                if let Some(old) = old {
                    session.notes.lock().push(old_rows(&snapshot.def, &old));
                }
                Ok::<_, SqlError>((table.id(), snapshot))
            });
            settled.extend(try_join_all(wanted).await?);
        }
    }

    /// Rewrites and plans a query. `None` for `params`: their values are not known yet.
    fn plan(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        params: Option<&[ScalarValue]>,
        functions: &TableFunctions,
        settled: &SettledSnapshots,
    ) -> Planned {
        let with_hidden = query.reads_hidden || session.shows_hidden() || names_hidden(&query.text);
        let state = self.state_of(session);
        let mut context = self.context(&state, session, functions, settled, with_hidden);
        context.with_deletions = session.shows_hidden();
        let plan = context.plan(query, params, functions.are_of_load());
        let unsettled = std::mem::take(&mut context.read.lock().unsettled);
        Planned { plan, unsettled }
    }

    fn context<'a>(
        &'a self,
        state: &'a State,
        session: &'a SessionView,
        functions: &'a TableFunctions,
        settled: &'a SettledSnapshots,
        with_hidden: bool,
    ) -> StatementContext<'a> {
        let sets = Arc::new(SetOperations::default());
        StatementContext {
            state,
            namespace: &self.namespace,
            session,
            store_url: self.store_url.clone(),
            with_hidden,
            with_deletions: false,
            functions,
            settled,
            read: Arc::default(),
            tables: Mutex::new(HashMap::new()),
            relation_planners: [Arc::clone(&sets) as Arc<dyn RelationPlanner>, Arc::new(LateralViews)],
            sets,
            within: Within::default(),
            forbidden: None,
        }
    }

    /// The state that plans and runs the session's statements: its zone is part of the options that plans carry, and so is whether
    /// joins are reordered.
    fn state_of(&self, session: &SessionView) -> State {
        self.state_with(session, false)
    }

    /// The state of [`Self::state_of`], or one that makes plans which can travel.
    fn state_with(&self, session: &SessionView, travels: bool) -> State {
        let offset = zone::offset_of(session.zone(), session.now_unix_micros);
        let reorders = session.reorders_joins();
        if offset == 0 && reorders && !travels {
            return Arc::clone(&self.state);
        }
        let mut others = self.others.lock();
        // Zones are a few dozen; a client that sets one for each statement does not fill the memory.
        if others.len() >= STATES_KEPT_MAX && !others.contains_key(&(offset, reorders, travels)) {
            others.clear();
        }
        let state = others.entry((offset, reorders, travels)).or_insert_with(|| {
            let mut config = self.state.config().clone();
            config.options_mut().extensions.insert(SessionZone { utc_offset_seconds: offset });
            config.options_mut().extensions.insert(AsWritten { is_on: !reorders });
            if travels {
                on_nodes::travelling(&mut config);
            }
            let state = SessionStateBuilder::new_from_existing(SessionState::clone(&self.state));
            built(state.with_config(config))
        });
        Arc::clone(state)
    }

    /// Bytes that the operators of all running queries have reserved.
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.state.runtime_env().memory_pool.reserved()
    }

    /// The context in which a statement runs, with the memory that its user may take.
    fn task_context(&self, state: &State) -> Arc<TaskContext> {
        match self.namespace.query_memory_bytes_max() {
            Some(limit) => memory::limited(state, limit),
            None => state.task_ctx(),
        }
    }

    async fn physical(
        &self,
        session: &SessionView,
        state: &State,
        plan: &LogicalPlan,
    ) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
        let _place = self.places.acquire().await;
        let planned = OnDeepStack::new(state.create_physical_plan(plan), session.stop.as_ref()).await;
        planned.map_err(|error| plan_error(&error))
    }

    fn global_variable(&self, name: &str) -> Option<String> {
        self.namespace.global_variables().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// The rows of EXPLAIN.
fn explained(text: &str) -> Result<QueryResult, SqlError> {
    let lines: ArrayRef = Arc::new(text.lines().map(Some).collect::<StringArray>());
    rows::result(vec![ResultColumn::computed("Explain String", DataType::Utf8)], vec![lines])
}

/// The outcome of planning.
struct Planned {
    plan: Result<(LogicalPlan, Rewritten), SqlError>,
    /// Tables that it shows as they are not yet settled, or not as the server that writes has them.
    unsettled: Vec<Arc<Table>>,
}

/// Tells a client how old a table's rows are.
fn old_rows(def: &TableDef, OldRows { age, reason }: &OldRows) -> String {
    let age = age.map_or_else(|| "of unknown age".to_owned(), |age| format!("{} s old", age.as_secs()));
    format!("the rows of '{}' are {age}: {reason}", def.table_ref())
}

fn config(target_partitions: usize) -> SessionConfig {
    let partitions = target_partitions.max(1);
    let mut config = SessionConfig::new().with_target_partitions(partitions);
    let options = config.options_mut();
    let optimizer = &mut options.optimizer;
    optimizer.hash_join_single_partition_threshold =
        (COLLECTED_BYTES / partitions).max(optimizer.hash_join_single_partition_threshold);
    optimizer.hash_join_single_partition_threshold_rows =
        (COLLECTED_ROWS / partitions).max(optimizer.hash_join_single_partition_threshold_rows);
    options.execution.perfect_hash_join_small_build_threshold = PLACES_ALWAYS;
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.default_null_ordering = "nulls_min".to_owned();
    options.execution.parquet.schema_force_view_types = false;
    // Fields carry a column's declared name as metadata, which differs between plan and data.
    options.execution.skip_physical_aggregate_schema_check = true;
    config
}

/// The part of the URL that names a store.
fn authority(url: &Url) -> Result<ObjectStoreUrl, SqlError> {
    let text = format!("{}://{}", url.scheme(), url.authority());
    ObjectStoreUrl::parse(&text).map_err(|error| {
        SqlError::new(
            ErrorCode::Unknown,
            format!("the storage root {url} has no form that queries can read: {error}"),
        )
    })
}
