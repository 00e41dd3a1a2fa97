//! Texts with letters hidden, and texts made of bits: `MASK`, `DIGITAL_MASKING`, `MAKE_SET`, `EXPORT_SET`, `CHAR`.

use crate::functions::cells::{int, value};
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_err};

/// Characters that are hidden by default.
const HIDDEN: i64 = 4;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Int, Text};
    let text = crate::functions::utf8;
    vec![
        MySqlFunction::new("mask", &[Text, Text, Text, Text], text, mask).optional(3),
        MySqlFunction::new("mask_first_n", &[Text, Int], text, |args| mask_part(args, true)).optional(1),
        MySqlFunction::new("mask_last_n", &[Text, Int], text, |args| mask_part(args, false)).optional(1),
        MySqlFunction::new("digital_masking", &[Text], text, |args| {
            growth::texts("digital_masking", args, |row| Ok(value(&args[0], row).map(without_middle)))
        }),
        MySqlFunction::new("make_set", &[Int, Text], text, make_set).variadic(),
        MySqlFunction::new("export_set", &[Int, Text, Text, Text, Int], text, export_set).optional(2),
        MySqlFunction::new("char", &[Int], text, char_of).variadic(),
    ]
}

/// Upper case letters, lower case letters and digits as other characters.
fn hidden(text: &str, [upper, lower, digit]: [char; 3]) -> String {
    let hide = |letter: char| match letter {
        'A'..='Z' => upper,
        'a'..='z' => lower,
        '0'..='9' => digit,
        other => other,
    };
    text.chars().map(hide).collect()
}

fn mask(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("mask", args, |row| {
        let Some(text) = value(&args[0], row) else { return Ok(None) };
        let mut by = ['X', 'x', 'n'];
        for (by, column) in by.iter_mut().zip(&args[1..]) {
            match value(column, row).map(|text| text.chars().next()) {
                Some(Some(letter)) => *by = letter,
                Some(None) => {
                    return exec_err!("MASK takes characters to hide others with, and not an empty text");
                }
                None => return Ok(None),
            }
        }
        Ok(Some(hidden(text, by)))
    })
}

fn mask_part(args: &[ArrayRef], is_first: bool) -> Result<ArrayRef> {
    let name = if is_first { "mask_first_n" } else { "mask_last_n" };
    growth::texts(name, args, |row| {
        let count = match args.get(1) {
            Some(counts) => int(counts, row),
            None => Some(HIDDEN),
        };
        let (Some(text), Some(count)) = (value(&args[0], row), count) else { return Ok(None) };
        let Ok(count) = usize::try_from(count) else {
            return exec_err!(
                "{} takes a number of characters from 0 on and not {count}",
                name.to_uppercase()
            );
        };
        let all = text.chars().count();
        let at = if is_first { count.min(all) } else { all.saturating_sub(count) };
        let (start, end) = text.split_at(text.char_indices().nth(at).map_or(text.len(), |(at, _)| at));
        let hide = |part: &str| hidden(part, ['X', 'x', 'n']);
        Ok(Some(if is_first { hide(start) + end } else { start.to_owned() + &hide(end) }))
    })
}

/// A number, such as that of a telephone, without the digits between the first three and the last four.
fn without_middle(number: &str) -> String {
    let letters: Vec<char> = number.chars().collect();
    let start: String = letters.iter().take(3).collect();
    let end: String = letters[letters.len().saturating_sub(4)..].iter().collect();
    format!("{start}****{end}")
}

/// The texts whose bits are set, with commas; NULLs are left out.
fn make_set(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("make_set", args, |row| {
        let chosen = |bits: i64| {
            let columns = args[1..].iter().take(64).enumerate();
            let texts =
                columns.filter(|(bit, _)| bits >> bit & 1 == 1).filter_map(|(_, text)| value(text, row));
            texts.collect::<Vec<_>>().join(",")
        };
        Ok(int(&args[0], row).map(chosen))
    })
}

/// A text for each bit, from the lowest on.
fn export_set(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("export_set", args, |row| {
        let exported = || {
            let bits = int(&args[0], row)?;
            let (on, off) = (value(&args[1], row)?, value(&args[2], row)?);
            let separator = args.get(3).map_or(Some(","), |column| value(column, row))?;
            let count = args.get(4).map_or(Some(64), |column| int(column, row))?;
            // As in MySQL, numbers that are not from 0 to 64 mean 64.
            let count = if (0..=64).contains(&count) { count } else { 64 };
            let texts: Vec<&str> =
                (0..count).map(|bit| if bits >> bit & 1 == 1 { on } else { off }).collect();
            Some(texts.join(separator))
        };
        Ok(exported())
    })
}

/// The text of the bytes of numbers; NULLs are left out.
fn char_of(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("char", args, |row| {
        let mut bytes = Vec::with_capacity(args.len());
        for number in args.iter().filter_map(|column| int(column, row)) {
            // The low four bytes, without zeros in front.
            let four = (number as u32).to_be_bytes();
            let zeros = four.iter().take(3).take_while(|byte| **byte == 0).count();
            bytes.extend_from_slice(&four[zeros..]);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => exec_err!("CHAR: the bytes {:02X?} are not UTF-8; use UNHEX", error.as_bytes()),
        }
    })
}
