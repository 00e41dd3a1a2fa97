//! How many rows an UPDATE changes: clients of MySQL count them, unless they have asked for found rows.
//!
//! The query of the UPDATE has one column more, which says for each row whether a value becomes another one. It is taken off before the
//! rows are loaded.
//!
//! Not the business of this module: which rows are written. Rows that keep their values are, too.

use super::change::of_row;
use crate::session::EngineSession;
use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use sqlparser::ast::{BinaryOperator, Expr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_types::{ColumnDef, DataType, ErrorCode, SqlError};

/// Counts rows that an UPDATE finds and does not change.
#[derive(Debug, Default)]
pub(in crate::session) struct Unchanged(AtomicU64);

impl Unchanged {
    pub fn rows(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Begins to count again: the rows are searched again.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Takes the last column off, which is 0 in a row that does not change.
    fn count(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let last = batch.num_columns() - 1;
        let failed = |error: arrow::error::ArrowError| {
            SqlError::new(
                ErrorCode::Unknown,
                format!("internal error: changed rows can't be counted: {error}"),
            )
        };
        let signs = cast(batch.column(last), &ArrowType::Int64).map_err(failed)?;
        let unchanged = signs.as_primitive::<Int64Type>().iter().filter(|sign| *sign == Some(0)).count();
        self.0.fetch_add(unchanged as u64, Ordering::Relaxed);
        batch.project(&(0..last).collect::<Vec<_>>()).map_err(failed)
    }
}

/// The rows of a batch without the sign of a change, if they are counted by it.
///
/// # Errors
/// The sign is none, which is a fault of the server.
pub(in crate::session) fn count_unchanged(
    unchanged: Option<&Unchanged>,
    batch: RecordBatch,
) -> Result<RecordBatch, SqlError> {
    match unchanged {
        Some(unchanged) => unchanged.count(&batch),
        None => Ok(batch),
    }
}

impl EngineSession {
    /// Counts the rows that the UPDATE does not change, if the client counts changed rows. Doris always counts found rows.
    pub(super) fn count_changed(&self) -> Option<Arc<Unchanged>> {
        let counts_changed = self.is_compatible() && !self.counts_found_rows;
        counts_changed.then(Arc::<Unchanged>::default)
    }
}

/// The sign of a change: 0 where each of the columns has its new value already.
///
/// # Errors
/// None but faults of the server.
pub(super) fn sign_of_change(alias: &str, assigned: &[(&ColumnDef, &Expr)]) -> Result<Expr, SqlError> {
    let mut same: Option<Expr> = None;
    for (column, value) in assigned {
        let Some(value) = as_stored(column.data_type, value)? else {
            return tributary_sql::parse_expression("1");
        };
        let is_same = Expr::BinaryOp {
            left: Box::new(of_row(alias, column)),
            op: BinaryOperator::Spaceship,
            right: Box::new(value),
        };
        same = Some(match same {
            None => is_same,
            Some(others) => {
                Expr::BinaryOp { left: Box::new(others), op: BinaryOperator::And, right: Box::new(is_same) }
            }
        });
    }
    let mut sign = tributary_sql::parse_expression("CASE WHEN true THEN 0 ELSE 1 END")?;
    if let (Expr::Case { conditions, .. }, Some(same)) = (&mut sign, same) {
        conditions[0].condition = same;
    }
    Ok(sign)
}

/// The value as the column stores it; `None`: values of that type are not compared, and count as changed.
fn as_stored(data_type: DataType, value: &Expr) -> Result<Option<Expr>, SqlError> {
    let name = match data_type {
        DataType::Char { .. } | DataType::Varchar { .. } | DataType::String => "string".to_owned(),
        DataType::Varbinary { .. } => "varbinary".to_owned(),
        DataType::Boolean
        | DataType::TinyInt
        | DataType::SmallInt
        | DataType::Int
        | DataType::BigInt
        | DataType::LargeInt
        | DataType::Float
        | DataType::Double
        | DataType::Decimal { .. }
        | DataType::Date
        | DataType::DateTime { .. }
        | DataType::Time { .. } => data_type.to_string(),
        DataType::Json
        | DataType::Variant
        | DataType::Ipv4
        | DataType::Ipv6
        | DataType::Nested(_)
        | DataType::Bitmap
        | DataType::Hll => return Ok(None),
    };
    let mut stored = tributary_sql::parse_expression(&format!("CAST(NULL AS {name})"))?;
    if let Expr::Cast { expr, .. } = &mut stored {
        **expr = value.clone();
    }
    Ok(Some(stored))
}
