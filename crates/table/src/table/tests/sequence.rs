//! Rows that delete, and sequences that decide between rows, in memory, in files, through flushes, compactions and crashes.

use crate::options::StoreOptions;
use crate::table::Publication;
use crate::testing::{Bench, Fault, logged, two_columns, visible};
use crate::{DataFile, Table};
use arrow::array::{ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray};
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::{
    ColumnDef, DataType, HiddenColumn, KeyModel, Live, Lsn, SchemaVersion, TableDef, TableId, TableSchema,
    Version,
};

/// The columns that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    SignOnly,
    HiddenSequence,
    VisibleSequence,
}

impl Model {
    const ALL: [Self; 3] = [Self::SignOnly, Self::HiddenSequence, Self::VisibleSequence];

    fn def(self) -> Arc<TableDef> {
        let mut columns = two_columns().schema.columns.clone();
        let mut sequence = None;
        if self == Self::VisibleSequence {
            columns.push(ColumnDef::new(3, "seq", DataType::BigInt));
            sequence = Some(columns[2].id);
        }
        columns.push(ColumnDef::hidden(4, HiddenColumn::DeleteSign, DataType::BigInt));
        if self == Self::HiddenSequence {
            columns.push(ColumnDef::hidden(5, HiddenColumn::Sequence, DataType::BigInt));
            sequence = Some(columns[3].id);
        }
        let schema = TableSchema { sequence, ..TableSchema::new(SchemaVersion(1), columns) };
        let def = TableDef::new(TableId(7), "demo", "events", schema);
        Arc::new(TableDef { keys: KeyModel::Unique, ..def })
    }

    fn batch(self, rows: &[Row]) -> RecordBatch {
        let array = |column: &ColumnDef| -> ArrayRef {
            match (column.name.as_str(), column.hidden) {
                (_, Some(HiddenColumn::DeleteSign)) => {
                    Arc::new(rows.iter().map(|row| Some(i8::from(row.deletes))).collect::<Int8Array>())
                }
                ("id", _) => Arc::new(rows.iter().map(|row| row.key).collect::<Int64Array>()),
                ("name", _) => {
                    Arc::new(rows.iter().map(|row| Some(row.name.as_str())).collect::<StringArray>())
                }
                _ => Arc::new(rows.iter().map(|row| row.sequence).collect::<Int64Array>()),
            }
        };
        let schema = &self.def().schema;
        RecordBatch::try_new(schema.arrow(), schema.columns.iter().map(array).collect()).unwrap()
    }
}

#[derive(Clone, Debug)]
struct Row {
    key: i64,
    name: String,
    sequence: Option<i64>,
    deletes: bool,
}

/// The winning row of each key, even if it deletes.
#[derive(Clone, Debug)]
struct Winners {
    model: Model,
    rows: BTreeMap<i64, Row>,
}

impl Winners {
    fn put(&mut self, rows: &[Row]) {
        for row in rows {
            let known = self.rows.get(&row.key).filter(|_| self.model != Model::SignOnly);
            if known.is_none_or(|known| row.sequence >= known.sequence) {
                self.rows.insert(row.key, row.clone());
            }
        }
    }

    fn texts(&self) -> Vec<String> {
        let live = self.rows.values().filter(|row| !row.deletes);
        let mut texts: Vec<_> = live.map(|row| format!("{}|{}", row.key, row.name)).collect();
        texts.sort();
        texts
    }
}

fn first_two(texts: Vec<String>) -> Vec<String> {
    let cut = |text: String| text.splitn(3, '|').take(2).collect::<Vec<_>>().join("|");
    let mut texts: Vec<_> = texts.into_iter().map(cut).collect();
    texts.sort();
    texts
}

/// A table, and what should be in it.
struct Case {
    bench: Bench,
    table: Arc<Table>,
    winners: Winners,
    /// The publications that a replay after a crash repeats: since the last version that the log has.
    history: Vec<(Version, Vec<Row>, Vec<DataFile>)>,
}

impl Case {
    async fn new(model: Model) -> Self {
        let options =
            StoreOptions { compact_min_files: 2, checkpoint_every: Live::new(5), ..StoreOptions::default() };
        let bench = Bench::with(options);
        let table = bench.store.create(&model.def()).await.unwrap();
        Self { bench, table, winners: Winners { model, rows: BTreeMap::new() }, history: Vec::new() }
    }

