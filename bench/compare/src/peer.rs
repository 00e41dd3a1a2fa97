//! Which servers there are, and what is asked of them outside of the measured time.

use crate::Outcome;
use crate::client::http::Http;
use crate::load::Table;
use crate::servers::Server;
use mysql_async::prelude::Queryable;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tributary { is_async: bool },
    MariaDb,
    PostgreSql,
    QuestDb,
}

/// In the order in which they are measured and shown.
pub const PEERS: [Peer; 5] = [
    Peer::MariaDb,
    Peer::PostgreSql,
    Peer::QuestDb,
    Peer::Tributary { is_async: false },
    Peer::Tributary { is_async: true },
];

/// QuestDB makes rows visible after it has acknowledged them; this is how long that may take.
const VISIBLE_WITHIN: Duration = Duration::from_secs(180);

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tributary { is_async: false } => "Tributary sync",
            Self::Tributary { is_async: true } => "Tributary async",
            Self::MariaDb => "MariaDB",
            Self::PostgreSql => "PostgreSQL",
            Self::QuestDb => "QuestDB",
        }
    }

    /// The `group_commit` mode of sessions and loads.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Tributary { is_async: true } => "async_mode",
            _ => "sync_mode",
        }
    }

    /// A sync group commits as soon as the log is free; an async one at the default interval.
    pub fn interval_ms(self) -> u64 {
        match self {
            Self::Tributary { is_async: true } => 10_000,
            _ => 0,
        }
    }

    /// Makes `table` anew, empty.
    pub async fn create_table(self, server: &Server, table: Table) -> Outcome<()> {
        let statements = table.create(self);
        match self {
            Self::Tributary { .. } | Self::MariaDb => {
                let mut connection = mysql(self, server).await?;
                for statement in statements {
                    connection.query_drop(statement).await?;
                }
                connection.disconnect().await?;
            }
            Self::PostgreSql => {
                let client = postgres(server).await?;
                for statement in statements {
                    client.batch_execute(&statement).await?;
                }
            }
            Self::QuestDb => {
                let mut http = Http::connect(server.http_port).await?;
                for statement in statements {
                    questdb_query(&mut http, &statement).await?;
                }
            }
        }
        Ok(())
    }

    /// The rows of `table`, once `expected` are visible or there is nothing more to wait for.
    pub async fn count(self, server: &Server, table: Table, expected: u64) -> Outcome<u64> {
        let sql = format!("SELECT count(*) FROM {}", table.name());
        match self {
            Self::Tributary { .. } | Self::MariaDb => {
                let mut connection = mysql(self, server).await?;
                if self != Self::MariaDb {
                    connection.query_drop("SYNC").await?;
                }
                let count: Option<u64> = connection.query_first(sql).await?;
                connection.disconnect().await?;
                count.ok_or_else(|| "count(*) gave no row".into())
            }
            Self::PostgreSql => {
                let row = postgres(server).await?.query_one(&sql, &[]).await?;
                Ok(row.get::<_, i64>(0) as u64)
            }
            Self::QuestDb => questdb_count(server, &sql, expected).await,
        }
    }
}

/// QuestDB applies its log to tables in the background.
async fn questdb_count(server: &Server, sql: &str, expected: u64) -> Outcome<u64> {
    let mut http = Http::connect(server.http_port).await?;
    let began = Instant::now();
    loop {
        let answer = questdb_query(&mut http, sql).await?;
        let count = answer["dataset"][0][0].as_u64().ok_or("count(*) gave no number")?;
        if count >= expected || began.elapsed() > VISIBLE_WITHIN {
            return Ok(count);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn questdb_query(http: &mut Http, sql: &str) -> Outcome<serde_json::Value> {
    let escaped: String = sql.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = http.get(&format!("/exec?query={escaped}")).await?;
    Ok(serde_json::from_slice(&answer)?)
}

/// A MySQL connection to the database `bench`, in the peer's mode.
pub async fn mysql(peer: Peer, server: &Server) -> Outcome<mysql_async::Conn> {
    let mut connection = mysql_to(server, Some("bench")).await?;
    if peer != Peer::MariaDb {
        connection.query_drop(format!("SET group_commit = {}", peer.mode())).await?;
    }
    Ok(connection)
}

/// A MySQL connection.
pub async fn mysql_to(server: &Server, db: Option<&str>) -> Outcome<mysql_async::Conn> {
    let options = mysql_async::OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(server.sql_port)
        .user(Some("root"))
        .db_name(db)
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20));
    Ok(mysql_async::Conn::new(options).await?)
}

/// A connection to PostgreSQL, driven by a task of its own.
pub async fn postgres(server: &Server) -> Outcome<tokio_postgres::Client> {
    let options = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.sql_port);
    let (client, connection) = tokio_postgres::connect(&options, tokio_postgres::NoTls).await?;
    // Its end is seen by the client's next call.
    drop(tokio::spawn(connection));
    Ok(client)
}
