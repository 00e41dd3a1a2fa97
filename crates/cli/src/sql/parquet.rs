//! Rows as a Parquet file, with the types of their columns.
//!
//! Not here: where the file goes.

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::Arc;
use tributary_client::{ColumnKind, Rows};

/// Rows that become arrays at once.
const BATCH_ROWS: usize = 8192;
/// The most digits of a DECIMAL in a file.
const DIGITS_MAX: u8 = 38;

/// Writes the rows.
///
/// # Errors
/// A value does not fit the type that its column has, such as the date `0000-00-00`; or those of writing.
pub(super) fn write(out: &mut (impl Write + Send), rows: &Rows) -> io::Result<()> {
    let fields: Vec<_> = rows
        .columns
        .iter()
        .zip(&rows.kinds)
        .map(|(name, kind)| Field::new(name, data_type(*kind), true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut writer =
        ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties.build())).map_err(other)?;
    for piece in rows.rows.chunks(BATCH_ROWS) {
        let column = |(at, field): (usize, &Arc<Field>)| {
            let texts: StringArray = piece.iter().map(|row| row[at].as_deref()).collect();
            array(texts, field)
        };
        let columns = schema.fields().iter().enumerate().map(column).collect::<io::Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(unfit)?;
        writer.write(&batch).map_err(other)?;
    }
    writer.close().map(drop).map_err(other)
}

fn array(texts: StringArray, field: &Field) -> io::Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&texts, field.data_type(), &strict).map_err(|error| {
        let text = format!("column `{}` as {}: {error}; CAST it AS STRING", field.name(), field.data_type());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

fn unfit(error: ArrowError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn other(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

/// The type of a column by its number in MySQL's protocol. Whatever is no number and no date is a text.
fn data_type(kind: ColumnKind) -> DataType {
    match (kind.code, kind.unsigned) {
        (1, false) => DataType::Int8,
        (1, true) => DataType::UInt8,
        (2 | 13, false) => DataType::Int16,
        (2 | 13, true) => DataType::UInt16,
        (3 | 9, false) => DataType::Int32,
        (3 | 9, true) => DataType::UInt32,
        (8, false) => DataType::Int64,
        (8, true) => DataType::UInt64,
        (4, _) => DataType::Float32,
        (5, _) => DataType::Float64,
        (0 | 246, _) if kind.decimals <= DIGITS_MAX => {
            DataType::Decimal128(DIGITS_MAX, kind.decimals.cast_signed())
        }
        (10, _) => DataType::Date32,
        (7 | 12, _) => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => DataType::Utf8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, RecordBatchReader};
    use arrow::datatypes::{Date32Type, Decimal128Type, Int64Type, TimestampMicrosecondType, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

    fn rows(kinds: &[(u8, bool, u8)], row: &[Option<&str>]) -> Rows {
        let kind = |&(code, unsigned, decimals)| ColumnKind { code, unsigned, decimals };
        Rows {
            columns: (0..kinds.len()).map(|at| format!("c{at}")).collect(),
            kinds: kinds.iter().map(kind).collect(),
            rows: vec![row.iter().map(|value| value.map(str::to_owned)).collect(), vec![None; kinds.len()]],
        }
    }

    #[test]
    fn values_have_the_types_of_their_columns() {
        let kinds =
            [(8, false, 0), (8, true, 0), (246, false, 2), (10, false, 0), (12, false, 6), (253, false, 0)];
        let row = [
            Some("-9223372036854775808"),
            Some("18446744073709551615"),
            Some("-1234567.89"),
            Some("1969-12-31"),
            Some("2024-02-29 12:34:56.789012"),
            Some("é\n"),
        ];
        let mut file = Vec::new();
        write(&mut file, &rows(&kinds, &row)).unwrap();
        let mut read = ParquetRecordBatchReader::try_new(bytes::Bytes::from(file), 10).unwrap();
        let batch = read.next().unwrap().unwrap();
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), i64::MIN);
        assert_eq!(batch.column(1).as_primitive::<UInt64Type>().value(0), u64::MAX);
        assert_eq!(batch.column(2).as_primitive::<Decimal128Type>().value(0), -123_456_789);
        assert_eq!(batch.column(3).as_primitive::<Date32Type>().value(0), -1);
        assert_eq!(
            batch.column(4).as_primitive::<TimestampMicrosecondType>().value(0),
            1_709_210_096_789_012
        );
        assert_eq!(batch.column(5).as_string::<i32>().value(0), "é\n");
        assert!(batch.columns().iter().all(|column| column.is_null(1)));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_its_column() {
        let error = write(&mut Vec::new(), &rows(&[(10, false, 0)], &[Some("0000-00-00")])).unwrap_err();
        assert!(
            error.to_string().contains("column `c0` as Date32") && error.to_string().contains("0000-00-00")
        );
    }

    #[test]
    fn no_rows_are_a_file_with_columns() {
        let mut none = rows(&[(3, false, 0)], &[None]);
        none.rows.clear();
        let mut file = Vec::new();
        write(&mut file, &none).unwrap();
        let read = ParquetRecordBatchReader::try_new(bytes::Bytes::from(file), 10).unwrap();
        assert_eq!(read.schema().field(0).data_type(), &DataType::Int32);
    }
}
