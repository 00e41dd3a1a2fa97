//! UPDATE and DELETE by keys: statements that change rows of tables with UNIQUE KEY.
//!
//! The query engine finds the rows. Their keys are loaded again, with the assigned columns or with the delete sign, like the rows
//! of an INSERT … SELECT. Statements that change rows of one table take turns from their query to their commit. An UPDATE is a
//! partial update, so a load that commits meanwhile keeps its values of all other columns.
//!
//! Not the business of this module: rows of other tables, which are deleted ([`crate::session::rows::delete`]) and changed
//! ([`crate::session::rows::update`]) by position.

use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::answer::Answer;
use crate::load::partial_update::{KnownKeys, is_possible as merges_on_write};
use crate::session::EngineSession;
use crate::session::rows::changed_rows::sign_of_change;
use crate::session::rows::insert::{QueryLoad, default_of};
use crate::session::rows::kept_keys::without_kept_keys;
use sqlparser::ast::{Expr, Ident, Value};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use tributary_decode::Target;
use tributary_ingest::LoadTraits;
use tributary_query::ScalarValue;
use tributary_sql::{Assigned, Delete, TargetRows, Update};
use tributary_table::Table;
use tributary_types::{ColumnDef, ErrorCode, HiddenColumn, PartitionNames, SqlError, TableDef};

impl EngineSession {
    /// Loads the rows that the statement finds with the sign of a deletion.
    pub(in crate::session) async fn delete_by_keys(
        &mut self,
        table: Arc<Table>,
        delete: &Delete,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        self.check_not_debugging("Delete")?;
        if table.with_def(|def| self.must_be_ready_to_update(def)) {
            self.engine.loads.ready_to_update(&table).await?;
        }
        let def = table.def();
        if delete.rows.condition().is_none() && !merges_on_write(&def) {
            return Err(refused("delete all rows is forbidden temporary."));
        }
        let alias = &delete.rows.alias;
        let is_needed = |column: &&ColumnDef| {
            let has_default = column.nullable || column.default.is_some();
            let is_computed = column.generated.is_some();
            column.is_key || is_computed || def.schema.sequence == Some(column.id) || !has_default
        };
        let columns = def.schema.columns.iter().filter(is_needed);
        let mut values: Vec<(String, Expr)> =
            columns.map(|column| (column.name.clone(), of_row(alias, column))).collect();
        let sign = Expr::value(Value::Number("1".to_owned(), false));
        values.push((HiddenColumn::DeleteSign.name().to_owned(), sign));
        let (names, values): (Vec<String>, Vec<Expr>) = values.into_iter().unzip();
        let target = Target::of_read_rows(&def, &names)?;
        // No UPDATE restores a row that it has read before.
        let _turn = self.turn_to_change(&table).await?;
        let changed =
            Changed { target, rows: &delete.rows, of: &delete.partitions, values, must_exist: false };
        self.load_changed(table, changed, params).await
    }

    pub(in crate::session) async fn run_update(
        &mut self,
        update: &Update,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let table = self.table(Privilege::Load, update.table.db.as_deref(), &update.table.table)?;
        if table.with_def(|def| def.keys.is_aggregate()) {
            return Err(refused("Only unique table could be updated."));
        }
        self.check_not_debugging("Update")?;
        if !table.with_def(|def| def.keys.is_unique()) {
            return Box::pin(self.update_by_position(table, update, params)).await;
        }
        self.engine.loads.ready_to_update(&table).await?;
        let def = table.def();
        self.running.unchanged = self.count_changed();
        let (update, params) = without_kept_keys(&def, update, params);
        let NewValues { values, is_assigned, sign } = new_values(&def, &update)?;
        // A concurrent load must keep its values of other columns.
        let is_kept_apart = |column: &ColumnDef| {
            column.is_key
                || def.schema.sequence == Some(column.id)
                || !def.schema.computed_from(column.id).is_empty()
        };
        let is_given = |index: usize| {
            let column = &def.schema.columns[index];
            column.generated.is_none() && (is_assigned[index] || is_kept_apart(column))
        };
        let given = values.into_iter().enumerate().filter(|(index, _)| is_given(*index));
        let (names, mut values): (Vec<String>, Vec<Expr>) = given.map(|(_, given)| given).unzip();
        values.extend(self.running.unchanged.is_some().then_some(sign));
        let target = Target::partial(&def, &names)?;
        let _turn = self.turn_to_change(&table).await?;
        let changed =
            Changed { target, rows: &update.rows, of: &PartitionNames::Any, values, must_exist: true };
        self.load_changed(table, changed, &params).await
    }

