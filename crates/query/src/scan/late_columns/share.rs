//! The share of a scan's rows that pass a filter, from the filter's answers about samples.
//!
//! Samples are spread over the values between a column's bounds. That works for any filter, also for a look-up in a join's hash
//! table, which says neither how many keys it has nor which.

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr_common::physical_expr::{is_volatile, snapshot_physical_expr};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows about which a filter is asked.
const SAMPLES: usize = 8192;
/// Values for each row above which `SAMPLES` are too few: more are taken if the scan has [`ROWS_MANY`].
const VALUES_MAX: f64 = 16.0;
const SAMPLES_MANY: usize = 8 * SAMPLES;
const ROWS_MANY: f64 = 1e6;
/// Steps from one sample to the next, as parts of a column's range: irrational, so that samples are spread evenly, and those of two
/// columns over all pairs.
const STEPS: [f64; 3] = [0.618_033_988_749_895, 0.414_213_562_373_095, 0.732_050_807_568_877];

/// The share of a scan's rows that pass the filter, or more. `None`: a column has no bounds, or is no whole number or date.
///
/// If a column has more values between its bounds than the scan has rows, most of them are no row's: the samples that pass are then taken
/// for rows' values.
pub(super) fn share(
    filter: &Arc<dyn PhysicalExpr>,
    statistics: &Statistics,
    rows: f64,
    schema: &Schema,
) -> Option<f64> {
    let columns: BTreeMap<usize, Column> =
        collect_columns(filter).into_iter().map(|column| (column.index(), column)).collect();
    if columns.is_empty() || columns.len() > STEPS.len() || is_volatile(filter) {
        return None;
    }
    let range = |index: &usize| {
        let known = statistics.column_statistics.get(*index)?;
        let least = whole(known.min_value.get_value()?)?;
        let range = (whole(known.max_value.get_value()?)?.checked_sub(least)?).checked_add(1)?;
        Some((least, range as f64))
    };
    let ranges = columns.keys().map(range).collect::<Option<Vec<_>>>()?;
    let values: f64 = ranges.iter().map(|(_, range)| range).product();
    let of_rows = values / values.min(rows).max(1.0);
    let count = match of_rows <= VALUES_MAX {
        true => SAMPLES,
        false if rows >= ROWS_MANY => SAMPLES_MANY,
        false => return None,
    };
    let samples = columns.iter().zip(ranges).zip(STEPS).map(|(((index, column), (least, range)), step)| {
        let sample = |row: usize| least + ((row as f64 * step).fract() * range) as i64;
        let sampled = Int64Array::from_iter_values((0..count).map(sample));
        Some((column.name(), of_type(sampled, schema.field(*index).data_type())?))
    });
    let batch = RecordBatch::try_from_iter(samples.collect::<Option<Vec<_>>>()?).ok()?;
    let filter = snapshot_physical_expr(Arc::clone(filter)).ok()?;
    let filter = reassign_expr_columns(filter, &batch.schema()).ok()?;
    let passes = filter.evaluate(&batch).ok()?.into_array(count).ok()?;
    // One more than there are: none among the samples does not mean none.
    let passing = (as_boolean_array(&passes).ok()?.true_count() + 1) as f64;
    Some((passing / count as f64 * of_rows).min(1.0))
}

