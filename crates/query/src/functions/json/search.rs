//! `JSON_SEARCH`: the places of texts in documents.

use super::documents::document;
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, AsArray, StringArray};
use datafusion::common::{Result, exec_err};
use regex::Regex;
use serde_json::Value;
use std::fmt::Write;
use tributary_types::DataType as Declared;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    vec![
        MySqlFunction::new("json_search", &[Text, Text, Text], crate::functions::utf8, |args| {
            let (counts, patterns) = (args[1].as_string::<i32>(), args[2].as_string::<i32>());
            let mut last: Option<(String, Regex)> = None;
            let mut found = Vec::with_capacity(args[0].len());
            for row in 0..args[0].len() {
                let Some((count, pattern)) = both(counts, patterns, row) else {
                    found.push(None);
                    continue;
                };
                let only_one = count.eq_ignore_ascii_case("one");
                if !only_one && !count.eq_ignore_ascii_case("all") {
                    return exec_err!(
                        "The oneOrAll argument to json_search may take these values: 'one' or 'all', and not '{count}'"
                    );
                }
                if last.as_ref().is_none_or(|(of, _)| of != pattern) {
                    last = Some((pattern.to_owned(), matcher(pattern)?));
                }
                let Some((_, matcher)) = &last else { continue };
                let mut places = Vec::new();
                if let Some(document) = document(&args[0], row) {
                    search(&document, "$", matcher, only_one, &mut places);
                }
                found.push(shown(places));
            }
            growth::texts("json_search", args, |row| Ok(found[row].as_deref()))
        })
        .making(Declared::Json),
    ]
}

fn both<'a>(counts: &'a StringArray, patterns: &'a StringArray, row: usize) -> Option<(&'a str, &'a str)> {
    (counts.is_valid(row) && patterns.is_valid(row)).then(|| (counts.value(row), patterns.value(row)))
}

/// A pattern of LIKE, with a backslash before signs that stand for themselves.
fn matcher(pattern: &str) -> Result<Regex> {
    let mut expression = String::from("(?s)^");
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => expression.push_str(".*"),
            '_' => expression.push('.'),
            letter => {
                let plain = if letter == '\\' { letters.next().unwrap_or('\\') } else { letter };
                expression.push_str(&regex::escape(plain.encode_utf8(&mut [0; 4])));
            }
        }
    }
    expression.push('$');
    match Regex::new(&expression) {
        Ok(matcher) => Ok(matcher),
        Err(error) => exec_err!("json_search cannot use the pattern '{pattern}': {error}"),
    }
}

/// Adds the paths of the texts within a value that match.
fn search(value: &Value, path: &str, matcher: &Regex, only_one: bool, places: &mut Vec<String>) {
    if only_one && !places.is_empty() {
        return;
    }
    match value {
        Value::String(text) if matcher.is_match(text) => places.push(path.to_owned()),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
            search(item, &format!("{path}[{index}]"), matcher, only_one, places);
        }),
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            search(member, &format!("{path}.{}", step(name)), matcher, only_one, places);
        }),
        _ => {}
    }
}

/// A member's name in a path: in quotes unless it is a word.
fn step(name: &str) -> String {
    let is_word = name.starts_with(|first: char| first == '_' || first == '$' || first.is_alphabetic())
        && name.chars().all(|letter| letter == '_' || letter == '$' || letter.is_alphanumeric());
    if is_word { name.to_owned() } else { Value::from(name).to_string() }
}

/// The only path as a text of JSON, or an array of several; `None` for none.
fn shown(mut places: Vec<String>) -> Option<String> {
    match places.len() {
        0 => None,
        1 => places.pop().map(|place| Value::from(place).to_string()),
        _ => {
            let mut text = String::from("[");
            for (index, place) in places.into_iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(text, "{comma}{}", Value::from(place));
            }
            text.push(']');
            Some(text)
        }
    }
}
