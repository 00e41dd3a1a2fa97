//! A table's snapshot as DataFusion reads it: data files UNION memtable.
//!
//! The provider contains one snapshot, so a statement that reads a table twice sees the same rows. Columns have lower-case names
//! here; the declared ones are in the fields' metadata. Data files name columns by their physical names, which a projection maps
//! back. Deleted rows of a file are skipped by the reader, or after it. For a deletion there is a form that also returns the
//! position of each row.

mod estimates;
mod grown;
pub(super) mod live_rows;
mod pages;
pub(crate) mod pieces;
mod point;
mod pruning;
pub(in crate::scan) mod reader;
mod version_files;

pub use version_files::{Travels, VersionFiles, travels};

use crate::types::metadata;
use crate::workarounds::physical::calculated_keys::compares_columns;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, ColumnStatistics, DFSchema, DataFusionError, Result, ScalarValue, Statistics,
};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::parquet::arrow::RowNumber;
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use live_rows::{Left, LiveRows};
use object_store::path::Path;
use reader::CheckedReaders;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_sql::{FILE_COLUMN, ROW_COLUMN};
use tributary_table::{FileBounds, KeyFinder, ObjectRoot, RowSet, Snapshot, Table, TableError};
use version_files::{KnownFile, Version};

/// Files below this many bytes together are read by one partition.
const SPLIT_BYTES: u64 = 1024 * 1024;

