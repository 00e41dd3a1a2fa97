//! Writes the answer of a statement: OK packets and result sets, as text or in the binary protocol.

use crate::column::Column;
use crate::encode::Rows;
use crate::wire::out::{FLUSH_BYTES, Out, Pending};
use crate::wire::put;
use arrow::record_batch::RecordBatch;
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use tributary_types::{ErrorCode, SqlError};

/// The contents of an OK packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkInfo<'a> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    /// Printed by the command line clients below `Query OK`; may be empty.
    pub info: &'a str,
}

/// How a connection's answers look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerForm {
    pub(crate) capabilities: CapabilityFlags,
    /// The session's status when the command began.
    pub(crate) status: StatusFlags,
    /// Rows in the binary protocol.
    pub(crate) binary: bool,
    pub(crate) multi_statements: bool,
}

/// Writes the results of one command as they are produced. Each result is either one [`ResultWriter::ok`], or
/// [`ResultWriter::start`], any number of [`ResultWriter::batch`] and [`ResultWriter::finish`]. Whether another result follows is
/// announced to the client automatically.
///
/// A method that has returned has not necessarily sent anything: bytes leave when 64 KiB have accumulated, and the method then
/// waits until the client has read them. An `Err` of the writer itself means that the client has left (1317) or that it was used
/// wrongly; return it from [`crate::Session::query`]. Do not drop one of its futures midway: that ends the connection.
#[derive(Debug)]
pub struct ResultWriter<'a> {
    out: &'a Out,
    form: AnswerForm,
    /// The columns of the result set whose rows are being written.
    columns: Option<Vec<Column>>,
    answered: bool,
    /// Rows that were changed so far.
    affected_rows: u64,
    /// Rows that were returned so far.
    returned_rows: u64,
    /// The client's file with which the statement continues.
    file: Option<String>,
}

impl<'a> ResultWriter<'a> {
    pub(crate) fn new(out: &'a Out, form: AnswerForm) -> Self {
        Self { out, form, columns: None, answered: false, affected_rows: 0, returned_rows: 0, file: None }
    }

    /// The client lets one text hold several statements (it may change this at any time).
    #[must_use]
    pub const fn multi_statements(&self) -> bool {
        self.form.multi_statements
    }

    /// Rows go out in the binary protocol, since a prepared statement is executed.
    #[must_use]
    pub const fn is_binary(&self) -> bool {
        self.form.binary
    }

    /// Rows that statements have changed so far.
    #[must_use]
    pub const fn affected_rows(&self) -> u64 {
        self.affected_rows
    }

    /// Rows of the results so far.
    #[must_use]
    pub const fn returned_rows(&self) -> u64 {
        self.returned_rows
    }

    /// Requests a file from the client. The statement then returns without an answer and continues in
    /// [`crate::Session::take_file`].
    ///
    /// # Errors
    /// The client does not let servers ask for files (1148), or the statement is a prepared one (1295).
    pub fn request_file(&mut self, name: &str) -> Result<(), SqlError> {
        if self.form.binary {
            let text = "This command is not supported in the prepared statement protocol yet";
            return Err(SqlError::new(ErrorCode::UnsupportedPrepared, text));
        }
        if !self.form.capabilities.contains(CapabilityFlags::CLIENT_LOCAL_FILES) {
            let text = "The used command is not allowed with this MySQL version: the client does not send files; \
                        connect with --local-infile, local_infile=True, allowLoadLocalInfile=true or the like";
            return Err(SqlError::new(ErrorCode::NotAllowedCommand, text));
        }
        self.file = Some(name.to_owned());
        Ok(())
    }

    /// Takes the name of the requested file.
    pub(crate) fn take_file(&mut self) -> Option<String> {
        self.file.take()
    }

    /// Writes a result without rows.
    ///
    /// # Errors
    /// The client has left, or a result set is unfinished.
    pub async fn ok(&mut self, info: OkInfo<'_>) -> Result<(), SqlError> {
        self.begin_result()?;
        self.affected_rows += info.affected_rows;
        let status = self.form.status;
        self.out.with(|pending| pending.terminator(|out| write_ok(out, 0x00, info, status)));
        self.flush_if_large().await
    }

