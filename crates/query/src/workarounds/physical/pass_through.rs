//! Nodes of ours that hand on the rows of one input as they come, perhaps in other batches.

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
};
use std::fmt;
use std::sync::Arc;

/// The part of such a node that is its own.
pub trait Passes: Clone + fmt::Debug + Send + Sync + 'static {
    /// The node's name in plans.
    fn name(&self) -> &'static str;

    /// The properties of the node over this input.
    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    /// Whether sorts may move below the node.
    fn maintains_order(&self) -> bool {
        true
    }

    /// The context in which the input runs.
    fn context(&self, context: Arc<TaskContext>) -> Arc<TaskContext> {
        context
    }

    /// The node's rows, from those of its input.
    fn rows(&self, input: SendableRecordBatchStream) -> SendableRecordBatchStream {
        input
    }
}

/// The node that does what `P` says.
#[derive(Debug)]
pub struct PassThrough<P> {
    passes: P,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl<P: Passes> PassThrough<P> {
    /// The node over `input`.
    pub fn over(input: Arc<dyn ExecutionPlan>, passes: P) -> Arc<dyn ExecutionPlan> {
        let properties = passes.properties(&input);
        Arc::new(Self { passes, input, properties })
    }

    /// The part of the node that is its own.
    pub const fn passes(&self) -> &P {
        &self.passes
    }

    /// The node's input.
    pub const fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl<P: Passes> DisplayAs for PassThrough<P> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.passes.name())
    }
}

impl<P: Passes> ExecutionPlan for PassThrough<P> {
    fn name(&self) -> &'static str {
        self.passes.name()
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.passes.maintains_order()]
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
        Ok(Self::over(only_child(children, self.name())?, self.passes.clone()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(self.passes.rows(self.input.execute(partition, self.passes.context(context))?))
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

/// The one input that a node gets in place of its own.
///
/// # Errors
/// There are several or none.
pub fn only_child(mut children: Vec<Arc<dyn ExecutionPlan>>, name: &str) -> Result<Arc<dyn ExecutionPlan>> {
    match (children.pop(), children.is_empty()) {
        (Some(child), true) => Ok(child),
        _ => internal_err!("{name} has one input"),
    }
}
