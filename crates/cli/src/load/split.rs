//! Row ends: where a stream of rows may be cut.
//!
//! *Invariant:* a cut is behind a whole row as the server reads rows, so line ends within quotes are not cuts.

use crate::load::shape::{Format, Shape};
use memchr::{memchr, memchr2, memmem, memrchr};

/// The place behind the last whole row of bytes that begin with a row, if there is one.
pub(crate) fn last_row_end(shape: &Shape, bytes: &[u8]) -> Option<usize> {
    match shape.format {
        Format::Csv => match shape.enclose {
            Some(enclose) => last_enclosed_end(shape, enclose, bytes),
            None => memmem::rfind(bytes, shape.delimiter()).map(|at| at + shape.delimiter().len()),
        },
        Format::JsonLines => memrchr(b'\n', bytes).map(|at| at + 1),
        Format::JsonArray => last_comma(bytes),
        Format::Json | Format::Parquet | Format::Orc | Format::Arrow => None,
    }
}

/// The place behind the first row.
pub(crate) fn first_row_end(shape: &Shape, bytes: &[u8]) -> Option<usize> {
    match shape.enclose {
        Some(enclose) if shape.format == Format::Csv => enclosed_end(shape, enclose, bytes, 0),
        _ => memmem::find(bytes, shape.delimiter()).map(|at| at + shape.delimiter().len()),
    }
}

fn last_enclosed_end(shape: &Shape, enclose: u8, bytes: &[u8]) -> Option<usize> {
    let delimiter = shape.delimiter();
    let mut row = 0;
    loop {
        // Rows before the next quote end where their lines do.
        let quote = memchr(enclose, &bytes[row..]).map_or(bytes.len(), |at| row + at);
        if let Some(at) = memmem::rfind(&bytes[row..quote], delimiter) {
            row += at + delimiter.len();
        }
        if quote == bytes.len() {
            break;
        }
        match enclosed_end(shape, enclose, bytes, row) {
            Some(end) => row = end,
            None => break,
        }
    }
    (row > 0).then_some(row)
}

/// The place behind the row that begins at `start`. A quote opens a field only at its beginning, and closes it only before a
/// separator or a line's end.
fn enclosed_end(shape: &Shape, enclose: u8, bytes: &[u8], start: usize) -> Option<usize> {
    let (separator, delimiter) = (shape.separator.as_bytes(), shape.delimiter());
    let mut at = start;
    loop {
        if *bytes.get(at)? == enclose {
            at = match after_enclosed(shape, enclose, bytes, at + 1)? {
                Closed::Row(end) => return Some(end),
                Closed::Field(next) => next,
            };
            continue;
        }
        loop {
            at += memchr2(separator[0], delimiter[0], &bytes[at..])?;
            let rest = &bytes[at..];
            if rest.starts_with(delimiter) {
                return Some(at + delimiter.len());
            }
            if rest.starts_with(separator) {
                at += separator.len();
                break;
            }
            at += 1;
        }
    }
}

enum Closed {
    Row(usize),
    Field(usize),
}

fn after_enclosed(shape: &Shape, enclose: u8, bytes: &[u8], mut at: usize) -> Option<Closed> {
    let (separator, delimiter) = (shape.separator.as_bytes(), shape.delimiter());
    loop {
        at += memchr2(enclose, shape.escape.unwrap_or(enclose), bytes.get(at..)?)?;
        if bytes[at] != enclose {
            at += 2;
            continue;
        }
        let rest = &bytes[at + 1..];
        if rest.starts_with(delimiter) {
            return Some(Closed::Row(at + 1 + delimiter.len()));
        }
        if delimiter == b"\n" && rest.starts_with(b"\r\n") {
            return Some(Closed::Row(at + 3));
        }
        if rest.starts_with(separator) {
            return Some(Closed::Field(at + 1 + separator.len()));
        }
        // A doubled quote is one; a quote before anything else is data.
        at += if *rest.first()? == enclose { 2 } else { 1 };
    }
}

/// The place behind the last comma between two elements, or behind the bracket that ends the array.
fn last_comma(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_text, mut last) = (0_usize, false, None);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' if depth == 0 => return Some(at + 1),
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => last = Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    last
}

/// A chunk's bytes as the server gets them: elements of an array become an array.
pub(crate) fn body(shape: &Shape, bytes: Vec<u8>) -> Vec<u8> {
    if shape.format != Format::JsonArray {
        return bytes;
    }
    let elements = bytes.trim_ascii();
    let elements = elements.strip_suffix(b",").or_else(|| elements.strip_suffix(b"]")).unwrap_or(elements);
    [b"[", elements, b"]"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(enclose: Option<u8>) -> Shape {
        Shape { enclose, separator: ",".to_owned(), ..Shape::of(Format::Csv) }
    }

    #[test]
    fn rows_end_at_line_ends_outside_of_quotes() {
        let shape = csv(Some(b'"'));
        for (text, end) in [
            ("1,a\n2,b", Some(4)),
            ("1,\"a\n\"\n2,\"b\n", Some(7)),
            ("1,\"a\"\"\n\"\n2", Some(9)),
            ("1,5\" disk\n2,6\" disk\n3", Some(20)),
            ("\"a\"x\n\",1\r\n2", Some(10)),
            ("1,\"a\n", None),
            ("1,\"a\"", None),
            ("1", None),
        ] {
            assert_eq!(last_row_end(&shape, text.as_bytes()), end, "{text:?}");
        }
        assert_eq!(last_row_end(&csv(None), b"1,\"a\n\"\n2"), Some(7));
        let escaping = Shape { escape: Some(b'\\'), ..shape };
        assert_eq!(last_row_end(&escaping, b"\"a\\\",\n\"\n2"), Some(8));
    }

    #[test]
    fn every_prefix_of_rows_is_cut_where_the_whole_is() {
        let shape = csv(Some(b'"'));
        let text = b"1,\"a,\n\"\"b\",x\n2,\"\"\n\"3\",\"\"\"\"\n4,c\n";
        let ends = [13, 18, 27, 31];
        let mut row = 0;
        for end in ends {
            assert_eq!(first_row_end(&shape, &text[row..]).map(|at| at + row), Some(end));
            row = end;
        }
        for length in 0..=text.len() {
            let expected = ends.into_iter().rfind(|end| *end <= length);
            assert_eq!(last_row_end(&shape, &text[..length]), expected, "{length}");
        }
    }

    #[test]
    fn elements_of_an_array_are_cut_at_their_commas() {
        let shape = Shape::of(Format::JsonArray);
        let text = br#" {"a":[1,2],"b":"x],\""}, {"a":3} ] "#;
        assert_eq!(last_row_end(&shape, &text[..30]), Some(25));
        assert_eq!(last_row_end(&shape, text), Some(35));
        assert_eq!(body(&shape, text[..25].to_vec()), br#"[{"a":[1,2],"b":"x],\""}]"#);
        assert_eq!(body(&shape, text[25..].to_vec()), br#"[{"a":3} ]"#);
    }
}
