//! A source of data files that decodes columns late in files where few rows pass its filters.

use super::share::share;
use crate::scan::sieve::{Sieve, Tally};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource::morsel::{MorselPlanner, Morselizer};
use object_store::ObjectStore;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Columns are decoded late if at most this share of the rows passes.
const SHARE_MAX: f64 = 0.03;
/// The same where the filters look keys up in a join's hash table, which the join does again with the rows that are left: each row costs more to
/// ask, and rows that are left are all over the file.
const SHARE_OF_JOIN_MAX: f64 = 0.005;
/// A filter is asked by the reader if it leaves at most this share of the rows.
const SHARE_ASKED_MAX: f64 = 0.5;
/// The same for filters of joins. Keys may have gaps: the keys of all orders fill a quarter of their range, and each line has one.
const SHARE_ASKED_OF_JOIN_MAX: f64 = 0.1;

/// Columns that are shown for each column of a filter of which nothing is known, such as one of texts, from which on the reader asks it: to
/// ask it costs hardly more than reading the file does anyway, and saves nearly all if few rows pass.
pub(super) const WIDE: usize = 16;

/// A source of data files that decides for each file how it is read.
#[derive(Clone)]
pub(super) struct LateSource {
    /// The source that decodes all columns of all rows.
    at_once: Arc<dyn FileSource>,
}

impl LateSource {
    pub(super) fn new(source: Arc<ParquetSource>) -> Self {
        Self { at_once: source }
    }
}

impl FileSource for LateSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.at_once.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let at_once = self.at_once.create_morselizer(Arc::clone(&store), config, partition)?;
        let Some(source) = self.at_once.downcast_ref::<ParquetSource>() else { return Ok(at_once) };
        let (source, config) = (source.clone(), config.clone());
        Ok(Box::new(LateMorselizer {
            at_once,
            source,
            store,
            config,
            partition,
            late: Mutex::new(Late::Unknown),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.at_once.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { at_once: self.at_once.with_batch_size(batch_size) })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.at_once.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.at_once.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.at_once.metrics()
    }

    fn file_type(&self) -> &str {
        self.at_once.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at_once.fmt_extra(t, f)
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.at_once.reorder_files(files)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.at_once.apply_expressions(f)
    }
}

/// Knowledge about reading files with late columns.
enum Late {
    /// Nothing, or filters may still change.
    Unknown,
    /// It does not pay.
    Never,
    Ready {
        morselizer: Arc<dyn Morselizer>,
        tally: Arc<Tally>,
    },
}

/// Plans the reading of a partition's files.
struct LateMorselizer {
    at_once: Box<dyn Morselizer>,
    source: ParquetSource,
    store: Arc<dyn ObjectStore>,
    config: FileScanConfig,
    partition: usize,
    late: Mutex<Late>,
}

impl fmt::Debug for LateMorselizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateMorselizer").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}

impl Morselizer for LateMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        match self.late()? {
            Some(late) => late.plan_file(file),
            None => self.at_once.plan_file(file),
        }
    }
}

impl LateMorselizer {
    /// Returns the reader with late columns, if it pays now.
    fn late(&self) -> Result<Option<Arc<dyn Morselizer>>> {
        let mut late = self.late.lock();
        if matches!(&*late, Late::Unknown) {
            *late = self.decided()?;
        }
        Ok(match &*late {
            Late::Ready { morselizer, tally } if !tally.has_given_up() => Some(Arc::clone(morselizer)),
            _ => None,
        })
    }

    fn decided(&self) -> Result<Late> {
        let Some(filter) = self.source.filter() else { return Ok(Late::Never) };
        let filters = Filters::of(&filter, &self.config);
        let shown = self.source.projection().map(|projection| {
            projection
                .iter()
                .flat_map(|shown| collect_columns(&shown.expr))
                .map(|column| column.index())
                .collect()
        });
        let Some((sieves, tally)) = filters.sieves(shown.as_ref()) else {
            return Ok(if filters.may_change { Late::Unknown } else { Late::Never });
        };
        let mut options = self.source.table_parquet_options().clone();
        // A reader that keeps the filters' columns for the rows that are left decodes whole batches of all of them.
        options.global.max_predicate_cache_size = Some(0);
        let source = self.source.clone().with_table_parquet_options(options);
        let source = source.with_predicate(sieves).with_pushdown_filters(true);
        let morselizer = source.create_morselizer(Arc::clone(&self.store), &self.config, self.partition)?;
        Ok(Late::Ready { morselizer: Arc::from(morselizer), tally })
    }
}

/// The rows of a scan's files.
fn rows(config: &FileScanConfig) -> f64 {
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let known = files.filter_map(|file| file.statistics.as_ref()?.num_rows.get_value());
    config.statistics().num_rows.get_value().copied().unwrap_or_else(|| known.sum()) as f64
}

/// A scan's filters.
struct Filters {
    /// Filters that leave many rows out: the share that they leave, their columns, and all filters of these columns. The least share
    /// first.
    asked: Vec<(f64, BTreeSet<usize>, Arc<dyn PhysicalExpr>)>,
    others: Vec<Arc<dyn PhysicalExpr>>,
    /// Filters of which it is not known how many rows they leave, with their columns.
    unknown: Vec<(BTreeSet<usize>, Arc<dyn PhysicalExpr>)>,
    /// Number of the table's columns.
    width: usize,
    /// Whether any that is asked is of a join.
    is_of_join: bool,
    may_change: bool,
}

