//! One MySQL connection: its commands are statements of a session, and the session's answers are packets.
//!
//! Invariant: each answer of the session is written before the next statement runs.
//!
//! Not its business: what a statement means.

use super::columns::columns_of;
use super::params::PacketParams;
use crate::answer::{Answer, Done, Rows};
use crate::session::{ClientUpload, EngineSession, NewUser, Volume};
use async_trait::async_trait;
use bytes::Bytes;
use std::borrow::Cow;
use std::time::{Duration, Instant};
use tributary_decode::with_hex_literals;
use tributary_mysql::{
    ChangeUser, ClientFile, Column, OkInfo, Params, Prepared, ResultWriter, Session, SessionStatus,
};
use tributary_types::{ErrorCode, SqlError};

/// A connection and its session.
pub(super) struct Connection(pub EngineSession);

#[async_trait]
impl Session for Connection {
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let (begun, text) = (Instant::now(), self.text_of(sql));
        let outcome = match &text {
            Ok(text) => match self.0.begin_statement(text) {
                Ok(()) => self.run(text, out).await?,
                Err(refused) => Some(Err(refused)),
            },
            Err(error) => Some(Err(error.clone())),
        };
        let Some(outcome) = outcome else { return Ok(()) };
        self.ended(text.as_deref().unwrap_or_default(), begun, Counts::default(), out, outcome)
    }

    async fn take_file(
        &mut self,
        file: &mut ClientFile<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let begun = Instant::now();
        let mut upload = Upload { file, bytes: 0 };
        let outcome = match self.0.load_upload(&mut upload).await {
            Ok(answer) => write(answer, out).await,
            Err(error) => Err(error),
        };
        self.0.end_statement();
        let (text, received_bytes) = (self.0.last_text(), upload.bytes);
        let volume = Volume { affected_rows: out.affected_rows(), returned_rows: 0, received_bytes };
        self.0.finished(&text, begun, volume, &outcome);
        self.0.told(outcome)
    }

    async fn prepare(&mut self, id: u32, sql: &[u8]) -> Result<Prepared, SqlError> {
        let (begun, text) = (Instant::now(), self.text_of(sql)?);
        let prepared = match self.0.prepare(id, &text).await {
            Ok(prepared) => prepared,
            Err(error) => {
                let outcome = Err(error);
                self.0.not_prepared(&text, begun, &outcome);
                return outcome.map(|()| Prepared::default());
            }
        };
        let columns = columns_of(&prepared.columns);
        Ok(Prepared { param_count: prepared.param_count, columns, warnings: 0 })
    }

    async fn execute(
        &mut self,
        id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let (begun, received_bytes) = (Instant::now(), params.values().len() as u64);
        let outcome = match self.0.execute(id, &PacketParams(params)).await {
            Ok(Answer::NeedsFile(name)) => self.ask_for(&name, out),
            Ok(answer) => write(answer, out).await,
            Err(error) => Err(error),
        };
        self.0.end_statement();
        let (affected_rows, returned_rows) = (out.affected_rows(), out.returned_rows());
        let volume = Volume { affected_rows, returned_rows, received_bytes };
        self.0.finished_prepared(id, begun, volume, &outcome);
        self.0.told(outcome)
    }

    async fn close_statement(&mut self, id: u32) {
        self.0.forget_prepared(id);
    }

    async fn init_db(&mut self, db: &str) -> Result<(), SqlError> {
        let begun = Instant::now();
        let outcome = self.0.use_database(db);
        self.0.finished_command(&format!("USE `{db}`"), "USE", begun, &outcome);
        outcome
    }

    async fn reset(&mut self) -> Result<(), SqlError> {
        self.0.reset().await;
        Ok(())
    }

    async fn change_user(&mut self, user: ChangeUser) -> Result<(), SqlError> {
        let begun = Instant::now();
        let new = NewUser { user: user.user.clone(), database: user.database.clone() };
        let outcome = self.0.change_user(new).await;
        self.0.changed_user(&user.user, user.database.as_deref(), begun, &outcome);
        outcome
    }

    async fn field_list(&mut self, table: &str, pattern: &str) -> Result<Vec<Column>, SqlError> {
        let begun = Instant::now();
        let found = self.0.columns_like(table, pattern);
        let outcome = found.as_ref().map(drop).map_err(SqlError::clone);
        self.0.finished_command(&format!("SHOW COLUMNS FROM `{table}`"), "SHOW", begun, &outcome);
        let (db, columns) = found?;
        let column = |column: tributary_types::ColumnDef| {
            Column::new(&column.name, column.data_type).in_table(&db, table)
        };
        Ok(columns.into_iter().map(column).collect())
    }

    async fn kill(&mut self, connection_id: u32) -> Result<(), SqlError> {
        let begun = Instant::now();
        let outcome = self.0.kill_connection(connection_id);
        self.0.finished_command(&format!("KILL {connection_id}"), "KILL", begun, &outcome);
        outcome
    }

    fn status(&self) -> SessionStatus {
        SessionStatus {
            autocommit: self.0.autocommit(),
            in_transaction: self.0.is_in_transaction(),
            no_backslash_escapes: self.0.no_backslash_escapes(),
        }
    }

    fn idle_timeout(&self) -> Option<Duration> {
        self.0.wait_timeout()
    }

    async fn close(&mut self) {
        self.0.close().await;
    }
}

