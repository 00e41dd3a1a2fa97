//! Jobs whose source is a list in memory that can be away.

mod options;
mod tables;

use super::kept::JobState;
use crate::access::{Access, Object, Privilege};
use crate::testing::{TestEngine, wait_until};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tributary_kafka::{Chunk, Connect, Extent, Offsets, Reader, Settings, Shape, SourceError, Topic};
use tributary_sql::{Name, RoutineLoad, Statement};
use tributary_types::{Principal, SqlError};

/// Messages by partition; the offset of the first one is 100.
#[derive(Clone, Debug, Default)]
struct List {
    inside: Arc<Mutex<Inside>>,
    /// Somebody said something.
    said: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct Inside {
    messages: BTreeMap<i32, Vec<String>>,
    /// Readers fail after this many messages, each once.
    fails_after: Option<u64>,
    readers: u64,
    /// Messages that readers returned, including those of chunks that were not loaded.
    given: u64,
}

const FIRST: i64 = 100;

impl List {
    fn say(&self, partition: i32, message: String) {
        self.inside.lock().messages.entry(partition).or_default().push(message);
        self.said.notify_all();
    }
}

impl Connect for List {
    fn connect(&self, _settings: &Settings) -> Result<Box<dyn Topic>, SourceError> {
        Ok(Box::new(self.clone()))
    }
}

impl Topic for List {
    fn partitions(&self) -> Result<Vec<i32>, SourceError> {
        Ok(self.inside.lock().messages.keys().copied().collect())
    }

    fn extent(&self, partition: i32) -> Result<Extent, SourceError> {
        let count = self.inside.lock().messages[&partition].len() as i64;
        Ok(Extent { first: FIRST, end: FIRST + count })
    }

    fn offset_at(&self, _partition: i32, _unix_ms: i64) -> Result<i64, SourceError> {
        Ok(FIRST)
    }

    fn read(self: Box<Self>, from: &Offsets, shape: Shape) -> Result<Box<dyn Reader>, SourceError> {
        self.inside.lock().readers += 1;
        Ok(Box::new(Reading { list: *self, next: from.clone(), given: 0, shape }))
    }
}

struct Reading {
    list: List,
    next: Offsets,
    given: u64,
    shape: Shape,
}

impl Reader for Reading {
    fn next(&mut self, wait: Duration) -> Result<Chunk, SourceError> {
        let mut chunk = Chunk::default();
        let mut inside = self.list.inside.lock();
        if inside.fails_after.is_some_and(|most| self.given >= most) {
            inside.fails_after = None;
            return Err(SourceError::Unreachable("the list is away".to_owned()));
        }
        for (partition, next) in &mut self.next {
            if let Some(message) = inside.messages[partition].get((*next - FIRST) as usize) {
                chunk.push_from(*partition, *next, message.as_bytes(), self.shape);
                *next += 1;
                chunk.next.insert(*partition, *next);
            }
        }
        inside.given += chunk.messages;
        self.given += chunk.messages;
        chunk.is_caught_up = chunk.messages == 0;
        if chunk.is_caught_up {
            self.list.said.wait_for(&mut inside, wait);
        }
        Ok(chunk)
    }

    fn partitions(&self) -> Result<Vec<i32>, SourceError> {
        Topic::partitions(&self.list)
    }

