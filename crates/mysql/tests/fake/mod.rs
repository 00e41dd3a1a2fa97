//! A server whose session does what the statement's text says, and records each call.

use crate::client::{Client, Login};
use arrow::array::{Int32Array, StringArray};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tributary_mysql::{
    Account, ChangeUser, ClientFile, Column, ConnectionInfo, OkInfo, Params, PasswordHash, Prepared,
    ResultWriter, ServeOptions, ServerHooks, Session, SessionStatus, serve,
};
use tributary_types::{DataType, ErrorCode, SqlError};

pub struct Server {
    pub address: SocketAddr,
    pub fake: Arc<Fake>,
    pub shutdown: CancellationToken,
    task: JoinHandle<()>,
}

pub async fn start() -> Server {
    start_with(ServeOptions::default()).await
}

pub async fn start_with(options: ServeOptions) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let fake = Arc::new(Fake::default());
    let shutdown = CancellationToken::new();
    let serving = serve(listener, Arc::new(Hooks(Arc::clone(&fake))), options, shutdown.clone());
    let task = tokio::spawn(async { serving.await.unwrap() });
    Server { address, fake, shutdown, task }
}

impl Server {
    pub async fn connect(&self) -> Client {
        Client::connect(self.address, Login::default()).await.unwrap()
    }

    /// Returns when `serve` has returned.
    pub async fn stopped(&mut self) {
        (&mut self.task).await.unwrap();
    }
}

/// The calls to the sessions, and the signals that release them.
pub struct Fake {
    calls: watch::Sender<Vec<String>>,
    gate: Notify,
    kills: Mutex<HashMap<u32, CancellationToken>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self { calls: watch::Sender::default(), gate: Notify::new(), kills: Mutex::default() }
    }
}

impl Fake {
    pub fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }

    /// Returns when that call was noted.
    pub async fn until(&self, call: &str) {
        let mut calls = self.calls.subscribe();
        calls.wait_for(|calls| calls.iter().any(|noted| noted == call)).await.unwrap();
    }

    /// Releases one waiting statement.
    pub fn go_on(&self) {
        self.gate.notify_one();
    }

    fn note(&self, call: String) {
        self.calls.send_modify(|calls| calls.push(call));
    }
}

struct Hooks(Arc<Fake>);

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

#[async_trait]
impl ServerHooks for Hooks {
    fn next_connection_id(&self) -> u32 {
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    fn is_operator(&self, user: &str) -> bool {
        user == "root"
    }

    fn find_account(&self, user: &str, _host: &str) -> Option<Account> {
        match user {
            "root" => Some(PasswordHash::of("").into()),
            "alice" => Some(PasswordHash::of("secret").into()),
            _ => None,
        }
    }

    async fn open_session(&self, info: ConnectionInfo) -> Result<Box<dyn Session>, SqlError> {
        check_database(info.database.as_deref().unwrap_or_default())?;
        self.0.note(format!("open {} {:?} {:?}", info.user, info.database, info.attributes));
        self.0.kills.lock().unwrap().insert(info.id, info.kill);
        Ok(Box::new(FakeSession { fake: Arc::clone(&self.0), in_transaction: false, file_packets: None }))
    }
}

struct FakeSession {
    fake: Arc<Fake>,
    in_transaction: bool,
    /// How many packets of a file are taken before an error; `None`: all.
    file_packets: Option<usize>,
}

fn check_database(name: &str) -> Result<(), SqlError> {
    match name {
        "missing" => Err(SqlError::new(ErrorCode::UnknownDatabase, "Unknown database 'missing'")),
        _ => Ok(()),
    }
}

fn numbers() -> (Vec<Column>, RecordBatch) {
    let batch = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1, 2, 3])) as _)]).unwrap();
    (vec![Column::new("n", DataType::Int)], batch)
}

fn texts(text: String) -> (Vec<Column>, RecordBatch) {
    let batch = RecordBatch::try_from_iter([("s", Arc::new(StringArray::from(vec![text])) as _)]).unwrap();
    (vec![Column::new("s", DataType::String)], batch)
}

/// Text that compression does not shrink below three quarters.
fn noise(length: usize) -> String {
    let mut random = 1_u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (random >> 26) as u8)
    };
    (0..length).map(|_| next()).collect()
}

async fn affect(out: &mut ResultWriter<'_>, affected_rows: u64) -> Result<(), SqlError> {
    out.ok(OkInfo { affected_rows, ..OkInfo::default() }).await
}

