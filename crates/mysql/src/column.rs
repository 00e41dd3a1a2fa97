//! The columns of a result as announced to the client: type, length, character set.
//!
//! A column comes from a table (its declared type is known) or from an expression (only Arrow's type is known). The announced
//! type is the one that `encode` writes.

use crate::wire::put;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, TimeUnit};
use mysql_common::constants::{ColumnFlags, ColumnType};
use tributary_types::DataType;
use tributary_types::data_type::VARCHAR_BYTES_MAX;

/// Character set and collation `utf8mb4_general_ci`: all text.
const UTF8MB4: u16 = 45;
/// No character set: numbers, times and bytes.
const BINARY: u16 = 63;
/// The longest character of utf8mb4, in bytes; clients divide lengths by it.
const UTF8MB4_BYTES: u32 = 4;
/// The announced length of a text of unknown length, in characters.
const TEXT_CHARS: u32 = 65_535;
/// Announced as `decimals` of a FLOAT or DOUBLE: as many digits as it takes.
const NOT_FIXED_DECIMALS: u8 = 31;

/// A column of a result set, or of a prepared statement's future result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The database, empty for an expression.
    pub schema: String,
    /// The table's alias, empty for an expression.
    pub table: String,
    /// The table, empty for an expression.
    pub org_table: String,
    /// The name of the result's column.
    pub name: String,
    /// The table's column, empty for an expression.
    pub org_name: String,
    pub wire_type: ColumnType,
    pub flags: ColumnFlags,
    /// MySQL's collation number.
    pub charset: u16,
    /// Longest value, in bytes of the text form.
    pub length: u32,
    pub decimals: u8,
    /// Digits of a second's fraction in the values; `None`: six where the fraction is not zero.
    pub fraction: Option<u8>,
}

