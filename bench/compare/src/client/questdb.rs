//! QuestDB: lines over HTTP, answered when they are committed.

use super::http::Http;
use crate::load::Load;
use crate::servers::Server;
use crate::{Outcome, payload};
use bytes::Bytes;
use hyper::Method;

pub struct Client {
    http: Http,
    lines: Bytes,
}

impl Client {
    pub async fn connect(server: &Server, load: &Load, index: usize) -> Outcome<Self> {
        let lines = payload::lines(load, index).into();
        Ok(Self { http: Http::connect(server.http_port).await?, lines })
    }

    pub async fn send(&mut self) -> Outcome<()> {
        self.http.send(Method::POST, "/write", &[], self.lines.clone()).await.map(|_| ())
    }
}