impl Filters {
    fn of(filter: &Arc<dyn PhysicalExpr>, config: &FileScanConfig) -> Self {
        let rows = rows(config);
        let (statistics, schema) = (config.statistics(), config.file_source().table_schema().table_schema());
        let mut of_columns: BTreeMap<BTreeSet<usize>, Vec<Arc<dyn PhysicalExpr>>> = BTreeMap::new();
        let (mut others, mut of_joins, mut may_change) = (Vec::new(), BTreeSet::new(), false);
        for filter in split_conjunction(filter) {
            let columns: BTreeSet<usize> = collect_columns(filter).iter().map(Column::index).collect();
            match DynamicFilterTracking::classify(filter) {
                DynamicFilterTracking::Watching(_) => {
                    may_change = true;
                    others.push(Arc::clone(filter));
                    continue;
                }
                DynamicFilterTracking::AllComplete => {
                    of_joins.insert(columns.clone());
                }
                DynamicFilterTracking::Static => {}
            }
            let same = of_columns.entry(columns).or_default();
            if !same.contains(filter) {
                same.push(Arc::clone(filter));
            }
        }
        let (mut asked, mut unknown, mut is_of_join) = (Vec::new(), Vec::new(), false);
        for (columns, filters) in of_columns {
            let all = conjunction(filters.clone());
            let is_join = of_joins.contains(&columns);
            let most = if is_join { SHARE_ASKED_OF_JOIN_MAX } else { SHARE_ASKED_MAX };
            match share(&all, &statistics, rows, schema) {
                Some(share) if share <= most => {
                    is_of_join |= is_join;
                    asked.push((share, columns, all));
                }
                None if !columns.is_empty() && !of_joins.contains(&columns) && !is_volatile(&all) => {
                    unknown.push((columns, all));
                }
                _ => others.extend(filters),
            }
        }
        asked.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        Self { asked, others, unknown, width: schema.fields().len(), is_of_join, may_change }
    }

    /// The filters for the reader, and the counts of the first. `None`: it does not pay to ask any of them. The columns `shown` are read; without
    /// that, all are.
    fn sieves(&self, shown: Option<&BTreeSet<usize>>) -> Option<(Arc<dyn PhysicalExpr>, Arc<Tally>)> {
        let known = || self.asked.iter().map(|(.., filter)| filter);
        let unknown = || self.unknown.iter().map(|(_, filter)| filter);
        let (asked, others): (Vec<_>, Vec<_>) = if self.leaves_few(shown) {
            (known().collect(), unknown().chain(&self.others).collect())
        } else if self.is_wide(shown) {
            (unknown().collect(), known().chain(&self.others).collect())
        } else {
            return None;
        };
        let first = Arc::new(Tally::default());
        let mut tally = Some(Arc::clone(&first));
        let asked = asked.into_iter().map(|filter| -> Arc<dyn PhysicalExpr> {
            Arc::new(Sieve::new(Arc::clone(filter), tally.take().unwrap_or_default()))
        });
        // Bounds come last: the columns are decoded for the rows that are left.
        let bounds = others
            .into_iter()
            .map(|filter| -> Arc<dyn PhysicalExpr> { Arc::new(Sieve::of_bounds(Arc::clone(filter))) });
        Some((conjunction(asked.chain(bounds)), first))
    }

    /// Whether few rows pass the filters, and more other columns are read than these have.
    fn leaves_few(&self, shown: Option<&BTreeSet<usize>>) -> bool {
        let share = share_of_all(self.asked.iter().map(|(share, columns, _)| (*share, columns)));
        let columns: BTreeSet<usize> =
            self.asked.iter().flat_map(|(_, columns, _)| columns).copied().collect();
        let most = if self.is_of_join { SHARE_OF_JOIN_MAX } else { SHARE_MAX };
        !self.asked.is_empty() && share <= most && self.others_read(shown, &columns) > columns.len()
    }

    /// Whether the columns of filters of which nothing is known are few of all that are read.
    fn is_wide(&self, shown: Option<&BTreeSet<usize>>) -> bool {
        let columns: BTreeSet<usize> =
            self.unknown.iter().flat_map(|(columns, _)| columns).copied().collect();
        !columns.is_empty() && self.others_read(shown, &columns) >= WIDE * columns.len()
    }

    /// Number of columns that are read apart from these.
    fn others_read(&self, shown: Option<&BTreeSet<usize>>, columns: &BTreeSet<usize>) -> usize {
        match shown {
            Some(shown) => shown.difference(columns).count(),
            None => self.width - columns.len(),
        }
    }
}

/// The share of the rows that pass all filters, of which the one with the least share comes first. Filters that have no column
/// in common are independent. Others are not: a join with lines by their part and supplier leaves hardly fewer than one by their
/// part before it, and only the first counts.
fn share_of_all<'a>(filters: impl Iterator<Item = (f64, &'a BTreeSet<usize>)>) -> f64 {
    let (mut of_all, mut counted) = (1.0, BTreeSet::new());
    for (share, columns) in filters {
        if columns.is_disjoint(&counted) {
            of_all *= share;
            counted.extend(columns);
        }
    }
    of_all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_a_common_column_are_not_independent() {
        let [part, part_and_supplier, day] = [vec![1], vec![1, 2], vec![5]].map(BTreeSet::from_iter);
        let all = |filters: &[(f64, &BTreeSet<usize>)]| share_of_all(filters.iter().copied());
        assert!((all(&[(0.01, &part), (0.5, &day)]) - 0.005).abs() < 1e-9);
        assert!((all(&[(0.01, &part_and_supplier), (0.05, &part)]) - 0.01).abs() < 1e-9);
        assert!((all(&[(0.01, &part_and_supplier), (0.05, &part), (0.5, &day)]) - 0.005).abs() < 1e-9);
    }
}
