//! Heavy schema changes: other types of columns, other key columns, another order of the keys.
//!
//! Data files are rewritten beside the existing ones, each file replacing one, while loads, flushes and deletions continue under
//! the old schema ([`Table::convert_files`]). When hardly any are left, the caller ensures that no more rows of the old schema
//! arrive, and [`Table::switch_schema`] converts the rest and writes ONE Delta entry: the new schema, all old files removed, all
//! new ones added. The change happens with that entry. It has the number of the change, by which a start recognises that the
//! catalog lags behind ([`crate::TableStore::last_schema_change`]).
//!
//! Rows that were already deleted when a file was converted are not in the new one; later deletions are carried over by position.

use crate::error::TableError;
use crate::file::{EncodedFile, FileReader, LiveFile, Made, RowSet, RunWriter, publish_names, sorted};
use crate::keys::Keys;
use crate::log::LogState;
use crate::table::change::light::mem_is_empty;
use crate::table::publish::settle::read_file_keys;
use crate::table::rewrite::commit::{Committed, FileSet, Goal, check_entry};
use crate::table::{Table, delta_version};
use crate::view::evolve::{civil_now_micros, default_array, fills_old_rows, mismatch};
use crate::view::schema::metadata_for;
use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::{DataType as ArrowType, Field, Schema, UInt32Type};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_types::change::{keeps_order, keeps_values};
use tributary_types::{ColumnDef, TableDef, TableSchema};

/// Name of the column that says where a row was before rows were sorted; `~` is in no column's name.
const PLACE: &str = "place~";

/// How often an entry in doubt is tried with a pause each, before there are more.
const QUICK_ATTEMPTS: u32 = 10;
const SLOW_PAUSES: u32 = 20;

/// Makes values of a column into values of its new type. The same values always give the same.
pub trait Recast: Send + Sync {
    /// # Errors
    /// A description of the value that can't be converted, for the user who requested the change.
    fn recast(&self, array: &ArrayRef, from: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, String>;
}

/// Observes a change and decides whether it continues.
pub trait Watch: Sync {
    /// Whether it should end as soon as it can.
    fn is_stopped(&self) -> bool;
    /// Whether it should end even if it is unknown whether the Delta log has it.
    fn leaves_doubt(&self) -> bool;
    /// Reports that it is unknown, for this reason, whether the Delta log has the change; it is retried.
    fn doubts(&self, _reason: &str) {}
    /// Waits a little before something that failed is tried again.
    fn pause(&self) -> futures::future::BoxFuture<'_, ()>;
}

/// A heavy schema change under way. Give it back with [`Table::abandon`] if it is not switched to.
pub struct SchemaChange {
    /// No other change of the table has this number.
    id: u64,
    from: Arc<TableSchema>,
    /// Its columns and keys count.
    to: Arc<TableDef>,
    recast: Arc<dyn Recast>,
    /// For the defaults of added columns.
    now_micros: i64,
    columns: Vec<Origin>,
    /// Rows of a file are not in the order of the new keys.
    sorts: bool,
    /// Files of the old schema can't be read unchanged.
    rewrites: bool,
    /// By the path of the file that is replaced.
    done: BTreeMap<String, Converted>,
    /// Files that were converted.
    pub converted: Arc<AtomicU64>,
}

/// The origin of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The place of the same column before.
    Column(usize),
    Added,
}

/// A file, and what takes its place.
struct Converted {
    /// As it was read.
    input: LiveFile,
    /// Rows that were left out.
    dropped: RowSet,
    /// For each row of the output its rank among the rows that were included; `None`: rows kept their order.
    order: Option<Vec<u32>>,
    /// `None`: no row was left.
    output: Option<LiveFile>,
}

impl SchemaChange {
    /// The number of the change.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether files are rewritten.
    #[must_use]
    pub fn rewrites(&self) -> bool {
        self.rewrites
    }

    /// The definition after the change of a table that has `current` now: loads may have made partitions meanwhile.
    #[must_use]
    pub fn result(&self, current: &TableDef) -> TableDef {
        changed_def(&self.to, current)
    }
}

