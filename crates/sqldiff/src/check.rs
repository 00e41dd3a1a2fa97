//! The checks: each runs a query in two ways whose answers must be the same.

use crate::ast::{Body, Expr, Form, Literal, Op, Query, Select};
use crate::compare::{Answered, Difference, Outcome, difference};
use crate::print;
use crate::schema::{Dialect, Kind, Schema, exact};
use crate::side::{Side, SideError};

/// A way to check an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// MariaDB answers the same.
    MariaDb,
    /// DuckDB answers the same.
    DuckDb,
    /// Rows where the condition is true, false and NULL are together all rows.
    Split,
    /// As many rows pass the condition as show it to be true in a column.
    Column,
    /// The query prepared, its literals as parameters, answers the same.
    Prepared,
    /// The query as a derived table answers the same.
    Derived,
    /// The query as a common table expression answers the same.
    Common,
    /// The query without the brackets that operator precedence makes redundant has the same answer.
    Bare,
}

impl Check {
    pub const ALL: [Self; 8] = [
        Self::MariaDb,
        Self::DuckDb,
        Self::Split,
        Self::Column,
        Self::Prepared,
        Self::Derived,
        Self::Common,
        Self::Bare,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::DuckDb => "duckdb",
            Self::Split => "split",
            Self::Column => "column",
            Self::Prepared => "prepared",
            Self::Derived => "derived",
            Self::Common => "common",
            Self::Bare => "bare",
        }
    }
}

/// The servers that answer.
pub struct Sides {
    pub ours: Box<dyn Side>,
    pub mariadb: Option<Box<dyn Side>>,
    pub duckdb: Option<Box<dyn Side>>,
}

/// The two answers of a check, with the statements that made them.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub difference: Option<Difference>,
    pub ours: (String, Outcome),
    pub other: (String, Outcome),
    /// How many statements the server under test has run.
    pub statements: u64,
}

impl Sides {
    /// Loads the tables on all sides.
    ///
    /// # Errors
    /// The error of the first side that refuses them.
    pub fn load(&mut self, schema: &Schema) -> Result<(), SideError> {
        self.ours.load(schema)?;
        for side in [&mut self.mariadb, &mut self.duckdb].into_iter().flatten() {
            side.load(schema)?;
        }
        Ok(())
    }

    /// Whether all sides that the check needs are available.
    #[must_use]
    pub fn can(&self, check: Check) -> bool {
        match check {
            Check::MariaDb => self.mariadb.is_some(),
            Check::DuckDb => self.duckdb.is_some(),
            _ => true,
        }
    }

    /// Runs a check. [`Check::Split`] and [`Check::Column`] are about the query's WHERE and find
    /// nothing without one.
    pub fn run(&mut self, check: Check, query: &Query) -> Verdict {
        let text = print::query(query, Dialect::Ours);
        match check {
            Check::MariaDb => other_side(&mut *self.ours, self.mariadb.as_deref_mut(), query),
            Check::DuckDb => other_side(&mut *self.ours, self.duckdb.as_deref_mut(), query),
            Check::Prepared => {
                let (sql, values) = print::prepared(query);
                let other = self.ours.ask_prepared(&sql, &values);
                let shown = format!("{sql} -- prepared, with {values:?}");
                self.verdict(query.is_ordered(), text, (shown, other), 1)
            }
            Check::Bare => {
                let sql = print::bare(query);
                let other = self.ours.ask(&sql);
                self.verdict(query.is_ordered(), text, (sql, other), 1)
            }
            Check::Derived | Check::Common => {
                let sql = if check == Check::Derived {
                    format!("SELECT * FROM ({text}) d")
                } else {
                    format!("WITH d AS ({text}) SELECT * FROM d")
                };
                let other = self.ours.ask(&sql);
                self.verdict(false, text, (sql, other), 1)
            }
            Check::Split => self.split(query),
            Check::Column => self.column(query),
        }
    }

    /// Whether the side that a check leaves out answers the query as the server did: then the other one stands alone.
    pub fn other_stands_alone(&mut self, check: Check, query: &Query, ours: &Outcome) -> bool {
        let third = match check {
            Check::MariaDb => self.duckdb.as_deref_mut(),
            Check::DuckDb => self.mariadb.as_deref_mut(),
            _ => None,
        };
        let (Some(third), Outcome::Rows(_)) = (third, ours) else { return false };
        let answer = third.ask(&print::query(query, third.dialect()));
        matches!(answer, Outcome::Rows(_)) && difference(ours, &answer, query.is_ordered()).is_none()
    }

    /// Whether both answers are the same if all numbers of the tables and of the query add up exactly, so that the order of sums
    /// explains the difference.
    ///
    /// # Errors
    /// A side does not take the tables.
    pub fn agree_where_exact(
        &mut self,
        check: Check,
        query: &Query,
        schema: &Schema,
    ) -> Result<bool, SideError> {
        self.load(&schema.exact())?;
        let verdict = self.run(check, &with_exact_literals(query));
        self.load(schema)?;
        Ok(verdict.difference.is_none() && matches!(verdict.ours.1, Outcome::Rows(_)))
    }

    fn verdict(&mut self, ordered: bool, text: String, other: (String, Outcome), statements: u64) -> Verdict {
        let ours = self.ours.ask(&text);
        let difference = own_difference(&ours, &other.1, ordered);
        Verdict { difference, ours: (text, ours), other, statements: statements + 1 }
    }

