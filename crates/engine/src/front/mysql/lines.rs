//! Rows as lines of text for files, with values as the text protocol writes them.

use super::columns::columns_of;
use crate::files::outfile::{Marks, RowLines};
use arrow::array::RecordBatch;
use tributary_mysql::{Column, TextRows};
use tributary_query::ResultColumn;
use tributary_types::SqlError;

struct TextLines {
    texts: TextRows,
    columns: Vec<Column>,
}

impl RowLines for TextLines {
    fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.texts.write(&self.columns, batch, out)
    }
}

/// Writes rows of these columns.
pub(crate) fn text_lines(marks: &Marks, columns: &[ResultColumn]) -> Box<dyn RowLines> {
    let Marks { separator, line_end } = marks.clone();
    Box::new(TextLines { texts: TextRows { separator, line_end }, columns: columns_of(columns) })
}
