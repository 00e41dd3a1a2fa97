//! Functions over text, with MySQL's positions: they count characters from 1, negative ones from
//! the end.

use super::bytes;
use super::encoded::bytes_of;
use crate::functions::conversion::convert::text_or_bytes;
use crate::functions::growth::{self, Texts};
use crate::functions::nested::alike::{common_type, convert_to, normal};
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::{Kind, kind};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use std::fmt::Write;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Bytes, Int, Text};
    let text = crate::functions::utf8;
    let int = crate::functions::int64;
    let binary = || DataType::Binary;
    vec![
        MySqlFunction::new("concat", &[Bytes], text, concat).variadic().returning(text_or_bytes),
        MySqlFunction::new("substring", &[Bytes, Int, Int], text, substring)
            .optional(1)
            .returning(|types| text_or_bytes(&types[..1])),
        MySqlFunction::new("left", &[Bytes, Int], text, left).returning(|types| text_or_bytes(&types[..1])),
        MySqlFunction::new("right", &[Bytes, Int], text, right).returning(|types| text_or_bytes(&types[..1])),
        MySqlFunction::new("locate", &[Text, Text, Int], int, locate).optional(1),
        MySqlFunction::new("substring_index", &[Text, Text, Int], text, substring_index),
        MySqlFunction::new("hex", &[Any], text, |args| hex(&args[0])),
        MySqlFunction::new("unhex", &[Text], binary, |args| Ok(unhex(&args[0], Some(&[])))),
        MySqlFunction::new("unhex_null", &[Text], binary, |args| Ok(unhex(&args[0], None))),
        MySqlFunction::new("split_part", &[Text, Text, Int], text, split_part),
        MySqlFunction::new("sha1", &[Bytes], text, |args| sha1(&args[0])),
        MySqlFunction::new("space", &[Int], text, space),
        MySqlFunction::new("repeat", &[Text, Int], text, repeat),
        MySqlFunction::new("lpad", &[Text, Int, Text], text, |args| pad(args, true)),
        MySqlFunction::new("rpad", &[Text, Int, Text], text, |args| pad(args, false)),
        MySqlFunction::new("find_in_set", &[Text, Text], int, find_in_set),
        MySqlFunction::new("ascii", &[Text], int, |args| {
            Ok(number_of(&args[0], |text| text.bytes().next().map_or(0, i64::from)))
        }),
        MySqlFunction::new("ord", &[Text], int, |args| Ok(number_of(&args[0], ord))),
        MySqlFunction::new("strcmp", &[Text, Text], int, strcmp),
        MySqlFunction::new("field", &[Any], int, field).variadic(),
        MySqlFunction::new("elt", &[Int, Text], text, elt).variadic(),
        MySqlFunction::new("ltrim", &[Text, Text], text, |args| Ok(trim(args, true, false))).optional(1),
        MySqlFunction::new("rtrim", &[Text, Text], text, |args| Ok(trim(args, false, true))).optional(1),
        MySqlFunction::new("trim", &[Text, Text], text, |args| Ok(trim(args, true, true))).optional(1),
        MySqlFunction::new("quote", &[Text], text, |args| map("quote", &args[0], quote)),
        MySqlFunction::new("__by_backslash", &[Text, Text], text, |args| {
            rows("like", args, |row| {
                let mark = value(texts(&args[1]), row)?.chars().next();
                Some(by_backslash(value(texts(&args[0]), row)?, mark))
            })
        }),
        MySqlFunction::new("__tuple", &[Bytes], text, tuple).variadic(),
    ]
}

/// The longest text that `repeat`, `space` and padding produce, in bytes: MySQL's default packet.
const MADE_TEXT_MAX_BYTES: usize = 4 * 1024 * 1024;

fn map(function: &'static str, text: &ArrayRef, f: impl Fn(&str) -> Option<String>) -> Result<ArrayRef> {
    let of = |row| Ok(value(texts(text), row).and_then(&f));
    growth::texts(function, std::slice::from_ref(text), of)
}

