//! For each write of the protocol: it fails, its answer is lost, and the server ends with it. A start after that finds log and
//! catalog in agreement, and no record.

use super::*;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_ingest::{Halt, Switched};
use tributary_table::TableError;
use tributary_types::partition::{Bound, PartitionRows, PartitionValue};
use tributary_types::{
    ColumnId, PartitionId, PartitionMethod, Partitioning, Partitions, SchemaVersion, SourceId, TableDef,
    TableId, TableSchema,
};

const TABLE: TableId = TableId(1);
const BESIDE: TableId = TableId(2);
const FIRST: SourceId = SourceId(7);

/// A write of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Keep,
    Log,
    Finish,
    Forget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The write is not made, once.
    Fails,
    /// It is made, and answered with an error, once.
    LosesAnswer,
    /// It is not made, and the server ends.
    EndsBefore,
    /// It is made, and the server ends.
    EndsAfter,
}

/// The parts that outlive the server.
#[derive(Default)]
struct Disk {
    tables: Mutex<BTreeMap<TableId, Arc<TableDef>>>,
    last: Mutex<BTreeMap<TableId, SourceId>>,
    records: Mutex<BTreeMap<SourceId, String>>,
    bin: Mutex<Vec<PartitionId>>,
    log: Mutex<Option<(SourceId, Arc<TableDef>)>>,
    fault: Mutex<Option<(Write, Fault)>>,
    has_ended: AtomicBool,
    halt: Arc<Halt>,
}

impl Disk {
    fn write(&self, write: Write, make: impl FnOnce()) -> Result<(), String> {
        if self.has_ended.load(Ordering::SeqCst) {
            return Err("the server has ended".to_owned());
        }
        let fault = self.fault.lock().take_if(|(of, _)| *of == write).map(|(_, fault)| fault);
        if matches!(fault, None | Some(Fault::LosesAnswer | Fault::EndsAfter)) {
            make();
        }
        if matches!(fault, Some(Fault::EndsBefore | Fault::EndsAfter)) {
            self.has_ended.store(true, Ordering::SeqCst);
            self.halt.at_once();
        }
        fault.map_or(Ok(()), |fault| Err(format!("{fault:?}")))
    }

    fn restart(&self) {
        *self.fault.lock() = None;
        self.has_ended.store(false, Ordering::SeqCst);
    }

    fn def(&self, id: TableId) -> Arc<TableDef> {
        Arc::clone(&self.tables.lock()[&id])
    }

    fn changes(&self) -> Vec<Change> {
        let records = self.records.lock();
        let read = |(id, text): (&SourceId, &String)| {
            Change::read(*id, KIND, serde_json::from_str(text).unwrap()).unwrap()
        };
        records.iter().map(read).collect()
    }
}

#[async_trait]
impl Records for Disk {
    fn table(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.tables.lock().get(&id).cloned()
    }

    fn last_change(&self, table: TableId) -> SourceId {
        self.last.lock().get(&table).copied().unwrap_or_default()
    }

    async fn keep(&self, change: &Change) -> Result<(), String> {
        let text = written(change.table, change.partitions().unwrap()).to_string();
        self.write(Write::Keep, || drop(self.records.lock().insert(change.id, text)))
    }

    async fn finish(&self, Finished { change, table, beside }: &Finished) -> Result<(), String> {
        self.write(Write::Finish, || {
            self.records.lock().remove(&change.id);
            if Records::last_change(self, change.table) >= change.id {
                return;
            }
            self.last.lock().insert(change.table, change.id);
            for (before, after) in [Some(table), beside.as_ref()].into_iter().flatten() {
                assert_eq!(self.def(before.id), *before, "nothing else has changed it");
                self.tables.lock().insert(before.id, Arc::new(after.clone()));
            }
            let partitions = change.partitions().unwrap();
            let mut bin = self.bin.lock();
            bin.extend(partitions.dropped.iter().map(|dropped| dropped.kept.partition.id));
            bin.retain(|id| !partitions.recovered.contains(id));
        })
    }

    async fn forget(&self, change: &Change) -> Result<(), String> {
        self.write(Write::Forget, || drop(self.records.lock().remove(&change.id)))
    }
}

