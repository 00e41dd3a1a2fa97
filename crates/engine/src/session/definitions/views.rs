//! CREATE, ALTER and DROP VIEW: the query is planned, which checks its validity and this user's right to read its tables, and
//! stored as a text.

use crate::access::interrupt::Interrupt;
use crate::answer::Answer;
use crate::session::EngineSession;
use crate::session::compat::Warning;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_query::{SessionView, ViewShape};
use tributary_sql::{CreateView, ViewBody, ViewStatement};
use tributary_types::{ColumnDef, DbId, ErrorCode, SqlError, TableId, TableRef, ViewDef};

impl EngineSession {
    pub(in crate::session) async fn run_view(
        &mut self,
        statement: &ViewStatement,
    ) -> Result<Answer, SqlError> {
        self.refuse_in_transaction()?;
        let engine = Arc::clone(&self.engine);
        let name = statement.view().resolve(self.database.as_deref())?;
        let turn = Interrupt::by_kill(&self.process.stop).wait(engine.ddl.changing()).await?;
        let mut note = None;
        match statement {
            ViewStatement::Create(CreateView { or_replace, if_not_exists, body, .. }) => {
                let replaced = if *or_replace { engine.ddl.view_to_replace(&name)? } else { None };
                if replaced.is_some() || engine.ddl.is_free(&name, *if_not_exists)? {
                    let ids = engine.ddl.view_ids(&name.db).await?;
                    let view = self.view_of(body, &name, ids)?;
                    engine.ddl.put_view(&turn, replaced, view).await?;
                } else {
                    note = Some(Warning::table_exists(&name));
                }
            }
            ViewStatement::Alter { body, .. } => {
                let replaced = engine.ddl.view_called(&name)?;
                let view = self.view_of(body, &name, (replaced.id, replaced.db_id))?;
                let comment = body.comment.clone().unwrap_or_else(|| replaced.comment.clone());
                engine.ddl.put_view(&turn, Some(replaced), ViewDef { comment, ..view }).await?;
            }
            ViewStatement::Comment { comment, .. } => {
                let replaced = engine.ddl.view_called(&name)?;
                let view = ViewDef { comment: comment.clone(), ..(*replaced).clone() };
                engine.ddl.put_view(&turn, Some(replaced), view).await?;
            }
            ViewStatement::Drop { if_exists, .. } => {
                let is_dropped = engine.ddl.drop_view(&turn, &name, *if_exists).await?;
                note = (!is_dropped).then(|| Warning::unknown_table(&name));
            }
        }
        Ok(self.with_warnings(Answer::ok(), note))
    }

    /// The view that this user would create.
    fn view_of(
        &self,
        body: &ViewBody,
        name: &TableRef,
        (id, db_id): (TableId, DbId),
    ) -> Result<ViewDef, SqlError> {
        let query = tributary_sql::parse_query(&body.query)?;
        let text = tributary_sql::with_databases(&query, self.database.as_deref())?;
        let query = tributary_sql::parse_query(&text)?;
        // A view outlives its session, and reads no temporary tables.
        let session = SessionView { temporary: Vec::new(), ..self.view() };
        let shape = self.queries.view_shape(&session, &query, (&name.db, &name.table))?;
        let columns = columns(&shape, body)?;
        Ok(ViewDef {
            id,
            db_id,
            db: name.db.clone(),
            name: name.table.clone(),
            columns,
            names_columns: body.columns.is_some(),
            comment: body.comment.clone().unwrap_or_default(),
            query: text,
            session_db: self.database.clone(),
            sources: shape.sources,
        })
    }
}

/// The columns of the view, each with a name of its own.
fn columns(shape: &ViewShape, body: &ViewBody) -> Result<Vec<ColumnDef>, SqlError> {
    let given = body.columns.as_deref();
    if given.is_some_and(|given| given.len() != shape.columns.len()) {
        return Err(SqlError::new(
            ErrorCode::ViewWrongList,
            "View's SELECT and view's field list have different column counts",
        ));
    }
    let mut names = HashSet::new();
    let columns = shape.columns.iter().enumerate().map(|(index, column)| {
        let (name, comment) = match given {
            Some(given) => (given[index].0.as_str(), given[index].1.as_str()),
            None => (column.name.as_str(), ""),
        };
        if !names.insert(name.to_lowercase()) {
            let text = format!("Duplicate column name '{name}'");
            return Err(SqlError::new(ErrorCode::DuplicateColumn, text));
        }
        Ok(ColumnDef {
            nullable: column.nullable,
            comment: comment.to_owned(),
            ..ColumnDef::new(index as u32 + 1, name, column.table_type())
        })
    });
    columns.collect()
}
