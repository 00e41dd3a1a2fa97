//! A plan as people read it: what is done, with which tables, and after it was run how many rows came of it and how long it took.
//!
//! A step is a line, and its inputs are the lines below that are indented more. Steps that only hand rows on are left out: their
//! time counts for the step above. Names are those of SQL: no places of columns, no functions of our own.
//!
//! Not here: the plan as the query engine has it, which EXPLAIN VERBOSE and EXPLAIN PHYSICAL PLAN show.

use crate::computed_once::node::ComputedOnce;
use crate::scan::page_cache::BYTES_IN_MEMORY;
use crate::scan::provider::{ScanTraits, SnapshotProvider};
use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::expressions::{Column, UnKnownColumn};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use object_store::path::Path;
use std::collections::{BTreeMap, HashMap};

use crate::scan::text_views::is_only_of_views;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The tables of a plan, and by what its scans are known.
#[derive(Debug, Default)]
pub(crate) struct ReadTables {
    tables: Vec<ReadTable>,
    of_path: HashMap<Path, usize>,
    of_array: HashMap<usize, usize>,
}

impl ReadTables {
    /// The tables of the scans of a plan.
    ///
    /// # Errors
    /// A table's root or memtable has no proper form.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut tables = Self::default();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some(provider) = provider.downcast_ref::<SnapshotProvider>()
            {
                tables.add(provider.traits()?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(tables)
    }

    fn add(&mut self, table: ScanTraits) {
        let number = self.tables.len();
        let ScanTraits { name, columns, paths, arrays } = table;
        self.tables.push(ReadTable { name, columns, files: paths.len() });
        self.of_path.extend(paths.into_iter().map(|path| (path, number)));
        self.of_array.extend(arrays.iter().map(|array| (address(array), number)));
    }

    /// The only table with these columns: of rows in memory that others have superseded there are copies.
    fn only_with(&self, columns: &SchemaRef) -> Option<&ReadTable> {
        let has_all = |table: &&ReadTable| {
            columns.fields().iter().all(|field| table.columns.column_with_name(field.name()).is_some())
        };
        let mut found = self.tables.iter().filter(has_all);
        found.next().filter(|_| !columns.fields().is_empty() && found.next().is_none())
    }
}

/// A table of a plan.
#[derive(Debug)]
struct ReadTable {
    name: String,
    columns: SchemaRef,
    /// How many data files it has.
    files: usize,
}

/// The place of an array in memory, which clones of it share.
fn address(array: &ArrayRef) -> usize {
    Arc::as_ptr(array).cast::<()>().addr()
}

/// Steps that hand rows on: between threads, in other pieces, or counted.
const HANDS_ON: [&str; 8] = [
    "CooperativeExec",
    "CoalescePartitionsExec",
    "CoalesceBatchesExec",
    "RepartitionExec",
    "Unknown",
    "CountedForPauses",
    "CutForPauses",
    "KeyArray",
];

/// A function that makes a number of any value, as MySQL's do.
const OURS: &str = "__numeric(";

/// A step of a plan, and the steps whose rows it takes.
struct Step {
    text: String,
    /// The table whose rows are read, and the rows' place: in files or in memory.
    scan: Option<(String, String)>,
    rows: Option<usize>,
    /// Of all threads together.
    took: Duration,
    inputs: Vec<Step>,
}

/// The lines of a plan. `has_run`: with the rows of each step, and its time in all threads together.
pub(crate) fn lines(plan: &Arc<dyn ExecutionPlan>, tables: &ReadTables, has_run: bool) -> String {
    let mut above = Duration::ZERO;
    let mut steps = steps(plan, tables, &mut above);
    if let [first, ..] = &mut *steps {
        first.took += above;
    }
    let mut text = String::new();
    for step in &steps {
        write(&mut text, step, 0, has_run);
    }
    text
}

fn write(text: &mut String, step: &Step, depth: usize, has_run: bool) {
    text.extend(std::iter::repeat_n("  ", depth));
    text.push_str(&of_sql(&step.text));
    if let (Some(rows), true) = (step.rows, has_run) {
        let _ = write!(text, "  [{}, {:.3} ms]", counted(rows, "row"), step.took.as_secs_f64() * 1e3);
    }
    text.push('\n');
    for input in &step.inputs {
        write(text, input, depth + 1, has_run);
    }
}

/// A text without the functions and names that SQL does not have.
fn of_sql(text: &str) -> String {
    let mut text = text.replace("count(Int64(1))", "count(*)").replace("count(1)", "count(*)");
    while let Some(begin) = text.find(OURS) {
        let inside = begin + OURS.len();
        let mut depth = 1_usize;
        let end = text[inside..].char_indices().find(|(_, letter)| {
            depth = match letter {
                '(' => depth + 1,
                ')' => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        let Some((length, _)) = end else { return text };
        text.remove(inside + length);
        text.replace_range(begin..inside, "");
    }
    text
}

/// A number and a noun.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The steps of a plan: one, unless a step that hands rows on has several inputs. Adds the time of what is left out to `above`.
fn steps(plan: &Arc<dyn ExecutionPlan>, tables: &ReadTables, above: &mut Duration) -> Vec<Step> {
    let metrics = plan.metrics();
    let took = metrics.as_ref().map_or(Duration::ZERO, time);
    let Some(text) = text(plan.as_ref()) else {
        *above += took;
        return plan.children().into_iter().flat_map(|child| steps(child, tables, above)).collect();
    };
    let mut took = took;
    let takes = |plan: &Arc<dyn ExecutionPlan>| {
        plan.downcast_ref::<ComputedOnce>().is_none_or(ComputedOnce::computes)
    };
    let children = if takes(plan) { plan.children() } else { Vec::new() };
    let mut inputs: Vec<Step> =
        children.into_iter().flat_map(|child| steps(child, tables, &mut took)).collect();
    let mut rows = metrics.as_ref().and_then(MetricsSet::output_rows);
    let mut step_text = text;
    let mut scan = None;
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        scan = scan_of(source, tables, metrics.as_ref());
        if let Some((table, place)) = &scan {
            step_text = read(table, place);
        }
        rows = rows.or_else(|| rows_in_memory(source));
    }
    if plan.is::<UnionExec>() {
        match parts_of_a_table(inputs) {
            Ok(together) => return vec![Step { took: took + together.took, ..together }],
            Err(several) => inputs = several,
        }
    }
    vec![Step { text: step_text, scan, rows, took, inputs }]
}

fn read(table: &str, place: &str) -> String {
    format!("Read {table}: {place}")
}

/// The files and the memory of one table as one step, with the filter that both have, if they have the same one.
fn parts_of_a_table(mut parts: Vec<Step>) -> std::result::Result<Step, Vec<Step>> {
    let same_filter = |one: &Step, other: &Step| {
        one.text == other.text && one.inputs.len() == 1 && other.inputs.len() == 1 && one.scan.is_none()
    };
    let [one, other] = &*parts else { return Err(parts) };
    let is_filtered = same_filter(one, other);
    let scan = |step: &Step| match is_filtered {
        true => step.inputs.first().and_then(|input| input.scan.clone()),
        false => step.scan.clone(),
    };
    let (Some((table, files)), Some((same, memory))) = (scan(one), scan(other)) else { return Err(parts) };
    if table != same {
        return Err(parts);
    }
    let sum = |one: Option<usize>, other: Option<usize>| Some(one? + other?);
    let (mut other, mut one) = (parts.remove(1), parts.remove(0));
    let joined = |one: &Step, other: &Step| {
        let place = format!("{files}; {memory}");
        let text = read(&table, &place);
        let (rows, took) = (sum(one.rows, other.rows), one.took + other.took);
        Step { text, scan: Some((table.clone(), place)), rows, took, inputs: Vec::new() }
    };
    if !is_filtered {
        return Ok(joined(&one, &other));
    }
    let inputs = vec![joined(&one.inputs.remove(0), &other.inputs.remove(0))];
    let (rows, took) = (sum(one.rows, other.rows), one.took + other.took);
    Ok(Step { text: one.text, scan: None, rows, took, inputs })
}

/// The words for a step; `None` if it only hands rows on.
fn text(plan: &dyn ExecutionPlan) -> Option<String> {
    if HANDS_ON.contains(&plan.name()) {
        return plan.fetch().map(|count| limit_text(0, Some(count)));
    }
    // The input of such a step is sorted, and cut off, in each thread already.
    if plan.is::<SortPreservingMergeExec>() {
        return None;
    }
    if let Some(project) = plan.downcast_ref::<ProjectionExec>() {
        let schema = project.input().schema();
        let computed: Vec<String> = project
            .expr()
            .iter()
            .filter(|expr| !expr.expr.is::<Column>() && !is_only_of_views(&expr.expr, &schema))
            .map(|expr| format!("{} AS {}", plain(&expr.expr), expr.alias))
            .collect();
        return (!computed.is_empty()).then(|| format!("Compute {}", computed.join(", ")));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return aggregate_text(aggregate);
    }
    if let Some(once) = plan.downcast_ref::<ComputedOnce>() {
        let rows = first_text(once);
        return Some(match once.computes() {
            true => format!("Once for all steps with the rows of: {rows}"),
            false => format!("Rows of an equal step: {rows}"),
        });
    }
    Some(if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        format!("Filter: {}", plain(filter.predicate()))
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        match sort.fetch() {
            Some(count) => format!("First {count} by {}", order(sort.expr())),
            None => format!("Sort by {}", order(sort.expr())),
        }
    } else if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        limit_text(limit.skip(), limit.fetch())
    } else if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        limit_text(0, Some(limit.fetch()))
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let on: Vec<String> =
            join.on().iter().map(|(left, right)| format!("{} = {}", plain(left), plain(right))).collect();
        format!(
            "Hash join, {}: {}{}",
            join_kind(*join.join_type()),
            on.join(" AND "),
            condition(join.filter())
        )
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        format!("Nested loop join, {}{}", join_kind(*join.join_type()), condition(join.filter()))
    } else if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        window_text(window.window_expr())
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        window_text(window.window_expr())
    } else if plan.is::<CrossJoinExec>() {
        "Cross join".to_owned()
    } else if plan.is::<UnionExec>() {
        "Union".to_owned()
    } else if plan.is::<UnnestExec>() {
        "A row for each element".to_owned()
    } else if plan.is::<EmptyExec>() {
        "No rows".to_owned()
    } else if plan.is::<PlaceholderRowExec>() {
        "One row without a table".to_owned()
    } else if plan.is::<DataSourceExec>() {
        "Read rows that are in memory".to_owned()
    } else {
        other(plan)
    })
}