fn texts(array: &ArrayRef) -> &StringArray {
    array.as_string::<i32>()
}

fn ints(array: &ArrayRef) -> &Int64Array {
    array.as_primitive::<Int64Type>()
}

fn value(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}

fn int_value(array: &Int64Array, row: usize) -> Option<i64> {
    array.is_valid(row).then(|| array.value(row))
}

/// A pattern whose escape character is `mark`, with backslashes in the place of that.
pub fn by_backslash(pattern: &str, mark: Option<char>) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if Some(letter) == mark {
            out.push('\\');
            // At the end it is itself.
            out.push(letters.next().unwrap_or(letter));
        } else {
            if letter == '\\' {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

/// Builds a text column row by row; the closure gets the row's number.
fn rows(function: &'static str, args: &[ArrayRef], f: impl Fn(usize) -> Option<String>) -> Result<ArrayRef> {
    growth::texts(function, args, |row| Ok(f(row)))
}

fn concat(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.iter().any(|arg| *arg.data_type() == DataType::Binary) {
        return bytes::concat(args);
    }
    let columns: Vec<&StringArray> = args.iter().map(texts).collect();
    let mut joined = Texts::new("concat", args);
    for row in 0..args[0].len() {
        if columns.iter().any(|column| column.is_null(row)) {
            joined.push(None::<&str>)?;
            continue;
        }
        joined.push_parts(columns.iter().map(|column| column.value(row)))?;
    }
    Ok(joined.finish())
}

/// The part of `text` from a MySQL position, `length` characters or to the end.
fn substring_of(text: &str, position: i64, length: Option<i64>) -> &str {
    let total = text.chars().count() as i64;
    let start = match position {
        0 => return "",
        position if position > 0 => position - 1,
        position => total + position,
    };
    if start < 0 || start >= total || length.is_some_and(|length| length <= 0) {
        return "";
    }
    let rest = char_offset(text, start);
    let end = length.map_or(text.len(), |length| rest + char_offset(&text[rest..], length));
    &text[rest..end]
}

/// The byte offset of the character with that number, or the text's length.
fn char_offset(text: &str, characters: i64) -> usize {
    let characters = usize::try_from(characters).unwrap_or(usize::MAX);
    text.char_indices().nth(characters).map_or(text.len(), |(offset, _)| offset)
}

fn substring(args: &[ArrayRef]) -> Result<ArrayRef> {
    let length = args.get(2).map(ints);
    if let Some(of) = args[0].as_binary_opt::<i32>() {
        return Ok(bytes::substring(of, ints(&args[1]), length));
    }
    let (text, position) = (texts(&args[0]), ints(&args[1]));
    Ok(Arc::new(
        (0..text.len())
            .map(|row| {
                let length = match length {
                    Some(length) => Some(int_value(length, row)?),
                    None => None,
                };
                Some(substring_of(value(text, row)?, int_value(position, row)?, length))
            })
            .collect::<StringArray>(),
    ))
}

fn left(args: &[ArrayRef]) -> Result<ArrayRef> {
    if let Some(of) = args[0].as_binary_opt::<i32>() {
        return Ok(bytes::left(of, ints(&args[1])));
    }
    let (text, length) = (texts(&args[0]), ints(&args[1]));
    Ok(Arc::new(
        (0..text.len())
            .map(|row| Some(substring_of(value(text, row)?, 1, Some(int_value(length, row)?))))
            .collect::<StringArray>(),
    ))
}

/// The last characters; with a negative length all from the character of that number on.
fn right(args: &[ArrayRef]) -> Result<ArrayRef> {
    if let Some(of) = args[0].as_binary_opt::<i32>() {
        return Ok(bytes::right(of, ints(&args[1])));
    }
    let (text, length) = (texts(&args[0]), ints(&args[1]));
    Ok(Arc::new(
        (0..text.len())
            .map(|row| {
                let (text, length) = (value(text, row)?, int_value(length, row)?);
                if length < 0 {
                    return Some(substring_of(text, length.saturating_neg(), None));
                }
                let total = text.chars().count() as i64;
                Some(&text[char_offset(text, (total - length).max(0))..])
            })
            .collect::<StringArray>(),
    ))
}

fn locate(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (needle, text) = (texts(&args[0]), texts(&args[1]));
    let from = args.get(2).map(ints);
    let find = |row: usize| -> Option<i64> {
        let (needle, text) = (value(needle, row)?, value(text, row)?);
        let from = match from {
            Some(from) => int_value(from, row)?,
            None => 1,
        };
        if from < 1 {
            return Some(0);
        }
        if text.chars().count() as i64 <= from - 2 {
            return Some(0);
        }
        let start = char_offset(text, from - 1);
        let found = text[start..].find(needle).map(|at| text[..start + at].chars().count() as i64 + 1);
        Some(found.unwrap_or(0))
    };
    Ok(Arc::new((0..text.len()).map(find).collect::<Int64Array>()))
}

fn substring_index(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (text, delimiter, count) = (texts(&args[0]), texts(&args[1]), ints(&args[2]));
    let part = |row: usize| -> Option<&str> {
        let (text, delimiter) = (value(text, row)?, value(delimiter, row)?);
        let count = int_value(count, row)?;
        if delimiter.is_empty() || count == 0 {
            return Some("");
        }
        let nth = usize::try_from(count.unsigned_abs() - 1).ok()?;
        Some(if count > 0 {
            text.match_indices(delimiter).nth(nth).map_or(text, |(at, _)| &text[..at])
        } else {
            text.rmatch_indices(delimiter).nth(nth).map_or(text, |(at, _)| &text[at + delimiter.len()..])
        })
    };
    Ok(Arc::new((0..text.len()).map(part).collect::<StringArray>()))
}

fn hex(array: &ArrayRef) -> Result<ArrayRef> {
    if array.data_type().is_numeric() {
        let values = if array.data_type().is_integer() {
            crate::functions::conversion::convert::safe_cast(array, &DataType::Int64)?
        } else {
            let values = crate::functions::conversion::convert::to_real(array)?;
            let rounded: Float64Array = values.as_primitive::<Float64Type>().unary(f64::round);
            crate::functions::conversion::convert::safe_cast(
                &(Arc::new(rounded) as ArrayRef),
                &DataType::Int64,
            )?
        };
        let hex = ints(&values).iter().map(|value| value.map(|value| format!("{value:X}")));
        return Ok(Arc::new(hex.collect::<StringArray>()));
    }
    let spell = |bytes: &[u8]| {
        bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
            let _ = write!(hex, "{byte:02X}");
            hex
        })
    };
    if *array.data_type() == DataType::Binary {
        let values = array.as_binary::<i32>();
        let of = |row| Ok(values.is_valid(row).then(|| spell(values.value(row))));
        return growth::texts("hex", std::slice::from_ref(array), of);
    }
    let text = crate::functions::conversion::convert::to_text(array)?;
    map("hex", &text, |text| Some(spell(text.as_bytes())))
}

