//! Loads whose partition was dropped after their rows were decoded.
//!
//! Invariant: a commit is given its version only if each of its rows that was not acknowledged yet has a partition in the
//! definition that the table has at that moment. Partitions are dropped by a definition without them, which a cut in the log
//! follows. So whoever commits before the cut is dropped with the partition, live and in a replay, and whoever comes after it is
//! refused. Rows that were acknowledged before are dropped with their partition. Not this module's business: which
//! partitions there are, and leaving rows out.

use crate::build::Parts;
use crate::columns::Built;
use crate::error::IngestError;
use crate::group::Group;
use crate::load::LoadRows;
use crate::queue::TableQueue;
use arrow::array::RecordBatch;
use std::sync::Arc;
use tributary_decode::blocks_to_batches;
use tributary_table::{DataFile, Replaced, Table};
use tributary_types::{Partitions, TableSchema};

/// The partitions that rows were looked up in. `None`: the table has lost none, so every row that was decoded has one.
#[derive(Clone, Debug)]
pub(crate) struct Checked(Option<Arc<Partitions>>);

impl Checked {
    /// What the table's rows are to be looked up in now.
    pub fn of(table: &Table) -> Self {
        Self(table.with_def(|def| {
            let partitions = def.partitioning.partitions();
            partitions.filter(|partitions| !partitions.has_all_that_were()).cloned()
        }))
    }

    /// Whether the table still has these partitions.
    pub fn holds(&self, table: &Table) -> bool {
        match (&self.0, Self::of(table).0) {
            (None, None) => true,
            (Some(before), Some(now)) => Arc::ptr_eq(before, &now),
            _ => false,
        }
    }

    /// An error if a row of the load has no partition any more.
    pub fn load(&self, table: &Table, rows: &LoadRows) -> Result<(), IngestError> {
        let Some(partitions) = &self.0 else { return Ok(()) };
        let batches = blocks_to_batches(&rows.schema, &rows.blocks)
            .map_err(|error| IngestError::BadBlock(error.to_string()))?;
        refuse_unless(has_all(partitions, &rows.schema, &batches, &rows.files), table)
    }

    /// An error if one of these rows has no partition any more.
    pub fn built(&self, table: &Table, built: &Built, files: &[DataFile]) -> Result<(), IngestError> {
        let Some(partitions) = &self.0 else { return Ok(()) };
        refuse_unless(has_all(partitions, &built.schema, &built.batches, files), table)
    }
}

impl Checked {
    /// An error if one of the rows, or one of the partitions whose rows they replace, has no partition any more.
    pub fn own(&self, table: &Table, built: &Built, rows: &LoadRows) -> Result<(), IngestError> {
        let (Some(partitions), Some(Replaced::In(replaced))) = (&self.0, rows.replaces.as_deref()) else {
            return self.built(table, built, &rows.files);
        };
        refuse_unless(replaced.without(partitions).list.is_empty(), table)?;
        self.built(table, built, &rows.files)
    }
}

impl TableQueue {
    /// Takes the loads out of a closed group whose clients still wait, and who have rows without a partition; they will be
    /// answered with the reason. Those that were acknowledged stay.
    ///
    /// # Errors
    /// The group can't be built.
    pub(crate) fn refuse_dropped(
        &self,
        group: &mut Group,
        excluded: &mut Vec<u32>,
        built: &mut Built,
    ) -> Result<Checked, IngestError> {
        let checked = Checked::of(&self.table);
        if checked.0.is_none() {
            return Ok(checked);
        }
        let files: Vec<DataFile> =
            group.members.iter().flat_map(|member| member.rows.files.iter().cloned()).collect();
        if checked.built(&self.table, built, &files).is_ok() {
            return Ok(checked);
        }
        let mut refused = Vec::new();
        for member in group.members.iter().filter(|member| !member.is_async) {
            if let Err(error) = checked.load(&self.table, &member.rows) {
                refused.push(member.load);
                group.appends.refuse(member.load, error);
            }
        }
        if refused.is_empty() {
            return Ok(checked);
        }
        group.exclude(&refused);
        excluded.extend(refused);
        *built = Parts::of_group(group).and_then(|parts| self.build_now(&parts))?;
        Ok(checked)
    }
}

fn has_all(
    partitions: &Partitions,
    schema: &TableSchema,
    batches: &[RecordBatch],
    files: &[DataFile],
) -> bool {
    // A file without one has rows that had none when it was written.
    let is_there = |file: &DataFile| file.partition.is_some_and(|id| partitions.by_id(id).is_some());
    files.iter().all(is_there)
        && batches.iter().all(|batch| partitions.of_rows(batch, schema).iter().all(Option::is_some))
}

fn refuse_unless(has_all: bool, table: &Table) -> Result<(), IngestError> {
    if has_all { Ok(()) } else { Err(IngestError::PartitionDropped(table.def().table_ref())) }
}