    /// Begins a result set.
    ///
    /// # Errors
    /// The client has left, there is no column, or a result set is unfinished.
    pub async fn start(&mut self, columns: &[Column]) -> Result<(), SqlError> {
        if columns.is_empty() {
            return Err(misuse("a result set was begun without a column"));
        }
        self.begin_result()?;
        self.columns = Some(columns.to_vec());
        let form = self.form;
        self.out.with(|pending| {
            pending.packet(|out| put::lenenc_int(out, columns.len() as u64));
            for column in columns {
                pending.packet(|out| column.write_definition(out));
            }
            if !form.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
                pending.packet(|out| write_eof(out, 0, form.status));
            }
        });
        self.flush_if_large().await
    }

    /// More rows of the result set. The batch has the announced columns in their order.
    ///
    /// # Errors
    /// The client has left, no result set was begun, or a value does not fit its column's type.
    pub async fn batch(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let columns = self.columns.as_deref().ok_or_else(|| misuse("rows came before their columns"))?;
        let rows = Rows::new(columns, batch, self.form.binary)?;
        self.returned_rows += batch.num_rows() as u64;
        let mut next = 0;
        while next < rows.count() {
            next = self.out.with(|pending| rows.encode(next, pending, FLUSH_BYTES))?;
            self.flush_if_large().await?;
        }
        Ok(())
    }

    /// The result set ends.
    ///
    /// # Errors
    /// The client has left, or no result set was begun.
    pub async fn finish(&mut self) -> Result<(), SqlError> {
        self.finish_with_warnings(0).await
    }

    /// Ends the result set and reports the number of warnings.
    ///
    /// # Errors
    /// See [`ResultWriter::finish`].
    pub async fn finish_with_warnings(&mut self, warnings: u16) -> Result<(), SqlError> {
        if self.columns.take().is_none() {
            return Err(misuse("a result set was finished that was not begun"));
        }
        let form = self.form;
        self.out.with(|pending| pending.terminator(|out| write_end_of_rows(out, form, warnings)));
        self.flush_if_large().await
    }

    /// Sends a whole result set.
    ///
    /// # Errors
    /// See [`ResultWriter::start`], [`ResultWriter::batch`] and [`ResultWriter::finish`].
    pub async fn result_set(&mut self, columns: &[Column], batches: &[RecordBatch]) -> Result<(), SqlError> {
        self.start(columns).await?;
        for batch in batches {
            self.batch(batch).await?;
        }
        self.finish().await
    }

    /// Finishes open results after the statement has returned. False if it wrote nothing and requested no file.
    pub(crate) async fn complete(&mut self) -> Result<bool, SqlError> {
        if self.columns.is_some() {
            self.finish().await?;
        }
        Ok(self.answered || self.file.is_some())
    }

    fn begin_result(&mut self) -> Result<(), SqlError> {
        if self.columns.is_some() {
            return Err(misuse("a result was begun before the result set before it was finished"));
        }
        self.out.with(Pending::announce_more);
        self.answered = true;
        Ok(())
    }

    async fn flush_if_large(&self) -> Result<(), SqlError> {
        if self.out.waiting_bytes() < FLUSH_BYTES {
            return Ok(());
        }
        self.out.flush().await.map_err(|error| {
            SqlError::new(
                ErrorCode::QueryInterrupted,
                format!("Query execution was interrupted: the client takes no answer ({error})"),
            )
        })
    }
}

fn misuse(what: &str) -> SqlError {
    SqlError::new(ErrorCode::Unknown, format!("internal error: {what}"))
}

/// An OK packet, or with header `0xfe` the end of rows in its newer form. Returns where the status
/// bits are.
pub(crate) fn write_ok(out: &mut Vec<u8>, header: u8, info: OkInfo<'_>, status: StatusFlags) -> usize {
    out.push(header);
    put::lenenc_int(out, info.affected_rows);
    put::lenenc_int(out, info.last_insert_id);
    let status_at = out.len();
    put::u16(out, status.bits());
    put::u16(out, info.warnings);
    if !info.info.is_empty() {
        // The protocol's description says "to the packet's end"; servers send and clients read a
        // length-encoded text, with and without CLIENT_SESSION_TRACK.
        put::lenenc_bytes(out, info.info.as_bytes());
    }
    status_at
}

/// The older end of columns or rows. Returns where the status bits are.
pub(crate) fn write_eof(out: &mut Vec<u8>, warnings: u16, status: StatusFlags) -> usize {
    out.push(0xfe);
    put::u16(out, warnings);
    put::u16(out, status.bits());
    out.len() - 2
}

/// The end of rows in the form that the client understands. Returns where the status bits are.
pub(crate) fn write_end_of_rows(out: &mut Vec<u8>, form: AnswerForm, warnings: u16) -> usize {
    if form.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        write_ok(out, 0xfe, OkInfo { warnings, ..OkInfo::default() }, form.status)
    } else {
        write_eof(out, warnings, form.status)
    }
}
