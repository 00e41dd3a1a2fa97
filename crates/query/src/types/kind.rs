//! Types that behave alike in comparisons and arithmetic.

use arrow::datatypes::{DataType, TimeUnit};

/// The type of every DATETIME value.
pub const DATETIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
/// The type of IPV4 in plans; nothing else has it.
pub const IPV4: DataType = DataType::UInt32;
/// The type of IPV6 in plans; nothing else has it.
pub const IPV6: DataType = DataType::FixedSizeBinary(16);

/// A group of types that behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Boolean,
    Integer,
    Decimal,
    Float,
    Text,
    Date,
    DateTime,
    Other,
}

/// Returns the kind of a type.
#[must_use]
pub fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Boolean,
        data_type if data_type.is_integer() => Kind::Integer,
        DataType::Decimal128(..) | DataType::Decimal256(..) => Kind::Decimal,
        data_type if data_type.is_floating() => Kind::Float,
        data_type if is_text(data_type) => Kind::Text,
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Timestamp(..) => Kind::DateTime,
        _ => Kind::Other,
    }
}

/// Returns whether `data_type` is text of any layout.
#[must_use]
pub const fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns whether `data_type` is bytes of any layout.
#[must_use]
pub const fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Returns whether values of a type are addresses.
#[must_use]
pub fn is_address(data_type: &DataType) -> bool {
    *data_type == IPV4 || *data_type == IPV6
}