#[async_trait]
impl Logs for Disk {
    async fn last_change(&self, _def: &TableDef) -> Result<Option<u64>, TableError> {
        Ok(self.log.lock().as_ref().map(|(id, _)| id.0))
    }
}

/// A table on its disk.
struct Site<'a> {
    disk: &'a Disk,
    change: Change,
    /// It never reaches the log.
    is_busy: bool,
}

#[async_trait]
impl Subject for Site<'_> {
    fn def(&self) -> Arc<TableDef> {
        self.disk.def(TABLE)
    }

    fn beside(&self) -> Option<Arc<TableDef>> {
        self.change.beside().map(|beside| self.disk.def(beside.table))
    }

    async fn switch(&self, step: &Step<'_>) -> Result<Switched, TableError> {
        let unsure = |reason: String| TableError::Unsure { table: "t".to_owned(), reason };
        if self.is_busy {
            return Ok(Switched::NotYet);
        }
        if let Some(leaving) = step.leaving()
            && leaving.record(Vec::new()).await.is_err()
        {
            return Err(TableError::Busy { table: "t".to_owned() });
        }
        let after = Arc::new(self.change.definition(&self.def()));
        let logged = (self.change.id, Arc::clone(&after));
        let fault =
            self.disk.fault.lock().is_some_and(|(of, fault)| of == Write::Log && fault == Fault::Fails);
        match self.disk.write(Write::Log, || *self.disk.log.lock() = Some(logged)) {
            Ok(()) if step.tell(Arc::clone(&after)).await => Ok(Switched::Yes(after)),
            Ok(()) => Err(unsure("the catalog was not told".to_owned())),
            // It is known that the log does not have it.
            Err(reason) if fault => Err(TableError::Stopped { table: reason }),
            Err(reason) => Err(unsure(reason)),
        }
    }

    async fn pause(&self) {
        tokio::task::yield_now().await;
    }
}

fn partitions(ids: &[u64]) -> Partitions {
    let mut all = Partitions::new(PartitionMethod::Range, vec![ColumnId(1)]);
    for id in 1..=5 {
        let bound = |value: u64| vec![Bound::Value(PartitionValue::Int(value.into()))];
        let rows = PartitionRows::Range { lower: bound(id), upper: bound(id + 1) };
        all.add(&format!("p{id}"), rows, BTreeMap::new());
    }
    let gone: Vec<PartitionId> = (1..=5).filter(|id| !ids.contains(id)).map(PartitionId).collect();
    all.remove(&gone);
    all
}

fn table(id: TableId, ids: &[u64]) -> Arc<TableDef> {
    let def = TableDef::new(id, "d", &format!("t{id}"), TableSchema::new(SchemaVersion(1), Vec::new()));
    Arc::new(TableDef { partitioning: Partitioning::By(partitions(ids).into()), ..def })
}

/// A table with the partitions 1 and 2, of which 5 was dropped before, and one beside it with 1 and 2.
fn disk() -> Disk {
    let disk = Disk::default();
    disk.tables.lock().extend([(TABLE, table(TABLE, &[1, 2])), (BESIDE, table(BESIDE, &[1, 2]))]);
    disk.bin.lock().push(PartitionId(5));
    disk
}

/// A replacement, a drop and a recovery.
fn changes() -> Vec<Change> {
    let kept =
        KeptPartition::new(partitions(&[1]).list[0].clone(), SchemaVersion(1), PartitionId(6), Vec::new());
    let of = |partitions| Change { id: FIRST, table: TABLE, effect: Effect::Partitions(partitions) };
    vec![
        of(NewPartitions {
            beside: Some(Beside { table: BESIDE, moved: vec![PartitionId(1)] }),
            ..NewPartitions::new(partitions(&[2, 3]))
        }),
        of(NewPartitions {
            dropped: vec![Dropped { at_ms: 0, kept }],
            ..NewPartitions::new(partitions(&[2]))
        }),
        of(NewPartitions { recovered: vec![PartitionId(5)], ..NewPartitions::new(partitions(&[1, 2, 5])) }),
    ]
}

async fn start(disk: &Disk) {
    disk.restart();
    complete(disk, disk, disk.changes()).await.unwrap();
    assert!(disk.records.lock().is_empty(), "each has ended");
}

