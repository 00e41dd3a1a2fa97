//! A text is the same moment at every place where one meets a date or a time: in CAST, in comparisons of each kind, in the
//! conditions of loads and in generated columns. Loads read texts with `tributary_types::moment` themselves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use arrow::array::{Array, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use common::{Server, rows};
use std::sync::Arc;
use tributary_types::{ColumnDef, DataType, SchemaVersion, TableSchema, moment};

const TEXTS: [&str; 16] = [
    "2024-01-01",
    "20240101",
    "240101",
    "2024/1/5 3:4:5",
    "2024-01-01 19:04:05.123456",
    "2024-01-01T19:04:05Z",
    "2024-01-01 19:04:05+08:00",
    "2024-01-01 19:04:05 UTC",
    "2024-12-31 23:59:59.5 -0530",
    "20240101190405",
    "2024-01-01 19:04",
    " 2024-01-01 19:04:05 ",
    "2024-02-30",
    "2024-01-01 25:00:00",
    "no date",
    "",
];
const ZONES: [(&str, i32); 3] = [("+00:00", 0), ("+08:00", 8 * 3600), ("-05:30", -(5 * 3600 + 1800))];

/// The first value of a query's result.
async fn value(server: &mut Server, sql: &str) -> String {
    let (_, batches) = server.run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).unwrap();
    rows(&batches).remove(0).remove(0)
}

fn shown(micros: i64) -> String {
    let at = TimestampMicrosecondArray::from(vec![micros]);
    let batch = RecordBatch::try_from_iter([("at", Arc::new(at) as _)]).unwrap();
    rows(&[batch]).remove(0).remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_the_same_moment_at_every_place() {
    let mut server = Server::new();
    let at = ColumnDef::new(1, "at", DataType::DateTime { scale: 6 });
    let schema = TableSchema::new(SchemaVersion(1), vec![at]);
    for (zone, offset) in ZONES {
        server.session.time_zone = zone.to_owned();
        for text in TEXTS {
            let read = moment::datetime(text.as_bytes(), 6, offset);
            let expected = read.map_or_else(|| "NULL".to_owned(), shown);
            let case = format!("'{text}' in {zone}");
            let cast = value(&mut server, &format!("SELECT CAST('{text}' AS DATETIME(6))")).await;
            assert_eq!(cast, expected, "CAST of {case}");
            let Some(micros) = read else { continue };
            let known = format!("SELECT CAST('{expected}' AS DATETIME(6)) AS at, '{text}' AS t");
            for condition in [
                format!("at = '{text}'"),
                "at = t".to_owned(),
                format!("at IN ('{text}', '1999-01-01')"),
                format!("at BETWEEN '{text}' AND '{text}'"),
                format!("at <=> CAST('{text}' AS DATETIME(6))"),
                format!("TIMESTAMPDIFF(MICROSECOND, '{text}', at) = 0"),
                format!("at IN (SELECT CAST('{text}' AS DATETIME(6)))"),
            ] {
                let sql = format!("SELECT COUNT(*) FROM ({known}) v WHERE {condition}");
                assert_eq!(value(&mut server, &sql).await, "1", "{condition} of {case}");
            }
            let filter =
                server.engine.compile_filter(&server.session, &schema, &format!("at = '{text}'")).unwrap();
            let batch = RecordBatch::try_from_iter([(
                "at",
                Arc::new(TimestampMicrosecondArray::from(vec![micros, micros + 1])) as _,
            )])
            .unwrap();
            let kept = filter.evaluate(&batch).unwrap();
            assert_eq!((kept.value(0), kept.value(1)), (true, false), "the condition of a load, {case}");
            if offset != 0 {
                // Texts that are converted while a generated column is computed are read in UTC.
                continue;
            }
            let expr = format!("CAST(IF(at = '{text}', '{text}', NULL) AS DATETIME(6))");
            let expr = tributary_sql::parse_expression(&expr).unwrap();
            let computed = server.engine.compile_generated(&server.session, &schema, "g", &expr).unwrap();
            let computed = computed.evaluate(&batch).unwrap();
            let computed = computed.column(0).as_primitive::<TimestampMicrosecondType>();
            assert_eq!(computed.value(0), micros, "a generated column, {case}");
            assert!(computed.is_null(1), "a generated column, {case}");
        }
    }
}
