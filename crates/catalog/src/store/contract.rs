//! The contract of every store, as tests. A store runs them with [`store_contract!`].

use super::{Applied, Garbage, Operation, Revision, Store};
use crate::jobs::{JobRecord, PositionRecord};
use crate::recycled::{RecycleBin, RecycledDatabase, RecycledPartition, RecycledTable};
use crate::state::State;
use crate::transactions::TxnRecord;
use crate::users::{Role, User};
use std::sync::Arc;
use tributary_types::privilege::{GrantScope, Grants, Right, Rights};
use tributary_types::{
    Attachment, ColumnDef, DataType, DbId, Label, PartitionId, PasswordHash, SchemaVersion, SourceId,
    TableDef, TableId, TableRef, TableSchema, TransactionKind, TransactionStatus, TxnId, ViewDef, ViewSource,
};

/// A place of its own for each test, where a store is opened on the same data again and again.
pub(crate) trait Place: Default {
    async fn open(&self) -> Box<dyn Store>;
}

/// The tests of this module for the stores of a [`Place`].
macro_rules! store_contract {
    ($place:ty) => {
        $crate::store::contract::store_contract!($place:
            the_state_after_each_operation_is_what_the_store_loads
            an_operation_that_was_checked_against_another_revision_changes_nothing
            of_operations_at_one_revision_only_one_is_made
            an_operation_that_fails_leaves_the_revision_and_everything_else
            ids_are_given_once
            garbage_is_kept_until_it_is_deleted
            a_value_is_replaced_and_takes_the_place_of_others
            transactions_of_several_nodes_share_numbers_and_not_records
            a_purge_is_one_nodes
            jobs_and_positions_are_one_nodes
            values_of_a_table_are_reserved_once
            what_is_recycled_frees_its_name_and_comes_back_as_it_was
            a_finished_change_ends_its_record_in_the_same_step
        );
    };
    ($place:ty: $($test:ident)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::store::contract::$test(<$place>::default()).await;
            }
        )*
    };
}
pub(crate) use store_contract;

fn schema(version: u32, columns: u32) -> Arc<TableSchema> {
    let columns = (1..=columns).map(|id| ColumnDef::new(id, &format!("c{id}"), DataType::Int)).collect();
    Arc::new(TableSchema::new(SchemaVersion(version), columns))
}

fn table(db: DbId, id: u64, name: &str) -> TableDef {
    TableDef { db_id: db, ..TableDef::new(TableId(id), "d", name, (*schema(1, 1)).clone()) }
}

/// The view `v` of the database `d` or `e`.
fn view(db: DbId, id: u64, query: &str) -> Arc<ViewDef> {
    Arc::new(ViewDef {
        id: TableId(id),
        db_id: db,
        db: if db == DbId(1) { "d" } else { "e" }.to_owned(),
        name: "v".to_owned(),
        columns: schema(1, 1).columns.clone(),
        names_columns: true,
        comment: "x".to_owned(),
        query: query.to_owned(),
        session_db: None,
        sources: vec![ViewSource {
            db: "d".to_owned(),
            name: "t".to_owned(),
            columns: vec!["c1".to_owned()],
        }],
    })
}

fn user(name: &str) -> User {
    User::new(name, "%", PasswordHash::EMPTY)
}

/// A user with a password and a role.
fn with_role(name: &str, role: &str) -> User {
    let mut user = User::new(name, "%", PasswordHash::of("secret"));
    user.account.roles.insert(role.to_owned());
    user
}

/// A role that may read everything.
fn role(name: &str, comment: &str) -> Role {
    let mut grants = Grants::default();
    grants.grant(GrantScope::Global, Rights::of(&[Right::Select]));
    Role { name: name.to_owned(), grants, comment: comment.to_owned() }
}

fn create_database(id: u64, name: &str) -> Operation {
    Operation::CreateDatabase { id: DbId(id), name: name.to_owned() }
}

fn create_table(def: Arc<TableDef>) -> Operation {
    Operation::CreateTable { def, made_at_ms: Some(1) }
}

async fn state(store: &dyn Store) -> State {
    State::new(store.load().await.unwrap())
}

async fn revision(store: &dyn Store) -> Revision {
    let revision = store.revision().await.unwrap();
    assert_eq!(store.load().await.unwrap().revision, revision);
    revision
}

