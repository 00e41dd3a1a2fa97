//! JSON functions over JSON text.

pub(super) mod path;

use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use path::Path;
use serde_json::Value;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    let (text, int, real, boolean) = (
        crate::functions::utf8,
        crate::functions::int64,
        crate::functions::float64,
        crate::functions::boolean,
    );
    vec![
        MySqlFunction::new("json_extract", &[Text, Text], text, extract).variadic(),
        MySqlFunction::new("get_json_string", &[Text, Text], text, |args| {
            Ok(Arc::new(each_found(args, plain)?.into_iter().collect::<StringArray>()))
        }),
        MySqlFunction::new("get_json_bigint", &[Text, Text], int, |args| {
            Ok(Arc::new(Int64Array::from(each_found(args, integer)?)))
        }),
        MySqlFunction::new("get_json_int", &[Text, Text], int, |args| {
            let small = |value: &Value| integer(value).filter(|value| i32::try_from(*value).is_ok());
            Ok(Arc::new(Int64Array::from(each_found(args, small)?)))
        }),
        MySqlFunction::new("get_json_double", &[Text, Text], real, |args| {
            Ok(Arc::new(Float64Array::from(each_found(args, Value::as_f64)?)))
        }),
        MySqlFunction::new("get_json_bool", &[Text, Text], boolean, |args| {
            Ok(Arc::new(BooleanArray::from(each_found(args, Value::as_bool)?)))
        }),
        MySqlFunction::new("json_contains", &[Text, Text, Text], boolean, contains).optional(1),
        MySqlFunction::new("json_contains_path", &[Text, Text, Text], boolean, contains_path).variadic(),
        MySqlFunction::new("json_exists_path", &[Text, Text], boolean, exists),
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
            let names = each_found(args, |value| Some(type_name(value)))?;
            Ok(Arc::new(names.into_iter().collect::<StringArray>()))
        })
        .optional(1),
        MySqlFunction::new("json_valid", &[Text], int, |args| {
            let valid = |text: &str| i64::from(serde_json::from_str::<Value>(text).is_ok());
            Ok(Arc::new(args[0].as_string::<i32>().iter().map(|v| v.map(valid)).collect::<Int64Array>()))
        }),
        MySqlFunction::new("json_length", &[Text, Text], int, |args| {
            Ok(Arc::new(Int64Array::from(each_found(args, |value| Some(length(value)))?)))
        })
        .optional(1),
    ]
}

fn each(array: &ArrayRef, f: impl Fn(&str) -> Option<String>) -> Result<ArrayRef> {
    Ok(Arc::new(array.as_string::<i32>().iter().map(|v| v.and_then(&f)).collect::<StringArray>()))
}

/// The texts of a column as paths, each text read once as long as it repeats.
#[derive(Default)]
pub(super) struct Paths {
    last: Option<(String, Path)>,
}

impl Paths {
    /// The path of a row; `None` for NULL.
    pub fn at(&mut self, column: &ArrayRef, row: usize) -> Result<Option<&Path>> {
        let column = column.as_string::<i32>();
        if column.is_null(row) {
            return Ok(None);
        }
        let text = column.value(row);
        if self.last.as_ref().is_none_or(|(of, _)| of != text) {
            let path = Path::parse(text).ok_or_else(|| {
                exec_datafusion_err!(
                    "Json path error: Invalid Json Path for value: {text}; it is like $.a[0].\"b c\""
                )
            })?;
            self.last = Some((text.to_owned(), path));
        }
        Ok(self.last.as_ref().map(|(_, path)| path))
    }
}

/// A row's document; `None` for NULL and invalid JSON.
pub(super) fn document(column: &ArrayRef, row: usize) -> Option<Value> {
    let column = column.as_string::<i32>();
    if column.is_null(row) { None } else { serde_json::from_str(column.value(row)).ok() }
}

/// The results of `f` for the values that the paths of column 1 find in the documents of column 0, or for the documents if there
/// are no paths. Several values count as one array of them.
fn each_found<T>(args: &[ArrayRef], f: impl Fn(&Value) -> Option<T>) -> Result<Vec<Option<T>>> {
    let mut paths = Paths::default();
    let mut out = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let document = document(&args[0], row);
        let value = match args.get(1) {
            None => document,
            Some(column) => match (paths.at(column, row)?, document) {
                (Some(path), Some(document)) => take(path, &document),
                _ => None,
            },
        };
        out.push(value.and_then(|value| f(&value)));
    }
    Ok(out)
}

/// The value at a path, or the array of all values if it may match several.
pub(super) fn take(path: &Path, document: &Value) -> Option<Value> {
    if !path.is_plural() {
        return path.first(document).cloned();
    }
    let found: Vec<Value> = path.find(document).into_iter().cloned().collect();
    (!found.is_empty()).then_some(Value::Array(found))
}

