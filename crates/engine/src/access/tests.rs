use super::*;
use crate::front::http::HttpLoads;
use crate::front::mysql::serve_on_loopback;
use crate::testing::TestEngine;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_client::{Answer, Client, ClientError};
use tributary_types::ErrorCode;

const PATIENCE: Duration = Duration::from_secs(60);

/// Refuses as much as a test configures.
#[derive(Default)]
struct Refusing(AtomicU8);

const NOTHING: u8 = 0;
/// Everything but to have a session.
const ALL_BUT_SESSIONS: u8 = 1;
const ALL: u8 = 2;

impl Access for Refusing {
    fn check(&self, principal: &Principal, privilege: Privilege, object: Object<'_>) -> Result<(), SqlError> {
        let is_session = privilege == Privilege::Connect && object == Object::Server;
        match self.0.load(Ordering::SeqCst) {
            NOTHING => Ok(()),
            ALL_BUT_SESSIONS if is_session => Ok(()),
            _ => Err(SqlError::new(
                ErrorCode::PrivilegeDenied,
                format!("refused to {principal}: {privilege:?} {object:?}"),
            )),
        }
    }
}

struct Ports {
    refusing: Arc<Refusing>,
    mysql: SocketAddr,
    http: SocketAddr,
    shutdown: CancellationToken,
    _test: TestEngine,
}

