//! Queries, EXPLAIN, DESCRIBE and USE.

use crate::ast::{Explain, ExplainForm, SelectQuery, Show, ShowFilter, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::file_calls::FileCall;
use crate::parse::{insert, unsupported};
use crate::visit::walk_query;
use sqlparser::ast::{
    Expr, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, TableWithJoins,
    Visitor,
};
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;
use tributary_types::{ErrorCode, SqlError};

impl SelectQuery {
    /// `SELECT a, b UNION ALL SELECT c, d …`, one SELECT a row; `None` without rows.
    ///
    /// Uses the trees as they are. Printing and parsing them would change them: sqlparser does not escape backslashes when it
    /// prints a text, so a text could come back as SQL.
    #[must_use]
    pub fn of_rows(rows: Vec<Vec<Expr>>) -> Option<Self> {
        let Self { mut ast, .. } = super::parse_query("SELECT 1").ok()?;
        let SetExpr::Select(template) = ast.body.as_ref().clone() else { return None };
        let select = |row: Vec<Expr>| {
            let projection = row.into_iter().map(SelectItem::UnnamedExpr).collect();
            SetExpr::Select(Box::new(Select { projection, ..(*template).clone() }))
        };
        // Pairwise, so that the tree is no deeper than necessary.
        let mut parts: Vec<SetExpr> = rows.into_iter().map(select).collect();
        while parts.len() > 1 {
            let mut rest = parts.into_iter();
            let pairs = std::iter::from_fn(|| rest.next().map(|left| union_all(left, rest.next())));
            parts = pairs.collect();
        }
        ast.body = Box::new(parts.pop()?);
        Some(Self { ast, text: String::new(), reads_hidden: false })
    }
}

fn union_all(left: SetExpr, right: Option<SetExpr>) -> SetExpr {
    let Some(right) = right else { return left };
    SetExpr::SetOperation {
        left: Box::new(left),
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        right: Box::new(right),
    }
}

/// Whether the next token starts a query.
pub(crate) fn begins(cursor: &Cursor<'_>) -> bool {
    *cursor.peek() == Token::LParen || cursor.is_any(&["SELECT", "WITH", "VALUES", "TABLE"])
}

/// A query. Writes in disguise (`WITH … INSERT`) are refused.
pub(crate) fn select(cursor: &mut Cursor<'_>) -> Parsed<SelectQuery> {
    if !begins(cursor) {
        return Err(cursor.expected("a query"));
    }
    let mut ast = cursor.query()?;
    refuse_writes(&ast)?;
    if cursor.sql().as_bytes().windows(6).any(|word| word.eq_ignore_ascii_case(b"sample")) {
        refuse_samples(&ast)?;
    }
    // A query reads one version of each table, whatever it would lock.
    ast.locks.clear();
    let _ = cursor.eat_all("LOCK IN SHARE MODE");
    Ok(SelectQuery {
        ast: ast.into(),
        text: cursor.sql().trim_end_matches([' ', '\t', '\r', '\n', ';']).to_owned(),
        reads_hidden: false,
    })
}

/// Refuses `TABLESAMPLE(…)` and `SAMPLE …`, which would be read as if they were not there.
fn refuse_samples(query: &Query) -> Parsed<()> {
    struct Find;
    impl Visitor for Find {
        type Break = ();
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match factor {
                TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match walk_query(query, &mut Find) {
        ControlFlow::Break(()) => {
            Err(unsupported::refuse("TABLESAMPLE", "use WHERE RAND() < 0.01, or LIMIT for any rows"))
        }
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn refuse_writes(query: &Query) -> Parsed<()> {
    let what = match query.body.as_ref() {
        SetExpr::Insert(_) => "INSERT after WITH",
        SetExpr::Update(_) => "UPDATE after WITH",
        SetExpr::Delete(_) => "DELETE after WITH",
        SetExpr::Merge(_) => "MERGE after WITH",
        _ => return Ok(()),
    };
    Err(unsupported::refuse(what, "write INSERT INTO t WITH … SELECT …"))
}

/// `EXPLAIN …`, `DESC …`, `DESCRIBE …`: of a statement or of a table.
pub(crate) fn explain_or_describe(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    let (mut analyze, mut form) = (false, ExplainForm::default());
    loop {
        if cursor.eat("ANALYZE") {
            analyze = true;
        } else if cursor.eat_any(&["VERBOSE", "EXTENDED"]).is_some() || cursor.eat_all("ALL PLAN") {
            form = ExplainForm::Verbose;
        } else if cursor.eat_all("PHYSICAL PLAN") {
            form = ExplainForm::Physical;
        } else if !eat_plan_kind(cursor)? {
            break;
        }
    }
    if begins(cursor) {
        let statement = Box::new(Statement::Query(select(cursor)?));
        return Ok(Statement::Explain(Explain { analyze, form, statement }));
    }
    if cursor.is("INSERT") {
        let statement = Box::new(insert::insert(cursor)?);
        return Ok(Statement::Explain(Explain { analyze, form, statement }));
    }
    if cursor.is_any(&["UPDATE", "DELETE", "REPLACE"]) {
        let word = cursor.word().unwrap_or_default().to_ascii_uppercase();
        return Err(unsupported::refuse(&format!("EXPLAIN {word}"), "explain a SELECT with its conditions"));
    }
    if cursor.is("FUNCTION") && matches!(cursor.peek_nth(1), Token::Word(_)) {
        cursor.advance();
        return describe_function(cursor);
    }
    let table = cursor.name()?;
    if cursor.eat("ALL") {
        return Ok(Statement::Describe { table, all: true });
    }
    // MySQL's form for some of the columns.
    let pattern = match cursor.peek() {
        Token::Word(_) => cursor.identifier("a column")?.replace('_', "\\_").replace('%', "\\%"),
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => cursor.string("a pattern")?,
        _ => return Ok(Statement::Describe { table, all: false }),
    };
    let filter = Some(ShowFilter::Like(pattern));
    Ok(Statement::Show(Box::new(Show::Columns { full: false, table, filter })))
}

/// The call in `DESC FUNCTION s3(…)`.
fn describe_function(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let relations = cursor.relations()?;
    if let [TableWithJoins { relation, joins }] = relations.as_slice()
        && joins.is_empty()
        && let Some(call) = FileCall::of(relation)?
    {
        return Ok(Statement::DescribeFunction(Box::new(call)));
    }
    let text = "DESC FUNCTION shows the columns of s3(…), http(…) and local(…) only";
    Err(SqlError::detail(ErrorCode::NotSupported, text))
}

/// Words that choose among plans; there is one plan, so they change nothing.
fn eat_plan_kind(cursor: &mut Cursor<'_>) -> Parsed<bool> {
    const KINDS: [&str; 8] = [
        "PARSED PLAN",
        "ANALYZED PLAN",
        "REWRITTEN PLAN",
        "LOGICAL PLAN",
        "OPTIMIZED PLAN",
        "SHAPE PLAN",
        "MEMO PLAN",
        "DISTRIBUTED PLAN",
    ];
    if KINDS.iter().any(|kind| cursor.eat_all(kind)) {
        return Ok(true);
    }
    if !(cursor.is("FORMAT") && *cursor.peek_nth(1) == Token::Eq) {
        return Ok(false);
    }
    cursor.advance();
    cursor.advance();
    match cursor.eat_any(&["TRADITIONAL", "TREE"]) {
        Some(_) => Ok(true),
        None => {
            Err(unsupported::refuse("this EXPLAIN FORMAT", "use EXPLAIN, EXPLAIN VERBOSE or EXPLAIN ANALYZE"))
        }
    }
}

pub(crate) fn use_database(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    cursor.database().map(|db| Statement::Use { db })
}
