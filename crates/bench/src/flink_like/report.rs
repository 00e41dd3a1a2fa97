//! The table on standard output.

use super::Outcome;
use crate::report::table::{grouped, markdown};

const HEADS: [&str; 15] = [
    "interval ms",
    "sinks",
    "buckets",
    "rows/s",
    "Doris rows/s",
    "ratio",
    "mean ms",
    "Doris mean ms",
    "p99 ms",
    "Doris p99 ms",
    "bar ms",
    "queried p99 ms",
    "server CPU",
    "client CPU",
    "bars",
];
/// The least ratio to Doris's rows per second that is good enough.
const RATIO_BAR: f64 = 10.0;

/// Prints the combinations' medians as a Markdown table.
pub fn print(outcomes: &[Outcome]) {
    markdown(&HEADS, &outcomes.iter().map(row).collect::<Vec<_>>());
    let (runs, mode) =
        outcomes.first().map_or((0, ""), |outcome| (outcome.runs.len(), outcome.cell.mode.name()));
    println!(
        "\nMedians of {runs} run(s), {mode}. Times are from the arrival of a row at its sink until queries see it; a row waits for its \
         flush, half an interval on average. Rows arrive at a steady pace, so rows/s is at most what was offered. `queried` is \
         until a query had returned rows of a load, for a sample of loads. Every row was found again by SQL."
    );
    for outcome in outcomes {
        let run = outcome.median();
        if run.rows_per_second < outcome.cell.offered_rows_per_second * 0.98 {
            println!(
                "{}: {} of {} rows/s were loaded: the server, or this client, fell behind",
                outcome.cell.name(),
                grouped(run.rows_per_second),
                grouped(outcome.cell.offered_rows_per_second)
            );
        }
    }
}

fn row(outcome: &Outcome) -> Vec<String> {
    let (cell, run) = (&outcome.cell, outcome.median());
    let published = |of: fn(&crate::published::EndToEnd) -> f64| {
        outcome.published.as_ref().map_or("–".to_owned(), |figures| grouped(of(figures)))
    };
    let ratio = outcome.published.map(|figures| run.rows_per_second / figures.rows_per_second);
    let is_fast = ratio.is_none_or(|ratio| ratio >= RATIO_BAR);
    let bars = match (run.p99_ms <= outcome.p99_bar_ms, is_fast) {
        (true, true) => "met",
        (true, false) => "rows/s missed",
        (false, true) => "p99 missed",
        (false, false) => "both missed",
    };
    vec![
        cell.interval_ms.to_string(),
        cell.concurrency.to_string(),
        cell.buckets.to_string(),
        grouped(run.rows_per_second),
        published(|figures| figures.rows_per_second),
        ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}")),
        format!("{:.1}", run.mean_ms),
        published(|figures| figures.mean_seconds * 1e3),
        format!("{:.1}", run.p99_ms),
        published(|figures| figures.p99_seconds * 1e3),
        grouped(outcome.p99_bar_ms),
        format!("{:.1}", run.queried_p99_ms),
        format!("{:.2}", run.server_cpu),
        format!("{:.2}", run.client_cpu),
        bars.to_owned(),
    ]
}
