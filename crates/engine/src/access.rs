//! Privileges: the one check that every statement, endpoint and look-up of a name performs.
//!
//! A table, a database or a statement is accessible only with a [`Principal`] and a [`Privilege`]. [`Privileges`] decides by the
//! grants in the catalog.
//!
//! A plan of an INSERT is checked when it is made, and made again when a name changes
//! (`Names::generation`); a change of privileges has to count as one.
//!
//! The names of tables ([`names`]) are looked up through the [gate](gate::Gate) only. Passwords are checked by [`logins`].
//!
//! Not here: what is done with an object that was looked up.

pub(crate) mod accounts;
pub(crate) mod events;
pub(crate) mod failures;
pub(crate) mod finished;
pub(crate) mod gate;
pub(crate) mod interrupt;
pub(crate) mod limits;
pub(crate) mod logins;
mod mysql_grants;
pub(crate) mod names;
pub(crate) mod privileges;
pub(crate) mod processes;
pub(crate) mod right;
pub(crate) mod spans;
mod tokens;
pub(crate) mod user_locks;

use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_sql::{
    GrantStatement, JobStatement, Name, Recover, RoutineLoad, Show, Statement, ViewStatement, WarningsOf,
};
use tributary_types::privilege::GrantScope;
use tributary_types::{Principal, SqlError};

/// A kind of access that requires a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// Use a session: variables, transactions, SYNC.
    Connect,
    Select,
    Load,
    /// Remove all rows.
    Truncate,
    Create,
    Alter,
    Drop,
    /// See that it exists, and facts about it.
    Show,
    /// See the statement that makes a table, with all its columns.
    ShowCreate,
    /// See the query of a view.
    ShowView,
    /// Use a way out of the server.
    Usage,
    /// Change users, roles and their rights.
    Grant,
    /// Change global settings and other sessions.
    Admin,
    /// Add and remove nodes.
    Node,
}

/// The target of a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object<'a> {
    Server,
    Database(&'a str),
    Table {
        db: &'a str,
        table: &'a str,
    },
    User(&'a str),
    Connection(u32),
    /// A way out of the server; see [`Resource`].
    Resource(Resource),
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

    /// The columns of a table or view that the principal may read.
    fn readable(&self, principal: &Principal, db: &str, table: &str) -> Readable {
        match self.allows(principal, Privilege::Select, Object::Table { db, table }) {
            true => Readable::All,
            false => Readable::Nothing,
        }
    }
}

/// The columns of a table that a principal may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    All,
    /// In lower case.
    Only(Arc<BTreeSet<String>>),
    Nothing,
}

impl Readable {
    /// The columns that both allow.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::All, other) | (other, Self::All) => other,
            (Self::Only(one), Self::Only(other)) => {
                let both: BTreeSet<String> = one.intersection(&other).cloned().collect();
                if both.is_empty() { Self::Nothing } else { Self::Only(Arc::new(both)) }
            }
        }
    }
}

/// A way by which a statement leaves the server: it reads or writes there with the server's network address and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    S3,
    Http,
    /// Files in `secure_load_dir`.
    Local,
    Kafka,
}

impl Resource {
    pub const ALL: [Self; 4] = [Self::S3, Self::Http, Self::Local, Self::Kafka];

    /// The name in `GRANT USAGE_PRIV ON RESOURCE …`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Http => "http",
            Self::Local => "local",
            Self::Kafka => "kafka",
        }
    }
}

/// The privilege to write files of results: into a bucket, or on the machine itself.
pub(crate) const fn writing(is_local: bool) -> (Privilege, Object<'static>) {
    match is_local {
        true => (Privilege::Admin, Object::Server),
        false => (Privilege::Usage, Object::Resource(Resource::S3)),
    }
}

/// Allows everything, for tests of other things.
#[cfg(test)]
pub(crate) struct Everything;

