//! The figures of a run, for people and for programs.

use crate::books::Mode;
use crate::keyed::KeyedFigures;
use crate::rights::RightsFigures;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

/// Violations that a report shows in full; the others are counted.
const VIOLATIONS_SHOWN_MAX: usize = 50;
/// Reasons of refusals that a report shows.
const REFUSALS_SHOWN_MAX: usize = 10;

/// One mode's acknowledged loads.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ModeFigures {
    pub loads: u64,
    pub rows: u64,
}

impl ModeFigures {
    pub(crate) fn acknowledged(&mut self, rows: u64) {
        self.loads += 1;
        self.rows += rows;
    }
}

/// The figures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub rounds: u64,
    /// SIGKILLs of a server that was ready.
    pub kills_while_running: u64,
    /// SIGKILLs of a server that was still starting: in its recovery.
    pub kills_while_starting: u64,
    /// Stops by SIGTERM.
    pub stops: u64,
    /// Starts that ended in a ready server.
    pub starts: u64,
    /// Times the file system was filled up and freed again.
    pub disks_filled: u64,
    /// Starts that a full disk refused, with an error that says so.
    pub starts_refused: u64,
    /// Acknowledged loads by mode.
    pub acknowledged: BTreeMap<&'static str, ModeFigures>,
    pub refused_loads: u64,
    /// Loads without an answer, all of whose rows exist.
    pub unknown_there: u64,
    /// Loads without an answer, none of whose rows exists.
    pub unknown_absent: u64,
    /// Rows read for comparison, over all checks.
    pub rows_checked: u64,
    pub queries: u64,
    /// Rows acknowledged by tables with unique keys.
    pub upserted_rows: u64,
    /// Keys of such tables, over all checks.
    pub keys_checked: u64,
    /// Keys whose row is not the one that it should be.
    pub wrong_winners: u64,
    /// Loads into partitions of clients and changes of these that were acknowledged.
    pub partition_steps: u64,
    /// Rows of such loads.
    pub partitioned_rows: u64,
    /// Partitions compared, over all checks.
    pub partitions_checked: u64,
    /// Partitions that are not there, or have other loads than they should have.
    pub wrong_partitions: u64,
    /// Columns added and dropped.
    pub light_changes: u64,
    /// Types of columns changed, by jobs that were begun.
    pub heavy_changes: u64,
    pub lost_rows: u64,
    pub doubled_rows: u64,
    /// Missing rows of loads with other rows present.
    pub half_rows: u64,
    pub changed_rows: u64,
    /// Rows of refused loads, or that were never sent.
    pub strange_rows: u64,
    /// The most memory that a server had resident, in bytes.
    pub resident_bytes_max: u64,
    /// Of a run with users.
    pub rights: Option<RightsFigures>,
    /// Of a run with keys.
    pub keyed: Option<KeyedFigures>,
    ready_ms: Vec<u64>,
    refusals: BTreeMap<String, u64>,
}

impl Figures {
    pub(crate) fn mode(&mut self, mode: Mode) -> &mut ModeFigures {
        self.acknowledged.entry(mode.name()).or_default()
    }

    pub(crate) fn ready_after(&mut self, time: Duration) {
        self.starts += 1;
        self.ready_ms.push(time.as_millis() as u64);
    }

    pub(crate) fn refusals(&mut self, refusals: BTreeMap<String, u64>) {
        for (reason, times) in refusals {
            *self.refusals.entry(reason).or_default() += times;
        }
    }

    /// Median and longest time from start to ready, in ms.
    #[must_use]
    pub fn ready_ms(&self) -> (u64, u64) {
        let mut sorted = self.ready_ms.clone();
        sorted.sort_unstable();
        (sorted.get(sorted.len() / 2).copied().unwrap_or(0), sorted.last().copied().unwrap_or(0))
    }

    /// Acknowledged loads and rows of all modes.
    #[must_use]
    pub fn all_acknowledged(&self) -> ModeFigures {
        self.acknowledged.values().fold(ModeFigures::default(), |sum, one| ModeFigures {
            loads: sum.loads + one.loads,
            rows: sum.rows + one.rows,
        })
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    pub seconds: f64,
    pub figures: Figures,
    /// Broken promises; empty if all held.
    pub violations: Vec<String>,
    pub violations_in_all: usize,
}

impl Report {
    pub(crate) fn new(seed: u64, elapsed: Duration, figures: Figures, mut violations: Vec<String>) -> Self {
        let violations_in_all = violations.len();
        violations.truncate(VIOLATIONS_SHOWN_MAX);
        Self { seed, seconds: elapsed.as_secs_f64(), figures, violations, violations_in_all }
    }

