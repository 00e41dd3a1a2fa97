//! Rows of partial updates, in memory and in files, alone and among whole rows, through flushes, compactions and crashes.

use crate::options::StoreOptions;
use crate::table::Publication;
use crate::testing::{Bench, Fault, logged, two_columns, visible};
use crate::{DataFile, Table};
use arrow::array::{ArrayRef, AsArray, Int8Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::{
    ColumnDef, ColumnId, DataType, GivenColumns, HiddenColumn, KeyModel, Live, Lsn, SchemaVersion, TableDef,
    TableId, TableSchema, Version,
};

/// Decides which row of a key wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    LastRow,
    HiddenSequence,
    VisibleSequence,
}

const SEQUENCE: ColumnId = ColumnId(5);
const VALUES: [(u32, &str); 3] = [(2, "name"), (3, "left"), (4, "right")];

impl Model {
    const ALL: [Self; 3] = [Self::LastRow, Self::HiddenSequence, Self::VisibleSequence];

    fn def(self) -> Arc<TableDef> {
        let mut columns = two_columns().schema.columns.clone();
        for (id, name) in &VALUES[1..] {
            columns.push(ColumnDef::new(*id, name, DataType::Varchar { bytes: 20 }));
        }
        let sequence = match self {
            Self::LastRow => None,
            Self::HiddenSequence => {
                Some(ColumnDef::hidden(SEQUENCE.0, HiddenColumn::Sequence, DataType::BigInt))
            }
            Self::VisibleSequence => Some(ColumnDef::new(SEQUENCE.0, "seq", DataType::BigInt)),
        };
        let has_sequence = sequence.is_some();
        columns.extend(sequence);
        columns.push(ColumnDef::hidden(6, HiddenColumn::DeleteSign, DataType::BigInt));
        columns.push(ColumnDef::hidden(7, HiddenColumn::Given, DataType::BigInt));
        let schema = TableSchema::new(SchemaVersion(1), columns);
        let schema = TableSchema { sequence: has_sequence.then_some(SEQUENCE), ..schema };
        let def = TableDef::new(TableId(7), "demo", "events", schema);
        Arc::new(TableDef {
            keys: KeyModel::Unique,
            schema: Arc::new(TableSchema::clone(&def.schema)),
            ..def
        })
    }

    fn batch(self, rows: &[Row]) -> RecordBatch {
        let array = |column: &ColumnDef| -> ArrayRef {
            match (column.id, column.hidden) {
                (_, Some(HiddenColumn::DeleteSign)) => {
                    Arc::new(rows.iter().map(|row| Some(i8::from(row.deletes))).collect::<Int8Array>())
                }
                (_, Some(HiddenColumn::Given)) => {
                    Arc::new(rows.iter().map(Row::given_text).collect::<StringArray>())
                }
                (SEQUENCE, _) => Arc::new(rows.iter().map(Row::sequence).collect::<Int64Array>()),
                (ColumnId(1), _) => Arc::new(rows.iter().map(|row| row.key).collect::<Int64Array>()),
                (id, _) => Arc::new(rows.iter().map(|row| row.value(id)).collect::<StringArray>()),
            }
        };
        let schema = &self.def().schema;
        RecordBatch::try_new(schema.arrow(), schema.columns.iter().map(array).collect()).unwrap()
    }
}

/// A row as it is sent.
#[derive(Clone, Debug)]
struct Row {
    key: i64,
    name: String,
    sequence: Option<i64>,
    deletes: bool,
    /// The columns that it gives; `None`: all of them.
    given: Option<Vec<u32>>,
}

impl Row {
    fn gives(&self, id: ColumnId) -> bool {
        self.given.as_ref().is_none_or(|given| given.contains(&id.0))
    }

    fn given_text(&self) -> Option<String> {
        let ids = self.given.as_ref()?.iter().copied().chain([1]).map(ColumnId);
        Some(GivenColumns::new(ids).text())
    }

    fn value(&self, id: ColumnId) -> Option<String> {
        self.gives(id).then(|| format!("{}.{id}", self.name))
    }

    fn sequence(&self) -> Option<i64> {
        self.sequence.filter(|_| self.gives(SEQUENCE))
    }
}