#[cfg(test)]
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
            | Show::DataTypes
            | Show::Functions { .. }
            | Show::Privileges
            | Show::Unused(_)
            | Show::Catalogs { .. } => (Privilege::Connect, Object::Server),
            Show::Backends | Show::Frontends | Show::FrontendConfig { .. } | Show::BackendConfig { .. } | Show::RecycleBin { .. } | Show::Partition { .. } => {
                (Privilege::Show, Object::Server)
            }
            Show::Grants { all: true, .. } | Show::Tokens { all: true, .. } => (Privilege::Grant, Object::Server),
            Show::Roles => (Privilege::Grant, Object::Server),
            Show::Grants { user: Some(user), .. } | Show::Property { user: Some(user), .. } => {
                (Privilege::Show, Object::User(&user.name))
            }
            // The right to those of another user is checked where they are looked up.
            Show::Grants { user: None, .. } | Show::Property { user: None, .. } | Show::Tokens { .. } => {
                (Privilege::Connect, Object::Server)
            }
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
            Show::Jobs { .. }
            | Show::RoutineLoad { .. }
            | Show::RoutineLoadTask { .. }
            | Show::CreateRoutineLoad { .. }
            // Nobody can guess the address.
            | Show::LoadWarnings { of: WarningsOf::Url(_), .. } => (Privilege::Connect, Object::Server),
            Show::CreateLoad { label } => (
                Privilege::Show,
                label.db.as_deref().or(session_db).map_or(Object::Server, Object::Database),
            ),
            // What is shown has the names of all columns.
            Show::CreateTable { table: name }
            | Show::Index { table: name }
            | Show::Partitions { table: name, .. } => (Privilege::ShowCreate, table(name)),
            Show::Columns { table: name, .. } => (Privilege::Show, table(name)),
            Show::CreateView { view } => (Privilege::ShowView, table(view)),
            Show::Data { table: name, .. } => match name {
                Some(name) => (Privilege::Show, table(name)),
                None => (Privilege::Show, session_db.map_or(Object::Server, Object::Database)),
            },
    }
}

fn of_grant(statement: &GrantStatement) -> (Privilege, Object<'_>) {
    let object = match statement {
        GrantStatement::Rights { scope: GrantScope::Database(db), .. } => Object::Database(db),
        GrantStatement::Rights {
            scope: GrantScope::Table { db, table } | GrantScope::Column { db, table, .. },
            ..
        } => Object::Table { db, table },
        GrantStatement::Rights { scope: GrantScope::Global | GrantScope::Resource(_), .. }
        | GrantStatement::Roles { .. } => Object::Server,
    };
    (Privilege::Grant, object)
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
        | Statement::Sync { .. }
        | Statement::Savepoint { .. }
        | Statement::WithoutEffect(_)
        | Statement::Compute(_)
        // Each table is checked where its name is looked up.
        | Statement::RenameTables(_)
        | Statement::DropTables { .. }
        | Statement::Maintain { .. }
        // What is executed is checked like any statement.
        | Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::Deallocate { .. }
        | Statement::Query(_)
        | Statement::Outfile(_)
        | Statement::SelectInto { .. }
        | Statement::Explain(_)
        | Statement::DescribeFunction(_) => (Privilege::Connect, Object::Server),
        Statement::Use { db } => (Privilege::Connect, Object::Database(db)),
        Statement::Insert(insert) => (Privilege::Load, table(&insert.table)),
        Statement::LoadData(load) => (Privilege::Load, table(&load.table)),
        // The table is checked where its name is looked up.
        Statement::BrokerLoad(load) => (Privilege::Connect, database(&load.db)),
        Statement::CancelLoad { db, .. } => (Privilege::Load, database(db)),
        Statement::Export(export) => (Privilege::Select, table(&export.table)),
        Statement::CleanLabel { db, .. } => (Privilege::Load, database(db)),
        Statement::CancelExport { db, .. } => (Privilege::Select, database(db)),
        // Whose job it is is checked where the name is looked up.
        Statement::Job(statement) => match &**statement {
            JobStatement::Create(create) => (Privilege::Load, table(&create.insert.table)),
            JobStatement::Pause { .. } | JobStatement::Resume { .. } | JobStatement::Drop { .. } => {
                (Privilege::Connect, Object::Server)
            }
        },
        Statement::RoutineLoad(statement) => of_routine_load(statement, session_db),
        Statement::Delete(delete) => (Privilege::Load, table(&delete.table)),
        Statement::Update(update) => (Privilege::Load, table(&update.table)),
        Statement::Describe { table: name, .. } => (Privilege::Show, table(name)),
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
        Statement::TruncateTable { table: name, .. } => (Privilege::Truncate, table(name)),
        Statement::AlterTable { table: name, .. } | Statement::CancelAlter { table: name, .. } => {
            (Privilege::Alter, table(name))
        }
        // The rights that the user, the role or the grantee has or gets are checked where it is changed.
        Statement::CreateUser { .. }
        | Statement::AlterUser { .. }
        | Statement::DropUser { .. }
        | Statement::SetProperty(_)
        | Statement::Role(_) => (Privilege::Grant, Object::Server),
        // One's own are everybody's; the right to those of another user is checked where they are changed.
        Statement::Token(_) => (Privilege::Connect, Object::Server),
        Statement::Grant(grant) | Statement::Revoke(grant) => of_grant(grant),
        Statement::ReloadTls | Statement::SetConfig(_) => (Privilege::Admin, Object::Server),
        Statement::Decommission { .. } | Statement::Backup(_) | Statement::Verify(_) => {
            (Privilege::Node, Object::Server)
        }
        // One's own may be ended by everybody; checked where the connection is looked up.
        Statement::Kill(_) => (Privilege::Connect, Object::Server),
        Statement::Show(show) => of_show(show, session_db),
    }
}

#[cfg(test)]
mod tests;
