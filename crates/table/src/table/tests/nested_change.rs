//! STRUCTs that get further fields while rows are in files, in memory and under way.

use super::schema_change::{delta_config, next_version};
use crate::table::Publication;
use crate::testing::{Bench, column, logged, publication, two_columns, visible};
use arrow::array::{
    ArrayRef, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType as ArrowType;
use std::sync::Arc;
use tributary_types::{DataType, Nested, NestedType, StructField, TableDef};

fn of(fields: &[(&str, DataType)]) -> DataType {
    let field = |(name, data_type): &(&str, DataType)| StructField {
        name: (*name).to_owned(),
        data_type: *data_type,
    };
    DataType::Nested(Nested::new(NestedType::Struct(fields.iter().map(field).collect())))
}

/// `id`, a STRUCT, and ARRAY and MAP of the same.
fn columns_of(inner: DataType) -> Vec<tributary_types::ColumnDef> {
    vec![
        column(1, "id", DataType::BigInt, true),
        column(2, "s", of(&[("in", inner), ("n", DataType::Int)]), false),
        column(3, "a", DataType::array(inner), false),
        column(4, "m", DataType::map(DataType::Varchar { bytes: 5 }, inner), false),
    ]
}

fn narrow() -> Arc<TableDef> {
    let text = DataType::Varchar { bytes: 3 };
    next_version(&two_columns(), |columns| *columns = columns_of(of(&[("x", DataType::Int), ("t", text)])))
}

/// The same with a field more at the end of each inner STRUCT, and of `s`.
fn wide() -> Arc<TableDef> {
    let text = DataType::Varchar { bytes: 9 };
    let inner = of(&[("x", DataType::Int), ("t", text), ("y", DataType::array(DataType::Int))]);
    next_version(&narrow(), |columns| {
        *columns = columns_of(inner);
        columns[1].data_type = of(&[("in", inner), ("n", DataType::Int), ("z", DataType::Date)]);
    })
}

fn structs(data_type: &ArrowType, ids: &[i64]) -> StructArray {
    let ArrowType::Struct(fields) = data_type else { panic!("{data_type}") };
    let columns: Vec<ArrayRef> = fields
        .iter()
        .map(|field| -> ArrayRef {
            match field.name().as_str() {
                "x" | "n" => Arc::new(ids.iter().map(|id| Some(*id as i32)).collect::<Int32Array>()),
                "t" => Arc::new(ids.iter().map(|id| Some(format!("t{id}"))).collect::<StringArray>()),
                "in" => Arc::new(structs(field.data_type(), ids)),
                "y" => {
                    let ArrowType::List(item) = field.data_type() else { panic!("{field}") };
                    let values = Arc::new(ids.iter().map(|id| Some(*id as i32 * 10)).collect::<Int32Array>());
                    let offsets = OffsetBuffer::from_lengths(ids.iter().map(|_| 1));
                    Arc::new(ListArray::new(Arc::clone(item), offsets, values, None))
                }
                "z" => Arc::new(ids.iter().map(|id| Some(*id as i32)).collect::<arrow::array::Date32Array>()),
                other => panic!("{other}"),
            }
        })
        .collect();
    // Each third value is NULL.
    let nulls = ids.iter().map(|id| id % 3 != 0).collect::<NullBuffer>();
    StructArray::new(fields.clone(), columns, Some(nulls))
}

fn rows(def: &TableDef, ids: &[i64]) -> RecordBatch {
    let arrow = def.schema.arrow();
    let of_type = |place: usize| arrow.field(place).data_type().clone();
    let ArrowType::List(item) = of_type(2) else { panic!("{}", of_type(2)) };
    let ArrowType::Map(entries, _) = of_type(3) else { panic!("{}", of_type(3)) };
    let ArrowType::Struct(pair) = entries.data_type() else { panic!("{entries}") };
    let lengths = || OffsetBuffer::from_lengths(ids.iter().map(|_| 1));
    let keys: ArrayRef = Arc::new(ids.iter().map(|id| Some(format!("k{id}"))).collect::<StringArray>());
    let pairs = vec![keys, Arc::new(structs(pair[1].data_type(), ids)) as ArrayRef];
    let pairs = StructArray::new(pair.clone(), pairs, None);
    let items = Arc::new(structs(item.data_type(), ids));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(ids.to_vec())),
        Arc::new(structs(&of_type(1), ids)),
        Arc::new(ListArray::new(item, lengths(), items, None)),
        Arc::new(MapArray::new(entries, lengths(), pairs, None, false)),
    ];
    RecordBatch::try_new(arrow, columns).unwrap()
}

fn load(def: &TableDef, version: u64, ids: &[i64]) -> Publication {
    publication(&def.schema, version, rows(def, ids))
}

/// The expected row of before the change.
const OLD: &str =
    "|{in: {x: 1, t: t1, y: NULL}, n: 1, z: NULL}|[{x: 1, t: t1, y: NULL}]|{k1: {x: 1, t: t1, y: NULL}}";
const NEW: &str = "|{in: {x: 1, t: t1, y: [10]}, n: 1, z: 1970-01-02}|[{x: 1, t: t1, y: [10]}]|{k1: {x: 1, t: t1, y: [10]}}";