impl Connection {
    /// Runs the text of one command: one statement, or several where the client has asked for that. `None`: the statements have
    /// ended, each for itself.
    ///
    /// # Errors
    /// The error of one of several statements, which has ended.
    async fn run(
        &mut self,
        text: &str,
        out: &mut ResultWriter<'_>,
    ) -> Result<Option<Result<(), SqlError>>, SqlError> {
        // The hot statement of a client that allows several is one statement, too.
        match self.0.try_values_insert(text.as_bytes()).await {
            Ok(Some(answer)) => Ok(Some(write(answer, out).await)),
            // Boxed: their states are many, and the hot INSERT should not carry space for them.
            Ok(None) if out.multi_statements() => Box::pin(self.run_several(text, out)).await.map(|()| None),
            Ok(None) => Ok(Some(Box::pin(self.run_parsed(text, out)).await)),
            Err(error) => Ok(Some(Err(error))),
        }
    }

    async fn run_parsed(&mut self, text: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        match self.0.run_parsed(text).await? {
            Answer::NeedsFile(name) => self.ask_for(&name, out),
            answer => write(answer, out).await,
        }
    }

    async fn run_several(&mut self, text: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let statements = tributary_sql::split(text);
        if statements.is_empty() {
            self.0.end_statement();
            return out.ok(OkInfo::default()).await;
        }
        let last = statements.len() - 1;
        for (number, statement) in statements.into_iter().enumerate() {
            let (begun, before) = (Instant::now(), Counts::of(out));
            let outcome = match self.0.begin_statement(statement) {
                Ok(()) => self.run_one_of(statement, number == last, out).await,
                Err(refused) => Err(refused),
            };
            self.ended(statement, begun, before, out, outcome)?;
        }
        Ok(())
    }

    async fn run_one_of(
        &mut self,
        statement: &str,
        is_last: bool,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        match self.0.run_text(statement).await? {
            Answer::NeedsFile(_) if !is_last => {
                self.0.give_up_file();
                Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "LOAD DATA LOCAL must be the last of several statements",
                ))
            }
            Answer::NeedsFile(name) => self.ask_for(&name, out),
            answer => write(answer, out).await,
        }
    }

    /// Ends a statement, unless it waits for a file.
    fn ended(
        &mut self,
        text: &str,
        begun: Instant,
        before: Counts,
        out: &ResultWriter<'_>,
        outcome: Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if self.0.awaits_file() {
            return outcome;
        }
        self.0.end_statement();
        let now = Counts::of(out);
        let volume = Volume {
            affected_rows: now.affected - before.affected,
            returned_rows: now.returned - before.returned,
            received_bytes: text.len() as u64,
        };
        self.0.finished(text, begun, volume, &outcome);
        self.0.told(outcome)
    }

    /// Asks the client for the file that the session waits for.
    fn ask_for(&mut self, name: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        out.request_file(name).inspect_err(|_| self.0.give_up_file())
    }
}

/// Writes the answer of a statement that needs no file.
async fn write(answer: Answer, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
    match answer {
        Answer::Done(Done { affected_rows, warnings, info, last_insert_id }) => {
            out.ok(OkInfo { affected_rows, warnings, info: &info, last_insert_id }).await
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
    rows.interrupt().wait(out.finish_with_warnings(rows.warnings())).await?
}

impl Connection {
    /// The text of a statement, in the default mode of SQL. Bytes in literals that are not UTF-8 are hexadecimal in it. In a session that
    /// would put NULL in the place of bytes that are none of a text's, only those in `_binary '…'` are: the others may be texts of another
    /// character set.
    fn text_of<'a>(&self, sql: &'a [u8]) -> Result<Cow<'a, str>, SqlError> {
        let error = match std::str::from_utf8(sql) {
            Ok(text) => return Ok(self.0.in_default_mode(text)),
            Err(error) => error,
        };
        let is_escaped = !self.0.no_backslash_escapes();
        match with_hex_literals(sql, self.0.inserts_strictly()).filter(|_| is_escaped) {
            Some(text) => Ok(Cow::Owned(self.0.in_default_mode(&text).into_owned())),
            None => Err(SqlError::detail(
                ErrorCode::Syntax,
                format!(
                    "the statement is not valid UTF-8 at byte {}; send it as utf8mb4, and bytes as _binary '…' or x'…'",
                    error.valid_up_to()
                ),
            )),
        }
    }
}

/// Rows that statements of a command have changed and returned so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    affected: u64,
    returned: u64,
}

impl Counts {
    fn of(out: &ResultWriter<'_>) -> Self {
        Self { affected: out.affected_rows(), returned: out.returned_rows() }
    }
}

/// A file that the client sends, and how much of it has arrived.
struct Upload<'a, 'c> {
    file: &'a mut ClientFile<'c>,
    bytes: u64,
}

#[async_trait]
impl ClientUpload for Upload<'_, '_> {
    async fn next(&mut self) -> Result<Option<Bytes>, SqlError> {
        let next = self.file.next().await?;
        self.bytes += next.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(next)
    }
}