    /// The turn of a statement that changes rows that it reads: each sees the changes of the previous one.
    pub(in crate::session) async fn turn_to_change(
        &mut self,
        table: &Table,
    ) -> Result<OwnedMutexGuard<()>, SqlError> {
        let turn = self.engine.loads.row_changes.turn_of(table.id());
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_timeout());
        Ok(interrupt.wait(turn.lock_owned()).await?)
    }

    /// Statements that change rows would find deleted ones, too, while these are shown.
    fn check_not_debugging(&self, statement: &str) -> Result<(), SqlError> {
        if !self.variables.values().show_hidden_columns {
            return Ok(());
        }
        Err(refused(&format!(
            "{statement} is forbidden since current session is in debug mode. Please check the following session variables: \
             skip_delete_predicate, skip_delete_bitmap, skip_delete_sign, skip_storage_engine_merge, show_hidden_columns"
        )))
    }

    /// Loads the changed rows of a statement.
    async fn load_changed(
        &mut self,
        table: Arc<Table>,
        changed: Changed<'_>,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let Changed { target, rows, of, values, must_exist } = changed;
        // The table may have changed while the statement waited for its turn.
        self.see_own_rows().await;
        let def = target.table();
        let relation = [&def.db, &def.name].map(|name| Ident::with_quote('`', name));
        let query = rows.select(relation.to_vec(), of, values);
        let traits = LoadTraits { from_query: true, partial_update: false, ..self.traits(0) };
        let known_keys =
            if must_exist { Some(Box::new(KnownKeys::of_update())) } else { self.known_keys(&target) };
        let load = QueryLoad { table, target, label: None, known_keys };
        self.insert_query(&query, params, load, traits).await
    }
}

/// A row after an UPDATE.
pub(super) struct NewValues {
    /// Columns of the table, in their order, with their values.
    pub values: Vec<(String, Expr)>,
    /// Whether the statement gives the column another value.
    pub is_assigned: Vec<bool>,
    /// 0 where the row keeps its values: [`sign_of_change`].
    pub sign: Expr,
}

/// The values of a row after an UPDATE: the assigned ones, and the others as they are.
pub(super) fn new_values(def: &TableDef, update: &Update) -> Result<NewValues, SqlError> {
    let alias = &update.rows.alias;
    let mut values: Vec<(String, Expr)> = def
        .schema
        .columns
        .iter()
        .filter(|column| !matches!(column.hidden, Some(HiddenColumn::DeleteSign | HiddenColumn::Given)))
        .map(|column| (column.name.clone(), of_row(alias, column)))
        .collect();
    let mut is_assigned = vec![false; values.len()];
    for (name, value) in &update.assignments {
        let index = assigned_column(def, alias, name)?;
        let column = &def.schema.columns[index];
        if column.generated.is_some() {
            return Err(Target::not_to_be_given(def, column));
        }
        if column.is_key && def.keys.is_unique() {
            return Err(refused("Only value columns of unique table could be updated"));
        }
        if std::mem::replace(&mut is_assigned[index], true) {
            return Err(SqlError::detail(
                ErrorCode::DuplicateColumn,
                format!("Column '{}' specified twice", column.name),
            ));
        }
        values[index].1 = match value {
            Assigned::Expr(expr) => Expr::clone(expr),
            Assigned::Default => default_of(column)?,
        };
    }
    let assigned: Vec<(&ColumnDef, &Expr)> = (0..values.len())
        .filter(|index| is_assigned[*index])
        .map(|index| (&def.schema.columns[index], &values[index].1))
        .collect();
    let sign = sign_of_change(alias, &assigned)?;
    let columns = def.schema.columns.iter().filter(|column| column.on_update);
    for index in columns.filter_map(|column| def.schema.index_of_id(column.id)) {
        if !is_assigned[index] {
            values[index].1 = default_of(&def.schema.columns[index])?;
            is_assigned[index] = true;
        }
    }
    Ok(NewValues { values, is_assigned, sign })
}

/// The rows that a statement changes, and their new values.
struct Changed<'a> {
    target: Target,
    rows: &'a TargetRows,
    /// The partitions that are searched.
    of: &'a PartitionNames,
    /// Of the target's columns.
    values: Vec<Expr>,
    /// Whether a row must still exist when the statement commits.
    must_exist: bool,
}

/// The column of the row that is found.
pub(super) fn of_row(alias: &str, column: &ColumnDef) -> Expr {
    Expr::CompoundIdentifier([alias, &column.name].map(|name| Ident::with_quote('`', name)).to_vec())
}

/// The column of an assignment, with its qualifiers.
fn assigned_column(def: &TableDef, alias: &str, name: &[String]) -> Result<usize, SqlError> {
    let (column, before) = name.split_last().expect("a name has parts");
    let is_table = match before {
        [] => true,
        [table] => table == alias,
        [db, table] => *db == def.db && table == alias && *alias == def.name,
        _ => false,
    };
    if !is_table {
        return Err(refused(&format!("column in assignment list is invalid, {}", name.join("."))));
    }
    let index = def.schema.index_of(column);
    index
        .filter(|index| def.schema.columns[*index].hidden.is_none())
        .ok_or_else(|| refused(&format!("unknown column in assignment list: {column}")))
}

fn refused(text: &str) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}