/// Makes operations, one after the other.
async fn make(store: &dyn Store, operations: impl IntoIterator<Item = Operation>) {
    for operation in operations {
        let at = revision(store).await;
        assert_eq!(store.apply(at, &operation).await.unwrap(), Applied::Made, "{operation:?}");
    }
}

async fn garbage(store: &dyn Store) -> Vec<String> {
    store.list_garbage().await.unwrap().into_iter().map(|garbage| garbage.location).collect()
}

/// Runs operations, and compares the state that the store loads with the expected one after each. Returns the last.
async fn make_and_compare(store: &dyn Store, operations: impl IntoIterator<Item = Operation>) -> State {
    let mut expected = state(store).await;
    for operation in operations {
        assert_eq!(store.apply(expected.revision, &operation).await.unwrap(), Applied::Made, "{operation:?}");
        expected.apply(operation.clone());
        assert_eq!(state(store).await, expected, "{operation:?}");
    }
    expected
}

fn recycled(def: &Arc<TableDef>, with_database: bool) -> Arc<RecycledTable> {
    Arc::new(RecycledTable { def: Arc::clone(def), dropped_at_ms: 5, bytes: 100, with_database })
}

fn partition(table: u64, id: u64) -> Arc<RecycledPartition> {
    Arc::new(RecycledPartition {
        table: TableId(table),
        id: PartitionId(id),
        name: format!("p{id}"),
        dropped_at_ms: 6,
        bytes: 7,
        definition: "{}".to_owned(),
    })
}

pub(crate) async fn what_is_recycled_frees_its_name_and_comes_back_as_it_was(place: impl Place) {
    let store = place.open().await;
    let one = DbId(1);
    let t = Arc::new(table(one, 1, "t"));
    let again = Arc::new(TableDef { location: "d/t-2".to_owned(), ..table(one, 2, "t") });
    let hidden = Arc::new(TableDef { location: "d/t-9".to_owned(), ..table(one, 9, "tributary.hidden") });
    let moved = |change: u64, dropped: Vec<u64>, recovered: Vec<u64>| Operation::FinishChange {
        change: SourceId(change),
        node: "n".to_owned(),
        record: None,
        tables: vec![(Arc::clone(&t), Some(1))],
        dropped: dropped.into_iter().map(|id| partition(1, id)).collect(),
        recovered: recovered.into_iter().map(PartitionId).collect(),
    };
    let back = Arc::new(TableDef { name: "back".to_owned(), ..(*t).clone() });
    let in_e = |def: &Arc<TableDef>| Arc::new(TableDef { db: "e".to_owned(), ..(**def).clone() });
    let v = view(one, 3, "SELECT 1 c1");
    let database =
        RecycledDatabase { id: one, name: "d".to_owned(), dropped_at_ms: 8, views: vec![Arc::clone(&v)] };
    let operations = [
        create_database(1, "d"),
        create_table(Arc::clone(&t)),
        moved(1, vec![1, 2, 3], vec![]),
        moved(2, vec![], vec![2]),
        Operation::ErasePartition { table: TableId(1), id: PartitionId(3) },
        Operation::RecycleTable(recycled(&t, false)),
        create_table(Arc::clone(&again)),
        Operation::RecoverTable { def: Arc::clone(&back), made_at_ms: Some(1) },
        Operation::RecycleTable(recycled(&back, false)),
        Operation::PutView(Arc::clone(&v)),
        create_table(Arc::clone(&hidden)),
        Operation::RecycleDatabase {
            database: Arc::new(database.clone()),
            tables: vec![recycled(&again, true)],
            dropped: vec![Arc::clone(&hidden)],
        },
        create_database(2, "d"),
        Operation::RecoverDatabase {
            id: one,
            name: "e".to_owned(),
            tables: vec![in_e(&again)],
            left: vec![recycled(&in_e(&back), false)],
            views: vec![Arc::new(ViewDef { db: "e".to_owned(), ..(*v).clone() })],
        },
        Operation::RecoverTable { def: in_e(&back), made_at_ms: Some(1) },
    ];
    let expected = make_and_compare(&*store, operations).await;
    assert_eq!(expected.recycled.partitions.len(), 1, "it stays while its table comes and goes");
    assert_eq!(expected.tables_of("e").len(), 2);
    assert_eq!(expected.last_changes, [(TableId(1), SourceId(2))].into(), "it stays, too");
    assert_eq!(garbage(&*store).await, ["d/t-9"]);
    let erased = [
        Operation::DropView(Arc::new(ViewDef { db: "e".to_owned(), ..(*v).clone() })),
        Operation::RecycleTable(recycled(&in_e(&back), false)),
        Operation::DropTable(in_e(&back)),
        Operation::RecycleDatabase {
            database: Arc::new(RecycledDatabase { name: "e".to_owned(), views: Vec::new(), ..database }),
            tables: vec![recycled(&in_e(&again), true)],
            dropped: Vec::new(),
        },
        create_database(3, "e"),
        Operation::DropDatabase { id: one, name: "e".to_owned() },
    ];
    let expected = make_and_compare(&*store, erased).await;
    assert_eq!(expected.recycled, RecycleBin::default());
    assert_eq!(expected.databases.len(), 2, "those that were made since");
    assert_eq!(garbage(&*store).await, ["d/t-1", "d/t-2", "d/t-9"]);
    store.close().await;
    assert_eq!(state(&*place.open().await).await, expected, "after a reopen");
}

