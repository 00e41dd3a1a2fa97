mod lost_answers;

use super::*;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tributary_types::{
    ColumnDef, DataType, DbId, ErrorCode, PasswordHash, SchemaVersion, SqlError, TableDef, TableId, TableRef,
    TableSchema, Verifiers, host,
};

fn location(dir: &TempDir) -> CatalogLocation {
    CatalogLocation::in_directory(dir.path())
}

async fn open(dir: &TempDir) -> Catalog {
    Catalog::open(&location(dir)).await.unwrap()
}

async fn reopen(catalog: Catalog, dir: &TempDir) -> Catalog {
    catalog.close().await;
    drop(catalog);
    open(dir).await
}

fn name(db: &str, table: &str) -> TableRef {
    TableRef { db: db.into(), table: table.into() }
}

fn column(id: u32, name: &str) -> ColumnDef {
    ColumnDef { is_key: id == 1, ..ColumnDef::new(id, name, DataType::Int) }
}

fn def(db_id: DbId, id: TableId, name: &str) -> TableDef {
    let schema = TableSchema::new(SchemaVersion(1), vec![column(1, "a")]);
    TableDef { db_id, ..TableDef::new(id, "d", name, schema) }
}

async fn create(catalog: &Catalog, name: &str) -> Arc<TableDef> {
    let db_id = catalog.database_id("d").unwrap();
    let id = catalog.next_table_id().await.unwrap();
    catalog.create_table(def(db_id, id, name)).await.unwrap()
}

fn with_column(def: &TableDef, name: &str) -> TableDef {
    let mut schema = TableSchema::clone(&def.schema);
    schema.columns.push(column(schema.next_column_id.0, name));
    schema.next_column_id = schema.next_column_id.next();
    schema.version = schema.version.next();
    TableDef { schema: Arc::new(schema), ..def.clone() }
}

fn number(error: CatalogError) -> u16 {
    SqlError::from(error).code.number()
}

#[tokio::test]
async fn what_was_created_is_there_after_a_reopen() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    catalog.create_database("e").await.unwrap();
    let table = create(&catalog, "t").await;

    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.databases(), ["d", "e"]);
    assert_eq!(catalog.table(&name("d", "t")), Some(Arc::clone(&table)));
    assert_eq!(catalog.tables("d"), [Arc::clone(&table)]);
    assert!(catalog.tables("e").is_empty() && catalog.tables("nowhere").is_empty());
    assert_eq!(catalog.table_by_id(table.id), Some(table));
}

#[tokio::test]
async fn names_of_databases_and_tables_differ_by_case() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    catalog.create_database("D").await.unwrap();
    create(&catalog, "t").await;
    create(&catalog, "T").await;
    assert!(catalog.table(&name("D", "t")).is_none());
}

#[tokio::test]
async fn a_database_is_created_once_and_never_under_a_reserved_name() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    for taken in ["d", "information_schema", "MySQL", "__internal_schema"] {
        let error = SqlError::from(catalog.create_database(taken).await.unwrap_err());
        assert_eq!(error.code.number(), 1007);
        assert_eq!(error.detail_text(), format!("Can't create database '{taken}'; database exists"));
    }
    assert_eq!(number(catalog.drop_database("mysql").await.unwrap_err()), 1044);
    let error = SqlError::from(catalog.drop_database("e").await.unwrap_err());
    assert_eq!(
        (error.code.number(), error.detail_text()),
        (1008, "Can't drop database 'e'; database doesn't exist")
    );
}

#[tokio::test]
async fn dropping_a_database_drops_its_tables_and_leaves_their_files_as_garbage() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    let old_id = catalog.create_database("d").await.unwrap();
    let (t, u) = (create(&catalog, "t").await, create(&catalog, "u").await);
    let dropped = catalog.drop_database("d").await.unwrap();
    assert_eq!(dropped, [Arc::clone(&t), Arc::clone(&u)]);
    assert!(catalog.all_tables().is_empty() && catalog.schema(t.id, SchemaVersion(1)).is_none());

    let catalog = reopen(catalog, &dir).await;
    assert!(catalog.databases().is_empty() && catalog.table(&name("d", "t")).is_none());
    let locations: Vec<String> =
        catalog.list_garbage().await.unwrap().into_iter().map(|garbage| garbage.location).collect();
    assert_eq!(locations, [t.location.clone(), u.location.clone()]);
    catalog.clear_garbage(&locations[..1]).await.unwrap();
    assert_eq!(
        catalog.list_garbage().await.unwrap(),
        [Garbage { location: u.location.clone(), table_id: u.id }]
    );
    assert!(catalog.create_database("d").await.unwrap() > old_id, "ids are never used again");
}

