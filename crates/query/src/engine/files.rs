//! Files that a query names, found before it is planned.

use super::QueryEngine;
use crate::model::{Cell, Grid, QueryResult, SessionView};
use crate::scan::files::provider;
use crate::scan::table_functions::TableFunctions;
use crate::types::shown::type_text;
use tributary_sql::{FileCall, SelectQuery};
use tributary_types::SqlError;

impl QueryEngine {
    /// The query with its files found, and the tables that represent them; `None` if it reads no files.
    pub(super) async fn with_files(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        functions: &mut TableFunctions,
    ) -> Result<Option<SelectQuery>, SqlError> {
        let Some((query, calls)) = query.take_file_calls()? else { return Ok(None) };
        for call in calls {
            let table = self.namespace.files(&call, session).await?;
            functions.add_files(provider(table)?);
        }
        Ok(Some(query))
    }

    /// Answers `DESC FUNCTION s3(…)`.
    ///
    /// # Errors
    /// The files can't be found or read.
    pub async fn describe_files(
        &self,
        session: &SessionView,
        call: &FileCall,
    ) -> Result<QueryResult, SqlError> {
        let table = self.namespace.files(call, session).await?;
        let mut grid = Grid::new(&["Field", "Type", "Null", "Key", "Default", "Extra"]);
        for field in table.schema().fields() {
            let data_type = type_text(field);
            grid.push(vec![
                field.name().as_str().into(),
                data_type.into(),
                "Yes".into(),
                "false".into(),
                Cell::Null,
                "NONE".into(),
            ]);
        }
        QueryResult::from_rows(&grid)
    }
}
