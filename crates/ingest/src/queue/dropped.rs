//! Loads whose partition was dropped after their rows were decoded.
//!
//! Invariant: a commit gets its version only if each of its unacknowledged rows has a partition in the table's current
//! definition. Partitions are dropped by a definition without them, followed by a cut in the log. So a commit before the cut is
//! dropped with the partition, live and in a replay, and a commit after it is refused. Rows that were acknowledged before are
//! dropped with their partition. Not this module's business: the existence of partitions, and omitting rows.

use crate::error::IngestError;
use crate::group::Group;
use crate::group::build::ToBuild;
use crate::group::columns::Built;
use crate::load::LoadRows;
use crate::queue::TableQueue;
use arrow::array::RecordBatch;
use std::sync::Arc;
use tributary_decode::blocks_to_batches;
use tributary_table::{DataFile, Replaced, Table};
use tributary_types::{Partitions, TableSchema};

/// The partitions that a table had when its rows were examined. `None`: it is not partitioned.
#[derive(Clone, Debug)]
pub(crate) struct Checked(Option<Arc<Partitions>>);

impl Checked {
    /// The partitions that the table's rows must be in now.
    pub fn of(table: &Table) -> Self {
        Self(table.with_def(|def| def.partitioning.partitions().cloned()))
    }

    /// Whether the table still has these partitions.
    pub fn holds(&self, table: &Table) -> bool {
        table.with_def(|def| match (&self.0, def.partitioning.partitions()) {
            (None, None) => true,
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            _ => false,
        })
    }

    pub const fn partitions(&self) -> Option<&Arc<Partitions>> {
        self.0.as_ref()
    }

    pub fn into_partitions(self) -> Option<Arc<Partitions>> {
        self.0
    }

    /// The partitions, if a row that had one when it was decoded may have none of them.
    fn may_lack(&self) -> Option<&Arc<Partitions>> {
        self.0.as_ref().filter(|partitions| !partitions.has_all_that_were())
    }

    /// Fails if a row of the load no longer has a partition. Examines rows only if they were decoded for other partitions.
    pub fn load(&self, queue: &TableQueue, rows: &LoadRows) -> Result<(), IngestError> {
        let Some(partitions) = self.may_lack() else { return Ok(()) };
        let table = &queue.table;
        refuse_unless(are_there(partitions, rows.files()), table)?;
        if is_same(rows.partitions.as_ref(), partitions) {
            return Ok(());
        }
        queue.core().metrics.blocks_built.inc_by(rows.blocks.len() as u64);
        let batches = blocks_to_batches(&rows.schema, &rows.blocks)
            .map_err(|error| IngestError::BadBlock(error.to_string()))?;
        refuse_unless(has_all(partitions, &rows.schema, &batches), table)
    }

    /// Fails if one of the rows, or one of the partitions whose rows they replace, no longer has a partition.
    pub fn own(&self, queue: &TableQueue, built: &Built, rows: &LoadRows) -> Result<(), IngestError> {
        let Some(partitions) = self.may_lack() else { return Ok(()) };
        let table = &queue.table;
        if let Some(Replaced::In(replaced)) = rows.replaces.as_deref() {
            refuse_unless(replaced.without(partitions).list.is_empty(), table)?;
        }
        refuse_unless(are_there(partitions, rows.files()), table)?;
        let are_found = is_same(rows.partitions.as_ref(), partitions);
        refuse_unless(are_found || has_all(partitions, &built.schema, &built.batches), table)
    }
}

impl TableQueue {
    /// Removes from a closed group the loads whose clients still wait and which have rows without a partition; they will be
    /// answered with the reason. Acknowledged loads stay. Returns the table's partitions, and whether all remaining rows have
    /// one.
    ///
    /// # Errors
    /// The group can't be built.
    pub(crate) fn refuse_dropped(
        &self,
        group: &mut Group,
        excluded: &mut Vec<u32>,
        built: &mut Built,
    ) -> Result<(Checked, bool), IngestError> {
        let checked = Checked::of(&self.table);
        let Some(partitions) = checked.may_lack() else { return Ok((checked, true)) };
        let files_are_there = group.members.iter().all(|member| are_there(partitions, member.rows.files()));
        let are_found =
            group.found_in.is_one(partitions) || has_all(partitions, &built.schema, &built.batches);
        if files_are_there && are_found {
            return Ok((checked, true));
        }
        let mut refused = Vec::new();
        for member in group.members.iter().filter(|member| !member.is_async) {
            if let Err(error) = checked.load(self, &member.rows) {
                refused.push(member.load);
                group.appends.refuse(member.load, error);
            }
        }
        if refused.is_empty() {
            return Ok((checked, false));
        }
        group.exclude(&refused);
        excluded.extend(refused);
        *built = ToBuild::of_group(group).and_then(|parts| self.build_now(&parts))?;
        Ok((checked, false))
    }
}

fn is_same(found_in: Option<&Arc<Partitions>>, partitions: &Arc<Partitions>) -> bool {
    found_in.is_some_and(|found_in| Arc::ptr_eq(found_in, partitions))
}

fn are_there(partitions: &Partitions, files: &[DataFile]) -> bool {
    // A file without one has rows that had none when it was written.
    files.iter().all(|file| file.partition.is_some_and(|id| partitions.by_id(id).is_some()))
}

fn has_all(partitions: &Partitions, schema: &TableSchema, batches: &[RecordBatch]) -> bool {
    batches.iter().all(|batch| partitions.of_rows(batch, schema).iter().all(Option::is_some))
}

fn refuse_unless(has_all: bool, table: &Table) -> Result<(), IngestError> {
    if has_all { Ok(()) } else { Err(IngestError::PartitionDropped(table.def().table_ref())) }
}
