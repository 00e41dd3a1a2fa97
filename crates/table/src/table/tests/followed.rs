//! A table that another server writes, and that asks it for its snapshots.

use super::delete::delete;
use super::schema_change::with_score;
use crate::options::StoreOptions;
use crate::place::store::TableStore;
use crate::table::{Current, Freshness, Table, Writer};
use crate::testing::{Bench, expected, publication, publish, rows, rows_of, two_columns, visible};
use crate::view::sent::{KnownParts, ReceivedSnapshot, SentSnapshot};
use crate::{Snapshot, TableError};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tributary_types::{Live, TableId, Version};
use url::Url;

/// The way to a table of this process, whose answers wait until they may go on.
#[derive(Debug)]
struct Way {
    snapshots: Mutex<Option<Arc<Table>>>,
    /// The number of batches and of bytes of each head that were sent.
    sent: Mutex<Vec<(usize, usize)>>,
    answers: Semaphore,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id)
    }
}

#[async_trait]
impl Writer for Way {
    async fn snapshot(&self, _: TableId, known: Option<KnownParts>) -> Result<SentSnapshot, TableError> {
        let table = self.snapshots.lock().clone();
        let table = table.ok_or_else(|| TableError::Silent { reason: "the test said so".to_owned() })?;
        let (_, sent) = table.send_snapshot(known.as_ref()).await?;
        self.sent.lock().push((sent.batches.len(), sent.head.len()));
        self.answers.acquire().await.expect("it is never closed").forget();
        Ok(sent)
    }
}

/// A table, and the same as another server reads it.
async fn tables(bench: &Bench) -> (Arc<Table>, Arc<Table>, Arc<Way>) {
    let table = bench.store.create(&two_columns()).await.unwrap();
    let (snapshots, sent) = (Mutex::new(Some(Arc::clone(&table))), Mutex::default());
    let way = Arc::new(Way { snapshots, sent, answers: Semaphore::new(1000) });
    let store = follower(bench).with_writer(Some(Arc::clone(&way) as Arc<dyn Writer>));
    let followed = store.open(&two_columns()).await.unwrap();
    (table, followed, way)
}

/// The same tables, of a server that only reads.
fn follower(bench: &Bench) -> TableStore {
    let options =
        StoreOptions { max_staleness: Some(Live::new(Duration::from_secs(60))), ..StoreOptions::default() };
    let url = Url::from_directory_path(bench.dir.path().canonicalize().unwrap()).unwrap();
    TableStore::with_object_store(Arc::new(bench.faults.clone()), url, options).unwrap()
}

async fn shown(table: &Table) -> Vec<String> {
    let Current { snapshot, old } = table.current(Freshness::default()).await.unwrap();
    assert_eq!(old, None);
    rows_of(table, &snapshot).await
}

#[tokio::test]
async fn only_new_parts_are_sent() {
    let bench = Bench::new();
    let (table, followed, way) = tables(&bench).await;
    publish(&table, 0..5000);
    assert_eq!(shown(&followed).await, expected(0..5000));
    publish(&table, 5000..10_000);
    assert_eq!(shown(&followed).await, expected(0..10_000));
    assert_eq!(shown(&followed).await, expected(0..10_000));
    table.flush().await.unwrap();
    assert_eq!(shown(&followed).await, expected(0..10_000));
    publish(&table, 10_000..10_001);
    assert_eq!(shown(&followed).await, expected(0..10_001));
    let sent = way.sent.lock().clone();
    let batches: Vec<usize> = sent.iter().map(|(batches, _)| *batches).collect();
    assert_eq!(batches, [1, 1, 0, 0, 1]);
    // The head with the file is longer than the one that follows, which has none.
    assert!(sent[3].1 > sent[4].1, "{sent:?}");
    // A start gives other numbers.
    let again = bench.store.open(&two_columns()).await.unwrap();
    publish(&again, [20_000]);
    *way.snapshots.lock() = Some(again);
    assert_eq!(shown(&followed).await, expected((0..10_000).chain([20_000])));
}

