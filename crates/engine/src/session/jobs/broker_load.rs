//! `LOAD LABEL …` and `CANCEL LOAD`: the statements of jobs that go on without their sessions.

use crate::session::EngineSession;
use tributary_mysql::{OkInfo, ResultWriter};
use tributary_sql::{BrokerLoad, JobsBy};
use tributary_types::SqlError;

impl EngineSession {
    pub(in crate::session) async fn run_broker_load(
        &mut self,
        load: BrokerLoad,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        self.refuse_in_transaction()?;
        let zone = self.variables.values().time_zone.name.clone();
        let db = self.database.as_deref();
        self.engine.begin_broker_load(&self.principal, db, &zone, load).await?;
        out.ok(OkInfo::default()).await
    }

    pub(in crate::session) async fn run_cancel_load(
        &mut self,
        db: Option<&str>,
        by: &JobsBy,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let engine = &self.engine;
        let cancelled = engine.cancel_broker_loads(&self.principal, self.database.as_deref(), db, by);
        self.interrupt().wait(cancelled).await??;
        out.ok(OkInfo::default()).await
    }
}
