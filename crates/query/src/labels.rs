//! What a field's metadata says of the table column it came from.
//!
//! A query's fields have names in lower case; the declared name, type and table travel beside
//! them, as far as DataFusion carries metadata: through projections, filters and joins, not
//! through expressions.

use crate::model::ResultColumn;
use crate::output::result_type;
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;
use tributary_types::{
    ColumnDef, DataType, HiddenColumn, Nested, NestedType, StructField, TableDef, ViewDef,
};

const NAME: &str = "tributary.name";
const TYPE: &str = "tributary.type";
const TABLE: &str = "tributary.table";
const DATABASE: &str = "tributary.database";
const DIGITS: &str = "tributary.digits";

/// The schema of a table in a query, with its hidden columns if it asks for them.
#[must_use]
pub fn table_schema(def: &TableDef, with_hidden: bool) -> SchemaRef {
    let fields = table_columns(def, with_hidden).map(|column| {
        let mut metadata = spelled(&column.name);
        metadata.insert(TYPE.to_owned(), serde_json::to_string(&column.data_type).unwrap_or_default());
        metadata.insert(TABLE.to_owned(), def.name.clone());
        metadata.insert(DATABASE.to_owned(), def.db.clone());
        Field::new(column.name.to_lowercase(), column.data_type.to_arrow(), column.nullable)
            .with_metadata(metadata)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of a table in a query, with its hidden columns if it asks for them. What rows say of the columns that they give,
/// which comes last, means nothing to anybody.
pub fn table_columns(def: &TableDef, with_hidden: bool) -> impl Iterator<Item = &ColumnDef> {
    let is_shown = move |column: &&ColumnDef| match column.hidden {
        None => true,
        Some(HiddenColumn::Given) => false,
        Some(_) => with_hidden,
    };
    def.schema.columns.iter().filter(is_shown)
}

/// Metadata that keeps only a name as it was declared.
#[must_use]
pub fn spelled(name: &str) -> HashMap<String, String> {
    HashMap::from([(NAME.to_owned(), name.to_owned())])
}

/// Metadata of a view's column. Its type is that of the column that it shows, if it is one.
#[must_use]
pub fn of_view(view: &ViewDef, column: &str) -> HashMap<String, String> {
    let mut metadata = spelled(column);
    metadata.insert(TABLE.to_owned(), view.name.clone());
    metadata.insert(DATABASE.to_owned(), view.db.clone());
    metadata
}

/// Metadata of an expression: DATETIME with that many digits of a second.
#[must_use]
pub fn with_digits(digits: u8) -> HashMap<String, String> {
    HashMap::from([(DIGITS.to_owned(), digits.to_string())])
}

/// How many digits of a second a field of DATETIMEs has, if that is known: from the cast or the
/// table's column that it comes from.
#[must_use]
pub fn digits(field: &Field) -> Option<u8> {
    if !matches!(field.data_type(), ArrowType::Timestamp(..)) {
        return None;
    }
    if let Some(digits) = field.metadata().get(DIGITS) {
        return digits.parse().ok();
    }
    match serde_json::from_str(field.metadata().get(TYPE)?) {
        Ok(DataType::DateTime { scale }) => Some(scale),
        _ => None,
    }
}

/// The declared type of the column that a field shows.
#[must_use]
pub fn declared_type(field: &Field) -> Option<DataType> {
    serde_json::from_str(field.metadata().get(TYPE)?).ok()
}

/// The declared name of the column that a field shows.
#[must_use]
pub fn declared_name(field: &Field) -> Option<&str> {
    field.metadata().get(NAME).map(String::as_str)
}

/// A result column of that title; `is_column` says that the field is a column of a table,
/// unchanged.
#[must_use]
pub fn result_column(title: String, field: &Field, data_type: ArrowType, is_column: bool) -> ResultColumn {
    let of = |key: &str| field.metadata().get(key).filter(|_| is_column).cloned();
    let declared: Option<DataType> = of(TYPE).and_then(|text| serde_json::from_str(&text).ok());
    // A computed one tells what it is where Arrow's type does not.
    let made =
        || serde_json::from_str::<DataType>(field.metadata().get(TYPE)?).ok().filter(|made| made.is_state());
    let declared = declared.or_else(made).filter(|declared| declared.to_arrow() == *field.data_type());
    ResultColumn {
        name: title,
        declared: declared.or_else(|| digits(field).map(|scale| DataType::DateTime { scale })),
        database: of(DATABASE),
        table: of(TABLE),
        original_name: of(NAME),
        nullable: field.is_nullable(),
        data_type,
    }
}

/// A field's type as DESC shows it: the declared one of a column, else the one that a table would need for it.
#[must_use]
pub fn type_text(field: &Field) -> String {
    let declared = field.metadata().get(TYPE).and_then(|text| serde_json::from_str::<DataType>(text).ok());
    let data_type = declared.or_else(|| table_type(field.data_type()));
    data_type.map_or_else(|| nested_text(field.data_type()), |data_type| data_type.to_string())
}

/// The type that a column of a table needs for values of a type; `None` if no table has such.
#[must_use]
pub fn table_type(data_type: &ArrowType) -> Option<DataType> {
    let part = |field: &Field| table_type(&result_type(field.data_type()));
    Some(match data_type {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::TinyInt,
        ArrowType::Int16 => DataType::SmallInt,
        ArrowType::Int32 => DataType::Int,
        ArrowType::Int64 => DataType::BigInt,
        ArrowType::Float32 => DataType::Float,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal128(precision, scale) => {
            DataType::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? }
        }
        ArrowType::Date32 => DataType::Date,
        ArrowType::Timestamp(..) => DataType::DateTime { scale: 6 },
        ArrowType::Utf8 => DataType::String,
        ArrowType::List(item) => DataType::array(part(item)?),
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) if pair.len() == 2 => DataType::map(part(&pair[0])?, part(&pair[1])?),
            _ => return None,
        },
        ArrowType::Struct(fields) => {
            let field = |field: &Arc<Field>| {
                Some(StructField { name: field.name().clone(), data_type: part(field)? })
            };
            let fields = fields.iter().map(field).collect::<Option<Vec<_>>>()?;
            DataType::Nested(Nested::new(NestedType::Struct(fields)))
        }
        _ => return None,
    })
}

/// A type of values that consist of values, as Doris writes it.
fn nested_text(data_type: &ArrowType) -> String {
    let inner = |field: &Field| type_text(field);
    match data_type {
        ArrowType::List(item) | ArrowType::LargeList(item) | ArrowType::FixedSizeList(item, _) => {
            format!("array<{}>", inner(item))
        }
        ArrowType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{}:{}", field.name(), inner(field))).collect();
            format!("struct<{}>", fields.join(","))
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) if pair.len() == 2 => {
                format!("map<{},{}>", inner(&pair[0]), inner(&pair[1]))
            }
            _ => "map".to_owned(),
        },
        other => other.to_string().to_lowercase(),
    }
}

/// Metadata of a column that is declared as this type in whatever a query reads.
#[must_use]
pub fn declared(data_type: DataType) -> HashMap<String, String> {
    HashMap::from([(TYPE.to_owned(), serde_json::to_string(&data_type).unwrap_or_default())])
}
