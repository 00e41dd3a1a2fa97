//! The table that a load asks to be created: with the columns of its rows.
//!
//! Not here: what is legal. The text is a statement of the session like any other.

use super::rows::plain;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use std::sync::Arc;
use tributary_query::ResultColumn;
use tributary_types::TableRef;
use tributary_types::data_type::VARCHAR_BYTES_MAX;

/// The statement that creates a table for rows of this schema.
pub(super) fn statement(table: &TableRef, schema: &Schema, if_not_exists: bool) -> String {
    let fields = schema.fields().iter().enumerate();
    let columns: Vec<String> = fields.map(|(place, field)| column(field, place == 0)).collect();
    let condition = if if_not_exists { "IF NOT EXISTS " } else { "" };
    let (db, table) = (quoted(&table.db), quoted(&table.table));
    format!("CREATE TABLE {condition}{db}.{table} ({})", columns.join(", "))
}

/// The first column is the key, which a column of STRING can't be.
fn column(field: &Field, is_first: bool) -> String {
    let stored = stored(&plain(field.data_type()));
    let table_type = match is_first && stored == DataType::Utf8 {
        true => format!("VARCHAR({VARCHAR_BYTES_MAX})"),
        false => ResultColumn::computed(field.name(), stored).table_type().to_string(),
    };
    let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
    format!("{} {table_type}{not_null}", quoted(field.name()))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The smallest type of columns that has all values of a type.
fn stored(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::List(item) => DataType::List(stored_field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(stored_field).collect::<Fields>()),
        DataType::Map(entries, is_sorted) => DataType::Map(stored_field(entries), *is_sorted),
        other => other.clone(),
    }
}

fn stored_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), stored(field.data_type()), field.is_nullable()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_types_that_take_all_values() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let item = Arc::new(field("item", DataType::UInt8));
        let schema = Schema::new(vec![
            Field::new("k`1", DataType::UInt32, false),
            field("big", DataType::UInt64),
            field("n", DataType::Decimal128(10, 2)),
            field("v", DataType::LargeUtf8),
            field("at", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))),
            field("a", DataType::LargeList(item)),
        ]);
        let table = TableRef { db: "d".to_owned(), table: "t".to_owned() };
        let named = Schema::new(vec![field("name", DataType::LargeUtf8), field("v", DataType::Utf8)]);
        let text = statement(&table, &named, false);
        assert!(text.ends_with("(`name` VARCHAR(65533), `v` text)"), "{text}");
        let text = statement(&table, &schema, true);
        assert!(tributary_sql::parse(&text).is_ok(), "{text}");
        assert!(text.starts_with("CREATE TABLE IF NOT EXISTS `d`.`t` (`k``1` "), "{text}");
        let lower = text.to_lowercase();
        for words in [
            "` bigint not null,",
            "`big` largeint,",
            "`n` decimal",
            "`v` text",
            "`at` datetime(6)",
            "`a` array<smallint>",
        ] {
            assert!(lower.contains(words), "{words}: {text}");
        }
    }
}
