//! Texts cut, trimmed and searched in Doris's ways: `SPLIT_BY_STRING`, `TRIM_IN`, `SUB_REPLACE`, `MULTI_MATCH_ANY` and so on.

use crate::functions::cells::{int, value};
use crate::functions::growth;
use crate::functions::nested::arrays::{Lists, list_of};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Builder, ListBuilder, StringArray, StringBuilder,
};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use regex::RegexSet;
use std::collections::HashSet;
use std::sync::Arc;

/// Patterns of a call of `MULTI_MATCH_ANY`.
const PATTERNS_MAX: usize = 10_000;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    let (text, boolean, real) =
        (crate::functions::utf8, crate::functions::boolean, crate::functions::float64);
    let texts = || list_of(DataType::Utf8);
    vec![
        MySqlFunction::new("trim_in", &[Text, Text], text, |args| Ok(trim_in(args, true, true))).optional(1),
        MySqlFunction::new("ltrim_in", &[Text, Text], text, |args| Ok(trim_in(args, true, false)))
            .optional(1),
        MySqlFunction::new("rtrim_in", &[Text, Text], text, |args| Ok(trim_in(args, false, true)))
            .optional(1),
        MySqlFunction::new("split_by_string", &[Text, Text, Int], texts, split_by_string).optional(1),
        MySqlFunction::new("sub_replace", &[Text, Text, Int, Int], text, sub_replace).optional(1),
        MySqlFunction::new("append_trailing_char_if_absent", &[Text, Text], text, append_trailing),
        MySqlFunction::new("null_or_empty", &[Text], boolean, |args| Ok(is_empty(&args[0], true))),
        MySqlFunction::new("not_null_or_empty", &[Text], boolean, |args| Ok(is_empty(&args[0], false))),
        MySqlFunction::new("multi_match_any", &[Text, Any], boolean, multi_match_any),
        MySqlFunction::new(
            "multi_search_all_positions",
            &[Text, Any],
            || list_of(DataType::Int64),
            multi_search_all_positions,
        ),
        MySqlFunction::new("ngram_search", &[Text, Text, Int], real, ngram_search),
    ]
}

/// The texts without characters of a set at their ends.
fn trim_in(args: &[ArrayRef], start: bool, end: bool) -> ArrayRef {
    let cut = |row: usize| {
        let mut rest = value(&args[0], row)?;
        let set = match args.get(1) {
            Some(sets) => value(sets, row)?,
            None => " ",
        };
        if start {
            rest = rest.trim_start_matches(|letter| set.contains(letter));
        }
        if end {
            rest = rest.trim_end_matches(|letter| set.contains(letter));
        }
        Some(rest)
    };
    Arc::new((0..args[0].len()).map(cut).collect::<StringArray>())
}

