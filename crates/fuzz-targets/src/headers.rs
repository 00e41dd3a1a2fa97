//! The headers of loads.
//!
//! Nothing may panic; accepted headers must yield what [`StreamLoadRequest`] promises; refusals must state the reason. The list
//! of `columns` must read the same when it is written again.

use tributary_decode::{BodyFormat, LoadFormat};
use tributary_http::fuzzing::{self, header};
use tributary_http::{ColumnMapping, StreamLoadRequest, TIMEOUT_SECONDS_MAX, TwoPhaseTarget};
use tributary_types::Label;

/// The limit of a body, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Lines `name: value`; the first line is a method and a path.
pub fn headers(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    check_route(first);
    let mut map = header::HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let name = header::HeaderName::from_bytes(&line[..colon]);
        let value = header::HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    let _ = fuzzing::has_credentials(&map);
    match fuzzing::stream_load(&map, MAX_BYTES) {
        Ok(request) => check(&request, &map),
        Err(text) => assert!(text.starts_with('['), "no code: {text}"),
    }
    match fuzzing::http_stream(&map, MAX_BYTES) {
        Ok(request) => {
            assert!(!request.sql.is_empty());
            assert!((0.0..=1.0).contains(&request.max_filter_ratio));
            check_times(request.timeout.as_secs(), request.label.as_ref());
        }
        Err(text) => assert!(text.starts_with('['), "no code: {text}"),
    }
    match fuzzing::two_phase(&map) {
        Ok((_, TwoPhaseTarget { txn_id, label })) => assert!(txn_id.is_some() || label.is_some()),
        Err(text) => assert!(!text.is_empty()),
    }
}

fn check_route(line: &[u8]) {
    let Ok(text) = std::str::from_utf8(line) else { return };
    let (method, path) = text.split_once(' ').unwrap_or(("PUT", text));
    if let Ok(method) = method.parse() {
        let _ = fuzzing::has_route(&method, path);
    }
    // The same rules are for separators in the properties of `http_stream(…)`.
    if let Ok(LoadFormat { body: BodyFormat::Csv(format), .. }) =
        LoadFormat::from_properties([("column_separator", text)])
    {
        assert!(!format.column_separator.is_empty());
    }
}

fn check_times(timeout_seconds: u64, label: Option<&Label>) {
    assert!((1..=TIMEOUT_SECONDS_MAX).contains(&timeout_seconds));
    if let Some(label) = label {
        assert_eq!(Label::new(label.as_str()).as_ref(), Ok(label));
    }
}

fn check(request: &StreamLoadRequest, map: &header::HeaderMap) {
    match &request.format {
        BodyFormat::Columnar(_) => {}
        BodyFormat::Csv(format) => {
            assert!(!format.column_separator.is_empty() && !format.line_delimiter.is_empty());
        }
        BodyFormat::Json(format) => assert!(!format.line_delimiter.is_empty()),
    }
    assert!((0.0..=1.0).contains(&request.max_filter_ratio));
    check_times(request.timeout.as_secs(), request.label.as_ref());
    assert_eq!(request.chunked, request.content_length.is_none());
    assert!(request.content_length.is_none_or(|bytes| bytes <= MAX_BYTES));
    if let Some(text) = &request.where_expr {
        assert!(!text.is_empty());
        let _ = tributary_sql::parse_expression(text);
    }
    let Some(columns) = &request.columns else { return };
    assert!(!columns.is_empty());
    for expr in columns.iter().filter_map(|column| column.expr.as_deref()) {
        assert!(!expr.is_empty());
        let _ = tributary_sql::parse_expression(expr);
    }
    let mut again = map.clone();
    let Ok(text) = header::HeaderValue::from_bytes(written(columns).as_bytes()) else {
        panic!("columns cannot be written again: {columns:?}")
    };
    again.insert("columns", text);
    let again = fuzzing::stream_load(&again, MAX_BYTES).expect("columns are read again");
    assert_eq!(again.columns.as_ref(), Some(columns));
}

fn written(columns: &[ColumnMapping]) -> String {
    let entry = |column: &ColumnMapping| {
        let name = column.name.replace('`', "``");
        column.expr.as_ref().map_or_else(|| format!("`{name}`"), |expr| format!("`{name}` = {expr}"))
    };
    columns.iter().map(entry).collect::<Vec<_>>().join(", ")
}
