//! One MySQL connection: its commands are statements of a session, and the session's answers are packets.
//!
//! Invariant: each answer of the session is written before the next statement runs.
//!
//! Not its business: what a statement means.

use super::columns::columns_of;
use super::params::PacketParams;
use crate::access::finished::Door;
use crate::answer::{Answer, Done, Rows};
use crate::session::{ClientUpload, EngineSession, NewUser};
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Instant;
use tributary_mysql::{
    ChangeUser, ClientFile, Column, OkInfo, Params, Prepared, ResultWriter, Session, SessionStatus,
};
use tributary_types::{ErrorCode, SqlError};

/// A connection and its session.
pub(super) struct Connection(pub EngineSession);

#[async_trait]
impl Session for Connection {
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let text = utf8(sql)?;
        self.0.begin_statement(text);
        let begun = Instant::now();
        let outcome = self.run(text, out).await;
        if !self.0.awaits_file() {
            self.0.end_statement();
            self.0.finished(Door::Statement, text, begun, out.rows(), &outcome);
        }
        outcome
    }

    async fn take_file(
        &mut self,
        file: &mut ClientFile<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let begun = Instant::now();
        let outcome = match self.0.load_upload(&mut Upload(file)).await {
            Ok(answer) => write(answer, out).await,
            Err(error) => Err(error),
        };
        self.0.end_statement();
        let statement = self.0.process.state().statement;
        self.0.finished(Door::Statement, &statement, begun, out.rows(), &outcome);
        outcome
    }

    async fn prepare(&mut self, id: u32, sql: &[u8]) -> Result<Prepared, SqlError> {
        let prepared = self.0.prepare(id, utf8(sql)?).await?;
        let columns = columns_of(&prepared.columns);
        Ok(Prepared { param_count: prepared.param_count, columns, warnings: 0 })
    }

    async fn execute(
        &mut self,
        id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let begun = Instant::now();
        let outcome = match self.0.execute(id, &PacketParams(params)).await {
            Ok(Answer::NeedsFile(name)) => self.ask_for(&name, out),
            Ok(answer) => write(answer, out).await,
            Err(error) => Err(error),
        };
        self.0.end_statement();
        self.0.finished(Door::Prepared, self.0.prepared_text(id), begun, out.rows(), &outcome);
        outcome
    }

    async fn close_statement(&mut self, id: u32) {
        self.0.forget_prepared(id);
    }

    async fn init_db(&mut self, db: &str) -> Result<(), SqlError> {
        self.0.use_database(db)
    }

    async fn reset(&mut self) -> Result<(), SqlError> {
        self.0.reset().await;
        Ok(())
    }

    async fn change_user(&mut self, user: ChangeUser) -> Result<(), SqlError> {
        self.0.change_user(NewUser { user: user.user, database: user.database }).await
    }

    async fn field_list(&mut self, table: &str, pattern: &str) -> Result<Vec<Column>, SqlError> {
        let (db, columns) = self.0.columns_like(table, pattern)?;
        let column = |column: tributary_types::ColumnDef| {
            Column::new(&column.name, column.data_type).in_table(&db, table)
        };
        Ok(columns.into_iter().map(column).collect())
    }

    async fn kill(&mut self, connection_id: u32) -> Result<(), SqlError> {
        self.0.kill_connection(connection_id)
    }

    fn status(&self) -> SessionStatus {
        SessionStatus {
            autocommit: self.0.autocommit(),
            in_transaction: self.0.is_in_transaction(),
            no_backslash_escapes: false,
        }
    }

    async fn close(&mut self) {
        self.0.close().await;
    }
}

impl Connection {
    /// Runs the text of one command: one statement, or several where the client has asked for that.
    async fn run(&mut self, text: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        // The hot statement of a client that allows several is one statement, too.
        if let Some(answer) = self.0.try_values_insert(text.as_bytes()).await? {
            return write(answer, out).await;
        }
        // Boxed: its states are many, and the hot INSERT should not carry space for them.
        Box::pin(self.run_parsed(text, out)).await
    }

    async fn run_parsed(&mut self, text: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        if !out.multi_statements() {
            return match self.0.run_parsed(text).await? {
                Answer::NeedsFile(name) => self.ask_for(&name, out),
                answer => write(answer, out).await,
            };
        }
        let statements = tributary_sql::split(text);
        if statements.is_empty() {
            return out.ok(OkInfo::default()).await;
        }
        let last = statements.len() - 1;
        for (number, statement) in statements.into_iter().enumerate() {
            match self.0.run_text(statement).await? {
                Answer::NeedsFile(_) if number < last => {
                    self.0.give_up_file();
                    return Err(SqlError::detail(
                        ErrorCode::NotSupported,
                        "LOAD DATA LOCAL must be the last of several statements",
                    ));
                }
                Answer::NeedsFile(name) => self.ask_for(&name, out)?,
                answer => write(answer, out).await?,
            }
        }
        Ok(())
    }

    /// Asks the client for the file that the session waits for.
    fn ask_for(&mut self, name: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        out.request_file(name).inspect_err(|_| self.0.give_up_file())
    }
}

/// Writes the answer of a statement that needs no file.
async fn write(answer: Answer, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
    match answer {
        Answer::Done(Done { affected_rows, warnings, info }) => {
            out.ok(OkInfo { affected_rows, warnings, info: &info, last_insert_id: 0 }).await
        }
        // Boxed: an INSERT's future should not carry space for it.
        Answer::Rows(rows) => Box::pin(write_rows(*rows, out)).await,
        Answer::NeedsFile(_) => Err(SqlError::new(
            ErrorCode::Unknown,
            "internal error: a file is asked for where none can be sent",
        )),
    }
}

/// Writes rows as they are computed.
async fn write_rows(mut rows: Rows, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
    let columns = columns_of(rows.columns());
    // Before the header: an error that comes with the first rows is an error, and not a broken result.
    let mut next = rows.next().await?;
    rows.interrupt().wait(out.start(&columns)).await??;
    while let Some(batch) = next {
        if batch.num_rows() > 0 {
            rows.interrupt().wait(out.batch(&batch)).await??;
        }
        next = rows.next().await?;
    }
    rows.interrupt().wait(out.finish()).await?
}

/// A file that the client sends.
struct Upload<'a, 'c>(&'a mut ClientFile<'c>);

#[async_trait]
impl ClientUpload for Upload<'_, '_> {
    async fn next(&mut self) -> Result<Option<Bytes>, SqlError> {
        self.0.next().await
    }
}

fn utf8(sql: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(sql).map_err(|error| {
        SqlError::detail(
            ErrorCode::Syntax,
            format!("the statement is not valid UTF-8 at byte {}; send it as utf8mb4", error.valid_up_to()),
        )
    })
}
