//! PostgreSQL as a store: the contract, and what only it has.

use super::claim::{Claim, Claimed};
use super::testing::{PASSWORD, Postgres, Stop};
use super::url::PostgresOptions;
use super::{PostgresStore, Store};
use crate::catalog::Catalog;
use crate::error::CatalogError;
use crate::jobs::{JobRecord, PositionRecord};
use crate::location::CatalogLocation;
use crate::moves::{copy_to_postgres, copy_to_sqlite};
use crate::nodes::{HeardNode, NodeAccess, NodeSign};
use crate::recycled::{RecycledPartition, RecycledTable};
use crate::rows::TABLES;
use crate::sqlite::SqliteStore;
use crate::state::State;
use crate::store::contract::{Place, store_contract};
use crate::store::{Applied, Garbage, Operation};
use crate::transactions::TxnRecord;
use crate::users::{Role, User};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tributary_types::privilege::Grants;
use tributary_types::{
    Attachment, ColumnDef, DataType, DbId, ErrorCode, Label, PartitionId, PasswordHash, SaltedHash,
    SchemaVersion, Secret, SourceId, SqlError, TableDef, TableId, TableRef, TableSchema, TransactionKind,
    TransactionStatus, TxnId,
};

/// A database of its own, claimed by the first store.
struct Database {
    server: Arc<Postgres>,
    options: PostgresOptions,
    epoch: tokio::sync::Mutex<i64>,
}

fn options(url: &str) -> PostgresOptions {
    PostgresOptions { url: url.parse().unwrap(), password: Secret::new(PASSWORD) }
}

impl Default for Database {
    fn default() -> Self {
        let server = Postgres::shared();
        let url = server.url(&server.database());
        Self { server, options: options(&url), epoch: tokio::sync::Mutex::default() }
    }
}

const CLAIM: Claim<'_> = Claim { node: "n", host: "here", known: None };

impl Place for Database {
    async fn open(&self) -> Box<dyn Store> {
        let mut epoch = self.epoch.lock().await;
        if *epoch > 0 {
            return Box::new(PostgresStore::join(&self.options, *epoch).await.unwrap());
        }
        let (store, _) = PostgresStore::claim(&self.options, &CLAIM).await.unwrap();
        *epoch = store.link.epoch();
        Box::new(store)
    }
}

store_contract!(Database);

impl Database {
    async fn claim(&self, node: &str, known: Option<&str>) -> Result<(PostgresStore, String), CatalogError> {
        let (store, claimed) = self.claimed(node, known).await?;
        Ok((store, claimed.id))
    }

    async fn claimed(
        &self,
        node: &str,
        known: Option<&str>,
    ) -> Result<(PostgresStore, Claimed), CatalogError> {
        PostgresStore::claim(&self.options, &Claim { node, host: "there", known }).await
    }

    fn run(&self, sql: &str) -> String {
        self.server.run(&self.options.url.database, sql)
    }

    /// The owner was not heard of for long.
    fn expire(&self) {
        self.run("UPDATE tributary.catalog SET expires = '-infinity'");
    }
}

fn create_user(name: &str) -> Operation {
    Operation::CreateUser(User::new(name, "%", PasswordHash::EMPTY))
}

async fn users(store: &PostgresStore) -> Vec<String> {
    store.load().await.unwrap().users.into_iter().map(|user| user.name).collect()
}