    /// Whether every promise held.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.violations_in_all == 0
    }

    /// One JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        let (p50, max) = self.figures.ready_ms();
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value["figures"]["ready_ms"] = serde_json::json!({ "p50": p50, "max": max });
        value["ok"] = self.is_good().into();
        value.to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        let all = figures.all_acknowledged();
        let (p50, max) = figures.ready_ms();
        let mut line = |name: &str, value: String| writeln!(f, "{name:<34} {value:>14}");
        line("seed", self.seed.to_string())?;
        line("seconds", format!("{:.1}", self.seconds))?;
        line("rounds", grouped(figures.rounds))?;
        line("kills while running", grouped(figures.kills_while_running))?;
        line("kills during recovery", grouped(figures.kills_while_starting))?;
        line("stops", grouped(figures.stops))?;
        line("starts", grouped(figures.starts))?;
        if figures.disks_filled > 0 {
            line("times the disk was full", grouped(figures.disks_filled))?;
            line("starts refused by a full disk", grouped(figures.starts_refused))?;
        }
        line("ready after, p50 / max (ms)", format!("{p50} / {max}"))?;
        line("most memory (MiB)", grouped(figures.resident_bytes_max >> 20))?;
        for mode in Mode::ALL {
            let of_mode = figures.acknowledged.get(mode.name()).copied().unwrap_or_default();
            line(&format!("acknowledged {}, loads", mode.name()), grouped(of_mode.loads))?;
            line(&format!("acknowledged {}, rows", mode.name()), grouped(of_mode.rows))?;
        }
        line("acknowledged in all, loads", grouped(all.loads))?;
        line("acknowledged in all, rows", grouped(all.rows))?;
        line("rows compared", grouped(figures.rows_checked))?;
        if let Some(keyed) = &figures.keyed {
            for (name, value) in keyed.lines() {
                line(&name, value)?;
            }
        } else {
            line("loads refused or aborted", grouped(figures.refused_loads))?;
            line("loads without answer, there", grouped(figures.unknown_there))?;
            line("loads without answer, not there", grouped(figures.unknown_absent))?;
            line("queries meanwhile", grouped(figures.queries))?;
            line("rows with unique keys acknowledged", grouped(figures.upserted_rows))?;
            line("keys compared", grouped(figures.keys_checked))?;
            line("wrong winners", grouped(figures.wrong_winners))?;
            line("steps in partitions", grouped(figures.partition_steps))?;
            line("rows in partitions acknowledged", grouped(figures.partitioned_rows))?;
            line("partitions compared", grouped(figures.partitions_checked))?;
            line("wrong partitions", grouped(figures.wrong_partitions))?;
            line("light changes of columns", grouped(figures.light_changes))?;
            line("heavy changes of columns", grouped(figures.heavy_changes))?;
        }
        for (name, value) in figures.rights.iter().flat_map(RightsFigures::lines) {
            line(name, grouped(value))?;
        }
        line("lost rows", grouped(figures.lost_rows))?;
        line("doubled rows", grouped(figures.doubled_rows))?;
        line("rows missing of half loads", grouped(figures.half_rows))?;
        line("changed rows", grouped(figures.changed_rows))?;
        line("rows that should not be there", grouped(figures.strange_rows))?;
        line("violations", grouped(self.violations_in_all as u64))?;
        let mut refusals: Vec<_> = figures.refusals.iter().collect();
        refusals.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        for (reason, times) in refusals.into_iter().take(REFUSALS_SHOWN_MAX) {
            writeln!(f, "refused {times} times: {reason}")?;
        }
        for violation in &self.violations {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        Ok(())
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        // Writing to a String can't fail.
        let _ = text.write_char(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_violation_makes_the_report_bad() {
        let report = |violations| Report::new(1, Duration::from_secs(1), Figures::default(), violations);
        assert!(report(Vec::new()).is_good());
        let bad = report(vec!["lost".to_owned(); 60]);
        assert!(!bad.is_good());
        assert_eq!(bad.violations_in_all, 60);
        assert!(bad.json().contains("\"ok\":false"), "{}", bad.json());
        assert!(bad.to_string().contains("VIOLATION: lost"), "{bad}");
    }
}