pub(crate) async fn a_finished_change_ends_its_record_in_the_same_step(place: impl Place) {
    let store = place.open().await;
    let (t, beside) = (Arc::new(table(DbId(1), 1, "t")), Arc::new(table(DbId(1), 2, "beside")));
    let beside = Arc::new(TableDef { location: "d/beside".to_owned(), ..(*beside).clone() });
    make(&*store, [create_database(1, "d"), create_table(Arc::clone(&t)), create_table(Arc::clone(&beside))])
        .await;
    let record = |id, text: &str| JobRecord { id: SourceId(id), definition: text.to_owned() };
    for id in [7, 8, 9] {
        store.put_job("n", &record(id, "begun")).await.unwrap();
    }
    let with = |def: &Arc<TableDef>, columns| TableDef { schema: schema(2, columns), ..(**def).clone() };
    let finished = |change: u64, text: Option<&str>, tables: Vec<TableDef>| Operation::FinishChange {
        change: SourceId(change),
        node: "n".to_owned(),
        record: text.map(str::to_owned),
        tables: tables.into_iter().map(|def| (Arc::new(def), Some(3))).collect(),
        dropped: Vec::new(),
        recovered: Vec::new(),
    };
    let operations = [
        finished(7, None, vec![with(&t, 2), with(&beside, 2)]),
        finished(8, Some("ended"), vec![with(&t, 3)]),
    ];
    let expected = make_and_compare(&*store, operations).await;
    assert_eq!(store.jobs("n").await.unwrap(), [record(8, "ended"), record(9, "begun")]);
    // The location is taken: none of it happens.
    let impossible = TableDef { location: "d/beside".to_owned(), ..with(&t, 4) };
    store.apply(expected.revision, &finished(9, None, vec![impossible])).await.unwrap_err();
    assert_eq!(state(&*store).await, expected);
    assert_eq!(store.jobs("n").await.unwrap().len(), 2, "its record stays");
}

pub(crate) async fn the_state_after_each_operation_is_what_the_store_loads(place: impl Place) {
    let store = place.open().await;
    let (one, two) = (DbId(1), DbId(2));
    let t = Arc::new(table(one, 1, "t"));
    let wider = Arc::new(TableDef { schema: schema(2, 2), ..(*t).clone() });
    let renamed = Arc::new(TableDef { name: "renamed".to_owned(), ..(*wider).clone() });
    let elsewhere = TableDef { db: "e".to_owned(), location: "e/t-2".to_owned(), ..table(two, 2, "t") };
    let operations = [
        create_database(1, "d"),
        create_database(2, "e"),
        create_table(t),
        create_table(Arc::new(elsewhere)),
        Operation::ReplaceTable { def: wider, made_at_ms: Some(2) },
        Operation::ReplaceTable { def: Arc::clone(&renamed), made_at_ms: None },
        Operation::PutView(view(one, 3, "SELECT 1 c1")),
        Operation::PutView(view(one, 3, "SELECT 2 c1")),
        Operation::PutView(view(two, 4, "SELECT 3 c1")),
        Operation::DropView(view(one, 3, "SELECT 2 c1")),
        Operation::PutView(view(one, 5, "SELECT 4 c1")),
        Operation::CreateUser(user("zoe")),
        Operation::CreateUser(user("adam")),
        Operation::PutRole(role("readers", "")),
        Operation::PutRole(role("readers", "only SELECT")),
        Operation::PutRole(role("writers", "")),
        Operation::ChangeUser(with_role("zoe", "readers")),
        Operation::ChangeUser(with_role("adam", "writers")),
        Operation::DropRole { name: "readers".to_owned(), users: vec![user("zoe")] },
        Operation::DropUser { name: "adam".to_owned(), host: "%".to_owned() },
        Operation::DropTable(renamed),
        Operation::DropDatabase { id: two, name: "e".to_owned() },
        create_database(3, "e"),
    ];
    let expected = make_and_compare(&*store, operations).await;
    assert_eq!(garbage(&*store).await, ["d/t-1", "e/t-2"], "files of what was dropped");
    store.close().await;
    assert_eq!(state(&*place.open().await).await, expected, "after a reopen");
}