impl Column {
    /// A column whose type was declared in a table.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        use ColumnType::*;
        let name = name.into();
        match data_type {
            DataType::Boolean => Self::number(name, MYSQL_TYPE_TINY, 1),
            DataType::TinyInt => Self::number(name, MYSQL_TYPE_TINY, 4),
            DataType::SmallInt => Self::number(name, MYSQL_TYPE_SHORT, 6),
            DataType::Int => Self::number(name, MYSQL_TYPE_LONG, 11),
            DataType::BigInt => Self::number(name, MYSQL_TYPE_LONGLONG, 20),
            // Doris sends it as text: no client's number holds it.
            DataType::LargeInt => Self::text(name, MYSQL_TYPE_STRING, 40),
            DataType::Float => Self::float(name, MYSQL_TYPE_FLOAT, 12),
            DataType::Double => Self::float(name, MYSQL_TYPE_DOUBLE, 22),
            DataType::Decimal { precision, scale } => Self::decimal(name, precision, scale),
            DataType::Date => Self::number(name, MYSQL_TYPE_DATE, 10),
            DataType::DateTime { scale } => Self::datetime(name, Some(scale)),
            DataType::Time { scale } => Self::time(name, Some(scale)),
            DataType::Char { bytes } => Self::text(name, MYSQL_TYPE_STRING, bytes),
            DataType::Varchar { bytes } => Self::text(name, MYSQL_TYPE_VAR_STRING, bytes),
            DataType::String => Self::text(name, MYSQL_TYPE_VAR_STRING, TEXT_CHARS),
            DataType::Json => Self::text(name, MYSQL_TYPE_JSON, TEXT_CHARS),
            DataType::Ipv4 => Self::text(name, MYSQL_TYPE_VAR_STRING, 15),
            DataType::Ipv6 => Self::text(name, MYSQL_TYPE_VAR_STRING, 45),
            DataType::Variant | DataType::Nested(_) => Self::text(name, MYSQL_TYPE_VAR_STRING, TEXT_CHARS),
            DataType::Varbinary { bytes } if bytes <= VARCHAR_BYTES_MAX => {
                Self::plain(name, MYSQL_TYPE_VAR_STRING, BINARY, bytes)
            }
            DataType::Varbinary { bytes } => Self { length: bytes, ..Self::blob(name) },
            DataType::Bitmap | DataType::Hll => Self::blob(name),
        }
    }

    /// A column of TIMEs that are texts, all with that many digits of a second; `None`: with any number of them.
    #[must_use]
    pub fn clock(name: impl Into<String>, digits: Option<u8>) -> Self {
        Self::time(name.into(), digits)
    }

    /// Describes a column of which only Arrow's type is known. Types that MySQL lacks become text.
    #[must_use]
    pub fn from_arrow(name: impl Into<String>, arrow_type: &ArrowType) -> Self {
        use ColumnType::*;
        let name = name.into();
        match arrow_type {
            ArrowType::Null => Self::number(name, MYSQL_TYPE_NULL, 0),
            ArrowType::Boolean => Self::number(name, MYSQL_TYPE_TINY, 1),
            ArrowType::Int8 => Self::number(name, MYSQL_TYPE_TINY, 4),
            ArrowType::Int16 => Self::number(name, MYSQL_TYPE_SHORT, 6),
            ArrowType::Int32 => Self::number(name, MYSQL_TYPE_LONG, 11),
            ArrowType::Int64 => Self::number(name, MYSQL_TYPE_LONGLONG, 20),
            ArrowType::UInt8 => Self::number(name, MYSQL_TYPE_TINY, 3).unsigned(),
            ArrowType::UInt16 => Self::number(name, MYSQL_TYPE_SHORT, 5).unsigned(),
            ArrowType::UInt32 => Self::number(name, MYSQL_TYPE_LONG, 10).unsigned(),
            ArrowType::UInt64 => Self::number(name, MYSQL_TYPE_LONGLONG, 20).unsigned(),
            ArrowType::Float16 | ArrowType::Float32 => Self::float(name, MYSQL_TYPE_FLOAT, 12),
            ArrowType::Float64 => Self::float(name, MYSQL_TYPE_DOUBLE, 22),
            ArrowType::Decimal32(precision, scale)
            | ArrowType::Decimal64(precision, scale)
            | ArrowType::Decimal128(precision, scale)
            | ArrowType::Decimal256(precision, scale) => {
                Self::decimal(name, *precision, u8::try_from(*scale).unwrap_or(0))
            }
            ArrowType::Date32 | ArrowType::Date64 => Self::number(name, MYSQL_TYPE_DATE, 10),
            ArrowType::Timestamp(unit, _) => Self::datetime(name, fraction_of(*unit)),
            ArrowType::Time32(unit) | ArrowType::Time64(unit) => Self::time(name, fraction_of(*unit)),
            ArrowType::Binary
            | ArrowType::LargeBinary
            | ArrowType::BinaryView
            | ArrowType::FixedSizeBinary(_) => Self::blob(name),
            ArrowType::Dictionary(_, value) => Self::from_arrow(name, value),
            ArrowType::RunEndEncoded(_, values) => Self::from_arrow(name, values.data_type()),
            _ => Self::text(name, MYSQL_TYPE_VAR_STRING, TEXT_CHARS),
        }
    }

    /// The same column, coming from a column of a table under its own name.
    #[must_use]
    pub fn in_table(mut self, db: impl Into<String>, table: impl Into<String>) -> Self {
        self.schema = db.into();
        self.table = table.into();
        self.org_table.clone_from(&self.table);
        self.org_name.clone_from(&self.name);
        self
    }

    /// The same column, which is never NULL.
    #[must_use]
    pub fn not_null(mut self) -> Self {
        self.flags |= ColumnFlags::NOT_NULL_FLAG;
        self
    }

    /// The same column, which is of a primary key.
    #[must_use]
    pub fn primary_key(mut self) -> Self {
        self.flags |= ColumnFlags::PRI_KEY_FLAG;
        self
    }

    /// A parameter of a prepared statement.
    pub(crate) fn parameter() -> Self {
        Self { charset: BINARY, ..Self::text(String::from("?"), ColumnType::MYSQL_TYPE_VAR_STRING, 0) }
    }

    /// Whether the values are bytes, which need not be text.
    #[must_use]
    pub const fn is_bytes(&self) -> bool {
        let is_string =
            matches!(self.wire_type, ColumnType::MYSQL_TYPE_BLOB | ColumnType::MYSQL_TYPE_VAR_STRING);
        is_string && self.charset == BINARY
    }

    pub(crate) fn is_unsigned(&self) -> bool {
        self.flags.contains(ColumnFlags::UNSIGNED_FLAG)
    }

    fn plain(name: String, wire_type: ColumnType, charset: u16, length: u32) -> Self {
        Self {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name,
            org_name: String::new(),
            wire_type,
            flags: if charset == BINARY { ColumnFlags::BINARY_FLAG } else { ColumnFlags::empty() },
            charset,
            length,
            decimals: 0,
            fraction: Some(0),
        }
    }

    /// Without the flag of bytes, which MySQL does not set for columns of tables: Connector/J would read a BOOLEAN as bytes.
    fn number(name: String, wire_type: ColumnType, length: u32) -> Self {
        Self { flags: ColumnFlags::empty(), ..Self::plain(name, wire_type, BINARY, length) }
    }

    fn unsigned(mut self) -> Self {
        self.flags |= ColumnFlags::UNSIGNED_FLAG;
        self
    }

    fn float(name: String, wire_type: ColumnType, length: u32) -> Self {
        Self { decimals: NOT_FIXED_DECIMALS, ..Self::number(name, wire_type, length) }
    }

    fn decimal(name: String, precision: u8, scale: u8) -> Self {
        let precision = if precision == 0 { DECIMAL128_MAX_PRECISION } else { precision };
        // A sign, and a point before the scale.
        let length = u32::from(precision) + 1 + u32::from(scale > 0);
        Self { decimals: scale, ..Self::number(name, ColumnType::MYSQL_TYPE_NEWDECIMAL, length) }
    }

    fn datetime(name: String, fraction: Option<u8>) -> Self {
        let wire_type = ColumnType::MYSQL_TYPE_DATETIME;
        Self::number(name, wire_type, 19).with_fraction(fraction)
    }

    fn time(name: String, fraction: Option<u8>) -> Self {
        Self::number(name, ColumnType::MYSQL_TYPE_TIME, 10).with_fraction(fraction)
    }

    fn with_fraction(mut self, fraction: Option<u8>) -> Self {
        let digits = fraction.unwrap_or(6).min(6);
        self.fraction = fraction.map(|_| digits);
        self.decimals = digits;
        self.length += if digits > 0 { 1 + u32::from(digits) } else { 0 };
        self
    }

    fn text(name: String, wire_type: ColumnType, chars: u32) -> Self {
        Self::plain(name, wire_type, UTF8MB4, chars.saturating_mul(UTF8MB4_BYTES))
    }

    fn blob(name: String) -> Self {
        let mut column = Self::plain(name, ColumnType::MYSQL_TYPE_BLOB, BINARY, TEXT_CHARS);
        column.flags |= ColumnFlags::BLOB_FLAG;
        column
    }

    /// Appends the column's definition packet.
    pub(crate) fn write_definition(&self, out: &mut Vec<u8>) {
        for text in ["def", &self.schema, &self.table, &self.org_table, &self.name, &self.org_name] {
            put::lenenc_bytes(out, text.as_bytes());
        }
        out.push(0x0c);
        put::u16(out, self.charset);
        put::u32(out, self.length);
        out.push(self.wire_type as u8);
        put::u16(out, self.flags.bits());
        out.push(self.decimals);
        put::u16(out, 0);
    }
}

