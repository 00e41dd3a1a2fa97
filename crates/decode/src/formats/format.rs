//! How the body of a load is written, according to its properties.
//!
//! The headers of a Stream Load and the properties of `http_stream(…)` have Doris's names and one set of rules, which is here.
//! Each format creates its decoders; a new one is a variant of [`BodyFormat`].
//!
//! Invariant: a format built from properties is legal, so decoders of it only refuse bodies.
//!
//! Not its business: the source of properties and the wording of refusals in answers.

mod compression;
mod separator;

use crate::blocks::builder::BlockBuilder;
use crate::formats::body::{BodyDecoder, FieldDecoder, FieldNames};
use crate::formats::columnar::{ColumnarDecoder, ColumnarFields, ColumnarFormat};
use crate::formats::csv::{CsvDecoder, CsvFormat, CsvHeader, CsvStrings};
use crate::formats::host::LoadHost;
use crate::formats::json::{JsonDecoder, JsonFormat, JsonPath, JsonPaths, JsonStrings};
use crate::rows::loader::LoadRules;
use crate::rows::target::Target;
pub use compression::Compression;
pub use separator::decode as decode_separator;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// How a body is written and packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFormat {
    pub body: BodyFormat,
    /// The property `compress_type`. The receiver of the body decompresses it.
    pub compression: Compression,
}

/// How a body is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    Csv(CsvFormat),
    Json(JsonFormat),
    Columnar(ColumnarFormat),
}

/// Why properties do not describe a format, in Doris's words where it has some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// An unknown `format` or `compress_type`.
    #[error("{0}")]
    Unknown(String),
    /// A `format` or `compress_type` that Doris reads and we do not yet.
    #[error("{0}")]
    NotSupported(String),
    /// Any other property that cannot be obeyed.
    #[error("{0}")]
    Invalid(String),
}

impl From<FormatError> for SqlError {
    fn from(error: FormatError) -> Self {
        let code = match error {
            FormatError::NotSupported(_) => ErrorCode::NotSupported,
            FormatError::Unknown(_) | FormatError::Invalid(_) => ErrorCode::Unknown,
        };
        Self::detail(code, error.to_string())
    }
}

impl Default for LoadFormat {
    /// The format of a load without properties.
    fn default() -> Self {
        Self { body: BodyFormat::Csv(CsvFormat::default()), compression: Compression::None }
    }
}

impl LoadFormat {
    /// The names of all properties, as Doris writes them.
    pub const PROPERTIES: [&str; 15] = [
        "format",
        "compress_type",
        "column_separator",
        "line_delimiter",
        "enclose",
        "escape",
        "trim_double_quotes",
        "skip_lines",
        "empty_field_as_null",
        "read_json_by_line",
        "strip_outer_array",
        "json_root",
        "jsonpaths",
        "num_as_string",
        "fuzzy_parse",
    ];

    /// Builds the format from properties: pairs of a name, in lower case, and a text. An empty text counts as missing, except for
    /// separators; the first of duplicate properties counts. Booleans are `true` in any case, and anything else is false.
    ///
    /// Properties of another format are checked and have no effect, as in Doris: clients send them with every
    /// load. But those without which other rows would be loaded than the client means are refused.
    ///
    /// # Errors
    /// [`FormatError::Unknown`] and [`FormatError::NotSupported`] for `format` and then `compress_type`, before
    /// any other; [`FormatError::Invalid`] for a name that is not in [`LoadFormat::PROPERTIES`], a bad
    /// separator, a mark of several bytes, a bad number or path, a property that only another format can obey.
    pub fn from_properties<'a>(
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, FormatError> {
        let properties: Vec<_> = properties.into_iter().collect();
        let given = |name: &str| properties.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        let text = |name: &str| given(name).filter(|text| !text.is_empty());
        let flag = |name: &str| text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let kind = text("format").map_or(Ok(Kind::Csv(CsvHeader::None)), kind)?;
        let compression = text("compress_type")
            .map_or(Ok(Compression::None), |text| compression::parse(text, kind.name()))?;
        if let Some((name, text)) = properties.iter().find(|(name, _)| !Self::PROPERTIES.contains(name)) {
            return Err(FormatError::Invalid(format!(
                "Unknown properties: {{{name}={text}}}; a load's format has the properties {}",
                Self::PROPERTIES.join(", ")
            )));
        }
        let CsvFormat { column_separator, line_delimiter, .. } = CsvFormat::default();
        let csv = CsvFormat {
            header: if let Kind::Csv(header) = kind { header } else { CsvHeader::None },
            column_separator: given("column_separator").map_or(Ok(column_separator), separator::decode)?,
            line_delimiter: given("line_delimiter").map_or(Ok(line_delimiter), separator::decode)?,
            enclose: text("enclose").map(|text| mark("enclose", text)).transpose()?,
            escape: text("escape").map(|text| mark("escape", text)).transpose()?,
            trim_double_quotes: flag("trim_double_quotes"),
            skip_lines: text("skip_lines").map_or(Ok(0), skip_lines)?,
            empty_field_as_null: flag("empty_field_as_null"),
        };
        let root = text("json_root").map(JsonPath::parse_one).transpose()?;
        let paths = text("jsonpaths").map(JsonPaths::parse).transpose()?;
        let body = match kind {
            Kind::Csv(_) => {
                let asked = [("json_root", root.is_some()), ("jsonpaths", paths.is_some())];
                refuse(asked, "csv", "send format=json if the data are JSON")?;
                BodyFormat::Csv(csv)
            }
            Kind::Columnar(format) => {
                let asked = [
                    ("skip_lines", csv.skip_lines > 0),
                    ("empty_field_as_null", csv.empty_field_as_null),
                    ("json_root", root.is_some()),
                    ("jsonpaths", paths.is_some()),
                ];
                refuse(asked, format.name(), "leave it out")?;
                BodyFormat::Columnar(format)
            }
            Kind::Json => {
                let asked =
                    [("skip_lines", csv.skip_lines > 0), ("empty_field_as_null", csv.empty_field_as_null)];
                refuse(asked, "json", "leave it out")?;
                // Without either flag rows are lines; with one of them the other is false if it is not given.
                let by_line = text("read_json_by_line").is_none() && text("strip_outer_array").is_none();
                BodyFormat::Json(JsonFormat {
                    read_by_line: by_line || flag("read_json_by_line"),
                    strip_outer_array: flag("strip_outer_array"),
                    line_delimiter: csv.line_delimiter,
                    root,
                    paths,
                    num_as_string: flag("num_as_string"),
                })
            }
        };
        Ok(Self { body, compression })
    }
}

