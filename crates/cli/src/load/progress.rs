//! The progress of a load: bytes of the files, as they are there, whose rows the server has acknowledged.

use crate::load::run::Totals;
use clap::ValueEnum;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// A bar at a terminal, lines elsewhere
    #[default]
    Auto,
    /// A bar
    Bar,
    /// A line every ten seconds
    Lines,
    /// Nothing
    None,
}

/// Shows progress on standard error.
pub(crate) struct Display {
    kind: Progress,
    started: Instant,
    bytes_before: u64,
    last: Option<Instant>,
    is_line_open: bool,
}

impl Display {
    /// `bytes_before` were acknowledged by earlier runs: they don't count for the rate.
    pub fn new(kind: Progress, bytes_before: u64) -> Self {
        let kind = match kind {
            Progress::Auto if io::stderr().is_terminal() => Progress::Bar,
            Progress::Auto => Progress::Lines,
            other => other,
        };
        Self { kind, started: Instant::now(), bytes_before, last: None, is_line_open: false }
    }

    pub fn show(&mut self, totals: &Totals) {
        let interval = match self.kind {
            Progress::Bar => Duration::from_millis(200),
            Progress::Lines => Duration::from_secs(10),
            _ => return,
        };
        let last = *self.last.get_or_insert(self.started);
        if last.elapsed() < interval {
            return;
        }
        self.last = Some(Instant::now());
        let text = self.text(totals);
        if self.kind == Progress::Bar {
            eprint!("\r\x1b[K{}", bar(totals) + &text);
            self.is_line_open = true;
        } else {
            eprintln!("{text}");
        }
        drop(io::stderr().flush());
    }

    /// Prints a line that stays.
    pub fn note(&mut self, text: &str) {
        self.end();
        if self.kind != Progress::None {
            eprintln!("{text}");
        }
    }

    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            eprint!("\r\x1b[K");
        }
    }

    fn text(&self, totals: &Totals) -> String {
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = totals.bytes.saturating_sub(self.bytes_before) as f64 / seconds;
        let mut text = match totals.bytes_all {
            Some(all) => {
                let percent = (totals.bytes * 100).checked_div(all).unwrap_or(100);
                format!("{percent:3} % · {} of {}", size(totals.bytes), size(all))
            }
            None => size(totals.bytes),
        };
        text.push_str(&format!(" · {}/s · {} rows", size(rate as u64), totals.rows));
        if let Some(all) = totals.bytes_all.filter(|_| rate > 1.0) {
            text.push_str(&format!(
                " · {} s left",
                (all.saturating_sub(totals.bytes) as f64 / rate).ceil() as u64
            ));
        }
        if let Some(trouble) = &totals.trouble {
            text.push_str(&format!(" · {trouble}"));
        }
        text
    }
}

fn bar(totals: &Totals) -> String {
    const WIDTH: u64 = 20;
    let Some(all) = totals.bytes_all else { return String::new() };
    let full = (totals.bytes * WIDTH).checked_div(all).unwrap_or(WIDTH).min(WIDTH);
    format!("[{}{}] ", "#".repeat(full as usize), "-".repeat((WIDTH - full) as usize))
}

/// A number of bytes as people write it.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 {
            return if unit == "B" { format!("{value:.0} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// Reads a number of bytes such as `32M`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|sign: char| !sign.is_ascii_digit());
    let factor = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        other => return Err(format!("{other} is no unit: use k, M, G, KiB, MiB or GiB")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text} is no number of bytes"))?;
    number
        .checked_mul(factor)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("{text} is no number of bytes that is possible"))
}

/// Reads a time such as `10m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|sign: char| !sign.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        other => return Err(format!("{other} is no unit: use s, m, h or d")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text} is no time"))?;
    number.checked_mul(factor).map(Duration::from_secs).ok_or_else(|| format!("{text} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(
            (parse_size("32M"), parse_size("1KiB"), parse_size("7")),
            (Ok(32_000_000), Ok(1024), Ok(7))
        );
        assert!(parse_size("M").is_err() && parse_size("1x").is_err() && parse_size("0").is_err());
        assert_eq!(
            (parse_time("10m"), parse_time("3d")),
            (Ok(Duration::from_secs(600)), Ok(Duration::from_secs(259_200)))
        );
        assert_eq!([size(0), size(1500), size(999_950_000)], ["0 B", "1.5 kB", "1.0 GB"]);
    }
}