#[tokio::test]
async fn a_table_needs_its_database_and_a_free_name() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    let db_id = catalog.create_database("d").await.unwrap();
    create(&catalog, "t").await;
    let error = SqlError::from(catalog.create_table(def(db_id, TableId(9), "t")).await.unwrap_err());
    assert_eq!((error.code.number(), error.detail_text()), (1050, "Table 't' already exists"));
    assert_eq!(number(catalog.create_table(def(db_id.next(), TableId(9), "u")).await.unwrap_err()), 1049);
    let missing = SqlError::from(catalog.drop_table(&name("d", "x")).await.unwrap_err());
    assert_eq!((missing.code.number(), missing.detail_text()), (1051, "Unknown table 'd.x'"));
    assert_eq!(number(catalog.drop_table(&name("e", "x")).await.unwrap_err()), 1049);
}

#[tokio::test]
async fn a_dropped_table_is_gone_and_its_id_never_comes_back() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    let t = create(&catalog, "t").await;
    assert_eq!(catalog.drop_table(&name("d", "t")).await.unwrap(), t);
    assert!(catalog.table(&name("d", "t")).is_none() && catalog.table_by_id(t.id).is_none());
    let catalog = reopen(catalog, &dir).await;
    assert!(catalog.table(&name("d", "t")).is_none());
    assert_eq!(catalog.list_garbage().await.unwrap().len(), 1);
    assert!(create(&catalog, "t").await.id > t.id);
}

#[tokio::test]
async fn files_of_a_table_that_was_never_finished_are_garbage() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    let db_id = catalog.create_database("d").await.unwrap();
    let id = catalog.next_table_id().await.unwrap();
    let table = def(db_id, id, "t");
    catalog.announce_location(&table.location, id).await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.list_garbage().await.unwrap().len(), 1);
    catalog.create_table(table).await.unwrap();
    assert!(catalog.list_garbage().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_definition_is_replaced_only_if_it_is_still_the_present_one() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    let first = create(&catalog, "t").await;
    let second = catalog.replace_table_def(&first, with_column(&first, "b")).await.unwrap();
    let stale = catalog.replace_table_def(&first, with_column(&first, "c")).await.unwrap_err();
    assert!(matches!(stale, CatalogError::TableChanged { .. }));
    assert!(stale.to_string().contains("run the statement again"));

    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.table(&name("d", "t")), Some(second));
    assert_eq!(
        catalog.schema(first.id, SchemaVersion(1)),
        Some(Arc::clone(&first.schema)),
        "old schemas stay"
    );
    assert_eq!(catalog.schema(first.id, SchemaVersion(2)).unwrap().columns.len(), 2);
    assert_eq!(catalog.schema(first.id, SchemaVersion(3)), None);
}

#[tokio::test]
async fn changes_of_columns_are_known_with_their_times_after_a_reopen() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    let first = create(&catalog, "t").await;
    assert!(catalog.column_changes(first.id).is_empty(), "a new table was not changed");
    let before = host::unix_ms();
    let second = catalog.replace_table_def(&first, with_column(&first, "b")).await.unwrap();
    let third = catalog.replace_table_def(&second, with_column(&second, "c")).await.unwrap();
    let changes = catalog.column_changes(first.id);
    let versions: Vec<u32> = changes.iter().map(|change| change.version.0).collect();
    assert_eq!(versions, [2, 3]);
    assert!(changes.iter().all(|change| change.made_at_ms >= Some(before)), "{changes:?}");
    let renamed = TableDef { name: "u".into(), ..TableDef::clone(&third) };
    let renamed = catalog.replace_table_def(&third, renamed).await.unwrap();
    assert_eq!(catalog.column_changes(first.id), changes, "a name is no column");
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.column_changes(first.id), changes);

    // A reverted change, as after a failure, does not count.
    let wider = catalog.replace_table_def(&renamed, with_column(&renamed, "d")).await.unwrap();
    catalog.replace_table_def(&wider, TableDef::clone(&renamed)).await.unwrap();
    assert_eq!(catalog.column_changes(first.id), changes);
    catalog.drop_table(&name("d", "u")).await.unwrap();
    assert!(catalog.column_changes(first.id).is_empty());
}