#[tokio::test]
async fn a_server_that_lost_the_catalog_changes_nothing_any_more() {
    let database = Database::default();
    let (first, id) = database.claim("n", None).await.unwrap();
    let at = first.revision().await.unwrap();
    assert_eq!(first.apply(at, &create_user("a")).await.unwrap(), Applied::Made);
    database.expire();
    let (second, same) = database.claim("n", Some(&id)).await.unwrap();
    assert_eq!(same, id);
    let at = first.revision().await.unwrap();
    let garbage = Garbage { location: "x".to_owned(), table_id: TableId(1) };
    for refused in [
        first.apply(at, &create_user("b")).await.map(|_| ()),
        first.meta_put("k", "v", &[]).await,
        first.insert_garbage(&garbage).await,
        first.next_table_id().await.map(|_| ()),
        first.put_transactions("n", &[]).await,
        first.reserve_increments(TableId(1), 1, 1).await.map(|_| ()),
        first.put_job("n", &JobRecord { id: SourceId(1), definition: String::new() }).await,
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, CatalogError::Lost { .. }), "{error}");
        assert!(error.to_string().contains("server n on there, epoch 2"), "{error}");
    }
    first.try_writing().await;
    let trouble = first.write_trouble().expect("it is no longer the owner");
    assert!(!trouble.is_away && trouble.is_lost && trouble.reason.contains("was taken by"), "{trouble:?}");
    assert_eq!(users(&second).await, ["a"]);
    assert_eq!(second.meta_get("k").await.unwrap(), None);
    assert_eq!(second.apply(at, &create_user("b")).await.unwrap(), Applied::Made);
    // Its end frees nothing that is another's.
    first.close().await;
    assert_eq!(database.run("SELECT epoch, expires > now() FROM tributary.catalog"), "2|t");
}

#[tokio::test]
async fn a_claim_says_whether_the_process_before_it_may_be_running() {
    let database = Database::default();
    let (first, claimed) = database.claimed("n", None).await.unwrap();
    assert_eq!((claimed.epoch, claimed.is_takeover), (1, false));
    // It has not said that it lives yet.
    database.expire();
    let (second, claimed) = database.claimed("n", Some(&claimed.id)).await.unwrap();
    assert_eq!((claimed.epoch, claimed.is_takeover), (2, true));
    first.close().await;
    second.close().await;
    let (_third, claimed) = database.claimed("n", Some(&claimed.id)).await.unwrap();
    assert_eq!((claimed.epoch, claimed.is_takeover), (3, false), "the one before has ended");
}

#[tokio::test]
async fn nodes_that_share_a_catalog_hear_of_one_another() {
    let database = Database::default();
    let (owner, _) = database.claimed("n", None).await.unwrap();
    let reader = PostgresStore::read(&database.options).await.unwrap();
    let sign = |name: &str, reads_only, rows_age_ms| NodeSign {
        name: name.to_owned(),
        reads_only,
        host: "db1".to_owned(),
        query_port: 9030,
        http_port: 8030,
        webserver_port: 8040,
        flight_port: None,
        version: "v".to_owned(),
        since_ms: 7,
        rows_age_ms,
        access: Some(NodeAccess { token: "t".to_owned(), certificate: None }),
        computes_parts: true,
        cpu_cores: 4,
    };
    let names = |nodes: &[HeardNode]| nodes.iter().map(|node| node.sign.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&owner.say_node(&sign("n", false, Some(0))).await.unwrap()), ["n"]);
    let heard = reader.say_node(&sign("a", true, None)).await.unwrap();
    assert_eq!(names(&heard), ["a", "n"]);
    assert_eq!(heard[0].sign, sign("a", true, None));
    assert!(heard[1].heard < Duration::from_secs(60), "{heard:?}");
    reader.say_node(&sign("a", true, Some(5))).await.unwrap();
    assert_eq!(reader.heard_nodes().await.unwrap()[0].sign.rows_age_ms, Some(5));
    database.run("UPDATE tributary.heard_nodes SET heard = now() - interval '61 min' WHERE name = 'n'");
    assert_eq!(names(&reader.heard_nodes().await.unwrap()), ["a"]);
    reader.say_node(&sign("a", true, Some(5))).await.unwrap();
    assert_eq!(
        listed(&database.run("SELECT name FROM tributary.heard_nodes")),
        BTreeSet::from(["a".to_owned()])
    );
    // One of before computes no parts of queries, and says less.
    database.run("UPDATE tributary.heard_nodes SET sign = (sign::jsonb - 'access' - 'computes_parts' - 'webserver_port' - 'cpu_cores')::text");
    let heard = reader.heard_nodes().await.unwrap();
    let of_before = NodeSign {
        access: None,
        computes_parts: false,
        webserver_port: 0,
        cpu_cores: 0,
        ..sign("a", true, Some(5))
    };
    assert_eq!(heard[0].sign, of_before);
    reader.unsay_node("a").await.unwrap();
    assert_eq!(owner.heard_nodes().await.unwrap(), []);
    database.run(
        "INSERT INTO tributary.heard_nodes SELECT 'x' || number, '{}', now() FROM generate_series(1, 1000) number",
    );
    assert_eq!(owner.say_node(&sign("n", false, Some(0))).await.unwrap(), [], "the table is full");
    database.run("DROP TABLE tributary.heard_nodes");
    assert_eq!(reader.heard_nodes().await.unwrap(), [], "the writer is of an earlier version");
}

