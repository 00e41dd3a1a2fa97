//! The texts of nested values: `[1, "a", null]`, `{"k":1}`, `{10, 3.14}`, divided into their parts.
//!
//! A value begins and ends with its brackets. Parts may be in single or double quotes, surrounded by blanks; without quotes
//! `null` and `\N` are NULL, and so is an empty part. A backslash in quotes has JSON's meaning.
//!
//! Not this module's business: the values that the parts are converted to.

use crate::escapes::unescape;
use crate::nested::StructField;
use std::borrow::Cow;

/// The rules of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A field of a file or a literal: a STRUCT has all its fields, with names in any order or without names in theirs.
    Text,
    /// Part of a JSON document: a STRUCT's fields are found by their names, and others are NULL.
    Json,
}

/// The fault of a text that is not that of a nested value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A part of a value as it is written, without blanks around it.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub text: &'a [u8],
}

/// The text of each field's value. `None`: it is missing, hence NULL.
///
/// # Errors
/// The text is not that of a STRUCT with these fields.
pub fn field_values<'a>(
    text: &'a [u8],
    names: &[StructField],
    form: Form,
) -> Result<Vec<Option<Token<'a>>>, Malformed> {
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
            (Some(_), Form::Text) if name.is_some() || place.is_some() => return Err(Malformed),
            // With names elsewhere the count of them is wrong in the end.
            _ if count < names.len() => values[count] = Some(part),
            _ => return Err(Malformed),
        }
        count += 1;
    }
    match form {
        Form::Json if named == count => Ok(values),
        Form::Text if count == 0 || (count == names.len() && (named == 0 || named == count)) => Ok(values),
        _ => Err(Malformed),
    }
}

impl<'a> Token<'a> {
    /// An empty text is NULL, too, and so is `\N`, as in a field of its own.
    #[inline]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.text.is_empty() || self.text == b"\\N" || self.text.eq_ignore_ascii_case(b"null")
    }

    /// The text without its quotes; `None` if it is not quoted.
    ///
    /// # Errors
    /// It is not quoted as a whole, or has a half character.
    #[inline]
    pub fn unquoted(self) -> Result<Option<Cow<'a, [u8]>>, Malformed> {
        let Some(&quote @ (b'"' | b'\'')) = self.text.first() else { return Ok(None) };
        if quoted_len(self.text, quote) != Some(self.text.len()) {
            return Err(Malformed);
        }
        let inner = &self.text[1..self.text.len() - 1];
        if !inner.contains(&b'\\') {
            return Ok(Some(inner.into()));
        }
        let mut out = Vec::with_capacity(inner.len());
        unescape(inner, &mut out).map_err(|_| Malformed)?;
        Ok(Some(out.into()))
    }

    /// The parts before and after the first colon.
    ///
    /// # Errors
    /// A bracket or a quote is not closed.
    #[inline]
    pub fn divided(self) -> Result<Option<(Self, Self)>, Malformed> {
        let end = end_of_part(self.text, b':')?;
        Ok((end < self.text.len()).then(|| (trimmed(&self.text[..end]), trimmed(&self.text[end + 1..]))))
    }
}

/// The parts between brackets, divided by commas.
#[derive(Debug)]
pub struct Parts<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// The parts of a text that begins and ends with these brackets.
    ///
    /// # Errors
    /// It does not.
    #[inline]
    pub fn of(text: &'a [u8], open: u8, close: u8) -> Result<Self, Malformed> {
        let inner =
            text.strip_prefix(&[open]).and_then(|rest| rest.strip_suffix(&[close])).ok_or(Malformed)?;
        Ok(Self { rest: Some(inner).filter(|inner| !inner.is_empty()) })
    }

    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// A bracket or a quote is not closed.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a fault ends the parts")]
    pub fn next(&mut self) -> Result<Option<Token<'a>>, Malformed> {
        let Some(rest) = self.rest else { return Ok(None) };
        let end = end_of_part(rest, b',')?;
        self.rest = rest.get(end + 1..).filter(|_| end < rest.len());
        Ok(Some(trimmed(&rest[..end])))
    }
}

#[inline]
fn trimmed(text: &[u8]) -> Token<'_> {
    Token { text: text.trim_ascii() }
}

/// The position of the first `end` outside quotes and brackets, or the text's end.
fn end_of_part(text: &[u8], end: u8) -> Result<usize, Malformed> {
    let (mut depth, mut at) = (0_usize, 0);
    // A quote is special at the beginning of a part; elsewhere it is an ordinary character.
    let mut begins = true;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' | b'\'' if begins => {
                at += quoted_len(&text[at..], byte).ok_or(Malformed)?;
                begins = false;
                continue;
            }
            byte if byte == end && depth == 0 => return Ok(at),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1).ok_or(Malformed)?,
            _ => {}
        }
        begins = matches!(byte, b'[' | b'{' | b',' | b':') || (begins && byte.is_ascii_whitespace());
        at += 1;
    }
    if depth == 0 { Ok(at) } else { Err(Malformed) }
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
