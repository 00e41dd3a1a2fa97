//! Definitions of views.

use crate::ids::{DbId, TableId};
use crate::table::{ColumnDef, TableRef};
use serde::{Deserialize, Serialize};

/// A view as the catalog knows it: a query that is a table wherever one may be read.
///
/// The catalog stores it as JSON, like tables: an added field has a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDef {
    /// No table and no other view ever has it.
    pub id: TableId,
    pub db_id: DbId,
    pub db: String,
    pub name: String,
    /// The columns, with the types that they had when the view was made.
    pub columns: Vec<ColumnDef>,
    /// The statement named the columns; else they are called as the query calls them.
    pub names_columns: bool,
    #[serde(default)]
    pub comment: String,
    /// The query, where each table is named with its database.
    pub query: String,
    /// The database of the session that made the view.
    pub session_db: Option<String>,
    /// The tables and views that the query reads.
    pub sources: Vec<ViewSource>,
}

/// A table, or another view, that a view reads, as it was when the view was made: columns that were added to it later are
/// not seen by the view's `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewSource {
    pub db: String,
    pub name: String,
    pub columns: Vec<String>,
}

impl ViewDef {
    #[must_use]
    pub fn table_ref(&self) -> TableRef {
        TableRef { db: self.db.clone(), table: self.name.clone() }
    }

    /// The text shown in place of a table's comment.
    #[must_use]
    pub fn shown_comment(&self) -> &str {
        if self.comment.is_empty() { "VIEW" } else { &self.comment }
    }
}
