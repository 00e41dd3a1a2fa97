//! The shape of a file: its format and everything that decides where its rows end. It is guessed once and stored in the journal.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Format {
    /// Lines of fields
    Csv,
    /// One JSON object a line
    JsonLines,
    /// One JSON array of objects
    JsonArray,
    /// One JSON object
    Json,
    /// Parquet
    Parquet,
    /// ORC
    Orc,
    /// Arrow IPC
    Arrow,
}

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Packing {
    None,
    Gz,
    Zst,
}

/// The shape of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub format: Format,
    pub packing: Packing,
    pub separator: String,
    pub line_delimiter: String,
    pub enclose: Option<u8>,
    pub escape: Option<u8>,
    /// The names in the first line, if that is not a row.
    pub header: Option<Vec<String>>,
    /// The file is one chunk, as it is.
    pub whole: bool,
}

impl Shape {
    pub fn of(format: Format) -> Self {
        Self {
            format,
            packing: Packing::None,
            separator: "\t".to_owned(),
            line_delimiter: "\n".to_owned(),
            enclose: None,
            escape: None,
            header: None,
            whole: !format.can_be_cut(),
        }
    }

    pub fn delimiter(&self) -> &[u8] {
        self.line_delimiter.as_bytes()
    }

    /// The headers that tell the server about a chunk of the file.
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
        match self.format {
            Format::Csv => {
                add("format", "csv".to_owned());
                add("column_separator", visible(&self.separator));
                if self.line_delimiter != "\n" {
                    add("line_delimiter", visible(&self.line_delimiter));
                }
                if let Some(enclose) = self.enclose {
                    add("enclose", char::from(enclose).to_string());
                }
                if let Some(escape) = self.escape {
                    add("escape", char::from(escape).to_string());
                }
                if let Some(names) = &self.header {
                    let names: Vec<_> =
                        names.iter().map(|name| format!("`{}`", name.replace('`', "``"))).collect();
                    add("columns", names.join(","));
                    if self.whole {
                        add("skip_lines", "1".to_owned());
                    }
                }
            }
            Format::JsonLines => {
                add("format", "json".to_owned());
                add("read_json_by_line", "true".to_owned());
            }
            Format::JsonArray => {
                add("format", "json".to_owned());
                add("strip_outer_array", "true".to_owned());
            }
            Format::Json => {
                add("format", "json".to_owned());
                add("read_json_by_line", "false".to_owned());
            }
            Format::Parquet => add("format", "parquet".to_owned()),
            Format::Orc => add("format", "orc".to_owned()),
            Format::Arrow => add("format", "arrow".to_owned()),
        }
        if self.whole && self.packing == Packing::Gz {
            add("compress_type", "gz".to_owned());
        }
        headers
    }

    /// The guess as options, to be copied and changed.
    pub fn options(&self) -> String {
        let name =
            self.format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut text = format!("--format {name}");
        if self.format == Format::Csv {
            text.push_str(&format!(" --separator '{}'", visible(&self.separator)));
            match self.enclose {
                Some(enclose) => text.push_str(&format!(" --enclose '{}'", char::from(enclose))),
                None => text.push_str(" --enclose none"),
            }
            text.push_str(if self.header.is_some() { " --first-line names" } else { " --first-line row" });
        }
        text
    }
}

impl Format {
    pub(crate) fn can_be_cut(self) -> bool {
        matches!(self, Self::Csv | Self::JsonLines | Self::JsonArray)
    }
}

/// A text with its invisible characters as `\x01`.
fn visible(text: &str) -> String {
    if text.chars().all(|sign| sign.is_ascii_graphic()) {
        return text.to_owned();
    }
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// Reads `\t`, `\n`, `\r` and `\x01` in a text.
pub(crate) fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut signs = after.chars();
        rest = match signs.next() {
            Some('t') => {
                out.push('\t');
                signs.as_str()
            }
            Some('n') => {
                out.push('\n');
                signs.as_str()
            }
            Some('r') => {
                out.push('\r');
                signs.as_str()
            }
            Some('\\') => {
                out.push('\\');
                signs.as_str()
            }
            Some('x') => {
                let digits = signs.as_str().get(..2).ok_or_else(|| format!("{text:?} ends within \\x"))?;
                let byte = u8::from_str_radix(digits, 16).map_err(|_| format!("\\x{digits} is no byte"))?;
                if !byte.is_ascii() {
                    return Err(format!("\\x{digits} is not ASCII"));
                }
                out.push(byte.into());
                &signs.as_str()[2..]
            }
            _ => return Err(format!("{text:?}: write a backslash as \\\\")),
        };
    }
    out.push_str(rest);
    if out.is_empty() { Err("an empty separator".to_owned()) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_may_be_escaped() {
        assert_eq!(unescaped(r"\t"), Ok("\t".to_owned()));
        assert_eq!(unescaped(r"a\x01\\"), Ok("a\u{1}\\".to_owned()));
        assert!(unescaped("").is_err() && unescaped(r"\x0").is_err() && unescaped(r"\q").is_err());
        assert_eq!((visible("||"), visible("\u{1}")), ("||".to_owned(), "\\x01".to_owned()));
    }

    #[test]
    fn a_header_names_the_columns_of_every_chunk() {
        let shape = Shape { header: Some(vec!["a".to_owned(), "b`".to_owned()]), ..Shape::of(Format::Csv) };
        let headers = shape.headers();
        assert!(headers.contains(&("columns".to_owned(), "`a`,`b```".to_owned())));
        assert!(headers.contains(&("column_separator".to_owned(), "\\x09".to_owned())));
        assert!(!headers.iter().any(|(name, _)| name == "skip_lines"));
    }
}
