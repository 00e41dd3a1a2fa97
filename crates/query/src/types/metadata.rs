//! Field metadata: the table column that a field comes from.
//!
//! A query's fields have lower-case names; the declared name, type and table are attached as metadata, as far as DataFusion
//! carries it: through projections, filters and joins, not through expressions.

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;
use tributary_types::{ColumnDef, DataType, HiddenColumn, TableDef, ViewDef};

const NAME: &str = "tributary.name";
const TYPE: &str = "tributary.type";
const TABLE: &str = "tributary.table";
const DATABASE: &str = "tributary.database";
const DIGITS: &str = "tributary.digits";
const CASELESS: &str = "tributary.caseless";
const KEY: &str = "tributary.key";
const CLOCK: &str = "tributary.clock";

/// The schema of a table in a query, with its hidden columns on request.
#[must_use]
pub fn table_schema(def: &TableDef, with_hidden: bool) -> SchemaRef {
    let fields = table_columns(def, with_hidden).map(|column| {
        let mut metadata = spelled(&column.name);
        metadata.insert(TYPE.to_owned(), serde_json::to_string(&column.data_type).unwrap_or_default());
        metadata.insert(TABLE.to_owned(), def.name.clone());
        metadata.insert(DATABASE.to_owned(), def.db.clone());
        if column.is_key && def.keys.is_unique() && !column.nullable {
            metadata.insert(KEY.to_owned(), String::new());
        }
        Field::new(column.name.to_lowercase(), column.data_type.to_arrow(), column.nullable)
            .with_metadata(metadata)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The field without the name and the table of its column, which only clients are told. What values mean stays.
#[must_use]
pub fn field_without_origin(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| ![NAME, TABLE, DATABASE, KEY].contains(&key.as_str()));
    field.clone().with_metadata(metadata)
}

/// The schema of [such fields](field_without_origin).
#[must_use]
pub fn without_origin(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field_without_origin(field));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of a table in a query, with its hidden columns on request. The hidden column of given columns, which comes last,
/// has no meaning for queries.
pub fn table_columns(def: &TableDef, with_hidden: bool) -> impl Iterator<Item = &ColumnDef> {
    let is_shown = move |column: &&ColumnDef| match column.hidden {
        None => true,
        Some(HiddenColumn::Given) => false,
        Some(_) => with_hidden,
    };
    def.schema.columns.iter().filter(is_shown)
}

/// Metadata with only a name as it was declared.
#[must_use]
pub fn spelled(name: &str) -> HashMap<String, String> {
    HashMap::from([(NAME.to_owned(), name.to_owned())])
}

/// [`spelled`] of a text that is compared without case.
#[must_use]
pub fn caseless(name: &str) -> HashMap<String, String> {
    let mut metadata = spelled(name);
    metadata.insert(CASELESS.to_owned(), String::new());
    metadata
}

/// Whether a field's texts are compared without case.
#[must_use]
pub fn is_caseless(field: &Field) -> bool {
    field.metadata().contains_key(CASELESS)
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

/// Metadata of an expression whose texts are TIMEs, with that many digits of a second, if they all have as many.
#[must_use]
pub fn of_clock(digits: Option<u8>) -> HashMap<String, String> {
    let digits = digits.map(|digits| digits.to_string());
    HashMap::from([(CLOCK.to_owned(), digits.unwrap_or_default())])
}

/// The digits of a second that all TIMEs of a field have, if that is known.
#[must_use]
pub fn clock_digits(field: &Field) -> Option<u8> {
    field.metadata().get(CLOCK)?.parse().ok()
}

/// Whether a field's texts are TIMEs.
#[must_use]
pub fn is_clock(field: &Field) -> bool {
    *field.data_type() == ArrowType::Utf8 && field.metadata().contains_key(CLOCK)
}

/// The number of fractional digits of a DATETIME field, if it is known: from the cast or the table's column that it comes from.
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

/// The type that a field's values are known to have: the declared one, or DATETIME with the digits of its seconds.
#[must_use]
pub fn known_type(field: &Field) -> Option<DataType> {
    match digits(field) {
        Some(scale) => Some(DataType::DateTime { scale }),
        None => declared_type(field),
    }
}

/// The declared name of the column that a field shows.
#[must_use]
pub fn declared_name(field: &Field) -> Option<&str> {
    field.metadata().get(NAME).map(String::as_str)
}

/// Metadata of a column that is declared as this type in whatever a query reads.
#[must_use]
pub fn declared(data_type: DataType) -> HashMap<String, String> {
    HashMap::from([(TYPE.to_owned(), serde_json::to_string(&data_type).unwrap_or_default())])
}

/// Where a field's column comes from, if it is a column of a table.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub database: Option<String>,
    pub table: Option<String>,
    pub name: Option<String>,
    pub data_type: Option<DataType>,
    /// It is of a unique key, and never NULL.
    pub is_key: bool,
}

impl Origin {
    /// The origin that a field's metadata has.
    #[must_use]
    pub fn of(field: &Field) -> Self {
        let of = |key: &str| field.metadata().get(key).cloned();
        Self {
            database: of(DATABASE),
            table: of(TABLE),
            name: of(NAME),
            data_type: declared_type(field),
            is_key: field.metadata().contains_key(KEY),
        }
    }
}
