//! How the files of a result are written.

use super::{LineFormat, Marks, wrong};
use tributary_files::{PageCompression, Properties};
use tributary_query::Nested;
use tributary_types::{ErrorCode, SqlError};

const FILE_BYTES_DEFAULT: u64 = 1 << 30;
const FILE_BYTES_MIN: u64 = 5 << 20;
const FILE_BYTES_MAX: u64 = 2 << 30;

/// How the files are written.
pub(crate) enum Form {
    Csv {
        marks: Marks,
        lines: LineFormat,
        /// Whether files begin with a UTF-8 byte order mark.
        has_bom: bool,
        has_names: bool,
        has_types: bool,
    },
    Parquet(PageCompression),
}

impl Form {
    /// The representation of nested values in the files.
    pub const fn nested(&self) -> Nested {
        match self {
            Self::Csv { .. } => Nested::Written,
            Self::Parquet(_) => Nested::Kept,
        }
    }

    pub const fn ending(&self) -> &'static str {
        match self {
            Self::Csv { .. } => "csv",
            Self::Parquet(_) => "parquet",
        }
    }
}

/// Reads the format from its properties.
///
/// # Errors
/// A format that is not known, or a property that it does not have.
pub(crate) fn form(
    format: Option<&str>,
    properties: &mut Properties,
    lines: LineFormat,
) -> Result<Form, SqlError> {
    let separator = properties.take("column_separator");
    let line_end = properties.take("line_delimiter");
    let has_bom = properties.take_flag(["with_bom"])?.unwrap_or(false);
    let packed =
        properties.take_any(["compress_type", "parquet.compression"]).map(|text| text.to_ascii_lowercase());
    let format = format.unwrap_or("csv").to_ascii_lowercase();
    if format == "parquet" {
        if separator.is_some() || line_end.is_some() || has_bom {
            return Err(wrong(
                "column_separator, line_delimiter and with_bom have no effect with FORMAT AS parquet; leave them out",
            ));
        }
        return Ok(Form::Parquet(match packed.as_deref() {
            None => PageCompression::default(),
            Some("plain" | "uncompressed" | "none") => PageCompression::None,
            Some("snappy") => PageCompression::Snappy,
            Some("zstd") => PageCompression::Zstd,
            Some(other) => {
                return Err(wrong(&format!(
                    "compress_type={other} of parquet is not supported; use plain, snappy or zstd"
                )));
            }
        }));
    }
    let (has_names, has_types) = match format.as_str() {
        "csv" => (false, false),
        "csv_with_names" => (true, false),
        "csv_with_names_and_types" => (true, true),
        "orc" => {
            let text = "FORMAT AS orc is not supported; use parquet or csv";
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        other => {
            return Err(wrong(&format!(
                "format:{other} is not supported; use csv, csv_with_names, csv_with_names_and_types or parquet"
            )));
        }
    };
    if packed.is_some_and(|packed| !matches!(packed.as_str(), "plain" | "none")) {
        let text = "compress_type of csv is not supported; leave it out";
        return Err(SqlError::detail(ErrorCode::NotSupported, text));
    }
    // Marks as a load would read them.
    let mark = |text: Option<String>, default: &[u8]| match text {
        None => Ok(default.to_vec()),
        Some(text) => tributary_decode::decode_separator(&text).map_err(SqlError::from),
    };
    let marks = Marks { separator: mark(separator, b"\t")?, line_end: mark(line_end, b"\n")? };
    Ok(Form::Csv { marks, lines, has_bom, has_names, has_types })
}

/// `max_file_size`: a number of bytes, or with KB, MB or GB.
///
/// # Errors
/// It is not such a number, or not between 5 MB and 2 GB.
pub(crate) fn file_bytes_max(text: Option<String>) -> Result<u64, SqlError> {
    let Some(text) = text else { return Ok(FILE_BYTES_DEFAULT) };
    let upper = text.trim().to_ascii_uppercase();
    let (digits, factor) = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)]
        .into_iter()
        .find_map(|(unit, factor)| Some((upper.strip_suffix(unit)?, factor)))
        .unwrap_or((&upper, 1_u64));
    let bytes = digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let legal = bytes.filter(|bytes| (FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(bytes));
    legal.ok_or_else(|| wrong(&format!("max file size should between 5MB and 2GB. Given: {text}")))
}
