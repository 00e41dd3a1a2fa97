//! Small bodies that claim much memory: each is refused with a text, or loaded, within a limit.
//!
//! The allocator of this test ends the process above its limit. So does a machine without memory: neither is a panic that can be
//! caught.

use arrow::array::{
    ArrayRef, BinaryViewBuilder, DictionaryArray, Int32Array, LargeStringArray, RecordBatch, StringArray,
    StringViewBuilder,
};
use arrow::buffer::Buffer;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use cap::Cap;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use std::alloc::System;
use std::sync::{Arc, Mutex, MutexGuard};
use tributary_decode::{
    BlockBuilder, BodyFormat, ColumnarFormat, Counts, FieldNames, LoadHost, LoadRules, MemoryAccount,
    PlainHost, Spool, Target,
};
use tributary_types::{ColumnDef, DataType, SchemaVersion, SqlError, TableDef, TableId, TableSchema};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const MIB: usize = 1024 * 1024;
/// The memory that the host of these tests grants a decoder.
const GRANTED: usize = 64 * MIB;
/// The memory of a body: the granted part, and the conversion of a piece's rows.
const BUDGET: usize = 2 * GRANTED;

/// Keeps the other tests of this process from allocating, until it is dropped.
struct Alone {
    _turn: MutexGuard<'static, ()>,
}

impl Alone {
    fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        Self { _turn: TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner) }
    }

    /// Ends the process if `work` allocates more than `bytes` at a time.
    fn limited<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        ALLOCATOR.set_limit(ALLOCATOR.allocated() + bytes).expect("it is more than there is");
        let done = work();
        ALLOCATOR.set_limit(usize::MAX).expect("it is more than there is");
        done
    }
}

/// A table with the STRING 'c0'.
fn strings() -> Arc<TableDef> {
    let schema = TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(0, "c0", DataType::String)]);
    Arc::new(TableDef::new(TableId(1), "db", "t", schema))
}

/// A host with little memory.
#[derive(Default)]
struct Host {
    /// Granted to all accounts.
    granted: Arc<Mutex<usize>>,
}

impl LoadHost for Host {
    fn spool(&self) -> Box<dyn Spool> {
        PlainHost::default().spool()
    }

    fn offset_seconds(&self, _unix_micros: i64) -> i32 {
        0
    }

    fn zone_offset_seconds(&self, _zone: &str, _unix_micros: i64) -> Option<i32> {
        None
    }

    fn memory(&self) -> Box<dyn MemoryAccount> {
        Box::new(Account { granted: Arc::clone(&self.granted), own: Mutex::new(0) })
    }
}

struct Account {
    granted: Arc<Mutex<usize>>,
    own: Mutex<usize>,
}

impl MemoryAccount for Account {
    fn resize(&self, bytes: usize) -> bool {
        let mut all = self.granted.lock().expect("no panic");
        let mut own = self.own.lock().expect("no panic");
        let resized = *all - *own + bytes;
        let is_granted = bytes <= *own || resized <= GRANTED;
        if is_granted {
            (*all, *own) = (resized, bytes);
        }
        is_granted
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.resize(0);
    }
}

fn host() -> Arc<dyn LoadHost> {
    Arc::new(Host::default())
}

/// Loads a body, one block at a time. Returns the number of blocks, and the bytes of the largest.
fn load(
    table: &Arc<TableDef>,
    format: ColumnarFormat,
    body: &[u8],
) -> Result<(Counts, usize, usize), SqlError> {
    let target = Target::new(table, None)?;
    let builder = BlockBuilder::new(target.schema());
    let mut decoder = BodyFormat::Columnar(format).decoder(target, LoadRules::default(), builder, &host())?;
    let (mut blocks, mut largest) = (0, 0);
    let mut take = |taken: Vec<tributary_decode::Block>| {
        blocks += taken.len();
        largest = taken.iter().map(tributary_decode::Block::len_bytes).chain([largest]).max().unwrap_or(0);
    };
    for chunk in body.chunks(256 * 1024) {
        decoder.push(chunk)?;
        take(decoder.take_blocks());
        while decoder.resume()? {
            take(decoder.take_blocks());
        }
    }
    decoder.finish()?;
    take(decoder.take_blocks());
    while decoder.resume()? {
        take(decoder.take_blocks());
    }
    Ok((decoder.counts(), blocks, largest))
}

