//! Texts searched, split and changed by regular expressions and by their characters: `REGEXP_EXTRACT_ALL`, `SPLIT_BY_REGEXP`,
//! `OVERLAY`, `SOUNDEX` and so on.

use crate::functions::cells::{int, value};
use crate::functions::nested::arrays::list_of;
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, ListBuilder, StringArray,
    StringBuilder,
};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use regex::Regex;
use sha1::Digest;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Comparisons of characters that a call may make for a row.
const COMPARISONS_MAX: usize = 4_000_000;
/// The most random bytes of a row.
const RANDOM_MAX: i64 = 1 << 20;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Text};
    let (text, int, boolean) = (crate::functions::utf8, crate::functions::int64, crate::functions::boolean);
    let texts = || list_of(DataType::Utf8);
    vec![
        MySqlFunction::new("split_by_regexp", &[Text, Text, Int], texts, split_by_regexp).optional(1),
        MySqlFunction::new("regexp_extract_or_null", &[Text, Text, Int], text, extract_or_null),
        MySqlFunction::new("regexp_extract_all", &[Text, Text], text, extract_all_as_text),
        MySqlFunction::new("regexp_extract_all_array", &[Text, Text], texts, extract_all),
        MySqlFunction::new("regexp_replace_one", &[Text, Text, Text], text, replace_one),
        MySqlFunction::new("count_substrings", &[Text, Text, Int], int, count_substrings).optional(1),
        MySqlFunction::new("replace_empty", &[Text, Text, Text], text, replace_empty),
        MySqlFunction::new("overlay", &[Text, Int, Int, Text], text, overlay),
        MySqlFunction::new("soundex", &[Text], text, soundex),
        MySqlFunction::new("damerau_levenshtein_distance", &[Text, Text], int, damerau_levenshtein),
        MySqlFunction::new("parse_data_size", &[Text], || DataType::Decimal128(38, 0), parse_data_size),
        MySqlFunction::new("is_uuid", &[Text], boolean, |args| {
            let found = args[0].as_string::<i32>().iter().map(|text| text.map(is_uuid));
            Ok(Arc::new(found.collect::<BooleanArray>()))
        }),
        MySqlFunction::new("is_valid_utf8", &[Any], boolean, is_valid_utf8),
        MySqlFunction::new("__random_bytes", &[Int, Text], text, random_bytes),
    ]
}

/// The pattern of the last row, compiled.
#[derive(Default)]
struct Patterns {
    known: Option<(String, Regex)>,
}

impl Patterns {
    fn get(&mut self, pattern: &str) -> Result<&Regex> {
        if self.known.as_ref().is_none_or(|(of, _)| of != pattern) {
            let regex = Regex::new(pattern)
                .map_err(|error| exec_datafusion_err!("bad pattern '{pattern}': {error}"))?;
            self.known = Some((pattern.to_owned(), regex));
        }
        match &self.known {
            Some((_, regex)) => Ok(regex),
            None => exec_err!("the pattern '{pattern}' is lost"),
        }
    }
}