#[tokio::test]
async fn an_owner_tells_how_far_its_tables_are() {
    let database = Database::default();
    let (owner, claimed) = database.claimed("n", None).await.unwrap();
    let reader = PostgresStore::read(&database.options).await.unwrap();
    assert_eq!(reader.owner().await.unwrap(), Some((claimed.id.clone(), "n".to_owned())));
    assert_eq!(reader.lag().await.unwrap(), None);
    owner.tell_progress(&|| Some(Duration::from_secs(100))).await.unwrap();
    let lag = reader.lag().await.unwrap().expect("it was told");
    assert!((Duration::from_secs(100)..Duration::from_secs(160)).contains(&lag), "{lag:?}");
    owner.tell_progress(&|| None).await.unwrap();
    let lag = reader.lag().await.unwrap().expect("it was told");
    assert!(lag < Duration::from_secs(60), "{lag:?}");
    owner.tell_end().await.unwrap();
    assert_eq!(reader.lag().await.unwrap(), Some(Duration::ZERO));
    database.expire();
    let (next, _) = database.claimed("n", Some(&claimed.id)).await.unwrap();
    assert_eq!(reader.lag().await.unwrap(), None, "what the one before has told does not count");
    owner.tell_end().await.unwrap();
    assert_eq!(reader.lag().await.unwrap(), None, "nor what it tells later");
    next.tell_end().await.unwrap();
    assert_eq!(reader.lag().await.unwrap(), Some(Duration::ZERO));
    // A reader changes nothing, and says nothing for the owner.
    reader.try_writing().await;
    assert!(reader.write_trouble().is_none());
    reader.tell_progress(&|| None).await.unwrap();
    assert_eq!(reader.lag().await.unwrap(), Some(Duration::ZERO));
    let refused = reader.meta_put("k", "v", &[]).await.unwrap_err().to_string();
    assert!(refused.contains("opened for reading only"), "{refused}");
}

