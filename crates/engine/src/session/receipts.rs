//! Reads that wait for writes: by the receipts of loads, which are their transactions' ids, or by what the session has loaded itself.
//!
//! Not here: when groups close; a wait closes none.

use super::EngineSession;
use crate::access::interrupt::Interrupt;
use crate::access::{Object, Privilege};
use crate::answer::Answer;
use std::sync::Arc;
use tributary_ingest::IngestError;
use tributary_sql::{InsertSource, Statement};
use tributary_types::{ErrorCode, SqlError, TransactionStatus, TxnId};

/// Own transactions that are remembered at most; then the oldest are looked at.
const OWN_WRITES_MAX: usize = 1024;

/// Whether a statement reads rows of tables.
pub(super) fn reads_tables(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_)
        | Statement::Outfile(_)
        | Statement::Explain(_)
        | Statement::CreateTableAs(_)
        | Statement::Export(_)
        | Statement::Update(_)
        | Statement::Delete(_) => true,
        Statement::Insert(insert) => matches!(insert.source, InsertSource::Query(_)),
        _ => false,
    }
}

/// Whether any part of a statement may read tables, a subquery among values perhaps.
pub(super) const fn may_read(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Begin { .. }
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint { .. }
            | Statement::Sync { .. }
            | Statement::Use { .. }
    )
}

impl EngineSession {
    /// Waits until a transaction is visible, or everything that was acknowledged.
    pub(super) async fn sync(&mut self, receipt: Option<TxnId>) -> Result<Answer, SqlError> {
        match receipt {
            Some(receipt) => self.wait_for(receipt).await?,
            None => match self.engine.follower() {
                Some(follower) => {
                    self.interrupt().or_after(self.query_timeout()).wait(follower.catch_up()).await?;
                }
                None => self.interrupt().wait(self.engine.ingest.sync()).await?,
            },
        }
        Ok(Answer::ok())
    }

    /// Waits for what the session's variables say that its reads see.
    pub(super) async fn wait_for_receipts(&mut self) -> Result<(), SqlError> {
        let variables = self.variables.values();
        if let Ok(receipt @ 1..) = u64::try_from(variables.read_after) {
            Box::pin(self.wait_for(TxnId(receipt))).await?;
        }
        while let Some(&own) = self.own_writes.first() {
            // Its client knows of its failure, or has dropped the table.
            match Box::pin(self.visible(own)).await? {
                Ok(()) | Err(IngestError::NotVisible { .. } | IngestError::TableDropped(_)) => {}
                Err(error) => return Err(error.into()),
            }
            // Not before: a wait that is interrupted has shown nothing.
            self.own_writes.remove(&own);
        }
        Ok(())
    }

    async fn wait_for(&mut self, receipt: TxnId) -> Result<(), SqlError> {
        if self.engine.follower().is_some() {
            let text = format!(
                "receipt {receipt}: only the server that writes knows its receipts. Read there, or say SYNC here before, which waits until \
                 this node has everything that was visible there"
            );
            return Err(SqlError::detail(ErrorCode::OnlyReads, text));
        }
        if let Some(info) = self.engine.ingest.transactions().by_id(receipt) {
            let object = Object::Table { db: &info.table_ref.db, table: &info.table_ref.table };
            if !self.engine.gate.allows(&self.principal, Privilege::Show, object) {
                return Err(IngestError::UnknownReceipt(receipt).into());
            }
        }
        Ok(self.visible(receipt).await??)
    }

    async fn visible(&mut self, txn: TxnId) -> Result<Result<(), IngestError>, SqlError> {
        let (process, ingest) = (Arc::clone(&self.process), Arc::clone(&self.engine.ingest));
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.query_timeout());
        Ok(interrupt.wait(ingest.wait_visible(txn)).await?)
    }

    /// Remembers an own transaction, if the session's reads wait for them.
    pub(super) fn has_written(&mut self, txn: TxnId, status: TransactionStatus) {
        if status != TransactionStatus::Prepare || !self.variables.values().read_own_writes {
            return;
        }
        self.own_writes.insert(txn);
        if self.own_writes.len() > OWN_WRITES_MAX {
            let transactions = self.engine.ingest.transactions();
            let is_running =
                |txn: &TxnId| transactions.by_id(*txn).is_some_and(|info| !info.status.is_final());
            self.own_writes.retain(is_running);
        }
    }
}