#[tokio::test]
async fn tables_swap_their_names_in_one_step() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    let (t, u) = (create(&catalog, "t").await, create(&catalog, "u").await);
    create(&catalog, "taken").await;
    let named =
        |of: &Arc<TableDef>, to: &str| (Arc::clone(of), TableDef { name: to.into(), ..TableDef::clone(of) });
    let taken = catalog.rename_tables(vec![named(&t, "u"), named(&u, "taken")]).await.unwrap_err();
    assert_eq!(number(taken), 1050);
    let twice = catalog.rename_tables(vec![named(&t, "v"), named(&u, "v")]).await.unwrap_err();
    assert_eq!(number(twice), 1050);
    assert_eq!(catalog.table(&name("d", "t")).unwrap().id, t.id, "nothing has changed");
    catalog.rename_tables(vec![named(&t, "u"), named(&u, "t")]).await.unwrap();
    let stale = catalog.rename_tables(vec![named(&t, "w")]).await.unwrap_err();
    assert!(stale.to_string().contains("changed"), "{stale}");
    let ids = |catalog: &Catalog| ["t", "u"].map(|table| catalog.table(&name("d", table)).unwrap().id);
    assert_eq!(ids(&catalog), [u.id, t.id]);
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(ids(&catalog), [u.id, t.id]);
}

#[tokio::test]
async fn a_table_is_renamed_to_a_free_name() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    let (t, _) = (create(&catalog, "t").await, create(&catalog, "u").await);
    let renamed = |to: &str| TableDef { name: to.into(), ..TableDef::clone(&t) };
    assert_eq!(number(catalog.replace_table_def(&t, renamed("u")).await.unwrap_err()), 1050);
    catalog.replace_table_def(&t, renamed("v")).await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert!(catalog.table(&name("d", "t")).is_none());
    assert_eq!(catalog.table(&name("d", "v")).unwrap().id, t.id);
}

#[tokio::test]
async fn a_change_whose_caller_goes_away_is_both_stored_and_shown() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    {
        let change = catalog.create_database("d");
        tokio::pin!(change);
        // Polled once, then dropped.
        assert!(futures_poll_once(change.as_mut()).await);
    }
    // Changes are made one after the other, so the first is over when this one is.
    catalog.create_database("e").await.unwrap();
    assert_eq!(catalog.databases(), ["d", "e"]);
}

/// Polls once; whether it was not ready.
async fn futures_poll_once<F: Future + Unpin>(mut future: F) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut future).poll(context).is_pending())
    })
    .await
}

#[tokio::test]
async fn concurrent_changes_are_all_kept() {
    let dir = TempDir::new().unwrap();
    let catalog = Arc::new(open(&dir).await);
    catalog.create_database("d").await.unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let catalog = Arc::clone(&catalog);
            tokio::spawn(async move { create(&catalog, &format!("t{number}")).await.id })
        })
        .collect();
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.unwrap());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), catalog.tables("d").len()), (16, 16));
}

#[tokio::test]
async fn root_and_admin_exist_from_the_first_start_without_passwords() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    for user in ["root", "admin"] {
        assert_eq!(catalog.find_user(user, "10.1.2.3").unwrap().password, Verifiers::EMPTY);
    }
    catalog.set_password("root", "%", PasswordHash::of("secret")).await.unwrap();
    catalog.drop_user("admin", "%").await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(
        catalog.find_user("root", "::1").unwrap().password,
        Verifiers::from(PasswordHash::of("secret"))
    );
    assert!(catalog.find_user("admin", "::1").is_none(), "a dropped user does not come back");
    assert!(matches!(catalog.drop_user("root", "%").await.unwrap_err(), CatalogError::ProtectedUser(_)));
}