    fn model(&self) -> Model {
        self.winners.model
    }

    fn publish(&self, rows: &[Row], files: Vec<DataFile>) {
        let version = self.table.snapshot().version.next();
        let batches = if rows.is_empty() { Vec::new() } else { vec![self.model().batch(rows)] };
        let schema = Arc::clone(&self.model().def().schema);
        let lsn = Lsn(version.0 * 100);
        self.table
            .publish(Publication { version, schema, batches, files, replaces: None, partitions: None, lsn })
            .unwrap();
    }

    fn put(&mut self, rows: Vec<Row>) {
        self.publish(&rows, Vec::new());
        self.winners.put(&rows);
        self.history.push((self.table.snapshot().version, rows, Vec::new()));
    }

    async fn put_files(&mut self, rows: &[Row]) {
        let mut writer = self.table.new_file_writer().unwrap();
        for part in rows.chunks(50) {
            writer.append(self.model().batch(part)).await.unwrap();
        }
        let files = writer.finish().await.unwrap().into_files();
        self.publish(&[], files.clone());
        self.winners.put(rows);
        self.history.push((self.table.snapshot().version, Vec::new(), files));
    }

    async fn crash(&mut self) {
        self.table = self.bench.store.open(&self.model().def()).await.unwrap();
        let persisted = self.table.persisted_version();
        for (version, rows, files) in self.history.iter().filter(|entry| entry.0 > persisted) {
            assert_eq!(self.table.snapshot().version.next(), *version);
            self.publish(rows, files.clone());
        }
    }

    async fn shown(&self) -> Vec<String> {
        first_two(visible(&self.table).await)
    }

    async fn check(&self, place: &str) {
        let place = format!("{:?} {place}", self.model());
        assert_eq!(self.shown().await, self.winners.texts(), "{place}");
        let rows = self.table.settled().await.unwrap().rows();
        assert_eq!(rows, self.winners.texts().len() as u64, "{place}");
        self.table.flush().await.unwrap();
        assert_eq!(first_two(logged(&self.table).await), self.winners.texts(), "{place}: the log alone");
        let again = self.bench.store.open(&self.model().def()).await.unwrap();
        assert_eq!(first_two(visible(&again).await), self.winners.texts(), "{place}: opened again");
    }
}