/// A whole number, or the days of a date.
fn whole(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int8(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}

/// Numbers as values of a column.
fn of_type(numbers: Int64Array, data_type: &DataType) -> Option<ArrayRef> {
    let numbers: ArrayRef = Arc::new(numbers);
    match data_type {
        DataType::Date32 => cast(&cast(&numbers, &DataType::Int32).ok()?, data_type).ok(),
        _ => cast(&numbers, data_type).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ColumnStatistics;
    use datafusion::common::stats::Precision;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, binary, col, in_list, lit};

    const ROWS: f64 = 1e6;

    fn schema() -> Schema {
        use arrow::datatypes::Field;
        let field = |name, data_type| Field::new(name, data_type, true);
        Schema::new(vec![
            field("name", DataType::Utf8),
            field("part", DataType::Int32),
            field("id", DataType::Int64),
            field("day", DataType::Date32),
        ])
    }

    fn statistics() -> Statistics {
        let mut statistics = Statistics::new_unknown(&schema());
        let bounds = [
            (1, [ScalarValue::Int32(Some(1)), ScalarValue::Int32(Some(20_000))]),
            (2, [ScalarValue::Int64(Some(5_000_000)), ScalarValue::Int64(Some(8_999_999))]),
            (3, [ScalarValue::Date32(Some(-100)), ScalarValue::Date32(Some(899))]),
        ];
        for (column, [least, largest]) in bounds.map(|(at, both)| (at, both.map(Precision::Inexact))) {
            statistics.column_statistics[column] =
                ColumnStatistics { min_value: least, max_value: largest, ..ColumnStatistics::new_unknown() };
        }
        statistics
    }

    fn of(filter: &Arc<dyn PhysicalExpr>) -> Option<f64> {
        share(filter, &statistics(), ROWS, &schema())
    }

    fn compare(column: &str, operator: Operator, with: ScalarValue) -> Arc<dyn PhysicalExpr> {
        binary(col(column, &schema()).unwrap(), operator, lit(with), &schema()).unwrap()
    }

    fn is_near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() <= expected * 0.15 + 2.0 / SAMPLES as f64)
    }

    #[test]
    fn a_share_is_that_of_the_values_that_pass() {
        for (bound, expected) in [(-500, 1.0), (0, 0.9), (450, 0.45), (890, 0.01), (1_000, 0.0)] {
            let found = of(&compare("day", Operator::GtEq, ScalarValue::Date32(Some(bound))));
            assert!(is_near(found, expected), "{bound}: {found:?}");
        }
        let schema = schema();
        let keys: Vec<_> = (0..500).map(|key| lit(ScalarValue::Int32(Some(1 + key * 37)))).collect();
        let keys = in_list(col("part", &schema).unwrap(), keys, &false, &schema).unwrap();
        assert!(is_near(of(&keys), 0.025), "{:?}", of(&keys));
        let first_days = compare("day", Operator::Lt, ScalarValue::Date32(Some(0)));
        let both = binary(keys, Operator::And, first_days, &schema).unwrap();
        assert!(
            is_near(of(&both), 0.0025 * 20.0),
            "of 20 million pairs, a million are rows: {:?}",
            of(&both)
        );
    }

    #[test]
    fn values_that_no_row_has_do_not_count() {
        // Of 4 million values a quarter is in use.
        let schema = schema();
        let keys: Vec<_> = (0..4_000).map(|key| lit(5_000_000 + key * 997_i64)).collect();
        let keys = in_list(col("id", &schema).unwrap(), keys, &false, &schema).unwrap();
        let found = of(&keys).unwrap();
        assert!((0.002..0.008).contains(&found), "{found}");
    }

    #[test]
    fn a_filter_is_asked_as_it_is_now() {
        let dynamic =
            Arc::new(DynamicFilterPhysicalExpr::new(vec![col("part", &schema()).unwrap()], lit(true)));
        let filter: Arc<dyn PhysicalExpr> = Arc::clone(&dynamic) as _;
        assert_eq!(of(&filter), Some(1.0));
        dynamic.update(compare("part", Operator::LtEq, ScalarValue::Int32(Some(200)))).unwrap();
        assert!(is_near(of(&filter), 0.01), "{:?}", of(&filter));
    }

    #[test]
    fn nothing_is_known_of_other_columns() {
        let text = compare("name", Operator::Eq, ScalarValue::from("a"));
        assert_eq!(of(&text), None);
        let day = compare("day", Operator::GtEq, ScalarValue::Date32(Some(0)));
        assert_eq!(of(&binary(text, Operator::Or, day, &schema()).unwrap()), None);
        assert_eq!(of(&lit(true)), None);
    }
}
