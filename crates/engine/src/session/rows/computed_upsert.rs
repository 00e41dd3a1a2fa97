//! `INSERT … ON DUPLICATE KEY UPDATE` with expressions, into a table with UNIQUE KEY.
//!
//! The rows that exist are read as those of an UPDATE are, in the turn of the table: of two such statements the second one sees the
//! rows of the first, so that counters count. Plain loads do not take turns. The rows of the statement, with the values that are computed,
//! are then loaded like those of any upsert.

use crate::answer::Answer;
use crate::session::EngineSession;
use crate::session::rows::insert::{
    QueryLoad, check_computes, check_order_of_columns, default_of, partial_target, value_rows,
};
use crate::session::rows::upsert::{Upsert, upsert};
use std::sync::Arc;
use tributary_ingest::LoadTraits;
use tributary_query::ScalarValue;
use tributary_sql::{Insert, InsertSource, OnDuplicate, SelectQuery};
use tributary_table::Table;
use tributary_types::{ErrorCode, PartitionNames, SqlError, TableDef};

impl EngineSession {
    /// Runs such a statement.
    pub(super) async fn run_computed_upsert(
        &mut self,
        mut insert: Insert,
        clause: OnDuplicate,
        (table, partitions): (Arc<Table>, PartitionNames),
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        if insert.label.is_some() {
            return Err(refused("a label, whose rows are loaded once, goes with plain values: leave it out"));
        }
        self.running.ignores = insert.ignores;
        // Its turn comes before the rows are read.
        let _turn = match self.transaction {
            None => Some(self.turn_to_change(&table).await?),
            Some(_) => None,
        };
        self.see_own_rows().await;
        let called = std::mem::take(&mut insert.table.table);
        let columns = columns_of(&table.def(), &insert, &clause)?;
        let how = table.with_def(|def| upsert(def, Some(&columns), &clause.updated))?;
        let target = match how {
            Upsert::Whole => self.insert_target(&table, Some(&columns)).await?,
            Upsert::Partial => {
                Box::pin(partial_target(Arc::clone(&self.engine), &table, Some(&columns))).await?
            }
            Upsert::Updating => {
                self.engine.loads.ready_to_update(&table).await?;
                self.upsert_target(&table, Some(&columns), &clause.updated).await?
            }
        };
        check_computes(&target)?;
        let def = Arc::clone(target.table());
        let target = target.into_partitions(&partitions)?;
        let new = new_rows(&def, insert, &columns)?;
        let twice = clause.same_keys(&def, &columns, new.clone())?;
        let own = &params[..twice.param_count().min(params.len())];
        if self.first_value(&twice, own).await?.is_some() {
            return Err(refused("two rows of the statement have one key: send one after the other"));
        }
        let query = clause.rows(&def, &called, &columns, new)?;
        let is_partial = how != Upsert::Whole;
        let traits = LoadTraits { from_query: true, partitions: !partitions.is_any(), ..self.traits(0) };
        let traits = LoadTraits { partial_update: traits.partial_update || is_partial, ..traits };
        let known_keys = if how == Upsert::Updating { None } else { self.known_keys(&target) };
        let load = QueryLoad { table, target, label: None, known_keys };
        self.insert_query(&query, params, load, traits).await
    }
}

/// The columns of the rows: the inserted ones, and others that are computed.
fn columns_of(def: &TableDef, insert: &Insert, clause: &OnDuplicate) -> Result<Vec<String>, SqlError> {
    let mut columns = match &insert.columns {
        Some(columns) => columns.clone(),
        None => {
            check_order_of_columns(def)?;
            def.schema.visible().map(|column| column.name.clone()).collect()
        }
    };
    for (name, _) in clause.computed.iter() {
        let column = def.schema.visible().find(|column| column.name.eq_ignore_ascii_case(name));
        match column {
            None => {
                let text = format!("Unknown column '{name}' in 'field list'");
                return Err(SqlError::detail(ErrorCode::UnknownColumn, text));
            }
            Some(column) if column.is_key => {
                return Err(refused(&format!("column '{name}' is of the key, which says which row it is")));
            }
            Some(column) if column.generated.is_some() => {
                return Err(refused(&format!("column '{name}' is generated")));
            }
            Some(_) if columns.iter().any(|other| other.eq_ignore_ascii_case(name)) => {}
            Some(_) if matches!(insert.source, InsertSource::Query(_)) => {
                return Err(refused(&format!("column '{name}' has no value in new rows: insert it, too")));
            }
            Some(column) => columns.push(column.name.clone()),
        }
    }
    Ok(columns)
}

/// The new rows as a query.
fn new_rows(def: &TableDef, insert: Insert, columns: &[String]) -> Result<SelectQuery, SqlError> {
    let rows = match insert.source {
        InsertSource::Query(query) => return Ok(query),
        InsertSource::Values(rows) => rows.into_inner(),
    };
    let given = insert.columns.as_ref().map_or(columns.len(), Vec::len);
    let added = columns[given.min(columns.len())..].iter().map(|name| {
        let index = def.schema.index_of(name);
        index.map_or_else(|| Err(refused("a column is gone")), |index| default_of(&def.schema.columns[index]))
    });
    let added = added.collect::<Result<Vec<_>, _>>()?;
    let mut rows = value_rows(def, insert.columns.as_deref(), rows)?;
    rows.iter_mut().for_each(|row| row.extend(added.iter().cloned()));
    SelectQuery::of_rows(rows).ok_or_else(|| refused("there are no rows"))
}

fn refused(text: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::NotSupported,
        format!("ON DUPLICATE KEY UPDATE with expressions is not possible here: {text}"),
    )
}