#[tokio::test]
async fn a_catalog_has_one_owner_and_says_which() {
    let database = Database::default();
    let (owner, id) = database.claim("n", None).await.unwrap();
    let other = database.claim("m", None).await.unwrap_err();
    assert!(matches!(other, CatalogError::OfAnother { .. }), "{other}");
    assert!(
        other.to_string().contains("belongs to the server n") && other.to_string().contains("host there"),
        "{other}"
    );
    let copy = database.claim("n", Some(&id)).await.unwrap_err();
    assert!(matches!(copy, CatalogError::InUse { .. }), "{copy}");
    let elsewhere = database.claim("n", Some("other")).await.unwrap_err();
    assert!(matches!(elsewhere, CatalogError::NotTheCatalog { .. }), "{elsewhere}");
    for error in [other, copy, elsewhere] {
        let text = error.to_string();
        assert!(text.contains(&database.options.url.to_string()) && !text.contains(PASSWORD), "{text}");
    }
    // A process that was killed is seen to be gone; one that ended well says so.
    owner.link.close().await;
    let (owner, _) = database.claim("n", Some(&id)).await.unwrap();
    owner.close().await;
    assert_eq!(database.run("SELECT epoch, session = '' FROM tributary.catalog"), "2|t");
    let (owner, _) = database.claim("n", Some(&id)).await.unwrap();
    assert_eq!(owner.link.epoch(), 3);
    let reader = PostgresStore::read(&database.options).await.unwrap();
    assert_eq!(reader.revision().await.unwrap(), owner.revision().await.unwrap());
    let refused = reader.meta_put("k", "v", &[]).await.unwrap_err();
    assert!(refused.to_string().contains("reading only"), "{refused}");
    database.run("UPDATE tributary.catalog SET format = 99");
    owner.close().await;
    let newer = database.claim("n", Some(&id)).await.unwrap_err();
    assert!(matches!(newer, CatalogError::NewerFormat { found: 99, .. }), "{newer}");
    database.run("DROP SCHEMA tributary CASCADE");
    let gone = database.claim("n", Some(&id)).await.unwrap_err();
    assert!(matches!(gone, CatalogError::Missing { .. }), "{gone}");
    let gone = PostgresStore::read(&database.options).await.unwrap_err();
    assert!(matches!(gone, CatalogError::NoCatalog(_)), "{gone}");
    assert_eq!(database.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'tributary'"), "0");
}

#[tokio::test]
async fn changes_of_another_way_to_the_catalog_are_shown_and_make_a_check_start_again() {
    let database = Database::default();
    let one = Catalog::with_store(database.open().await).await.unwrap();
    let other = Catalog::with_store(database.open().await).await.unwrap();
    one.create_database("d").await.unwrap();
    assert!(other.databases().is_empty());
    let taken = other.create_database("d").await.unwrap_err();
    assert!(matches!(taken, CatalogError::DatabaseExists(_)), "{taken}");
    assert_eq!(other.databases(), ["d"], "it was loaded again");
    one.create_database("e").await.unwrap();
    other.keep_up().await;
    assert_eq!(other.databases(), ["d", "e"]);
    assert_eq!(other.revision(), one.revision());
}

#[tokio::test]
async fn an_aborted_transaction_may_quote_a_zero_byte() {
    let database = Database::default();
    let store = database.open().await;
    let record = TxnRecord { reason: "bad value a\0b".to_owned(), ..record(1) };
    store.put_transactions("n", &[record]).await.unwrap();
    let kept = store.transaction_by_id("n", TxnId(1)).await.unwrap().unwrap();
    assert_eq!(kept.reason, "bad value a\u{fffd}b");
}

fn record(txn: u64) -> TxnRecord {
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
        reason: String::new(),
        attachment: Some(Attachment::new(b"\0\xff").unwrap()),
    }
}

/// The faults of a way to the server.
const CLEAR: u8 = 0;
/// The next COMMIT arrives, and its answer does not.
const LOSES_ANSWER: u8 = 1;
/// The next COMMIT does not arrive.
const LOSES_COMMIT: u8 = 2;

/// A way to the server that loses what it is told to, once.
struct Way {
    port: u16,
    fault: Arc<AtomicU8>,
}

impl Way {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let fault = Arc::new(AtomicU8::new(CLEAR));
        let faults = Arc::clone(&fault);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let faults = Arc::clone(&faults);
                std::thread::spawn(move || pass(client, server, &faults));
            }
        });
        Self { port, fault }
    }
}

