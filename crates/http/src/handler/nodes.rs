//! Lists of nodes, as Doris's manager and connectors with "auto fetch" read them: the rows of SHOW FRONTENDS and SHOW BACKENDS.

use super::Handler;
use super::few_rows::FewRows;
use crate::peer::Peer;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use crate::route::Nodes;
use hyper::Response;
use serde_json::{Value, json};
use tributary_types::{Principal, SqlError};

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
        let FewRows { columns, mut rows } = self.few_rows(user, peer, statement.to_owned()).await?;
        for cell in rows.iter_mut().flatten().filter(|cell| cell.is_null()) {
            *cell = json!("");
        }
        // Versions of Doris and its connectors use one or the other key.
        Ok(json!({ "column_names": columns, "columnNames": columns, "rows": rows }))
    }
}
