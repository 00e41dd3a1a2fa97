//! Server-side prepared INSERT: binary parameters go straight into columns.
//!
//! The statement's rows are scanned once, when it is prepared, into a template of literals and
//! parameters; each execution walks the template and the packet's values together, without an
//! intermediate form.
//!
//! Invariant: an error leaves nothing in the builder; a packet's bytes are never trusted.
//!
//! Not its business: the packet around the values, and the life of the template.

mod binary;

use crate::blocks::builder::BlockBuilder;
use crate::cells::cell::{self, Cell};
use crate::cells::reject::{Source, Unshown};
use crate::formats::values::{Scanner, check_utf8, put_default_row};
use crate::rows::loader::{Decoded, InsertOptions, Loader, Progress};
use crate::rows::target::Target;
use binary::Reader;
use std::collections::BTreeMap;
use tributary_types::{ErrorCode, SqlError};

/// A parameter's type as the client bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamType {
    /// MySQL's column type number (`enum_field_types`).
    pub column_type: u8,
    pub unsigned: bool,
}

/// The parameters of one execution, as they are in the packet.
#[derive(Clone, Copy, Debug)]
pub struct BoundParams<'a> {
    /// One per parameter.
    pub types: &'a [ParamType],
    /// A bit per parameter, lowest first.
    pub null_bitmap: &'a [u8],
    /// The values in MySQL's binary protocol, without those of NULLs and of `long_data`.
    pub values: &'a [u8],
    /// Values sent in advance with `COM_STMT_SEND_LONG_DATA`, by parameter.
    pub long_data: &'a BTreeMap<u16, Vec<u8>>,
}

/// A prepared VALUES list.
#[derive(Clone, Debug)]
pub struct PreparedValues {
    rows: Vec<Row>,
    param_count: usize,
    field_count: usize,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<TemplateCell>),
    /// `()`
    Defaults,
}

#[derive(Clone, Debug)]
enum TemplateCell {
    Param,
    Null,
    Bool(bool),
    Number(Box<[u8]>),
    Text(Box<[u8]>),
    Hex(Box<[u8]>),
}

/// Reads the rows behind `VALUES` of a statement with `?` in place of literals. `None` if it is for
/// the general parser: an expression around a `?`, `DEFAULT`, or a row whose value count is not
/// the target's field count.
#[must_use]
pub fn prepare_values(sql_from_values: &[u8], target: &Target) -> Option<PreparedValues> {
    check_utf8(sql_from_values).ok()?;
    let mut scanner = Scanner::new(sql_from_values);
    let mut scratch = Vec::new();
    let mut rows = Vec::new();
    scanner.begin_values()?;
    loop {
        rows.push(template_row(&mut scanner, &mut scratch, target.field_count())?);
        if !scanner.another_row()? {
            break;
        }
    }
    let is_param = |cell: &&TemplateCell| matches!(cell, TemplateCell::Param);
    let params_of = |row: &Row| match row {
        Row::Cells(cells) => cells.iter().filter(is_param).count(),
        Row::Defaults => 0,
    };
    let param_count = rows.iter().map(params_of).sum();
    Some(PreparedValues { rows, param_count, field_count: target.field_count() })
}

fn template_row(scanner: &mut Scanner<'_>, scratch: &mut Vec<u8>, fields: usize) -> Option<Row> {
    scanner.open_row()?;
    if scanner.close_empty_row() {
        return Some(Row::Defaults);
    }
    let mut cells = Vec::with_capacity(fields);
    loop {
        cells.push(template_cell(scanner, scratch)?);
        if scanner.after_literal()? {
            return (cells.len() == fields).then_some(Row::Cells(cells));
        }
    }
}

fn template_cell(scanner: &mut Scanner<'_>, scratch: &mut Vec<u8>) -> Option<TemplateCell> {
    if scanner.placeholder() {
        return Some(TemplateCell::Param);
    }
    Some(match scanner.literal(scratch)? {
        Cell::Null => TemplateCell::Null,
        Cell::Bool(value) => TemplateCell::Bool(value),
        Cell::Number(text) => TemplateCell::Number(text.into()),
        Cell::Text(text) => TemplateCell::Text(text.into()),
        Cell::Hex(bytes) => TemplateCell::Hex(bytes.into()),
        _ => return None,
    })
}

impl PreparedValues {
    /// The number of `?`.
    #[must_use]
    pub fn param_count(&self) -> usize {
        self.param_count
    }

