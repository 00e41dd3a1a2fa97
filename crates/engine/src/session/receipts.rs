//! Reads that wait for writes: by the receipts of loads, which are their transactions' ids, or by what the session has loaded itself.
//!
//! Not here: when groups close; a wait closes none.

use super::EngineSession;
use crate::access::interrupt::Interrupt;
use crate::access::{Object, Privilege};
use crate::answer::Answer;
use crate::follow::Follower;
use crate::writer::{ReceiptAnswer, ReceiptFailure};
use std::sync::Arc;
use std::time::Instant;
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
                    let follower = Arc::clone(follower);
                    let caught_up = async {
                        let since = follower.catch_up().await;
                        follower.look_at_names().await.map(|()| since)
                    };
                    let interrupt = self.interrupt().or_after(self.query_timeout());
                    self.reads_since = Some(interrupt.wait(caught_up).await??);
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
        if let Some(follower) = self.engine.follower() {
            let follower = Arc::clone(follower);
            return self.wait_at_writer(&follower, receipt).await;
        }
        if let Some(info) = self.engine.ingest.transactions().by_id(receipt) {
            let object = Object::Table { db: &info.table_ref.db, table: &info.table_ref.table };
            if !self.engine.gate.allows(&self.principal, Privilege::Show, object) {
                return Err(IngestError::UnknownReceipt(receipt).into());
            }
        }
        Ok(self.visible(receipt).await??)
    }

    /// Waits until a transaction of the server that writes is visible there. Later reads of the session have its rows, or fail.
    async fn wait_at_writer(&mut self, follower: &Follower, receipt: TxnId) -> Result<(), SqlError> {
        let interrupt = self.interrupt().or_after(self.query_timeout());
        let answer = interrupt.wait(follower.writer().receipt(receipt)).await?;
        let ReceiptAnswer { table, failure } = answer.map_err(|reason| {
            let text = format!(
                "receipt {receipt}: the server that writes can't be asked: {reason}. Repeat it in a moment, or read there"
            );
            SqlError::detail(ErrorCode::Busy, text)
        })?;
        if let Some(table) = &table {
            if self.engine.names().find(&table.db, &table.table).is_none() {
                interrupt.wait(follower.look_at_names()).await??;
            }
            let object = Object::Table { db: &table.db, table: &table.table };
            if !self.engine.gate.allows(&self.principal, Privilege::Show, object) {
                return Err(IngestError::UnknownReceipt(receipt).into());
            }
        }
        match failure {
            None => {
                self.reads_since = Some(Instant::now());
                Ok(())
            }
            Some(ReceiptFailure::Unknown) => Err(IngestError::UnknownReceipt(receipt).into()),
            Some(ReceiptFailure::Failed(reason)) => Err(SqlError::detail(ErrorCode::Unknown, reason)),
        }
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
