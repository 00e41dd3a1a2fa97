use super::*;
use crate::formats::body::{FieldDecoder, FieldNames};
use crate::formats::format::{BodyFormat, LoadFormat};
use crate::formats::host::PlainHost;
use crate::rows::loader::{BLOCK_ROWS_TARGET, LoadClock};
use crate::testing::{column, lines, table};
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, ListArray, NullArray, StringArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Int32Type};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use tributary_types::{ColumnDef, DataType, DefaultValue, TableDef};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn parquet_with(batches: &[RecordBatch], compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(3000))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn parquet(batches: &[RecordBatch]) -> Vec<u8> {
    parquet_with(batches, Compression::SNAPPY)
}

fn stream_with(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    stream_with(batches, None)
}

fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// Every way to write the batches.
fn bodies(batches: &[RecordBatch]) -> Vec<(ColumnarFormat, Vec<u8>)> {
    vec![
        (ColumnarFormat::Parquet, parquet(batches)),
        (ColumnarFormat::Parquet, parquet_with(batches, Compression::ZSTD(ZstdLevel::default()))),
        (ColumnarFormat::Arrow, stream(batches)),
        (ColumnarFormat::Arrow, stream_with(batches, Some(CompressionType::LZ4_FRAME))),
        (ColumnarFormat::Arrow, stream_with(batches, Some(CompressionType::ZSTD))),
        (ColumnarFormat::Arrow, file(batches)),
        (
            ColumnarFormat::Arrow,
            batches.iter().flat_map(|batch| stream(std::slice::from_ref(batch))).collect(),
        ),
    ]
}

/// Reads a body in chunks of `step` bytes.
fn read(decoder: &mut dyn BodyDecoder, body: &[u8], step: usize) -> Result<Vec<Block>, SqlError> {
    let mut blocks = Vec::new();
    let mut all = |decoder: &mut dyn BodyDecoder| -> Result<(), SqlError> {
        loop {
            blocks.extend(decoder.take_blocks());
            if !decoder.resume()? {
                return Ok(());
            }
        }
    };
    for chunk in body.chunks(step) {
        decoder.push(chunk)?;
        all(decoder)?;
    }
    decoder.finish()?;
    all(decoder)?;
    Ok(blocks)
}

struct Load {
    table: Arc<TableDef>,
    names: Option<Vec<String>>,
    strict: bool,
    utc_offset_seconds: i32,
}

impl Load {
    fn into(columns: Vec<ColumnDef>) -> Self {
        Self { table: table(columns), names: None, strict: false, utc_offset_seconds: 0 }
    }

    fn decode(&self, format: ColumnarFormat, body: &[u8], step: usize) -> Result<crate::Decoded, SqlError> {
        let target = match &self.names {
            None => Target::new(&self.table, None),
            Some(names) => Target::with_ignored_fields(&self.table, names),
        }?;
        let utc_offset_seconds = self.utc_offset_seconds;
        let clock = LoadClock { now_micros: 0, utc_offset_seconds };
        let rules = LoadRules { strict: self.strict, clock };
        let builder = BlockBuilder::new(target.schema());
        let host: Arc<dyn LoadHost> = Arc::new(PlainHost { utc_offset_seconds });
        let mut decoder = BodyFormat::Columnar(format).decoder(target, rules, builder, &host)?;
        let blocks = read(&mut *decoder, body, step)?;
        Ok(crate::Decoded { blocks, counts: decoder.counts(), rejects: decoder.rejects().into_owned() })
    }

    fn lines(&self, body: &[u8]) -> Vec<String> {
        lines(&self.table, &self.decode(ColumnarFormat::Parquet, body, 1000).unwrap())
    }
}

fn not_null(id: u32, name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef { nullable: false, ..column(id, name, data_type) }
}

