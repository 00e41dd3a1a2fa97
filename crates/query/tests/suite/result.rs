//! Results other than rows: titles, types, parameters, errors, and expressions of loads.

use crate::common::{Server, collect, rows};
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::sync::Arc;
use tributary_query::{QueryOptions, ScalarValue};
use tributary_types::ErrorCode;

async fn server() -> Server {
    let mut server = Server::new();
    let create = "CREATE TABLE t (Id INT NOT NULL, UserName VARCHAR(20), at DATETIME) DUPLICATE KEY(Id) DISTRIBUTED BY RANDOM";
    server.run(create).await.unwrap();
    server.run("INSERT INTO t VALUES (1, 'ann', '2024-01-01'), (2, 'bob', NULL)").await.unwrap();
    server.run("FLUSH t").await.unwrap();
    server.run("INSERT INTO t VALUES (3, 'cy', NULL)").await.unwrap();
    server
}

#[tokio::test]
async fn titles_are_aliases_declared_names_and_the_text_as_written() {
    let server = server().await;
    for (sql, expected) in [
        ("SELECT * FROM t", vec!["Id", "UserName", "at"]),
        (
            "SELECT ID, t.username, 1+1,  COUNT( * ) FROM t GROUP BY 1, 2",
            vec!["ID", "username", "1+1", "COUNT( * )"],
        ),
        ("SELECT id AS MyId, 'txt', \"dq\" FROM t", vec!["MyId", "txt", "dq"]),
        ("SELECT 0 z, t.*, id + 1 FROM t", vec!["z", "Id", "UserName", "at", "id + 1"]),
        ("SELECT * FROM (SELECT MAX(Id) AS Top FROM t) x", vec!["Top"]),
        ("SELECT @@version, VERSION()", vec!["@@version", "VERSION()"]),
        ("SELECT 1 UNION SELECT 2", vec!["1"]),
    ] {
        assert_eq!(server.titles(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_column_that_is_shown_unchanged_keeps_its_declared_type_and_table() {
    let server = server().await;
    let query = tributary_sql::parse_query("SELECT username u, UPPER(username), id + 1 FROM t").unwrap();
    let columns = server.engine.describe(&server.session, &query).await.unwrap();
    assert_eq!(columns[0].declared, Some(tributary_types::DataType::Varchar { bytes: 20 }));
    assert_eq!(columns[0].table.as_deref(), Some("t"));
    assert_eq!(columns[0].original_name.as_deref(), Some("UserName"));
    assert_eq!((columns[1].declared, &columns[1].data_type), (None, &DataType::Utf8));
    assert_eq!((columns[2].declared, &columns[2].data_type), (None, &DataType::Int64));
}

#[tokio::test]
async fn a_column_has_the_name_in_from_that_it_is_read_from() {
    let server = server().await;
    for (sql, expected) in [
        ("SELECT id, x.username n, id + 1 FROM t x", vec![Some("x"), Some("x"), None]),
        ("SELECT * FROM (SELECT 1 AS one) AS A", vec![Some("A")]),
        (
            "SELECT b.id, a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.at LIMIT 1",
            vec![Some("b"), Some("a")],
        ),
        ("SELECT DISTINCT id FROM t", vec![Some("t")]),
        ("SELECT id FROM t UNION SELECT 1", vec![None]),
    ] {
        let query = tributary_sql::parse_query(sql).unwrap();
        let columns = server.engine.describe(&server.session, &query).await.unwrap();
        let aliases: Vec<Option<&str>> = columns.iter().map(|column| column.alias.as_deref()).collect();
        assert_eq!(aliases, expected, "{sql}");
    }
}

#[tokio::test]
async fn parameters_are_bound_in_the_order_of_the_text() {
    let server = server().await;
    let params =
        [ScalarValue::from("x"), ScalarValue::from(2i64), ScalarValue::from("1"), ScalarValue::from(1i64)];
    let answer =
        server.query("SELECT ?, id FROM t WHERE id <= ? AND id >= ? ORDER BY id DESC LIMIT ?", &params).await;
    assert_eq!(answer.unwrap(), [["x", "2"]]);
    let error = server.query("SELECT ?", &[]).await.unwrap_err();
    assert!(error.message.contains("has 1 parameters but 0 values"), "{error}");
    for (limit, offset) in [
        (ScalarValue::from("1"), ScalarValue::from(" 1 ")),
        (ScalarValue::from(1.0f64), ScalarValue::from("1.0")),
        (ScalarValue::from(1.0f32), ScalarValue::from(1u64)),
        (ScalarValue::Decimal128(Some(100), 5, 2), ScalarValue::from(1i8)),
    ] {
        let params = [limit, offset];
        let answer = server.query("SELECT id FROM t ORDER BY id LIMIT ? OFFSET ?", &params).await;
        assert_eq!(answer.unwrap(), [["2"]], "{params:?}");
        let params = [params[1].clone(), params[0].clone()];
        let answer = server.query("SELECT id FROM t ORDER BY id LIMIT ?, ?", &params).await;
        assert_eq!(answer.unwrap(), [["2"]], "{params:?}");
    }
    for wrong in
        [ScalarValue::Null, ScalarValue::from("one"), ScalarValue::from(1.5f64), ScalarValue::from(-1i64)]
    {
        let error = server.query("SELECT id FROM t LIMIT ?", &[wrong]).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::WrongArguments, "{error}");
    }
    let query = tributary_sql::parse_query("SELECT id FROM t WHERE id = ? LIMIT ?").unwrap();
    assert_eq!(server.engine.describe(&server.session, &query).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_statement_without_a_database_says_so() {
    let mut server = server().await;
    server.session.database = None;
    let error = server.query("SELECT * FROM t", &[]).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::NoDbSelected, "No database selected"));
    assert_eq!(server.query("SELECT DATABASE()", &[]).await.unwrap(), [["NULL"]]);
}

#[tokio::test]
async fn count_is_answered_from_statistics_and_files_are_pruned() {
    let mut server = server().await;
    let (_, plan) = server.run("EXPLAIN PHYSICAL PLAN SELECT COUNT(*) FROM t").await.unwrap().unwrap();
    let plan = rows(&plan).concat().join("\n");
    assert!(!plan.contains("DataSourceExec"), "{plan}");
    let (_, plan) =
        server.run("EXPLAIN PHYSICAL PLAN SELECT username FROM t WHERE id = '99'").await.unwrap().unwrap();
    let plan = rows(&plan).concat().join("\n");
    assert!(!plan.contains(".parquet"), "{plan}");
    let (_, plan) =
        server.run("EXPLAIN PHYSICAL PLAN SELECT username FROM t WHERE id = 1").await.unwrap().unwrap();
    assert!(rows(&plan).concat().join("\n").contains(".parquet"));
}

#[tokio::test]
async fn rows_published_after_a_query_began_are_not_seen_by_it() {
    let mut server = server().await;
    let query = tributary_sql::parse_query("SELECT id FROM t").unwrap();
    let result = server.engine.query(&server.session, &query, &[]).await.unwrap();
    server.run("INSERT INTO t VALUES (4, 'dora', NULL)").await.unwrap();
    let (_, batches) = collect(result).await.unwrap();
    assert_eq!(rows(&batches).len(), 3);
    assert_eq!(server.query("SELECT COUNT(*) FROM t", &[]).await.unwrap(), [["4"]]);
}

#[tokio::test]
async fn a_query_beyond_the_memory_limit_fails_and_names_the_remedy() {
    let mut server = Server::with_options(QueryOptions {
        memory_limit_bytes: 20_000,
        target_partitions: 1,
        ..QueryOptions::default()
    });
    server.run("CREATE TABLE m (k BIGINT) DUPLICATE KEY(k) DISTRIBUTED BY RANDOM").await.unwrap();
    server.run("INSERT INTO m VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)").await.unwrap();
    let sql = "SELECT COUNT(*) FROM (SELECT CONCAT(a.k, b.k, c.k, d.k, 'some text to make it long') x, COUNT(*) \
               FROM m a, m b, m c, m d GROUP BY x ORDER BY x) y";
    let error = server.query(sql, &[]).await.unwrap_err();
    assert!(error.message.contains("exec_mem_limit"), "{error}");
}

#[tokio::test]
async fn a_loads_condition_takes_null_for_false() {
    let server = server().await;
    let schema = server.table("t").def().schema.clone();
    let filter =
        server.engine.compile_filter(&server.session, &schema, "ID > '1' and UserName <> 'cy'").unwrap();
    let batch = RecordBatch::try_new(
        schema.arrow(),
        vec![
            Arc::new(arrow::array::Int32Array::from(vec![1, 2, 3, 4])),
            Arc::new(StringArray::from(vec![Some("a"), Some("b"), Some("cy"), None])),
            arrow::array::new_null_array(schema.arrow().field(2).data_type(), 4),
        ],
    )
    .unwrap();
    let mask = filter.evaluate(&batch).unwrap();
    assert_eq!(mask.iter().map(Option::unwrap).collect::<Vec<_>>(), [false, true, false, false]);
    let number = server.engine.compile_filter(&server.session, &schema, "id - 1").unwrap();
    assert_eq!(number.evaluate(&batch).unwrap().true_count(), 3);
    for bad in ["nope = 1", "id =", "id = 1) OR (1", "SUM(id) > 1", "1; SELECT 2"] {
        assert!(server.engine.compile_filter(&server.session, &schema, bad).is_err(), "{bad}");
    }
}

fn strings(names: &[&str], columns: Vec<Vec<&str>>) -> RecordBatch {
    let columns = names.iter().zip(columns).map(|(name, texts)| {
        let array: ArrayRef = Arc::new(StringArray::from(texts));
        ((*name).to_owned(), array)
    });
    RecordBatch::try_from_iter(columns).unwrap()
}

#[tokio::test]
async fn a_loads_columns_are_computed_from_texts() {
    let server = server().await;
    let batch = strings(&["c1", "Tmp"], vec![vec!["1", "x"], vec!["2024-01-31", "a b"]]);
    let targets = [
        ("k", "c1 + 1"),
        ("raw", "`tmp`"),
        ("y", "CASE WHEN c1 = 1 THEN year(tmp) ELSE 0 END"),
        ("fixed", "'z\\\\'"),
    ];
    let targets =
        targets.map(|(name, expr)| (name.to_owned(), tributary_sql::parse_expression(expr).unwrap()));
    let projection = server.engine.compile_projection(&server.session, &batch.schema(), &targets).unwrap();
    let computed = projection.evaluate(&batch).unwrap();
    assert_eq!(
        rows(std::slice::from_ref(&computed)),
        [["2", "2024-01-31", "2024", "z\\"], ["NULL", "a b", "0", "z\\"]]
    );
    assert_eq!(computed.schema().field(1).name(), "raw");
}

#[tokio::test]
async fn a_number_that_does_not_fit_a_cast_is_null_in_a_load_and_an_error_in_a_query() {
    let server = server().await;
    let batch = strings(&["c1"], vec![vec!["1", "1000", "x"]]);
    let narrow = tributary_sql::parse_expression("CAST(c1 * 1 AS TINYINT)").unwrap();
    let targets = [("k".to_owned(), narrow)];
    let projection = server.engine.compile_projection(&server.session, &batch.schema(), &targets).unwrap();
    let computed = projection.evaluate(&batch).unwrap();
    assert_eq!(rows(std::slice::from_ref(&computed)), [["1"], ["NULL"], ["NULL"]]);

    let stream = futures::stream::iter([Ok(batch.clone())]);
    let body = Box::pin(RecordBatchStreamAdapter::new(batch.schema(), stream));
    let text = "SELECT CAST(c1 * 1 AS TINYINT) FROM http_stream('format'='csv')";
    let query = tributary_sql::parse_query(text).unwrap();
    let result = server.engine.query_over(&server.session, &query, body).await.unwrap();
    let (_, batches) = collect(result).await.unwrap();
    assert_eq!(rows(&batches), [["1"], ["NULL"], ["NULL"]]);

    let error = server.query("SELECT CAST(Id * 1000 AS TINYINT) FROM t WHERE Id = 1", &[]).await.unwrap_err();
    assert!(error.to_string().contains("1000 does not fit TINYINT"), "{error}");
}

#[tokio::test]
async fn a_cast_to_datetime_says_how_many_digits_it_has() {
    let server = server().await;
    for (sql, scale) in [
        ("SELECT CAST(at AS DATETIME(3)) FROM t", 3),
        ("SELECT x FROM (SELECT CAST(at AS DATETIME) AS x FROM t) s", 0),
        ("SELECT NOW(6)", 6),
    ] {
        let query = tributary_sql::parse_query(sql).unwrap();
        let columns = server.engine.describe(&server.session, &query).await.unwrap();
        assert_eq!(columns[0].declared, Some(tributary_types::DataType::DateTime { scale }), "{sql}");
    }
}

#[tokio::test]
async fn the_columns_of_a_union_are_no_tables_columns() {
    let server = server().await;
    for sql in ["SELECT id FROM t UNION ALL SELECT 1", "SELECT * FROM t UNION SELECT * FROM t"] {
        let query = tributary_sql::parse_query(sql).unwrap();
        let columns = server.engine.describe(&server.session, &query).await.unwrap();
        assert_eq!((columns[0].declared, columns[0].table.as_deref()), (None, None), "{sql}");
    }
}

#[tokio::test]
async fn a_query_over_a_loads_body_reads_it_once() {
    let server = server().await;
    let batch = strings(&["c1", "c2"], vec![vec!["1", "2", "3"], vec!["a", "b", "c"]]);
    let body = || {
        let batches = futures::stream::iter([Ok(batch.clone())]);
        Box::pin(RecordBatchStreamAdapter::new(batch.schema(), batches))
    };
    let text = "SELECT c2, CAST(c1 AS SIGNED) * 2 FROM http_stream('format'='csv') WHERE c1 > 1";
    let query = tributary_sql::parse_query(text).unwrap();
    let result = server.engine.query_over(&server.session, &query, body()).await.unwrap();
    let (_, batches) = collect(result).await.unwrap();
    assert_eq!(rows(&batches), [["b", "4"], ["c", "6"]]);
    assert_eq!(batches[0].column(1).as_primitive::<Int64Type>().value(0), 4);
}

#[tokio::test]
async fn long_chains_of_or_are_answered() {
    let server = server().await;
    let chain = (0..480).map(|value| format!("id = {value}")).collect::<Vec<_>>().join(" OR ");
    let sql = format!("SELECT COUNT(*) FROM t WHERE {chain}");
    assert_eq!(server.query(&sql, &[]).await.unwrap(), [["3"]]);
}

#[tokio::test]
async fn an_expression_of_the_greatest_depth_is_answered() {
    let server = server().await;
    let sql = format!("SELECT id{} FROM t WHERE id = 1", "+id".repeat(195));
    assert_eq!(server.query(&sql, &[]).await.unwrap(), [["196"]]);
    let error = server.query(&format!("SELECT 1{}", "+1".repeat(250)), &[]).await.unwrap_err();
    assert!(error.message.contains("expressions nest deeper than 200 levels"), "{error}");
}

#[tokio::test]
async fn deep_trees_of_every_operator_are_answered_or_refused_but_never_overflow_the_stack() {
    let server = server().await;
    let left_deep = [
        " + 1",
        " / 2",
        " DIV 1",
        " % 7",
        " = 1",
        " <=> 1",
        " + INTERVAL 1 DAY",
        " IS NULL",
        " LIKE 'a'",
        " XOR 1",
        " IN (0, '1')",
    ];
    for tail in left_deep {
        let sql = format!("SELECT id{} FROM t", tail.repeat(90));
        if let Err(error) = server.query(&sql, &[]).await {
            panic!("{tail}: {error}");
        }
    }
    for head in ["NOT ", "- ", "!"] {
        let _ = server.query(&format!("SELECT {} id FROM t", head.repeat(180)), &[]).await;
    }
    for (open, close) in [
        ("CONCAT(", ", 'x')"),
        ("IF(id = 1, ", ", 2)"),
        ("(SELECT ", ")"),
        ("UPPER(", ")"),
        ("GREATEST(", ", 1)"),
        ("NULLIF(", ", 7)"),
        ("CASE ", " WHEN 1 THEN 2 END"),
    ] {
        for depth in [20, 45] {
            let sql = format!("SELECT {} id {} FROM t", open.repeat(depth), close.repeat(depth));
            let _ = server.query(&sql, &[]).await;
        }
    }
    let sql = format!("SELECT id {} FROM t", "BETWEEN 0 AND '1' ".repeat(40));
    let error = server.query(&sql, &[]).await.unwrap_err();
    assert!(error.message.contains("nest deeper than 8 levels; write BETWEEN as >= and <=,"), "{error}");
    let union = vec!["SELECT id FROM t"; 200].join(" UNION ALL ");
    assert_eq!(server.query(&union, &[]).await.unwrap().len(), 600);
}

/// The plan of a query, its steps one after the other.
async fn plan(server: &mut Server, sql: &str) -> String {
    let (_, batches) = server.run(&format!("EXPLAIN PHYSICAL PLAN {sql}")).await.unwrap().unwrap();
    rows(&batches).concat().join("\n")
}

#[tokio::test]
async fn few_deleted_rows_are_left_out_together_with_simple_filters() {
    let mut server = Server::new();
    let values: Vec<String> = (0..20).map(|k| format!("({k}, {}, 'v{k}')", k % 5)).collect();
    server.run("CREATE TABLE t (k INT, a INT, s VARCHAR(20)) DUPLICATE KEY(k)").await.unwrap();
    server.run(&format!("INSERT INTO t VALUES {}", values.join(", "))).await.unwrap();
    server.run("FLUSH t").await.unwrap();
    assert!(!plan(&mut server, "SELECT s FROM t WHERE k >= 0").await.contains("LiveRows"));
    server.run("DELETE FROM t WHERE k = 3").await.unwrap();
    for (sql, step, has_filter) in [
        ("SELECT s FROM t WHERE k >= 0", "LiveRows: k@0 >= 0", false),
        ("SELECT s FROM t WHERE k >= 0 AND 9 > a", "LiveRows: k@0 >= 0 AND a@1 < 9", false),
        ("SELECT COUNT(s) FROM t", "LiveRows", false),
        // A condition that can fail waits until deleted rows are filtered out.
        ("SELECT s FROM t WHERE k >= 0 AND k + a >= 0", "LiveRows: k@0 >= 0", true),
    ] {
        let steps = plan(&mut server, sql).await;
        assert!(steps.contains(step) && steps.contains("FilterExec") == has_filter, "{sql}\n{steps}");
    }
    // If the reader can skip much by itself, it does.
    for sql in ["SELECT s FROM t WHERE k = 7", "SELECT s FROM t WHERE k > 15", "SELECT COUNT(*) FROM t"] {
        let steps = plan(&mut server, sql).await;
        assert!(!steps.contains("LiveRows"), "{sql}\n{steps}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_a_struct_has_its_declared_type() {
    let mut server = Server::new();
    server
        .run(
            "CREATE TABLE n (k INT, s STRUCT<at:DATETIME(3), l:ARRAY<DATETIME>, n:INT>) DUPLICATE KEY(k)
             DISTRIBUTED BY HASH(k)",
        )
        .await
        .unwrap();
    let query =
        tributary_sql::parse_query("SELECT s.at, n.s.l AS l, s.n, MAX(s.at) OVER (ORDER BY k) FROM n")
            .unwrap();
    let described = server.engine.describe(&server.session, &query).await.unwrap();
    let types: Vec<String> = described.iter().map(|column| column.table_type().to_string()).collect();
    assert_eq!(types, ["datetime(3)", "array<datetime>", "int", "datetime(3)"]);
}
