use super::*;
use crate::formats::body::FieldNames;
use crate::formats::columnar::ColumnarFormat;
use crate::formats::format::BodyFormat;
use crate::formats::host::PlainHost;
use crate::testing::batch_rows;
use arrow::array::{ArrayRef, Int64Array, ListArray, StringArray};
use arrow::datatypes::Int32Type;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

/// Writes Thrift by hand.
pub(super) mod thrift {
    pub fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// The header of a field.
    fn field(id: u8, last: u8, kind: u8) -> u8 {
        (id - last) << 4 | kind
    }

    /// A field of an I32.
    pub fn number(id: u8, last: u8, value: i64) -> Vec<u8> {
        [vec![field(id, last, 5)], varint((value << 1 ^ value >> 63) as u64)].concat()
    }

    /// A field of an I64.
    pub fn long(id: u8, last: u8, value: i64) -> Vec<u8> {
        [vec![field(id, last, 6)], varint((value << 1 ^ value >> 63) as u64)].concat()
    }

    /// A field of a text.
    pub fn text(id: u8, last: u8, text: &str) -> Vec<u8> {
        [vec![field(id, last, 8)], varint(text.len() as u64), text.as_bytes().to_vec()].concat()
    }

    /// A field of a list, which is written.
    pub fn list(id: u8, last: u8, list: &[u8]) -> Vec<u8> {
        [&[field(id, last, 9)], list].concat()
    }

    /// A field of a list of structs.
    pub fn structs(id: u8, last: u8, structs: &[Vec<u8>]) -> Vec<u8> {
        list(id, last, &[&[0xfc], &varint(structs.len() as u64)[..], &structs.concat()].concat())
    }
}

fn host() -> Arc<dyn LoadHost> {
    Arc::new(PlainHost::default())
}

/// All columns of a file, as a query reads them.
fn rows(body: &[u8]) -> Result<Vec<Vec<String>>, SqlError> {
    let format = BodyFormat::Columnar(ColumnarFormat::Parquet);
    let mut fields = format.fields(FieldNames::OfBody, &[], &host())?;
    fields.push(body)?;
    fields.finish()?;
    let mut rows: Vec<_> = fields.take_batches().iter().flat_map(batch_rows).collect();
    while fields.resume()? {
        rows.extend(fields.take_batches().iter().flat_map(batch_rows));
    }
    Ok(rows)
}

fn written(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// A number, a text that repeats, one that does not, and a list of texts; one row in seven is NULL.
fn example() -> RecordBatch {
    let present = |row: i64| row % 7 != 0;
    let numbers: ArrayRef =
        Arc::new((0..3000).map(|row| present(row).then_some(row)).collect::<Int64Array>());
    let texts = |text: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new((0..3000).map(|row| present(row).then(|| text(row))).collect::<StringArray>())
    };
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..3000_i32)
            .map(|row| (row % 7 != 0).then(|| (0..row % 5).map(|item| (item % 3 != 1).then_some(item)))),
    );
    RecordBatch::try_from_iter_with_nullable([
        ("n", numbers, true),
        ("few", texts(&|row| format!("one of a few texts, number {}", row % 10)), true),
        ("many", texts(&|row| format!("http://example.com/a/long/path/{row}")), true),
        ("l", Arc::new(lists) as ArrayRef, true),
    ])
    .unwrap()
}

#[test]
fn pages_of_every_codec_encoding_and_version_are_read_as_the_library_reads_them() {
    let batch = example();
    let expected = batch_rows(&batch);
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let encodings = [
        None,
        Some(Encoding::PLAIN),
        Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        Some(Encoding::DELTA_BYTE_ARRAY),
    ];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for codec in codecs {
            for encoding in encodings {
                let mut properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(codec)
                    .set_max_row_group_row_count(Some(700))
                    .set_data_page_row_count_limit(100)
                    .set_write_batch_size(50)
                    .set_dictionary_enabled(encoding.is_none());
                if let Some(encoding) = encoding {
                    for column in ["few", "many"] {
                        properties = properties.set_column_encoding(column.into(), encoding);
                    }
                }
                let rows = rows(&written(&batch, properties.build())).unwrap();
                assert_eq!(rows, expected, "{version:?} {codec:?} {encoding:?}");
            }
        }
    }
}

#[test]
fn rows_of_a_batch_are_as_many_as_their_pages_allow() {
    assert_eq!(rows_of_batch(1_000_000, 150 << 20, 16), 8192);
    assert_eq!(rows_of_batch(1000, 1000 << 20, 16), 16);
    // Long rows that are adjacent.
    assert_eq!(rows_of_batch(1 << 30, 4 << 30, 16), 512);
    assert_eq!(rows_of_batch(100, 0, 16_384 * 16), 64);
    assert_eq!(rows_of_batch(0, 0, 0), 8192);
    assert_eq!(rows_of_batch(1, u64::MAX, usize::MAX as u64), 1);
}

#[test]
fn tails_that_are_of_no_parquet_file_are_named() {
    let error = |body: &[u8]| rows(body).unwrap_err().detail_text().to_owned();
    assert!(error(b"PAR1").contains("it is no Parquet file"));
    assert!(error(b"PAR1 and so on").contains("it does not end as a Parquet file does"));
    assert!(error(b"PAR1\0\0\0\0PARE").contains("encrypted files are not read"));
    assert!(error(b"PAR1\xff\xff\xff\x7fPAR1").contains("its footer has 2147483647 bytes, and the file 12"));
}

#[test]
fn damage_is_an_error_or_other_rows_and_nothing_worse() {
    let properties = WriterProperties::builder().set_compression(Compression::GZIP(GzipLevel::default()));
    let body = written(&example().slice(0, 100), properties.build());
    for at in 0..body.len() {
        let mut bad = body.clone();
        bad[at] ^= 1 << (at % 8);
        drop(rows(&bad));
    }
    for length in 1..body.len() {
        assert!(rows(&body[..length]).is_err(), "{length}");
    }
}