fn many(rows: std::ops::Range<i32>) -> RecordBatch {
    let names: Vec<Option<String>> =
        rows.clone().map(|row| (row % 7 > 0).then(|| format!("name {row}"))).collect();
    batch(vec![
        ("ID", Arc::new(Int64Array::from_iter_values(rows.clone().map(i64::from)))),
        ("extra", Arc::new(rows.clone().map(|row| Some(row % 2 == 0)).collect::<BooleanArray>())),
        ("name", Arc::new(StringArray::from(names))),
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from_iter_values(rows.map(|row| i64::from(row) * 1_000_000))),
        ),
    ])
}

fn wide() -> Load {
    Load::into(vec![
        not_null(0, "id", DataType::Int),
        column(1, "name", DataType::Varchar { bytes: 20 }),
        column(2, "at", DataType::DateTime { scale: 0 }),
    ])
}

#[test]
fn columns_are_found_by_name_in_every_format_however_the_body_is_cut() {
    let batches = [many(0..5000), many(5000..5001), many(5001..12_000)];
    let load = wide();
    for (number, (format, body)) in bodies(&batches).into_iter().enumerate() {
        for step in [body.len(), 7001] {
            let decoded = load.decode(format, &body, step).unwrap();
            assert_eq!((decoded.counts.total, decoded.counts.loaded), (12_000, 12_000), "{number}");
            assert!(decoded.blocks.iter().all(|block| block.row_count() <= BLOCK_ROWS_TARGET));
            let lines = lines(&load.table, &decoded);
            assert_eq!(lines[0], "0|NULL|1970-01-01T00:00:00");
            assert_eq!(lines[11_999], "11999|name 11999|1970-01-01T03:19:59");
        }
    }
    let small = [many(0..3)];
    for (format, body) in bodies(&small) {
        assert_eq!(lines(&load.table, &load.decode(format, &body, 1).unwrap()).len(), 3);
    }
}

#[test]
fn a_column_that_the_file_leaves_out_takes_its_default() {
    let file = parquet(&[batch(vec![("b", ints(&[Some(1), None]))])]);
    let literal = ColumnDef {
        default: Some(DefaultValue::Literal("7".to_owned())),
        ..not_null(0, "a", DataType::SmallInt)
    };
    let load = Load::into(vec![literal, column(1, "b", DataType::BigInt), column(2, "c", DataType::String)]);
    assert_eq!(load.lines(&file), ["7|1|NULL", "7|NULL|NULL"]);
    let error = |columns| {
        let load = Load::into(columns);
        load.decode(ColumnarFormat::Parquet, &file, 10).unwrap_err().detail_text().to_owned()
    };
    let missing = error(vec![column(1, "b", DataType::Int), not_null(0, "a", DataType::Int)]);
    assert_eq!(missing, "Column has no default value, column=a, and the file has only b");
    let none = error(vec![column(0, "x", DataType::Int), column(1, "y", DataType::Int)]);
    assert_eq!(none, "none of the table's columns (x, y) is in the file, which has b");
}

#[test]
fn a_column_list_names_columns_of_the_file() {
    let file =
        parquet(&[batch(vec![("k", ints(&[Some(1)])), ("v", texts(&[Some("x")])), ("w", ints(&[Some(3)]))])]);
    let columns =
        vec![column(0, "v", DataType::String), column(1, "k", DataType::Int), column(2, "z", DataType::Int)];
    let mut load = Load::into(columns);
    load.names = Some(vec!["K".to_owned(), "w".to_owned(), "v".to_owned()]);
    assert_eq!(load.lines(&file), ["x|1|NULL"]);
    load.names = Some(vec!["k".to_owned(), "z".to_owned()]);
    let error = load.decode(ColumnarFormat::Parquet, &file, 10).unwrap_err();
    assert_eq!(error.detail_text(), "column 'z' is not in the file, which has k, v, w");
}

