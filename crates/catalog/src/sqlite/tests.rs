use super::{SqliteStore, failed_to, migrations};
use crate::error::CatalogError;
use crate::store::contract::{Place, store_contract};
use crate::store::{Revision, Store};
use crate::transactions::TxnRecord;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{query_scalar, raw_sql};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tributary_types::{DbId, Label, TableId, TableRef, TransactionKind, TransactionStatus, TxnId};

/// A file in a directory of its own.
struct File(TempDir);

impl Default for File {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Place for File {
    async fn open(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(&self.0.path().join("catalog.db")).await.unwrap())
    }
}

store_contract!(File);

/// The statements that made a file's tables and indexes, in a form that can be compared.
async fn tables(pool: &SqlitePool) -> String {
    let statements: Vec<String> = query_scalar(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let on_one_line = |sql: &String| sql.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    statements.iter().map(on_one_line).collect()
}

#[tokio::test]
async fn the_tables_of_the_file_are_those_of_the_last_golden_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("catalog.db")).await.unwrap();
    assert_eq!(tables(&store.pool).await, include_str!("golden/tables-10.sql"));
}

#[tokio::test]
async fn a_file_of_the_first_format_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalog.db");
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path).create_if_missing(true))
        .await
        .unwrap();
    raw_sql(migrations::FIRST).execute(&pool).await.unwrap();
    raw_sql(
        "INSERT INTO meta VALUES ('node_id', 'n');
         INSERT INTO databases (name) VALUES ('d'), ('dropped');
         DELETE FROM databases WHERE name = 'dropped';
         INSERT INTO users (name, host) VALUES ('root', '%'), ('u', '10.%');
         INSERT INTO transactions VALUES (7, 1, 2, 'd', 't', 'l', 1, 'GROUP', 'VISIBLE', 1, 10, 100, 1, NULL, 2, '');
         PRAGMA user_version = 1",
    )
    .execute(&pool)
    .await
    .unwrap();
    pool.close().await;
    for _ in 0..2 {
        let store = SqliteStore::open(&path).await.unwrap();
        let loaded = store.load().await.unwrap();
        assert_eq!((loaded.revision, loaded.next_db_id), (Revision(1), DbId(3)));
        let roles = loaded.users.iter().map(|user| user.account.roles.iter().map(String::as_str).collect());
        assert_eq!(roles.collect::<Vec<Vec<_>>>(), [["operator"], ["admin"]], "each may do what it could");
        let kept = store.kept_transactions("n").await.unwrap();
        assert_eq!(kept.iter().map(|record| record.txn_id).collect::<Vec<_>>(), [TxnId(7)]);
        assert_eq!(
            tables(&store.pool).await,
            include_str!("golden/tables-10.sql"),
            "as if it had been made today"
        );
        store.close().await;
    }
}

impl SqliteStore {
    /// Every column of every table, as `table|column`.
    pub(crate) async fn columns(&self) -> std::collections::BTreeSet<String> {
        let statement = "SELECT m.name || '|' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
        let found: Vec<String> = query_scalar(statement).fetch_all(&self.pool).await.unwrap();
        found.into_iter().collect()
    }
}

fn record(txn: u64, reason: String) -> TxnRecord {
    TxnRecord {
        txn_id: TxnId(txn),
        db_id: DbId(1),
        table_id: TableId(2),
        table: TableRef { db: "d".to_owned(), table: "t".to_owned() },
        label: Label::new(&format!("label-{txn}")).unwrap(),
        label_is_kept: true,
        kind: TransactionKind::StreamLoad,
        status: TransactionStatus::Visible,
        loads: 1,
        rows: 10,
        bytes: 100,
        prepared_at_ms: 1,
        precommitted_at_ms: None,
        finished_at_ms: Some(2),
        reason,
        attachment: None,
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
        // Written as far as the disk allows.
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
    store.put_transactions("n", &[record(1, String::new())]).await.unwrap();
    disk.fill();
    for txn in 2..6 {
        let error = store.put_transactions("n", &[record(txn, "x".repeat(9000))]).await.unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
    }
    store.try_writing().await;
    let trouble = store.write_trouble().expect("changes fail");
    assert!(trouble.reason.contains("full") && !trouble.is_away, "{trouble:?}");
    disk.free();
    store.try_writing().await;
    assert_eq!(store.write_trouble(), None, "nobody else has changed anything");
    for txn in 6..9 {
        store.put_transactions("n", &[record(txn, String::new())]).await.unwrap();
    }
    assert_eq!(seen_by_another(&path).await, [1, 6, 7, 8]);
    store.close().await;
}

#[tokio::test]
async fn a_change_without_space_names_the_space() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(dir.path().join("full.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    raw_sql("CREATE TABLE t (v BLOB); PRAGMA max_page_count = 4").execute(&pool).await.unwrap();
    let full = raw_sql("INSERT INTO t VALUES (zeroblob(100000))").execute(&pool).await.unwrap_err();
    let error = failed_to("store a row")(full);
    assert!(matches!(error, CatalogError::NoSpace { .. }), "{error}");
    assert!(
        error.to_string().contains("failed to store a row: there is no space left on its disk"),
        "{error}"
    );
}
