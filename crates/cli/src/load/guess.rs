//! The shape of a file, guessed from its name and its first bytes.

use crate::load::shape::{Format, Packing, Shape};
use crate::load::split;
use std::path::Path;

/// Separators that are tried, the likelier first.
const SEPARATORS: [&str; 5] = [",", "\t", ";", "|", "\u{1}"];
const ROWS_MAX: usize = 200;

/// The choices that the command line makes instead of the guess.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub format: Option<Format>,
    pub separator: Option<String>,
    pub line_delimiter: Option<String>,
    pub enclose: Option<Option<u8>>,
    pub escape: Option<u8>,
    pub first_line_is_names: Option<bool>,
}

/// Guesses the shape of a file from its name and the beginning of its unpacked bytes. `columns` are those of the table, if known.
pub(crate) fn shape(
    name: &Path,
    packing: Packing,
    bytes: &[u8],
    columns: Option<&[String]>,
    given: &Given,
) -> Shape {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let format = given.format.unwrap_or_else(|| format(name, bytes));
    let mut shape = Shape { packing, ..Shape::of(format) };
    if let Some(delimiter) = &given.line_delimiter {
        shape.line_delimiter.clone_from(delimiter);
    }
    if format != Format::Csv {
        return shape;
    }
    shape.escape = given.escape;
    shape.separator = match &given.separator {
        Some(separator) => separator.clone(),
        None => separator(&shape, name, bytes, columns.map(<[String]>::len)).to_owned(),
    };
    shape.enclose = match given.enclose {
        Some(enclose) => enclose,
        None => enclose(&shape, bytes),
    };
    let rows = rows(&shape, bytes);
    let is_header = match given.first_line_is_names {
        Some(is_header) => is_header,
        None => is_header(&rows, columns),
    };
    if is_header {
        shape.header = rows.into_iter().next();
    }
    shape
}

fn format(name: &Path, bytes: &[u8]) -> Format {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst").trim_end_matches(".zstd");
    let is = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if bytes.starts_with(b"PAR1") {
        return Format::Parquet;
    }
    if bytes.starts_with(b"ORC") && !is(&[".csv", ".tsv", ".txt"]) {
        return Format::Orc;
    }
    if bytes.starts_with(b"ARROW1") || is(&[".arrow", ".feather"]) {
        return Format::Arrow;
    }
    let text = bytes.trim_ascii_start();
    let is_named_json = is(&[".json", ".jsonl", ".ndjson"]);
    match text.first() {
        Some(b'[') if is_named_json || text[1..].trim_ascii_start().first() == Some(&b'{') => {
            Format::JsonArray
        }
        Some(b'{') => {
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let is_line = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
            // A line that is longer than what is known of it is one all the same.
            if is_line || line.len() == text.len() { Format::JsonLines } else { Format::Json }
        }
        _ if is(&[".jsonl", ".ndjson"]) => Format::JsonLines,
        _ => Format::Csv,
    }
}

fn separator(shape: &Shape, name: &Path, bytes: &[u8], columns: Option<usize>) -> &'static str {
    let is_tsv = name.to_string_lossy().to_ascii_lowercase().contains(".tsv");
    let mut best = (0, if is_tsv { "\t" } else { "," });
    for candidate in SEPARATORS {
        let tried = Shape { separator: candidate.to_owned(), enclose: Some(b'"'), ..shape.clone() };
        let rows = rows(&tried, bytes);
        let (least, most) = rows
            .iter()
            .fold((usize::MAX, 0), |(least, most), row| (least.min(row.len()), most.max(row.len())));
        if rows.is_empty() || most < 2 {
            continue;
        }
        // A table's number of columns weighs most, then the name, then that all rows agree, then how many fields there are.
        let signs =
            [(Some(most) == columns, 10_000), (is_tsv && candidate == "\t", 2_000), (least == most, 1_000)];
        let score = least.min(999)
            + signs.iter().filter(|(holds, _)| *holds).map(|(_, weight)| weight).sum::<usize>();
        if score > best.0 {
            best = (score, candidate);
        }
    }
    best.1
}

/// Quotes are taken for granted where a separator is common in texts; elsewhere they must be seen around a field.
fn enclose(shape: &Shape, bytes: &[u8]) -> Option<u8> {
    let is_seen = || {
        let lines = bytes.split(|byte| *byte == b'\n').take(ROWS_MAX);
        let separator = shape.separator.as_bytes()[0];
        lines.flat_map(|line| line.split(move |byte| *byte == separator)).any(|field| {
            field.len() > 1 && field.starts_with(b"\"") && field.trim_ascii_end().ends_with(b"\"")
        })
    };
    (matches!(shape.separator.as_str(), "," | ";") || is_seen()).then_some(b'"')
}

