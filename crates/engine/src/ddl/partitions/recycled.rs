//! Partitions that are dropped and kept, and that are recovered.
//!
//! The files of a dropped partition stay in place; the catalog has their names. Dropping and recovering are changes that cross
//! the Delta log ([`super::super::change::records`]), one entry of which removes the files or adds them again.
//!
//! Not its business: how loads are held meanwhile ([`tributary_ingest::Recycling`]), and for how long partitions are kept.

use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use crate::ddl::bin::{refused, shown_id, still_loading};
use crate::ddl::change::switching::{Rest, loads_go_on};
use crate::ddl::change::turns::TableTurn;
use crate::ddl::tables::table_error;
use std::sync::Arc;
use tributary_catalog::RecycledPartition;
use tributary_ddl::{Change, Dropped, Effect, KeptPartition, NewPartitions, Recycled};
use tributary_ingest::Halt;
use tributary_sql::{Recovered, is_heavy, with_recovered};
use tributary_table::{KeptFile, Table};
use tributary_types::partition::PartitionRows;
use tributary_types::{PartitionId, Partitioning, Partitions, SqlError, TableDef, TableRef};

/// The data files of a dropped partition.
///
/// # Errors
/// If the catalog's record of it can't be read, the reason.
pub(crate) fn files_of(partition: &RecycledPartition) -> Result<Vec<KeptFile>, String> {
    Ok(KeptPartition::read(&partition.definition)?.files)
}

impl Ddl {
    /// Drops these partitions of the table, which can be recovered, and does the rest.
    ///
    /// # Errors
    /// Loads do not end, in Doris's words; nothing has changed.
    pub(crate) async fn recycle_partitions(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Arc<Table>,
        dropped: Partitions,
        rest: Rest,
    ) -> Result<(), SqlError> {
        // Before loads are held.
        table.divide().await.map_err(table_error)?;
        let switched = Arc::clone(table);
        let work = |ddl: Arc<Self>, halt: Arc<Halt>| async move {
            ddl.drop_and_keep(&switched, dropped, &halt).await
        };
        self.run_switch(turn, table, work, rest).await
    }

    async fn drop_and_keep(
        &self,
        table: &Table,
        dropped: Partitions,
        halt: &Arc<Halt>,
    ) -> Result<(), SqlError> {
        let def = table.def();
        let Some(before) = def.partitioning.partitions() else { return Ok(()) };
        let name = dropped.list.first().map(|partition| partition.name.clone()).unwrap_or_default();
        if self.ingest.has_prepared(table) {
            return Err(still_loading("partition", &name));
        }
        let ids: Vec<PartitionId> = dropped.list.iter().map(|partition| partition.id).collect();
        let mut left = Partitions::clone(before);
        left.remove(&ids);
        let left = Arc::new(left);
        let dropped = dropped.list.into_iter().map(|partition| Dropped {
            // It and the files are known once loads are held.
            at_ms: 0,
            kept: KeptPartition::new(partition, def.schema.version, before.next_id, Vec::new()),
        });
        let new =
            NewPartitions { dropped: dropped.collect(), ..NewPartitions::new(Partitions::clone(&left)) };
        match self.switch_recycled(table, &left, new, None, halt).await? {
            Some(_) => Ok(()),
            None => Err(still_loading("partition", &name)),
        }
    }

    async fn switch_recycled(
        &self,
        table: &Table,
        partitions: &Arc<Partitions>,
        new: NewPartitions,
        recovered: Option<(PartitionId, &[KeptFile])>,
        halt: &Arc<Halt>,
    ) -> Result<Option<Arc<TableDef>>, SqlError> {
        let id = self.schema_changes.next_id().await?;
        let change = Change { id, table: table.id(), effect: Effect::Partitions(new) };
        let subject = Recycled { ingest: &self.ingest, table, id: id.0, partitions, recovered };
        self.make_change(table, &subject, change, halt).await
    }

