//! JSON documents made of values and changed by them: `JSON_ARRAY`, `JSON_OBJECT`, `TO_JSON`, `JSON_SET` and so on.
//!
//! The arguments of these functions arrive as JSON ([`to_documents`]): a document stays one, and any other text is a text in
//! JSON.

use super::documents::path::Path;
use crate::functions::conversion::convert::{to_text, to_text_of};
use crate::functions::nested::arrays::Lists;
use crate::functions::nested::printed::{self, Quoting};
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use serde_json::Value;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tributary_types::DataType as Declared;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Json, Text};
    let text = crate::functions::utf8;
    let made = |name: &'static str, params: &'static [Param], body| {
        MySqlFunction::new(name, params, text, body).making(Declared::Json)
    };
    vec![
        // The rewrite marks arguments that are documents.
        made("__document", &[Text], |args| Ok(Arc::clone(&args[0]))),
        made("to_json", &[Json], |args| Ok(Arc::clone(&args[0]))),
        made("json_array", &[Json], |args| array(args, true)).optional(1).variadic(),
        made("json_array_ignore_null", &[Json], |args| array(args, false)).optional(1).variadic(),
        made("json_object", &[Json], object).optional(1).variadic(),
        made("__json_array_of", &[Any], array_of),
        made("__json_object_of", &[Any], object_of),
        made("json_set", &[Json, Json, Json], |args| set(args, "json_set", true, true)).variadic(),
        made("json_insert", &[Json, Json, Json], |args| set(args, "json_insert", true, false)).variadic(),
        made("json_replace", &[Json, Json, Json], |args| set(args, "json_replace", false, true)).variadic(),
        made("json_remove", &[Json, Json], remove).variadic(),
    ]
}

/// The values as texts of JSON; NULL stays NULL.
pub fn to_documents(array: &ArrayRef, known: Option<Declared>) -> Result<ArrayRef> {
    let data_type = array.data_type();
    let is_number = data_type.is_numeric() && !crate::types::kind::is_address(data_type);
    if data_type.is_nested() {
        return each(&printed::to_text(array, Quoting::Json, known)?, |text| {
            serde_json::from_str::<Value>(text).map_or_else(|_| quoted(text), |value| value.to_string())
        });
    }
    if *data_type == DataType::Boolean {
        return each(&to_text(array)?, |text| if text == "0" { "false" } else { "true" }.to_owned());
    }
    let texts = match known {
        Some(known) => to_text_of(array, known)?,
        None => to_text(array)?,
    };
    let is_document = matches!(known, Some(Declared::Json | Declared::Variant));
    each(&texts, |text| {
        // A DOUBLE may be no number of JSON.
        if is_number && serde_json::from_str::<serde_json::Number>(text).is_ok() {
            return text.to_owned();
        }
        let document = is_document.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        document.map_or_else(|| quoted(text), |value| value.to_string())
    })
}

fn each(texts: &ArrayRef, of: impl Fn(&str) -> String) -> Result<ArrayRef> {
    Ok(Arc::new(texts.as_string::<i32>().iter().map(|text| text.map(&of)).collect::<StringArray>()))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn text(column: &ArrayRef, row: usize) -> Option<&str> {
    let column = column.as_string::<i32>();
    column.is_valid(row).then(|| column.value(row))
}

/// The number of rows; one if there are no arguments, which are constant then.
fn rows(args: &[ArrayRef]) -> usize {
    args.first().map_or(1, Array::len)
}

/// An array of the values; a NULL is null, or is left out.
fn array(args: &[ArrayRef], with_nulls: bool) -> Result<ArrayRef> {
    let name = if with_nulls { "json_array" } else { "json_array_ignore_null" };
    let mut texts = growth::Texts::new(name, args);
    for row in 0..rows(args) {
        let values = args.iter().filter_map(|column| text(column, row).or(with_nulls.then_some("null")));
        texts.push(Some(format!("[{}]", values.collect::<Vec<_>>().join(","))))?;
    }
    Ok(texts.finish())
}

/// An object of names and values by turns.
fn object(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.len() % 2 == 1 {
        return exec_err!(
            "JSON_OBJECT takes names and values by turns; it was given {} arguments",
            args.len()
        );
    }
    let mut texts = growth::Texts::new("json_object", args);
    for row in 0..rows(args) {
        let mut members = Vec::with_capacity(args.len() / 2);
        for pair in args.chunks(2) {
            let Some(name) = text(&pair[0], row) else {
                return exec_err!("JSON_OBJECT: the name of a member is NULL");
            };
            let name = if name.starts_with('"') { name.to_owned() } else { quoted(name) };
            members.push(format!("{name}:{}", text(&pair[1], row).unwrap_or("null")));
        }
        texts.push(Some(format!("{{{}}}", members.join(","))))?;
    }
    Ok(texts.finish())
}

/// An array of the documents of each list, which an aggregate has collected; a NULL is null.
fn array_of(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "json_arrayagg")?;
    let values = to_text(&lists.values)?;
    growth::texts("json_arrayagg", args, |row| {
        let values = |places: Range<usize>| places.map(|at| text(&values, at).unwrap_or("null"));
        Ok(lists.row(row).map(|places| format!("[{}]", values(places).collect::<Vec<_>>().join(","))))
    })
}

