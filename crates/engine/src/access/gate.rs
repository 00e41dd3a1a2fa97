//! The one way to tables, databases and connections: a name is looked up for a principal, and only after [`Access`] has said yes.
//!
//! Not its business: what is done with what was found.

use super::{Access, Object, Privilege, Readable};
use crate::access::names::Names;
use crate::access::processes::{Process, Processes};
use std::sync::Arc;
use tributary_catalog::{Catalog, User};
use tributary_table::Table;
use tributary_types::system::is_information_schema;
use tributary_types::{DbId, ErrorCode, Principal, SqlError, TableDef, TableId, TableRef, TableRole};

/// Looks up what principals may have.
pub(crate) struct Gate {
    policy: Arc<dyn Access>,
    catalog: Arc<Catalog>,
    names: Arc<Names>,
    processes: Arc<Processes>,
}

impl Gate {
    pub fn new(
        policy: Arc<dyn Access>,
        catalog: Arc<Catalog>,
        names: Arc<Names>,
        processes: Arc<Processes>,
    ) -> Self {
        Self { policy, catalog, names, processes }
    }

    /// The generation of names and rights: as long as it stays, so do answers of the gate.
    pub(crate) fn generation(&self) -> u64 {
        self.names.generation()
    }

    /// Asks whether `principal` may.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check(
        &self,
        principal: &Principal,
        privilege: Privilege,
        object: Object<'_>,
    ) -> Result<(), SqlError> {
        self.policy.check(principal, privilege, object)
    }

    /// Whether `principal` may; for lists that leave out what it may not.
    pub(crate) fn allows(&self, principal: &Principal, privilege: Privilege, object: Object<'_>) -> bool {
        self.policy.allows(principal, privilege, object)
    }

    /// Whether `principal` may load into a table, whatever its role is.
    pub(crate) fn may_load(&self, principal: &Principal, table: &Table) -> bool {
        let is_allowed = |table: &TableRef| {
            let object = Object::Table { db: &table.db, table: &table.table };
            self.allows(principal, Privilege::Load, object)
        };
        match table.with_def(|def| def.role) {
            TableRole::Own => is_allowed(&table.with_def(TableDef::table_ref)),
            TableRole::Beside(of) => {
                let main = self.names.all_tables().into_iter().find(|table| table.id() == of);
                main.is_some_and(|main| is_allowed(&main.with_def(TableDef::table_ref)))
            }
            // Only the statement that makes it, or the session whose temporary table it is, knows it.
            TableRole::Unfinished => true,
        }
    }

    /// Whether `principal` may know of a column: it may read it, or has a right on the whole table.
    pub(crate) fn shows_column(&self, principal: &Principal, db: &str, table: &str, column: &str) -> bool {
        self.allows(principal, Privilege::ShowCreate, Object::Table { db, table })
            || match self.policy.readable(principal, db, table) {
                Readable::All => true,
                Readable::Only(columns) => columns.contains(&column.to_lowercase()),
                Readable::Nothing => false,
            }
    }

    /// Checks that `principal` may load into the table of a transaction of `db`. One of another table, and one that is not known,
    /// get the same answer.
    ///
    /// # Errors
    /// It may load neither into that table nor into the whole database.
    pub(crate) fn check_transaction(
        &self,
        principal: &Principal,
        db: &str,
        table: Option<&TableRef>,
    ) -> Result<(), SqlError> {
        let is_own = table.is_some_and(|table| {
            let object = Object::Table { db: &table.db, table: &table.table };
            self.allows(principal, Privilege::Load, object)
        });
        if is_own { Ok(()) } else { self.check(principal, Privilege::Load, Object::Database(db)) }
    }

    /// Checks that a session may select the database.
    ///
    /// # Errors
    /// No privilege, or an unknown database.
    pub(crate) fn check_use(&self, principal: &Principal, name: &str) -> Result<(), SqlError> {
        self.check(principal, Privilege::Connect, Object::Database(name))?;
        if !self.names.has_database(name) {
            return Err(SqlError::new(ErrorCode::UnknownDatabase, format!("Unknown database '{name}'")));
        }
        Ok(())
    }

    /// The database of that name.
    ///
    /// # Errors
    /// No privilege, or an unknown database.
    pub(crate) fn database(
        &self,
        principal: &Principal,
        privilege: Privilege,
        name: &str,
    ) -> Result<DbId, SqlError> {
        self.check(principal, privilege, Object::Database(name))?;
        self.names.database_id(name)
    }

    /// The table that a statement names: `name` in `db`, or in the session's database.
    ///
    /// # Errors
    /// No database selected, no privilege, unknown database or table.
    pub(crate) fn table(
        &self,
        principal: &Principal,
        privilege: Privilege,
        session_db: Option<&str>,
        db: Option<&str>,
        name: &str,
    ) -> Result<Arc<Table>, SqlError> {
        let db = db.or(session_db);
        let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        if is_information_schema(db) {
            return Err(SqlError::new(
                ErrorCode::DbAccessDenied,
                "Access denied: tables of information_schema can be read only",
            ));
        }
        self.check(principal, privilege, Object::Table { db, table: name })?;
        self.table_called(db, name)
    }

    /// The table of that name, without asking who wants it.
    ///
    /// # Errors
    /// Unknown database or table, or it is a view.
    pub(crate) fn table_called(&self, db: &str, name: &str) -> Result<Arc<Table>, SqlError> {
        self.names.table(db, name).map_err(|error| match self.catalog.view(db, name) {
            Some(view) => SqlError::wrong_object(&view.table_ref(), "BASE TABLE", ""),
            None => error,
        })
    }

    /// The table with that id, whatever its name. Callers must have been checked.
    pub(crate) fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        self.names.all_tables().into_iter().find(|table| table.id() == id)
    }

    pub(crate) fn kill_connection(&self, principal: &Principal, id: u32) -> Result<(), SqlError> {
        self.process(principal, id).map(|process| process.kill())
    }

    pub(crate) fn kill_statement(&self, principal: &Principal, id: u32) -> Result<(), SqlError> {
        self.process(principal, id).map(|process| process.stop.set())
    }

    /// The connection: one's own user's, or any for an administrator. Others' answer like missing ones.
    fn process(&self, principal: &Principal, id: u32) -> Result<Arc<Process>, SqlError> {
        let found = self.processes.find(id).filter(|process| {
            process.is_of(principal)
                || self.policy.allows(principal, Privilege::Admin, Object::Connection(id))
        });
        found.ok_or_else(|| SqlError::new(ErrorCode::UnknownThread, format!("Unknown thread id: {id}")))
    }

    /// A user whose password was checked. Later checks are for the user that the connection is found to be now.
    pub(crate) fn principal(&self, user: &str, host: &str) -> Principal {
        // Before the user is looked for: a later change then counts.
        let principal = Principal::new(user, host, self.names.generation());
        match self.catalog.find_user(user, host) {
            Some(found) => principal.of_account(&found.host),
            None => principal,
        }
    }

    /// A user whose token was checked.
    pub(crate) fn principal_of(&self, user: &User, host: &str) -> Principal {
        Principal::new(&user.name, host, self.names.generation()).of_account(&user.host)
    }

    /// The users that have no password.
    #[must_use]
    pub(crate) fn users_without_password(&self) -> Vec<String> {
        let users = self.catalog.users();
        let open = users.iter().filter(|user| user.password.is_empty());
        let mut names: Vec<String> = open.map(|user| user.name.clone()).collect();
        names.sort();
        names
    }
}
