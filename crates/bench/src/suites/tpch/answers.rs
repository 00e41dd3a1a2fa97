//! The answers of the TPC-H specification at scale factor 1, and what a server answers beside them.

use crate::error::BenchError;
use tpchgen::q_and_a::answers_sf1::answer;

/// Numbers in the answers are rounded to two digits.
const ROUNDING: f64 = 0.0051;
/// The query in whose answers `tpchgen` has cut the first column, a key: 1297 for 129760.
const CUT: usize = 11;
/// The query for which `tpchgen` has 348406.02 where the specification has 348406.05.
const MISPRINTED: usize = 17;

/// Compares the rows of a query, `number` from 1 on, with the specification's.
///
/// # Errors
/// [`BenchError::Verification`] names the first difference.
pub fn check(number: usize, rows: &[Vec<String>]) -> Result<(), BenchError> {
    let wrong = |what: String| Err(BenchError::Verification(format!("TPC-H query {number}: {what}")));
    let text = match number {
        MISPRINTED => "avg_yearly\n348406.05",
        _ => i32::try_from(number).ok().and_then(answer).unwrap_or_default(),
    };
    // The first line has the names.
    let expected: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .skip(1)
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    if expected.len() != rows.len() {
        return wrong(format!("{} rows instead of {}", rows.len(), expected.len()));
    }
    for (at, (expected, found)) in expected.iter().zip(rows).enumerate() {
        let mut pairs = expected.iter().zip(found).skip(usize::from(number == CUT));
        let are_equal = expected.len() == found.len() && pairs.all(|(one, other)| is_equal(one, other));
        if !are_equal {
            return wrong(format!("row {} is {found:?} instead of {expected:?}", at + 1));
        }
    }
    Ok(())
}

fn is_equal(expected: &str, found: &str) -> bool {
    let found = found.trim();
    if expected == found {
        return true;
    }
    match (expected.parse::<f64>(), found.parse::<f64>()) {
        (Ok(expected), Ok(found)) => (expected - found).abs() <= ROUNDING,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revenue(value: &str) -> Result<(), BenchError> {
        check(6, &[vec![value.to_owned()]])
    }

    #[test]
    fn an_answer_is_the_specifications_up_to_its_rounding() {
        revenue("123141078.2283").expect("the revenue of query 6, with more digits");
        revenue("123141078.24").expect_err("a cent more");
        revenue("none").expect_err("no number");
        check(6, &[]).expect_err("no row");
    }
}