/// Combines the columns, keys and properties of `to` with everything else of `current`.
#[must_use]
pub fn changed_def(to: &TableDef, current: &TableDef) -> TableDef {
    TableDef {
        db: current.db.clone(),
        name: current.name.clone(),
        partitioning: current.partitioning.clone(),
        drop_mark: current.drop_mark.clone(),
        location: current.location.clone(),
        ..to.clone()
    }
}

fn origins(from: &TableSchema, to: &TableSchema) -> Vec<Origin> {
    let origin = |column: &ColumnDef| from.index_of_id(column.id).map_or(Origin::Added, Origin::Column);
    to.columns.iter().map(origin).collect()
}

/// Whether rows in the order of the keys `from` are not in that of the keys `to`.
fn sorts(from: &TableSchema, to: &TableSchema, columns: &[Origin]) -> bool {
    let mut before = from.key_indices().into_iter();
    to.key_indices().into_iter().any(|key| match columns[key] {
        // One value for all rows.
        Origin::Added => false,
        Origin::Column(old) => {
            before.next() != Some(old) || !keeps_order(&from.columns[old], &to.columns[key])
        }
    })
}

fn rewrites(from: &TableSchema, to: &TableSchema, columns: &[Origin]) -> bool {
    to.columns.iter().zip(columns).any(|(column, origin)| match origin {
        Origin::Added => fills_old_rows(column),
        Origin::Column(old) => !keeps_values(&from.columns[*old].data_type, &column.data_type),
    })
}

impl Table {
    /// Begins the change `id` of the table's columns or keys to those of `to`. From now on the table's files are not compacted.
    ///
    /// # Errors
    /// Another change is under way ([`TableError::Changing`]); [`TableError::AddedColumnNeedsDefault`],
    /// [`TableError::BadDefault`], [`TableError::PhysicalNameReused`].
    pub async fn begin_schema_change(
        &self,
        id: u64,
        to: Arc<TableDef>,
        recast: Arc<dyn Recast>,
    ) -> Result<SchemaChange, TableError> {
        let from = Arc::clone(&self.def().schema);
        let columns = origins(&from, &to.schema);
        for (column, _) in to.schema.columns.iter().zip(&columns).filter(|(_, at)| **at == Origin::Added) {
            if !column.nullable && !fills_old_rows(column) {
                let (table, column) = (to.name.clone(), column.name.clone());
                return Err(TableError::AddedColumnNeedsDefault { table, column });
            }
            default_array(column, 1, civil_now_micros())?;
        }
        metadata_for(&to, Some(&self.lock_log().await?.metadata), false)?;
        if self.changing.swap(true, Ordering::AcqRel) {
            return Err(TableError::Changing { table: to.name.clone() });
        }
        let sorts = sorts(&from, &to.schema, &columns);
        Ok(SchemaChange {
            id,
            rewrites: sorts || rewrites(&from, &to.schema, &columns),
            sorts,
            columns,
            from,
            to,
            recast,
            now_micros: civil_now_micros(),
            done: BTreeMap::new(),
            converted: Arc::default(),
        })
    }

