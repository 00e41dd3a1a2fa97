//! The texts of nested values: `[1, "a", null]`, `{"k":1}`, `{10, 3.14}`.
//!
//! A value begins and ends with its brackets. Parts may be in single or double quotes, surrounded by blanks; without quotes
//! `null` and `\N` are NULL, and so is an empty part. A backslash in quotes has JSON's meaning.

use super::Rules;
use crate::blocks::nested::Tree;
use crate::cells::cell::{Cell, Fault, push_cell};
use crate::cells::escapes::unescape;
use tributary_types::{DataType, StructField};

/// The rules of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A field of a file or a literal: a STRUCT has all its fields, with names in any order or without names in theirs.
    Text,
    /// Part of a JSON document: a STRUCT's fields are found by their names, and others are NULL.
    Json,
}

/// A part of a value as it is written, without blanks around it.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a [u8],
}

impl Tree {
    /// Pushes a value that is not a leaf.
    pub(super) fn push_text(&mut self, text: &[u8], form: Form, rules: Rules) -> Result<(), Fault> {
        match self {
            _ if text.eq_ignore_ascii_case(b"null") => Err(Fault::Null),
            Self::Leaf { .. } => Err(Fault::Bad),
            Self::List { lists, items } => {
                let mut parts = Parts::of(text, b'[', b']')?;
                let mut count = 0;
                while let Some(part) = parts.next()? {
                    items.push_token(part, form, rules)?;
                    count += 1;
                }
                lists.push(count);
                Ok(())
            }
            Self::Map { .. } => {
                let mut parts = Parts::of(text, b'{', b'}')?;
                let mut entries = Vec::new();
                while let Some(part) = parts.next()? {
                    entries.push(part.divided()?.ok_or(Fault::Bad)?);
                }
                self.push_entries(
                    entries.len(),
                    rules,
                    |keys, entry| keys.push_strictly(entries[entry].0, form, rules),
                    |values, entry| values.push_strictly(entries[entry].1, form, rules),
                )
            }
            Self::Struct { len, names, fields, .. } => {
                let values = field_values(text, names, form)?;
                for (field, value) in fields.iter_mut().zip(values) {
                    match value {
                        Some(value) => field.push_token(value, form, rules)?,
                        None => field.push_null(),
                    }
                }
                *len += 1;
                Ok(())
            }
        }
    }

    /// Pushes a part: NULL where it cannot be converted and the rules allow it.
    fn push_token(&mut self, token: Token<'_>, form: Form, rules: Rules) -> Result<(), Fault> {
        let before = self.len();
        let pushed = self.push_strictly(token, form, rules);
        self.settle(before, pushed, rules)
    }

    fn push_strictly(&mut self, token: Token<'_>, form: Form, rules: Rules) -> Result<(), Fault> {
        if token.is_null() {
            return Err(Fault::Null);
        }
        let quoted = token.unquoted()?;
        match self {
            Self::Leaf { data_type, values } => {
                let text = match &quoted {
                    // A string in quotes is the document that it spells, else a JSON string.
                    Some(text) if *data_type == DataType::Json && !is_document(text) => token.text,
                    Some(text) => text,
                    None => token.text,
                };
                let cell = Cell::Text(text);
                push_cell(values, *data_type, cell, rules.strict, rules.utc_offset_seconds)
            }
            tree => tree.push_text(quoted.as_deref().unwrap_or(token.text), form, rules),
        }
    }
}