#[tokio::test]
async fn a_question_is_answered_by_a_snapshot_that_is_younger_than_it() {
    let bench = Bench::new();
    let (table, followed, way) = tables(&bench).await;
    publish(&table, [1]);
    way.answers.forget_permits(1000);
    let ask = || {
        let followed = Arc::clone(&followed);
        tokio::spawn(async move { shown(&followed).await })
    };
    let until_sent = async |count: usize| {
        while way.sent.lock().len() < count {
            tokio::task::yield_now().await;
        }
    };
    let first = ask();
    until_sent(1).await;
    publish(&table, [2]);
    let later: Vec<_> = (0..10).map(|_| ask()).collect();
    // All of them wait by then.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    way.answers.add_permits(1000);
    assert_eq!(first.await.unwrap(), expected([1]));
    for one in later {
        assert_eq!(one.await.unwrap(), expected([1, 2]));
    }
    assert_eq!(way.sent.lock().len(), 2, "ten questions share an answer");
}

#[tokio::test]
async fn without_an_answer_the_newest_rows_that_are_here_are_shown_or_none() {
    let bench = Bench::new();
    let (table, followed, way) = tables(&bench).await;
    publish(&table, [1]);
    table.flush().await.unwrap();
    publish(&table, [2]);
    assert_eq!(shown(&followed).await, expected([1, 2]));
    *way.snapshots.lock() = None;
    let Current { snapshot, old } = followed.current(Freshness::default()).await.unwrap();
    assert_eq!(rows_of(&followed, &snapshot).await, expected([1, 2]), "what was shown once stays");
    let old = old.unwrap();
    assert!(old.age.is_some() && old.reason.contains("the test said so"), "{old:?}");
    let since = Some(Instant::now());
    let refused = followed.current(Freshness { since, tolerance: Duration::ZERO }).await;
    assert!(matches!(refused, Err(TableError::NotShown { .. })), "{refused:?}");
    // The log has all by now, and more.
    publish(&table, [3]);
    table.flush().await.unwrap();
    followed.follow(&two_columns(), Some(Instant::now())).await.unwrap();
    let Current { snapshot, .. } =
        followed.current(Freshness { since, tolerance: Duration::ZERO }).await.unwrap();
    assert_eq!(rows_of(&followed, &snapshot).await, expected([1, 2, 3]));
    // An answer goes before what the log had when it came.
    publish(&table, [4]);
    *way.snapshots.lock() = Some(table);
    assert_eq!(shown(&followed).await, expected([1, 2, 3, 4]));
    let asked = way.sent.lock().len();
    let tolerant = Freshness { since: None, tolerance: Duration::from_secs(60) };
    let Current { snapshot, old } = followed.current(tolerant).await.unwrap();
    assert_eq!((snapshot.rows(), old, way.sent.lock().len()), (4, None, asked));
}

