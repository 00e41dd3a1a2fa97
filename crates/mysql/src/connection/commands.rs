//! The commands: reads each one's fields, calls the session and writes the answer.

use super::handshake::{Credentials, parse_change_user, refusal};
use super::login::{Challenge, Login, Proved};
use super::{After, Connection, Link, guard};
use crate::client_file::ClientFile;
use crate::column::Column;
use crate::error::{MalformedPacket, ProtocolError};
use crate::result::{AnswerForm, OkInfo, ResultWriter, write_end_of_rows, write_ok};
use crate::session::{ChangeUser, Prepared};
use crate::wire::cursor::Cursor;
use crate::wire::put;
use crate::wire::reader::Packet;
use mysql_common::constants::{CapabilityFlags, Command};
use tracing::{error, info};
use tributary_types::{ErrorCode, SqlError};

/// Answers a command that has no rows.
type Answered = Result<(), SqlError>;

impl Connection {
    /// Runs one command and queues its answer.
    ///
    /// # Errors
    /// The connection is unusable; the client was not informed.
    pub(super) async fn command(&mut self, packet: Packet) -> Result<After, ProtocolError> {
        use Command::*;
        let Some((&code, _)) = self.link.reader.payload(packet).split_first() else {
            self.fail(MalformedPacket { what: "a command is empty" });
            return Ok(After::NextCommand);
        };
        let Some(command) = known_command(code) else {
            self.unknown_command();
            return Ok(After::NextCommand);
        };
        let outcome = match command {
            COM_STMT_EXECUTE => self.execute(packet).await,
            COM_QUERY => self.query(packet).await,
            COM_QUIT => return Ok(After::Close),
            COM_STMT_CLOSE => self.close_statement(packet).await,
            COM_STMT_SEND_LONG_DATA => {
                let limit = self.shared.options.max_allowed_packet;
                self.statements.add_long_data(&self.link.reader.payload(packet)[1..], limit);
                Ok(())
            }
            COM_CHANGE_USER => return self.change_user(packet).await,
            COM_STMT_PREPARE => self.prepare(packet).await,
            COM_PING => {
                self.ok();
                Ok(())
            }
            COM_INIT_DB => self.init_db(packet).await,
            COM_FIELD_LIST => self.field_list(packet).await,
            COM_RESET_CONNECTION => self.reset().await,
            COM_PROCESS_KILL => self.kill(packet).await,
            _ => self.small_command(command, packet),
        };
        Ok(match outcome {
            Ok(()) => After::NextCommand,
            Err(Failure::Sql(error)) => {
                self.fail(error);
                After::NextCommand
            }
            Err(Failure::Connection(error)) => return Err(error),
            Err(Failure::Panic(panic)) => {
                error!(connection = self.id, ?command, %panic, "a command panicked");
                let text = format!("internal error, this connection is closed: {panic}");
                self.fail(SqlError::new(ErrorCode::Unknown, text));
                self.link.out.flush().await?;
                return Err(ProtocolError::Closing);
            }
        })
    }

    /// Commands that need no session.
    fn small_command(&mut self, command: Command, packet: Packet) -> Result<(), Failure> {
        use Command::*;
        match command {
            COM_STATISTICS => {
                let text = self.shared.hooks.statistics();
                self.link.out.with(|pending| pending.packet(|out| out.extend_from_slice(text.as_bytes())));
            }
            COM_SET_OPTION => self.set_option(packet)?,
            COM_STMT_RESET => {
                let id = self.fields(packet).u32("the statement's id is missing").map_err(SqlError::from)?;
                self.statements.get(id, "RESET")?;
                self.statements.reset(id);
                self.ok();
            }
            COM_STMT_FETCH => self.fetch(packet)?,
            COM_DEBUG => self.end_of_rows(),
            // As FLUSH: there is nothing to do.
            COM_REFRESH => self.ok(),
            _ => self.unknown_command(),
        }
        Ok(())
    }

