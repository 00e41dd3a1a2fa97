//! What a query is made of, as words: the list of known differences names them, and findings with the
//! same words are the same finding.

use crate::ast::*;
use crate::schema::Kind;
use std::collections::BTreeSet;

/// The words of a query.
#[must_use]
pub fn of(query: &Query) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    query.walk(&mut |node| match node {
        Node::Expr(expr) => of_expr(expr, &mut words),
        Node::Select(select) => of_select(select, &mut words),
        Node::Join(join) => of_join(join, &mut words),
        Node::Query(query) => {
            if query.limit.is_some() {
                words.insert("limit".to_owned());
            }
            if !query.order.is_empty() {
                words.insert("order".to_owned());
            }
            if let Body::Set { operator, all, .. } = &query.body {
                words.insert(format!("set:{}", format!("{operator:?}").to_lowercase()));
                words.extend(all.then(|| "set:all".to_owned()));
            }
        }
    });
    words
}

fn kinds(exprs: &[Expr]) -> String {
    exprs.iter().map(kind_name).collect::<Vec<_>>().join(",")
}

fn kind_name(expr: &Expr) -> &'static str {
    if expr.op == Op::Literal(Literal::Null) { "null" } else { expr.kind.name() }
}

fn of_expr(expr: &Expr, words: &mut BTreeSet<String>) {
    let mut add = |word: String| _ = words.insert(word);
    let arguments = kinds(&expr.args);
    match &expr.op {
        Op::Column { .. } => {}
        Op::Literal(Literal::Date { bare: true, .. } | Literal::DateTime { bare: true, .. }) => {
            add("literal:bare".to_owned());
        }
        Op::Literal(_) => {}
        Op::Form(Form { name, .. }) | Op::Call(name) => {
            add(format!("fn:{name}"));
            add(format!("fn:{name}({arguments})"));
        }
        Op::Cast(to) => {
            let to = match to {
                CastTo::Signed => "signed",
                CastTo::Decimal(..) => "decimal",
                CastTo::Double => "double",
                CastTo::Char => "char",
                CastTo::Date => "date",
                CastTo::DateTime(_) => "datetime",
            };
            add(format!("cast:{arguments}>{to}"));
        }
        Op::In { negated } => {
            add(if *negated { "not-in" } else { "in" }.to_owned());
            add(format!("in({arguments})"));
        }
        Op::Case { .. } => {
            add("case".to_owned());
            add(format!("case({arguments})"));
        }
        Op::Scalar => add("query:scalar".to_owned()),
        Op::InQuery { negated } => add(if *negated { "query:not-in" } else { "query:in" }.to_owned()),
        Op::Exists { .. } => add("query:exists".to_owned()),
        Op::Quantified { all, .. } => add(if *all { "query:all" } else { "query:any" }.to_owned()),
        Op::Aggregate { name, distinct } => {
            add(format!("aggregate:{name}"));
            add(format!("aggregate:{name}({arguments})"));
            if *distinct {
                add("aggregate:distinct".to_owned());
            }
        }
        Op::GroupConcat { .. } => add("aggregate:GROUP_CONCAT".to_owned()),
        Op::Window { name, frame, arguments, .. } => {
            add(format!("window:{name}"));
            add(format!("window:{name}({})", kinds(&expr.args[..*arguments])));
            if *frame != Frame::None {
                add("window:frame".to_owned());
            }
        }
    }
    if let Some(query) = &expr.query
        && !is_closed(query)
    {
        words.insert("query:correlated".to_owned());
    }
}

/// Whether a query names no table that it does not have.
#[must_use]
pub fn is_closed(query: &Query) -> bool {
    let (mut has, mut names) = (BTreeSet::new(), BTreeSet::new());
    query.walk(&mut |node| match node {
        Node::Select(select) => {
            let joined = select.joins.iter().map(|join| &join.source);
            has.extend(select.from.iter().chain(joined).map(|source| source.alias.as_str()));
        }
        Node::Expr(Expr { op: Op::Column { table: Some(table), .. }, .. }) => {
            names.insert(table.as_str());
        }
        _ => {}
    });
    names.is_subset(&has)
}

fn of_select(select: &Select, words: &mut BTreeSet<String>) {
    let mut add = |there: bool, word: &str| {
        if there {
            words.insert(word.to_owned());
        }
    };
    let sources = select.from.iter().chain(select.joins.iter().map(|join| &join.source));
    add(sources.clone().any(|source| matches!(source.what, What::Derived(_))), "derived");
    add(select.from.is_none(), "constants");
    add(select.distinct, "distinct");
    add(select.star, "star");
    add(select.filter.is_some(), "where");
    add(!select.group.is_empty(), "group");
    add(select.having.is_some(), "having");
    match &select.grouping {
        Grouping::Plain => {}
        Grouping::Rollup => add(true, "group:rollup"),
        Grouping::Cube => add(true, "group:cube"),
        Grouping::Sets(_) => add(true, "group:sets"),
    }
}

fn of_join(join: &Join, words: &mut BTreeSet<String>) {
    words.insert(format!("join:{}", format!("{:?}", join.kind).to_lowercase()));
    if !join.using.is_empty() {
        words.insert("join:using".to_owned());
    }
}

/// The query with the kinds of its literals and columns in place of them: findings of one shape are one.
#[must_use]
pub fn shape(query: &Query) -> String {
    let mut query = query.clone();
    crate::shrink::each_expr(&mut query, &mut |expr| {
        if expr.is_leaf() && expr.op != Op::Literal(Literal::Null) {
            let name = expr.kind.name().to_owned();
            expr.op = Op::Column { table: None, name };
        }
    });
    let text = crate::print::query(&query, crate::schema::Dialect::Ours);
    let alias = |word: &str| {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let digits = word.strip_prefix(['r', 't']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split(' ').filter(|word| !alias(word)).collect::<Vec<_>>().join(" ")
}

/// Whether a kind of literal could stand for all of its kind; used by the shrinker.
#[must_use]
pub fn plainest(kind: Kind) -> Literal {
    match kind {
        Kind::Int => Literal::Int(1),
        Kind::Decimal => Literal::Decimal("1.5".to_owned()),
        Kind::Double => Literal::Double("1.5e0".to_owned()),
        Kind::Text => Literal::Text("a".to_owned()),
        Kind::Date => Literal::Date { text: "2020-01-31".to_owned(), bare: false },
        Kind::DateTime => Literal::DateTime { text: "2020-01-31 12:30:45".to_owned(), bare: false },
        Kind::Bool => Literal::Bool(true),
    }
}
