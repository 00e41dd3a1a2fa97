//! Folding rows: reads the existing values of keys, and combines them with newer rows into one row for each key.
//!
//! Many rows are made in pieces of some keys, so that the memory of a piece is all that it takes. Rows that are many together go to data
//! files at once, which the snapshot shows and no log has yet.
//!
//! Invariant: a folded row replaces all rows that it was made of in one swap of the snapshot. Nothing of it is in the write-ahead
//! log, which has the original rows: after a replay they are folded again, in the same order.

use crate::error::{TableError, blocking};
use crate::file::{EncodedFile, FileReader, LiveFile, RunWriter, UnpublishedFiles};
use crate::keys::{Folder, Keys, Limits, Marks, Plan, Source, Step, Work};
use crate::table::Table;
use crate::table::publish::publication::fit;
use crate::table::publish::settle::{Found, WithKeys, on_a_thread};
use crate::view::evolve::{civil_now_micros, default_array};
use crate::view::memtable::{MemPart, batch_bytes};
use crate::view::snapshot::Snapshot;
use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::Schema;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{ColumnDef, TableSchema, host};

const DOING: &str = "folding rows of equal keys";
/// Derived rows go to data files at once when they are as many as this many memtables.
const MEMTABLES_IN_MEMORY: u64 = 4;
/// Limits of a simulation, whose rows are few and small.
const SIMULATED_PIECE_ROWS: u64 = 3;
const SIMULATED_PIECE_BYTES: u64 = 2 * 1024;
const SIMULATED_MEMORY_BYTES: u64 = 1024;

/// Rows of `schema` that others were folded into.
pub(in crate::table) struct Derived {
    schema: Arc<TableSchema>,
    /// The arrival number of the first row in memory; the others follow without gaps.
    first_row: u64,
    batches: Vec<RecordBatch>,
    /// All rows, instead of those in memory.
    pub(in crate::table) files: Vec<WithKeys>,
    /// Keeps the files from the sweep until the snapshot has them.
    _unpublished: Option<UnpublishedFiles>,
}

impl Derived {
    /// How many rows there are in memory.
    pub(in crate::table) fn rows_in_memory(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }

    /// The rows in memory as parts of the snapshot that is shown now, which may have another schema than the one that they were
    /// `settled` in.
    pub(in crate::table) fn parts(
        &self,
        current: &Snapshot,
        settled: &Snapshot,
    ) -> Result<Vec<MemPart>, TableError> {
        let raw = || settled.memtable.iter().filter(|part| !part.is_settled);
        let lsn = raw().map(|part| part.lsn).min().unwrap_or_default();
        let since = raw().map(|part| part.since).min().unwrap_or_else(host::now);
        let mut first_row = self.first_row;
        let mut parts = Vec::with_capacity(self.batches.len());
        for batch in &self.batches {
            let batch = fit(current, &self.schema, batch)?;
            let rows = batch.num_rows() as u64;
            parts.push(MemPart {
                version: settled.version,
                bytes: batch_bytes(&batch),
                batch,
                lsn,
                since,
                first_row,
                superseded: None,
                deletions: None,
                is_settled: true,
            });
            first_row += rows;
        }
        Ok(parts)
    }
}

/// Derived rows before they are in memory or, if they are many, in data files.
struct Deriving<'t> {
    table: &'t Table,
    snapshot: &'t Snapshot,
    batches: Vec<RecordBatch>,
    bytes: u64,
    writer: Option<RunWriter>,
}

impl<'t> Deriving<'t> {
    const fn new(table: &'t Table, snapshot: &'t Snapshot) -> Self {
        Self { table, snapshot, batches: Vec::new(), bytes: 0, writer: None }
    }

    async fn add(&mut self, batches: Vec<RecordBatch>) -> Result<(), TableError> {
        self.bytes += batches.iter().map(|batch| batch_bytes(batch) as u64).sum::<u64>();
        self.batches.extend(batches);
        let memory_bytes = self.table.root.options.flush_bytes.get().saturating_mul(MEMTABLES_IN_MEMORY);
        let memory_bytes = host::limit(memory_bytes, SIMULATED_MEMORY_BYTES);
        if self.bytes <= memory_bytes {
            return Ok(());
        }
        let writer = self.writer.get_or_insert_with(|| {
            let mut writer = RunWriter::new(&self.table.root, &self.snapshot.def);
            writer.at(self.snapshot.version);
            writer
        });
        for batch in self.batches.drain(..) {
            writer.append(batch).await?;
        }
        Ok(())
    }

