//! Access logs as Parquet files, as pandas writes them, except for the ids: those are stored plainly in the file, so that the
//! rows can be renumbered each time the file is sent.

use super::{AccessLog, Second};
use crate::data::FIRST_ID;
use arrow::array::{ArrayRef, Int16Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use memchr::memmem;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// Rows are generated and written in batches of this size, which is also that of a page: ids fill it without a gap.
const BATCH_ROWS: i32 = 10_000;

/// Batches of a row group: about as many rows as pandas writes, and whole pages. A page shared by two row groups would be split.
const GROUP_BATCHES: usize = 100;

/// A file of about `bytes` bytes, and the offset of each row's id in it.
pub(super) fn file(log: &mut AccessLog, bytes: usize) -> (Vec<u8>, Vec<u32>) {
    file_of_groups(log, bytes, GROUP_BATCHES)
}

/// The same, with row groups of the given number of batches.
fn file_of_groups(log: &mut AccessLog, bytes: usize, group_batches: usize) -> (Vec<u8>, Vec<u32>) {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        // Parquet has no type for seconds: they would be plain numbers, not times.
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("clientip", DataType::Utf8, false),
        Field::new("request", DataType::Utf8, false),
        Field::new("status", DataType::Int16, false),
        Field::new("size", DataType::Int32, false),
    ]));
    let id = ColumnPath::from("id");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_column_compression(id.clone(), Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled(id.clone(), false)
        .set_column_encoding(id.clone(), Encoding::PLAIN)
        .set_column_statistics_enabled(id, EnabledStatistics::None)
        .set_data_page_row_count_limit(BATCH_ROWS as usize)
        .set_write_batch_size(BATCH_ROWS as usize)
        .set_max_row_group_row_count(Some(group_batches * BATCH_ROWS as usize))
        .build();
    let mut writer =
        ArrowWriter::try_new(Vec::with_capacity(bytes + bytes / 8), Arc::clone(&schema), Some(properties))
            .expect("the schema has a Parquet form");
    let mut count = 0;
    // The buffered size is known before compression: about half of it is written.
    while count == 0 || writer.bytes_written() + writer.in_progress_size() < bytes {
        let batch = batch(log, &schema, count);
        writer.write(&batch).expect("a vector takes every write");
        count += BATCH_ROWS;
    }
    let body = writer.into_inner().expect("a vector takes every write");
    let ids = places(&body, count);
    (body, ids)
}

fn batch(log: &mut AccessLog, schema: &Arc<Schema>, first: i32) -> RecordBatch {
    let rows: Vec<_> = (0..BATCH_ROWS).map(|_| log.row()).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values((0..BATCH_ROWS).map(|row| FIRST_ID as i32 + first + row))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(
            rows.iter().map(|row| unix_seconds(row.at_second) * 1_000_000),
        )),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.client))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.request))),
        Arc::new(Int16Array::from_iter_values(rows.iter().map(|row| row.status))),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.size as i32))),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns).expect("the columns are the schema's")
}

/// The offsets of the ids, which are numbered from the first on.
fn places(body: &[u8], count: i32) -> Vec<u32> {
    let mut ids = Vec::with_capacity(count as usize);
    let mut from = 0;
    for page in (0..count).step_by(BATCH_ROWS as usize) {
        let first = FIRST_ID as i32 + page;
        let page: Vec<u8> = (first..first + BATCH_ROWS).flat_map(i32::to_le_bytes).collect();
        let start = from + memmem::find(&body[from..], &page).expect("a page holds its ids as they are");
        ids.extend((start..start + page.len()).step_by(4).map(|at| at as u32));
        from = start + page.len();
    }
    ids
}

/// Seconds since 1970-01-01.
fn unix_seconds(second: Second) -> i64 {
    // The days of a year before each month, of 1998.
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let years = i64::from(second.year) - 1970;
    let days =
        years * 365 + (years + 1) / 4 + BEFORE[usize::from(second.month) - 1] + i64::from(second.day) - 1;
    days * 86_400 + i64::from(second.of_day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::access_log::Format;
    use crate::data::{IdForm, Request};
    use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
    use parquet::file::metadata::RowGroupMetaData;
    use std::collections::BTreeSet;

    #[test]
    fn a_file_has_the_rows_of_csv_and_its_ids_can_be_rewritten() {
        let mut log = AccessLog::new(1, Format::Parquet);
        let mut request: Request = log.stream_load(|length| format!("{length:>16}"), 400_000);
        assert_eq!(request.form, IdForm::Binary);
        request.number(1_500_000_000);
        let file = request.bytes[16..].to_vec();
        assert_eq!(request.bytes[..16].trim_ascii(), file.len().to_string().as_bytes());
        let reader = ParquetRecordBatchReader::try_new(bytes::Bytes::from(file), 4096).unwrap();
        let mut csv = AccessLog::new(1, Format::Csv);
        let mut ids = BTreeSet::new();
        for batch in reader {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let text = |column: usize| {
                    arrow::util::display::array_value_to_string(batch.column(column), row)
                        .unwrap()
                        .replace('T', " ")
                };
                ids.insert(text(0));
                let mut line = Vec::new();
                csv.push_row(&mut line);
                let fields: Vec<String> = (1..6).map(text).collect();
                assert_eq!(
                    format!("{FIRST_ID},{}\n", fields.join(",")).replace('T', " "),
                    String::from_utf8(line).unwrap().replace('T', " ")
                );
            }
        }
        assert_eq!((ids.len(), ids.first().unwrap().as_str()), (request.ids.len(), "1500000000"));
    }

    #[test]
    fn ids_are_found_in_every_row_group() {
        let mut log = AccessLog::new(1, Format::Parquet);
        let (file, ids) = file_of_groups(&mut log, 1_500_000, 2);
        let file = bytes::Bytes::from(file);
        let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
        let groups: Vec<i64> =
            builder.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect();
        assert!(groups.len() > 2 && groups[0] == 20_000, "{groups:?}");
        assert_eq!(groups.iter().sum::<i64>(), ids.len() as i64);
        for (row, &place) in ids.iter().enumerate() {
            let id = i32::from_le_bytes(file[place as usize..][..4].try_into().unwrap());
            assert_eq!(id, FIRST_ID as i32 + row as i32);
        }
        // The files of the longest bodies have several groups, too.
        assert!(
            GROUP_BATCHES * BATCH_ROWS as usize <= parquet::file::properties::DEFAULT_MAX_ROW_GROUP_ROW_COUNT
        );
    }
}
