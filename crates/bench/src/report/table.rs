//! The table on standard output.

use crate::suite::CellResult;

const HEADS: [&str; 13] = [
    "load",
    "rows/s",
    "spread",
    "MB/s",
    "p50 ms",
    "p99 ms",
    "max ms",
    "server CPU",
    "client CPU",
    "fsyncs/s",
    "RSS MB",
    "Doris rows/s",
    "ratio",
];

/// Prints the cells' medians as a Markdown table.
pub fn print(results: &[CellResult]) {
    markdown(&HEADS, &results.iter().map(row).collect::<Vec<_>>());
    println!(
        "\nMedians of {} run(s). Every row was found again by SQL. Acknowledgements are durable: the log is synced \
         with fdatasync before each; CPU in cores. The client's CPU includes sending over TCP.",
        results.first().map_or(0, |result| result.runs.len())
    );
    results.iter().for_each(print_more);
}

/// A Markdown table, its first column to the left and the others to the right.
pub(crate) fn markdown(heads: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        println!("| {} |", padded.collect::<Vec<_>>().join(" | "));
    };
    line(&heads.iter().map(ToString::to_string).collect::<Vec<_>>());
    let rule = |(column, &width): (usize, &usize)| {
        if column == 0 { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
    };
    line(&widths.iter().enumerate().map(rule).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
}

fn row(result: &CellResult) -> Vec<String> {
    let median = result.median();
    let (slowest, fastest) = (&result.runs[0], &result.runs[result.runs.len() - 1]);
    let spread = (fastest.rows_per_second - slowest.rows_per_second) / median.rows_per_second * 100.0;
    let published = result.published_rows_per_second;
    vec![
        result.name.clone(),
        grouped(median.rows_per_second),
        format!("{spread:.0} %"),
        format!("{:.1}", median.megabytes_per_second),
        format!("{:.2}", median.p50_ms),
        format!("{:.2}", median.p99_ms),
        format!("{:.1}", median.max_ms),
        format!("{:.2}", median.server_cpu),
        format!("{:.2}", median.client_cpu),
        format!("{:.0}", median.fsyncs as f64 / median.seconds),
        format!("{:.0}", median.peak_rss_bytes as f64 / 1e6),
        published.map_or("–".into(), grouped),
        published.map_or("–".into(), |published| format!("{:.2}", median.rows_per_second / published)),
    ]
}

fn print_more(result: &CellResult) {
    let median = result.median();
    if let Some(ratio) = median.written_per_byte {
        println!("\n{}: {ratio:.2} bytes written to the disk per byte of rows", result.name);
    }
    if let Some(files) = median.data_files {
        println!("{} data files, {:.1} MB", files.count, files.bytes as f64 / 1e6);
    }
    if let Some(reason) = &median.first_refusal {
        println!(
            "\n{}: {} loads were refused and sent again; the first: {reason}",
            result.name, median.refusals
        );
    }
    if let [_, second, .., last] = median.rows_per_second_of_tenths[..] {
        let all: Vec<_> = median.rows_per_second_of_tenths.iter().map(|&rows| grouped(rows)).collect();
        println!("rows/s of each tenth: {}; last ÷ second: {:.2}", all.join(", "), last / second);
    }
}

/// A number with commas between groups of three digits.
#[must_use]
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(2_095_331.4), "2,095,331");
        assert_eq!(grouped(237.0), "237");
    }
}