#[tokio::test]
async fn a_connection_is_the_user_with_the_most_exact_host() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    for (host, byte) in [("%", 1), ("10.%", 2), ("10.0.%", 3), ("10.0.0.9", 4), ("localhost", 5)] {
        catalog.create_user(User::new("u", host, PasswordHash(Some([byte; 20])))).await.unwrap();
    }
    for (host, byte) in
        [("192.168.0.1", 1), ("10.1.0.1", 2), ("10.0.0.1", 3), ("10.0.0.9", 4), ("127.0.0.1", 5)]
    {
        assert_eq!(
            catalog.find_user("u", host).unwrap().password,
            Verifiers::from(PasswordHash(Some([byte; 20]))),
            "{host}"
        );
    }
    assert!(catalog.find_user("U", "10.0.0.1").is_none());
    assert!(matches!(
        catalog.create_user(User::new("u", "%", PasswordHash::EMPTY)).await.unwrap_err(),
        CatalogError::UserExists { .. }
    ));
    assert!(matches!(
        catalog.set_password("u", "x", PasswordHash::EMPTY).await.unwrap_err(),
        CatalogError::UnknownUser { .. }
    ));
}

#[tokio::test]
async fn changes_of_another_node_are_seen_by_the_next_change() {
    let dir = TempDir::new().unwrap();
    let (here, there) = (open(&dir).await, open(&dir).await);
    here.create_database("d").await.unwrap();
    assert!(there.databases().is_empty(), "nobody told it yet");
    let error = there.create_database("d").await.unwrap_err();
    assert!(matches!(error, CatalogError::DatabaseExists(_)), "{error}");
    assert_eq!(there.databases(), ["d"]);
    here.create_user(User::new("u", "%", PasswordHash::EMPTY)).await.unwrap();
    there.drop_user("u", "%").await.expect("what is not known here is looked for before it is refused");

    let table = create(&there, "t").await;
    here.create_database("e").await.unwrap();
    let wider = here.replace_table_def(&table, with_column(&table, "b")).await.unwrap();
    let stale = there.replace_table_def(&table, with_column(&table, "c")).await.unwrap_err();
    assert!(matches!(stale, CatalogError::TableChanged { .. }), "{stale}");
    assert_eq!(there.table(&name("d", "t")), Some(wider));
    here.drop_database("d").await.unwrap();
    assert_eq!(number(there.drop_table(&name("d", "t")).await.unwrap_err()), 1049);
    assert_eq!(there.databases(), ["e"]);
}

#[tokio::test]
async fn concurrent_changes_of_two_nodes_are_all_kept_and_names_stay_unique() {
    let dir = TempDir::new().unwrap();
    let nodes = [Arc::new(open(&dir).await), Arc::new(open(&dir).await)];
    nodes[0].create_database("d").await.unwrap();
    let db_id = nodes[0].database_id("d").unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let node = Arc::clone(&nodes[number % 2]);
            tokio::spawn(async move {
                let id = node.next_table_id().await.unwrap();
                // Each name twice, once on each node.
                node.create_table(def(db_id, id, &format!("t{}", number / 2))).await
            })
        })
        .collect();
    let mut refused = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => {}
            Err(CatalogError::TableExists(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let tables = open(&dir).await.tables("d").len();
    assert_eq!((tables, refused), (8, 8));
}

async fn run_sql(path: &Path, sql: &'static str) {
    use sqlx::Connection;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path.join("catalog.db"));
    let mut connection = sqlx::sqlite::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_touched() {
    let dir = TempDir::new().unwrap();
    open(&dir).await.close().await;
    run_sql(dir.path(), "PRAGMA user_version = 99").await;
    let error = Catalog::open(&location(&dir)).await.unwrap_err();
    assert!(matches!(error, CatalogError::NewerFormat { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("catalog.db"), "{error}");
}

#[tokio::test]
async fn a_table_of_a_later_format_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    create(&catalog, "t").await;
    catalog.close().await;
    run_sql(dir.path(), r#"UPDATE tables SET definition = '{"format":99,"keys":{"Ordinal":{}}}'"#).await;
    let error = Catalog::open(&location(&dir)).await.unwrap_err().to_string();
    assert!(error.contains("the definition of table 1") && error.contains("it has format 99"), "{error}");
    assert!(error.contains("use the newer program that wrote it"), "{error}");
}

#[tokio::test]
async fn a_catalog_exists_once_something_was_written() {
    let dir = TempDir::new().unwrap();
    assert!(!location(&dir).exists());
    std::fs::write(dir.path().join("catalog.db"), "").unwrap();
    assert!(!location(&dir).exists(), "an empty file");
    open(&dir).await.close().await;
    assert!(location(&dir).exists());
    assert_eq!(location(&dir).to_string(), dir.path().join("catalog.db").display().to_string());
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_its_path_and_what_to_do() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    for number in 0..200 {
        create(&catalog, &format!("t{number}")).await;
    }
    catalog.close().await;
    drop(catalog);
    let path = dir.path().join("catalog.db");
    let whole = std::fs::read(&path).unwrap();
    let places: Vec<usize> = (0..whole.len()).step_by(4096).collect();
    assert!(places.len() > 10);
    for place in places {
        let mut damaged = whole.clone();
        // The beginning of a page says how the rest is laid out.
        damaged[place..place + 100].fill(0x5a);
        std::fs::write(&path, damaged).unwrap();
        let error = Catalog::open(&location(&dir)).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, CatalogError::Damaged { .. }), "{place}: {text}");
        assert!(text.contains(&path.display().to_string()) && text.contains("Restore"), "{place}: {text}");
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(Catalog::open(&location(&dir)).await.unwrap_err(), CatalogError::Damaged { .. }));
    std::fs::write(&path, whole).unwrap();
    assert_eq!(open(&dir).await.all_tables().len(), 200);
}

#[tokio::test]
async fn a_damaged_definition_is_named() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    create(&catalog, "t").await;
    catalog.close().await;
    run_sql(dir.path(), "UPDATE tables SET definition = '{'").await;
    let error = Catalog::open(&location(&dir)).await.unwrap_err();
    assert!(error.to_string().contains("the definition of table 1"), "{error}");
}

