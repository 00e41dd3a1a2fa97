//! Column types as Doris names them, and their representation as Arrow types.

use crate::nested::{Nested, NestedType};
use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The widest DECIMAL, in digits.
pub const DECIMAL_PRECISION_MAX: u8 = 38;
/// The longest CHAR, in bytes.
pub const CHAR_BYTES_MAX: u32 = 255;
/// The longest VARCHAR, in bytes.
pub const VARCHAR_BYTES_MAX: u32 = 65533;
/// The longest VARBINARY, in bytes.
pub const VARBINARY_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// Digits of a LARGEINT that can be stored (see `docs/adr`).
pub const LARGEINT_DIGITS_MAX: u8 = 38;

/// A column's type. Lengths of CHAR and VARCHAR count bytes of UTF-8, as in Doris.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DataType {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    /// Kept as `Decimal128(38, 0)`: up to 38 digits.
    LargeInt,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    /// `scale` digits of a second's fraction, 0 to 6. Has no time zone.
    DateTime {
        scale: u8,
    },
    /// A time of day or a duration with `scale` digits of a second's fraction, 0 to 6, kept as its text ([`crate::clock`]).
    Time {
        scale: u8,
    },
    Char {
        bytes: u32,
    },
    Varchar {
        bytes: u32,
    },
    String,
    /// JSON text, validated and stored as text.
    Json,
    /// JSON text whose members queries read by name; validated and stored as text.
    Variant,
    /// Kept as its number.
    Ipv4,
    /// Kept as its 16 bytes in the order of the network.
    Ipv6,
    /// ARRAY, MAP or STRUCT.
    Nested(Nested),
    /// Any bytes; up to [`VARBINARY_BYTES_MAX`] if no length was declared.
    Varbinary {
        bytes: u32,
    },
    /// A set of numbers, [`crate::state::Bitmap`].
    Bitmap,
    /// An estimate of how many different values there are, [`crate::state::Hll`].
    Hll,
}

impl DataType {
    /// One of each type whose values have a text form and are not nested, for tests of properties that all of them share.
    pub const EXAMPLES: [Self; 20] = [
        Self::Boolean,
        Self::TinyInt,
        Self::SmallInt,
        Self::Int,
        Self::BigInt,
        Self::LargeInt,
        Self::Float,
        Self::Double,
        Self::Decimal { precision: 10, scale: 2 },
        Self::Date,
        Self::DateTime { scale: 3 },
        Self::Char { bytes: 8 },
        Self::Varchar { bytes: 16 },
        Self::String,
        Self::Json,
        Self::Variant,
        Self::Ipv4,
        Self::Ipv6,
        Self::Varbinary { bytes: 16 },
        Self::Time { scale: 3 },
    ];

    /// ARRAY of values of that type.
    #[must_use]
    pub fn array(item: Self) -> Self {
        Self::Nested(Nested::new(NestedType::Array(item)))
    }