    async fn finish(self, first_row: u64) -> Result<Derived, TableError> {
        let schema = Arc::clone(&self.snapshot.def.schema);
        let Some(writer) = self.writer else {
            let batches = self.batches;
            return Ok(Derived { schema, first_row, batches, files: Vec::new(), _unpublished: None });
        };
        let unpublished = UnpublishedFiles::new(&self.table.root, writer.finish().await?);
        let mut files = Vec::with_capacity(unpublished.len());
        for file in unpublished.iter() {
            let live = LiveFile::from(file.clone());
            let of_file = self.table.keys_of(&live).await?;
            // Rows that delete are of use only against later ones of a smaller sequence.
            files.push((live.with_more_deletes(of_file.deletions()), of_file));
        }
        tracing::debug!(table = %self.table.id, files = files.len(), bytes = self.bytes, "derived rows went to data files");
        Ok(Derived { schema, first_row, batches: Vec::new(), files, _unpublished: Some(unpublished) })
    }
}

impl Table {
    /// Folds all unsettled rows of the snapshot. If the caller is cancelled meanwhile, or after an error, the keys of the
    /// memtable are read again next time.
    pub(in crate::table) async fn fold(
        &self,
        keys: &mut Keys,
        snapshot: &Arc<Snapshot>,
        epoch: u64,
    ) -> Result<Found, TableError> {
        let unique = self.unique.as_ref().expect("such a table has keys");
        let next_row = unique.next_row.load(Ordering::Relaxed);
        let plan = on_a_thread(keys, Arc::clone(snapshot), epoch, move |keys, snapshot, reader| {
            keys.plan(snapshot, next_row, reader)
        });
        let Plan { work, first_row, mut marks } = plan.await?;
        unique.next_row.fetch_max(first_row + work.slots() as u64, Ordering::Relaxed);
        let schema = Arc::clone(&snapshot.def.schema);
        let make = move |slots, limits| Folder::new(&schema, slots, limits);
        let derived = self.derive(keys, snapshot, work, first_row, &mut marks, make).await?;
        Ok(Found { marks, derived })
    }

    /// Builds the derived rows of `work`, of which the first one has the arrival number `first_row`. After an error the keys of
    /// the memtable are read again next time.
    pub(in crate::table) async fn derive(
        &self,
        keys: &mut Keys,
        snapshot: &Arc<Snapshot>,
        mut work: Work,
        first_row: u64,
        marks: &mut Marks,
        make: impl Fn(usize, Limits) -> Folder,
    ) -> Result<Option<Derived>, TableError> {
        let slots = work.slots();
        if slots == 0 {
            return Ok(None);
        }
        let known_at = keys.known_at.take();
        let options = &self.root.options;
        let rows_max = host::limit(options.settled_piece_rows, SIMULATED_PIECE_ROWS) as usize;
        let limits = Limits {
            bytes: host::limit(options.settled_piece_bytes, SIMULATED_PIECE_BYTES) as usize,
            batch_bytes: host::limit(options.settled_piece_bytes / 4, SIMULATED_PIECE_BYTES / 4) as usize,
        };
        let mut deriving = Deriving::new(self, snapshot);
        let (mut start, mut size) = (0, rows_max.max(1));
        while start < slots {
            let end = (start + size).min(slots);
            if !work.is_arranged() && (start, end) != (0, slots) {
                keys.arrange(&mut work, first_row, marks);
            }
            let folder = make(end - start, limits);
            match self.fold_piece(snapshot, &work, start..end, folder).await? {
                Some(batches) => {
                    deriving.add(batches).await?;
                    start = end;
                }
                None => {
                    assert!(end - start > 1, "one row is never too large");
                    size = (end - start) / 2;
                }
            }
        }
        let derived = deriving.finish(first_row).await?;
        if !derived.files.is_empty() {
            keys.moved_to_files(first_row, &derived.files);
        }
        keys.known_at = known_at;
        Ok(Some(derived))
    }

