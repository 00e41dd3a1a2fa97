//! A MySQL connection: any bytes as a client's.
//!
//! The server must not panic; its behaviour must not depend on how the bytes are cut into reads; its own packets must be whole
//! and numbered. Every statement of a logged-in client must reach the session once, in order (an independent walk over the
//! client's bytes finds them). And the parameters of an execution must be readable by both readers of binary values or by none.

use arrow::array::Int32Array;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::cell::LazyCell;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tributary_decode::{BlockBuilder, BoundParams, InsertOptions, Target, prepare_values};
use tributary_mysql::fuzzing::converse;
use tributary_mysql::{
    Account, ChangeUser, Column, ConnectionInfo, OkInfo, Params, PasswordHash, Prepared, ResultWriter,
    ServeOptions, ServerHooks, Session, SessionStatus,
};
use tributary_types::{DataType, ErrorCode, SqlError};

/// The longest packet that the server takes.
pub(crate) const PACKET_BYTES_MAX: usize = 1 << 16;
/// `root` logs in without a password: `PROTOCOL_41`, `SECURE_CONNECTION`, `PLUGIN_AUTH`,
/// `MULTI_STATEMENTS`.
pub(crate) const LOGIN: &[u8] = b"\x3c\0\0\x01\x05\xa2\x0b\0\0\0\0\x01\x2d\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0root\0\0mysql_native_password\0";

/// The beginning of a challenge, whose rest is random.
pub(crate) const CHALLENGE: &[u8] = b"\xfemysql_native_password\0";

thread_local! {
    static RUNTIME: LazyCell<Runtime> = LazyCell::new(|| {
        Builder::new_current_thread().enable_time().build().expect("a runtime without I/O needs nothing")
    });
}

/// The first byte says how the bytes are cut and whether a login is sent before them.
pub fn mysql(data: &[u8]) {
    let Some((&choice, sent)) = data.split_first() else { return };
    let is_logged_in = choice & 0x80 == 0;
    let bytes = if is_logged_in { [LOGIN, sent].concat() } else { sent.to_vec() };
    let (calls, answers) = run(vec![bytes.clone()]);
    let cut = run(bytes.chunks(usize::from(choice & 0x7f) + 1).map(<[u8]>::to_vec).collect());
    assert_eq!(cut.0, calls, "the calls depend on how the bytes arrive");
    assert_eq!(cut.1, answers, "the answers depend on how the bytes arrive");
    if is_logged_in {
        check_calls(sent, &calls);
    }
}

/// The statements that reached the session, and the packets that the client got.
pub(crate) fn run(pieces: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (hooks, calls) = Hooks::noting();
    let options = ServeOptions { max_allowed_packet: PACKET_BYTES_MAX, ..ServeOptions::default() };
    let answer = RUNTIME.with(|runtime| runtime.block_on(converse(pieces, hooks, options)));
    let calls = std::mem::take(&mut *calls.lock());
    (calls, packets(&answer))
}

/// Cuts the server's bytes into packets, without their challenges, which are random.
fn packets(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    /// An error packet with the number 1105.
    const INTERNAL: &[u8] = b"\xff\x51\x04";
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        assert!(bytes.len() >= 4, "a header that is cut off");
        let length = usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16;
        assert!(bytes.len() >= 4 + length, "a payload that is cut off");
        let payload = &bytes[4..4 + length];
        let kept = match packets.len() {
            0 => 1,
            _ if payload.starts_with(CHALLENGE) => CHALLENGE.len(),
            _ => length,
        };
        // A panic in the session does not end the process; here it must be detected. Other errors repeat the client's bytes,
        // which may contain these words.
        let text = String::from_utf8_lossy(payload);
        assert!(!(payload.starts_with(INTERNAL) && text.contains("internal error")), "{text}");
        packets.push([&bytes[3..4], &payload[..kept]].concat());
        bytes = &bytes[4 + length..];
    }
    packets
}