fn external(error: TableError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A table, and by what a plan's scans of it are known: a scan of data files names them, and one of rows in memory has their
/// arrays.
#[derive(Debug)]
pub struct ScanTraits {
    /// With its database.
    pub name: String,
    pub columns: SchemaRef,
    pub paths: Vec<Path>,
    pub arrays: Vec<ArrayRef>,
}

/// One snapshot of one table.
#[derive(Debug)]
pub struct SnapshotProvider {
    snapshot: Arc<Snapshot>,
    finder: Option<KeyFinder>,
    /// Rows of the memtable that delete are shown.
    with_deletions: bool,
    /// The path of data files in the object store.
    root: ObjectRoot,
    bounds: Arc<FileBounds>,
    store_url: ObjectStoreUrl,
    schema: SchemaRef,
    /// The columns of the data files.
    physical: SchemaRef,
    /// `physical`, and in the form with row positions two more columns, as in `schema`.
    scanned: TableSchema,
}

impl SnapshotProvider {
    /// A provider of the rows of a snapshot of the table, which is settled before the plan runs. Hidden columns are included only
    /// on request: `*` never means them.
    ///
    /// # Errors
    /// If object stores don't accept a data file's path.
    pub fn new(
        table: &Table,
        snapshot: Arc<Snapshot>,
        with_hidden: bool,
        store_url: ObjectStoreUrl,
    ) -> Result<Self> {
        let schema = metadata::table_schema(&snapshot.def, with_hidden);
        Self::of_snapshot(table, snapshot, schema, store_url)
    }

    /// A provider of the rows of the snapshot's data files; the columns [`FILE_COLUMN`] and [`ROW_COLUMN`] contain their
    /// positions. The memtable is omitted.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_places(table: &Table, snapshot: &Snapshot, store_url: ObjectStoreUrl) -> Result<Self> {
        let files_only = Snapshot { memtable: Vec::new(), ..snapshot.clone() };
        let schema = metadata::table_schema(&snapshot.def, false);
        let provider = Self::of_snapshot(table, Arc::new(files_only), schema, store_url)?;
        let scanned = with_places(&provider.physical);
        let mut fields = provider.schema.fields().to_vec();
        let place = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
        fields.extend([FILE_COLUMN, ROW_COLUMN].map(place));
        Ok(Self { schema: Arc::new(Schema::new(fields)), scanned, ..provider })
    }

    fn of_snapshot(
        table: &Table,
        snapshot: Arc<Snapshot>,
        schema: SchemaRef,
        store_url: ObjectStoreUrl,
    ) -> Result<Self> {
        let root = table.object_root().map_err(external)?;
        let bounds = table.bounds_of(&snapshot);
        let physical = physical(&snapshot, &schema);
        let scanned = TableSchema::from(&physical);
        let finder = table.key_finder(&snapshot);
        let with_deletions = false;
        Ok(Self { snapshot, finder, with_deletions, root, bounds, store_url, schema, physical, scanned })
    }

    /// The provider that shows rows that delete, or does not, as long as they are in memory.
    #[must_use]
    pub fn with_deletions(self, with_deletions: bool) -> Self {
        Self { with_deletions, ..self }
    }

    /// By what a plan's scans of this table are known.
    ///
    /// # Errors
    /// The table's root or the memtable has no proper form.
    pub fn traits(&self) -> Result<ScanTraits> {
        let paths = self.snapshot.files.iter().map(|file| self.root.path_of(&file.file).map_err(external));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let arrays = self.snapshot.memtable.iter().map(|part| part.live_batch().map_err(external));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let name = format!("{}.{}", self.snapshot.def.db, self.snapshot.def.name);
        let arrays = arrays.iter().flat_map(RecordBatch::columns).cloned().collect();
        Ok(ScanTraits { name, columns: Arc::clone(&self.schema), paths, arrays })
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.snapshot.rows()
    }

    /// The estimates of a column, by its position, from data files; none if most rows are in memory.
    #[must_use]
    pub fn estimate(&self, column: usize) -> ColumnStatistics {
        let files = &self.snapshot.files;
        let is_known = files.len() <= estimates::FILES_MAX
            && self.snapshot.memtable_rows() * 2 <= self.snapshot.rows()
            && column < self.physical.fields().len();
        match is_known {
            true => {
                estimates::of_column(&self.snapshot, &self.bounds, self.physical.field(column).name(), None)
            }
            false => ColumnStatistics::new_unknown(),
        }
    }

    /// The positions of the columns to read, in order.
    fn columns(&self, projection: Option<&Vec<usize>>) -> Vec<usize> {
        projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect())
    }

    /// The rows of the memtable.
    fn memory(&self, columns: &[usize], schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        self.snapshot
            .memtable
            .iter()
            .map(|part| {
                let batch = if self.with_deletions { part.kept_batch() } else { part.live_batch() };
                let batch = batch.map_err(external)?;
                let arrays = columns.iter().map(|&column| Arc::clone(batch.column(column))).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
            })
            .collect()
    }

    /// The files that may have rows that pass the filters, and the candidate rows, if known.
    async fn wanted(
        &self,
        filters: &[Expr],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Vec<(usize, Option<RowSet>)>> {
        let kept = pruning::kept(&self.snapshot, &self.bounds, &self.physical, predicate)?;
        let keys = self.finder.as_ref().zip(point::keys(&self.snapshot.def.schema, filters));
        let Some((finder, keys)) = keys.filter(|_| !kept.is_empty()) else {
            return Ok(kept.into_iter().map(|file| (file, None)).collect());
        };
        let files: Vec<_> = kept.iter().map(|&file| self.snapshot.files[file].clone()).collect();
        let found = finder.find(&files, &keys).await;
        let found = found.map_err(external)?;
        let has_some = |rows: &Option<RowSet>| rows.as_ref().is_none_or(|rows| !rows.is_empty());
        Ok(kept.into_iter().zip(found).filter(|(_, rows)| has_some(rows)).collect())
    }

    async fn files(
        &self,
        state: &dyn Session,
        columns: &[usize],
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let predicate = self.physical_predicate(state, filters)?;
        let wanted = self.wanted(filters, predicate.as_ref()).await?;
        if self.travels(state) {
            return self.travelling(state, columns, wanted, predicate).await;
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        // Deleted rows are left out behind the reader where it has to read nearly all rows anyway.
        let has_few_deletes = |(file, rows): &(usize, Option<RowSet>)| {
            rows.is_none() && pages::has_few_deletes(&self.snapshot.files[*file])
        };
        let is_behind = self.scanned.table_partition_cols().is_empty()
            && wanted.iter().any(has_few_deletes)
            && pages::takes_nearly_all(&self.snapshot, &self.bounds, &self.physical, predicate.as_ref());
        let left: Option<Left> = is_behind.then(|| {
            let mut left = vec![None; self.snapshot.files.len()];
            for (file, _) in wanted.iter().filter(|file| has_few_deletes(file)) {
                let live = &self.snapshot.files[*file];
                let deletes = live.deletes.as_ref();
                left[*file] = deletes.map(|deletes| deletes.left(live.file.rows).clone());
            }
            left.into()
        });
        let paths = self.paths(&wanted)?;
        let scanned = if left.is_some() { with_places(&self.physical) } else { self.scanned.clone() };
        let mut source = ParquetSource::new(scanned.clone())
            .with_table_parquet_options(state.table_options().parquet.clone())
            .with_parquet_file_reader_factory(Arc::new(self.readers(state, &paths)?));
        if left.is_some() {
            source = source.with_enable_page_index(false);
        }
        if let Some(predicate) = predicate {
            source = source.with_predicate(predicate);
        }
        let count: u64 = wanted.iter().map(|(file, rows)| self.count(*file, rows.as_ref())).sum();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let read: Vec<usize> = wanted.iter().map(|(file, _)| *file).collect();
        let mut statistics = Statistics::new_unknown(scanned.table_schema());
        let known = &mut statistics.column_statistics;
        estimates::fill(known, &self.snapshot, &self.bounds, &self.physical, &read, columns);
        let mut columns = columns.to_vec();
        if left.is_some() {
            columns.extend([self.physical.fields().len(), self.physical.fields().len() + 1]);
        } else {
            statistics.num_rows = Precision::Exact(count);
        }
        let config = FileScanConfigBuilder::new(self.store_url.clone(), Arc::new(source))
            .with_file_groups(self.groups(
                wanted,
                &paths,
                left.as_ref(),
                &scanned,
                state.config().target_partitions(),
            ))
            .with_statistics(statistics)
            .with_projection_indices(Some(columns))?
            .with_limit(limit.filter(|_| left.is_none()))
            .with_expr_adapter(Some(Arc::new(grown::Grown)))
            .build();
        let files = DataSourceExec::from_data_source(config);
        Ok(Some(match left {
            Some(left) => Arc::new(LiveRows::new(files, left, count)?),
            None => files,
        }))
    }

    /// Whether the scan is to be in a form that other nodes can read.
    fn travels(&self, state: &dyn Session) -> bool {
        version_files::travels(state.config_options()) && self.scanned.table_partition_cols().is_empty()
    }

    /// The files and the memtable in a form that other nodes can read.
    async fn travelling(
        &self,
        state: &dyn Session,
        columns: &[usize],
        wanted: Vec<(usize, Option<RowSet>)>,
        predicate: Option<Arc<dyn PhysicalExpr>>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let paths = self.paths(&wanted)?;
        let read: Vec<usize> = wanted.iter().map(|(file, _)| *file).collect();
        let physical = metadata::without_origin(&self.physical);
        let memory = self.memory(columns, &Arc::new(physical.project(columns)?))?;
        if read.is_empty() && memory.is_empty() {
            return Ok(None);
        }
        let live_rows: u64 = read.iter().map(|&file| self.snapshot.files[file].live_rows()).sum();
        let files = paths.iter().map(|(file, path)| {
            let live = &self.snapshot.files[*file];
            let deleted = live.deletes.as_ref().map(|deletes| deletes.rows().clone());
            (path.clone(), KnownFile { rows: live.file.rows, deleted, in_memory: None })
        });
        let mut files: HashMap<Path, KnownFile> = files.collect();
        let rows_in_memory = memory.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        let in_memory = (!memory.is_empty()).then(|| version_files::in_memory(memory));
        let in_memory = in_memory.map(|(part, known)| {
            files.insert(part.object_meta.location.clone(), known);
            part
        });
        let name = format!("{}.{}", self.snapshot.def.db, self.snapshot.def.name);
        let rows = live_rows + rows_in_memory;
        let version = Version { table: name, number: self.snapshot.delta_version, rows, files };
        let scanned = TableSchema::from(&physical);
        let mut statistics = Statistics::new_unknown(scanned.table_schema());
        let mut source =
            ParquetSource::new(scanned).with_table_parquet_options(state.table_options().parquet.clone());
        if let Some(predicate) = predicate {
            source = source.with_predicate(predicate);
        }
        let known = &mut statistics.column_statistics;
        estimates::fill(known, &self.snapshot, &self.bounds, &self.physical, &read, columns);
        let files = read.iter().map(|file| {
            let mut part =
                PartitionedFile::new(paths[file].as_ref(), self.snapshot.files[*file].size_bytes());
            part.object_meta.location = paths[file].clone();
            part
        });
        let mut pieces = pieces::cut(files.collect(), &self.readers(state, &paths)?).await?;
        pieces.extend(in_memory);
        let groups = version_files::in_parts(pieces, state.config().target_partitions());
        let config = FileScanConfigBuilder::new(self.store_url.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(Some(columns.to_vec()))?
            .build();
        Ok(Some(Arc::new(VersionFiles::new(DataSourceExec::from_data_source(config), Arc::new(version)))))
    }

    /// Readers of these files.
    fn readers(&self, state: &dyn Session, paths: &HashMap<usize, Path>) -> Result<CheckedReaders> {
        let rows = paths.iter().map(|(file, path)| (path.clone(), self.snapshot.files[*file].file.rows));
        CheckedReaders::new(state.runtime_env(), state.config(), self.store_url.clone(), rows.collect())
    }

    /// The paths of the files in the object store.
    fn paths(&self, wanted: &[(usize, Option<RowSet>)]) -> Result<HashMap<usize, Path>> {
        let path = |(file, _): &(usize, Option<RowSet>)| {
            let path = self.root.path_of(&self.snapshot.files[*file].file);
            Ok((*file, path.map_err(external)?))
        };
        wanted.iter().map(path).collect()
    }

    fn groups(
        &self,
        wanted: Vec<(usize, Option<RowSet>)>,
        paths: &HashMap<usize, Path>,
        left: Option<&Left>,
        scanned: &TableSchema,
        partitions: usize,
    ) -> Vec<FileGroup> {
        self.spread(wanted, partitions, |file, rows| {
            self.partitioned(file, &paths[&file], rows, left, scanned)
        })
    }

    /// Files spread over partitions by size, the largest first.
    fn spread(
        &self,
        mut wanted: Vec<(usize, Option<RowSet>)>,
        partitions: usize,
        part: impl Fn(usize, Option<&RowSet>) -> PartitionedFile,
    ) -> Vec<FileGroup> {
        let bytes = |file: usize| self.snapshot.files[file].size_bytes();
        let total: u64 = wanted.iter().map(|(file, _)| bytes(*file)).sum();
        let count =
            usize::try_from(total / SPLIT_BYTES + 1).unwrap_or(usize::MAX).clamp(1, partitions.max(1));
        let mut groups: Vec<(u64, Vec<PartitionedFile>)> = vec![(0, Vec::new()); count.min(wanted.len())];
        wanted.sort_by_key(|(file, _)| std::cmp::Reverse(bytes(*file)));
        for (file, rows) in wanted {
            if let Some(smallest) = groups.iter_mut().min_by_key(|(bytes, _)| *bytes) {
                smallest.0 += bytes(file);
                smallest.1.push(part(file, rows.as_ref()));
            }
        }
        groups.into_iter().map(|(_, files)| FileGroup::new(files)).collect()
    }

    /// How many rows of a file are read: these, or all that are live.
    fn count(&self, file: usize, rows: Option<&RowSet>) -> u64 {
        rows.map_or_else(|| self.snapshot.files[file].live_rows(), RowSet::len)
    }

    fn partitioned(
        &self,
        index: usize,
        path: &Path,
        rows: Option<&RowSet>,
        left: Option<&Left>,
        scanned: &TableSchema,
    ) -> PartitionedFile {
        let live = &self.snapshot.files[index];
        let mut part = PartitionedFile::new(path.as_ref(), live.size_bytes());
        part.object_meta.location = path.clone();
        let is_behind = left.is_some_and(|left| left[index].is_some());
        let count = if is_behind { live.file.rows } else { self.count(index, rows) };
        let mut statistics = Statistics::new_unknown(scanned.table_schema());
        statistics.num_rows = Precision::Exact(usize::try_from(count).unwrap_or(usize::MAX));
        part.statistics = Some(Arc::new(statistics));
        if !scanned.table_partition_cols().is_empty() {
            part.partition_values = vec![ScalarValue::Int64(i64::try_from(index).ok())];
        }
        match (rows, &live.deletes) {
            (Some(rows), _) => {
                part.with_extension(ParquetRowSelection::new(point::selection(rows, live.file.rows)))
            }
            (None, Some(deletes)) if !is_behind => {
                let left = deletes.left(live.file.rows).clone();
                part.with_extension(ParquetRowSelection::new(RowSelection::from_boolean_buffer(left)))
            }
            (None, _) => part,
        }
    }

    /// The filters over physical names.
    fn physical_predicate(
        &self,
        state: &dyn Session,
        filters: &[Expr],
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let filters = filters.iter().filter(|filter| !compares_columns(filter)).cloned();
        let Some(filter) = conjunction(filters) else { return Ok(None) };
        let filter = filter.transform_up(|expr| {
            Ok(match expr {
                Expr::Column(column) => {
                    let index = self.schema.index_of(&column.name)?;
                    Transformed::yes(Expr::Column(Column::new_unqualified(self.physical.field(index).name())))
                }
                other => Transformed::no(other),
            })
        })?;
        let schema = DFSchema::try_from(Arc::clone(&self.physical))?;
        state.create_physical_expr(filter.data, &schema).map(Some)
    }
}

#[async_trait::async_trait]
impl TableProvider for SnapshotProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Files are pruned by filters; rows are filtered above the scan.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = self.columns(projection);
        let schema = Arc::new(self.schema.project(&columns)?);
        let mut inputs = Vec::with_capacity(2);
        if let Some(files) = self.files(state, &columns, filters, limit).await? {
            inputs.push(renamed(files, &schema)?);
        }
        if !self.travels(state) {
            let batches = self.memory(&columns, &schema)?;
            if !batches.is_empty() {
                let source = MemorySourceConfig::try_new(&[batches], Arc::clone(&schema), None)?;
                inputs.push(DataSourceExec::from_data_source(source));
            }
        }
        if inputs.is_empty() {
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        UnionExec::try_new(inputs)
    }
}

/// The columns of data files, and two more for the position of each row: the file's number in the snapshot, and the row's index.
fn with_places(physical: &SchemaRef) -> TableSchema {
    let file: FieldRef = Arc::new(Field::new(FILE_COLUMN, DataType::Int64, false));
    let row = Field::new(ROW_COLUMN, DataType::Int64, false).with_extension_type(RowNumber);
    TableSchema::builder(Arc::clone(physical))
        .with_table_partition_cols(vec![file])
        .with_virtual_columns(vec![Arc::new(row)])
        .build()
}

/// `schema` with the names that data files have.
fn physical(snapshot: &Snapshot, schema: &SchemaRef) -> SchemaRef {
    let columns = metadata::table_columns(&snapshot.def, true);
    let fields = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, column)| field.as_ref().clone().with_name(&column.physical_name));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// `plan` with the columns' names and metadata of `schema`.
fn renamed(plan: Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let given = plan.schema();
    if given.fields().iter().zip(schema.fields()).all(|(given, wanted)| given.name() == wanted.name()) {
        return Ok(plan);
    }
    let columns = given.fields().iter().zip(schema.fields()).enumerate().map(|(index, (given, wanted))| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(PhysicalColumn::new(given.name(), index));
        (column, wanted.name().clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
}

/// The schema with lower-case names, for tests and temporary tables.
pub fn lower_case(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.extend(metadata::spelled(field.name()));
        Field::new(field.name().to_lowercase(), field.data_type().clone(), true).with_metadata(metadata)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
