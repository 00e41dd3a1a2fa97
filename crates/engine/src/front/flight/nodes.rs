//! Calls of other nodes that share the catalog: parts of their queries, and the questions of servers that only read.
//!
//! Invariant: an answer to a question is that of the server that writes, and not of one that was frozen while another took over.

use crate::ddl::tables::table_error;
use crate::engine::Engine;
use crate::writer::{Question, ReceiptAnswer, ReceiptFailure};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::sync::Arc;
use tributary_flight::{NodeAnswer, NodeCall, NodeCalls, NodeReply};
use tributary_ingest::IngestError;
use tributary_types::{ErrorCode, SqlError, TableId, TxnId};

/// Answers other nodes.
pub(super) struct OtherNodes(pub Arc<Engine>);

impl NodeCalls for OtherNodes {
    fn admits(&self, token: &str, is_encrypted: bool) -> bool {
        // Nodes know the certificate of one that has one.
        (is_encrypted || self.0.certificate().is_none()) && self.0.facts().nodes.admits(token)
    }

    fn answer(&self, call: NodeCall) -> BoxFuture<'static, NodeReply> {
        self.0.queries.nodes().answer(call)
    }

    fn ask(&self, question: Bytes) -> BoxFuture<'static, Result<NodeAnswer, SqlError>> {
        let engine = Arc::clone(&self.0);
        Box::pin(async move { answer(&engine, &question).await })
    }
}

async fn answer(engine: &Engine, question: &[u8]) -> Result<NodeAnswer, SqlError> {
    if engine.follower().is_some() {
        return Err(SqlError::detail(ErrorCode::OnlyReads, "this server does not write"));
    }
    let question = serde_json::from_slice(question).map_err(|error| {
        let text = format!("the question of a node is not known in this version: {error}");
        SqlError::detail(ErrorCode::NotSupported, text)
    })?;
    let answer = match question {
        Question::Snapshot { table, known } => {
            let Some(table) = engine.names().by_id(table) else { return Err(no_table(table)) };
            let (_, sent) = table.send_snapshot(known.as_ref()).await.map_err(table_error)?;
            NodeAnswer { head: sent.head, schema: sent.schema, batches: sent.batches }
        }
        Question::Receipt { txn } => {
            let answer = serde_json::to_vec(&receipt(engine, txn).await);
            let answer = answer.map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
            NodeAnswer::without_rows(answer)
        }
        Question::Sync => {
            engine.ingest.sync().await;
            NodeAnswer::without_rows(Vec::new())
        }
        Question::Presence => NodeAnswer::without_rows(Vec::new()),
    };
    // Last: it was the owner until here.
    engine.confirm_ownership().await?;
    Ok(answer)
}

async fn receipt(engine: &Engine, txn: TxnId) -> ReceiptAnswer {
    let info = engine.ingest.transactions().by_id(txn);
    let failure = match engine.ingest.wait_visible(txn).await {
        Ok(()) => None,
        Err(IngestError::UnknownReceipt(_)) => Some(ReceiptFailure::Unknown),
        Err(error) => Some(ReceiptFailure::Failed(error.to_string())),
    };
    ReceiptAnswer { table: info.map(|info| info.table_ref.clone()), failure }
}

fn no_table(id: TableId) -> SqlError {
    SqlError::detail(ErrorCode::NoSuchTable, format!("there is no table with the id {id}"))
}