pub(crate) async fn an_operation_that_was_checked_against_another_revision_changes_nothing(
    place: impl Place,
) {
    let store = place.open().await;
    make(&*store, [create_database(1, "d")]).await;
    let before = state(&*store).await;
    for at in [Revision(0), Revision(before.revision.0 - 1), before.revision.next()] {
        for operation in [create_database(2, "e"), Operation::CreateUser(user("u"))] {
            assert_eq!(store.apply(at, &operation).await.unwrap(), Applied::Stale, "{at:?}");
        }
    }
    assert_eq!(state(&*store).await, before);
    make(&*store, [create_database(2, "e")]).await;
}

pub(crate) async fn of_operations_at_one_revision_only_one_is_made(place: impl Place) {
    let (one, other) = (Arc::from(place.open().await), Arc::from(place.open().await));
    let at = revision(&*one).await;
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let store: Arc<dyn Store> = Arc::clone(if number % 2 == 0 { &one } else { &other });
            tokio::spawn(
                async move { store.apply(at, &Operation::CreateUser(user(&number.to_string()))).await },
            )
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap().unwrap() == Applied::Made);
    }
    assert_eq!((made, state(&*other).await.users.len()), (1, 1));
    assert_eq!(revision(&*one).await, at.next());
}

pub(crate) async fn an_operation_that_fails_leaves_the_revision_and_everything_else(place: impl Place) {
    let store = place.open().await;
    make(&*store, [create_database(1, "d"), create_table(Arc::new(table(DbId(1), 1, "t")))]).await;
    let before = state(&*store).await;
    let same_location = TableDef { location: "d/t-1".to_owned(), ..table(DbId(1), 2, "u") };
    for operation in [
        create_database(2, "d"),
        create_table(Arc::new(table(DbId(1), 2, "t"))),
        create_table(Arc::new(same_location)),
        create_table(Arc::new(table(DbId(9), 2, "in no database"))),
    ] {
        let error = store.apply(before.revision, &operation).await.unwrap_err();
        assert!(error.to_string().contains(operation.action()), "{error}");
        assert_eq!(state(&*store).await, before, "{operation:?}");
    }
    assert!(garbage(&*store).await.is_empty());
}

pub(crate) async fn ids_are_given_once(place: impl Place) {
    let store = place.open().await;
    let other = place.open().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(store.next_table_id().await.unwrap());
        ids.push(other.next_table_id().await.unwrap());
    }
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let next = state(&*store).await.next_db_id;
    make(&*store, [create_database(next.0, "d"), Operation::DropDatabase { id: next, name: "d".to_owned() }])
        .await;
    assert_eq!(state(&*other).await.next_db_id, next.next(), "the id of a dropped database is not free");
}

pub(crate) async fn garbage_is_kept_until_it_is_deleted(place: impl Place) {
    let store = place.open().await;
    make(&*store, [create_database(1, "d")]).await;
    for (location, id) in [("d/t-1", 1), ("d/u-2", 2), ("d/u-2", 2)] {
        let garbage = Garbage { location: location.to_owned(), table_id: TableId(id) };
        store.insert_garbage(&garbage).await.unwrap();
    }
    assert_eq!(garbage(&*store).await, ["d/t-1", "d/u-2"]);
    make(&*store, [create_table(Arc::new(table(DbId(1), 1, "t")))]).await;
    assert_eq!(garbage(&*store).await, ["d/u-2"], "files of a table are no garbage");
    store.delete_garbage(&["d/u-2".to_owned(), "unknown".to_owned()]).await.unwrap();
    assert!(garbage(&*store).await.is_empty());
}