/// Makes a list of texts for each row; `None` for NULL.
fn lists<'a>(
    function: &'static str,
    args: &'a [ArrayRef],
    mut of: impl FnMut(usize) -> Result<Option<Vec<&'a str>>>,
) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut growth = growth::Bytes::new(function, args);
    for row in 0..args[0].len() {
        let Some(parts) = of(row)? else {
            lists.append_null();
            continue;
        };
        for part in parts {
            growth.add(part.len() + size_of::<i32>())?;
            lists.values().append_value(part);
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// The parts between matches, the characters if the pattern is empty; as many of them as the third argument says.
fn split_by_regexp(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    lists("split_by_regexp", args, |row| {
        let (Some(text), Some(pattern)) = (value(&args[0], row), value(&args[1], row)) else {
            return Ok(None);
        };
        let limit = match args.get(2) {
            Some(limits) => match int(limits, row) {
                Some(limit) => usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
                None => return Ok(None),
            },
            None => usize::MAX,
        };
        if pattern.is_empty() && !text.is_empty() {
            let letters = text.char_indices().map(|(at, letter)| &text[at..at + letter.len_utf8()]);
            return Ok(Some(letters.take(limit).collect()));
        }
        Ok(Some(patterns.get(pattern)?.split(text).take(limit).collect()))
    })
}

/// The group of that number in the first match; NULL if there is none.
fn extract_or_null(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut found = Vec::with_capacity(args[0].len());
    for row in 0..args[0].len() {
        let (Some(text), Some(pattern), Some(group)) =
            (value(&args[0], row), value(&args[1], row), int(&args[2], row))
        else {
            found.push(None);
            continue;
        };
        let captures = patterns.get(pattern)?.captures(text);
        let group = usize::try_from(group).unwrap_or(usize::MAX);
        found.push(captures.and_then(|captures| captures.get(group)).map(|part| part.as_str()));
    }
    Ok(Arc::new(StringArray::from(found)))
}

/// The first group of each match; nothing if the pattern has no group.
fn first_groups<'a>(regex: &Regex, text: &'a str) -> Vec<&'a str> {
    let groups = regex.captures_iter(text).filter_map(|captures| captures.get(1));
    groups.map(|part| part.as_str()).collect()
}

fn extract_all(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    lists("regexp_extract_all_array", args, |row| {
        let (Some(text), Some(pattern)) = (value(&args[0], row), value(&args[1], row)) else {
            return Ok(None);
        };
        Ok(Some(first_groups(patterns.get(pattern)?, text)))
    })
}

/// The groups as `['b','d']`, the empty text for none.
fn extract_all_as_text(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut texts = growth::Texts::new("regexp_extract_all", args);
    for row in 0..args[0].len() {
        let (Some(text), Some(pattern)) = (value(&args[0], row), value(&args[1], row)) else {
            texts.push(None::<&str>)?;
            continue;
        };
        let groups = first_groups(patterns.get(pattern)?, text);
        let quoted: Vec<String> = groups.iter().map(|group| format!("'{group}'")).collect();
        texts.push(Some(if quoted.is_empty() {
            String::new()
        } else {
            format!("[{}]", quoted.join(","))
        }))?;
    }
    Ok(texts.finish())
}

/// The text with the first match replaced; `\1` in the replacement is a group.
fn replace_one(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut texts = growth::Texts::new("regexp_replace_one", args);
    for row in 0..args[0].len() {
        let (Some(text), Some(pattern), Some(by)) =
            (value(&args[0], row), value(&args[1], row), value(&args[2], row))
        else {
            texts.push(None::<&str>)?;
            continue;
        };
        let captures = patterns.get(pattern)?.captures(text);
        match captures.and_then(|captures| Some((captures.get(0)?, captures))) {
            Some((whole, captures)) => {
                texts.push_parts([
                    &text[..whole.start()],
                    &replacement(&captures, by),
                    &text[whole.end()..],
                ])?;
            }
            None => texts.push(Some(text))?,
        }
    }
    Ok(texts.finish())
}