/// Checks that log and catalog agree: the change is made as a whole, or not at all.
fn check(disk: &Disk, change: &Change, text: &str) {
    let is_made = disk.log.lock().as_ref().is_some_and(|(id, _)| *id == change.id);
    let fresh = self::disk();
    let before = fresh.def(TABLE);
    let expected = if is_made { change.definition(&before) } else { (*before).clone() };
    assert_eq!(*disk.def(TABLE), expected, "{text}");
    let before = fresh.def(BESIDE);
    let expected = if is_made { change.definition_beside(&before) } else { (*before).clone() };
    assert_eq!(*disk.def(BESIDE), expected, "{text}");
    let of_change = change.partitions().unwrap();
    let mut bin = fresh.bin.lock().clone();
    if is_made {
        bin.extend(of_change.dropped.iter().map(|dropped| dropped.kept.partition.id));
        bin.retain(|id| !of_change.recovered.contains(id));
    }
    assert_eq!(*disk.bin.lock(), bin, "{text}");
}

#[tokio::test]
async fn each_write_that_fails_or_loses_its_answer_leaves_the_change_made_or_not_made() {
    for change in changes() {
        for write in [Write::Keep, Write::Log, Write::Finish] {
            for fault in [Fault::Fails, Fault::LosesAnswer, Fault::EndsBefore, Fault::EndsAfter] {
                let text = format!("{write:?} {fault:?} {change:?}");
                let disk = disk();
                *disk.fault.lock() = Some((write, fault));
                let site = Site { disk: &disk, change: change.clone(), is_busy: false };
                let made = run(&disk, &site, change.clone(), &disk.halt, &|| false).await;
                assert!(disk.fault.lock().is_none(), "it has happened: {text}");
                if let Ok(Switched::Yes(_)) = &made {
                    assert!(disk.records.lock().is_empty(), "{text}");
                    check(&disk, &change, &text);
                }
                let is_told = matches!((write, fault), (Write::Finish, Fault::Fails | Fault::LosesAnswer));
                assert_eq!(made.is_ok(), is_told, "{text}: {made:?}");
                start(&disk).await;
                check(&disk, &change, &text);
            }
        }
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_forgotten_undoes_nothing_after_it() {
    for change in changes() {
        for fault in [Fault::Fails, Fault::LosesAnswer, Fault::EndsBefore, Fault::EndsAfter] {
            let disk = disk();
            *disk.fault.lock() = Some((Write::Forget, fault));
            let site = Site { disk: &disk, change: change.clone(), is_busy: true };
            let made = run(&disk, &site, change.clone(), &disk.halt, &|| false).await;
            assert!(matches!(made, Ok(Switched::NotYet)), "{made:?}");
            disk.restart();
            // Another change is made meanwhile.
            let later = Change {
                id: SourceId(FIRST.0 + 1),
                effect: Effect::Partitions(NewPartitions::new(partitions(&[1, 2, 4]))),
                ..change.clone()
            };
            let site = Site { disk: &disk, change: later.clone(), is_busy: false };
            run(&disk, &site, later.clone(), &Arc::default(), &|| false).await.unwrap();
            start(&disk).await;
            check(&disk, &later, "the later one");
        }
    }
}

#[tokio::test]
async fn a_change_that_the_catalog_has_already_is_never_made_again() {
    for change in changes() {
        let disk = disk();
        let site = Site { disk: &disk, change: change.clone(), is_busy: false };
        run(&disk, &site, change.clone(), &disk.halt, &|| false).await.unwrap();
        // As a server left it that did not end records together with their changes; then a light change followed.
        disk.keep(&change).await.unwrap();
        let mut more = disk.def(TABLE).partitioning.partitions().map(|all| Partitions::clone(all)).unwrap();
        more.add("later", PartitionRows::Others, BTreeMap::new());
        let later = TableDef { partitioning: Partitioning::By(more.into()), ..(*disk.def(TABLE)).clone() };
        disk.tables.lock().insert(TABLE, Arc::new(later.clone()));
        for knows_last in [true, false] {
            disk.keep(&change).await.unwrap();
            if !knows_last {
                disk.last.lock().clear();
            }
            start(&disk).await;
            assert_eq!(*disk.def(TABLE), later, "last change known: {knows_last}");
        }
    }
}