/// A step that has no words of its own here, as the query engine shows it.
fn other(plan: &dyn ExecutionPlan) -> String {
    displayable(plan).one_line().to_string().trim().to_owned()
}

/// The words for the first step below that has any.
fn first_text(plan: &dyn ExecutionPlan) -> String {
    let Some(child) = plan.children().into_iter().next() else { return String::new() };
    text(child.as_ref()).unwrap_or_else(|| first_text(child.as_ref()))
}

fn aggregate_text(aggregate: &AggregateExec) -> Option<String> {
    if *aggregate.mode() == AggregateMode::Partial {
        // The same is done once more, with the results of all threads.
        return None;
    }
    let keys: Vec<String> = aggregate.group_expr().expr().iter().map(|(_, name)| name.clone()).collect();
    let values: Vec<&str> = aggregate
        .aggr_expr()
        .iter()
        .map(|value| value.human_display().filter(|text| !text.is_empty()).unwrap_or(value.name()))
        .collect();
    let (keys, values) = (keys.join(", "), values.join(", "));
    Some(match (keys.is_empty(), values.is_empty()) {
        (true, _) => format!("Aggregate: {values}"),
        (false, true) => format!("Distinct {keys}"),
        (false, false) => format!("Aggregate by {keys}: {values}"),
    })
}