    async fn query(&mut self, packet: Packet) -> Result<(), Failure> {
        let form = self.answer_form(false);
        let (out, sql) = (&self.link.out, &self.link.reader.payload(packet)[1..]);
        let mut writer = ResultWriter::new(out, form);
        let run = async {
            self.session.query(sql, &mut writer).await?;
            complete(&mut writer).await
        };
        flatten(guard::guarded(run, out).await)?;
        if let Some(name) = writer.take_file() {
            // Boxed: few statements have a file.
            Box::pin(self.take_file(&name, form)).await?;
        }
        self.settle();
        Ok(())
    }

    /// Continues the session's statement with the requested file of the client.
    async fn take_file(&mut self, name: &str, form: AnswerForm) -> Result<(), Failure> {
        let Link { reader, out, .. } = &mut self.link;
        let (out, stall_timeout) = (&*out, self.shared.options.stall_timeout);
        let file = ClientFile::request(reader, out, name, stall_timeout).await;
        let mut file = file.map_err(Failure::Connection)?;
        let mut writer = ResultWriter::new(out, form);
        let run = async {
            self.session.take_file(&mut file, &mut writer).await?;
            complete(&mut writer).await
        };
        let outcome = flatten(guard::guarded(run, out).await);
        // A client reads no answer before it has sent all of its file.
        file.drain().await.map_err(Failure::Connection)?;
        outcome
    }

    async fn execute(&mut self, packet: Packet) -> Result<(), Failure> {
        const WHAT: &str = "the fields of an execution are cut off";
        let form = self.answer_form(true);
        let (out, payload) = (&self.link.out, self.link.reader.payload(packet));
        let mut fields = Cursor::new(&payload[1..]);
        let id = fields.u32(WHAT).map_err(SqlError::from)?;
        // Cursor type (all rows are sent at once regardless) and a count that is always 1.
        fields.bytes(5, WHAT).map_err(SqlError::from)?;
        let statement = self.statements.get(id, "EXECUTE")?;
        let params = match statement.params(fields) {
            Ok(params) => params,
            Err(error) => return Err(Failure::Sql(error)),
        };
        let mut writer = ResultWriter::new(out, form);
        let run = async {
            self.session.execute(id, params, &mut writer).await?;
            complete(&mut writer).await
        };
        let outcome = flatten(guard::guarded(run, out).await);
        self.statements.reset(id);
        outcome?;
        self.settle();
        Ok(())
    }

    async fn prepare(&mut self, packet: Packet) -> Result<(), Failure> {
        let limit = self.shared.options.max_prepared_statements;
        if self.statements.len() >= limit {
            let text =
                format!("Can't create more than max_prepared_stmt_count statements (current value: {limit})");
            return Err(Failure::Sql(SqlError::new(ErrorCode::TooManyPreparedStatements, text)));
        }
        let id = self.statements.next_id();
        let (out, sql) = (&self.link.out, &self.link.reader.payload(packet)[1..]);
        let prepared = flatten(guard::guarded(self.session.prepare(id, sql), out).await)?;
        if u16::try_from(prepared.columns.len()).is_err() {
            self.forget(id).await?;
            let text = format!(
                "Too many columns: {} in a prepared result, the limit is 65535",
                prepared.columns.len()
            );
            return Err(Failure::Sql(SqlError::new(ErrorCode::NotSupported, text)));
        }
        self.statements.insert(id, prepared.param_count);
        self.write_prepared(id, &prepared);
        Ok(())
    }

    fn write_prepared(&self, id: u32, prepared: &Prepared) {
        let form = self.answer_form(true);
        let with_eof = !self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        let parameter = Column::parameter();
        self.link.out.with(|pending| {
            pending.packet(|out| {
                out.push(0);
                put::u32(out, id);
                put::u16(out, prepared.columns.len() as u16);
                put::u16(out, prepared.param_count);
                out.push(0);
                put::u16(out, prepared.warnings);
            });
            for _ in 0..prepared.param_count {
                pending.packet(|out| parameter.write_definition(out));
            }
            if with_eof && prepared.param_count > 0 {
                pending.packet(|out| write_end_of_rows(out, form, 0));
            }
            for column in &prepared.columns {
                pending.packet(|out| column.write_definition(out));
            }
            if with_eof && !prepared.columns.is_empty() {
                pending.packet(|out| write_end_of_rows(out, form, 0));
            }
        });
    }