/// The bytes that pairs of hex digits represent; `otherwise` for the empty text, odd lengths and other characters.
fn unhex(array: &ArrayRef, otherwise: Option<&'static [u8]>) -> ArrayRef {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let spelled = |text: &str| -> Option<Vec<u8>> {
        let pairs = text.as_bytes().chunks(2);
        let bytes = pairs.map(|pair| Some(digit(pair[0])? * 16 + digit(*pair.get(1)?)?));
        bytes.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
    };
    let values = texts(array)
        .iter()
        .map(|text| text.and_then(|text| spelled(text).or_else(|| otherwise.map(<[u8]>::to_vec))));
    Arc::new(values.collect::<BinaryArray>())
}

/// The part of that number between delimiters, from 1 or, negative, from the end. NULL where the delimiter is nowhere,
/// the empty text beyond the last part.
fn split_part(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (text, delimiter, number) = (texts(&args[0]), texts(&args[1]), ints(&args[2]));
    let part = |row: usize| -> Option<&str> {
        let (text, delimiter) = (value(text, row)?, value(delimiter, row)?);
        let number = int_value(number, row).filter(|number| *number != 0)?;
        if delimiter.is_empty() {
            return Some("");
        }
        if !text.contains(delimiter) {
            return None;
        }
        let nth = usize::try_from(number.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let found = if number > 0 { text.split(delimiter).nth(nth) } else { text.rsplit(delimiter).nth(nth) };
        Some(found.unwrap_or(""))
    };
    Ok(Arc::new((0..text.len()).map(part).collect::<StringArray>()))
}

fn sha1(array: &ArrayRef) -> Result<ArrayRef> {
    let bytes = bytes_of(array)?;
    let values = bytes.as_binary::<i32>();
    let of = |row| Ok(values.is_valid(row).then(|| sha1_hex(values.value(row))));
    growth::texts("sha1", std::slice::from_ref(array), of)
}

fn sha1_hex(bytes: &[u8]) -> String {
    use sha1::Digest;
    let mut hex = String::with_capacity(40);
    for byte in sha1::Sha1::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn repeat_text(text: &str, count: i64) -> Option<String> {
    let count = usize::try_from(count.max(0)).ok()?;
    (text.len().checked_mul(count)? <= MADE_TEXT_MAX_BYTES).then(|| text.repeat(count))
}

fn space(args: &[ArrayRef]) -> Result<ArrayRef> {
    let counts = ints(&args[0]);
    rows("space", args, |row| repeat_text(" ", int_value(counts, row)?))
}

fn repeat(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (text, counts) = (texts(&args[0]), ints(&args[1]));
    rows("repeat", args, |row| repeat_text(value(text, row)?, int_value(counts, row)?))
}

fn pad(args: &[ArrayRef], before: bool) -> Result<ArrayRef> {
    let (text, length, fill) = (texts(&args[0]), ints(&args[1]), texts(&args[2]));
    rows(if before { "lpad" } else { "rpad" }, args, |row| {
        let (text, length, fill) = (value(text, row)?, int_value(length, row)?, value(fill, row)?);
        let length = usize::try_from(length).ok().filter(|length| *length <= MADE_TEXT_MAX_BYTES / 4)?;
        let missing = length.saturating_sub(text.chars().count());
        if missing == 0 {
            return Some(text[..char_offset(text, length as i64)].to_owned());
        }
        if fill.is_empty() {
            return None;
        }
        let filling = fill.chars().cycle().take(missing);
        Some(if before {
            filling.chain(text.chars()).collect()
        } else {
            text.chars().chain(filling).collect()
        })
    })
}

/// The index, from 1, of a text in a comma-separated list; 0 if it is missing.
fn find_in_set(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (wanted, lists) = (texts(&args[0]), texts(&args[1]));
    let find = |row: usize| {
        let (wanted, list) = (value(wanted, row)?, value(lists, row)?);
        let found = list.split(',').position(|item| item == wanted).filter(|_| !list.is_empty());
        Some(found.map_or(0, |at| at as i64 + 1))
    };
    Ok(Arc::new((0..wanted.len()).map(find).collect::<Int64Array>()))
}

/// A number for each text.
fn number_of(text: &ArrayRef, f: impl Fn(&str) -> i64) -> ArrayRef {
    Arc::new(texts(text).iter().map(|value| value.map(&f)).collect::<Int64Array>())
}

/// The bytes of the first character as one number, the first byte highest; 0 of an empty text.
fn ord(text: &str) -> i64 {
    let bytes = text.chars().next().map_or(0, char::len_utf8);
    text.bytes().take(bytes).fold(0, |number, byte| number << 8 | i64::from(byte))
}

fn strcmp(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (left, right) = (texts(&args[0]), texts(&args[1]));
    let compare = |row| Some(value(left, row)?.cmp(value(right, row)?) as i64);
    Ok(Arc::new((0..left.len()).map(compare).collect::<Int64Array>()))
}

/// The index, from 1, of the first argument among the others; 0 if it is NULL or missing. Texts are compared with texts, dates
/// with values that can be dates, all others as numbers.
fn field(args: &[ArrayRef]) -> Result<ArrayRef> {
    let types: Vec<&DataType> = args.iter().map(Array::data_type).collect();
    let kinds: Vec<Kind> = types.iter().map(|data_type| kind(data_type)).collect();
    let to = match common_type(&types) {
        DataType::Utf8 if kinds.iter().any(|kind| matches!(kind, Kind::Date | Kind::DateTime)) => {
            crate::types::kind::DATETIME
        }
        DataType::Utf8 if kinds.iter().any(|kind| !matches!(kind, Kind::Text | Kind::Null)) => {
            DataType::Float64
        }
        DataType::Null => DataType::Utf8,
        to => to,
    };
    let converter = RowConverter::new(vec![SortField::new(to.clone())])?;
    let mut columns = Vec::with_capacity(args.len());
    for arg in args {
        let column = normal(convert_to(arg, &to)?);
        columns.push((converter.convert_columns(std::slice::from_ref(&column))?, column));
    }
    let Some(((wanted, nulls), others)) = columns.split_first() else {
        return Ok(Arc::new(Int64Array::new_null(0)));
    };
    let position = |row: usize| {
        if nulls.is_null(row) {
            return 0;
        }
        let found = others.iter().position(|(column, _)| column.row(row) == wanted.row(row));
        found.map_or(0, |at| at as i64 + 1)
    };
    Ok(Arc::new((0..args[0].len()).map(|row| Some(position(row))).collect::<Int64Array>()))
}

fn elt(args: &[ArrayRef]) -> Result<ArrayRef> {
    let index = ints(&args[0]);
    let columns: Vec<&StringArray> = args[1..].iter().map(texts).collect();
    Ok(Arc::new(
        (0..index.len())
            .map(|row| {
                let at = usize::try_from(int_value(index, row)?).ok()?.checked_sub(1)?;
                value(columns.get(at)?, row)
            })
            .collect::<StringArray>(),
    ))
}

fn trim(args: &[ArrayRef], start: bool, end: bool) -> ArrayRef {
    let text = texts(&args[0]);
    let what = args.get(1).map(texts);
    Arc::new(
        (0..text.len())
            .map(|row| {
                let mut rest = value(text, row)?;
                let what = match what {
                    Some(what) => value(what, row)?,
                    None => " ",
                };
                if what.is_empty() {
                    return Some(rest);
                }
                while start && rest.starts_with(what) {
                    rest = &rest[what.len()..];
                }
                while end && rest.ends_with(what) {
                    rest = &rest[..rest.len() - what.len()];
                }
                Some(rest)
            })
            .collect::<StringArray>(),
    )
}

fn quote(text: &str) -> Option<String> {
    Some(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")))
}

/// One text for several values, different for different values; NULL when one is NULL.
/// `COUNT(DISTINCT a, b)` counts these.
fn tuple(args: &[ArrayRef]) -> Result<ArrayRef> {
    let spelled = args.iter().map(|arg| match arg.data_type() {
        DataType::Binary => hex(arg),
        _ => Ok(Arc::clone(arg)),
    });
    let spelled = spelled.collect::<Result<Vec<_>>>()?;
    let columns: Vec<&StringArray> = spelled.iter().map(texts).collect();
    rows("__tuple", args, |row| {
        let mut all = String::new();
        for column in &columns {
            let text = value(column, row)?;
            let _ = write!(all, "{}:{text}", text.len());
        }
        Some(all)
    })
}
