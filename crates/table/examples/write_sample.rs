//! Writes sample tables below a directory, to be opened with other Delta readers:
//!
//! `cargo run -p tributary-table --example write_sample -- /tmp/sample`
//!
//! - `plain`: every type, two flushes, a checkpoint
//! - `evolved`: a column renamed, one dropped, one added with a default (column mapping)
//! - `truncated`: truncated, then one row

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_table::{Publication, StoreOptions, Table, TableStore};
use tributary_types::{
    ColumnDef, ColumnId, DataType, DefaultValue, Live, Lsn, SchemaVersion, TableDef, TableId, TableSchema,
    Version,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn column(id: u32, name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef { nullable: id != 1, is_key: id == 1, ..ColumnDef::new(id, name, data_type) }
}

fn def(id: u64, name: &str, version: u32, next_column_id: u32, columns: Vec<ColumnDef>) -> Arc<TableDef> {
    let next_column_id = ColumnId(next_column_id);
    let schema = TableSchema { next_column_id, ..TableSchema::new(SchemaVersion(version), columns) };
    Arc::new(TableDef { location: name.to_owned(), ..TableDef::new(TableId(id), "sample", name, schema) })
}

/// Rows given as text, column by column.
fn batch(schema: &TableSchema, columns: &[Vec<Option<&str>>]) -> Outcome<RecordBatch> {
    let array = |(column, texts): (&ColumnDef, &Vec<Option<&str>>)| -> Outcome<ArrayRef> {
        let texts = StringArray::from(texts.clone());
        Ok(arrow::compute::cast(&texts, &column.data_type.to_arrow())?)
    };
    let arrays = schema.columns.iter().zip(columns).map(array).collect::<Outcome<Vec<_>>>()?;
    Ok(RecordBatch::try_new(schema.arrow(), arrays)?)
}

fn publish(table: &Table, columns: &[Vec<Option<&str>>]) -> Outcome<()> {
    let snapshot = table.snapshot();
    table.publish(Publication {
        version: snapshot.version.next(),
        schema: Arc::clone(&snapshot.def.schema),
        batches: vec![batch(&snapshot.def.schema, columns)?],
        files: Vec::new(),
        replaces: None,
        partitions: None,
        lsn: Lsn(0),
    })?;
    Ok(())
}

async fn plain(store: &TableStore) -> Outcome<()> {
    let types: [(DataType, &str, &str); 15] = [
        (DataType::Int, "2", "1"),
        (DataType::Boolean, "true", "false"),
        (DataType::TinyInt, "127", "-128"),
        (DataType::SmallInt, "32767", "-32768"),
        (DataType::BigInt, "9223372036854775807", "-9223372036854775808"),
        (DataType::LargeInt, "99999999999999999999999999999999999999", "-1"),
        (DataType::Float, "1.5", "-0.25"),
        (DataType::Double, "1e300", "-0.1"),
        (DataType::Decimal { precision: 20, scale: 5 }, "123456789012345.12345", "-0.00001"),
        (DataType::Date, "9999-12-31", "1970-01-01"),
        (DataType::DateTime { scale: 6 }, "2024-02-29T23:59:59.123456", "1969-12-31T23:59:59"),
        (DataType::Char { bytes: 4 }, "ab", ""),
        (DataType::Varchar { bytes: 100 }, "héé", "x"),
        (DataType::String, "long text that is more than thirty-two characters", "日本"),
        (DataType::Json, "{\"a\":1}", "[]"),
    ];
    let columns = (1..).zip(&types).map(|(id, (t, ..))| column(id, &format!("c{id}"), *t)).collect();
    let table = store.create(&def(1, "plain", 1, 16, columns)).await?;
    let rows: Vec<_> = types.iter().map(|(_, first, second)| vec![Some(*first), Some(*second)]).collect();
    publish(&table, &rows)?;
    table.flush().await?;
    let nulls: Vec<_> =
        (0..types.len()).map(|index| vec![if index == 0 { Some("3") } else { None }]).collect();
    publish(&table, &nulls)?;
    table.flush().await?;
    Ok(())
}

async fn evolved(store: &TableStore) -> Outcome<()> {
    let first = vec![
        column(1, "id", DataType::BigInt),
        column(2, "name", DataType::String),
        column(3, "old", DataType::Int),
    ];
    let table = store.create(&def(2, "evolved", 1, 4, first.clone())).await?;
    publish(&table, &[vec![Some("1"), Some("2")], vec![Some("a"), Some("b")], vec![Some("10"), Some("20")]])?;
    table.flush().await?;
    let mut renamed = first;
    renamed[1].name = "title".to_owned();
    renamed.remove(2);
    table.alter(def(2, "evolved", 2, 4, renamed.clone())).await?;
    publish(&table, &[vec![Some("3")], vec![Some("c")]])?;
    table.flush().await?;
    let mut score = column(4, "score", DataType::Int);
    score.default = Some(DefaultValue::Literal("7".to_owned()));
    renamed.push(score);
    table.alter(def(2, "evolved", 3, 5, renamed)).await?;
    publish(&table, &[vec![Some("4")], vec![Some("d")], vec![Some("8")]])?;
    table.flush().await?;
    Ok(())
}

async fn truncated(store: &TableStore) -> Outcome<()> {
    let table = store.create(&def(3, "truncated", 1, 2, vec![column(1, "id", DataType::Int)])).await?;
    publish(&table, &[vec![Some("1")]])?;
    table.flush().await?;
    table.publish_truncate(Version(2), Lsn(0))?;
    publish(&table, &[vec![Some("2")]])?;
    table.flush().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let directory = std::env::args().nth(1).map(PathBuf::from).ok_or("usage: write_sample DIRECTORY")?;
    let options = StoreOptions { checkpoint_every: Live::new(2), ..StoreOptions::default() };
    let store = TableStore::local(&directory, options)?;
    plain(&store).await?;
    evolved(&store).await?;
    truncated(&store).await?;
    println!("{}", store.root_url());
    Ok(())
}
