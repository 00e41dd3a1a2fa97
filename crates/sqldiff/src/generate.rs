//! Random tables and queries. A seed produces the same ones on every machine.
//!
//! Each query has one right answer: LIMIT has an ORDER BY of all columns, and window functions that depend on the order of rows
//! sort by all columns in scope.

mod expr;
mod functions;
mod query;
mod rows;

pub use rows::schema;

use crate::ast::{Expr, Op};
use crate::schema::{Kind, Schema};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// The sides that must understand the queries, besides the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    MariaDb,
    DuckDb,
}

/// Makes queries over a schema.
#[derive(Debug)]
pub struct Generator<'a> {
    rng: SmallRng,
    schema: &'a Schema,
    audience: Audience,
    aliases: u32,
}

/// A column that an expression may name.
#[derive(Clone, Debug)]
struct Visible {
    table: Option<String>,
    name: String,
    kind: Kind,
}

/// The columns that an expression may name.
#[derive(Clone, Debug, Default)]
struct Scope {
    columns: Vec<Visible>,
    /// The columns of the query around a subquery.
    outer: Vec<Visible>,
}

impl Scope {
    /// The columns that a query within may name: a name without a table could be one of its own.
    fn with_tables(&self) -> Vec<Visible> {
        self.columns.iter().filter(|column| column.table.is_some()).cloned().collect()
    }
}

impl Visible {
    fn expr(&self) -> Expr {
        let op = Op::Column { table: self.table.clone(), name: self.name.clone() };
        Expr::new(op, self.kind, Vec::new())
    }
}

impl<'a> Generator<'a> {
    /// A generator whose queries depend on the seed, the schema and the audience alone.
    #[must_use]
    pub fn new(seed: u64, schema: &'a Schema, audience: Audience) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), schema, audience, aliases: 0 }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        from.choose(&mut self.rng).expect("lists to choose from are not empty")
    }

    fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("r{}", self.aliases)
    }

    fn is_mariadb(&self) -> bool {
        self.audience == Audience::MariaDb
    }

    fn number_kind(&mut self) -> Kind {
        *self.pick(&[Kind::Int, Kind::Int, Kind::Decimal, Kind::Double])
    }

    fn any_kind(&mut self) -> Kind {
        let kinds = [
            Kind::Int,
            Kind::Int,
            Kind::Int,
            Kind::Decimal,
            Kind::Decimal,
            Kind::Double,
            Kind::Text,
            Kind::Text,
            Kind::Date,
            Kind::DateTime,
            Kind::Bool,
        ];
        *self.pick(&kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::Node;
    use crate::print;
    use crate::schema::Dialect;

    fn texts(seed: u64, audience: Audience) -> Vec<String> {
        let schema = schema(seed);
        let mut generator = Generator::new(seed, &schema, audience);
        (0..50).map(|_| print::query(&generator.query(), Dialect::Ours)).collect()
    }

    #[test]
    fn a_seed_makes_the_same_tables_and_queries_each_time() {
        assert_eq!(schema(7), schema(7));
        assert_ne!(schema(7), schema(8));
        for audience in [Audience::MariaDb, Audience::DuckDb] {
            assert_eq!(texts(7, audience), texts(7, audience));
            assert_ne!(texts(7, audience), texts(8, audience));
        }
    }

    #[test]
    fn a_limit_stands_on_rows_of_one_order() {
        let mut limits = 0;
        for seed in 0..40 {
            let schema = schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::MariaDb);
            for _ in 0..50 {
                generator.query().walk(&mut |node| {
                    if let Node::Query(query) = node
                        && query.limit.is_some()
                    {
                        limits += 1;
                        assert!(query.is_ordered(), "{}", print::query(query, Dialect::Ours));
                    }
                });
            }
        }
        assert!(limits > 50, "{limits} queries with a limit");
    }

    #[test]
    fn windows_that_tell_equal_rows_apart_have_one_order() {
        let mut windows = 0;
        for seed in 0..40 {
            let schema = schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::MariaDb);
            for _ in 0..50 {
                let query = generator.query();
                query.walk(&mut |node| {
                    if let Node::Expr(Expr { op: Op::Window { name, frame, .. }, .. }) = node {
                        windows += u32::from(crate::shrink::tells_equal_rows_apart(name, *frame));
                    }
                });
                assert!(crate::shrink::is_one_answer(&query), "{}", print::query(&query, Dialect::Ours));
            }
        }
        assert!(windows > 200, "{windows} windows");
    }

    #[test]
    fn a_name_without_a_table_is_in_one_using_alone() {
        let mut names = 0;
        for seed in 0..60 {
            let schema = schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::MariaDb);
            for _ in 0..50 {
                let query = generator.query();
                query.walk(&mut |node| {
                    let Node::Select(select) = node else { return };
                    let more = select.joins.iter().skip(1);
                    let tables = more.filter(|join| matches!(join.source.what, crate::ast::What::Table(_)));
                    let in_a_third = tables.count() > 0;
                    for item in select.items.iter().chain(&select.filter).chain(&select.group) {
                        item.walk(&mut |node| {
                            if let Node::Expr(Expr { op: Op::Column { table: None, .. }, .. }) = node {
                                names += 1;
                                assert!(!in_a_third, "{}", print::query(&query, Dialect::Ours));
                            }
                        });
                    }
                });
            }
        }
        assert!(names > 20, "{names} names without a table");
    }

    #[test]
    fn duckdb_is_asked_nothing_that_it_means_otherwise() {
        for seed in 0..40 {
            let schema = schema(seed);
            let mut generator = Generator::new(seed, &schema, Audience::DuckDb);
            for _ in 0..50 {
                generator.query().walk(&mut |node| {
                    if let Node::Expr(Expr { op: Op::Form(form), .. }) = node {
                        assert_ne!(form.duckdb, "", "{}", form.name);
                    }
                });
            }
        }
    }
}
