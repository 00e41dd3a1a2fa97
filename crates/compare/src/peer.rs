//! The compared servers, and their queries outside the measured time.

use crate::Outcome;
use crate::http;
use crate::load::Table;
use crate::postgres;
use crate::servers::Server;
use std::time::{Duration, Instant};
use tributary_client::Client;

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

/// QuestDB makes rows visible after it has acknowledged them; this bounds the delay.
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

    /// Makes an empty `table` in place of the last one.
    pub fn create_table(self, server: &Server, table: Table) -> Outcome<()> {
        let statements = table.create(self);
        match self {
            Self::Tributary { .. } | Self::MariaDb => {
                let mut client = mysql(self, server)?;
                statements.iter().try_for_each(|statement| client.run(statement).map(drop))?;
            }
            Self::PostgreSql => {
                let mut connection = postgres::Connection::open(server.sql)?;
                statements.iter().try_for_each(|statement| connection.query(statement).map(drop))?;
            }
            Self::QuestDb => {
                statements.iter().try_for_each(|statement| questdb_query(server, statement).map(drop))?;
            }
        }
        Ok(())
    }

    /// The rows of `table`, once `expected` are visible or there is nothing more to wait for.
    pub fn count(self, server: &Server, table: Table, expected: u64) -> Outcome<u64> {
        let sql = format!("SELECT count(*) FROM {}", table.name());
        match self {
            Self::QuestDb => questdb_count(server, &sql, expected),
            _ => self.number(server, &sql),
        }
    }

    /// The result of a query for a single number, once all loads are visible. Not for QuestDB.
    pub fn number(self, server: &Server, sql: &str) -> Outcome<u64> {
        let number = match self {
            Self::Tributary { .. } | Self::MariaDb => {
                let mut client = mysql(self, server)?;
                if self != Self::MariaDb {
                    client.run("SYNC")?;
                }
                client.rows(sql)?.rows.concat().pop().flatten()
            }
            Self::PostgreSql => postgres::Connection::open(server.sql)?.query(sql)?.pop(),
            Self::QuestDb => return Err(format!("QuestDB is not asked {sql}").into()),
        };
        Ok(number.ok_or_else(|| format!("{sql} gave no row"))?.parse()?)
    }
}

/// QuestDB applies its log to tables in the background.
fn questdb_count(server: &Server, sql: &str, expected: u64) -> Outcome<u64> {
    let began = Instant::now();
    loop {
        let answer = questdb_query(server, sql)?;
        let count = answer["dataset"][0][0].as_u64().ok_or("count(*) gave no number")?;
        if count >= expected || began.elapsed() > VISIBLE_WITHIN {
            return Ok(count);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn questdb_query(server: &Server, sql: &str) -> Outcome<serde_json::Value> {
    let escaped: String = sql.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = http::get(server.http, &format!("/exec?query={escaped}"))?;
    Ok(serde_json::from_slice(&answer)?)
}

/// A MySQL connection to the database `bench`, in the peer's mode.
pub fn mysql(peer: Peer, server: &Server) -> Outcome<Client> {
    let mut client = Client::connect(server.sql, Some("bench"), None)?;
    if peer != Peer::MariaDb {
        client.run(&format!("SET group_commit = {}", peer.mode()))?;
    }
    Ok(client)
}