/// The row of a key.
#[derive(Clone, Debug, Default)]
struct Held {
    values: BTreeMap<u32, String>,
    sequence: Option<i64>,
    is_deleted: bool,
}

/// The expected contents.
#[derive(Clone, Debug)]
struct Expected {
    model: Model,
    rows: BTreeMap<i64, Held>,
}

impl Expected {
    fn put(&mut self, rows: &[Row]) {
        for row in rows {
            self.put_one(row);
        }
    }

    fn put_one(&mut self, row: &Row) {
        let has_sequence = self.model != Model::LastRow;
        let held = self.rows.get(&row.key);
        let kept = held.filter(|_| has_sequence && !row.gives(SEQUENCE)).map(|held| held.sequence);
        let sequence = kept.unwrap_or(row.sequence());
        if has_sequence && held.is_some_and(|held| sequence < held.sequence) {
            return;
        }
        let mut values = match held {
            Some(held) if row.given.is_some() && !held.is_deleted => held.values.clone(),
            _ => BTreeMap::new(),
        };
        for (id, _) in VALUES {
            if let Some(value) = row.value(ColumnId(id)) {
                values.insert(id, value);
            }
        }
        self.rows.insert(row.key, Held { values, sequence, is_deleted: row.deletes });
    }

    fn texts(&self) -> Vec<String> {
        let live = self.rows.iter().filter(|(_, held)| !held.is_deleted);
        let text = |(key, held): (&i64, &Held)| {
            let value = |(id, _): &(u32, &str)| held.values.get(id).cloned().unwrap_or("NULL".to_owned());
            let values: Vec<String> = VALUES.iter().map(value).collect();
            format!("{key}|{}", values.join("|"))
        };
        let mut texts: Vec<_> = live.map(text).collect();
        texts.sort();
        texts
    }
}

fn first_four(texts: Vec<String>) -> Vec<String> {
    let cut = |text: String| text.splitn(5, '|').take(4).collect::<Vec<_>>().join("|");
    let mut texts: Vec<_> = texts.into_iter().map(cut).collect();
    texts.sort();
    texts
}

/// A table, and what should be in it.
struct Case {
    bench: Bench,
    table: Arc<Table>,
    expected: Expected,
    /// The publications that a replay after a crash repeats.
    history: Vec<(Version, Vec<Row>, Vec<DataFile>)>,
}

impl Case {
    async fn new(model: Model) -> Self {
        Self::with(model, StoreOptions::default()).await
    }

    async fn with(model: Model, options: StoreOptions) -> Self {
        let options = StoreOptions { compact_min_files: 2, checkpoint_every: Live::new(5), ..options };
        let bench = Bench::with(options);
        let table = bench.store.create(&model.def()).await.unwrap();
        Self { bench, table, expected: Expected { model, rows: BTreeMap::new() }, history: Vec::new() }
    }

    fn model(&self) -> Model {
        self.expected.model
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
        self.expected.put(&rows);
        self.history.push((self.table.snapshot().version, rows, Vec::new()));
    }

    async fn files(&self, rows: &[Row]) -> Vec<DataFile> {
        let mut writer = self.table.new_file_writer().unwrap();
        for part in rows.chunks(50) {
            writer.append(self.model().batch(part)).await.unwrap();
        }
        writer.finish().await.unwrap().into_files()
    }

    /// Rows in memory and in files, in one load.
    async fn put_files(&mut self, before: Vec<Row>, rows: &[Row]) {
        let files = self.files(rows).await;
        self.publish(&before, files.clone());
        self.expected.put(&before);
        self.expected.put(rows);
        self.history.push((self.table.snapshot().version, before, files));
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
        first_four(visible(&self.table).await)
    }

    async fn check(&self, place: &str) {
        let place = format!("{:?} {place}", self.model());
        assert_eq!(self.shown().await, self.expected.texts(), "{place}");
        let rows = self.table.settled().await.unwrap().rows();
        assert_eq!(rows, self.expected.texts().len() as u64, "{place}");
        self.table.flush().await.unwrap();
        assert_eq!(first_four(logged(&self.table).await), self.expected.texts(), "{place}: the log alone");
        let again = self.bench.store.open(&self.model().def()).await.unwrap();
        assert_eq!(first_four(visible(&again).await), self.expected.texts(), "{place}: opened again");
    }
}