fn replacement(captures: &regex::Captures<'_>, by: &str) -> String {
    let mut out = String::with_capacity(by.len());
    let mut letters = by.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some(digit) if digit.is_ascii_digit() => {
                let group = digit.to_digit(10).and_then(|group| captures.get(group as usize));
                out.push_str(group.map_or("", |group| group.as_str()));
            }
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

/// How often a text occurs, without overlaps, from the character of a number on.
fn count_substrings(args: &[ArrayRef]) -> Result<ArrayRef> {
    let count = |row: usize| {
        let (text, part) = (value(&args[0], row)?, value(&args[1], row)?);
        let from = args.get(2).map_or(Some(1), |starts| int(starts, row))?;
        let offset = usize::try_from(from).ok().and_then(|from| from.checked_sub(1));
        let offset = offset.and_then(|skipped| text.char_indices().nth(skipped)).map(|(offset, _)| offset);
        Some(match offset {
            Some(offset) if !part.is_empty() => text[offset..].matches(part).count() as i64,
            _ => 0,
        })
    };
    Ok(Arc::new((0..args[0].len()).map(count).collect::<Int64Array>()))
}

/// As `REPLACE`, but the empty text is between any two characters and at both ends.
fn replace_empty(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut texts = growth::Texts::new("replace_empty", args);
    for row in 0..args[0].len() {
        let (Some(text), Some(old), Some(new)) =
            (value(&args[0], row), value(&args[1], row), value(&args[2], row))
        else {
            texts.push(None::<&str>)?;
            continue;
        };
        let mut parts = Vec::new();
        let mut at = 0;
        for (found, matched) in text.match_indices(old) {
            parts.extend([&text[at..found], new]);
            at = found + matched.len();
        }
        parts.push(&text[at..]);
        texts.push_parts(parts)?;
    }
    Ok(texts.finish())
}

/// The text with another one in the place of characters from a position on; all the rest for a length that is not in the text.
fn overlay(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("overlay", args, |row| {
        let replaced = || {
            let (text, new) = (value(&args[0], row)?, value(&args[3], row)?);
            let (position, length) = (int(&args[1], row)?, int(&args[2], row)?);
            let offset = |at: usize| text.char_indices().map(|(offset, _)| offset).nth(at);
            let from = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
            let Some((from, start)) = from.and_then(|from| Some((from, offset(from)?))) else {
                return Some(text.to_owned());
            };
            let end = usize::try_from(length).ok().and_then(|length| offset(from.checked_add(length)?));
            Some([&text[..start], new, &text[end.unwrap_or(text.len())..]].concat())
        };
        Ok(replaced())
    })
}

/// The sound of a word in English: its first letter and three digits for groups of consonants.
fn soundex(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("soundex", args, |row| {
        let Some(text) = value(&args[0], row) else { return Ok(None) };
        if let Some(letter) = text.chars().find(|letter| !letter.is_ascii()) {
            return exec_err!("SOUNDEX takes ASCII letters and not '{letter}'");
        }
        let digit = |letter: u8| match letter {
            b'B' | b'F' | b'P' | b'V' => b'1',
            b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => b'2',
            b'D' | b'T' => b'3',
            b'L' => b'4',
            b'M' | b'N' => b'5',
            b'R' => b'6',
            _ => b'0',
        };
        let mut letters = text.bytes().filter(u8::is_ascii_alphabetic).map(|byte| byte.to_ascii_uppercase());
        let Some(first) = letters.next() else { return Ok(Some(String::new())) };
        let mut sound = String::from(first as char);
        let mut before = digit(first);
        // H and W do not separate equal digits; vowels do.
        for letter in letters.filter(|letter| !matches!(letter, b'H' | b'W')) {
            let next = digit(letter);
            if next != b'0' && next != before && sound.len() < 4 {
                sound.push(next as char);
            }
            before = next;
        }
        while sound.len() < 4 {
            sound.push('0');
        }
        Ok(Some(sound))
    })
}

/// The number of characters to insert, delete, change or swap with their neighbours to turn one text into the other.
fn damerau_levenshtein(args: &[ArrayRef]) -> Result<ArrayRef> {
    let distance = |row: usize| -> Result<Option<i64>> {
        let (Some(one), Some(other)) = (value(&args[0], row), value(&args[1], row)) else { return Ok(None) };
        let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
        if one.len().saturating_mul(other.len()) > COMPARISONS_MAX {
            return exec_err!(
                "DAMERAU_LEVENSHTEIN_DISTANCE compares at most {COMPARISONS_MAX} pairs of characters: use shorter texts"
            );
        }
        Ok(Some(edits(&one, &other) as i64))
    };
    Ok(Arc::new((0..args[0].len()).map(distance).collect::<Result<Int64Array>>()?))
}

fn edits(one: &[char], other: &[char]) -> usize {
    let width = other.len() + 2;
    let far = one.len() + other.len();
    let mut table = vec![far; (one.len() + 2) * width];
    for row in 0..=one.len() {
        table[(row + 1) * width + 1] = row;
    }
    for column in 0..=other.len() {
        table[width + column + 1] = column;
    }
    // The last row in which a character of `one` occurred.
    let mut rows: HashMap<char, usize> = HashMap::new();
    for (row, letter) in (1..).zip(one) {
        let mut last_column = 0;
        for (column, other_letter) in (1..).zip(other) {
            let last_row = rows.get(other_letter).copied().unwrap_or(0);
            let is_same = letter == other_letter;
            let changed = table[row * width + column] + usize::from(!is_same);
            let inserted = table[(row + 1) * width + column] + 1;
            let deleted = table[row * width + column + 1] + 1;
            let swapped =
                table[last_row * width + last_column] + (row - last_row - 1) + 1 + (column - last_column - 1);
            table[(row + 1) * width + column + 1] = changed.min(inserted).min(deleted).min(swapped);
            if is_same {
                last_column = column;
            }
        }
        rows.insert(*letter, row);
    }
    table[(one.len() + 1) * width + other.len() + 1]
}

/// The bytes that a text such as `2.5kB` names.
fn parse_data_size(args: &[ArrayRef]) -> Result<ArrayRef> {
    const UNITS: [&str; 9] = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    let parse = |text: &str| {
        let digits = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let power = UNITS.iter().position(|known| *known == unit);
        let number = number.trim();
        let is_number = number.starts_with(|letter: char| letter.is_ascii_digit());
        match (power, number.parse::<f64>()) {
            (Some(power), Ok(number)) if is_number => Ok((number * 1024_f64.powi(power as i32)) as i128),
            _ => exec_err!(
                "PARSE_DATA_SIZE cannot read '{text}'; it is a number with B, kB, MB, GB, TB, PB, EB, ZB or YB"
            ),
        }
    };
    let sizes = args[0].as_string::<i32>().iter().map(|text| text.map(parse).transpose());
    Ok(Arc::new(sizes.collect::<Result<Decimal128Array>>()?.with_precision_and_scale(38, 0)?))
}

/// Whether a text is a UUID, with hyphens or without, in braces or not.
fn is_uuid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if inner.len() == 32 {
        return is_hex(inner);
    }
    let parts: Vec<&str> = inner.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| is_hex(part))
}

