//! Whether a scan should look at single pages of data files, or read all of them and leave deleted rows out afterwards ([`super::live_rows`]).
//!
//! To find pages that a filter excludes, and those without a live row, each row group's page index is searched for each column,
//! and deleted rows with it. That pays if many pages can be skipped. If a tenth of the rows is deleted, at random, and nearly all
//! rows pass the filter, it costs more than everything else about deleted rows.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue};
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{AnalysisContext, ExprBoundaries, PhysicalExpr, analyze};
use std::cmp::Ordering;
use std::sync::Arc;
use tributary_table::{FileBounds, LiveFile, Snapshot};

/// The minimum share of live rows at which all pages are read.
const LEFT_MIN: f64 = 0.75;

/// Whether nearly all rows pass the filter, as far as the least and the largest values in the files show. True without a filter.
pub(super) fn takes_nearly_all(
    snapshot: &Snapshot,
    known: &FileBounds,
    physical: &SchemaRef,
    predicate: Option<&Arc<dyn PhysicalExpr>>,
) -> bool {
    let bounds = |name: &str| {
        let def = snapshot.def.schema.columns.iter().find(|def| def.physical_name == name)?;
        let least = extreme(&known.min_values(def)?, Ordering::Less)?;
        Some([least, extreme(&known.max_values(def)?, Ordering::Greater)?])
    };
    predicate
        .is_none_or(|predicate| share(physical, predicate, bounds).is_some_and(|share| share >= LEFT_MIN))
}

/// Whether some rows of the file are deleted, but not many.
pub(super) fn has_few_deletes(live: &LiveFile) -> bool {
    live.deletes.is_some() && live.live_rows() as f64 >= live.file.rows as f64 * LEFT_MIN
}

/// The share of the rows that pass the filter if values are spread evenly between their bounds, which `bounds` returns for a
/// column. `None` if it is unknown.
fn share(
    physical: &SchemaRef,
    predicate: &Arc<dyn PhysicalExpr>,
    bounds: impl Fn(&str) -> Option<[ScalarValue; 2]>,
) -> Option<f64> {
    if !check_support(predicate, physical) {
        return None;
    }
    let boundaries = collect_columns(predicate).into_iter().map(|column| {
        let [least, largest] = bounds(column.name())?.map(Precision::Exact);
        let statistics =
            ColumnStatistics { min_value: least, max_value: largest, ..ColumnStatistics::new_unknown() };
        ExprBoundaries::try_from_column(physical, &statistics, column.index()).ok()
    });
    let context = AnalysisContext::new(boundaries.collect::<Option<_>>()?);
    analyze(predicate, context, physical).ok()?.selectivity
}

/// The least or the largest of the values. `None`: one is not known.
fn extreme(values: &ArrayRef, which: Ordering) -> Option<ScalarValue> {
    let mut found: Option<ScalarValue> = None;
    for row in 0..values.len() {
        let value = ScalarValue::try_from_array(values, row).ok().filter(|value| !value.is_null())?;
        if found.as_ref().is_none_or(|found| value.partial_cmp(found) == Some(which)) {
            found = Some(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Date32Array, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::DFSchema;
    use datafusion::logical_expr::{Expr, col, lit};
    use datafusion::prelude::SessionContext;

    fn share_of(filter: &Expr) -> Option<f64> {
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("day", DataType::Date32, true),
            Field::new("name", DataType::Utf8, true),
            Field::new("price", DataType::Decimal128(15, 2), true),
            Field::new("late", DataType::Int64, true),
        ]));
        let bounds = |name: &str| match name {
            "id" => Some([ScalarValue::from(1_000i64), ScalarValue::from(1_999i64)]),
            "day" => Some([ScalarValue::Date32(Some(0)), ScalarValue::Date32(Some(99))]),
            "name" => Some([ScalarValue::from("a"), ScalarValue::from("z")]),
            _ => None,
        };
        let of_names = DFSchema::try_from(Arc::clone(&schema)).unwrap();
        let predicate = SessionContext::new().create_physical_expr(filter.clone(), &of_names).unwrap();
        share(&schema, &predicate, bounds)
    }

    #[test]
    fn a_range_takes_its_share() {
        let day = |day| lit(ScalarValue::Date32(Some(day)));
        for (filter, expected) in [
            (col("id").gt_eq(lit(1_100i64)), 0.9),
            (col("id").lt(lit(5_000i64)), 1.0),
            (col("day").lt_eq(day(97)), 0.98),
            (col("day").lt(day(50)).and(col("id").gt(lit(1_499i64))), 0.25),
            (col("id").eq(lit(1_200i64)), 0.001),
            (col("id").gt(lit(7_000i64)), 0.0),
        ] {
            let found = share_of(&filter).unwrap();
            // Intervals have their ends.
            assert!((found - expected).abs() < 0.01, "{filter}: {found}");
        }
    }

    #[test]
    fn nothing_is_known_of_other_conditions() {
        for filter in [
            col("id").not_eq(lit(1_200i64)),
            col("id").lt(lit(5_000i64)).or(col("id").eq(lit(1i64))),
            col("name").lt(lit("b")),
            col("name").eq(lit("b")).and(col("id").lt(lit(5_000i64))),
            col("price").gt(lit(ScalarValue::Decimal128(Some(1), 15, 2))),
            col("late").gt(lit(1i64)),
            col("id").is_null(),
        ] {
            assert_eq!(share_of(&filter), None, "{filter}");
        }
    }

    #[test]
    fn the_bounds_of_all_files_count_and_one_without_makes_them_unknown() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![5, 3, 9]));
        assert_eq!(extreme(&days, Ordering::Less), Some(ScalarValue::Date32(Some(3))));
        assert_eq!(extreme(&days, Ordering::Greater), Some(ScalarValue::Date32(Some(9))));
        let unknown: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
        assert_eq!(extreme(&unknown, Ordering::Less), None);
    }
}
