//! The kind of a statement, as records of statements name it.
//!
//! Not its business: which rights a kind needs.

use crate::ast::{
    Maintenance, RoleStatement, RoutineLoad, SavepointVerb, Statement, TokenStatement, WithoutEffect,
};
use crate::parse::ViewStatement;

impl Statement {
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
            Self::AlterTable { .. } | Self::AlterUser { .. } | Self::ReloadTls => "ALTER",
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
            Self::CancelLoad { .. } | Self::CancelExport { .. } | Self::CancelAlter { .. } => "CANCEL",
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
