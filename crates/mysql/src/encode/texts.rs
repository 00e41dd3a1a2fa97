//! Rows as lines of text for files, with values as the text protocol writes them.

use super::Rows;
use crate::column::Column;
use arrow::record_batch::RecordBatch;
use tributary_types::{ErrorCode, SqlError};

/// The text of NULL.
const NULL: &[u8] = b"\\N";

/// How rows become lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRows {
    pub separator: Vec<u8>,
    pub line_end: Vec<u8>,
}

impl TextRows {
    /// Appends the rows of a batch, which has these columns.
    ///
    /// # Errors
    /// The batch has other columns.
    pub fn write(&self, columns: &[Column], batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), SqlError> {
        for_each_text(columns, batch, |column, text| {
            if column > 0 {
                out.extend_from_slice(&self.separator);
            }
            out.extend_from_slice(text.unwrap_or(NULL));
            if column + 1 == columns.len() {
                out.extend_from_slice(&self.line_end);
            }
        })
    }

    /// Appends a line of these fields.
    pub fn write_line<'a>(&self, fields: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        for (index, field) in fields.enumerate() {
            if index > 0 {
                out.extend_from_slice(&self.separator);
            }
            out.extend_from_slice(field.as_bytes());
        }
        out.extend_from_slice(&self.line_end);
    }
}

/// Calls `take` with each value of a batch, row by row: the number of its column and its text, `None` for NULL.
///
/// # Errors
/// The batch has other columns.
pub fn for_each_text(
    columns: &[Column],
    batch: &RecordBatch,
    mut take: impl FnMut(usize, Option<&[u8]>),
) -> Result<(), SqlError> {
    let rows = Rows::new(columns, batch, false)?;
    let cells = rows.cells()?;
    let mut value = Vec::new();
    for row in 0..rows.count() {
        for (index, cell) in cells.iter().enumerate() {
            if cell.is_null(row) {
                take(index, None);
                continue;
            }
            value.clear();
            cell.write(row, &mut value)?;
            let text = without_length(&value).ok_or_else(|| {
                SqlError::new(ErrorCode::Unknown, "internal error: a value has no length before it")
            })?;
            take(index, Some(text));
        }
    }
    Ok(())
}

/// A value without its length, which is a number of one, three, four or nine bytes.
fn without_length(value: &[u8]) -> Option<&[u8]> {
    let length_bytes = match value.first()? {
        0xfc => 3,
        0xfd => 4,
        0xfe => 9,
        _ => 1,
    };
    value.get(length_bytes..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
    use arrow::datatypes::DataType;
    use std::sync::Arc;

    #[test]
    fn values_are_texts_of_any_length_and_null_is_a_mark() {
        let long = "x".repeat(70_000);
        let arrays: [(&str, ArrayRef); 3] = [
            ("a", Arc::new(Int64Array::from(vec![Some(-1), None]))),
            ("b", Arc::new(Float64Array::from(vec![Some(0.5), Some(1e300)]))),
            ("c", Arc::new(StringArray::from(vec![Some(""), Some(long.as_str())]))),
        ];
        let batch = RecordBatch::try_from_iter(arrays).unwrap();
        let column = |name: &str, data_type| Column::from_arrow(name, &data_type);
        let columns =
            [column("a", DataType::Int64), column("b", DataType::Float64), column("c", DataType::Utf8)];
        let form = TextRows { separator: b",".to_vec(), line_end: b"\r\n".to_vec() };
        let mut out = Vec::new();
        form.write_line(["a", "b", "c"].into_iter(), &mut out);
        form.write(&columns, &batch, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), format!("a,b,c\r\n-1,0.5,\r\n\\N,1e300,{long}\r\n"));
        assert!(form.write(&columns[1..], &batch, &mut Vec::new()).is_err());
    }
}
