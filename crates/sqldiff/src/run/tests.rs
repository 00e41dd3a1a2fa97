//! The tester finds a wrong answer and shrinks it.

use super::*;
use crate::check::Sides;
use crate::compare::{Answered, Content};
use crate::schema::Dialect;
use crate::side::Side;
use tributary_client::Value;

/// A side that answers every query with the same rows, except for a cell of queries with a certain function.
struct Told {
    dialect: Dialect,
    wrong: Option<&'static str>,
    /// Whether the cell is wrong only while the tables hold numbers that do not add up exactly.
    inexact: bool,
    /// Rows in the tables at the time of the query: the cell is wrong only while there are rows.
    rows: usize,
}

impl Side for Told {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn load(&mut self, schema: &Schema) -> Result<(), SideError> {
        let is_right = self.inexact && *schema == schema.exact();
        self.rows = if is_right { 0 } else { schema.tables.iter().map(|table| table.rows.len()).sum() };
        Ok(())
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        let is_wrong = self.rows > 0 && self.wrong.is_some_and(|word| sql.contains(word));
        let cell = if is_wrong { "8" } else { "7" };
        let rows = vec![vec![Some("1".to_owned())], vec![Some(cell.to_owned())]];
        Outcome::Rows(Answered { contents: vec![Content::Exact], rows })
    }

    fn ask_prepared(&mut self, sql: &str, _: &[Value]) -> Outcome {
        self.ask(sql)
    }
}

fn report(wrong: Option<&'static str>, rules: Vec<Rule>) -> Report {
    report_of([wrong, None, None], false, rules)
}

/// Runs the tester with wrong answers of the server, MariaDB and DuckDB.
fn report_of([ours, mariadb, duckdb]: [Option<&'static str>; 3], inexact: bool, rules: Vec<Rule>) -> Report {
    let told = |dialect, wrong| Box::new(Told { dialect, wrong, inexact, rows: 0 });
    let sides = Sides {
        ours: told(Dialect::Ours, ours),
        mariadb: Some(told(Dialect::MariaDb, mariadb)),
        duckdb: Some(told(Dialect::DuckDb, duckdb)),
    };
    let plan =
        Plan { seed: 3, per_seed: 200, only: None, queries: 600, until: None, checks: vec![Check::MariaDb] };
    let shared = Shared {
        plan,
        rules,
        report: Mutex::new(Report::default()),
        next_seed: AtomicU64::new(3),
        tell: &|_| {},
    };
    shared.work(sides).expect("the sides take all tables");
    shared.report.into_inner().expect("nobody panicked")
}

#[test]
fn a_wrong_cell_is_found_and_made_small() {
    let report = report(Some("IFNULL("), Vec::new());
    assert_eq!(report.queries(), 600);
    assert!(!report.findings.is_empty(), "{}", report.summary(std::time::Duration::ZERO));
    for (_, finding) in report.findings.values() {
        let text = &finding.verdict.ours.0;
        assert_eq!(finding.verdict.difference, Some(Difference::Values));
        assert_eq!(text.matches("IFNULL(").count(), 1, "{text}");
        assert_eq!(text.matches("SELECT").count(), 1, "{text}");
        assert!(!text.contains("WHERE") && !text.contains("LIMIT"), "{text}");
        let rows: usize = finding.schema.tables.iter().map(|table| table.rows.len()).sum();
        // A query without a table needs no rows.
        assert!(rows <= 1, "{rows} rows");
        let script = finding.script();
        assert!(script.contains("--   8") && script.contains("--   7"), "{script}");
    }
    // One bug is a shape for each pair of kinds, not one for each query.
    let shapes = report.findings.len() as u64;
    let times: u64 = report.findings.values().map(|(times, _)| times).sum();
    assert!(shapes < 30 && shapes * 3 < times * 2, "{}", report.summary(std::time::Duration::ZERO));
}

#[test]
fn right_answers_are_no_findings() {
    let report = report(None, Vec::new());
    assert_eq!(report.queries(), 600);
    assert!(report.findings.is_empty());
}

fn rule(alone: bool) -> Rule {
    Rule {
        name: "IFNULL".to_owned(),
        reason: "It is wrong on purpose.".to_owned(),
        checks: Vec::new(),
        when: "answers".to_owned(),
        needs: vec!["fn:IFNULL".to_owned()],
        any: Vec::new(),
        with: Vec::new(),
        error: String::new(),
        alone,
        inexact: false,
    }
}

#[test]
fn what_a_rule_explains_is_counted_by_the_rule() {
    let report = report(Some("IFNULL("), vec![rule(false)]);
    assert!(report.findings.is_empty());
    assert!(report.known["IFNULL"] > 0);
}

#[test]
fn a_rule_about_one_side_alone_asks_the_third() {
    let wrong = Some("IFNULL(");
    let mariadb_alone = report_of([None, wrong, None], false, vec![rule(true)]);
    assert!(mariadb_alone.findings.is_empty() && mariadb_alone.known["IFNULL"] > 0);
    let server_alone = report_of([wrong, None, None], false, vec![rule(true)]);
    assert!(!server_alone.findings.is_empty() && server_alone.known.is_empty());
    let server_right = report_of([None, wrong, wrong], false, vec![rule(true)]);
    assert!(!server_right.findings.is_empty() && server_right.known.is_empty());
}

#[test]
fn a_rule_about_inexact_numbers_asks_again_over_exact_ones() {
    let inexact = || vec![Rule { inexact: true, ..rule(false) }];
    let wrong = [Some("IFNULL("), None, None];
    let by_order = report_of(wrong, true, inexact());
    assert!(by_order.findings.is_empty() && by_order.known["IFNULL"] > 0);
    let always = report_of(wrong, false, inexact());
    assert!(!always.findings.is_empty() && always.known.is_empty());
}

/// A server that fails in itself, and says so.
struct Broken;

impl Side for Broken {
    fn dialect(&self) -> Dialect {
        Dialect::Ours
    }

    fn load(&mut self, _: &Schema) -> Result<(), SideError> {
        Ok(())
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        match sql.starts_with("SELECT * FROM (") {
            true => Outcome::Gone("internal error".to_owned()),
            false => Outcome::Rows(Answered { contents: Vec::new(), rows: Vec::new() }),
        }
    }
}

#[test]
fn a_server_that_is_gone_in_the_other_way_is_a_finding() {
    let mut sides = Sides { ours: Box::new(Broken), mariadb: None, duckdb: None };
    let schema = generate::schema(3);
    let query = (0..200).find_map(|number| match subject(3, number, &schema)? {
        (Check::Derived, query) => Some(query),
        _ => None,
    });
    let verdict = sides.run(Check::Derived, &query.expect("there is such a check"));
    assert_eq!(verdict.difference, Some(Difference::Gone));
}

#[test]
fn a_number_of_a_seed_is_the_same_query_without_those_before_it() {
    let schema = generate::schema(9);
    let all: Vec<_> = (0..40).map(|number| subject(9, number, &schema)).collect();
    assert_eq!(subject(9, 31, &schema), all[31]);
    assert_ne!(all[0], all[20]);
    let checks: std::collections::BTreeSet<Check> = all.iter().flatten().map(|(check, _)| *check).collect();
    assert!(checks.len() >= 6, "{checks:?}");
}