#[test]
fn a_value_that_does_not_fit_rejects_its_row_with_column_value_and_row() {
    let numbers = ints(&[Some(1), Some(300), None, Some(4)]);
    let names = texts(&[Some("a"), Some("b"), Some("c"), Some("too long")]);
    let rows = batch(vec![("n", numbers), ("name", names)]);
    let mut load = Load::into(vec![
        column(0, "n", DataType::TinyInt),
        not_null(1, "name", DataType::Varchar { bytes: 4 }),
    ]);
    for (format, body) in bodies(std::slice::from_ref(&rows)) {
        load.strict = false;
        let lenient = load.decode(format, &body, 100).unwrap();
        assert_eq!(lines(&load.table, &lenient), ["1|a", "NULL|b", "NULL|c", "4|too "]);
        load.strict = true;
        let strict = load.decode(format, &body, 100).unwrap();
        assert_eq!((strict.counts.total, strict.counts.loaded, strict.counts.filtered), (4, 2, 2));
        assert_eq!(lines(&load.table, &strict), ["1|a", "NULL|c"]);
        assert_eq!(
            strict.rejects[0].to_string(),
            "Reason: column(n) value is incorrect while strict mode is true, src value is 300. src line [row 2: 300 b]; "
        );
        assert!(strict.rejects[1].reason.contains("column_name[name], the length of input is too long"));
    }
    let nulls = parquet(&[batch(vec![("name", texts(&[Some("a"), None]))])]);
    let decoded = load.decode(ColumnarFormat::Parquet, &nulls, 100).unwrap();
    assert_eq!(
        decoded.rejects[0].to_string(),
        "Reason: column(name) values is null while columns is not nullable. src line [row 2: NULL]; "
    );
}

#[test]
fn instants_become_times_of_the_loads_zone_and_other_times_stay() {
    let micros = || TimestampMicrosecondArray::from(vec![Some(0), None]);
    let nanos = TimestampNanosecondArray::from(vec![Some(-1_000_000_500), Some(1_500_000_000)]);
    let rows = batch(vec![
        ("a", Arc::new(micros().with_timezone("Asia/Tokyo"))),
        ("b", Arc::new(micros())),
        ("c", Arc::new(nanos.with_timezone("+00:00"))),
    ]);
    let columns = ["a", "b", "c"].into_iter().zip(0..);
    let mut load =
        Load::into(columns.map(|(name, id)| column(id, name, DataType::DateTime { scale: 1 })).collect());
    load.utc_offset_seconds = 3600;
    for (format, body) in bodies(&[rows]) {
        let decoded = load.decode(format, &body, 100).unwrap();
        assert_eq!(
            lines(&load.table, &decoded),
            [
                "1970-01-01T01:00:00|1970-01-01T00:00:00|1970-01-01T00:59:59",
                "NULL|NULL|1970-01-01T01:00:01.500"
            ],
        );
    }
}

#[test]
fn nested_columns_are_refused_where_they_are_used() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    let rows = batch(vec![("a", ints(&[Some(1)])), ("l", Arc::new(lists))]);
    let file = parquet(&[rows]);
    let load = Load::into(vec![column(0, "a", DataType::Int)]);
    assert_eq!(load.lines(&file), ["1"], "a column that is not read may be of any type");
    let load = Load::into(vec![column(0, "a", DataType::Int), column(1, "l", DataType::String)]);
    let error = load.decode(ColumnarFormat::Parquet, &file, 100).unwrap_err();
    let text = error.detail_text();
    assert!(text.starts_with("Parquet/orc doesn't support complex types in broker/stream load"), "{text}");
    assert!(text.contains("Column 'l' of the file is List"), "{text}");
}

