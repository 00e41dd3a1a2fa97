//! The data files of one version of a table, less their deleted rows, and the rows that are in no file yet, in a form that other nodes can
//! read.
//!
//! A plan that travels has a scan of DataFusion's, whose files the planner divides among nodes, and above it a node of ours
//! that knows the deleted rows of each file. The scan alone would show them: they do not travel with it. So the scan is never run;
//! the node reads the files that it names, and refuses a file that it does not know.
//!
//! Rows that are in no file are one more file of the scan, whose contents the node has. So they are a piece like others: one task reads
//! it, and only that task gets the rows.
//!
//! Not here: who reads them where (`distributed`).

use super::grown::Grown;
use super::pieces::spread;
use super::reader::CheckedReaders;
use crate::workarounds::physical::pass_through::only_child;
use arrow::array::{BooleanBufferBuilder, RecordBatch};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::common::config::{ConfigExtension, ConfigOptions};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics, exec_err, extensions_options, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
};
use futures::StreamExt;
use object_store::path::Path;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tributary_table::{RowSet, rows_from_text, rows_to_text};

/// The form of the node's bytes; nodes with another one do not understand each other.
const FORMAT: u32 = 2;
/// Parts that a scan has at least: a plan over several parts puts them together wherever it has to, however they are divided
/// among nodes.
const PARTS_MIN: usize = 2;
/// The name of the part of a scan that is no file.
const IN_MEMORY: &str = "rows-in-no-file";

extensions_options! {
    /// Whether scans are in a form that can travel, as an option of DataFusion.
    pub struct Travels {
        /// They are.
        pub is_on: bool, default = false
    }
}

impl ConfigExtension for Travels {
    const PREFIX: &'static str = "tributary_travels";
}

/// Whether scans are to be in a form that can travel.
#[must_use]
pub fn travels(options: &ConfigOptions) -> bool {
    options.extensions.get::<Travels>().is_some_and(|travels| travels.is_on)
}

/// A data file of a version.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownFile {
    /// Deleted ones included.
    pub rows: u64,
    /// `None`: no row is deleted.
    pub deleted: Option<RowSet>,
    /// The rows of the part of the scan that is no file.
    pub in_memory: Option<Vec<RecordBatch>>,
}

/// The data files of a version of a table, or some of them.
#[derive(Debug, PartialEq)]
pub struct Version {
    /// With its database.
    pub table: String,
    /// Its number in the Delta log.
    pub number: i64,
    /// How many rows are live.
    pub rows: u64,
    pub files: HashMap<Path, KnownFile>,
}

/// The node; see the module.
#[derive(Debug)]
pub struct VersionFiles {
    /// A scan of data files.
    input: Arc<dyn ExecutionPlan>,
    version: Arc<Version>,
    properties: Arc<PlanProperties>,
    /// The scan that is run. One for all parts, which share its work.
    reading: Mutex<Option<Arc<Reading>>>,
}

