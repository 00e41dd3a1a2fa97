//! Results of statements that have few rows, for answers of another form.

use super::Handler;
use crate::peer::Peer;
use crate::service::{QueryAnswer, QueryRequest};
use futures::TryStreamExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tributary_types::{ErrorCode, Principal, SqlError};

/// The names of the columns, and the rows.
#[derive(Default)]
pub(super) struct FewRows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Handler {
    /// Runs a statement for a user. One without rows has no columns either.
    ///
    /// # Errors
    /// The statement's.
    pub(super) async fn few_rows(
        &self,
        user: &Principal,
        peer: &Peer,
        statement: String,
    ) -> Result<FewRows, SqlError> {
        let left = CancellationToken::new();
        let request =
            QueryRequest { db: None, statement, rows_max: None, read_after: None, trace_parent: None, left };
        let QueryAnswer::Rows { columns, rows } = self.services.queries.query(user, peer, request).await?
        else {
            return Ok(FewRows::default());
        };
        let pieces: Vec<_> = rows.try_collect().await?;
        let text = [&b"["[..], &pieces.join(&b","[..]), &b"]"[..]].concat();
        let rows = serde_json::from_slice(&text).map_err(|error| {
            SqlError::new(ErrorCode::Unknown, format!("internal error: rows that are no JSON: {error}"))
        })?;
        Ok(FewRows { columns: columns.into_iter().map(|column| column.name).collect(), rows })
    }
}
