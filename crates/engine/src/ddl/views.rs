//! Changes of views. The session ([`crate::session`]) plans a view's query and determines its contents.

use crate::ddl::Ddl;
use crate::ddl::tables::Changing;
use std::sync::Arc;
use tributary_catalog::CatalogError;
use tributary_types::{DbId, SqlError, TableId, TableRef, ViewDef};

impl Ddl {
    /// The view of that name, without asking who wants it.
    ///
    /// # Errors
    /// Unknown database or view, or it is a table.
    pub(crate) fn view_called(&self, name: &TableRef) -> Result<Arc<ViewDef>, SqlError> {
        if let Some(view) = self.catalog.view(&name.db, &name.table) {
            return Ok(view);
        }
        self.names.table(&name.db, &name.table)?;
        Err(SqlError::wrong_object(name, "VIEW", ""))
    }

    pub(crate) fn is_view(&self, name: &TableRef) -> bool {
        self.catalog.view(&name.db, &name.table).is_some()
    }

    /// The view of that name, if it is one; a table of that name is an error.
    pub(crate) fn view_to_replace(&self, name: &TableRef) -> Result<Option<Arc<ViewDef>>, SqlError> {
        let view = self.catalog.view(&name.db, &name.table);
        if view.is_none() {
            self.is_free(name, false)?;
        }
        Ok(view)
    }

    /// The ids of a new view and of its database.
    pub(crate) async fn view_ids(&self, db: &str) -> Result<(TableId, DbId), SqlError> {
        let db_id = self.names.database_id(db)?;
        Ok((self.catalog.next_table_id().await?, db_id))
    }

    /// Makes the view, in place of the one that is `replaced`.
    pub(crate) async fn put_view(
        &self,
        _turn: &Changing<'_>,
        replaced: Option<Arc<ViewDef>>,
        view: ViewDef,
    ) -> Result<(), SqlError> {
        self.catalog.put_view(replaced, view).await?;
        self.names.changed();
        Ok(())
    }

    /// Gives a view another name in its database.
    ///
    /// # Errors
    /// There is no such view, or the name is taken or not legal.
    pub(crate) async fn rename_view(
        &self,
        turn: &Changing<'_>,
        from: &TableRef,
        to: &TableRef,
    ) -> Result<(), SqlError> {
        let view = self.view_called(from)?;
        tributary_sql::names::check_table(&to.table)?;
        self.is_free(to, false)?;
        let renamed = ViewDef { name: to.table.clone(), ..(*view).clone() };
        self.put_view(turn, Some(view), renamed).await
    }

    /// Drops a view. `false`: there is none.
    pub(crate) async fn drop_view(
        &self,
        _turn: &Changing<'_>,
        name: &TableRef,
        if_exists: bool,
    ) -> Result<bool, SqlError> {
        if self.names.find(&name.db, &name.table).is_some() {
            return Err(SqlError::wrong_object(name, "VIEW", &format!("Use 'DROP TABLE {name}'")));
        }
        match self.catalog.drop_view(name).await {
            Err(CatalogError::UnknownTable { .. } | CatalogError::UnknownDatabase(_)) if if_exists => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
            Ok(()) => {
                self.names.changed();
                Ok(true)
            }
        }
    }
}