    /// Has no answer, even if the statement is unknown.
    async fn close_statement(&mut self, packet: Packet) -> Result<(), Failure> {
        let Ok(id) = self.fields(packet).u32("the statement's id is missing") else { return Ok(()) };
        if self.statements.remove(id) {
            self.forget(id).await?;
        }
        Ok(())
    }

    async fn forget(&mut self, id: u32) -> Result<(), Failure> {
        guard::guarded(self.session.close_statement(id), &self.link.out).await.map_err(Failure::Panic)
    }

    /// All rows were sent with the execution: there is never a cursor to fetch from.
    fn fetch(&mut self, packet: Packet) -> Answered {
        let id = self.fields(packet).u32("the statement's id is missing")?;
        self.statements.get(id, "FETCH")?;
        let text = format!("The statement ({id}) has no open cursor.");
        Err(SqlError::new(ErrorCode::NoOpenCursor, text))
    }

    async fn init_db(&mut self, packet: Packet) -> Result<(), Failure> {
        let (out, name) = (&self.link.out, &self.link.reader.payload(packet)[1..]);
        let name = utf8(name, ErrorCode::WrongDbName, "database")?;
        flatten(guard::guarded(self.session.init_db(name), out).await)?;
        self.ok();
        Ok(())
    }

    async fn field_list(&mut self, packet: Packet) -> Result<(), Failure> {
        let mut fields = Cursor::new(&self.link.reader.payload(packet)[1..]);
        let table = fields.null_terminated("the table's name does not end").map_err(SqlError::from)?;
        let table = utf8(table, ErrorCode::WrongTableName, "table")?;
        let pattern = utf8(fields.null_terminated_or_rest(), ErrorCode::WrongColumnName, "column")?;
        let columns = flatten(guard::guarded(self.session.field_list(table, pattern), &self.link.out).await)?;
        let form = self.answer_form(false);
        self.link.out.with(|pending| {
            for column in &columns {
                pending.packet(|out| {
                    column.write_definition(out);
                    // The column's default value: not given.
                    out.push(0xfb);
                });
            }
            pending.packet(|out| write_end_of_rows(out, form, 0));
        });
        Ok(())
    }

    async fn reset(&mut self) -> Result<(), Failure> {
        self.statements.clear();
        flatten(guard::guarded(self.session.reset(), &self.link.out).await)?;
        self.ok();
        Ok(())
    }

    async fn kill(&mut self, packet: Packet) -> Result<(), Failure> {
        let id = self.fields(packet).u32("the connection's id is missing").map_err(SqlError::from)?;
        flatten(guard::guarded(self.session.kill(id), &self.link.out).await)?;
        self.ok();
        Ok(())
    }

    /// Changes the user. A wrong password ends the connection, whatever user it had before.
    async fn change_user(&mut self, packet: Packet) -> Result<After, ProtocolError> {
        let payload = &self.link.reader.payload(packet)[1..];
        let credentials = match parse_change_user(payload, self.capabilities) {
            Ok(credentials) => credentials,
            Err(error) => {
                self.fail(error);
                return Ok(After::NextCommand);
            }
        };
        let login = Login {
            capabilities: self.capabilities,
            credentials,
            challenge: Challenge::Earlier(self.nonce),
            sequence: packet.sequence,
        };
        let timeout = self.shared.options.handshake_timeout;
        let proof = login.prove(&mut self.link, &self.shared, self.id, self.peer);
        let Ok(proved) = tokio::time::timeout(timeout, proof).await else {
            return Err(ProtocolError::Timeout(timeout.as_secs()));
        };
        let credentials = match proved {
            Ok(Proved { credentials, nonce }) => {
                self.nonce = nonce;
                credentials
            }
            Err(ProtocolError::Refused(error)) => {
                refusal(error.code).log(|left_out| {
                    info!(connection = self.id, peer = %self.peer, %error, left_out, "a client was refused");
                });
                self.fail(error);
                return Ok(After::Close);
            }
            Err(error) => return Err(error),
        };
        self.statements.clear();
        let Credentials { user, database, attributes, .. } = credentials;
        let change = self.session.change_user(ChangeUser { user, database, attributes });
        match guard::guarded(change, &self.link.out).await {
            Ok(Ok(())) => self.ok(),
            Ok(Err(error)) => self.fail(error),
            Err(panic) => {
                error!(connection = self.id, %panic, "changing the user panicked");
                self.fail(SqlError::new(ErrorCode::Unknown, format!("internal error: {panic}")));
                return Ok(After::Close);
            }
        }
        Ok(After::NextCommand)
    }

