//! Views in the tables of `information_schema`.

use super::catalog::{CATALOG, COLLATION, column_row, is_readable, nulls};
use crate::model::{Cell, Grid};
use crate::namespace::Namespace;
use std::sync::Arc;
use tributary_types::{ColumnDef, ViewDef};

fn all(namespace: &dyn Namespace) -> Vec<Arc<ViewDef>> {
    namespace.databases().iter().flat_map(|database| namespace.views(database)).collect()
}

/// Rows of `tables`.
pub(super) fn tables(grid: &mut Grid, namespace: &dyn Namespace) {
    for view in all(namespace) {
        let mut row: Vec<Cell> = vec![
            CATALOG.into(),
            view.db.as_str().into(),
            view.name.as_str().into(),
            "VIEW".into(),
            "View".into(),
        ];
        row.extend(nulls(12));
        row.extend([COLLATION.into(), Cell::Null, Cell::Null, view.shown_comment().into()]);
        grid.push(row);
    }
}

/// Rows of `columns`.
pub(super) fn columns(grid: &mut Grid, namespace: &dyn Namespace, like_mysql: bool) {
    for view in all(namespace) {
        let readable = namespace.readable_columns(&view.db, &view.name);
        let is_shown = |column: &&ColumnDef| is_readable(readable.as_deref(), column);
        for (index, column) in view.columns.iter().filter(is_shown).enumerate() {
            grid.push(column_row((&view.db, &view.name), column, ("", like_mysql), index as i64 + 1));
        }
    }
}

/// Rows of `views`.
pub(super) fn views(grid: &mut Grid, namespace: &dyn Namespace) {
    for view in all(namespace) {
        grid.push(vec![
            CATALOG.into(),
            view.db.as_str().into(),
            view.name.as_str().into(),
            view.query.as_str().into(),
            "NONE".into(),
            "NO".into(),
            "root@%".into(),
            "DEFINER".into(),
            "utf8mb4".into(),
            COLLATION.into(),
        ]);
    }
}
