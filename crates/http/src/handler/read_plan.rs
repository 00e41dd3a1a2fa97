//! `_query_plan`: where connectors of Doris find what they read of a table.
//!
//! A table has one tablet, on this node, which a client reads by Arrow Flight SQL with `SELECT … FROM t TABLET(n)`. The plan that readers of
//! Doris's own protocol would send on is empty: there is no such protocol.

use super::inspect::exception;
use super::query::read_body;
use super::{Handled, Handler};
use crate::body::{LoadBody, Wire};
use crate::peer::Peer;
use crate::reply::{self, EnvelopeCode};
use hyper::http::request::Parts;
use serde::Deserialize;
use serde_json::{Map, json};

/// The body of a request.
#[derive(Deserialize)]
struct Asked {
    sql: String,
}

impl Handler {
    pub(super) async fn read_plan(
        &self,
        head: &Parts,
        wire: Wire,
        peer: &Peer,
        (db, table): (String, String),
    ) -> Handled {
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => {
                let refusal = reply::envelope(EnvelopeCode::Unauthorized, text);
                return Handled::new(reply::unauthorized(refusal), wire);
            }
        };
        let _held = match self.admit_statement(head) {
            Ok(held) => held,
            Err(refusal) => return Handled::new(*refusal, wire),
        };
        let (mut body, rest) = LoadBody::new(wire);
        let text = read_body(&mut body).await;
        drop(body);
        let response = match text {
            Err((status, text)) => reply::envelope_with_status(status, EnvelopeCode::BadRequest, text),
            Ok(text) => {
                let sql = serde_json::from_slice(&text).map(|Asked { sql }| sql).unwrap_or_default();
                let data = match self.services.inspect.read_plan(&user, &db, &table, &sql).await {
                    Err(error) => exception(&error),
                    Ok(plan) => {
                        let host = self.reached_as(head, peer).unwrap_or(plan.host);
                        // The port of a protocol that is not there: who tries it is refused at once.
                        let tablet = json!({
                            "routings": [format!("{host}:0")], "version": plan.version, "versionHash": 0, "schemaHash": 0,
                        });
                        let partitions = Map::from_iter([(plan.tablet.to_string(), tablet)]);
                        json!({ "status": 200, "partitions": partitions, "opaqued_query_plan": "" })
                    }
                };
                reply::envelope(EnvelopeCode::Success, data)
            }
        };
        Handled { response, rest: rest.await.ok() }
    }
}