#[tokio::test]
async fn an_answer_that_is_not_whole_is_refused() {
    let bench = Bench::new();
    let (table, _, _) = tables(&bench).await;
    publish(&table, 0..10);
    table.flush().await.unwrap();
    publish(&table, 10..20);
    let (_, sent) = table.send_snapshot(None).await.unwrap();
    let id = two_columns().id;
    let received = ReceivedSnapshot::receive(None, id, &sent).unwrap();
    let same = |received: &ReceivedSnapshot, snapshot: &Snapshot| {
        received.snapshot.version == snapshot.version && received.snapshot.rows() == snapshot.rows()
    };
    assert!(same(&received, &table.snapshot()));
    let refusal = |sent: &SentSnapshot| match ReceivedSnapshot::receive(None, id, sent) {
        Ok(_) => panic!("it is taken"),
        Err(error) => error.to_string(),
    };
    let without = SentSnapshot { batches: Vec::new(), ..sent.clone() };
    assert!(refusal(&without).contains("has 0 rows instead of 10"), "{}", refusal(&without));
    let twice = SentSnapshot { batches: vec![rows(10..20), rows(10..20)], ..sent.clone() };
    assert!(refusal(&twice).contains("more rows than it says"), "{}", refusal(&twice));
    let changed = |from: &str, to: &str| {
        let text = String::from_utf8(sent.head.to_vec()).unwrap();
        assert!(text.contains(from), "{text}");
        SentSnapshot { head: text.replacen(from, to, 1).into(), ..sent.clone() }
    };
    for (from, to, told) in [
        ("\"format\":1", "\"format\":2", "its form is 2"),
        ("\"is_sent\":true", "\"is_sent\":true,\"more\":1", "unknown field"),
        ("\"is_sent\":true", "\"is_sent\":false", "is not known here"),
        ("\"base\":null", "\"base\":77", "list 77 is not known here"),
        ("\"superseded\":null", "\"superseded\":\"!\"", "Invalid"),
    ] {
        let refusal = refusal(&changed(from, to));
        assert!(refusal.contains(told), "{from}: {refusal}");
    }
    let other = ReceivedSnapshot::receive(None, TableId(8), &sent).unwrap_err().to_string();
    assert!(other.contains("of table 7 instead of 8"), "{other}");
    // Rows in smaller batches are put together.
    let pieces = vec![rows(10..13), rows(13..20)];
    let pieces =
        ReceivedSnapshot::receive(None, id, &SentSnapshot { batches: pieces, ..sent.clone() }).unwrap();
    assert_eq!(pieces.snapshot.memtable[0].batch, received.snapshot.memtable[0].batch);
    // The next one differs from it.
    let next = publication(&two_columns().schema, 3, rows(20..5000));
    table.publish(next).unwrap();
    let (_, sent) = table.send_snapshot(Some(&received.known())).await.unwrap();
    assert_eq!(sent.batches.len(), 1);
    let next = ReceivedSnapshot::receive(Some(&received), id, &sent).unwrap();
    assert_eq!((next.snapshot.version, next.snapshot.rows()), (Version(3), 5000));
    assert!(refusal(&sent).contains("is not known here"), "{}", refusal(&sent));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_entries_are_taken_without_reading_the_whole_log() {
    let bench = Bench::with(StoreOptions { compact_min_files: 4, ..StoreOptions::default() });
    let (table, followed, _) = tables(&bench).await;
    let def = two_columns();
    let follow = async || {
        // Reading the whole log begins with it.
        bench.faults.fail_next_read("_last_checkpoint");
        let has_changed = followed.follow(&def, None).await;
        bench.faults.none();
        has_changed
    };
    let is_as_read = async || {
        let whole = follower(&bench).open(&def).await.unwrap().snapshot();
        let own = followed.snapshot();
        assert_eq!((own.version, own.delta_version), (whole.version, whole.delta_version));
        assert_eq!(own.files, whole.files);
    };
    publish(&table, 0..10);
    table.flush().await.unwrap();
    assert!(follow().await.unwrap());
    assert!(!follow().await.unwrap(), "there is nothing new");
    is_as_read().await;
    delete(&table, [1]).await.unwrap();
    assert!(follow().await.is_err(), "the first deletion changes what a reader must know");
    assert!(followed.follow(&def, None).await.unwrap());
    is_as_read().await;
    let mut compactions = 0;
    for round in 1..13 {
        publish(&table, round * 10..round * 10 + 10);
        table.flush().await.unwrap();
        if round % 2 == 0 {
            delete(&table, [round * 10, round * 10 - 7]).await.unwrap();
        }
        compactions += usize::from(table.compact().await.unwrap().is_some());
        if round % 3 == 0 {
            assert!(follow().await.unwrap());
            is_as_read().await;
        }
    }
    assert!(compactions > 0);
    assert_eq!(rows_of(&followed, &followed.snapshot()).await, visible(&table).await);
    table.alter(with_score(&def)).await.unwrap();
    assert!(follow().await.is_err(), "the table's metadata has changed");
}
