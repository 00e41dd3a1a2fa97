//! Statements that MySQL's clients send and that have little to do here: locks of tables, savepoints, checks of tables, several
//! tables renamed or dropped at once.
//!
//! Each does all that it says, or says what it leaves out.

use super::EngineSession;
use crate::access::interrupt::Interrupt;
use crate::access::{Object, Privilege};
use crate::answer::{Answer, Done};
use crate::follow::refusal;
use std::sync::Arc;
use tributary_query::{Grid, ScalarValue};
use tributary_sql::{Maintenance, Name, SavepointVerb, SelectQuery, Statement, WithoutEffect};
use tributary_types::{ErrorCode, SqlError, TableRef};

/// The most savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 1024;

/// A warning of the last statement, for SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Something worth knowing; nothing is wrong.
    pub is_note: bool,
    pub code: ErrorCode,
    pub text: String,
}

impl Warning {
    pub const fn note(text: String) -> Self {
        Self::note_of(ErrorCode::Unknown, text)
    }

    /// A note with the number that MySQL gives it.
    pub const fn note_of(code: ErrorCode, text: String) -> Self {
        Self { is_note: true, code, text }
    }

    pub const fn of(text: String) -> Self {
        Self { is_note: false, code: ErrorCode::Unknown, text }
    }

    /// `IF EXISTS` of a table or view that is not there.
    pub fn unknown_table(name: &TableRef) -> Self {
        Self::note_of(ErrorCode::UnknownTable, format!("Unknown table '{name}'"))
    }

    /// `IF NOT EXISTS` of a table or view that is there.
    pub fn table_exists(name: &TableRef) -> Self {
        Self::note_of(ErrorCode::TableExists, format!("Table '{}' already exists", name.table))
    }
}

/// Whether MySQL commits the open transaction before it runs the statement: definitions are not part of transactions.
pub(super) const fn commits_first(statement: &Statement) -> bool {
    if statement.is_of_temporary_tables() {
        return false;
    }
    matches!(
        statement,
        Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
            | Statement::CreateTable(_)
            | Statement::CreateTableAs(_)
            | Statement::CreateTableLike { .. }
            | Statement::View(_)
            | Statement::DropTable { .. }
            | Statement::DropTables { .. }
            | Statement::RenameTables(_)
            | Statement::Recover(_)
            | Statement::DropRecycled(_)
            | Statement::TruncateTable { .. }
            | Statement::AlterTable { .. }
            | Statement::CancelAlter { .. }
            | Statement::CreateUser { .. }
            | Statement::AlterUser { .. }
            | Statement::DropUser { .. }
            | Statement::SetProperty(_)
            | Statement::Role(_)
            | Statement::Token(_)
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::ReloadTls
            | Statement::Decommission { .. }
            | Statement::Maintain { .. }
            | Statement::WithoutEffect(WithoutEffect::LockTables)
    )
}

/// Whether the statement writes, which a transaction that only reads does not.
fn writes(statement: &Statement) -> bool {
    match statement {
        Statement::Insert(_)
        | Statement::Delete(_)
        | Statement::Update(_)
        | Statement::LoadData(_)
        | Statement::BrokerLoad(_) => true,
        Statement::ReloadTls
        | Statement::Decommission { .. }
        | Statement::Maintain { .. }
        | Statement::WithoutEffect(_) => false,
        other => commits_first(other),
    }
}

/// Whether a node that only reads runs the statement: it changes nothing but the session and the process.
fn is_for_readers(statement: &Statement) -> bool {
    match statement {
        Statement::Empty
        | Statement::Query(_)
        | Statement::SelectInto { .. }
        | Statement::Outfile(_)
        | Statement::Explain(_)
        | Statement::Compute(_)
        | Statement::Show(_)
        | Statement::Describe { .. }
        | Statement::DescribeFunction(_)
        | Statement::Use { .. }
        | Statement::Begin { .. }
        | Statement::Commit
        | Statement::Rollback
        | Statement::Savepoint { .. }
        | Statement::Sync { .. }
        | Statement::WithoutEffect(_)
        | Statement::Maintain { .. }
        | Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::Deallocate { .. }
        | Statement::Kill(_)
        | Statement::ReloadTls
        | Statement::SetConfig(_) => true,
        // Passwords and global variables are in the catalog.
        Statement::Set(_) => statement.change().is_none(),
        _ => false,
    }
}

impl EngineSession {
    /// # Errors
    /// The transaction only reads, or all of the session do, or all of the node.
    pub(super) fn check_writes(&self) -> Result<(), SqlError> {
        if self.engine.follower().is_some() {
            return Err(refusal("this node only reads"));
        }
        let own = self.transaction.as_ref().and_then(|transaction| transaction.only_reads);
        if !own.unwrap_or(self.variables.values().transaction_read_only) {
            return Ok(());
        }
        let text = "Cannot execute statement in a READ ONLY transaction.";
        Err(SqlError::new(ErrorCode::ReadOnlyTransaction, text))
    }