fn is_document(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// The text of each field's value. `None`: it is missing, hence NULL.
fn field_values<'a>(
    text: &'a [u8],
    names: &[StructField],
    form: Form,
) -> Result<Vec<Option<Token<'a>>>, Fault> {
    let mut parts = Parts::of(text, b'{', b'}')?;
    let mut values = vec![None; names.len()];
    let (mut count, mut named) = (0, 0);
    while let Some(part) = parts.next()? {
        let pair = part.divided()?;
        let name = pair.map(|(name, _)| name.unquoted()).transpose()?.flatten();
        let place = match (&pair, form) {
            (Some((bare, _)), _) => {
                let name = name.as_deref().unwrap_or(bare.text);
                names.iter().position(|field| field.name.as_bytes().eq_ignore_ascii_case(name))
            }
            (None, _) => None,
        };
        match (pair, form) {
            (Some((_, value)), Form::Json) => {
                if let Some(place) = place {
                    values[place] = Some(value);
                }
                named += 1;
            }
            (Some((_, value)), Form::Text) if place.is_some_and(|place| values[place].is_none()) => {
                if let Some(place) = place {
                    values[place] = Some(value);
                }
                named += 1;
            }
            // A name of another field, or one that was there before.
            (Some(_), Form::Text) if name.is_some() || place.is_some() => return Err(Fault::Bad),
            // With names elsewhere the count of them is wrong in the end.
            _ if count < names.len() => values[count] = Some(part),
            _ => return Err(Fault::Bad),
        }
        count += 1;
    }
    match form {
        Form::Json if named == count => Ok(values),
        Form::Text if count == 0 || (count == names.len() && (named == 0 || named == count)) => Ok(values),
        _ => Err(Fault::Bad),
    }
}

impl<'a> Token<'a> {
    /// An empty text is NULL, too, and so is `\N`, as in a field of its own.
    fn is_null(self) -> bool {
        self.text.is_empty() || self.text == b"\\N" || self.text.eq_ignore_ascii_case(b"null")
    }

    /// The text without its quotes; `None` if it is not quoted.
    fn unquoted(self) -> Result<Option<std::borrow::Cow<'a, [u8]>>, Fault> {
        let Some(&quote @ (b'"' | b'\'')) = self.text.first() else { return Ok(None) };
        if quoted_len(self.text, quote) != Some(self.text.len()) {
            return Err(Fault::Bad);
        }
        let inner = &self.text[1..self.text.len() - 1];
        if !inner.contains(&b'\\') {
            return Ok(Some(inner.into()));
        }
        let mut out = Vec::with_capacity(inner.len());
        unescape(inner, &mut out).map_err(|_| Fault::Bad)?;
        Ok(Some(out.into()))
    }

    /// The parts before and after the first colon.
    fn divided(self) -> Result<Option<(Self, Self)>, Fault> {
        let end = end_of_part(self.text, b':')?;
        Ok((end < self.text.len()).then(|| (trimmed(&self.text[..end]), trimmed(&self.text[end + 1..]))))
    }
}

/// The parts between brackets, divided by commas.
struct Parts<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a [u8], open: u8, close: u8) -> Result<Self, Fault> {
        let inner =
            text.strip_prefix(&[open]).and_then(|rest| rest.strip_suffix(&[close])).ok_or(Fault::Bad)?;
        Ok(Self { rest: Some(inner).filter(|inner| !inner.is_empty()) })
    }

    fn next(&mut self) -> Result<Option<Token<'a>>, Fault> {
        let Some(rest) = self.rest else { return Ok(None) };
        let end = end_of_part(rest, b',')?;
        self.rest = rest.get(end + 1..).filter(|_| end < rest.len());
        Ok(Some(trimmed(&rest[..end])))
    }
}

fn trimmed(text: &[u8]) -> Token<'_> {
    Token { text: text.trim_ascii() }
}

/// The position of the first `end` outside quotes and brackets, or the text's end.
fn end_of_part(text: &[u8], end: u8) -> Result<usize, Fault> {
    let (mut depth, mut at) = (0_usize, 0);
    // A quote is special at the beginning of a part; elsewhere it is an ordinary character.
    let mut begins = true;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' | b'\'' if begins => {
                at += quoted_len(&text[at..], byte).ok_or(Fault::Bad)?;
                begins = false;
                continue;
            }
            byte if byte == end && depth == 0 => return Ok(at),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1).ok_or(Fault::Bad)?,
            _ => {}
        }
        begins = matches!(byte, b'[' | b'{' | b',' | b':') || (begins && byte.is_ascii_whitespace());
        at += 1;
    }
    if depth == 0 { Ok(at) } else { Err(Fault::Bad) }
}

/// The length of the quoted text at the beginning, quotes included.
fn quoted_len(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(quote, b'\\', &text[at..])?;
        if text[at] == quote {
            return Some(at + 1);
        }
        // The escaped character.
        at += 2;
        if at >= text.len() {
            return None;
        }
    }
}
