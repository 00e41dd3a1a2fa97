//! The step that computes its rows, or hands on those of an equal step.

use super::rows::{Part, collected};
use crate::workarounds::physical::pass_through::only_child;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, CardinalityEffect, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    StatisticsArgs,
};
use futures::future::{BoxFuture, FutureExt, Shared, try_join_all};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of equal steps.
#[derive(Default)]
pub(crate) struct Equal {
    /// How many steps there are.
    steps: AtomicUsize,
    begun: Mutex<Option<Begun>>,
}

/// The rows that one of the equal steps computes.
struct Begun {
    /// The number of this step.
    by: usize,
    input: Arc<dyn ExecutionPlan>,
    parts: Pending,
}

/// Driven by whichever step polls it.
type Pending = Shared<BoxFuture<'static, std::result::Result<Arc<[Part]>, Arc<DataFusionError>>>>;

impl Equal {
    /// The rows of all parts of the input, or of an equal step's. `None`: the equal step has rows of another form.
    fn parts(
        &self,
        by: usize,
        input: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> Option<Pending> {
        let mut begun = self.begun.lock();
        let begun = begun.get_or_insert_with(|| Begun {
            by,
            input: Arc::clone(input),
            parts: computed(Arc::clone(input), Arc::clone(context)).boxed().shared(),
        });
        is_alike(&begun.input, input).then(|| begun.parts.clone())
    }

    /// The number of the step that computes the rows, as far as it is known.
    fn by(&self) -> Option<usize> {
        self.begun.lock().as_ref().map(|begun| begun.by)
    }
}

impl fmt::Debug for Equal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Equal").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// Whether two plans of equal aggregations have come out with the same columns and parts.
fn is_alike(one: &Arc<dyn ExecutionPlan>, other: &Arc<dyn ExecutionPlan>) -> bool {
    Arc::ptr_eq(one, other)
        || one.schema() == other.schema()
            && one.output_partitioning().to_string() == other.output_partitioning().to_string()
}

async fn computed(
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> std::result::Result<Arc<[Part]>, Arc<DataFusionError>> {
    let count = input.output_partitioning().partition_count();
    let parts = (0..count).map(|part| {
        let rows = input.execute(part, Arc::clone(&context))?;
        let collecting = SpawnedTask::spawn(collected(rows, Arc::clone(&context), count));
        Ok(async { collecting.join_unwind().await.map_err(|error| DataFusionError::External(error.into()))? })
    });
    let parts = parts.collect::<Result<Vec<_>>>().map_err(Arc::new)?;
    try_join_all(parts).await.map(Arc::from).map_err(Arc::new)
}

/// The step of an aggregation that has equals in its plan.
#[derive(Debug)]
pub(crate) struct ComputedOnce {
    input: Arc<dyn ExecutionPlan>,
    equal: Arc<Equal>,
    /// Among its equals, in the order in which they were planned.
    number: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ComputedOnce {
    /// Another step of these equals.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, equal: Arc<Equal>) -> Self {
        let number = equal.steps.fetch_add(1, Ordering::Relaxed);
        Self::numbered(input, equal, number)
    }

    fn numbered(input: Arc<dyn ExecutionPlan>, equal: Arc<Equal>, number: usize) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Self { input, equal, number, properties, metrics }
    }

    /// Whether the step computes the rows of all its equals. Before any has begun, it is the one that was planned first.
    pub(crate) fn computes(&self) -> bool {
        self.equal.by().unwrap_or(0) == self.number
    }
}

impl DisplayAs for ComputedOnce {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for ComputedOnce {
    fn name(&self) -> &'static str {
        "ComputedOnce"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = only_child(children, self.name())?;
        Ok(Arc::new(Self::numbered(input, Arc::clone(&self.equal), self.number)))
    }

    /// Returns a step without equals: those may still have rows of the run before.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(Arc::clone(&self.input), Arc::default())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(parts) = self.equal.parts(self.number, &self.input, &context) else {
            return self.input.execute(partition, context);
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = async move {
            let parts = parts.await.map_err(DataFusionError::Shared)?;
            match parts.get(partition) {
                Some(part) => part.rows(),
                None => internal_err!("{partition} is none of {} parts", parts.len()),
            }
        };
        let rows = futures::stream::once(rows).try_flatten();
        let rows = rows.map(move |batch| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("{} has one input", self.name()),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