/// `JSON_CONTAINS(document, part[, path])`
fn contains(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut paths = Paths::default();
    let mut out = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let target = match (document(&args[0], row), args.get(2)) {
            (target, None) => target,
            (target, Some(column)) => match (paths.at(column, row)?, target) {
                (Some(path), _) if path.is_plural() => {
                    return exec_err!("JSON_CONTAINS takes a path to one value, without * and **");
                }
                (Some(path), Some(target)) => path.first(&target).cloned(),
                _ => None,
            },
        };
        let part = document(&args[1], row);
        out.push(target.zip(part).map(|(target, part)| has(&target, &part)));
    }
    Ok(Arc::new(BooleanArray::from(out)))
}

/// Whether a value has all of another one: a scalar equals it, an array has each element in one of its own, an object has each member.
fn has(target: &Value, part: &Value) -> bool {
    match (target, part) {
        (Value::Object(target), Value::Object(part)) => {
            part.iter().all(|(name, value)| target.get(name).is_some_and(|target| has(target, value)))
        }
        (Value::Array(items), Value::Array(part)) => {
            part.iter().all(|value| items.iter().any(|item| has(item, value)))
        }
        (Value::Array(items), part) => items.iter().any(|item| has(item, part)),
        (Value::Number(target), Value::Number(part)) => {
            target == part || (target.is_f64() != part.is_f64() && target.as_f64() == part.as_f64())
        }
        (target, part) => target == part,
    }
}

/// `JSON_CONTAINS_PATH(document, 'one' | 'all', path, …)`
fn contains_path(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut paths: Vec<Paths> = args[2..].iter().map(|_| Paths::default()).collect();
    let wanted = args[1].as_string::<i32>();
    let mut out = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let is_all = match wanted.is_valid(row).then(|| wanted.value(row)) {
            None => None,
            Some(text) if text.eq_ignore_ascii_case("all") => Some(true),
            Some(text) if text.eq_ignore_ascii_case("one") => Some(false),
            Some(_) => {
                return exec_err!(
                    "The oneOrAll argument to json_contains_path may take these values: 'one' or 'all'."
                );
            }
        };
        let document = document(&args[0], row);
        let mut found = Some(Vec::new());
        for (column, paths) in args[2..].iter().zip(&mut paths) {
            let path = paths.at(column, row)?;
            found = match (found, path, &document) {
                (Some(mut found), Some(path), Some(document)) => {
                    found.push(path.first(document).is_some());
                    Some(found)
                }
                _ => None,
            };
        }
        out.push(is_all.zip(found).map(|(is_all, found)| match is_all {
            true => found.iter().all(|is_there| *is_there),
            false => found.contains(&true),
        }));
    }
    Ok(Arc::new(BooleanArray::from(out)))
}

fn exists(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut paths = Paths::default();
    let mut out = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let path = paths.at(&args[1], row)?;
        out.push(match (path, document(&args[0], row)) {
            (Some(path), Some(document)) => Some(path.first(&document).is_some()),
            _ => None,
        });
    }
    Ok(Arc::new(BooleanArray::from(out)))
}

/// `JSON_EXTRACT(document, path, …)`: the value at one path; the array of all values at several.
fn extract(args: &[ArrayRef]) -> Result<ArrayRef> {
    if let [_, _] = args {
        let texts = each_found(args, |value| Some(value.to_string()))?;
        return Ok(Arc::new(texts.into_iter().collect::<StringArray>()));
    }
    let mut paths: Vec<Paths> = args[1..].iter().map(|_| Paths::default()).collect();
    let mut out = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let document = document(&args[0], row);
        let mut found = Some(Vec::new());
        for (column, paths) in args[1..].iter().zip(&mut paths) {
            let path = paths.at(column, row)?;
            found = match (found, path, &document) {
                (Some(mut found), Some(path), Some(document)) => {
                    found.extend(path.find(document).into_iter().cloned());
                    Some(found)
                }
                _ => None,
            };
        }
        out.push(found.filter(|found| !found.is_empty()).map(|found| Value::Array(found).to_string()));
    }
    Ok(Arc::new(out.into_iter().collect::<StringArray>()))
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn integer(value: &Value) -> Option<i64> {
    let real = || value.as_f64().filter(|value| value.abs() < 9.2e18).map(|value| value as i64);
    value.as_i64().or_else(real)
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
        Value::Number(number) => match number.as_i64() {
            Some(small) if i32::try_from(small).is_ok() => "int",
            Some(_) => "bigint",
            None => "largeint",
        },
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