#[test]
fn fields_have_the_files_types_and_the_loads_names() {
    let dictionary: DictionaryArray<Int32Type> = ["x", "y"].into_iter().collect();
    let decimals = Decimal128Array::from(vec![Some(125), None]).with_precision_and_scale(10, 2).unwrap();
    let rows = batch(vec![
        ("d", Arc::new(dictionary) as ArrayRef),
        ("n", Arc::new(decimals)),
        ("b", Arc::new(BinaryArray::from(vec![&b"q"[..], b"r"]))),
        ("day", Arc::new(Date32Array::from(vec![1, 2]))),
        ("nothing", Arc::new(NullArray::new(2))),
    ]);
    let host: Arc<dyn LoadHost> = Arc::new(PlainHost::default());
    let given = ["N", "b"].map(str::to_owned);
    let types = |names: FieldNames<'_>| {
        let mut fields = ColumnarFields::new(names, ColumnarFormat::Arrow, Arc::clone(&host));
        assert!(fields.schema().is_err(), "nothing is known before the body");
        fields.push(&stream(std::slice::from_ref(&rows))).unwrap();
        fields.finish().unwrap();
        assert_eq!(fields.take_batches().iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
        let schema = fields.schema().unwrap();
        schema
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect::<Vec<_>>()
    };
    let named = |name: &str, data_type: ArrowType| (name.to_owned(), data_type);
    assert_eq!(
        types(FieldNames::OfBody),
        [
            named("d", ArrowType::Utf8),
            named("n", ArrowType::Decimal128(10, 2)),
            named("b", ArrowType::Utf8),
            named("day", ArrowType::Date32),
            named("nothing", ArrowType::Utf8),
        ]
    );
    let expected = [named("N", ArrowType::Decimal128(10, 2)), named("b", ArrowType::Utf8)];
    assert_eq!(types(FieldNames::Given(&given)), expected);
}

#[test]
fn a_body_that_is_cut_off_is_an_error_and_an_empty_one_has_no_rows() {
    let load = wide();
    let rows = [many(0..20)];
    for (format, body) in [
        (ColumnarFormat::Parquet, parquet(&rows)),
        (ColumnarFormat::Arrow, stream(&rows)),
        (ColumnarFormat::Arrow, file(&rows)),
    ] {
        assert_eq!(load.decode(format, b"", 1).unwrap().counts, Counts::default());
        for length in 1..body.len() {
            match load.decode(format, &body[..length], length) {
                Err(error) => {
                    assert!(error.detail_text().contains("body can't be read"), "{length}: {error}");
                }
                // Only a stream can end behind a message, and a file's own end is not needed.
                Ok(decoded) => assert!(
                    format == ColumnarFormat::Arrow && matches!(decoded.counts.total, 0 | 20),
                    "{format:?} of {length} bytes: {:?}",
                    decoded.counts
                ),
            }
        }
    }
    for text in ["1,2,3\n4,5,6\n", "{\"id\":1}\n"] {
        for format in [ColumnarFormat::Parquet, ColumnarFormat::Arrow] {
            let error = load.decode(format, text.as_bytes(), 3).unwrap_err();
            assert!(error.detail_text().contains("body can't be read: "), "{error}");
        }
    }
}

#[test]
fn damage_is_an_error_or_other_rows_and_nothing_worse() {
    let load = wide();
    for (format, body) in bodies(&[many(0..5)]) {
        for at in 0..body.len() {
            let mut bad = body.clone();
            bad[at] ^= 1 << (at % 8);
            if let Ok(decoded) = load.decode(format, &bad, bad.len()) {
                lines(&load.table, &decoded);
            }
        }
    }
}

#[test]
fn what_a_message_claims_to_unpack_to_is_bounded() {
    let rows = batch(vec![("id", Arc::new(Float64Array::from(vec![1.5; 1000])))]);
    let body = stream_with(&[rows], Some(CompressionType::ZSTD));
    let mut claims = 0;
    for at in 0..body.len() - 8 {
        if body[at..at + 8] == 8000_i64.to_le_bytes() {
            claims += 1;
            let mut bad = body.clone();
            bad[at..at + 8].copy_from_slice(&(1_i64 << 46).to_le_bytes());
            let load = Load::into(vec![column(0, "id", DataType::Double)]);
            let error = load.decode(ColumnarFormat::Arrow, &bad, 100).unwrap_err();
            assert!(error.detail_text().contains("unpacks to more than 268435456 bytes"), "{error}");
        }
    }
    assert!(claims > 0, "the buffer says how long it is");
}