impl VersionFiles {
    /// The live rows of the files that `input` scans.
    #[must_use]
    pub fn new(input: Arc<dyn ExecutionPlan>, version: Arc<Version>) -> Self {
        let known = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            known.partitioning.clone(),
            known.emission_type,
            known.boundedness,
        );
        let properties = Arc::new(properties.with_scheduling_type(known.scheduling_type));
        Self { input, version, properties, reading: Mutex::new(None) }
    }

    /// The version whose files it reads.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The scan of DataFusion's.
    fn scan(&self) -> Result<&FileScanConfig> {
        let source = self.input.downcast_ref::<DataSourceExec>();
        match source.and_then(|source| source.data_source().downcast_ref::<FileScanConfig>()) {
            Some(scan) => Ok(scan),
            None => internal_err!("{} is above a scan of files, not {}", self.name(), self.input.name()),
        }
    }

    fn known(&self, file: &Path) -> Result<&KnownFile> {
        match self.version.files.get(file) {
            Some(known) => Ok(known),
            None => exec_err!(
                "the data file {file} is not one of version {} of {}: its deleted rows are not known",
                self.version.number,
                self.version.table
            ),
        }
    }

    /// The scan with deletions, checks of pages, and values for columns that files lack, and the rows that are in no file.
    fn read(&self, context: &TaskContext) -> Result<Reading> {
        let scan = self.scan()?;
        let Some(source) = scan.file_source().downcast_ref::<ParquetSource>() else {
            return internal_err!("the files of a table are Parquet files");
        };
        let mut rows = HashMap::with_capacity(self.version.files.len());
        let mut groups = Vec::with_capacity(scan.file_groups.len());
        // A file may be here in several pieces.
        let mut lefts: HashMap<&Path, ParquetRowSelection> = HashMap::new();
        let mut in_memory = vec![Vec::new(); scan.file_groups.len()];
        for (part, group) in scan.file_groups.iter().enumerate() {
            let mut files = Vec::with_capacity(group.len());
            for file in group.iter() {
                let path = &file.object_meta.location;
                let known = self.known(path)?;
                if let Some(batches) = &known.in_memory {
                    // Like a row group, they are of the piece with their first byte: DataFusion may cut any file.
                    if file.range().0 == 0 {
                        in_memory[part].extend(batches.iter().cloned());
                    }
                    continue;
                }
                rows.insert(path.clone(), known.rows);
                files.push(match &known.deleted {
                    Some(deleted) => {
                        let left = lefts.entry(path).or_insert_with(|| live(deleted, known.rows));
                        file.clone().with_extension(left.clone())
                    }
                    None => file.clone(),
                });
            }
            groups.push(FileGroup::new(files));
        }
        let (runtime, config) = (context.runtime_env(), context.session_config());
        let readers = CheckedReaders::new(&runtime, config, scan.object_store_url.clone(), rows)?;
        let source = source.clone().with_parquet_file_reader_factory(Arc::new(readers));
        let config = FileScanConfigBuilder::from(scan.clone())
            .with_source(Arc::new(source))
            .with_file_groups(groups)
            .with_expr_adapter(Some(Arc::new(Grown)))
            .build();
        Ok(Reading { files: DataSourceExec::from_data_source(config), in_memory })
    }

    /// Writes the node without its input, with the files of its input only.
    ///
    /// # Errors
    /// The input scans a file that is not known.
    pub fn encode(&self, into: &mut Vec<u8>) -> Result<()> {
        let mut files = HashMap::new();
        for file in self.scan()?.file_groups.iter().flat_map(FileGroup::iter) {
            let path = &file.object_meta.location;
            let known = self.known(path)?;
            let deleted = known.deleted.as_ref().map(rows_to_text);
            let in_memory = known.in_memory.as_deref().map(|batches| self.batches_to_text(batches));
            let in_memory = in_memory.transpose()?;
            files.insert(path.to_string(), SentFile { rows: known.rows, deleted, in_memory });
        }
        let Version { table, number, rows, .. } = &*self.version;
        let sent = Sent { format: FORMAT, table: table.clone(), version: *number, rows: *rows, files };
        serde_json::to_writer(into, &sent).map_err(|error| DataFusionError::External(Box::new(error)))
    }

    fn batches_to_text(&self, batches: &[RecordBatch]) -> Result<String> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema())?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        Ok(STANDARD.encode(writer.into_inner()?))
    }

    /// Reads what [`Self::encode`] has written, above `input`.
    ///
    /// # Errors
    /// The bytes have another form, or `input` scans anything but files that they tell of.
    pub fn decode(bytes: &[u8], input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let damaged = |what: String| {
            DataFusionError::Execution(format!("the part of a plan from another node: {what}"))
        };
        let sent: Sent = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if sent.format != FORMAT {
            return Err(damaged(format!("its form is {}, and {FORMAT} is known", sent.format)));
        }
        let mut files = HashMap::with_capacity(sent.files.len());
        for (path, file) in sent.files {
            let name = Path::parse(&path).map_err(|error| damaged(error.to_string()))?;
            let deleted = file
                .deleted
                .map(|text| rows_from_text(&text).map_err(|error| damaged(format!("{path}: {error}"))));
            let in_memory = file.in_memory.map(|text| batches_from_text(&text, file.rows).map_err(damaged));
            let (deleted, in_memory) = (deleted.transpose()?, in_memory.transpose()?);
            files.insert(name, KnownFile { rows: file.rows, deleted, in_memory });
        }
        let version = Version { table: sent.table, number: sent.version, rows: sent.rows, files };
        let node = Self::new(input, Arc::new(version));
        for file in node.scan()?.file_groups.iter().flat_map(FileGroup::iter) {
            node.known(&file.object_meta.location)?;
        }
        Ok(node)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    format: u32,
    table: String,
    version: i64,
    rows: u64,
    files: HashMap<String, SentFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentFile {
    rows: u64,
    /// In base64.
    deleted: Option<String>,
    /// A stream of Arrow's IPC format in base64.
    in_memory: Option<String>,
}

/// The scan that is run.
#[derive(Debug)]
struct Reading {
    files: Arc<dyn ExecutionPlan>,
    /// By part, the rows that are in no file.
    in_memory: Vec<Vec<RecordBatch>>,
}

/// Rows that are in no file, as a part of a scan.
pub(super) fn in_memory(batches: Vec<RecordBatch>) -> (PartitionedFile, KnownFile) {
    let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    let part = PartitionedFile::new(IN_MEMORY, bytes as u64);
    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    (part, KnownFile { rows, deleted: None, in_memory: Some(batches) })
}

fn batches_from_text(text: &str, rows: u64) -> Result<Vec<RecordBatch>, String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let reader = StreamReader::try_new(&bytes[..], None).map_err(|error| error.to_string())?;
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    match found as u64 == rows {
        true => Ok(batches),
        false => Err(format!("it has {found} rows in memory instead of {rows}")),
    }
}