fn window_text(values: &[Arc<dyn WindowExpr>]) -> String {
    let values: Vec<&str> = values.iter().map(|value| value.name()).collect();
    format!("Window: {}", values.join(", "))
}

fn limit_text(skip: usize, fetch: Option<usize>) -> String {
    match (fetch, skip) {
        (Some(count), 0) => format!("Limit {count}"),
        (Some(count), skip) => format!("Limit {count} after {skip}"),
        (None, skip) => format!("All after {skip}"),
    }
}

const fn join_kind(kind: JoinType) -> &'static str {
    match kind {
        JoinType::Inner => "inner",
        JoinType::Left => "left",
        JoinType::Right => "right",
        JoinType::Full => "full",
        JoinType::LeftSemi => "rows of the first with a match",
        JoinType::RightSemi => "rows of the second with a match",
        JoinType::LeftAnti => "rows of the first without a match",
        JoinType::RightAnti => "rows of the second without a match",
        JoinType::LeftMark => "rows of the first, marked",
        JoinType::RightMark => "rows of the second, marked",
    }
}

fn condition(filter: Option<&JoinFilter>) -> String {
    filter.map_or_else(String::new, |filter| format!(", if {}", plain(filter.expression())))
}

fn order(order: &LexOrdering) -> String {
    let key = |expr: &Arc<dyn PhysicalExpr>, is_descending| {
        format!("{}{}", plain(expr), if is_descending { " DESC" } else { "" })
    };
    let keys: Vec<String> = order.iter().map(|key_| key(&key_.expr, key_.options.descending)).collect();
    keys.join(", ")
}

