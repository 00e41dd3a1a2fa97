//! Leaving out deleted rows of data files that are read as a whole, together with rows that a simple filter leaves out.
//!
//! The Parquet reader can skip rows, too, but it copies the remaining ones, and a filter above it copies them once more. Where a
//! tenth of the rows is deleted, at random, that costs more than reading them. Here both copies are one.
//!
//! Filters that pass: see [`is_safe`]. All others stay above.

use crate::scan::conditions::AllOf;
use crate::workarounds::physical::pass_through::only_child;
use arrow::array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{BatchCoalescer, filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::SchemaRef;
use datafusion::common::cast::{as_boolean_array, as_int64_array};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr, conjunction};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::{EmbeddedProjection, ProjectionExec, try_embed_projection};
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    StatisticsArgs,
};
use futures::{Stream, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// For each file, by its number, the rows that are left. `None`: all that are read.
pub(super) type Left = Arc<[Option<BooleanBuffer>]>;

/// The rows of a scan that are left and pass the filters.
#[derive(Debug)]
pub(in crate::scan) struct LiveRows {
    /// Its last two columns are the number of the file, and the position of the row in it.
    input: Arc<dyn ExecutionPlan>,
    left: Left,
    /// How many rows are left without filters.
    count: usize,
    /// Over the input's columns.
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The input's columns that are handed on.
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LiveRows {
    /// The rows of `input` that are in `left`, `count` rows together, without its last two columns.
    ///
    /// # Errors
    /// The input has fewer than two columns.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, left: Left, count: usize) -> Result<Self> {
        let Some(columns) = input.schema().fields().len().checked_sub(2) else {
            return internal_err!("a scan does not tell where its rows are");
        };
        Self::of(input, left, count, Vec::new(), (0..columns).collect())
    }

    fn of(
        input: Arc<dyn ExecutionPlan>,
        left: Left,
        count: usize,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        columns: Vec<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(input.schema().project(&columns)?);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            input.boundedness(),
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { input, left, count, filters, columns, properties, metrics })
    }

    /// The scan.
    pub(in crate::scan) const fn scan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// The filters over the scan's columns.
    pub(in crate::scan) fn filters(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.filters
    }

    /// The scan's columns that are handed on.
    pub(in crate::scan) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The same rows of the same scan with other types of columns, and the filters for them.
    ///
    /// # Errors
    /// The scan has fewer columns.
    pub(in crate::scan) fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        filters: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Self> {
        Self::of(input, Arc::clone(&self.left), self.count, filters, self.columns.clone())
    }
}

/// Whether a filter may be applied to deleted rows: it compares a column with a constant, which never fails. Others could fail,
/// on a value that no live row has.
fn is_safe(filter: &Arc<dyn PhysicalExpr>) -> bool {
    let is_column = |side: &Arc<dyn PhysicalExpr>| side.downcast_ref::<Column>().is_some();
    let is_constant = |side: &Arc<dyn PhysicalExpr>| side.downcast_ref::<Literal>().is_some();
    filter.downcast_ref::<BinaryExpr>().is_some_and(|compare| {
        let (left, right) = (compare.left(), compare.right());
        let compares =
            [Operator::Eq, Operator::NotEq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq];
        compares.contains(compare.op())
            && ((is_column(left) && is_constant(right)) || (is_constant(left) && is_column(right)))
    })
}

