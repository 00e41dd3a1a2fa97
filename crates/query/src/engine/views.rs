//! The shape of a view that is to be made of a query.

use super::QueryEngine;
use crate::context::names_hidden;
use crate::model::{ResultColumn, SessionView};
use crate::run::output;
use crate::scan::table_functions::TableFunctions;
use crate::types::metadata;
use std::collections::HashMap;
use tributary_sql::SelectQuery;
use tributary_sql::names::without_partitions;
use tributary_types::system::is_system_database;
use tributary_types::{SqlError, ViewSource};

/// The parts of a view other than its text.
pub struct ViewShape {
    pub columns: Vec<ResultColumn>,
    pub sources: Vec<ViewSource>,
}

impl QueryEngine {
    /// The shape that the view called `db`.`name` would have if this was its query.
    ///
    /// # Errors
    /// As for [`Self::query`]; additionally if the query reads the view itself.
    pub fn view_shape(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        (db, name): (&str, &str),
    ) -> Result<ViewShape, SqlError> {
        let (functions, settled) = (TableFunctions::default(), HashMap::new());
        let state = self.state_of(session);
        let mut context = self.context(&state, session, &functions, &settled, names_hidden(&query.text));
        context.forbidden = Some((db.to_owned(), name.to_owned()));
        let (plan, rewritten) = context.plan(query, Some(&[]), false)?;
        let tables = context.tables.lock();
        let read = tables.iter().filter(|((db, _), _)| !is_system_database(db));
        let mut sources: Vec<ViewSource> = read
            .map(|((db, name), source)| {
                let schema = source.schema();
                let columns = schema
                    .fields()
                    .iter()
                    .map(|field| metadata::declared_name(field).unwrap_or_else(|| field.name()).to_owned());
                let (name, _) = without_partitions(name);
                ViewSource { db: db.clone(), name: name.to_owned(), columns: columns.collect() }
            })
            .collect();
        sources.sort_by(|one, other| (&one.db, &one.name).cmp(&(&other.db, &other.name)));
        // A table, and some of its partitions.
        sources.dedup_by(|one, other| (&one.db, &one.name) == (&other.db, &other.name));
        let columns = output::columns(&plan, &rewritten.titles, &rewritten.spellings, output::Nested::Kept);
        Ok(ViewShape { columns, sources })
    }
}
