//! A text is the same value at every place where one meets another type: in CAST, in comparisons of each kind, in the conditions
//! of loads and in generated columns. Loads read texts with `tributary_types::{moment, number, decimal}` themselves.

use crate::common::{Server, rows};
use arrow::array::{Array, AsArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use std::sync::Arc;
use tributary_types::{ColumnDef, DataType, SchemaVersion, TableSchema, decimal, moment, number};

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

/// The texts that are moments in a zone, and these moments.
fn readable(offset: i32) -> impl Iterator<Item = (&'static str, i64)> {
    TEXTS.into_iter().filter_map(move |text| Some((text, moment::datetime(text.as_bytes(), 6, offset)?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_rows_are_the_same_moments_as_constants() {
    for (zone, offset) in ZONES {
        let mut server = Server::new();
        server.session.time_zone = zone.to_owned();
        server
            .run("CREATE TABLE n (k INT, at DATETIME(6), t VARCHAR(64)) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k)")
            .await
            .unwrap();
        let rows = readable(offset).enumerate();
        let rows = rows.map(|(k, (text, micros))| format!("({k}, '{}', '{text}')", shown(micros)));
        let rows: Vec<String> = rows.collect();
        server.run(&format!("INSERT INTO n VALUES {}", rows.join(", "))).await.unwrap();
        server.run("FLUSH n").await.unwrap();
        let expected = rows.len().to_string();
        for condition in [
            "at = t",
            "at <=> t",
            "t = at",
            "at IN (t, '1999-01-01')",
            "at BETWEEN t AND t",
            "at = CAST(t AS DATETIME(6))",
            "at = CONVERT(t, DATETIME(6))",
            "CAST(at AS DATE) = CAST(t AS DATE)",
            "TIMESTAMPDIFF(MICROSECOND, t, at) = 0",
            "HOUR(t) = HOUR(at)",
            "COALESCE(CAST(t AS DATETIME(6)), '1999-01-01') = at",
        ] {
            let sql = format!("SELECT COUNT(*) FROM n WHERE {condition}");
            assert_eq!(value(&mut server, &sql).await, expected, "{condition} in {zone}");
        }
        let joined = "SELECT COUNT(*) FROM n a JOIN n b ON a.at = b.t AND a.k = b.k";
        assert_eq!(value(&mut server, joined).await, expected, "a join in {zone}");
        server.run("DELETE FROM n WHERE at = t").await.unwrap();
        assert_eq!(value(&mut server, "SELECT COUNT(*) FROM n").await, "0", "DELETE in {zone}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_the_rows_of_a_load_are_in_its_zone() {
    let columns =
        [ColumnDef::new(1, "at", DataType::DateTime { scale: 6 }), ColumnDef::new(2, "t", DataType::String)];
    let schema = TableSchema::new(SchemaVersion(1), columns.to_vec());
    for (zone, offset) in ZONES {
        let mut server = Server::new();
        server.session.time_zone = zone.to_owned();
        let micros: Vec<i64> = readable(offset).map(|(_, micros)| micros).collect();
        let texts: Vec<&str> = readable(offset).map(|(text, _)| text).collect();
        let batch = RecordBatch::try_from_iter([
            ("at", Arc::new(TimestampMicrosecondArray::from(micros.clone())) as _),
            ("t", Arc::new(StringArray::from(texts.clone())) as _),
        ])
        .unwrap();
        for condition in ["at = t", "at = CAST(t AS DATETIME(6))", "at IN (t, '1999-01-01')"] {
            let filter = server.engine.compile_filter(&server.session, &schema, condition).unwrap();
            let kept = filter.evaluate(&batch).unwrap();
            for (row, text) in texts.iter().enumerate() {
                assert!(kept.value(row), "{condition} of '{text}' in {zone}");
            }
        }
        let expr = tributary_sql::parse_expression("CAST(t AS DATETIME(6))").unwrap();
        let generated = server.engine.compile_generated(&server.session, &schema, "g", &expr).unwrap();
        let derived = [("g".to_owned(), expr)];
        let derived = server.engine.compile_projection(&server.session, &batch.schema(), &derived).unwrap();
        for (kind, projection) in [("a generated column", generated), ("a derived column", derived)] {
            let computed = projection.evaluate(&batch).unwrap();
            let computed = computed.column(0).as_primitive::<TimestampMicrosecondType>();
            for (row, text) in texts.iter().enumerate() {
                assert_eq!(computed.value(row), micros[row], "{kind} of '{text}' in {zone}");
            }
        }
    }
}

/// Numbers and BOOLEANs, and texts that are neither.
const NUMBERS: [&str; 26] = [
    "1",
    "0",
    "-7",
    "+5",
    " 12 ",
    "1.5",
    "-0.25",
    ".5",
    "5.",
    "1e3",
    "1E-1",
    "127",
    "128",
    "32768",
    "2147483648",
    "9223372036854775808",
    "99999999999999999999999999999999999999",
    "inf",
    "1e39",
    "true",
    "F",
    "yes",
    "off",
    "abc",
    "",
    "1_0",
];

/// A type's name in CAST, and the value that loads read from a text, as rows show it.
type Read = (&'static str, fn(&str) -> Option<String>);

const READ: [Read; 9] = [
    ("BOOLEAN", |text| number::boolean(text.as_bytes()).map(|value| u8::from(value).to_string())),
    ("TINYINT", |text| integer::<i8>(text)),
    ("SMALLINT", |text| integer::<i16>(text)),
    ("INT", |text| integer::<i32>(text)),
    ("BIGINT", |text| integer::<i64>(text)),
    ("LARGEINT", |text| {
        let value = number::large_int(text.as_bytes())?;
        (value.unsigned_abs() < number::LARGEINT_LIMIT.unsigned_abs()).then(|| value.to_string())
    }),
    ("FLOAT", |text| number::float(text.as_bytes(), false).map(|value| value.to_string())),
    ("DOUBLE", |text| number::double(text.as_bytes(), false).map(|value| value.to_string())),
    ("DECIMAL(10,2)", |text| {
        let value = decimal::decimal(text.as_bytes(), 10, 2).ok()?;
        let sign = if value < 0 { "-" } else { "" };
        Some(format!("{sign}{}.{:02}", value.abs() / 100, value.abs() % 100))
    }),
];

fn integer<T: TryFrom<i64> + ToString>(text: &str) -> Option<String> {
    T::try_from(number::int(text.as_bytes())?).ok().map(|value| value.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_the_same_number_at_every_place() {
    let mut server = Server::new();
    server
        .run("CREATE TABLE n (k INT, t VARCHAR(64)) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k)")
        .await
        .unwrap();
    let values: Vec<String> =
        NUMBERS.iter().enumerate().map(|(k, text)| format!("({k}, '{text}')")).collect();
    server.run(&format!("INSERT INTO n VALUES {}", values.join(", "))).await.unwrap();
    let schema = TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(1, "t", DataType::String)]);
    let batch =
        RecordBatch::try_from_iter([("t", Arc::new(StringArray::from(NUMBERS.to_vec())) as _)]).unwrap();
    for (name, read) in READ {
        let expected: Vec<String> =
            NUMBERS.iter().map(|text| read(text).unwrap_or_else(|| "NULL".to_owned())).collect();
        let cast = NUMBERS.map(|text| format!("CAST('{text}' AS {name})"));
        let constants = server.query(&format!("SELECT {}", cast.join(", ")), &[]).await.unwrap();
        assert_eq!(constants[0], expected, "constants as {name}");
        let cast = format!("SELECT CAST(t AS {name}) FROM n ORDER BY k");
        let of_rows = server.query(&cast, &[]).await.unwrap();
        assert_eq!(of_rows.concat(), expected, "rows as {name}");
        let expr = tributary_sql::parse_expression(&format!("CAST(t AS {name})")).unwrap();
        let generated = server.engine.compile_generated(&server.session, &schema, "g", &expr).unwrap();
        let derived = [("g".to_owned(), expr)];
        let derived = server.engine.compile_projection(&server.session, &batch.schema(), &derived).unwrap();
        for (kind, projection) in [("a generated", generated), ("a derived", derived)] {
            let computed = rows(&[projection.evaluate(&batch).unwrap()]).concat();
            assert_eq!(computed, expected, "{kind} column of {name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_compares_as_the_boolean_or_number_that_it_is() {
    let mut server = Server::new();
    server
        .run("CREATE TABLE n (k INT, b BOOLEAN, d DOUBLE, t VARCHAR(64)) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k)")
        .await
        .unwrap();
    let values = NUMBERS.iter().enumerate().map(|(k, text)| {
        let (boolean, double) = (number::boolean(text.as_bytes()), number::double(text.as_bytes(), false));
        let boolean = boolean.map_or("NULL", |value| if value { "TRUE" } else { "FALSE" });
        let double =
            double.filter(|value| value.is_finite()).map_or("NULL".to_owned(), |value| format!("{value:e}"));
        format!("({k}, {boolean}, {double}, '{text}')")
    });
    let values: Vec<String> = values.collect();
    server.run(&format!("INSERT INTO n VALUES {}", values.join(", "))).await.unwrap();
    for column in ["b", "d"] {
        let known = format!("SELECT COUNT({column}) FROM n");
        let known = value(&mut server, &known).await;
        for condition in ["# = t", "t = #", "# IN (t, '17')", "# BETWEEN t AND t", "# <=> t"] {
            let condition = condition.replace('#', column);
            let sql = format!("SELECT COUNT(*) FROM n WHERE {column} IS NOT NULL AND {condition}");
            assert_eq!(value(&mut server, &sql).await, known, "{condition}");
        }
        let constants =
            NUMBERS.iter().enumerate().map(|(k, text)| format!("(k = {k} AND {column} = '{text}')"));
        let constants: Vec<String> = constants.collect();
        let sql = format!("SELECT COUNT(*) FROM n WHERE {}", constants.join(" OR "));
        assert_eq!(value(&mut server, &sql).await, known, "{column} and constants");
    }
}