fn is_valid_utf8(args: &[ArrayRef]) -> Result<ArrayRef> {
    let valid = |row: usize| {
        if *args[0].data_type() == DataType::Null {
            return None;
        }
        let bytes = args[0].as_binary_opt::<i32>().map(|bytes| bytes.value(row));
        args[0].is_valid(row).then(|| bytes.is_none_or(|bytes| std::str::from_utf8(bytes).is_ok()))
    };
    Ok(Arc::new((0..args[0].len()).map(valid).collect::<BooleanArray>()))
}

/// That many bytes as digits of base 16, made of a seed that is random for each row.
fn random_bytes(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("random_bytes", args, |row| {
        let (Some(count), Some(seed)) = (int(&args[0], row), value(&args[1], row)) else { return Ok(None) };
        if !(1..=RANDOM_MAX).contains(&count) {
            return exec_err!("RANDOM_BYTES makes 1 to {RANDOM_MAX} bytes and not {count}");
        }
        let count = count as usize;
        let mut text = String::with_capacity(2 + 2 * count);
        text.push_str("0x");
        let blocks = (0_u32..).flat_map(|block| {
            sha1::Sha1::new().chain_update(seed.as_bytes()).chain_update(block.to_le_bytes()).finalize()
        });
        for byte in blocks.take(count) {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Some(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_insert_delete_change_and_swap() {
        let distance = |one: &str, other: &str| {
            edits(&one.chars().collect::<Vec<_>>(), &other.chars().collect::<Vec<_>>())
        };
        for (one, other, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "ab", 2),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("ca", "abc", 2),
            ("äö", "öä", 1),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