/// A server with the table `d.t`, on free ports.
async fn serve() -> Ports {
    let refusing = Arc::new(Refusing::default());
    let test = TestEngine::open_with(|_| (), Arc::clone(&refusing) as _).await;
    test.table().await;
    let shutdown = CancellationToken::new();
    let mysql = serve_on_loopback(&test.engine, shutdown.clone()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port of the loopback");
    let http = listener.local_addr().expect("it is bound");
    tokio::spawn(tributary_http::serve(
        vec![listener],
        tributary_http::Services::of(&Arc::new(HttpLoads(Arc::clone(&test.engine)))),
        tributary_http::HttpOptions::default(),
        shutdown.clone(),
    ));
    Ports { refusing, mysql, http, shutdown, _test: test }
}

impl Drop for Ports {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// One statement of each kind, and more where one kind has several doors.
const STATEMENTS: &[&str] = &[
    "",
    "LOAD DATA INFILE 'f' INTO TABLE t",
    "CREATE ROUTINE LOAD d.j ON t FROM KAFKA ('kafka_broker_list' = '127.0.0.1:1', 'kafka_topic' = 't')",
    "PAUSE ROUTINE LOAD FOR d.j",
    "SHOW ROUTINE LOAD FOR d.j",
    "LOAD LABEL d.l (DATA INFILE('s3://b/f') INTO TABLE t) WITH S3('s3.endpoint' = 'http://127.0.0.1:1')",
    "CANCEL LOAD FROM d WHERE LABEL = 'l'",
    "EXPORT TABLE d.t TO 's3://b/p_' WITH S3('s3.endpoint' = 'http://127.0.0.1:1')",
    "CANCEL EXPORT FROM d WHERE LABEL = 'l'",
    "SHOW EXPORT FROM d",
    "SHOW DYNAMIC PARTITION TABLES FROM d",
    "CLEAN LABEL l FROM d",
    "SHOW LOAD WARNINGS FROM d WHERE LABEL = 'l'",
    "SHOW LOAD WARNINGS ON 'http://127.0.0.1:1/api/_load_error_log?file=x'",
    "SHOW CREATE LOAD FOR d.l",
    "SHOW STREAM LOAD FROM d",
    "CREATE DATABASE x",
    "DROP DATABASE d",
    "CREATE TABLE d.x (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    "CREATE TABLE d.x AS SELECT 1 AS a",
    "CREATE TABLE d.x LIKE d.t",
    "CREATE VIEW d.v AS SELECT 1 AS a",
    "ALTER VIEW d.v AS SELECT 1 AS a",
    "DROP VIEW d.v",
    "SHOW CREATE VIEW d.v",
    "DROP TABLE d.t",
    "RECOVER DATABASE d",
    "RECOVER TABLE d.t",
    "RECOVER PARTITION p FROM d.t",
    "DROP CATALOG RECYCLE BIN WHERE 'TableId' = 1",
    "SHOW CATALOG RECYCLE BIN",
    "SHOW PARTITION 1",
    "TRUNCATE TABLE d.t",
    "ALTER TABLE d.t ADD COLUMN x INT",
    "CANCEL ALTER TABLE COLUMN FROM d.t",
    "DELETE FROM d.t WHERE id = 1",
    "UPDATE d.t SET name = 'x' WHERE id = 1",
    "INSERT INTO d.t VALUES (1, 'a')",
    "INSERT IGNORE INTO d.t VALUES (1, 'a')",
    "INSERT INTO d.t VALUES (1 + 1, 'a')",
    "INSERT INTO d.t SELECT 1, 'a'",
    "SELECT 1",
    "SELECT 1 INTO OUTFILE 's3://b/p_'",
    "SELECT * FROM d.t",
    "EXPLAIN SELECT * FROM d.t",
    "USE d",
    "SET @x = 1",
    "SET GLOBAL query_timeout = 1",
    "SHOW TABLES FROM d",
    "SHOW CREATE TABLE d.t",
    "DESC d.t",
    "DESC FUNCTION local('file_path' = 'a.csv')",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SYNC",
    "CREATE ROLE r",
    "ALTER ROLE r COMMENT 'c'",
    "DROP ROLE r",
    "GRANT SELECT_PRIV ON d.* TO x",
    "GRANT 'r' TO x",
    "REVOKE SELECT_PRIV ON d.t FROM ROLE r",
    "GRANT SELECT_PRIV(id) ON d.t TO x",
    "CREATE TOKEN k FOR admin LIMITED TO LOAD ON d.t EXPIRES IN 1 DAY",
    "DROP TOKEN k",
    "SHOW TOKENS FOR admin",
    "SHOW ALL TOKENS",
    "SHOW ROLES",
    "SHOW ALL GRANTS",
    "SHOW GRANTS FOR x",
    "SHOW PROPERTY FOR x",
    "SET PROPERTY FOR x 'max_user_connections' = '1'",
    "CREATE USER x",
    "ALTER USER root IDENTIFIED BY 'x'",
    "DROP USER x",
    "KILL 1",
    "ALTER INSTANCE RELOAD TLS",
    "ALTER SYSTEM DECOMMISSION BACKEND 'h:1'",
    "BACKUP SERVER",
    "VERIFY TABLE d.t FULL",
    "CREATE JOB j ON SCHEDULE EVERY 1 DAY DO INSERT INTO d.t SELECT 1",
    "PAUSE JOB WHERE jobName = 'j'",
    "SHOW JOBS",
    "ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"1\")",
    "SHOW BACKEND CONFIG",
    "KILL QUERY 1",
    "UNLOCK TABLES",
    "LOCK TABLES d.t READ",
    "SAVEPOINT s",
    "SELECT 1 INTO @x",
    "RENAME TABLE d.t TO d.x",
    "DROP TABLE d.t, d.u",
    "ALTER TABLE d.t REPLACE WITH TABLE u",
    "DO 1",
    "CHECK TABLE d.t",
    "PREPARE s FROM 'SELECT 1'",
    "EXECUTE s",
    "DEALLOCATE PREPARE s",
    "UNSET VARIABLE ALL",
    "SHOW DATA TYPES",
    "SHOW BUILTIN FUNCTIONS",
    "SELECT * FROM backends()",
];

/// All names that [`kind`] gives.
const KINDS: [&str; 60] = [
    "cancel alter table",
    "empty",
    "create database",
    "drop database",
    "create table",
    "create table as",
    "create table like",
    "view",
    "drop table",
    "recover",
    "drop recycled",
    "truncate",
    "alter table",
    "delete",
    "update",
    "insert",
    "query",
    "outfile",
    "explain",
    "use",
    "load data",
    "routine load",
    "job",
    "broker load",
    "cancel load",
    "export",
    "cancel export",
    "clean label",
    "set",
    "show",
    "describe",
    "describe function",
    "begin",
    "commit",
    "rollback",
    "sync",
    "create user",
    "alter user",
    "drop user",
    "set property",
    "role",
    "token",
    "grant",
    "revoke",
    "kill",
    "reload tls",
    "decommission",
    "backup",
    "verify",
    "set config",
    "savepoint",
    "select into",
    "without effect",
    "rename tables",
    "drop tables",
    "compute",
    "maintain",
    "prepare",
    "execute",
    "deallocate",
];

/// A new kind of statement does not compile without a name here, and needs one in [`STATEMENTS`] then.
fn kind(statement: &Statement) -> &'static str {
    match statement {
        Statement::Empty => "empty",
        Statement::Savepoint { .. } => "savepoint",
        Statement::WithoutEffect(_) => "without effect",
        Statement::RenameTables(_) => "rename tables",
        Statement::DropTables { .. } => "drop tables",
        Statement::Compute(_) => "compute",
        Statement::Maintain { .. } => "maintain",
        Statement::Prepare { .. } => "prepare",
        Statement::Execute { .. } => "execute",
        Statement::Deallocate { .. } => "deallocate",
        Statement::CreateDatabase { .. } => "create database",
        Statement::DropDatabase { .. } => "drop database",
        Statement::CreateTable(_) => "create table",
        Statement::CreateTableAs(_) => "create table as",
        Statement::CreateTableLike { .. } => "create table like",
        Statement::View(_) => "view",
        Statement::DropTable { .. } => "drop table",
        Statement::Recover(_) => "recover",
        Statement::DropRecycled(_) => "drop recycled",
        Statement::TruncateTable { .. } => "truncate",
        Statement::AlterTable { .. } => "alter table",
        Statement::CancelAlter { .. } => "cancel alter table",
        Statement::Delete(_) => "delete",
        Statement::Update(_) => "update",
        Statement::Insert(_) => "insert",
        Statement::LoadData(_) => "load data",
        Statement::RoutineLoad(_) => "routine load",
        Statement::Job(_) => "job",
        Statement::BrokerLoad(_) => "broker load",
        Statement::CancelLoad { .. } => "cancel load",
        Statement::Backup(_) => "backup",
        Statement::Verify(_) => "verify",
        Statement::SetConfig(_) => "set config",
        Statement::Export(_) => "export",
        Statement::CancelExport { .. } => "cancel export",
        Statement::CleanLabel { .. } => "clean label",
        Statement::Query(_) => "query",
        Statement::Outfile(_) => "outfile",
        Statement::SelectInto { .. } => "select into",
        Statement::Explain(_) => "explain",
        Statement::Use { .. } => "use",
        Statement::Set(_) => "set",
        Statement::Show(_) => "show",
        Statement::Describe { .. } => "describe",
        Statement::DescribeFunction(_) => "describe function",
        Statement::Begin { .. } => "begin",
        Statement::Commit => "commit",
        Statement::Rollback => "rollback",
        Statement::Sync { .. } => "sync",
        Statement::CreateUser { .. } => "create user",
        Statement::AlterUser { .. } => "alter user",
        Statement::DropUser { .. } => "drop user",
        Statement::SetProperty(_) => "set property",
        Statement::Role(_) => "role",
        Statement::Token(_) => "token",
        Statement::Grant(_) => "grant",
        Statement::Revoke(_) => "revoke",
        Statement::Kill(_) => "kill",
        Statement::ReloadTls => "reload tls",
        Statement::Decommission { .. } => "decommission",
    }
}

fn refused(client: &mut Client, sql: &str) -> bool {
    match client.query(sql) {
        Err(ClientError::Refused(error)) => error.message.contains("refused to root@127.0.0.1: "),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_statement_asks_whether_it_may() {
    let parsed = STATEMENTS.iter().map(|sql| tributary_sql::parse(sql).expect("legal"));
    let kinds: BTreeSet<&str> = parsed.map(|statement| kind(&statement)).collect();
    assert_eq!(kinds, BTreeSet::from(KINDS), "there is a statement of each kind");
    let ports = serve().await;
    let (mysql, refusing) = (ports.mysql, Arc::clone(&ports.refusing));
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(mysql, Some("d"), Some(PATIENCE)).expect("allowed");
        let prepared = client.prepare("SELECT ?").expect("allowed");
        refusing.0.store(ALL, Ordering::SeqCst);
        for sql in STATEMENTS {
            assert!(refused(&mut client, sql), "{sql}");
        }
        let error =
            client.execute(prepared, &[tributary_client::Value::Int(1)]).map(|_| ()).expect_err("refused");
        assert!(error.to_string().contains("refused to"), "{error}");
        assert!(Client::connect(mysql, None, Some(PATIENCE)).is_err(), "no session is opened");
    });
    client.await.expect("no panic");
    drop(ports);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_may_not_be_seen_are_neither_planned_nor_listed() {
    let ports = serve().await;
    let (mysql, refusing) = (ports.mysql, Arc::clone(&ports.refusing));
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(mysql, Some("d"), Some(PATIENCE)).expect("allowed");
        let mut count = |sql: &str| match client.query(sql).expect("allowed") {
            Answer::Rows(rows) => rows.rows.len(),
            Answer::Ok(_) => 0,
        };
        let lists = [
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'd'",
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'd'",
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'd'",
        ];
        for sql in lists {
            assert!(count(sql) > 0, "{sql}");
        }
        refusing.0.store(ALL_BUT_SESSIONS, Ordering::SeqCst);
        for sql in lists {
            assert_eq!(count(sql), 0, "{sql}");
        }
        for sql in ["SELECT * FROM t", "EXPLAIN SELECT * FROM d.t", "SELECT (SELECT max(id) FROM t)"] {
            assert!(refused(&mut client, sql), "{sql}");
        }
        assert!(client.prepare("INSERT INTO t VALUES (?, ?)").is_err());
        assert!(client.prepare("SELECT * FROM t").is_err());
    });
    client.await.expect("no panic");
    drop(ports);
}

