//! Statements over HTTP: each runs in a session of its own, and its rows become JSON while they are sent.
//!
//! Not here: what a statement means, and the document around the rows.

use super::HttpLoads;
use crate::access::finished::Door;
use crate::answer::{Answer, Done, Rows};
use crate::front::mysql::columns_of;
use crate::session::{EngineSession, NewSession, Volume};
use arrow::array::RecordBatch;
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tributary_http::{Peer, QueryAnswer, QueryColumn, QueryRequest, QueryService};
use tributary_mysql::{Column, ColumnType, for_each_text};
use tributary_query::ResultColumn;
use tributary_types::{ErrorCode, Principal, SqlError};

/// Rows are sent when they have this many bytes.
const PIECE_BYTES: usize = 128 << 10;
/// Rows that are written before it is looked at how long they are.
const ROWS_AT_ONCE: usize = 32;

#[async_trait]
impl QueryService for HttpLoads {
    async fn query(
        &self,
        principal: &Principal,
        peer: &Peer,
        request: QueryRequest,
    ) -> Result<QueryAnswer, SqlError> {
        let QueryRequest { db, statement, rows_max, read_after, trace_parent, left } = request;
        let begun = Instant::now();
        let new = NewSession {
            door: Door::HttpQuery,
            id: self.0.processes().next_id(),
            principal: principal.clone(),
            peer: SocketAddr::new(peer.ip, peer.port),
            database: db.clone(),
            tls: peer.tls.clone(),
            counts_found_rows: true,
            kill: CancellationToken::new(),
        };
        let opened = EngineSession::open(Arc::clone(&self.0), new).and_then(|mut session| {
            session.trace_parent = trace_parent;
            if let Some(receipt) = read_after {
                session.variables.set("read_after", &receipt.to_string())?;
            }
            Ok(session)
        });
        if opened.is_err() {
            let words = ("POST /api/query", "LOGIN");
            self.looked(principal, words, db.as_deref().unwrap_or_default(), begun, &opened);
        }
        let session = opened?;
        let process = Arc::clone(&session.process);
        let volume = Volume { received_bytes: statement.len() as u64, ..Volume::default() };
        let translated = match session.in_default_mode(&statement) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        };
        let text = translated.unwrap_or(statement);
        let running = Running { session, text, begun, volume, is_over: false };
        let mut answer = Box::pin(running.run(rows_max.unwrap_or(u64::MAX)));
        tokio::select! {
            answer = &mut answer => answer,
            () = left.cancelled() => {
                process.kill();
                answer.await
            }
        }
    }
}

/// A statement and its session, until its last row is sent.
struct Running {
    session: EngineSession,
    text: String,
    begun: Instant,
    volume: Volume,
    is_over: bool,
}

impl Running {
    async fn run(mut self, rows_max: u64) -> Result<QueryAnswer, SqlError> {
        let answer = match self.session.begin_statement(&self.text) {
            Ok(()) => self.session.run_text(&self.text).await,
            Err(refused) => Err(refused),
        };
        let answer = match answer {
            Ok(Answer::Rows(rows)) => return OpenRows::of(self, rows, rows_max).answer().await,
            Ok(Answer::Done(_)) if self.session.is_in_transaction() => Err(SqlError::detail(
                ErrorCode::NotSupported,
                "each request over HTTP has a session of its own, in which no transaction can begin; use the MySQL \
                 protocol",
            )),
            Ok(Answer::Done(done)) => Ok(done),
            Ok(Answer::NeedsFile(_)) => {
                self.session.give_up_file();
                Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "LOAD DATA LOCAL needs the MySQL protocol; send the file with a Stream Load",
                ))
            }
            Err(error) => Err(error),
        };
        if let Ok(done) = &answer {
            self.volume.affected_rows = done.affected_rows;
        }
        self.ends(&answer.as_ref().map(drop).map_err(SqlError::clone));
        self.session.close().await;
        let Done { affected_rows, warnings, info, .. } = answer?;
        Ok(QueryAnswer::Done { affected_rows, warnings, info })
    }

    /// Records the end of the statement.
    fn ends(&mut self, outcome: &Result<(), SqlError>) {
        self.is_over = true;
        self.session.end_statement();
        self.session.finished(&self.text, self.begun, self.volume, outcome);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            let left = "Query execution was interrupted: the client has left";
            self.ends(&Err(SqlError::new(ErrorCode::QueryInterrupted, left)));
        }
    }
}

/// The rows of a statement while they are computed and sent.
struct OpenRows {
    running: Running,
    rows: Box<Rows>,
    columns: Vec<Column>,
    /// The rows that come next, and how many of them are written.
    batch: Option<(RecordBatch, usize)>,
    remaining: u64,
}

impl OpenRows {
    fn of(running: Running, rows: Box<Rows>, rows_max: u64) -> Self {
        let columns = columns_of(rows.columns());
        Self { running, rows, columns, batch: None, remaining: rows_max }
    }

