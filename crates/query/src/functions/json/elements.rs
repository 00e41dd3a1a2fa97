//! The elements of arrays and the members of objects in JSON, as arrays: `EXPLODE_JSON_ARRAY_INT`, `JSON_EACH` and so on.
//!
//! As in Doris, elements are converted as CAST converts them: the text "12.5" is the BIGINT 12, and what is no number is NULL.

use super::documents::document;
use crate::functions::nested::arrays::list_of;
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, Float64Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use serde_json::Value;
use std::sync::Arc;
use tributary_types::{DataType as Declared, number};

/// The first DOUBLE that no BIGINT has.
const BIGINT_END: f64 = 9_223_372_036_854_775_808.0;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    let texts = || list_of(DataType::Utf8);
    let documents = Declared::array(Declared::Json);
    vec![
        MySqlFunction::new(
            "__json_integers",
            &[Text],
            || list_of(DataType::Int64),
            |args| {
                let mut lists = ListBuilder::new(Int64Builder::new());
                for row in 0..args[0].len() {
                    let elements = elements(&args[0], row);
                    lists.append_option(
                        elements.map(|elements| elements.into_iter().map(|value| integer(&value))),
                    );
                }
                Ok(Arc::new(lists.finish()))
            },
        ),
        MySqlFunction::new(
            "__json_doubles",
            &[Text],
            || list_of(DataType::Float64),
            |args| {
                let mut lists = ListBuilder::new(Float64Builder::new());
                for row in 0..args[0].len() {
                    let elements = elements(&args[0], row);
                    lists.append_option(
                        elements.map(|elements| elements.into_iter().map(|value| double(&value))),
                    );
                }
                Ok(Arc::new(lists.finish()))
            },
        ),
        MySqlFunction::new("__json_texts", &[Text], texts, |args| all_of(args, elements, plain)),
        MySqlFunction::new("__json_documents", &[Text], texts, |args| all_of(args, elements, of_json))
            .making(documents),
        MySqlFunction::new("__json_members", &[Text], texts, |args| all_of(args, members, written))
            .making(documents),
        MySqlFunction::new("__json_member_texts", &[Text], texts, |args| all_of(args, members, plain)),
    ]
}

/// The elements of a row's array; `None` for other documents.
fn elements(column: &ArrayRef, row: usize) -> Option<Vec<Value>> {
    match document(column, row)? {
        Value::Array(elements) => Some(elements),
        _ => None,
    }
}

/// The values of the members of a row's object; `None` for other documents.
fn members(column: &ArrayRef, row: usize) -> Option<Vec<Value>> {
    match document(column, row)? {
        Value::Object(members) => Some(members.into_iter().map(|(_, value)| value).collect()),
        _ => None,
    }
}

fn all_of(
    args: &[ArrayRef],
    parts: fn(&ArrayRef, usize) -> Option<Vec<Value>>,
    text: fn(Value) -> Option<String>,
) -> Result<ArrayRef> {
    let mut growth = growth::Bytes::new("explode", args);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..args[0].len() {
        let texts = parts(&args[0], row).map(|values| values.into_iter().map(text).collect::<Vec<_>>());
        growth.add(texts.iter().flatten().flatten().map(String::len).sum())?;
        lists.append_option(texts);
    }
    Ok(Arc::new(lists.finish()))
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(truth) => Some(i64::from(*truth)),
        Value::Number(number) => number.as_i64().or_else(|| {
            let whole = number.as_f64()?.trunc();
            (-BIGINT_END..BIGINT_END).contains(&whole).then_some(whole as i64)
        }),
        Value::String(text) => number::int(text.as_bytes()),
        _ => None,
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number::double(text.as_bytes(), false),
        _ => None,
    }
}

/// A text without its quotes, and other values as JSON writes them.
fn plain(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// A document; NULL for null.
fn of_json(value: Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// A document, which may be null.
fn written(value: Value) -> Option<String> {
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_are_converted_as_doris_documents_it() {
        let integers = [
            (json!(4), Some(4)),
            (json!(5.23), Some(5)),
            (json!("123.4"), Some(123)),
            (json!("abc"), None),
            (json!(9223372036854775808.0), None),
            (json!(9223372036854775295.999999), Some(9223372036854774784)),
            (json!(true), Some(1)),
            (json!(null), None),
            (json!([1]), None),
        ];
        for (value, expected) in integers {
            assert_eq!(integer(&value), expected, "{value}");
        }
        assert_eq!(
            [double(&json!("2.5")), double(&json!(1)), double(&json!("x"))],
            [Some(2.5), Some(1.0), None]
        );
        assert_eq!(plain(json!("a")).as_deref(), Some("a"));
        assert_eq!(plain(json!({"a": 1})).as_deref(), Some("{\"a\":1}"));
        assert_eq!(
            (plain(json!(null)), of_json(json!(null)), written(json!(null))),
            (None, None, Some("null".into()))
        );
    }
}