    /// The number of rows that an execution inserts.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Decodes one execution. `target` must have as many fields as the one it was prepared for;
    /// `builder` may be any builder.
    ///
    /// # Errors
    /// 1835 if the packet ends early, is too long or binds another number of parameters; 1105 if
    /// `()` leaves out a column without default or the table changed since it was prepared.
    pub fn decode(
        &self,
        params: BoundParams<'_>,
        target: &Target,
        options: &InsertOptions,
        builder: &mut BlockBuilder,
    ) -> Result<Decoded, SqlError> {
        self.check(&params, target)?;
        builder.reset(target.schema());
        let mut progress = Progress::default();
        let mut loader =
            Loader::new(target, builder, options.rules(), options.clock.now_micros, &mut progress);
        match self.put_rows(&params, &mut loader) {
            Ok(()) => loader.end_block(),
            Err(error) => {
                loader.abandon();
                return Err(error);
            }
        }
        Ok(progress.decoded)
    }

    fn check(&self, params: &BoundParams<'_>, target: &Target) -> Result<(), SqlError> {
        if target.field_count() != self.field_count {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "Column size: {} does not match with target column size: {}; prepare the statement again",
                    self.field_count,
                    target.field_count()
                ),
            ));
        }
        if params.types.len() != self.param_count {
            return Err(binary::malformed(format!(
                "the statement has {} parameters, {} are bound",
                self.param_count,
                params.types.len()
            )));
        }
        if params.null_bitmap.len() < self.param_count.div_ceil(8) {
            return Err(binary::malformed(format!(
                "NULL bitmap of {} bytes for {} parameters",
                params.null_bitmap.len(),
                self.param_count
            )));
        }
        Ok(())
    }

    fn put_rows(&self, params: &BoundParams<'_>, loader: &mut Loader<'_>) -> Result<(), SqlError> {
        let mut reader = Reader::new(params);
        for row in &self.rows {
            let start = reader.place();
            match row {
                Row::Cells(cells) => put_row(cells, &mut reader, loader)?,
                Row::Defaults => put_default_row(loader)?,
            }
            loader.end_row(Bound { row, params, start });
        }
        // A driver may send bytes after the last value (mysql2 sends one per NULL); MySQL reads past them.
        Ok(())
    }
}

/// A row of a template with its parameters.
struct Bound<'a> {
    row: &'a Row,
    params: &'a BoundParams<'a>,
    start: binary::At,
}

impl Source for Bound<'_> {
    fn line(&self) -> String {
        String::new()
    }

    /// The row as VALUES has it.
    fn raw(&self, max: usize) -> String {
        let mut reader = Reader::at(self.params, self.start);
        let cells = match self.row {
            Row::Cells(cells) => cells.as_slice(),
            Row::Defaults => &[],
        };
        let mut text = String::from("(");
        for cell in cells {
            if text.len() > 1 {
                text.push_str(", ");
            }
            let cell = match cell.value() {
                Some(cell) => cell,
                None => reader.next_cell().unwrap_or(Cell::Null),
            };
            match cell {
                Cell::Text(_) | Cell::Hex(_) | Cell::Date(_) | Cell::DateTime(_) => {
                    text.push_str(&format!("'{}'", cell::shown(&cell).replace('\'', "''")));
                }
                _ => text.push_str(&cell::shown(&cell)),
            }
            if text.len() > max {
                break;
            }
        }
        text.push(')');
        Unshown(text.as_bytes()).raw(max)
    }
}

impl TemplateCell {
    /// The value, unless it is a parameter.
    fn value(&self) -> Option<Cell<'_>> {
        match self {
            Self::Param => None,
            Self::Null => Some(Cell::Null),
            Self::Bool(value) => Some(Cell::Bool(*value)),
            Self::Number(text) => Some(Cell::Number(text)),
            Self::Text(text) => Some(Cell::Text(text)),
            Self::Hex(bytes) => Some(Cell::Hex(bytes)),
        }
    }
}

#[inline]
fn put_row(cells: &[TemplateCell], reader: &mut Reader<'_>, loader: &mut Loader<'_>) -> Result<(), SqlError> {
    for (field, cell) in cells.iter().enumerate() {
        match cell.value() {
            None => reader.put_next(field, loader)?,
            Some(cell) => loader.put(field, cell),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
