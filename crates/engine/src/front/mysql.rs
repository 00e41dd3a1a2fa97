//! The MySQL front end's way into the engine.

use crate::engine::Engine;
use crate::session::EngineSession;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tributary_mysql::{ConnectionInfo, PasswordHash, ServerHooks, Session};
use tributary_types::SqlError;

/// Opens sessions for connections.
pub struct MysqlHooks {
    engine: Arc<Engine>,
    next_connection: AtomicU32,
}

impl MysqlHooks {
    #[must_use]
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, next_connection: AtomicU32::new(1) }
    }
}

#[async_trait]
impl ServerHooks for MysqlHooks {
    fn next_connection_id(&self) -> u32 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    fn lookup_password(&self, user: &str, host: &str) -> Option<PasswordHash> {
        self.engine.catalog.find_user(user, host).map(|user| user.password_hash)
    }

    async fn open_session(&self, info: ConnectionInfo) -> Result<Box<dyn Session>, SqlError> {
        Ok(Box::new(EngineSession::open(Arc::clone(&self.engine), info)?))
    }

    fn statistics(&self) -> String {
        let uptime = self.engine.uptime().as_secs();
        let connections = self.engine.processes().all().len();
        let tables = self.engine.table_count();
        format!("Uptime: {uptime}  Threads: {connections}  Open tables: {tables}")
    }
}