impl FakeSession {
    async fn run(&mut self, sql: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let (verb, rest) = sql.split_once(' ').unwrap_or((sql, ""));
        match verb {
            "affect" => affect(out, rest.parse().unwrap()).await,
            "length" => affect(out, sql.len() as u64).await,
            "multi" => affect(out, out.multi_statements().into()).await,
            "wait" => {
                self.fake.gate.notified().await;
                affect(out, 2).await
            }
            "info" => {
                let info = "{'label':'group_commit_1', 'status':'PREPARE', 'txnId':'7'}";
                out.ok(OkInfo { affected_rows: 3, warnings: 1, info, ..OkInfo::default() }).await
            }
            "begin" => {
                self.in_transaction = true;
                affect(out, 0).await
            }
            "two" => {
                affect(out, 1).await?;
                affect(out, 2).await
            }
            "three" => {
                let (columns, batch) = numbers();
                out.result_set(&columns, &[batch]).await
            }
            "half" => {
                let (columns, batch) = numbers();
                out.start(&columns).await?;
                out.batch(&batch).await?;
                Err(SqlError::new(ErrorCode::Unknown, "no more rows"))
            }
            "one" => {
                affect(out, 1).await?;
                Err(SqlError::new(ErrorCode::Syntax, "no second one"))
            }
            "repeat" => {
                let (columns, batch) = texts("x".repeat(rest.parse().unwrap()));
                out.result_set(&columns, &[batch]).await
            }
            "endless" => {
                let (columns, batch) = texts(noise(1 << 20));
                out.start(&columns).await?;
                loop {
                    if let Err(error) = out.batch(&batch).await {
                        self.fake.note(format!("endless ended {}", error.code.number()));
                        return Err(error);
                    }
                }
            }
            "drop" => {
                let (columns, batch) = texts("x".repeat(1 << 20));
                out.start(&columns).await?;
                let endless = async { while out.batch(&batch).await.is_ok() {} };
                tokio::select! {
                    biased;
                    () = endless => {}
                    () = self.fake.gate.notified() => {}
                }
                Ok(())
            }
            // A statement over a file of the client, of which it reads the given number of packets.
            "file" => {
                self.file_packets = rest.parse().ok();
                out.request_file("rows.csv")
            }
            "panic" => panic!("as asked"),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Session for FakeSession {
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let sql = String::from_utf8_lossy(sql);
        self.fake.note(format!("query {}", &sql[..sql.len().min(40)]));
        self.run(&sql, out).await
    }

    async fn take_file(
        &mut self,
        file: &mut ClientFile<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let (mut bytes, mut packets) = (0, 0);
        while self.file_packets != Some(packets) {
            let Some(piece) = file.next().await.inspect_err(|error| self.fake.note(error.message.clone()))?
            else {
                return affect(out, bytes).await;
            };
            (bytes, packets) = (bytes + piece.len() as u64, packets + 1);
        }
        Err(SqlError::new(ErrorCode::Unknown, "enough"))
    }

    async fn prepare(&mut self, _id: u32, sql: &[u8]) -> Result<Prepared, SqlError> {
        match sql {
            b"insert ?" => Ok(Prepared { param_count: 1, ..Prepared::default() }),
            b"select" => Ok(Prepared { columns: numbers().0, ..Prepared::default() }),
            _ => Err(SqlError::new(ErrorCode::Syntax, "cannot be prepared")),
        }
    }

    async fn execute(
        &mut self,
        id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let values = params.iter().collect::<Result<Vec<_>, _>>()?;
        self.fake.note(format!("execute {id} {values:?}"));
        match values[..] {
            [tributary_mysql::ParamValue::Int(value)] => affect(out, value as u64).await,
            [_] => affect(out, 0).await,
            _ => {
                let (columns, batch) = numbers();
                out.result_set(&columns, &[batch]).await
            }
        }
    }

    async fn close_statement(&mut self, id: u32) {
        self.fake.note(format!("close_statement {id}"));
    }

    async fn init_db(&mut self, db: &str) -> Result<(), SqlError> {
        check_database(db)
    }

    async fn reset(&mut self) -> Result<(), SqlError> {
        self.in_transaction = false;
        Ok(())
    }

    async fn change_user(&mut self, user: ChangeUser) -> Result<(), SqlError> {
        self.fake.note(format!("change_user {} {:?}", user.user, user.database));
        Ok(())
    }

    async fn field_list(&mut self, _table: &str, _pattern: &str) -> Result<Vec<Column>, SqlError> {
        Ok(numbers().0)
    }

    async fn kill(&mut self, connection_id: u32) -> Result<(), SqlError> {
        let kills = self.fake.kills.lock().unwrap();
        let unknown =
            || SqlError::new(ErrorCode::UnknownThread, format!("Unknown thread id: {connection_id}"));
        kills.get(&connection_id).ok_or_else(unknown)?.cancel();
        Ok(())
    }

    fn status(&self) -> SessionStatus {
        SessionStatus { in_transaction: self.in_transaction, ..SessionStatus::default() }
    }

    async fn close(&mut self) {
        self.fake.note(String::from("close"));
    }
}
