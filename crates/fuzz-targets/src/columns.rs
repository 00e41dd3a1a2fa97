//! The list of columns that loads have, and its expressions.
//!
//! A list that is accepted reads the same when it is written again, alone and beside another. An expression in it is complete: in
//! parentheses it is the same one, so nothing in it reaches out of its entry.

use sqlparser::ast::Expr;
use tributary_http::ColumnMapping;
use tributary_http::fuzzing::{self, header};

/// The input is the text of the header.
pub fn columns(data: &[u8]) {
    let Some(columns) = read(data) else { return };
    assert!(!columns.is_empty());
    let text = written(&columns);
    assert_eq!(read(text.as_bytes()).as_ref(), Some(&columns), "{text}");
    let doubled = read(format!("x, {text}, `y` = f(1)").as_bytes()).expect("three lists in one");
    assert_eq!(doubled[1..doubled.len() - 1], columns);
    for text in columns.iter().filter_map(|column| column.expr.as_deref()) {
        let Ok(expr) = tributary_sql::parse_expression(text) else { continue };
        // A comment may end with the line.
        match tributary_sql::parse_expression(&format!("({text}\n)")) {
            Ok(Expr::Nested(inner)) => assert_eq!(*inner, expr, "{text}"),
            // It was as deep as it may be.
            Err(error) if error.detail_text().contains("nests deeper") => {}
            // Two of them are a row, which no entry is without its own parentheses.
            other => panic!("{text}: {other:?}"),
        }
    }
}

fn read(text: &[u8]) -> Option<Vec<ColumnMapping>> {
    let mut map = header::HeaderMap::new();
    map.insert("columns", header::HeaderValue::from_bytes(text).ok()?);
    map.insert("content-length", header::HeaderValue::from_static("1"));
    fuzzing::stream_load(&map, 1 << 30).ok()?.columns
}

fn written(columns: &[ColumnMapping]) -> String {
    let entry = |column: &ColumnMapping| {
        let name = column.name.replace('`', "``");
        column.expr.as_ref().map_or_else(|| format!("`{name}`"), |expr| format!("`{name}` = {expr}"))
    };
    columns.iter().map(entry).collect::<Vec<_>>().join(", ")
}
