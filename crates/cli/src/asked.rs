//! The rows of a statement, asked for over HTTP.

use crate::http::{Body, Pace, Server};
use serde_json::{Map, Value};

/// The rows of the statement's answer as objects. Its names are those of `information_schema` if it names no database.
///
/// # Errors
/// A sentence about the answer that did not come, or the error that the server answered.
pub(crate) fn ask(server: &Server, statement: &str) -> Result<Vec<Value>, String> {
    let body = serde_json::json!({ "stmt": statement }).to_string();
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let path = "/api/query/default_cluster/information_schema";
    let answer = server
        .request("POST", path, &headers, Some(&Body::Bytes(body.into_bytes())), &Pace::default(), &mut || {
            Ok(())
        })
        .map_err(|failure| failure.to_string())?;
    let json = answer.json().ok_or_else(|| format!("HTTP {} without JSON", answer.status))?;
    rows(&json).ok_or_else(|| match json.get("data").and_then(Value::as_str) {
        Some(error) => error.to_owned(),
        None => {
            format!(
                "HTTP {}: {}",
                answer.status,
                json.get("msg").and_then(Value::as_str).unwrap_or("no rows")
            )
        }
    })
}

/// The rows of an answer as objects.
fn rows(json: &Value) -> Option<Vec<Value>> {
    let data = json.get("data")?;
    let names: Vec<_> =
        data.get("meta")?.as_array()?.iter().filter_map(|column| column.get("name")?.as_str()).collect();
    let object = |row: &Value| {
        let values = row.as_array()?.iter().cloned();
        Some(Value::from(names.iter().map(|name| (*name).to_owned()).zip(values).collect::<Map<_, _>>()))
    };
    data.get("data")?.as_array()?.iter().map(object).collect()
}

/// The text of a field without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_objects_and_an_error_is_none() {
        let json = serde_json::json!({"data": {"meta": [{"name": "A"}, {"name": "B"}], "data": [["x", 1]]}});
        assert_eq!(rows(&json), Some(vec![serde_json::json!({"A": "x", "B": 1})]));
        assert!(rows(&serde_json::json!({"data": "Access denied"})).is_none());
    }
}