impl DisplayAs for LiveRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if !self.filters.is_empty() {
            write!(f, ": {}", conjunction(self.filters.clone()))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for LiveRows {
    fn name(&self) -> &'static str {
        "LiveRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for filter in &self.filters {
            if f(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = only_child(children, self.name())?;
        let (left, filters) = (Arc::clone(&self.left), self.filters.clone());
        Ok(Arc::new(Self::of(input, left, self.count, filters, self.columns.clone())?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = context.session_config().batch_size();
        let filter = (!self.filters.is_empty()).then(|| conjunction(self.filters.clone()));
        let filter = match filter {
            Some(filter) => Some(AllOf::of(&filter, &self.input.schema())?.unwrap_or(filter)),
            None => None,
        };
        Ok(Box::pin(Live {
            input: self.input.execute(partition, context)?,
            left: Arc::clone(&self.left),
            filter,
            columns: self.columns.clone(),
            together: BatchCoalescer::new(self.schema(), rows)
                .with_biggest_coalesce_batch_size(Some(rows / 2)),
            is_over: false,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::Skip]
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if args.partition().is_none() {
            let count = Precision::Exact(self.count);
            statistics.num_rows = if self.filters.is_empty() { count } else { count.to_inexact() };
        }
        Ok(Arc::new(statistics))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        try_embed_projection(projection, self)
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        // For the least and largest values in files, whichever node filters in the end.
        let child = ChildFilterDescription::from_child(&parent_filters, &self.input)?;
        Ok(FilterDescription::new().with_child(child))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        if phase != FilterPushdownPhase::Pre {
            return Ok(FilterPushdownPropagation::if_all(result));
        }
        let mut filters = self.filters.clone();
        let mut taken = Vec::with_capacity(result.parent_filters.len());
        for parent in &result.parent_filters {
            let is_left = matches!(parent.all(), PushedDown::No);
            let is_taken = !is_left || is_safe(&parent.filter);
            if is_left && is_taken {
                filters.push(reassign_expr_columns(Arc::clone(&parent.filter), &self.input.schema())?);
            }
            taken.push(if is_taken { PushedDown::Yes } else { PushedDown::No });
        }
        let (input, left) = (Arc::clone(&self.input), Arc::clone(&self.left));
        let node = Self::of(input, left, self.count, filters, self.columns.clone())?;
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(taken)
            .with_updated_node(Arc::new(node) as _))
    }
}

impl EmbeddedProjection for LiveRows {
    fn with_projection(&self, projection: Option<Vec<usize>>) -> Result<Self> {
        let columns = match projection {
            Some(projection) => projection.into_iter().map(|column| self.columns[column]).collect(),
            None => self.columns.clone(),
        };
        let (input, left) = (Arc::clone(&self.input), Arc::clone(&self.left));
        Self::of(input, left, self.count, self.filters.clone(), columns)
    }
}

/// The rows left of one partition of the input.
struct Live {
    input: SendableRecordBatchStream,
    left: Left,
    filter: Option<Arc<dyn PhysicalExpr>>,
    columns: Vec<usize>,
    together: BatchCoalescer,
    is_over: bool,
    metrics: BaselineMetrics,
}

impl Live {
    fn hand_on(&mut self, batch: &RecordBatch) -> Result<()> {
        let mask = self.mask(batch)?;
        let columns = self.columns.iter().map(|&column| Arc::clone(batch.column(column))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.together.schema(), columns, &options)?;
        match mask {
            None => self.together.push_batch(batch)?,
            Some(mask) => {
                let left = filter_record_batch(&batch, &BooleanArray::new(mask, None))?;
                self.together.push_batch(left)?;
            }
        }
        Ok(())
    }

    /// The rows of the batch that are handed on. `None`: all of them.
    fn mask(&self, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let left = left(&self.left, batch)?;
        let Some(filter) = &self.filter else { return Ok(left) };
        let passes = filter.evaluate(batch)?.into_array(batch.num_rows())?;
        let passes = match as_boolean_array(&passes)? {
            some_unknown if some_unknown.null_count() > 0 => {
                prep_null_mask_filter(some_unknown).values().clone()
            }
            known => known.values().clone(),
        };
        Ok(Some(match left {
            Some(left) => &left & &passes,
            None => passes,
        }))
    }
}

/// The rows of the batch that are not deleted. `None`: all of them.
fn left(left: &Left, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
    let [.., files, rows] = batch.columns() else {
        return internal_err!("a scan does not tell where its rows are");
    };
    let (files, rows) = (as_int64_array(files)?.values(), as_int64_array(rows)?.values());
    let place = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let of_file = |file: i64| left.get(place(file)).and_then(Option::as_ref);
    // A batch is nearly always of rows that follow one another in one file.
    if let ([file, .., last_file], [first, .., last]) = (&files[..], &rows[..])
        && file == last_file
        && place(last - first) == rows.len() - 1
    {
        return Ok(of_file(*file).map(|rows_left| rows_left.slice(place(*first), rows.len())));
    }
    let is_left = |row: usize| of_file(files[row]).is_none_or(|rows_left| rows_left.value(place(rows[row])));
    Ok(Some(BooleanBuffer::collect_bool(files.len(), is_left)))
}

impl Stream for Live {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(batch) = self.together.next_completed_batch() {
                return self.metrics.record_poll(Poll::Ready(Some(Ok(batch))));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let next = ready!(self.input.poll_next_unpin(context));
            let time = self.metrics.elapsed_compute().clone();
            let _timer = time.timer();
            let done = match next {
                Some(Ok(batch)) => self.hand_on(&batch),
                Some(Err(error)) => Err(error),
                None => {
                    self.is_over = true;
                    self.together.finish_buffered_batch().map_err(Into::into)
                }
            };
            if let Err(error) = done {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl RecordBatchStream for Live {
    fn schema(&self) -> SchemaRef {
        self.together.schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_expr::expressions::lit;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::SessionContext;

    /// A scan of batches of `(file, row)`, with a value that encodes both.
    fn scan(batches: &[&[(i64, i64)]]) -> Arc<dyn ExecutionPlan> {
        let field = |name| Field::new(name, DataType::Int64, false);
        let schema: SchemaRef = Arc::new(Schema::new(["value", "file", "row"].map(field).to_vec()));
        let batch = |rows: &&[(i64, i64)]| {
            let column =
                |of: fn(&(i64, i64)) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(of)));
            let columns = [|(file, row): &_| file * 100 + row, |(file, _): &_| *file, |(_, row): &_| *row];
            RecordBatch::try_new(Arc::clone(&schema), columns.map(|of| column(of) as _).to_vec()).unwrap()
        };
        let batches: Vec<RecordBatch> = batches.iter().map(batch).collect();
        let source = MemorySourceConfig::try_new(&[batches], Arc::clone(&schema), None).unwrap();
        datafusion::datasource::source::DataSourceExec::from_data_source(source)
    }

    /// File 0 has all its rows left, file 1 those at even positions, file 2 none.
    fn some_left() -> Left {
        let even = BooleanBuffer::collect_bool(100, |row| row % 2 == 0);
        [None, Some(even), Some(BooleanBuffer::new_unset(100))].into()
    }

    async fn values(plan: LiveRows) -> Vec<i64> {
        let batches = collect(Arc::new(plan), SessionContext::new().task_ctx()).await.unwrap();
        let values = |batch: &RecordBatch| as_int64_array(batch.column(0)).unwrap().values().to_vec();
        batches.iter().flat_map(values).collect()
    }

    const BATCHES: [&[(i64, i64)]; 7] = [
        &[(0, 4), (0, 5), (0, 6)],
        &[],
        &[(1, 4), (1, 5), (1, 6), (1, 7)],
        // With a gap, of several files, and of one row.
        &[(1, 8), (1, 11), (1, 12)],
        &[(0, 7), (1, 13), (1, 14), (2, 0)],
        &[(1, 20)],
        &[(2, 1), (2, 2)],
    ];

    #[tokio::test]
    async fn deleted_rows_are_left_out_wherever_they_lie() {
        let plan = LiveRows::new(scan(&BATCHES), some_left(), 9).unwrap();
        assert_eq!(values(plan).await, [4, 5, 6, 104, 106, 108, 112, 7, 114, 120]);
    }

    #[tokio::test]
    async fn rows_must_pass_the_filters_too() {
        let compare = |operator, value: i64| -> Arc<dyn PhysicalExpr> {
            Arc::new(BinaryExpr::new(Arc::new(Column::new("value", 0)), operator, lit(value)))
        };
        let filters = vec![compare(Operator::Gt, 5), compare(Operator::Lt, 112)];
        assert!(filters.iter().all(is_safe));
        let plan = LiveRows::of(scan(&BATCHES), some_left(), 9, filters, vec![0]).unwrap();
        assert_eq!(values(plan).await, [6, 104, 106, 108, 7]);
    }

    #[tokio::test]
    async fn rows_without_columns_are_counted() {
        let plan =
            LiveRows::new(scan(&BATCHES), some_left(), 9).unwrap().with_projection(Some(vec![])).unwrap();
        let batches = collect(Arc::new(plan), SessionContext::new().task_ctx()).await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
    }

    #[test]
    fn what_may_fail_is_not_safe() {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("value", 0));
        let of = |left: &Arc<dyn PhysicalExpr>,
                  operator,
                  right: &Arc<dyn PhysicalExpr>|
         -> Arc<dyn PhysicalExpr> {
            Arc::new(BinaryExpr::new(Arc::clone(left), operator, Arc::clone(right)))
        };
        let sum = of(&column, Operator::Plus, &lit(1i64));
        let safe = of(&lit(1i64), Operator::Lt, &column);
        assert!(is_safe(&safe));
        for filter in [
            of(&sum, Operator::Lt, &lit(5i64)),
            of(&column, Operator::Lt, &column),
            of(&safe, Operator::Or, &safe),
            sum,
        ] {
            assert!(!is_safe(&filter), "{filter}");
        }
    }
}