/// The parts between separators, the characters if the separator is empty; as many of them as the third argument says.
fn split_by_string(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut growth = growth::Bytes::new("split_by_string", args);
    for row in 0..args[0].len() {
        let (Some(text), Some(separator)) = (value(&args[0], row), value(&args[1], row)) else {
            lists.append_null();
            continue;
        };
        let limit = match args.get(2).map(|limits| int(limits, row)) {
            Some(None) => {
                lists.append_null();
                continue;
            }
            Some(Some(limit)) => usize::try_from(limit).ok().filter(|limit| *limit > 0),
            None => None,
        };
        let limit = limit.unwrap_or(usize::MAX);
        let mut add = |part: &str| -> Result<()> {
            growth.add(part.len() + size_of::<i32>())?;
            lists.values().append_value(part);
            Ok(())
        };
        if separator.is_empty() && !text.is_empty() {
            for (at, letter) in text.char_indices().take(limit) {
                add(&text[at..at + letter.len_utf8()])?;
            }
        } else if text.is_empty() {
            add("")?;
        } else {
            text.split(separator).take(limit).try_for_each(add)?;
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// The text with another one in the place of `length` characters, by default as many as that has. Positions are from 0;
/// NULL if one is not in the text.
fn sub_replace(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("sub_replace", args, |row| {
        let replaced = || {
            let (text, new) = (value(&args[0], row)?, value(&args[1], row)?);
            let from = usize::try_from(int(&args[2], row)?).ok()?;
            let length = match args.get(3) {
                Some(lengths) => usize::try_from(int(lengths, row)?).ok()?,
                None => new.chars().count(),
            };
            let offset = |at: usize| text.char_indices().map(|(offset, _)| offset).nth(at);
            let start = offset(from)?;
            let end = from.checked_add(length).and_then(offset).unwrap_or(text.len());
            Some([&text[..start], new, &text[end..]].concat())
        };
        Ok(replaced())
    })
}

/// The text with a character at its end; NULL for other texts than one character.
fn append_trailing(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("append_trailing_char_if_absent", args, |row| {
        let appended = || {
            let (text, end) = (value(&args[0], row)?, value(&args[1], row)?);
            if end.chars().count() != 1 {
                return None;
            }
            Some(if text.ends_with(end) { text.to_owned() } else { format!("{text}{end}") })
        };
        Ok(appended())
    })
}

/// Whether a text is NULL or empty; it is never NULL itself.
fn is_empty(array: &ArrayRef, wanted: bool) -> ArrayRef {
    let is_empty = |row| Some(value(array, row).is_none_or(str::is_empty) == wanted);
    Arc::new((0..array.len()).map(is_empty).collect::<BooleanArray>())
}

/// An array of texts as lists of strings.
fn lists_of_texts(array: &ArrayRef, function: &str) -> Result<Lists> {
    let mut lists = Lists::of(array, function)?;
    lists.values = crate::functions::conversion::convert::to_text(&lists.values)?;
    Ok(lists)
}

/// Whether one of the patterns in an array matches.
fn multi_match_any(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = lists_of_texts(&args[1], "multi_match_any")?;
    let mut known: Option<(Vec<&str>, RegexSet)> = None;
    let mut found = Vec::with_capacity(lists.len);
    for row in 0..lists.len {
        let (Some(text), Some(range)) = (value(&args[0], row), lists.row(row)) else {
            found.push(None);
            continue;
        };
        let patterns: Vec<&str> = range.filter_map(|at| value(&lists.values, at)).collect();
        if patterns.len() > PATTERNS_MAX {
            return exec_err!(
                "MULTI_MATCH_ANY takes at most {PATTERNS_MAX} patterns and not {}",
                patterns.len()
            );
        }
        if known.as_ref().is_none_or(|(of, _)| *of != patterns) {
            let set = RegexSet::new(&patterns)
                .map_err(|error| exec_datafusion_err!("MULTI_MATCH_ANY cannot read a pattern: {error}"))?;
            known = Some((patterns, set));
        }
        found.push(known.as_ref().map(|(_, set)| set.is_match(text)));
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// The position of the first occurrence of each text in an array, in characters from 1; 0 if there is none.
fn multi_search_all_positions(args: &[ArrayRef]) -> Result<ArrayRef> {
    let needles = lists_of_texts(&args[1], "multi_search_all_positions")?;
    let mut positions = ListBuilder::new(Int64Builder::new());
    for row in 0..needles.len {
        let (Some(text), Some(range)) = (value(&args[0], row), needles.row(row)) else {
            positions.append_null();
            continue;
        };
        for at in range {
            let found = value(&needles.values, at)
                .map(|needle| text.find(needle).map_or(0, |found| text[..found].chars().count() as i64 + 1));
            positions.values().append_option(found);
        }
        positions.append(true);
    }
    Ok(Arc::new(positions.finish()))
}

/// The likeness of two texts by their sets of n characters behind each other: 1 if they are equal, 0 if they have none in common.
fn ngram_search(args: &[ArrayRef]) -> Result<ArrayRef> {
    fn grams(text: &str, size: usize) -> HashSet<&[u8]> {
        text.as_bytes().windows(size).collect()
    }
    let likeness = |row: usize| -> Result<Option<f64>> {
        let (Some(text), Some(pattern), Some(size)) =
            (value(&args[0], row), value(&args[1], row), int(&args[2], row))
        else {
            return Ok(None);
        };
        let Some(size) = usize::try_from(size).ok().filter(|size| *size > 0) else {
            return exec_err!("NGRAM_SEARCH takes a length of its parts above 0 and not {size}");
        };
        let (one, other) = (grams(text, size), grams(pattern, size));
        if one.is_empty() || other.is_empty() {
            return Ok(Some(0.0));
        }
        let common = one.intersection(&other).count();
        Ok(Some(2.0 * common as f64 / (one.len() + other.len()) as f64))
    };
    Ok(Arc::new((0..args[0].len()).map(likeness).collect::<Result<Float64Array>>()?))
}
