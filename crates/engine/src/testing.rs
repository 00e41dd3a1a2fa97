//! An engine for tests, in a directory of its own.

use crate::access::interrupt::Interrupt;
use crate::access::{Access, Everything, Privilege};
use crate::audit::options::AuditOptions;
use crate::engine::Engine;
use crate::front::mysql::text_lines;
use crate::node::options::{EngineOptions, StorageRoot};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tributary_decode::{Block, BlockBuilder};
use tributary_ingest::IngestOptions;
use tributary_sql::Statement;
use tributary_table::{StoreOptions, Table, TableError, TableStore};
use tributary_types::{Egress, Principal, StoredVerifiers, TableRef, TableSchema};
use tributary_types::{Live, Portion};
use walkdir::WalkDir;

pub(crate) struct TestEngine {
    pub engine: Arc<Engine>,
    directory: TempDir,
}

impl TestEngine {
    /// Opens an engine whose settings `change` may change.
    pub async fn open(change: impl FnOnce(&mut EngineOptions)) -> Self {
        Self::open_with(change, Arc::new(Everything)).await
    }

    pub async fn open_with(change: impl FnOnce(&mut EngineOptions), access: Arc<dyn Access>) -> Self {
        Self::open_on(change, access, TableStore::local).await
    }

    /// Opens an engine whose tables are in this store; by default it is in the given directory.
    pub async fn open_on(
        change: impl FnOnce(&mut EngineOptions),
        access: Arc<dyn Access>,
        store: impl FnOnce(&Path, StoreOptions) -> Result<TableStore, TableError>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut options = EngineOptions {
            state_dir: directory.path().to_owned(),
            tables: StorageRoot::parse(&directory.path().display().to_string()).expect("a directory"),
            table_storage: None,
            table_cache: None,
            catalog_database: None,
            host: "127.0.0.1".to_owned(),
            group_commit_interval_ms: Live::new(10),
            group_commit_data_bytes: Live::new(1 << 20),
            large_load_bytes: Live::new(1 << 20),
            session_memory_bytes: Live::new(512 << 20),
            max_concurrent_loads: Live::new(4096),
            error_log_keep: Live::new(Duration::from_secs(3600)),
            server_version: tributary_types::SERVER_VERSION.to_owned(),
            dynamic_partition_interval: Live::new(Duration::from_secs(3600)),
            verify_interval: Live::new(Duration::ZERO),
            trash_expire: Live::new(Duration::from_secs(86_400)),
            secure_load_dir: None,
            backup_dir: None,
            backup_bytes_per_second: Live::new(0),
            password_verifiers: StoredVerifiers::Both,
            egress: Arc::new(Egress::parse("127.0.0.0/8;::1/128").expect("networks")),
            audit: AuditOptions::default(),
            traces: None,
            ingest: IngestOptions {
                wal_dirs: vec![directory.path().join("wal")],
                retired_wal_dirs: Vec::new(),
                wal_limit: Live::new(Portion::Percent(10)),
                wal: tributary_wal::WalOptions { segment_bytes: 1 << 20, ..Default::default() },
                memory_limit_bytes: Live::new(64 << 20),
                keys_dir: directory.path().join("load_keys"),
                load_keys_max: Live::new(1_000_000),
                rejected_dir: directory.path().join("rejected_rows"),
                rejected_keep: Live::new(Duration::from_secs(3600)),
                rejected_bytes_max: Live::new(64 << 20),
                label_keep: Live::new(Duration::from_secs(3600)),
                precommit_timeout: Live::new(Duration::from_secs(3600)),
                ownership: tributary_ingest::Ownership::default(),
                sweep_interval: Live::new(Duration::from_secs(3600)),
            },
            store: StoreOptions::default(),
            spool_limit_bytes: 0,
            query: tributary_query::QueryOptions::default(),
        };
        change(&mut options);
        let root = options.tables.directory().to_owned();
        let opened =
            Engine::open_with(options, |_| access, |options| store(&root, options), text_lines).await;
        let (engine, _) = opened.expect("an empty directory opens");
        Self { engine, directory }
    }

    /// The table `d.t (id INT NOT NULL, text STRING)`, new.
    pub async fn table(&self) -> Arc<Table> {
        self.engine.ddl.create_database(Interrupt::NEVER, "d", true).await.expect("a new database");
        let sql = "CREATE TABLE t (id INT NOT NULL, text STRING) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1";
        let Ok(Statement::CreateTable(create)) = tributary_sql::parse(sql) else { panic!("it is one") };
        let name = TableRef { db: "d".to_owned(), table: "t".to_owned() };
        self.engine.ddl.create_table(Interrupt::NEVER, &create, &name).await.expect("a new table");
        let root = Principal::new("root", "%", 0);
        self.engine.gate.table(&root, Privilege::Load, Some("d"), None, "t").expect("it was created")
    }

    /// Files of tables except the Delta logs, finished or not.
    pub fn data_files(&self) -> usize {
        let all = WalkDir::new(self.directory.path().join("tables")).into_iter();
        let without_logs = all.filter_entry(|entry| entry.file_name() != "_delta_log");
        without_logs.flatten().filter(|entry| entry.file_type().is_file()).count()
    }
}

/// A block of rows of the test's table that takes about `bytes` bytes.
pub(crate) fn block(schema: &Arc<TableSchema>, bytes: usize) -> Block {
    const TEXT_BYTES: usize = 100_000;
    let text = "x".repeat(TEXT_BYTES.min(bytes));
    let mut builder = BlockBuilder::new(schema);
    for id in 0..(bytes / TEXT_BYTES).max(1) {
        builder.push_i32(0, id as i32);
        builder.push_text(1, &text);
        builder.finish_row();
    }
    builder.finish().expect("few rows")
}

/// Waits until `condition` holds.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
