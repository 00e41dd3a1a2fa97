//! Views: lookups and changes.

use crate::catalog::{Catalog, Result};
use crate::changes::{Shared, refuse_reserved, refuse_taken, uncancelled, unknown_table};
use crate::error::CatalogError;
use crate::store::Operation;
use std::sync::Arc;
use tributary_types::{TableRef, ViewDef};

impl Catalog {
    /// The views of a database in order of their names; empty for an unknown database.
    #[must_use]
    pub fn views(&self, db: &str) -> Vec<Arc<ViewDef>> {
        let state = self.state();
        let database = state.databases.get(db);
        database.map(|database| database.views.values().cloned().collect()).unwrap_or_default()
    }

    #[must_use]
    pub fn view(&self, db: &str, name: &str) -> Option<Arc<ViewDef>> {
        self.state().databases.get(db)?.views.get(name).cloned()
    }

    /// Makes a view, in place of the one that is `replaced`, which may have another name.
    ///
    /// # Errors
    /// [`CatalogError::UnknownDatabase`], [`CatalogError::ReservedDatabase`], [`CatalogError::TableExists`] for a table or
    /// another view of that name, [`CatalogError::TableChanged`] if `replaced` is not the present view, or
    /// [`CatalogError::Store`].
    pub async fn put_view(&self, replaced: Option<Arc<ViewDef>>, view: ViewDef) -> Result<Arc<ViewDef>> {
        uncancelled(self.shared().put_view(replaced, view)).await
    }

    /// Drops the view.
    ///
    /// # Errors
    /// [`CatalogError::UnknownDatabase`], [`CatalogError::UnknownTable`], [`CatalogError::ReservedDatabase`], or
    /// [`CatalogError::Store`].
    pub async fn drop_view(&self, name: &TableRef) -> Result<()> {
        uncancelled(self.shared().drop_view(name.clone())).await
    }
}

impl Shared {
    async fn put_view(
        self: Arc<Self>,
        replaced: Option<Arc<ViewDef>>,
        view: ViewDef,
    ) -> Result<Arc<ViewDef>> {
        let view = Arc::new(view);
        self.change(|state| {
            refuse_reserved(&view.db)?;
            let database = match state.databases.get(&view.db) {
                Some(database) if database.id == view.db_id => database,
                _ => return Err(CatalogError::UnknownDatabase(view.db.clone())),
            };
            match (&replaced, database.views.get(&view.name)) {
                (None, _) => refuse_taken(database, &view.name)?,
                (Some(replaced), _) if replaced.name != view.name => {
                    refuse_taken(database, &view.name)?;
                    if database.views.get(&replaced.name) != Some(replaced) {
                        let TableRef { db, table } = replaced.table_ref();
                        return Err(CatalogError::TableChanged { db, table });
                    }
                }
                (Some(replaced), Some(present)) if replaced == present => {}
                (Some(_), _) => {
                    let TableRef { db, table } = view.table_ref();
                    return Err(CatalogError::TableChanged { db, table });
                }
            }
            Ok((Operation::PutView(Arc::clone(&view)), Arc::clone(&view)))
        })
        .await
    }