/// Whole seconds have no fraction; of finer units it is not known how fine the values are.
fn fraction_of(unit: TimeUnit) -> Option<u8> {
    matches!(unit, TimeUnit::Second).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::io::ParseBuf;
    use mysql_common::packets::Column as ClientColumn;
    use mysql_common::proto::MyDeserialize;

    fn as_client(column: &Column) -> ClientColumn {
        let mut bytes = Vec::new();
        column.write_definition(&mut bytes);
        ClientColumn::deserialize((), &mut ParseBuf(&bytes)).unwrap()
    }

    #[test]
    fn a_client_reads_the_definition_that_is_written() {
        let column = Column::new("id", DataType::BigInt).in_table("db", "t").not_null().primary_key();
        let seen = as_client(&column);
        assert_eq!(seen.schema_str(), "db");
        assert_eq!(seen.table_str(), "t");
        assert_eq!(seen.name_str(), "id");
        assert_eq!(seen.org_name_str(), "id");
        assert_eq!(seen.column_type(), ColumnType::MYSQL_TYPE_LONGLONG);
        assert_eq!(seen.column_length(), 20);
        assert_eq!(seen.character_set(), 63);
        assert!(seen.flags().contains(ColumnFlags::NOT_NULL_FLAG | ColumnFlags::PRI_KEY_FLAG));
    }

    #[test]
    fn text_is_utf8mb4_and_its_length_counts_four_bytes_a_character() {
        let seen = as_client(&Column::new("name", DataType::Varchar { bytes: 32 }));
        assert_eq!((seen.character_set(), seen.column_length()), (45, 128));
        assert_eq!(seen.column_type(), ColumnType::MYSQL_TYPE_VAR_STRING);
    }

    #[test]
    fn bytes_have_no_character_set() {
        let seen = as_client(&Column::new("b", DataType::Varbinary { bytes: 16 }));
        assert_eq!((seen.character_set(), seen.column_length()), (63, 16));
        assert_eq!(seen.column_type(), ColumnType::MYSQL_TYPE_VAR_STRING);
        assert_eq!(seen.flags(), ColumnFlags::BINARY_FLAG);
        let long = Column::new("b", DataType::Varbinary { bytes: 1 << 24 });
        let seen = as_client(&long);
        assert_eq!((seen.character_set(), seen.column_length()), (63, 1 << 24));
        assert_eq!(seen.column_type(), ColumnType::MYSQL_TYPE_BLOB);
        assert_eq!(seen.flags(), ColumnFlags::BINARY_FLAG | ColumnFlags::BLOB_FLAG);
        assert!(long.is_bytes() && Column::from_arrow("b", &ArrowType::Binary).is_bytes());
        assert!(
            !Column::new("t", DataType::String).is_bytes() && !Column::new("n", DataType::Int).is_bytes()
        );
    }

    #[test]
    fn a_datetime_announces_its_scale() {
        let seen = as_client(&Column::new("at", DataType::DateTime { scale: 3 }));
        assert_eq!((seen.decimals(), seen.column_length()), (3, 23));
        let seen = as_client(&Column::new("at", DataType::DateTime { scale: 0 }));
        assert_eq!((seen.decimals(), seen.column_length()), (0, 19));
    }

    #[test]
    fn a_decimal_has_room_for_sign_and_point() {
        let seen = as_client(&Column::new("d", DataType::Decimal { precision: 10, scale: 2 }));
        assert_eq!((seen.decimals(), seen.column_length()), (2, 12));
        assert_eq!(seen.column_type(), ColumnType::MYSQL_TYPE_NEWDECIMAL);
    }

    #[test]
    fn a_boolean_is_a_tinyint_of_length_one() {
        let seen = as_client(&Column::new("b", DataType::Boolean));
        assert_eq!((seen.column_type(), seen.column_length()), (ColumnType::MYSQL_TYPE_TINY, 1));
    }
}
