//! How the body of a load is written, according to its properties.
//!
//! The headers of a Stream Load and the properties of `http_stream(…)` have Doris's names and one set of rules,
//! which is here. Each format makes the decoders that read it; a new one is a variant of [`BodyFormat`].
//!
//! Invariant: a format that was made of properties is legal, so decoders of it only refuse bodies.
//!
//! Not its business: where properties come from and how an answer words a refusal.

mod separator;

use crate::body::{BodyDecoder, FieldDecoder, FieldNames};
use crate::builder::BlockBuilder;
use crate::csv::{CsvDecoder, CsvFormat, CsvHeader, CsvStrings};
use crate::loader::LoadRules;
use crate::target::Target;
use tributary_types::{ErrorCode, SqlError};

/// How a body is written and packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFormat {
    pub body: BodyFormat,
    /// The property `compress_type`. Whoever receives the body undoes it.
    pub compression: Compression,
}

/// How a body is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    Csv(CsvFormat),
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Gzip,
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
    pub const PROPERTIES: [&str; 9] = [
        "format",
        "compress_type",
        "column_separator",
        "line_delimiter",
        "enclose",
        "escape",
        "trim_double_quotes",
        "skip_lines",
        "empty_field_as_null",
    ];

    /// The format that properties tell: pairs of a name, in lower case, and a text. An empty text counts as
    /// none, except for separators; if a property comes twice, the first one counts. Booleans are `true` in
    /// any case, and anything else is false.
    ///
    /// # Errors
    /// [`FormatError::Unknown`] and [`FormatError::NotSupported`] for `format` and then `compress_type`, before
    /// any other; [`FormatError::Invalid`] for a name that is not in [`LoadFormat::PROPERTIES`], a bad
    /// separator, a mark of several bytes, a bad number.
    pub fn from_properties<'a>(
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, FormatError> {
        let properties: Vec<_> = properties.into_iter().collect();
        let given = |name: &str| properties.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        let text = |name: &str| given(name).filter(|text| !text.is_empty());
        let flag = |name: &str| text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let header = text("format").map_or(Ok(CsvHeader::None), csv_header)?;
        let compression = text("compress_type").map_or(Ok(Compression::None), compression)?;
        if let Some((name, text)) = properties.iter().find(|(name, _)| !Self::PROPERTIES.contains(name)) {
            return Err(FormatError::Invalid(format!(
                "Unknown properties: {{{name}={text}}}; a load's format has the properties {}",
                Self::PROPERTIES.join(", ")
            )));
        }
        let CsvFormat { column_separator, line_delimiter, .. } = CsvFormat::default();
        let csv = CsvFormat {
            header,
            column_separator: given("column_separator").map_or(Ok(column_separator), separator::decode)?,
            line_delimiter: given("line_delimiter").map_or(Ok(line_delimiter), separator::decode)?,
            enclose: text("enclose").map(|text| mark("enclose", text)).transpose()?,
            escape: text("escape").map(|text| mark("escape", text)).transpose()?,
            trim_double_quotes: flag("trim_double_quotes"),
            skip_lines: text("skip_lines").map_or(Ok(0), skip_lines)?,
            empty_field_as_null: flag("empty_field_as_null"),
        };
        Ok(Self { body: BodyFormat::Csv(csv), compression })
    }
}

impl BodyFormat {
    /// A decoder of a body whose fields are the target's; `builder` may be any builder.
    ///
    /// # Errors
    /// If the format was made by hand and is not legal.
    pub fn decoder(
        &self,
        target: Target,
        rules: LoadRules,
        builder: BlockBuilder,
    ) -> Result<Box<dyn BodyDecoder>, SqlError> {
        match self {
            Self::Csv(format) => {
                Ok(Box::new(CsvDecoder::with_builder(target, format.clone(), rules, builder)?))
            }
        }
    }

    /// A decoder of a body's fields as texts, for values that are computed from them.
    ///
    /// # Errors
    /// See [`BodyFormat::decoder`].
    pub fn fields(&self, names: FieldNames<'_>) -> Result<Box<dyn FieldDecoder>, SqlError> {
        match self {
            Self::Csv(format) => Ok(Box::new(CsvStrings::new(names, format.clone())?)),
        }
    }

    /// Whether the body names its fields.
    #[must_use]
    pub fn names_fields(&self) -> bool {
        match self {
            Self::Csv(format) => format.header != CsvHeader::None,
        }
    }
}

fn csv_header(text: &str) -> Result<CsvHeader, FormatError> {
    match text.to_ascii_lowercase().as_str() {
        "csv" => Ok(CsvHeader::None),
        "csv_with_names" => Ok(CsvHeader::Names),
        "csv_with_names_and_types" => Ok(CsvHeader::NamesAndTypes),
        "json" | "parquet" | "orc" | "arrow" | "hive_text" | "avro" => {
            Err(FormatError::NotSupported(format!(
                "format={text} is not supported yet; send the data as csv, csv_with_names or csv_with_names_and_types"
            )))
        }
        _ => Err(FormatError::Unknown(format!("unknown data format, format={text}"))),
    }
}

fn compression(text: &str) -> Result<Compression, FormatError> {
    match text.to_ascii_lowercase().as_str() {
        "gz" => Ok(Compression::Gzip),
        "lzo" | "bz2" | "lz4" | "lz4_block" | "lz4frame" | "lzop" | "snappy_block" | "deflate" | "zstd" => {
            Err(FormatError::NotSupported(format!(
                "compress_type={text} is not supported yet; use gz or send the body uncompressed"
            )))
        }
        _ => Err(FormatError::Unknown(format!("unknown data format, format=csv, compress_type={text}"))),
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
