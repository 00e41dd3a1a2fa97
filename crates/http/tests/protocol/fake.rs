//! A service whose behaviour a test picks by the table's name.

use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tributary_http::*;
use tributary_types::*;

pub const GROUP_LABEL: &str = "group_commit_c84d2099208436ab_96e33fda01eddba8";

/// A load's view of its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub bytes: Vec<u8>,
    pub total: u64,
    pub largest_chunk: usize,
    pub error: Option<BodyError>,
}

pub struct Fake {
    pub loads: Mutex<Vec<StreamLoadRequest>>,
    pub streams: Mutex<Vec<HttpStreamRequest>>,
    pub phases: Mutex<Vec<(String, String, TwoPhaseOp, TwoPhaseTarget)>>,
    seen: mpsc::UnboundedSender<Seen>,
    /// A load into `gated` waits here before it reads.
    pub gate: Semaphore,
    /// The client of a statement `wait` has left.
    pub left: Notify,
    /// Error logs by the `file` of their address.
    pub logs: Mutex<BTreeMap<String, String>>,
    pub health: Mutex<Health>,
}

impl Fake {
    async fn consume(&self, mut body: LoadBody) -> Seen {
        let mut seen = Seen::default();
        while let Some(chunk) = body.next().await {
            match chunk {
                Ok(chunk) => seen.add(&chunk),
                Err(error) => seen.error = Some(error),
            }
        }
        let _ = self.seen.send(seen.clone());
        seen
    }
}

impl Seen {
    fn add(&mut self, chunk: &Bytes) {
        self.total += chunk.len() as u64;
        self.largest_chunk = self.largest_chunk.max(chunk.len());
        if self.bytes.len() < 4096 {
            self.bytes.extend_from_slice(chunk);
        }
    }

    fn answer(&self, group: bool) -> LoadAnswer {
        if let Some(error) = &self.error {
            return LoadAnswer::from_body_error(error);
        }
        let rows = self.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let label = if group { GROUP_LABEL } else { "" };
        LoadAnswer {
            group_commit: group,
            total_rows: rows,
            loaded_rows: rows,
            ..LoadAnswer::success(TxnId(7009), label)
        }
    }
}

fn unknown_table(table: &str) -> SqlError {
    SqlError::detail(ErrorCode::UnknownTable, format!("Unknown table '{table}'"))
}

#[async_trait]
impl Authenticator for Fake {
    async fn authenticate(&self, user: &str, password: &str, peer: &Peer) -> Result<Principal, SqlError> {
        if user == "root" && password.is_empty() {
            return Ok(Principal::new(user, &peer.ip.to_string(), 0));
        }
        let text = format!("Access denied for user '{user}'@'{}' (using password: YES)", peer.ip);
        Err(SqlError::new(ErrorCode::AccessDenied, text))
    }
}

#[async_trait]
impl LoadService for Fake {
    async fn stream_load(&self, _: &Principal, request: StreamLoadRequest, body: LoadBody) -> LoadAnswer {
        let group = request.group_commit.is_some_and(|mode| mode != GroupCommitMode::Off);
        let table = request.table.clone();
        self.loads.lock().unwrap().push(request);
        match table.as_str() {
            "no_such" => LoadAnswer::from_sql_error(&unknown_table(&table)),
            "panics" => panic!("as the test wants it"),
            "gated" => {
                self.gate.acquire().await.unwrap().forget();
                self.consume(body).await.answer(group)
            }
            _ => self.consume(body).await.answer(group),
        }
    }

    async fn http_stream(&self, _: &Principal, request: HttpStreamRequest, body: LoadBody) -> LoadAnswer {
        let group = request.group_commit.is_some();
        self.streams.lock().unwrap().push(request);
        self.consume(body).await.answer(group)
    }

    async fn two_phase(
        &self,
        principal: &Principal,
        db: &str,
        op: TwoPhaseOp,
        target: TwoPhaseTarget,
    ) -> Result<(), SqlError> {
        self.phases.lock().unwrap().push((principal.user().to_owned(), db.to_owned(), op, target.clone()));
        match target.txn_id {
            Some(TxnId(503)) => Err(SqlError::detail(ErrorCode::Busy, "it has much to do")),
            Some(TxnId(404)) => Err(SqlError::detail(ErrorCode::Unknown, "transaction [404] not found.")),
            _ => Ok(()),
        }
    }

    async fn label_in_use(&self, _: &Principal, _db: &str, label: &Label) -> Option<LoadAnswer> {
        (label.as_str() == "used").then(|| LoadAnswer::label_already_exists("used", TxnId(8), "VISIBLE"))
    }
}

#[async_trait]
impl QueryService for Fake {
    async fn query(&self, _: &Principal, _: &Peer, request: QueryRequest) -> Result<QueryAnswer, SqlError> {
        match request.statement.as_str() {
            "rows" | "SHOW FRONTENDS" => {
                let pieces = ["[1,\"a\"]", "[2,null]"].map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
                let columns = vec![QueryColumn { name: "id".to_owned(), type_name: "INT".to_owned() }];
                Ok(QueryAnswer::Rows { columns, rows: Box::pin(futures::stream::iter(pieces)) })
            }
            "break" => {
                let pieces =
                    [Ok(Bytes::from_static(b"[1]")), Err(SqlError::detail(ErrorCode::Unknown, "late"))];
                Ok(QueryAnswer::Rows { columns: Vec::new(), rows: Box::pin(futures::stream::iter(pieces)) })
            }
            "wait" => {
                request.left.cancelled().await;
                self.left.notify_one();
                Err(SqlError::detail(ErrorCode::QueryInterrupted, "it has left"))
            }
            "done" => {
                let info = format!("{:?} {:?} {:?}", request.db, request.rows_max, request.read_after);
                Ok(QueryAnswer::Done { affected_rows: 3, warnings: 1, info })
            }
            _ => Err(SqlError::new(ErrorCode::Syntax, "no such statement")),
        }
    }
}