/// An expression without the places of its columns.
fn plain(expr: &Arc<dyn PhysicalExpr>) -> String {
    let named = Arc::clone(expr).transform_up(|expr| {
        Ok(match expr.downcast_ref::<Column>() {
            Some(column) => {
                let named: Arc<dyn PhysicalExpr> = Arc::new(UnKnownColumn::new(column.name()));
                Transformed::yes(named)
            }
            None => Transformed::no(expr),
        })
    });
    named.map_or_else(|_| expr.to_string(), |named| named.data.to_string())
}

/// The table of a scan, and the place and number of the rows that it reads.
fn scan_of(
    source: &DataSourceExec,
    tables: &ReadTables,
    metrics: Option<&MetricsSet>,
) -> Option<(String, String)> {
    let data = source.data_source();
    if let Some(memory) = data.downcast_ref::<MemorySourceConfig>() {
        let mut arrays = memory.partitions().iter().flatten().flat_map(arrow::array::RecordBatch::columns);
        let known = arrays.find_map(|array| tables.of_array.get(&address(array)));
        let table = match known {
            Some(table) => &tables.tables[*table],
            None => tables.only_with(&memory.original_schema())?,
        };
        let rows = rows_in_memory(source)?;
        return Some((table.name.clone(), format!("{} in memory", counted(rows, "row"))));
    }
    let files = data.downcast_ref::<FileScanConfig>()?;
    // Several threads may have a part of one file each.
    let read = files.file_groups.iter().flat_map(FileGroup::iter).map(|file| &file.object_meta);
    let read: BTreeMap<_, _> = read.map(|file| (&file.location, file.size)).collect();
    let bytes: u64 = read.values().sum();
    let count = read.len();
    let table = read.keys().find_map(|path| tables.of_path.get(*path))?;
    let table = &tables.tables[*table];
    let mut place = format!("{count} of {}", counted(table.files, "data file"));
    let _ = write!(place, " ({})", in_bytes(bytes));
    if let Some(metrics) = metrics {
        for (name, noun) in
            [("row_groups_pruned_statistics", "row group"), ("page_index_rows_pruned", "row by pages")]
        {
            if let Some(MetricValue::PruningMetrics { pruning_metrics, .. }) = metrics.sum_by_name(name)
                && pruning_metrics.pruned() > 0
            {
                let _ = write!(place, ", {} skipped", counted(pruning_metrics.pruned(), noun));
            }
        }
        // By filters that were asked before the other columns were decoded.
        let left_out = metrics.sum_by_name("pushdown_rows_pruned").map_or(0, |rows| rows.as_usize());
        if left_out > 0 {
            let _ = write!(place, ", {} skipped by filters", counted(left_out, "row"));
        }
        if let Some(scanned) = metrics.sum_by_name("bytes_scanned") {
            let _ = write!(place, ", {} read", in_bytes(scanned.as_usize() as u64));
        }
        let cached = metrics.sum_by_name(BYTES_IN_MEMORY).map_or(0, |bytes| bytes.as_usize());
        if cached > 0 {
            let _ = write!(place, ", {} in memory", in_bytes(cached as u64));
        }
    }
    Some((table.name.clone(), place))
}

fn rows_in_memory(source: &DataSourceExec) -> Option<usize> {
    let memory = source.data_source().downcast_ref::<MemorySourceConfig>()?;
    Some(memory.partitions().iter().flatten().map(arrow::array::RecordBatch::num_rows).sum())
}

fn in_bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte"),
        10_000..=9_999_999 => format!("{} KB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// The time of a step in all threads: of a scan, that of reading and decoding.
fn time(metrics: &MetricsSet) -> Duration {
    let nanos = metrics
        .sum_by_name("time_elapsed_processing")
        .map(|value| value.as_usize())
        .or_else(|| metrics.elapsed_compute())
        .unwrap_or(0);
    Duration::from_nanos(nanos as u64)
}
