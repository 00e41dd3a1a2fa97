//! Queries over many bytes, whose parts several nodes compute.
//!
//! A query is planned as always first. If it reads many bytes of data files, it is planned once more in a form that travels, and
//! divided among the nodes. Whatever hinders that, or ends it before its first row, leaves the plan that there was: a query never
//! fails because it was divided, unless rows are out.

mod origins;
mod scalars;

use super::{QueryEngine, State, built};
use crate::deep::{OnDeepStack, planned};
use crate::distributed::NodeCodec;
use crate::distributed::channels::Channels;
use crate::distributed::failures::{after_rows, lost_node};
use crate::distributed::functions::{Names, Stock, named};
use crate::distributed::nodes::{Chosen, Nodes};
use crate::distributed::same::{Scalars, bytes_read, check, check_steps};
use crate::distributed::scans::divide;
use crate::distributed::stays::Stays;
use crate::distributed::worker::FUNCTIONS;
use crate::error::external;
use crate::functions::dates::zone::{self, SessionZone};
use crate::model::SessionView;
use crate::run::memory;
use crate::scan::provider::Travels;
use crate::workarounds::physical::forgotten::released;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    DistributedExec, DistributedExt, DistributedMetricsFormat, SessionStateBuilderExt, display_plan_ascii,
    explain_analyze,
};
use futures::StreamExt;
use origins::without_origins;
use scalars::{scalars, value, with_values};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tonic::codegen::http::{HeaderMap, HeaderValue};
use tributary_types::Sealed;

/// Times that a query is begun on several nodes.
const TRIES: usize = 2;
/// Parts of a query of the least size, for each thread of a node.
const PARTS: usize = 2;
/// The most bytes that one part reads.
const PART_BYTES_MAX: usize = 16 << 20;
/// How long EXPLAIN waits for what nodes say of their parts.
const FIGURES_MAX: Duration = Duration::from_secs(5);
/// The longest list of functions, in bytes: heads of calls are limited.
const FUNCTIONS_BYTES_MAX: usize = 4096;

/// A plan whose parts several nodes compute.
pub(super) struct Divided {
    plan: Arc<dyn ExecutionPlan>,
    state: SessionState,
    nodes: usize,
}

