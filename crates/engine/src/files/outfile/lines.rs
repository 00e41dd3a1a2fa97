//! Lines of text files.
//!
//! Not its business: the text of a value, which the protocol determines.

use arrow::array::RecordBatch;
use tributary_query::ResultColumn;
use tributary_types::SqlError;

/// The separator of fields and the end of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub separator: Vec<u8>,
    pub line_end: Vec<u8>,
}

impl Marks {
    /// Appends a line of these fields, as they are.
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

/// Writes rows of certain columns as lines.
pub(crate) trait RowLines: Send + Sync {
    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// The batch has other columns.
    fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), SqlError>;
}

/// Makes what writes rows of these columns.
pub(crate) type LineFormat = fn(&Marks, &[ResultColumn]) -> Box<dyn RowLines>;