#[tokio::test]
async fn a_failed_change_is_not_shown() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.create_database("d").await.unwrap();
    catalog.close().await;
    let error = catalog.create_database("e").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unknown);
    assert!(error.to_string().starts_with("the catalog failed to create a database"), "{error}");
    assert_eq!(catalog.databases(), ["d"]);
}

#[tokio::test]
async fn a_catalog_that_is_new_knows_no_node_until_its_file_is_durable() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    assert_eq!(catalog.node_entry().await.unwrap(), NodeEntry::Nowhere);
    catalog.node_is_in_file("a").await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.node_entry().await.unwrap(), NodeEntry::InFile("a".to_owned()));
}

#[tokio::test]
async fn what_earlier_versions_kept_of_a_node_is_given_until_its_file_is_durable() {
    let dir = TempDir::new().unwrap();
    open(&dir).await.close().await;
    run_sql(
        dir.path(),
        "DELETE FROM meta;
         INSERT INTO meta VALUES ('node_id', 'a'), ('node_created_at_ms', '5'), ('wal_dirs', 'wal
/b/log')",
    )
    .await;
    let old = OldNode {
        id: "a".to_owned(),
        created_at_ms: 5,
        wal_dirs: vec!["wal".to_owned(), "/b/log".to_owned()],
    };
    for _ in 0..2 {
        let catalog = open(&dir).await;
        assert_eq!(catalog.node_entry().await.unwrap(), NodeEntry::Here(old.clone()));
        catalog.close().await;
    }
    let catalog = open(&dir).await;
    catalog.node_is_in_file("a").await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.node_entry().await.unwrap(), NodeEntry::InFile("a".to_owned()));
    catalog.close().await;
    run_sql(dir.path(), "DELETE FROM meta WHERE key = 'node_file'").await;
    assert_eq!(open(&dir).await.node_entry().await.unwrap(), NodeEntry::Nowhere, "nothing old is left");
}

#[tokio::test]
async fn the_first_users_are_made_once_also_where_an_earlier_version_made_them() {
    let dir = TempDir::new().unwrap();
    let catalog = open(&dir).await;
    catalog.drop_user("admin", "%").await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.users().len(), 1);
    catalog.close().await;
    run_sql(dir.path(), "DELETE FROM meta; INSERT INTO meta VALUES ('node_id', 'a')").await;
    let catalog = open(&dir).await;
    catalog.node_is_in_file("a").await.unwrap();
    let catalog = reopen(catalog, &dir).await;
    assert_eq!(catalog.users().len(), 1);
}
