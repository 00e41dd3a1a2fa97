//! Prepared statements of SQL: `PREPARE s FROM '…'`, `EXECUTE s USING @a`, `DEALLOCATE PREPARE s`.
//!
//! They are kept with those of the protocol, so both count for one limit, and run as they do. Their ids begin at the end of the
//! numbers, where a driver's do not come to.
//!
//! Not the business of this module: what a statement means.

use super::EngineSession;
use super::prepared::General;
use crate::answer::Answer;
use futures::future::BoxFuture;
use tributary_query::ScalarValue;
use tributary_sql::{PreparedText, Statement};
use tributary_types::{ErrorCode, SqlError};

impl EngineSession {
    /// Keeps a statement under a name; one that had it is given up, even if the new one is wrong.
    pub(super) async fn run_prepare(&mut self, name: &str, text: PreparedText) -> Result<Answer, SqlError> {
        let text = match text {
            PreparedText::Written(text) => text,
            PreparedText::Variable(variable) => {
                self.user_variables.get(&variable).cloned().unwrap_or_else(|| "NULL".to_owned())
            }
        };
        let text = self.in_default_mode(&text).into_owned();
        self.forget_named(name);
        let id = u32::MAX - self.named_before;
        self.prepare_parsed(id, &text, |statement| {
            let is_possible = !matches!(
                statement,
                Statement::Empty
                    | Statement::Prepare { .. }
                    | Statement::Execute { .. }
                    | Statement::Deallocate { .. }
                    | Statement::LoadData(_)
            );
            if is_possible { Ok(()) } else { Err(not_possible()) }
        })
        .await?;
        self.running.kind = Some("PREPARE");
        self.named_before = self.named_before.wrapping_add(1);
        self.named_statements.insert(name.to_owned(), id);
        Ok(Answer::ok())
    }

    /// Runs the statement of this name with the values of these variables. Boxed: it is a statement that runs another.
    pub(super) fn run_execute<'a>(
        &'a mut self,
        name: &'a str,
        variables: &'a [String],
    ) -> BoxFuture<'a, Result<Answer, SqlError>> {
        Box::pin(async move {
            let id = self.named_statements.get(name);
            let kept = id.and_then(|id| self.statements.get(id)).and_then(|kept| kept.general());
            let Some(General { text, statement, notes, param_count }) = kept else {
                return Err(unknown(name, "EXECUTE"));
            };
            if variables.len() != usize::from(*param_count) {
                let text = "Incorrect arguments to EXECUTE".to_owned();
                return Err(SqlError::new(ErrorCode::WrongArguments, text));
            }
            let (text, statement, notes) = (text.clone(), statement.clone(), notes.clone());
            let values: Vec<ScalarValue> = variables
                .iter()
                .map(|variable| self.user_variables.get(variable).map_or(ScalarValue::Null, |it| value(it)))
                .collect();
            self.add_to_name(|| format!("{text}{values:?}").into_bytes());
            self.parsed(statement.kind(), statement.change());
            let answer = self.run(statement, &values).await?;
            Ok(self.with_notes(answer, notes))
        })
    }

    pub(super) fn run_deallocate(&mut self, name: &str) -> Result<Answer, SqlError> {
        if !self.forget_named(name) {
            return Err(unknown(name, "DEALLOCATE PREPARE"));
        }
        Ok(Answer::ok())
    }

    /// `false`: there is none.
    fn forget_named(&mut self, name: &str) -> bool {
        let id = self.named_statements.remove(name);
        id.is_some_and(|id| self.statements.remove(&id).is_some())
    }
}

/// A user variable's value. Variables have texts, and one of an integer means the integer, as in an expression.
fn value(text: &str) -> ScalarValue {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => ScalarValue::Int64(Some(number)),
        _ => ScalarValue::Utf8(Some(text.to_owned())),
    }
}

fn not_possible() -> SqlError {
    let text = "This command is not supported in the prepared statement protocol yet";
    SqlError::new(ErrorCode::UnsupportedPrepared, text)
}

fn unknown(name: &str, statement: &str) -> SqlError {
    let text = format!("Unknown prepared statement handler ({name}) given to {statement}");
    SqlError::new(ErrorCode::UnknownStatementHandle, text)
}