pub(crate) async fn a_value_is_replaced_and_takes_the_place_of_others(place: impl Place) {
    let store = place.open().await;
    assert_eq!(store.meta_get("k").await.unwrap(), None);
    store.meta_put("k", "first", &[]).await.unwrap();
    store.meta_put("k", "second", &[]).await.unwrap();
    assert_eq!(place.open().await.meta_get("k").await.unwrap().as_deref(), Some("second"));
    store.meta_put("new", "third", &["k", "unknown"]).await.unwrap();
    let other = place.open().await;
    assert_eq!(other.meta_get("new").await.unwrap().as_deref(), Some("third"));
    assert_eq!(other.meta_get("k").await.unwrap(), None);
}

fn record(txn: u64, label: &str, status: TransactionStatus, finished: Option<i64>) -> TxnRecord {
    TxnRecord {
        txn_id: TxnId(txn),
        db_id: DbId(1),
        table_id: TableId(2),
        table: TableRef { db: "d".to_owned(), table: "t".to_owned() },
        label: Label::new(label).unwrap(),
        label_is_kept: true,
        kind: TransactionKind::StreamLoad,
        status,
        loads: 1,
        rows: 10,
        bytes: 100,
        prepared_at_ms: finished.unwrap_or(1),
        precommitted_at_ms: None,
        finished_at_ms: finished,
        reason: String::new(),
        attachment: None,
    }
}

pub(crate) async fn transactions_of_several_nodes_share_numbers_and_not_records(place: impl Place) {
    let store = place.open().await;
    let here = record(1, "here", TransactionStatus::Visible, Some(5));
    let there = record(1, "there", TransactionStatus::Visible, Some(6));
    let aborted = record(2, "there", TransactionStatus::Aborted, Some(7));
    store.put_transactions("a", std::slice::from_ref(&here)).await.unwrap();
    store.put_transactions("b", &[there.clone(), aborted.clone()]).await.unwrap();
    assert_eq!(store.transaction_by_id("a", TxnId(1)).await.unwrap().as_ref(), Some(&here));
    assert_eq!(store.transaction_by_id("b", TxnId(1)).await.unwrap().as_ref(), Some(&there));
    assert_eq!(store.transaction_by_id("c", TxnId(1)).await.unwrap(), None);
    assert_eq!(store.kept_transactions("a").await.unwrap(), std::slice::from_ref(&here));
    assert_eq!(
        store.kept_transactions("b").await.unwrap(),
        std::slice::from_ref(&there),
        "an aborted one keeps no label"
    );
    let by_label = |label| Label::new(label).unwrap();
    let found = store.transaction_by_label(DbId(1), &by_label("there")).await.unwrap();
    assert_eq!(found.as_ref(), Some(&there), "of any node, and not the aborted one");
    let found = store.transaction_by_label(DbId(2), &by_label("there")).await.unwrap();
    assert_eq!(found, None, "labels are a database's");
    assert_eq!(store.recent_transactions(DbId(1), 2).await.unwrap(), [aborted, there]);
    let attachment = Some(Attachment::new(b"0:17,1:23\0").unwrap());
    let replaced = TxnRecord { rows: 11, attachment, ..here };
    store.put_transactions("a", std::slice::from_ref(&replaced)).await.unwrap();
    assert_eq!(store.transaction_by_id("a", TxnId(1)).await.unwrap().as_ref(), Some(&replaced));
    assert_eq!(store.freed_transactions("a").await.unwrap(), []);
    let freed = TxnRecord { label_is_kept: false, ..replaced };
    store.put_transactions("a", &[freed]).await.unwrap();
    assert_eq!(store.kept_transactions("a").await.unwrap(), []);
    assert_eq!(store.freed_transactions("a").await.unwrap(), [TxnId(1)]);
    assert_eq!(store.freed_transactions("b").await.unwrap(), []);
}

