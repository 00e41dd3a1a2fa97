use super::*;

#[test]
fn the_statement_says_table_columns_properties_list_and_filter() {
    let sql = r#"insert into d.t with label l (a, b) select c1, c2 * 2 as x
        from HTTP_STREAM("Format" = "CSV", 'column_separator' = ',', "skip_lines" = 1, "trim_double_quotes" = true)
        where c1 > 1;"#;
    let stream = parse_http_stream(sql).unwrap();
    assert_eq!((stream.insert.table.db.as_deref(), stream.insert.table.table.as_str()), (Some("d"), "t"));
    assert_eq!(stream.insert.label.as_deref(), Some("l"));
    assert_eq!(stream.insert.columns, Some(vec!["a".to_owned(), "b".to_owned()]));
    let properties: Vec<(&str, &str)> =
        stream.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        properties,
        [("column_separator", ","), ("format", "CSV"), ("skip_lines", "1"), ("trim_double_quotes", "true")]
    );
    let items: Vec<String> = stream.items.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(items, ["c1", "c2 * 2"]);
    assert_eq!(stream.where_expr.unwrap().to_string(), "c1 > 1");
}

#[test]
fn a_star_is_no_list() {
    let stream = parse_http_stream("INSERT INTO t SELECT * FROM http_stream()").unwrap();
    assert_eq!((stream.items, stream.where_expr), (None, None));
    assert!(stream.properties.is_empty() && stream.insert.partitions.is_any());
}

#[test]
fn other_statements_are_refused_with_the_shape_that_is_meant() {
    for sql in [
        "SELECT 1",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t SELECT * FROM u",
        "INSERT INTO t SELECT * FROM s3('a' = 'b')",
        "INSERT INTO t SELECT * FROM http_stream(), u",
    ] {
        let error = parse_http_stream(sql).unwrap_err();
        assert!(
            error.detail_text().starts_with(&format!("parse db and tb with wrong sql:{sql}; ")),
            "{error}"
        );
    }
    for (sql, text) in [
        ("INSERT INTO t SELECT * FROM http_stream() LIMIT 1", "without GROUP BY, ORDER BY, LIMIT or joins"),
        ("INSERT INTO t SELECT a, t.* FROM http_stream()", "is not supported in the select list"),
        ("INSERT INTO t SELECT * FROM http_stream('csv')", "is not a property of http_stream"),
    ] {
        let error = parse_http_stream(sql).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotSupported);
        assert!(error.detail_text().contains(text), "{error}");
    }
    assert_eq!(parse_http_stream("INSERT INTO").unwrap_err().code, ErrorCode::Syntax);
}
