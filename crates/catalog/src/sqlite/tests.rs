use super::SqliteStore;
use super::transactions;
use crate::transactions::{TxnKind, TxnRecord, TxnStatus};
use sqlx::query_scalar;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tributary_types::{DbId, Label, TableId, TableRef, TxnId};

fn record(txn: u64, reason: String) -> TxnRecord {
    TxnRecord {
        txn_id: TxnId(txn),
        db_id: DbId(1),
        table_id: TableId(2),
        table: TableRef { db: "d".to_owned(), table: "t".to_owned() },
        label: Label::new(&format!("label-{txn}")).unwrap(),
        label_is_kept: true,
        kind: TxnKind::StreamLoad,
        status: TxnStatus::Visible,
        loads: 1,
        rows: 10,
        bytes: 100,
        prepared_at_ms: 1,
        precommitted_at_ms: None,
        finished_at_ms: Some(2),
        reason,
    }
}

/// The transactions that a process finds which opens the file while this one still runs.
async fn seen_by_another(path: &Path) -> Vec<i64> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    query_scalar("SELECT txn_id FROM transactions ORDER BY txn_id").fetch_all(&pool).await.unwrap()
}

/// A file system of a megabyte, which only root can mount.
struct TinyDisk(TempDir);

impl TinyDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(dir.path()).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(dir))
    }

    fn fill(&self) {
        // Written as far as it goes.
        drop(std::fs::write(self.0.path().join("ballast"), vec![0; 2 << 20]));
    }

    fn free(&self) {
        std::fs::remove_file(self.0.path().join("ballast")).unwrap();
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        // The directory is removed afterwards, and says so if it is still in use.
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

#[tokio::test]
async fn changes_after_a_full_disk_are_durable() {
    let Some(disk) = TinyDisk::mount() else {
        return eprintln!("not tried: it takes root to mount a full disk");
    };
    let path = disk.0.path().join("catalog.db");
    let store = SqliteStore::open(&path).await.unwrap();
    transactions::put(&store.pool, &[record(1, String::new())]).await.unwrap();
    disk.fill();
    for txn in 2..6 {
        let error = transactions::put(&store.pool, &[record(txn, "x".repeat(9000))]).await.unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
    }
    disk.free();
    for txn in 6..9 {
        transactions::put(&store.pool, &[record(txn, String::new())]).await.unwrap();
    }
    assert_eq!(seen_by_another(&path).await, [1, 6, 7, 8]);
    store.pool.close().await;
}