/// Reads a file as a query does, a batch at a time. Returns the rows, and the bytes of the largest batch.
fn read(format: ColumnarFormat, body: &[u8]) -> Result<(usize, usize), SqlError> {
    let mut fields = BodyFormat::Columnar(format).fields(FieldNames::OfBody, &[], &host())?;
    let (mut rows, mut largest) = (0, 0);
    let mut take = |batches: Vec<RecordBatch>| {
        for batch in batches {
            rows += batch.num_rows();
            largest = largest.max(batch.get_array_memory_size());
        }
    };
    for chunk in body.chunks(256 * 1024) {
        fields.push(chunk)?;
        take(fields.take_batches());
        while fields.resume()? {
            take(fields.take_batches());
        }
    }
    fields.finish()?;
    take(fields.take_batches());
    while fields.resume()? {
        take(fields.take_batches());
    }
    Ok((rows, largest))
}

/// The refusals of a body, loaded and read.
fn refusals(alone: &Alone, format: ColumnarFormat, body: &[u8]) -> [String; 2] {
    let text = |error: SqlError| error.detail_text().to_owned();
    let loaded = alone.limited(BUDGET, || load(&strings(), format, body)).expect_err("it is too large");
    [text(loaded), text(alone.limited(BUDGET, || read(format, body)).expect_err("it is too large"))]
}

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let named = columns.into_iter().enumerate().map(|(at, column)| (format!("c{at}"), column, true));
    RecordBatch::try_from_iter_with_nullable(named).expect("written to memory")
}

fn ipc(batch: &RecordBatch) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(CompressionType::ZSTD))
        .expect("written to memory");
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).expect("written to memory");
    writer.write(batch).expect("written to memory");
    writer.into_inner().expect("written to memory")
}

fn parquet(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build()))
        .expect("written to memory");
    writer.write(batch).expect("written to memory");
    writer.into_inner().expect("written to memory")
}

fn zstd() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()))
}

/// A Parquet file with only a footer.
fn of_footer(footer: &[u8]) -> Vec<u8> {
    [b"PAR1", footer, &(footer.len() as u32).to_le_bytes()[..], b"PAR1"].concat()
}

/// One text in a dictionary that all rows share.
fn shared(values: ArrayRef, rows: usize) -> ArrayRef {
    Arc::new(DictionaryArray::new(Int32Array::from(vec![0; rows]), values))
}

#[test]
fn a_footer_of_60_bytes_that_claims_billions_of_row_groups_is_refused() {
    let alone = Alone::new();
    // version 1, one element of the schema (a group 'a' without children), no rows, 2^31 - 1 row groups.
    let footer = [0x15, 2, 0x19, 0x1c, 0x48, 1, b'a', 0, 0x16, 0, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07];
    for text in refusals(&alone, ColumnarFormat::Parquet, &of_footer(&footer)) {
        assert!(text.contains("a list has 2147483647 elements"), "{text}");
    }
}

#[test]
fn a_schema_that_nests_without_end_is_refused() {
    let alone = Alone::new();
    let mut footer = vec![0x15, 2, 0x19, 0xfc];
    let depth = 200_000_u32;
    footer.extend([depth as u8 | 0x80, (depth >> 7) as u8 | 0x80, (depth >> 14) as u8]);
    // A group 'a' that is required and has one child.
    footer.extend([0x35, 0, 0x18, 1, b'a', 0x15, 2, 0].repeat(depth as usize));
    for text in refusals(&alone, ColumnarFormat::Parquet, &of_footer(&footer)) {
        assert!(text.contains("its columns nest more than 64 deep"), "{text}");
    }
}