#[test]
fn streams_with_other_columns_are_no_part_of_a_body() {
    let body = [stream(&[many(0..2)]), stream(&[batch(vec![("id", ints(&[Some(1)]))])])].concat();
    let error = wide().decode(ColumnarFormat::Arrow, &body, 100).unwrap_err();
    assert!(error.detail_text().contains("its streams have different columns"), "{error}");
}

#[test]
fn properties_of_other_formats_are_refused_if_rows_would_differ() {
    let format = |properties: &[(&str, &str)]| LoadFormat::from_properties(properties.iter().copied());
    assert_eq!(
        format(&[("format", "Parquet"), ("column_separator", ","), ("strip_outer_array", "true")])
            .unwrap()
            .body,
        BodyFormat::Columnar(ColumnarFormat::Parquet)
    );
    for (name, value) in [("skip_lines", "1"), ("jsonpaths", "[\"$.a\"]"), ("empty_field_as_null", "true")] {
        let error = format(&[("format", "arrow"), (name, value)]).unwrap_err().to_string();
        assert_eq!(error, format!("{name} has no effect with format=arrow; leave it out"));
    }
}

/// Reads the parts of a body as they are: one after another, with counts and rejects that are added up.
fn read_parts(parts: Vec<Box<dyn BodyDecoder>>) -> Result<crate::Decoded, SqlError> {
    let mut all = crate::Decoded::default();
    for mut part in parts {
        while part.resume()? {
            all.blocks.extend(part.take_blocks());
        }
        crate::Reject::append(&mut all.rejects, all.counts.total, part.rejects().iter().cloned());
        all.counts = all.counts.plus(part.counts());
    }
    Ok(all)
}

impl Load {
    fn decoder(&self, body: &[u8]) -> Box<dyn BodyDecoder> {
        let target = Target::new(&self.table, None).unwrap();
        let rules = LoadRules { strict: self.strict, clock: LoadClock::default() };
        let builder = BlockBuilder::new(target.schema());
        let host: Arc<dyn LoadHost> = Arc::new(PlainHost::default());
        let mut decoder =
            BodyFormat::Columnar(ColumnarFormat::Parquet).decoder(target, rules, builder, &host).unwrap();
        decoder.push(body).unwrap();
        decoder
    }
}

/// A file with lists, NULLs, and rows that do not fit, in row groups of `group_rows`.
fn mixed(rows: i32, group_rows: usize) -> Vec<u8> {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..rows).map(|row| (row % 7 != 0).then(|| (0..row % 5).map(|item| (item % 3 != 1).then_some(item)))),
    );
    let names: Vec<Option<String>> =
        (0..rows).map(|row| (row % 11 > 0).then(|| format!("name {}", row % 300))).collect();
    let batch = batch(vec![
        ("id", Arc::new((0..rows).map(|row| (row % 91 > 0).then_some(row)).collect::<Int32Array>())),
        ("name", Arc::new(StringArray::from(names))),
        ("list", Arc::new(lists)),
    ]);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(130)
        .set_write_batch_size(64)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A table in which some rows of [`mixed`] do not fit.
fn narrow() -> Load {
    let columns = vec![
        not_null(0, "id", DataType::Int),
        column(1, "name", DataType::Varchar { bytes: 7 }),
        column(2, "list", DataType::array(DataType::Int)),
    ];
    Load { strict: true, ..Load::into(columns) }
}

