//! UPDATE, and DELETE by keys: statements that change rows of tables with UNIQUE KEY.
//!
//! The query engine finds the rows; they are loaded again, changed or with the sign of a deletion, as those of an INSERT …
//! SELECT are. Not the business of this module: deleting rows of other tables, by their places ([`crate::session::rows::delete`]).

use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::answer::Answer;
use crate::load::partial_update::is_possible as merges_on_write;
use crate::session::EngineSession;
use sqlparser::ast::{Expr, Ident, Value};
use std::sync::Arc;
use tributary_decode::Target;
use tributary_ingest::LoadTraits;
use tributary_query::ScalarValue;
use tributary_sql::{Assigned, Delete, TargetRows, Update};
use tributary_table::Table;
use tributary_types::{ColumnDef, ErrorCode, HiddenColumn, SqlError, TableDef};

impl EngineSession {
    /// Loads the rows that the statement finds with the sign of a deletion.
    pub(in crate::session) async fn delete_by_keys(
        &mut self,
        table: Arc<Table>,
        delete: &Delete,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        self.check_not_debugging("Delete")?;
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
        self.load_changed((table, target), &delete.rows, values, params).await
    }

    pub(in crate::session) async fn run_update(
        &mut self,
        update: &Update,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let table = self.table(Privilege::Load, update.table.db.as_deref(), &update.table.table)?;
        let def = table.def();
        if !def.keys.is_unique() {
            return Err(refused("Only unique table could be updated."));
        }
        self.check_not_debugging("Update")?;
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
            let index = assigned_column(&def, alias, name)?;
            let column = &def.schema.columns[index];
            if column.generated.is_some() {
                return Err(Target::not_to_be_given(&def, column));
            }
            if column.is_key {
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
                Assigned::Default => crate::session::rows::insert::default_of(column)?,
            };
        }
        let columns = def.schema.columns.iter().filter(|column| column.on_update);
        for index in columns.filter_map(|column| def.schema.index_of_id(column.id)) {
            if !is_assigned[index] {
                values[index].1 = crate::session::rows::insert::default_of(&def.schema.columns[index])?;
            }
        }
        let is_computed = |name: &String| def.schema.generated().any(|(_, column, _)| column.name == *name);
        let given = values.into_iter().filter(|(name, _)| !is_computed(name));
        let (names, values): (Vec<String>, Vec<Expr>) = given.unzip();
        let target = Target::new(&def, Some(&names))?;
        // Each sees the changes of the previous one.
        let turn = self.engine.row_changes.turn_of(table.id());
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.insert_timeout());
        let _turn = interrupt.wait(turn.lock()).await?;
        self.load_changed((table, target), &update.rows, values, params).await
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

    /// Loads the rows of the statement with these values of the target's columns.
    async fn load_changed(
        &mut self,
        (table, target): (Arc<Table>, Target),
        rows: &TargetRows,
        values: Vec<Expr>,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let def = target.table();
        let relation = [&def.db, &def.name].map(|name| Ident::with_quote('`', name));
        let query = rows.select(relation.to_vec(), values);
        let traits = LoadTraits { from_query: true, partial_update: false, ..self.traits(0) };
        self.insert_query(&query, params, (table, target, None), traits).await
    }
}

/// The column of the row that is found.
fn of_row(alias: &str, column: &ColumnDef) -> Expr {
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