/// An object of the names and documents of each list of pairs, which an aggregate has collected. Of equal names the last counts.
fn object_of(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "json_objectagg")?;
    // NULL without a type has no pairs.
    let Some(pairs) = lists.values.as_struct_opt() else {
        return Ok(Arc::new(StringArray::new_null(args[0].len())));
    };
    let (names, values) = (to_text(pairs.column(0))?, to_text(pairs.column(1))?);
    growth::texts("json_objectagg", args, |row| {
        let Some(places) = lists.row(row) else { return Ok(None) };
        let (mut order, mut members) = (Vec::new(), HashMap::new());
        for at in places {
            let Some(name) = text(&names, at) else {
                return exec_err!("JSON_OBJECTAGG: the name of a member is NULL");
            };
            if members.insert(name, text(&values, at).unwrap_or("null")).is_none() {
                order.push(name);
            }
        }
        let member = |name: &&str| format!("{}:{}", quoted(name), members[name]);
        Ok(Some(format!("{{{}}}", order.iter().map(member).collect::<Vec<_>>().join(","))))
    })
}

/// A row's document: that of an argument, or that which its text is.
fn document(column: &ArrayRef, row: usize, function: &str) -> Result<Option<Value>> {
    let Some(text) = text(column, row) else { return Ok(None) };
    let inner = match serde_json::from_str(text) {
        Ok(Value::String(inner)) => serde_json::from_str(&inner).ok(),
        other => other.ok(),
    };
    match inner {
        Some(value) => Ok(Some(value)),
        None => exec_err!("{}: {text} is not a document", function.to_uppercase()),
    }
}

/// A row's path to one value; `None` for NULL.
fn path(column: &ArrayRef, row: usize, function: &str) -> Result<Option<Path>> {
    let Some(text) = text(column, row) else { return Ok(None) };
    let text = serde_json::from_str::<String>(text).unwrap_or_default();
    let path = Path::parse(&text).filter(|path| !path.is_plural()).ok_or_else(|| {
        exec_datafusion_err!(
            "{}: '{text}' is not a path to one value, such as $.a[0]",
            function.to_uppercase()
        )
    })?;
    Ok(Some(path))
}

/// Sets values at paths; NULL if the document or a path is.
fn set(args: &[ArrayRef], function: &'static str, inserts: bool, replaces: bool) -> Result<ArrayRef> {
    if args.len().is_multiple_of(2) {
        return exec_err!("{} takes a document, and paths and values by turns", function.to_uppercase());
    }
    growth::texts(function, args, |row| {
        let Some(mut value) = document(&args[0], row, function)? else { return Ok(None) };
        for pair in args[1..].chunks(2) {
            let Some(path) = path(&pair[0], row, function)? else { return Ok(None) };
            let new = text(&pair[1], row).and_then(|text| serde_json::from_str(text).ok());
            path.set(&mut value, new.unwrap_or(Value::Null), inserts, replaces);
        }
        Ok(Some(value.to_string()))
    })
}

fn remove(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("json_remove", args, |row| {
        let Some(mut value) = document(&args[0], row, "json_remove")? else { return Ok(None) };
        for column in &args[1..] {
            let Some(path) = path(column, row, "json_remove")? else { return Ok(None) };
            path.remove(&mut value);
        }
        Ok(Some(value.to_string()))
    })
}
