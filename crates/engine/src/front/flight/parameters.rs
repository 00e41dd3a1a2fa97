//! The parameters of an execution, from a row of a batch.
//!
//! The decoder of prepared INSERTs reads MySQL's binary form, so values are written in that: numbers as numbers, anything else as
//! text.

use crate::session::Parameters;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::collections::BTreeMap;
use tributary_decode::{BoundParams, ParamType};
use tributary_flight::ParameterRow;
use tributary_mysql::lenenc_bytes;
use tributary_query::ScalarValue;
use tributary_types::{ErrorCode, SqlError};

/// MySQL's numbers of types.
const DOUBLE: u8 = 5;
const LONGLONG: u8 = 8;
const VAR_STRING: u8 = 253;

/// The values of one execution.
#[derive(Debug, Default)]
pub(super) struct ArrowParameters {
    scalars: Vec<ScalarValue>,
    types: Vec<ParamType>,
    null_bitmap: Vec<u8>,
    values: Vec<u8>,
    /// None were sent in advance.
    long_data: BTreeMap<u16, Vec<u8>>,
}

impl ArrowParameters {
    /// The values of a row.
    ///
    /// # Errors
    /// One is of a type that parameters can't have.
    pub fn of(row: &ParameterRow) -> Result<Self, SqlError> {
        let mut parameters = Self::default();
        for (index, column) in row.batch.columns().iter().enumerate() {
            let pushed = scalar(column, row.row).and_then(|value| parameters.push(value));
            pushed.map_err(|what| {
                let text = format!("parameter {} can't be used: {what}", index + 1);
                SqlError::detail(ErrorCode::WrongArguments, text)
            })?;
        }
        Ok(parameters)
    }

    /// Refuses another number of values than the statement has `?`.
    pub fn check_count(&self, count: usize) -> Result<(), SqlError> {
        let given = self.scalars.len();
        if given == count {
            return Ok(());
        }
        let text = format!(
            "Incorrect arguments to EXECUTE: the statement has {count} parameters, and {given} were bound"
        );
        Err(SqlError::new(ErrorCode::WrongArguments, text))
    }

    /// The size of the values.
    pub fn bytes(&self) -> u64 {
        self.values.len() as u64
    }

    fn push(&mut self, value: ScalarValue) -> Result<(), String> {
        let index = self.scalars.len();
        if index.is_multiple_of(8) {
            self.null_bitmap.push(0);
        }
        let (column_type, unsigned) = match &value {
            ScalarValue::Null => {
                self.null_bitmap[index / 8] |= 1 << (index % 8);
                (VAR_STRING, false)
            }
            ScalarValue::Int64(Some(number)) => {
                self.values.extend_from_slice(&number.to_le_bytes());
                (LONGLONG, false)
            }
            ScalarValue::UInt64(Some(number)) => {
                self.values.extend_from_slice(&number.to_le_bytes());
                (LONGLONG, true)
            }
            ScalarValue::Float64(Some(number)) => {
                self.values.extend_from_slice(&number.to_le_bytes());
                (DOUBLE, false)
            }
            ScalarValue::Binary(Some(bytes)) => {
                lenenc_bytes(&mut self.values, bytes);
                (VAR_STRING, false)
            }
            ScalarValue::Utf8(Some(text)) => {
                lenenc_bytes(&mut self.values, text.as_bytes());
                (VAR_STRING, false)
            }
            other => {
                let array = other.to_array().map_err(|error| error.to_string())?;
                lenenc_bytes(&mut self.values, text(&array, 0)?.as_bytes());
                (VAR_STRING, false)
            }
        };
        self.types.push(ParamType { column_type, unsigned });
        self.scalars.push(value);
        Ok(())
    }
}

impl Parameters for ArrowParameters {
    fn bind<'a>(&'a self, types: &'a mut Vec<ParamType>) -> BoundParams<'a> {
        types.clone_from(&self.types);
        BoundParams {
            types,
            null_bitmap: &self.null_bitmap,
            values: &self.values,
            long_data: &self.long_data,
        }
    }

    fn values(&self) -> Result<Vec<ScalarValue>, SqlError> {
        Ok(self.scalars.clone())
    }
}