    /// Whether a heavy schema change is under way.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.changing.load(Ordering::Acquire)
    }

    /// Ends a change without a switch, and deletes its files.
    pub async fn abandon(&self, mut change: SchemaChange) {
        for replaced in std::mem::take(&mut change.done).into_values() {
            self.discard_live(replaced.output.as_slice()).await;
        }
        self.changing.store(false, Ordering::Release);
    }

    /// Flushes, and converts those data files that are not converted yet, one after another. Returns the bytes of the files that
    /// were converted: when they are few, it is time for [`Table::switch_schema`].
    ///
    /// # Errors
    /// [`TableError::Unconvertible`] names a value that the new type can't represent; [`TableError::Stopped`]; errors of reading
    /// and writing files.
    pub async fn convert_files(
        &self,
        change: &mut SchemaChange,
        watch: &dyn Watch,
    ) -> Result<u64, TableError> {
        self.flush().await?;
        if !change.rewrites {
            return Ok(0);
        }
        let files = {
            let state = self.lock_log().await?;
            self.forget_gone(change, &state).await;
            unconverted(change, &state)
        };
        self.convert(change, files, watch).await
    }

    /// How many of the table's files the change converts, including those already converted.
    #[must_use]
    pub fn files_to_convert(&self, change: &SchemaChange) -> u64 {
        if change.rewrites { self.snapshot().files.len() as u64 } else { 0 }
    }

    async fn convert(
        &self,
        change: &mut SchemaChange,
        files: Vec<LiveFile>,
        watch: &dyn Watch,
    ) -> Result<u64, TableError> {
        let mut bytes = 0;
        for live in files {
            if watch.is_stopped() {
                return Err(TableError::Stopped { table: change.to.name.clone() });
            }
            bytes += live.live_bytes();
            let replaced = self.replaced(change, live).await?;
            change.done.insert(replaced.input.path().to_owned(), replaced);
            change.converted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes)
    }

    /// Deletes the conversions of files that have left the table.
    async fn forget_gone(&self, change: &mut SchemaChange, state: &LogState) {
        let gone: Vec<String> =
            change.done.keys().filter(|path| !state.live.contains_key(*path)).cloned().collect();
        for path in gone {
            if let Some(replaced) = change.done.remove(&path) {
                self.discard_live(replaced.output.as_slice()).await;
            }
        }
    }

    /// Writes the file that takes the place of `live`.
    async fn replaced(&self, change: &SchemaChange, live: LiveFile) -> Result<Converted, TableError> {
        // Rows that delete others of a smaller sequence stay, deleted as they are.
        let left_out = match change.from.sequence {
            Some(_) => live.with_fewer_deletes(self.known_keys_of(&live).await?.deletions()),
            None => live.clone(),
        };
        let dropped = left_out.deletes.as_ref().map(|deletes| deletes.rows().clone()).unwrap_or_default();
        let file = EncodedFile::open(&self.root, &left_out).await?;
        let mut writer = RunWriter::in_place_of(&self.root, &change.to, &live);
        let order = match self.write_replaced(change, &file, &mut writer).await {
            Ok(order) => order,
            Err(error) => {
                writer.abort().await;
                return Err(error);
            }
        };
        let mut outputs: Vec<LiveFile> = writer.finish().await?.into_iter().map(LiveFile::from).collect();
        let written: u64 = outputs.iter().map(LiveFile::live_rows).sum();
        assert_eq!(written, left_out.live_rows(), "a conversion keeps every live row once");
        assert!(outputs.len() <= 1, "one file takes the place of one");
        let output = outputs.pop();
        if let (Some(_), Some(output)) = (&self.unique, &output) {
            // They are stored for their first use.
            drop(read_file_keys(&self.root, output, &change.to.schema).await?);
        }
        Ok(Converted { input: live, dropped, order, output })
    }

    /// Writes all row groups. Returns the order of the rows if it has changed.
    async fn write_replaced(
        &self,
        change: &SchemaChange,
        file: &EncodedFile,
        writer: &mut RunWriter,
    ) -> Result<Option<Vec<u32>>, TableError> {
        let mut order = change.sorts.then(Vec::new);
        for row_group in file.row_groups() {
            let copied = match change.sorts {
                true => vec![None; change.columns.len()],
                false => change.copyable(writer.copyable(file, row_group)?),
            };
            let made: Vec<usize> = (0..copied.len()).filter(|column| copied[*column].is_none()).collect();
            let read = change.read_schema(&made);
            let mut reader = FileReader::new(file, vec![row_group], &read, change.now_micros)?;
            let mut batches = Vec::new();
            while let Some(batch) = reader.next().await? {
                batches.push(change.made(&batch, &read, &made, file.name())?);
            }
            if let Some(order) = &mut order {
                batches = in_order(batches, &change.to.schema.key_indices(), order)?;
            }
            writer.replace(Made { columns: made, batches }, file, row_group, &copied).await?;
        }
        Ok(order)
    }

    /// Converts the rest, makes the change in the Delta log, and publishes it. When this is called, no row may be under way that
    /// the log does not have, and none may arrive before the catalog has the returned definition. Another writer and deletions
    /// are permitted meanwhile.
    ///
    /// # Errors
    /// As [`Table::convert_files`], and [`TableError::Busy`]: nothing has changed, and it may be tried again or abandoned. While it
    /// is not known whether the log has the entry, it is tried again; only if it is stopped then, that is an error
    /// ([`TableError::Unsure`]), and the next start of the server finds out.
    pub async fn switch_schema(
        &self,
        change: &mut SchemaChange,
        watch: &dyn Watch,
    ) -> Result<Arc<TableDef>, TableError> {
        let mut state = self.lock_log().await?;
        loop {
            self.flush_locked(&mut state, None).await?;
            if change.rewrites {
                self.forget_gone(change, &state).await;
                let files = unconverted(change, &state);
                self.convert(change, files, watch).await?;
            }
            if !mem_is_empty(&self.snapshot()) || self.unflushed.lock().pending().is_some() {
                return Err(TableError::Busy { table: change.to.name.clone() });
            }
            let def = Arc::new(change.result(&self.def()));
            let mut files = change.files(&state);
            let stored = self.store_deletes(&mut files).await?;
            let inputs: Vec<LiveFile> = match change.rewrites {
                true => state.live.values().cloned().collect(),
                false => Vec::new(),
            };
            let committed =
                self.commit_surely(&mut state, change.id, inputs, &def, files.clone(), watch).await;
            self.show_stored(&stored, false);
            if committed? == Committed::Void {
                // Another writer has changed files.
                continue;
            }
            publish_names(&self.root, files.keys().map(String::as_str));
            // Files whose rows are all deleted.
            let unused = change.done.values().filter_map(|replaced| replaced.output.clone());
            let unused: Vec<_> = unused.filter(|output| !files.contains_key(output.path())).collect();
            self.discard_live(&unused).await;
            // Not before: what another engine has written is taken in with the keys.
            let mut keys = match &self.unique {
                Some(unique) => Some(unique.keys.lock().await),
                None => None,
            };
            self.show_changed(change.rewrites, &def, &state);
            if let Some(keys) = &mut keys {
                **keys = Keys::default();
            }
            drop(keys);
            change.done.clear();
            self.changing.store(false, Ordering::Release);
            self.checkpoint_if_due(&mut state).await;
            return Ok(def);
        }
    }

    /// Writes the entry of the change with the number `id`, until it is known whether the log has it.
    ///
    /// # Errors
    /// [`TableError::Unsure`]; and there can't be such an entry: nothing was written.
    pub(in crate::table) async fn commit_surely(
        &self,
        state: &mut LogState,
        id: u64,
        inputs: Vec<LiveFile>,
        def: &Arc<TableDef>,
        files: FileSet,
        watch: &dyn Watch,
    ) -> Result<Committed, TableError> {
        let goal = |state: &LogState| Goal {
            operation: "ALTER TABLE",
            parameters: Vec::new(),
            def: Arc::clone(def),
            files: files.clone(),
            version: state.app_version,
            data_change: true,
            inputs: inputs.clone(),
            change: Some(id),
            completes_drop: true,
        };
        check_entry(state, &goal(state))?;
        for attempt in 1_u32.. {
            let goal = goal(state);
            match self.commit(state, goal).await {
                Err(error) if watch.leaves_doubt() => {
                    let (table, reason) = (def.name.clone(), error.to_string());
                    return Err(TableError::Unsure { table, reason });
                }
                Err(error) => {
                    tracing::warn!(table = def.name, %error, "whether the Delta log has the change is not known; it is tried again");
                    watch.doubts(&error.to_string());
                    let pauses = if attempt < QUICK_ATTEMPTS { 1 } else { SLOW_PAUSES };
                    for _ in (0..pauses).filter(|_| !watch.leaves_doubt()) {
                        watch.pause().await;
                    }
                }
                known => return known,
            }
        }
        unreachable!("it is tried until it is known")
    }

    pub(in crate::table) fn show_changed(
        &self,
        has_other_files: bool,
        def: &Arc<TableDef>,
        state: &LogState,
    ) {
        let mut unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        unflushed.epoch += 1;
        unflushed.log_behind = false;
        unflushed.dropping = None;
        self.swap(&current, |next| {
            next.def = Arc::clone(def);
            next.schema = def.schema.arrow();
            if has_other_files {
                next.files = Arc::new(state.live.values().cloned().collect());
            }
            next.delta_version = delta_version(state);
        });
    }
}