#[test]
fn views_that_all_show_one_large_buffer_are_cut_and_too_long() {
    let alone = Alone::new();
    let mut texts = StringViewBuilder::new();
    let block = texts.append_block(Buffer::from_vec(vec![b'a'; 8 * MIB]));
    (0..8192).for_each(|_| texts.try_append_view(block, 0, 8 << 20).unwrap());
    let mut bytes = BinaryViewBuilder::new();
    let block = bytes.append_block(Buffer::from_vec(vec![b'a'; MIB]));
    (0..512).for_each(|_| bytes.try_append_view(block, 0, 1 << 20).unwrap());
    let long = ipc(&batch(vec![Arc::new(texts.finish())]));
    let whole = ipc(&batch(vec![Arc::new(bytes.finish())]));
    let table = strings();
    let (counts, blocks, _) = alone.limited(BUDGET, || load(&table, ColumnarFormat::Arrow, &long)).unwrap();
    assert_eq!((counts.filtered, blocks), (8192, 0));
    let (counts, _, largest) = alone.limited(BUDGET, || load(&table, ColumnarFormat::Arrow, &whole)).unwrap();
    assert_eq!(counts.loaded, 512);
    assert!(largest <= 5 * MIB, "{largest}");
    let (rows, largest) = alone.limited(BUDGET, || read(ColumnarFormat::Arrow, &whole)).unwrap();
    assert_eq!(rows, 512);
    assert!(largest <= 9 * MIB, "{largest}");
}

#[test]
fn long_texts_that_a_dictionary_has_once_are_loaded_in_many_blocks() {
    let alone = Alone::new();
    let text = "a".repeat(300_000);
    let (short, long) = (StringArray::from(vec![&text[..]]), LargeStringArray::from(vec![&text[..]]));
    let large = batch(vec![shared(Arc::new(long), 1024)]);
    let small = batch(vec![shared(Arc::new(short), 1024)]);
    let bodies = [
        (ColumnarFormat::Arrow, ipc(&large), 1024),
        (ColumnarFormat::Arrow, ipc(&small), 1024),
        (ColumnarFormat::Parquet, parquet(&small, zstd()), 1024),
    ];
    for (format, body, rows) in bodies {
        let loaded = alone.limited(BUDGET, || load(&strings(), format, &body));
        let (counts, blocks, largest) = loaded.unwrap();
        assert_eq!(counts.loaded, rows, "{format:?}");
        // Each has as many rows as 4 MiB, and a row more or less.
        let expected = rows as usize / 14..=rows as usize / 12;
        assert!(expected.contains(&blocks) && largest <= 5 * MIB, "{format:?}: {blocks}, {largest}");
    }
    let body = parquet(&small, zstd());
    assert_eq!(alone.limited(BUDGET, || read(ColumnarFormat::Parquet, &body)).unwrap().0, 1024);
}

#[test]
fn dictionaries_of_a_stream_count_together() {
    let alone = Alone::new();
    let zeros: ArrayRef = Arc::new(StringArray::from(vec!["\0".repeat(4 * MIB)]));
    let body = ipc(&batch((0..24).map(|_| shared(Arc::clone(&zeros), 1)).collect()));
    assert!(body.len() < MIB, "{}", body.len());
    for text in refusals(&alone, ColumnarFormat::Arrow, &body) {
        assert!(text.contains("loads hold all the memory"), "{text}");
    }
}

#[test]
fn pages_of_all_columns_count_together() {
    let alone = Alone::new();
    let zeros: ArrayRef = Arc::new(StringArray::from(vec!["\0".repeat(4 * MIB)]));
    let columns = batch((0..24).map(|_| Arc::clone(&zeros)).collect());
    for has_dictionary in [false, true] {
        let body = parquet(&columns, zstd().set_dictionary_enabled(has_dictionary));
        assert!(body.len() < MIB, "{}", body.len());
        let format = ColumnarFormat::Parquet;
        let read = alone.limited(BUDGET, || read(format, &body)).expect_err("it is too large");
        assert!(read.detail_text().contains("loads hold all the memory"), "{read}");
        // Only the table's columns are read.
        let (counts, ..) = alone.limited(BUDGET, || load(&strings(), format, &body)).unwrap();
        assert_eq!((counts.total, counts.filtered), (1, 1));
    }
}