/// Walks over the client's commands.
fn check_calls(mut bytes: &[u8], calls: &[Vec<u8>]) {
    let mut calls = calls.iter();
    while let Some((header, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        if header[3] != 0 || length > PACKET_BYTES_MAX || rest.len() < length {
            break;
        }
        let payload = &rest[..length];
        bytes = &rest[length..];
        match payload.first() {
            Some(0x03 | 0x16) => assert_eq!(calls.next().map(Vec::as_slice), Some(payload)),
            Some(0x01) => break,
            // Its proof may be wrong, or requested again: the continuation is unknown here.
            Some(0x11) => return,
            _ => {}
        }
    }
    assert_eq!(calls.next(), None, "a statement that nobody sent");
}

/// Statements, each behind its command, in order.
pub(crate) type Calls = Arc<Mutex<Vec<Vec<u8>>>>;

/// Sessions that record their statements.
pub(crate) struct Hooks {
    calls: Calls,
    /// Whether each session that was opened is encrypted.
    pub(crate) sessions: Mutex<Vec<bool>>,
}

impl Hooks {
    pub(crate) fn noting() -> (Arc<Self>, Calls) {
        let calls = Calls::default();
        (Arc::new(Self { calls: Arc::clone(&calls), sessions: Mutex::default() }), calls)
    }
}

#[async_trait]
impl ServerHooks for Hooks {
    fn next_connection_id(&self) -> u32 {
        1
    }

    fn find_account(&self, user: &str, _host: &str) -> Option<Account> {
        (user == "root").then(|| PasswordHash::of("").into())
    }

    async fn open_session(&self, info: ConnectionInfo) -> Result<Box<dyn Session>, SqlError> {
        if info.database.as_ref().is_some_and(|name| name.starts_with('x')) {
            return Err(SqlError::new(ErrorCode::UnknownDatabase, "Unknown database"));
        }
        self.sessions.lock().push(info.tls.is_some());
        Ok(Box::new(Noting { calls: Arc::clone(&self.calls) }))
    }
}

/// Records statements. The first letter of one determines its answer.
struct Noting {
    calls: Calls,
}

impl Noting {
    fn note(&self, command: u8, sql: &[u8]) {
        self.calls.lock().push([&[command], sql].concat());
    }
}

fn numbers() -> (Vec<Column>, RecordBatch) {
    let numbers = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let batch = RecordBatch::try_from_iter([("n", numbers as _)]).expect("one column");
    (vec![Column::new("n", DataType::Int)], batch)
}

async fn answer(sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
    let (columns, batch) = numbers();
    match sql.first() {
        Some(b's') => out.result_set(&columns, &[batch]).await,
        Some(b'e') => Err(SqlError::new(ErrorCode::Syntax, "as asked")),
        Some(b'h') => {
            out.start(&columns).await?;
            out.batch(&batch).await?;
            Err(SqlError::new(ErrorCode::Unknown, "in the middle"))
        }
        Some(b'm') if out.multi_statements() => {
            out.ok(OkInfo::default()).await?;
            out.result_set(&columns, &[batch]).await
        }
        _ => out.ok(OkInfo { affected_rows: sql.len() as u64, ..OkInfo::default() }).await,
    }
}

#[async_trait]
impl Session for Noting {
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        self.note(0x03, sql);
        answer(sql, out).await
    }

    async fn prepare(&mut self, _id: u32, sql: &[u8]) -> Result<Prepared, SqlError> {
        self.note(0x16, sql);
        if sql.first() == Some(&b'e') {
            return Err(SqlError::new(ErrorCode::Syntax, "as asked"));
        }
        let columns = if sql.first() == Some(&b's') { numbers().0 } else { Vec::new() };
        let param_count = sql.iter().filter(|byte| **byte == b'?').count().min(300) as u16;
        Ok(Prepared { param_count, columns, warnings: 0 })
    }

    async fn execute(
        &mut self,
        _id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let values = params.iter().collect::<Result<Vec<_>, _>>();
        compare_readers(&params, values.is_ok());
        answer(&[values?.len() as u8], out).await
    }

    async fn close_statement(&mut self, _id: u32) {}

    async fn init_db(&mut self, db: &str) -> Result<(), SqlError> {
        match db.starts_with('x') {
            true => Err(SqlError::new(ErrorCode::UnknownDatabase, "Unknown database")),
            false => Ok(()),
        }
    }

    async fn reset(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    async fn change_user(&mut self, _user: ChangeUser) -> Result<(), SqlError> {
        Ok(())
    }

    async fn field_list(&mut self, _table: &str, _pattern: &str) -> Result<Vec<Column>, SqlError> {
        Ok(numbers().0)
    }

    fn status(&self) -> SessionStatus {
        SessionStatus::default()
    }
}

/// Loads and queries read the same bytes: they agree on what is a packet.
fn compare_readers(params: &Params<'_>, is_readable: bool) {
    if params.is_empty() {
        return;
    }
    let table = crate::tables::of_strings(params.len());
    let target = Target::new(&table, None).expect("all columns");
    let template = format!("({})", vec!["?"; params.len()].join(","));
    let prepared = prepare_values(template.as_bytes(), &target).expect("a template");
    let types: Vec<_> = params
        .types()
        .iter()
        .map(|param| tributary_decode::ParamType { column_type: param.type_code, unsigned: param.unsigned })
        .collect();
    let bound = BoundParams {
        types: &types,
        null_bitmap: params.null_bitmap(),
        values: params.values(),
        long_data: params.long_data(),
    };
    let mut builder = BlockBuilder::new(&table.schema);
    let decoded = prepared.decode(bound, &target, &InsertOptions::default(), &mut builder);
    assert_eq!(decoded.is_ok(), is_readable, "{params:?}: {decoded:?}");
}