/// Logged files that are not converted yet.
fn unconverted(change: &SchemaChange, state: &LogState) -> Vec<LiveFile> {
    let is_left = |live: &&LiveFile| !change.done.contains_key(live.path());
    state.live.values().filter(is_left).cloned().collect()
}

impl SchemaChange {
    /// The copyable columns whose values do not change.
    fn copyable(&self, mut copied: Vec<Option<Vec<usize>>>) -> Vec<Option<Vec<usize>>> {
        for (place, copied) in copied.iter_mut().enumerate() {
            let stays = match self.columns[place] {
                Origin::Added => false,
                Origin::Column(old) => {
                    keeps_values(&self.from.columns[old].data_type, &self.to.schema.columns[place].data_type)
                }
            };
            *copied = copied.take().filter(|_| stays);
        }
        copied
    }

    /// The columns of the old schema from which these columns are made.
    fn read_schema(&self, made: &[usize]) -> Arc<TableSchema> {
        let old = |place: &usize| match self.columns[*place] {
            Origin::Column(old) => Some(self.from.columns[old].clone()),
            Origin::Added => None,
        };
        Arc::new(TableSchema {
            columns: made.iter().filter_map(old).collect(),
            ..TableSchema::clone(&self.from)
        })
    }

    /// Makes these columns from rows with the columns of `read`.
    fn made(
        &self,
        rows: &RecordBatch,
        read: &TableSchema,
        made: &[usize],
        file: &str,
    ) -> Result<RecordBatch, TableError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(made.len());
        let mut fields = Vec::with_capacity(made.len());
        for place in made {
            let column = &self.to.schema.columns[*place];
            arrays.push(match read.index_of_id(column.id) {
                Some(old) => {
                    let recast = self.recast.recast(rows.column(old), &read.columns[old], column);
                    recast.map_err(|reason| TableError::Unconvertible { reason, file: file.to_owned() })?
                }
                None => default_array(column, rows.num_rows(), self.now_micros)?,
            });
            fields.push(Field::new(&column.name, column.data_type.to_arrow(), column.nullable));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| mismatch(&self.to.name, &self.to.schema, error.to_string()))
    }

    /// All files of the table after the change, with those rows deleted that are deleted now.
    fn files(&self, state: &LogState) -> FileSet {
        if !self.rewrites {
            return state.live.clone();
        }
        let mut files = FileSet::new();
        for live in state.live.values() {
            let replaced = &self.done[live.path()];
            let Some(output) = &replaced.output else { continue };
            let output = output.with_more_deletes(&replaced.carried(live));
            // Rows that delete are of use although they are deleted.
            if output.live_rows() > 0 || self.from.sequence.is_some() {
                files.insert(output.path().to_owned(), output);
            }
        }
        files
    }
}