    /// MAP of such keys to such values.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Nested(Nested::new(NestedType::Map(key, value)))
    }

    /// How deep types are in one another: 0 if values do not consist of values.
    #[must_use]
    pub fn depth(self) -> usize {
        if let Self::Nested(nested) = self { nested.depth() } else { 0 }
    }

    /// Whether values consist of values.
    #[must_use]
    pub const fn is_nested(self) -> bool {
        matches!(self, Self::Nested(_))
    }

    /// The Arrow type of this column in memtables, data files and results.
    #[must_use]
    pub fn to_arrow(self) -> ArrowType {
        match self {
            Self::Boolean => ArrowType::Boolean,
            Self::TinyInt => ArrowType::Int8,
            Self::SmallInt => ArrowType::Int16,
            Self::Int => ArrowType::Int32,
            Self::BigInt => ArrowType::Int64,
            Self::LargeInt => ArrowType::Decimal128(LARGEINT_DIGITS_MAX, 0),
            Self::Float => ArrowType::Float32,
            Self::Double => ArrowType::Float64,
            Self::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale as i8),
            Self::Date => ArrowType::Date32,
            Self::DateTime { .. } => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Self::Time { .. }
            | Self::Char { .. }
            | Self::Varchar { .. }
            | Self::String
            | Self::Json
            | Self::Variant => ArrowType::Utf8,
            Self::Ipv4 => ArrowType::UInt32,
            Self::Ipv6 => ArrowType::FixedSizeBinary(16),
            Self::Nested(nested) => nested.to_arrow(),
            Self::Varbinary { .. } | Self::Bitmap | Self::Hll => ArrowType::Binary,
        }
    }

    /// The Arrow type of this column in data files: one that Delta Lake has.
    #[must_use]
    pub fn to_stored_arrow(self) -> ArrowType {
        match self {
            Self::Ipv4 => ArrowType::Int64,
            Self::Ipv6 => ArrowType::Binary,
            other => other.to_arrow(),
        }
    }

    /// Whether values are text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Char { .. } | Self::Varchar { .. } | Self::String | Self::Json | Self::Variant)
    }

    /// Whether values are states of an aggregation, which have no text or literal form: functions create and read them.
    #[must_use]
    pub const fn is_state(self) -> bool {
        matches!(self, Self::Bitmap | Self::Hll)
    }

    /// Whether values are any bytes.
    #[must_use]
    pub const fn is_bytes(self) -> bool {
        matches!(self, Self::Varbinary { .. })
    }

    /// MySQL's name of a type of bytes that are longer than its VARBINARY.
    #[must_use]
    pub const fn blob_name(self) -> Option<&'static str> {
        match self {
            Self::Varbinary { bytes: 65_535 } => Some("blob"),
            Self::Varbinary { bytes } if bytes > VARCHAR_BYTES_MAX => Some("longblob"),
            _ => None,
        }
    }

    /// Whether values are whole numbers.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt | Self::LargeInt)
    }

    /// The longest text or value of bytes, for types with such a limit.
    #[must_use]
    pub const fn max_bytes(self) -> Option<u32> {
        match self {
            Self::Char { bytes } | Self::Varchar { bytes } | Self::Varbinary { bytes } => Some(bytes),
            _ => None,
        }
    }

    /// Whether Doris lets this type be a key column, and bytes as long as texts are.
    #[must_use]
    pub const fn may_be_key(self) -> bool {
        !matches!(
            self,
            Self::Float
                | Self::Double
                | Self::Time { .. }
                | Self::String
                | Self::Json
                | Self::Variant
                | Self::Nested(_)
                | Self::Bitmap
                | Self::Hll
        ) && !matches!(self, Self::Varbinary { bytes } if bytes > VARCHAR_BYTES_MAX)
    }

    /// The type's name without arguments, in upper case, as in `information_schema` and in
    /// reasons for rejected rows.
    #[must_use]
    pub const fn base_name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::TinyInt => "TINYINT",
            Self::SmallInt => "SMALLINT",
            Self::Int => "INT",
            Self::BigInt => "BIGINT",
            Self::LargeInt => "LARGEINT",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Decimal { .. } => "DECIMAL",
            Self::Date => "DATE",
            Self::DateTime { .. } => "DATETIME",
            Self::Time { .. } => "TIME",
            Self::Char { .. } => "CHAR",
            Self::Varchar { .. } => "VARCHAR",
            Self::String => "STRING",
            Self::Json => "JSON",
            Self::Variant => "VARIANT",
            Self::Ipv4 => "IPV4",
            Self::Ipv6 => "IPV6",
            Self::Nested(nested) => nested.base_name(),
            Self::Varbinary { .. } => "VARBINARY",
            Self::Bitmap => "BITMAP",
            Self::Hll => "HLL",
        }
    }
}

/// The type as `SHOW CREATE TABLE` and `DESC` print it: lower case.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Self::DateTime { scale: 0 } => f.write_str("datetime"),
            Self::DateTime { scale } => write!(f, "datetime({scale})"),
            Self::Time { scale } if *scale > 0 => write!(f, "time({scale})"),
            Self::Char { bytes } => write!(f, "char({bytes})"),
            Self::Varchar { bytes } => write!(f, "varchar({bytes})"),
            Self::String => f.write_str("text"),
            Self::Varbinary { bytes } if *bytes < VARBINARY_BYTES_MAX => write!(f, "varbinary({bytes})"),
            Self::Nested(nested) => nested.fmt(f),
            other => f.write_str(&other.base_name().to_ascii_lowercase()),
        }
    }
}