fn is_header(rows: &[Vec<String>], columns: Option<&[String]>) -> bool {
    let Some((first, rest)) = rows.split_first() else { return false };
    let is_number = |field: &String| field.trim().parse::<f64>().is_ok();
    let is_name = |field: &String| !field.trim().is_empty() && !is_number(field);
    if !first.iter().all(is_name) {
        return false;
    }
    match columns {
        // A file may have further columns, which the table lacks.
        Some(columns) => {
            let is_column =
                |field: &&String| columns.iter().any(|column| column.eq_ignore_ascii_case(field.trim()));
            2 * first.iter().filter(is_column).count() >= first.len()
        }
        None => rest.iter().any(|row| row.iter().any(is_number)),
    }
}

/// The fields of the first whole rows.
pub(crate) fn rows(shape: &Shape, bytes: &[u8]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    while rows.len() < ROWS_MAX && !rest.is_empty() {
        let Some(end) = split::first_row_end(shape, rest) else { break };
        rows.push(fields(shape, &rest[..end]));
        rest = &rest[end..];
    }
    if rows.is_empty() && !rest.is_empty() {
        rows.push(fields(shape, rest));
    }
    rows
}

fn fields(shape: &Shape, row: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(row);
    let text = text.strip_suffix(shape.line_delimiter.as_str()).unwrap_or(&text);
    let mut rest = text.strip_suffix('\r').unwrap_or(text);
    let enclose = shape.enclose.map(char::from);
    let mut fields = Vec::new();
    loop {
        if let Some(quote) = enclose
            && let Some(inner) = rest.strip_prefix(quote)
        {
            let closing = format!("{quote}{}", shape.separator);
            let (field, after) = match inner.find(&closing) {
                Some(at) => (&inner[..at], Some(&inner[at + closing.len()..])),
                None => (inner.strip_suffix(quote).unwrap_or(inner), None),
            };
            fields.push(field.replace(&format!("{quote}{quote}"), &quote.to_string()));
            match after {
                Some(after) => rest = after,
                None => return fields,
            }
            continue;
        }
        match rest.split_once(shape.separator.as_str()) {
            Some((field, after)) => {
                fields.push(field.to_owned());
                rest = after;
            }
            None => {
                fields.push(rest.to_owned());
                return fields;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(name: &str, text: &str, columns: Option<&[&str]>) -> Shape {
        let columns: Option<Vec<_>> =
            columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        shape(Path::new(name), Packing::None, text.as_bytes(), columns.as_deref(), &Given::default())
    }

    #[test]
    fn formats_are_known_by_their_content() {
        for (name, text, format) in [
            ("a.csv", "1,2\n", Format::Csv),
            ("a", "PAR1....", Format::Parquet),
            ("a.orc", "ORC...", Format::Orc),
            ("a.csv", "ORC,1\n", Format::Csv),
            ("a", "{\"a\":1}\n{\"a\":2}\n", Format::JsonLines),
            ("a.json", " [1]", Format::JsonArray),
            ("a", "[\n {\"a\":1}]", Format::JsonArray),
            ("a.csv", "[1],2\n", Format::Csv),
            ("a.json", "{\n\"a\":1}", Format::Json),
            ("a.jsonl.gz", "", Format::JsonLines),
        ] {
            assert_eq!(guess(name, text, None).format, format, "{name} {text}");
        }
    }

    #[test]
    fn separators_quotes_and_names_are_found() {
        let found = guess("a.csv", "id;name;price\n1;\"a;b\";1,5\n2;c;2,5\n", None);
        assert_eq!((found.separator.as_str(), found.enclose), (";", Some(b'"')));
        assert_eq!(found.header.as_deref().map(<[_]>::len), Some(3));
        let found = guess("a.tsv", "1\ta,b\n2\tc,d\n", Some(&["x", "y"]));
        assert_eq!((found.separator.as_str(), found.enclose, found.header), ("\t", None, None));
        let found = guess("a.txt", "x|y\na|b\n", Some(&["X", "Y", "z"]));
        assert_eq!(found.header, Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(guess("a.csv", "x,y\na,b\n", None).header, None);
        assert!(guess("a.csv", "x,y,more\na,b,c\n", Some(&["x", "y"])).header.is_some());
        assert_eq!(guess("a.csv", "x,7\na,b\n", Some(&["x", "y"])).header, None);
        assert_eq!(guess("a.csv", "u,v\n1,2\n", Some(&["x", "y"])).header, None);
    }
}
