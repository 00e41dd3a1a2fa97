//! LIMIT and OFFSET: whole numbers, even as a text or real parameter.

use super::{Rewriter, ast};
use datafusion::common::ScalarValue;
use sqlparser::ast::{Expr, LimitClause, Offset, OffsetRows, Query, Value};
use tributary_types::{ErrorCode, SqlError};

/// The largest number of rows. MySQL's way to say "all rows" is an even larger number.
const ROWS_MAX: u64 = i64::MAX as u64;

impl Rewriter<'_> {
    /// Gives a query's LIMIT one form, with numbers in it.
    pub(super) fn limit(&self, query: &mut Query) -> Result<(), SqlError> {
        query.limit_clause = query.limit_clause.take().map(plain);
        let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else {
            return Ok(());
        };
        for expr in limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)) {
            if let Expr::Value(value) = &*expr {
                let rows = match &value.value {
                    Value::Placeholder(_) if self.environment.params.is_none() => 0,
                    Value::Placeholder(_) => of_parameter(self.parameter(value)?)?,
                    Value::Number(digits, _) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                        digits.parse().unwrap_or(ROWS_MAX)
                    }
                    other => return Err(wrong(&other.to_string())),
                };
                *expr = ast::number(rows.min(ROWS_MAX));
            }
        }
        Ok(())
    }
}

/// `LIMIT a, b` as `LIMIT b OFFSET a`.
fn plain(limit: LimitClause) -> LimitClause {
    match limit {
        LimitClause::OffsetCommaLimit { offset, limit } => LimitClause::LimitOffset {
            limit: Some(limit),
            offset: Some(Offset { value: offset, rows: OffsetRows::None }),
            limit_by: Vec::new(),
        },
        LimitClause::LimitOffset { .. } => limit,
    }
}

fn of_parameter(value: &ScalarValue) -> Result<u64, SqlError> {
    let shown = || if value.is_null() { "NULL".to_owned() } else { value.to_string() };
    if value.is_null() {
        return Err(wrong(&shown()));
    }
    let text = match value {
        ScalarValue::Decimal128(..) => match ast::literal(value) {
            Expr::Value(literal) => literal.value.to_string(),
            _ => shown(),
        },
        _ => shown(),
    };
    let text = text.trim();
    if let Ok(rows) = text.parse() {
        return Ok(rows);
    }
    match text.parse::<f64>() {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole and not negative"
        )]
        Ok(real) if real >= 0.0 && real.fract() == 0.0 => Ok(real as u64),
        _ => Err(wrong(text)),
    }
}

fn wrong(given: &str) -> SqlError {
    SqlError::detail(
        ErrorCode::WrongArguments,
        format!("LIMIT and OFFSET take a whole number that is not negative, not {given}"),
    )
}
