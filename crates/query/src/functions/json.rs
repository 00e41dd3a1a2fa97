//! JSON functions over JSON text, with paths like `$.a[0]."b c"`.

use super::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use datafusion::common::Result;
use serde_json::Value;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    let (text, int, real, boolean) = (super::utf8, super::int64, super::float64, super::boolean);
    vec![
        MySqlFunction::new("json_extract", &[Text, Text], text, |args| {
            Ok(texts(args, |v| Some(v.to_string())))
        }),
        MySqlFunction::new("get_json_string", &[Text, Text], text, |args| Ok(texts(args, plain))),
        MySqlFunction::new("get_json_bigint", &[Text, Text], int, |args| {
            Ok(Arc::new(found(args).map(|v| v.and_then(|v| integer(&v))).collect::<Int64Array>()))
        }),
        MySqlFunction::new("get_json_double", &[Text, Text], real, |args| {
            Ok(Arc::new(found(args).map(|v| v.and_then(|v| double(&v))).collect::<Float64Array>()))
        }),
        MySqlFunction::new("get_json_bool", &[Text, Text], boolean, |args| {
            Ok(Arc::new(found(args).map(|v| v.and_then(|v| v.as_bool())).collect::<BooleanArray>()))
        }),
        MySqlFunction::new("json_exists_path", &[Text, Text], boolean, |args| {
            Ok(Arc::new(found(args).map(|v| Some(v.is_some())).collect::<BooleanArray>()))
        }),
        MySqlFunction::new("json_unquote", &[Text], text, |args| {
            each(&args[0], |text| {
                Some(match serde_json::from_str(text) {
                    Ok(Value::String(inner)) => inner,
                    _ => text.to_owned(),
                })
            })
        }),
        MySqlFunction::new("json_quote", &[Text], text, |args| {
            each(&args[0], |text| Some(Value::String(text.to_owned()).to_string()))
        }),
        MySqlFunction::new("json_type", &[Text, Text], text, |args| {
            Ok(texts(args, |value| Some(type_name(value).to_owned())))
        }),
        MySqlFunction::new("json_valid", &[Text], int, |args| {
            let valid = |text: &str| i64::from(serde_json::from_str::<Value>(text).is_ok());
            Ok(Arc::new(args[0].as_string::<i32>().iter().map(|v| v.map(valid)).collect::<Int64Array>()))
        }),
        MySqlFunction::new("json_length", &[Text, Text], int, |args| {
            Ok(Arc::new(found(args).map(|v| v.map(|v| length(&v))).collect::<Int64Array>()))
        })
        .optional(1),
    ]
}

fn each(array: &ArrayRef, f: impl Fn(&str) -> Option<String>) -> Result<ArrayRef> {
    Ok(Arc::new(array.as_string::<i32>().iter().map(|v| v.and_then(&f)).collect::<StringArray>()))
}

/// The values that the paths of column 1 find in the documents of column 0.
fn found(args: &[ArrayRef]) -> impl Iterator<Item = Option<Value>> + '_ {
    let documents = args[0].as_string::<i32>();
    let paths = args.get(1).map(AsArray::as_string::<i32>);
    (0..documents.len()).map(move |row| {
        if documents.is_null(row) || paths.is_some_and(|paths| paths.is_null(row)) {
            return None;
        }
        let document: Value = serde_json::from_str(documents.value(row)).ok()?;
        match paths {
            Some(paths) => take(document, paths.value(row)),
            None => Some(document),
        }
    })
}

fn texts(args: &[ArrayRef], f: impl Fn(&Value) -> Option<String>) -> ArrayRef {
    Arc::new(found(args).map(|value| value.and_then(|value| f(&value))).collect::<StringArray>())
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|value| value as i64))
}

fn double(value: &Value) -> Option<f64> {
    value.as_f64()
}

fn length(value: &Value) -> i64 {
    match value {
        Value::Array(items) => items.len() as i64,
        Value::Object(members) => members.len() as i64,
        _ => 1,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "double",
        Value::Number(_) => "bigint",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Walks `path` from `document`. `None` for a path that leads nowhere or is none.
fn take(document: Value, path: &str) -> Option<Value> {
    let mut here = document;
    let mut rest = path.trim().strip_prefix('$')?;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = member(after)?;
            here = here.as_object_mut()?.shift_remove(name)?;
            rest = after;
        } else {
            let inner = rest.strip_prefix('[')?;
            let (index, after) = inner.split_once(']')?;
            let index: usize = index.trim().parse().ok()?;
            let items = here.as_array_mut()?;
            if index >= items.len() {
                return None;
            }
            here = items.swap_remove(index);
            rest = after;
        }
    }
    Some(here)
}

/// The member name that a path begins with, quoted or plain, and what follows.
fn member(path: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = path.strip_prefix('"') {
        return quoted.split_once('"');
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    (end > 0).then(|| path.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_walk_members_and_elements() {
        let document = serde_json::json!({"a": [1, {"b c": "x"}], "n": null});
        let at = |path| take(document.clone(), path).map(|value| value.to_string());
        assert_eq!(at("$.a[0]").as_deref(), Some("1"));
        assert_eq!(at("$.a[1].\"b c\"").as_deref(), Some("\"x\""));
        assert_eq!(at("$.n").as_deref(), Some("null"));
        for nowhere in ["$.b", "$.a[9]", "$.a.b", "a", "$.", "$[", "$.a[x]"] {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
    }
}