fn row(id: i64, of: &str) -> String {
    if id % 3 == 0 {
        return format!("{id}|NULL|[NULL]|{{k{id}: NULL}}");
    }
    let day = format!("1970-01-{:02}", id + 1);
    let of = of.replace("1970-01-02", &day).replace("[10]", &format!("[{id}0]"));
    let of = of.replace("x: 1", &format!("x: {id}")).replace("t1", &format!("t{id}"));
    format!("{id}{}", of.replace("k1", &format!("k{id}")).replace("n: 1", &format!("n: {id}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_files_in_memory_and_under_way_have_null_in_new_fields() {
    let bench = Bench::new();
    let table = bench.store.create(&narrow()).await.unwrap();
    table.publish(load(&narrow(), 1, &[1, 3])).unwrap();
    table.flush().await.unwrap();
    table.publish(load(&narrow(), 2, &[2])).unwrap();
    let mut writer = table.new_file_writer().unwrap();
    writer.append(rows(&narrow(), &[5])).await.unwrap();
    let files = bench.data_files();
    table.alter(wide()).await.unwrap();
    assert_eq!(bench.data_files(), files, "a light change writes no file");
    // Loads that were decoded, or written to files, before.
    table.publish(load(&narrow(), 3, &[4])).unwrap();
    let files = writer.finish().await.unwrap().into_files();
    table.publish(Publication { files, ..load(&narrow(), 4, &[]) }).unwrap();
    table.publish(load(&wide(), 5, &[7])).unwrap();
    let expected = [row(1, OLD), row(2, OLD), row(3, OLD), row(4, OLD), row(5, OLD), row(7, NEW)];
    assert_eq!(visible(&table).await, expected);
    table.flush().await.unwrap();
    assert_eq!(logged(&table).await, expected);
    let report = table.compact_from(2).await.unwrap().unwrap();
    assert!(report.files_before > 1 && report.files_after == 1, "{report:?}");
    assert_eq!(logged(&table).await, expected);
    let again = bench.store.open(&wide()).await.unwrap();
    assert_eq!(visible(&again).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_a_table_completes_the_change_and_takes_one_back_that_the_catalog_lost() {
    let bench = Bench::new();
    let table = bench.store.create(&narrow()).await.unwrap();
    table.publish(load(&narrow(), 1, &[1])).unwrap();
    table.flush().await.unwrap();
    drop(table);
    let table = bench.store.open(&wide()).await.unwrap();
    assert_eq!(visible(&table).await, [row(1, OLD)]);
    let (_, metadata) = delta_config(&table).await;
    assert!(metadata.contains(r#"\"name\":\"z\",\"type\":\"date\""#), "{metadata}");
    table.publish(load(&narrow(), 2, &[2])).unwrap();
    table.flush().await.unwrap();
    drop(table);
    let table = bench.store.open(&narrow()).await.unwrap();
    let short = |id| row(id, &OLD.replace(", y: NULL", "").replace(", z: NULL", ""));
    assert_eq!(visible(&table).await, [short(1), short(2)]);
    table.compact_from(2).await.unwrap().unwrap();
    assert_eq!(logged(&table).await, [short(1), short(2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_keep_their_ids_of_the_column_mapping_when_others_are_added() {
    let bench = Bench::new();
    let table = bench.store.create(&narrow()).await.unwrap();
    let renamed = next_version(&narrow(), |columns| columns[2].name = "list".to_owned());
    table.alter(Arc::clone(&renamed)).await.unwrap();
    let before = ids(&delta_config(&table).await.1);
    assert_eq!(before.len(), 4 + 8, "each column and field has one: {before:?}");
    let grown = next_version(&renamed, |columns| {
        for (column, of) in columns.iter_mut().zip(&wide().schema.columns) {
            column.data_type = of.data_type;
        }
    });
    table.alter(grown).await.unwrap();
    let after = ids(&delta_config(&table).await.1);
    assert_eq!(after.len(), before.len() + 4);
    assert!(before.iter().all(|known| after.contains(known)), "{before:?} {after:?}");
    let numbers: std::collections::BTreeSet<_> = after.iter().map(|(_, id)| id).collect();
    assert_eq!(numbers.len(), after.len(), "{after:?}");
}

/// Names and ids of the columns and the fields within them, in the order of the log.
fn ids(metadata: &str) -> Vec<(String, i64)> {
    fn gather(value: &serde_json::Value, within: &str, found: &mut Vec<(String, i64)>) {
        if let Some(fields) = value.get("fields").and_then(|fields| fields.as_array()) {
            for field in fields {
                let name = format!("{within}.{}", field["name"].as_str().unwrap());
                found.push((name.clone(), field["metadata"]["delta.columnMapping.id"].as_i64().unwrap()));
                gather(&field["type"], &name, found);
            }
        }
        for part in ["elementType", "keyType", "valueType"] {
            if let Some(part) = value.get(part) {
                gather(part, within, found);
            }
        }
    }
    let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap();
    let schema = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    let mut found = Vec::new();
    gather(&schema, "", &mut found);
    found
}