    /// [`EngineSession::check_writes`] of a statement that writes.
    pub(super) fn check_access_mode(&self, statement: &Statement) -> Result<(), SqlError> {
        if self.engine.follower().is_some() && !is_for_readers(statement) {
            let what = format!("this node only reads, and {} changes the server", statement.kind());
            return Err(refusal(&what));
        }
        if writes(statement) { self.check_writes() } else { Ok(()) }
    }

    /// Adds notes to the answer of the statement that has just run.
    pub(super) fn with_notes(&mut self, answer: Answer, notes: Vec<String>) -> Answer {
        self.with_warnings(answer, notes.into_iter().map(Warning::note))
    }

    /// Adds warnings to the answer of the statement that has just run.
    pub(super) fn with_warnings(
        &mut self,
        answer: Answer,
        warnings: impl IntoIterator<Item = Warning>,
    ) -> Answer {
        let before = self.warnings.len();
        self.warnings.extend(warnings);
        let added = u16::try_from(self.warnings.len() - before).unwrap_or(u16::MAX);
        match answer {
            Answer::Done(done) => {
                Answer::Done(Done { warnings: done.warnings.saturating_add(added), ..done })
            }
            Answer::Rows(mut rows) => {
                rows.warn(added);
                Answer::Rows(rows)
            }
            Answer::NeedsFile(file) => Answer::NeedsFile(file),
        }
    }

    pub(super) fn run_without_effect(&mut self, what: WithoutEffect) -> Answer {
        let note = match what {
            WithoutEffect::UnlockTables => return Answer::ok(),
            WithoutEffect::LockTables => {
                "no table is locked: a query reads one version of each table, and loads of others go on"
            }
            WithoutEffect::Flush => {
                "nothing is flushed: grants count at once, and what was acknowledged is in the write-ahead log"
            }
            WithoutEffect::LeftOut => "the statement changes nothing here",
        };
        self.with_notes(Answer::ok(), vec![note.to_owned()])
    }

    /// SAVEPOINT and what goes back to one.
    pub(super) async fn run_savepoint(
        &mut self,
        verb: SavepointVerb,
        name: &str,
    ) -> Result<Answer, SqlError> {
        let unknown =
            || SqlError::new(ErrorCode::UnknownSavepoint, format!("SAVEPOINT {name} does not exist"));
        let Some(transaction) = &mut self.transaction else {
            // As in MySQL: without a transaction, it ends with the statement that sets it.
            return match verb {
                SavepointVerb::Set => Ok(Answer::ok()),
                SavepointVerb::Release | SavepointVerb::RollBackTo => Err(unknown()),
            };
        };
        let here = transaction.savepoint();
        let savepoints = &mut transaction.savepoints;
        let place = savepoints.iter().position(|(other, _)| other.eq_ignore_ascii_case(name));
        match (verb, place) {
            (SavepointVerb::Set, place) => {
                if let Some(place) = place {
                    savepoints.remove(place);
                }
                if savepoints.len() >= SAVEPOINTS_MAX {
                    let text = format!(
                        "the transaction has {SAVEPOINTS_MAX} savepoints, which is the most: RELEASE some"
                    );
                    return Err(SqlError::detail(ErrorCode::Unknown, text));
                }
                savepoints.push((name.to_owned(), here));
            }
            (_, None) => return Err(unknown()),
            (SavepointVerb::Release, Some(place)) => savepoints.truncate(place),
            (SavepointVerb::RollBackTo, Some(place)) => {
                let savepoint = savepoints[place].1.clone();
                savepoints.truncate(place + 1);
                if !self.back_to(savepoint).await {
                    return Err(SqlError::detail(
                        ErrorCode::NotSupported,
                        format!(
                            "ROLLBACK TO SAVEPOINT {name} is not supported after rows that went to data files: the transaction can \
                             only be rolled back as a whole"
                        ),
                    ));
                }
            }
        }
        Ok(Answer::ok())
    }

    /// Runs a query whose rows nobody sees.
    pub(super) async fn run_compute(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let mut answer = self.run_query(query, params).await?;
        if let Answer::Rows(rows) = &mut answer {
            while rows.next().await?.is_some() {}
        }
        Ok(Answer::ok())
    }

