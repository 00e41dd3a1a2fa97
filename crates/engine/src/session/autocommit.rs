//! `autocommit = 0`: the first statement that changes rows begins a transaction, and COMMIT or ROLLBACK ends it.
//!
//! That is MySQL's meaning, for sessions with `mysql_ddl = compat`; in Doris the variable has no effect. Changes that can't be
//! part of a transaction are stored at once, as those of tables without transactions are in MySQL, and ROLLBACK warns of them.
//!
//! Not here: transactions themselves.

use super::EngineSession;
use super::compat::Warning;
use crate::access::Privilege;
use crate::access::finished::Door;
use crate::answer::Answer;
use tributary_sql::{Name, SavepointVerb, Statement};
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError};

impl EngineSession {
    /// Whether `mysql_ddl` is `compat`.
    pub(super) fn is_compatible(&self) -> bool {
        self.variables.values().mysql_ddl == "compat"
    }

    /// Whether each statement is committed at its end, unless BEGIN was sent.
    pub(super) fn commits_each(&self) -> bool {
        // A statement over HTTP is a session.
        self.variables.values().autocommit || !self.is_compatible() || self.door != Door::Statement
    }

    /// Begins the transaction that an INSERT is part of, if it has none.
    #[inline]
    pub(super) async fn begin_with_insert(&mut self) -> Result<(), SqlError> {
        if self.transaction.is_none() && !self.commits_each() {
            Box::pin(self.begin_implicitly()).await?;
        }
        Ok(())
    }

    async fn begin_implicitly(&mut self) -> Result<(), SqlError> {
        let _ = self.begin(None, None).await?;
        if let Some(transaction) = &mut self.transaction {
            transaction.is_implicit = true;
        }
        Ok(())
    }

    /// Begins the transaction that the statement is part of, if it has none, and ends the one that it can't be part of.
    ///
    /// # Errors
    /// The statement can't be part of the open transaction, or that can't be committed.
    pub(super) async fn open_transaction(&mut self, statement: &Statement) -> Result<(), SqlError> {
        if matches!(statement, Statement::Begin { .. }) && self.is_compatible() && self.transaction.is_some()
        {
            return self.commit().await.map(drop);
        }
        if self.commits_each() {
            return Ok(());
        }
        let is_part = match statement {
            Statement::Insert(insert) => !insert.overwrite && insert.label.is_none(),
            Statement::Update(update) => self.has_unique_key(&update.table),
            Statement::Delete(delete) => self.has_unique_key(&delete.table),
            Statement::Savepoint { verb: SavepointVerb::Set, .. } => true,
            Statement::LoadData(_) => false,
            _ => return Ok(()),
        };
        if is_part {
            return self.begin_with_insert().await;
        }
        if matches!(statement, Statement::Update(_) | Statement::Delete(_)) {
            // Its table decides ([`EngineSession::change_at_once`]).
            self.has_changed_at_once |= self.transaction.is_none();
            return Ok(());
        }
        if let Some(transaction) = self.transaction.take_if(|transaction| transaction.is_implicit)
            && transaction.has_loads()
        {
            self.transaction = Some(transaction);
            let text = format!(
                "{} can't be part of the transaction that autocommit = 0 has begun, as it could not be rolled back here: COMMIT first",
                statement.kind()
            );
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        self.has_changed_at_once |= self.transaction.is_none();
        Ok(())
    }

    /// Lets a statement change rows of a table without UNIQUE KEY, which a transaction can't undo: they are stored at once, as those of
    /// tables without transactions are in MySQL, and ROLLBACK warns of them.
    ///
    /// # Errors
    /// The open transaction is one of Doris, or it has rows of the table, which would have to be stored first.
    pub(super) fn change_at_once(&mut self, what: &str, table: &Table) -> Result<(), SqlError> {
        let Some(transaction) = &self.transaction else { return Ok(()) };
        let text = match (self.is_compatible(), transaction.has_rows_of(table.id())) {
            (true, false) => {
                self.has_changed_at_once = true;
                return Ok(());
            }
            (true, true) => format!(
                "{what} in a transaction that has rows of the table is not supported, as it could not be rolled back here: COMMIT first"
            ),
            (false, _) => format!("{what} in a transaction is not supported yet; COMMIT first"),
        };
        Err(SqlError::detail(ErrorCode::NotSupported, text))
    }

    fn has_unique_key(&self, table: &Name) -> bool {
        let table = self.table(Privilege::Load, table.db.as_deref(), &table.table);
        table.is_ok_and(|table| table.with_def(|def| def.keys.is_unique()))
    }

    /// Adds MySQL's warning to the answer of a ROLLBACK after changes that stay.
    pub(super) fn warn_of_changes(&mut self, answer: Answer) -> Answer {
        if !std::mem::take(&mut self.has_changed_at_once) {
            return answer;
        }
        let text = "Some non-transactional changed tables couldn't be rolled back";
        let warning = Warning { is_note: false, code: ErrorCode::NotRolledBack, text: text.to_owned() };
        self.with_warnings(answer, [warning])
    }
}