    fn set_option(&mut self, packet: Packet) -> Answered {
        match self.fields(packet).u16("the option is missing")? {
            0 => self.multi_statements = true,
            1 => self.multi_statements = false,
            _ => return Err(MalformedPacket { what: "an option is neither 0 nor 1" }.into()),
        }
        self.end_of_rows();
        Ok(())
    }

    fn unknown_command(&self) {
        self.fail(SqlError::new(ErrorCode::UnknownCommand, "Unknown command"));
    }

    /// The fields after the command byte.
    fn fields(&self, packet: Packet) -> Cursor<'_> {
        Cursor::new(&self.link.reader.payload(packet)[1..])
    }

    /// The last result of a statement gets the status that the session has now.
    fn settle(&self) {
        let status = self.session.status().flags();
        self.link.out.with(|pending| pending.settle(status));
    }

    fn ok(&self) {
        let status = self.session.status().flags();
        self.link.out.with(|pending| pending.packet(|out| write_ok(out, 0, OkInfo::default(), status)));
    }

    fn end_of_rows(&self) {
        let form = self.answer_form(false);
        self.link.out.with(|pending| pending.packet(|out| write_end_of_rows(out, form, 0)));
    }

    fn fail(&self, error: impl Into<SqlError>) {
        let error = error.into();
        self.link.out.with(|pending| pending.error(&error, true));
    }
}

/// The commands that have an answer other than 1047.
fn known_command(code: u8) -> Option<Command> {
    use Command::*;
    [
        COM_QUIT,
        COM_INIT_DB,
        COM_QUERY,
        COM_FIELD_LIST,
        COM_STATISTICS,
        COM_PROCESS_KILL,
        COM_DEBUG,
        COM_REFRESH,
        COM_PING,
        COM_CHANGE_USER,
        COM_STMT_PREPARE,
        COM_STMT_EXECUTE,
        COM_STMT_SEND_LONG_DATA,
        COM_STMT_CLOSE,
        COM_STMT_RESET,
        COM_SET_OPTION,
        COM_STMT_FETCH,
        COM_RESET_CONNECTION,
    ]
    .into_iter()
    .find(|command| *command as u8 == code)
}

/// Why a command has no other answer.
enum Failure {
    Sql(SqlError),
    Panic(String),
    /// The connection is unusable.
    Connection(ProtocolError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

fn flatten<T>(outcome: Result<Result<T, SqlError>, String>) -> Result<T, Failure> {
    outcome.map_err(Failure::Panic)?.map_err(Failure::Sql)
}

/// A statement without any answer would leave the client waiting, or believing in success.
async fn complete(writer: &mut ResultWriter<'_>) -> Answered {
    if writer.complete().await? {
        return Ok(());
    }
    Err(SqlError::new(ErrorCode::Unknown, "internal error: the statement gave no answer"))
}

fn utf8<'a>(bytes: &'a [u8], code: ErrorCode, what: &str) -> Result<&'a str, SqlError> {
    std::str::from_utf8(bytes).map_err(|_| {
        SqlError::new(code, format!("Incorrect {what} name '{}'", String::from_utf8_lossy(bytes)))
    })
}
