//! Partitions that are dropped and retained, and recovered.
//!
//! The files of a dropped partition stay where they are; the catalog has their names. Dropping and recovering are switches with a
//! number, like that of temporary partitions: first a record of the catalog's future contents is persisted, then ONE Delta entry
//! removes the files or adds them again, then the catalog is updated. A start that finds the entry completes the catalog before
//! it opens a table.
//!
//! Not its business: how loads are held meanwhile ([`tributary_ingest::Recycling`]), and how long partitions are retained.

use crate::ddl::bin::{refused, shown_id, still_loading};
use crate::ddl::change::switching::Rest;
use crate::ddl::tables::Changing;
use crate::engine::Engine;
use crate::node::start_error::StartError;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tributary_catalog::{Catalog, CatalogError, JobRecord, RecycledPartition};
use tributary_ingest::{Halt, Recycling};
use tributary_sql::{Recovered, is_heavy, with_recovered};
use tributary_table::{KeptFile, Leaving, Table, TableStore};
use tributary_types::partition::{Partition, PartitionRows};
use tributary_types::{
    ErrorCode, PartitionId, Partitioning, Partitions, SchemaVersion, SourceId, SqlError, TableDef, TableId,
    TableRef,
};

/// Distinguishes records of this kind from those of other jobs.
const KIND: &str = "recycle_partitions";
/// The format of [`Kept`]; a field that is added has a default and leaves it as it is.
const FORMAT: u32 = 1;

/// A dropped partition, as the catalog has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    format: u32,
    partition: Partition,
    /// The table's, when the partition was dropped.
    schema: SchemaVersion,
    /// The id that the table's next partition would have had.
    next: PartitionId,
    files: Vec<KeptFile>,
}

impl Kept {
    fn read(text: &str) -> Result<Self, SqlError> {
        let unreadable = |reason: String| refused(format!("the kept partition can't be read: {reason}"));
        let kept: Self = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if kept.format > FORMAT {
            return Err(unreadable(format!(
                "it has format {}, and this program knows formats up to {FORMAT}",
                kept.format
            )));
        }
        Ok(kept)
    }
}

/// The data files of a dropped partition.
pub(crate) fn files_of(partition: &RecycledPartition) -> Vec<KeptFile> {
    match Kept::read(&partition.definition) {
        Ok(kept) => kept.files,
        Err(error) => {
            tracing::error!(
                partition = partition.name,
                error = error.detail_text(),
                "the files of a dropped partition are not known"
            );
            Vec::new()
        }
    }
}

/// A change that may be cut off between the Delta log and the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    kind: String,
    table: TableId,
    /// The table's partitions afterwards.
    partitions: Partitions,
    dropped: Vec<Dropped>,
    recovered: Vec<PartitionId>,
}

/// A dropped partition, for the record.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Dropped {
    at_ms: i64,
    kept: Kept,
}

impl Record {
    fn new(table: TableId, partitions: &Partitions) -> Self {
        let partitions = partitions.clone();
        Self { kind: KIND.to_owned(), table, partitions, dropped: Vec::new(), recovered: Vec::new() }
    }

    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|record: &Self| record.kind == KIND)
    }

    fn text(&self) -> Result<String, SqlError> {
        serde_json::to_string(self).map_err(|error| refused(error.to_string()))
    }

    /// The definition after the change.
    fn after(&self, def: &TableDef) -> TableDef {
        TableDef { partitioning: Partitioning::By(Arc::new(self.partitions.clone())), ..def.clone() }
    }

    /// Tells the catalog, unless it knows.
    async fn tell(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        let Some(current) = catalog.table_by_id(self.table) else { return Ok(()) };
        let new = self.after(&current);
        if new == *current {
            return Ok(());
        }
        let dropped = self.dropped.iter().map(|Dropped { at_ms, kept }| RecycledPartition {
            table: self.table,
            id: kept.partition.id,
            name: kept.partition.name.clone(),
            dropped_at_ms: *at_ms,
            bytes: kept.files.iter().map(|kept| kept.file.size_bytes).sum(),
            definition: serde_json::to_string(kept).unwrap_or_default(),
        });
        catalog.move_partitions(&current, new, dropped.collect(), self.recovered.clone()).await.map(drop)
    }
}

/// Updates the catalog to the changes in the Delta logs, before any table is opened; others did not happen.
///
/// # Errors
/// A log or the catalog can't be read or written.
pub(crate) async fn complete(catalog: &Catalog, store: &TableStore, node: &str) -> Result<(), StartError> {
    for JobRecord { id, definition } in catalog.jobs(node).await? {
        let Some(record) = Record::read(&definition) else { continue };
        if let Some(current) = catalog.table_by_id(record.table)
            && store.last_schema_change(&current).await? == Some(id.0)
        {
            tracing::info!(table = %current.table_ref(), "a change of partitions that was cut off is completed");
            record.tell(catalog).await?;
        }
        catalog.delete_job(node, id).await?;
    }
    Ok(())
}

/// Keeps the record of dropped partitions, with their files.
struct Recorder<'a> {
    engine: &'a Engine,
    id: SourceId,
    dropped: Partitions,
    next: PartitionId,
    schema: SchemaVersion,
    record: Mutex<Record>,
}

