//! INSERT OVERWRITE: rows that replace all rows of a table, or those of some partitions, in one commit.
//!
//! Readers see the old rows until the new ones are there. The statement joins no group; loads that commit while it runs are
//! replaced, too, as in Doris.

use crate::access::Privilege;
use crate::answer::Answer;
use crate::ddl::tables::table_error;
use crate::load::{self, Load, Overwrites};
use crate::session::EngineSession;
use crate::session::rows::insert::{begin_failed, check_computes, row_queries, value_rows};
use std::sync::Arc;
use tributary_ingest::LoadTraits;
use tributary_query::ScalarValue;
use tributary_sql::{Insert, InsertSource, named_partitions};
use tributary_types::{ErrorCode, Label, PartitionNames, SqlError, TableDef};

impl EngineSession {
    pub(in crate::session) async fn run_overwrite(
        &mut self,
        insert: Insert,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        if self.transaction.is_some() {
            return Err(refused("INSERT OVERWRITE in a transaction is not supported; COMMIT first"));
        }
        let variables = self.variables.values();
        let makes_partitions = variables.enable_auto_create_when_overwrite;
        if variables.enable_unique_key_partial_update {
            return Err(refused(
                "INSERT OVERWRITE gives whole rows; SET enable_unique_key_partial_update = false",
            ));
        }
        if matches!(insert.partitions, PartitionNames::Temporary(_)) {
            return Err(refused(
                "INSERT OVERWRITE of a TEMPORARY PARTITION is not supported: DROP it, ADD it again and INSERT INTO it",
            ));
        }
        let table = self.table(Privilege::Load, insert.table.db.as_deref(), &insert.table.table)?;
        let target = self.insert_target(&table, insert.columns.as_deref()).await?;
        let def = Arc::clone(target.table());
        let mut target = target.into_partitions(&insert.partitions)?;
        if !makes_partitions {
            target = target.without_new_partitions();
        }
        let overwrites = overwritten(&def, &insert)?;
        let _claim = self.engine.loads.overwrites.claim(&def, &overwrites)?;
        if !matches!(overwrites, Overwrites::All) {
            self.interrupt().wait(table.divide()).await?.map_err(table_error)?;
        }
        let label = insert.label.as_deref().map(Label::new).transpose()?;
        if let Some(answer) = Box::pin(self.loaded_before(&table, label.as_ref())).await? {
            return Ok(answer);
        }
        // From a query: so it is a transaction of its own, whatever the session requests.
        let traits = LoadTraits { has_label: label.is_some(), from_query: true, ..self.traits(0) };
        let options = self.insert_options();
        let schema = Arc::clone(target.schema());
        let admitted = self.engine.loads.admit(&self.principal, &table, &traits)?;
        let begin = |loads: &Arc<crate::load::Loads>| {
            let (table, schema) = (Arc::clone(&table), Arc::clone(&schema));
            let load = Load::begin(loads, table, schema, &traits, label.into(), admitted);
            let mut load = load.map_err(begin_failed)?;
            load.is_found_in(def.partitioning.partitions());
            load.overwrite(overwrites);
            Ok::<_, SqlError>(load)
        };
        let (load, counts, rejects) = match insert.source {
            InsertSource::Values(rows) => {
                let queries = row_queries(value_rows(&def, insert.columns.as_deref(), rows.into_inner())?);
                let decoded = self.decode_rows(queries, params, &target, &options).await?;
                let mut load = begin(&self.engine.loads)?;
                load.push(&self.engine.loads, decoded.blocks).await?;
                (load, decoded.counts, decoded.rejects)
            }
            InsertSource::Query(query) => {
                check_computes(&target)?;
                let mut load = begin(&self.engine.loads)?;
                let queries = self.queries.clone();
                match self.read_parts(&queries, &query, params, &target, &options, &mut load).await {
                    Ok((counts, rejects)) => (load, counts, rejects),
                    Err(error) => {
                        self.engine.ingest.metrics().load_failed(load::mode(load.route()));
                        load.abort(error.detail_text()).await;
                        return Err(error);
                    }
                }
            }
        };
        let loaded = self.finish_load(load, counts, &rejects, &options).await?;
        Ok(self.answer_loaded(loaded, false))
    }
}

/// The rows that the statement replaces.
fn overwritten(def: &TableDef, insert: &Insert) -> Result<Overwrites, SqlError> {
    match &insert.partitions {
        PartitionNames::Any if !insert.overwrites_touched => Ok(Overwrites::All),
        PartitionNames::Any if def.partitioning.partitions().is_none() => {
            Err(SqlError::new(ErrorCode::NotPartitioned, "PARTITION () clause on non partitioned table"))
        }
        PartitionNames::Any => Ok(Overwrites::Touched),
        PartitionNames::Named(names) | PartitionNames::Temporary(names) => {
            Ok(named_partitions(def, names)?.map_or(Overwrites::All, Overwrites::In))
        }
    }
}

fn refused(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, text)
}
