//! A server that only reads: its queries ask the server that writes for its snapshots, over a network that loses questions and answers,
//! and lets them wait.
//!
//! It outlives the writer, so it knows parts of the snapshots of former processes. Each snapshot that it shows is one that a writer had,
//! file by file and row by row; it has everything that was visible when it was asked for; and what was shown once does not disappear.
//! If the writer gives no answer, a query fails that must see what was visible, and any other shows what the reader has.

use crate::clients::any_table;
use crate::process::{follower, process_options};
use crate::trace::note;
use crate::world::World;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tributary_table::{
    Current, Freshness, KnownParts, LiveFile, MemPart, SentSnapshot, Snapshot, Table, TableError, Writer,
};
use tributary_types::{PartitionId, TableId, Version};

/// Clients of the reader.
const CLIENTS: u64 = 3;
/// Queries of each in one life of the writer, at most.
const QUERIES_MAX: u64 = 12;
/// The time from one query to the next, at most, in µs.
const AFTER_US: [u64; 3] = [100, 2_000, 20_000];
/// The time of an answer on its way, at most, in µs.
const ON_ITS_WAY_US: [u64; 3] = [0, 300, 5_000];
/// A question or an answer in this many is lost.
const LOST_ONE_IN: u64 = 8;

/// The reader's memory.
#[derive(Default)]
pub struct Reader {
    tables: BTreeMap<TableId, Arc<Table>>,
    line: Arc<Line>,
    /// The snapshots that writers have sent, oldest first.
    sent: Vec<Arc<Snapshot>>,
    /// The newest version of each table that was shown.
    shown: BTreeMap<TableId, Version>,
}

/// The way to the writer.
#[derive(Debug, Default)]
pub struct Line(Mutex<Option<mpsc::UnboundedSender<Question>>>);

#[derive(Debug)]
struct Question {
    table: TableId,
    known: Option<KnownParts>,
    answer: oneshot::Sender<Result<SentSnapshot, TableError>>,
}

#[async_trait]
impl Writer for Line {
    async fn snapshot(&self, table: TableId, known: Option<KnownParts>) -> Result<SentSnapshot, TableError> {
        let silent = || TableError::Silent { reason: "the network".to_owned() };
        let (answer, answered) = oneshot::channel();
        let way = self.0.lock().clone().ok_or_else(silent)?;
        way.send(Question { table, known, answer }).map_err(|_| silent())?;
        answered.await.map_err(|_| silent())?
    }
}

/// Lets clients query the reader until the writer's are done.
pub fn start(world: &Rc<World>) {
    let (way, questions) = mpsc::unbounded_channel();
    *world.reader.borrow().line.0.lock() = Some(way);
    world.machine.spawn_local(network(Rc::clone(world), questions));
    for _ in 0..CLIENTS {
        world.machine.spawn_local(client(Rc::clone(world)));
    }
}

async fn network(world: Rc<World>, mut questions: mpsc::UnboundedReceiver<Question>) {
    while let Some(question) = questions.recv().await {
        let of_task = Rc::clone(&world);
        world.machine.spawn_local(async move { carry(&of_task, question).await });
    }
}

/// Carries a question to the writer, and the answer back.
async fn carry(world: &World, Question { table, known, answer }: Question) {
    let is_lost = || world.throw(|dice| dice.one_in(LOST_ONE_IN));
    if is_lost() {
        return;
    }
    let Some(table) = world.process().table(table) else { return };
    let sent = table.send_snapshot(known.as_ref()).await.map(|(snapshot, sent)| {
        if !snapshot.is_settled() {
            world.violated(format!("rows of table {} are sent before they are settled", table.id()));
        }
        world.reader.borrow_mut().sent.push(snapshot);
        sent
    });
    let within_us = world.throw(|dice| dice.pick(&ON_ITS_WAY_US));
    world.think(within_us).await;
    if !is_lost() {
        drop(answer.send(sent));
    }
}

async fn client(world: Rc<World>) {
    for _ in 0..world.throw(|dice| dice.between(1, QUERIES_MAX)) {
        let within_us = world.throw(|dice| dice.pick(&AFTER_US));
        world.think(within_us).await;
        if !world.is_alive() || world.busy.get() == 0 || world.violation.borrow().is_some() {
            return;
        }
        if let Some(table) = any_table(&world) {
            query(&world, &table).await;
        }
    }
}

