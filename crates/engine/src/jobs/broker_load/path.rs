//! COLUMNS FROM PATH: columns whose values are in the paths of files, as `name=value`.

use super::refused;
use crate::load::body::reader::{MappedColumn, Value};
use sqlparser::ast::{Expr, Ident, Value as SqlValue, VisitorMut};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tributary_sql::visit::walk_expr_mut;
use tributary_types::{Sealed, SqlError};

/// Hive's text for NULL in a path.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Columns by their names in lower case, with their values; `None` is NULL.
pub(super) type PathValues = BTreeMap<String, Option<String>>;

/// The values of these columns in the path of a file.
///
/// # Errors
/// The path has no `name=value` for one of them.
pub(super) fn values(columns: &[String], file: &str) -> Result<PathValues, SqlError> {
    let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
    let pairs: Vec<(&str, &str)> = directory.split('/').filter_map(|part| part.split_once('=')).collect();
    let value_of = |column: &String| {
        // The last of several is the nearest to the file.
        let found = pairs.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(column));
        let (_, text) = found.ok_or_else(|| {
            refused(format!(
                "Fail to parse columnsFromPath, expected: [{}], filePath: {file}; a directory of the path should be {column}=<value>",
                columns.join(", ")
            ))
        })?;
        let text = percent_decoded(text);
        Ok((column.to_ascii_lowercase(), Some(text).filter(|text| text != NULL)))
    };
    columns.iter().map(value_of).collect()
}

/// Undoes `%xx`, which Hive writes for characters that a path can't have. Invalid UTF-8 is left encoded.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

/// The column as it is before a file's path is known.
pub(super) fn unknown(name: &str) -> MappedColumn {
    let expr = Expr::Identifier(Ident::with_quote('`', name));
    MappedColumn { name: name.to_owned(), value: Value::Expr(Sealed::new(expr)) }
}

/// Puts values in the place of the columns' names.
pub(super) fn put(values: &PathValues, columns: &[MappedColumn]) -> Vec<MappedColumn> {
    let with_values = |column: &MappedColumn| {
        let value = match &column.value {
            Value::Expr(expr) => Value::Expr(Sealed::new(in_expr(values, expr))),
            other => other.clone(),
        };
        MappedColumn { name: column.name.clone(), value }
    };
    columns.iter().map(with_values).collect()
}

pub(super) fn in_expr(values: &PathValues, expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    let mut put = Put { values, used: 0 };
    let _ = walk_expr_mut(&mut expr, &mut put);
    expr
}

/// Whether an expression uses the column.
pub(super) fn uses(expr: &Expr, column: &str) -> bool {
    let values = BTreeMap::from([(column.to_ascii_lowercase(), None)]);
    let mut put = Put { values: &values, used: 0 };
    let _ = walk_expr_mut(&mut expr.clone(), &mut put);
    put.used > 0
}

struct Put<'a> {
    values: &'a PathValues,
    used: usize,
}

impl VisitorMut for Put<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some(value) = self.values.get(&name.value.to_ascii_lowercase())
        {
            let literal = match value {
                Some(text) => SqlValue::SingleQuotedString(text.clone()),
                None => SqlValue::Null,
            };
            *expr = Expr::Value(literal.into());
            self.used += 1;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_directories() {
        let columns = ["City".to_owned(), "day".to_owned()];
        let found = |file: &str| values(&columns, file).map(|found| format!("{found:?}"));
        assert_eq!(
            found("s3://b/x=1/city=New%20York/day=2024-01-01/a=b.csv").unwrap(),
            r#"{"city": Some("New York"), "day": Some("2024-01-01")}"#
        );
        assert_eq!(
            found("/in/CITY=a/city=b%2/day=__HIVE_DEFAULT_PARTITION__/f").unwrap(),
            r#"{"city": Some("b%2"), "day": None}"#
        );
        let error = found("s3://b/city=x/day=1").unwrap_err().to_string();
        assert!(error.contains("expected: [City, day], filePath: s3://b/city=x/day=1"), "{error}");
    }

    #[test]
    fn values_stand_for_names_in_expressions() {
        let expr = tributary_sql::parse_expression("concat(CITY, `day`, other) = 'city'").unwrap();
        let values: PathValues =
            [("city".to_owned(), Some("it's".to_owned())), ("day".to_owned(), None)].into();
        assert_eq!(in_expr(&values, &expr).to_string(), "concat('it''s', NULL, other) = 'city'");
        assert!(uses(&expr, "City") && uses(&expr, "other") && !uses(&expr, "concat"));
    }
}
