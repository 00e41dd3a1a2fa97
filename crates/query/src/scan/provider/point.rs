//! Filters that name whole keys of a table with one row for each key.

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use std::ops::Range;
use tributary_table::RowSet;
use tributary_types::{ColumnDef, TableSchema};

/// With more keys than this a scan is as good.
const KEYS_MAX: usize = 1000;

/// The keys that rows must have to pass all filters: the key columns in the order of the schema, in each one value for each
/// key. `None`: the filters leave some of a key open.
pub(super) fn keys(schema: &TableSchema, filters: &[Expr]) -> Option<Vec<ArrayRef>> {
    let columns: Vec<&ColumnDef> = schema.columns.iter().filter(|column| column.is_key).collect();
    let values: Vec<Vec<ScalarValue>> = columns
        .iter()
        .map(|column| filters.iter().find_map(|filter| values(column, filter)))
        .collect::<Option<_>>()?;
    let count = values.iter().try_fold(1_usize, |count, values| count.checked_mul(values.len()))?;
    if columns.is_empty() || count == 0 || count > KEYS_MAX {
        return None;
    }
    let mut repeats = count;
    let arrays = values.into_iter().map(|values| {
        // Each value is repeated for all combinations of the columns behind it, and the whole for each combination before it.
        repeats /= values.len();
        let one_round = values.iter().flat_map(|value| std::iter::repeat_n(value.clone(), repeats));
        let one_round: Vec<ScalarValue> = one_round.collect();
        ScalarValue::iter_to_array(one_round.iter().cycle().take(count).cloned())
    });
    arrays.collect::<Result<_, _>>().ok()
}

/// The values that a column must have to pass the filter, if it says so and nothing else.
fn values(column: &ColumnDef, filter: &Expr) -> Option<Vec<ScalarValue>> {
    let is_column =
        |expr: &Expr| matches!(expr, Expr::Column(named) if named.name == column.name.to_lowercase());
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let other = if is_column(left) { right } else { is_column(right).then_some(left)? };
            Some(vec![literal(column, other)?])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut both = values(column, left)?;
            both.extend(values(column, right)?);
            Some(both)
        }
        Expr::InList(InList { expr, list, negated: false }) if is_column(expr) && list.len() <= KEYS_MAX => {
            list.iter().map(|value| literal(column, value)).collect()
        }
        _ => None,
    }
}

/// A literal of the column's type that is not NULL.
fn literal(column: &ColumnDef, expr: &Expr) -> Option<ScalarValue> {
    let Expr::Literal(value, _) = expr else { return None };
    let data_type = column.data_type.to_arrow();
    let value = match value {
        ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => ScalarValue::Utf8(text.clone()),
        value => value.clone(),
    };
    (!value.is_null() && value.data_type() == data_type).then_some(value)
}

/// The rows at these positions of a file with `count` rows.
pub(super) fn selection(rows: &RowSet, count: u64) -> RowSelection {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row in rows.iter().map(|row| row as usize) {
        match ranges.last_mut() {
            Some(range) if range.end == row => range.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    RowSelection::from_consecutive_ranges(ranges.into_iter(), count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int32Array, StringArray};
    use arrow::datatypes::Int32Type;
    use datafusion::prelude::{col, lit};
    use tributary_types::{DataType, SchemaVersion};

    fn schema() -> TableSchema {
        let columns = vec![
            ColumnDef::new(1, "Day", DataType::Int).key(),
            ColumnDef::new(2, "name", DataType::Varchar { bytes: 10 }).key(),
            ColumnDef::new(3, "value", DataType::Int),
        ];
        TableSchema::new(SchemaVersion(1), columns)
    }

    #[test]
    fn whole_keys_are_found_in_filters_and_parts_of_keys_are_not() {
        let whole = [col("day").eq(lit(7)), lit("x").eq(col("name")), col("value").gt(lit(1))];
        let found = keys(&schema(), &whole).unwrap();
        assert_eq!(found[0].as_primitive::<Int32Type>(), &Int32Array::from(vec![7]));
        assert_eq!(found[1].as_string::<i32>(), &StringArray::from(vec!["x"]));
        assert!(keys(&schema(), &whole[..1]).is_none());
        let null = lit(ScalarValue::Int32(None));
        let no_keys = [
            col("day").gt(lit(7)),
            col("day").eq(null),
            col("day").eq(lit(7_i64)),
            col("day").eq(col("value")),
        ];
        for filter in no_keys {
            assert!(keys(&schema(), &[filter.clone(), col("name").eq(lit("x"))]).is_none(), "{filter}");
        }
        let either = col("day").eq(lit(7)).or(col("value").eq(lit(7)));
        assert!(keys(&schema(), &[either, col("name").eq(lit("x"))]).is_none());
    }

    #[test]
    fn lists_are_combined() {
        let days = col("day").in_list(vec![lit(1), lit(2), lit(3)], false);
        let names = col("name").eq(lit("a")).or(col("name").eq(lit("b")));
        let found = keys(&schema(), &[names, days.clone()]).unwrap();
        let days_found: Vec<i32> = found[0].as_primitive::<Int32Type>().values().to_vec();
        let names_found: Vec<&str> = found[1].as_string::<i32>().iter().flatten().collect();
        assert_eq!(days_found, [1, 1, 2, 2, 3, 3]);
        assert_eq!(names_found, ["a", "b", "a", "b", "a", "b"]);
        let not_in = col("day").in_list(vec![lit(1)], true);
        assert!(keys(&schema(), &[not_in, col("name").eq(lit("a"))]).is_none());
        let many = (0..40).map(|name| lit(format!("n{name}"))).collect();
        let many_days = col("day").in_list((0..40).map(lit).collect(), false);
        assert!(keys(&schema(), &[col("name").in_list(many, false), many_days]).is_none());
    }

    #[test]
    fn rows_are_selected_in_ranges() {
        let rows: RowSet = [3, 4, 9].into_iter().collect();
        let selected: Vec<usize> =
            selection(&rows, 12).iter().filter(|part| !part.skip).map(|part| part.row_count).collect();
        assert_eq!(selected, [2, 1]);
    }
}
