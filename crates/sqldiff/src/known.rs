//! The list of known differences: intended differences between the sides, each with its reason. The list is
//! [`known.toml`](../known.toml).

use crate::check::Check;
use crate::compare::{Difference, Outcome};
use serde::Deserialize;
use std::collections::BTreeSet;

const LIST: &str = include_str!("../known.toml");

/// A known difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    /// Why it is right that the answers differ, or why the server does not answer.
    pub reason: String,
    /// The checks to which it applies; empty: all of them.
    #[serde(default)]
    pub checks: Vec<String>,
    /// The kind of difference: `answers`, `zeros` (texts that differ in zeros only), `digits` (doubles that differ in their last
    /// digits), `ours fails`, `the other side fails` or `fails` (either of them).
    pub when: String,
    /// The words of a query that must all be there (`features`).
    #[serde(default)]
    pub needs: Vec<String>,
    /// Words of which at least one must occur, unless the list is empty.
    #[serde(default)]
    pub any: Vec<String>,
    /// A second list like `any`.
    #[serde(default)]
    pub with: Vec<String>,
    /// Text that the error must contain.
    #[serde(default)]
    pub error: String,
    /// Whether the third side (DuckDB where MariaDB differs, and MariaDB where DuckDB does) must answer as the
    /// server does.
    #[serde(default)]
    pub alone: bool,
    /// Whether the difference must disappear once all DOUBLEs and DECIMALs of the tables and of the query are numbers whose sums
    /// are exact.
    #[serde(default)]
    pub inexact: bool,
}

#[derive(Deserialize)]
struct List {
    rule: Vec<Rule>,
}

/// The rules of the list.
///
/// # Errors
/// The list is malformed.
pub fn rules() -> Result<Vec<Rule>, toml::de::Error> {
    rules_of(LIST)
}

/// The rules of a list, such as one for a single run.
///
/// # Errors
/// The list is malformed.
pub fn rules_of(list: &str) -> Result<Vec<Rule>, toml::de::Error> {
    toml::from_str::<List>(list).map(|list| list.rule)
}

impl Rule {
    /// Whether the rule explains a difference of a query with these words.
    #[must_use]
    pub fn explains(
        &self,
        check: Check,
        difference: Difference,
        errors: [&Outcome; 2],
        words: &BTreeSet<String>,
    ) -> bool {
        let when = match difference {
            Difference::Gone => return false,
            Difference::OursFails | Difference::OtherFails if self.when == "fails" => "fails",
            Difference::OursFails => "ours fails",
            Difference::OtherFails => "the other side fails",
            Difference::Zeros if self.when == "zeros" => "zeros",
            Difference::Digits if self.when == "digits" => "digits",
            _ => "answers",
        };
        self.when == when
            && (self.checks.is_empty() || self.checks.iter().any(|name| name == check.name()))
            && self.needs.iter().all(|word| words.contains(word))
            && [&self.any, &self.with]
                .iter()
                .all(|list| list.is_empty() || list.iter().any(|word| words.contains(word)))
            && (self.error.is_empty()
                || errors.iter().any(
                    |outcome| matches!(outcome, Outcome::Error { text, .. } if text.contains(&self.error)),
                ))
    }

    /// Whether the error alone decides, so that no shrinking is necessary.
    #[must_use]
    pub fn is_told_by_the_error(&self) -> bool {
        !self.error.is_empty()
    }
}

