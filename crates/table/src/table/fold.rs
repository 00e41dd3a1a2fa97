//! Settling rows of a table of AGGREGATE KEY: reading the values that its keys have, and folding what came since into them.
//!
//! Invariant: what was folded takes the place of all rows that it was made of in one swap of the snapshot. Nothing of it is
//! in the write-ahead log, which has the rows as they came: after a replay they are folded again, in the same order.

use super::Table;
use super::publish::fit;
use super::settle::{Found, on_a_thread};
use crate::error::{TableError, blocking};
use crate::evolve::civil_now_micros;
use crate::file::{EncodedFile, FileReader, LiveFile};
use crate::keys::{Folder, Keys, Plan, Step};
use crate::memtable::{MemPart, batch_bytes};
use crate::snapshot::Snapshot;
use arrow::array::RecordBatch;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{TableSchema, Version, host};

const DOING: &str = "folding rows of equal keys";

/// Rows of `schema` that others were folded into.
pub(super) struct Folded {
    schema: Arc<TableSchema>,
    batch: RecordBatch,
    /// The arrival number of the first row.
    first_row: u64,
}

impl Folded {
    pub(super) const fn new(schema: Arc<TableSchema>, batch: RecordBatch, first_row: u64) -> Self {
        Self { schema, batch, first_row }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> u64 {
        self.batch.num_rows() as u64
    }

    /// The rows as a part of the snapshot that is shown now, which may have another schema than the one that they were
    /// `settled` in.
    pub(super) fn into_part(self, current: &Snapshot, settled: &Snapshot) -> Result<MemPart, TableError> {
        let batch = fit(current, &self.schema, &self.batch)?;
        let raw = || settled.memtable.iter().filter(|part| !part.is_settled);
        Ok(MemPart {
            version: settled.version,
            bytes: batch_bytes(&batch),
            batch,
            lsn: raw().map(|part| part.lsn).min().unwrap_or_default(),
            since: raw().map(|part| part.since).min().unwrap_or_else(host::now),
            first_row: self.first_row,
            superseded: None,
            deletions: None,
            is_settled: true,
        })
    }
}

impl Table {
    /// Folds all rows of the snapshot that are not settled. If the caller gives up meanwhile, or after an error, the keys of
    /// the memtable are read anew next time.
    pub(super) async fn fold(
        &self,
        keys: &mut Keys,
        snapshot: &Arc<Snapshot>,
        truncated_at: Version,
    ) -> Result<Found, TableError> {
        let unique = self.unique.as_ref().expect("such a table has keys");
        let next_row = unique.next_row.load(Ordering::Relaxed);
        let plan = on_a_thread(keys, Arc::clone(snapshot), truncated_at, move |keys, snapshot, reader| {
            keys.plan(snapshot, next_row, reader)
        });
        let plan = plan.await?;
        let known_at = keys.truncated_at.take();
        let Plan { steps, slots, first_row, marks } = plan;
        unique.next_row.fetch_max(first_row + slots as u64, Ordering::Relaxed);
        let schema = &snapshot.def.schema;
        let mut folder = Folder::new(schema, slots);
        for step in steps {
            folder = match step {
                Step::Part { part, rows, slots } => {
                    let part = Arc::clone(&snapshot.memtable[part]);
                    Self::add_rows(folder, part.batch.clone(), rows, slots, Vec::new(), DOING).await?
                }
                Step::File { live, rows, slots } => {
                    self.add_file(folder, schema, &live, rows, slots, Vec::new()).await?
                }
            };
        }
        let folded = if slots == 0 {
            None
        } else {
            let batch = blocking(DOING, move || folder.finish()).await?;
            Some(Folded::new(Arc::clone(schema), batch, first_row))
        };
        keys.truncated_at = known_at;
        Ok(Found { marks, folded })
    }

    /// Adds rows of a data file, by their positions.
    pub(super) async fn add_file(
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
            folder =
                Self::add_rows(folder, batch, rows, of_batch.to_vec(), sets_of_batch.to_vec(), DOING).await?;
            slots = later;
        }
        assert!(slots.is_empty(), "'{}' has the rows that its keys tell of", live.path());
        Ok(folder)
    }

    /// Adds rows of a batch, on a thread of its own.
    pub(super) async fn add_rows(
        mut folder: Folder,
        batch: RecordBatch,
        rows: Vec<u32>,
        slots: Vec<u32>,
        sets: Vec<u32>,
        doing: &'static str,
    ) -> Result<Folder, TableError> {
        blocking(doing, move || {
            folder.add(&batch, &rows, &slots, &sets)?;
            Ok(folder)
        })
        .await
    }
}