    pub(super) async fn run_drop_tables(
        &mut self,
        tables: &[Name],
        if_exists: bool,
        force: bool,
        only_temporary: bool,
    ) -> Result<Answer, SqlError> {
        let engine = Arc::clone(&self.engine);
        let process = Arc::clone(&self.process);
        let db = self.database.clone();
        let names = tables.iter().map(|table| table.resolve(db.as_deref())).collect::<Result<Vec<_>, _>>()?;
        let others = self.drop_temporary_of(names, if_exists, only_temporary).await?;
        let mut absent = Vec::new();
        for name in &others {
            let killed = Interrupt::by_kill(&process.stop);
            if only_temporary || !engine.ddl.drop_table_called(killed, name, if_exists, force).await? {
                absent.push(Warning::unknown_table(name));
            }
        }
        Ok(self.with_warnings(Answer::ok(), absent))
    }

    /// RENAME TABLE: one table after the other. If one fails, those before it get their old names back.
    pub(super) async fn run_rename_tables(&mut self, renamed: &[(Name, Name)]) -> Result<Answer, SqlError> {
        let db = self.database.clone();
        let mut names = Vec::with_capacity(renamed.len());
        for (from, to) in renamed {
            let (from, to) = (from.resolve(db.as_deref())?, to.resolve(db.as_deref())?);
            let object = Object::Table { db: &from.db, table: &from.table };
            self.engine.gate.check(&self.principal, Privilege::Alter, object)?;
            let object = Object::Table { db: &to.db, table: &to.table };
            self.engine.gate.check(&self.principal, Privilege::Create, object)?;
            if from.db != to.db {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    format!(
                        "RENAME TABLE {from} TO {to}: a table stays in its database; CREATE TABLE {to} AS SELECT * FROM {from} copies it"
                    ),
                ));
            }
            names.push((from, to));
        }
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop);
        let ddl = &self.engine.ddl;
        match names.as_slice() {
            [(from, to)] if ddl.is_view(from) => {
                let turn = interrupt.wait(ddl.changing()).await?;
                ddl.rename_view(&turn, from, to).await?;
            }
            names => match names.iter().find(|(from, _)| ddl.is_view(from)) {
                Some((view, _)) => {
                    let text = format!(
                        "RENAME TABLE of the view {view} and others at once is not supported: rename one at a time"
                    );
                    return Err(SqlError::detail(ErrorCode::NotSupported, text));
                }
                None => ddl.rename_tables(interrupt, names).await?,
            },
        }
        Ok(Answer::ok())
    }

    /// CHECK TABLE and the like, with the columns of MySQL's answers.
    pub(super) async fn run_maintain(
        &mut self,
        verb: Maintenance,
        tables: &[Name],
    ) -> Result<Answer, SqlError> {
        let mut grid = match verb {
            Maintenance::Checksum => Grid::new(&["Table", "Checksum"]),
            _ => Grid::new(&["Table", "Op", "Msg_type", "Msg_text"]),
        };
        for name in tables {
            let shown = name.resolve(self.database.as_deref())?.to_string();
            let found = self.table(Privilege::Select, name.db.as_deref(), &name.table);
            if verb == Maintenance::Checksum {
                // As MySQL answers for a table without a stored checksum.
                grid.push(vec![shown.as_str().into(), None::<String>.into()]);
                continue;
            }
            let mut push = |kind: &str, text: &str| {
                grid.push(vec![shown.as_str().into(), verb.name().into(), kind.into(), text.into()]);
            };
            if let Err(error) = found {
                push("Error", error.detail_text());
                push("status", "Operation failed");
                continue;
            }
            match verb {
                Maintenance::Check => match self.read_all(name).await {
                    Ok(()) => push("status", "OK"),
                    Err(error) if error.code == ErrorCode::QueryInterrupted => return Err(error),
                    Err(error) => {
                        push("Error", error.detail_text());
                        push("status", "Operation failed");
                    }
                },
                Maintenance::Analyze => {
                    push("note", "Statistics are kept with each data file and are never stale");
                    push("status", "OK");
                }
                Maintenance::Optimize => {
                    push("note", "Data files are merged in the background");
                    push("status", "OK");
                }
                _ => push(
                    "note",
                    "There is nothing to repair by hand: data files are written once and checked when they are read",
                ),
            }
        }
        Answer::grid(&grid)
    }

    /// Reads every column of every row, which checks all pages of the data files.
    async fn read_all(&mut self, name: &Name) -> Result<(), SqlError> {
        let name = name.resolve(self.database.as_deref())?;
        let quoted = |text: &str| text.replace('`', "``");
        let text = format!("SELECT * FROM `{}`.`{}`", quoted(&name.db), quoted(&name.table));
        let query = tributary_sql::parse_query(&text)?;
        let mut answer = self.run_query(&query, &[]).await?;
        if let Answer::Rows(rows) = &mut answer {
            while rows.next().await?.is_some() {}
        }
        Ok(())
    }
}
