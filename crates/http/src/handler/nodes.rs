//! Lists of nodes, as Doris's manager and connectors with "auto fetch" read them: the rows of SHOW FRONTENDS and SHOW BACKENDS.
//!
//! Connectors send loads to the nodes that they find here, so nodes that only read are left out unless there are no others.

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
        let (statement, column, reads_only) = match which {
            Nodes::Frontends => ("SHOW FRONTENDS", "Role", "OBSERVER"),
            Nodes::Backends => ("SHOW BACKENDS", "NodeRole", "computation"),
        };
        match self.table_of(user, peer, statement, (column, reads_only)).await {
            Ok(table) => reply::envelope(EnvelopeCode::Success, table),
            Err(error) => reply::envelope(EnvelopeCode::Error, error.detail_text()),
        }
    }

    /// The names of a statement's columns and its rows of texts, without nodes whose column says that they only read.
    async fn table_of(
        &self,
        user: &Principal,
        peer: &Peer,
        statement: &str,
        (column, reads_only): (&str, &str),
    ) -> Result<Value, SqlError> {
        let FewRows { columns, mut rows } = self.few_rows(user, peer, statement.to_owned()).await?;
        if let Some(role) = columns.iter().position(|name| name == column)
            && rows.iter().any(|row| row[role] != reads_only)
        {
            rows.retain(|row| row[role] != reads_only);
        }
        for cell in rows.iter_mut().flatten().filter(|cell| cell.is_null()) {
            *cell = json!("");
        }
        // Versions of Doris and its connectors use one or the other key.
        Ok(json!({ "column_names": columns, "columnNames": columns, "rows": rows }))
    }
}