impl Leaving for Recorder<'_> {
    fn record(&self, files: Vec<KeptFile>) -> BoxFuture<'_, Result<(), String>> {
        let at_ms = self.engine.unix_ms();
        let dropped = self.dropped.list.iter().map(|partition| {
            let files = files.iter().filter(|kept| kept.file.partition == Some(partition.id));
            let (schema, next) = (self.schema, self.next);
            let files = files.cloned().collect();
            let kept = Kept { format: FORMAT, partition: partition.clone(), schema, next, files };
            Dropped { at_ms, kept }
        });
        let text = {
            let mut record = self.record.lock();
            record.dropped = dropped.collect();
            record.text()
        };
        Box::pin(async move {
            let definition = text.map_err(|error| error.detail_text().to_owned())?;
            let job = JobRecord { id: self.id, definition };
            self.engine
                .catalog
                .put_job(&self.engine.facts.node, &job)
                .await
                .map_err(|error| error.to_string())
        })
    }
}

impl Engine {
    /// Drops these partitions of the table, which can be recovered, and does the rest.
    ///
    /// # Errors
    /// Loads do not end, in Doris's words; nothing has changed.
    pub(crate) async fn recycle_partitions(
        self: &Arc<Self>,
        turn: &Changing<'_>,
        table: &Arc<Table>,
        dropped: Partitions,
        rest: Rest,
    ) -> Result<(), SqlError> {
        let switched = Arc::clone(table);
        let work = |engine: Arc<Self>, halt: Arc<Halt>| async move {
            engine.drop_and_keep(&switched, dropped, &halt).await
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
        let id = self.schema_changes.next_id().await?;
        let recorder = Recorder {
            engine: self,
            id,
            dropped,
            next: before.next_id,
            schema: def.schema.version,
            record: Mutex::new(Record::new(def.id, &left)),
        };
        let recycling = Recycling { id: id.0, partitions: &left, leaving: Some(&recorder), recovered: None };
        match self.switch_recycling(table, recycling, &recorder.record, halt).await? {
            Some(_) => Ok(()),
            None => Err(still_loading("partition", &name)),
        }
    }

    async fn switch_recycling(
        &self,
        table: &Table,
        recycling: Recycling<'_>,
        record: &Mutex<Record>,
        halt: &Arc<Halt>,
    ) -> Result<Option<Arc<TableDef>>, SqlError> {
        self.carry_out_switch(table, recycling.id, halt, |halt| async move {
            let halt = &halt;
            let keep = |new: Arc<TableDef>| async move {
                let record = record.lock().clone();
                self.tell_catalog(&new, halt, || record.tell(&self.catalog)).await
            };
            self.ingest.recycle_partitions(table, recycling, halt, keep).await
        })
        .await
    }

    /// Brings a dropped partition back.
    ///
    /// # Errors
    /// Doris's errors, and columns that no longer match its rows.
    pub(crate) async fn recover_partition(
        self: &Arc<Self>,
        turn: &Changing<'_>,
        name: &TableRef,
        recovered: &Recovered<String>,
    ) -> Result<(), SqlError> {
        let table = self.table_called(&name.db, &name.table)?;
        let def = table.def();
        self.refuse_while_changing(&def)?;
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
        let work = |engine: Arc<Self>, halt: Arc<Halt>| async move {
            engine.bring_back(&switched, &kept, &halt).await
        };
        self.run_switch(turn, &table, work, Rest::Nothing).await
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
        let kept = Kept::read(&found.definition)?;
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
        let id = self.schema_changes.next_id().await?;
        let mut record = Record::new(table.id(), &back.partitions);
        record.recovered.push(back.from);
        let job = JobRecord { id, definition: record.text()? };
        self.catalog.put_job(&self.facts.node, &job).await?;
        let recycling = Recycling {
            id: id.0,
            partitions: &back.partitions,
            leaving: None,
            recovered: Some((back.id, &back.files)),
        };
        match self.switch_recycling(table, recycling, &Mutex::new(record), halt).await? {
            Some(_) => {
                table.let_files_go(&back.files);
                Ok(())
            }
            None => Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "loads of table {} have not ended: COMMIT or abort two-phase loads that wait, and try again",
                    table.def().name
                ),
            )),
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
fn has_others_rows(def: &TableDef, partitions: &Partitions, kept: &Kept) -> bool {
    if def.keys.keeps_all_rows() {
        return false;
    }
    match &kept.partition.rows {
        PartitionRows::Range { .. } => false,
        PartitionRows::Values(_) => partitions.list.iter().any(|other| other.rows == PartitionRows::Others),
        PartitionRows::Others => partitions.list.iter().any(|other| other.id >= kept.next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_partition_is_read_as_it_was_written() {
        let golden = include_str!("recycled/golden-1.json");
        let kept = Kept::read(golden.trim()).unwrap();
        assert_eq!(serde_json::to_string(&kept).unwrap(), golden.trim());
        assert_eq!(kept.files.len(), 1);
        let newer = golden.replacen("\"format\":1", "\"format\":2", 1);
        let error = Kept::read(&newer).unwrap_err();
        assert!(error.detail_text().contains("format 2"), "{error}");
    }
}