/// Queries a table at the reader, and checks what it shows.
pub async fn query(world: &World, table: &Arc<Table>) {
    let Some(own) = followed(world, table).await else { return };
    if world.throw(|dice| dice.one_in(4)) {
        // The writer says that all that it shows is in files, or nothing.
        let as_of = table.unflushed_for().is_none().then(Instant::now);
        let outcome = own.follow(&table.def(), as_of).await;
        note!(world.trace, "followed", table.id().0, 0, "table {}: {outcome:?}", table.id());
        if outcome.is_ok() && world.throw(|dice| dice.one_in(2)) {
            check_followed(world, table, &own).await;
        }
    }
    let id = table.id();
    let visible = table.snapshot().version;
    let shown = world.reader.borrow().shown.get(&id).copied().unwrap_or_default();
    let must_be_new = world.throw(|dice| dice.one_in(2));
    // Later than what was noted just now.
    let since = must_be_new.then(|| Instant::now() + Duration::from_nanos(1));
    let outcome = own.current(Freshness { since, tolerance: Duration::ZERO }).await;
    if !world.is_alive() || world.process().table(id).is_none() {
        return;
    }
    let Current { snapshot, old } = match outcome {
        Ok(current) => current,
        Err(error) => {
            note!(world.trace, "reader", id.0, 0, "table {id}: {error}");
            if !must_be_new {
                world.violated(format!("a query of table {id} at a reader: {error}"));
            }
            return;
        }
    };
    note!(
        world.trace,
        "reader",
        id.0,
        snapshot.version.0,
        "table {id}: version {}, {old:?}",
        snapshot.version
    );
    if old.is_none() || must_be_new {
        if snapshot.version < visible {
            let seen = snapshot.version;
            world.violated(format!("a reader shows version {seen} of table {id}, and {visible} was visible"));
        }
        world.count(|counts| counts.read += 1);
    }
    if snapshot.version < shown {
        let seen = snapshot.version;
        world.violated(format!("a reader shows version {seen} of table {id} after version {shown}"));
    }
    let mut reader = world.reader.borrow_mut();
    let newest = reader.shown.entry(id).or_default();
    *newest = (*newest).max(snapshot.version);
    let is_logged = snapshot.memtable.is_empty() && old.is_some();
    if !is_logged && !reader.sent.iter().rev().any(|sent| is_same(sent, &snapshot)) {
        let of_same_version = reader.sent.iter().rev().find(|sent| sent.version == snapshot.version);
        let sent = of_same_version.map_or_else(|| "nothing".to_owned(), |sent| contents(sent));
        drop(reader);
        let shown = contents(&snapshot);
        let version = snapshot.version;
        world.violated(format!(
            "a reader shows version {version} of table {id} with {shown}, and a writer has sent {sent}"
        ));
    }
}

/// The numbers of a snapshot's files and batches in memory, and of their rows.
fn contents(snapshot: &Snapshot) -> String {
    let deleted = |live: &LiveFile| live.deletes.as_ref().map_or(0, |deletes| deletes.rows().len());
    let (files, rows) = (snapshot.files.len(), snapshot.files.iter().map(|live| live.file.rows).sum::<u64>());
    let less: u64 = snapshot.files.iter().map(deleted).sum();
    let in_memory: usize = snapshot.memtable.iter().map(|part| part.batch.num_rows()).sum();
    let superseded: u64 =
        snapshot.memtable.iter().filter_map(|part| part.superseded.as_ref().map(|rows| rows.len())).sum();
    let parts = snapshot.memtable.len();
    format!(
        "{rows} rows less {less} in {files} files and {in_memory} less {superseded} in {parts} batches in memory"
    )
}

/// Compares a table that has taken entries of its log with one that has read all of it.
async fn check_followed(world: &World, table: &Arc<Table>, own: &Table) {
    let Some(whole) = opened(world, table).await else { return };
    let (own, whole) = (own.snapshot(), whole.snapshot());
    // The log does not say under which schema a file was written; who has seen it before knows better.
    let files = |snapshot: &Snapshot| -> BTreeMap<String, (u64, Option<PartitionId>, Vec<u64>)> {
        let deleted = |live: &LiveFile| live.deletes.iter().flat_map(|deletes| deletes.rows()).collect();
        let facts = |live: &LiveFile| (live.file.rows, live.file.partition, deleted(live));
        snapshot.files.iter().map(|live| (live.path().to_owned(), facts(live))).collect()
    };
    let is_same = own.version == whole.version && files(&own) == files(&whole);
    let is_comparable = own.delta_version == whole.delta_version && own.def == whole.def;
    if is_comparable && !is_same {
        let (id, version) = (table.id(), own.delta_version);
        let (found, shown) = (contents(&whole), contents(&own));
        world.violated(format!(
            "a reader has Delta version {version} of table {id} with {shown}, and the log has {found}"
        ));
    }
}

/// The table at the reader. `None`: it can't be opened now.
async fn followed(world: &World, table: &Arc<Table>) -> Option<Arc<Table>> {
    let id = table.id();
    if let Some(known) = world.reader.borrow().tables.get(&id) {
        return Some(Arc::clone(known));
    }
    let opened = opened(world, table).await?;
    let mut reader = world.reader.borrow_mut();
    Some(Arc::clone(reader.tables.entry(id).or_insert(opened)))
}

async fn opened(world: &World, table: &Arc<Table>) -> Option<Arc<Table>> {
    let line = Arc::clone(&world.reader.borrow().line) as Arc<dyn Writer>;
    let store = follower(&world.hardware, process_options(&world.hardware, &world.plan)).ok()?;
    store.with_writer(Some(line)).open(&table.def()).await.ok()
}

fn is_same(sent: &Snapshot, shown: &Snapshot) -> bool {
    let deleted = |live: &LiveFile| live.deletes.as_ref().map(|deletes| deletes.rows().clone());
    let by_path = |snapshot: &Snapshot| -> BTreeMap<String, LiveFile> {
        snapshot.files.iter().map(|live| (live.path().to_owned(), live.clone())).collect()
    };
    let (files, others) = (by_path(sent), by_path(shown));
    let is_same_file = |(one, other): (&LiveFile, &LiveFile)| {
        one.path() == other.path() && one.file == other.file && deleted(one) == deleted(other)
    };
    let is_same_part = |(one, other): (&Arc<MemPart>, &Arc<MemPart>)| {
        one.batch == other.batch && one.superseded == other.superseded && one.deletions == other.deletions
    };
    sent.version == shown.version
        && sent.def == shown.def
        && sent.files.len() == shown.files.len()
        && files.len() == others.len()
        && files.values().zip(others.values()).all(is_same_file)
        && sent.memtable.len() == shown.memtable.len()
        && sent.memtable.iter().zip(&shown.memtable).all(is_same_part)
}
