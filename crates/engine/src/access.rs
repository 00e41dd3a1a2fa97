//! Privileges: the one check that every statement, endpoint and look-up of a name performs.
//!
//! Privileges are not implemented yet, so [`Everything`] is allowed. The interface exists: a table, a database or a statement is
//! accessible only with a [`Principal`] and a [`Privilege`], so adding a checker that refuses is a change of one type.
//!
//! A plan of an INSERT is checked when it is made, and made again when a name changes
//! (`Names::generation`); a change of privileges has to count as one.
//!
//! The names of tables ([`names`]) are looked up through the [gate](gate::Gate) only. It checks passwords, too.
//!
//! Not here: what is done with an object that was looked up.

pub(crate) mod finished;
pub(crate) mod gate;
pub(crate) mod interrupt;
pub(crate) mod names;
pub(crate) mod processes;

use tributary_sql::{Kill, Name, Recover, RoutineLoad, Show, Statement, ViewStatement, WarningsOf};
use tributary_types::{Principal, SqlError};

/// A kind of access that requires a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// Use a session: variables, transactions, SYNC.
    Connect,
    Select,
    Load,
    Create,
    Alter,
    Drop,
    /// Look at facts about the server, other users or other sessions.
    Show,
    /// Change users, global settings and other sessions.
    Admin,
}

/// The target of a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object<'a> {
    Server,
    Database(&'a str),
    Table { db: &'a str, table: &'a str },
    User(&'a str),
    Connection(u32),
}

/// Checks privileges. Called for every statement and look-up, but not for every execution of a plan: it answers from memory.
pub(crate) trait Access: Send + Sync + 'static {
    /// # Errors
    /// The text that the client gets if the principal may not.
    fn check(&self, principal: &Principal, privilege: Privilege, object: Object<'_>) -> Result<(), SqlError>;

    /// Whether the principal has the privilege; for lists that omit invisible objects.
    fn allows(&self, principal: &Principal, privilege: Privilege, object: Object<'_>) -> bool {
        self.check(principal, privilege, object).is_ok()
    }
}

/// Allows everything.
pub(crate) struct Everything;

impl Access for Everything {
    fn check(&self, _: &Principal, _: Privilege, _: Object<'_>) -> Result<(), SqlError> {
        Ok(())
    }
}

const fn of_view(statement: &ViewStatement) -> Privilege {
    match statement {
        ViewStatement::Create(_) => Privilege::Create,
        ViewStatement::Alter { .. } | ViewStatement::Comment { .. } => Privilege::Alter,
        ViewStatement::Drop { .. } => Privilege::Drop,
    }
}

fn of_routine_load<'a>(statement: &'a RoutineLoad, session_db: Option<&'a str>) -> (Privilege, Object<'a>) {
    match statement {
        RoutineLoad::Create(create) => match create.job.db.as_deref().or(session_db) {
            Some(db) => match &create.table {
                Some(table) => (Privilege::Load, Object::Table { db, table }),
                None => (Privilege::Load, Object::Database(db)),
            },
            None => (Privilege::Load, Object::Server),
        },
        // The job's table is checked where the job is looked up.
        RoutineLoad::Alter { .. }
        | RoutineLoad::Pause(_)
        | RoutineLoad::PauseAll
        | RoutineLoad::Resume(_)
        | RoutineLoad::ResumeAll
        | RoutineLoad::Stop(_) => (Privilege::Connect, Object::Server),
    }
}

fn of_show<'a>(show: &'a Show, session_db: Option<&'a str>) -> (Privilege, Object<'a>) {
    let database = |db: &'a Option<String>| match db.as_deref().or(session_db) {
        Some(db) => Object::Database(db),
        None => Object::Server,
    };
    let table = |name: &'a Name| match name.db.as_deref().or(session_db) {
        Some(db) => Object::Table { db, table: &name.table },
        None => Object::Server,
    };
    match show {
            Show::Databases { .. }
            | Show::Variables { .. }
            | Show::Status { .. }
            | Show::Warnings { .. }
            | Show::Errors { .. }
            | Show::Engines
            | Show::Charset { .. }
            | Show::Collation { .. }
            | Show::ProcessList { .. }
            | Show::LastInsert
            | Show::ProcedureStatus { .. }
            | Show::FunctionStatus { .. }
            | Show::Plugins
            | Show::Privileges
            | Show::Catalogs { .. } => (Privilege::Connect, Object::Server),
            Show::Backends | Show::Frontends | Show::FrontendConfig { .. } | Show::RecycleBin { .. } | Show::Partition { .. } => {
                (Privilege::Show, Object::Server)
            }
            Show::Grants { user, .. } => match user {
                Some(user) => (Privilege::Show, Object::User(&user.name)),
                None => (Privilege::Connect, Object::Server),
            },
            Show::CreateDatabase { db } => (Privilege::Show, Object::Database(db)),
            Show::Tables { db, .. }
            | Show::TableStatus { db, .. }
            | Show::Load { db, .. }
            | Show::StreamLoad { db, .. }
            | Show::Export { db, .. }
            | Show::LoadWarnings { of: WarningsOf::Label { db, .. }, .. }
            | Show::AlterTableColumn { db, .. }
            | Show::AlterTableRollup { db, .. }
            | Show::Triggers { db, .. }
            | Show::Events { db, .. }
            | Show::Transaction { db, .. }
            | Show::DynamicPartitionTables { db }
            | Show::Delete { db } => (Privilege::Show, database(db)),
            // As above.
            Show::RoutineLoad { .. }
            | Show::RoutineLoadTask { .. }
            | Show::CreateRoutineLoad { .. }
            // Nobody can guess the address.
            | Show::LoadWarnings { of: WarningsOf::Url(_), .. } => (Privilege::Connect, Object::Server),
            Show::CreateLoad { label } => (
                Privilege::Show,
                label.db.as_deref().or(session_db).map_or(Object::Server, Object::Database),
            ),
            Show::Columns { table: name, .. }
            | Show::CreateTable { table: name }
            | Show::CreateView { view: name }
            | Show::Index { table: name }
            | Show::Partitions { table: name, .. } => (Privilege::Show, table(name)),
            Show::Data { table: name, .. } => match name {
                Some(name) => (Privilege::Show, table(name)),
                None => (Privilege::Show, session_db.map_or(Object::Server, Object::Database)),
            },
    }
}