    /// Brings a dropped partition back.
    ///
    /// # Errors
    /// Doris's errors, and columns that no longer match its rows.
    pub(crate) async fn recover_partition(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        name: &TableRef,
        recovered: &Recovered<String>,
    ) -> Result<(), SqlError> {
        let (table, turn) = self.table_to_alter(interrupt, name).await?;
        let def = table.def();
        let bin = self.catalog.recycle_bin();
        let kept = {
            let is_meant = |partition: &&Arc<RecycledPartition>| {
                partition.name.eq_ignore_ascii_case(&recovered.name)
                    && recovered.id.is_none_or(|id| partition.id.0 == id)
            };
            let found =
                bin.partitions_of(def.id).filter(is_meant).max_by_key(|it| (it.dropped_at_ms, it.id.0));
            self.recovered_partitions(&table, recovered, found.map(|it| &**it))?
        };
        let switched = Arc::clone(&table);
        let work =
            |ddl: Arc<Self>, halt: Arc<Halt>| async move { ddl.bring_back(&switched, &kept, &halt).await };
        self.run_switch(&turn, &table, work, Rest::Nothing).await
    }

    /// The table's partitions including the recovered one, if it may return.
    fn recovered_partitions(
        &self,
        table: &Table,
        recovered: &Recovered<String>,
        found: Option<&RecycledPartition>,
    ) -> Result<ComesBack, SqlError> {
        let def = table.def();
        let name = &recovered.name;
        let Some(partitions) = def.partitioning.partitions() else {
            return Err(refused(format!("table [{}] is not a partitioned table", def.name)));
        };
        if recovered.new_name.is_none() && partitions.index_of(name).is_some() {
            return Err(refused(format!("partition[{name}] already exist in table[{}]", def.name)));
        }
        let Some(found) = found else {
            return Err(refused(format!(
                "No partition named '{name}' or partition id '{}' in table {}",
                shown_id(recovered.id),
                def.name
            )));
        };
        let kept = KeptPartition::read(&found.definition).map_err(refused)?;
        let new_name = recovered.new_name.as_ref().unwrap_or(&kept.partition.name);
        let (with, id) = with_recovered(&def, &kept.partition, new_name)?;
        if has_others_rows(&def, partitions, &kept) {
            return Err(refused(format!(
                "Can not recover partition[{name}]. The table has keys, and rows of the partition without VALUES may have those of this one."
            )));
        }
        let old = self.catalog.schema(def.id, kept.schema);
        let old = old.map(|schema| TableDef { schema, ..TableDef::clone(&def) });
        if !table.can_take(&kept.files) || old.is_none_or(|old| is_heavy(&old, &def)) {
            return Err(refused(format!(
                "Can not recover partition[{name}]. The columns of table {} have other types, keys or defaults since it was dropped.",
                def.name
            )));
        }
        let new =
            TableDef { partitioning: Partitioning::By(Arc::new(with.clone())), ..TableDef::clone(&def) };
        self.refuse_for_temporary(&def, &new)?;
        Ok(ComesBack { from: found.id, id, partitions: Arc::new(with), files: kept.files })
    }

    async fn bring_back(&self, table: &Table, back: &ComesBack, halt: &Arc<Halt>) -> Result<(), SqlError> {
        let new = NewPartitions {
            recovered: vec![back.from],
            ..NewPartitions::new(Partitions::clone(&back.partitions))
        };
        let recovered = Some((back.id, &back.files[..]));
        match self.switch_recycled(table, &back.partitions, new, recovered, halt).await? {
            Some(_) => {
                table.let_files_go(&back.files);
                Ok(())
            }
            None => Err(loads_go_on(table)),
        }
    }
}

/// A partition to recover.
struct ComesBack {
    /// Its former id.
    from: PartitionId,
    id: PartitionId,
    partitions: Arc<Partitions>,
    files: Vec<KeptFile>,
}

/// Whether a key could have a row in the recovered partition and one in another: the partition of all other values has taken rows
/// of values that belonged to other partitions before or after.
fn has_others_rows(def: &TableDef, partitions: &Partitions, kept: &KeptPartition) -> bool {
    if def.keys.keeps_all_rows() {
        return false;
    }
    match &kept.partition.rows {
        PartitionRows::Range { .. } => false,
        PartitionRows::Values(_) => partitions.list.iter().any(|other| other.rows == PartitionRows::Others),
        PartitionRows::Others => partitions.list.iter().any(|other| other.id >= kept.next),
    }
}