    fn split(&mut self, query: &Query) -> Verdict {
        let Some((whole, condition)) = apart(query) else { return nothing(query) };
        let (mut texts, mut together) = (Vec::new(), None);
        for form in [None, Some(&NOT), Some(&IS_NULL)] {
            let mut part = whole.clone();
            part.filter = Some(match form {
                None => condition.clone(),
                Some(form) => Expr::new(Op::Form(form), Kind::Bool, vec![condition.clone()]),
            });
            let text = print::query(&Query::of(part), Dialect::Ours);
            let answer = self.ours.ask(&text);
            texts.push(text);
            together = Some(match together {
                None => answer,
                Some(before) => joined(before, answer),
            });
        }
        let together = together.unwrap_or_else(|| Outcome::Gone("nothing was asked".to_owned()));
        let whole = print::query(&Query::of(whole), Dialect::Ours);
        let answer = self.ours.ask(&whole);
        // The parts are "ours": an error in only one of them is a finding.
        let difference = own_difference(&together, &answer, false);
        Verdict { difference, ours: (texts.join(";\n"), together), other: (whole, answer), statements: 4 }
    }

    fn column(&mut self, query: &Query) -> Verdict {
        let Some((mut whole, condition)) = apart(query) else { return nothing(query) };
        let count = Op::Aggregate { name: "COUNT", distinct: false };
        let mut filtered = whole.clone();
        (filtered.star, whole.star) = (false, false);
        filtered.items = vec![Expr::new(count, Kind::Int, Vec::new())];
        filtered.filter = Some(condition.clone());
        whole.items = vec![Expr::new(Op::Form(&IS_TRUE), Kind::Bool, vec![condition])];
        let filtered = print::query(&Query::of(filtered), Dialect::Ours);
        let whole = print::query(&Query::of(whole), Dialect::Ours);
        let other = match self.ours.ask(&whole) {
            Outcome::Rows(answer) => {
                let truths = answer.rows.iter().filter(|row| row[0].as_deref() == Some("1")).count();
                let rows = vec![vec![Some(truths.to_string())]];
                Outcome::Rows(Answered { contents: answer.contents, rows })
            }
            outcome => outcome,
        };
        self.verdict(false, filtered, (whole, other), 1)
    }
}

static NOT: Form = Form { name: "NOT", mysql: "NOT {0}", duckdb: "NOT {0}" };
static IS_NULL: Form = Form { name: "IS NULL", mysql: "{0} IS NULL", duckdb: "{0} IS NULL" };
static IS_TRUE: Form = Form { name: "IS TRUE", mysql: "{0} IS TRUE", duckdb: "{0} IS TRUE" };

/// A query without its WHERE, and that.
fn apart(query: &Query) -> Option<(Select, Expr)> {
    let Body::Select(select) = &query.body else { return None };
    let mut select = (**select).clone();
    let condition = select.filter.take()?;
    Some((select, condition))
}

fn with_exact_literals(query: &Query) -> Query {
    let mut query = query.clone();
    crate::shrink::each_expr(&mut query, &mut |expr| {
        let Op::Literal(literal) = &mut expr.op else { return };
        match literal {
            Literal::Double(text) => {
                if let Ok(number) = text.parse() {
                    *text = format!("{}e0", exact(number, false));
                }
            }
            // Beside a DOUBLE it is one, too.
            Literal::Decimal(text) => {
                if let Ok(number) = text.parse() {
                    *text = format!("{:.2}", exact(number, true));
                }
            }
            _ => {}
        }
    });
    query
}

fn nothing(query: &Query) -> Verdict {
    let answer = (print::query(query, Dialect::Ours), Outcome::Gone("there is nothing to check".to_owned()));
    Verdict { difference: None, ours: answer.clone(), other: answer, statements: 0 }
}

/// The difference of two answers of the server; an error in the second counts as one, too.
fn own_difference(ours: &Outcome, other: &Outcome, ordered: bool) -> Option<Difference> {
    match other {
        Outcome::Gone(_) => Some(Difference::Gone),
        _ => difference(ours, other, ordered),
    }
}

fn joined(before: Outcome, after: Outcome) -> Outcome {
    match (before, after) {
        (Outcome::Rows(mut before), Outcome::Rows(after)) => {
            before.rows.extend(after.rows);
            Outcome::Rows(before)
        }
        (Outcome::Rows(_), failed) | (failed, _) => failed,
    }
}

fn other_side(ours: &mut dyn Side, other: Option<&mut (dyn Side + 'static)>, query: &Query) -> Verdict {
    let Some(other) = other else { return nothing(query) };
    let text = print::query(query, Dialect::Ours);
    let other_text = print::query(query, other.dialect());
    let other_outcome = other.ask(&other_text);
    let outcome = ours.ask(&text);
    let difference = difference(&outcome, &other_outcome, query.is_ordered());
    Verdict { difference, ours: (text, outcome), other: (other_text, other_outcome), statements: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_with_a_fraction_are_made_exact() {
        let items = vec![
            Expr::literal(Literal::Double("1e-1".to_owned()), Kind::Double),
            Expr::literal(Literal::Decimal("522.762".to_owned()), Kind::Decimal),
            Expr::literal(Literal::Int(7), Kind::Int),
            Expr::literal(Literal::Text("0.1".to_owned()), Kind::Text),
        ];
        let exact = with_exact_literals(&Query::of(Select { items, ..Select::default() }));
        let text = print::query(&exact, Dialect::Ours);
        assert!(text.starts_with("SELECT 0e0 AS c0, 10.75 AS c1, 7 AS c2, '0.1' AS c3"), "{text}");
    }
}