    /// The answer, when the first rows are there.
    async fn answer(mut self) -> Result<QueryAnswer, SqlError> {
        let columns = self.rows.columns().iter().map(described).collect();
        let first = self.next().await?;
        let rows = stream::try_unfold((self, first), |(mut open, first)| async {
            let piece = match first {
                Some(first) => Some(first),
                None if open.running.is_over => None,
                None => open.next().await?,
            };
            Ok(piece.map(|piece| (piece, (open, None))))
        });
        Ok(QueryAnswer::Rows { columns, rows: rows.boxed() })
    }

    /// The next rows; their end is recorded.
    async fn next(&mut self) -> Result<Option<Bytes>, SqlError> {
        let piece = self.piece().await;
        if !matches!(piece, Ok(Some(_))) {
            self.running.ends(&piece.as_ref().map(drop).map_err(SqlError::clone));
        }
        piece
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, SqlError> {
        let mut out = Vec::new();
        while self.remaining > 0 && out.len() < PIECE_BYTES {
            let Some((batch, at)) = &mut self.batch else {
                match self.rows.next().await? {
                    Some(batch) => self.batch = Some((batch, 0)),
                    None => self.remaining = 0,
                }
                continue;
            };
            let left = usize::try_from(self.remaining).unwrap_or(usize::MAX);
            let rows = ROWS_AT_ONCE.min(batch.num_rows() - *at).min(left);
            write(&self.columns, &batch.slice(*at, rows), &mut out)?;
            *at += rows;
            self.remaining -= rows as u64;
            self.running.volume.returned_rows += rows as u64;
            if *at == batch.num_rows() {
                self.batch = None;
            }
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }
}

/// Appends rows as JSON arrays, with commas between them and the rows before.
fn write(columns: &[Column], batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), SqlError> {
    for_each_text(columns, batch, |index, text| {
        match index {
            0 if out.is_empty() => out.push(b'['),
            0 => out.extend_from_slice(b",["),
            _ => out.push(b','),
        }
        match text {
            None => out.extend_from_slice(b"null"),
            Some(text) if is_number(&columns[index], text) => out.extend_from_slice(text),
            Some(bytes) if columns[index].is_bytes() => write_hex(bytes, out),
            // Writing to memory can't fail.
            Some(text) => drop(serde_json::to_writer(&mut *out, &String::from_utf8_lossy(text))),
        }
        if index + 1 == columns.len() {
            out.push(b']');
        }
    })
}

/// Appends bytes as a text that is a literal of MySQL's: `"0x00FF"`.
fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"0x");
    for byte in bytes {
        let digit = |value: u8| char::from_digit(value.into(), 16).map_or(0, |digit| digit as u8);
        let digits = [digit(byte >> 4), digit(byte & 15)];
        out.extend_from_slice(&digits.map(|digit| digit.to_ascii_uppercase()));
    }
    out.push(b'"');
}

/// Whether a value is a number in JSON, too; those of MySQL that are none, like infinity, are texts.
fn is_number(column: &Column, text: &[u8]) -> bool {
    let has_numbers = matches!(
        column.wire_type,
        ColumnType::MYSQL_TYPE_TINY
            | ColumnType::MYSQL_TYPE_SHORT
            | ColumnType::MYSQL_TYPE_LONG
            | ColumnType::MYSQL_TYPE_LONGLONG
            | ColumnType::MYSQL_TYPE_FLOAT
            | ColumnType::MYSQL_TYPE_DOUBLE
            | ColumnType::MYSQL_TYPE_NEWDECIMAL
    );
    has_numbers && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
}

fn described(column: &ResultColumn) -> QueryColumn {
    QueryColumn { name: column.name.clone(), type_name: column.table_type().base_name().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray};
    use arrow::datatypes::DataType;

    #[test]
    fn values_are_json() {
        let arrays: [(&str, ArrayRef); 4] = [
            ("a", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
            ("b", Arc::new(Float64Array::from(vec![Some(1e300), Some(f64::INFINITY)]))),
            ("c", Arc::new(StringArray::from(vec![Some("a\"\n\u{1}ü"), Some("1")]))),
            ("d", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\0\xff"), None]))),
        ];
        let batch = RecordBatch::try_from_iter(arrays).expect("of one length");
        let column = |name: &str, data_type| Column::from_arrow(name, &data_type);
        let columns = [
            column("a", DataType::Int64),
            column("b", DataType::Float64),
            column("c", DataType::Utf8),
            column("d", DataType::Binary),
        ];
        let mut out = Vec::new();
        write(&columns, &batch, &mut out).expect("they match");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(
            text,
            r#"[-9223372036854775808,1e300,"a\"\n\u0001ü","0x00FF"],[null,"Infinity","1",null]"#
        );
        let rows: serde_json::Value = serde_json::from_str(&format!("[{text}]")).expect("JSON");
        assert_eq!(rows[0][2], "a\"\n\u{1}ü");
    }
}