/// The privilege that a statement needs before it runs. Tables that it reads or loads into are checked where their names are
/// looked up. A new kind of statement does not compile without a line here.
pub(crate) fn needed<'a>(statement: &'a Statement, session_db: Option<&'a str>) -> (Privilege, Object<'a>) {
    let database = |db: &'a Option<String>| match db.as_deref().or(session_db) {
        Some(db) => Object::Database(db),
        None => Object::Server,
    };
    let table = |name: &'a Name| match name.db.as_deref().or(session_db) {
        Some(db) => Object::Table { db, table: &name.table },
        None => Object::Server,
    };
    match statement {
        Statement::Empty
        | Statement::Set(_)
        | Statement::Begin { .. }
        | Statement::Commit
        | Statement::Rollback
        | Statement::Sync
        | Statement::UnlockTables
        | Statement::Query(_)
        | Statement::Outfile(_)
        | Statement::Explain(_)
        | Statement::DescribeFunction(_) => (Privilege::Connect, Object::Server),
        Statement::Use { db } => (Privilege::Connect, Object::Database(db)),
        Statement::Insert(insert) => (Privilege::Load, table(&insert.table)),
        Statement::LoadData(load) => (Privilege::Load, table(&load.table)),
        Statement::BrokerLoad(load) => (Privilege::Load, database(&load.db)),
        Statement::CancelLoad { db, .. } => (Privilege::Load, database(db)),
        Statement::Export(export) => (Privilege::Select, table(&export.table)),
        Statement::CleanLabel { db, .. } => (Privilege::Load, database(db)),
        Statement::CancelExport { db, .. } => (Privilege::Select, database(db)),
        Statement::RoutineLoad(statement) => of_routine_load(statement, session_db),
        Statement::Delete(delete) => (Privilege::Load, table(&delete.table)),
        Statement::Update(update) => (Privilege::Load, table(&update.table)),
        Statement::Describe { table: name, .. } => (Privilege::Select, table(name)),
        Statement::CreateDatabase { name, .. } => (Privilege::Create, Object::Database(name)),
        Statement::DropDatabase { name, .. } => (Privilege::Drop, Object::Database(name)),
        Statement::CreateTable(create) => (Privilege::Create, table(&create.table)),
        // Tables that it reads are checked where their names are looked up.
        Statement::CreateTableAs(create) => (Privilege::Create, table(&create.create.table)),
        Statement::CreateTableLike { table: name, .. } => (Privilege::Create, table(name)),
        Statement::View(statement) => (of_view(statement), table(statement.view())),
        Statement::DropTable { table: name, .. } => (Privilege::Drop, table(name)),
        // The right to create is checked where it is recovered.
        Statement::Recover(recover) => match recover {
            Recover::Database(recovered) => (Privilege::Alter, Object::Database(&recovered.name)),
            Recover::Table(recovered) => (Privilege::Alter, table(&recovered.name)),
            Recover::Partition { table: name, .. } => (Privilege::Alter, table(name)),
        },
        Statement::DropRecycled(_) => (Privilege::Admin, Object::Server),
        Statement::TruncateTable { table: name, .. } => (Privilege::Load, table(name)),
        Statement::AlterTable { table: name, .. } | Statement::CancelAlter { table: name, .. } => {
            (Privilege::Alter, table(name))
        }
        Statement::CreateUser { user, .. }
        | Statement::AlterUser { user, .. }
        | Statement::DropUser { user, .. } => (Privilege::Admin, Object::User(&user.name)),
        Statement::Kill(kill) => match kill {
            Kill::Connection(id) | Kill::Query(id) => (Privilege::Admin, Object::Connection(*id)),
            Kill::QueryId(_) => (Privilege::Admin, Object::Server),
        },
        Statement::Show(show) => of_show(show, session_db),
    }
}

#[cfg(test)]
mod tests;