    /// Folds the rows of some slots. `None`: they are too large together.
    async fn fold_piece(
        &self,
        snapshot: &Snapshot,
        work: &Work,
        slots: Range<usize>,
        mut folder: Folder,
    ) -> Result<Option<Vec<RecordBatch>>, TableError> {
        let steps = work.piece(slots);
        let _room = self.root.settling.room(estimated_bytes(snapshot, &steps), &self.root.options).await;
        for step in steps {
            let Step { source, rows, slots, sets } = step;
            folder = match source {
                Source::Part(part) => {
                    let batch = snapshot.memtable[part].batch.clone();
                    Self::add_rows(folder, batch, rows, slots, sets).await?
                }
                Source::Defaults => {
                    let batch = defaults(&snapshot.def.schema)?;
                    Self::add_rows(folder, batch, rows, slots, sets).await?
                }
                Source::File(live) => {
                    self.add_file(folder, &snapshot.def.schema, &live, rows, slots, sets).await?
                }
            };
            if folder.is_overfull() {
                return Ok(None);
            }
        }
        blocking(DOING, move || folder.finish()).await
    }

    /// Adds rows of a data file, by their positions.
    async fn add_file(
        &self,
        mut folder: Folder,
        schema: &Arc<TableSchema>,
        live: &LiveFile,
        rows: Vec<u32>,
        slots: Vec<u32>,
        sets: Vec<u32>,
    ) -> Result<Folder, TableError> {
        let file = EncodedFile::open(&self.root, live).await?;
        let mut reader = FileReader::of_rows(&file, &rows, schema, civil_now_micros())?;
        let (mut slots, mut sets) = (slots.as_slice(), sets.as_slice());
        while let Some(batch) = reader.next().await? {
            let (of_batch, later) = slots.split_at_checked(batch.num_rows()).ok_or_else(|| {
                TableError::damaged_file(live.path())("it has more rows than were asked for")
            })?;
            let rows = (0..batch.num_rows() as u32).collect();
            let sets_of_batch = sets.split_off(..sets.len().min(batch.num_rows())).unwrap_or_default();
            folder = Self::add_rows(folder, batch, rows, of_batch.to_vec(), sets_of_batch.to_vec()).await?;
            if folder.is_overfull() {
                return Ok(folder);
            }
            slots = later;
        }
        assert!(slots.is_empty(), "'{}' has the rows that its keys tell of", live.path());
        Ok(folder)
    }

    /// Adds rows of a batch, on a thread of its own.
    async fn add_rows(
        mut folder: Folder,
        batch: RecordBatch,
        rows: Vec<u32>,
        slots: Vec<u32>,
        sets: Vec<u32>,
    ) -> Result<Folder, TableError> {
        blocking(DOING, move || {
            folder.add(&batch, &rows, &slots, &sets)?;
            Ok(folder)
        })
        .await
    }
}

/// A row with the default of the sequence, and NULL in all other columns, whatever they allow: nobody takes these.
fn defaults(schema: &TableSchema) -> Result<RecordBatch, TableError> {
    let sequence = schema.sequence_index();
    let array = |(index, column): (usize, &ColumnDef)| match Some(index) == sequence {
        true => default_array(column, 1, civil_now_micros()),
        false => Ok(new_null_array(&column.data_type.to_arrow(), 1)),
    };
    let columns = schema.columns.iter().enumerate().map(array).collect::<Result<Vec<_>, _>>()?;
    let arrow = schema.arrow();
    let nullable = arrow.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let arrow = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
    RecordBatch::try_new(arrow, columns).map_err(TableError::arrow(DOING))
}

/// About how many bytes of memory the rows of these steps take that are not there yet.
fn estimated_bytes(snapshot: &Snapshot, steps: &[Step]) -> u64 {
    /// Bytes of rows in memory for one in a data file.
    const UNPACKED: u64 = 4;
    let of_step = |step: &Step| {
        let (bytes, rows) = match &step.source {
            Source::Part(part) => {
                let part = &snapshot.memtable[*part];
                (part.bytes as u64, part.batch.num_rows() as u64)
            }
            Source::Defaults => (0, 0),
            Source::File(live) => (live.size_bytes().saturating_mul(UNPACKED), live.file.rows),
        };
        bytes / rows.max(1) * step.rows.len() as u64
    };
    steps.iter().map(of_step).sum()
}
