//! `v['a']['b']` of a VARIANT or JSON: members of objects by their names, out of the text as it is.
//!
//! A string is its text, JSON's null and missing values are NULL, all others are their JSON, with all digits of numbers.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::conversion::convert;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::common::Result;
use std::sync::Arc;

/// The function that gives a member, by the names that lead to it.
pub const MEMBER: &str = "__member";

pub(super) fn functions() -> Vec<MySqlFunction> {
    vec![MySqlFunction::new(MEMBER, &[Param::Text, Param::Text], crate::functions::utf8, member).variadic()]
}

fn member(args: &[ArrayRef]) -> Result<ArrayRef> {
    let names: Vec<ArrayRef> = args[1..].iter().map(convert::to_text).collect::<Result<_>>()?;
    let documents = args[0].as_string::<i32>();
    let found = (0..documents.len()).map(|row| {
        let mut value = documents.is_valid(row).then(|| documents.value(row).trim())?;
        for name in &names {
            let name = name.as_string::<i32>();
            value = name.is_valid(row).then(|| member_of(value, name.value(row)))??;
        }
        shown(value)
    });
    Ok(Arc::new(found.collect::<StringArray>()))
}

fn shown(value: &str) -> Option<String> {
    match value {
        "null" => None,
        string if string.starts_with('"') => serde_json::from_str(string).ok(),
        other => Some(other.to_owned()),
    }
}

/// The text of the last member of that name. `document` is legal JSON without blanks around.
fn member_of<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = document.strip_prefix('{')?.trim_start();
    let mut found = None;
    while rest.starts_with('"') {
        let (key, behind) = rest.split_at_checked(value_len(rest)?)?;
        let value = behind.trim_start().strip_prefix(':')?.trim_start();
        let (value, behind) = value.split_at_checked(value_len(value)?)?;
        let is_it = match key.contains('\\') {
            true => serde_json::from_str::<String>(key).is_ok_and(|key| key == name),
            false => key[1..key.len() - 1] == *name,
        };
        if is_it {
            found = Some(value);
        }
        let Some(next) = behind.trim_start().strip_prefix(',') else { break };
        rest = next.trim_start();
    }
    found
}

/// The length of the leading value of a text.
fn value_len(text: &str) -> Option<usize> {
    let (bytes, mut depth, mut at) = (text.as_bytes(), 0_usize, 0);
    loop {
        match *bytes.get(at)? {
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                return Some(bytes.iter().position(ends).unwrap_or(bytes.len()));
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_texts_that_stand_in_the_document() {
        let document = r#"{"a" : {"b":[1,{"c":2}], "n":123456789012345678901234567890.10 } ,"s":"x\"}","e\u0041":true,"a":{"b":null,"n":1e400}}"#;
        let at = |path: &[&str]| {
            path.iter().try_fold(document, |value, name| member_of(value, name)).and_then(shown)
        };
        assert_eq!(at(&["a", "n"]).as_deref(), Some("1e400"), "the last of equal names");
        assert_eq!(at(&["a", "b"]), None, "null is NULL");
        assert_eq!(at(&["s"]).as_deref(), Some("x\"}"));
        assert_eq!(at(&["eA"]).as_deref(), Some("true"));
        assert_eq!(at(&["a"]).as_deref(), Some(r#"{"b":null,"n":1e400}"#));
        for path in [&["x"][..], &["s", "a"], &["a", "n", "x"]] {
            assert_eq!(at(path), None);
        }
        assert_eq!(member_of("[1]", "a"), None);
        assert_eq!(member_of("{}", "a"), None);
    }
}
