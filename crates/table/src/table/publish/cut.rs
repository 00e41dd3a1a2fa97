//! Rows of removed partitions: dropped with their partition's definition, or cut out while it stays.
//!
//! The definition says which partitions exist, and the log in which order they were emptied. A publication skips rows without a
//! partition: their load was committed or acknowledged before the partition was dropped, and its rows disappear with it. A
//! running flush or compaction publishes nothing of a partition that was cut meanwhile.

use crate::error::TableError;
use crate::file::{DataFile, LiveFile, RowSet};
use crate::table::{Pending, Table, Unflushed};
use crate::view::memtable::{MemPart, batch_bytes};
use crate::view::snapshot::Snapshot;
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use std::sync::Arc;
use tributary_types::{Lsn, Partitions, TableDef, TableSchema, Version, host};

impl Table {
    /// Makes the rows of these partitions disappear that have lower versions. The partitions stay. The next flush removes their
    /// files from the Delta log.
    ///
    /// # Errors
    /// [`TableError::OutOfOrder`]: nothing has changed.
    pub fn publish_cut(&self, version: Version, lsn: Lsn, cut: &Partitions) -> Result<(), TableError> {
        let mut unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        crate::table::publish::publication::check_order(&current, version)?;
        let pending = Pending { lsn, since: host::now() };
        unflushed.active = Pending::join(unflushed.active, Some(pending));
        let left = emptied(&mut unflushed, &current, version, cut)?;
        self.swap(&left, |next| next.version = version);
        Ok(())
    }
}

/// The snapshot without rows of these partitions, as of `version`.
pub(in crate::table) fn emptied(
    unflushed: &mut Unflushed,
    current: &Snapshot,
    version: Version,
    cut: &Partitions,
) -> Result<Snapshot, TableError> {
    let memtable = cut_memtable(current, |batch| rows_in(cut, batch, &current.def.schema))?;
    unflushed.cut_at.extend(cut.list.iter().map(|partition| (partition.id, version)));
    unflushed.epoch += 1;
    let is_cut = |live: &LiveFile| live.file.partition.is_some_and(|id| cut.by_id(id).is_some());
    unflushed.leaves(current.files.iter().filter(|live| is_cut(live)));
    let files = Arc::new(current.files.iter().filter(|live| !is_cut(live)).cloned().collect());
    Ok(Snapshot { files, memtable, ..current.clone() })
}

impl Unflushed {
    /// Whether a file with rows up to `version` is of a partition that was cut or dropped since.
    pub(in crate::table) fn is_cut(&self, def: &TableDef, live: &LiveFile, version: Version) -> bool {
        let is_emptied = |id| self.cut_at.get(&id).is_some_and(|cut| *cut > version);
        !has_partition(def, &live.file) || live.file.partition.is_some_and(is_emptied)
    }
}

/// Whether the definition has the file's partition, if the file says one.
pub(in crate::table) fn has_partition(def: &TableDef, file: &DataFile) -> bool {
    match (def.partitioning.partitions(), file.partition) {
        (Some(partitions), Some(id)) => partitions.by_id(id).is_some(),
        _ => true,
    }
}

/// Whether nothing is new in a definition but partitions.
pub(in crate::table) fn only_adds(old: &TableDef, new: &TableDef) -> bool {
    let (Some(before), Some(after)) = (old.partitioning.partitions(), new.partitioning.partitions()) else {
        return false;
    };
    let with_old =
        TableDef { partitioning: old.partitioning.clone(), drop_mark: old.drop_mark.clone(), ..new.clone() };
    let is_same = *old == with_old;
    is_same && before.without(after).list.is_empty()
}

/// Whether a partition is gone in a definition.
pub(in crate::table) fn drops(old: &TableDef, new: &TableDef) -> bool {
    let (Some(before), Some(after)) = (old.partitioning.partitions(), new.partitioning.partitions()) else {
        return false;
    };
    before.list.iter().any(|partition| after.by_id(partition.id).is_none())
}

/// The rows of the batch that have a partition. Where no partition was ever dropped that is all of them, because rows without one were
/// rejected when they were decoded.
pub(in crate::table) fn with_partition(
    def: &TableDef,
    batch: RecordBatch,
) -> Result<RecordBatch, TableError> {
    let has_lost = |partitions: &&Arc<Partitions>| !partitions.has_all_that_were();
    let Some(partitions) = def.partitioning.partitions().filter(has_lost) else { return Ok(batch) };
    let stay: Vec<bool> =
        partitions.of_rows(&batch, &def.schema).into_iter().map(|place| place.is_some()).collect();
    let gone = stay.iter().filter(|stays| !**stays).count();
    if gone == 0 {
        return Ok(batch);
    }
    tracing::info!(table = def.name, rows = gone, "rows that came before are gone with their partition");
    left(&batch, &stay)
}

/// The memtable without the rows that have no partition in `def`, whose schema it has.
pub(in crate::table) fn without_dropped(
    current: &Snapshot,
    def: &TableDef,
) -> Result<Vec<Arc<MemPart>>, TableError> {
    let Some(partitions) = def.partitioning.partitions() else { return Ok(current.memtable.clone()) };
    cut_memtable(current, |batch| {
        partitions.of_rows(batch, &def.schema).into_iter().map(|place| place.is_none()).collect()
    })
}

fn rows_in(partitions: &Partitions, batch: &RecordBatch, schema: &TableSchema) -> Vec<bool> {
    partitions.of_rows(batch, schema).into_iter().map(|place| place.is_some()).collect()
}

/// The memtable without some rows, in as many parts as before.
fn cut_memtable(
    current: &Snapshot,
    is_gone: impl Fn(&RecordBatch) -> Vec<bool>,
) -> Result<Vec<Arc<MemPart>>, TableError> {
    let cut = |part: &Arc<MemPart>| {
        let gone = is_gone(&part.batch);
        if !gone.contains(&true) {
            return Ok(Arc::clone(part));
        }
        if part.is_settled {
            // Rows keep their arrival numbers, by which a running flush identifies them.
            let rows: RowSet =
                gone.iter().zip(0u64..).filter(|(gone, _)| **gone).map(|(_, row)| row).collect();
            return Ok(Arc::new(part.cut(&rows)));
        }
        let stay: Vec<bool> = gone.iter().map(|gone| !gone).collect();
        let batch = left(&part.batch, &stay)?;
        Ok(Arc::new(MemPart { bytes: batch_bytes(&batch), batch, ..part.as_ref().clone() }))
    };
    current.memtable.iter().map(cut).collect()
}

fn left(batch: &RecordBatch, stay: &[bool]) -> Result<RecordBatch, TableError> {
    filter_record_batch(batch, &BooleanArray::from(stay.to_vec()))
        .map_err(TableError::arrow("leaving out rows of a partition"))
}
