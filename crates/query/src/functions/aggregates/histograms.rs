//! `HISTOGRAM` and `LINEAR_HISTOGRAM`: counted values divided into buckets, as JSON.

use crate::functions::aggregates::counts::Counted;
use crate::functions::conversion::convert::{to_real, to_text};
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;

/// Buckets of a histogram of equal steps.
const STEPS_MAX: i64 = 100_000;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Real};
    let text = crate::functions::utf8;
    vec![
        MySqlFunction::new("__histogram", &[Any, Int], text, histogram),
        MySqlFunction::new("__linear_histogram", &[Any, Real, Real], text, linear_histogram),
    ]
}

/// Divides values in their order into buckets of about as many rows.
fn histogram(args: &[ArrayRef]) -> Result<ArrayRef> {
    let counted = Counted::of(&args[0], "histogram")?;
    let texts = to_text(&counted.values)?;
    let texts = texts.as_string::<i32>();
    let limits = args[1].as_primitive::<Int64Type>();
    growth::texts("histogram", args, |row| {
        let (Some(range), true) = (counted.row(row), limits.is_valid(row)) else { return Ok(None) };
        let Some(limit) = usize::try_from(limits.value(row)).ok().filter(|limit| *limit > 0) else {
            return exec_err!("HISTOGRAM takes a number of buckets above 0 and not {}", limits.value(row));
        };
        let mut before = 0;
        let buckets = buckets(&counted.counts, range, limit).into_iter().map(|bucket| {
            let count: i64 = bucket.clone().map(|at| counted.counts.value(at)).sum();
            let shown = format!(
                r#"{{"lower":{},"upper":{},"ndv":{},"count":{count},"pre_sum":{before}}}"#,
                json!(texts.value(bucket.start)),
                json!(texts.value(bucket.end - 1)),
                bucket.len(),
            );
            before += count;
            shown
        });
        let buckets: Vec<String> = buckets.collect();
        Ok(Some(format!(r#"{{"num_buckets":{},"buckets":[{}]}}"#, buckets.len(), buckets.join(","))))
    })
}

/// The values of each bucket. The largest bucket is as small as the limit of buckets allows, and as many buckets as allowed are
/// used.
fn buckets(counts: &Int64Array, range: Range<usize>, limit: usize) -> Vec<Range<usize>> {
    let needed = |most: i64| {
        let (mut used, mut rows) = (1, 0);
        for at in range.clone() {
            rows += counts.value(at);
            if rows > most {
                used += 1;
                rows = counts.value(at);
            }
        }
        used
    };
    let all: i64 = range.clone().map(|at| counts.value(at)).sum();
    let (mut low, mut high) = (range.clone().map(|at| counts.value(at)).max().unwrap_or(0), all);
    while low < high {
        let middle = low + (high - low) / 2;
        if needed(middle) <= limit {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut start, mut rows) = (range.start, 0);
    for at in range.clone() {
        rows += counts.value(at);
        let next = at + 1;
        let buckets_left = limit - found.len() - 1;
        let fits = next < range.end && range.end - next > buckets_left && rows + counts.value(next) <= high;
        if !fits {
            found.push(start..next);
            (start, rows) = (next, 0);
        }
    }
    found
}

/// Divides numbers into buckets of equal width, with the empty ones between them.
fn linear_histogram(args: &[ArrayRef]) -> Result<ArrayRef> {
    let counted = Counted::of(&args[0], "linear_histogram")?;
    let values = to_real(&counted.values)?;
    let values = values.as_primitive::<Float64Type>();
    let (widths, offsets) = (args[1].as_primitive::<Float64Type>(), args[2].as_primitive::<Float64Type>());
    growth::texts("linear_histogram", args, |row| {
        let (Some(range), true) = (counted.row(row), widths.is_valid(row) && offsets.is_valid(row)) else {
            return Ok(None);
        };
        let (width, offset) = (widths.value(row), offsets.value(row));
        if width.is_nan() || width <= 0.0 {
            return exec_err!("LINEAR_HISTOGRAM takes an interval above 0 and not {width}");
        }
        if !(0.0..width).contains(&offset) {
            return exec_err!(
                "LINEAR_HISTOGRAM takes an offset from 0 to below the interval and not {offset}"
            );
        }
        let mut steps: BTreeMap<i64, i64> = BTreeMap::new();
        for at in range.filter(|at| values.is_valid(*at) && values.value(*at).is_finite()) {
            let step = ((values.value(at) - offset) / width).floor() as i64;
            *steps.entry(step).or_default() += counted.counts.value(at);
        }
        let (first, last) = match (steps.first_key_value(), steps.last_key_value()) {
            (Some((first, _)), Some((last, _))) => (*first, *last),
            _ => return Ok(Some(r#"{"num_buckets":0,"buckets":[]}"#.to_owned())),
        };
        let number = last.saturating_sub(first).saturating_add(1);
        if number > STEPS_MAX {
            return exec_err!(
                "LINEAR_HISTOGRAM makes at most {STEPS_MAX} buckets and not {number}: use a longer interval"
            );
        }
        let mut sum = 0;
        let buckets = (first..=last).map(|step| {
            let count = steps.get(&step).copied().unwrap_or(0);
            sum += count;
            let bound = |step: i64| json!(step as f64 * width + offset);
            let (lower, upper) = (bound(step), bound(step + 1));
            format!(r#"{{"lower":{lower},"upper":{upper},"count":{count},"acc_count":{sum}}}"#)
        });
        let buckets: Vec<String> = buckets.collect();
        Ok(Some(format!(r#"{{"num_buckets":{number},"buckets":[{}]}}"#, buckets.join(","))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bucket_is_as_small_as_it_can_be() {
        let one = buckets(&Int64Array::from(vec![1, 1, 2, 1, 1]), 0..5, 1);
        assert_eq!((one.len(), &one[0]), (1, &(0..5)));
        for (counts, limit, expected) in [
            (vec![1, 2, 1, 1, 1], 2, vec![0..2, 2..5]),
            (vec![1, 1, 1], 128, vec![0..1, 1..2, 2..3]),
            (vec![10, 1, 1, 1], 2, vec![0..1, 1..4]),
            (vec![], 3, vec![]),
        ] {
            let len = counts.len();
            assert_eq!(buckets(&Int64Array::from(counts.clone()), 0..len, limit), expected, "{counts:?}");
        }
    }
}