/// Passes bytes on until a fault ends both connections.
fn pass(client: TcpStream, server: TcpStream, faults: &AtomicU8) {
    let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    let back = std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count) = back_from.read(&mut buffer) {
            // The answer to a COMMIT is lost when it has come.
            if count == 0 || cut.load(Ordering::SeqCst) || back_to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        drop(back_to.shutdown(Shutdown::Both));
    });
    let (mut from, mut to) = (client, server);
    let mut buffer = [0; 8192];
    while let Ok(count) = from.read(&mut buffer) {
        let is_commit = buffer[..count].windows(7).any(|bytes| bytes == b"COMMIT\0");
        let fault = if is_commit { faults.swap(CLEAR, Ordering::SeqCst) } else { CLEAR };
        is_cut.fetch_or(fault == LOSES_ANSWER, Ordering::SeqCst);
        if count == 0 || fault == LOSES_COMMIT || to.write_all(&buffer[..count]).is_err() {
            break;
        }
        if fault == LOSES_ANSWER {
            break;
        }
    }
    if is_cut.load(Ordering::SeqCst) {
        drop(back.join());
    }
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_is_lost_is_found_and_one_that_did_not_arrive_is_an_error() {
    let database = Database::default();
    let way = Way::to(database.server.port);
    let url = format!("postgres://tributary@127.0.0.1:{}/{}", way.port, database.options.url.database);
    let (store, _) = PostgresStore::claim(&options(&url), &CLAIM).await.unwrap();
    let mut expected = Vec::new();
    for round in 0..6 {
        let at = store.revision().await.unwrap();
        let name = format!("u{round}");
        let fault = [CLEAR, LOSES_ANSWER, LOSES_COMMIT][round % 3];
        way.fault.store(fault, Ordering::SeqCst);
        let outcome = store.apply(at, &create_user(&name)).await;
        assert_eq!(way.fault.load(Ordering::SeqCst), CLEAR, "the fault happened");
        if fault == LOSES_COMMIT {
            let error = outcome.unwrap_err();
            assert!(matches!(error, CatalogError::Away { .. }), "{error:?}");
            assert!(store.write_trouble().unwrap().is_away);
            store.try_writing().await;
            assert_eq!(store.write_trouble(), None, "it has connected again");
        } else {
            assert_eq!(outcome.unwrap(), Applied::Made);
            expected.push(name);
        }
        assert_eq!(users(&store).await, expected, "round {round}");
    }
    way.fault.store(LOSES_ANSWER, Ordering::SeqCst);
    let first = store.next_table_id().await.unwrap();
    way.fault.store(LOSES_ANSWER, Ordering::SeqCst);
    store.put_transactions("n", &[record(1), record(2)]).await.unwrap();
    assert_eq!(store.kept_transactions("n").await.unwrap(), [record(1), record(2)]);
    assert!(store.next_table_id().await.unwrap() > first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_costs_an_error_in_time_and_nothing_else() {
    let mut server = Postgres::start();
    let options = options(&server.url(&server.database()));
    let (store, _) = PostgresStore::claim(&options, &CLAIM).await.unwrap();
    let catalog = Catalog::with_store(Box::new(store)).await.unwrap();
    let mut expected = Vec::new();
    for (round, how) in [Stop::Fast, Stop::Immediate].into_iter().enumerate() {
        let name = format!("d{round}");
        catalog.create_database(&name).await.unwrap();
        expected.push(name);
        expected.sort();
        server.stop(how);
        for _ in 0..3 {
            let begun = Instant::now();
            let error = catalog.create_database("later").await.unwrap_err();
            assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
            assert!(matches!(error, CatalogError::Away { .. }), "{error}");
            let told = SqlError::from(error);
            assert_eq!(told.code, ErrorCode::Busy, "clients retry it: {told}");
            assert!(told.retry.after_ms().is_some() && !told.to_string().contains(PASSWORD), "{told}");
            assert!(catalog.clear_garbage(&["x".to_owned()]).await.is_err());
            assert!(catalog.recent_transactions(DbId(1), 1).await.is_err(), "reads have a bound, too");
        }
        assert_eq!(catalog.databases(), expected, "lookups go on");
        assert!(catalog.write_trouble().unwrap().is_away);
        server.start_again();
        catalog.keep_up().await;
        assert_eq!(catalog.write_trouble(), None, "it connects by itself");
        // A restart between two changes costs nothing.
        server.stop(how);
        server.start_again();
        let name = format!("e{round}");
        catalog.create_database(&name).await.unwrap();
        expected.push(name);
        expected.sort();
        assert_eq!(catalog.databases(), expected);
    }
    catalog.close().await;
    let read = Catalog::open(&CatalogLocation::Postgres(options)).await.unwrap();
    assert_eq!(read.databases(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_and_the_certificate_is_checked() {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let server = Postgres::with_settings(|directory| {
        std::fs::write(directory.join("server.pem"), leaf.pem()).unwrap();
        std::fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
        std::fs::set_permissions(directory.join("server.key"), std::fs::Permissions::from_mode(0o600))
            .unwrap();
        let at = |name: &str| directory.join(name).display().to_string();
        vec![
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", at("server.pem")),
            format!("ssl_key_file={}", at("server.key")),
        ]
    });
    let database = server.database();
    let trusted = tempfile::tempdir().unwrap();
    let roots = trusted.path().join("ca.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
    let url = |host: &str, parameters: &str| {
        format!("postgres://tributary@{host}:{}/{database}?{parameters}", server.port)
    };
    let parameters = format!("sslmode=verify-full&sslrootcert={}", roots.display());
    let (store, _) = PostgresStore::claim(&options(&url("localhost", &parameters)), &CLAIM).await.unwrap();
    assert_eq!(server.run(&database, "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'tributary'"), "1");
    store.close().await;
    for (host, parameters) in [("127.0.0.1", &*parameters), ("localhost", "sslmode=verify-full")] {
        let begun = Instant::now();
        let refused =
            PostgresStore::claim(&options(&url(host, parameters)), &CLAIM).await.unwrap_err().to_string();
        assert!(
            refused.contains("certificate") && begun.elapsed() < Duration::from_secs(5),
            "{host}: {refused}"
        );
    }
    let (store, _) =
        PostgresStore::claim(&options(&url("localhost", "sslmode=disable")), &CLAIM).await.unwrap();
    store.close().await;
    let wrong = PostgresOptions { password: Secret::new("wrong"), ..options(&url("localhost", &parameters)) };
    let refused = PostgresStore::claim(&wrong, &CLAIM).await.unwrap_err().to_string();
    assert!(refused.contains("password authentication failed"), "{refused}");
}

/// The tables and columns that a statement lists, `table|column` a line.
fn listed(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn copies_have_every_table_of_both_stores() {
    let database = Database::default();
    drop(database.open().await);
    let of_copies: BTreeSet<String> = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|(column, _)| format!("{}|{column}", table.table)))
        .collect();
    let of_postgres = database.run(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'tributary' AND table_name NOT IN ('catalog', 'heard_nodes')",
    );
    assert_eq!(listed(&of_postgres), of_copies);
    let dir = tempfile::tempdir().unwrap();
    let file = SqliteStore::open(&dir.path().join("catalog.db")).await.unwrap();
    let mut of_sqlite = file.columns().await;
    of_sqlite.insert("next_database_id|id".to_owned());
    assert_eq!(of_sqlite, of_copies);
}

/// Fills a store with something of everything.
async fn fill(store: &dyn Store) {
    let table = |id: u64, name: &str| {
        let schema = TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(1, "a", DataType::Int)]);
        Arc::new(TableDef { db_id: DbId(1), ..TableDef::new(TableId(id), "d", name, schema) })
    };
    let recycled = RecycledTable { def: table(2, "gone"), dropped_at_ms: 5, bytes: 7, with_database: false };
    let partition = RecycledPartition {
        table: TableId(1),
        id: PartitionId(3),
        name: "p".to_owned(),
        dropped_at_ms: 6,
        bytes: 8,
        definition: "{}".to_owned(),
    };
    let mut salted = User::new("sölted", "10.%", PasswordHash::of("secret"));
    salted.password.salted = Some(SaltedHash { iterations: 5, salt: [7; 16], hash: [9; 32] });
    let operations = [
        Operation::CreateDatabase { id: DbId(1), name: "d".to_owned() },
        Operation::CreateDatabase { id: DbId(2), name: "dropped".to_owned() },
        Operation::DropDatabase { id: DbId(2), name: "dropped".to_owned() },
        Operation::CreateTable { def: table(1, "t"), made_at_ms: Some(1) },
        Operation::CreateTable { def: table(2, "gone"), made_at_ms: None },
        Operation::RecycleTable(Arc::new(recycled)),
        Operation::FinishChange {
            change: SourceId(9),
            node: "n".to_owned(),
            record: Some("{}".to_owned()),
            tables: vec![(table(1, "t"), Some(1))],
            dropped: vec![Arc::new(partition)],
            recovered: Vec::new(),
        },
        Operation::CreateUser(salted),
        Operation::PutRole(Role {
            name: "r".to_owned(), grants: Grants::default(), comment: "ü".to_owned()
        }),
    ];
    for operation in operations {
        let at = store.revision().await.unwrap();
        assert_eq!(store.apply(at, &operation).await.unwrap(), Applied::Made, "{operation:?}");
    }
    for _ in 0..5 {
        store.next_table_id().await.unwrap();
    }
    store.insert_garbage(&Garbage { location: "d/x".to_owned(), table_id: TableId(4) }).await.unwrap();
    // More than one batch.
    let records: Vec<TxnRecord> = (1..=1234).map(record).collect();
    store.put_transactions("n", &records).await.unwrap();
    store.put_transactions("m", &records[..1]).await.unwrap();
    let position = Attachment::new(b"\0\x01").unwrap();
    store
        .put_positions("n", &[PositionRecord { source: SourceId(1), txn: TxnId(2), position }])
        .await
        .unwrap();
    store.reserve_increments(TableId(1), 5, 10).await.unwrap();
    store.meta_put(crate::node::MARK, "n", &[]).await.unwrap();
}

/// Everything that is not in the loaded state.
async fn beside(store: &dyn Store) -> String {
    let transactions =
        [store.kept_transactions("n").await.unwrap(), store.kept_transactions("m").await.unwrap()];
    let others = (
        store.list_garbage().await.unwrap(),
        store.jobs("n").await.unwrap(),
        store.positions("n").await.unwrap(),
        store.meta_get(crate::node::MARK).await.unwrap(),
    );
    format!("{transactions:?} {others:?}")
}

#[tokio::test]
async fn a_catalog_moves_to_postgresql_and_back_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalog.db");
    let file = SqliteStore::open(&path).await.unwrap();
    fill(&file).await;
    let (loaded, others) = (State::new(file.load().await.unwrap()), beside(&file).await);
    assert_eq!(loaded.next_db_id, DbId(3), "ids of dropped databases are not used again");
    file.close().await;
    let database = Database::default();
    let stranger = copy_to_postgres(&path, &database.options, "other", "here").await.unwrap_err();
    assert!(stranger.to_string().contains("not the catalog of the server other"), "{stranger}");
    let copied = copy_to_postgres(&path, &database.options, "n", "here").await.unwrap();
    assert_eq!((copied.databases, copied.tables), (1, 1));
    let again = copy_to_postgres(&path, &database.options, "n", "here").await.unwrap();
    assert_ne!(again.id, copied.id, "an earlier copy is not taken for it");
    let (store, _) = database.claim("n", Some(&again.id)).await.unwrap();
    assert_eq!(State::new(store.load().await.unwrap()), loaded);
    assert_eq!(store.next_table_id().await.unwrap(), TableId(6));
    assert_eq!(store.reserve_increments(TableId(1), 5, 1).await.unwrap(), Some(15));
    assert!(beside(&store).await == others);
    store.close().await;
    let back = dir.path().join("back.db");
    let claim = Claim { node: "n", host: "here", known: Some(&again.id) };
    copy_to_sqlite(&database.options, &back, &claim).await.unwrap();
    assert!(!dir.path().join("back.db-wal").exists(), "it is one file");
    let file = SqliteStore::open(&back).await.unwrap();
    assert_eq!(State::new(file.load().await.unwrap()), loaded);
    assert!(beside(&file).await == others);
    assert_eq!(file.next_table_id().await.unwrap(), TableId(7));
    assert_eq!(file.reserve_increments(TableId(1), 5, 1).await.unwrap(), Some(16));
}

#[tokio::test]
async fn changes_wait_while_the_catalog_is_copied() {
    let database = Database::default();
    let catalog = Arc::new(Catalog::with_store(database.open().await).await.unwrap());
    catalog.create_database("before").await.unwrap();
    let mut frozen = catalog.freeze().await.unwrap();
    let changing = tokio::spawn({
        let catalog = Arc::clone(&catalog);
        async move { catalog.create_database("after").await }
    });
    tokio::task::yield_now().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("copy.db");
    frozen.save(&file).await.unwrap();
    assert!(!changing.is_finished());
    drop(frozen);
    changing.await.unwrap().unwrap();
    let copy = Catalog::open(&CatalogLocation::Sqlite(file)).await.unwrap();
    assert_eq!(copy.databases(), ["before"]);
    assert_eq!(copy.users().len(), 2);
}
