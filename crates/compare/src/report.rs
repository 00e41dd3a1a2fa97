//! Medians over the rounds, ratios to Tributary, Markdown.

use crate::load::{LOADS, UPSERTS};
use crate::peer::{PEERS, Peer};
use std::fmt::{self, Write};
use std::time::Duration;
use tributary_bench::grouped;

/// One measurement.
#[derive(Clone, Debug)]
pub struct Sample {
    pub rows_per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// CPU time per row, in µs.
    pub server_micros: f64,
    pub client_micros: f64,
    /// Acknowledged rows, including those of the warm-up.
    pub total_rows: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>12} rows/s  p50 {:>9}  p99 {:>9}  CPU µs/row: server {:.2}, client {:.2}",
            grouped(self.rows_per_second),
            millis(self.p50),
            millis(self.p99),
            self.server_micros,
            self.client_micros
        )
    }
}

#[derive(Default)]
pub struct Results {
    samples: Vec<(&'static str, Peer, Sample)>,
}

impl Results {
    pub fn add(&mut self, load: &'static str, peer: Peer, sample: Sample) {
        self.samples.push((load, peer, sample));
    }

    fn of(&self, load: &str, peer: Peer) -> Vec<&Sample> {
        let is_one = |sample: &&(&str, Peer, Sample)| sample.0 == load && sample.1 == peer;
        self.samples.iter().filter(is_one).map(|(_, _, sample)| sample).collect()
    }

    /// Two tables: rows per second with their spread and ratios; latencies and CPU time.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| load | server | rows/s (median) | min – max | Tributary sync is | p50 | p99 | CPU µs/row: server | client |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for load in LOADS.iter().chain(UPSERTS) {
            let ours = self.median(load.name, Peer::Tributary { is_async: false });
            for peer in PEERS {
                self.line(&mut text, load.name, peer, ours);
            }
        }
        text
    }

    fn median(&self, load: &str, peer: Peer) -> Option<f64> {
        let samples = self.of(load, peer);
        (!samples.is_empty()).then(|| median(samples.iter().map(|sample| sample.rows_per_second)))
    }

    fn line(&self, text: &mut String, load: &str, peer: Peer, ours: Option<f64>) {
        let samples = self.of(load, peer);
        let Some(rate) = self.median(load, peer) else { return };
        let rates = samples.iter().map(|sample| sample.rows_per_second);
        let (min, max) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
        let ratio = match (peer, ours) {
            (Peer::Tributary { .. }, _) | (_, None) => "–".to_owned(),
            (_, Some(ours)) => format!("{:.1} ×", ours / rate),
        };
        let of = |value: fn(&Sample) -> f64| median(samples.iter().map(|sample| value(sample)));
        let latency = |value: fn(&Sample) -> f64| millis(Duration::from_secs_f64(of(value)));
        writeln!(
            text,
            "| {load} | {} | {} | {} – {} | {ratio} | {} | {} | {:.2} | {:.2} |",
            peer.name(),
            grouped(rate),
            grouped(min),
            grouped(max),
            latency(|sample| sample.p50.as_secs_f64()),
            latency(|sample| sample.p99.as_secs_f64()),
            of(|sample| sample.server_micros),
            of(|sample| sample.client_micros)
        )
        .expect("writing to a String does not fail");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