    fn ends(&self) -> Result<Offsets, SourceError> {
        self.next.keys().map(|&partition| Ok((partition, self.list.extent(partition)?.end))).collect()
    }
}

const CREATE: &str = "CREATE ROUTINE LOAD j ON t COLUMNS TERMINATED BY ',' PROPERTIES (\"max_batch_interval\" = \"1\") FROM KAFKA \
                      (\"kafka_broker_list\" = \"h:1\", \"kafka_topic\" = \"t\", \"property.kafka_default_offsets\" = \"OFFSET_BEGINNING\")";

fn job() -> Name {
    Name { db: Some("d".to_owned()), table: "j".to_owned() }
}

async fn create(test: &TestEngine, list: &List) {
    test.engine.jobs.routine.connect_by(Arc::new(list.clone()));
    let Ok(Statement::RoutineLoad(statement)) = tributary_sql::parse(CREATE) else { panic!("it is one") };
    let RoutineLoad::Create(statement) = *statement else { panic!("it is one") };
    test.engine
        .jobs
        .create_job(&Principal::new("root", "%", 0), Some("d"), *statement)
        .await
        .expect("a new job");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_between_two_commits_is_read_again_and_loaded_once() {
    let test = TestEngine::open(|_| ()).await;
    let table = test.table().await;
    let list = List::default();
    for number in 0..500 {
        list.say(number % 2, format!("{number},row"));
    }
    list.inside.lock().fails_after = Some(77);
    create(&test, &list).await;
    wait_until("all rows are there", || table.snapshot().rows() >= 500).await;
    assert_eq!(list.inside.lock().readers, 2, "the first one failed");
    let found = test.engine.jobs.routine.find("d", "j").expect("it was made");
    let root = Principal::new("root", "%", 0);
    // Stopped in the middle of a batch, it leaves nothing behind, and resumes after the loaded rows.
    for round in 0..3 {
        let given = list.inside.lock().given;
        for number in 0..100 {
            list.say(number % 2, format!("{number},again"));
        }
        wait_until("some were read", || list.inside.lock().given >= given + 40 * round).await;
        test.engine.jobs.pause_job(&root, None, &job()).await.expect("it runs");
        assert_eq!(found.kept().state, JobState::Paused);
        let rows = table.snapshot().rows();
        let position = found.position(&test.engine.jobs).expect("readable").expect("there were loads");
        let behind: i64 = position.offsets.values().map(|next| next - FIRST).sum();
        assert_eq!(behind as u64, rows, "the position is where the rows end");
        test.engine.jobs.resume_job(&root, None, &job()).await.expect("it is paused");
    }
    wait_until("all rows are there", || table.snapshot().rows() >= 800).await;
    test.engine.jobs.stop_job(&root, None, &job()).await.expect("it runs");
    assert_eq!(table.snapshot().rows(), 800);
    assert_eq!(found.now().statistics.loaded_rows, 800);
    test.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_partition_is_read_from_its_beginning_and_bad_rows_use_up_their_budget() {
    let test = TestEngine::open(|_| ()).await;
    let table = test.table().await;
    let list = List::default();
    list.say(0, "1,a".to_owned());
    create(&test, &list).await;
    wait_until("the first row is there", || table.snapshot().rows() == 1).await;
    list.say(7, "2,b".to_owned());
    wait_until("the row of the new partition is there", || table.snapshot().rows() == 2).await;
    list.say(0, "bad".to_owned());
    list.say(7, "3,c".to_owned());
    let found = test.engine.jobs.routine.find("d", "j").expect("it was made");
    wait_until("the job is paused", || found.kept().state == JobState::Paused).await;
    assert_eq!(table.snapshot().rows(), 3, "the good row beside the bad one is there");
    assert_eq!(found.kept().reason.as_ref().map(|reason| reason.code), Some(102));
    test.engine.jobs.purge_jobs(i64::MAX).await;
    assert!(test.engine.jobs.routine.find("d", "j").is_some(), "a paused job is not forgotten");
    test.engine.jobs.stop_job(&Principal::new("root", "%", 0), None, &job()).await.expect("it is paused");
    test.engine.jobs.purge_jobs(i64::MAX).await;
    assert!(test.engine.jobs.routine.find("d", "j").is_none());
    assert_eq!(test.engine.ingest.transactions().position(found.id), None);
    test.engine.shutdown().await;
}

/// A checker that returns a wrong result on command.
#[derive(Debug, Default)]
struct Wrong(AtomicBool);

impl Access for Wrong {
    fn check(&self, _: &Principal, _: Privilege, _: Object<'_>) -> Result<(), SqlError> {
        assert!(!self.0.load(Ordering::SeqCst), "the check is wrong");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_panics_is_paused_with_the_text_and_goes_on_when_it_is_resumed() {
    let wrong = Arc::new(Wrong::default());
    let test = TestEngine::open_with(|_| (), Arc::clone(&wrong) as Arc<dyn Access>).await;
    let table = test.table().await;
    let list = List::default();
    list.say(0, "1,a".to_owned());
    create(&test, &list).await;
    wait_until("the first row is there", || table.snapshot().rows() == 1).await;
    let found = test.engine.jobs.routine.find("d", "j").expect("it was made");
    wrong.0.store(true, Ordering::SeqCst);
    list.say(0, "2,b".to_owned());
    wait_until("the job is paused", || found.kept().state == JobState::Paused).await;
    wrong.0.store(false, Ordering::SeqCst);
    let reason = found.kept().reason.clone().expect("it has one");
    assert!(reason.text.contains("the check is wrong"), "{}", reason.text);
    assert_eq!(test.engine.ingest.watcher().panics("routine_load"), 1);
    test.engine.jobs.resume_job(&Principal::new("root", "%", 0), None, &job()).await.expect("it is paused");
    wait_until("the second row is there", || table.snapshot().rows() == 2).await;
    test.engine.shutdown().await;
}
