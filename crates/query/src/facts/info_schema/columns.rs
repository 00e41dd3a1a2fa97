//! A column's type in the terms of `information_schema.columns`.

use tributary_types::DataType;

/// `DATA_TYPE`: MySQL's name of the type in lower case.
#[must_use]
pub fn type_name(data_type: DataType, like_mysql: bool) -> String {
    match data_type {
        DataType::String if like_mysql => "text".to_owned(),
        bytes if like_mysql && let Some(name) = bytes.blob_name() => name.to_owned(),
        DataType::Boolean => "tinyint".to_owned(),
        DataType::LargeInt => "bigint unsigned".to_owned(),
        // As in Doris, whose clients know no `text`.
        DataType::String => "varchar".to_owned(),
        other => other.base_name().to_lowercase(),
    }
}

/// `COLUMN_TYPE`: the type as Doris's backend writes it, whose connectors know no other form; with `like_mysql`, as DDL does.
#[must_use]
pub fn column_type(data_type: DataType, like_mysql: bool) -> String {
    match data_type {
        DataType::Boolean => "tinyint(1)".to_owned(),
        bytes if like_mysql && let Some(name) = bytes.blob_name() => name.to_owned(),
        other if like_mysql => other.to_string(),
        DataType::TinyInt => "tinyint(4)".to_owned(),
        DataType::SmallInt => "smallint(6)".to_owned(),
        DataType::Int => "int(11)".to_owned(),
        DataType::BigInt => "bigint(20)".to_owned(),
        DataType::String => "string".to_owned(),
        DataType::Decimal { precision, scale } => format!("decimalv3({precision}, {scale})"),
        other => other.to_string(),
    }
}

/// `CHARACTER_MAXIMUM_LENGTH` in bytes, for texts and bytes that have one.
#[must_use]
pub const fn character_length(data_type: DataType) -> Option<i64> {
    match data_type {
        DataType::Char { bytes } | DataType::Varchar { bytes } | DataType::Varbinary { bytes } => {
            Some(bytes as i64)
        }
        DataType::String => Some(2_147_483_643),
        _ => None,
    }
}

/// `NUMERIC_PRECISION`: digits of a number.
#[must_use]
pub const fn numeric_precision(data_type: DataType) -> Option<i64> {
    match data_type {
        DataType::Boolean | DataType::TinyInt => Some(3),
        DataType::SmallInt => Some(5),
        DataType::Int => Some(10),
        DataType::BigInt => Some(19),
        DataType::LargeInt => Some(39),
        DataType::Float => Some(7),
        DataType::Double => Some(15),
        DataType::Decimal { precision, .. } => Some(precision as i64),
        _ => None,
    }
}

/// Doris's `COLUMN_SIZE`: bytes of a text, digits of a number. Flink's connector takes a `tinyint` without one for a BOOLEAN.
#[must_use]
pub const fn column_size(data_type: DataType) -> Option<i64> {
    match (character_length(data_type), data_type) {
        (Some(bytes), _) => Some(bytes),
        (None, DataType::Boolean) => None,
        (None, _) => numeric_precision(data_type),
    }
}

/// `NUMERIC_SCALE`: digits after the point.
#[must_use]
pub const fn numeric_scale(data_type: DataType) -> Option<i64> {
    match data_type {
        DataType::Boolean
        | DataType::TinyInt
        | DataType::SmallInt
        | DataType::Int
        | DataType::BigInt
        | DataType::LargeInt => Some(0),
        DataType::Decimal { scale, .. } => Some(scale as i64),
        _ => None,
    }
}