#[test]
fn a_page_that_unpacks_to_more_than_its_head_says_stops_there() {
    let alone = Alone::new();
    let zeros: ArrayRef = Arc::new(StringArray::from(vec!["\0".repeat(4 * MIB)]));
    let gzip = Compression::GZIP(parquet::basic::GzipLevel::default());
    let properties = WriterProperties::builder().set_compression(gzip).set_dictionary_enabled(false);
    let mut body = parquet(&batch(vec![zeros]), properties);
    // The page's header is after the mark: its kind, and its size of 4 MiB and some bytes.
    assert_eq!((&body[..4], body[4], body[6]), (&b"PAR1"[..], 0x15, 0x15));
    assert!(body[7..10].iter().all(|byte| byte & 0x80 != 0) && body[10] & 0x80 == 0);
    body[7..11].copy_from_slice(&[0xd0, 0x8f, 0x80, 0x00]);
    let loaded = alone.limited(MIB, || load(&strings(), ColumnarFormat::Parquet, &body));
    let error = loaded.unwrap_err();
    assert!(error.detail_text().contains("and should to 1000"), "{error}");
}

#[test]
fn texts_that_repeat_the_one_before_count_in_full() {
    let alone = Alone::new();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(MIB); 100]));
    let properties = zstd()
        .set_dictionary_enabled(false)
        .set_column_encoding("c0".into(), Encoding::DELTA_BYTE_ARRAY)
        .set_data_page_size_limit(usize::MAX);
    let body = parquet(&batch(vec![texts]), properties);
    assert!(body.len() < 2 * MIB, "{}", body.len());
    for text in refusals(&alone, ColumnarFormat::Parquet, &body) {
        assert!(text.contains("loads hold all the memory"), "{text}");
    }
}

#[test]
fn parts_that_need_too_much_together_are_read_as_one() {
    let alone = Alone::new();
    // A dictionary of 40 MiB, which each part needs; nearly all rows are NULL.
    let text = |number: usize| "0123456789".repeat(70_000) + &number.to_string();
    let texts: StringArray =
        (0..150_000).map(|row| (row % 1500 == 7).then(|| text(row / 1500 % 60))).collect();
    let properties = zstd()
        .set_dictionary_page_size_limit(usize::MAX)
        .set_max_row_group_row_count(Some(1 << 20))
        .set_data_page_row_count_limit(1000);
    let body = parquet(&batch(vec![Arc::new(texts)]), properties);
    let host = Arc::new(Host::default());
    let of_load: Arc<dyn LoadHost> = Arc::<Host>::clone(&host);
    let target = Target::new(&strings(), None).expect("it has columns");
    let builder = BlockBuilder::new(target.schema());
    let format = BodyFormat::Columnar(ColumnarFormat::Parquet);
    let mut decoder =
        format.decoder(target, LoadRules::default(), builder, &of_load).expect("it is a format");
    alone.limited(BUDGET, || {
        decoder.push(&body).expect("it is gathered");
        let mut parts = decoder.divide(2, 0).expect("it is whole");
        assert_eq!(parts.len(), 2);
        let (mut refused, mut is_more) = (None, true);
        while refused.is_none() && is_more {
            is_more = false;
            for part in &mut parts {
                match part.resume() {
                    Ok(has_rows) => is_more |= has_rows,
                    Err(error) => refused = Some(error),
                }
                part.take_blocks();
            }
        }
        let text = refused.expect("one was refused").detail_text().to_owned();
        assert!(text.contains("loads hold all the memory"), "{text}");
        assert!(decoder.parts_lacked_memory());
        drop(parts);
        decoder.finish().expect("there is memory for one");
        decoder.take_blocks();
        while decoder.resume().expect("there is memory for one") {
            decoder.take_blocks();
        }
    });
    assert_eq!(decoder.counts().loaded, 150_000);
    drop(decoder);
    assert_eq!(*host.granted.lock().expect("no panic"), 0, "everything was given back");
}
