//! Queries as trees that can be written in each dialect and taken apart by the shrinker.

use crate::schema::Kind;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub op: Op,
    pub kind: Kind,
    pub args: Vec<Expr>,
    pub query: Option<Box<Query>>,
}

/// The operation of an expression on its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A column of a table; without a table for the column of a USING.
    Column { table: Option<String>, name: String },
    /// NULL, a number, a text, a date or a datetime, as SQL.
    Literal(Literal),
    /// A form with its arguments at `{0}`, `{1}`, …
    Form(&'static Form),
    /// `NAME(a, b, …)`, the name the same in every dialect.
    Call(&'static str),
    /// `CAST(a AS …)`.
    Cast(CastTo),
    /// `a IN (b, c, …)`.
    In { negated: bool },
    /// `CASE [a] WHEN b THEN c … [ELSE z] END`.
    Case { operand: bool, otherwise: bool },
    /// `(SELECT …)` as a value.
    Scalar,
    /// `a IN (SELECT …)`.
    InQuery { negated: bool },
    /// `EXISTS (SELECT …)`.
    Exists { negated: bool },
    /// `a = ANY (SELECT …)`.
    Quantified { operator: &'static str, all: bool },
    /// `COUNT(*)` has no argument.
    Aggregate { name: &'static str, distinct: bool },
    /// A window function. First its arguments, then the partition keys, then the sort keys.
    Window { name: &'static str, arguments: usize, partitions: usize, descending: Vec<bool>, frame: Frame },
    /// `GROUP_CONCAT(a ORDER BY a SEPARATOR 's')`.
    GroupConcat { distinct: bool, descending: bool },
}

/// A literal's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Int(i64),
    /// Digits with a point.
    Decimal(String),
    /// With an exponent, so that it is a double.
    Double(String),
    Text(String),
    /// `DATE '…'`, or the bare text where `bare`.
    Date {
        text: String,
        bare: bool,
    },
    /// `TIMESTAMP '…'`, or the bare text where `bare`.
    DateTime {
        text: String,
        bare: bool,
    },
    Bool(bool),
}

/// The target type of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastTo {
    Signed,
    Decimal(u8, u8),
    Double,
    Char,
    Date,
    DateTime(u8),
}

/// The frame of a window function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    None,
    /// `ROWS BETWEEN … AND …`, by [`crate::print::BOUNDS`].
    Rows(u8, u8),
    /// `RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW`.
    RangeToCurrent,
    /// `RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING`.
    RangeAll,
}

/// A form of SQL with places for its arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// The name in shapes and in the list of known differences.
    pub name: &'static str,
    pub mysql: &'static str,
    /// Empty if DuckDB lacks the function, or has another meaning for it.
    pub duckdb: &'static str,
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub body: Body,
    pub order: Vec<Sort>,
    pub limit: Option<Limit>,
}

/// A key of an ORDER BY: the output column's number from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub position: usize,
    pub descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub rows: u64,
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    Set { operator: SetOperator, all: bool, left: Box<Query>, right: Box<Query> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    pub distinct: bool,
    /// `*` before the items.
    pub star: bool,
    pub items: Vec<Expr>,
    pub from: Option<Source>,
    pub joins: Vec<Join>,
    pub filter: Option<Expr>,
    pub group: Vec<Expr>,
    pub grouping: Grouping,
    pub having: Option<Expr>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    Plain,
    Rollup,
    Cube,
    /// Sets of positions in the list of expressions.
    Sets(Vec<Vec<usize>>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub what: What,
    pub alias: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Table(String),
    Derived(Box<Query>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub source: Source,
    pub on: Option<Expr>,
    pub using: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

impl Expr {
    #[must_use]
    pub fn new(op: Op, kind: Kind, args: Vec<Self>) -> Self {
        Self { op, kind, args, query: None }
    }

    #[must_use]
    pub fn with_query(op: Op, kind: Kind, args: Vec<Self>, query: Query) -> Self {
        Self { op, kind, args, query: Some(Box::new(query)) }
    }

    #[must_use]
    pub fn literal(literal: Literal, kind: Kind) -> Self {
        Self::new(Op::Literal(literal), kind, Vec::new())
    }

    #[must_use]
    pub fn null(kind: Kind) -> Self {
        Self::literal(Literal::Null, kind)
    }

    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(self.op, Op::Column { .. } | Op::Literal(_))
    }

    /// Calls `visit` with the expression, its subexpressions, and the expressions of its queries.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        visit(Node::Expr(self));
        self.args.iter().for_each(|arg| arg.walk(visit));
        if let Some(query) = &self.query {
            query.walk(visit);
        }
    }
}

/// A node visited by a walk.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    Expr(&'a Expr),
    Query(&'a Query),
    Select(&'a Select),
    Join(&'a Join),
}

impl Query {
    #[must_use]
    pub fn of(select: Select) -> Self {
        Self { body: Body::Select(Box::new(select)), order: Vec::new(), limit: None }
    }

    /// The number of columns of the result, if the text alone determines it.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        match &self.body {
            Body::Select(select) if select.star => None,
            Body::Select(select) => Some(select.items.len()),
            Body::Set { left, .. } => left.width(),
        }
    }

    /// Whether its rows have only one order: every column is a key.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.width().is_some_and(|width| {
            (1..=width).all(|position| self.order.iter().any(|sort| sort.position == position))
        })
    }

    /// The outermost select, if the query is one.
    #[must_use]
    pub fn select(&self) -> Option<&Select> {
        match &self.body {
            Body::Select(select) => Some(select),
            Body::Set { .. } => None,
        }
    }

    /// See [`Expr::walk`].
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        visit(Node::Query(self));
        match &self.body {
            Body::Set { left, right, .. } => {
                left.walk(visit);
                right.walk(visit);
            }
            Body::Select(select) => {
                visit(Node::Select(select));
                select.items.iter().for_each(|item| item.walk(visit));
                for source in select.from.iter().chain(select.joins.iter().map(|join| &join.source)) {
                    if let What::Derived(query) = &source.what {
                        query.walk(visit);
                    }
                }
                for join in &select.joins {
                    visit(Node::Join(join));
                    if let Some(on) = &join.on {
                        on.walk(visit);
                    }
                }
                let rest = select.filter.iter().chain(&select.group).chain(&select.having);
                rest.for_each(|expr| expr.walk(visit));
            }
        }
    }
}
