//! The loop: seeds → tables → queries → checks → differences → findings.

use crate::ast::Query;
use crate::check::{Check, Sides, Verdict};
use crate::compare::{Difference, Outcome};
use crate::features;
use crate::generate::{self, Audience, Generator};
use crate::kinds;
use crate::known::Rule;
use crate::report::{Finding, Report};
use crate::schema::Schema;
use crate::shrink;
use crate::side::SideError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How often a query is tried smaller.
const QUERY_TRIES: usize = 250;
/// Attempts to shrink tables: each recreates them.
const TABLE_TRIES: usize = 40;

/// The extent of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first seed; each determines its tables and [`Plan::per_seed`] queries.
    pub seed: u64,
    pub per_seed: u64,
    /// Only this query of each seed.
    pub only: Option<u64>,
    pub queries: u64,
    pub until: Option<Instant>,
    pub checks: Vec<Check>,
}

/// State shared by all jobs.
pub struct Shared<'a> {
    pub plan: Plan,
    pub rules: Vec<Rule>,
    pub report: Mutex<Report>,
    pub next_seed: AtomicU64,
    /// Called with each first finding of a shape.
    pub tell: &'a (dyn Fn(&Finding) + Sync),
}

impl Shared<'_> {
    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.plan.until.is_some_and(|until| Instant::now() >= until)
            || self.report().queries() >= self.plan.queries
    }

    /// Takes seeds until the run is over.
    ///
    /// # Errors
    /// A side that does not take the tables.
    pub fn work(&self, mut sides: Sides) -> Result<(), SideError> {
        while !self.is_over() {
            let seed = self.next_seed.fetch_add(1, Ordering::Relaxed);
            self.seed(seed, &mut sides)?;
        }
        Ok(())
    }

    fn seed(&self, seed: u64, sides: &mut Sides) -> Result<(), SideError> {
        let schema = generate::schema(seed);
        sides.load(&schema)?;
        let numbers = match self.plan.only {
            Some(number) => number..number + 1,
            None => 0..self.plan.per_seed,
        };
        for number in numbers {
            if self.is_over() {
                break;
            }
            let Some((check, query)) = subject(seed, number, &schema) else { continue };
            if !self.plan.checks.contains(&check) || !sides.can(check) {
                continue;
            }
            let verdict = sides.run(check, &query);
            let refused = verdict.difference.is_none() && matches!(verdict.ours.1, Outcome::Error { .. });
            let refused = refused.then(|| format!("{}:{}", check.name(), gist(&verdict)));
            let unanswered = matches!(verdict.other.1, Outcome::Gone(_)) && verdict.statements > 0;
            {
                let mut report = self.report();
                *report.checked.entry(check).or_default() += 1;
                report.statements += verdict.statements;
                if let Some(what) = refused {
                    *report.refused.entry(what).or_default() += 1;
                }
                report.unanswered += u64::from(unanswered);
            }
            if verdict.difference.is_some() {
                self.differs(Subject { seed, number, check, schema: &schema }, &query, verdict, sides)?;
            }
        }
        Ok(())
    }

    /// Explains a difference, or shrinks and reports it.
    fn differs(
        &self,
        subject: Subject<'_>,
        query: &Query,
        verdict: Verdict,
        sides: &mut Sides,
    ) -> Result<(), SideError> {
        let by_error = |rule: &&Rule| rule.is_told_by_the_error();
        if let Some(rule) = self.rule(subject, query, &verdict, sides, by_error)? {
            self.report().explained(rule);
            return Ok(());
        }
        // The same error again and again is one finding; a few of them are shrunk, in case they differ.
        let wanted = (verdict.difference, gist(&verdict));
        if !wanted.1.is_empty()
            && self.report().findings.values().filter(|(_, known)| gist(&known.verdict) == wanted.1).count()
                >= 3
        {
            self.report().repeated += 1;
            return Ok(());
        }
        let mut small = shrink::query(query, QUERY_TRIES, &mut |candidate| {
            let mut candidate = candidate.clone();
            kinds::tell(&mut candidate);
            let verdict = sides.run(subject.check, &candidate);
            (verdict.difference, gist(&verdict)) == wanted
        });
        kinds::tell(&mut small);
        let verdict = sides.run(subject.check, &small);
        if let Some(rule) = self.rule(subject, &small, &verdict, sides, |_| true)? {
            self.report().explained(rule);
            return Ok(());
        }
        let what = wanted.0.map_or("", Difference::name);
        let shape = format!("{}: {what}: {}{}", subject.check.name(), features::shape(&small), wanted.1);
        let is_new = !self.report().findings.contains_key(&shape);
        let mut finding = Finding {
            check: subject.check,
            shape,
            seed: subject.seed,
            number: subject.number,
            schema: subject.schema.clone(),
            verdict,
        };
        if is_new {
            finding.schema = shrink::schema(subject.schema, &small, TABLE_TRIES, &mut |schema| {
                sides.load(schema).is_ok() && {
                    let verdict = sides.run(subject.check, &small);
                    (verdict.difference, gist(&verdict)) == wanted
                }
            });
            sides.load(&finding.schema)?;
            finding.verdict = sides.run(subject.check, &small);
            sides.load(subject.schema)?;
            (self.tell)(&finding);
        }
        self.report().found(finding);
        Ok(())
    }

    fn rule(
        &self,
        subject: Subject<'_>,
        query: &Query,
        verdict: &Verdict,
        sides: &mut Sides,
        which: impl Fn(&&Rule) -> bool,
    ) -> Result<Option<&Rule>, SideError> {
        let words = features::of(query);
        let Some(difference) = verdict.difference else { return Ok(None) };
        let errors = [&verdict.ours.1, &verdict.other.1];
        let (mut alone, mut inexact) = (None, None);
        for rule in self.rules.iter().filter(which) {
            if !rule.explains(subject.check, difference, errors, &words) {
                continue;
            }
            if rule.alone
                && !*alone
                    .get_or_insert_with(|| sides.other_stands_alone(subject.check, query, &verdict.ours.1))
            {
                continue;
            }
            if rule.inexact {
                let is_inexact = match inexact {
                    Some(known) => known,
                    None => sides.agree_where_exact(subject.check, query, subject.schema)?,
                };
                inexact = Some(is_inexact);
                if !is_inexact {
                    continue;
                }
            }
            return Ok(Some(rule));
        }
        Ok(None)
    }
}