    async fn drop_view(self: Arc<Self>, name: TableRef) -> Result<()> {
        self.change(|state| {
            refuse_reserved(&name.db)?;
            let database = state.databases.get(&name.db);
            let database = database.ok_or_else(|| CatalogError::UnknownDatabase(name.db.clone()))?;
            let view = database.views.get(&name.table).ok_or_else(|| unknown_table(&name))?;
            Ok((Operation::DropView(Arc::clone(view)), ()))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;
    use crate::error::CatalogError;
    use crate::location::CatalogLocation;
    use std::sync::Arc;
    use tributary_types::{
        ColumnDef, DataType, DbId, SchemaVersion, TableDef, TableId, TableRef, TableSchema, ViewDef,
    };

    fn view(db_id: DbId, name: &str, query: &str) -> ViewDef {
        ViewDef {
            id: TableId(9),
            db_id,
            db: "d".to_owned(),
            name: name.to_owned(),
            columns: vec![ColumnDef::new(1, "a", DataType::Int)],
            names_columns: false,
            comment: String::new(),
            query: query.to_owned(),
            session_db: Some("d".to_owned()),
            sources: Vec::new(),
        }
    }

    fn name(table: &str) -> TableRef {
        TableRef { db: "d".to_owned(), table: table.to_owned() }
    }

    #[tokio::test]
    async fn views_share_the_names_of_tables_and_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let location = CatalogLocation::in_directory(dir.path());
        let catalog = Catalog::open(&location).await.unwrap();
        let db = catalog.create_database("d").await.unwrap();
        let schema = TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(1, "a", DataType::Int)]);
        let def = TableDef { db_id: db, ..TableDef::new(TableId(1), "d", "t", schema) };
        catalog.create_table(def.clone()).await.unwrap();
        let first = catalog.put_view(None, view(db, "v", "SELECT 1 a")).await.unwrap();
        let taken = |outcome: Result<(), CatalogError>| {
            assert!(matches!(outcome, Err(CatalogError::TableExists(_))), "{outcome:?}");
        };
        for name in ["t", "v"] {
            taken(catalog.put_view(None, view(db, name, "SELECT 2 a")).await.map(|_| ()));
        }
        let other =
            TableDef { id: TableId(2), name: "v".to_owned(), location: "x".to_owned(), ..def.clone() };
        taken(catalog.create_table(other).await.map(|_| ()));
        let renamed = TableDef { name: "v".to_owned(), ..def.clone() };
        taken(catalog.replace_table_def(&def, renamed).await.map(|_| ()));
        let second = catalog.put_view(Some(Arc::clone(&first)), view(db, "v", "SELECT 2 a")).await.unwrap();
        let renamed = ViewDef { name: "w".to_owned(), ..(*second).clone() };
        let renamed = catalog.put_view(Some(Arc::clone(&second)), renamed).await.unwrap();
        assert_eq!(catalog.views("d"), [Arc::clone(&renamed)]);
        let gone = catalog.put_view(Some(second), view(db, "x", "SELECT 3 a")).await;
        assert!(matches!(gone, Err(CatalogError::TableChanged { .. })), "{gone:?}");
        taken(catalog.put_view(Some(Arc::clone(&renamed)), view(db, "t", "SELECT 3 a")).await.map(|_| ()));
        let second = catalog.put_view(Some(renamed), view(db, "v", "SELECT 2 a")).await.unwrap();
        let stale = catalog.put_view(Some(first), view(db, "v", "SELECT 3 a")).await;
        assert!(matches!(stale, Err(CatalogError::TableChanged { .. })), "{stale:?}");
        let elsewhere = catalog.put_view(None, view(db.next(), "w", "SELECT 1 a")).await;
        assert!(matches!(elsewhere, Err(CatalogError::UnknownDatabase(_))), "{elsewhere:?}");
        catalog.close().await;

        let catalog = Catalog::open(&location).await.unwrap();
        assert_eq!(catalog.view("d", "v"), Some(Arc::clone(&second)));
        assert_eq!(catalog.views("d"), [second]);
        assert!(matches!(catalog.drop_view(&name("t")).await, Err(CatalogError::UnknownTable { .. })));
        catalog.drop_view(&name("v")).await.unwrap();
        assert_eq!(catalog.view("d", "v"), None);
        catalog.put_view(None, view(db, "v", "SELECT 4 a")).await.unwrap();
        catalog.drop_database("d").await.unwrap();
        assert!(catalog.views("d").is_empty());
        catalog.close().await;
        let catalog = Catalog::open(&location).await.unwrap();
        assert!(catalog.views("d").is_empty() && catalog.databases().is_empty());
    }
}