impl Converted {
    /// The rows of the output that are deleted in the input now.
    fn carried(&self, now: &LiveFile) -> RowSet {
        let Some(deletes) = &now.deletes else { return RowSet::new() };
        let gone = deletes.rows() - &self.dropped;
        let ranks = gone.iter().map(|row| row - self.dropped.rank(row));
        let Some(order) = &self.order else { return ranks.collect() };
        let mut places = vec![0_u64; order.len()];
        for (place, rank) in (0..).zip(order) {
            places[*rank as usize] = place;
        }
        ranks.map(|rank| places[usize::try_from(rank).unwrap_or(usize::MAX)]).collect()
    }
}

/// The rows in the order of the keys; adds to `order` where each was among all rows of the file.
fn in_order(
    batches: Vec<RecordBatch>,
    keys: &[usize],
    order: &mut Vec<u32>,
) -> Result<Vec<RecordBatch>, TableError> {
    let failed = || TableError::arrow("sorting rows by new key columns");
    let mut next = u32::try_from(order.len()).unwrap_or(u32::MAX);
    let mut numbered = Vec::with_capacity(batches.len());
    for batch in batches {
        let end = next + u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
        let mut fields = batch.schema().fields().to_vec();
        fields.push(Arc::new(Field::new(PLACE, ArrowType::UInt32, false)));
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(UInt32Array::from_iter_values(next..end)));
        numbered.push(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(failed())?);
        next = end;
    }
    let mut rows = Vec::with_capacity(numbered.len());
    for mut batch in sorted(numbered, keys)? {
        let places = batch.remove_column(batch.num_columns() - 1);
        order.extend(places.as_primitive::<UInt32Type>().values());
        rows.push(batch);
    }
    Ok(rows)
}