#[derive(Clone, Copy)]
struct Subject<'a> {
    seed: u64,
    number: u64,
    check: Check,
    schema: &'a Schema,
}

/// The check and the query with this number of a seed.
#[must_use]
pub fn subject(seed: u64, number: u64, schema: &Schema) -> Option<(Check, Query)> {
    // Each query has a generator of its own, so that one can be made without those before it.
    let own = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03);
    let generator = |audience| Generator::new(own, schema, audience);
    Some(match number % 20 {
        0..=7 => (Check::MariaDb, generator(Audience::MariaDb).query()),
        9..=12 => (Check::DuckDb, generator(Audience::DuckDb).query()),
        8 => (Check::Bare, split(generator(Audience::MariaDb))),
        13 | 14 => (Check::Split, split(generator(Audience::MariaDb))),
        15 | 16 => (Check::Column, split(generator(Audience::MariaDb))),
        17 => (Check::Prepared, generator(Audience::MariaDb).simple()),
        18 => (Check::Derived, without_order(generator(Audience::MariaDb).query())?),
        _ => (Check::Common, without_order(generator(Audience::MariaDb).query())?),
    })
}

fn split(mut generator: Generator<'_>) -> Query {
    let (mut select, condition) = generator.split();
    select.filter = Some(condition);
    Query::of(select)
}

/// A query that can be a derived table: its columns have names of their own.
fn without_order(mut query: Query) -> Option<Query> {
    if query.limit.is_none() {
        query.order.clear();
    }
    query.width().map(|_| query)
}

/// An error without what changes from query to query; empty for answers.
fn gist(verdict: &Verdict) -> String {
    for outcome in [&verdict.ours.1, &verdict.other.1] {
        let said = match outcome {
            Outcome::Error { number, text } => Some((*number, text)),
            Outcome::Gone(text) => Some((0, text)),
            Outcome::Rows(_) => None,
        };
        if let Some((number, text)) = said {
            let words: Vec<&str> = text
                .split(|letter: char| letter.is_whitespace() || "(),;:'\"`".contains(letter))
                .filter(|word| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
                .take(12)
                .collect();
            return format!(" [{number} {}]", words.join(" "));
        }
    }
    String::new()
}

#[cfg(test)]
mod tests;