fn http(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let (line, headers) = request.split_once('|').unwrap_or((request, ""));
    let mut head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDo=\r\nConnection: close\r\nContent-Length: 4\r\n"
    );
    for header in headers.split('|').filter(|header| !header.is_empty()) {
        head += &format!("{header}\r\n");
    }
    stream.write_all(format!("{head}\r\n1\ta\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_that_is_not_public_asks_whether_it_may() {
    let ports = serve().await;
    let (address, refusing) = (ports.http, Arc::clone(&ports.refusing));
    let requests = tokio::task::spawn_blocking(move || {
        let endpoints = [
            "PUT /api/d/t/_stream_load",
            "PUT /api/_http_stream|sql: INSERT INTO d.t SELECT * FROM http_stream(\"format\" = \"CSV\")",
            "PUT /api/d/_stream_load_2pc|label: a|txn_operation: commit",
            "GET /api/d/t/_schema",
            "GET /api/d/t/_count",
            "POST /api/d/t/_query_plan",
            "GET /api/d/t/_load_state?channel=c",
            "GET /api/d/get_load_state?label=a",
            "GET /api/d/_load_info?label=a",
            "POST /api/d/_cancel?label=a",
            "GET /api/get_wal_size",
            "GET /rest/v2/manager/node/frontends",
            "GET /rest/v2/manager/node/backends",
        ];
        let of_every_user = ["GET /api/backends"];
        for refused in [ALL_BUT_SESSIONS, ALL] {
            refusing.0.store(refused, Ordering::SeqCst);
            for endpoint in endpoints {
                let answer = http(address, endpoint);
                assert!(answer.contains("refused to root@127.0.0.1: "), "{endpoint}: {answer}");
            }
            for endpoint in of_every_user {
                let answer = http(address, endpoint);
                assert_eq!(answer.contains("refused to root"), refused == ALL, "{endpoint}: {answer}");
            }
        }
        for public in ["GET /api/health", "GET /api/ready", "GET /api/bootstrap", "GET /metrics", "GET /"] {
            let answer = http(address, public);
            assert!(answer.starts_with("HTTP/1.1 200"), "{public}: {answer}");
        }
    });
    requests.await.expect("no panic");
    drop(ports);
}
