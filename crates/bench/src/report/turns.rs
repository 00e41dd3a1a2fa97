//! Two binaries measured alternately: their figures and the ratios, on standard output.

use super::table::{grouped, markdown};
use crate::cell::Measured;
use crate::suite::{Pair, Turns};

const HEADS: [&str; 8] =
    ["load", "rows/s before", "rows/s now", "now ÷ before", "pairs from", "to", "CPU per row", "p99"];

/// Prints the cells as a Markdown table: medians of both sides, and of the ratios of their pairs.
pub fn print(turns: &[Turns]) {
    markdown(&HEADS, &turns.iter().map(row).collect::<Vec<_>>());
    println!(
        "\nMedians of {} pair(s), each run one right after the other; ratios are medians of the pairs' ratios, now ÷ \
         before. CPU per row is the server's.",
        turns.first().map_or(0, |turns| turns.pairs.len())
    );
}

fn row(turns: &Turns) -> Vec<String> {
    let side = |of: fn(&Pair) -> &Measured| median(turns.pairs.iter().map(|pair| of(pair).rows_per_second));
    let ratios =
        |of: fn(&Measured) -> f64| turns.pairs.iter().map(move |pair| of(&pair.now) / of(&pair.before));
    let speed = ratios(|run| run.rows_per_second);
    vec![
        turns.name.clone(),
        grouped(side(|pair| &pair.before)),
        grouped(side(|pair| &pair.now)),
        format!("{:.3}", median(speed.clone())),
        format!("{:.2}", speed.clone().fold(f64::INFINITY, f64::min)),
        format!("{:.2}", speed.fold(0.0, f64::max)),
        format!("{:.3}", median(ratios(|run| run.server_cpu / run.rows_per_second))),
        format!("{:.2}", median(ratios(|run| run.p99_ms))),
    ]
}

/// The value in the middle; with two in the middle, their mean.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert!(median([].into_iter()).is_nan());
    }
}
