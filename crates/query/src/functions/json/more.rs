//! JSON documents read, compared and changed as a whole: `JSON_KEYS`, `JSON_CONTAINS`, `JSON_PARSE`, `SORT_JSON_OBJECT_KEYS`.

use super::documents::{Paths, document, take};
use crate::functions::nested::arrays::list_of;
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use serde_json::{Map, Value};
use std::sync::Arc;
use tributary_types::DataType as Declared;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    let (text, boolean) = (crate::functions::utf8, crate::functions::boolean);
    let texts = || list_of(DataType::Utf8);
    vec![
        MySqlFunction::new("json_keys", &[Text, Text], texts, keys).optional(1),
        MySqlFunction::new("json_extract_isnull", &[Text, Text], boolean, |args| {
            let mut paths = Paths::default();
            let is_null = |row: usize| {
                let found = at(args, 1, row, &mut paths)?;
                Ok(found.map(|value| value.is_null()))
            };
            Ok(Arc::new((0..args[0].len()).map(is_null).collect::<Result<BooleanArray>>()?))
        }),
        MySqlFunction::new("json_parse", &[Text], text, |args| {
            changed("json_parse", args, |text| match serde_json::from_str::<Value>(text) {
                Ok(value) => Ok(Some(value.to_string())),
                Err(error) => {
                    exec_err!("JSON_PARSE cannot read '{text}': {error}; use JSON_PARSE_ERROR_TO_NULL")
                }
            })
        }),
        MySqlFunction::new("parse_to_variant", &[Text], text, |args| {
            changed("parse_to_variant", args, |text| match serde_json::from_str::<Value>(text) {
                Ok(_) => Ok(Some(text.to_owned())),
                Err(error) => {
                    exec_err!("PARSE_TO_VARIANT cannot read '{text}': {error}; use TRY_PARSE_TO_VARIANT")
                }
            })
        })
        .making(Declared::Variant),
        MySqlFunction::new("try_parse_to_variant", &[Text], text, |args| {
            changed("try_parse_to_variant", args, |text| {
                Ok(serde_json::from_str::<Value>(text).is_ok().then(|| text.to_owned()))
            })
        })
        .making(Declared::Variant),
        MySqlFunction::new("json_parse_error_to_null", &[Text], text, |args| {
            changed("json_parse_error_to_null", args, |text| {
                Ok(serde_json::from_str::<Value>(text).ok().map(|value| value.to_string()))
            })
        }),
        MySqlFunction::new("json_parse_error_to_value", &[Text, Text], text, parse_or_default).optional(1),
        MySqlFunction::new("sort_json_object_keys", &[Text], text, |args| {
            documents("sort_json_object_keys", args, |value| Some(sorted(value)))
        }),
        MySqlFunction::new("normalize_json_numbers_to_double", &[Text], text, |args| {
            documents("normalize_json_numbers_to_double", args, |value| Some(with_doubles(value)))
        }),
        MySqlFunction::new("strip_null_value", &[Text], text, |args| {
            documents("strip_null_value", args, |value| Some(value).filter(|value| !value.is_null()))
        }),
        MySqlFunction::new("json_object_flatten", &[Text], text, |args| {
            documents("json_object_flatten", args, |value| {
                let Value::Object(members) = value else { return Some(value) };
                let mut flat = Map::new();
                flatten("", members, &mut flat);
                Some(Value::Object(flat))
            })
        }),
    ]
}

/// The value that the path in a column leads to in a row's document, or the document if there is no such column.
fn at(args: &[ArrayRef], column: usize, row: usize, paths: &mut Paths) -> Result<Option<Value>> {
    let document = document(&args[0], row);
    match args.get(column) {
        None => Ok(document),
        Some(column) => {
            Ok(paths.at(column, row)?.zip(document).and_then(|(path, document)| take(path, &document)))
        }
    }
}

/// The names of an object's members; NULL for other values.
fn keys(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut paths = Paths::default();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..args[0].len() {
        match at(args, 1, row, &mut paths)? {
            Some(Value::Object(members)) => {
                members.keys().for_each(|name| lists.values().append_value(name));
                lists.append(true);
            }
            _ => lists.append_null(),
        }
    }
    Ok(Arc::new(lists.finish()))
}

fn changed(
    function: &'static str,
    args: &[ArrayRef],
    of: impl Fn(&str) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    let texts: &StringArray = args[0].as_string::<i32>();
    growth::texts(function, args, |row| if texts.is_valid(row) { of(texts.value(row)) } else { Ok(None) })
}

/// Changes documents; NULL for other texts.
fn documents(
    function: &'static str,
    args: &[ArrayRef],
    of: impl Fn(Value) -> Option<Value>,
) -> Result<ArrayRef> {
    changed(function, args, |text| {
        Ok(serde_json::from_str(text).ok().and_then(&of).map(|value| value.to_string()))
    })
}

fn parse_or_default(args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts: &StringArray = args[0].as_string::<i32>();
    growth::texts("json_parse_error_to_value", args, |row| {
        if texts.is_null(row) {
            return Ok(None);
        }
        let default = || match args.get(1) {
            Some(_) => document(&args[1], row),
            None => Some(Value::Object(Map::new())),
        };
        let value = serde_json::from_str::<Value>(texts.value(row)).ok().or_else(default);
        Ok(value.map(|value| value.to_string()))
    })
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().map(|(name, member)| (name, sorted(member))).collect())
        }
        other => other,
    }
}

fn with_doubles(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(with_doubles).collect(),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, member)| (name, with_doubles(member))).collect())
        }
        Value::Number(number) => number.as_f64().map_or(Value::Number(number), Value::from),
        other => other,
    }
}

fn flatten(prefix: &str, members: Map<String, Value>, flat: &mut Map<String, Value>) {
    for (name, member) in members {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match member {
            Value::Object(inner) if !inner.is_empty() => flatten(&name, inner, flat),
            other => {
                flat.insert(name, other);
            }
        }
    }
}
