//! Tributary: CSV by Stream Load.

use super::http::Http;
use crate::load::Load;
use crate::peer::Peer;
use crate::servers::Server;
use crate::{Outcome, payload};
use bytes::Bytes;
use hyper::Method;

/// `root` without a password.
const AUTHORIZATION: &str = "Basic cm9vdDo=";

pub struct Client {
    http: Http,
    path: String,
    mode: &'static str,
    csv: Bytes,
}

impl Client {
    pub async fn connect(peer: Peer, server: &Server, load: &Load, index: usize) -> Outcome<Self> {
        Ok(Self {
            http: Http::connect(server.http_port).await?,
            path: format!("/api/bench/{}/_stream_load", load.table.name()),
            mode: peer.mode(),
            csv: payload::csv(index, load.rows).into(),
        })
    }

    pub async fn send(&mut self) -> Outcome<()> {
        let headers = [
            ("Authorization", AUTHORIZATION),
            ("column_separator", "|"),
            ("group_commit", self.mode),
            ("Expect", "100-continue"),
        ];
        let answer = self.http.send(Method::PUT, &self.path, &headers, self.csv.clone()).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        if answer["Status"] == "Success" { Ok(()) } else { Err(answer.to_string().into()) }
    }
}
