//! Lists of nodes, as Doris's manager and connectors with "auto fetch" read them: the rows of SHOW FRONTENDS and SHOW BACKENDS.

use super::Handler;
use crate::peer::Peer;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use crate::route::Nodes;
use crate::service::{QueryAnswer, QueryRequest};
use futures::TryStreamExt;
use hyper::Response;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tributary_types::{ErrorCode, Principal, SqlError};

impl Handler {
    pub(super) async fn nodes(&self, user: &Principal, peer: &Peer, which: Nodes) -> Response<ReplyBody> {
        let statement = match which {
            Nodes::Frontends => "SHOW FRONTENDS",
            Nodes::Backends => "SHOW BACKENDS",
        };
        match self.table_of(user, peer, statement).await {
            Ok(table) => reply::envelope(EnvelopeCode::Success, table),
            Err(error) => reply::envelope(EnvelopeCode::Error, error.detail_text()),
        }
    }

    /// The names of a statement's columns and its rows of texts.
    async fn table_of(&self, user: &Principal, peer: &Peer, statement: &str) -> Result<Value, SqlError> {
        let request = QueryRequest {
            db: None,
            statement: statement.to_owned(),
            rows_max: None,
            read_after: None,
            left: CancellationToken::new(),
        };
        let (columns, rows) = match self.services.queries.query(user, peer, request).await? {
            QueryAnswer::Rows { columns, rows } => (columns, rows.try_collect::<Vec<_>>().await?),
            QueryAnswer::Done { .. } => (Vec::new(), Vec::new()),
        };
        let text = [&b"["[..], &rows.join(&b","[..]), &b"]"[..]].concat();
        let mut rows: Vec<Vec<Value>> = serde_json::from_slice(&text).map_err(|error| {
            SqlError::new(ErrorCode::Unknown, format!("internal error: rows that are no JSON: {error}"))
        })?;
        for cell in rows.iter_mut().flatten().filter(|cell| cell.is_null()) {
            *cell = json!("");
        }
        let names: Vec<String> = columns.into_iter().map(|column| column.name).collect();
        // Versions of Doris and its connectors use one or the other key.
        Ok(json!({ "column_names": names, "columnNames": names, "rows": rows }))
    }
}
