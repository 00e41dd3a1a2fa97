//! One connection of each protocol, which sends the same request again and again. Whatever can be prepared
//! is prepared before, so that a request costs the client little, and the same for each server.

pub mod http;
mod mysql;
mod postgres;
mod questdb;
mod stream_load;

use crate::Outcome;
use crate::load::{Form, Load};
use crate::peer::Peer;
use crate::servers::Server;

/// A connection that is ready to send.
pub enum Client {
    Mysql(mysql::Client),
    Postgres(postgres::Client),
    QuestDb(questdb::Client),
    StreamLoad(stream_load::Client),
}

impl Client {
    pub async fn connect(peer: Peer, server: &Server, load: &Load, index: usize) -> Outcome<Self> {
        Ok(match (peer, load.form) {
            (Peer::Tributary { .. }, Form::Csv) => {
                Self::StreamLoad(stream_load::Client::connect(peer, server, load, index).await?)
            }
            (Peer::Tributary { .. } | Peer::MariaDb, _) => {
                Self::Mysql(mysql::Client::connect(peer, server, load, index).await?)
            }
            (Peer::PostgreSql, _) => Self::Postgres(postgres::Client::connect(server, load, index).await?),
            (Peer::QuestDb, _) => Self::QuestDb(questdb::Client::connect(server, load, index).await?),
        })
    }

    /// Sends one request and waits for its answer: its rows are durable then.
    pub async fn send(&mut self) -> Outcome<()> {
        match self {
            Self::Mysql(client) => client.send().await,
            Self::Postgres(client) => client.send().await,
            Self::QuestDb(client) => client.send().await,
            Self::StreamLoad(client) => client.send().await,
        }
    }
}