#[test]
fn parts_of_a_file_together_are_the_whole_file() {
    let load = narrow();
    for group_rows in [100_000, 2000, 700] {
        let body = mixed(5000, group_rows);
        let whole = load.decode(ColumnarFormat::Parquet, &body, body.len()).unwrap();
        assert!(whole.counts.filtered > 100 && whole.counts.loaded > 1000, "{:?}", whole.counts);
        for count in 2..=4 {
            let mut decoder = load.decoder(&body);
            let parts = decoder.divide(count, 1).unwrap();
            assert_eq!(parts.len(), count);
            let of_parts = read_parts(parts).unwrap();
            let place = format!("{count} parts, row groups of {group_rows}");
            assert_eq!(lines(&load.table, &of_parts), lines(&load.table, &whole), "{place}");
            assert_eq!(of_parts.counts, whole.counts, "{place}");
            assert_eq!(of_parts.rejects, whole.rejects, "{place}");
            // They were given up, and it is read whole.
            assert!(!decoder.parts_lacked_memory());
            let again = read(&mut *decoder, &[], 1).unwrap();
            let rows: usize = again.iter().map(Block::row_count).sum();
            assert_eq!(rows as u64, whole.counts.loaded, "{place}");
        }
    }
}

#[test]
fn fields_of_parts_together_are_those_of_the_whole_file() {
    let body = mixed(3000, 100_000);
    let host: Arc<dyn LoadHost> = Arc::new(PlainHost::default());
    let format = BodyFormat::Columnar(ColumnarFormat::Parquet);
    let fields = || {
        let mut fields = format.fields(FieldNames::OfBody, &[], &host).unwrap();
        fields.push(&body).unwrap();
        fields
    };
    let rest = |fields: &mut dyn FieldDecoder| {
        let mut rows = Vec::new();
        loop {
            rows.extend(fields.take_batches().iter().flat_map(crate::testing::batch_rows));
            if !fields.resume().unwrap() {
                return rows;
            }
        }
    };
    let mut whole = fields();
    whole.finish().unwrap();
    let mut dividing = fields();
    let parts = dividing.divide(3, 1).unwrap();
    assert_eq!(parts.len(), 3);
    let of_parts: Vec<_> = parts.into_iter().flat_map(|mut part| rest(&mut *part)).collect();
    assert_eq!(of_parts.len(), 3000);
    assert_eq!(of_parts, rest(&mut *whole));
}

#[test]
fn a_body_that_is_small_or_of_another_format_has_no_parts() {
    let load = narrow();
    let body = mixed(5000, 2000);
    for (count, bytes_min) in [(1, 0), (4, 10 << 20)] {
        let mut decoder = load.decoder(&body);
        assert!(decoder.divide(count, bytes_min).unwrap().is_empty());
        let blocks = read(&mut *decoder, &[], 1).unwrap();
        assert!(blocks.iter().map(Block::row_count).sum::<usize>() > 1000);
    }
    assert!(load.decoder(&mixed(900, 100)).divide(4, 0).unwrap().is_empty());
    let load = wide();
    let body = stream(&[many(0..5000)]);
    let target = Target::new(&load.table, None).unwrap();
    let builder = BlockBuilder::new(target.schema());
    let host: Arc<dyn LoadHost> = Arc::new(PlainHost::default());
    let format = BodyFormat::Columnar(ColumnarFormat::Arrow);
    let mut decoder = format.decoder(target, LoadRules::default(), builder, &host).unwrap();
    decoder.push(&body).unwrap();
    assert!(decoder.divide(4, 0).unwrap().is_empty());
    let rest = read(&mut *decoder, &[], 1).unwrap();
    assert_eq!(rest.iter().map(Block::row_count).sum::<usize>(), 5000);
}

#[test]
fn damage_in_a_late_part_is_an_error_of_that_part() {
    let load = narrow();
    let mut body = mixed(5000, 2000);
    let metadata = ::parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(body.clone()))
        .unwrap();
    let (start, length) = metadata.row_groups().last().unwrap().column(1).byte_range();
    body[start as usize..(start + length) as usize].fill(0xff);
    let whole = load.decode(ColumnarFormat::Parquet, &body, body.len()).unwrap_err();
    let mut parts = load.decoder(&body).divide(4, 1).unwrap();
    let late = read_parts(parts.split_off(3)).unwrap_err();
    assert_eq!(late.detail_text(), whole.detail_text());
    assert!(read_parts(parts).is_ok());
}
