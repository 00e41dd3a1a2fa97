//! Arrow arrays as rows of cells.

use crate::cells::cell::Cell;
use crate::cells::nested::NestedCells;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array, LargeBinaryArray, LargeStringArray,
    RunArray, StringArray, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType, TimeUnit};
use arrow::error::ArrowError;
use std::sync::Arc;

/// An array of one of the types from which cells are made.
pub(crate) enum ArrayCells {
    Null,
    Bool(BooleanArray),
    Int(Int64Array),
    UInt(UInt64Array),
    Float(Float32Array),
    Double(Float64Array),
    Decimal(Decimal128Array, i8),
    Date(Date32Array),
    /// Values, and the offset of each to the load's wall-clock time, in µs.
    Timestamp(TimestampMicrosecondArray, i64),
    Text(StringArray),
    LargeText(LargeStringArray),
    TextView(StringViewArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
    FixedBinary(FixedSizeBinaryArray),
    /// Texts or bytes that rows share, which may be long: each row's index of its value, if it has one.
    Shared(Vec<Option<usize>>, Box<Self>),
    Nested(Box<NestedCells>),
}

impl ArrayCells {
    /// Wraps an array; casts it first (losing nothing) if its type has no cell. Texts and bytes are not copied.
    pub(crate) fn new(array: &ArrayRef, utc_offset_seconds: i32) -> Result<Self, ArrowError> {
        let through = |to: DataType| Self::new(&cast(array, &to)?, utc_offset_seconds);
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool(array.as_boolean().clone()),
            DataType::Int64 => Self::Int(array.as_primitive().clone()),
            DataType::UInt64 => Self::UInt(array.as_primitive().clone()),
            DataType::Float32 => Self::Float(array.as_primitive().clone()),
            DataType::Float64 => Self::Double(array.as_primitive().clone()),
            DataType::Decimal128(_, scale) => Self::Decimal(array.as_primitive().clone(), *scale),
            DataType::Date32 => Self::Date(array.as_primitive().clone()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let shift = if zone.is_some() { i64::from(utc_offset_seconds) * 1_000_000 } else { 0 };
                Self::Timestamp(array.as_primitive().clone(), shift)
            }
            DataType::Utf8 => Self::Text(array.as_string().clone()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string().clone()),
            DataType::Utf8View => Self::TextView(array.as_string_view().clone()),
            DataType::Binary => Self::Binary(array.as_binary().clone()),
            DataType::LargeBinary => Self::LargeBinary(array.as_binary().clone()),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) => Self::FixedBinary(array.as_fixed_size_binary().clone()),
            DataType::Int8 | DataType::Int16 | DataType::Int32 => through(DataType::Int64)?,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => through(DataType::Int64)?,
            DataType::Float16 => through(DataType::Float32)?,
            DataType::Date64 => through(DataType::Timestamp(TimeUnit::Microsecond, None))?,
            DataType::Timestamp(_, zone) => {
                through(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?
            }
            DataType::Dictionary(_, values) if is_bytes(values) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.keys();
                let places = match dictionary.values().len() {
                    0 => vec![0; keys.len()],
                    _ => dictionary.normalized_keys(),
                };
                let places = places.into_iter().enumerate();
                let places = places.map(|(row, place)| keys.is_valid(row).then_some(place)).collect();
                Self::Shared(places, Box::new(Self::new(dictionary.values(), utc_offset_seconds)?))
            }
            DataType::RunEndEncoded(_, values) if is_bytes(values.data_type()) => {
                let (values, places) = run_places(array)?;
                let places = places.into_iter().map(Some).collect();
                Self::Shared(places, Box::new(Self::new(&values, utc_offset_seconds)?))
            }
            DataType::Dictionary(_, values) => through(values.as_ref().clone())?,
            DataType::RunEndEncoded(_, values) => through(values.data_type().clone())?,
            _ => match NestedCells::new(array, utc_offset_seconds)? {
                Some(cells) => Self::Nested(Box::new(cells)),
                None => through(DataType::Utf8)?,
            },
        })
    }

    /// The value in row `row`.
    #[inline]
    pub(crate) fn cell(&self, row: usize) -> Cell<'_> {
        if self.is_null(row) {
            return Cell::Null;
        }
        match self {
            Self::Null => Cell::Null,
            Self::Bool(array) => Cell::Bool(array.value(row)),
            Self::Int(array) => Cell::Int(array.value(row)),
            Self::UInt(array) => Cell::UInt(array.value(row)),
            Self::Float(array) => Cell::Float(array.value(row)),
            Self::Double(array) => Cell::Double(array.value(row)),
            Self::Decimal(array, scale) => Cell::Decimal { value: array.value(row), scale: *scale },
            Self::Date(array) => Cell::Date(array.value(row)),
            Self::Timestamp(array, shift) => Cell::DateTime(array.value(row).saturating_add(*shift)),
            Self::Text(array) => Cell::Text(array.value(row).as_bytes()),
            Self::LargeText(array) => Cell::Text(array.value(row).as_bytes()),
            Self::TextView(array) => Cell::Text(array.value(row).as_bytes()),
            Self::Binary(array) => Cell::Hex(array.value(row)),
            Self::LargeBinary(array) => Cell::Hex(array.value(row)),
            Self::BinaryView(array) => Cell::Hex(array.value(row)),
            Self::FixedBinary(array) => Cell::Hex(array.value(row)),
            Self::Shared(places, values) => places[row].map_or(Cell::Null, |place| values.cell(place)),
            Self::Nested(cells) => Cell::Nested(cells, row),
        }
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(array) => array.is_null(row),
            Self::Int(array) => array.is_null(row),
            Self::UInt(array) => array.is_null(row),
            Self::Float(array) => array.is_null(row),
            Self::Double(array) => array.is_null(row),
            Self::Decimal(array, _) => array.is_null(row),
            Self::Date(array) => array.is_null(row),
            Self::Timestamp(array, _) => array.is_null(row),
            Self::Text(array) => array.is_null(row),
            Self::LargeText(array) => array.is_null(row),
            Self::TextView(array) => array.is_null(row),
            Self::Binary(array) => array.is_null(row),
            Self::LargeBinary(array) => array.is_null(row),
            Self::BinaryView(array) => array.is_null(row),
            Self::FixedBinary(array) => array.is_null(row),
            Self::Shared(places, _) => places[row].is_none(),
            Self::Nested(cells) => cells.is_null(row),
        }
    }
}

/// Whether values are texts or bytes.
fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

/// A cast that fails rather than give NULL.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options)
}

/// The values of a run-end encoded array, and each row's index in them.
pub(crate) fn run_places(array: &dyn Array) -> Result<(ArrayRef, Vec<usize>), ArrowError> {
    fn of<R: RunEndIndexType>(runs: &RunArray<R>) -> (ArrayRef, Vec<usize>) {
        let places = (0..runs.len()).map(|row| runs.get_physical_index(row)).collect();
        (Arc::clone(runs.values()), places)
    }
    let ends = match array.data_type() {
        DataType::RunEndEncoded(ends, _) => ends.data_type(),
        _ => &DataType::Null,
    };
    match ends {
        DataType::Int16 => Ok(of(array.as_run::<Int16Type>())),
        DataType::Int32 => Ok(of(array.as_run::<Int32Type>())),
        DataType::Int64 => Ok(of(array.as_run::<Int64Type>())),
        other => Err(ArrowError::InvalidArgumentError(format!("runs end at numbers of {other}"))),
    }
}