/// A value as parameters of MySQL's protocol have it: a number, bytes, or a text.
fn scalar(column: &ArrayRef, row: usize) -> Result<ScalarValue, String> {
    let value = ScalarValue::try_from_array(column, row).map_err(|error| error.to_string())?;
    if value.is_null() {
        return Ok(ScalarValue::Null);
    }
    let cast = |to: &DataType| value.cast_to(to).map_err(|error| error.to_string());
    match column.data_type() {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => cast(&DataType::Int64),
        DataType::UInt64 => match cast(&DataType::Int64) {
            Ok(number) if !number.is_null() => Ok(number),
            _ => Ok(value),
        },
        DataType::Float16 | DataType::Float32 | DataType::Float64 => cast(&DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => cast(&DataType::Utf8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            match cast(&DataType::Binary)? {
                ScalarValue::Binary(Some(bytes)) => Ok(match String::from_utf8(bytes) {
                    Ok(text) => ScalarValue::Utf8(Some(text)),
                    Err(error) => ScalarValue::Binary(Some(error.into_bytes())),
                }),
                other => Ok(other),
            }
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
            let text = text(column, row)?;
            Ok(tributary_query::decimal(&text).unwrap_or(ScalarValue::Utf8(Some(text))))
        }
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Time32(_)
        | DataType::Time64(_) => Ok(ScalarValue::Utf8(Some(text(column, row)?))),
        other => Err(format!("{other} is no type of parameters; send numbers, texts, bytes, dates or times")),
    }
}

/// The text of a date, a time or a decimal, as MySQL writes it. A time with a zone is in UTC.
fn text(column: &ArrayRef, row: usize) -> Result<String, String> {
    let options = FormatOptions::new()
        .with_date_format(Some("%Y-%m-%d"))
        .with_datetime_format(Some("%Y-%m-%d"))
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_time_format(Some("%H:%M:%S%.f"));
    let formatter = ArrayFormatter::try_new(column, &options).map_err(|error| error.to_string())?;
    formatter.value(row).try_to_string().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float32Array, Int8Array, RecordBatch, StringArray,
        TimestampMicrosecondArray, UInt64Array,
    };
    use std::sync::Arc;

    fn parameters(columns: Vec<ArrayRef>) -> Result<ArrowParameters, SqlError> {
        let columns = columns.into_iter().enumerate().map(|(index, column)| (format!("c{index}"), column));
        let batch = RecordBatch::try_from_iter(columns).expect("of one length");
        ArrowParameters::of(&ParameterRow { batch, row: 0 })
    }

    #[test]
    fn values_of_a_row_are_numbers_and_texts() {
        let decimal = Decimal128Array::from(vec![12345]).with_precision_and_scale(10, 2).expect("it fits");
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int8Array::from(vec![-3])),
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            Arc::new(BooleanArray::from(vec![true])),
            Arc::new(Float32Array::from(vec![0.5])),
            Arc::new(StringArray::from(vec![None::<&str>])),
            Arc::new(StringArray::from(vec!["ü"])),
            Arc::new(Date32Array::from(vec![20_000])),
            Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_250_000])),
            Arc::new(decimal),
        ];
        let bound = parameters(columns).expect("all are legal");
        let texts: Vec<String> = bound.scalars[..8].iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["-3", "18446744073709551615", "1", "0.5", "NULL", "ü", "2024-10-04", "2023-11-14 22:13:20.250"]
        );
        assert_eq!(bound.scalars[8], ScalarValue::Decimal128(Some(12345), 5, 2));
        assert_eq!(bound.null_bitmap, [1 << 4, 0]);
        let mut types = Vec::new();
        let told = bound.bind(&mut types);
        let kinds: Vec<u8> = told.types.iter().map(|told| told.column_type).collect();
        assert_eq!(kinds, [8, 8, 8, 5, 253, 253, 253, 253, 253]);
        assert!(told.types[1].unsigned && !told.types[0].unsigned);
        assert_eq!(told.values[..8], (-3i64).to_le_bytes());
        assert!(told.values.ends_with(b"\x06123.45"));
        assert!(bound.check_count(9).is_ok() && bound.check_count(8).is_err());
    }
}
