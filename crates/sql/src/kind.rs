//! The kind of a statement, as records of statements name it, and its effect on the server.
//!
//! Not its business: which rights a kind needs.

use crate::ast::{
    Maintenance, RoleStatement, RoutineLoad, SavepointVerb, Scope, SetItem, Statement, TokenStatement,
    WithoutEffect,
};
use crate::parse::{JobStatement, ViewStatement};

/// The effect of a statement that changes the server and not its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Databases, tables, partitions or views.
    Schema,
    /// Users, roles, rights, passwords or tokens.
    Rights,
    /// Settings, global variables, limits of users or the certificate.
    Setting,
    /// A job that loads, exports or changes a schema.
    Job,
    /// A session or a statement ends.
    Kill,
}

impl Statement {
    /// Whether it creates or drops temporary tables, which only its session knows.
    #[must_use]
    pub const fn is_of_temporary_tables(&self) -> bool {
        match self {
            Self::CreateTable(create) => create.is_temporary,
            Self::CreateTableAs(create) => create.create.is_temporary,
            Self::CreateTableLike { is_temporary, .. } => *is_temporary,
            Self::DropTables { only_temporary, .. } => *only_temporary,
            _ => false,
        }
    }

    /// Its effect on the server; `None`: it has none beside rows and its own session.
    #[must_use]
    pub fn change(&self) -> Option<Change> {
        let is_password = |item: &SetItem| matches!(item, SetItem::Password { .. });
        let is_global = |item: &SetItem| match item {
            SetItem::Variable { scope, .. } => *scope == Scope::Global,
            SetItem::Transaction { scope, .. } => *scope == Some(Scope::Global),
            _ => false,
        };
        match self {
            own if own.is_of_temporary_tables() => None,
            Self::CreateDatabase { .. }
            | Self::CreateTable(_)
            | Self::CreateTableAs(_)
            | Self::CreateTableLike { .. }
            | Self::DropDatabase { .. }
            | Self::DropTable { .. }
            | Self::DropTables { .. }
            | Self::DropRecycled(_)
            | Self::AlterTable { .. }
            | Self::View(_)
            | Self::Recover(_)
            | Self::TruncateTable { .. }
            | Self::RenameTables(_) => Some(Change::Schema),
            Self::CreateUser { .. }
            | Self::DropUser { .. }
            | Self::AlterUser { .. }
            | Self::Role(_)
            | Self::Token(_)
            | Self::Grant(_)
            | Self::Revoke(_) => Some(Change::Rights),
            Self::Set(items) if items.iter().any(is_password) => Some(Change::Rights),
            Self::Set(items) if items.iter().any(is_global) => Some(Change::Setting),
            Self::SetProperty(_) | Self::SetConfig(_) | Self::ReloadTls | Self::Decommission { .. } => {
                Some(Change::Setting)
            }
            Self::RoutineLoad(_)
            | Self::Job(_)
            | Self::CancelLoad { .. }
            | Self::CancelExport { .. }
            | Self::CancelAlter { .. } => Some(Change::Job),
            Self::Kill(_) => Some(Change::Kill),
            _ => None,
        }
    }

    /// The first words of the statement, in capitals.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "",
            Self::CreateDatabase { .. }
            | Self::CreateTable(_)
            | Self::CreateTableAs(_)
            | Self::CreateTableLike { .. }
            | Self::CreateUser { .. } => "CREATE",
            Self::DropDatabase { .. }
            | Self::DropTable { .. }
            | Self::DropRecycled(_)
            | Self::DropUser { .. } => "DROP",
            Self::AlterTable { .. }
            | Self::AlterUser { .. }
            | Self::ReloadTls
            | Self::Decommission { cancels: false, .. } => "ALTER",
            Self::View(view) => match **view {
                ViewStatement::Create(_) => "CREATE",
                ViewStatement::Alter { .. } | ViewStatement::Comment { .. } => "ALTER",
                ViewStatement::Drop { .. } => "DROP",
            },
            Self::Role(role) => match role {
                RoleStatement::Create { .. } => "CREATE",
                RoleStatement::Alter { .. } => "ALTER",
                RoleStatement::Drop { .. } => "DROP",
            },
            Self::Token(token) => match **token {
                TokenStatement::Create { .. } => "CREATE",
                TokenStatement::Drop { .. } => "DROP",
            },
            Self::Recover(_) => "RECOVER",
            Self::TruncateTable { .. } => "TRUNCATE",
            Self::Delete(_) => "DELETE",
            Self::Update(_) => "UPDATE",
            Self::Insert(_) => "INSERT",
            Self::LoadData(_) | Self::BrokerLoad(_) => "LOAD",
            Self::RoutineLoad(statement) => match **statement {
                RoutineLoad::Create(_) => "CREATE",
                RoutineLoad::Alter { .. } => "ALTER",
                RoutineLoad::Pause(_) | RoutineLoad::PauseAll => "PAUSE",
                RoutineLoad::Resume(_) | RoutineLoad::ResumeAll => "RESUME",
                RoutineLoad::Stop(_) => "STOP",
            },
            Self::Job(statement) => match **statement {
                JobStatement::Create(_) => "CREATE",
                JobStatement::Pause { .. } => "PAUSE",
                JobStatement::Resume { .. } => "RESUME",
                JobStatement::Drop { .. } => "DROP",
            },
            Self::CancelLoad { .. }
            | Self::CancelExport { .. }
            | Self::CancelAlter { .. }
            | Self::Decommission { cancels: true, .. } => "CANCEL",
            Self::Backup(_) => "BACKUP",
            Self::Verify(_) => "VERIFY",
            Self::SetConfig(_) => "ADMIN",
            Self::Export(_) => "EXPORT",
            Self::CleanLabel { .. } => "CLEAN",
            Self::Query(_) | Self::Outfile(_) | Self::SelectInto { .. } => "SELECT",
            Self::Explain(_) => "EXPLAIN",
            Self::Use { .. } => "USE",
            Self::Set(_) | Self::SetProperty(_) => "SET",
            Self::Show(_) => "SHOW",
            Self::Describe { .. } | Self::DescribeFunction(_) => "DESCRIBE",
            Self::Begin { .. } => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::Sync { .. } => "SYNC",
            Self::Grant(_) => "GRANT",
            Self::Revoke(_) => "REVOKE",
            Self::Kill(_) => "KILL",
            Self::Savepoint { verb: SavepointVerb::Set, .. } => "SAVEPOINT",
            Self::Savepoint { verb: SavepointVerb::Release, .. } => "RELEASE",
            Self::Savepoint { verb: SavepointVerb::RollBackTo, .. } => "ROLLBACK",
            Self::WithoutEffect(what) => match what {
                WithoutEffect::LockTables => "LOCK",
                WithoutEffect::UnlockTables => "UNLOCK",
                WithoutEffect::Flush => "FLUSH",
                WithoutEffect::LeftOut => "ALTER",
            },
            Self::RenameTables(_) => "RENAME",
            Self::Prepare { .. } => "PREPARE",
            Self::Execute { .. } => "EXECUTE",
            Self::Deallocate { .. } => "DEALLOCATE",
            Self::DropTables { .. } => "DROP",
            Self::Compute(_) => "DO",
            Self::Maintain { verb, .. } => match verb {
                Maintenance::Check => "CHECK",
                Maintenance::Analyze => "ANALYZE",
                Maintenance::Optimize => "OPTIMIZE",
                Maintenance::Repair => "REPAIR",
                Maintenance::Checksum => "CHECKSUM",
            },
        }
    }
}