/// The rows of a file that are not deleted.
fn live(deleted: &RowSet, rows: u64) -> ParquetRowSelection {
    let count = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut left = BooleanBufferBuilder::new(count);
    left.append_n(count, true);
    for row in deleted.iter().take_while(|row| *row < rows) {
        left.set_bit(row as usize, false);
    }
    ParquetRowSelection::new(RowSelection::from_boolean_buffer(left.finish()))
}

/// Pieces of files in parts, which are at least [`PARTS_MIN`].
pub(super) fn in_parts(pieces: Vec<PartitionedFile>, parts: usize) -> Vec<FileGroup> {
    spread(pieces, 1, parts.max(PARTS_MIN)).into_iter().flatten().collect()
}

impl DisplayAs for VersionFiles {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { table, number, files, .. } = &*self.version;
        let deleted = files.values().filter(|file| file.deleted.is_some()).count();
        let in_memory = files.values().filter(|file| file.in_memory.is_some());
        let rows: u64 = in_memory.clone().map(|file| file.rows).sum();
        let files = files.len() - in_memory.count();
        write!(f, "{}: {table}, version {number}, files {files}, with deleted rows {deleted}", self.name())?;
        if rows > 0 {
            write!(f, ", rows in no file {rows}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for VersionFiles {
    fn name(&self) -> &'static str {
        "VersionFiles"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // No sort moves down between the node and its scan.
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
        Ok(Arc::new(Self::new(input, Arc::clone(&self.version))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut reading = self.reading.lock();
        let plan = match &*reading {
            Some(plan) => Arc::clone(plan),
            None => Arc::clone(reading.insert(Arc::new(self.read(&context)?))),
        };
        drop(reading);
        let files = plan.files.execute(partition, context)?;
        let in_memory = &plan.in_memory[partition];
        if in_memory.is_empty() {
            return Ok(files);
        }
        let in_memory = futures::stream::iter(in_memory.clone().into_iter().map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), in_memory.chain(files))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.reading.lock().as_ref().and_then(|reading| reading.files.metrics())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        // Nothing is answered from them: the scan knows of no deletions.
        let mut statistics = match inputs {
            [input] => Statistics::clone(input).to_inexact(),
            _ => Statistics::new_unknown(&self.schema()),
        };
        statistics.num_rows = match args.partition() {
            None => Precision::Inexact(usize::try_from(self.version.rows).unwrap_or(usize::MAX)),
            Some(_) => Precision::Absent,
        };
        Ok(Arc::new(statistics))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::{cut, cut_at, divided};
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::SchemaRef;
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::properties::WriterProperties;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::SessionContext;
    use datafusion_proto::bytes::{
        physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
    };
    use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
    use object_store::memory::InMemory;
    use object_store::{ObjectStoreExt, PutPayload};

    const ROWS: i64 = 1000;
    const GROUP_ROWS: usize = 100;

    /// Writes and reads the node.
    #[derive(Debug)]
    struct Codec;

    impl PhysicalExtensionCodec for Codec {
        fn try_decode(
            &self,
            bytes: &[u8],
            inputs: &[Arc<dyn ExecutionPlan>],
            _: &TaskContext,
            _: &dyn PhysicalProtoConverterExtension,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(Arc::new(VersionFiles::decode(bytes, Arc::clone(&inputs[0]))?))
        }

        fn try_encode(
            &self,
            node: Arc<dyn ExecutionPlan>,
            into: &mut Vec<u8>,
            _: &dyn PhysicalProtoConverterExtension,
        ) -> Result<()> {
            node.downcast_ref::<VersionFiles>().unwrap().encode(into)
        }
    }

    /// A file of the numbers below [`ROWS`], in row groups of [`GROUP_ROWS`], in a store, and a scan of it that leaves out the even ones in DataFusion's way.
    async fn scanned(path: &Path) -> (SessionContext, Arc<dyn ExecutionPlan>, KnownFile) {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let schema: SchemaRef = batch.schema();
        let options = WriterProperties::builder().set_max_row_group_row_count(Some(GROUP_ROWS)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(options)).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let store = Arc::new(InMemory::new());
        let size = bytes.len() as u64;
        store.put(path, PutPayload::from(bytes)).await.unwrap();
        let context = SessionContext::new();
        let url = ObjectStoreUrl::parse("memory://files").unwrap();
        context.register_object_store(url.as_ref(), store);
        let deleted: RowSet = (0..ROWS as u64).step_by(2).collect();
        let known = KnownFile { rows: ROWS as u64, deleted: Some(deleted.clone()), in_memory: None };
        let mut file = PartitionedFile::new(path.as_ref(), size).with_extension(live(&deleted, known.rows));
        file.object_meta.location = path.clone();
        let source = Arc::new(ParquetSource::new(schema));
        let config = FileScanConfigBuilder::new(url, source)
            .with_file_groups(vec![FileGroup::new(vec![file])])
            .build();
        (context, DataSourceExec::from_data_source(config), known)
    }

    async fn travelled(context: &SessionContext, plan: &Arc<dyn ExecutionPlan>) -> usize {
        let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(plan), &Codec).unwrap();
        let task = context.task_ctx();
        let plan = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &Codec).unwrap();
        rows(context, plan).await
    }

    async fn rows(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> usize {
        let batches = collect(plan, context.task_ctx()).await.unwrap();
        batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn version(path: &Path, known: KnownFile) -> Arc<Version> {
        let files = HashMap::from([(path.clone(), known)]);
        Arc::new(Version { table: "db.t".to_owned(), number: 7, rows: 500, files })
    }

    #[tokio::test]
    async fn a_scan_that_travels_alone_shows_deleted_rows_and_below_the_node_it_does_not() {
        let path = Path::parse("a b/%41=1/part.parquet").unwrap();
        let (context, scan, known) = scanned(&path).await;
        assert_eq!(rows(&context, Arc::clone(&scan)).await, 500);
        // This is why the node is needed. If it fails, DataFusion has learnt to send what it leaves out.
        assert_eq!(travelled(&context, &scan).await, 1000);
        let node: Arc<dyn ExecutionPlan> = Arc::new(VersionFiles::new(scan, version(&path, known)));
        assert_eq!(rows(&context, Arc::clone(&node)).await, 500);
        assert_eq!(travelled(&context, &node).await, 500);
    }

    /// How many live rows the parts of each task have.
    async fn rows_of_tasks(
        context: &SessionContext,
        scan: &FileScanConfig,
        version: &Arc<Version>,
        tasks: Vec<Vec<FileGroup>>,
    ) -> Vec<usize> {
        let mut counts = Vec::new();
        for groups in tasks {
            let scan = FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups).build();
            let scan = DataSourceExec::from_data_source(scan);
            let node: Arc<dyn ExecutionPlan> = Arc::new(VersionFiles::new(scan, Arc::clone(version)));
            counts.push(travelled(context, &node).await);
        }
        counts
    }

    #[tokio::test]
    async fn a_file_in_parts_has_each_live_row_once_and_row_groups_are_divided_evenly() {
        let path = Path::from("part.parquet");
        let (context, plan, known) = scanned(&path).await;
        let scan = plan.downcast_ref::<DataSourceExec>().unwrap();
        let scan = scan.data_source().downcast_ref::<FileScanConfig>().unwrap();
        let files: Vec<PartitionedFile> =
            scan.file_groups.iter().flat_map(FileGroup::iter).cloned().collect();
        let version = version(&path, known);
        let (runtime, url) = (context.runtime_env(), scan.object_store_url.clone());
        let rows = HashMap::from([(path, ROWS as u64)]);
        let readers = CheckedReaders::new(&runtime, &context.copied_config(), url, rows).unwrap();
        let pieces = cut(files.clone(), &readers).await.unwrap();
        assert_eq!(pieces.len(), ROWS as usize / GROUP_ROWS);
        for parts in [1, 2, 6] {
            let groups = in_parts(pieces.clone(), parts);
            assert_eq!(groups.len(), parts.max(PARTS_MIN));
            assert_eq!(rows_of_tasks(&context, scan, &version, vec![groups]).await, [500], "{parts}");
            for tasks in [1, 2, 3, 5, 11] {
                let shares = divided(pieces.clone(), tasks, parts);
                assert!(shares.len() == tasks && shares.iter().all(|groups| groups.len() == parts));
                let rows = rows_of_tasks(&context, scan, &version, shares).await;
                assert_eq!(rows.iter().sum::<usize>(), 500, "{tasks} tasks: {rows:?}");
                let [least, most] = [rows.iter().min().unwrap(), rows.iter().max().unwrap()];
                // The footer, which is as long as two row groups here, counts with the last one.
                assert!(most - least <= GROUP_ROWS, "{tasks} tasks: {rows:?}");
            }
        }
        // Whatever a footer says, each row is in one piece.
        let size = files[0].object_meta.size;
        for starts in
            [vec![], vec![4], vec![4, 7, 7, 900, size - 1, size, size + 9], (0..size).step_by(40).collect()]
        {
            let pieces = cut_at(&files[0], &starts, 0);
            let rows = rows_of_tasks(&context, scan, &version, divided(pieces, 3, 2)).await;
            assert_eq!(rows.iter().sum::<usize>(), 500, "{starts:?}: {rows:?}");
        }
    }

    #[tokio::test]
    async fn rows_that_are_in_no_file_are_of_one_piece_however_they_are_cut() {
        let path = Path::from("part.parquet");
        let (context, plan, known) = scanned(&path).await;
        let scan = plan.downcast_ref::<DataSourceExec>().unwrap();
        let scan = scan.data_source().downcast_ref::<FileScanConfig>().unwrap();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(5000..5010));
        let batch = RecordBatch::try_new(plan.schema(), vec![numbers]).unwrap();
        let (part, rows) = in_memory(vec![batch]);
        let files = HashMap::from([(path, known), (part.object_meta.location.clone(), rows)]);
        let version = Arc::new(Version { table: "db.t".to_owned(), number: 7, rows: 510, files });
        let size = part.object_meta.size;
        for starts in [vec![], vec![0, 1], vec![0, size / 2, size - 1], (0..size).step_by(7).collect()] {
            let cut = cut_at(&part, &starts, 0);
            let files = scan.file_groups.iter().flat_map(FileGroup::iter).cloned();
            let pieces: Vec<PartitionedFile> = cut.into_iter().chain(files).collect();
            for tasks in [1, 3] {
                // Not joined: the library's cuts come last.
                let shares = spread(pieces.clone(), tasks, 2);
                let rows = rows_of_tasks(&context, scan, &version, shares).await;
                assert_eq!(rows.iter().sum::<usize>(), 510, "{starts:?}: {rows:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_file_that_is_not_known_is_read_by_nobody() {
        let path = Path::from("part.parquet");
        let (context, scan, known) = scanned(&path).await;
        let other = version(&Path::from("other.parquet"), known.clone());
        let node = VersionFiles::new(Arc::clone(&scan), other);
        let error = node.encode(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("part.parquet is not one of version 7 of db.t"), "{error}");
        let error = collect(Arc::new(node), context.task_ctx()).await.unwrap_err().to_string();
        assert!(error.contains("its deleted rows are not known"), "{error}");
        let mut bytes = Vec::new();
        VersionFiles::new(Arc::clone(&scan), version(&path, known)).encode(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in [
            ("part.parquet", "gone.parquet"),
            ("\"format\":2", "\"format\":1"),
            ("\"deleted\"", "\"unknown\""),
            ("\"table\"", "\"more\":1,\"table\""),
        ] {
            assert!(text.contains(from), "{text}");
            let changed = text.replace(from, to);
            VersionFiles::decode(changed.as_bytes(), Arc::clone(&scan)).expect_err(to);
        }
    }
}