fn row(key: i64, sequence: i64, name: &str) -> Row {
    Row { key, name: name.to_owned(), sequence: Some(sequence), deletes: name == "deleted" }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greater_sequence_stays_and_of_equal_ones_the_later() {
    for model in [Model::HiddenSequence, Model::VisibleSequence] {
        let mut case = Case::new(model).await;
        case.put(vec![row(1, 5, "a"), row(1, 3, "b"), row(2, 1, "c"), row(2, 1, "d")]);
        case.check("in one load").await;
        assert_eq!(case.winners.texts(), ["1|a", "2|d"]);
        case.put(vec![row(1, 4, "e"), row(2, 0, "f"), row(3, -7, "g")]);
        case.put(vec![row(3, -7, "h")]);
        case.check("against a file").await;
        assert_eq!(case.winners.texts(), ["1|a", "2|d", "3|h"]);
        let null = Row { sequence: None, ..row(4, 0, "i") };
        case.put(vec![null.clone(), Row { name: "j".to_owned(), ..null.clone() }]);
        case.check("NULL").await;
        case.put(vec![row(4, i64::MIN, "k")]);
        case.put(vec![null]);
        case.check("NULL is less than any value").await;
        assert_eq!(case.winners.texts(), ["1|a", "2|d", "3|h", "4|k"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_comes_back_with_a_sequence_as_great_only() {
    for model in [Model::HiddenSequence, Model::VisibleSequence] {
        let mut case = Case::new(model).await;
        case.put((0..20).map(|key| row(key, 10, "a")).collect());
        case.table.flush().await.unwrap();
        case.put((0..10).map(|key| row(key, 20, "deleted")).chain([row(12, 9, "deleted")]).collect());
        case.check("deleted").await;
        assert_eq!(case.winners.texts().len(), 10);
        case.put(vec![row(3, 19, "too late"), row(4, 20, "as great"), row(5, 21, "greater")]);
        case.check("after a flush").await;
        case.table.compact().await.unwrap().expect("there are several files");
        case.put(vec![row(6, 19, "too late"), row(7, 20, "as great")]);
        case.check("after a compaction").await;
        case.put(vec![row(8, 30, "deleted"), row(9, 5, "deleted")]);
        case.crash().await;
        case.put(vec![row(8, 25, "too late"), row(9, 10, "too late")]);
        case.check("after a crash").await;
        for _ in 0..4 {
            case.table.compact().await.unwrap();
        }
        assert!(case.table.compact().await.unwrap().is_none(), "what must stay is not rewritten for ever");
        case.check("in the end").await;
        let shown = ["4|as great", "5|greater", "7|as great"];
        assert!(shown.iter().all(|text| case.winners.texts().contains(&(*text).to_owned())));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_sequence_nothing_is_left_of_a_deletion() {
    let mut case = Case::new(Model::SignOnly).await;
    case.put((0..5).map(|key| row(key, 0, "a")).collect());
    case.table.flush().await.unwrap();
    case.put(vec![row(1, 0, "deleted"), row(2, 0, "deleted"), row(2, 0, "b"), row(9, 0, "deleted")]);
    case.check("deleted").await;
    case.table.compact().await.unwrap();
    case.check("compacted").await;
    let rows: u64 = case.table.snapshot().files.iter().map(|live| live.file.rows).sum();
    assert_eq!(rows, 4, "{:?}", case.winners.texts());
}

/// A compaction is in the log although its answer was lost; a row deleted meanwhile must not return with it, even if nothing is
/// left of the row that deleted it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_behind_a_compaction_without_an_answer_stays_deleted() {
    for model in Model::ALL {
        let mut case = Case::new(model).await;
        for name in ["a", "b"] {
            let first = if name == "a" { 0 } else { 20 };
            case.put((first..first + 20).map(|key| row(key, 1, name)).collect());
            case.table.flush().await.unwrap();
        }
        case.bench.faults.fail_next("00000000000000000003.json", Fault::After);
        case.bench.faults.fail_next_read("00000000000000000003.json");
        case.table.compact().await.unwrap_err();
        case.put(vec![row(3, 2, "deleted"), row(23, 2, "deleted"), row(30, 2, "c")]);
        assert_eq!(case.shown().await, case.winners.texts());
        case.table.flush().await.unwrap();
        case.check("taken in").await;
    }
}

/// Numbers that look random, always the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn rows(&mut self, count: u64, keys: u64, step: usize) -> Vec<Row> {
        let row = |number: u64| Row {
            key: self.below(keys) as i64,
            name: format!("{step}.{number}"),
            sequence: Some(self.below(12) as i64).filter(|sequence| *sequence > 0),
            deletes: self.below(4) == 0,
        };
        (0..count).map(row).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_in_whatever_order_the_row_that_should_stays() {
    for seed in 0..30 {
        let mut dice = Dice(seed);
        let mut case = Case::new(Model::ALL[seed as usize % 3]).await;
        let keys = 1 + dice.below(60);
        for step in 0..60 {
            match dice.below(14) {
                0..=5 => {
                    let count = 1 + dice.below(20);
                    case.put(dice.rows(count, keys, step));
                }
                6 => case.put_files(&dice.rows(30, keys, step)).await,
                7 | 8 => drop(case.table.flush().await.unwrap()),
                9 => drop(case.table.compact().await.unwrap()),
                10 | 11 => assert_eq!(case.shown().await, case.winners.texts(), "seed {seed}, step {step}"),
                12 => {
                    let next = format!("{:020}.json", case.table.snapshot().delta_version + 1);
                    case.bench.faults.fail_next(&next, Fault::After);
                    case.bench.faults.fail_next_read(&next);
                    // Either may have nothing to write.
                    drop(case.table.compact().await);
                    drop(case.table.flush().await);
                    case.bench.faults.none();
                }
                _ => case.crash().await,
            }
        }
        case.check(&format!("seed {seed}")).await;
    }
}