#[async_trait]
impl InspectService for Fake {
    async fn cancel(&self, _: &Principal, db: &str, label: &str) -> Result<(), SqlError> {
        match (db, label) {
            ("db", "running") => Ok(()),
            _ => {
                Err(SqlError::detail(ErrorCode::Unknown, format!("label {label} of {db} can't be cancelled")))
            }
        }
    }

    async fn label_info(&self, _: &Principal, db: &str, label: &str) -> Result<Option<LabelInfo>, SqlError> {
        if db != "db" {
            return Err(SqlError::detail(ErrorCode::UnknownDatabase, format!("Unknown database '{db}'")));
        }
        Ok((label == "used").then(|| LabelInfo {
            txn_id: TxnId(8),
            tables: vec!["dt".to_owned()],
            status: "VISIBLE",
            reason: String::new(),
            error_url: String::new(),
        }))
    }

    async fn table(&self, _: &Principal, db: &str, table: &str) -> Result<Arc<TableDef>, SqlError> {
        if table != "dt" {
            return Err(unknown_table(table));
        }
        let columns = vec![
            ColumnDef::new(0, "id", DataType::Int).key(),
            ColumnDef::new(1, "name", DataType::Varchar { bytes: 50 }),
            ColumnDef::new(2, "price", DataType::Decimal { precision: 18, scale: 2 }),
        ];
        let schema = TableSchema::new(SchemaVersion(1), columns);
        Ok(Arc::new(TableDef::new(TableId(1), db, table, schema)))
    }

    async fn read_plan(&self, _: &Principal, _: &str, table: &str, sql: &str) -> Result<ReadPlan, SqlError> {
        match (table, sql) {
            ("dt", "SELECT 1") => Ok(ReadPlan { tablet: 7, version: 3, host: "node".to_owned() }),
            ("dt", _) => Err(SqlError::new(ErrorCode::Syntax, "no such statement")),
            _ => Err(unknown_table(table)),
        }
    }

    async fn named_load(
        &self,
        _: &Principal,
        _db: &str,
        table: &str,
        asked: &AskedName,
    ) -> Result<NamedState, SqlError> {
        match (table, asked) {
            ("dt", AskedName::Key(_)) => {
                Ok(NamedState { state: "NONE", load: None, delta_version: None, next_offset: 0 })
            }
            ("dt", AskedName::Channel(channel)) => {
                let load = StoredLoad {
                    txn_id: TxnId(9),
                    label: channel.to_string(),
                    loaded_rows: 3,
                    filtered_rows: 2,
                    unselected_rows: 1,
                };
                Ok(NamedState { state: "VISIBLE", load: Some(load), delta_version: Some(3), next_offset: 5 })
            }
            _ => Err(unknown_table(table)),
        }
    }

    async fn row_count(&self, _: &Principal, _db: &str, table: &str) -> Result<u64, SqlError> {
        if table == "dt" { Ok(42) } else { Err(unknown_table(table)) }
    }

    fn backends(&self, _: &Principal, _: Option<&str>) -> Result<Vec<Backend>, SqlError> {
        let backend = |ip: &str, is_alive| Backend { ip: ip.to_owned(), http_port: 8040, is_alive };
        Ok(vec![backend("127.0.0.1", true), backend("127.0.0.2", false)])
    }

    fn health(&self) -> Health {
        self.health.lock().unwrap().clone()
    }

    fn wal_counts(&self, _: &Principal, _: Option<&str>) -> Result<Vec<WalCount>, SqlError> {
        Ok(vec![
            WalCount { host_port: "127.0.0.1:9050".to_owned(), count: 3 },
            WalCount { host_port: "127.0.0.2:9050".to_owned(), count: 0 },
        ])
    }

    async fn error_log(&self, file: &str) -> io::Result<Option<ErrorLogReader>> {
        let text = self.logs.lock().unwrap().get(file).cloned();
        Ok(text.map(|text| Box::pin(io::Cursor::new(text.into_bytes())) as ErrorLogReader))
    }

    fn metrics(&self) -> String {
        "# TYPE doris_be_load counter\ndoris_be_load 1\n".to_owned()
    }
}

/// A server on two free ports.
pub struct Running {
    pub address: SocketAddr,
    pub second_address: SocketAddr,
    pub fake: Arc<Fake>,
    pub seen: mpsc::UnboundedReceiver<Seen>,
    pub shutdown: CancellationToken,
    pub server: JoinHandle<io::Result<()>>,
}

pub async fn start() -> Running {
    start_with(HttpOptions::default()).await
}

pub async fn start_with(options: HttpOptions) -> Running {
    let (sender, seen) = mpsc::unbounded_channel();
    let fake = Arc::new(Fake {
        loads: Mutex::default(),
        streams: Mutex::default(),
        phases: Mutex::default(),
        seen: sender,
        gate: Semaphore::new(0),
        left: Notify::new(),
        logs: Mutex::default(),
        health: Mutex::new(Health { nodes: 2, alive: 1, ..Health::default() }),
    });
    let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let second = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, second_address) = (first.local_addr().unwrap(), second.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(serve(vec![first, second], Services::of(&fake), options, shutdown.clone()));
    Running { address, second_address, fake, seen, shutdown, server }
}