/// The list as the table of the documentation.
#[must_use]
pub fn as_markdown(rules: &[Rule]) -> String {
    let mut text = String::from("| difference | with | why |\n| --- | --- | --- |\n");
    for rule in rules {
        let with = if rule.checks.is_empty() { "all".to_owned() } else { rule.checks.join(", ") };
        let alone = if rule.alone { ", alone" } else { "" };
        let inexact = if rule.inexact { ", inexact" } else { "" };
        let head = format!("{} ({}{alone}{inexact})", rule.name, rule.when);
        text.push_str(&format!("| {head} | {with} | {} |\n", rule.reason));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_list_can_match_and_has_a_reason() {
        let rules = rules().expect("the list is well formed");
        let mut names = BTreeSet::new();
        for rule in &rules {
            assert!(names.insert(&rule.name), "{} is there twice", rule.name);
            assert!(rule.reason.len() > 20, "{}: {:?} is no reason", rule.name, rule.reason);
            let kinds = ["answers", "zeros", "digits", "ours fails", "the other side fails", "fails"];
            assert!(kinds.contains(&rule.when.as_str()), "{}: {}", rule.name, rule.when);
            let third = |check: &String| ["mariadb", "duckdb"].contains(&check.as_str());
            let has_third = !rule.checks.is_empty() && rule.checks.iter().all(third);
            assert!(!rule.alone || has_third, "{}: nobody is a third side", rule.name);
            let narrow = !(rule.needs.is_empty() && rule.any.is_empty() && rule.error.is_empty());
            assert!(narrow, "{} explains everything", rule.name);
            for check in &rule.checks {
                assert!(Check::ALL.iter().any(|known| known.name() == check), "{check} is no check");
            }
        }
    }

    #[test]
    fn the_documentation_has_the_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sqldiff.md");
        let text = std::fs::read_to_string(path).expect("the documentation is there");
        let head = "<!-- The list, from crates/sqldiff/known.toml. -->\n\n";
        let (before, _) = text.split_once(head).expect("the mark is there");
        let wanted = format!("{before}{head}{}", as_markdown(&rules().expect("the list is well formed")));
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(path, wanted).expect("written");
        } else {
            assert_eq!(text, wanted, "`UPDATE_REFERENCE=1 cargo test -p tributary-sqldiff` writes it anew");
        }
    }

    #[test]
    fn a_rule_explains_what_it_says_and_nothing_else() {
        let rule: Rule = toml::from_str(
            "name = 'n'\nreason = 'r'\nchecks = ['mariadb']\nwhen = 'ours fails'\nneeds = ['fn:LN']\nerror = 'no'",
        )
        .expect("a rule");
        let error = Outcome::Error { number: 1, text: "say no".to_owned() };
        let gone = Outcome::Gone(String::new());
        let words = BTreeSet::from(["fn:LN".to_owned(), "where".to_owned()]);
        let explains = |check, difference, words: &BTreeSet<String>| {
            rule.explains(check, difference, [&error, &gone], words)
        };
        assert!(explains(Check::MariaDb, Difference::OursFails, &words));
        assert!(!explains(Check::DuckDb, Difference::OursFails, &words));
        assert!(!explains(Check::MariaDb, Difference::Values, &words));
        assert!(!explains(Check::MariaDb, Difference::OursFails, &BTreeSet::new()));
        assert!(!rule.explains(Check::MariaDb, Difference::OursFails, [&gone, &gone], &words));
    }

    #[test]
    fn a_rule_about_zeros_explains_no_other_difference() {
        let rule = |when: &str| -> Rule {
            let text = format!("name = 'n'\nreason = 'r'\nwhen = '{when}'\nneeds = ['fn:LN']");
            toml::from_str(&text).expect("a rule")
        };
        let words = BTreeSet::from(["fn:LN".to_owned()]);
        let gone = Outcome::Gone(String::new());
        let explains =
            |when, difference| rule(when).explains(Check::MariaDb, difference, [&gone, &gone], &words);
        assert!(explains("zeros", Difference::Zeros) && !explains("zeros", Difference::Values));
        assert!(explains("answers", Difference::Zeros) && explains("answers", Difference::Values));
        assert!(explains("digits", Difference::Digits) && !explains("digits", Difference::Values));
        assert!(explains("fails", Difference::OursFails) && explains("fails", Difference::OtherFails));
        assert!(!explains("fails", Difference::Values) && !explains("ours fails", Difference::OtherFails));
    }
}
