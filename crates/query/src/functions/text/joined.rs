//! Texts with a separator between them: `CONCAT_WS`, `array_join`, and `GROUP_CONCAT`, when an aggregate has collected its
//! values into a list.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::conversion::convert;
use crate::functions::growth;
use crate::functions::nested::arrays::{Lists, is_list};
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::common::Result;
use std::collections::HashSet;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    vec![
        MySqlFunction::new("__join", &[Any, Text, Int], crate::functions::utf8, |args| join(args, false)),
        MySqlFunction::new("array_join", &[Any, Text, Text], crate::functions::utf8, array_join).optional(1),
        MySqlFunction::new("concat_ws", &[Text, Any], crate::functions::utf8, concat_ws)
            .optional(1)
            .variadic(),
        MySqlFunction::new("__join_distinct", &[Any, Text, Int], crate::functions::utf8, |args| {
            join(args, true)
        }),
    ]
}

/// A list's values with a separator between them, cut to the given number of bytes. NULLs are omitted, and so are repeated values
/// if `distinct`. NULL if no value is left.
fn join(args: &[ArrayRef], distinct: bool) -> Result<ArrayRef> {
    // NULL without a type, as the optimizer evaluates it.
    let Some(lists) = args[0].as_list_opt::<i32>() else {
        return Ok(Arc::new(StringArray::new_null(args[0].len())));
    };
    let texts = convert::to_text(lists.values())?;
    let texts = texts.as_string::<i32>();
    let separators = args[1].as_string::<i32>();
    let limits = args[2].as_primitive::<Int64Type>();
    let offsets = lists.value_offsets();
    growth::texts("group_concat", args, |row| {
        if lists.is_null(row) || separators.is_null(row) {
            return Ok(None);
        }
        let limit = usize::try_from(limits.value(row)).unwrap_or(usize::MAX);
        let mut seen = HashSet::new();
        let mut out: Option<String> = None;
        for at in offsets[row] as usize..offsets[row + 1] as usize {
            if texts.is_null(at) || (distinct && !seen.insert(texts.value(at))) {
                continue;
            }
            match &mut out {
                None => out = Some(texts.value(at).to_owned()),
                Some(out) if out.len() >= limit => break,
                Some(out) => {
                    out.push_str(separators.value(row));
                    out.push_str(texts.value(at));
                }
            }
        }
        Ok(out.map(|out| cut(out, limit)))
    })
}

/// The whole characters among the first `limit` bytes.
fn cut(mut text: String, limit: usize) -> String {
    text.truncate(text.floor_char_boundary(limit));
    text
}

/// Texts, and the elements of arrays, with a separator between them. NULLs are left out.
fn concat_ws(args: &[ArrayRef]) -> Result<ArrayRef> {
    enum Part {
        Text(ArrayRef),
        Elements(Lists, ArrayRef),
    }
    let separators = args[0].as_string::<i32>();
    let mut parts = Vec::with_capacity(args.len());
    for arg in &args[1..] {
        parts.push(if is_list(arg.data_type()) {
            let lists = Lists::of(arg, "concat_ws")?;
            let texts = convert::to_text(&lists.values)?;
            Part::Elements(lists, texts)
        } else {
            Part::Text(convert::to_text(arg)?)
        });
    }
    growth::texts("concat_ws", args, |row| {
        if separators.is_null(row) {
            return Ok(None);
        }
        let mut texts: Vec<&str> = Vec::with_capacity(parts.len());
        for part in &parts {
            match part {
                Part::Text(column) => texts.extend(text_at(column, row)),
                Part::Elements(lists, values) => {
                    texts.extend(lists.row(row).into_iter().flatten().filter_map(|at| text_at(values, at)));
                }
            }
        }
        Ok(Some(texts.join(separators.value(row))))
    })
}

/// `array_join(a, separator[, null])`: the elements' texts; NULLs are omitted unless a text replaces them.
fn array_join(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "array_join")?;
    let texts = convert::to_text(&lists.values)?;
    let joined = |row: usize| {
        let (range, separator) = (lists.row(row)?, text_at(&args[1], row)?);
        let for_null = match args.get(2) {
            Some(column) => Some(text_at(column, row)?),
            None => None,
        };
        Some(range.filter_map(|at| text_at(&texts, at).or(for_null)).collect::<Vec<_>>().join(separator))
    };
    growth::texts("array_join", args, |row| Ok(joined(row)))
}

fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    let array = array.as_string::<i32>();
    array.is_valid(row).then(|| array.value(row))
}