/// A planner that has planned already.
#[derive(Debug)]
struct Given(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for Given {
    async fn create_physical_plan(&self, _: &LogicalPlan, _: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Changes options so that plans can travel.
pub(super) fn travelling(config: &mut SessionConfig) {
    let options = config.options_mut();
    options.extensions.insert(Travels { is_on: true });
    options.execution.target_partitions = options.execution.target_partitions.max(PARTS);
    // A filter that is found while a query runs is known in one part only.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
}

impl QueryEngine {
    /// The rows of a query, computed by several nodes. `None`: it is not worth it, or not possible. `local` is its plan for this
    /// node alone.
    pub(super) async fn rows_of_nodes(
        &self,
        session: &SessionView,
        logical: &LogicalPlan,
        local: &Arc<dyn ExecutionPlan>,
    ) -> Option<SendableRecordBatchStream> {
        if !self.nodes.wants(bytes_read(local)) {
            return None;
        }
        let place = self.nodes.place().inspect_err(|stays| self.nodes.count(stays.word())).ok()?;
        for _ in 0..TRIES {
            let tried = async {
                let chosen = self.nodes.chosen()?;
                let divided = self.divided(session, logical, &chosen).await?;
                Ok::<_, Stays>((chosen, divided))
            };
            let (chosen, divided) = match tried.await {
                Ok(divided) => divided,
                Err(stays) => {
                    tracing::debug!(%stays, "a query stays on this node");
                    self.nodes.count(stays.word());
                    return None;
                }
            };
            match begun(Arc::clone(&divided.plan), self.context_of(&divided.state)).await {
                Ok(rows) => {
                    self.nodes.count("divided");
                    return Some(self.told_after_rows(rows, chosen, place));
                }
                Err(error) => {
                    tracing::debug!(%error, "a query that was divided among nodes failed");
                    if self.nodes.leave_out_lost(&chosen).await == 0 {
                        break;
                    }
                    self.nodes.count("repeated");
                }
            }
        }
        self.nodes.count("given_up");
        None
    }

    /// Rows of which the first are there, with errors in the words for clients. The place is free when they are dropped.
    fn told_after_rows(
        &self,
        rows: SendableRecordBatchStream,
        chosen: Chosen,
        place: OwnedSemaphorePermit,
    ) -> SendableRecordBatchStream {
        let (schema, asked) = (rows.schema(), Arc::new((Arc::clone(&self.nodes), chosen, place)));
        let rows = rows.then(move |batch| {
            let asked = Arc::clone(&asked);
            async move {
                match batch {
                    Ok(batch) => Ok(batch),
                    Err(error) => Err(failed_after_rows(&asked.0, &asked.1, error).await),
                }
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// The context in which the plan of a state runs, with the memory that its user may take.
    fn context_of(&self, state: &SessionState) -> Arc<TaskContext> {
        match self.namespace.query_memory_bytes_max() {
            Some(limit) => memory::limited(state, limit),
            None => state.task_ctx(),
        }
    }

    /// A query in parts for these nodes.
    async fn divided(
        &self,
        session: &SessionView,
        logical: &LogicalPlan,
        chosen: &Chosen,
    ) -> Result<Divided, Stays> {
        let failed = |error: DataFusionError| Stays::Differs(error.strip_backtrace());
        let state = self.state_with(session, true);
        let optimized = {
            let _place = self.places.acquire().await;
            let optimize = || state.optimize(logical).and_then(without_origins);
            Sealed::new(planned(session.stop.as_ref(), optimize).map_err(failed)?)
        };
        let plan = self.planned_to_travel(session, &state, &optimized).await?;
        let subqueries = Sealed::new(scalars(&optimized).map_err(failed)?);
        if subqueries.is_empty() {
            return self.in_parts(session, &state, &optimized, plan, chosen).await;
        }
        check_steps(&plan, Scalars::AreKnownLater)?;
        let mut values = Sealed::new(Vec::with_capacity(subqueries.len()));
        for subquery in subqueries.iter() {
            let value = self.value_of(session, &state, subquery, chosen).await?;
            values.push(value);
        }
        let valued = Sealed::new(with_values(&optimized, &subqueries, &values).map_err(failed)?);
        let plan = self.planned_to_travel(session, &state, &valued).await?;
        self.in_parts(session, &state, &valued, plan, chosen).await
    }

    /// The plan of an optimized query in a form that travels.
    async fn planned_to_travel(
        &self,
        session: &SessionView,
        state: &State,
        optimized: &LogicalPlan,
    ) -> Result<Arc<dyn ExecutionPlan>, Stays> {
        let _place = self.places.acquire().await;
        let planned = state.query_planner().create_physical_plan(optimized, &***state);
        let planned = OnDeepStack::new(planned, session.stop.as_ref()).await;
        planned.and_then(released).map_err(|error| Stays::Differs(error.strip_backtrace()))
    }

    /// The value of a scalar subquery, by the nodes if it can be divided.
    async fn value_of(
        &self,
        session: &SessionView,
        state: &State,
        subquery: &Subquery,
        chosen: &Chosen,
    ) -> Result<Expr, Stays> {
        let plan = self.planned_to_travel(session, state, &subquery.subquery).await?;
        let divided = self.in_parts(session, state, &subquery.subquery, Arc::clone(&plan), chosen).await;
        let rows = match divided {
            Ok(divided) => collect(divided.plan, self.context_of(&divided.state)).await,
            Err(_) => collect(plan, self.context_of(state)).await,
        };
        match rows.and_then(|rows| value(subquery, &rows)) {
            Ok(value) => Ok(value),
            Err(error) => {
                if lost_node(&error).is_some() {
                    self.nodes.leave_out_lost(chosen).await;
                }
                Err(Stays::Differs(error.strip_backtrace()))
            }
        }
    }

    /// A plan that travels in parts for these nodes.
    async fn in_parts(
        &self,
        session: &SessionView,
        state: &State,
        logical: &LogicalPlan,
        plan: Arc<dyn ExecutionPlan>,
        chosen: &Chosen,
    ) -> Result<Divided, Stays> {
        let failed = |error: DataFusionError| Stays::Differs(error.strip_backtrace());
        check_steps(&plan, Scalars::Hinder)?;
        let (functions, volatile) = named(&plan).map_err(failed)?;
        if let Some(name) = volatile {
            return Err(Stays::Function(name));
        }
        let builder = SessionStateBuilder::new_from_existing(SessionState::clone(state));
        let builder = functions.known_by(builder, &Stock::of(&self.state)).map_err(failed)?;
        let reading = built(builder.with_distributed_user_codec(NodeCodec));
        check(&plan, &reading.task_ctx())?;
        let state = self.dividing(session, &reading, Given(plan), &functions, chosen)?;
        let divided = state.query_planner().create_physical_plan(logical, &state);
        let plan = OnDeepStack::new(divided, session.stop.as_ref()).await.map_err(failed)?;
        match plan.is::<DistributedExec>() {
            true => Ok(Divided { plan, state, nodes: chosen.urls.len() }),
            false => Err(Stays::Whole),
        }
    }

    /// A state that divides the plan that is given among the nodes.
    fn dividing(
        &self,
        session: &SessionView,
        reading: &State,
        given: Given,
        functions: &Names,
        chosen: &Chosen,
    ) -> Result<SessionState, Stays> {
        let failed = |error: DataFusionError| Stays::Differs(error.strip_backtrace());
        let names = functions.text();
        let names = HeaderValue::try_from(names.as_str()).ok().filter(|_| names.len() <= FUNCTIONS_BYTES_MAX);
        let Some(names) = names else { return Err(Stays::Differs("it has too many functions".to_owned())) };
        let headers = HeaderMap::from_iter([(FUNCTIONS.parse().expect("a header's name"), names)]);
        let offset = zone::offset_of(session.zone(), session.now_unix_micros);
        let threads = reading.config().target_partitions().max(1);
        let least = usize::try_from(self.nodes.bytes_min()).unwrap_or(usize::MAX);
        let part_bytes = (least / threads / PARTS).clamp(1, PART_BYTES_MAX);
        let builder = SessionStateBuilder::new_from_existing(SessionState::clone(reading))
            .with_query_planner(Arc::new(given))
            .with_distributed_option_extension(SessionZone { utc_offset_seconds: offset })
            .with_distributed_worker_resolver(chosen.clone())
            .with_distributed_channel_resolver(Channels(Arc::clone(self.nodes.peers())))
            .with_distributed_planner()
            .with_distributed_scale_up_leaf_node_handler(divide)
            .with_distributed_passthrough_headers(headers)
            .and_then(|builder| builder.with_distributed_file_scan_config_bytes_per_partition(part_bytes))
            .map_err(failed)?;
        let builder = match chosen.own.clone().and_then(|own| self.nodes.here(own)) {
            Some(here) => builder.with_distributed_local_worker_context(here),
            None => builder,
        };
        Ok(builder.build())
    }

    /// The plan of a query over many bytes for several nodes, or the line of EXPLAIN that says why there is none. `None`: few bytes.
    pub(super) async fn explained_on_nodes(
        &self,
        session: &SessionView,
        logical: &LogicalPlan,
        local: &Arc<dyn ExecutionPlan>,
    ) -> Option<Result<Divided, String>> {
        if !self.nodes.wants(bytes_read(local)) {
            return None;
        }
        let divided = async {
            let chosen = self.nodes.chosen()?;
            self.divided(session, logical, &chosen).await
        };
        Some(divided.await.map_err(|stays| format!("On this node alone: {stays}\n")))
    }

    /// The stages of a divided plan. With `analyze`, it is run, and they have their figures.
    pub(super) async fn stages(&self, divided: &Divided, analyze: bool) -> Result<String> {
        let plan = &divided.plan;
        let stages = match analyze {
            false => display_plan_ascii(plan.as_ref(), false),
            true => {
                let mut rows = execute_stream(Arc::clone(plan), self.context_of(&divided.state))?;
                while let Some(batch) = rows.next().await {
                    batch?;
                }
                let figures = explain_analyze(Arc::clone(plan), DistributedMetricsFormat::Aggregated);
                match tokio::time::timeout(FIGURES_MAX, figures).await {
                    Ok(figures) => figures?,
                    Err(_) => display_plan_ascii(plan.as_ref(), false),
                }
            }
        };
        Ok(format!("Divided among {} nodes\n{stages}", divided.nodes))
    }
}

/// The error of a query of which rows are out. The next one leaves out a node that is lost.
async fn failed_after_rows(nodes: &Nodes, chosen: &Chosen, error: DataFusionError) -> DataFusionError {
    tracing::debug!(%error, "a query that was divided among nodes failed after its first rows");
    nodes.count("failed");
    if lost_node(&error).is_some() {
        nodes.leave_out_lost(chosen).await;
    }
    external(after_rows(&error))
}

/// The rows of a plan, of which the first are there.
async fn begun(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
    let mut rows = execute_stream(plan, context)?;
    let schema = rows.schema();
    let mut first = None;
    while let Some(batch) = rows.next().await.transpose()? {
        if batch.num_rows() > 0 {
            first = Some(Ok(batch));
            break;
        }
    }
    let all = futures::stream::iter(first).chain(rows);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
}