/// Refuses a property that was given and that the format can't obey.
fn refuse<const N: usize>(asked: [(&str, bool); N], format: &str, remedy: &str) -> Result<(), FormatError> {
    match asked.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => {
            Err(FormatError::Invalid(format!("{name} has no effect with format={format}; {remedy}")))
        }
    }
}

/// The formats that are read.
#[derive(Clone, Copy)]
enum Kind {
    Csv(CsvHeader),
    Json,
    Columnar(ColumnarFormat),
}

impl Kind {
    /// The name of the format in texts.
    fn name(self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Json => "json",
            Self::Columnar(format) => format.name(),
        }
    }
}

impl BodyFormat {
    /// The name of the format in texts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Json(_) => "json",
            Self::Columnar(format) => format.name(),
        }
    }

    /// A decoder of a body whose fields are the target's, for a load run by `host`; `builder` may be any builder.
    ///
    /// # Errors
    /// If the format was made by hand and is not legal.
    pub fn decoder(
        &self,
        target: Target,
        rules: LoadRules,
        builder: BlockBuilder,
        host: &Arc<dyn LoadHost>,
    ) -> Result<Box<dyn BodyDecoder>, SqlError> {
        match self {
            Self::Columnar(format) => {
                Ok(Box::new(ColumnarDecoder::new(target, *format, rules, builder, Arc::clone(host))))
            }
            Self::Csv(format) => {
                Ok(Box::new(CsvDecoder::with_builder(target, format.clone(), rules, builder)?))
            }
            Self::Json(format) => Ok(Box::new(JsonDecoder::with_builder(target, format, rules, builder)?)),
        }
    }

    /// A decoder of a body's fields, for values that are computed from them. `absent` has the texts of the first fields in rows
    /// that omit them, if the format has such rows.
    ///
    /// # Errors
    /// See [`BodyFormat::decoder`].
    pub fn fields(
        &self,
        names: FieldNames<'_>,
        absent: &[Option<String>],
        host: &Arc<dyn LoadHost>,
    ) -> Result<Box<dyn FieldDecoder>, SqlError> {
        match self {
            Self::Columnar(format) => Ok(Box::new(ColumnarFields::new(names, *format, Arc::clone(host)))),
            Self::Json(format) => Ok(Box::new(JsonStrings::new(names, absent, format)?)),
            Self::Csv(format) => Ok(Box::new(CsvStrings::new(names, format.clone())?)),
        }
    }

    /// Whether a body is collected as a whole before its first row is read.
    #[must_use]
    pub const fn is_gathered(&self) -> bool {
        matches!(self, Self::Columnar(ColumnarFormat::Parquet | ColumnarFormat::Orc))
    }

    /// Whether the body names its fields.
    #[must_use]
    pub fn names_fields(&self) -> bool {
        match self {
            Self::Csv(format) => format.header != CsvHeader::None,
            Self::Json(_) | Self::Columnar(_) => true,
        }
    }

    /// Whether a row's fields are found by their names and not by their places.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Columnar(_))
    }

    /// Whether the body has types for its fields, so that the body alone determines them.
    #[must_use]
    pub fn has_types(&self) -> bool {
        matches!(self, Self::Columnar(_))
    }
}

fn kind(text: &str) -> Result<Kind, FormatError> {
    match text.to_ascii_lowercase().as_str() {
        "csv" => Ok(Kind::Csv(CsvHeader::None)),
        "csv_with_names" => Ok(Kind::Csv(CsvHeader::Names)),
        "csv_with_names_and_types" => Ok(Kind::Csv(CsvHeader::NamesAndTypes)),
        "json" => Ok(Kind::Json),
        "parquet" => Ok(Kind::Columnar(ColumnarFormat::Parquet)),
        "orc" => Ok(Kind::Columnar(ColumnarFormat::Orc)),
        "arrow" => Ok(Kind::Columnar(ColumnarFormat::Arrow)),
        "hive_text" | "avro" => Err(FormatError::NotSupported(format!(
            "format={text} is not supported; send the data as parquet, orc, arrow, json, csv, csv_with_names or \
             csv_with_names_and_types"
        ))),
        _ => Err(FormatError::Unknown(format!("unknown data format, format={text}"))),
    }
}

fn mark(name: &str, text: &str) -> Result<u8, FormatError> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(FormatError::Invalid(format!("{name} must be single-char, actually is {text}"))),
    }
}

fn skip_lines(text: &str) -> Result<u64, FormatError> {
    text.parse().map_err(|_| FormatError::Invalid(format!("Invalid 'skip_lines': {text}")))
}

#[cfg(test)]
mod tests;
