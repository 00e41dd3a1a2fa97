//! The counts and findings of a run.

use crate::check::{Check, Verdict};
use crate::compare::Outcome;
use crate::known::Rule;
use crate::schema::{Dialect, Schema};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// How many of the errors that both sides gave are shown at the end.
const REFUSALS_SHOWN: usize = 12;

/// A difference that no rule explains, as small as it could be made.
#[derive(Clone, Debug)]
pub struct Finding {
    pub check: Check,
    pub shape: String,
    /// Reproduces it: `--seed` and `--only`.
    pub seed: u64,
    pub number: u64,
    pub schema: Schema,
    pub verdict: Verdict,
}

/// Counts and findings of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub checked: BTreeMap<Check, u64>,
    pub statements: u64,
    /// Queries that both ways refused, so that nothing was compared, by the server's error.
    pub refused: BTreeMap<String, u64>,
    /// Queries to which the other side gave no answer at all, so that nothing was compared.
    pub unanswered: u64,
    pub known: BTreeMap<String, u64>,
    /// Findings by shape, with their frequency.
    pub findings: BTreeMap<String, (u64, Finding)>,
    /// Differences that were counted by their error's text and not shrunk, because the text was known
    /// from a finding.
    pub repeated: u64,
}

impl Report {
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.checked.values().sum()
    }

    /// Takes in a finding; whether it is the first of its shape.
    pub fn found(&mut self, finding: Finding) -> bool {
        let entry = self.findings.entry(finding.shape.clone());
        let entry = entry.or_insert_with(|| (0, finding));
        entry.0 += 1;
        entry.0 == 1
    }

    pub fn explained(&mut self, rule: &Rule) {
        *self.known.entry(rule.name.clone()).or_default() += 1;
    }

    /// The end of the report: counts, known differences, and shapes by frequency.
    #[must_use]
    pub fn summary(&self, took: Duration) -> String {
        let mut out = String::new();
        let seconds = took.as_secs_f64();
        let queries = self.queries();
        let _ = writeln!(
            out,
            "{queries} queries in {seconds:.0} s ({:.0} a second), {} statements of the server; both sides refused {}, \
             the other gave no answer to {}",
            queries as f64 / seconds.max(0.001),
            self.statements,
            self.refused.values().sum::<u64>(),
            self.unanswered
        );
        for (check, count) in &self.checked {
            let _ = writeln!(out, "  {:<9} {count}", check.name());
        }
        let mut refused: Vec<_> = self.refused.iter().collect();
        refused.sort_by_key(|(_, count)| Reverse(*count));
        if !refused.is_empty() {
            let _ = writeln!(out, "refused by both, most of all:");
        }
        for (what, count) in refused.into_iter().take(REFUSALS_SHOWN) {
            let _ = writeln!(out, "  {count:>6} {what}");
        }
        if !self.known.is_empty() {
            let _ = writeln!(out, "known differences:");
            for (name, count) in &self.known {
                let _ = writeln!(out, "  {count:>6}  {name}");
            }
        }
        let _ = writeln!(
            out,
            "findings: {} shapes, {} in all",
            self.findings.len(),
            self.findings.values().map(|(count, _)| count).sum::<u64>() + self.repeated
        );
        for (shape, (count, _)) in &self.findings {
            let _ = writeln!(out, "  {count:>6}  {shape}");
        }
        out
    }
}

impl Finding {
    /// The finding as scripts for both sides, with both answers.
    #[must_use]
    pub fn script(&self) -> String {
        let mut out = String::new();
        let what = self.verdict.difference.map_or("no difference", |difference| difference.name());
        let (check, seed, number) = (self.check.name(), self.seed, self.number);
        let _ = writeln!(out, "== {check}: {what} (--seed {seed} --only {number})");
        let _ = writeln!(out, "-- shape: {}", self.shape);
        let other = match self.check {
            Check::MariaDb => Some(("MariaDB", Dialect::MariaDb)),
            Check::DuckDb => Some(("DuckDB", Dialect::DuckDb)),
            _ => None,
        };
        side(&mut out, "ours", Some(self.schema.statements(Dialect::Ours)), &self.verdict.ours);
        match other {
            Some((name, dialect)) => {
                side(&mut out, name, Some(self.schema.statements(dialect)), &self.verdict.other);
            }
            None => side(&mut out, "ours in the other way", None, &self.verdict.other),
        }
        out
    }
}

fn side(out: &mut String, name: &str, statements: Option<Vec<String>>, answer: &(String, Outcome)) {
    let _ = writeln!(out, "-- {name}");
    for statement in statements.unwrap_or_default() {
        let _ = writeln!(out, "{statement};");
    }
    let _ = writeln!(out, "{};", answer.0);
    match &answer.1 {
        Outcome::Rows(answer) => {
            for row in &answer.rows {
                let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
                let _ = writeln!(out, "--   {}", cells.join(" | "));
            }
            let _ = writeln!(out, "--   {} rows {:?}", answer.rows.len(), answer.contents);
        }
        Outcome::Error { number, text } => drop(writeln!(out, "--   error {number}: {text}")),
        Outcome::Gone(why) => drop(writeln!(out, "--   no answer: {why}")),
    }
}