pub(crate) async fn a_purge_is_one_nodes(place: impl Place) {
    let store = place.open().await;
    let finished =
        |txn: u64| record(txn, &format!("l{txn}"), TransactionStatus::Visible, Some(txn as i64 * 10));
    let mut records: Vec<TxnRecord> = (1..=6).map(finished).collect();
    records.push(record(7, "open", TransactionStatus::Precommitted, None));
    store.put_transactions("a", &records).await.unwrap();
    store.put_transactions("b", &records[..1]).await.unwrap();
    assert_eq!(store.purge_transactions("nobody", i64::MAX, 0).await.unwrap(), 0);
    // Two are too old, of the other four finished ones one is too many.
    assert_eq!(store.purge_transactions("a", 30, 3).await.unwrap(), 3);
    let left: Vec<u64> =
        store.kept_transactions("a").await.unwrap().iter().map(|record| record.txn_id.0).collect();
    assert_eq!(left, [4, 5, 6, 7]);
    assert_eq!(store.kept_transactions("b").await.unwrap().len(), 1);
}

pub(crate) async fn jobs_and_positions_are_one_nodes(place: impl Place) {
    let store = place.open().await;
    let job = |id: u64, text: &str| JobRecord { id: SourceId(id), definition: text.to_owned() };
    let position = |source: u64, txn: u64, text: &[u8]| PositionRecord {
        source: SourceId(source),
        txn: TxnId(txn),
        position: Attachment::new(text).unwrap(),
    };
    for (node, made) in [("a", job(2, "two")), ("a", job(1, "one")), ("b", job(1, "other"))] {
        store.put_job(node, &made).await.unwrap();
    }
    store.put_job("a", &job(2, "changed")).await.unwrap();
    store.put_positions("a", &[position(1, 5, b"0:17"), position(2, 6, b"\0\xff")]).await.unwrap();
    store.put_positions("b", &[position(1, 7, b"x")]).await.unwrap();
    store.put_positions("a", &[position(1, 8, b"0:18")]).await.unwrap();
    store.close().await;
    let store = place.open().await;
    assert_eq!(store.jobs("a").await.unwrap(), [job(1, "one"), job(2, "changed")]);
    assert_eq!(store.jobs("nobody").await.unwrap(), []);
    assert_eq!(store.positions("a").await.unwrap(), [position(1, 8, b"0:18"), position(2, 6, b"\0\xff")]);
    store.delete_job("a", SourceId(1)).await.unwrap();
    assert_eq!(store.jobs("a").await.unwrap(), [job(2, "changed")]);
    assert_eq!(store.positions("a").await.unwrap(), [position(2, 6, b"\0\xff")]);
    assert_eq!(store.jobs("b").await.unwrap(), [job(1, "other")]);
    assert_eq!(store.positions("b").await.unwrap(), [position(1, 7, b"x")]);
}

pub(crate) async fn values_of_a_table_are_reserved_once(place: impl Place) {
    let store = place.open().await;
    let mut at = Revision(1);
    let tables = [1, 2].map(|id| Arc::new(table(DbId(1), id, &format!("t{id}"))));
    let create = |def| Operation::CreateTable { def, made_at_ms: None };
    for operation in [create_database(1, "d"), create(Arc::clone(&tables[0])), create(Arc::clone(&tables[1]))]
    {
        assert_eq!(store.apply(at, &operation).await.unwrap(), Applied::Made);
        at = at.next();
    }
    assert_eq!(store.reserve_increments(TableId(1), 5, 10).await.unwrap(), Some(5));
    assert_eq!(store.reserve_increments(TableId(2), 1, 10).await.unwrap(), Some(1));
    store.close().await;
    let store = place.open().await;
    assert_eq!(store.reserve_increments(TableId(1), 5, 1).await.unwrap(), Some(15));
    assert_eq!(store.reserve_increments(TableId(1), 5, i64::MAX - 15).await.unwrap(), None, "one too many");
    assert_eq!(store.reserve_increments(TableId(1), 5, i64::MAX - 16).await.unwrap(), Some(16));
    assert_eq!(store.reserve_increments(TableId(1), 5, 1).await.unwrap(), None, "there is none left");
    assert_eq!(store.apply(at, &Operation::DropTable(Arc::clone(&tables[0]))).await.unwrap(), Applied::Made);
    assert!(store.reserve_increments(TableId(1), 5, 1).await.is_err(), "the table is gone");
    assert_eq!(store.apply(at.next(), &create(Arc::clone(&tables[0]))).await.unwrap(), Applied::Made);
    assert_eq!(store.reserve_increments(TableId(1), 5, 1).await.unwrap(), Some(5), "nothing is left of it");
}