fn whole(key: i64, name: &str) -> Row {
    Row { key, name: name.to_owned(), sequence: Some(5), deletes: name == "deleted", given: None }
}

fn some(key: i64, given: &[u32], name: &str) -> Row {
    Row { given: Some(given.to_vec()), ..whole(key, name) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_of_different_columns_of_a_key_are_all_kept_in_memory_and_in_files() {
    for model in Model::ALL {
        let mut case = Case::new(model).await;
        case.put((1..=4).map(|key| whole(key, "a")).collect());
        case.put(vec![some(1, &[3], "b"), some(2, &[4], "b")]);
        case.put(vec![some(1, &[4], "c"), some(2, &[3], "c"), some(9, &[2, 4], "new")]);
        case.check("in memory").await;
        assert_eq!(case.expected.texts()[0], "1|a.2|b.3|c.4");
        assert_eq!(case.expected.texts()[4], "9|new.2|NULL|new.4");
        case.put(vec![some(1, &[2], "d"), some(9, &[3], "d"), some(3, &[2], "d"), some(3, &[3], "e")]);
        case.check("against files").await;
        case.put_files(vec![some(4, &[3], "beside")], &[some(4, &[2], "large"), some(2, &[2], "large")])
            .await;
        case.put(vec![some(4, &[4], "f")]);
        case.crash().await;
        case.check("from a file, after a crash").await;
        case.put(vec![whole(4, "g"), some(4, &[2], "h")]);
        case.table.compact().await.unwrap();
        case.check("on top of a whole row").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_deleted_is_a_new_one() {
    for model in Model::ALL {
        let mut case = Case::new(model).await;
        case.put((0..6).map(|key| whole(key, "a")).collect());
        case.table.flush().await.unwrap();
        case.put(vec![whole(1, "deleted"), some(2, &[3], "deleted"), some(3, &[3], "b")]);
        case.put(vec![some(1, &[3], "c"), some(2, &[4], "c"), some(3, &[4], "deleted")]);
        case.check("deleted").await;
        case.put(vec![some(3, &[2], "d")]);
        case.check("again").await;
        assert!(case.expected.texts().contains(&"1|NULL|c.3|NULL".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_without_a_sequence_has_that_of_the_row_before_it() {
    for model in [Model::HiddenSequence, Model::VisibleSequence] {
        let mut case = Case::new(model).await;
        let with = |row: Row, sequence| Row { sequence: Some(sequence), ..row };
        case.put(vec![with(whole(1, "a"), 10), with(whole(2, "a"), 10)]);
        case.table.flush().await.unwrap();
        case.put(vec![some(1, &[3], "b"), with(some(2, &[3, 5], "b"), 9)]);
        case.put(vec![with(whole(1, "too small"), 9)]);
        case.check("kept").await;
        assert_eq!(case.expected.texts(), ["1|a.2|b.3|a.4", "2|a.2|a.3|a.4"]);
        case.put(vec![with(some(1, &[4, 5], "c"), 20), with(whole(1, "too small"), 19)]);
        case.put(vec![with(whole(2, "deleted"), 30), some(2, &[4], "d"), with(whole(2, "too small"), 29)]);
        case.check("greater").await;
        assert_eq!(case.expected.texts(), ["1|a.2|b.3|c.4", "2|NULL|NULL|d.4"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_no_row_has_are_found_before_rows_of_partial_updates_are_published() {
    let mut case = Case::new(Model::LastRow).await;
    case.put((0..100).map(|key| whole(key, "a")).collect());
    case.table.flush().await.unwrap();
    case.put(vec![whole(3, "deleted"), whole(200, "b")]);
    let schema = Arc::clone(&case.model().def().schema);
    let first = async |rows: &[Row], is_file: bool| {
        let files = if is_file { case.files(rows).await } else { Vec::new() };
        let batches = if is_file { Vec::new() } else { vec![case.model().batch(rows)] };
        let found = case.table.first_new_key(&schema, &batches, &files, None).await.unwrap();
        found.map(|key| key[0].as_primitive::<Int64Type>().value(0))
    };
    for is_file in [false, true] {
        let known = [some(5, &[2], "c"), some(200, &[2], "c"), some(99, &[3], "c")];
        assert_eq!(first(&known, is_file).await, None);
        let deleted = [some(5, &[2], "c"), some(3, &[2], "c"), whole(777, "of no partial update")];
        assert_eq!(first(&deleted, is_file).await, Some(3));
        assert_eq!(first(&[some(7, &[2], "c"), some(300, &[2], "c")], is_file).await, Some(300));
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
            deletes: self.below(5) == 0,
            given: (self.below(3) > 0).then(|| (2..=SEQUENCE.0).filter(|_| self.below(2) == 0).collect()),
        };
        (0..count).map(row).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_in_whatever_order_rows_are_completed_from_those_that_had_their_keys() {
    for seed in 0..18 {
        let mut dice = Dice(seed);
        let options = match seed / 3 % 3 {
            0 => StoreOptions::default(),
            // In pieces, in memory.
            1 => StoreOptions { settled_piece_rows: 4, ..StoreOptions::default() },
            // Each piece too large at first, into data files.
            _ => StoreOptions {
                settled_piece_bytes: 2500,
                flush_bytes: Live::new(100),
                ..StoreOptions::default()
            },
        };
        let mut case = Case::with(Model::ALL[seed as usize % 3], options).await;
        let keys = 1 + dice.below(60);
        for step in 0..60 {
            match dice.below(14) {
                0..=4 => {
                    let count = 1 + dice.below(20);
                    case.put(dice.rows(count, keys, step));
                }
                5 | 6 => {
                    let before = dice.below(3);
                    let before = dice.rows(before, keys, 100 + step);
                    case.put_files(before, &dice.rows(30, keys, step)).await;
                }
                7 | 8 => drop(case.table.flush().await.unwrap()),
                9 => drop(case.table.compact().await.unwrap()),
                10 | 11 => assert_eq!(case.shown().await, case.expected.texts(), "seed {seed}, step {step}"),
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

/// More than a text column of one batch may have, in rows that all come from one update.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_of_rows_with_two_gigabytes_of_texts_is_read_and_flushed() {
    const ROWS: i64 = 2200;
    let columns = vec![
        ColumnDef::new(1, "id", DataType::BigInt).key(),
        ColumnDef::new(2, "n", DataType::BigInt),
        ColumnDef::new(3, "doc", DataType::String),
        ColumnDef::hidden(7, HiddenColumn::Given, DataType::BigInt),
    ];
    let schema = TableSchema::new(SchemaVersion(1), columns);
    let def = TableDef::new(TableId(7), "demo", "events", schema);
    let def = Arc::new(TableDef { keys: KeyModel::Unique, ..def });
    let document = "d".repeat(1 << 20);
    let batch = |ids: std::ops::Range<i64>, n: i64, document: &str, given: Option<&str>| {
        let rows = ids.clone().count();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(ids)),
            Arc::new(Int64Array::from(vec![n; rows])),
            Arc::new(StringArray::from(vec![document; rows])),
            Arc::new(StringArray::from(vec![given; rows])),
        ];
        RecordBatch::try_new(def.schema.arrow(), columns).unwrap()
    };
    let options = StoreOptions { settled_piece_bytes: 64 << 20, ..StoreOptions::default() };
    let bench = Bench::with(options);
    let table = bench.store.create(&def).await.unwrap();
    let mut writer = table.new_file_writer().unwrap();
    for first in (0..ROWS).step_by(50) {
        writer.append(batch(first..first + 50, 1, &document, None)).await.unwrap();
    }
    let files = writer.finish().await.unwrap().into_files();
    let publish = |batches: Vec<RecordBatch>, files: Vec<DataFile>| {
        let version = table.snapshot().version.next();
        let (schema, lsn) = (Arc::clone(&def.schema), Lsn(version.0 * 100));
        let (replaces, partitions) = (None, None);
        table.publish(Publication { version, schema, batches, files, replaces, partitions, lsn }).unwrap();
    };
    publish(Vec::new(), files);
    table.flush().await.unwrap();
    let given = GivenColumns::new([1, 2].map(ColumnId)).text();
    publish(vec![batch(0..ROWS, 7, "", Some(&given))], Vec::new());
    let sum_of = async |snapshot: &crate::Snapshot, table: &Table| {
        let (mut rows, mut sum, mut bytes) = (0, 0, 0);
        for live in snapshot.files.iter() {
            let mut reader = crate::testing::open_file(table, live).await.unwrap();
            while let Some(batch) = reader.next().await.unwrap() {
                rows += batch.num_rows();
                sum += batch.column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>();
                bytes += batch.column(2).as_string::<i32>().iter().flatten().map(str::len).sum::<usize>();
            }
        }
        (rows as i64, sum, bytes)
    };
    let expected = (ROWS, ROWS * 7, ROWS as usize * document.len());
    let settled = table.settled().await.unwrap();
    assert_eq!((settled.rows(), settled.memtable_rows()), (ROWS as u64, 0), "they went to data files");
    table.flush().await.unwrap();
    drop(table);
    let again = bench.store.open(&def).await.unwrap();
    assert_eq!(sum_of(&again.snapshot(), &again).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settling_that_fails_again_and_again_for_one_reason_is_told() {
    let mut case = Case::new(Model::LastRow).await;
    case.put((0..10).map(|key| whole(key, "a")).collect());
    case.table.flush().await.unwrap();
    case.put(vec![some(1, &[3], "b")]);
    assert_eq!(case.table.stuck(), None);
    for times in 1..4 {
        case.bench.faults.fail_next_read(".parquet");
        case.table.settled().await.unwrap_err();
        let stuck = case.table.stuck().map(|stuck| (stuck.doing, stuck.times));
        assert_eq!(stuck, (times > 1).then_some(("settling rows", times)));
        let told = format!("settling rows has failed {times} times since ");
        assert_eq!(case.table.trouble().is_some_and(|trouble| trouble.starts_with(&told)), times > 1);
    }
    case.check("when it can be read again").await;
    assert_eq!(case.table.stuck(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_key_has_the_default_of_its_sequence_when_no_row_gives_one() {
    let def = Model::VisibleSequence.def();
    let columns = def.schema.columns.iter().map(|column| match column.id {
        SEQUENCE => crate::testing::with_default(column.clone(), "100"),
        _ => column.clone(),
    });
    let schema = TableSchema::new(SchemaVersion(1), columns.collect());
    let schema = TableSchema { sequence: def.schema.sequence, ..schema };
    let def = Arc::new(TableDef { schema: Arc::new(schema), ..TableDef::clone(&def) });
    for in_files in [false, true] {
        let bench = Bench::new();
        let table = bench.store.create(&def).await.unwrap();
        let put = async |rows: &[Row]| {
            let batch = Model::VisibleSequence.batch(rows);
            let batch = RecordBatch::try_new(def.schema.arrow(), batch.columns().to_vec()).unwrap();
            let (mut batches, mut files) = (vec![batch], Vec::new());
            if in_files {
                let mut writer = table.new_file_writer().unwrap();
                writer.append(batches.remove(0)).await.unwrap();
                files = writer.finish().await.unwrap().into_files();
            }
            let version = table.snapshot().version.next();
            let (schema, lsn) = (Arc::clone(&def.schema), Lsn(version.0 * 100));
            let (replaces, partitions) = (None, None);
            table
                .publish(Publication { version, schema, batches, files, replaces, partitions, lsn })
                .unwrap();
        };
        let with = |row: Row, sequence| Row { sequence: Some(sequence), ..row };
        put(&[some(1, &[2], "a"), some(2, &[2], "a")]).await;
        put(&[with(whole(1, "too small"), 50), with(whole(2, "b"), 100), some(3, &[3], "c")]).await;
        let shown = |rows: Vec<String>| {
            let cut = |row: String| row.splitn(6, '|').take(5).collect::<Vec<_>>().join("|");
            rows.into_iter().map(cut).collect::<Vec<_>>()
        };
        let expected = ["1|a.2|NULL|NULL|100", "2|b.2|b.3|b.4|100", "3|NULL|c.3|NULL|100"];
        assert_eq!(shown(visible(&table).await), expected, "in files: {in_files}");
        table.flush().await.unwrap();
        put(&[with(whole(3, "too small"), 99), with(some(1, &[4, 5], "d"), 101)]).await;
        let expected = ["1|a.2|NULL|d.4|101", "2|b.2|b.3|b.4|100", "3|NULL|c.3|NULL|100"];
        assert_eq!(shown(visible(&table).await), expected, "in files: {in_files}, after a flush");
    }
}
